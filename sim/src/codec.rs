//! Numbers and lists as bytes, for files that only this program reads: little-endian, without tags.
//!
//! Lengths come before what they count. A reader never allocates more than the input has.

use std::io::{self, Read, Write};

/// Writes values.
pub(crate) struct Encoder<'a>(pub(crate) &'a mut dyn Write);

/// Reads what an [`Encoder`] wrote, in the same order.
pub(crate) struct Decoder<'a>(pub(crate) &'a mut dyn Read);

/// The error for input that no encoder wrote.
pub(crate) fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Encoder<'_> {
    pub(crate) fn number(&mut self, n: u64) -> io::Result<()> {
        self.0.write_all(&n.to_le_bytes())
    }

    pub(crate) fn float(&mut self, x: f64) -> io::Result<()> {
        self.number(x.to_bits())
    }

    /// A number that may be missing, as a list of one or none.
    pub(crate) fn maybe(&mut self, n: Option<u64>) -> io::Result<()> {
        self.number(u64::from(n.is_some()))?;
        n.map_or(Ok(()), |n| self.number(n))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.0.write_all(bytes)
    }

    pub(crate) fn words(&mut self, words: &[u32]) -> io::Result<()> {
        self.number(words.len() as u64)?;
        for word in words {
            self.0.write_all(&word.to_le_bytes())?;
        }
        Ok(())
    }
}

impl Decoder<'_> {
    pub(crate) fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number that fits a smaller type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> io::Result<T> {
        T::try_from(self.number()?).map_err(|_| malformed("a number is too large"))
    }

    pub(crate) fn float(&mut self) -> io::Result<f64> {
        Ok(f64::from_bits(self.number()?))
    }

    pub(crate) fn flag(&mut self) -> io::Result<bool> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn maybe(&mut self) -> io::Result<Option<u64>> {
        match self.flag()? {
            true => Ok(Some(self.number()?)),
            false => Ok(None),
        }
    }

    pub(crate) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let len = self.number()?;
        self.exactly(len)
    }

    pub(crate) fn words(&mut self) -> io::Result<Vec<u32>> {
        let len = self.number()?;
        let len = len
            .checked_mul(4)
            .ok_or_else(|| malformed("a list is too long"))?;
        let bytes = self.exactly(len)?;
        let words = bytes.as_chunks::<4>().0.iter();
        Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn exactly(&mut self, len: u64) -> io::Result<Vec<u8>> {
        // Grows with what is found.
        let mut bytes = Vec::new();
        (&mut *self.0).take(len).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == len {
            true => {
                bytes.shrink_to_fit();
                Ok(bytes)
            }
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_an_early_end_is_an_error() {
        let mut bytes = Vec::new();
        let mut out = Encoder(&mut bytes);
        out.number(7).unwrap();
        out.float(-0.1).unwrap();
        out.maybe(None).unwrap();
        out.maybe(Some(3)).unwrap();
        out.bytes(b"key").unwrap();
        out.words(&[1, u32::MAX]).unwrap();
        let read = |mut input: &[u8]| -> io::Result<()> {
            let mut from = Decoder(&mut input);
            assert_eq!(from.small::<u8>()?, 7);
            assert_eq!(from.float()?, -0.1);
            assert_eq!((from.maybe()?, from.maybe()?), (None, Some(3)));
            assert_eq!(from.bytes()?, b"key");
            assert_eq!(from.words()?, [1, u32::MAX]);
            Ok(())
        };
        read(&bytes).expect("what was written");
        for end in 0..bytes.len() {
            let found = read(&bytes[..end]).expect_err("an early end");
            assert_eq!(found.kind(), io::ErrorKind::UnexpectedEof, "{end} bytes");
        }
    }

    #[test]
    fn a_length_beyond_the_input_allocates_nothing() {
        let mut bytes = Vec::new();
        Encoder(&mut bytes).number(u64::MAX / 8).unwrap();
        assert!(Decoder(&mut &bytes[..]).bytes().is_err());
        assert!(Decoder(&mut &bytes[..]).words().is_err());
    }
}
