//! The XPBuffer of one DIMM: it receives 64-byte lines and writes whole XPLines.
//!
//! ```text
//!  slot    XPLine 7   dirty ▮▮▯▯  known ▮▮▯▯    two lines arrived since the last write;
//!                                               the other two are only on the medium
//!          XPLine 9   dirty ▯▯▯▯  known ▮▮▮▮    was full, was written, stays as clean;
//!                                               a line that arrives again is dirty again
//! ```
//!
//! A line joins its XPLine if that is in the buffer. Otherwise the XPLine gets a slot, and if no
//! slot is free, others are evicted first. On eviction, an XPLine with all lines dirty is written;
//! one with some lines dirty is merged with the rest, which is read from the medium unless it is
//! known, and then written; a clean one is dropped. An XPLine that becomes full is written at once
//! and stays as clean ([`FullLines::AtOnce`]: CLAIMS, modelling note on the XPBuffer; write
//! amplification never falls below 0.8 even if everything fits, DEVICES §2.3), or is written only
//! on eviction, as in a plain cache ([`FullLines::OnEviction`]).
//!
//! Reads have a FIFO buffer of their own (DEVICES §2.3, EuroSys'22). An XPLine that is written
//! moves from there to the write buffer, so its other lines are known.
//!
//! [`XpBuffer`] counts nothing; it reports media operations to a [`MediaOps`].

use std::collections::VecDeque;
use std::fmt;

use super::XPLINE_LINES;
use crate::ssd::gc::SplitMix;

/// Replacement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Least recently written.
    Lru,
    /// First in, first out.
    Fifo,
    /// A random one.
    Random,
}

impl Replacement {
    /// Parses a profile's `replacement`.
    pub fn parse(text: &str) -> Option<Replacement> {
        match text {
            "lru" => Some(Replacement::Lru),
            "fifo" => Some(Replacement::Fifo),
            "random" => Some(Replacement::Random),
            _ => None,
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Replacement::Lru => "lru",
            Replacement::Fifo => "fifo",
            Replacement::Random => "random",
        })
    }
}

/// When an XPLine with all lines dirty is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullLines {
    /// At once; it stays in the buffer as clean.
    AtOnce,
    /// On eviction.
    OnEviction,
}

impl FullLines {
    /// Parses a profile's `full_lines`.
    pub fn parse(text: &str) -> Option<FullLines> {
        match text {
            "at-once" => Some(FullLines::AtOnce),
            "on-eviction" => Some(FullLines::OnEviction),
            _ => None,
        }
    }
}

/// Reason for a media write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaWrite {
    /// All four lines of the XPLine are dirty.
    Full,
    /// Only some lines are dirty.
    Partial,
}

/// Reason for a media read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaRead {
    /// A load needs it.
    Load,
    /// A merge needs lines that the buffer does not know.
    Merge,
}

/// Receives the media operations and evictions of an [`XpBuffer`]; XPLines are numbered within the
/// DIMM.
pub trait MediaOps {
    /// An XPLine is read.
    fn read(&mut self, xpline: u32, why: MediaRead);
    /// An XPLine is written.
    fn write(&mut self, xpline: u32, how: MediaWrite);
    /// An XPLine was evicted from the write buffer; if it was dirty, its write was reported before.
    fn evicted(&mut self, dirty: bool);
}

/// Configuration of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Slots of the write buffer, 1 to [`MAX_SLOTS`].
    pub lines: u32,
    /// The replacement policy.
    pub replacement: Replacement,
    /// Number of XPLines evicted at a time, 1 to `lines`.
    pub evict_lines: u32,
    /// When full XPLines are written.
    pub full_lines: FullLines,
    /// XPLines of the read buffer; 0 for none.
    pub read_lines: u32,
    /// Seed of random replacement.
    pub seed: u64,
}

/// Maximum number of XPLines in a buffer.
pub const MAX_SLOTS: u32 = 1 << 15;

/// No slot.
const NIL: u16 = u16::MAX;

/// All lines of an XPLine.
const ALL: u8 = (1 << XPLINE_LINES) - 1;

#[derive(Clone, Copy, Debug)]
struct Slot {
    xpline: u32,
    /// Lines that are newer than the medium.
    dirty: u8,
    /// Lines whose content is in the buffer.
    // invariant: dirty ⊆ known.
    known: u8,
    /// Time of the last write (LRU) or of arrival (FIFO).
    stamp: u64,
}

/// The buffers of one DIMM; see the [module](self).
pub struct XpBuffer {
    config: BufferConfig,
    /// The slot of each XPLine, or [`NIL`].
    slot_of: Vec<u16>,
    // invariant: slot_of[slots[i].xpline] == i, and NIL for all others; at most `config.lines` of
    // them.
    slots: Vec<Slot>,
    reads: VecDeque<u32>,
    stamp: u64,
    rng: SplitMix,
}

impl XpBuffer {
    /// Creates empty buffers for a medium of this many XPLines.
    pub fn new(config: &BufferConfig, xplines: u32) -> XpBuffer {
        assert!((1..=MAX_SLOTS).contains(&config.lines), "slots");
        assert!((1..=config.lines).contains(&config.evict_lines), "victims");
        XpBuffer {
            config: *config,
            slot_of: vec![NIL; xplines as usize],
            slots: Vec::with_capacity(config.lines as usize),
            reads: VecDeque::with_capacity(config.read_lines as usize),
            stamp: 0,
            rng: SplitMix(config.seed),
        }
    }

    /// Line `line` of the DIMM is written; returns whether its XPLine was in the buffer.
    pub fn write(&mut self, line: u32, media: &mut impl MediaOps) -> bool {
        let (xpline, bit) = place(line);
        self.stamp += 1;
        let mut at = self.slot_of[xpline as usize];
        let hit = at != NIL;
        if hit {
            if self.config.replacement == Replacement::Lru {
                self.slots[at as usize].stamp = self.stamp;
            }
        } else {
            at = self.allocate(xpline, media);
        }
        let slot = &mut self.slots[at as usize];
        slot.dirty |= bit;
        slot.known |= bit;
        if slot.dirty == ALL && self.config.full_lines == FullLines::AtOnce {
            media.write(xpline, MediaWrite::Full);
            slot.dirty = 0;
        }
        hit
    }

    /// Line `line` of the DIMM is read; returns whether a buffer had it.
    pub fn read(&mut self, line: u32, media: &mut impl MediaOps) -> bool {
        let (xpline, bit) = place(line);
        let at = self.slot_of[xpline as usize];
        if at != NIL {
            let slot = &mut self.slots[at as usize];
            let hit = slot.known & bit != 0;
            if !hit {
                media.read(xpline, MediaRead::Load);
                slot.known = ALL;
            }
            return hit;
        }
        let hit = self.reads.contains(&xpline);
        if !hit {
            media.read(xpline, MediaRead::Load);
            if self.config.read_lines > 0 {
                if self.reads.len() == self.config.read_lines as usize {
                    self.reads.pop_front();
                }
                self.reads.push_back(xpline);
            }
        }
        hit
    }

    /// Evicts everything, in order of arrival.
    pub fn write_out(&mut self, media: &mut impl MediaOps) {
        while !self.slots.is_empty() {
            self.evict(0, media);
        }
    }

    /// Number of XPLines with lines that are newer than the medium.
    pub fn dirty_lines(&self) -> usize {
        self.slots.iter().filter(|slot| slot.dirty != 0).count()
    }

    /// Bytes of memory for the tables.
    pub fn memory_bytes(&self) -> usize {
        self.slot_of.len() * size_of::<u16>()
            + self.config.lines as usize * size_of::<Slot>()
            + self.config.read_lines as usize * size_of::<u32>()
    }

    /// Checks the invariants; for tests.
    ///
    /// # Errors
    /// A description of the first violation.
    pub fn check(&self) -> Result<(), String> {
        if self.slots.len() > self.config.lines as usize {
            return Err(format!("{} slots are in use", self.slots.len()));
        }
        let mapped = self.slot_of.iter().filter(|at| **at != NIL).count();
        if mapped != self.slots.len() {
            return Err(format!("{mapped} XPLines for {} slots", self.slots.len()));
        }
        for (i, slot) in self.slots.iter().enumerate() {
            if usize::from(self.slot_of[slot.xpline as usize]) != i {
                return Err(format!("slot {i} is not found: {slot:?}"));
            }
            let full = slot.dirty == ALL && self.config.full_lines == FullLines::AtOnce;
            if slot.dirty & !slot.known != 0 || full {
                return Err(format!("slot {i} cannot be: {slot:?}"));
            }
            if self.reads.contains(&slot.xpline) {
                return Err(format!("XPLine {} is in both buffers", slot.xpline));
            }
        }
        Ok(())
    }

    /// Returns a slot for an XPLine that has none, evicting others if necessary.
    fn allocate(&mut self, xpline: u32, media: &mut impl MediaOps) -> u16 {
        if self.slots.len() == self.config.lines as usize {
            for _ in 0..self.config.evict_lines {
                let victim = self.victim();
                self.evict(victim, media);
            }
        }
        let read = self.reads.iter().position(|&r| r == xpline);
        let known = match read {
            Some(i) => {
                self.reads.remove(i);
                ALL
            }
            None => 0,
        };
        let at = self.slots.len() as u16;
        self.slot_of[xpline as usize] = at;
        self.slots.push(Slot {
            xpline,
            dirty: 0,
            known,
            stamp: self.stamp,
        });
        at
    }

    fn victim(&mut self) -> usize {
        match self.config.replacement {
            Replacement::Random => self.rng.below(self.slots.len() as u64) as usize,
            Replacement::Lru | Replacement::Fifo => {
                let mut oldest = 0;
                for (i, slot) in self.slots.iter().enumerate() {
                    if slot.stamp < self.slots[oldest].stamp {
                        oldest = i;
                    }
                }
                oldest
            }
        }
    }

    fn evict(&mut self, at: usize, media: &mut impl MediaOps) {
        let slot = self.slots.swap_remove(at);
        self.slot_of[slot.xpline as usize] = NIL;
        if let Some(moved) = self.slots.get(at) {
            self.slot_of[moved.xpline as usize] = at as u16;
        }
        if slot.dirty == ALL {
            media.write(slot.xpline, MediaWrite::Full);
        } else if slot.dirty != 0 {
            if slot.known != ALL {
                media.read(slot.xpline, MediaRead::Merge);
            }
            media.write(slot.xpline, MediaWrite::Partial);
        }
        media.evicted(slot.dirty != 0);
    }
}

/// A line's XPLine, and the line's bit in it.
fn place(line: u32) -> (u32, u8) {
    (line / XPLINE_LINES, 1 << (line % XPLINE_LINES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Events in short: `F7` and `P7` are writes of XPLine 7, `R7` and `M7` reads, `-` something
    /// clean has left.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl MediaOps for Log {
        fn read(&mut self, xpline: u32, why: MediaRead) {
            let name = match why {
                MediaRead::Load => 'R',
                MediaRead::Merge => 'M',
            };
            self.0.push(format!("{name}{xpline}"));
        }

        fn write(&mut self, xpline: u32, how: MediaWrite) {
            let name = match how {
                MediaWrite::Full => 'F',
                MediaWrite::Partial => 'P',
            };
            self.0.push(format!("{name}{xpline}"));
        }

        fn evicted(&mut self, dirty: bool) {
            if !dirty {
                self.0.push("-".into());
            }
        }
    }

    fn buffer(lines: u32, replacement: Replacement, full_lines: FullLines) -> XpBuffer {
        let config = BufferConfig {
            lines,
            replacement,
            evict_lines: 1,
            full_lines,
            read_lines: 2,
            seed: 1,
        };
        XpBuffer::new(&config, 64)
    }

    /// What happens when these lines are written, one after the other.
    fn writes(buffer: &mut XpBuffer, lines: &[u32]) -> String {
        let mut log = Log::default();
        for &line in lines {
            buffer.write(line, &mut log);
            buffer.check().unwrap();
        }
        log.0.join(" ")
    }

    #[test]
    fn a_full_line_is_written_at_once_and_a_line_that_comes_again_costs_another_write() {
        let mut at_once = buffer(1, Replacement::Lru, FullLines::AtOnce);
        assert_eq!(writes(&mut at_once, &[0, 1, 2]), "");
        assert_eq!(writes(&mut at_once, &[3]), "F0");
        assert_eq!(at_once.dirty_lines(), 0);
        // A clean XPLine is evicted without I/O. If one of its lines is written again, the XPLine
        // is written again, but nothing has to be read.
        assert_eq!(writes(&mut at_once, &[3, 3, 4]), "P0");
        let mut lazy = buffer(1, Replacement::Lru, FullLines::OnEviction);
        assert_eq!(writes(&mut lazy, &[0, 1, 2, 3, 3, 4]), "F0");
    }

    #[test]
    fn a_partly_filled_line_is_read_and_merged_when_it_leaves() {
        let mut one = buffer(1, Replacement::Lru, FullLines::AtOnce);
        assert_eq!(writes(&mut one, &[0, 1, 4]), "M0 P0");
        assert_eq!(writes(&mut one, &[5, 6, 7, 8]), "F1 -");
    }

    #[test]
    fn the_policies_let_different_ones_go() {
        let story = [0, 4, 1, 8];
        let mut lru = buffer(2, Replacement::Lru, FullLines::AtOnce);
        assert_eq!(writes(&mut lru, &story), "M1 P1");
        let mut fifo = buffer(2, Replacement::Fifo, FullLines::AtOnce);
        assert_eq!(writes(&mut fifo, &story), "M0 P0");
        let random = |seed| {
            let mut all = buffer(16, Replacement::Random, FullLines::AtOnce);
            all.rng = SplitMix(seed);
            writes(&mut all, &(0..17).map(|x| 4 * x).collect::<Vec<_>>())
        };
        assert_eq!(random(3), random(3), "a seed decides");
        assert!((0..50).any(|seed| random(seed) != random(3)));
    }

    #[test]
    fn several_leave_at_a_time() {
        let config = BufferConfig {
            lines: 4,
            replacement: Replacement::Fifo,
            evict_lines: 3,
            full_lines: FullLines::AtOnce,
            read_lines: 0,
            seed: 0,
        };
        let mut buffer = XpBuffer::new(&config, 64);
        assert_eq!(writes(&mut buffer, &[0, 4, 8, 12, 16]), "M0 P0 M1 P1 M2 P2");
        assert_eq!(writes(&mut buffer, &[20, 24]), "", "two slots are free");
        assert_eq!(writes(&mut buffer, &[28]), "M3 P3 M4 P4 M5 P5");
    }

    #[test]
    fn a_load_finds_what_is_buffered_and_spares_the_read_of_a_merge() {
        let mut buffer = buffer(1, Replacement::Lru, FullLines::AtOnce);
        let mut log = Log::default();
        assert!(!buffer.read(0, &mut log));
        assert!(buffer.read(3, &mut log), "the read buffer holds XPLine 0");
        buffer.write(0, &mut log);
        assert!(buffer.read(3, &mut log), "it has moved to the write buffer");
        buffer.write(4, &mut log);
        assert!(buffer.read(4, &mut log), "what was just written");
        assert!(!buffer.read(5, &mut log), "never seen");
        assert!(buffer.read(6, &mut log));
        buffer.write(8, &mut log);
        assert_eq!(log.0.join(" "), "R0 P0 R1 P1");
        buffer.check().unwrap();
        // Two XPLines fit into the read buffer; the first one in goes first.
        let mut log = Log::default();
        for line in [12, 16, 12, 20, 12] {
            buffer.read(line, &mut log);
        }
        assert_eq!(log.0.join(" "), "R3 R4 R5 R3");
    }

    /// Number of writes of each XPLine, derived from the sequence of line writes alone: dirty lines
    /// that are merged are written together.
    #[derive(Default)]
    struct Written(std::collections::BTreeMap<u32, u64>);

    impl MediaOps for Written {
        fn read(&mut self, _: u32, _: MediaRead) {}
        fn write(&mut self, xpline: u32, _: MediaWrite) {
            *self.0.entry(xpline).or_default() += 1;
        }
        fn evicted(&mut self, _: bool) {}
    }

    proptest! {
        #[test]
        fn every_written_line_reaches_the_medium_and_never_more_often_than_it_was_written(
            lines in prop::collection::vec(0_u32..64, 1..400),
            slots in 1_u32..8,
            policy in prop::sample::select(vec![Replacement::Lru, Replacement::Fifo, Replacement::Random]),
            at_once in any::<bool>(),
        ) {
            let full = if at_once { FullLines::AtOnce } else { FullLines::OnEviction };
            let mut buffer = buffer(slots, policy, full);
            let mut written = Written::default();
            let mut came = std::collections::BTreeMap::<u32, u64>::new();
            for &line in &lines {
                buffer.write(line, &mut written);
                *came.entry(line / 4).or_default() += 1;
                prop_assert_eq!(buffer.check(), Ok(()));
            }
            buffer.write_out(&mut written);
            prop_assert_eq!(buffer.dirty_lines(), 0);
            for (xpline, writes) in &came {
                let media = written.0.get(xpline).copied().unwrap_or(0);
                prop_assert!((1..=*writes).contains(&media), "XPLine {}: {} of {}", xpline, media, writes);
            }
            prop_assert_eq!(written.0.len(), came.len());
        }
    }
}
