//! From the small erase blocks of a miniature to those of the drive.

use super::shape::FlashShape;
use crate::predict::ftl;
use crate::ssd::GcPolicy;

/// Garbage collection per host write with the drive's erase blocks, given that with the `sample`
/// times smaller ones of a miniature it is `found`.
///
/// Greedy cleaning gains from small blocks. The correction is that of uniform writes with the same
/// amplification `1 + found`; it is none at the ends, where nothing is moved or everything.
pub(super) fn gc_per_host(shape: &FlashShape, sample: u32, found: f64) -> f64 {
    let large = shape.pages_per_block;
    let small = (large / sample).max(1);
    let gains = matches!(shape.policy, GcPolicy::Greedy);
    if !gains || found <= 1e-4 || small == large {
        return found;
    }
    let alpha = alpha_of(1.0 + found, small);
    ftl::greedy(alpha, large) - 1.0
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
