//! Operations of one round, made before the clock starts, with the answers that they must get.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::Failure;
use super::keys::{KeySet, Keys, value_of};

/// What a round consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// New records, in random order.
    Inserts,
    /// Present keys.
    Lookups,
    /// Records from a present key on.
    Scans,
}

impl Kind {
    /// In the order in which they are done.
    pub const ALL: [Kind; 3] = [Kind::Inserts, Kind::Lookups, Kind::Scans];

    /// As in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Inserts => "inserts",
            Kind::Lookups => "lookups",
            Kind::Scans => "scans",
        }
    }
}

/// Most records of a scan (§4 "Experimental Setup"); the fewest are one.
pub const SCAN_RECORDS: u32 = 50;

/// Operations.
#[derive(Debug)]
pub struct Batch {
    /// All of this kind.
    pub kind: Kind,
    /// One key an operation.
    pub keys: Keys,
    /// Values to insert, or how many records a scan wants.
    pub numbers: Vec<u64>,
    /// Sum of all values that are to be found.
    pub sum: u64,
    /// How many.
    pub found: u64,
}

impl Batch {
    /// The records from one place on, to be inserted.
    #[must_use]
    pub fn inserts(set: &KeySet, records: std::ops::Range<usize>) -> Batch {
        let mut batch = Batch::none(Kind::Inserts, set);
        for at in records {
            batch.keys.push(set.keys.get(at).bytes());
            batch.numbers.push(value_of(at));
        }
        batch
    }

    fn none(kind: Kind, set: &KeySet) -> Batch {
        Batch {
            kind,
            keys: Keys::none(set.keys.are_numbers()),
            numbers: Vec::new(),
            sum: 0,
            found: 0,
        }
    }

    /// Number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// A key set and the order of its keys.
#[derive(Debug)]
pub struct Records<'a> {
    /// The records themselves.
    pub set: &'a KeySet,
    /// Places of records in the order of their keys.
    pub sorted: Vec<u32>,
}

impl<'a> Records<'a> {
    /// Sorts them.
    #[must_use]
    pub fn new(set: &'a KeySet) -> Records<'a> {
        let mut sorted: Vec<u32> = (0..set.keys.len() as u32).collect();
        sorted.sort_unstable_by_key(|at| set.keys.get(*at as usize).bytes());
        Records { set, sorted }
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Operations on keys chosen by a Zipf distribution, all records being present.
    ///
    /// # Errors
    /// An exponent that is none.
    pub fn batch(&self, kind: Kind, count: usize, zipf: f64, seed: u64) -> Result<Batch, Failure> {
        let mut random = SmallRng::seed_from_u64(seed);
        let ranks = Zipf::new(self.len() as f64, zipf)
            .map_err(|e| Failure(format!("--zipf: expected an exponent from 0 on: {e}")))?;
        let mut batch = Batch::none(kind, self.set);
        for _ in 0..count {
            let at = (ranks.sample(&mut random) as usize).clamp(1, self.len()) - 1;
            let key = self.set.keys.get(at).bytes();
            batch.keys.push(key);
            if kind == Kind::Scans {
                let most = random.random_range(1..=SCAN_RECORDS);
                batch.numbers.push(most.into());
                let keys = &self.set.keys;
                let rank = self
                    .sorted
                    .partition_point(|at| keys.get(*at as usize).bytes() < key);
                for at in self.sorted[rank..].iter().take(most as usize) {
                    batch.sum = batch.sum.wrapping_add(value_of(*at as usize));
                    batch.found += 1;
                }
            } else {
                batch.sum = batch.sum.wrapping_add(value_of(at));
                batch.found += 1;
            }
        }
        Ok(batch)
    }
}
