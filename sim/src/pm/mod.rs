//! Persistent memory behind the engine's [`PmDevice`](treering_engine::device::PmDevice): a CPU
//! cache, DIMMs with write-combining buffers, and a medium that is written in XPLines of 256 bytes.
//!
//! ```text
//!  store ─▶ CPU cache ──clwb, or eviction──▶┐
//!  ntstore ─▶ write combining ──────────────┤ lines of 64 B, on their way
//!                                           ▼
//!           write-pending queue (persistent from here on: ADR)      one of each a DIMM; 4 KiB after 4 KiB on the next DIMM
//!                                           ▼
//!           XPBuffer: 64 XPLines ──full: written at once, kept clean──▶ ┐
//!                          └───── evicted with a part: read, merged, written ─▶ medium: XPLines of 256 B
//!  load ◀─ CPU cache ◀─ XPBuffer or read buffer ◀──────────────────────── ┘
//! ```
//!
//! (DEVICES §2; CCL-BTree §2.1; the modelling note on the XPBuffer in CLAIMS.) Bytes into the
//! buffer over user bytes are CLI-amplification, bytes into the medium over user bytes
//! XBI-amplification.
//!
//! **What it is for.** Counts, times and contents: a load returns what was last stored. What a
//! crash leaves is not asked here but of [`MemPm`](treering_engine::device::MemPm), on which the
//! oracle runs; this device has no notion of losing power.
//!
//! | room | what |
//! |---|---|
//! | `profile` | TOML profiles: [`PmProfile`] |
//! | `cpu`, `cache` | which lines leave the CPU, and when |
//! | [`buffer`] | the XPBuffer of one DIMM |
//! | `dimms` | interleaving, classes, counters, wear |
//! | `timing` | queues in virtual time, for clients in closed loop |
//! | [`device`] | [`SimPm`], which puts them together |

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

/// Bytes of an XPLine, the unit of the medium.
pub const XPLINE_SIZE: usize = 256;

/// Cache lines of an XPLine.
const XPLINE_LINES: u32 = (XPLINE_SIZE / treering_engine::device::LINE_SIZE) as u32;
