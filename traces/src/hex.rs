//! Hexadecimal encoding and decoding.

/// Returns the value of a hexadecimal digit.
#[inline]
pub(crate) fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Decodes pairs of digits and appends the bytes. Returns `None` if `hex` is not pairs of digits;
/// `out` then holds a part of the result.
pub(crate) fn decode(hex: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (pairs, rest) = hex.as_chunks::<2>();
    for &[high, low] in pairs {
        out.push(nibble(high)? << 4 | nibble(low)?);
    }
    rest.is_empty().then_some(())
}

/// Appends two lower-case digits for each byte.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}
