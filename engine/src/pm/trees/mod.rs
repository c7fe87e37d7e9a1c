//! The trees in persistent memory, a file or a folder each. [`open`] is the one place that names
//! them all.

mod ccl;
mod global;
mod lodge;
mod plain;

use super::layout::Geometry;
use super::medium::Medium;
use super::tree::Opened;
use crate::error::Result;
use crate::options::{PmOptions, PmTreeKind};
use crate::sync::Arc;

/// Recovers the tree of the options on a formatted device.
///
/// # Errors
/// Damage, device failures, [`crate::Error::PmFull`] if what the log says has no room.
pub(crate) fn open(medium: Arc<Medium>, geometry: Geometry, options: &PmOptions) -> Result<Opened> {
    match options.tree {
        PmTreeKind::PmTree => plain::open(&medium, geometry, options),
        PmTreeKind::Ccl(ccl) => ccl::open(medium, geometry, (ccl, options)),
        PmTreeKind::Global(global) => global::open(medium, geometry, (global, options)),
        PmTreeKind::Lodge(lodge) => lodge::open(&medium, geometry, (lodge, options)),
    }
}
