//! Parsers of sizes, counts, shares and durations: one grammar for all flags.
//!
//! | kind | examples | units |
//! |---|---|---|
//! | size | `64`, `4KiB`, `1.5MiB` | B, KiB, MiB, GiB, TiB: powers of 1,024, in any case |
//! | share | `20%`, `0.2` | per cent, or a number from 0 to 1 |
//! | count | `500k`, `2M`, `1_000` | k, M, G: powers of 1,000 |
//! | duration | `1ms`, `60s`, `10m` | ns, us, ms, s, m, h |
//!
//! `KB` and `MB` are refused, because some read them as powers of 1,000 and others as powers of
//! 1,024. A value must be a whole number (`1.5KiB` is 1,536 bytes, `0.3` of a byte is refused), so
//! that nothing is silently rounded.

use treering_engine::Promote;
use treering_sim::replay::Size;

/// Splits `12.5MiB` into its number and its unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

/// `number × unit` as a whole number, computed with integers, so that `0.1M` is exactly 100,000.
fn whole(number: &str, unit: u64) -> Result<u64, &'static str> {
    const NOT_A_NUMBER: &str = "a number";
    const TOO_LARGE: &str = "less than 2^64";
    let digits = number.replace('_', "");
    let (integer, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if integer.is_empty() || fraction.contains('.') {
        return Err(NOT_A_NUMBER);
    }
    let all_digits = format!("{integer}{}", fraction.trim_end_matches('0'));
    let scale = u32::try_from(fraction.trim_end_matches('0').len()).map_err(|_| TOO_LARGE)?;
    let value: u128 = all_digits.parse().map_err(|_| TOO_LARGE)?;
    let divisor = 10u128.checked_pow(scale).ok_or("fewer digits")?;
    let product = value.checked_mul(u128::from(unit)).ok_or(TOO_LARGE)?;
    if !product.is_multiple_of(divisor) {
        return Err("a whole number");
    }
    u64::try_from(product / divisor).map_err(|_| TOO_LARGE)
}

fn read(text: &str, what: &str, units: &[(&str, u64)], example: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let known = units.iter().find(|(name, _)| *name == unit);
    let Some((_, factor)) = known else {
        return Err(format!("expected {what} such as {example}"));
    };
    whole(number, *factor).map_err(|why| {
        if number.is_empty() {
            format!("expected {what} such as {example}")
        } else {
            format!("expected {what} such as {example}, and {why}")
        }
    })
}

/// Parses a number of bytes.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 6] = [
        ("", 1),
        ("b", 1),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    read(
        &text.to_ascii_lowercase(),
        "a size",
        &UNITS,
        "64, 4KiB or 32MiB",
    )
}

/// Parses a number of bytes, or a share of the data set above 0 %.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn size_or_share(text: &str) -> Result<Size, String> {
    if !text.trim_end().ends_with('%') {
        return size(text).map(Size::Bytes).map_err(|_| {
            "expected a size such as 64, 4KiB or 32MiB, or a share of the data set such as 20%"
                .into()
        });
    }
    let share = per_cent(text)?;
    if share <= 0.0 || share > 1000.0 {
        return Err("expected a share above 0%".into());
    }
    Ok(Size::Share(share))
}

fn per_cent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share / 100.0),
        _ => Err("expected a share such as 20%".into()),
    }
}

/// Parses a share of a whole: `10%` or `0.1`.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = if text.trim_end().ends_with('%') {
        per_cent(text).ok()
    } else {
        text.trim().parse::<f64>().ok()
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a share from 0 to 1, such as 0.1 or 10%".into())
}

/// Parses a price in dollars: `0.08`.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn price(text: &str) -> Result<f64, String> {
    let price = text.trim().parse::<f64>().ok();
    price
        .filter(|price| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| "expected a price in dollars, such as 0.08".into())
}

/// Parses a whole percentage from 0 to 100: `30` or `30%`.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let percent = number.parse().ok().filter(|percent| *percent <= 100);
    percent
        .filter(|_| digits)
        .ok_or_else(|| "expected a whole percentage from 0 to 100, such as 30".into())
}

/// Parses a share of reads that are promoted: a percentage, or `auto`.
///
/// # Errors
/// As [`percent`].
pub(crate) fn promote(text: &str) -> Result<Promote, String> {
    match text.trim() {
        "auto" => Ok(Promote::Adaptive),
        text => percent(text)
            .map(Promote::Percent)
            .map_err(|expected| format!("{expected}, or auto")),
    }
}

/// Parses a count.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] = [
        ("", 1),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    read(text, "a count", &UNITS, "1000, 500k or 2M")
}

/// Parses which of some, from the first one.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn ordinal(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("expected 1 or more: 1 is the first".into()),
        number => Ok(number),
    }
}

/// Parses a count that fits into 32 bits.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn small_count(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| "expected at most 4294967295".into())
}

/// Parses a number of bytes that fits into 32 bits.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn small_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "expected less than 4GiB".into())
}

/// Parses a duration, in nanoseconds.
///
/// # Errors
/// If the text is not valid, a message that says what was expected.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    read(text, "a duration", &UNITS, "1ms, 60s or 10m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_come_out_whole() {
        assert_eq!(size("64"), Ok(64));
        assert_eq!(size("4KiB"), Ok(4096));
        assert_eq!(size("4kib"), Ok(4096));
        assert_eq!(size("1.5MiB"), Ok(1_572_864));
        assert_eq!(size("0.3KiB").ok(), None);
        assert_eq!(size("4KB").ok(), None);
        assert_eq!(size("4 MiB"), Ok(4 << 20));
        for wrong in ["", "KiB", "-1", "1e3", "4K", "1.2.3", "99999999999TiB", "٣"] {
            assert!(size(wrong).is_err(), "{wrong} was taken for a size");
        }
    }

    #[test]
    fn counts_are_powers_of_1000() {
        assert_eq!(count("500k"), Ok(500_000));
        assert_eq!(count("0.1M"), Ok(100_000));
        assert_eq!(count("1_000"), Ok(1000));
        for wrong in ["2Mi", "1.5", "", "_", "k", "-2"] {
            assert!(count(wrong).is_err(), "{wrong} was taken for a count");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("1ms"), Ok(1_000_000));
        assert_eq!(duration("60s"), Ok(60_000_000_000));
        assert_eq!(duration("10m"), Ok(600_000_000_000));
        assert!(duration("60").is_err());
        assert!(duration("60 days").is_err());
    }

    #[test]
    fn shares_are_per_cent_or_fractions() {
        assert_eq!(share("10%"), Ok(0.1));
        assert_eq!(share("0.1"), Ok(0.1));
        assert!(share("150%").is_err());
        assert!(share("NaN").is_err());
        assert_eq!(size_or_share("20%"), Ok(Size::Share(0.2)));
        assert_eq!(size_or_share("1MiB"), Ok(Size::Bytes(1 << 20)));
        assert!(size_or_share("0%").is_err());
        assert_eq!((percent("0"), percent("100%")), (Ok(0), Ok(100)));
        for wrong in ["101", "-1", "+1", "0.5", "", "%", "ten"] {
            assert!(percent(wrong).is_err(), "{wrong} was taken for per cent");
        }
    }
}
