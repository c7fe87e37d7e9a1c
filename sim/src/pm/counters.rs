//! What a persistent memory has done.

use treering_engine::device::LINE_SIZE;

use super::XPLINE_SIZE;
use crate::ssd::CLASSES;

/// Counts since the device was made, or between two moments ([`PmCounters::since`]). Arrays are
/// indexed by `IoClass` in the order of `IoClass::ALL`; the class is that of the XPLine
/// ([`PmDevice::set_class`](treering_engine::device::PmDevice::set_class)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmCounters {
    /// Lines of 64 bytes that came to the XPBuffers, by class.
    pub line_writes: [u64; CLASSES],
    /// Those of them whose XPLine was there.
    pub buffer_hits: u64,
    /// Lines that the CPU fetched from the DIMMs, by class.
    pub line_reads: [u64; CLASSES],
    /// Those of them that a buffer had.
    pub read_hits: u64,
    /// XPLines written to the medium, by class.
    pub media_writes: [u64; CLASSES],
    /// XPLines read from the medium, by class.
    pub media_reads: [u64; CLASSES],
    /// Media writes of XPLines all of whose lines were new.
    pub full_writes: u64,
    /// Media writes that needed a read first: read-modify-writes.
    pub merges: u64,
    /// XPLines that left the write buffer with lines that had to be written.
    pub evictions: u64,
    /// XPLines that left it clean.
    pub clean_evictions: u64,
    /// Dirty lines that the CPU cache let go by itself.
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

    /// Bytes read from the medium, by class; those of merges are among them.
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

    /// Effective write ratio: bytes issued over bytes written to the medium (DEVICES §2.3).
    pub fn effective_write_ratio(&self) -> f64 {
        over(
            self.written_bytes().iter().sum(),
            self.media_write_bytes().iter().sum(),
        )
    }

    /// Share of the written lines whose XPLine was in the buffer.
    pub fn buffer_hit_ratio(&self) -> f64 {
        over(self.buffer_hits, self.line_writes.iter().sum())
    }

    /// What came on top of `before`.
    #[must_use]
    pub fn since(&self, before: &PmCounters) -> PmCounters {
        self.with(before, |now, then| now - then)
    }

    /// Both together.
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

/// 0 over 0 is 0.
fn over(a: u64, b: u64) -> f64 {
    if a == 0 { 0.0 } else { a as f64 / b as f64 }
}
