//! Persistent memory behind the engine's [`PmDevice`](treering_engine::device::PmDevice): a CPU
//! cache, DIMMs with write-combining buffers, and a medium that is written in XPLines of 256 bytes.
//!
//! ```text
//!  store ─▶ CPU cache ──clwb, or eviction──▶┐
//!  ntstore ─▶ write combining ──────────────┤ lines of 64 B, on their way
//!                                           ▼
//!           write-pending queue (persistent from here on: ADR)
//!                                           ▼               one of each per DIMM;
//!           XPBuffer: 64 XPLines                            DIMMs interleave every 4 KiB
//!             │ full: written at once, kept clean ─────────▶ ┐
//!             └ evicted partly dirty: read, merged, written ─▶ medium: XPLines of 256 B
//!  load ◀─ CPU cache ◀─ XPBuffer or read buffer ◀─────────── ┘
//! ```
//!
//! (DEVICES §2; CCL-BTree §2.1; the modelling note on the XPBuffer in CLAIMS.) CLI-amplification is
//! the bytes into the buffer divided by user bytes, and XBI-amplification the bytes into the medium
//! divided by user bytes.
//!
//! **Scope.** The simulation models counts, times and contents: a load returns what was last
//! stored. It does not model power loss; for crashes there is
//! [`MemPm`](treering_engine::device::MemPm), on which the oracle runs.
//!
//! | module | contents |
//! |---|---|
//! | `profile` | TOML profiles: [`PmProfile`] |
//! | `cpu`, `cache` | which lines leave the CPU, and when |
//! | [`buffer`] | the XPBuffer of one DIMM |
//! | `dimms` | interleaving, classes, counters, wear |
//! | `timing` | queues in virtual time, for closed-loop clients |
//! | [`device`] | [`SimPm`], which combines them |

pub mod buffer;
mod cache;
mod counters;
mod cpu;
pub mod device;
mod dimms;
mod profile;
mod timing;

pub use buffer::{FullLines, Replacement};
pub use counters::PmCounters;
pub use device::{PmError, SimPm};
pub use profile::{BufferProfile, CpuProfile, PmProfile, TimesProfile, builtin, builtin_names};

/// Bytes of an XPLine, the write unit of the medium.
pub const XPLINE_SIZE: usize = 256;

/// Cache lines of an XPLine.
const XPLINE_LINES: u32 = (XPLINE_SIZE / treering_engine::device::LINE_SIZE) as u32;
