//! The operations of a round, prepared before the clock starts, with the right answers.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::Failure;
use super::keys::{KeySet, Keys, value_of};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Inserts of new records, in random order.
    Inserts,
    /// Lookups of present keys.
    Lookups,
    /// Scans from a present key.
    Scans,
}

impl Kind {
    /// All kinds, in the order in which they run.
    pub const ALL: [Kind; 3] = [Kind::Inserts, Kind::Lookups, Kind::Scans];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Inserts => "inserts",
            Kind::Lookups => "lookups",
            Kind::Scans => "scans",
        }
    }
}

/// The longest scan in records (§4 "Experimental Setup"). The shortest is one record.
pub const SCAN_RECORDS: u32 = 50;

/// A batch of operations.
#[derive(Debug)]
pub struct Batch {
    /// Their kind.
    pub kind: Kind,
    /// A key for each operation.
    pub keys: Keys,
    /// The values to insert, or the lengths of scans.
    pub numbers: Vec<u64>,
    /// The sum of all values that the operations must find.
    pub sum: u64,
    /// The number of values that they must find.
    pub found: u64,
}

impl Batch {
    /// Returns inserts of the records from one place on.
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

    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// A key set and the sorted order of its keys.
#[derive(Debug)]
pub struct Records<'a> {
    /// The key set.
    pub set: &'a KeySet,
    /// The places of records in key order.
    pub sorted: Vec<u32>,
}

impl<'a> Records<'a> {
    /// Sorts the keys.
    #[must_use]
    pub fn new(set: &'a KeySet) -> Records<'a> {
        let mut sorted: Vec<u32> = (0..set.keys.len() as u32).collect();
        sorted.sort_unstable_by_key(|at| set.keys.get(*at as usize).bytes());
        Records { set, sorted }
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns operations on keys drawn from a Zipf distribution, with all records present.
    ///
    /// # Errors
    /// The exponent is negative or not a number.
    pub fn batch(&self, kind: Kind, count: usize, zipf: f64, seed: u64) -> Result<Batch, Failure> {
        let mut random = SmallRng::seed_from_u64(seed);
        let ranks = Zipf::new(self.len() as f64, zipf)
            .map_err(|e| Failure(format!("--zipf: expected an exponent of 0 or more: {e}")))?;
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
