//! Reproduces the evaluation of CCL-BTree on simulated persistent memory; see `sim/CCL.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example ccl_figures
//! cargo run --release -p treering-sim --example ccl_figures -- --figure table1
//! cargo run --release -p treering-sim --example ccl_figures -- --out DIR
//! ```
//!
//! The first command makes all figures in some minutes and rewrites `docs/` and the page. The
//! second makes only one. The third writes pictures and `tables.md` to another folder.
//!
//! The data set is a tenth of the paper's. Results are counts and virtual times, so they are the
//! same on every machine.

mod cell;
mod cleaning;
#[path = "../bf_figures/errors.rs"]
mod errors;
#[path = "../bf_figures/page.rs"]
mod page;
mod prediction;
#[path = "../bf_figures/run.rs"]
mod run;
mod skew;
mod table1;
mod techniques;
#[path = "../pm_figures/trace.rs"]
mod trace;

use std::process::ExitCode;

use run::Figure;

const FIGURES: [(&str, Figure); 5] = [
    ("table1", table1::figure),
    ("techniques", techniques::figure),
    ("skew", skew::figure),
    ("cleaning", cleaning::figure),
    ("prediction", prediction::figure),
];

fn main() -> ExitCode {
    run::main(&FIGURES, "sim/CCL.md")
}
