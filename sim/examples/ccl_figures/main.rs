//! Measures what the evaluation of CCL-BTree shows, on simulated persistent memory, and draws it;
//! `sim/CCL.md` explains it.
//!
//! ```sh
//! cargo run --release -p treering-sim --example ccl_figures                      # all, some minutes; rewrites docs/ and the page
//! cargo run --release -p treering-sim --example ccl_figures -- --figure table1   # one of them
//! cargo run --release -p treering-sim --example ccl_figures -- --out DIR         # elsewhere: pictures, and tables.md
//! ```
//!
//! The data are a tenth of the paper's. Counts and virtual time: the same on every machine.

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
