//! Cutting the recovery: what the checker itself writes is recorded, and cut again.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::checker::{Mounting, Verdict};
use super::shapes::Shapes;
use super::subject::{Choice, Subject};
use super::tree::Tree;
use crate::error::DriveError;
use crate::face::PageCache;
use crate::recording::{Contents, Header, Recorder};

/// A recovery that was cut.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    /// What the checker did, as a recording; it goes with the last who refers to it.
    pub(super) log: Arc<tempfile::TempPath>,
    /// What was left of it.
    pub(super) choice: Choice,
}

/// What a checker said of a state, and of the states that cuts of its recovery left.
pub(super) struct Checked {
    pub(super) verdict: Verdict,
    /// Cuts that it could not live with.
    pub(super) failed: Vec<(Verdict, Recovery)>,
    /// States that were left by cuts.
    pub(super) cuts: u64,
}

impl Checked {
    /// A verdict without any cut.
    pub(super) fn of(verdict: Verdict) -> Checked {
        Checked {
            verdict,
            failed: Vec::new(),
            cuts: 0,
        }
    }
}

/// States that are tried at each point of a recovery.
const EACH: usize = 6;

/// Runs the checker on a state, and again on up to `cuts` states that a power cut in the first run
/// leaves.
pub(super) fn check(
    subject: &Subject,
    place: &Mounting,
    tree: &Tree,
    acks: &[u8],
    cuts: usize,
) -> Result<Checked, DriveError> {
    let file = tempfile::Builder::new()
        .prefix("treering-recovery-")
        .tempfile();
    let log = file
        .map_err(DriveError::system("a temporary file"))?
        .into_temp_path();
    let (face, capacity) = (place.face(), place.capacity_blocks());
    let header = Header::new(face, capacity, PageCache::WriteThrough);
    let recorder = Arc::new(Recorder::create(&log, header, Contents::All)?);
    let verdict = place.check_recorded(tree, acks, Arc::clone(&recorder) as _)?;
    recorder.finish()?;
    let log = Arc::new(log);
    if !verdict.is_good() {
        return Ok(Checked::of(verdict));
    }
    let (mut failed, mut count) = (Vec::new(), 0);
    let inner = Subject::over(
        &log,
        subject.rules,
        &subject.store,
        tree.clone(),
        acks.to_vec(),
    )?;
    let mut seen = FxHashSet::default();
    seen.insert(tree.hash());
    let mut reader = inner.reader()?;
    let mut walk = inner.walk(&mut reader);
    // Spread over the recovery, if not all can be had: over other points for other states.
    let points = &inner.points.points;
    let stride = (points.len() * EACH).div_ceil(cuts.max(1)).max(1);
    let first = (tree.hash() % stride as u64) as usize;
    for point in points.iter().skip(first).step_by(stride) {
        walk.go_to(point.place)?;
        let builder = inner.builder(&walk.window);
        let shapes = Shapes::new(
            &builder,
            inner.rules.tears,
            inner.rules.seed ^ point.place.event,
        );
        for number in 0..EACH {
            let fates = shapes.fates(number);
            let state = builder.build(&fates)?;
            if count >= cuts as u64 || !seen.insert(state.hash()) {
                continue;
            }
            count += 1;
            let again = place.check(&state, acks)?;
            if !again.is_good() {
                let choice = Choice::of(point.place, builder.effects(), &fates);
                let log = Arc::clone(&log);
                failed.push((again, Recovery { log, choice }));
            }
        }
    }
    Ok(Checked {
        verdict,
        failed,
        cuts: count,
    })
}
