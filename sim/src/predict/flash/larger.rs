//! From the small erase blocks of a miniature to those of the drive.
//!
//! Policies that look for few valid pages gain from small erase blocks, whose counts scatter more.
//! Under uniform writes, greedy cleaning with `b` pages per block writes `G(alpha, b)`
//! ([`ftl::greedy`]). Other writes gain less: where neighbours die together, counts scatter anyway.
//! So that gain is measured, by miniatures of half the size, and extrapolated as `G` does:
//!
//! ```text
//! A(b) = A(b/k) + (A(b/k) - A(b/2k)) (G(b) - G(b/k)) / (G(b/k) - G(b/2k))
//! ```
//!
//! at the `alpha` where `G(alpha, b/k) = A(b/k)`. This is Richardson's extrapolation, with the
//! error term that the closed form gives instead of a power of `b`. Under uniform writes it is the
//! closed form itself.

use super::shape::FlashShape;
use crate::predict::ftl;
use crate::ssd::GcPolicy;

/// The measured gain counts at most as this multiple of that under uniform writes. The difference
/// of two samples may be chance.
const MOST: f64 = 8.0;
/// Below this amplification minus one, there is nothing to correct.
const NEGLIGIBLE: f64 = 1e-3;

/// Whether the policy looks at valid counts, so that the size of erase blocks matters.
pub(super) fn depends_on_size(policy: GcPolicy) -> bool {
    !matches!(policy, GcPolicy::Fifo | GcPolicy::RANDOM)
}

/// The weight `w` with which the difference of two sizes counts: garbage collection per host write
/// with the drive's erase blocks is `found + w (found - coarse)`, where `found` is that of
/// miniatures with `sample` times smaller ones, and `coarse` that of half their size.
pub(super) fn weight(shape: &FlashShape, sample: u32, found: f64, coarse: f64) -> f64 {
    let large = shape.pages_per_block;
    let (small, smallest) = (large / sample, large / (2 * sample));
    if found <= NEGLIGIBLE || found <= coarse || smallest < 1 || small == large {
        return 0.0;
    }
    let alpha = alpha_of(1.0 + found, small);
    let uniform = |b| ftl::greedy(alpha, b);
    let halved = uniform(small) - uniform(smallest);
    if halved <= 0.0 {
        return 0.0;
    }
    let most = MOST * halved / (found - coarse);
    most.min(1.0) * (uniform(large) - uniform(small)) / halved
}

/// The `alpha` at which greedy cleaning of blocks of `b` pages writes `a` under uniform writes.
fn alpha_of(a: f64, b: u32) -> f64 {
    let (mut low, mut high) = (1.0, 2.0 * f64::from(b));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if ftl::greedy(middle, b) > a {
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
    use crate::ssd::FtlConfig;

    #[test]
    fn uniform_writes_are_extrapolated_by_the_closed_form() {
        let config = FtlConfig::new(100_000, 256, 0.28, GcPolicy::Greedy);
        let shape = FlashShape::of_pages(&config);
        let gc = |b| ftl::greedy(1.28, b) - 1.0;
        let (found, coarse) = (gc(32), gc(16));
        let all = found + weight(&shape, 8, found, coarse) * (found - coarse);
        assert!((all / gc(256) - 1.0).abs() < 1e-6, "{all}, not {}", gc(256));
        assert_eq!(
            weight(&shape, 8, found, found),
            0.0,
            "no gain, no correction"
        );
    }
}
