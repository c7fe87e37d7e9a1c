//! Counts the instructions, cache misses and branches of an operation under callgrind, so that the
//! result does not depend on the state of the machine.
//!
//! Two processes do the same work, one with n operations and one with those and n more. The
//! difference, divided by n, is the cost of an operation, so nothing has to be switched on and off
//! within a run. The simulated caches have the sizes of the paper's processor (first level 32 KiB;
//! second level 1 MiB, as callgrind's last level).

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Failure;
use super::keys::KeySet;
use super::run::Plan;
use super::subject::Entry;
use super::work::{Batch, Kind, Records};

/// Caches of the paper's machine: size, ways, line.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64"];

/// The cost of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Instructions.
    pub instructions: f64,
    /// Reads and writes of data that miss the first level.
    pub d1_misses: f64,
    /// Reads and writes of data that miss the second level too.
    pub ll_misses: f64,
    /// Conditional branches.
    pub branches: f64,
    /// Conditional branches that callgrind's predictor model mispredicts.
    pub mispredicted: f64,
}

/// Loads all records into a subject and does the first `count` of `of` operations. This is what
/// callgrind runs.
///
/// # Errors
/// A wrong answer, or a key set that is too small.
pub fn once(
    set: &KeySet,
    entry: &Entry,
    kind: Kind,
    count: usize,
    of: usize,
    plan: Plan,
) -> Result<(), Failure> {
    let records = Records::new(set);
    let mut subject = entry.make();
    let batch = if kind == Kind::Inserts {
        let first = records.len().checked_sub(of).filter(|first| *first > 0);
        let first = first.ok_or_else(|| {
            Failure(format!(
                "{}: expected more than {of} records, found {}",
                set.name,
                records.len()
            ))
        })?;
        subject.load(&records, first);
        Batch::inserts(set, first..records.len())
    } else {
        subject.load(&records, records.len());
        records.batch(kind, of, plan.zipf, plan.seed)?
    };
    subject.run(&batch, count.min(batch.len()))
}

/// Counts the cost of an operation with two runs of this program. `arguments` make it do [`once`];
/// `--count N` is added. `out` is the file for callgrind's output.
///
/// # Errors
/// Valgrind is missing, or a run fails.
pub fn by_callgrind(arguments: &[String], operations: usize, out: &Path) -> Result<Cost, Failure> {
    let some = totals(arguments, operations, out)?;
    let twice = totals(arguments, 2 * operations, out)?;
    let more = |event: &str| {
        let total = |totals: &[(String, f64)]| {
            let found = totals.iter().find(|(name, _)| name == event);
            found
                .map(|(_, count)| *count)
                .ok_or_else(|| Failure(format!("callgrind's file: expected a total of {event}")))
        };
        Ok((total(&twice)? - total(&some)?) / operations as f64)
    };
    Ok(Cost {
        instructions: more("Ir")?,
        d1_misses: more("D1mr")? + more("D1mw")?,
        ll_misses: more("DLmr")? + more("DLmw")?,
        branches: more("Bc")?,
        mispredicted: more("Bcm")?,
    })
}

fn totals(arguments: &[String], count: usize, out: &Path) -> Result<Vec<(String, f64)>, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure(format!("this program: {e}")))?;
    let ran = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--cache-sim=yes",
            "--branch-sim=yes",
            "-q",
        ])
        .args(CACHES)
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(arguments)
        .args(["--count", &count.to_string()])
        .stdin(Stdio::null())
        .output();
    let output = match ran {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(Failure(
                "counting needs valgrind, which is not installed \
                 (Debian: apt-get install valgrind)"
                    .into(),
            ));
        }
        Err(e) => return Err(Failure(format!("valgrind: {e}"))),
        Ok(output) => output,
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("nothing said");
        return Err(Failure(format!("valgrind: {}: {last}", output.status)));
    }
    let file = std::fs::read_to_string(out);
    let file = file.map_err(|e| Failure(format!("{}: {e}", out.display())))?;
    parse(&file).ok_or_else(|| {
        Failure(format!(
            "{}: expected a line of events and one of totals",
            out.display()
        ))
    })
}

/// Returns the totals in callgrind's file, by event.
fn parse(file: &str) -> Option<Vec<(String, f64)>> {
    let line = |name: &str| file.lines().find_map(|line| line.strip_prefix(name));
    let events = line("events:")?.split_whitespace();
    let totals = line("totals:")?.split_whitespace();
    events
        .zip(totals)
        .map(|(event, total)| Some((event.to_owned(), total.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_event() {
        let file = "version: 1\nevents: Ir Dr D1mr\nfn=(1) main\n1 5 2 1\ntotals: 500 20 7\n";
        let totals = parse(file).expect("it has both lines");
        assert_eq!(totals[0], ("Ir".to_owned(), 500.0));
        assert_eq!(totals[2], ("D1mr".to_owned(), 7.0));
        assert_eq!(parse("events: Ir\n"), None);
        assert_eq!(parse("events: Ir\ntotals: many\n"), None);
    }
}
