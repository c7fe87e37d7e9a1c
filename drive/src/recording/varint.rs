//! Numbers of few bytes: LEB128, seven bits a byte, the lowest first.

/// A payload does not follow the format: what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a difference of two numbers, so that small ones of either sign are short.
pub(super) fn put_delta(out: &mut Vec<u8>, from: u64, to: u64) {
    let delta = to.wrapping_sub(from) as i64;
    put(out, ((delta << 1) ^ (delta >> 63)) as u64);
}

/// Appends bytes behind their number.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what the functions above wrote. Never reads behind its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Begins to read at `at`.
    pub(super) fn at(data: &'a [u8], at: usize) -> Self {
        Cursor { data, at }
    }

    /// The place of the next byte.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// The number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.data.len() - self.at
    }

    /// Reads one byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.data.get(self.at).ok_or(Malformed("another byte"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a number.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        self.long_number(u64::from(first & 0x7F))
    }

    fn long_number(&mut self, mut value: u64) -> Result<u64, Malformed> {
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte holds only bit 63.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number of at most 64 bits"))
    }

    /// Reads a number of at most 32 bits.
    #[inline]
    pub(super) fn number32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number of at most 32 bits"))
    }

    /// Reads the second number of a difference.
    #[inline]
    pub(super) fn delta(&mut self, from: u64) -> Result<u64, Malformed> {
        let coded = self.number()?;
        let delta = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(from.wrapping_add(delta as u64))
    }

    /// Reads a count of things of at least one byte each.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(Malformed("a count that fits into the chunk")),
        }
    }

    /// Reads bytes and their number.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count()?;
        let bytes = &self.data[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// Reads text.
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, from: u64) {
            let mut out = Vec::new();
            put(&mut out, value);
            put_delta(&mut out, from, value);
            let mut cursor = Cursor::at(&out, 0);
            prop_assert_eq!(cursor.number(), Ok(value));
            prop_assert_eq!(cursor.delta(from), Ok(value));
            prop_assert_eq!(cursor.left(), 0);
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let mut bytes = [0xFF; 10];
        for last in [2, 0x7F, 0xFF] {
            bytes[9] = last;
            assert!(Cursor::at(&bytes, 0).number().is_err());
        }
        bytes[9] = 1;
        assert_eq!(Cursor::at(&bytes, 0).number(), Ok(u64::MAX));
    }
}
