//! Modification logs for a store that keeps each page in one place at a time, with the log block
//! right behind the image.

use std::collections::{BTreeSet, HashMap};

use super::ModLogs;
use crate::device::{AlignedBuf, BlockRead, BlockWrite, Stamp, Volume};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mutation;
use crate::options::ModLog;
use crate::pages::{Buffers, PageImage, read_spans};
use crate::stats::ModLogStats;
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass, Lba, PageId};

/// A batch of pages, split by where they are written.
struct Split<'a, 'b> {
    whole: Vec<&'a PageImage<'b>>,
    deltas: Vec<DeltaWrite<'a, 'b>>,
}

struct DeltaWrite<'a, 'b> {
    image: &'a PageImage<'b>,
    lba: Lba,
    block: AlignedBuf,
    len: u32,
}

/// The modification logs of an in-place or copy-on-write store. A page's image is its base until
/// the page is written whole again, wherever that goes.
pub(in crate::pages) struct LogsBehind {
    logs: ModLogs,
    buffers: Buffers,
    /// Pages written whole whose images are not known to be durable.
    fresh: Mutex<HashMap<PageId, Stamp>>,
    /// Pages that recovery found in the log.
    named: Mutex<BTreeSet<PageId>>,
}

impl LogsBehind {
    pub(in crate::pages) fn new(rule: Option<ModLog>, layout: &Layout) -> LogsBehind {
        LogsBehind {
            logs: ModLogs::new(rule, layout),
            buffers: Buffers::new(layout.page_size + BLOCK_SIZE),
            fresh: Mutex::new(HashMap::new()),
            named: Mutex::new(BTreeSet::new()),
        }
    }

    fn log_lba(&self, at: Lba) -> Lba {
        Lba(at.0 + (self.logs.page_size / BLOCK_SIZE) as u64)
    }

    /// Reads `page`, whose image lies at `at`.
    pub(in crate::pages) fn read(
        &self,
        volume: &Volume,
        page: PageId,
        at: Lba,
        buf: &mut [u8],
    ) -> Result<()> {
        if !self.logs.exist {
            return volume.read(at, buf, IoClass::Page);
        }
        self.buffers.with(|both| {
            volume.read(at, both, IoClass::Page)?;
            self.finish(page, both, buf);
            Ok(())
        })
    }

    fn finish(&self, page: PageId, both: &[u8], buf: &mut [u8]) {
        let (image, block) = both.split_at(self.logs.page_size);
        buf.copy_from_slice(image);
        self.logs.load(page, buf, Some(block));
    }

    /// Reads pages whose images lie where `place` says.
    pub(in crate::pages) fn read_batch(
        &self,
        volume: &Volume,
        batch: &mut [(PageId, &mut [u8])],
        place: impl Fn(PageId) -> Option<Lba>,
    ) -> Result<()> {
        let mut places = Vec::with_capacity(batch.len());
        for (page, _) in batch.iter() {
            places.push(place(*page).ok_or(Error::MissingPage { page: *page })?);
        }
        let class = IoClass::Page;
        if !self.logs.exist {
            let reads = places.iter().zip(batch);
            let mut reads: Vec<_> = reads
                .map(|(lba, (_, buf))| BlockRead {
                    lba: *lba,
                    buf,
                    class,
                })
                .collect();
            return volume.read_batch(&mut reads);
        }
        let both = self.logs.page_size + BLOCK_SIZE;
        let spans = read_spans(volume, places.iter().copied(), both)?;
        let spans = spans.chunks_exact(both);
        for ((page, buf), span) in batch.iter_mut().zip(spans) {
            self.finish(*page, span, buf);
        }
        Ok(())
    }

    /// Returns the pages written whole whose images have become durable since the last call. The
    /// log blocks of their previous images are no longer needed.
    pub(in crate::pages) fn settle(&self, volume: &Volume) -> Vec<PageId> {
        let mut settled = Vec::new();
        self.fresh.lock().retain(|page, written| {
            let durable = volume.is_durable(*written);
            if durable {
                settled.push(*page);
            }
            !durable
        });
        settled.sort();
        settled
    }

    /// Writes a batch: calls `write_whole` for pages with too many differences, and writes the log
    /// blocks of the others. Call [`LogsBehind::settle`] first.
    pub(in crate::pages) fn write(
        &self,
        volume: &Volume,
        batch: &[PageImage<'_>],
        place: impl Fn(PageId) -> Option<Lba>,
        write_whole: impl FnOnce(&[&PageImage<'_>]) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(
            batch.iter().all(|i| !i.changes.is_clean()),
            "a clean page is not written"
        );
        let split = self.split(batch, place);
        let whole = if split.whole.is_empty() {
            Ok(())
        } else {
            write_whole(&split.whole)
        };
        if let Err(e) = whole.and_then(|()| self.write_deltas(volume, &split)) {
            // What is on the device now is unknown, so none of it can be a base: the next write is
            // whole.
            batch.iter().for_each(|image| self.logs.forget(image.page));
            return Err(e);
        }
        self.written(volume, &split);
        Ok(())
    }

    /// Splits a batch into pages whose Δ goes to log blocks and pages that are written whole.
    fn split<'a, 'b>(
        &self,
        batch: &'a [PageImage<'b>],
        place: impl Fn(PageId) -> Option<Lba>,
    ) -> Split<'a, 'b> {
        let mut split = Split {
            whole: Vec::with_capacity(batch.len()),
            deltas: Vec::new(),
        };
        for image in batch {
            let durable = !self.fresh.lock().contains_key(&image.page);
            match place(image.page).zip(self.logs.delta(image, durable)) {
                None => split.whole.push(image),
                Some((at, (block, len))) => split.deltas.push(DeltaWrite {
                    image,
                    lba: self.log_lba(at),
                    block,
                    len,
                }),
            }
        }
        split
    }

    /// Writes the log blocks of a batch.
    fn write_deltas(&self, volume: &Volume, split: &Split<'_, '_>) -> Result<()> {
        if split.deltas.is_empty() {
            return Ok(());
        }
        let writes = split.deltas.iter().map(|delta| BlockWrite {
            lba: delta.lba,
            bytes: &delta.block,
            class: IoClass::Page,
        });
        volume.write_batch(&writes.collect::<Vec<_>>())
    }

    /// Records that the whole batch was written.
    fn written(&self, volume: &Volume, split: &Split<'_, '_>) {
        if self.logs.rule.is_none() {
            return;
        }
        let stamp = volume.stamp();
        for image in &split.whole {
            self.fresh.lock().insert(image.page, stamp);
            self.logs.written(image, None);
        }
        for delta in &split.deltas {
            self.logs.written(delta.image, Some(delta.len));
        }
    }

    /// Trims the log block behind `at`.
    pub(in crate::pages) fn trim(&self, volume: &Volume, at: Lba) -> Result<()> {
        if self.logs.exist {
            volume.trim(self.log_lba(at), 1)?;
        }
        Ok(())
    }

    pub(in crate::pages) fn forget(&self, page: PageId) {
        self.logs.forget(page);
    }

    /// Drops everything known of a page that was freed.
    pub(in crate::pages) fn free(&self, page: PageId) {
        self.logs.free(page);
        self.fresh.lock().remove(&page);
    }

    pub(in crate::pages) fn named_in_log(&self, page: PageId) {
        if self.logs.exist {
            self.named.lock().insert(page);
        }
    }

    /// Rewrites the log blocks of the pages that the log names, unchanged, because what can be read
    /// need not be durable.
    pub(in crate::pages) fn repair(
        &self,
        volume: &Volume,
        place: impl Fn(PageId) -> Option<Lba>,
    ) -> Result<()> {
        let named = std::mem::take(&mut *self.named.lock());
        let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
        for page in named {
            let Some(at) = place(page) else { continue };
            let lba = self.log_lba(at);
            volume.read(lba, &mut block, IoClass::Page)?;
            if !mutation::on("restart-trusts-log-blocks") {
                volume.write(lba, &block, IoClass::Page)?;
            }
        }
        Ok(())
    }

    pub(in crate::pages) fn map_bytes(&self) -> u64 {
        self.logs.map_bytes()
    }

    pub(in crate::pages) fn stats(&self) -> Option<ModLogStats> {
        self.logs.stats()
    }
}
