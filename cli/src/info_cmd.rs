//! `treering trace info`.

use treering_sim::report::html;
use treering_traces::{Op, OpSource, Reader, TraceError, info};

use crate::args::InfoArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::Progress;

/// Reads the trace and reports its properties.
pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.trace])?;
    let html = Output::if_given("--html", args.html.as_deref(), &[&args.trace])?;
    if html == Some(Output::Stdout) {
        return Err(Failure::usage("--html -: expected a file"));
    }
    if json.is_some() && json == html {
        return Err(Failure::usage("--json, --html: expected different files"));
    }
    let first = treering_traces::open(&args.trace)?;
    let header = first.header().clone();
    let counted = |reader| Counted {
        total: header.ops,
        seen: 0,
        inner: reader,
        progress: Progress::new(),
    };
    let is_file = args.trace.metadata().is_ok_and(|about| about.is_file());
    let info = if is_file {
        let mut first = Some(first);
        let open = || match first.take() {
            Some(first) => Ok(counted(first)),
            None => treering_traces::open(&args.trace).map(counted),
        };
        info::collect_with_pages(&header, args.page, open)?
    } else {
        output::warn("caches of pages are left out: only a regular file can be read twice");
        info::collect(&mut counted(first), &header)?
    };
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
struct Counted {
    inner: Reader,
    seen: u64,
    total: u64,
    progress: Progress,
}

impl OpSource for Counted {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        self.seen += 1;
        if self.seen & 0xffff == 0 {
            self.progress.tell("reading", self.seen, self.total);
        }
        self.inner.next_op(op)
    }
}
