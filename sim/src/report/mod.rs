//! The report of a replay: one structure, `treering.replay/1`, with three renderings: JSON (the
//! structure itself), [`text`] and [`html`].
//!
//! Every number is measured *after warm-up*, unless its name says otherwise. Everything under `wa`
//! is bytes divided by user bytes (key and value of puts, key of deletes). Except on real files,
//! nothing here depends on wall-clock time.

mod buffering;
mod device;
mod direct;
mod durability;
pub mod html;
mod latency;
mod lifetime;
mod mini_pages;
mod numbers;
mod pm;
pub mod predict;
mod preload;
mod run;
mod store;
pub mod text;
mod wa;

pub use buffering::Compared;
pub(crate) use buffering::{PageIo, compared};
pub(crate) use device::flat;
pub use device::{CompressionReport, DeviceReport, KernelReport, WriteDifference};
pub use direct::{DirectReport, MiniatureReport};
pub use latency::Latency;
pub(crate) use lifetime::{Daily, Worn};
pub use lifetime::{DailyFrom, LifetimeReport};
pub use mini_pages::{HitsByKind, MergeBin, MergesByCause, MiniPagesReport, RingReport, SizeBin};
pub use pm::{Amplification, LodgePredicted, LodgeReport, PmPredicted, PmReport};
pub(crate) use predict::with_bars;
pub use predict::{
    PredictReport, PredictedDevice, PredictedRun, PredictedValue, SCHEMA as PREDICT_SCHEMA,
};
pub use preload::{Evidence, PreloadReport};
pub use run::{ByOp, CacheReport, IoBytes, ReplayReport, SeriesPoint, TimeReport, TraceInfo};
pub use store::{SpaceReport, StoreReport};
pub use wa::{
    CsdWa, DeviceWa, HostReport, HostWa, LEAST_SHARE, PageCauses, WaReport, WaSide, error,
};

/// Name and version of the document.
pub const SCHEMA: &str = "treering.replay/1";
