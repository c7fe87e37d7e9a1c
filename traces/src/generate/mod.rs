//! Generated traces: the same seed gives the same bytes on every machine.
//!
//! A generator is an [`OpSource`]. Its header is complete before the first operation, because all
//! counts are fixed in advance:
//!
//! ```text
//!   load          operations
//!   ─────────────┬───────────────────────────────────────────
//!   put × records│ mix draws an action, chooser draws a record, keys turns the record into bytes
//!   = warm-up    │
//! ```
//!
//! - `mix`: how many gets, puts, deletes, scans, inserts and read-modify-writes there are. The
//!   counts are exact and the order is random. A read-modify-write of YCSB F is a get and a put of
//!   one key by one client, so it is two operations of the trace. Half of the *transactions* are
//!   such pairs, hence two thirds of the operations.
//! - `choose`: popularity. Skew is *scrambled*: a seeded permutation maps ranks to records, so that
//!   popularity is independent of key order. The exceptions are `latest`, `sequential`,
//!   `log` and `mixgraph`, which need that relation.
//! - `keys`: the bytes of a key and the length of a value, as functions of the record.
//!
//! All of it takes O(1) memory, whatever the number of records. Nothing depends on the platform's
//! floating-point library, so a trace's command line identifies it.
//!
//! The YCSB workloads have the proportions and the default constant 0.99 of Cooper et al.,
//! "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
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

/// Checks the parameters and returns the trace's header and operations.
///
/// The same parameters always give the same operations:
///
/// ```
/// use treering_traces::{Op, generate::{GenParams, Workload, build}};
///
/// let first_key = |seed| {
///     let params = GenParams { seed, ..GenParams::new(Workload::Uniform, 100) };
///     let (_, mut source) = build(&params)?;
///     let mut op = Op::default();
///     source.next_op(&mut op)?;
///     Ok::<_, treering_traces::TraceError>(op.key)
/// };
/// assert_eq!(first_key(1)?, first_key(1)?);
/// assert_ne!(first_key(1)?, first_key(2)?);
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// [`TraceError::BadParameter`] names the parameter and says what is expected.
pub fn build(params: &GenParams) -> Result<(Header, Box<dyn OpSource + Send>), TraceError> {
    params.check()?;
    Ok((header(params), Box::new(source::Generator::new(params))))
}

/// Returns the header of the trace.
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
            // Which records the operations will access is not known in advance.
            _ => None,
        },
        zeros: params.zeros,
        seed: Some(params.seed),
        addresses: false,
    }
}
