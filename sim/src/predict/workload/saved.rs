//! The statistics as a stream of bytes, to be read instead of the trace.
//!
//! ```text
//! totals 2 | sample, tick, burstiness, … | keys: blocks, map, segments | accesses in pieces
//! ```
//!
//! Keys are written as they are in memory, accesses in pieces of 65,536 words: all first bytes, all
//! second ones, and so on, because the upper bytes of neighbours are alike and then compress well.
//! Neither is in memory twice.

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::Workload;
use super::accesses::Accesses;
use super::derived::Derived;
use super::keys::Keys;
use super::totals::Totals;
use crate::codec::{Decoder, Encoder};

impl Workload {
    /// Writes the statistics.
    ///
    /// # Errors
    /// Those of `to`, and of the temporary file with the accesses.
    pub(crate) fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut out = Encoder(to);
        self.warmup.save(&mut out)?;
        self.measured.save(&mut out)?;
        out.number(self.sample_shift.into())?;
        out.float(self.rewrites_before)?;
        out.float(self.zeros)?;
        out.maybe(self.burstiness.map(f64::to_bits))?;
        out.maybe(self.warmup_bytes.map(f64::to_bits))?;
        out.number(self.tick)?;
        self.keys.save(&mut out)?;
        self.accesses.save(&mut out)
    }

    /// Reads what [`Workload::save`] wrote.
    ///
    /// # Errors
    /// Those of `from`; input that was not written by it.
    pub(crate) fn load(from: &mut dyn Read) -> io::Result<Workload> {
        let mut from = Decoder(from);
        Ok(Workload {
            warmup: Totals::load(&mut from)?,
            measured: Totals::load(&mut from)?,
            sample_shift: from.small()?,
            rewrites_before: from.float()?,
            zeros: from.float()?,
            burstiness: from.maybe()?.map(f64::from_bits),
            warmup_bytes: from.maybe()?.map(f64::from_bits),
            tick: from.number()?,
            keys: Keys::load(&mut from)?,
            accesses: Accesses::load(&mut from)?,
            sums: OnceLock::new(),
            kept: Mutex::default(),
            samples: Derived::default(),
            limits: Derived::default(),
        })
    }
}
