//! The interface between a format and the code that reads inputs.

use super::emit::{Emit, Fault};

/// The longest tail of a binary record, in bytes.
pub(super) const MAX_TAIL: usize = u16::MAX as usize;

/// The reader of a format.
pub(super) enum Plugin {
    Text(Box<dyn TextFormat>),
    Binary(Box<dyn BinaryFormat>),
    /// With the specification of its columns, if there is one.
    #[cfg(feature = "parquet")]
    Parquet(Option<String>),
}

/// A format whose unit is a line.
pub(super) trait TextFormat {
    /// Takes one line that is not blank. If it returns a [`Fault`], it has emitted nothing.
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault>;

    /// Called if the whole input yielded no operation. `true` asks for the input to be read once
    /// more, because the format has found out how to read it.
    fn read_again(&mut self) -> bool {
        false
    }
}

/// A format whose unit is a binary record. A record has a part of fixed length and, in some
/// formats, a tail whose length that part gives. A header may precede the first record.
pub(super) trait BinaryFormat {
    /// Bytes before the first record.
    fn header_len(&self) -> usize {
        0
    }

    /// Takes the header, all [`Self::header_len`] bytes of it.
    fn header(&mut self, _header: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns the length of every record's fixed part. `start` is the first bytes after the
    /// header.
    fn record_len(&mut self, start: &[u8]) -> Result<usize, Fault>;

    /// Returns the length of the tail after a record's fixed part, at most [`MAX_TAIL`].
    fn tail_len(&self, _record: &[u8]) -> usize {
        0
    }

    /// Takes one record, without its tail. If it returns a [`Fault`], it has emitted nothing.
    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault>;

    /// A warning that depends on the options and on the number of records only.
    fn warning(&self, _records: u64) -> Option<String> {
        None
    }

    /// Like [`TextFormat::read_again`].
    fn read_again(&mut self) -> bool {
        false
    }
}
