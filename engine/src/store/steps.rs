//! Single steps of a page's life, for tests that drive the engine step by step. They do what
//! write-back and eviction do, but on a page that the caller chooses instead of the one under the
//! clock hand.

use super::core::Core;
use crate::error::Result;
use crate::types::{Lsn, PageId};

impl Core {
    /// Writes one page back if it is cached, dirty and not latched. Returns whether it was written.
    ///
    /// # Errors
    /// As [`Core::pump`].
    pub(crate) fn write_back_page(&self, page: PageId) -> Result<bool> {
        self.tree.leaves().pager.check_poison()?;
        self.tree.leaves().pager.write_back_one(page)
    }

    /// The position up to which the log is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.tree.leaves().pager.log.durable()
    }

    /// Evicts one page if it is cached, clean and not latched, then reads it again. Returns whether
    /// it was evicted.
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
