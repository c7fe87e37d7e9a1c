//! Records which segments of a page have changed since the page was last written.

use std::ops::Range;

use super::envelope::{ENVELOPE_BYTES, MAX_PAGE_BYTES};

/// Bytes in one segment, the unit of change tracking.
pub const SEGMENT_BYTES: usize = 64;

const WORDS: usize = MAX_PAGE_BYTES / SEGMENT_BYTES / 64;

/// A bitmap with one bit for every 64-byte segment of a page. A set bit means that the segment may
/// differ from the page as last written. Checksum and LSN change with every write; their changes
/// are noted separately and mark no segment ("the first segment is the page header", B⁻-tree §3.2).
///
/// [`super::PageMut`] sets bits; the page store clears them after a write. A store that writes only
/// the changed parts (B⁻-tree §3.2, localized modification logging) reads them; other stores ignore
/// them.
///
/// ```
/// use treering_engine::node::ChangeMap;
///
/// let mut changes = ChangeMap::new();
/// changes.mark(100..140); // Bytes of segments 1 (64..128) and 2 (128..192).
/// assert_eq!(changes.segments().collect::<Vec<_>>(), [1, 2]);
/// changes.clear();
/// assert!(changes.is_clean());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeMap {
    words: [u64; WORDS],
    envelope: bool,
}

impl ChangeMap {
    /// Creates a map in which nothing is marked.
    #[must_use]
    pub const fn new() -> Self {
        ChangeMap {
            words: [0; WORDS],
            envelope: false,
        }
    }

    /// Forgets all changes, because the page has just been written or read.
    pub fn clear(&mut self) {
        *self = ChangeMap::new();
    }

    /// Marks the bytes `range` of the page as changed. Bytes beyond the largest page are ignored.
    #[inline]
    pub fn mark(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if range.end <= ENVELOPE_BYTES {
            self.envelope = true;
            return;
        }
        let first = range.start / SEGMENT_BYTES;
        let last = (range.end - 1) / SEGMENT_BYTES;
        for segment in first..=last.min(WORDS * 64 - 1) {
            self.words[segment / 64] |= 1 << (segment % 64);
        }
    }

    /// Adds the marks of `other`, for a write that should have covered them but did not happen.
    pub fn merge(&mut self, other: &ChangeMap) {
        for (mine, theirs) in self.words.iter_mut().zip(other.words) {
            *mine |= theirs;
        }
        self.envelope |= other.envelope;
    }

    /// Returns whether `segment` (the bytes from `64 * segment` on) is marked.
    #[must_use]
    pub fn is_marked(&self, segment: usize) -> bool {
        self.words
            .get(segment / 64)
            .is_some_and(|word| word >> (segment % 64) & 1 == 1)
    }

    /// Returns whether nothing is marked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == ChangeMap::new()
    }

    /// Number of marked segments.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The marked segments in ascending order.
    pub fn segments(&self) -> impl Iterator<Item = usize> + '_ {
        (0..WORDS * 64).filter(|&segment| self.is_marked(segment))
    }
}

/// A tracker that is told which bytes of a page change.
pub(crate) trait Track {
    /// Whether the tracker uses the ranges; if not, callers need not compute them.
    const LISTENS: bool;
    fn mark(&mut self, range: Range<usize>);
}

impl Track for &mut ChangeMap {
    const LISTENS: bool = true;

    #[inline]
    fn mark(&mut self, range: Range<usize>) {
        ChangeMap::mark(self, range);
    }
}

/// A tracker that ignores changes, for bytes that never reach a device.
pub(crate) struct Untracked;

impl Track for Untracked {
    const LISTENS: bool = false;

    #[inline]
    fn mark(&mut self, _: Range<usize>) {}
}
