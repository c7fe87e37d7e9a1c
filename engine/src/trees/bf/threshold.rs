//! Which mini-pages the head of the ring spares: those with less than what it lately met.

/// The threshold is in this part of a byte.
const UNIT: u64 = 1 << 16;

/// One step of the threshold is at most this part of it.
const PART: u64 = 50;

/// Below how many bytes of changes a mini-page is spared.
///
/// ```
/// use treering_engine::Threshold;
///
/// let mut threshold = Threshold::new();
/// // Of mini-pages of 1 to 100 bytes, it comes to spare three of four.
/// for n in 0..10_000 {
///     let spared = threshold.spares(n * 37 % 100 + 1);
///     threshold = threshold.after(spared, 75);
/// }
/// assert!(threshold.spares(65) && !threshold.spares(85));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold(u64);

impl Default for Threshold {
    fn default() -> Self {
        Threshold::new()
    }
}

impl Threshold {
    /// A threshold before anything was met: half a KiB.
    #[must_use]
    pub fn new() -> Self {
        Threshold(512 * UNIT)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Threshold(bits)
    }

    pub(super) fn to_bits(self) -> u64 {
        self.0
    }

    /// Whether a mini-page with so many bytes of changes is spared.
    #[must_use]
    pub fn spares(self, bytes: u64) -> bool {
        bytes.saturating_mul(UNIT) < self.0
    }

    /// The threshold after a mini-page with changes was spared or not, if `percent` of them are to
    /// be.
    #[must_use]
    pub fn after(self, spared: bool, percent: u8) -> Self {
        let step = self.0 / (100 * PART);
        let percent = u64::from(percent.min(100));
        Threshold(match spared {
            true => (self.0 - step * (100 - percent)).max(UNIT),
            false => self.0 + step * percent,
        })
    }
}
