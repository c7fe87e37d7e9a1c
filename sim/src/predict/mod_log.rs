//! The modification log of a page: how Δ grows from one write-back to the next, and when the whole
//! page is written.
//!
//! ```text
//! |Δ|  T ┤        ┌─┐        whole page written: Δ = ∅
//!        │     ┌──┘ │     ┌──
//!        │  ┌──┘    │  ┌──┘        a step: segments that a write-back newly dirties
//!      0 ┼──┘       └──┘
//! ```
//!
//! This is a *renewal* process (B⁻-tree §3.2, eq. (3)): its renewals are the writes of the whole
//! page, its state is the number `d` of distinct dirty segments. Records lie in `k` equally likely
//! segments of Ds bytes. An update rewrites bytes of one or more of them; a segment drawn is new
//! with probability `(k - d)/k`. A write-back follows one update or more. Let `N_d` be the mean
//! number of write-backs within a cycle that leave `d` dirty segments, where `d` goes from 1 to the
//! last number that fits the log block. Then
//!
//! ```text
//! N_d (1 - P_dd) = P_0d + sum over 0 < e < d of N_e P_ed                              (1)
//! whole share = 1 / (1 + sum N_d)                                                      (2)
//! β = Ds sum d N_d / (l_pg (1 + sum N_d))                  eq. (4) of the paper        (3)
//! ```
//!
//! Finite runs have not reached the limit yet. So the state is advanced through the write-backs
//! that a page of this trace sees, from Δ = ∅ after the load on, and averaged over those of the
//! measured part. The number of write-backs in the measured part is known. The number before it is
//! random, because updates of a page come at random. One update starts the wait for a write-back,
//! which gathers `u - 1` others on average. So if `t` updates are expected,
//! ```text
//! P(n write-backs or more) = P(Poisson(t - n (u - 1)) >= n)                            (4)
//! ```
//!
//! If all pages had the same number, log blocks that began empty together would be written whole
//! together, in waves that do not last in a real store.

use treering_engine::{BLOCK_SIZE, ModLog, ResetRule};

/// After this many write-backs, the limit is taken for a page's state.
const LIMIT: usize = 400;

/// Bytes of a log block before the vector f.
const FIELDS: usize = 64;

/// How often and where a page is updated.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    /// Effective number of segments that records lie in.
    pub segments: f64,
    /// Shares of updates that rewrite bytes of 1, 2, ... segments; they add up to 1.
    pub touched: Vec<f64>,
    /// Mean number of updates that one write-back writes, at least 1.
    pub updates: f64,
    /// Mean number of write-backs between the load and the measured part.
    pub before: f64,
    /// Write-backs in the measured part; 0 for a page that is never written there.
    pub during: f64,
}

/// The state of the log, averaged over the write-backs of the measured part.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Share of write-backs that write the page whole.
    pub whole_share: f64,
    /// Share of write-backs that leave 0, 1, 2, ... segments in the log block; 0 means that the
    /// whole page was written.
    pub by_segments: Vec<f64>,
    /// Mean number of segments in the log block when the run ends.
    pub last: f64,
}

/// Maximum number of segments that the log block takes.
#[must_use]
pub fn most_segments(rule: &ModLog, page_size: usize) -> usize {
    let (threshold, segment) = (rule.threshold as usize, rule.segment as usize);
    let by_rule = match rule.reset {
        ResetRule::AtThreshold => threshold.div_ceil(segment) - 1,
        ResetRule::AboveThreshold => threshold / segment,
    };
    let vector = page_size.div_ceil(segment).div_ceil(8);
    by_rule.min((BLOCK_SIZE - FIELDS - vector) / segment)
}

/// Advances a page's state through its write-backs.
#[must_use]
pub fn play(rule: &ModLog, page_size: usize, visits: &Visits) -> Growth {
    let most = most_segments(rule, page_size);
    let step = write_back(most, visits);
    let mut state = vec![0.0; most + 1];
    state[0] = 1.0;
    let limit = limit(&step);
    let mut sum = vec![0.0; most + 1];
    // P(this many write-backs or more).
    let mut reached = 1.0;
    for n in 1..=LIMIT {
        let more = at_least(n, visits);
        weigh(&mut sum, &state, reached - more);
        reached = more;
        if reached < 1e-9 {
            break;
        }
        state = advance(&step, &state);
    }
    weigh(&mut sum, &limit, reached);
    let mut state = sum;
    let mut by_segments = vec![0.0; most + 1];
    let mut left = visits.during;
    if left > LIMIT as f64 {
        by_segments.clone_from(&limit);
        state = limit;
        left = 0.0;
    }
    while left > 0.0 {
        // A fractional last step: the share of pages that have one more write-back.
        let share = left.min(1.0);
        let next = advance(&step, &state);
        weigh(&mut by_segments, &next, share / visits.during);
        state.iter_mut().for_each(|p| *p *= 1.0 - share);
        weigh(&mut state, &next, share);
        left -= share;
    }
    Growth {
        whole_share: by_segments[0],
        last: (0..).zip(&state).map(|(d, p)| f64::from(d) * p).sum(),
        by_segments,
    }
}

/// Equation (4): the probability of `n` write-backs or more before the measured part.
fn at_least(n: usize, visits: &Visits) -> f64 {
    let n = n as f64;
    let mean = visits
        .updates
        .mul_add(visits.before, -n * (visits.updates - 1.0));
    if mean <= 0.0 {
        return 0.0;
    }
    // At 20 standard deviations the rest is negligible.
    if mean > n + 20.0 * mean.sqrt() {
        return 1.0;
    }
    let (mut term, mut fewer) = (-mean, 0.0);
    let mut k = 0.0;
    while k < n {
        fewer += term.exp();
        k += 1.0;
        term += (mean / k).ln();
    }
    (1.0 - fewer).clamp(0.0, 1.0)
}

/// `step[d][e]`: probability that a write-back takes the page from `d` dirty segments to `e`. More
/// than fit the log block become 0.
fn write_back(most: usize, visits: &Visits) -> Vec<Vec<f64>> {
    let update = one_update(most, visits);
    let over = most + 1;
    // One update, and a Poisson number of others.
    let more = (visits.updates - 1.0).max(0.0);
    let mut weight = (-more).exp();
    let mut left = 1.0 - weight;
    let mut power = update.clone();
    let mut sum: Vec<Vec<f64>> = scaled(&power, weight);
    for n in 1..=LIMIT {
        if left < 1e-9 {
            break;
        }
        power = product(&power, &update);
        weight *= more / n as f64;
        left -= weight;
        add(&mut sum, &power, weight);
    }
    // The remaining probability, of very many updates.
    add(&mut sum, &power, left.max(0.0));
    sum.truncate(over);
    for row in &mut sum {
        let whole = row.pop().unwrap_or(0.0);
        row[0] += whole;
    }
    sum
}

/// The transition of one update. The last state means "too many".
fn one_update(most: usize, visits: &Visits) -> Vec<Vec<f64>> {
    let over = most + 1;
    let k = visits.segments.max(1.0);
    let mut rows = vec![vec![0.0; over + 1]; over + 1];
    rows[over][over] = 1.0;
    for (d, row) in rows.iter_mut().enumerate().take(over) {
        for (touched, share) in (1..).zip(&visits.touched) {
            let mut new = vec![0.0; touched + 1];
            new[0] = 1.0;
            for draw in 0..touched {
                for have in (0..=draw).rev() {
                    let free = (k - (d + have) as f64).max(0.0);
                    let fresh = (free / (k - draw as f64).max(1.0)).min(1.0);
                    new[have + 1] += new[have] * fresh;
                    new[have] *= 1.0 - fresh;
                }
            }
            for (n, p) in new.iter().enumerate() {
                row[(d + n).min(over)] += share * p;
            }
        }
    }
    rows
}

fn scaled(matrix: &[Vec<f64>], by: f64) -> Vec<Vec<f64>> {
    let row = |row: &Vec<f64>| row.iter().map(|p| p * by).collect();
    matrix.iter().map(row).collect()
}

fn add(sum: &mut [Vec<f64>], matrix: &[Vec<f64>], by: f64) {
    for (to, from) in sum.iter_mut().flatten().zip(matrix.iter().flatten()) {
        *to += by * from;
    }
}

/// Multiplies two matrices, which are upper triangular because states only grow.
fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = a.len();
    let mut c = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in i..n {
            for l in j..n {
                c[i][l] += a[i][j] * b[j][l];
            }
        }
    }
    c
}

fn weigh(sum: &mut [f64], state: &[f64], by: f64) {
    for (to, p) in sum.iter_mut().zip(state) {
        *to += by * p;
    }
}

fn advance(step: &[Vec<f64>], state: &[f64]) -> Vec<f64> {
    let mut next = vec![0.0; state.len()];
    for (p, row) in state.iter().zip(step) {
        for (to, q) in next.iter_mut().zip(row) {
            *to += p * q;
        }
    }
    next
}

/// Shares of write-backs in the limit: equations (1) and (2).
fn limit(step: &[Vec<f64>]) -> Vec<f64> {
    let mut visits = vec![1.0; step.len()];
    for d in 1..step.len() {
        let reached: f64 = (0..d).map(|e| visits[e] * step[e][d]).sum();
        visits[d] = reached / (1.0 - step[d][d]).max(1e-9);
    }
    let cycle: f64 = visits.iter().sum();
    visits.iter().map(|n| n / cycle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(segment: u32, threshold: u32) -> ModLog {
        ModLog {
            threshold,
            segment,
            reset: ResetRule::AtThreshold,
        }
    }

    /// β for records of one byte that fill the page, with one update per write-back: the paper's
    /// Table 2.
    fn beta(page: usize, rule: &ModLog) -> f64 {
        let visits = Visits {
            segments: page as f64 / f64::from(rule.segment),
            touched: vec![1.0],
            updates: 1.0,
            before: 1e9,
            during: 1e9,
        };
        let growth = play(rule, page, &visits);
        100.0 * growth.last * f64::from(rule.segment) / page as f64
    }

    #[test]
    fn beta_is_that_of_table_2() {
        let table = [
            (8192, 128, [27.0, 12.4, 5.6]),
            (8192, 256, [26.3, 11.5, 4.8]),
            (16_384, 128, [12.7, 6.0, 2.8]),
            (16_384, 256, [12.3, 5.6, 2.3]),
        ];
        for (page, segment, cells) in table {
            for (threshold, cell) in [4096, 2048, 1024].into_iter().zip(cells) {
                let found = beta(page, &rule(segment, threshold));
                assert!(
                    (found - cell).abs() < 0.5,
                    "{page}, {segment}, {threshold}: {found} %, not {cell} %"
                );
            }
        }
    }

    #[test]
    fn a_short_run_is_not_in_the_limit() {
        let visits = |during| Visits {
            segments: 64.0,
            touched: vec![1.0],
            updates: 1.0,
            before: 0.0,
            during,
        };
        let rule = rule(128, 2048);
        assert_eq!(play(&rule, 8192, &visits(5.0)).whole_share, 0.0);
        assert_eq!(play(&rule, 8192, &visits(0.0)).last, 0.0);
        let long = play(&rule, 8192, &visits(300.0));
        let limit = play(&rule, 8192, &visits(1e6));
        assert!((long.whole_share - limit.whole_share).abs() < 0.005);
    }

    /// Plays the renewal process by hand: the mean number of write-backs agrees, and it varies less
    /// when each gathers several updates.
    #[test]
    fn write_backs_before_are_a_random_number_with_their_mean() {
        for (updates, before) in [(1.0, 17.0), (2.5, 17.0), (8.0, 40.0)] {
            let visits = Visits {
                segments: 64.0,
                touched: vec![1.0],
                updates,
                before,
                during: 1.0,
            };
            let tails: Vec<f64> = (1..LIMIT).map(|n| at_least(n, &visits)).collect();
            let mean: f64 = tails.iter().sum();
            let square: f64 = (1..)
                .zip(&tails)
                .map(|(n, p)| f64::from(2 * n - 1) * p)
                .sum();
            let deviation = (square - mean * mean).sqrt();
            assert!((mean - before).abs() < 0.6, "{updates}: {mean}");
            let expected = (before / updates).sqrt() / updates.sqrt();
            assert!(
                (deviation - expected).abs() < 0.15 * expected + 0.1,
                "{updates}: {deviation}, not {expected}"
            );
        }
    }

    #[test]
    fn shares_add_up_whatever_an_update_touches() {
        let cases: [(&[f64], f64); 4] = [
            (&[1.0], 1.0),
            (&[0.4, 0.3, 0.3], 1.7),
            (&[0.5, 0.5], 40.0),
            (&[0.5, 0.5], 1e6),
        ];
        for (touched, updates) in cases {
            let visits = Visits {
                segments: 40.0,
                touched: touched.to_vec(),
                updates,
                before: 3.0,
                during: 50.0,
            };
            let growth = play(&rule(128, 2048), 8192, &visits);
            let sum: f64 = growth.by_segments.iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "{touched:?}, {updates}: {sum}");
        }
    }
}
