//! XPLines on their way through the XPBuffer, each by itself: what of the others it knows is how
//! many come to the buffer in a given time.
//!
//! ```text
//! touched again after a gap of g operations, m XPLines an operation come anew: still there with the chance of `XpBuffer::stays(g m)`
//! it was not: if lines of it were dirty, it has been written.         all four dirty: written (if full ones are, at once), and clean
//! ```

use super::super::buffer::XpBuffer;
use crate::pm::FullLines;
use crate::ssd::gc::SplitMix;

/// All lines of an XPLine.
const ALL: u8 = 0xf;
/// Bins of gaps for each doubling.
const BINS: f64 = 8.0;

/// An XPLine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct XpLine {
    /// Lines that the medium does not have.
    dirty: u8,
    /// When it was touched last, in ticks.
    last: Option<u32>,
}

/// How often XPLines were touched again after how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Touched for the first time.
    first: f64,
    /// By the logarithm of the gap.
    again: Vec<f64>,
}

impl Gaps {
    fn note(&mut self, gap: Option<u32>) {
        let Some(gap) = gap else {
            self.first += 1.0;
            return;
        };
        let bin = (f64::from(gap).log2() * BINS).round() as usize;
        if self.again.len() <= bin {
            self.again.resize(bin + 1, 0.0);
        }
        self.again[bin] += 1.0;
    }

    /// How many of them find the XPLine gone, if so many come anew in a tick.
    pub(super) fn missed(&self, buffer: &XpBuffer, per_tick: f64) -> f64 {
        let of = |(bin, n): (usize, &f64)| {
            let gap = (bin as f64 / BINS).exp2();
            n * (1.0 - buffer.stays(gap * per_tick))
        };
        self.first + self.again.iter().enumerate().map(of).sum::<f64>()
    }
}

/// The buffer, and what the measured part made of it.
pub(super) struct Medium<'a> {
    buffer: &'a XpBuffer,
    /// XPLines that come anew in a tick.
    per_tick: f64,
    /// When the measured part begins, in ticks.
    from: u32,
    random: SplitMix,
    /// Lines that reached the buffer.
    pub(super) lines: f64,
    /// XPLines that were written.
    pub(super) written: f64,
    pub(super) gaps: Gaps,
}

impl Medium<'_> {
    pub(super) fn new(buffer: &XpBuffer, per_tick: f64, from: u32) -> Medium<'_> {
        Medium {
            buffer,
            per_tick,
            from,
            random: SplitMix(0),
            lines: 0.0,
            written: 0.0,
            gaps: Gaps::default(),
        }
    }

    /// When the measured part begins, in ticks.
    pub(super) fn from(&self) -> u32 {
        self.from
    }

    /// Lines of an XPLine, a bit each, come in their order.
    pub(super) fn touch(&mut self, xpline: &mut XpLine, lines: u8, time: u32) {
        if lines == 0 {
            return;
        }
        let gap = xpline.last.map(|last| time - last);
        let measured = time >= self.from;
        if measured {
            self.lines += f64::from(lines.count_ones());
            if gap != Some(0) {
                self.gaps.note(gap);
            }
        }
        if gap != Some(0) {
            let stays = gap.map_or(0.0, |gap| self.buffer.stays(f64::from(gap) * self.per_tick));
            if self.random.next() as f64 >= stays * u64::MAX as f64 {
                self.leave(xpline);
            }
        }
        xpline.last = Some(time);
        for line in 0..4 {
            xpline.dirty |= lines & 1 << line;
            if xpline.dirty == ALL && self.buffer.full_lines == FullLines::AtOnce {
                self.written += f64::from(u8::from(measured));
                xpline.dirty = 0;
            }
        }
    }

    /// Leaves the buffer, and counts with the part that touched it last.
    pub(super) fn leave(&mut self, xpline: &mut XpLine) {
        if xpline.dirty != 0 && xpline.last.is_some_and(|last| last >= self.from) {
            self.written += 1.0;
        }
        xpline.dirty = 0;
    }
}
