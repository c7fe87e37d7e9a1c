//! The report of a replay that is stopped before the first operation: while it reads the initial
//! keys (the survey) or analyses the trace.
//!
//! Neither phase can be interrupted, so the watcher reports ([`interrupt::at_end`]). From the first
//! operation on, the replay reports by itself.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use treering_sim::replay;

use crate::interrupt;
use crate::output::{self, Output};

/// `treering.replay/2`, as far as it is known.
#[derive(serde::Serialize)]
struct Document {
    schema: &'static str,
    complete: bool,
    trace: Trace,
    phase: &'static str,
    /// Operations seen in this phase.
    operations_seen: u64,
    /// Operations to see in this phase; `null` until the first thousands are seen.
    operations: Option<u64>,
}

#[derive(serde::Serialize)]
struct Trace {
    name: String,
    source: String,
    /// Operations replayed.
    ops: u64,
}

/// The current phase and its progress: operations seen, and in total.
#[derive(Clone, Copy)]
struct At {
    phase: &'static str,
    seen: u64,
    of: Option<u64>,
}

/// Guards the time until the first operation: a signal ends the process with an early report.
pub(crate) struct Early {
    at: Arc<Mutex<At>>,
    armed: bool,
}

impl Early {
    pub(crate) fn begin(trace: &Path, json: Option<Output>) -> Early {
        let begun = At {
            phase: "survey",
            seen: 0,
            of: None,
        };
        let at = Arc::new(Mutex::new(begun));
        let (told, trace) = (Arc::clone(&at), trace.to_path_buf());
        interrupt::at_end(move || {
            let at = *told.lock().unwrap_or_else(PoisonError::into_inner);
            report(&trace, json.as_ref(), at)
        });
        Early { at, armed: true }
    }

    pub(crate) fn note(&mut self, progress: replay::Progress) {
        let (phase, seen, of) = match progress {
            replay::Progress::Survey(seen, of) => ("survey", seen, of),
            replay::Progress::Analyse(seen, of) => ("analysis", seen, of),
            replay::Progress::Replay(..) => return self.end(),
            replay::Progress::Ignored(_) => return,
        };
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = At {
            phase,
            seen,
            of: Some(of),
        };
    }

    /// Ends the early reports: from here on the replay reports by itself.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.armed) {
            interrupt::finished();
        }
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes the report; returns the sentence for stderr.
fn report(trace: &Path, json: Option<&Output>, At { phase, seen, of }: At) -> String {
    let header = treering_traces::open(trace).map(|trace| trace.header().clone());
    let (name, source) = match header {
        Ok(header) => (header.name, header.source),
        Err(_) => (trace.display().to_string(), String::new()),
    };
    let of_all = of.map_or(String::new(), |of| format!(" of {of}"));
    let done = format!("{seen}{of_all} operations were seen in the {phase}, none was replayed");
    if json != Some(&Output::Stdout) {
        let text = format!("{name}: {source}\n  Interrupted: {done}.\n");
        // Even if this fails, the sentence on stderr is printed.
        let _ = output::say(text.as_bytes());
    }
    let document = Document {
        schema: treering_sim::report::SCHEMA,
        complete: false,
        trace: Trace {
            name,
            source,
            ops: 0,
        },
        phase,
        operations_seen: seen,
        operations: of,
    };
    output::write_partial(json, &document);
    done
}
