//! Models the XPBuffer: which writes to an XPLine are combined with the previous one.
//!
//! An XPLine is in the buffer with a probability that depends on how often it is written, and the
//! probabilities add up to the buffer's size. With `r` writes of one XPLine for each XPLine that is
//! newly inserted into the buffer:
//!
//! ```text
//! least recently written   p(r) = 1 - exp(-r T)       (Che et al., JSAC 2002)
//! any (random)             p(r) = r T / (1 + r T)     (Gallo et al., 2012)
//! sum p(r_i) = lines                                  gives T
//! ```

use crate::pm::{FullLines, PmProfile, Replacement};

/// The XPBuffers of all DIMMs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XpBuffer {
    /// Number of XPLines in all DIMMs.
    pub lines: f64,
    /// Replacement policy; FIFO is treated like least recently written.
    pub replacement: Replacement,
    /// When full XPLines are written.
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

    /// Probability that an XPLine is still there after this many others have been inserted.
    pub(super) fn stays(&self, others: f64) -> f64 {
        match self.replacement {
            Replacement::Random => (-others / self.lines).exp(),
            Replacement::Lru | Replacement::Fifo => f64::from(u8::from(others < self.lines)),
        }
    }

    /// How often an XPLine is evicted dirty while it is written in `writes` parts and `others`
    /// XPLines are inserted.
    pub(super) fn evictions_while(&self, others: f64, writes: f64) -> f64 {
        match self.replacement {
            Replacement::Random => writes * (1.0 - (-others / writes / self.lines).exp()),
            // Each part finds the XPLine either still there or evicted.
            _ if others / writes < self.lines => 0.0,
            _ => writes,
        }
    }
}

/// Share of flushes that are not combined with the previous one. `rates` are the flush rates of
/// leaves, each of which represents `weight` leaves. In addition, `whole` XPLines are written once,
/// and `log_lines` are filled one by one.
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
    // Time, measured in writes of XPLines.
    let all = flushes + whole + log_lines;
    let others = (whole + log_lines) / all;
    let held = |time: f64| {
        let leaves: f64 = (rates.iter())
            .map(|rate| buffer.present(rate / all, time))
            .sum();
        // XPLines that are written once stay until they are evicted.
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
