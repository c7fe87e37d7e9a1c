//! Counts the space that each page layout takes and compares it with B-Trees Are Back (§4.1-§4.6,
//! §5.2, raw data of its Figures 7, 9, 10, 12, 13 and 15); see `sim/LAYOUTS.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example layout_figures
//! cargo run --release -p treering-sim --example layout_figures -- density partitions
//! cargo run --release -p treering-sim --example layout_figures -- urls --keys FILE
//! cargo run --release -p treering-sim --example layout_figures -- sets --records 25M
//! cargo run --release -p treering-sim --example layout_figures -- --out DIR
//! ```
//!
//! Without arguments, all figures except those of strings are made in some minutes, and `docs/` and
//! the page are rewritten. Names select figures. `--keys` names a file of strings, one key per line
//! (plain, .gz, .xz or .zst). `--records 25M` are as many as in the paper. `--out` writes pictures
//! and `tables.md` to another folder.
//!
//! The same records and seed give the same tables on every machine.

mod cell;
mod density;
mod growth;
#[path = "../bf_figures/page.rs"]
mod page;
mod partitions;
mod prediction;
mod sets;
mod strings;

use std::path::PathBuf;
use std::process::ExitCode;

use cell::Set;
use page::Sheet;

/// The command line.
struct Args {
    parts: Vec<String>,
    /// Number of records in sets of numbers.
    records: u32,
    out: Option<PathBuf>,
    /// A set of strings.
    keys: Option<Set>,
}

type Part = fn(&Args, &mut Sheet);

const PARTS: [(&str, Part); 8] = [
    ("sets", |args, sheet| sets::tables(args.records, sheet)),
    ("growth", |args, sheet| growth::waves(args.records, sheet)),
    ("large", |_, sheet| growth::large(sheet)),
    ("density", |args, sheet| {
        density::figure(args.records, sheet)
    }),
    ("partitions", |args, sheet| {
        partitions::figure(args.records, sheet)
    }),
    ("sorted", |args, sheet| sets::sorted(args.records, sheet)),
    ("prediction", |args, sheet| {
        prediction::table(args.records, args.keys.as_ref(), sheet)
    }),
    ("urls", |args, sheet| {
        strings::figure(args.keys.as_ref(), sheet)
    }),
];

fn parse(mut given: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        parts: Vec::new(),
        records: 2_500_000,
        out: None,
        keys: None,
    };
    while let Some(flag) = given.next() {
        let mut value = || given.next().ok_or(format!("{flag}: expected a value"));
        match flag.as_str() {
            "--records" => {
                let text = value()?;
                let (digits, unit) = match text.strip_suffix('M') {
                    Some(digits) => (digits, 1_000_000),
                    None => (&text[..], 1),
                };
                let number = digits.parse::<u32>().ok();
                args.records = (number.and_then(|number| number.checked_mul(unit))).ok_or(
                    format!("--records {text}: expected a number, such as 2500000 or 25M"),
                )?;
            }
            "--keys" => args.keys = Some(Set::read(&value()?)?),
            "--out" => args.out = Some(value()?.into()),
            part if PARTS.iter().any(|(name, _)| *name == part) => args.parts.push(flag),
            _ => {
                let names = PARTS.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "{flag}: expected --records N, --keys FILE, --out DIR, {names}"
                ));
            }
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut sheet = Sheet::default();
    for (name, part) in PARTS {
        if args.parts.is_empty() || args.parts.iter().any(|wanted| wanted == name) {
            eprintln!("{name}");
            part(&args, &mut sheet);
        }
    }
    for (name, table) in &sheet.tables {
        println!("{name}\n{table}");
    }
    match sheet.write(args.out.as_deref(), "sim/LAYOUTS.md") {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
