//! Evicts the least recently used page.

use crate::predict::cache::PageClass;

/// The hit ratio by Che's approximation: `sum (1 - exp(-λT)) = frames` (Che et al. 2002, eq. (4)).
pub(super) fn hit_ratio(classes: &[PageClass], frames: f64) -> f64 {
    let pages: f64 = classes.iter().map(|c| c.pages).sum();
    if frames >= pages {
        return 1.0;
    }
    let filled = |t: f64| -> f64 {
        classes
            .iter()
            .map(|c| c.pages * -(-c.rate * t).exp_m1())
            .sum()
    };
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while filled(high) < frames && high < 1e18 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if filled(middle) < frames {
            low = middle;
        } else {
            high = middle;
        }
    }
    let accesses: f64 = classes.iter().map(|c| c.pages * c.rate).sum();
    let hits: f64 = (classes.iter())
        .map(|c| c.pages * c.rate * -(-c.own_rate * low).exp_m1())
        .sum();
    hits / accesses
}
