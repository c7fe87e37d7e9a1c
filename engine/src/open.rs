//! One way to open any tree on any device.

use crate::device::{BlockDevice, PmDevice};
use crate::error::{Error, Result};
use crate::kv::Kv;
use crate::pm::store::PmStore;
use crate::spec::TreeSpec;
use crate::store::Store;
use crate::sync::Arc;
use crate::types::{Clock, SystemClock};

/// A device of either family.
#[derive(Clone)]
pub enum AnyDevice {
    /// Blocks of 4 KiB.
    Block(Arc<dyn BlockDevice>),
    /// Persistent memory.
    Pm(Arc<dyn PmDevice>),
}

impl<D: BlockDevice + 'static> From<Arc<D>> for AnyDevice {
    fn from(device: Arc<D>) -> AnyDevice {
        AnyDevice::Block(device)
    }
}

impl From<Arc<dyn BlockDevice>> for AnyDevice {
    fn from(device: Arc<dyn BlockDevice>) -> AnyDevice {
        AnyDevice::Block(device)
    }
}

impl From<Arc<dyn PmDevice>> for AnyDevice {
    fn from(device: Arc<dyn PmDevice>) -> AnyDevice {
        AnyDevice::Pm(device)
    }
}

/// Opens the tree that `spec` names on `device`, recovering it if need be, or makes one on a blank
/// device.
///
/// The two families are two types, because they share no part below the tree: a [`Store`] has
/// pages, a cache and a log, a [`PmStore`] has none of them. Both are a [`Kv`]. Open one of them
/// directly for options beyond the spec, or for background work: nobody pumps here but the
/// operations themselves.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::{MemDevice, MemPm, PmDevice};
/// use treering_engine::prelude::*;
///
/// let on_blocks = treering_engine::open(&"bf+cow".parse()?, Arc::new(MemDevice::new(1 << 15)))?;
/// let memory: Arc<dyn PmDevice> = Arc::new(MemPm::new(16 << 20));
/// let in_memory = treering_engine::open(&"ccl(nbatch=4)".parse()?, memory)?;
/// for store in [on_blocks, in_memory] {
///     store.put(b"key", b"value")?;
///     assert_eq!(store.get_owned(b"key")?.as_deref(), Some(&b"value"[..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::BadOption`] if the tree does not run on such a device, and as [`Store::open`] and
/// [`PmStore::open`].
pub fn open(spec: &TreeSpec, device: impl Into<AnyDevice>) -> Result<Arc<dyn Kv>> {
    open_with(spec, device.into(), Arc::new(SystemClock::new()))
}

/// As [`open`], with a clock of the caller's.
///
/// # Errors
/// As [`open`].
pub fn open_with(spec: &TreeSpec, device: AnyDevice, clock: Arc<dyn Clock>) -> Result<Arc<dyn Kv>> {
    match (spec, device) {
        (TreeSpec::Pages(tree), AnyDevice::Block(device)) => {
            Ok(Arc::new(Store::open(device, clock, &tree.options())?))
        }
        (TreeSpec::Pm(_), AnyDevice::Pm(device)) => {
            let options = spec.pm_options().unwrap_or_default();
            Ok(Arc::new(PmStore::open(device, &options)?))
        }
        (spec, _) => Err(Error::BadOption {
            name: "tree",
            why: format!("{spec}; it runs on {}", spec.family().device()),
        }),
    }
}
