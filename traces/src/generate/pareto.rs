//! The generalized Pareto distribution of `mixgraph` values and scans.

use std::fmt;
use std::str::FromStr;

use crate::TraceError;

/// A generalized Pareto distribution.
///
/// f(x) = (1/σ) (1 + k (x − θ)/σ)^(−1 − 1/k), db_bench's `value_theta/k/sigma` and
/// `iter_theta/k/sigma`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// Location.
    pub theta: f64,
    /// Shape; 0 is the exponential distribution.
    pub k: f64,
    /// Scale, above 0.
    pub sigma: f64,
}

impl Pareto {
    /// Returns the number that a share `u` of the distribution exceeds, rounded up, as db_bench's
    /// `ParetoCdfInversion` does. `u` is in [0, 1).
    pub(crate) fn quantile(&self, u: f64) -> u64 {
        // u = 0 would give infinity under a heavy tail. Use the smallest number that the generator
        // produces above 0.
        let log = libm::log(u.max(f64::EPSILON / 2.0));
        let excess = if self.k == 0.0 {
            -log
        } else {
            libm::expm1(-self.k * log) / self.k
        };
        // `as` saturates, so a huge quantile stays a number.
        libm::ceil(self.theta + self.sigma * excess).max(0.0) as u64
    }

    pub(crate) fn check(&self, name: &'static str) -> Result<(), TraceError> {
        if self.theta.is_finite()
            && self.k.is_finite()
            && self.sigma.is_finite()
            && self.sigma > 0.0
        {
            Ok(())
        } else {
            Err(TraceError::parameter(
                name,
                format!(
                    "the Pareto law needs finite theta and k and a sigma above 0, found {self:?}"
                ),
            ))
        }
    }
}

/// `theta,k,sigma`.
impl fmt::Display for Pareto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.theta, self.k, self.sigma)
    }
}

impl FromStr for Pareto {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let wrong = || {
            TraceError::parameter(
                "pareto",
                format!("expected three numbers as THETA,K,SIGMA, found {text}"),
            )
        };
        let mut numbers = text.split(',').map(|part| part.trim().parse::<f64>());
        let mut next = || numbers.next().and_then(Result::ok).ok_or_else(wrong);
        let law = Pareto {
            theta: next()?,
            k: next()?,
            sigma: next()?,
        };
        if numbers.next().is_some() {
            return Err(wrong());
        }
        law.check("pareto")?;
        Ok(law)
    }
}
