//! Reproduces Bf-Tree's figures by comparing `btree` with `bf` on the simulated SSD; see
//! `sim/FIGURES.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example bf_figures
//! cargo run --release -p treering-sim --example bf_figures -- --figure copy-on-access
//! cargo run --release -p treering-sim --example bf_figures -- --out /tmp/figures
//! ```
//!
//! The first command makes all figures in a few minutes and rewrites `docs/` and the page. The
//! second makes only one. The third writes pictures and `tables.md` to another folder.
//!
//! The data set is a 400th of the paper's, with the same share of it in the cache (31 %). All
//! results are counts, so they are the same on every machine.

mod cache_size;
mod cell;
mod copy_on_access;
mod overall;
mod page;
mod promotion;
mod ring_model;
mod run;
mod skew;

use std::process::ExitCode;

use run::{Figure, each};

const FIGURES: [(&str, Figure); 5] = [
    ("overall", overall::figure),
    ("skew", skew::figure),
    ("cache-size", cache_size::figure),
    ("copy-on-access", copy_on_access::figure),
    ("promotion", promotion::figure),
];

fn main() -> ExitCode {
    run::main(&FIGURES, "sim/FIGURES.md")
}
