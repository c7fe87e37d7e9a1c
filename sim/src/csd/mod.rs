//! Drives with built-in transparent compression: every 4 KiB block is compressed separately, and
//! the compressed extents are packed in flash.
//!
//! ```text
//!  host        | 4 KiB | 4 KiB | 4 KiB |  logical space, may exceed the medium
//!                  ▼ codec, block by block (all zeros: nothing)
//!  extents     |2.1 K|0.3 K|             payload and header, no alignment
//!                  ▼ append
//!  erase block |…extent|extent|ext|extent|…      garbage collection moves extents as they are
//! ```
//!
//! (B⁻-tree §2.3, fig. 3; DEVICES §3.) [`crate::ssd`] is the drive without compression; flash, its
//! times and victim selection are the same.

mod codec;
pub mod device;
mod drive;
pub mod ftl;
mod geometry;
pub(crate) mod precondition;
mod profile;
mod sizes;
mod timing;

pub use codec::{Codec, Compressor, Decompressor};
pub use device::{CompressionCounters, CsdError, SimCsd};
pub use ftl::{ExtentFtl, ExtentFtlConfig, ExtentOps};
pub use profile::{CsdProfile, builtin, builtin_names};
