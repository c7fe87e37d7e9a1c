//! Sums over all keys, which every prediction asks for.

use super::keys::{Keys, NEVER};

/// Sums over the keys of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Keys that were ever put, and the bytes of these keys and their last values.
    pub(super) put: u64,
    pub(super) put_bytes: u64,
    /// Records at the end, and their bytes.
    pub(super) live: u64,
    pub(super) live_bytes: u64,
    /// Lengths of the longest key and of the longest value.
    pub(super) key_max: usize,
    pub(super) value_max: usize,
}

impl Sums {
    pub(super) fn of(keys: &Keys) -> Sums {
        let mut sums = Sums::default();
        for key in keys.iter() {
            let bytes = u64::from(key.key_len) + u64::from(key.value_len);
            if key.first_put != NEVER {
                sums.put += 1;
                sums.put_bytes += bytes;
            }
            if key.is_live() {
                sums.live += 1;
                sums.live_bytes += bytes;
            }
            sums.key_max = sums.key_max.max(usize::from(key.key_len));
            sums.value_max = sums.value_max.max(key.value_len as usize);
        }
        sums
    }
}
