//! Values that name the write they come from.
//!
//! ```text
//! version, 8 bytes big-endian | filler, a function of version and offset
//! ```
//!
//! Every write of a run has its own version. A stale or foreign value therefore never equals the
//! right one, and a torn value equals none. A value shorter than eight bytes is the end of the
//! version.
//!
//! Versions are below 2^48. Half of them are stored with their upper bits set or all bits inverted,
//! so that the head of a value looks like a tagged pointer, a tombstone or an empty slot. An engine
//! that keeps flags in such words must not confuse the two.

/// Bytes of the version at the head of a value.
pub const VERSION_BYTES: usize = 8;

/// The bits of a version. The bits above are for the disguise.
const VERSION_BITS: u32 = 48;
/// All versions are below this one.
pub const VERSIONS: u64 = 1 << VERSION_BITS;

/// The number at the head of a value of `version`.
fn disguise(version: u64) -> u64 {
    debug_assert!(version < VERSIONS);
    let above = |bits: u64| version | bits << VERSION_BITS;
    match version % 8 {
        0..4 => version,
        4 => !version,
        5 => above(0x8000),
        6 => above(0x7fff),
        _ => above(0x0001),
    }
}

/// The version that is stored as this number, if there is one.
fn reveal(number: u64) -> u64 {
    match number >> VERSION_BITS {
        0xffff => !number,
        _ => number % VERSIONS,
    }
}

/// The value of write `version`, `len` bytes long. `version` is below [`VERSIONS`].
///
/// ```
/// use treering_oracle::value::{is_value_of, value, version};
///
/// let mut bytes = value(7, 100);
/// assert_eq!(version(&bytes), Some(7));
/// bytes[60..].copy_from_slice(&value(8, 100)[60..]); // a torn write
/// assert!(!is_value_of(7, &bytes) && !is_value_of(8, &bytes));
/// ```
#[must_use]
pub fn value(version: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    fill(&mut bytes, version, len);
    bytes
}

/// As [`value`], written to a buffer, which is cleared first.
pub fn fill(bytes: &mut Vec<u8>, version: u64, len: usize) {
    bytes.clear();
    if len < VERSION_BYTES {
        bytes.extend_from_slice(&version.to_be_bytes()[VERSION_BYTES - len..]);
        return;
    }
    bytes.extend_from_slice(&disguise(version).to_be_bytes());
    bytes.resize(len, 0);
    let (words, rest) = bytes[VERSION_BYTES..].as_chunks_mut();
    for (at, to) in words.iter_mut().enumerate() {
        *to = word(version, at);
    }
    rest.copy_from_slice(&word(version, words.len())[..rest.len()]);
}

/// The bytes that follow the version in its value, word by word. For version 0 they are all zeros,
/// like data that was never written.
fn word(version: u64, at: usize) -> [u8; 8] {
    let offset = at as u64 * version.min(1);
    (version.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset).to_le_bytes()
}

/// Whether these are exactly the bytes of a value of write `version`.
#[must_use]
pub fn is_value_of(version: u64, bytes: &[u8]) -> bool {
    if version >= VERSIONS {
        return false;
    }
    let Some(body) = bytes.get(VERSION_BYTES..) else {
        return version.to_be_bytes().ends_with(bytes);
    };
    let (words, rest) = body.as_chunks();
    // No branch for each word, because nearly all values are whole.
    let differ = |sum, (at, found): (usize, &[u8; 8])| {
        sum | u64::from_ne_bytes(*found) ^ u64::from_ne_bytes(word(version, at))
    };
    bytes.starts_with(&disguise(version).to_be_bytes())
        && words.iter().enumerate().fold(0, differ) == 0
        && word(version, words.len()).starts_with(rest)
}

/// The version of a value, if it is long enough to have one.
#[must_use]
pub fn version(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..VERSION_BYTES)?;
    Some(reveal(u64::from_be_bytes(head.try_into().ok()?)))
}

/// A value as a report shows it.
#[must_use]
pub fn describe(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "absent".into(),
        Some(bytes) => match version(bytes) {
            Some(number) if is_value_of(number, bytes) => {
                format!("version {number} ({} bytes)", bytes.len())
            }
            Some(number) => format!(
                "{} bytes that begin like version {number} but are not a whole value",
                bytes.len()
            ),
            None => format!("{} bytes: {bytes:02x?}", bytes.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_its_version_and_a_half_one_is_told_from_a_whole_one() {
        for (len, number) in [8, 9, 16, 100, 4000].into_iter().zip(72..) {
            let bytes = value(number, len);
            assert_eq!((bytes.len(), version(&bytes)), (len, Some(number)));
            assert!(is_value_of(number, &bytes) && !is_value_of(number + 8, &bytes));
            for at in 0..len {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1;
                assert!(!is_value_of(number, &wrong), "byte {at} of {len}");
            }
            assert!(describe(Some(&bytes)).starts_with(&format!("version {number}")));
        }
        let mut mixed = value(77, 4000);
        mixed[2000..].copy_from_slice(&value(78, 4000)[2000..]);
        assert!(describe(Some(&mixed)).contains("not a whole value"));
        assert_ne!(value(1, 3), value(2, 3));
        assert!(is_value_of(1, &value(1, 3)) && !is_value_of(2, &value(1, 3)));
    }

    #[test]
    fn heads_look_like_tombstones_and_tagged_addresses_and_are_told_apart() {
        let heads = (0..64).map(|version| {
            let bytes = value(version, 8);
            assert_eq!(super::version(&bytes), Some(version));
            u64::from_be_bytes(bytes.try_into().unwrap())
        });
        let uppers: std::collections::HashSet<u64> = heads.map(|head| head >> 48).collect();
        assert_eq!(uppers, [0, 0xffff, 0x8000, 0x7fff, 1].into());
        assert!(!is_value_of(u64::MAX, &[0xff; 8]), "no version is so large");
    }
}
