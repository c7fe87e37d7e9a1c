//! Reproduces the evaluation of B⁻-tree on the compressing drive; see `sim/BMINUS.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example bminus_figures
//! cargo run --release -p treering-sim --example bminus_figures -- --figure beta
//! cargo run --release -p treering-sim --example bminus_figures -- --out DIR
//! ```
//!
//! The first command makes all figures in some minutes and rewrites `docs/` and the page. The
//! second makes only one. The third writes pictures and `tables.md` to another folder.
//!
//! The data set is a 1,000th of the paper's, with the same share of it in the cache. All results
//! are counts, so they are the same on every machine.

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
