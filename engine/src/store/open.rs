//! Opening a store: formats a blank device, or recovers the store that the device holds.

use super::checkpoint::Checkpointer;
use super::core::Core;
use super::life::Life;
use super::open_batch::Batches;
use super::recovery::{Recovered, RecoveryReport, Redo};
use super::room::Full;
use crate::cache::Cache;
use crate::device::{BlockDevice, Claim, Claims, OverlayDevice, Volume};
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::index::Index;
use crate::layout::{Layout, Slot, SnapshotContent, Superblock};
use crate::mutation;
use crate::options::{Options, TreeKind};
use crate::overflow::Overflow;
use crate::overflow::recover::Seen;
use crate::pager::Pager;
use crate::pages::{self, PageStore, PageTable, SlotMap, Versioned};
use crate::snapshot::{self, Chain};
use crate::sync::Arc;
use crate::trees::Tree;
use crate::trees::bf::BfTree;
use crate::trees::btree::BTree;
use crate::types::{BLOCK_SIZE, Clock, Lsn, PageId, StoreId};
use crate::wal::{Intents, Log, LogStart, damaged_record};

impl Core {
    /// Opens or formats the store; see [`super::Store::open_observed`].
    pub(super) fn open(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Core> {
        options.check()?;
        let claims = match options.read_only {
            true => Claims::Shared,
            false => Claims::Alone,
        };
        let claim = Claim::take(&device, claims)?;
        let device: Arc<dyn BlockDevice> = match options.read_only {
            // Recovery writes, so an overlay keeps those writes in memory.
            true if !mutation::on("read-only-writes") => Arc::new(OverlayDevice::new(device)),
            _ => device,
        };
        let volume = Arc::new(Volume::observed(device, observer));
        let found = Superblock::load(&volume)?;
        let mut store = match found {
            Some(superblock) => Core::recover(volume, clock, options, superblock),
            None if options.create && !options.read_only => Core::format(volume, clock, options),
            None => Err(Error::NotAStore {
                lba: crate::types::Lba(0),
            }),
        }?;
        store.claim = Some(claim);
        Ok(store)
    }

    /// Formats a blank device with an empty store: one leaf in the tree's page layout, one
    /// snapshot, and the superblock last.
    fn format(volume: Arc<Volume>, clock: Arc<dyn Clock>, options: &Options) -> Result<Core> {
        let id = StoreId::draw(&volume)?;
        let grown_blocks = let_grow(&volume, options)?;
        let layout = Layout::plan(options, volume.capacity_blocks(), id)?;
        let pages = pages::open(&volume, layout, options, PageTable::new(&layout), &[])?;
        let region = layout.log_region();
        let start = Lsn(options.first_lsn.next_multiple_of(BLOCK_SIZE as u64));
        let log = Log::create(Arc::clone(&volume), region, 1, start, options)?;
        let overflow = Overflow::new(1, pages.page_limit());
        let first = pages.allocate(0)?;
        let pager = new_pager(volume, layout, pages, (log, overflow), options);
        let mut leaf = pager.create(first, pager.spare()?)?;
        leaf.edit()
            .init(options.page_layout(), first, b"", None)
            .expect("an empty page fits");
        leaf.changed(Lsn(0));
        drop(leaf);
        let mut live = SlotMap::new(pager.pages.page_limit());
        live.take(first.0);
        pager.cache.set_live(&live);
        let superblock = Superblock {
            sequence: 0,
            layout,
            epoch: 1,
            redo_epoch: 1,
            redo_start: start,
            snapshot_head: Slot(0),
            snapshot: SnapshotContent { entries: 0, sum: 0 },
            snapshot_number: 0,
            flush_blocks: 0,
            high_water: 0,
            grown_blocks,
        };
        let store = Core::assemble(
            tree(
                Arc::new(pager),
                Index::with_entries(first, options.index_entries),
                options,
            )?,
            Checkpointer::new(superblock, Vec::new(), start),
            clock,
            options,
            RecoveryReport::default(),
        );
        store.checkpointer.run(&store.tree)?;
        store.checkpointer.write_twin(&store.tree)?;
        Ok(store)
    }

    /// Brings an existing store to the state that its durable log describes.
    fn recover(
        volume: Arc<Volume>,
        clock: Arc<dyn Clock>,
        options: &Options,
        superblock: Superblock,
    ) -> Result<Core> {
        let layout = superblock.layout;
        layout.matches(options)?;
        if superblock.grown_blocks > 0 && !volume.device().extend_to(layout.capacity_blocks) {
            return Err(Error::Damaged {
                what: "superblock".into(),
                lba: superblock.lba(),
                expected: "a store that does not grow, on a device that cannot".into(),
                found: format!("one of up to {} blocks", layout.capacity_blocks),
            });
        }
        let chain = Chain {
            volume: &volume,
            layout: &layout,
            number: superblock.snapshot_number,
        };
        let (entries, chain) = snapshot::read(
            chain,
            superblock.snapshot_head,
            superblock.snapshot,
            layout.page_names(),
        )?;
        let table = PageTable::load(&volume, &layout, superblock.names())?;
        let pages = pages::open(&volume, layout, options, table, &chain)?;
        let epoch = superblock.epoch + 1;
        let overflow = Overflow::new(epoch, pages.page_limit());
        for entry in &entries {
            pages.expect(entry.page, entry.version);
            if entry.pointers {
                overflow.mark(entry.page);
            }
        }
        let beyond = entries
            .iter()
            .map(|entry| (entry.version, entry.page))
            .max();
        let leaves = entries.into_iter().map(|entry| (entry.fence, entry.page));
        let index = Index::from_sorted(leaves, options.index_entries)
            .expect("the snapshot's fences ascend from the empty one");

        // What is read here may not be durable. A killed process may have left it in the drive's
        // cache, and then a flush is enough. Or a flush of it may have failed, and then another
        // flush does not help. So recovery rewrites the blocks that it builds on; see the module
        // documentation of `recovery`.
        let (from, known_epoch) = (superblock.redo_start, superblock.redo_epoch);
        let region = layout.log_region();
        let start = LogStart {
            from,
            epoch: known_epoch,
            flush_blocks: u64::from(superblock.flush_blocks),
        };
        let scan_volume = Arc::clone(&volume);
        let mut seen = Seen::new(&scan_volume, &layout);
        let mut intents = Intents::new(from);
        let end = Log::scan_end(&volume, region, start, |lsn, record| {
            record.pages().for_each(|page| pages.named_in_log(page));
            seen.take(lsn, &record, &overflow);
            let taken = intents.take(lsn, &record);
            taken.map_err(|damage| damaged_record(region, lsn, &damage))
        })?;
        let whole = intents.whole();
        let pending = intents.into_pending();
        pending.iter().for_each(|intent| seen.take_pending(intent));
        if let Some(page) = beyond.filter(|(version, _)| *version > end.end) {
            return Err(log_too_short(&layout, page, end.end));
        }
        pages.recover_to(end.end);
        let others = |slot| chain.contains(&slot) || seen.has_value(slot);
        let repaired = pages.repair(&others, from)?;
        if !mutation::on("restart-trusts-superblock") {
            Superblock::rewrite(&volume)?;
        }
        volume.flush()?;
        Log::mark_end(&volume, region, start, &end, epoch)?;
        if end.records > 0 {
            seen.hold_live(&overflow, &pages)?;
        }
        // Nothing is appended during replay, yet pages are written under the WAL rule. That is
        // sound because the replayed log is already durable.
        let behind = match &pending {
            // Parts of an incomplete intent are overwritten. Otherwise crashes that cut every new
            // intent short would fill the log.
            Some(_) if !mutation::on("recovery-keeps-cut-parts") => whole,
            _ => end.end,
        };
        let log = Log::create(Arc::clone(&volume), region, epoch, behind, options)?;
        let log_start = log.end();
        log.keep_from(from);
        volume.tell(|| Event::RecoveryBegins {
            epoch,
            redo_start: from,
            log_start,
        });
        let pager = new_pager(Arc::clone(&volume), layout, pages, (log, overflow), options);
        let mut redo = Redo::new(&pager, &index, &chain, &seen, pending.as_ref());
        crate::wal::replay_to(&volume, region, start, &end, |lsn, record| {
            redo.take(lsn, &record)
        })?;
        redo.report.pages_repaired = repaired;
        let Recovered { report, sparse } = redo.finish()?;
        let superblock = Superblock {
            epoch,
            ..superblock
        };
        let store = Core::assemble(
            tree(Arc::new(pager), index, options)?,
            Checkpointer::new(superblock, chain, log_start),
            clock,
            options,
            report,
        );
        // This also makes the new epoch durable, before anything is appended under it.
        match pending {
            Some(intent) => {
                let place = intent.place(whole, &end);
                store.complete_pending(intent.changes, place)?;
            }
            None => drop(store.checkpointer.run(&store.tree)?),
        }
        store.tree.leaves().pager.volume.tell(|| Event::Opened);
        // The log no longer names these pages, so note them for merging.
        let notes = &store.tree.leaves().notes;
        sparse.into_iter().for_each(|page| notes.note(page));
        if !options.read_only {
            // An error here means that a neighbour is damaged. Reads of that page report it.
            drop(store.merge_noted());
        }
        Ok(store)
    }

    fn assemble(
        tree: Tree,
        checkpointer: Checkpointer,
        clock: Arc<dyn Clock>,
        options: &Options,
        recovery: RecoveryReport,
    ) -> Core {
        let life = Life::begin(&*clock);
        Core {
            tree,
            checkpointer,
            clock,
            options: options.clone(),
            recovery,
            life,
            batches: Batches::default(),
            full: Full::default(),
            claim: None,
        }
    }
}

/// Returns the error for a log that ends before a page version that the snapshot names. The log was
/// durable up to that LSN, so it has lost records. Continuing behind its end would assign those
/// LSNs a second time, and the loss could no longer be detected
/// (`specs/page_shadowing/PageVersions.tla`, `FindEndEarly`).
#[cold]
fn log_too_short(layout: &Layout, (version, page): (Lsn, PageId), end: Lsn) -> Error {
    Error::Damaged {
        what: "log".into(),
        lba: layout.log_start(),
        expected: format!("records up to {version}, which {page} has"),
        found: format!("its end at {end}"),
    }
}

/// Lets the device of a new store grow up to [`Options::limit_bytes`]. Returns the number of blocks
/// that exist already, or 0 if the store does not grow.
fn let_grow(volume: &Volume, options: &Options) -> Result<u64> {
    let Some(limit) = options.limit_bytes else {
        return Ok(0);
    };
    let present = volume.device().durable_blocks();
    let blocks = limit / BLOCK_SIZE as u64;
    if blocks <= present {
        return Ok(0);
    }
    match volume.device().extend_to(blocks) {
        true => Ok(present),
        false => Err(Error::BadOption {
            name: "limit",
            why: format!("{limit} bytes; expected a device that can grow, such as a file"),
        }),
    }
}

fn tree(pager: Arc<Pager>, index: Index, options: &Options) -> Result<Tree> {
    let leaves = BTree::new(pager, index, options);
    Ok(match options.tree {
        TreeKind::BTree => Tree::BTree(Box::new(leaves)),
        TreeKind::Bf(bf) => Tree::Bf(Box::new(BfTree::new(leaves, bf, options.ring_bytes())?)),
    })
}

fn new_pager(
    volume: Arc<Volume>,
    layout: Layout,
    pages: Versioned,
    log: (Log, Overflow),
    options: &Options,
) -> Pager {
    let frames = options.frames() as usize;
    let cache = Cache::new(frames, layout.page_size, pages.page_limit(), volume.hook());
    Pager::new(volume, layout, cache, pages, log, options.write_batch_pages)
}

impl Layout {
    /// Refuses options that contradict an existing store.
    fn matches(&self, options: &Options) -> Result<()> {
        let differ = |name, stored: String, asked: String| {
            Err(Error::Mismatch {
                name,
                stored,
                asked,
            })
        };
        if self.page_size != options.page_size {
            return differ(
                "page size",
                self.page_size.to_string(),
                options.page_size.to_string(),
            );
        }
        if self.store != options.store {
            let (stored, asked) = (format!("{:?}", self.store), format!("{:?}", options.store));
            return differ("page store", stored, asked);
        }
        if options.mod_log.is_some() && !self.mod_log {
            let (stored, asked) = ("none".to_string(), "one".to_string());
            return differ("modification log", stored, asked);
        }
        Ok(())
    }
}
