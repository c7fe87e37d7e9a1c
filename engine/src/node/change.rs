//! Which parts of a page changed since it was last written.

use std::ops::Range;

use super::envelope::{ENVELOPE_BYTES, MAX_PAGE_BYTES};

/// Bytes of one segment: the grain of change tracking.
pub const SEGMENT_BYTES: usize = 64;

const WORDS: usize = MAX_PAGE_BYTES / SEGMENT_BYTES / 64;

/// A bit for every 64-byte segment of a page: set when the segment may differ from the page as last written. Checksum and LSN change with
/// every write; they are noted apart, and mark no segment ("the first segment is the page header", B⁻-tree §3.2).
///
/// [`super::PageMut`] sets bits, the page store clears them after a write. A store that writes only what changed
/// (B⁻-tree §3.2, localized modification logging) reads them; others ignore them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeMap {
    words: [u64; WORDS],
    envelope: bool,
}

impl ChangeMap {
    /// Nothing changed.
    #[must_use]
    pub const fn new() -> Self {
        ChangeMap {
            words: [0; WORDS],
            envelope: false,
        }
    }

    /// Forgets all changes: the page has just been written, or has just been read.
    pub fn clear(&mut self) {
        *self = ChangeMap::new();
    }

    /// Notes that the bytes `range` of the page may have changed. Bytes beyond the largest page are ignored.
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

    /// Marks here what `other` has marked: the write that would have covered it did not happen.
    pub fn merge(&mut self, other: &ChangeMap) {
        for (mine, theirs) in self.words.iter_mut().zip(other.words) {
            *mine |= theirs;
        }
        self.envelope |= other.envelope;
    }

    /// Whether `segment` (bytes `64 * segment` on) is marked.
    #[must_use]
    pub fn is_marked(&self, segment: usize) -> bool {
        self.words
            .get(segment / 64)
            .is_some_and(|word| word >> (segment % 64) & 1 == 1)
    }

    /// Whether nothing is marked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == ChangeMap::new()
    }

    /// Number of marked segments.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The marked segments, ascending.
    pub fn segments(&self) -> impl Iterator<Item = usize> + '_ {
        (0..WORDS * 64).filter(|&segment| self.is_marked(segment))
    }
}

/// Who is told which bytes change.
pub(crate) trait Track {
    /// Whether it is worth finding out.
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

/// Nobody: the bytes never reach a device.
pub(crate) struct Untracked;

impl Track for Untracked {
    const LISTENS: bool = false;

    #[inline]
    fn mark(&mut self, _: Range<usize>) {}
}
