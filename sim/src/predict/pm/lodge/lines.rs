//! XPLines on their way through the XPBuffer. Each is simulated separately; the others matter only
//! by the rate at which they enter the buffer.
//!
//! ```text
//! touched again after a gap of g ticks, while m XPLines enter per tick:
//!   still there   with probability `XpBuffer::stays(g m)`
//!   evicted       written if lines of it were dirty
//! all four lines dirty: written if full XPLines are written at once, and then clean
//! ```

use super::super::buffer::XpBuffer;
use crate::pm::FullLines;
use crate::ssd::gc::SplitMix;

/// All lines of an XPLine.
const ALL: u8 = 0xf;
/// Number of histogram bins per doubling of the gap.
const BINS: f64 = 8.0;

/// An XPLine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct XpLine {
    /// Lines (one bit each) that have not reached the medium.
    dirty: u8,
    /// When it was last touched, in ticks.
    last: Option<u32>,
}

/// Histogram of the gaps between touches of an XPLine.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Number of first touches.
    first: f64,
    /// Number of further touches, by the logarithm of the gap.
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

    /// Number of touches that miss in the buffer if this many XPLines enter per tick.
    pub(super) fn missed(&self, buffer: &XpBuffer, per_tick: f64) -> f64 {
        let of = |(bin, n): (usize, &f64)| {
            let gap = (bin as f64 / BINS).exp2();
            n * (1.0 - buffer.stays(gap * per_tick))
        };
        self.first + self.again.iter().enumerate().map(of).sum::<f64>()
    }
}

/// The buffer, and what it wrote in the measured part.
pub(super) struct Medium<'a> {
    buffer: &'a XpBuffer,
    /// XPLines that enter per tick.
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

    /// Touches lines of an XPLine (one bit each) in their order.
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

    /// Evicts an XPLine. Its write counts for the part that last touched it.
    pub(super) fn leave(&mut self, xpline: &mut XpLine) {
        if xpline.dirty != 0 && xpline.last.is_some_and(|last| last >= self.from) {
            self.written += 1.0;
        }
        xpline.dirty = 0;
    }
}
