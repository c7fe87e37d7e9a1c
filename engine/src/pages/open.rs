//! Opens the page store that a superblock names. This is the only place that knows all of them.

use super::PageStore;
use super::cow::CowStore;
use super::in_place::InPlaceStore;
use super::shadow::ShadowStore;
use super::table::PageTable;
use super::versioned::Versioned;
use crate::device::Volume;
use crate::error::Result;
use crate::layout::{Layout, Slot};
use crate::options::{Options, PageStoreKind};
use crate::sync::Arc;

/// Opens the page store of `layout`. `table` is its page table, empty for a store without one.
/// `reserved` are the places of the index snapshot.
///
/// # Errors
/// A page table that contradicts the layout.
pub(crate) fn open(
    volume: &Arc<Volume>,
    layout: Layout,
    options: &Options,
    table: PageTable,
    reserved: &[Slot],
) -> Result<Versioned> {
    let volume = Arc::clone(volume);
    let (rule, batch) = (options.mod_log, options.write_batch_pages);
    let inner: Box<dyn PageStore> = match layout.store {
        PageStoreKind::InPlace => Box::new(InPlaceStore::new(volume, layout, rule)),
        PageStoreKind::CopyOnWrite { table: persist } => Box::new(CowStore::new(
            volume, layout, table, persist, rule, batch, reserved,
        )?),
        PageStoreKind::Shadow => Box::new(ShadowStore::new(volume, layout, rule, batch)),
    };
    Ok(Versioned::new(inner, layout))
}
