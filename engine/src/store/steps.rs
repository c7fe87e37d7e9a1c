//! Single steps of a page's life, for tests that lead the engine step by step: what write-back and eviction do, on a page of the caller's
//! choice instead of the sweeping hand's.

use super::core::Core;
use crate::error::Result;
use crate::types::PageId;

impl Core {
    /// Writes one page back, if it is here, dirty and not latched; says whether it did.
    ///
    /// # Errors
    /// As [`Core::pump`].
    pub(crate) fn write_back_page(&self, page: PageId) -> Result<bool> {
        self.tree.leaves().pager.check_poison()?;
        self.tree.leaves().pager.write_back_one(page)
    }

    /// Evicts one page, if it is here, clean and not latched, and reads it again; says whether it did.
    ///
    /// # Errors
    /// A device failure or damage.
    pub(crate) fn reload_page(&self, page: PageId) -> Result<bool> {
        let evicted = self.tree.leaves().pager.evict_one(page);
        if evicted {
            drop(self.tree.leaves().pager.read(page)?);
        }
        Ok(evicted)
    }
}
