//! Predicts write amplification from the statistics of a trace and the options of a store.
//!
//! A predictor never runs the engine and never looks at the run that it predicts. There is one
//! model for each mechanism:
//!
//! | module | mechanism | method |
//! |---|---|---|
//! | [`workload`] | the trace: popularity, sizes, order of keys | one streaming pass |
//! | [`leaf`] | which keys share a leaf, how full leaves are | recursion on key ranges |
//! | `grow`, `grown` | how pages fill, split and become dense | the same, step by step |
//! | [`space`] | bytes per record in each layout | the same, on a sample of key ranges |
//! | [`cache`] | residence, dirtiness, evictions, checkpoints | renewal model of the clock |
//! | [`policies`] | caches with other replacement policies | closed forms |
//! | [`bf`] | mini-pages in their ring, above the frames | a Markov chain, played visit by visit |
//! | [`log`] | flush group sizes, block rounding | closed form |
//! | [`mod_log`] | growth and reset of Δ in a page's modification log | renewal process |
//! | [`content`] | compressed sizes of pages, log and tables | a few blocks, made and compressed |
//! | [`ftl`] | a drive alone, under uniform or mixed page writes | closed forms |
//! | [`device`] | the drive below a store | fixed point over kinds of blocks |
//! | [`flash`] | the drive below any stream of writes | its FTL in miniature, on a sample of blocks |
//! | [`pm`] | trees in persistent memory, their buffers and logs | growth played, fixed points |
//! | [`recency`] | whether accesses to a key are independent | an index over gaps of some keys |
//! | [`tried`] | the range of runs on which all this was tested | data |
//! | [`store`] | what each store writes besides pages; the whole | composition |
//! | `estimate` | error bars: 90 % intervals | from models that know their error |
//!
//! All models assume that the trace is stationary within its measured part and that accesses to
//! pages are independent (IRM). [`Prediction::untried`] names quantities outside the range in which
//! this was tested. [`Prediction::warnings`] reports runs of neighbouring keys, growth and deletes.
//! The models do not notice any other drift or locality.

pub mod bf;
pub mod cache;
pub mod content;
pub mod device;
mod estimate;
pub mod flash;
pub mod ftl;
mod grow;
mod grown;
pub mod leaf;
pub mod log;
pub mod mod_log;
mod played;
pub mod pm;
pub mod policies;
mod prediction;
pub mod recency;
pub mod space;
pub mod store;
pub mod tried;
pub mod workload;

pub use content::Compression;
pub use device::{Before, Cleaning, DeviceParams, DeviceWa};
pub use estimate::{Bars, Estimate, Method, Model};
pub use flash::Effort;
pub use log::Pace;
pub use prediction::{HostWa, ModLogPrediction, Prediction};
pub(crate) use store::blocks_per_place;
pub use store::{predict, predict_by, predict_drives};
pub use workload::{Span, Workload};
