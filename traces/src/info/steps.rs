//! The round numbers at which curves have points.

/// Returns the number after `point` in 1, 2, 5, 10, 20, 50, …
pub(super) fn next_point(point: u64) -> u64 {
    let leading = point / 10u64.pow(point.ilog10());
    match leading {
        2 => point / 2 * 5,
        _ => point.saturating_mul(2),
    }
}
