//! The results of a study, as its tables, pictures and claims look for them: by part and by
//! parameters.

use serde_json::Value;

use super::points::Point;
use super::shown::{Values, Where};
use crate::figures;
use crate::units;

/// A point with its report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) part: &'a str,
    pub(super) point: &'a Point,
    /// `None` if it was not replayed.
    pub(super) report: Option<&'a Value>,
}

impl Found<'_> {
    /// The value of a figure, or of an expression of figures: sums and differences of paths,
    /// numbers and their products, divided by such, as `io_bytes.read + io_bytes.page / user_bytes`
    /// or `cache.bytes*3 / device.logical_blocks`. `None` if the report has none.
    pub(super) fn value(&self, of: &str) -> Option<f64> {
        match of.split_once(" / ") {
            Some((above, below)) => Some(self.sum(above)? / self.sum(below)?),
            None => self.sum(of),
        }
    }

    fn sum(&self, terms: &str) -> Option<f64> {
        let mut words = terms.split(' ');
        let mut sum = self.term(words.next()?)?;
        while let (Some(sign), Some(term)) = (words.next(), words.next()) {
            let term = self.term(term)?;
            sum += match sign {
                "-" => -term,
                "+" => term,
                _ => return None,
            };
        }
        Some(sum)
    }

    fn term(&self, term: &str) -> Option<f64> {
        let factor = |factor: &str| match factor.parse() {
            Ok(number) => Some(number),
            Err(_) => figures::at(self.report?, factor)?.as_f64(),
        };
        term.split('*').map(factor).product()
    }
}

/// Those of these parts that have these values.
pub(super) fn select<'a, 'b>(
    all: &'b [Found<'a>],
    part: Option<&Values>,
    of: &[&Where],
) -> Vec<&'b Found<'a>> {
    let parts = part.map(Values::texts);
    let fits = |found: &&Found| {
        let here = parts.as_ref();
        here.is_none_or(|parts| parts.iter().any(|part| part == found.part))
            && of.iter().all(|of| matches(found.point, of))
    };
    all.iter().filter(fits).collect()
}

/// Whether a point has one of the values of each parameter.
pub(super) fn matches(point: &Point, of: &Where) -> bool {
    of.iter().all(|(name, values)| {
        let value = point.get(name);
        value.is_some_and(|value| values.texts().iter().any(|other| other == value))
    })
}

/// The values of these parameters; empty where a point has none.
pub(super) fn values(point: &Point, parameters: &[String]) -> Vec<String> {
    let value = |name: &String| point.get(name).unwrap_or_default().to_owned();
    parameters.iter().map(value).collect()
}

/// Each of the items once, in the order in which they come first.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// The number that a value stands for: `4KiB` is 4096, `5%` is 5, `20k` is 20,000.
pub(super) fn numeric(value: &str) -> Option<f64> {
    let plain = value.strip_suffix('%').unwrap_or(value).trim().parse().ok();
    let size = || units::size(value).ok().map(|bytes| bytes as f64);
    let count = || units::count(value).ok().map(|count| count as f64);
    plain.or_else(count).or_else(size)
}

/// A value in its unit: `%`, `KiB`, `MiB` and `µs` divide it, and other words do not.
pub(super) fn in_unit(value: f64, unit: Option<&str>) -> f64 {
    match unit {
        Some("%") => value * 100.0,
        Some("KiB") => value / f64::from(1 << 10),
        Some("MiB") => value / f64::from(1 << 20),
        Some("µs") => value / 1000.0,
        _ => value,
    }
}

/// A figure in words: with `digits` after the point, or three significant ones.
pub(super) fn number(value: f64, digits: Option<usize>, unit: Option<&str>) -> String {
    let value = in_unit(value, unit);
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    let digits = digits.unwrap_or(match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    });
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_may_be_added_and_divided() {
        let report = serde_json::json!({"a": {"b": 6}, "c": 2, "d": null});
        let point = Point::of("t");
        let found = Found {
            part: "",
            point: &point,
            report: Some(&report),
        };
        for (of, value) in [
            ("a.b", Some(6.0)),
            ("a.b / c", Some(3.0)),
            ("a.b + c - 1 / c + 1", Some(7.0 / 3.0)),
            ("a.b*c*0.5 - c / 2", Some(2.0)),
            ("a.b + d", None),
            ("a.b * c", None),
        ] {
            assert_eq!(found.value(of), value, "{of}");
        }
    }

    #[test]
    fn values_of_parameters_are_numbers_where_they_can_be() {
        for (value, expected) in [
            ("4KiB", Some(4096.0)),
            ("5%", Some(5.0)),
            ("33 %", Some(33.0)),
            ("20k", Some(20_000.0)),
            ("16", Some(16.0)),
            ("btree", None),
        ] {
            assert_eq!(numeric(value), expected, "{value}");
        }
        assert_eq!(number(0.1234, Some(1), Some("%")), "12.3 %");
        assert_eq!(number(64.04, None, None), "64.0");
    }
}
