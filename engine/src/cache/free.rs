//! An empty frame in hand.

use super::Cache;

/// A frame that holds no page and is on no list: its owner's. Dropped, it goes on the list of free
/// ones.
#[must_use]
pub(crate) struct FreeFrame<'a> {
    cache: &'a Cache,
    at: u32,
}

impl<'a> FreeFrame<'a> {
    pub(super) fn new(cache: &'a Cache, at: u32) -> FreeFrame<'a> {
        FreeFrame { cache, at }
    }

    /// Which frame it is.
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    /// It is about to hold a page: whoever takes that out of it makes it a free one again.
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
