//! The common part of examples that fill a page of figures: arguments, workers, the page.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use treering_sim::replay::ReplayError;

use crate::page::Sheet;

/// Measures something and adds pictures and tables to the sheet.
pub(crate) type Figure = fn(&mut Sheet) -> Result<(), ReplayError>;

/// The command line.
struct Args {
    out: Option<PathBuf>,
    figure: Option<String>,
}

fn args(
    figures: &[(&str, Figure)],
    mut given: impl Iterator<Item = String>,
) -> Result<Args, String> {
    let mut args = Args {
        out: None,
        figure: None,
    };
    while let Some(flag) = given.next() {
        let value = given.next().ok_or(format!("{flag}: expected a value"))?;
        match flag.as_str() {
            "--out" => args.out = Some(value.into()),
            "--figure" if figures.iter().any(|(name, _)| *name == value) => {
                args.figure = Some(value);
            }
            "--figure" => {
                let names: Vec<_> = figures.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                return Err(format!("--figure: expected one of {names}, found {value}"));
            }
            _ => return Err(format!("{flag}: expected --out DIR or --figure NAME")),
        }
    }
    Ok(args)
}

/// Makes the requested figures. Without `--out`, their tables go into `page`, a path from the
/// project's root.
pub(crate) fn main(figures: &[(&str, Figure)], page: &str) -> ExitCode {
    let args = match args(figures, std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut sheet = Sheet::default();
    for (name, figure) in figures {
        if args.figure.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        eprintln!("{name}");
        if let Err(e) = figure(&mut sheet) {
            eprintln!("{name}: {e}");
            return ExitCode::FAILURE;
        }
    }
    for (name, table) in &sheet.tables {
        println!("{name}\n{table}");
    }
    match sheet.write(args.out.as_deref(), page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Calls `work` for each item on all processors; returns the results in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(
    of: &[T],
    work: impl Fn(&T) -> Result<R, ReplayError> + Sync,
) -> Result<Vec<R>, ReplayError> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    let next = Mutex::new(of.iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((i, item)) = next.lock().expect("no worker panics").next() else {
                        return;
                    };
                    let result = work(item);
                    done.lock().expect("no worker panics").push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
