//! What a request of a block trace becomes: records, which are shorter than the blocks they stand for.

use std::fmt;

/// Bytes of a block, the unit into which requests are split.
pub(crate) const BLOCK: u64 = 4096;

/// Bytes of the key that an importer makes of a block's number.
pub(crate) const KEY_BYTES: u64 = 8;

/// What the blocks of a block trace are replayed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Blocks {
    /// Bytes of a block on the traced drive. A request is an operation for each block it touches.
    pub block_bytes: u64,
    /// Bytes of the record, key and value, that stands for a block, in the mean.
    pub record_bytes: u64,
}

impl Blocks {
    /// Blocks whose values have `value_bytes` bytes.
    #[must_use]
    pub fn with_values_of(value_bytes: u64) -> Blocks {
        Blocks::as_records_of(KEY_BYTES.saturating_add(value_bytes))
    }

    /// Blocks whose records, keys included, have `record_bytes` bytes.
    #[must_use]
    pub fn as_records_of(record_bytes: u64) -> Blocks {
        Blocks {
            block_bytes: BLOCK,
            record_bytes,
        }
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocks {
            block_bytes,
            record_bytes,
        } = self;
        let value = record_bytes.saturating_sub(KEY_BYTES);
        write!(
            f,
            "a block of {block_bytes} bytes is a record of {record_bytes} \
             (key {KEY_BYTES}, value {value}: import --value-size)"
        )
    }
}
