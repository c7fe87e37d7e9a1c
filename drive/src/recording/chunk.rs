//! The frame of a recording: a preamble, then chunks.
//!
//! ```text
//! preamble, 16 bytes: "TREEREC\n" | version u32 | CRC-32 of the 12 bytes before, u32
//!
//! chunk header, 32 bytes, numbers little-endian:
//!   0      1      2         4         8            12           20       24         28        32
//!   ┌──────┬──────┬─────────┬─────────┬────────────┬────────────┬────────┬──────────┬─────────┐
//!   │ kind │codec │ zero    │ raw_len │ stored_len │ first      │ count  │ CRC-32 of│ CRC-32 of│
//!   │      │      │         │         │            │            │        │ payload  │ bytes 0-27│
//!   └──────┴──────┴─────────┴─────────┴────────────┴────────────┴────────┴──────────┴─────────┘
//! ```
//!
//! `first` and `count` number what a chunk holds: events, or pieces of contents. They continue
//! those of the chunk before of the same kind, so that a lost chunk is noticed.

/// The bytes that a recording begins with.
pub(super) const MAGIC: [u8; 8] = *b"TREEREC\n";

/// Bytes of the preamble.
pub(super) const PREAMBLE: usize = 16;

/// Bytes of a chunk's header.
pub(super) const HEAD: usize = 32;

/// The most bytes of a payload, compressed or not. A chunk that claims more is refused before
/// anything is allocated for it.
pub(super) const MAX_PAYLOAD: u32 = 64 << 20;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The header of the recording.
    Header = 1,
    /// Pieces of contents.
    Data = 2,
    /// Events.
    Events = 3,
    /// The counts of a complete recording.
    End = 4,
}

impl Kind {
    /// How messages call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Header => "the header",
            Kind::Data => "a chunk of contents",
            Kind::Events => "a chunk of events",
            Kind::End => "the last chunk",
        }
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As it is.
    Raw = 0,
    /// A zstd frame.
    Zstd = 1,
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) codec: Codec,
    pub(super) raw_len: u32,
    pub(super) stored_len: u32,
    pub(super) first: u64,
    pub(super) count: u32,
    pub(super) payload_crc: u32,
}

/// Why 32 bytes are no header: what was expected, and what was found.
pub(super) type Unfit = (&'static str, String);

impl Head {
    /// The header's bytes.
    pub(super) fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[1] = self.codec as u8;
        bytes[4..8].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.first.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.count.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    pub(super) fn from_bytes(bytes: &[u8; HEAD]) -> Result<Head, Unfit> {
        let crc = crc32fast::hash(&bytes[..28]);
        let stored = u32_at(bytes, 28);
        if crc != stored {
            let found = format!("{stored:08x} over bytes that give {crc:08x}");
            return Err(("a chunk's header with its checksum", found));
        }
        let kind = match bytes[0] {
            1 => Kind::Header,
            2 => Kind::Data,
            3 => Kind::Events,
            4 => Kind::End,
            other => return Err(("a kind of chunk from 1 to 4", other.to_string())),
        };
        let codec = match bytes[1] {
            0 => Codec::Raw,
            1 => Codec::Zstd,
            other => return Err(("a codec, 0 or 1", other.to_string())),
        };
        let head = Head {
            kind,
            codec,
            raw_len: u32_at(bytes, 4),
            stored_len: u32_at(bytes, 8),
            first: u64::from(u32_at(bytes, 12)) | u64::from(u32_at(bytes, 16)) << 32,
            count: u32_at(bytes, 20),
            payload_crc: u32_at(bytes, 24),
        };
        if head.raw_len.max(head.stored_len) > MAX_PAYLOAD {
            let found = format!("{} (stored in {})", head.raw_len, head.stored_len);
            return Err(("a payload of at most 64 MiB", found));
        }
        if codec == Codec::Raw && head.raw_len != head.stored_len {
            let found = format!("{} in {}", head.raw_len, head.stored_len);
            return Err(("equal lengths of an uncompressed payload", found));
        }
        Ok(head)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The preamble of a version.
pub(super) fn preamble(version: u32) -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads a preamble's version.
pub(super) fn version_of(bytes: &[u8; PREAMBLE]) -> Result<u32, Unfit> {
    if bytes[..8] != MAGIC {
        let found = format!("\"{}\"", bytes[..8].escape_ascii());
        return Err(("a recording of `treering drive`", found));
    }
    if crc32fast::hash(&bytes[..12]) != u32_at(bytes, 12) {
        return Err(("a preamble with its checksum", "another checksum".into()));
    }
    Ok(u32_at(bytes, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_and_each_flipped_bit_is_found() {
        let head = Head {
            kind: Kind::Events,
            codec: Codec::Zstd,
            raw_len: 70_000,
            stored_len: 3000,
            first: 1 << 40 | 77,
            count: 5000,
            payload_crc: 0xDEAD_BEEF,
        };
        let bytes = head.to_bytes();
        assert_eq!(Head::from_bytes(&bytes), Ok(head));
        for bit in 0..HEAD * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::from_bytes(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        let head = Head {
            kind: Kind::Data,
            codec: Codec::Zstd,
            raw_len: u32::MAX,
            stored_len: 3000,
            first: 0,
            count: 5000,
            payload_crc: 0,
        };
        let (expected, found) = Head::from_bytes(&head.to_bytes()).expect_err("too large");
        assert_eq!(expected, "a payload of at most 64 MiB");
        assert_eq!(found, "4294967295 (stored in 3000)");
    }
}
