//! Splits lines into fields and parses them as numbers, directly from the bytes.

use super::emit::Fault;
use crate::hex::{decode, nibble};

/// Splits a line at a separator into exactly `N` columns. Otherwise the line does not match
/// `layout`.
#[inline]
pub(super) fn split<'a, const N: usize>(
    line: &'a [u8],
    separator: u8,
    layout: &str,
) -> Result<[&'a [u8]; N], Fault> {
    collect(
        line.split(|&b| b == separator).map(<[u8]>::trim_ascii),
        line,
        layout,
    )
}

/// Splits a line at white space into exactly `N` columns. Otherwise the line does not match
/// `layout`.
#[inline]
pub(super) fn words<'a, const N: usize>(
    line: &'a [u8],
    layout: &str,
) -> Result<[&'a [u8]; N], Fault> {
    collect(words_of(line), line, layout)
}

/// Splits a line into words.
pub(super) fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

#[inline]
fn collect<'a, const N: usize>(
    mut parts: impl Iterator<Item = &'a [u8]>,
    line: &[u8],
    layout: &str,
) -> Result<[&'a [u8]; N], Fault> {
    let mut columns = [&[][..]; N];
    for column in &mut columns {
        match parts.next() {
            Some(part) => *column = part,
            None => return Err(Fault::bad(format!("{N} columns, {layout}"), line)),
        }
    }
    match parts.next() {
        None => Ok(columns),
        Some(_) => Err(Fault::bad(format!("{N} columns, {layout}"), line)),
    }
}

/// Parses digits. Returns `None` if the field is empty, has other characters, or exceeds 64 bits.
#[inline]
fn digits(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    let mut number = 0u64;
    // 19 digits always fit in 64 bits, so only longer numbers need the checks.
    let checked = field.len() > 19;
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = if checked {
            number.checked_mul(10)?.checked_add(u64::from(digit))?
        } else {
            number * 10 + u64::from(digit)
        };
    }
    Some(number)
}

/// Parses a whole number, 0 or more. `what` names the column.
#[inline]
pub(super) fn number(field: &[u8], what: &str) -> Result<u64, Fault> {
    digits(field).ok_or_else(|| Fault::bad(format!("{what}, a whole number, 0 or more"), field))
}

/// Parses a whole number and multiplies it by a unit, such as bytes per sector.
#[inline]
pub(super) fn scaled(field: &[u8], unit: u64, what: &str) -> Result<u64, Fault> {
    number(field, what)?
        .checked_mul(unit)
        .ok_or_else(|| Fault::bad(format!("{what} of at most {}", u64::MAX / unit), field))
}

/// Parses a number of bytes that fits in 32 bits.
#[inline]
pub(super) fn size(field: &[u8], what: &str) -> Result<u32, Fault> {
    u32::try_from(number(field, what)?)
        .map_err(|_| Fault::bad(format!("{what} of at most {}", u32::MAX), field))
}

/// Parses a time, whole or decimal, in units of `unit_ns` nanoseconds.
#[inline]
pub(super) fn time(field: &[u8], unit_ns: u64, what: &str) -> Result<u64, Fault> {
    decimal(field, unit_ns)
        .ok_or_else(|| Fault::bad(format!("{what}, a time from 0 to 584 years"), field))
}

fn decimal(field: &[u8], unit_ns: u64) -> Option<u64> {
    let point = field.iter().position(|&b| b == b'.');
    let (whole, fraction) = match point {
        None => (field, &[][..]),
        Some(at) => (&field[..at], &field[at + 1..]),
    };
    if field.iter().any(|b| matches!(b, b'e' | b'E')) {
        return exponential(field, unit_ns);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    let mut ns = whole.checked_mul(unit_ns)?;
    if !fraction.is_empty() {
        // Nine digits of a second are nanoseconds. Further digits are dropped, but must be digits.
        let (used, noise) = fraction.split_at(fraction.len().min(9));
        if !noise.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let ten = 10u64.pow(used.len() as u32);
        ns = ns.checked_add(
            u64::try_from(u128::from(digits(used)?) * u128::from(unit_ns) / u128::from(ten))
                .ok()?,
        )?;
    }
    Some(ns)
}

/// Parses `1.5e-05`, which C's `%g` and spreadsheets write.
#[cold]
fn exponential(field: &[u8], unit_ns: u64) -> Option<u64> {
    let number: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    let ns = number * unit_ns as f64;
    (number.is_finite() && (0.0..u64::MAX as f64).contains(&ns)).then_some(ns as u64)
}

/// Parses hexadecimal digits, with or without `0x`, as a number.
pub(super) fn hex(field: &[u8], what: &str) -> Result<u64, Fault> {
    let bare = strip_0x(field);
    let number = match bare.len() {
        1..=16 => bare
            .iter()
            .try_fold(0, |n, &b| Some(n << 4 | u64::from(nibble(b)?))),
        _ => None,
    };
    number.ok_or_else(|| Fault::bad(format!("{what}, 1 to 16 hexadecimal digits"), field))
}

/// Parses hexadecimal digits, with or without `0x`, as bytes and appends them to `out`.
pub(super) fn hex_bytes(field: &[u8], what: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    decode(strip_0x(field), out)
        .ok_or_else(|| Fault::bad(format!("{what}, pairs of hexadecimal digits"), field))
}

fn strip_0x(field: &[u8]) -> &[u8] {
    match field {
        [b'0', b'x' | b'X', rest @ ..] => rest,
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        let cases: [(&str, u64, Option<u64>); 14] = [
            ("0", 1, Some(0)),
            (
                "1455592371.108214",
                1_000_000_000,
                Some(1_455_592_371_108_214_000),
            ),
            ("0.000000001", 1_000_000_000, Some(1)),
            ("1.0000000019999", 1_000_000_000, Some(1_000_000_001)),
            (".5", 1_000_000, Some(500_000)),
            ("5.", 1000, Some(5000)),
            ("128166372003061629", 100, Some(12_816_637_200_306_162_900)),
            ("1.5e-05", 1_000_000_000, Some(15_000)),
            ("-1", 1, None),
            (".", 1, None),
            ("1.2x", 1, None),
            ("1e400", 1, None),
            ("18446744073709551616", 1, None),
            ("18446744073709551615", 1000, None),
        ];
        for (text, unit, expected) in cases {
            assert_eq!(decimal(text.as_bytes(), unit), expected, "{text} × {unit}");
        }
    }

    #[test]
    fn numbers_end_where_64_bits_end() {
        assert_eq!(digits(b"18446744073709551615"), Some(u64::MAX));
        for text in [
            "18446744073709551616",
            "99999999999999999999",
            "",
            "-1",
            "+1",
            "1 2",
            "0x1",
        ] {
            assert_eq!(digits(text.as_bytes()), None, "{text}");
        }
        assert_eq!(hex(b"0xFfff", "x").ok(), Some(0xffff));
        assert!(hex(b"0x", "x").is_err() && hex(b"10000000000000000", "x").is_err());
    }
}
