//! What a recording says of itself in its first chunk.

use serde::{Deserialize, Serialize};

use crate::face::{Face, PageCache};

/// Which writes are recorded with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contents {
    /// All of them.
    #[default]
    All,
    /// Those of small files that tell the causes of other writes: files whose names begin as
    /// [`WATCHED`] says.
    Watched,
    /// None.
    None,
}

/// The beginnings of the names of files that are recorded with [`Contents::Watched`]. A manifest
/// of RocksDB, LevelDB or Pebble names the level of every table.
pub const WATCHED: [&str; 1] = ["MANIFEST-"];

/// What was recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`Header::SCHEMA`].
    pub schema: String,
    /// [`Header::VERSION`].
    pub version: u32,
    /// The version of Treering that recorded it.
    pub treering: String,
    /// The face that the drive showed.
    pub face: Face,
    /// Size of the drive in blocks of 4 KiB.
    pub capacity_blocks: u64,
    /// What the kernel's page cache was allowed.
    pub page_cache: PageCache,
    /// Which writes have their bytes.
    pub contents: Contents,
    /// The program that ran, and its arguments; empty if the drive was only mounted.
    pub command: Vec<String>,
    /// When the recording began, in milliseconds since 1970; 0 if that is not told.
    #[serde(default)]
    pub began_unix_ms: u64,
}

impl Header {
    /// The name of the schema.
    pub const SCHEMA: &'static str = "treering.recording";

    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// Creates a header for a recording that begins now.
    #[must_use]
    pub fn new(face: Face, capacity_blocks: u64, page_cache: PageCache) -> Header {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Header {
            schema: Header::SCHEMA.into(),
            version: Header::VERSION,
            treering: env!("CARGO_PKG_VERSION").into(),
            face,
            capacity_blocks,
            page_cache,
            contents: Contents::All,
            command: Vec::new(),
            began_unix_ms: since.map_or(0, |since| since.as_millis() as u64),
        }
    }
}

/// What a recording holds, as its last chunk says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Events.
    pub events: u64,
    /// Those that are writes.
    pub writes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Pieces of writes whose bytes were recorded, each at most 4 KiB.
    pub pieces: u64,
    /// Those that are zeros, and take no room.
    pub zero_pieces: u64,
    /// Those that are equal to a recorded one, and take no room.
    pub equal_pieces: u64,
    /// The others: each is stored once.
    pub stored_pieces: u64,
    /// Bytes of the stored ones, before compression.
    pub stored_bytes: u64,
    /// Bytes of the recording, without its last chunk.
    pub file_bytes: u64,
}
