//! Replays traces through Treering's real trees on simulated devices, and predicts what they write.
//!
//! ```text
//! trace ──▶ replay ──▶ real engine ──▶ ssd | csd | pm | a file
//!    │         │                          in virtual time; on a file, in real time
//!    │         ▼
//!    │      report ──▶ JSON, text, HTML: measured beside predicted
//!    │         ▲
//!    └──▶ predict: from the trace's statistics alone
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`replay`] | replays a trace through the real engine on a device |
//! | [`report`] | the results, as JSON, text and HTML |
//! | [`predict`] | predicts write amplification from a trace's statistics alone |
//! | [`ssd`], [`csd`] | a page-mapped drive; a compressing drive |
//! | [`pm`] | persistent memory: write combining, XPLines, and the CPU cache before them |
//! | [`limit`] | the least that a memory allows, whatever the policy |
//! | [`drive`] | the interface for drives of your own |
//! | [`layouts`] | the space that page layouts need, for any keys |
//! | [`clock`], [`queue`], [`values`] | virtual time, its events, and generated values |
//!
//! To replay a generated trace and print write amplification by cause:
//!
//! ```
//! use treering_sim::replay::{ReplayConfig, Target, run};
//! use treering_traces::generate::{GenParams, Workload, build};
//! use treering_traces::{Op, OpSource, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("zipf.trz");
//! let (header, mut source) = build(&GenParams::new(Workload::Zipf, 2_000))?;
//! let mut writer = Writer::create(&path, header)?;
//! let mut op = Op::default();
//! while source.next_op(&mut op)? {
//!     writer.write(&op)?;
//! }
//! writer.finish()?;
//!
//! let target = Target::builtin("ssd").expect("a built-in drive");
//! let report = run(&ReplayConfig::new(path, target), &mut |_| {})?;
//! let (host, drive) = (report.wa.host, report.wa.device.expect("a simulated drive"));
//! println!("log {:.2}, pages {:.2}, the rest {:.2}", host.log, host.page, host.extra);
//! println!("by the drive's garbage collection {:.2}", drive.gc);
//! assert!(report.complete && host.total > 1.0);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod clock;
mod codec;
pub mod csd;
pub mod drive;
mod labels;
pub mod layouts;
pub mod limit;
mod mean;
pub mod pm;
pub mod predict;
mod profiles;
pub mod queue;
pub mod replay;
pub mod report;
pub mod ssd;
pub mod values;
