//! The XPBuffer of one DIMM: 64-byte lines in, whole XPLines out.
//!
//! ```text
//!  slot    XPLine 7   dirty ▮▮▯▯  known ▮▮▯▯    two lines came since it was last written; the other two are on the medium only
//!          XPLine 9   dirty ▯▯▯▯  known ▮▮▮▮    was full, has been written, stays: a line that comes again is dirt again
//! ```
//!
//! A line whose XPLine is there joins it. Otherwise the XPLine gets a slot, and if there is none
//! left, others leave first. What leaves with all its lines dirty is written; with some of them,
//! merged with the rest, which is read from the medium unless it is known, and written; with none,
//! forgotten. An XPLine that becomes full is written at once and stays as a clean one
//! ([`FullLines::AtOnce`]: CLAIMS, modelling note on the XPBuffer; write amplification never below
//! 0.8 even if everything fits, DEVICES §2.3), or waits until it has to leave, as in a plain cache
//! ([`FullLines::OnEviction`]).
//!
//! Reads have a buffer of their own, first in, first out (DEVICES §2.3, EuroSys'22); an XPLine that
//! is written moves from there to the write buffer, so that its rest is known.
//!
//! [`XpBuffer`] counts nothing: it tells a [`MediaOps`] what happens to the medium.

use std::collections::VecDeque;
use std::fmt;

use super::XPLINE_LINES;
use crate::ssd::gc::SplitMix;

/// Who leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The one that was not written for the longest time.
    Lru,
    /// The one that came first.
    Fifo,
    /// Any.
    Random,
}

impl Replacement {
    /// Reads a profile's `replacement`.
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

/// What becomes of an XPLine all of whose lines are dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullLines {
    /// Written at once, and kept as a clean one.
    AtOnce,
    /// Written when it leaves.
    OnEviction,
}

impl FullLines {
    /// Reads a profile's `full_lines`.
    pub fn parse(text: &str) -> Option<FullLines> {
        match text {
            "at-once" => Some(FullLines::AtOnce),
            "on-eviction" => Some(FullLines::OnEviction),
            _ => None,
        }
    }
}

/// Why the medium is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaWrite {
    /// All four lines of the XPLine are new.
    Full,
    /// Some are.
    Partial,
}

/// Why the medium is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaRead {
    /// Somebody loads from it.
    Load,
    /// An XPLine that is to be written has lines that the buffer does not know.
    Merge,
}

/// What an [`XpBuffer`] does to the medium, and what it lets go; XPLines by their number in the
/// DIMM.
pub trait MediaOps {
    /// An XPLine is read.
    fn read(&mut self, xpline: u32, why: MediaRead);
    /// An XPLine is written.
    fn write(&mut self, xpline: u32, how: MediaWrite);
    /// An XPLine has left the write buffer, dirty or not; if dirty, a write came before.
    fn evicted(&mut self, dirty: bool);
}

/// How a buffer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// XPLines of the write buffer, 1 to [`MAX_SLOTS`].
    pub lines: u32,
    /// Who leaves.
    pub replacement: Replacement,
    /// So many leave at a time, 1 to `lines`.
    pub evict_lines: u32,
    /// What becomes of full ones.
    pub full_lines: FullLines,
    /// XPLines of the read buffer; 0 is none.
    pub read_lines: u32,
    /// Decides who leaves at random.
    pub seed: u64,
}

/// The most XPLines that a buffer holds.
pub const MAX_SLOTS: u32 = 1 << 15;

/// No slot.
const NIL: u16 = u16::MAX;

/// All lines of an XPLine.
const ALL: u8 = (1 << XPLINE_LINES) - 1;

#[derive(Clone, Copy, Debug)]
struct Slot {
    xpline: u32,
    /// Lines that the medium does not have yet.
    dirty: u8,
    /// Lines whose content is here.
    // invariant: dirty ⊆ known.
    known: u8,
    /// When it last was written (LRU) or came (FIFO).
    stamp: u64,
}

/// The buffers of one DIMM. See the module's story.
pub struct XpBuffer {
    config: BufferConfig,
    /// By XPLine: its slot, or [`NIL`].
    slot_of: Vec<u16>,
    // invariant: slot_of[slots[i].xpline] == i, and NIL for all others; at most `config.lines` of
    // them.
    slots: Vec<Slot>,
    reads: VecDeque<u32>,
    stamp: u64,
    rng: SplitMix,
}

impl XpBuffer {
    /// Empty buffers before a medium of so many XPLines.
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

    /// Line `line` of the DIMM comes; whether its XPLine was there.
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

    /// Line `line` of the DIMM is wanted; whether a buffer had it.
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

    /// Everything leaves, in the order in which it came into its slot.
    pub fn write_out(&mut self, media: &mut impl MediaOps) {
        while !self.slots.is_empty() {
            self.evict(0, media);
        }
    }

    /// XPLines with lines that the medium does not have yet.
    pub fn dirty_lines(&self) -> usize {
        self.slots.iter().filter(|slot| slot.dirty != 0).count()
    }

    /// Bytes that the tables take.
    pub fn memory_bytes(&self) -> usize {
        self.slot_of.len() * size_of::<u16>()
            + self.config.lines as usize * size_of::<Slot>()
            + self.config.read_lines as usize * size_of::<u32>()
    }

    /// Checks the invariants: for tests.
    ///
    /// # Errors
    /// The first that does not hold, in words.
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

    /// A slot for an XPLine that has none.
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
        // Clean, it leaves for nothing; with a line that came again it is written again, but
        // nothing need be read.
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

    /// How often each XPLine has to be written, told from the writes alone: dirty lines that are
    /// merged leave together.
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
