//! The expressions of `--fail-if`: `PATH > 5%` or `PATH > 0.2`.
//!
//! A path leads to a number of the report, such as `wa.device.total`. The number is compared with
//! that of the first report: with `%`, by its growth relative to it, otherwise by its growth.
//!
//! | first | other | growth | relative |
//! |---|---|---|---|
//! | 4 | 5 | 1 | 25 % |
//! | 0 | 0 | 0 | 0 % |
//! | 0 | 5 | 5 | infinite |

use std::cmp::Ordering;

use serde_json::Value;

use crate::figures;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    /// As typed.
    pub(super) text: String,
    pub(super) path: String,
    compares: Compares,
    limit: f64,
    relative: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compares {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// The operators, longer ones first.
const OPERATORS: [(&str, Compares); 4] = [
    (">=", Compares::AtLeast),
    ("<=", Compares::AtMost),
    (">", Compares::Above),
    ("<", Compares::Below),
];

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If it is none, a message that says what was expected.
    pub(super) fn parse(text: &str) -> Result<Expression, String> {
        let expected = || {
            format!(
                "{text}: expected PATH, one of > >= < <=, and a number or a percentage, such as \
                 'wa.device.total > 5%'"
            )
        };
        let split = OPERATORS.iter().find_map(|(operator, compares)| {
            let (path, limit) = text.split_once(operator)?;
            Some((path.trim(), *compares, limit.trim()))
        });
        let (path, compares, limit) = split.ok_or_else(expected)?;
        let (number, relative) = match limit.strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (limit, false),
        };
        let limit: f64 = number.parse().map_err(|_| expected())?;
        let is_path = !path.is_empty() && !path.contains(char::is_whitespace);
        if !is_path || !limit.is_finite() {
            return Err(expected());
        }
        Ok(Expression {
            text: text.to_owned(),
            path: path.to_owned(),
            compares,
            limit: if relative { limit / 100.0 } else { limit },
            relative,
        })
    }

    /// The number in a report; `None` if there is none at the path.
    pub(super) fn number(&self, report: &Value) -> Option<f64> {
        figures::at(report, &self.path)?.as_f64()
    }

    /// Whether it holds for the growth from one number to the other.
    pub(super) fn holds(&self, first: f64, other: f64) -> bool {
        let growth = if self.relative {
            relative(first, other)
        } else {
            other - first
        };
        let order = growth.partial_cmp(&self.limit);
        match self.compares {
            Compares::Above => order == Some(Ordering::Greater),
            Compares::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Compares::Below => order == Some(Ordering::Less),
            Compares::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        }
    }
}

/// The growth relative to the first number; infinite from zero.
pub(super) fn relative(first: f64, other: f64) -> f64 {
    match other - first {
        0.0 => 0.0,
        growth => growth / first.abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, first: f64, other: f64) -> bool {
        Expression::parse(text).expect(text).holds(first, other)
    }

    #[test]
    fn growth_is_relative_with_a_percentage_and_absolute_without() {
        assert!(holds("wa.total > 5%", 100.0, 106.0));
        assert!(!holds("wa.total > 5%", 100.0, 104.0));
        assert!(!holds("wa.total>5%", 100.0, 90.0));
        assert!(holds("wa.total >= 1", 4.0, 5.0));
        assert!(!holds("wa.total > 1", 4.0, 5.0));
        assert!(holds("cache.hit_ratio < -5 %", 0.8, 0.7));
        assert!(!holds("cache.hit_ratio < -5%", 0.8, 0.79));
        assert!(holds("x <= -0.1", 0.8, 0.5));
    }

    #[test]
    fn anything_above_zero_has_grown_infinitely() {
        assert!(holds("x > 1000%", 0.0, 0.001));
        assert!(!holds("x > 0%", 0.0, 0.0));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for wrong in [
            "",
            "wa",
            "wa >",
            "> 5%",
            "wa = 5",
            "wa > five",
            "a b > 1",
            "wa > inf",
        ] {
            let why = Expression::parse(wrong).expect_err(wrong);
            assert!(why.contains("expected PATH"), "{why}");
        }
    }
}
