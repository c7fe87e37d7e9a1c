//! Fits a Zipf exponent to access counts by maximum likelihood.
//!
//! The usual way, a line through the rank-frequency plot, is biased. Ranks are assigned *after*
//! counting, so even uniform accesses look skewed: their counts fall once they are sorted. Here
//! ranks are never assigned. If keys have rates
//!
//! ```text
//!   λ_r = T · r^-θ / Σ_{k=1..N} k^-θ          T accesses, N keys
//! ```
//!
//! then a key of unknown rank is accessed c times with probability P(c) = 1/N Σ_r Poisson(c; λ_r),
//! and θ maximises Σ_c (keys accessed c times) · ln P(c). Only the *frequencies of counts* enter,
//! so a uniform sample of the keys is as good as all of them. If a load shows every key, c = 0
//! counts too. Otherwise P is conditioned on c > 0, and N follows from the number of keys seen: Σ_r
//! (1 − e^-λ_r) = seen.
//!
//! Counts above 32 are pooled in cells 10 % wide, and ranks above 512 in blocks 5 % wide. One
//! evaluation of the likelihood takes about 1 ms.

use std::collections::BTreeMap;

/// The observed accesses.
pub(crate) struct Observed<'a> {
    /// Kept keys by access count. Count 0 matters only if `closed`.
    pub(crate) frequencies: &'a BTreeMap<u32, u64>,
    /// Accesses to all keys, whether kept or not.
    pub(crate) accesses: u64,
    /// Keys that exist (if `closed`) or were seen, whether kept or not.
    pub(crate) keys: u64,
    /// Whether all keys are known, including those never accessed.
    pub(crate) closed: bool,
}

/// The best exponent, and how well it fits.
pub(crate) struct Fit {
    pub(crate) theta: f64,
    /// Standard error of the exponent, from the curvature of the likelihood.
    pub(crate) theta_error: f64,
    /// Number of keys under the fitted law.
    pub(crate) population: u64,
    /// Relative error of `population` at one standard error of the exponent; 0 if all keys are
    /// known.
    pub(crate) population_error: f64,
    /// Largest difference between the observed and the fitted distribution of counts
    /// (Kolmogorov-Smirnov).
    pub(crate) ks: f64,
}

/// The largest exponent. Beyond it, one key gets practically all accesses.
const MAX_THETA: f64 = 3.0;
/// Counts up to this have a cell each.
const SINGLE_COUNTS: u64 = 32;
/// Up to this rate, counts are summed as Poisson; beyond it, as normal.
const POISSON: f64 = 200.0;

/// Cells of counts. Cell i holds the counts `starts[i]..starts[i + 1]`; the last is open.
struct Cells {
    starts: Vec<u64>,
}

impl Cells {
    fn new(max: u64) -> Self {
        let mut starts: Vec<u64> = (0..=SINGLE_COUNTS).collect();
        let mut next = SINGLE_COUNTS + 1;
        while next <= max.max(SINGLE_COUNTS) {
            starts.push(next);
            next = (next + 1).max(next + next / 10);
        }
        Cells { starts }
    }

    fn of(&self, count: u64) -> usize {
        self.starts.partition_point(|&start| start <= count) - 1
    }

    /// Adds `weight` · P(cell) for a Poisson count of mean `rate`.
    fn spread(&self, rate: f64, weight: f64, into: &mut [f64]) {
        if rate <= POISSON {
            let last = (rate + 12.0 * rate.sqrt() + 12.0) as u64;
            let mut p = weight * (-rate).exp();
            let mut cell = 0;
            for count in 0..=last {
                if self.starts.get(cell + 1) == Some(&count) {
                    cell += 1;
                }
                into[cell] += p;
                p *= rate / (count + 1) as f64;
            }
            return;
        }
        // Normal with continuity correction: a cell begins half a count below its first count.
        let sigma = rate.sqrt();
        let below = |border: f64| 0.5 * libm::erfc((rate - border) / (sigma * 2f64.sqrt()));
        let mut cell = self.of((rate - 9.0 * sigma).max(0.0) as u64);
        let mut left = 0.0;
        while left < 1.0 {
            let right = match self.starts.get(cell + 1) {
                Some(&start) if (start as f64) < rate + 9.0 * sigma => below(start as f64 - 0.5),
                _ => 1.0,
            };
            into[cell] += weight * (right - left);
            left = right;
            cell += 1;
        }
    }
}

/// Returns blocks of ranks as (number of ranks, mean of r^-θ).
fn rank_blocks(keys: u64, theta: f64) -> Vec<(f64, f64)> {
    let mut blocks = Vec::with_capacity(1024);
    let mut first = 1u64;
    while first <= keys {
        let len = if first <= 512 { 1 } else { first / 20 };
        let end = (first + len).min(keys + 1);
        let ranks = (end - first) as f64;
        let mean = if ranks == 1.0 {
            (first as f64).powf(-theta)
        } else {
            // The integral over [first − ½, end − ½], as in the midpoint rule.
            let (a, b) = (first as f64 - 0.5, end as f64 - 0.5);
            let q = 1.0 - theta;
            let integral = if q.abs() < 1e-9 {
                (b / a).ln()
            } else {
                a.powf(q) * (q * (b / a).ln()).exp_m1() / q
            };
            integral / ranks
        };
        blocks.push((ranks, mean));
        first = end;
    }
    blocks
}

/// Spreads `accesses` over `keys` ranks. Returns (number of ranks, rate).
fn rates(keys: u64, theta: f64, accesses: u64) -> Vec<(f64, f64)> {
    let mut blocks = rank_blocks(keys, theta);
    let total: f64 = blocks.iter().map(|(ranks, mean)| ranks * mean).sum();
    for (_, mean) in &mut blocks {
        *mean *= accesses as f64 / total;
    }
    blocks
}

/// Relative error of [`population`].
const RESOLUTION: f64 = 5e-4;

/// The upper end of the search for a population.
fn most_population(seen: u64) -> u64 {
    seen.saturating_mul(1 << 10)
}

/// Returns the number of keys for which `seen` of them are expected to be accessed.
fn population(seen: u64, theta: f64, accesses: u64) -> u64 {
    let expected = |keys: u64| -> f64 {
        rates(keys, theta, accesses)
            .iter()
            .map(|(ranks, rate)| ranks * -(-rate).exp_m1())
            .sum()
    };
    // If nearly every access is to a new key, no useful upper bound exists.
    let most = most_population(seen);
    let (mut low, mut high) = (seen, seen.saturating_mul(2));
    while high < most && expected(high) < seen as f64 {
        (low, high) = (high, high.saturating_mul(2));
    }
    while high - low > 1 + low / 2000 {
        let middle = low + (high - low) / 2;
        if expected(middle) < seen as f64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

struct Problem<'a> {
    observed: Observed<'a>,
    cells: Cells,
    /// Kept keys by cell.
    keys: Vec<f64>,
}

impl Problem<'_> {
    fn population(&self, theta: f64) -> u64 {
        let seen = &self.observed;
        if seen.closed {
            seen.keys
        } else {
            population(seen.keys, theta, seen.accesses)
        }
    }

    /// Returns P(cell) under θ, conditioned on an access unless all keys are known.
    fn law(&self, theta: f64) -> Vec<f64> {
        let keys = self.population(theta);
        let mut law = vec![0.0; self.cells.starts.len()];
        for (ranks, rate) in rates(keys, theta, self.observed.accesses) {
            self.cells.spread(rate, ranks / keys as f64, &mut law);
        }
        if !self.observed.closed {
            let seen = 1.0 - law[0];
            law[0] = 0.0;
            law.iter_mut().for_each(|p| *p /= seen);
        }
        law
    }

    fn likelihood(&self, theta: f64) -> f64 {
        let law = self.law(theta);
        let pairs = self.keys.iter().zip(&law);
        pairs
            .filter(|(keys, _)| **keys > 0.0)
            .map(|(keys, p)| keys * p.max(1e-300).ln())
            .sum()
    }

    fn ks(&self, theta: f64) -> f64 {
        let total: f64 = self.keys.iter().sum();
        let (mut difference, mut worst) = (0.0f64, 0.0f64);
        for (keys, p) in self.keys.iter().zip(self.law(theta)) {
            difference += keys / total - p;
            worst = worst.max(difference.abs());
        }
        worst
    }
}

/// Fits the exponent. Returns `None` if there are fewer than 2 keys or accesses, or if the
/// population is not known and no key was accessed twice.
pub(crate) fn zipf(observed: Observed<'_>) -> Option<Fit> {
    let (&max, _) = observed.frequencies.last_key_value()?;
    if observed.keys < 2 || observed.accesses < 2 || (max < 2 && !observed.closed) {
        return None;
    }
    let cells = Cells::new(u64::from(max));
    let mut keys = vec![0.0; cells.starts.len()];
    for (&count, &kept) in observed.frequencies {
        if count > 0 || observed.closed {
            keys[cells.of(u64::from(count))] += kept as f64;
        }
    }
    let problem = Problem {
        observed,
        cells,
        keys,
    };
    let theta = maximum(|theta| problem.likelihood(theta));
    let theta_error = standard_error(|theta| problem.likelihood(theta), theta);
    let population = problem.population(theta);
    let beside = [(theta - theta_error).max(0.0), theta + theta_error];
    let [low, high] = beside.map(|theta| problem.population(theta) as f64);
    Some(Fit {
        theta,
        theta_error,
        population,
        population_error: match problem.observed.closed {
            true => 0.0,
            // The search ended at its limit; the true number may be any larger one.
            false if population >= most_population(problem.observed.keys) => 1.0,
            false => ((high - low).abs() / (2.0 * population as f64)).max(RESOLUTION),
        },
        ks: problem.ks(theta),
    })
}

/// Returns `1 / sqrt(-f''(x))` of a log-likelihood at its maximum (from the observed information),
/// at most 1.
fn standard_error(f: impl Fn(f64) -> f64, maximum: f64) -> f64 {
    const STEP: f64 = 0.02;
    let x = maximum.max(STEP);
    let curvature = (2.0 * f(x) - f(x - STEP) - f(x + STEP)) / (STEP * STEP);
    if curvature > 1.0 {
        1.0 / curvature.sqrt()
    } else {
        1.0
    }
}

/// Returns the position of the maximum in [0, MAX_THETA]. Takes the best point of a coarse grid,
/// then searches around it by golden section.
fn maximum(f: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 0.1;
    let steps = (MAX_THETA / STEP) as u32;
    let best = (0..=steps)
        .map(|i| f64::from(i) * STEP)
        .map(|theta| (theta, f(theta)))
        .fold((0.0, f64::NEG_INFINITY), |best, next| {
            if next.1 > best.1 { next } else { best }
        });
    let (mut low, mut high) = ((best.0 - STEP).max(0.0), (best.0 + STEP).min(MAX_THETA));
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    while high - low > 1e-4 {
        if fa >= fb {
            high = b;
            (b, fb) = (a, fa);
            a = high - golden * (high - low);
            fa = f(a);
        } else {
            low = a;
            (a, fa) = (b, fb);
            b = low + golden * (high - low);
            fb = f(b);
        }
    }
    let middle = (low + high) / 2.0;
    // The border is a candidate too: uniform traces belong there.
    if f(0.0) >= f(middle) { 0.0 } else { middle }
}
