//! Measures what Bf-Tree's figures show, `btree` against `bf` on the simulated SSD, and draws it;
//! `sim/FIGURES.md` explains it.
//!
//! ```sh
//! cargo run --release -p treering-sim --example bf_figures                             # all, a few minutes; rewrites docs/ and the page
//! cargo run --release -p treering-sim --example bf_figures -- --figure copy-on-access  # one of them
//! cargo run --release -p treering-sim --example bf_figures -- --out /tmp/figures       # elsewhere: pictures, and tables.md
//! ```
//!
//! The data are a 400th of the paper's, the cache the same share of them (31 %). All counts: the
//! same on every machine.

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
