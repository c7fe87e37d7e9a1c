//! Traces: what users do. One operation type, one format (readable or packed), importers, generators, statistics.

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
