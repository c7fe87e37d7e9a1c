//! `treering layout`: which page layout suits these keys?

use std::path::Path;

use serde_json::{Value, json};
use treering_engine::node::{ENVELOPE_BYTES, LayoutChoice, PageLayout};
use treering_sim::layouts::keys::{self, Order};
use treering_sim::layouts::{Counts, PageTree};
use treering_sim::predict::leaf::LeafLevel;
use treering_sim::predict::{Span, Workload};
use treering_traces::{Op, OpKind, OpSource, TraceError};

use crate::args::{LayoutArgs, LayoutOrder};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::Progress;

/// Most bytes of a value that is made up.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Records in the order in which they are put: keys, and lengths of values.
struct Records {
    name: String,
    puts: Vec<(Vec<u8>, u32)>,
    /// Operations of a trace that are neither put nor read.
    left_out: u64,
}

/// One layout's line.
struct Row {
    layout: LayoutChoice,
    counts: Counts,
    predicted: Option<f64>,
}

/// Puts the records into a tree of each layout and counts.
pub(crate) fn run(args: &LayoutArgs) -> Result<(), Failure> {
    let json = match &args.json {
        Some(path) => Some(Output::new("--json", path)?),
        None => None,
    };
    let page = usize::try_from(args.page).unwrap_or(usize::MAX);
    // Behind the envelope the largest page would be too large.
    if !(4096..=32 << 10).contains(&page) || !page.is_power_of_two() {
        return Err(Failure::usage(
            "--page: expected a power of two from 4KiB to 32KiB",
        ));
    }
    let records = records(args)?;
    if records.puts.is_empty() {
        return Err(Failure::not_reached(format!(
            "{}: no record to lay out",
            records.name
        )));
    }
    let mut progress = Progress::new();
    let total = (LayoutChoice::all().count() * records.puts.len()) as u64;
    let mut rows = Vec::new();
    for (at, layout) in LayoutChoice::all().enumerate() {
        let mut done = (at * records.puts.len()) as u64;
        let mut tree = PageTree::new(layout, page);
        for (key, len) in &records.puts {
            done += 1;
            if done & 0xffff == 0 {
                progress.tell("laying out", done, total);
            }
            let value = (ZEROS.get(..*len as usize)).ok_or_else(|| too_large(&records, key))?;
            (tree.put(key, value)).map_err(|_| too_large(&records, key))?;
        }
        rows.push(Row {
            layout,
            counts: tree.counts(),
            predicted: predict(&records, page, layout)?,
        });
    }
    drop(progress);
    if records.left_out > 0 {
        let line = format!(
            "warning: {}: {} deletes left out; every key keeps its room\n",
            records.name, records.left_out
        );
        eprint!("{line}");
    }
    if let Some(json) = &json {
        json.write(&output::json(&document(&records, page, &rows))?)?;
    }
    if json != Some(Output::Stdout) {
        output::say(table(&records, &rows).as_bytes())?;
    }
    Ok(())
}

fn too_large(records: &Records, key: &[u8]) -> Failure {
    Failure::usage(format!(
        "{}: expected keys and records within the limits of such pages, found one with a key of {} bytes",
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

/// One key a line, each once.
fn of_file(path: &Path, order: Order, args: &LayoutArgs) -> Result<Records, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|e| Failure::file(&name, &e))?;
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

/// What a trace puts, in its order.
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

/// Puts for the predictor.
struct Puts<'a>(std::slice::Iter<'a, (Vec<u8>, u32)>);

impl OpSource for Puts<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let Some((key, len)) = self.0.next() else {
            return Ok(false);
        };
        op.kind = OpKind::Put;
        op.key.clone_from(key);
        op.value_len = *len;
        Ok(true)
    }
}

/// Bytes per record without making a page; which leaves become dense is not predicted.
fn predict(records: &Records, page: usize, layout: LayoutChoice) -> Result<Option<f64>, Failure> {
    if layout.may_be_dense() {
        return Ok(None);
    }
    let workload = Workload::analyze(&mut Puts(records.puts.iter()), Span::after(0))?;
    let level = LeafLevel::grow(&workload, page + ENVELOPE_BYTES, layout.general());
    Ok(Some(level.count() * page as f64 / workload.records()))
}

fn document(records: &Records, page: usize, rows: &[Row]) -> Value {
    let layouts: Vec<_> = rows.iter().map(row).collect();
    json!({
        "schema": "treering.layout/1",
        "complete": true,
        "keys": records.name,
        "records": records.puts.len(),
        "page": page,
        "deletes_left_out": records.left_out,
        "layouts": layouts,
    })
}

fn row(row: &Row) -> Value {
    let counts = &row.counts;
    let kinds = counts.kinds.iter().map(|(name, kind)| {
        let kind = json!({ "leaves": kind.leaves, "records": kind.records });
        ((*name).to_string(), kind)
    });
    json!({
        "layout": row.layout.name(),
        "leaves": counts.leaves,
        "inner_nodes": counts.inner,
        "records_per_leaf": counts.records_per_leaf(),
        "bytes_per_record": counts.bytes_per_record(),
        "bytes_per_record_with_inner": counts.bytes_per_record_with_inner(),
        "prefix_bytes_mean": counts.prefix_bytes_mean(),
        "distinct_heads": counts.distinct_heads(),
        "predicted_bytes_per_record": row.predicted,
        "kinds": kinds.collect::<serde_json::Map<_, _>>(),
    })
}

fn table(records: &Records, rows: &[Row]) -> String {
    use std::fmt::Write;
    let mut text = format!("{}: {} records\n\n", records.name, records.puts.len());
    let _ = writeln!(
        text,
        "{:<12} {:>8} {:>9} {:>8} {:>10} {:>10} {:>7} {:>7} {:>7}",
        "layout",
        "leaves",
        "rec/leaf",
        "B/record",
        "with inner",
        "predicted",
        "prefix",
        "heads",
        "dense"
    );
    for Row {
        layout,
        counts,
        predicted,
    } in rows
    {
        let predicted = predicted.map_or("-".into(), |bytes| format!("{bytes:.2}"));
        let dense: f64 = PageLayout::DENSE
            .map(|layout| counts.share_of(layout))
            .iter()
            .sum();
        let _ = writeln!(
            text,
            "{:<12} {:>8} {:>9.1} {:>8.2} {:>10.2} {:>10} {:>7.2} {:>6.1}% {:>6.1}%",
            layout.name(),
            counts.leaves,
            counts.records_per_leaf(),
            counts.bytes_per_record(),
            counts.bytes_per_record_with_inner(),
            predicted,
            counts.prefix_bytes_mean(),
            100.0 * counts.distinct_heads(),
            100.0 * dense,
        );
    }
    let best = rows.iter().min_by(|a, b| {
        (a.counts.bytes_per_record_with_inner()).total_cmp(&b.counts.bytes_per_record_with_inner())
    });
    if let Some(best) = best {
        let _ = writeln!(
            text,
            "\nprefix: bytes left out of keys, on average over leaves. heads: neighbours in a leaf whose heads differ. \
             dense: leaves that are.\nLeast space: {}.",
            best.layout.name()
        );
    }
    text
}
