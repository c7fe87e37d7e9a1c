//! Solid-state drives: the flash translation layer, its garbage collection, and the drive around
//! them.

pub mod device;
mod drive;
pub mod ftl;
pub mod gc;
pub(crate) mod precondition;
mod profile;
pub(crate) mod timing;

pub use device::{Served, SimSsd, SsdCounters, SsdError, TimingMode, Wear};
pub(crate) use drive::cleaning;
pub use ftl::{
    CLASSES, FlashOps, Frontiers, Ftl, FtlConfig, FtlCounters, GeometryError, MAX_LOGICAL_PAGES,
};
pub use gc::GcPolicy;
pub use profile::{ProfileError, SsdProfile, builtin, builtin_names};
