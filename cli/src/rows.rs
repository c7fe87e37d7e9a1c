//! Records as lines of JSON: the format that `treering dump` writes and `treering load` reads.
//!
//! ```text
//! {"key":"user:17","value":"Ada"}
//! {"key_hex":"00ff","value":""}    bytes that are not UTF-8: two hexadecimal digits each
//! ```

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Splits bytes into one of two fields: text, or hexadecimal digits.
fn fields(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(hex(bytes))),
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    digits.map(|d| char::from(DIGITS[usize::from(d)])).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |c: u8| char::from(c).to_digit(16);
    let byte = |[a, b]: &[u8; 2]| Some((digit(*a)? << 4 | digit(*b)?) as u8);
    let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| rest.is_empty())
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// Appends the line of a record, including the line feed.
pub(crate) fn write(line: &mut Vec<u8>, key: &[u8], value: &[u8]) -> serde_json::Result<()> {
    let ((key, key_hex), (value, value_hex)) = (fields(key), fields(value));
    let fields = Line {
        key,
        key_hex,
        value,
        value_hex,
    };
    serde_json::to_writer(&mut *line, &fields)?;
    line.push(b'\n');
    Ok(())
}

/// Parses the record of a line; the error says what was expected and what was found.
pub(crate) fn read(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let line: Line<'_> = serde_json::from_slice(line)
        .map_err(|e| format!("expected {{\"key\":\"…\",\"value\":\"…\"}}, found {e}"))?;
    let key = one_of("key", line.key, line.key_hex)?;
    Ok((key, one_of("value", line.value, line.value_hex)?))
}

fn one_of(name: &str, text: Option<Cow<'_, str>>, hex: Option<String>) -> Result<Vec<u8>, String> {
    match (text, hex) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(digits)) => unhex(&digits).ok_or_else(|| {
            format!("expected pairs of hexadecimal digits in \"{name}_hex\", found {digits:?}")
        }),
        (Some(_), Some(_)) => Err(format!("expected \"{name}\" or \"{name}_hex\", found both")),
        (None, None) => Err(format!(
            "expected \"{name}\" or \"{name}_hex\", found neither"
        )),
    }
}

/// A bound of a key range in a document: `{"text":"…"}` or `{"hex":"…"}`.
#[derive(Serialize)]
pub(crate) struct Bytes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        let (text, hex) = fields(bytes);
        Bytes { text, hex }
    }
}

impl std::fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.text, &self.hex) {
            (Some(text), _) => write!(f, "{text:?}"),
            (None, hex) => write!(f, "0x{}", hex.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_come_back() {
        let odd: [&[u8]; 6] = [
            b"",
            b"plain",
            b"\"\\\n\0",
            "ä€🦀".as_bytes(),
            &[0xff, 0],
            &[0xc3],
        ];
        for key in odd {
            for value in odd {
                let mut line = Vec::new();
                write(&mut line, key, value).expect("writes");
                assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
                assert_eq!(read(&line), Ok((key.to_vec(), value.to_vec())));
            }
        }
    }

    #[test]
    fn a_bad_line_is_told_by_what_was_expected() {
        for (line, says) in [
            ("", "expected {\"key\""),
            ("[1]", "expected {\"key\""),
            (
                "{\"key\":\"a\"}",
                "expected \"value\" or \"value_hex\", found neither",
            ),
            (
                "{\"key\":\"a\",\"key_hex\":\"61\",\"value\":\"\"}",
                "found both",
            ),
            (
                "{\"key_hex\":\"6\",\"value\":\"\"}",
                "pairs of hexadecimal digits",
            ),
            (
                "{\"key_hex\":\"+1\",\"value\":\"\"}",
                "pairs of hexadecimal digits",
            ),
            (
                "{\"key\":\"a\",\"value\":\"\",\"ttl\":3}",
                "unknown field `ttl`",
            ),
            (
                "{\"key\":\"a\",\"key\":\"b\",\"value\":\"\"}",
                "duplicate field `key`",
            ),
        ] {
            let said = read(line.as_bytes()).expect_err(line);
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
