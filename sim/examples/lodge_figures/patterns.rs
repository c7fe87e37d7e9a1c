//! Patterns of writes: which keys, in which order.

use treering_sim::replay::ReplayError;
use treering_traces::OpKind;

use crate::trace::Trace;

/// Orders of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// New keys, uniformly distributed.
    Uniform,
    /// New keys, four of five in a fifth of the key space.
    Skewed,
    /// New keys, ascending.
    Sequential,
    /// First new keys; in the second half, uniform updates of them.
    Updates,
    /// First new keys; in the second half, four of five updates go to a fifth of them.
    HotUpdates,
    /// First new keys; in the second half, 95 of 100 updates go to a thousandth of them.
    FewUpdates,
    /// First new keys, uniformly distributed; in the second half, new keys in a hundredth of the
    /// key space.
    Burst,
}

/// Scrambles a number.
fn scrambled(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Pattern {
    pub(crate) const INSERTS: [Pattern; 3] =
        [Pattern::Uniform, Pattern::Skewed, Pattern::Sequential];
    pub(crate) const ALL: [Pattern; 4] = [
        Pattern::Uniform,
        Pattern::Skewed,
        Pattern::Sequential,
        Pattern::HotUpdates,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pattern::Uniform => "uniform inserts",
            Pattern::Skewed => "80 % of inserts in 20 %",
            Pattern::Sequential => "sequential inserts",
            Pattern::Updates => "uniform updates",
            Pattern::FewUpdates => "95 % of updates to 0.1 %",
            Pattern::HotUpdates => "80 % of updates to 20 %",
            Pattern::Burst => "a burst of inserts in 1 %",
        }
    }

    /// The `i`-th key.
    pub(crate) fn key(self, i: u64) -> [u8; 8] {
        let half = super::KEYS / 2;
        let word = match self {
            Pattern::Uniform => scrambled(i),
            // The hot fifth of the key space is the second one.
            Pattern::Skewed if !i.is_multiple_of(5) => u64::MAX / 5 + scrambled(i) / 5,
            Pattern::Skewed => scrambled(i),
            Pattern::Sequential => i << 32,
            Pattern::Updates | Pattern::HotUpdates | Pattern::FewUpdates | Pattern::Burst
                if i < half =>
            {
                scrambled(i)
            }
            Pattern::Burst => u64::MAX / 2 + scrambled(i) / 100,
            Pattern::Updates => scrambled(scrambled(i) % half),
            Pattern::FewUpdates if !i.is_multiple_of(20) => scrambled(scrambled(i) % (half / 1000)),
            Pattern::FewUpdates => scrambled(scrambled(i) % half),
            Pattern::HotUpdates => {
                let hot = !i.is_multiple_of(5);
                scrambled(scrambled(i) % if hot { half / 5 } else { half })
            }
        };
        word.to_be_bytes()
    }

    /// A trace of `ops` puts, of which the first half is warm-up.
    pub(crate) fn trace(self, ops: u64) -> Result<Trace, ReplayError> {
        let puts = (0..ops).map(|i| (OpKind::Put, self.key(i)));
        Trace::of(self.name(), (ops, ops / 2), puts)
    }
}
