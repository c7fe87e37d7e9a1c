//! `treering dump`.

use std::io::{BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, FileDevice, OverlayDevice};
use treering_engine::{Error, Kv, Options, Store, SystemClock};

use crate::args::DumpArgs;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output::{self, Beside, Output};
use crate::rows;

/// Writes all records as lines, in key order.
pub(crate) fn run(args: &DumpArgs) -> Result<(), Failure> {
    output::check_not_input("--output", &args.output, &args.store)?;
    let output = Output::new("--output", &args.output)?;
    let name = args.store.display().to_string();
    let store = open(args).map_err(|e| told(&name, e))?;
    match output {
        Output::Stdout => {
            let mut stdout = BufWriter::new(std::io::stdout().lock());
            match dump(&store, &mut stdout).and_then(|()| flush(&mut stdout)) {
                // The reader has gone away, as with `| head`.
                Err(Ended::Output(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
                done => done.map_err(|e| e.about(&name, "stdout")),
            }
        }
        Output::File(path) => {
            let to = path.display().to_string();
            let beside = Beside::begin(&path)?;
            let mut file = BufWriter::new(beside.file());
            let done = dump(&store, &mut file).and_then(|()| flush(&mut file));
            drop(file);
            done.map_err(|e| e.about(&name, &to))?;
            beside.finish()
        }
    }
}

/// Opens the store and recovers it in memory, so that the file is not changed.
fn open(args: &DumpArgs) -> Result<Store, Error> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&args.store)?);
    let options = Options::of_store(&device)?;
    let overlay = Arc::new(OverlayDevice::new(device));
    let store = Store::open(overlay, Arc::new(SystemClock::new()), &options)?;
    store.abandon_on_drop();
    Ok(store)
}

/// Reasons why a dump ended early.
enum Ended {
    Store(Error),
    Output(std::io::Error),
    /// A signal stopped it after this many rows.
    Interrupted(u64),
}

impl Ended {
    fn about(self, store: &str, output: &str) -> Failure {
        match self {
            Ended::Store(e) => told(store, e),
            Ended::Output(e) => Failure::file(output, &e),
            Ended::Interrupted(rows) => {
                let said = || format!("{rows} records of {store} were written");
                (interrupt::check(said).err())
                    .unwrap_or_else(|| Failure::cannot_run(format!("{store}: interrupted")))
            }
        }
    }
}

fn flush(output: &mut impl Write) -> Result<(), Ended> {
    output.flush().map_err(Ended::Output)
}

fn dump(store: &Store, output: &mut impl Write) -> Result<(), Ended> {
    let mut line = Vec::new();
    let (mut failed, mut rows) = (None, 0_u64);
    let scanned = store.scan(b"", &mut |key, value| {
        line.clear();
        let written = rows::write(&mut line, key, value)
            .map_err(std::io::Error::from)
            .and_then(|()| output.write_all(&line));
        match written {
            Ok(()) if interrupt::stopped().is_some() => ControlFlow::Break(()),
            Ok(()) => {
                rows += 1;
                ControlFlow::Continue(())
            }
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    });
    scanned.map_err(Ended::Store)?;
    if let Some(e) = failed {
        return Err(Ended::Output(e));
    }
    match interrupt::stopped() {
        None => Ok(()),
        Some(_) => {
            // Complete lines are flushed even if the dump stops early.
            flush(output)?;
            Err(Ended::Interrupted(rows))
        }
    }
}

/// Turns an error into a failure; damage is reported with a hint to `treering repair`.
fn told(name: &str, error: Error) -> Failure {
    match error {
        e @ (Error::Damaged { .. } | Error::MissingPage { .. }) => Failure::found(format!(
            "{name}: {e}; `treering repair {name} -o NEW` saves what is intact"
        )),
        e => failure::engine(name, e),
    }
}
