//! Which mini-pages a checkpoint logs again: those with the fewest changes.

/// Sizes are told apart by so many bytes.
const STEP: u64 = 16;

/// The lightest of all mini-pages, up to a sum.
///
/// A checkpoint has so many bytes of log for records that it logs again, and merges the rest. A
/// merge writes a page, however many changes it is for, so it is best spent on mini-pages with
/// many; and with the same bytes of log, most page writes are saved where there are few.
///
/// ```
/// use treering_engine::Lightest;
///
/// let mut lightest = Lightest::new(1000);
/// // Ten of each.
/// for _ in 0..10 {
///     lightest.add(4);
///     lightest.add(40);
///     lightest.add(400);
/// }
/// // All of the first two sizes have room, and one of the third.
/// let mut chosen = lightest.choose();
/// assert!(chosen.takes(400) && !chosen.takes(400));
/// assert!(chosen.takes(40) && chosen.takes(4));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lightest {
    most: u64,
    /// Bytes of changes of all mini-pages with so many of them, in units of `STEP`.
    sums: Vec<u64>,
}

/// Which mini-pages are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// All that are lighter than this, in units of `STEP`.
    below: u64,
    /// Of those with just so many, as many as have these bytes.
    rest: u64,
}

/// In the log, a short record takes a little more than in a mini-page.
fn logged(bytes: u64) -> u64 {
    bytes + bytes / 16
}

impl Lightest {
    /// Nothing was weighed; records of `most` bytes of log may be chosen.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Lightest {
            most,
            sums: Vec::new(),
        }
    }

    /// Weighs a mini-page with so many bytes of changes.
    pub fn add(&mut self, bytes: u64) {
        let at = (bytes / STEP) as usize;
        if self.sums.len() <= at {
            self.sums.resize(at + 1, 0);
        }
        self.sums[at] += logged(bytes);
    }

    /// Chooses. O(sizes).
    #[must_use]
    pub fn choose(&self) -> Chosen {
        let mut rest = self.most;
        for (at, sum) in (0..).zip(&self.sums) {
            if *sum > rest {
                return Chosen { below: at, rest };
            }
            rest -= sum;
        }
        Chosen {
            below: u64::MAX,
            rest,
        }
    }
}

impl Chosen {
    /// Whether a mini-page with so many bytes of changes is one of them.
    pub fn takes(&mut self, bytes: u64) -> bool {
        let at = bytes / STEP;
        let has_room = at == self.below && logged(bytes) <= self.rest;
        if has_room {
            self.rest -= logged(bytes);
        }
        at < self.below || has_room
    }
}
