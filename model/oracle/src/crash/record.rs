//! Records the run that is crashed afterwards: the requests that reached the device, and what was
//! promised when.

use crate::deadline::Deadline;
use crate::finding::{Check, Finding};
use crate::generate::LEAST_BUILT;
use crate::medium::{Medium, Request};
use crate::point::Point;
use crate::program::{Op, Program};
use crate::reference::Reference;
use crate::session::{Session, Tally};
use crate::{DiskKind, Engine};

pub(super) struct Recorded {
    pub(super) requests: Vec<Request>,
    /// What a crash may leave from a number of requests (`from`) on, in ascending order.
    pub(super) promises: Vec<Promised>,
    pub(super) disk: DiskKind,
    /// The number of requests that built the store. The program is crashed after them.
    pub(super) built: usize,
}

pub(super) struct Promised {
    pub(super) from: usize,
    pub(super) reference: Reference,
    /// Whether a batch is being written, or has just been written.
    pub(super) batch: bool,
}

impl Recorded {
    /// An empty medium, which goes through the states of the run as the requests are applied to it.
    pub(super) fn twin(&self) -> Medium {
        let Some(medium) = Medium::new(self.disk) else {
            unreachable!("what has no medium is not recorded");
        };
        medium
    }

    /// Whether the request after this many settles what is in doubt. Also true if there is none.
    pub(super) fn settles(&self, after: usize) -> bool {
        let next = self.requests.get(after);
        next.is_none_or(|request| matches!(request.point(), Point::Flush | Point::Fence))
    }

    /// The promise in force after this many requests.
    pub(super) fn promise(&self, after: usize) -> &Reference {
        let in_force = self.promises.iter().rev().find(|p| p.from <= after);
        &in_force.unwrap_or(&self.promises[0]).reference
    }
}

/// Runs the program on a recording device, or only its first part if `until` is over before its
/// end. The program's own crashes and failures are left out, since all power cuts are tried anyway.
pub(super) fn record(
    engine: &dyn Engine,
    program: &Program,
    until: &Deadline,
) -> Result<(Recorded, Tally), Finding> {
    let disk = engine.disk();
    if disk == DiskKind::Folder {
        return Err(Finding {
            check: Check::Error,
            operation: None,
            what: "record a run".into(),
            expected: "an engine on blocks or in persistent memory".into(),
            found: "one that keeps its own files".into(),
        });
    }
    let mut session = Session::start_recorded(engine, program)?;
    let done = |session: &Session<'_>| session.medium().map_or(0, |m| m.requests()) as usize;
    let mut promises = vec![Promised {
        from: 0,
        reference: session.reference().clone(),
        batch: false,
    }];
    let puts = program
        .ops
        .iter()
        .take_while(|op| matches!(op, Op::Put(..)));
    let puts = Some(puts.count()).filter(|puts| *puts >= LEAST_BUILT);
    let mut built = 0;
    for (at, op) in program.ops.iter().enumerate() {
        if Some(at) == puts {
            built = done(&session);
        }
        if matches!(
            op,
            Op::Crash(_) | Op::CutPower(_) | Op::Fail(..) | Op::Starve(_)
        ) {
            continue;
        }
        if until.is_over() {
            break;
        }
        let before = done(&session);
        let batch = matches!(op, Op::Write(changes) if !changes.is_empty());
        if op.is_write() {
            // From its first request on, the write may take effect, acknowledged or not.
            let mut with = session.reference().clone();
            session.anticipate(at, &mut with);
            promises.push(Promised {
                from: before + 1,
                reference: with,
                batch,
            });
        }
        session.step(at)?;
        if op.is_write() || matches!(op, Op::Sync | Op::SyncLast | Op::Reopen) {
            // A write that has made no request yet reaches the device with a later one.
            let least = before + usize::from(op.is_write());
            promises.push(Promised {
                from: done(&session).max(least),
                reference: session.reference().clone(),
                batch,
            });
        }
    }
    let recording = session.medium().map(|medium| medium.take_recording());
    let recorded = Recorded {
        requests: recording.unwrap_or_default(),
        promises,
        disk,
        built,
    };
    Ok((recorded, session.end()))
}
