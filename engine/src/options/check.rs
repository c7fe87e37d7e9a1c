//! Checks options: names the first one that cannot work.

use super::limits::{MAX_FIRST_LSN, MIN_LOG_PAGES, check_index_entries};
use super::{Options, TreeKind};
use crate::error::{Error, Result};

impl Options {
    /// Returns an error that names the first option that cannot work. [`crate::Store::open`] calls
    /// this; call it to check options without a device.
    ///
    /// # Errors
    /// [`Error::BadOption`].
    pub fn check(&self) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if !(4096..=65536).contains(&self.page_size) || !self.page_size.is_power_of_two() {
            let why = format!(
                "{} bytes; expected a power of two from 4KiB to 64KiB",
                self.page_size
            );
            return bad("page", why);
        }
        let least = self.least_cache_bytes();
        if self.cache_bytes < least {
            let why = format!(
                "{} bytes; expected at least {} pages, {least} bytes",
                self.cache_bytes,
                least / self.page_size as u64
            );
            return bad("cache", why);
        }
        if let TreeKind::Bf(bf) = self.tree {
            bf.check()?;
        }
        if let Some(mod_log) = self.mod_log {
            mod_log.check()?;
        }
        if let Some(contention) = self.contention_split {
            contention.check()?;
            if self.tree != TreeKind::BTree {
                let tree = self.tree.name();
                let why = format!("tree {tree}; expected btree, whose writers latch leaves");
                return bad("contention-split", why);
            }
        }
        let least = MIN_LOG_PAGES * self.page_size as u64;
        if self.log_bytes < least {
            return bad(
                "log-size",
                format!("{} bytes; expected at least {least}", self.log_bytes),
            );
        }
        if self.checkpoint_log_bytes > self.log_bytes / 4 * 3 || self.checkpoint_log_bytes == 0 {
            let why = format!(
                "{} bytes; expected at most three quarters of the log's {}",
                self.checkpoint_log_bytes, self.log_bytes
            );
            return bad("checkpoint-every", why);
        }
        if self.log_buffer_bytes == 0 || self.log_buffer_bytes > self.log_bytes / 4 {
            let why = format!(
                "{} bytes; expected at most a quarter of the log",
                self.log_buffer_bytes
            );
            return bad("log-buffer", why);
        }
        if !(1..=1024).contains(&self.write_batch_pages) {
            let why = format!("{} pages; expected 1 to 1024", self.write_batch_pages);
            return bad("write-batch", why);
        }
        if self.first_lsn > MAX_FIRST_LSN {
            let why = format!("{}; expected 0 to {MAX_FIRST_LSN}", self.first_lsn);
            return bad("first-lsn", why);
        }
        check_index_entries(self.index_entries)
    }
}
