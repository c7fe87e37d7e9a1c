//! Traces of storage workloads: read, write, generate, import and describe them.
//!
//! A trace is a sequence of operations on keys ([`Op`]: get, put, delete or scan) behind a
//! [`Header`]. It holds the lengths of values but not their bytes: a replay generates those from a
//! seed. Everything streams, so memory does not depend on the length of a trace.
//!
//! ```text
//!   other tools' files ──► import ─┐                        ┌─► a replay, which takes an OpSource
//!                                  ├─► Writer ══► Reader ───┤
//!   parameters + seed ─► generate ─┘   .trz, .jsonl         └─► info: keys, sizes, skew
//! ```
//!
//! Reading the sample that ships with the project:
//!
//! ```
//! use treering_traces::{Op, OpSource, open};
//!
//! let mut trace = open("samples/zipf.trz")?;
//! let (mut op, mut bytes) = (Op::default(), 0);
//! while trace.next_op(&mut op)? {
//!     bytes += op.user_bytes();
//! }
//! assert!(bytes > 0);
//! # Ok::<(), treering_traces::TraceError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`format`](mod@format) | the file format, readable (`.jsonl`) or packed (`.trz`) |
//! | [`generate`] | YCSB, Zipf, RocksDB's `mixgraph` and others, each determined by its seed |
//! | [`import`] | traces of other tools: block devices, caches, key-value stores |
//! | [`info`] | statistics of a trace |
//! | [`input`] | compressed input files and their lines |

#![warn(missing_docs)]

mod blocks;
mod error;
pub mod format;
pub mod generate;
mod hex;
pub mod import;
pub mod info;
pub mod input;
mod op;

pub use blocks::Blocks;
pub use error::TraceError;
pub use format::{Reader, Writer, open};
pub use op::{Header, Op, OpKind, OpSource};
