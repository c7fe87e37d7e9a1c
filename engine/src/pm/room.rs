//! Makes room in a store that would otherwise report that it is full.

use super::tree::PmTree;
use crate::error::{Error, Result};
use crate::mutation;

/// A sweep was worthwhile if it freed at least one in this many leaves.
const WORTH_SWEEPING: u64 = 32;

/// Cleans the log if records wait for that, and merges all leaves that fit together if any leaf has
/// lost keys since `swept`.
///
/// Returns how often leaves have lost keys by now, or `None` if there was nothing to do. If the
/// merge freed many leaves, it returns `swept` unchanged: leaves that the next puts split may fit
/// together again, so another sweep is worth its cost, a few leaf reads for each leaf that this one
/// freed.
///
/// # Errors
/// Device failures and damage.
pub(crate) fn make_room(tree: &dyn PmTree, swept: u64, delete: bool) -> Result<Option<u64>> {
    let space = tree.base().space;
    // A delete may have to wait for records whose deletes are still buffered.
    let buffered = delete && tree.buffered() > 0;
    let waiting = space.retired_bytes().0 > 0 || buffered;
    if waiting {
        let done = match buffered {
            true => tree.flush_what_fits(),
            false => tree.clean_all(),
        };
        match done {
            // There is no room for what is buffered; merging may make some.
            Ok(()) | Err(Error::PmFull { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    let shrunk = space.shrunk();
    if shrunk == swept || mutation::on("pm-full-before-merge") {
        return Ok(waiting.then_some(shrunk));
    }
    let before = space.leaves();
    tree.merge_all()?;
    let freed = before.saturating_sub(space.leaves());
    let fruitful = freed * WORTH_SWEEPING >= before;
    Ok(Some(if fruitful { swept } else { shrunk }))
}
