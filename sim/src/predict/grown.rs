//! The results of growing a tree from a trace: its leaves, and the splits on the way.

use treering_engine::node::PageLayout;

/// Number of keys looked up at a time, and of keys partitioned at a time. They take 4 MiB.
pub(super) const AT_A_TIME: usize = 1 << 20;

/// One leaf at the end of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaf {
    /// The layout of its records.
    pub layout: PageLayout,
    /// Records in it.
    pub records: u32,
    /// Bytes in use, including header and fences.
    pub used_bytes: u32,
    /// Length of the lower fence.
    pub fence_len: u32,
    /// Measured read visits of the leaf: gets, and scans that touch it. A run of gets of
    /// consecutive keys is one visit.
    pub reads: f64,
    /// Number of these visits that scans cause.
    pub scans: f64,
    /// Measured write visits.
    pub writes: f64,
    /// Measured gets, puts and deletes that belong to a run and so cause no visit: the previous
    /// operation has already accessed the leaf.
    pub in_runs: f64,
    /// Warm-up puts of new keys since the last split of the leaf's range: how fresh the leaf is
    /// when the measured part begins.
    pub loaded: u32,
    /// Time (operation number in ticks) of the latest insertion into it.
    pub last_insert: u32,
}

/// A split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Operation number at which it happened, in ticks.
    pub time: u32,
    /// Rank of the first key that moved to the new page, or would have if it existed then.
    pub from: u32,
    /// Records that moved.
    pub moved: u32,
    /// Bytes of the moved records: lengths as varints, keys, values. The common prefix of all keys
    /// counts once.
    pub moved_bytes: u32,
    /// Length of the separator.
    pub separator_len: u32,
}

/// Partitions the keys stably into those below `boundary` and the others; returns the number below.
pub(crate) fn part<T: Copy + Default + PartialOrd>(
    keys: &mut [T],
    boundary: T,
    scratch: &mut Vec<T>,
) -> usize {
    part_by(keys, boundary, scratch, AT_A_TIME)
}

/// As [`part`], but partitions lists longer than `at_a_time` in halves and then swaps their inner
/// parts.
fn part_by<T: Copy + Default + PartialOrd>(
    keys: &mut [T],
    boundary: T,
    scratch: &mut Vec<T>,
    at_a_time: usize,
) -> usize {
    if keys.len() > at_a_time {
        let middle = keys.len() / 2;
        let (left, right) = keys.split_at_mut(middle);
        let left_below = part_by(left, boundary, scratch, at_a_time);
        let right_below = part_by(right, boundary, scratch, at_a_time);
        keys[left_below..middle + right_below].rotate_left(middle - left_below);
        return left_below + right_below;
    }
    scratch.resize(keys.len().max(scratch.len()), T::default());
    let (mut below, mut above) = (0, 0);
    for i in 0..keys.len() {
        let rank = keys[i];
        // Writes both and avoids a branch, because the side of a key is unpredictable.
        keys[below] = rank;
        scratch[above] = rank;
        let is_below = usize::from(rank < boundary);
        below += is_below;
        above += 1 - is_below;
    }
    keys[below..].copy_from_slice(&scratch[..above]);
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_parted_in_pieces_is_as_if_parted_at_once() {
        let mut state = 1u64;
        for len in [0, 1, 7, 64, 1000] {
            let mut random = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 40) as u32 % 100
            };
            let keys: Vec<u32> = (0..len).map(|_| random()).collect();
            for boundary in [0, 30, 100] {
                let (low, high): (Vec<u32>, Vec<u32>) = keys.iter().partition(|k| **k < boundary);
                let mut parted = keys.clone();
                let mut scratch = Vec::new();
                let below = part_by(&mut parted, boundary, &mut scratch, 8);
                assert_eq!(below, low.len());
                assert_eq!(parted, [low, high].concat(), "{len} keys at {boundary}");
                assert!(scratch.len() <= 8, "scratch of {}", scratch.len());
            }
        }
    }
}
