//! The sizes of a state of `CircularBuffer` for the recordings of a real engine, on a ring of a few
//! KiB.
//!
//! Addresses stay below two laps, so a byte still holds them. Hashing packs the fields into fewer
//! bits than they may take here. A judge needs no more than that, since equal states have equal
//! hashes.

/// A set of clients, or of offsets.
pub(crate) type Set = u32;

pub(crate) const CLIENTS: usize = 8;
pub(crate) const PAGES: usize = 16;
pub(crate) const UNITS: usize = 24;
pub(crate) const CLASSES: usize = 4;

pub(crate) const NONE: u8 = 255;
pub(crate) const PENDING: u8 = 254;
pub(crate) const ABSENT: u8 = 253;
