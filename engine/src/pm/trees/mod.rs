//! The trees in persistent memory, one file or folder each. [`open`] is the only place that knows
//! all of them.

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

/// Recovers the tree selected by the options from a formatted device.
///
/// # Errors
/// Damage, device failures, and [`crate::Error::PmFull`] if there is no room for what the log says.
pub(crate) fn open(medium: Arc<Medium>, geometry: Geometry, options: &PmOptions) -> Result<Opened> {
    match options.tree {
        PmTreeKind::PmTree => plain::open(&medium, geometry, options),
        PmTreeKind::Ccl(ccl) => ccl::open(medium, geometry, (ccl, options)),
        PmTreeKind::Global(global) => global::open(medium, geometry, (global, options)),
        PmTreeKind::Lodge(lodge) => lodge::open(&medium, geometry, (lodge, options)),
    }
}
