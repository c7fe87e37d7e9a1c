//! How a block trace is replayed: each block becomes a record, which is shorter than the block.

use std::fmt;

/// Bytes of a block, the unit into which requests are split.
pub(crate) const BLOCK: u64 = 4096;

/// Bytes of a key that stands for a block number.
pub(crate) const KEY_BYTES: u64 = 8;

/// How the blocks of a block trace are replayed.
///
/// ```
/// use treering_traces::Blocks;
///
/// let blocks = Blocks::as_records_of(128);
/// let text = "a block of 4096 bytes is a record of 128 (key 8, value 120: import --value-size)";
/// assert_eq!(blocks.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Blocks {
    /// Bytes of a block on the traced drive. A request is one operation for each block that it
    /// touches.
    pub block_bytes: u64,
    /// Average bytes of the record (key and value) that stands for a block.
    pub record_bytes: u64,
}

impl Blocks {
    /// Describes blocks whose values have `value_bytes` bytes.
    #[must_use]
    pub(crate) fn with_values_of(value_bytes: u64) -> Blocks {
        Blocks::as_records_of(KEY_BYTES.saturating_add(value_bytes))
    }

    /// Describes blocks whose records, keys included, have `record_bytes` bytes.
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
