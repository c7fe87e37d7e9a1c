//! The report of a replay: one structure, `treering.replay/2`, with three renderings: JSON (the
//! structure itself), [`text`] and [`html`].
//!
//! Every number is measured *after warm-up*, unless its name says otherwise. Everything under `wa`
//! is bytes divided by user bytes (key and value of puts, key of deletes). Except on real files,
//! nothing here depends on wall-clock time.

mod bars;
mod buffering;
mod device;
mod direct;
mod durability;
pub mod html;
mod latency;
mod lifetime;
mod limit;
mod mini_pages;
pub mod numbers;
#[cfg(test)]
mod outside_tests;
mod pm;
pub mod predict;
mod predicted;
mod preload;
mod row;
mod run;
mod store;
pub mod text;
mod wa;

pub(crate) use bars::with_bars;
pub use buffering::Compared;
pub(crate) use buffering::{PageIo, compared};
pub(crate) use device::flat;
pub use device::{CompressionReport, DeviceReport, KernelReport, WriteDifference};
pub use direct::{DirectReport, MiniatureReport};
pub use latency::Latency;
pub(crate) use lifetime::{Daily, Worn};
pub use lifetime::{DailyFrom, LifetimeReport};
pub(crate) use limit::Waterfall;
pub use limit::{LimitReport, WaterfallStep};
pub use mini_pages::{HitsByKind, MergeBin, MergesByCause, MiniPagesReport, RingReport, SizeBin};
pub use pm::{Amplification, LodgePredicted, LodgeReport, PmPredicted, PmReport};
pub use predict::{PredictReport, PredictedDevice, PredictedRun, SCHEMA as PREDICT_SCHEMA};
pub use predicted::PredictedValue;
pub use preload::{Evidence, PreloadReport};
pub use row::{LEAST_SHARE, error};
pub use run::{ByOp, CacheReport, IoBytes, ReplayReport, SeriesPoint, TimeReport, TraceInfo};
pub use store::{SpaceReport, StoreReport};
pub use wa::{CsdWa, DeviceWa, HostReport, HostWa, PageCauses, WaReport, WaSide};

/// Name and version of the document.
pub const SCHEMA: &str = "treering.replay/2";
