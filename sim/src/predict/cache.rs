//! The page cache: which pages are resident, which are dirty, how many are written.
//!
//! *Model.* Accesses are independent (the Independent Reference Model): accesses to page `i` are a
//! Poisson process with `λ` accesses per operation, and an access is a write with probability `w`.
//! The clock hand visits a frame every `T` operations. `T` is the *rotation time*, the counterpart
//! of the characteristic time of Che, Tung and Wang, *Hierarchical Web Caching Systems*, IEEE JSAC
//! 2002; Fricker, Robert and Roberts justify the approximation in *A versatile and accurate
//! approximation for LRU cache performance*, ITC 2012.
//!
//! ```text
//! absent, Exp(λ)   |load, ref = 0        hand         hand         hand: not referenced
//! -----------------+----- T1 ------------+---- T -----+---- T -----+ evicted
//!                   in cache: an access sets ref; the hand clears it and passes on
//! ```
//!
//! With `e = exp(-λT)` a page survives the hand with probability `q = 1 - e`. So it stays a
//! geometric number of rotations, on average `T/e`. This is a renewal process with cycle
//! `1/λ + T/e`, and the page is resident a share `λT / (λT + e)` of the time. `T` is chosen so that
//! the expected number of resident pages equals the number of frames in use. The first rotation is
//! shorter than the others by half the time between two write-backs, because a frame that the hand
//! frees waits for a miss (`T1`).
//!
//! *Writes.* Let `δ = wλ`. An interval between two visits of the hand that saw an access saw no
//! write with probability `c = (exp(-δT) - e)/q`. Everything else is a sum of geometric series over
//! intervals. `Residence::clean_evictions` and `Residence::dirty_at_checkpoint` give these sums in
//! closed form, for checkpoints that write all dirty pages every `τ` operations. They are exact for
//! the model; its only simplification is that `T` is constant and the same for all pages.
//!
//! *Finite traces.* Rates come from counts in a trace of `n` operations. Seen from one of its own
//! accesses, a page with `a` accesses has `a - 1` others. So what happens after an access is
//! computed with the rate `(a - 1)/n` ([`PageClass::own_rate`]), what an outside observer sees with
//! `a/n`. Otherwise a page touched once would seem to have a chance of a hit.

use std::collections::BTreeMap;

/// A class of pages with equal rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageClass {
    /// Number of pages.
    pub pages: f64,
    /// Accesses per operation of each page.
    pub rate: f64,
    /// Accesses per operation of each page, as seen from one of its accesses.
    pub own_rate: f64,
    /// Share of writes among the accesses.
    pub write_share: f64,
}

/// Frames and thresholds of the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheShape {
    /// Page frames.
    pub frames: f64,
    /// Pages of a write-back step. Eviction runs when fewer frames than this are free and stops at
    /// twice as many.
    pub batch: f64,
}

impl CacheShape {
    /// The shape that a memory budget gives. A write-back step takes at most an eighth of the
    /// frames.
    #[must_use]
    pub fn new(cache_bytes: u64, page_size: usize, write_batch_pages: usize) -> Self {
        let frames = (cache_bytes / page_size as u64).max(1);
        let batch = (write_batch_pages as u64).min(frames / 8).max(1);
        CacheShape {
            frames: frames as f64,
            batch: batch as f64,
        }
    }

    /// Mean number of frames that hold a page. Free frames go from `2B` to `B - 1` between two
    /// write-backs.
    #[must_use]
    pub fn residents(&self) -> f64 {
        (self.frames - 1.5 * self.batch + 0.5).max(1.0)
    }

    /// Whether this many pages stay in cache forever: the free list never falls below `B`.
    #[must_use]
    pub fn holds_all(&self, pages: f64) -> bool {
        pages <= self.frames - self.batch
    }
}

/// The model's predictions for a cache. All rates are per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachePrediction {
    /// Rotation time of the hand in operations; infinite if everything fits.
    pub rotation_ops: f64,
    /// Share of page accesses that hit the cache.
    pub hit_ratio: f64,
    /// Cache misses per operation.
    pub misses: f64,
    /// Dirty pages written per operation because of eviction.
    pub evicted_dirty: f64,
    /// Number of dirty pages at a checkpoint.
    pub dirty_at_checkpoint: f64,
}

/// Solves the model of the clock for `classes`. A checkpoint writes all dirty pages every
/// `checkpoint_ops` operations (infinite: never).
#[must_use]
pub fn clock(classes: &[PageClass], shape: CacheShape, checkpoint_ops: f64) -> CachePrediction {
    let pages: f64 = classes.iter().map(|c| c.pages).sum();
    if shape.holds_all(pages) {
        return everything_fits(classes, checkpoint_ops);
    }
    let mut gap = 0.0;
    let mut rotation = 0.0;
    // The gap between load and hand depends on the miss rate, which depends on the rotation. The
    // iteration converges at once.
    for _ in 0..4 {
        rotation = solve_rotation(classes, shape.residents(), gap);
        let misses: f64 = classes
            .iter()
            .map(|c| c.pages * misses_of(c, rotation, gap))
            .sum();
        gap = (0.5 * (shape.batch + 1.0) / (misses * rotation)).min(0.5);
    }
    summarise(classes, rotation, gap, checkpoint_ops)
}

/// Misses per operation of one page.
fn misses_of(class: &PageClass, rotation: f64, gap: f64) -> f64 {
    class.rate * (1.0 - Residence::new(class.own_rate, class.write_share, rotation, gap).share())
}

fn summarise(
    classes: &[PageClass],
    rotation: f64,
    gap: f64,
    checkpoint_ops: f64,
) -> CachePrediction {
    let mut accesses = 0.0;
    let mut misses = 0.0;
    let mut evicted_dirty = 0.0;
    let mut dirty = 0.0;
    for c in classes {
        let own = Residence::new(c.own_rate, c.write_share, rotation, gap);
        let missed = c.pages * misses_of(c, rotation, gap);
        accesses += c.pages * c.rate;
        misses += missed;
        evicted_dirty += missed * (1.0 - own.clean_evictions(checkpoint_ops));
        let seen = Residence::new(c.rate, c.write_share, rotation, gap);
        dirty += c.pages * seen.dirty_at_checkpoint(checkpoint_ops);
    }
    CachePrediction {
        rotation_ops: rotation,
        hit_ratio: if accesses > 0.0 {
            1.0 - misses / accesses
        } else {
            1.0
        },
        misses,
        evicted_dirty,
        dirty_at_checkpoint: dirty,
    }
}

/// The prediction when all pages fit. Only checkpoints write, and a page is dirty if it was written
/// since the last one.
fn everything_fits(classes: &[PageClass], checkpoint_ops: f64) -> CachePrediction {
    let dirty = |c: &PageClass| c.pages * -(-c.rate * c.write_share * checkpoint_ops).exp_m1();
    let dirty_pages = classes
        .iter()
        .filter(|c| c.rate * c.write_share > 0.0)
        .map(dirty)
        .sum();
    CachePrediction {
        rotation_ops: f64::INFINITY,
        hit_ratio: 1.0,
        misses: 0.0,
        evicted_dirty: 0.0,
        dirty_at_checkpoint: dirty_pages,
    }
}

/// The contribution of one page of `class` to the sums of [`clock`], for a known rotation time.
pub(crate) fn one_page(class: &PageClass, rotation: f64, checkpoint_ops: f64) -> CachePrediction {
    let single = PageClass {
        pages: 1.0,
        ..*class
    };
    summarise(&[single], rotation, 0.0, checkpoint_ops)
}

/// The shortest time between two writes of a page of `class`, as a share of the mean. Computed from
/// the shifted exponential distribution with the same mean and variance.
///
/// ```text
/// a round    = in cache: T (1 + G), G geometric with s = 1 - e^(-λT), the chance that the hand
///              finds the page in use; then out: Exp(λ)
/// until dirty: a number of rounds, geometric with q, the share of rounds that dirty the page
/// share      = 1 - sd / mean
/// ```
///
/// Writes by checkpoints are a geometric number of periods apart: until a checkpoint finds the page
/// dirty. The gap between an eviction and a checkpoint has no lower bound.
#[must_use]
pub fn least_gap(class: &PageClass, rotation: f64, checkpoint_ops: f64) -> f64 {
    let writes = class.rate * class.write_share;
    if writes <= 0.0 {
        return 0.0;
    }
    // d is the share of checkpoints that find the page dirty; mean 1/d and variance (1 - d)/d²
    // periods.
    let periodic = 1.0 - (-0.5 * writes * checkpoint_ops).exp();
    if rotation.is_infinite() {
        return periodic;
    }
    let stays = (-class.rate * rotation).exp();
    let inside = rotation / stays;
    let outside = 1.0 / class.rate;
    let mean = inside + outside;
    let variance = inside * inside * (1.0 - stays) + outside * outside;
    let alone = one_page(class, rotation, checkpoint_ops);
    let dirty = (alone.evicted_dirty / alone.misses).clamp(1e-9, 1.0);
    let by_eviction = alone.evicted_dirty;
    let by_checkpoint = alone.dirty_at_checkpoint / checkpoint_ops;
    // Of n rounds: n variance + n² spread, with n = 1/q on average.
    let spread = (variance / dirty + mean * mean * (1.0 - dirty) / (dirty * dirty)).sqrt();
    let share = (1.0 - spread * dirty / mean).clamp(0.0, 1.0);
    let evicted = by_eviction / (by_eviction + by_checkpoint).max(1e-300);
    share * evicted.powi(2) + periodic * (1.0 - evicted).powi(2)
}

/// Finds the `T` at which `residents(T)` equals the frames in use, by bisection on its logarithm.
fn solve_rotation(classes: &[PageClass], residents: f64, gap: f64) -> f64 {
    let resident = |rotation: f64| -> f64 {
        let share = |c: &PageClass| Residence::new(c.rate, c.write_share, rotation, gap).share();
        classes.iter().map(|c| c.pages * share(c)).sum()
    };
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while resident(high) < residents && high < 1e18 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..48 {
        let middle = 0.5 * (low + high);
        if resident(middle) < residents {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// One page in a cache whose hand visits every `rotation` operations.
#[derive(Clone, Copy, Debug)]
struct Residence {
    rate: f64,
    write_share: f64,
    rotation: f64,
    /// Share of a rotation by which the first one is shorter.
    gap: f64,
    /// `exp(-λT)`: probability that the hand finds the page unreferenced.
    unseen: f64,
    /// `x = q c = exp(-δT) - exp(-λT)`: probability that it survives the hand and was not written.
    read_only: f64,
}

impl Residence {
    fn new(rate: f64, write_share: f64, rotation: f64, gap: f64) -> Residence {
        let unseen = (-rate * rotation).exp();
        let read_only = (-rate * write_share * rotation).exp() - unseen;
        Residence {
            rate,
            write_share,
            rotation,
            gap,
            unseen,
            read_only: read_only.max(0.0),
        }
    }

    /// Share of time in cache, `E / (1/λ + E)` with `E = T1 + (1 - exp(-λ T1)) T / e`. Numerator
    /// and denominator are multiplied by `λ e`.
    fn share(&self) -> f64 {
        let first = self.rate * self.rotation * (1.0 - self.gap);
        let stay = first * self.unseen + -(-first).exp_m1() * self.rate * self.rotation;
        if stay == 0.0 {
            0.0
        } else {
            stay / (self.unseen + stay)
        }
    }

    fn write_rate(&self) -> f64 {
        self.rate * self.write_share
    }

    /// `integral of exp(-δs) from 0 to t`.
    fn quiet(&self, t: f64) -> f64 {
        let delta = self.write_rate();
        if delta * t < 1e-12 {
            t
        } else {
            -(-delta * t).exp_m1() / delta
        }
    }

    /// Probability that an evicted page is clean, with a checkpoint every `period` operations.
    ///
    /// Going backwards from the eviction: one interval without an access, `k - 1` with accesses,
    /// the load. The time `u` since the last checkpoint is uniform on `(0, period)`. The page is
    /// clean if it was not written since. With `u` in `[jT, (j+1)T)` and `s = u - jT`:
    ///
    /// `clean = (1-w) e (1 - x^j)/(1 - x) + x^(j-1) (exp(-δs) - e)` for `j >= 1`, and 1 for
    /// `j = 0`; without checkpoints `(1-w) e / (1-x)`.
    fn clean_evictions(&self, period: f64) -> f64 {
        let (e, x, t) = (self.unseen, self.read_only, self.rotation);
        let loaded_clean = (1.0 - self.write_share) * e / (1.0 - x).max(1e-300);
        if period.is_infinite() {
            return loaded_clean.min(1.0);
        }
        // The load is nearer to the eviction than a whole number of rotations, by `gap T`.
        let loaded_dirty = self.write_share * e / (1.0 - x).max(1e-300);
        if period <= t {
            let late = (period - t * (1.0 - self.gap)).max(0.0);
            return (1.0 - self.write_share * e * late / period).clamp(0.0, 1.0);
        }
        let whole = (period / t).floor();
        let rest = period - whole * t;
        // Sum of x^(j-1) over j = 1..whole-1.
        let powers = geometric(x, whole - 1.0);
        let mut clean = t;
        clean += t * loaded_clean * ((whole - 1.0) - x * powers);
        clean += powers * (self.quiet(t) - e * t).max(0.0);
        clean += rest * loaded_clean * (1.0 - x.powf(whole));
        clean += x.powf(whole - 1.0) * (self.quiet(rest) - e * rest).max(0.0);
        clean -= self.gap * t * loaded_dirty * (1.0 - x.powf(whole));
        (clean / period).clamp(0.0, 1.0)
    }

    /// Probability that a page is in cache and dirty just before a checkpoint, which comes `period`
    /// after the last one.
    ///
    /// The hand visited the page `s` ago (density `1/(T + e/λ)` while resident). Let
    /// `J = floor(period/T)`, `r = period - JT`, and `j = J` for `s < r`, otherwise `J - 1`. The
    /// page is clean if it was loaded within the period and not written since, or loaded earlier
    /// and not written within the period:
    ///
    /// `e (1-w) exp(-δs) (1 - x^(j+1))/(1-x) + x^j (exp(-δ(s + s')) - e exp(-δs))`, where `s + s' =
    /// period - jT`.
    fn dirty_at_checkpoint(&self, period: f64) -> f64 {
        if self.rate <= 0.0 || self.write_share <= 0.0 {
            return 0.0;
        }
        let (e, x, t) = (self.unseen, self.read_only, self.rotation);
        let delta = self.write_rate();
        let loaded_clean = (1.0 - self.write_share) * e / (1.0 - x).max(1e-300);
        let clean = if period.is_infinite() {
            loaded_clean * self.quiet(t)
        } else if period <= t {
            let r = period;
            let near = self.quiet(r);
            let still = (-delta * r).exp();
            loaded_clean * near * (1.0 - x) + (r * still - e * near) + (t - r) * still
        } else {
            let whole = (period / t).floor();
            let r = period - whole * t;
            let (near, far) = (self.quiet(r), self.quiet(t) - self.quiet(r));
            let (old, older) = (x.powf(whole - 1.0), x.powf(whole));
            loaded_clean * (near * (1.0 - older * x) + far * (1.0 - older))
                + older * (r * (-delta * r).exp() - e * near)
                + old * ((t - r) * (-delta * (r + t)).exp() - e * far)
        };
        // So far all rotations are whole. But the first one is shorter, and fewer pages survive it.
        let first = t * (1.0 - self.gap);
        let survive = -(-self.rate * first).exp_m1();
        let ratio = if e < 1.0 {
            survive / (1.0 - e)
        } else {
            1.0 - self.gap
        };
        let late = (t - clean - e * self.dirty_time(t, period)).max(0.0);
        let dirty = e * self.dirty_time(first, period) + ratio * late;
        (dirty / (e / self.rate + e * first + survive * t)).clamp(0.0, 1.0)
    }

    /// Mean time for which a page is dirty within the first `until` operations of a whole first
    /// rotation.
    fn dirty_time(&self, until: f64, period: f64) -> f64 {
        let young = until.min(period);
        let old = until - young;
        let written = if old > 0.0 {
            -(-self.write_rate() * period).exp_m1()
        } else {
            0.0
        };
        young - (1.0 - self.write_share) * self.quiet(young) + old * written
    }
}

/// Sum of the geometric series `1 + x + ... + x^(n-1)`.
fn geometric(x: f64, n: f64) -> f64 {
    if 1.0 - x < 1e-9 {
        n
    } else {
        (1.0 - x.powf(n)) / (1.0 - x)
    }
}

/// Groups pages into classes of similar rate (within 1 %) and write share (within 1/64).
#[derive(Debug)]
pub struct ClassBuilder {
    ops: f64,
    bins: BTreeMap<(i32, u32), (f64, f64, f64)>,
}

impl ClassBuilder {
    /// A builder for counts taken over `ops` operations.
    #[must_use]
    pub fn new(ops: f64) -> Self {
        ClassBuilder {
            ops: ops.max(1.0),
            bins: BTreeMap::new(),
        }
    }

    /// Adds `pages` pages that each saw this many reads and writes.
    pub fn add(&mut self, pages: f64, reads: f64, writes: f64) {
        let accesses = reads + writes;
        if accesses <= 0.0 {
            return;
        }
        let share = (64.0 * writes / accesses) as u32;
        let bin = if accesses < 64.0 {
            accesses as i32
        } else {
            (100.0 * accesses.ln()) as i32
        };
        let sums = self.bins.entry((bin, share)).or_default();
        sums.0 += pages;
        sums.1 += pages * accesses;
        sums.2 += pages * writes;
    }

    /// The classes.
    #[must_use]
    pub fn finish(self) -> Vec<PageClass> {
        let class = |(pages, accesses, writes): (f64, f64, f64)| PageClass {
            pages,
            rate: accesses / pages / self.ops,
            own_rate: (accesses / pages - 1.0).max(0.0) / self.ops,
            write_share: writes / accesses,
        };
        self.bins.values().map(|&sums| class(sums)).collect()
    }
}
