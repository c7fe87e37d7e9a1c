//! Plays the flash of a drive in miniature, to predict its garbage collection under any stream of
//! block writes.
//!
//! ```text
//! writes of the host ──hash──▶ 1 block in k ──▶ miniature 0: the drive's FTL, every erase block
//!        │                     another      ──▶ miniature 1   with a k-th of its pages
//!        │                     …                              (their spread: the standard error)
//!        └─ rewritten soon ──▶ 1 write in k: a page that is invalid at once, in each miniature
//! ```
//!
//! The closed forms of [`super::device`] take writes for independent draws. Real writes are not:
//! neighbours are written together and die together, and popularity moves. A miniature simulation
//! (Waldspurger, Saemundsson, Ahmad, Park: *Cache Modeling and Optimization using Miniature
//! Simulations*, USENIX ATC'17) needs no such assumption. It plays the real policy on a hashed
//! sample of the blocks, with all sizes scaled down by the sampling rate `1/k`.
//!
//! - **Scale.** A miniature has `1/k` of the logical blocks and of the pages of an erase block, and
//!   as many erase blocks as the drive. So each erase block covers the same stretch of time.
//! - **Strata.** Each of `k` consecutive LBAs is in another sample. A sequential run gives every
//!   miniature the same number of writes.
//! - **Hot blocks.** A sample of blocks either has a very hot block or has not. So a write that
//!   overwrites a page younger than [`FlashShape`]'s `T/128` writes is sampled as a write, not as a
//!   block: what it replaces is invalid before garbage collection could meet it.
//! - **Small erase blocks.** Most policies gain from small blocks, whose valid counts scatter more.
//!   Miniatures with half of a miniature's pages show how much; module `larger` extrapolates.
//!
//! The cost is that of the FTL alone on `1/k` of the writes for each miniature, and a hash for each
//! write. The spread of the miniatures gives a standard error.
//!
//! Tests compare with the whole drive: with `k` = 4 and 28 % over-provisioning, the total is within
//! 3 % and two standard errors for each policy and stream of `tests/support/streams.rs`, except one
//! case of 8 % (greedy cleaning with separate frontiers, half of all writes to eight blocks). The
//! example `flash_miniature` prints errors by stream and policy. The standard error does not show
//! two kinds of bias, both from the size of erase blocks:
//!
//! - Where greedy or cost-benefit cleaning depends on how data of different age separate by chance:
//!   6 % for a circular log among uniform writes with 7 % over-provisioning (40 % for
//!   cost-benefit).
//! - In the first round of garbage collection: gc is off by up to 25 % while it is a small part of
//!   the total, and by 15 % in a measured part of less than a tenth of the flash.

mod larger;
mod miniature;
mod recent;
mod shape;

pub use miniature::{Miniature, Played};
pub use shape::{Extents, FlashShape};

use miniature::stratum_of;
use recent::Recent;

use super::device::Before;
use crate::ssd::GeometryError;

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Erase blocks of about 32 pages.
    Fast,
    /// Erase blocks of about 64 pages.
    Full,
}

/// Smallest erase block of a miniature of a drive that has larger ones.
const LEAST_PAGES: u32 = 8;
/// Maximum number of miniatures.
const MOST_REPLICAS: u32 = 4;

impl Effort {
    /// How many blocks there are for one that is sampled: `k`, a power of two.
    #[must_use]
    pub fn sample(self, shape: &FlashShape) -> u32 {
        let pages = shape.pages_per_block;
        let target = match self {
            Effort::Fast => 32,
            Effort::Full => 64,
        };
        let wanted = (pages / target).max(1);
        let least = match pages {
            p if p >= 4 * LEAST_PAGES => 4,
            p if p >= 8 => 2,
            _ => 1,
        };
        1 << wanted.max(least).ilog2()
    }
}

/// What a drive is predicted to do in the measured part of a stream of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Bytes programmed for the host: exact.
    pub host_bytes: u64,
    /// Bytes moved by garbage collection per byte programmed for the host.
    pub gc_per_host: f64,
    /// Standard error of `gc_per_host`, from the spread of the miniatures.
    pub standard_error: f64,
    /// Flash bytes in use, averaged over the host's writes.
    pub in_use_bytes: f64,
    /// Erase blocks erased.
    pub erases: f64,
    /// Whether garbage collection ran.
    pub gc_reached: bool,
    /// Pages of an erase block of the miniatures; `None` if the whole drive is played.
    pub sampled_pages: Option<u32>,
}

impl Forecast {
    /// Bytes moved by garbage collection.
    #[must_use]
    pub fn gc_bytes(&self) -> f64 {
        self.gc_per_host * self.host_bytes as f64
    }
}

/// Several miniatures of one drive, on disjoint samples of the same stream.
///
/// ```
/// use treering_sim::drive::SimDrive;
/// use treering_sim::predict::Before;
/// use treering_sim::predict::flash::{Effort, Flash};
/// use treering_sim::ssd::{SimSsd, TimingMode, builtin};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (_, profile) = builtin("ssd").expect("a built-in profile");
/// let drive = SimSsd::new(&profile, 100_000, TimingMode::Counting, 0)?;
/// let shape = drive.params().flash.expect("a drive with flash");
/// let mut flash = Flash::new(&shape, Effort::Fast, 1, Before::InOrder)?;
/// for lba in 0..100_000 {
///     flash.write(lba, 4096, 1);
/// }
/// let forecast = flash.forecast();
/// assert_eq!(forecast.host_bytes, 100_000 * 4096);
/// assert!(forecast.gc_reached && forecast.gc_per_host == 0.0, "written in order, dies in order");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Flash {
    shape: FlashShape,
    shift: u32,
    seed: u64,
    miniatures: Vec<Miniature>,
    /// Miniatures of half the size, to see how the size of erase blocks matters.
    coarse: Vec<Miniature>,
    recent: Recent,
    /// Writes that were sampled as writes, not as blocks.
    rewrites: u64,
    host_bytes: u64,
}

impl Flash {
    /// Miniatures of a drive in the state `before`.
    ///
    /// # Errors
    /// [`GeometryError`] if there is no such drive.
    pub fn new(
        shape: &FlashShape,
        effort: Effort,
        seed: u64,
        before: Before,
    ) -> Result<Flash, GeometryError> {
        let mut sample = effort.sample(shape);
        loop {
            match Flash::sampled(shape, sample, seed, before) {
                // A drive that is almost full leaves a small miniature no room.
                Err(_) if sample > 1 => sample /= 2,
                done => return done,
            }
        }
    }

    /// Miniatures that each sample one block in `sample`, a power of two.
    ///
    /// # Errors
    /// [`GeometryError`] if the drive is too small for this sample.
    pub fn sampled(
        shape: &FlashShape,
        sample: u32,
        seed: u64,
        before: Before,
    ) -> Result<Flash, GeometryError> {
        let replicas = (sample / 2).clamp(2.min(sample), MOST_REPLICAS);
        let miniature = |stratum| Miniature::new(shape, sample, (seed, stratum), before);
        let halves = match larger::depends_on_size(shape.policy) && sample > 1 {
            true => 0..replicas,
            false => 0..0,
        };
        // A drive that is almost full may have no room for smaller miniatures.
        let half = |stratum| Miniature::new(shape, 2 * sample, (seed, stratum), before);
        Ok(Flash {
            shape: *shape,
            shift: sample.trailing_zeros(),
            seed,
            miniatures: (0..replicas).map(miniature).collect::<Result<_, _>>()?,
            coarse: halves
                .map(half)
                .collect::<Result<_, _>>()
                .unwrap_or_default(),
            recent: Recent::new(shape, sample),
            rewrites: 0,
            host_bytes: 0,
        })
    }

    /// The host writes a block. `payload` is its compressed size, 0 for an all-zero block; drives
    /// that do not compress ignore it.
    #[inline]
    pub fn write(&mut self, lba: u64, payload: u16, class: u8) {
        let (stored, seed) = (self.shape.stored(payload), self.seed);
        self.host_bytes += u64::from(stored);
        if stored > 0 && self.recent.is_rewritten(lba) {
            self.rewrites += 1;
            let rewrites = self.rewrites;
            for (shift, sampled) in self.sizes() {
                let turn = rewrites & ((1 << shift) - 1);
                if let Some(miniature) = sampled.get_mut(turn as usize) {
                    miniature.waste(stored);
                }
            }
            return;
        }
        for (shift, sampled) in self.sizes() {
            if let Some(miniature) = sampled.get_mut(stratum_of(lba, shift, seed) as usize) {
                miniature.place(lba, stored, class);
            }
        }
    }

    /// The host trims `blocks` blocks.
    pub fn trim(&mut self, lba: u64, blocks: u64) {
        for lba in lba..lba + blocks {
            self.recent.forget(lba);
            let seed = self.seed;
            for (shift, sampled) in self.sizes() {
                if let Some(miniature) = sampled.get_mut(stratum_of(lba, shift, seed) as usize) {
                    miniature.remove(lba);
                }
            }
        }
    }

    /// The miniatures of both sizes, with log2 of their sample.
    #[inline]
    fn sizes(&mut self) -> [(u32, &mut [Miniature]); 2] {
        [
            (self.shift, &mut self.miniatures),
            (self.shift + 1, &mut self.coarse),
        ]
    }

    /// Begins the measured part: what was counted until now is forgotten.
    pub fn begin_measured(&mut self) {
        self.host_bytes = 0;
        for (_, sampled) in self.sizes() {
            sampled.iter_mut().for_each(Miniature::begin_measured);
        }
    }

    /// Number of blocks for one that a miniature samples.
    #[must_use]
    pub fn sample(&self) -> u32 {
        1 << self.shift
    }

    /// Number of miniatures.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.miniatures.len()
    }

    /// The prediction for the measured part so far.
    #[must_use]
    pub fn forecast(&self) -> Forecast {
        let fine = Sample::of(&self.miniatures);
        let coarse = Sample::of(&self.coarse);
        let scale = f64::from(self.sample());
        let w = match self.coarse.is_empty() {
            true => 0.0,
            false => {
                let (found, coarse) = (fine.gc_per_host, coarse.gc_per_host);
                larger::weight(&self.shape, self.sample(), found, coarse)
            }
        };
        let error = f64::hypot((1.0 + w) * fine.standard_error, w * coarse.standard_error);
        Forecast {
            host_bytes: self.host_bytes,
            gc_per_host: fine.gc_per_host + w * (fine.gc_per_host - coarse.gc_per_host),
            standard_error: error,
            in_use_bytes: scale * fine.in_use_bytes,
            erases: fine.erases,
            gc_reached: fine.erases > 0.0,
            sampled_pages: (self.shift > 0).then_some(self.shape.pages_per_block >> self.shift),
        }
    }
}

/// What several miniatures of the same size did.
struct Sample {
    gc_per_host: f64,
    standard_error: f64,
    in_use_bytes: f64,
    erases: f64,
}

impl Sample {
    /// The ratio of sums, and its standard error (Cochran, *Sampling Techniques*, 1977, 2.11).
    fn of(miniatures: &[Miniature]) -> Sample {
        let played: Vec<Played> = miniatures.iter().map(Miniature::played).collect();
        let n = (played.len() as f64).max(1.0);
        let mean = |of: fn(&Played) -> f64| played.iter().map(of).sum::<f64>() / n;
        let host = mean(|p| p.host_bytes as f64).max(1.0);
        let gc_per_host = mean(|p| p.gc_bytes as f64) / host;
        let squares = played.iter().map(|p| {
            let off = p.gc_bytes as f64 - gc_per_host * p.host_bytes as f64;
            off * off
        });
        let variance = squares.sum::<f64>() / (n * (n - 1.0).max(1.0));
        Sample {
            gc_per_host,
            standard_error: variance.sqrt() / host,
            in_use_bytes: mean(|p| p.in_use_bytes),
            erases: mean(|p| p.erases as f64),
        }
    }
}
