//! Measures what the evaluation of B⁻-tree shows, on the compressing drive, and draws it;
//! `sim/BMINUS.md` explains it.
//!
//! ```sh
//! cargo run --release -p treering-sim --example bminus_figures                    # all, some minutes; rewrites docs/ and the page
//! cargo run --release -p treering-sim --example bminus_figures -- --figure beta   # one of them
//! cargo run --release -p treering-sim --example bminus_figures -- --out DIR       # elsewhere: pictures, and tables.md
//! ```
//!
//! The data are a 1,000th of the paper's, the cache the same share of them. All counts: the same on
//! every machine.

mod beta;
mod cell;
mod matrix;
#[path = "../bf_figures/page.rs"]
mod page;
#[path = "../bf_figures/run.rs"]
mod run;
mod subsets;
mod threshold;

use std::process::ExitCode;

use run::Figure;

const FIGURES: [(&str, Figure); 4] = [
    ("beta", beta::figure),
    ("matrix", matrix::figure),
    ("threshold", threshold::figure),
    ("subsets", subsets::figure),
];

fn main() -> ExitCode {
    run::main(&FIGURES, "sim/BMINUS.md")
}
