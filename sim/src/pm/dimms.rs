//! All DIMMs: the mapping of lines to DIMMs, the classes of lines, and the wear of the medium.
//!
//! ```text
//!  address   | 4 KiB | 4 KiB | 4 KiB | 4 KiB | …       three DIMMs
//!  DIMM          0       1       2       0       `line` numbers a DIMM's own lines without gaps
//! ```

use std::ops::Range;

use treering_engine::IoClass;
use treering_engine::device::LINE_SIZE;

use super::buffer::{BufferConfig, MediaOps, MediaRead, MediaWrite, XpBuffer};
use super::counters::PmCounters;
use super::{XPLINE_LINES, XPLINE_SIZE};

/// The effect of a line on the medium of its DIMM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Whether its XPLine was in a buffer.
    pub(super) hit: bool,
    /// XPLines written.
    pub(super) writes: u32,
    /// XPLines read.
    pub(super) reads: u32,
    /// Stalls for wear levelling.
    pub(super) stalls: u32,
}

/// A DIMM, and a line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) dimm: u32,
    pub(super) line: u32,
}

struct Dimm {
    buffer: XpBuffer,
    medium: Medium,
}

/// The state of the medium, by XPLine.
struct Medium {
    class: Vec<u8>,
    /// Writes since the last stall; empty if stalls are off.
    wear: Vec<u16>,
    /// Number of writes between two stalls.
    wear_limit: u16,
    counters: PmCounters,
    effect: Effect,
}

/// The DIMMs of a persistent memory.
pub(super) struct Dimms {
    dimms: Vec<Dimm>,
    /// Interleaving stripe, in lines.
    stripe: u32,
}

impl Dimms {
    /// `lines` lines on `count` DIMMs, interleaved every `stripe` lines. A wear-levelling stall
    /// follows every `wear_limit` writes of an XPLine, or never if that is 0.
    pub(super) fn new(
        config: &BufferConfig,
        (lines, count, stripe): (u32, u32, u32),
        wear_limit: u16,
    ) -> Dimms {
        let turns = lines.div_ceil(stripe).div_ceil(count);
        let xplines = turns * (stripe / XPLINE_LINES);
        let dimm = |number: u32| {
            let seed = config.seed ^ u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Dimm {
                buffer: XpBuffer::new(&BufferConfig { seed, ..*config }, xplines),
                medium: Medium {
                    class: vec![IoClass::Extra as u8; xplines as usize],
                    wear: vec![0; if wear_limit > 0 { xplines as usize } else { 0 }],
                    wear_limit,
                    counters: PmCounters::default(),
                    effect: Effect::default(),
                },
            }
        };
        Dimms {
            dimms: (0..count).map(dimm).collect(),
            stripe,
        }
    }

    pub(super) fn place(&self, line: u32) -> Place {
        let count = self.dimms.len() as u32;
        if count == 1 {
            return Place { dimm: 0, line };
        }
        let unit = line / self.stripe;
        Place {
            dimm: unit % count,
            line: unit / count * self.stripe + line % self.stripe,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.dimms.len()
    }

    pub(super) fn write(&mut self, place: Place) -> Effect {
        let Dimm { buffer, medium } = &mut self.dimms[place.dimm as usize];
        medium.effect = Effect::default();
        let class = medium.class(place.line / XPLINE_LINES);
        medium.counters.line_writes[class] += 1;
        let hit = buffer.write(place.line, medium);
        medium.counters.buffer_hits += u64::from(hit);
        Effect {
            hit,
            ..medium.effect
        }
    }

    pub(super) fn read(&mut self, place: Place) -> Effect {
        let Dimm { buffer, medium } = &mut self.dimms[place.dimm as usize];
        medium.effect = Effect::default();
        let class = medium.class(place.line / XPLINE_LINES);
        medium.counters.line_reads[class] += 1;
        let hit = buffer.read(place.line, medium);
        medium.counters.read_hits += u64::from(hit);
        Effect {
            hit,
            ..medium.effect
        }
    }

    /// Evicts everything from the write buffers.
    pub(super) fn write_out(&mut self) {
        for Dimm { buffer, medium } in &mut self.dimms {
            buffer.write_out(medium);
        }
    }

    /// Sets the class of all XPLines that the bytes of `range` touch; they must be on the device.
    pub(super) fn set_class(&mut self, range: &Range<u64>, class: IoClass) {
        let size = XPLINE_SIZE as u64;
        for xpline in range.start / size..range.end.div_ceil(size) {
            let place = self.place(xpline as u32 * XPLINE_LINES);
            let medium = &mut self.dimms[place.dimm as usize].medium;
            medium.class[(place.line / XPLINE_LINES) as usize] = class as u8;
        }
    }

    pub(super) fn counters(&self) -> PmCounters {
        let all = self.dimms.iter().map(|dimm| dimm.medium.counters);
        all.fold(PmCounters::default(), |sum, one| sum.plus(&one))
    }

    /// Number of XPLines in the buffers with lines that are newer than the medium.
    pub(super) fn dirty_lines(&self) -> usize {
        self.dimms.iter().map(|d| d.buffer.dirty_lines()).sum()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let one = |dimm: &Dimm| {
            let medium = &dimm.medium;
            dimm.buffer.memory_bytes() + medium.class.len() + medium.wear.len() * size_of::<u16>()
        };
        self.dimms.iter().map(one).sum()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.dimms.iter().try_for_each(|dimm| dimm.buffer.check())
    }
}

impl Medium {
    fn class(&self, xpline: u32) -> usize {
        usize::from(self.class[xpline as usize])
    }
}

impl MediaOps for Medium {
    fn read(&mut self, xpline: u32, why: MediaRead) {
        let class = self.class(xpline);
        self.counters.media_reads[class] += 1;
        self.counters.merges += u64::from(why == MediaRead::Merge);
        self.effect.reads += 1;
    }

    fn write(&mut self, xpline: u32, how: MediaWrite) {
        let class = self.class(xpline);
        self.counters.media_writes[class] += 1;
        self.counters.full_writes += u64::from(how == MediaWrite::Full);
        self.effect.writes += 1;
        if let Some(wear) = self.wear.get_mut(xpline as usize) {
            *wear += 1;
            if *wear == self.wear_limit {
                *wear = 0;
                self.counters.wear_stalls += 1;
                self.effect.stalls += 1;
            }
        }
    }

    fn evicted(&mut self, dirty: bool) {
        if dirty {
            self.counters.evictions += 1;
        } else {
            self.counters.clean_evictions += 1;
        }
    }
}

/// Lines that `len` bytes at `offset` touch.
pub(super) fn lines(offset: u64, len: usize) -> Range<u32> {
    if len == 0 {
        return 0..0;
    }
    let line = LINE_SIZE as u64;
    (offset / line) as u32..(offset + len as u64).div_ceil(line) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pm::buffer::{FullLines, Replacement};

    fn dimms(count: u32, wear_limit: u16) -> Dimms {
        let config = BufferConfig {
            lines: 4,
            replacement: Replacement::Lru,
            evict_lines: 1,
            full_lines: FullLines::AtOnce,
            read_lines: 0,
            seed: 0,
        };
        Dimms::new(&config, (64 * 10, count, 64), wear_limit)
    }

    #[test]
    fn every_line_has_one_place_and_neighbours_share_a_dimm_up_to_4_kib() {
        for count in [1, 3, 6] {
            let dimms = dimms(count, 0);
            let mut seen = std::collections::BTreeSet::new();
            for line in 0..640 {
                let place = dimms.place(line);
                assert_eq!(place.dimm, line / 64 % count);
                assert!(seen.insert((place.dimm, place.line)), "line {line}");
                assert!(place.line < 640_u32.div_ceil(64).div_ceil(count) * 64);
            }
        }
    }

    #[test]
    fn bytes_are_counted_under_the_class_of_their_range() {
        let mut dimms = dimms(3, 0);
        // From within XPLine 15 of the first DIMM into XPLine 0 of the second.
        dimms.set_class(&(4000..4200), IoClass::Log);
        dimms.set_class(&(8192..8448), IoClass::Page);
        for line in [60, 64, 128, 129, 132] {
            dimms.write(dimms.place(line));
        }
        dimms.write_out();
        let counters = dimms.counters();
        assert_eq!(counters.line_writes, [2, 2, 1]);
        assert_eq!(counters.media_writes, [2, 1, 1]);
        assert_eq!(counters.media_reads, [2, 1, 1]);
        assert_eq!((counters.merges, counters.evictions), (4, 4));
        dimms.read(dimms.place(60));
        assert_eq!(dimms.counters().since(&counters).media_reads, [1, 0, 0]);
    }

    #[test]
    fn an_xpline_that_is_written_again_and_again_stalls() {
        let mut dimms = dimms(1, 3);
        let mut stalls = Vec::new();
        for round in 1..=7 {
            let effects = (0..4).map(|line| dimms.write(dimms.place(line)));
            if effects.map(|effect| effect.stalls).sum::<u32>() > 0 {
                stalls.push(round);
            }
        }
        assert_eq!(stalls, [3, 6]);
    }
}
