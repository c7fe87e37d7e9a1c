//! Values that say which write they come from.
//!
//! ```text
//! version, 8 bytes big-endian | the version's own bytes and the offset, mixed, to the end
//! ```
//!
//! Every write of a run has a version of its own, so a stale, lost or foreign value is never equal to the right one, and a value
//! of two halves (torn, or overlaid) is equal to none. A value shorter than eight bytes is the version's tail.

/// Bytes of the version at the head of a value.
pub const VERSION_BYTES: usize = 8;

/// The value of write `version`, `len` bytes long.
#[must_use]
pub fn value(version: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    fill(&mut bytes, version, len);
    bytes
}

/// As [`value`], into a buffer, which is cleared first.
pub fn fill(bytes: &mut Vec<u8>, version: u64, len: usize) {
    bytes.clear();
    let head = version.to_be_bytes();
    if len < VERSION_BYTES {
        bytes.extend_from_slice(&head[VERSION_BYTES - len..]);
        return;
    }
    bytes.extend_from_slice(&head);
    bytes.resize(len, 0);
    let (words, rest) = bytes[VERSION_BYTES..].as_chunks_mut();
    for (at, to) in words.iter_mut().enumerate() {
        *to = word(version, at);
    }
    rest.copy_from_slice(&word(version, words.len())[..rest.len()]);
}

/// What follows the version in its value, word by word.
fn word(version: u64, at: usize) -> [u8; 8] {
    (version.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at as u64).to_le_bytes()
}

/// Whether these are all bytes of a value of write `version`, and in place.
#[must_use]
pub fn is_value_of(version: u64, bytes: &[u8]) -> bool {
    let head = version.to_be_bytes();
    let Some(body) = bytes.get(VERSION_BYTES..) else {
        return head.ends_with(bytes);
    };
    let (words, rest) = body.as_chunks();
    // Without a branch a word: whole values are the rule.
    let differ = |sum, (at, found): (usize, &[u8; 8])| {
        sum | u64::from_ne_bytes(*found) ^ u64::from_ne_bytes(word(version, at))
    };
    bytes.starts_with(&head)
        && words.iter().enumerate().fold(0, differ) == 0
        && word(version, words.len()).starts_with(rest)
}

/// The version of a value, if it is long enough to have one.
#[must_use]
pub fn version(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..VERSION_BYTES)?;
    Some(u64::from_be_bytes(head.try_into().ok()?))
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
                "{} bytes that begin as version {number} and go on as no value does",
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
        for len in [8, 9, 16, 100, 4000] {
            let bytes = value(77, len);
            assert_eq!((bytes.len(), version(&bytes)), (len, Some(77)));
            assert!(is_value_of(77, &bytes) && !is_value_of(78, &bytes));
            for at in 0..len {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1;
                assert!(!is_value_of(77, &wrong), "byte {at} of {len}");
            }
            assert!(describe(Some(&bytes)).starts_with("version 77"));
        }
        let mut mixed = value(77, 4000);
        mixed[2000..].copy_from_slice(&value(78, 4000)[2000..]);
        assert!(describe(Some(&mixed)).contains("as no value does"));
        assert_ne!(value(1, 3), value(2, 3));
        assert!(is_value_of(1, &value(1, 3)) && !is_value_of(2, &value(1, 3)));
    }
}
