//! Constraints: `PATH < VALUE`, on the figures of a replay's report.
//!
//! The value is a number, a size if the path is of bytes, or a duration if it is of nanoseconds.

use serde_json::Value;

use super::objective::number;
use crate::units;

/// The operators, longer ones first.
const OPERATORS: [&str; 4] = [">=", "<=", ">", "<"];

/// A parsed constraint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Constraint {
    /// As typed.
    pub(super) text: String,
    pub(super) path: String,
    operator: &'static str,
    limit: f64,
}

impl Constraint {
    /// Parses a constraint.
    ///
    /// # Errors
    /// If it is none, a message that says what was expected.
    pub(super) fn parse(text: &str) -> Result<Constraint, String> {
        let expected = || {
            format!(
                "{text}: expected a figure of the report, one of > >= < <=, and a number, size or \
                 duration, such as 'space.physical_bytes < 1GiB'"
            )
        };
        let split = OPERATORS.into_iter().find_map(|operator| {
            let (path, limit) = text.split_once(operator)?;
            Some((path.trim(), operator, limit.trim()))
        });
        let (path, operator, limit) = split.ok_or_else(expected)?;
        let limit = value(path, limit).ok_or_else(expected)?;
        if path.is_empty() || path.contains(char::is_whitespace) {
            return Err(expected());
        }
        Ok(Constraint {
            text: text.to_owned(),
            path: path.to_owned(),
            operator,
            limit,
        })
    }

    /// Whether it is about latencies, which only runs with queues have.
    pub(super) fn is_timed(&self) -> bool {
        ["latency_ns.", "time."]
            .iter()
            .any(|of| self.path.starts_with(of))
    }

    /// Whether it holds; `None` if the report has no such number.
    pub(super) fn holds(&self, report: &Value) -> Option<bool> {
        let found = number(report, &self.path)?;
        Some(match self.operator {
            ">=" => found >= self.limit,
            "<=" => found <= self.limit,
            ">" => found > self.limit,
            _ => found < self.limit,
        })
    }
}

fn value(path: &str, limit: &str) -> Option<f64> {
    if let Ok(number) = limit.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    if path.contains("bytes") || path == "options.cache" || path == "options.capacity" {
        return units::size(limit).ok().map(|bytes| bytes as f64);
    }
    if path.contains("_ns") {
        return units::duration(limit).ok().map(|ns| ns as f64);
    }
    units::share(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_have_the_unit_of_their_figure() {
        let report = json!({
            "space": {"physical_bytes": 2048},
            "latency_ns": {"get": {"p99": 1_000_000}},
            "cache": {"hit_ratio": 0.5},
        });
        for (text, holds) in [
            ("space.physical_bytes <= 2KiB", Some(true)),
            ("space.physical_bytes<2KiB", Some(false)),
            ("latency_ns.get.p99 < 2ms", Some(true)),
            ("cache.hit_ratio >= 60%", Some(false)),
            ("cache.hit_ratio > 0.4", Some(true)),
            ("cache.nothing > 0.4", None),
        ] {
            let constraint = Constraint::parse(text).expect(text);
            assert_eq!(constraint.holds(&report), holds, "{text}");
        }
    }

    #[test]
    fn what_is_no_constraint_is_refused() {
        for text in [
            "",
            "wa",
            "wa = 3",
            "< 3",
            "wa.total < many",
            "a b < 3",
            "wa < inf",
        ] {
            let why = Constraint::parse(text).expect_err(text);
            assert!(why.contains("expected a figure"), "{why}");
        }
    }
}
