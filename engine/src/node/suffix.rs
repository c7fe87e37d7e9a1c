//! The part of a key behind its page's prefix: bytes of the page, or a number that the page does
//! not store.

use std::fmt;
use std::ops::Deref;

/// The part of a key behind the prefix that all keys of its page share. Dereferences to its bytes.
#[derive(Clone, Copy)]
pub struct Suffix<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    Stored(&'a [u8]),
    /// The last bytes of a big-endian number, from `from` on.
    Number {
        bytes: [u8; 4],
        from: u8,
    },
}

impl<'a> Suffix<'a> {
    #[inline]
    pub(super) fn stored(bytes: &'a [u8]) -> Suffix<'a> {
        Suffix(Repr::Stored(bytes))
    }

    /// The last `len` bytes (at most four) of a number.
    #[inline]
    pub(super) fn number(number: u32, len: usize) -> Suffix<'a> {
        Suffix(Repr::Number {
            bytes: number.to_be_bytes(),
            from: 4 - len.min(4) as u8,
        })
    }
}

impl Deref for Suffix<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Stored(bytes) => bytes,
            Repr::Number { bytes, from } => &bytes[usize::from(*from).min(4)..],
        }
    }
}

impl AsRef<[u8]> for Suffix<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Suffix<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Suffix<'_> {}

impl fmt::Debug for Suffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
