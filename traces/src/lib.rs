//! Traces: what users do. One operation type, one format (readable or packed), importers, generators, statistics.

#![warn(missing_docs)]

mod error;
pub mod generate;
pub mod info;

mod op;

pub use error::TraceError;
pub use op::{Header, Op, OpKind, OpSource};
