//! Power cuts over a recording: the states that may be left, each given to the user's own checker.
//!
//! ```text
//! recording ──▶ points ──▶ window: what is durable, what is not ──▶ shapes ──▶ states
//!                                        model                                   │ mounted
//!                                                                                ▼
//! findings ◀── story ◀── smallest state, missing flush ◀── failures ◀────── CHECKER
//! ```
//!
//! A recording has every write and every flush, so a program runs once and is cut as often as
//! wanted. A state is a place in the recording and what is lost of the effects that no flush has
//! made durable before it. [`Model`] says which of those sets are legal, [`explore`] tries the
//! ones that find bugs first and asks the checker whether it can live with what is left.
//!
//! | module | contents |
//! |---|---|
//! | `content`, `tree` | files and names as states share them |
//! | `effect`, `window` | what may be lost, and what is durable, at a place of the recording |
//! | `model` | what file systems promise |
//! | `state` | building one state |
//! | `points`, `shapes` | where and in which order |
//! | `subject`, `campaign` | exploring a recording, several states at once |
//! | `recovery` | cutting the checker's own recovery |
//! | `laid`, `checker` | a state as a mounted directory, and the command that runs in it |
//! | `shrink`, `story`, `found` | the smallest failing state, told and kept |
//! | `report` | what comes out |
//!
//! # Cost
//! A state costs a pointer for each file and each chunk of 256 KiB that it changes, and what the
//! volatile effects write in part. What costs time is mounting it (about 3 ms on the face `files`)
//! and the checker. States that look the same are checked once.
//!
//! # What is not modelled
//! - Which writes a real drive had in flight: a recording has them in the order of their arrival,
//!   and a write that has not returned counts as before the flush that was asked for later.
//! - Times of files, owners' quotas, and bytes that a file system leaves in a file by accident.
//! - A kernel that has written dirty pages by itself: with the page cache in write-back mode, what
//!   a program wrote and never synced reaches the recording late. Record with `--page-cache
//!   write-through` to have each write where the program made it.

mod campaign;
mod checker;
mod content;
mod effect;
mod found;
mod laid;
mod model;
mod points;
mod quick;
mod recovery;
mod report;
mod shapes;
mod shrink;
mod state;
mod story;
mod subject;
#[cfg(test)]
mod tests;
mod tree;
mod window;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::campaign::{Explored, Limits};
use self::checker::{Checker, Mounting};
use self::content::Store;
use self::found::{Found, FoundRecovery};
pub use self::model::Model;
pub use self::quick::{Quick, QuickMaker};
pub use self::report::{Covered, Cuts, Finding, Named, Outcome, Recording, States};
use self::shrink::Shrinker;
pub use self::story::{Became, Line};
use self::subject::{Choice, Rules, Subject};
use crate::error::DriveError;
use crate::face::Face;
use crate::recording::{Header, Reader};

/// The most causes that failures of one kind are told apart into.
const CAUSES: usize = 3;

/// What to explore, and with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The recording.
    pub log: PathBuf,
    /// The checker and its arguments.
    pub checker: Vec<OsString>,
    /// Checks most states instead, without a process for each.
    pub quick: Option<QuickMaker>,
    /// Variables for the checker.
    pub env: Vec<(OsString, OsString)>,
    /// What reports call the checker, if not by its command.
    pub named: Option<Named>,
    /// What the file system promises; `None`: [`Model::Strict`], or [`Model::Disk`] where a real
    /// file system was recorded.
    pub model: Option<Model>,
    /// No cut is before the first line of acknowledgements that begins so.
    pub from: Option<String>,
    /// Bytes that are durable as a whole: 512 or 4096.
    pub torn_bytes: u64,
    /// Whether writes are torn at all.
    pub tears: bool,
    /// The most effects that are volatile at once; older ones become durable.
    pub window: usize,
    /// Decides what is drawn.
    pub seed: u64,
    /// States at once.
    pub jobs: usize,
    /// The most states.
    pub states: u64,
    /// The most time for exploring. Making failures small comes after it.
    pub time: Duration,
    /// How long the checker may take.
    pub limit: Duration,
    /// Cuts of each recovery that is cut; 0 for none.
    pub recovery: usize,
    /// Directory for found states; made if something is found.
    pub found: PathBuf,
    /// Directory for copies of found states.
    pub keep: Option<PathBuf>,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// States on which the checker ran.
    pub checked: u64,
    /// Those on which it failed.
    pub failed: u64,
    /// The kind of failures that is made small, from 1, once exploring has ended.
    pub kinds: u64,
    /// All kinds.
    pub all_kinds: u64,
}

/// Explores the states of a recording. `told` hears of progress; `stop` is asked whether to end.
///
/// # Errors
/// [`DriveError::Bad`] if the recording is damaged, [`DriveError::Parameter`] if the plan does not
/// fit to it, [`DriveError::Missing`] if the checker or something that mounting needs is missing.
pub fn explore(
    plan: &Plan,
    told: &mut dyn FnMut(Progress),
    stop: &dyn Fn() -> bool,
) -> Result<Cuts, DriveError> {
    let header = header(&plan.log)?;
    let rules = rules(plan, &header)?;
    let store = Arc::new(Store::default());
    let mut subject = Subject::open(&plan.log, rules, &store)?;
    if let Some(text) = &plan.from
        && !subject.points.begin_at(text.as_bytes())
    {
        return Err(DriveError::Parameter {
            name: "from",
            why: format!("a line of acknowledgements that begins with `{text}`, found none"),
        });
    }
    if !subject.points.complete {
        return Err(DriveError::Bad {
            file: plan.log.clone(),
            place: "its contents".into(),
            expected: "the bytes of every write".into(),
            found: "writes without their bytes; record with `--record`".into(),
        });
    }
    let checker = Arc::new(Checker {
        quick: plan.quick.clone(),
        ..checker_of(plan, &header)
    });
    let limits = Limits {
        states: plan.states,
        time: plan.time,
        jobs: plan.jobs.max(1),
        recovery: plan.recovery,
    };
    let mut tell = |explored: &Explored| {
        told(Progress {
            checked: explored.checked,
            failed: explored.failed,
            ..Progress::default()
        });
    };
    let explored = campaign::explore(&subject, &checker, limits, &mut tell, stop)?;
    let small = Small {
        plan,
        subject: &subject,
        mounting: &Mounting::new(Arc::new(checker_of(plan, &header)), Arc::clone(&store))?,
        header: &header,
    };
    let mut findings: Vec<Finding> = Vec::new();
    let (checked, failed) = (explored.checked, explored.failed);
    for (number, (kind, count, failures)) in (1..).zip(&explored.failures) {
        told(Progress {
            checked,
            failed,
            kinds: number,
            all_kinds: explored.failures.len() as u64,
        });
        for finding in small.findings(kind, *count, failures)? {
            match findings.iter_mut().find(|known| known.is_like(&finding)) {
                Some(known) => known.merge(finding),
                None => findings.push(finding),
            }
        }
        if stop() {
            break;
        }
    }
    for (number, finding) in (1..).zip(&mut findings) {
        keep(plan, &subject, number, finding)?;
    }
    Ok(Cuts::new(plan, &header, &subject, &explored, findings))
}

/// Runs a checker on a found state once more. Returns how it ended in words, what it printed, and
/// whether it was content.
///
/// # Errors
/// As of [`explore`]; [`DriveError::Bad`] if the file is no found state or its recording is another
/// one.
pub fn replay(found: &Path, plan: &Plan) -> Result<(String, String, bool), DriveError> {
    let state = Found::read(found)?;
    let log = state.recording.clone();
    let header = header(&log)?;
    if header.began_unix_ms != state.began_unix_ms {
        return Err(DriveError::Bad {
            file: log,
            place: "its header".into(),
            expected: "the recording that the state was found in".into(),
            found: "another one".into(),
        });
    }
    let store = Arc::new(Store::default());
    let subject = Subject::open(&log, state.rules(), &store)?;
    let mut tree = subject.build(&state.choice, &[])?;
    let acks = subject.acks_before(state.choice.place).to_vec();
    let inner;
    if let Some(recovery) = &state.recovery {
        let dir = found.parent().unwrap_or(Path::new(""));
        let log = dir.join(&recovery.recording);
        inner = Subject::over(&log, state.rules(), &store, tree.clone(), acks.clone())?;
        tree = inner.build(&recovery.choice, &[])?;
    }
    if let Some(dir) = &plan.keep {
        laid::copy(&tree, &store, dir)?;
    }
    let checker = Arc::new(checker_of(plan, &header));
    let verdict = Mounting::new(checker, Arc::clone(&store))?.check(&tree, &acks)?;
    Ok((verdict.words(), verdict.output.clone(), verdict.is_good()))
}

fn header(log: &Path) -> Result<Header, DriveError> {
    Ok(Reader::open(log)?.header().clone())
}

fn rules(plan: &Plan, header: &Header) -> Result<Rules, DriveError> {
    let parameter = |name, why: String| Err(DriveError::Parameter { name, why });
    let model = match (header.face, plan.model) {
        (Face::Files, model) => model.unwrap_or_default(),
        (Face::Disk(_), None | Some(Model::Disk)) => Model::Disk,
        (Face::Disk(_), Some(model)) => {
            let why = format!(
                "{} is for recordings of the face `files`, found one of {}",
                model.name(),
                header.face.name()
            );
            return parameter("model", why);
        }
    };
    if ![512, 4096].contains(&plan.torn_bytes) {
        return parameter(
            "torn",
            format!("512 or 4096 bytes, found {}", plan.torn_bytes),
        );
    }
    if plan.window == 0 {
        return parameter("window", "at least 1, found 0".into());
    }
    Ok(Rules {
        model,
        unit: match model {
            // It writes and checks whole blocks.
            Model::Btrfs => 4096,
            _ => plan.torn_bytes,
        },
        tears: plan.tears,
        limit: plan.window,
        seed: plan.seed,
    })
}

fn checker_of(plan: &Plan, header: &Header) -> Checker {
    Checker {
        command: plan.checker.clone(),
        quick: None,
        limit: plan.limit,
        face: header.face,
        capacity_blocks: header.capacity_blocks,
        env: plan.env.clone(),
    }
}

/// Makes the failures of a campaign small.
struct Small<'a> {
    plan: &'a Plan,
    subject: &'a Subject,
    mounting: &'a Mounting,
    header: &'a Header,
}

impl Small<'_> {
    fn findings(
        &self,
        kind: &str,
        count: u64,
        failures: &[campaign::Failure],
    ) -> Result<Vec<Finding>, DriveError> {
        let mut findings = Vec::new();
        let Some(first) = failures.first() else {
            return Ok(findings);
        };
        if let Some(recovery) = &first.recovery {
            // The recording of a recovery belongs to one state alone.
            let outer = self.subject.build(&first.choice, &[])?;
            let acks = self.subject.acks_before(first.choice.place).to_vec();
            let rules = self.subject.rules;
            let inner = Subject::over(&recovery.log, rules, &self.subject.store, outer, acks)?;
            let mut shrinker = Shrinker::new(&inner, self.mounting, kind);
            let smallest = shrinker.shrink(&recovery.choice, &first.verdict, &[])?;
            let story = story::tell(&inner, &smallest)?;
            let found = self.found(&first.choice, Some((recovery, &smallest.choice)));
            findings.push(Finding::new(first, count, &smallest, story, found));
            return Ok(findings);
        }
        let mut left = shrink::by_size(failures);
        let mut count = count;
        while let Some(choice) = left.first().cloned() {
            let mut shrinker = Shrinker::new(self.subject, self.mounting, kind);
            left.remove(0);
            let smallest = shrinker.shrink(&choice, &first.verdict, &left)?;
            let story = story::tell(self.subject, &smallest)?;
            let found = self.found(&smallest.choice, None);
            // What the flush does not mend has another cause.
            let missing = smallest.missing.as_ref();
            let mut explained = missing.into_iter().flat_map(|missing| &missing.explains);
            left.retain(|_| explained.next() == Some(&false));
            if findings.len() + 1 == CAUSES {
                left.clear();
            }
            let others = left.len() as u64;
            let states = count.saturating_sub(others);
            findings.push(Finding::new(first, states, &smallest, story, found));
            count = others;
        }
        Ok(findings)
    }

    fn found(
        &self,
        choice: &Choice,
        recovery: Option<(&Arc<recovery::Recovery>, &Choice)>,
    ) -> FoundState {
        let rules = self.subject.rules;
        let log = self.plan.log.canonicalize();
        let found = Found {
            schema: Found::SCHEMA.into(),
            recording: log.unwrap_or_else(|_| self.plan.log.clone()),
            began_unix_ms: self.header.began_unix_ms,
            model: rules.model,
            torn_bytes: rules.unit,
            window: rules.limit,
            choice: choice.clone(),
            recovery: recovery.map(|(_, choice)| FoundRecovery {
                recording: PathBuf::new(),
                choice: choice.clone(),
            }),
        };
        let log = recovery.map(|(recovery, _)| Arc::clone(&recovery.log));
        FoundState { found, log }
    }
}

/// A state that is about to be kept.
#[derive(Clone, Debug)]
pub(crate) struct FoundState {
    found: Found,
    /// The recording of the recovery that was cut.
    log: Option<Arc<tempfile::TempPath>>,
}

/// Writes a finding's state, and copies it if that is wanted.
fn keep(
    plan: &Plan,
    subject: &Subject,
    number: u32,
    finding: &mut Finding,
) -> Result<(), DriveError> {
    let Some(mut state) = finding.state.take() else {
        return Ok(());
    };
    let made = std::fs::create_dir_all(&plan.found);
    made.map_err(DriveError::system(plan.found.display().to_string()))?;
    let name = format!("{number}.cut");
    if let (Some(log), Some(recovery)) = (&state.log, &mut state.found.recovery) {
        recovery.recording = format!("{number}.recovery").into();
        let to = plan.found.join(&recovery.recording);
        let copied = std::fs::copy::<&Path, _>(log, &to);
        copied.map_err(DriveError::system(to.display().to_string()))?;
    }
    let path = plan.found.join(name);
    state.found.write(&path)?;
    finding.replay = path.display().to_string();
    if let Some(dir) = &plan.keep {
        let tree = subject.build(&state.found.choice, &[])?;
        let to = dir.join(number.to_string());
        laid::copy(&tree, &subject.store, &to)?;
        finding.kept = Some(to.display().to_string());
    }
    Ok(())
}
