//! Simulates which slots of a leaf a batch fills, in which cache lines they are, and whether the
//! XPLine is full before its header is stored.
//!
//! ```text
//! line 0   header, slots 0 1       a batch: the lowest free slots ─▶ fence ─▶ header
//! line 1   slots 2 .. 5            if slots in all four lines are filled, an XPBuffer that writes
//! line 2   slots 6 .. 9            full XPLines at once writes it at the fence; then the header
//! line 3   slots 10 .. 13          dirties it again, so it is written twice
//! ```
//!
//! The rules are those of the engine (CCL-BTree §4.2): an update also goes to a free slot, and the
//! slot that it frees is available to the next batch. So a leaf whose keys are inserted has its
//! free slots at the end, and one whose keys are updated has them anywhere.

use crate::ssd::gc::SplitMix;

/// Slots of a leaf (CCL-BTree §4.1).
pub(super) const SLOTS: usize = 14;
/// Bytes of a leaf before its slots.
const HEADER: usize = 32;
/// Bytes of a slot.
const SLOT: usize = 16;
/// All lines of a leaf.
const ALL: u8 = 0xf;

/// The lines (one bit each) that contain these slots.
fn lines(slots: u16) -> u8 {
    (0..SLOTS)
        .filter(|slot| slots >> slot & 1 == 1)
        .fold(0, |lines, slot| lines | 1 << ((HEADER + SLOT * slot) / 64))
}

/// Sums over batches or splits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Touched {
    /// Number of batches or splits.
    count: f64,
    /// Lines stored, including headers.
    lines: f64,
    /// How often an XPLine was full before its header and so was written twice.
    twice: f64,
}

impl Touched {
    /// Mean number per batch or split; `otherwise` if there were none.
    fn mean(&self, of: f64, otherwise: f64) -> f64 {
        if self.count > 0.0 {
            of / self.count
        } else {
            otherwise
        }
    }

    /// Lines stored, and XPLines written twice, per batch or split.
    pub(super) fn each(&self, otherwise: (f64, f64)) -> (f64, f64) {
        let (lines, twice) = otherwise;
        (self.mean(self.lines, lines), self.mean(self.twice, twice))
    }

    /// Adds one batch or split.
    pub(super) fn add(&mut self, stores: &Stores) {
        self.count += 1.0;
        self.lines += f64::from(stores.lines);
        self.twice += f64::from(stores.full);
    }
}

/// Consecutive stores to one leaf.
#[derive(Default)]
pub(super) struct Stores {
    dirty: u8,
    lines: u32,
    full: u32,
}

impl Stores {
    fn store(&mut self, lines: u8) {
        self.lines += lines.count_ones();
        self.dirty |= lines;
    }

    /// Stores the slots filled, and then the header.
    fn commit(&mut self, filled: u16) {
        self.store(lines(filled));
        if self.dirty == ALL {
            self.full += 1;
            self.dirty = 0;
        }
        self.store(1);
        // The XPLine becomes full with its header and is written; the next store dirties it anew.
        if self.dirty == ALL {
            self.dirty = 0;
        }
    }
}

/// Keys and their slots, in no particular order.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Vec<(u32, u8)>);

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Draws `n` random keys.
    pub(super) fn draw(&self, n: usize, random: &mut SplitMix) -> Vec<u32> {
        let mut keys: Vec<u32> = self.0.iter().map(|(key, _)| *key).collect();
        let n = n.min(keys.len());
        for i in 0..n {
            let other = i + random.below((keys.len() - i) as u64) as usize;
            keys.swap(i, other);
        }
        keys.truncate(n);
        keys
    }

    fn used(&self) -> u16 {
        self.0.iter().fold(0, |used, (_, slot)| used | 1 << slot)
    }

    /// Fills free slots while there are any. Returns the slots filled and the rest of the batch.
    fn apply<'a>(&mut self, batch: &'a [u32]) -> (u16, &'a [u32]) {
        let taken = self.used();
        let mut filled = 0u16;
        for (i, key) in batch.iter().enumerate() {
            let Some(slot) = (0..SLOTS).find(|slot| (taken | filled) >> slot & 1 == 0) else {
                return (filled, &batch[i..]);
            };
            filled |= 1 << slot;
            self.0.retain(|(other, _)| other != key);
            self.0.push((*key, slot as u8));
        }
        (filled, &[])
    }

    /// Flushes a batch that fits.
    pub(super) fn flush(&mut self, batch: &[u32]) -> Stores {
        let mut stores = Stores::default();
        let (filled, _) = self.apply(batch);
        stores.commit(filled);
        stores
    }

    /// Flushes a batch that does not fit. The upper half moves to a new leaf, which is returned
    /// with its smallest key.
    pub(super) fn split(&mut self, batch: &[u32]) -> (u32, Slots, Stores) {
        let (filled, rest) = self.apply(batch);
        self.0.sort_unstable();
        let upper = self.0.split_off(self.0.len() / 2);
        let fence = upper[0].0;
        let (below, above): (Vec<u32>, Vec<u32>) = rest.iter().partition(|key| **key < fence);
        let mut new = Slots((0..).zip(upper).map(|(at, (key, _))| (key, at)).collect());
        new.apply(&above);
        let mut stores = Stores::default();
        stores.commit(filled & self.used());
        if !below.is_empty() {
            let (filled, _) = self.apply(&below);
            stores.commit(filled);
        }
        // The new leaf is stored whole.
        stores.lines += ALL.count_ones();
        (fence, new, stores)
    }
}

/// Lines that updates touch in leaves with a given number of records, in the long run; simulated.
#[derive(Clone, Debug)]
pub(super) struct Turnover {
    /// By number of records in the leaf.
    flush: [Touched; SLOTS + 1],
    split: [Touched; SLOTS + 1],
}

/// Simulated batches for each number of records.
const BATCHES: u32 = 2000;

impl Turnover {
    /// Simulates batches of this many updates.
    pub(super) fn of(batch: usize) -> Turnover {
        let mut all = Turnover {
            flush: Default::default(),
            split: Default::default(),
        };
        for records in batch..=SLOTS {
            let mut random = SplitMix(records as u64);
            let mut leaf = Slots((0..records as u8).map(|at| (at.into(), at)).collect());
            for _ in 0..BATCHES {
                let updates = leaf.draw(batch, &mut random);
                if records + batch <= SLOTS {
                    all.flush[records].add(&leaf.flush(&updates));
                    continue;
                }
                let mut leaf = Slots(leaf.0.clone());
                scatter(&mut leaf, &mut random);
                let (_, _, stores) = leaf.split(&updates);
                all.split[records].add(&stores);
            }
        }
        all
    }

    /// Lines stored by a flush to a leaf with this many records, and XPLines written twice because
    /// of it.
    pub(super) fn flush(&self, records: usize) -> (f64, f64) {
        let at = self.flush[records.min(SLOTS)];
        // Leaves with fewer records than a batch cannot be updated like this; fuller ones are
        // split.
        at.each((2.0, 0.0))
    }

    /// Lines stored by a split of such a leaf, and XPLines written twice because of it.
    pub(super) fn split(&self, records: usize) -> (f64, f64) {
        self.split[records.min(SLOTS)].each((2.0 + f64::from(ALL.count_ones()), 0.0))
    }
}

/// Puts the records of a leaf into random slots.
fn scatter(leaf: &mut Slots, random: &mut SplitMix) {
    let mut free: Vec<u8> = (0..SLOTS as u8).collect();
    for (_, slot) in &mut leaf.0 {
        let at = random.below(free.len() as u64) as usize;
        *slot = free.swap_remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(slots: &[u8]) -> Slots {
        Slots((0..).zip(slots.iter().copied()).collect())
    }

    #[test]
    fn lines_are_as_in_the_figure() {
        let of = |slots: &[usize]| lines(slots.iter().fold(0, |all, slot| all | 1 << slot));
        assert_eq!(of(&[0]), 1);
        assert_eq!(of(&[1, 2]), 0b11);
        assert_eq!(of(&[5, 6]), 0b110);
        assert_eq!(of(&[9, 10, 13]), 0b1100);
    }

    #[test]
    fn an_xpline_that_is_full_before_its_header_is_written_twice() {
        // Free: one slot in each line.
        let mut scattered = leaf(&[1, 3, 4, 5, 7, 8, 9, 11, 12, 13]);
        let stores = scattered.flush(&[0, 1, 2, 3]);
        assert_eq!((stores.lines, stores.full), (5, 1));
        // Free: those at the end.
        let mut filled = leaf(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let stores = filled.flush(&[100, 101, 102, 103]);
        assert_eq!((stores.lines, stores.full), (2, 0));
    }

    #[test]
    fn what_an_update_frees_is_free_for_the_next_batch_only() {
        let mut leaf = leaf(&[0, 1]);
        leaf.flush(&[0, 1]);
        assert_eq!(leaf.used(), 0b1100);
        leaf.flush(&[0]);
        assert_eq!(leaf.used(), 0b1001);
    }

    #[test]
    fn a_split_parts_what_was_there_and_what_came() {
        let mut lower = leaf(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        // One fits, and two go where they belong.
        let (fence, upper, stores) = lower.split(&[20, 1, 21]);
        assert_eq!(fence, 7);
        assert_eq!((lower.len(), upper.len()), (7, 8));
        assert!(upper.0.iter().any(|(key, _)| *key == 21));
        // The slot filled went with the upper half: a header; one line and a header; the new leaf.
        assert_eq!(stores.lines, 1 + 2 + 4);
    }

    #[test]
    fn two_changes_never_fill_four_lines_and_six_often_do() {
        assert_eq!(Turnover::of(2).flush(8).1, 0.0);
        let (lines, twice) = Turnover::of(6).flush(8);
        assert!((3.5..=5.0).contains(&lines), "{lines}");
        assert!((0.05..0.9).contains(&twice), "{twice}");
    }
}
