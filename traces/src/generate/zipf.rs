//! Exact Zipf samples for any exponent, in O(1) time and memory.
//!
//! P(k) ∝ k^-θ for k in 1..=n. The method is rejection-inversion (Hörmann and Derflinger,
//! "Rejection-Inversion to Generate Variates from Monotone Discrete Distributions", TOMACS 6:3,
//! 1996). Let H be an antiderivative of the hat h(x) = x^-θ. Then:
//!
//! ```text
//!   u  uniform in (H(1.5) - h(1), H(n + 0.5)]
//!   x  = H⁻¹(u),  k = x rounded
//!   accept k  if  k - x <= s                      (nearly always: no second evaluation)
//!             or  u >= H(k + 0.5) - h(k)
//! ```
//!
//! Because h is convex, the unit column of k under the hat is wide enough for P(k), so the result
//! is exact up to rounding of f64. There is no zeta sum, no table, and no approximation as in
//! YCSB's generator (Gray et al., 1994). H is written with `expm1` and `log1p`, so θ = 1 and its
//! neighbourhood need no special treatment. The transcendental functions come from the `libm`
//! crate, because those of the platform differ in the last bit between systems.

use super::random::Random;

/// A Zipf distribution over the ranks `0..n`, of which 0 is the most popular.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// 1 − θ, the exponent of the antiderivative.
    q: f64,
    /// 1 / (1 − θ), unused where θ is within 1e-9 of 1.
    inverse_q: f64,
    /// H(1.5) − h(1).
    low: f64,
    /// H(n + 0.5).
    high: f64,
    /// The end of the quick acceptance.
    s: f64,
}

/// Within this distance of θ = 1, |q ln x| < 1e-7 and the first-order series is exact to 1e-14.
const NEAR_ONE: f64 = 1e-9;

impl Zipf {
    /// Creates the distribution over `n >= 1` ranks with exponent `theta >= 0`.
    pub fn new(n: u64, theta: f64) -> Self {
        let q = 1.0 - theta;
        let mut zipf = Zipf {
            n: 1.0,
            theta,
            q,
            inverse_q: if q.abs() < NEAR_ONE { 0.0 } else { 1.0 / q },
            low: 0.0,
            high: 0.0,
            s: 0.0,
        };
        zipf.low = zipf.antiderivative(1.5) - 1.0;
        zipf.s = 2.0 - zipf.inverse(zipf.antiderivative(2.5) - zipf.hat(2.0));
        zipf.resize(n);
        zipf
    }

    /// Changes the number of ranks.
    pub fn resize(&mut self, n: u64) {
        debug_assert!(n >= 1);
        self.n = n as f64;
        self.high = self.antiderivative(self.n + 0.5);
    }

    /// H(x) = (x^q − 1) / q, which tends to ln x.
    fn antiderivative(&self, x: f64) -> f64 {
        let log = libm::log(x);
        if self.inverse_q == 0.0 {
            log * (1.0 + 0.5 * self.q * log)
        } else {
            libm::expm1(self.q * log) * self.inverse_q
        }
    }

    #[inline]
    fn inverse(&self, u: f64) -> f64 {
        if self.theta == 0.0 {
            1.0 + u
        } else if self.inverse_q == 0.0 {
            libm::exp(u * (1.0 - 0.5 * self.q * u))
        } else if self.q.abs() < 0.01 {
            libm::exp(libm::log1p(self.q * u) * self.inverse_q)
        } else {
            // Here log(1 + t) loses at most 1e-16 / |q| and costs half as much as log1p.
            libm::exp(libm::log(1.0 + self.q * u) * self.inverse_q)
        }
    }

    fn hat(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Draws a rank from `0..n`.
    #[inline]
    pub(crate) fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let k = ((x + 0.5) as u64 as f64).clamp(1.0, self.n);
            if k - x <= self.s || u >= self.antiderivative(k + 0.5) - self.hat(k) {
                return k as u64 - 1;
            }
        }
    }

    /// Draws `count` ranks with a new random generator and returns their sum. For benchmarks and
    /// tests.
    pub fn sum_of_samples(&self, seed: u64, count: u64) -> u64 {
        let mut random = Random::new(seed);
        (0..count).fold(0u64, |sum, _| sum.wrapping_add(self.sample(&mut random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square against the exact probabilities; ranks expected fewer than 20 times share a cell.
    fn chi_square(theta: f64, n: u64, draws: u64) -> (f64, f64) {
        let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        let zipf = Zipf::new(n, theta);
        let mut random = Random::new(42);
        let mut seen = vec![0u64; n as usize];
        for _ in 0..draws {
            seen[zipf.sample(&mut random) as usize] += 1;
        }
        let (mut chi, mut cells) = (0.0, 0.0);
        let (mut expected, mut observed) = (0.0, 0.0);
        for (weight, &count) in weights.iter().zip(&seen) {
            expected += weight / total * draws as f64;
            observed += count as f64;
            if expected >= 20.0 {
                chi += (observed - expected) * (observed - expected) / expected;
                cells += 1.0;
                (expected, observed) = (0.0, 0.0);
            }
        }
        (chi, cells - 1.0)
    }

    #[test]
    fn frequencies_are_those_of_the_law_for_every_theta() {
        for theta in [
            0.0,
            0.01,
            0.3,
            0.5,
            0.9,
            0.99,
            0.9999,
            1.0,
            1.000_000_000_1,
            1.000_1,
            1.2,
            1.5,
        ] {
            for n in [1, 2, 3, 10, 1000, 30_000] {
                let (chi, freedom) = chi_square(theta, n, 300_000);
                // Four standard deviations of chi-square with that many degrees of freedom.
                let bound = freedom + 4.0 * (2.0 * freedom.max(1.0)).sqrt();
                assert!(chi <= bound, "theta {theta} n {n}: chi² {chi} > {bound}");
            }
        }
    }

    #[test]
    fn a_wrong_exponent_would_be_noticed() {
        let weights: f64 = (1..=1000u32).map(|k| f64::from(k).powf(-0.9)).sum();
        let zipf = Zipf::new(1000, 0.93);
        let mut random = Random::new(42);
        let hits = (0..300_000)
            .filter(|_| zipf.sample(&mut random) == 0)
            .count() as f64;
        let expected = 300_000.0 / weights;
        assert!((hits - expected).abs() > 4.0 * expected.sqrt());
    }

    #[test]
    fn large_populations_stay_in_range() {
        for theta in [0.0, 0.5, 1.0, 1.5] {
            let n = 1 << 40;
            let zipf = Zipf::new(n, theta);
            let mut random = Random::new(3);
            assert!((0..100_000).all(|_| zipf.sample(&mut random) < n));
        }
    }
}
