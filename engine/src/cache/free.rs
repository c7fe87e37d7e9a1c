//! An empty frame, owned by the thread that took it.

use super::Cache;

/// A frame that holds no page and is on no free list. Dropping it puts it on the free list.
#[must_use]
pub(crate) struct FreeFrame<'a> {
    cache: &'a Cache,
    at: u32,
}

impl<'a> FreeFrame<'a> {
    pub(super) fn new(cache: &'a Cache, at: u32) -> FreeFrame<'a> {
        FreeFrame { cache, at }
    }

    /// The frame's index.
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    /// Marks the frame as about to hold a page. Taking that page out makes it free again.
    pub(super) fn fill(self) -> u32 {
        let at = self.at;
        std::mem::forget(self);
        at
    }
}

impl Drop for FreeFrame<'_> {
    fn drop(&mut self) {
        self.cache.give_free(self.at);
    }
}
