//! `treering load`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::Error;

use crate::args::LoadArgs;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::new_store::{self, NewStore};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::rows;

/// Lines between two updates of the progress bar.
const GLANCE: u64 = 4096;

/// The progress of the load, for the report when there is a signal.
#[derive(Default)]
struct SoFar {
    records: AtomicU64,
    user_bytes: AtomicU64,
}

/// `treering.load/1`.
#[derive(serde::Serialize)]
struct Document {
    schema: &'static str,
    complete: bool,
    store: String,
    input: String,
    records: u64,
    user_bytes: u64,
}

/// Creates a store from lines; if that fails, nothing is left.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.input])?;
    let options = new_store::options(&args.tree, &args.new)?;
    let (input, name, bytes) = open(args)?;
    let new = NewStore::begin("STORE", &args.store, options, bytes)?;
    let so_far = Arc::new(SoFar::default());
    let (store, told) = (args.store.display().to_string(), Arc::clone(&so_far));
    let document = move |name: String, complete| Document {
        schema: "treering.load/1",
        complete,
        store: store.clone(),
        input: name,
        records: told.records.load(Ordering::Relaxed),
        user_bytes: told.user_bytes.load(Ordering::Relaxed),
    };
    let (early, input_name, to) = (document.clone(), name.clone(), json.clone());
    interrupt::at_end(move || {
        let document = early(input_name, false);
        output::write_partial(to.as_ref(), &document);
        format!(
            "{} records of {} were loaded; {} was not written",
            document.records, document.input, document.store
        )
    });
    let new = fill(new, input, (&name, bytes), &so_far)?;
    interrupt::finished();
    new.finish()?;
    let document = document(name, true);
    if let Some(json) = &json {
        json.write(&output::json(&document)?)?;
    }
    if json != Some(Output::Stdout) {
        let (records, user_bytes) = (document.records, document.user_bytes);
        let text = format!(
            "{}: {records} records, {user_bytes} bytes of keys and values\n",
            document.store
        );
        output::say(text.as_bytes())?;
    }
    Ok(())
}

/// The input, its name, and its length in bytes if that is known, else 0.
fn open(args: &LoadArgs) -> Result<(Box<dyn BufRead>, String, u64), Failure> {
    if args.input.as_os_str() == "-" {
        return Ok((Box::new(std::io::stdin().lock()), "stdin".into(), 0));
    }
    let name = args.input.display().to_string();
    let file = File::open(&args.input).map_err(|e| Failure::file(&name, &e))?;
    let bytes = file.metadata().map_or(0, |meta| meta.len());
    Ok((Box::new(BufReader::new(file)), name, bytes))
}

fn fill(
    mut new: NewStore,
    mut input: Box<dyn BufRead>,
    (name, bytes): (&str, u64),
    so_far: &SoFar,
) -> Result<NewStore, Failure> {
    let mut progress = Progress::new();
    let mut line = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    let (mut number, mut read) = (0_u64, 0_u64);
    loop {
        line.clear();
        let got = input
            .read_until(b'\n', &mut line)
            .map_err(|e| Failure::file(name, &e))?;
        if got == 0 {
            return Ok(new);
        }
        number += 1;
        read += got as u64;
        if number.is_multiple_of(GLANCE) && bytes > 0 {
            progress.tell("loading", read, bytes);
        }
        let bad = |why: String| Failure::usage(format!("{name}, line {number}: {why}"));
        let (key, value) = rows::read(&line).map_err(bad)?;
        // A key above all earlier ones cannot be a duplicate, so no lookup is needed.
        let ascends = last.as_ref().is_none_or(|last| *last < key);
        if !ascends && new.has(&key)? {
            return Err(bad(
                "found a key for the second time; expected each key once".into(),
            ));
        }
        match new.put(&key, &value) {
            Ok(()) => {}
            Err(e @ (Error::KeyTooLong { .. } | Error::ValueTooLong { .. })) => {
                return Err(bad(format!(
                    "expected a record that fits into the store, found a {e}"
                )));
            }
            Err(e) => return Err(failure::engine(name, e)),
        }
        so_far.records.store(new.rows(), Ordering::Relaxed);
        let user_bytes = (key.len() + value.len()) as u64;
        so_far.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        if ascends {
            last = Some(key);
        }
    }
}
