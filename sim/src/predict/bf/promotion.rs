//! Which reads of leaves the model promotes: the rule is the engine's
//! ([`treering_engine::Promotion`]).

use treering_engine::{LeafReads, Promote, Promotion, PromotionTotals};

/// The promotion of one kind of reads.
#[derive(Default)]
struct Side {
    reads: u64,
    totals: PromotionTotals,
    promotion: Promotion,
}

/// Decides which reads of leaves are promoted.
pub(super) struct Promoter {
    promote: Promote,
    /// Reads of leaves after which a share that adapts is weighed again.
    window: u64,
    /// Number of leaf reads that could have promoted a record.
    chances: u64,
    sides: [Side; 2],
}

impl Promoter {
    /// `weight` is how many leaves one of the model stands for: it sees as many reads less.
    pub(super) fn new(promote: Promote, weight: f64) -> Promoter {
        Promoter {
            promote,
            window: (Promotion::WINDOW as f64 / weight).ceil() as u64,
            chances: 0,
            sides: Default::default(),
        }
    }

    /// A mini-page has answered a read with what the leaf has as well.
    pub(super) fn answered(&mut self, of: LeafReads) {
        self.sides[of as usize].totals.answered += 1;
    }

    /// Decides whether a read of a leaf is promoted, after so many merges, when the ring's tail has
    /// passed so many bytes.
    pub(super) fn wants(&mut self, of: LeafReads, merges: u64, passed: u64) -> bool {
        let side = &mut self.sides[of as usize];
        let percent = Promotion::fixed(self.promote, of);
        let percent = percent.unwrap_or_else(|| side.adapted(self.window, merges, passed));
        self.chances += 1;
        Promotion::falls_on(self.chances - 1, percent)
    }

    /// A read is promoted, which takes so many bytes of the ring. Returns those that count.
    pub(super) fn promotes(&mut self, of: LeafReads, bytes: impl FnOnce() -> u64) -> u64 {
        if self.promote != Promote::Adaptive {
            return 0;
        }
        let bytes = bytes();
        self.sides[of as usize].totals.promoted += bytes;
        bytes
    }
}

impl Side {
    /// The share in per cent, weighed when it is time.
    fn adapted(&mut self, window: u64, merges: u64, passed: u64) -> f64 {
        self.reads += 1;
        if self.reads.is_multiple_of(window) {
            (self.totals.merges, self.totals.passed) = (merges, passed);
            self.promotion.weigh(&self.totals);
        }
        self.promotion.percent()
    }
}
