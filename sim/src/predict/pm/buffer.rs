//! The XPBuffer: which writes of an XPLine it joins with the one before.
//!
//! An XPLine is in the buffer with a probability that depends on how often it is written; all these
//! add up to the buffer's size. With `r` writes of one XPLine for each that comes to the buffer
//! anew:
//!
//! ```text
//! least recently written   p(r) = 1 - exp(-r T)       (Che et al., JSAC 2002)
//! any (random)             p(r) = r T / (1 + r T)     (Gallo et al., 2012)
//! sum p(r_i) = lines                                  gives T
//! ```

use crate::pm::{FullLines, PmProfile, Replacement};

/// The XPBuffers of all DIMMs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XpBuffer {
    /// XPLines, of all DIMMs together.
    pub lines: f64,
    /// Who leaves; first in, first out is taken for least recently written.
    pub replacement: Replacement,
    /// What becomes of full ones.
    pub full_lines: FullLines,
}

impl XpBuffer {
    /// The buffers of a device.
    #[must_use]
    pub fn of(profile: &PmProfile) -> XpBuffer {
        let buffer = &profile.buffer;
        XpBuffer {
            lines: f64::from(buffer.lines * profile.dimms),
            replacement: Replacement::parse(&buffer.replacement).unwrap_or(Replacement::Random),
            full_lines: FullLines::parse(&buffer.full_lines).unwrap_or(FullLines::AtOnce),
        }
    }

    fn present(&self, rate: f64, time: f64) -> f64 {
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => 1.0 - (-rate * time).exp(),
            Replacement::Random => rate * time / (1.0 + rate * time),
        }
    }

    /// Chance that an XPLine is still there when so many others have come since it was written.
    pub(super) fn stays(&self, others: f64) -> f64 {
        match self.replacement {
            Replacement::Random => (-others / self.lines).exp(),
            Replacement::Lru | Replacement::Fifo => f64::from(u8::from(others < self.lines)),
        }
    }

    /// How often an XPLine leaves dirty while it is written in `writes` parts and `others` XPLines
    /// come.
    pub(super) fn evictions_while(&self, others: f64, writes: f64) -> f64 {
        match self.replacement {
            Replacement::Random => writes * (1.0 - (-others / writes / self.lines).exp()),
            // Each part finds it still there, or none.
            _ if others / writes < self.lines => 0.0,
            _ => writes,
        }
    }
}

/// Share of flushes that are not joined with the one before: `rates` are those of leaves that stand
/// for `weight` each, beside `whole` XPLines that are written once and `log_lines` that are filled
/// one by one.
pub(super) fn media_share(
    buffer: &XpBuffer,
    rates: &[f64],
    weight: f64,
    whole: f64,
    log_lines: f64,
) -> f64 {
    let flushes: f64 = rates.iter().sum::<f64>() * weight;
    if flushes <= 0.0 {
        return 1.0;
    }
    // Time in writes of XPLines.
    let all = flushes + whole + log_lines;
    let others = (whole + log_lines) / all;
    let held = |time: f64| {
        let leaves: f64 = (rates.iter())
            .map(|rate| buffer.present(rate / all, time))
            .sum();
        // Those that are written once are there for as long as it takes to leave.
        leaves * weight + (others * time).min(buffer.lines)
    };
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < buffer.lines && high < 1e15 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if held(middle) < buffer.lines {
            low = middle;
        } else {
            high = middle;
        }
    }
    let missed: f64 = (rates.iter())
        .map(|rate| rate * (1.0 - buffer.present(rate / all, high)))
        .sum();
    missed * weight / flushes
}
