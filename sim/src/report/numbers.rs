//! Formats numbers for text and pages.

/// Groups digits: 1,234,567.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a share as +1.23 %.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:+.2} %", share * 100.0)
}

/// Formats bytes in binary units.
#[must_use]
pub fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut n = n;
    let mut unit = 0;
    while n >= 1024.0 && unit + 1 < units.len() {
        n /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n:.0} B")
    } else {
        format!("{n:.1} {}", units[unit])
    }
}

/// Formats nanoseconds in a suitable unit.
#[must_use]
pub fn duration(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_and_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(4096.0), "4.0 KiB");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(duration(85_300.0), "85.3 µs");
        assert_eq!(percent(-0.0123), "-1.23 %");
    }
}
