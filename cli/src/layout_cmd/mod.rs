//! `treering layout`: compares how much space page layouts need for a set of keys.

mod report;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use treering_engine::node::LayoutChoice;
use treering_sim::layouts::keys::{self, Order};
use treering_sim::layouts::{Counts, PageTree};
use treering_sim::predict::space::{Forecast, KeySample};
use treering_sim::report::html;
use treering_traces::{Op, OpKind, OpSource};

use crate::args::{LayoutArgs, LayoutOrder};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Documents, Output};
use crate::progress::Progress;

/// Maximum length of a generated value.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Records in the order in which they are put: keys, and lengths of values.
struct Records {
    name: String,
    puts: Vec<(Vec<u8>, u32)>,
    /// Operations of a trace that are neither puts nor reads, and were skipped.
    left_out: u64,
}

/// The results of one layout.
struct Row {
    layout: LayoutChoice,
    counts: Counts,
    predicted: Forecast,
}

/// The results of all layouts.
struct Results {
    records: Arc<Records>,
    /// Page size without the envelope.
    page: usize,
    /// The share of the keys to sample for predictions, and the number of keys in the sample.
    sample: f64,
    sampled: usize,
    /// Number of distinct keys.
    distinct: usize,
    rows: Vec<Row>,
    /// Whether every layout has its row.
    complete: bool,
}

/// Puts the records into a tree of each layout and measures the space.
pub(crate) fn run(args: &LayoutArgs) -> Result<(), Failure> {
    let outputs = outputs(args)?;
    let page = usize::try_from(args.page).unwrap_or(usize::MAX);
    // A larger page would exceed the maximum once the envelope is added.
    if !(4096..=32 << 10).contains(&page) || !page.is_power_of_two() {
        return Err(Failure::usage(
            "--page: expected a power of two from 4KiB to 32KiB",
        ));
    }
    if args.sample <= 0.0 {
        return Err(Failure::usage("--sample: expected a share above 0"));
    }
    let records = records(args)?;
    if records.puts.is_empty() {
        return Err(Failure::usage(format!(
            "{}: found no records to lay out; expected at least one",
            records.name
        )));
    }
    let results = lay_out(args, page, Arc::new(records), &outputs)?;
    if results.records.left_out > 0 {
        output::warn(&format!(
            "{}: {} deletes skipped; deleted keys still take space",
            results.records.name, results.records.left_out
        ));
    }
    write(&results, &outputs)
}

/// Measures and predicts each layout. A prediction cannot be interrupted, so on a signal the
/// watcher writes the rows so far.
fn lay_out(
    args: &LayoutArgs,
    page: usize,
    records: Arc<Records>,
    outputs: &Documents,
) -> Result<Results, Failure> {
    let results = Results {
        sampled: 0,
        distinct: 0,
        sample: args.sample,
        records: Arc::clone(&records),
        page,
        rows: Vec::new(),
        complete: false,
    };
    let so_far = Arc::new(Mutex::new(results));
    let (told, to) = (Arc::clone(&so_far), outputs.clone());
    interrupt::at_end(move || {
        let results = told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(failure) = write(&results, &to) {
            output::warn(&failure.message);
        }
        let all = LayoutChoice::all().count();
        format!("{} of {all} layouts were laid out", results.rows.len())
    });
    let lock = || so_far.lock().unwrap_or_else(PoisonError::into_inner);
    let sample = KeySample::draw(&records.puts, page, args.sample, args.seed)?;
    lock().sampled = sample.sampled_records();
    lock().distinct = sample.records();
    let mut progress = Progress::new();
    let all = LayoutChoice::all().count() * records.puts.len();
    for (number, layout) in LayoutChoice::all().enumerate() {
        let before = number * records.puts.len();
        let counts = count(&records, page, layout, &mut |done| {
            progress.tell("measuring layouts", (before + done) as u64, all as u64);
        })?;
        let row = Row {
            layout,
            counts,
            predicted: sample.forecast(layout),
        };
        lock().rows.push(row);
    }
    interrupt::finished();
    let mut results = lock();
    Ok(Results {
        complete: true,
        records,
        rows: std::mem::take(&mut results.rows),
        ..*results
    })
}

/// Builds the tree and measures it.
fn count(
    records: &Records,
    page: usize,
    layout: LayoutChoice,
    progress: &mut dyn FnMut(usize),
) -> Result<Counts, Failure> {
    let mut tree = PageTree::new(layout, page);
    for (done, (key, len)) in records.puts.iter().enumerate() {
        if done & 0xffff == 0xffff {
            progress(done);
        }
        let value = (ZEROS.get(..*len as usize)).ok_or_else(|| too_large(records, key))?;
        (tree.put(key, value)).map_err(|_| too_large(records, key))?;
    }
    Ok(tree.counts())
}

fn outputs(args: &LayoutArgs) -> Result<Documents, Failure> {
    let inputs = [args.keys.as_deref(), args.trace.as_deref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let files = [&args.json, &args.html, &args.svg].map(Option::as_deref);
    Documents::new(files, &inputs)
}

fn write(results: &Results, outputs: &Documents) -> Result<(), Failure> {
    if let Some(html) = &outputs.html {
        html.write(report::page(results).as_bytes())?;
    }
    if let Some(svg) = &outputs.svg {
        svg.write((html::layouts_svg(&report::pictured(results)) + "\n").as_bytes())?;
    }
    if let Some(json) = &outputs.json {
        json.write(&output::json(&report::document(results))?)?;
    }
    if outputs.json != Some(Output::Stdout) {
        output::say(report::text(results).as_bytes())?;
    }
    Ok(())
}

fn too_large(records: &Records, key: &[u8]) -> Failure {
    Failure::usage(format!(
        "{}: a record does not fit into such a page; found a key of {} bytes",
        records.name,
        key.len()
    ))
}

fn records(args: &LayoutArgs) -> Result<Records, Failure> {
    let order = match args.order {
        LayoutOrder::Random => Order::Random,
        LayoutOrder::Sorted => Order::Sorted,
    };
    let count = u32::try_from(args.records)
        .map_err(|_| Failure::usage("--records: expected at most 4294967295"))?;
    let numbers = |name: &str, numbers: Vec<u32>| Records {
        name: name.into(),
        puts: (numbers.into_iter())
            .map(|number| (number.to_be_bytes().to_vec(), args.value_size))
            .collect(),
        left_out: 0,
    };
    match (&args.keys, &args.trace) {
        (None, Some(trace)) => of_trace(trace, args.records),
        (Some(keys), None) => match keys.to_str() {
            Some("dense") => {
                let set = keys::dense(count, args.density, order, args.seed);
                Ok(numbers("dense", set))
            }
            Some("sparse") => Ok(numbers("sparse", keys::sparse(count, order, args.seed))),
            _ => of_file(keys, order, args),
        },
        _ => Err(Failure::usage(
            "expected one of KEYFILE, dense, sparse or --trace TRACE",
        )),
    }
}

/// Reads one key per line; duplicates are dropped.
fn of_file(path: &Path, order: Order, args: &LayoutArgs) -> Result<Records, Failure> {
    let name = path.display().to_string();
    let mut text = Vec::new();
    let mut input = treering_traces::input::open(path)?;
    (input.read_to_end(&mut text)).map_err(|e| Failure::file(&name, &e))?;
    if let Some(cut) = input.cut() {
        output::warn(&format!("{name}: {cut}"));
    }
    let mut lines = keys::lines(&text, args.seed);
    lines.truncate(usize::try_from(args.records).unwrap_or(usize::MAX));
    if order == Order::Sorted {
        lines.sort_unstable();
    }
    let put = |line: &[u8]| (line.to_vec(), args.value_size);
    Ok(Records {
        name,
        puts: lines.into_iter().map(put).collect(),
        left_out: 0,
    })
}

/// Reads the puts of a trace, in their order.
fn of_trace(path: &Path, most: u64) -> Result<Records, Failure> {
    let mut reader = treering_traces::open(path)?;
    let (mut op, mut puts, mut left_out) = (Op::default(), Vec::new(), 0);
    while (puts.len() as u64) < most && reader.next_op(&mut op)? {
        match op.kind {
            OpKind::Put => puts.push((op.key.clone(), op.value_len)),
            OpKind::Delete => left_out += 1,
            OpKind::Get | OpKind::Scan => {}
        }
    }
    Ok(Records {
        name: path.display().to_string(),
        puts,
        left_out,
    })
}
