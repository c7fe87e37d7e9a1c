//! Figure 15: the share of lookups in a leaf that promote the record, for a workload that changes.

use treering_engine::BfOptions;
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};
use treering_traces::generate::{GenParams, Workload, build};
use treering_traces::{Op, OpKind, OpSource, TraceError};

use crate::cell::{Cell, Mix, bf, per_op};
use crate::each;
use crate::page::{Sheet, Table};

const RATES: [u8; 6] = [1, 5, 10, 20, 30, 100];

/// Fewer records than in other figures, because at 1 % it takes long to refill the ring.
const RECORDS: u64 = 100_000;

const BEFORE: u64 = 5_000_000;

/// Ends of the measured parts, in operations after the change.
fn marks() -> Vec<u64> {
    let mut marks = vec![25_000u64];
    while let Some(last) = marks.last()
        && *last < 5_000_000
    {
        marks.push(last * 7 / 5);
    }
    marks
}

/// The results of one promotion rate: page I/Os per operation before the change, and in each part
/// after it.
struct Found {
    before: f64,
    after: Vec<f64>,
}

const MIXES: [(&str, Mix); 2] = [("reads only", Mix::Reads), ("half updates", Mix::Half)];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut runs = Vec::new();
    for (_, mix) in MIXES {
        // The slowest first.
        runs.extend(RATES.map(|rate| (rate, mix)));
    }
    let found = each(&runs, |(rate, mix)| measure(*rate, *mix))?;
    for ((name, _), row) in MIXES.iter().zip(found.chunks(RATES.len())) {
        let name = name.replace(' ', "-");
        sheet.table(&format!("promotion-{name}"), table(row));
        let curves = RATES.iter().zip(row).map(|(rate, found)| Curve {
            name: format!("{rate} %"),
            points: (marks().iter().zip(&found.after))
                .map(|(mark, ios)| (*mark as f64, *ios))
                .collect(),
        });
        let lines = Lines {
            x: "operations since the change",
            y: "page I/Os an operation",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        };
        sheet.picture(&format!("bf-promotion-{name}"), &lines);
    }
    Ok(())
}

/// Spans of the means in the table: about one, ten and fifty operations per record.
const SPANS: [u64; 3] = [100_000, 1_000_000, 5_000_000];

fn table(row: &[Found]) -> Table {
    let mut table = Table::new(&[
        "promotion",
        "before the change",
        "mean of the first 0.1 M",
        "of 1 M",
        "of 5 M",
        "at the end",
    ]);
    for (rate, found) in RATES.iter().zip(row) {
        let mut cells = vec![format!("{rate} %"), per_op(found.before)];
        cells.extend(SPANS.map(|span| per_op(found.mean_until(span))));
        cells.push(per_op(*found.after.last().expect("parts")));
        table.row(&cells);
    }
    table
}

impl Found {
    /// Mean over all parts that end within the span.
    fn mean_until(&self, span: u64) -> f64 {
        let (mut sum, mut from) = (0.0, 0);
        for (mark, ios) in marks().into_iter().zip(&self.after) {
            if mark > span * 6 / 5 {
                break;
            }
            sum += ios * (mark - from) as f64;
            from = mark;
        }
        sum / from as f64
    }
}

fn measure(rate: u8, mix: Mix) -> Result<Found, ReplayError> {
    let tree = bf(BfOptions::PUBLISHED.copy_on_access_percent, rate);
    let cell = Cell {
        records: RECORDS,
        ..Cell::new(tree, mix)
    };
    let (mut rig, mut source) = cell.rig()?;
    rig.run(&mut *source, RECORDS)?;
    rig.run(&mut *source, BEFORE)?;
    let before = rig.run(&mut *source, 400_000)?.page_ios();
    // Ranks by age are other ranks of the same records, with the same distribution.
    let params = GenParams {
        no_load: true,
        writes: Some(0.0),
        ..cell.params(Workload::Latest)
    };
    let (_, source) = build(&params)?;
    let mut source = Changed {
        gets: source,
        updates: mix == Mix::Half,
        number: 0,
    };
    let mut after = Vec::new();
    let mut done = 0;
    for mark in marks() {
        after.push(rig.run(&mut source, mark - done)?.page_ios());
        done = mark;
    }
    Ok(Found { before, after })
}

/// Gets; if there are to be updates, every other one becomes an update. The generator of this
/// distribution can only insert.
struct Changed {
    gets: Box<dyn OpSource + Send>,
    updates: bool,
    number: u64,
}

impl OpSource for Changed {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let more = self.gets.next_op(op)?;
        self.number += 1;
        if self.updates && self.number.is_multiple_of(2) {
            op.kind = OpKind::Put;
            op.value_len = 16;
        }
        Ok(more)
    }
}
