//! `treering trace info`.

use treering_sim::report::html;
use treering_traces::{Op, OpSource, TraceError};

use crate::args::InfoArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::Progress;

/// Reads the trace once and reports its properties.
pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.trace])?;
    let html = Output::if_given("--html", args.html.as_deref(), &[&args.trace])?;
    if html == Some(Output::Stdout) {
        return Err(Failure::usage("--html -: expected a file"));
    }
    if json.is_some() && json == html {
        return Err(Failure::usage("--json, --html: expected different files"));
    }
    let mut reader = treering_traces::open(&args.trace)?;
    let header = reader.header().clone();
    let mut counted = Counted {
        total: header.ops,
        seen: 0,
        inner: &mut reader,
        progress: Progress::new(),
    };
    let info = treering_traces::info::collect(&mut counted, &header)?;
    drop(counted);
    if let Some(page) = &html {
        page.write(html::trace_page(&info).as_bytes())?;
    }
    if let Some(json) = &json {
        json.write(&output::json(&info)?)?;
    }
    if json != Some(Output::Stdout) {
        output::say(info.render_text().as_bytes())?;
    }
    Ok(())
}

/// A source that advances the progress bar.
struct Counted<'a> {
    inner: &'a mut dyn OpSource,
    seen: u64,
    total: u64,
    progress: Progress,
}

impl OpSource for Counted<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        self.seen += 1;
        if self.seen & 0xffff == 0 {
            self.progress.tell("reading", self.seen, self.total);
        }
        self.inner.next_op(op)
    }
}
