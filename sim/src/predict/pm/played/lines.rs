//! Models the path of cache lines to the medium: CPU cache, XPBuffers, media writes by class.
//!
//! ```text
//! store + clwb ──line──▶ XPBuffer of its DIMM ──XPLine──▶ medium      counted by the use of
//!      CPU cache: which      64 slots or so,                           the XPLine's chunk
//!      lines are fetched     dirty lines only
//! ```
//!
//! No byte exists here, only numbers of lines. With ADR, the CPU cache decides which loads and
//! stores wait, so it is a set of lines that grows without limit; with eADR it decides what is
//! written, so it has sets and ways. Durations are those of an idle device.

use std::collections::VecDeque;

use crate::pm::{FullLines, PmProfile, Replacement};
use crate::ssd::gc::SplitMix;

/// Bytes of an XPLine.
const XPLINE: u64 = 256;
/// Bytes of a cache line, and lines of an XPLine.
pub(super) const LINE: u64 = 64;
const XPLINE_LINES: u32 = 4;
/// All lines of an XPLine.
const ALL: u8 = 0xf;
/// No slot.
const NIL: u16 = u16::MAX;

/// What the bytes of a chunk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Log = 0,
    Page = 1,
    Extra = 2,
}

/// Lines and XPLines by class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Written {
    /// Lines that reached the XPBuffers.
    pub(super) lines: [u64; 3],
    /// XPLines written to the medium.
    pub(super) xplines: [u64; 3],
}

impl Written {
    pub(super) fn since(&self, before: &Written) -> Written {
        let minus = |all: [u64; 3], old: [u64; 3]| [0, 1, 2].map(|i| all[i] - old[i]);
        Written {
            lines: minus(self.lines, before.lines),
            xplines: minus(self.xplines, before.xplines),
        }
    }
}

/// Times of an idle device, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    read_hit: u64,
    read_miss: u64,
    clwb: u64,
    write_buffers: u64,
    read_buffers: u64,
}

/// The requests between two fences, or those of a load.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    count: u64,
    longest: u64,
}

impl Waiting {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.longest = self.longest.max(ns);
    }

    /// How long all take, if so many are served at a time.
    fn take(&mut self, at_a_time: u64) -> u64 {
        let took = self.count.div_ceil(at_a_time) * self.longest;
        *self = Waiting::default();
        took
    }
}

/// Lines that the CPU cache holds.
enum Cpu {
    /// Any number of them, one bit each.
    Unlimited(Vec<u64>),
    /// Sets in which the most recently used line is first: `(line + 1) << 1 | dirty`.
    Sets { ways: usize, entries: Vec<u32> },
}

impl Cpu {
    fn sets(bytes: u64, ways: u32) -> Cpu {
        let sets = (bytes / LINE / u64::from(ways)).max(1);
        Cpu::Sets {
            ways: ways as usize,
            entries: vec![0; sets as usize * ways as usize],
        }
    }

    /// Touches a line. Returns whether it was there, and a dirty line that had to leave.
    fn touch(&mut self, line: u32, store: bool) -> (bool, Option<u32>) {
        match self {
            Cpu::Unlimited(bits) => {
                let word = &mut bits[line as usize / 64];
                let bit = 1 << (line % 64);
                let hit = *word & bit != 0;
                *word |= bit;
                (hit, None)
            }
            Cpu::Sets { ways, entries } => {
                let sets = entries.len() / *ways;
                let hash = u64::from(line).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                let set = ((hash * sets as u64) >> 32) as usize;
                let set = &mut entries[set * *ways..][..*ways];
                let wanted = (line + 1) << 1;
                let found = set.iter().position(|entry| entry & !1 == wanted);
                let at = found.unwrap_or(set.len() - 1);
                let before = set[at];
                set.copy_within(..at, 1);
                let dirty = u32::from(store) | if found.is_some() { before & 1 } else { 0 };
                set[0] = wanted | dirty;
                let gone = found.is_none() && before & 1 == 1;
                (found.is_some(), gone.then(|| (before >> 1) - 1))
            }
        }
    }

    /// A line is dropped when it is written back.
    fn drop_line(&mut self, line: u32) {
        if let Cpu::Unlimited(bits) = self {
            bits[line as usize / 64] &= !(1 << (line % 64));
        }
    }
}

#[derive(Clone, Copy)]
struct Slot {
    xpline: u32,
    dirty: u8,
    /// Lines that a load finds here.
    known: u8,
    stamp: u64,
}

/// The slots of one DIMM's XPBuffer, and the XPLines of its read buffer, first in first out.
#[derive(Default)]
struct Buffer {
    slots: Vec<Slot>,
    reads: VecDeque<u32>,
}

/// Which chunk an XPLine is in, and what chunks are used for.
struct Classes {
    /// First XPLine of chunk 0, and XPLines of a chunk.
    start: u32,
    chunk: u32,
    of_chunk: Vec<Class>,
}

impl Classes {
    fn of(&self, xpline: u32) -> Class {
        let chunk = xpline.checked_sub(self.start).map(|at| at / self.chunk);
        let known = chunk.and_then(|chunk| self.of_chunk.get(chunk as usize));
        known.copied().unwrap_or(Class::Extra)
    }
}

/// The lines of a device.
pub(super) struct Lines {
    cpu: Cpu,
    eadr: bool,
    keeps_line: bool,
    dimms: u32,
    /// XPLines of an interleaving unit.
    unit: u32,
    size: usize,
    read_size: usize,
    evict: u32,
    replacement: Replacement,
    at_once: bool,
    buffers: Vec<Buffer>,
    slot_of: Vec<u16>,
    classes: Classes,
    stamp: u64,
    random: SplitMix,
    times: Times,
    writes: Waiting,
    ns: u64,
    pub(super) written: Written,
}

impl Lines {
    /// A device of this many bytes with chunks of `chunk_bytes` from `start` on. `scale` keys of the
    /// trace are one here, so the buffers are smaller by this factor.
    pub(super) fn new(
        profile: &PmProfile,
        bytes: u64,
        (start, chunk_bytes, chunks): (u64, u64, u32),
        scale: u64,
    ) -> Lines {
        let lines = bytes.div_ceil(LINE) as usize + 64;
        let size = (u64::from(profile.buffer.lines) / scale).max(1) as usize;
        let xpline = XPLINE;
        let ns = |time: f64| time.round() as u64;
        Lines {
            cpu: if profile.eadr {
                Cpu::sets(profile.cpu.cache_bytes / scale, profile.cpu.cache_ways)
            } else {
                Cpu::Unlimited(vec![0; lines.div_ceil(64)])
            },
            eadr: profile.eadr,
            keeps_line: profile.cpu.clwb_keeps_line,
            dimms: profile.dimms,
            unit: (u64::from(profile.interleave_bytes) / xpline).max(1) as u32,
            size,
            read_size: (u64::from(profile.buffer.read_lines) / scale) as usize,
            evict: profile.buffer.evict_lines.min(size as u32),
            replacement: Replacement::parse(&profile.buffer.replacement)
                .unwrap_or(Replacement::Random),
            at_once: FullLines::parse(&profile.buffer.full_lines) != Some(FullLines::OnEviction),
            buffers: (0..profile.dimms).map(|_| Buffer::default()).collect(),
            slot_of: vec![NIL; lines.div_ceil(XPLINE_LINES as usize)],
            classes: Classes {
                start: (start / xpline) as u32,
                chunk: (chunk_bytes / xpline) as u32,
                of_chunk: vec![Class::Extra; chunks as usize],
            },
            stamp: 0,
            random: SplitMix(1),
            times: Times {
                read_hit: ns(profile.times.read_hit_ns),
                read_miss: ns(profile.times.read_miss_ns),
                clwb: ns(profile.times.clwb_ns),
                write_buffers: u64::from(profile.cpu.write_buffers),
                read_buffers: u64::from(profile.cpu.read_buffers),
            },
            writes: Waiting::default(),
            ns: 0,
            written: Written::default(),
        }
    }

    /// A chunk is used for something else from now on.
    pub(super) fn set_class(&mut self, chunk: u32, class: Class) {
        self.classes.of_chunk[chunk as usize] = class;
    }

    /// Loads bytes.
    pub(super) fn load(&mut self, offset: u64, len: u64) {
        let mut reads = Waiting::default();
        for line in offset / LINE..(offset + len).div_ceil(LINE) {
            let line = line as u32;
            let (hit, gone) = self.cpu.touch(line, false);
            if let Some(gone) = gone {
                self.arrive(gone);
            }
            if !hit {
                reads.add(self.read_ns(line));
            }
        }
        self.ns += reads.take(self.times.read_buffers);
    }

    /// How long a line is read for: less if a buffer has it.
    fn read_ns(&mut self, line: u32) -> u64 {
        let (xpline, bit) = (line / XPLINE_LINES, 1 << (line % XPLINE_LINES));
        let buffer = &mut self.buffers[(xpline / self.unit % self.dimms) as usize];
        let hit = match self.slot_of[xpline as usize] {
            NIL => {
                let hit = buffer.reads.contains(&xpline);
                if !hit && self.read_size > 0 {
                    if buffer.reads.len() == self.read_size {
                        buffer.reads.pop_front();
                    }
                    buffer.reads.push_back(xpline);
                }
                hit
            }
            at => {
                let slot = &mut buffer.slots[usize::from(at)];
                let hit = slot.known & bit != 0;
                if !hit {
                    slot.known = ALL;
                }
                hit
            }
        };
        if hit {
            self.times.read_hit
        } else {
            self.times.read_miss
        }
    }

    /// Stores to the lines of these bytes, and writes them back.
    pub(super) fn write(&mut self, offset: u64, len: u64) {
        for line in offset / LINE..(offset + len).div_ceil(LINE) {
            self.write_line(line as u32);
        }
    }

    /// Stores to the lines (one bit each) behind an offset, and writes them back.
    pub(super) fn write_lines(&mut self, offset: u64, lines: u8) {
        let first = (offset / LINE) as u32;
        for line in (0..8).filter(|line| lines >> line & 1 == 1) {
            self.write_line(first + line);
        }
    }

    fn write_line(&mut self, line: u32) {
        let (hit, gone) = self.cpu.touch(line, true);
        if let Some(gone) = gone {
            self.arrive(gone);
        }
        if self.eadr {
            return;
        }
        let fetch = if hit { 0 } else { self.read_ns(line) };
        self.writes.add(fetch + self.times.clwb);
        if !self.keeps_line {
            self.cpu.drop_line(line);
        }
        self.arrive(line);
    }

    /// Waits for everything written.
    pub(super) fn fence(&mut self) {
        self.ns += self.writes.take(self.times.write_buffers);
    }

    /// Nanoseconds since the last call.
    pub(super) fn take_ns(&mut self) -> u64 {
        std::mem::take(&mut self.ns)
    }

    /// A line arrives at its DIMM.
    fn arrive(&mut self, line: u32) {
        let (xpline, bit) = (line / XPLINE_LINES, 1 << (line % XPLINE_LINES));
        let class = self.classes.of(xpline);
        self.written.lines[class as usize] += 1;
        self.stamp += 1;
        let dimm = (xpline / self.unit % self.dimms) as usize;
        let mut at = self.slot_of[xpline as usize];
        if at == NIL {
            at = self.insert(dimm, xpline);
        }
        let slot = &mut self.buffers[dimm].slots[at as usize];
        if self.replacement == Replacement::Lru {
            slot.stamp = self.stamp;
        }
        slot.dirty |= bit;
        slot.known |= bit;
        if slot.dirty == ALL && self.at_once {
            slot.dirty = 0;
            self.written.xplines[class as usize] += 1;
        }
    }

    fn insert(&mut self, dimm: usize, xpline: u32) -> u16 {
        if self.buffers[dimm].slots.len() >= self.size {
            for _ in 0..self.evict {
                self.evict(dimm);
            }
        }
        let Buffer { slots, reads } = &mut self.buffers[dimm];
        let read = reads.iter().position(|read| *read == xpline);
        if let Some(read) = read {
            reads.remove(read);
        }
        let at = slots.len() as u16;
        slots.push(Slot {
            xpline,
            dirty: 0,
            known: if read.is_some() { ALL } else { 0 },
            stamp: self.stamp,
        });
        self.slot_of[xpline as usize] = at;
        at
    }

    fn evict(&mut self, dimm: usize) {
        let slots = &mut self.buffers[dimm].slots;
        let victim = match self.replacement {
            Replacement::Random => self.random.below(slots.len() as u64) as usize,
            Replacement::Lru | Replacement::Fifo => {
                let oldest = (0..slots.len()).min_by_key(|at| slots[*at].stamp);
                oldest.unwrap_or(0)
            }
        };
        let gone = slots.swap_remove(victim);
        self.slot_of[gone.xpline as usize] = NIL;
        if let Some(moved) = slots.get(victim) {
            self.slot_of[moved.xpline as usize] = victim as u16;
        }
        if gone.dirty != 0 {
            self.written.xplines[self.classes.of(gone.xpline) as usize] += 1;
        }
    }
}
