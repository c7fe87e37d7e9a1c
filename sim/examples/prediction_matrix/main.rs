//! Compares predicted with measured write amplification over a matrix of traces, designs, caches
//! and drives: the table of `docs/PREDICTION.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example prediction_matrix
//! cargo run --release -p treering-sim --example prediction_matrix -- quick
//! cargo run --release -p treering-sim --example prediction_matrix -- points=all rows=rows.tsv
//! cargo run --release -p treering-sim --example prediction_matrix -- curves only=latest,bf
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | `points=N`, `points=all` | how many points of each trace and design; default 1 |
//! | `quick` | a small part, on small traces, drained; exit status 1 if a bound is missed |
//! | `drain` | runs end with a checkpoint that leaves no change in memory, if the tree has pages |
//! | `curves` | 12 cache sizes of some designs, instead of points |
//! | `prefix` | the prediction for the first half of a trace beside the second half of a run |
//! | `half=build`, `half=held` | one half of the pairs of trace and design; both by default |
//! | `only=WORD,WORD` | cells whose name contains all words |
//! | `effort=fast` | played on samples; default `full` |
//! | `model=independent` | the closed forms |
//! | `records=N` | records of generated traces; four times as many operations; default 60,000 |
//! | `seed=N` | seed of traces and choices |
//! | `rows=FILE` | every compared value, as tab-separated lines |
//!
//! On a small trace, the last checkpoint decides a tenth of what a run writes, and whether it comes
//! before the end or after it is chance. So the small part is drained.
//!
//! A *point* is a cache size, a state of the drive and an over-provisioning; the seed chooses among
//! them.
//!
//! Real traces are read from the folder that `TREERING_TRACES` names. Without it they are left out,
//! and a line says so.
//!
//! A component counts if it is at least 3 % of its total. The table has, for each group, the median,
//! the 90th percentile and the largest of |measured / predicted − 1|, the share of values within
//! their error bars, and the median width of the bars.

mod choice;
mod designs;
mod inputs;
mod score;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use choice::Choice;
use designs::Cell;
use inputs::Input;
use score::{Row, Table};

fn main() -> ExitCode {
    let choice = match Choice::read(std::env::args().skip(1)) {
        Ok(choice) => choice,
        Err(why) => {
            eprintln!("prediction_matrix: {why}");
            return ExitCode::from(2);
        }
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inputs = inputs::all(&choice, folder.path());
    let cells = designs::cells(&choice, &inputs);
    eprintln!("{} traces, {} cells", inputs.len(), cells.len());
    let rows = measured(&choice, &inputs, &cells);
    if let Some(file) = &choice.rows {
        std::fs::write(file, score::lines(&rows)).expect("the rows can be written");
    }
    let table = Table::new(&rows);
    print!("{table}");
    match choice.quick && !table.holds() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Runs the cells on all processors. The rows are in the order of the cells.
fn measured(choice: &Choice, inputs: &[Input], cells: &[Cell]) -> Vec<Row> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(i) else { return };
                    let found = score::run(choice, &inputs[cell.input], cell);
                    let said = score::sentence(&found);
                    eprintln!("{}/{} {}: {said}", i + 1, cells.len(), cell.name);
                    rows.lock().expect("no worker panics").push((i, found));
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no worker panics");
    rows.sort_by_key(|(i, _)| *i);
    rows.into_iter().flat_map(|(_, found)| found).collect()
}
