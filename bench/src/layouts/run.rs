//! Runs the rounds and computes their rates.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::Failure;
use super::keys::KeySet;
use super::subject::{Entry, Subject, What};
use super::work::{Batch, Kind, Records};

/// Returns the bytes allocated now, if the program counts them.
pub static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of lookups, and of scans, in a round. A round of inserts is an equal part of the last
    /// tenth of the records.
    pub operations: usize,
    /// Rounds of each kind.
    pub rounds: usize,
    /// The Zipf exponent of the keys' popularity.
    pub zipf: f64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The result of a subject on a key set.
#[derive(Debug)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// The kind of subject.
    pub what: What,
    /// Operations per second in each round, by [`Kind::ALL`].
    pub rounds: [Vec<f64>; 3],
    /// Bytes on the heap with all records loaded.
    pub allocated: usize,
    /// What was wrong, if anything. Then no figure counts.
    pub void: Option<String>,
}

/// The results on a key set.
#[derive(Debug)]
pub struct Table {
    /// The key set's name.
    pub set: String,
    /// Number of records.
    pub records: usize,
    /// Bytes of all keys.
    pub key_bytes: usize,
    /// A row for each subject.
    pub rows: Vec<Row>,
}

/// Returns the median. For an even number, it is the mean of the two in the middle.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len => (sorted[(len - 1) / 2] + sorted[len / 2]) / 2.0,
    }
}

impl Row {
    /// Returns the operations per second.
    #[must_use]
    pub fn figures(&self, kind: Kind) -> &[f64] {
        &self.rounds[kind as usize]
    }

    /// Returns how many times faster it is than `other`: the median over rounds.
    #[must_use]
    pub fn ratio(&self, other: &Row, kind: Kind) -> f64 {
        let pairs = self.figures(kind).iter().zip(other.figures(kind));
        median(&pairs.map(|(mine, its)| mine / its).collect::<Vec<_>>())
    }
}

impl Table {
    /// Returns the row with this name, unless its answers were wrong.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        (self.rows.iter()).find(|row| row.name == name && row.void.is_none())
    }
}

struct Turn {
    subject: Box<dyn Subject>,
    row: Row,
}

impl Turn {
    fn take(&mut self, batch: &Batch) {
        let start = Instant::now();
        let ran = self.subject.run(batch, batch.len());
        let seconds = start.elapsed().as_secs_f64();
        self.row.rounds[batch.kind as usize].push(batch.len() as f64 / seconds);
        self.note(ran);
    }

    fn note(&mut self, outcome: Result<(), Failure>) {
        if let (Err(failure), None) = (outcome, &self.row.void) {
            self.row.void = Some(failure.0);
        }
    }
}

/// Compares the subjects. Progress messages go to `tell`.
///
/// # Errors
/// The key set is too small for this many rounds.
pub fn run(
    set: &KeySet,
    entries: &[Entry],
    plan: Plan,
    mut tell: impl FnMut(&str),
) -> Result<Table, Failure> {
    let records = Records::new(set);
    let first = records.len() - records.len() / 10;
    let step = (records.len() - first) / plan.rounds.max(1);
    if step == 0 {
        return Err(Failure(format!(
            "{}: expected ten records a round, found {}",
            set.name,
            records.len()
        )));
    }
    let mut turns = Vec::new();
    for entry in entries {
        tell(&format!("{}: loading {}", set.name, entry.name));
        let before = ALLOCATED.load(Ordering::Relaxed);
        let mut subject = entry.make();
        subject.load(&records, first);
        turns.push(Turn {
            row: Row {
                name: entry.name,
                what: entry.what,
                rounds: Default::default(),
                allocated: ALLOCATED.load(Ordering::Relaxed).wrapping_sub(before),
                void: None,
            },
            subject,
        });
    }
    for kind in Kind::ALL {
        for round in 0..plan.rounds {
            tell(&format!(
                "{}: {}, round {} of {}",
                set.name,
                kind.name(),
                round + 1,
                plan.rounds
            ));
            let batch = if kind == Kind::Inserts {
                let from = first + round * step;
                let last = round + 1 == plan.rounds;
                Batch::inserts(set, from..if last { records.len() } else { from + step })
            } else {
                let seed = plan.seed.wrapping_add(round as u64 * 2 + kind as u64);
                records.batch(kind, plan.operations, plan.zipf, seed)?
            };
            // The order changes, so that no subject always follows the same neighbour.
            let count = turns.len();
            for at in 0..count {
                let turn = &mut turns[(at + round) % count];
                let before = ALLOCATED.load(Ordering::Relaxed);
                turn.take(&batch);
                if kind == Kind::Inserts {
                    let more = ALLOCATED.load(Ordering::Relaxed).wrapping_sub(before);
                    turn.row.allocated = turn.row.allocated.wrapping_add(more);
                }
            }
        }
    }
    tell(&format!("{}: looking at all records", set.name));
    for turn in &mut turns {
        let verified = turn.subject.verify(&records);
        turn.note(verified);
    }
    Ok(Table {
        set: set.name.clone(),
        records: records.len(),
        key_bytes: set.keys.key_bytes(),
        rows: turns.into_iter().map(|turn| turn.row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::subjects;

    const PLAN: Plan = Plan {
        operations: 2_000,
        rounds: 3,
        zipf: 0.99,
        seed: 1,
    };

    #[test]
    fn every_subject_gives_the_right_answers_on_every_set() {
        for name in ["dense", "sparse", "urls", "titles"] {
            let set = KeySet::of(name, 300_000, 1).expect("it is made up");
            let entries = subjects::all(set.keys.are_numbers());
            let table = run(&set, &entries, PLAN, |_| {}).expect("it is large enough");
            assert_eq!(table.rows.len(), entries.len());
            for row in &table.rows {
                assert_eq!(row.void, None, "{name}, {}", row.name);
                assert!(row.rounds.iter().all(|rounds| rounds.len() == 3));
            }
        }
    }

    #[test]
    fn a_wrong_answer_voids_the_row() {
        struct Forgetful;
        impl Subject for Forgetful {
            fn run(&mut self, _: &Batch, _: usize) -> Result<(), Failure> {
                Ok(())
            }
            fn load(&mut self, _: &Records<'_>, _: usize) {}
            fn verify(&mut self, _: &Records<'_>) -> Result<(), Failure> {
                Err(Failure("expected 2 records, found 1".into()))
            }
        }
        let set = KeySet::of("dense", 12_000, 1).expect("it is made up");
        let mut lossy = std::collections::BTreeMap::<[u8; 4], u64>::new();
        let records = Records::new(&set);
        Subject::load(&mut lossy, &records, records.len() - 1);
        let missing = lossy.verify(&records).expect_err("one is missing");
        assert!(missing.0.contains("found 999"), "{missing}");
        let batch = records
            .batch(Kind::Lookups, 40_000, 0.0, 1)
            .expect("the exponent is one");
        assert!(lossy.run(&batch, batch.len()).is_err());
        let mut turn = Turn {
            subject: Box::new(Forgetful),
            row: Row {
                name: "forgetful",
                what: What::Map,
                rounds: Default::default(),
                allocated: 0,
                void: None,
            },
        };
        let verified = turn.subject.verify(&records);
        turn.note(verified);
        let table = Table {
            set: set.name.clone(),
            records: records.len(),
            key_bytes: set.keys.key_bytes(),
            rows: vec![turn.row],
        };
        assert!(table.row("forgetful").is_none());
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
