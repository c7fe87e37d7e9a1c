//! Predictors of write amplification, from the trace's statistics and the options.
//!
//! A predictor never runs the engine and never looks at the run that it predicts. There is one
//! model per mechanism:
//!
//! | module | mechanism | method |
//! |---|---|---|
//! | [`workload`] | the trace: popularity, sizes, order of keys | one streaming pass, sampled by key hash beyond a budget |
//! | [`leaf`] | which keys share a leaf, how full leaves are | recursion on key ranges |
//! | `grow`, `grown` | how pages fill, split and become dense | the same, step by step |
//! | [`space`] | bytes per record in each layout | the same, in ranges of keys that are a sample |
//! | [`cache`] | residence, dirtiness, evictions, checkpoints | renewal model of the clock, closed form given one fixed point |
//! | [`bf`] | mini-pages in their ring, above the frames | a chain of states, played with visits in an order of its own |
//! | [`log`] | flush group sizes, block rounding | closed form |
//! | [`mod_log`] | growth and reset of Δ in a page's modification log | renewal process, Markov chain |
//! | [`content`] | what a codec leaves of pages, log and tables | a few blocks made of the trace's keys, compressed |
//! | [`ftl`] | a drive alone, under uniform or mixed page writes | closed forms |
//! | [`device`] | the drive below a store | fixed point over kinds of blocks |
//! | [`pm`] | trees in persistent memory: buffers, splits, logs and their cleaning, the XPBuffer | growth played, renewal of buffers, fixed points |
//! | [`recency`] | whether keys come back at independent moments | an index over gaps, on a sample of keys |
//! | [`tried`] | which of all this was held against measurements, and between which bounds | data |
//! | [`store`] | what each store writes beside pages; the whole | composition |
//!
//! All assume that the trace is stationary within its measured part and that accesses to pages are
//! independent (IRM). [`Prediction::untried`] names quantities outside the range in which this was
//! tested. [`Prediction::warnings`] reports runs of neighbouring keys, growth and deletes; the
//! models do not notice other drift and locality.

pub mod bf;
pub mod cache;
pub mod content;
pub mod device;
pub mod ftl;
mod grow;
mod grown;
pub mod leaf;
pub mod log;
pub mod mod_log;
pub mod pm;
mod prediction;
pub mod recency;
pub mod space;
pub mod store;
pub mod tried;
pub mod workload;

pub use content::Compression;
pub use device::{Before, Cleaning, DeviceParams, DeviceWa};
pub use log::Pace;
pub use prediction::{HostWa, ModLogPrediction, Prediction};
pub(crate) use store::blocks_per_place;
pub use store::predict;
pub use workload::{Span, Workload};
