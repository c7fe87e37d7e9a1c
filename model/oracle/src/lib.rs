//! A test oracle for key-value engines. It finds wrong answers, lost writes, and histories that no
//! order of the calls explains, and reduces what it finds to a program of a few lines.
//!
//! The engine under test implements two traits: [`Kv`], what a store does, and [`Engine`], how a
//! store is opened, what it promises and what it accepts. The oracle makes the rest: programs of
//! operations, devices that lose power, threads, and damage to the medium.
//!
//! ```text
//!   seed ─▶ generate ─▶ program ─▶ your engine ─▶ answers ─▶ compared with a reference map
//!                          ▲           │ writes                        │ a difference
//!                          │           ▼                               ▼
//!                          │     crash device ─▶ crash states ─▶ recovery ─▶ a Finding
//!                          │                                               │
//!                          └────────────── shrink: a smaller program ──────┘
//! ```
//!
//! This engine keeps each folder's map in memory, and its scans skip the first key. Random programs
//! show that at once:
//!
//! ```
//! use std::collections::{BTreeMap, HashMap};
//! use std::ops::Bound::{Excluded, Unbounded};
//! use std::path::PathBuf;
//! use std::sync::{Arc, Mutex};
//! use treering_oracle::campaign::{Plan, differential};
//! use treering_oracle::{Check, Disk, DiskKind, Engine, Kv, Limits, Lsn, Promise, Result, Visitor};
//!
//! #[derive(Default)]
//! struct Map(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);
//!
//! impl Kv for Map {
//!     fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
//!         let map = self.0.lock().unwrap();
//!         *value = map.get(key).cloned().unwrap_or_default();
//!         Ok(map.contains_key(key))
//!     }
//!     fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
//!         self.0.lock().unwrap().insert(key.to_vec(), value.to_vec());
//!         Ok(Lsn(0))
//!     }
//!     fn delete(&self, key: &[u8]) -> Result<Lsn> {
//!         self.0.lock().unwrap().remove(key);
//!         Ok(Lsn(0))
//!     }
//!     fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
//!         let map = self.0.lock().unwrap();
//!         let mut rows = map.range::<[u8], _>((Excluded(from), Unbounded)); // should be Included
//!         let _ = rows.try_for_each(|(key, value)| visit(key, value));
//!         Ok(())
//!     }
//!     fn sync(&self, _: Lsn) -> Result<()> {
//!         Ok(())
//!     }
//! }
//!
//! /// The store of each folder, so that it is there when the folder is opened again.
//! #[derive(Default)]
//! struct MapEngine(Mutex<HashMap<PathBuf, Arc<Map>>>);
//!
//! impl Engine for MapEngine {
//!     fn name(&self) -> String {
//!         "map".into()
//!     }
//!     fn disk(&self) -> DiskKind {
//!         DiskKind::Folder
//!     }
//!     fn promise(&self) -> Promise {
//!         Promise::OnReturn
//!     }
//!     fn limits(&self) -> Limits {
//!         Limits { max_key: 100, max_record: 1_000, empty_key: true }
//!     }
//!     fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
//!         let Disk::Folder(path) = disk else { unreachable!("it asked for a folder") };
//!         Ok(self.0.lock().unwrap().entry(path.clone()).or_default().clone())
//!     }
//! }
//!
//! let outcome = differential(&MapEngine::default(), &Plan::default(), &|_| {});
//! let (_seed, failure) = outcome.failure.expect("scans are wrong");
//! assert_eq!(failure.finding.check, Check::Scan);
//! assert!(failure.program.ops.len() <= 3, "{:?}", failure.program); // a put, a scan
//! ```
//!
//! If your engine has atomic batches, implement [`Kv::write`] and [`Engine::batch_bytes`] as well.
//!
//! `examples/judge.rs` is an engine on a device, judged with power cuts as well; `model/README.md`
//! explains the modes and the program files.
//!
//! | module | what it is for |
//! |---|---|
//! | [`campaign`] | run many programs, on a few threads, and reduce the first failure: start here |
//! | [`engine`] | the [`Engine`] trait: how to open a store, what it promises, what it accepts |
//! | [`engines`] | Treering's own engines behind that trait |
//! | [`exec`] | engines in any language, behind a pipe |
//! | [`finding`] | what was expected, what was found, and which check noticed |
//! | [`program`] | programs, and the text files that they are saved as |
//! | [`generate`] | random programs for an engine, by seed |
//! | [`shrink`] | the smallest program that still fails |
//! | [`session`], [`differential`] | run a program beside the reference map |
//! | [`reference`](mod@reference), [`value`] | the reference map; values that name their write |
//! | [`crash`] | every state that a power cut can leave, or a sample of them |
//! | [`medium`] | simulated block devices and persistent memory that lose power |
//! | [`damage`] | flipped bits, lost and misdirected writes, truncated files |
//! | [`concurrent`] | real threads on one store |
//! | [`history`], [`linear`] | the recorded calls of threads; are they linearizable? |
//! | [`edges`], [`reach`] | lengths at which formats change; what a run has exercised |
//! | [`system`] | a file system that writes short, is interrupted, and reorders batches |
//! | [`deadline`], [`random`], [`panics`] | time limits, seeded random numbers, caught panics |

pub mod campaign;
pub mod concurrent;
pub mod crash;
pub mod damage;
pub mod deadline;
pub mod differential;
pub mod edges;
pub mod engine;
pub mod engines;
pub mod exec;
pub mod finding;
pub mod generate;
pub mod history;
pub mod linear;
pub mod medium;
pub mod panics;
mod patience;
mod point;
pub mod program;
pub mod random;
pub mod reach;
pub mod reference;
pub mod session;
pub mod shrink;
pub mod system;
pub mod value;

pub use deadline::Deadline;
pub use engine::{Disk, DiskKind, Engine, Limits, LongValues, Promise, Transactions, Write};
pub use finding::{Check, Finding};
pub use program::{Change, CrashPoint, Keep, KeyNo, Op, Program};
pub use reference::Reference;
pub use session::{Tally, execute};

// What an adapter needs of the engine crate, so that it need not depend on that crate as well.
pub use treering_engine::{
    BLOCK_SIZE, Batch, Error, IoClass, Kv, Lba, Lsn, Result, Visitor, device,
};
