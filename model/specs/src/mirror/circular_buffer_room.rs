//! The sizes of a state of `CircularBuffer` for the bounded models, small and flat. A configuration
//! that needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

/// A set of clients, or of offsets.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 3;
pub(crate) const PAGES: usize = 3;
pub(crate) const UNITS: usize = 6;
pub(crate) const CLASSES: usize = 3;

/// No page, no record, no offset, no client: `None` of the spec. All numbers fit in three bits.
pub(crate) const NONE: u8 = 7;
/// The result of a read that has not happened yet.
pub(crate) const PENDING: u8 = 6;
/// The value of a record that does not exist. Smaller numbers are those of `Values`.
pub(crate) const ABSENT: u8 = 5;
