//! Closed forms for the write amplification `A` of a page-mapped FTL: one log of erase blocks,
//! single-page writes.
//!
//! `alpha = T/U`: physical pages of the log over logical pages in use (with TRIM, over their mean
//! number: Frankie, Hughes, Kurkoski 2012). `b`: pages of an erase block. Formulas and their
//! sources: DEVICES §1.2.
//!
//! | function | traffic | cleaning | source |
//! |---|---|---|---|
//! | [`fifo`] | uniform | oldest block | Robinson 1996; Menon 1995; Desnoyers 2012 |
//! | [`greedy`] | uniform | fewest valid pages | Bux and Iliadis 2010; Van Houdt 2013 |
//! | [`d_choices`] | uniform | best of `d` at random; `d = 1`: random | Van Houdt 2013 |
//! | [`random`] | uniform | random | Van Houdt 2013 |
//! | [`fifo_mixed`] | classes with different rates | oldest block | Desnoyers 2014 |
//!
//! All are exact for many blocks and infinite for `alpha <= 1`.

/// Steps of a bisection: enough to determine every bit of an `f64`.
const STEPS: u32 = 100;

/// FIFO cleaning, uniform writes. The oldest block's share of valid pages solves
/// `p = exp(-alpha (1 - p))`; `A = 1/(1 - p)`. O(1).
#[must_use]
pub fn fifo(alpha: f64) -> f64 {
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    // The other root is p = 1. Below 1/alpha there is only the root that is wanted.
    let p = root(0.0, 1.0 / alpha, |p| p - (-alpha * (1.0 - p)).exp());
    1.0 / (1.0 - p)
}

/// Random cleaning, uniform writes: `A = alpha / (alpha - 1)`. O(1).
#[must_use]
pub fn random(alpha: f64) -> f64 {
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    alpha / (alpha - 1.0)
}

/// Greedy cleaning, uniform writes, `b` pages a block: find `j` and `q` in `[0, 1)` with
/// `H_b - H_j + q/j = (b - j + q) alpha / b`; then `A = b / (b - j + q)`. O(b).
///
/// ```
/// use treering_sim::predict::ftl::{fifo, greedy, random};
///
/// // 7 % over-provisioning, erase blocks of 256 pages.
/// assert!(greedy(1.07, 256) < fifo(1.07) && fifo(1.07) < random(1.07));
/// ```
#[must_use]
pub fn greedy(alpha: f64, b: u32) -> f64 {
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    let pages = f64::from(b);
    let mut sum = 0.0;
    for j in (1..=b).rev() {
        // sum = H_b - H_j. For small b - j the left side is less than the right one; they cross
        // once.
        let level = f64::from(j);
        let slope = 1.0 / level - alpha / pages;
        let gap = (pages - level) * alpha / pages - sum;
        if slope > 0.0 && (0.0..slope).contains(&gap) {
            return pages / (pages - level + gap / slope);
        }
        sum += 1.0 / level;
    }
    1.0
}

/// The best of `d` random blocks, uniform writes, `b` pages a block.
///
/// Let `S_i` be the share of blocks with at least `i` valid pages. The fixed point of Van Houdt's
/// mean-field equations, summed from `i` to `b`, is `lambda i (S_i - S_{i+1}) = 1 - S_i^d` with
/// `S_{b+1} = 0`. The mean number of valid pages, the sum of `S_1..S_b`, must be `b / alpha`. That
/// sum falls as `lambda` grows, so bisection finds `lambda`, and each `S_i` follows from `S_{i+1}`.
/// Then `A = alpha / lambda`. O(b).
#[must_use]
pub fn d_choices(alpha: f64, b: u32, d: u32) -> f64 {
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    let power = i32::try_from(d.max(1)).unwrap_or(i32::MAX);
    let mean = |lambda: f64| -> f64 {
        let mut above = 0.0;
        let mut sum = 0.0;
        for i in (1..=b).rev() {
            let rate = lambda * f64::from(i);
            let share = root(above, 1.0, |s| rate * (s - above) + s.powi(power) - 1.0);
            sum += share;
            above = share;
        }
        sum
    };
    // A >= 1, so lambda <= alpha. A is below 10^6 for any drive with a spare block.
    let lambda = root(alpha * 1e-6, alpha, |lambda| {
        f64::from(b) / alpha - mean(lambda)
    });
    alpha / lambda
}

/// FIFO cleaning of one log with several `classes` of (share of pages, share of writes):
/// `A = sum r_i / (1 - p_i)`, `p_i = exp(-(r_i/f_i) alpha / A)`. Shares must sum to 1 and be
/// positive. O(classes).
#[must_use]
pub fn fifo_mixed(alpha: f64, classes: &[(f64, f64)]) -> f64 {
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    let programs = |a: f64| -> f64 {
        (classes.iter())
            .map(|(pages, writes)| writes / -(-(writes / pages) * alpha / a).exp_m1())
            .sum()
    };
    // The more the log writes, the sooner a block is cleaned again, so programs(a) / a falls.
    root(1.0, 1e9, |a| a - programs(a))
}

/// The zero of a function that is negative at `low` and positive at `high` and crosses once.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!(
            (found / expected - 1.0).abs() < within,
            "{found}, not {expected}"
        );
    }

    /// Values of the table in DEVICES §1.3, which were computed elsewhere to three decimals.
    #[test]
    fn uniform_writes_give_the_tabled_amplification() {
        let table = [
            (1.05, 8.090, 9.196, 10.259, 10.672),
            (1.07, 6.347, 7.010, 7.597, 7.817),
            (1.10, 4.899, 5.247, 5.562, 5.677),
            (1.20, 2.930, 3.053, 3.153, 3.188),
            (1.28, 2.330, 2.403, 2.461, 2.481),
            (1.50, 1.649, 1.681, 1.707, 1.716),
        ];
        for (alpha, b32, b64, b256, oldest) in table {
            close(greedy(alpha, 32), b32, 3e-4);
            close(greedy(alpha, 64), b64, 3e-4);
            close(greedy(alpha, 256), b256, 3e-4);
            close(fifo(alpha), oldest, 3e-4);
        }
        close(random(1.05), 21.0, 1e-9);
        close(random(1.28), 4.57, 1e-3);
    }

    #[test]
    fn one_choice_is_random_and_many_are_greedy() {
        for alpha in [1.05, 1.2, 1.5] {
            for b in [32, 256] {
                close(d_choices(alpha, b, 1), random(alpha), 1e-6);
                close(d_choices(alpha, b, 3000), greedy(alpha, b), 1e-2);
                assert!(d_choices(alpha, b, 2) < random(alpha));
                assert!(d_choices(alpha, b, 2) > d_choices(alpha, b, 10));
            }
        }
    }

    #[test]
    fn classes_with_the_same_rate_are_one_class() {
        for alpha in [1.07, 1.28] {
            close(fifo_mixed(alpha, &[(1.0, 1.0)]), fifo(alpha), 1e-6);
            let parts = [(0.3, 0.3), (0.7, 0.7)];
            close(fifo_mixed(alpha, &parts), fifo(alpha), 1e-6);
        }
    }

    #[test]
    fn without_spare_pages_there_is_no_end() {
        for a in [
            fifo(1.0),
            random(1.0),
            greedy(1.0, 64),
            d_choices(0.9, 64, 2),
            fifo_mixed(1.0, &[(1.0, 1.0)]),
        ] {
            assert!(a.is_infinite());
        }
    }
}
