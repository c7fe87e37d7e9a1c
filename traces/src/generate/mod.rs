//! Generated traces: the same bytes from the same seed, on every machine.
//!
//! A generator is an [`OpSource`] whose header is complete before its first operation, because every count is
//! exact by construction:
//!
//! ```text
//!   load          operations
//!   ─────────────┬───────────────────────────────────────────
//!   put × records│ mix draws an action, chooser draws a record, keys turns the record into bytes
//!   = warm-up    │
//! ```
//!
//! - `mix`: how many gets, puts, deletes, scans, inserts, read-modify-writes; exact counts in random order. A read-modify-write
//!   of YCSB F is a get and a put of one key by one client, two operations of the trace; half of the *transactions* are
//!   such pairs, hence two thirds of the operations.
//! - `choose`: popularity. Skew is *scrambled*: a rank's record is found through a seeded permutation, so that
//!   popularity says nothing about key order (except in `latest`, `sequential` and `mixgraph`, where that is the point).
//! - `keys`: the bytes of a key and the length of a value, functions of the record alone.
//!
//! All of it takes O(1) memory, whatever the number of records. Nothing depends on the platform's floating-point
//! library, so a trace is named by its command line.
//!
//! YCSB is Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, with the core workloads' proportions and
//! default constant 0.99.
//!
//! ```
//! use treering_traces::{Op, OpSource, generate::{GenParams, Workload, build}};
//!
//! let (header, mut source) = build(&GenParams::new(Workload::YcsbA, 1000))?;
//! assert_eq!((header.ops, header.warmup_ops), (2000, 1000));
//! let mut op = Op::default();
//! while source.next_op(&mut op)? { /* replay it */ }
//! # Ok::<(), treering_traces::TraceError>(())
//! ```

mod check;
mod choose;
mod keys;
mod least;
mod mix;
mod mixgraph;
mod params;
mod pareto;
mod permute;
mod random;
mod source;
mod zipf;

pub use mixgraph::MixgraphParams;
pub use params::{GenParams, Order, ValueSize, Workload};
pub use pareto::Pareto;
pub use zipf::Zipf;

use crate::{Header, OpSource, TraceError};

/// Checks the parameters and makes the trace's header and operations.
///
/// # Errors
/// [`TraceError::BadParameter`] names the parameter and what is expected.
pub fn build(params: &GenParams) -> Result<(Header, Box<dyn OpSource + Send>), TraceError> {
    params.check()?;
    Ok((header(params), Box::new(source::Generator::new(params))))
}

/// The header of the trace that `params` describe.
fn header(params: &GenParams) -> Header {
    let is_load = params.workload == Workload::Load;
    let loaded = if params.no_load { 0 } else { params.records };
    let name = match (params.theta, params.workload) {
        (theta, Workload::Zipf) => format!("zipf-{}", theta.unwrap_or(params.exponent())),
        (Some(theta), workload) => format!("{}-{theta}", workload.name()),
        (None, Workload::Load) => format!("load-{}", params.order.name()),
        (None, workload) => workload.name().to_string(),
    };
    Header {
        schema: Header::SCHEMA.to_string(),
        name,
        source: params.command(),
        ops: loaded + params.operations(),
        warmup_ops: if is_load { 0 } else { loaded },
        records: match params.workload {
            _ if !params.no_load => Some(params.records + mix::Mix::new(params).inserts()),
            Workload::Sequential => Some(params.records.min(params.operations())),
            // Which records the operations happen to meet is not known in advance.
            _ => None,
        },
        zeros: params.zeros,
        seed: Some(params.seed),
        addresses: false,
    }
}
