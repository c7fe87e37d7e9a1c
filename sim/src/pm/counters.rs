//! Counters of a persistent memory.

use treering_engine::device::LINE_SIZE;

use super::XPLINE_SIZE;
use crate::ssd::CLASSES;

/// Counts since the device was created, or between two moments ([`PmCounters::since`]). Arrays are
/// indexed by `IoClass` in the order of `IoClass::ALL`; the class is that of the XPLine
/// ([`PmDevice::set_class`](treering_engine::device::PmDevice::set_class)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmCounters {
    /// 64-byte lines that reached the XPBuffers, by class.
    pub line_writes: [u64; CLASSES],
    /// Number of these whose XPLine was in the buffer.
    pub buffer_hits: u64,
    /// Lines that the CPU fetched from the DIMMs, by class.
    pub line_reads: [u64; CLASSES],
    /// Number of these that a buffer held.
    pub read_hits: u64,
    /// XPLines written to the medium, by class.
    pub media_writes: [u64; CLASSES],
    /// XPLines read from the medium, by class.
    pub media_reads: [u64; CLASSES],
    /// Media writes of XPLines with all lines dirty.
    pub full_writes: u64,
    /// Media writes that needed a read first: read-modify-writes.
    pub merges: u64,
    /// XPLines evicted dirty from the write buffer.
    pub evictions: u64,
    /// XPLines evicted clean from the write buffer.
    pub clean_evictions: u64,
    /// Dirty lines evicted by the CPU cache.
    pub cache_evictions: u64,
    /// Fences.
    pub fences: u64,
    /// Stalls for wear levelling.
    pub wear_stalls: u64,
}

impl PmCounters {
    /// Bytes written to the XPBuffers, by class: CLI-amplification times user bytes (CCL-BTree
    /// §2.1).
    pub fn written_bytes(&self) -> [u64; CLASSES] {
        self.line_writes.map(|lines| lines * LINE_SIZE as u64)
    }

    /// Bytes written to the medium, by class: XBI-amplification times user bytes (CCL-BTree §2.1).
    pub fn media_write_bytes(&self) -> [u64; CLASSES] {
        self.media_writes
            .map(|xplines| xplines * XPLINE_SIZE as u64)
    }

    /// Bytes read from the medium, by class, including reads for merges.
    pub fn media_read_bytes(&self) -> [u64; CLASSES] {
        self.media_reads.map(|xplines| xplines * XPLINE_SIZE as u64)
    }

    /// CLI-amplification, over all classes.
    pub fn cli(&self, user_bytes: u64) -> f64 {
        over(self.written_bytes().iter().sum(), user_bytes)
    }

    /// XBI-amplification, over all classes.
    pub fn xbi(&self, user_bytes: u64) -> f64 {
        over(self.media_write_bytes().iter().sum(), user_bytes)
    }

    /// Effective write ratio: bytes written by the program divided by bytes written to the medium
    /// (DEVICES §2.3).
    pub fn effective_write_ratio(&self) -> f64 {
        over(
            self.written_bytes().iter().sum(),
            self.media_write_bytes().iter().sum(),
        )
    }

    /// Share of written lines whose XPLine was in the buffer.
    pub fn buffer_hit_ratio(&self) -> f64 {
        over(self.buffer_hits, self.line_writes.iter().sum())
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &PmCounters) -> PmCounters {
        self.with(before, |now, then| now - then)
    }

    /// The sum of both counters.
    #[must_use]
    pub(super) fn plus(&self, other: &PmCounters) -> PmCounters {
        self.with(other, |a, b| a + b)
    }

    fn with(&self, other: &PmCounters, f: impl Fn(u64, u64) -> u64) -> PmCounters {
        let by_class = |a: [u64; CLASSES], b: [u64; CLASSES]| {
            std::array::from_fn(|class| f(a[class], b[class]))
        };
        PmCounters {
            line_writes: by_class(self.line_writes, other.line_writes),
            buffer_hits: f(self.buffer_hits, other.buffer_hits),
            line_reads: by_class(self.line_reads, other.line_reads),
            read_hits: f(self.read_hits, other.read_hits),
            media_writes: by_class(self.media_writes, other.media_writes),
            media_reads: by_class(self.media_reads, other.media_reads),
            full_writes: f(self.full_writes, other.full_writes),
            merges: f(self.merges, other.merges),
            evictions: f(self.evictions, other.evictions),
            clean_evictions: f(self.clean_evictions, other.clean_evictions),
            cache_evictions: f(self.cache_evictions, other.cache_evictions),
            fences: f(self.fences, other.fences),
            wear_stalls: f(self.wear_stalls, other.wear_stalls),
        }
    }
}

/// A ratio that is 0 for 0 / 0.
fn over(a: u64, b: u64) -> f64 {
    if a == 0 { 0.0 } else { a as f64 / b as f64 }
}
