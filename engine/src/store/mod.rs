//! The store: a tree, its pages and its log on one device, opened, pumped and closed.
//!
//! The engine spawns no thread. Work that is not done in the foreground is a [`Task`]; [`Store::due`] says which is wanted
//! now and [`Store::pump`] does one bounded step of it. On real devices threads pump ([`Store::pump_until`] is such a thread's body);
//! in a simulation virtual clients do; a store that nobody pumps still works, since an operation that runs out of frames or log
//! space does the step itself.

pub(crate) mod checkpoint;
mod life;
mod long;
pub(crate) mod recovery;
pub(crate) mod room;
mod steps;

use life::Life;

use crate::cache::{Cache, Fix, ReadGuard};
use crate::device::{BlockDevice, Claim, Claims, OverlayDevice, Volume};
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::index::Index;
use crate::kv::{Kv, Visitor};
use crate::layout::{Layout, Slot, Superblock};
use crate::mini;
use crate::mutation;
use crate::options::{Options, TreeKind};
use crate::overflow::recover::Seen;
use crate::overflow::{self, Overflow, Pointer};
use crate::pager::Pager;
use crate::pages::{self, PageStore, PageTable, SlotMap, Versioned};
use crate::snapshot::{self, Chain};
use crate::stats::{MemoryStats, Stats};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::trees::Tree;
use crate::trees::bf::BfTree;
use crate::trees::btree::{Attempt, BTree};
use crate::types::Progress;
use crate::types::{BLOCK_SIZE, Clock, Lba, Lsn, PageId, StoreId};
use crate::wal::{Log, LogStart};
use checkpoint::Checkpointer;
use recovery::{RecoveryReport, Redo};
use room::{Full, Made};

/// How often a change merges neighbours that happen to fit, for a place, before the store is full.
///
/// A large record may take two splits. If the only neighbours that fit one page are the halves of
/// the first, making a place for the second merges them again, and so on for ever.
const MOST_SQUEEZES: u32 = 8;

/// How long a pumping thread waits for room below the store before it tries again.
const NO_SPACE_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Make the log durable up to its end.
    FlushLog,
    /// Evict pages ahead of need, writing dirty ones in batches.
    WriteBack,
    /// Evict mini-pages ahead of need, reading the leaves that they are merged into in batches.
    Evict,
    /// Bound what recovery has to redo.
    Checkpoint,
    /// Merge leaves that deletes have left nearly empty.
    Merge,
}

/// An ordered map on a device, crash-safe. See [`Kv`] for what it does and promises.
///
/// Dropping a store makes durable what nobody has synced, best effort; [`Store::close`] says
/// whether it is, and [`Store::abandon`] drops the store as a killed process would.
pub struct Store {
    pub(crate) tree: Tree,
    checkpointer: Checkpointer,
    clock: Arc<dyn Clock>,
    options: Options,
    recovery: RecoveryReport,
    life: Life,
    /// What making room for pages remembers.
    pub(crate) full: Full,
    /// Keeps other stores of this process from the device. The last field: given up when nothing is
    /// written any more.
    claim: Option<Claim>,
}

impl Store {
    /// Opens the store on `device`, recovering it if need be, or formats a blank device if `options.create` says so.
    ///
    /// Page size and page store of an existing store must be the ones asked for; log size and journal size are the stored ones.
    ///
    /// # Errors
    /// [`Error::BadOption`] and [`Error::Mismatch`] name the option, and [`Error::NotAStore`] says that something else is there:
    /// nothing was written. [`Error::InUse`] if another store has this device object,
    /// [`Error::NoSpace`] if recovery must write and there is no room below (with
    /// [`Options::read_only`] it does not). [`Error::Damaged`] or [`Error::MissingPage`] if
    /// recovery finds what no crash leaves behind, and device failures: recovery may have made some
    /// of its changes again, another opening does them all, and no acknowledged write is lost by
    /// trying. A damaged store is a case for [`crate::salvage`]. The device is free again then.
    pub fn open(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Store> {
        Store::open_observed(device, clock, options, None)
    }

    /// As [`Store::open`]; `observer` is told what the store does from recovery on, see [`crate::events`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_observed(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Store> {
        options.check()?;
        let claims = match options.read_only {
            true => Claims::Shared,
            false => Claims::Alone,
        };
        let claim = Claim::take(&device, claims)?;
        let device: Arc<dyn BlockDevice> = match options.read_only {
            // Recovery writes: into memory.
            true if !mutation::on("read-only-writes") => Arc::new(OverlayDevice::new(device)),
            _ => device,
        };
        let volume = Arc::new(Volume::observed(device, observer));
        let found = Superblock::load(&volume)?;
        let mut store = match found {
            Some(superblock) => Store::recover(volume, clock, options, superblock),
            None if options.create && !options.read_only => Store::format(volume, clock, options),
            None => Err(Error::NotAStore {
                lba: crate::types::Lba(0),
            }),
        }?;
        store.claim = Some(claim);
        Ok(store)
    }

    /// Makes an empty store: one leaf in the tree's page layout, one snapshot, and the superblock last.
    fn format(volume: Arc<Volume>, clock: Arc<dyn Clock>, options: &Options) -> Result<Store> {
        let id = StoreId::draw(&volume)?;
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
            redo_start: start,
            snapshot_head: Slot(0),
            snapshot_entries: 0,
            snapshot_number: 0,
            flush_blocks: 0,
            high_water: 0,
        };
        let store = Store::assemble(
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

    /// Brings an existing store to the state of its durable log.
    fn recover(
        volume: Arc<Volume>,
        clock: Arc<dyn Clock>,
        options: &Options,
        superblock: Superblock,
    ) -> Result<Store> {
        let layout = superblock.layout;
        layout.matches(options)?;
        let chain = Chain {
            volume: &volume,
            layout: &layout,
            number: superblock.snapshot_number,
        };
        let (entries, chain) = snapshot::read(
            chain,
            superblock.snapshot_head,
            superblock.snapshot_entries,
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

        // What is read here need not be durable: a killed process may have left it in the drive's cache, and a flush that failed may
        // have forgotten it, so that no flush helps. What recovery builds on is written again; see `recovery`.
        let (from, known_epoch) = (superblock.redo_start, superblock.epoch);
        let region = layout.log_region();
        let start = LogStart {
            from,
            epoch: known_epoch,
            flush_blocks: u64::from(superblock.flush_blocks),
        };
        let scan_volume = Arc::clone(&volume);
        let mut seen = Seen::new(&scan_volume, &layout);
        let end = Log::scan_end(&volume, region, start, |lsn, record| {
            record.pages().for_each(|page| pages.named_in_log(page));
            seen.take(lsn, &record, &overflow);
            Ok(())
        })?;
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
        if end.records > 0 {
            seen.hold_live(&overflow, &pages)?;
        }
        // Nothing is appended while the log is replayed, yet pages are written under the WAL rule: this log is durable as it is.
        let log = Log::create(Arc::clone(&volume), region, epoch, end.next_start, options)?;
        log.keep_from(from);
        volume.tell(|| Event::RecoveryBegins {
            epoch,
            redo_start: from,
            log_start: end.next_start,
        });
        let pager = new_pager(Arc::clone(&volume), layout, pages, (log, overflow), options);
        let mut redo = Redo::new(&pager, &index, &chain, &seen);
        crate::wal::replay_to(&volume, region, start, &end, |lsn, record| {
            redo.take(lsn, &record)
        })?;
        redo.report.pages_repaired = repaired;
        let (report, sparse) = redo.finish()?;
        let superblock = Superblock {
            epoch,
            ..superblock
        };
        let store = Store::assemble(
            tree(Arc::new(pager), index, options)?,
            Checkpointer::new(superblock, chain, end.next_start),
            clock,
            options,
            report,
        );
        // Also makes the new epoch durable, before anything is appended under it.
        store.checkpointer.run(&store.tree)?;
        store.tree.leaves().pager.volume.tell(|| Event::Opened);
        // No log names these any more.
        let notes = &store.tree.leaves().notes;
        sparse.into_iter().for_each(|page| notes.note(page));
        if !options.read_only {
            // What stops a merge for good, a damaged neighbour, meets whoever needs that.
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
    ) -> Store {
        let life = Life::begin(&*clock);
        Store {
            tree,
            checkpointer,
            clock,
            options: options.clone(),
            recovery,
            life,
            full: Full::default(),
            claim: None,
        }
    }

    /// Has what a `bf` tree does with its mini-pages told to `observer` from now on, see [`mini::events`]; other trees have none.
    pub fn observe_mini_pages(&mut self, observer: Arc<dyn Observer<mini::events::Event>>) {
        self.tree.observe_mini_pages(observer);
    }

    /// What opening had to do.
    pub fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// The options in force.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The most urgent task that wants doing now. A few loads; one clock reading under
    /// [`crate::Durability::Grouped`].
    pub fn due(&self) -> Option<Task> {
        let pager = &*self.tree.leaves().pager;
        if pager.write_back_due() {
            return Some(Task::WriteBack);
        }
        if self.tree.evict_due() {
            return Some(Task::Evict);
        }
        let unflushed = pager.log.unflushed_bytes();
        if unflushed >= self.options.log_buffer_bytes {
            return Some(Task::FlushLog);
        }
        if self
            .checkpointer
            .due(pager.log.end(), self.options.checkpoint_log_bytes)
        {
            return Some(Task::Checkpoint);
        }
        if self.tree.merge_due() {
            return Some(Task::Merge);
        }
        if self.interval_is_over() {
            return Some(Task::FlushLog);
        }
        None
    }

    /// Does one bounded step of `task`.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes. [`Error::Poisoned`] if it refused
    /// them before.
    pub fn pump(&self, task: Task) -> Result<Progress> {
        match task {
            Task::FlushLog => {
                self.flush_log(self.tree.leaves().pager.log.end())?;
                Ok(Progress::Idle)
            }
            Task::WriteBack => self.tree.leaves().pager.write_back(),
            Task::Evict => self.tree.evict(),
            Task::Checkpoint => self.checkpointer.step(&self.tree),
            Task::Merge => self.tree.merge_step(),
        }
    }

    /// Pumps whatever is due until `stop` is set: the body of a background thread on a real device.
    ///
    /// # Errors
    /// As [`Store::pump`].
    pub fn pump_until(&self, stop: &std::sync::atomic::AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Acquire) {
            match self.due() {
                Some(task) => match self.pump(task) {
                    // Whoever writes is told; this thread waits for room.
                    Err(e) if e.is_no_space() => std::thread::sleep(NO_SPACE_PAUSE),
                    pumped => drop(pumped?),
                },
                None => std::thread::sleep(std::time::Duration::from_micros(200)),
            }
        }
        Ok(())
    }

    /// Checkpoints and lets go of the device. What was not synced before is durable, too, and the
    /// next opening has nothing to redo.
    ///
    /// # Errors
    /// A device failure, or [`Error::Poisoned`] after an earlier one: the store is gone all the
    /// same, and the next opening finds what was durable.
    pub fn close(self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        // Before the checkpoint begins, so that the next opening finds nothing to redo. What stops
        // a merge for good (a damaged neighbour) is no reason to leave the others undone.
        drop(self.merge_noted());
        self.checkpointer.run(&self.tree)?;
        // All of the log is in the pages now.
        let nothing = Lba(0)..Lba(0);
        self.tree.leaves().pager.volume.reclaim(nothing);
        Ok(())
    }

    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<()> {
        // A sync of what is durable already flushes nothing, so it must not put off the next flush.
        if lsn > self.tree.leaves().pager.log.durable() {
            self.life.log_flushes(&*self.clock);
        }
        self.tree.leaves().pager.flush_log(lsn)?;
        if mutation::on("harmless-second-flush") {
            self.tree.leaves().pager.volume.flush()?;
        }
        self.tree
            .leaves()
            .pager
            .volume
            .tell(|| Event::Acknowledged { lsn });
        Ok(())
    }

    /// Runs checkpoint steps until the log has room again.
    pub(crate) fn make_log_room(&self) -> Result<()> {
        let log = &self.tree.leaves().pager.log;
        if log.space_left() > log.capacity() / 2 {
            // Somebody else made room meanwhile, or has been promised what there is.
            crate::sync::yield_now();
            return Ok(());
        }
        // Twice: the first may have begun where another one had just ended, and while it ran others
        // have filled the log.
        for _ in 0..2 {
            let before = log.redo_start();
            self.checkpointer.run(&self.tree)?;
            if log.redo_start() != before || log.space_left() >= log.capacity() / 4 {
                return Ok(());
            }
        }
        Err(Error::LogFull {
            capacity: log.capacity(),
            redo_start: log.redo_start(),
        })
    }

    /// Tries until the change is made; `again` is called with no latch held.
    fn change<T>(&self, attempt: &mut dyn FnMut() -> Result<Attempt<T>>) -> Result<T> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.tree.leaves().pager.check_poison()?;
        self.tree.leaves().pager.retry_refused()?;
        let mut squeezed = 0;
        loop {
            let freed = self.pages_freed();
            match attempt()? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Again => {}
                Attempt::LogFull => self.make_log_room()?,
                Attempt::StoreFull if squeezed == MOST_SQUEEZES => return Err(self.is_full()),
                Attempt::StoreFull => match self.make_page_room(freed)? {
                    Made::Squeezed if !mutation::on("full-for-ever") => squeezed += 1,
                    Made::Squeezed | Made::Freed => {}
                },
            }
        }
    }

    /// What of the options' promises is taken now.
    fn memory(&self) -> MemoryStats {
        let pager = &*self.tree.leaves().pager;
        let tree = self.tree.stats(Stats::default());
        MemoryStats {
            cache_bytes: pager.cache.frame_bytes(),
            ring_bytes: tree.bf.map_or(0, |bf| bf.ring_bytes),
            index_bytes: tree.index_bytes,
            map_bytes: pager.cache.map_bytes()
                + pager.pages.map_bytes()
                + pager.overflow.map_bytes()
                + tree.bf.map_or(0, |bf| bf.mapping_bytes),
            log_buffer_bytes: pager.log.buffer_bytes(),
            write_buffer_bytes: pager.write_buffer_bytes(),
        }
    }

    /// Visits every leaf's lower fence and page, in key order.
    pub(crate) fn for_each_leaf(&self, visit: impl FnMut(&[u8], PageId)) {
        self.tree.leaves().index.for_each(visit);
    }

    /// Latches a leaf for reading.
    pub(crate) fn read_leaf(&self, page: PageId) -> Result<Fix<ReadGuard<'_>>> {
        self.tree.leaves().pager.read(page)
    }

    /// How full every leaf is, in key order. Reads the leaves through the cache, and counts like any other read: ask after
    /// everything else has been measured.
    ///
    /// # Errors
    /// Device failures and damage.
    pub fn leaf_fill(&self) -> Result<Vec<LeafFill>> {
        let mut leaves = Vec::with_capacity(self.tree.leaves().index.len());
        let mut ids = Vec::with_capacity(self.tree.leaves().index.len());
        self.for_each_leaf(|_, page| ids.push(page));
        for page in ids {
            if let Fix::Got(leaf) = self.read_leaf(page)? {
                let view = leaf.view();
                leaves.push(LeafFill {
                    page,
                    records: view.count() as u32,
                    used_bytes: view.used_bytes() as u32,
                    prefix_bytes: view.prefix().len() as u32,
                });
            }
        }
        Ok(leaves)
    }
}

/// How full one leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFill {
    /// The leaf.
    pub page: PageId,
    /// Records in it.
    pub records: u32,
    /// Bytes in use, header and fences included.
    pub used_bytes: u32,
    /// Length of the truncated prefix.
    pub prefix_bytes: u32,
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.tree.get(key, value)?;
        match Pointer::of(value) {
            Some(pointer) if found => self.get_long(key, pointer, value),
            _ => Ok(found),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let limits = self.tree.leaves().limits();
        overflow::check(limits, key, value)?;
        let for_others = self.must_flush_for_others();
        let lsn = match overflow::goes_out_of_line(limits, key.len(), value) {
            true => self.put_long(key, value)?,
            false => self.change(&mut || self.tree.try_put(key, value))?,
        };
        self.acknowledge(lsn, for_others)
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        if overflow::check(self.tree.leaves().limits(), key, b"").is_err() {
            // No such key can be there; the answer is as durable as the log is.
            return Ok(self.tree.leaves().pager.log.durable());
        }
        let for_others = self.must_flush_for_others();
        let (lsn, sparse) = self.change(&mut || self.tree.try_delete(key))?;
        let acknowledged = self.acknowledge(lsn, for_others)?;
        if sparse {
            // The delete is done whatever becomes of the merge. What stops a merge for good (a damaged neighbour, a failed
            // device) meets whoever needs that neighbour, or the next write.
            drop(self.tree.merge_step());
        }
        Ok(acknowledged)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.following(visit, |visit| self.tree.scan(from, visit))
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.following(visit, |visit| self.tree.scan_back(before, visit))
    }

    fn sync(&self, lsn: Lsn) -> Result<()> {
        if mutation::on("harmless-checkpoint") {
            self.checkpointer.run(&self.tree)?;
        }
        self.flush_log(lsn)
    }

    fn checkpoint(&self) -> Result<Lsn> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.checkpointer.run(&self.tree)
    }

    fn pump_due(&self) -> Result<bool> {
        let Some(task) = self.due() else {
            return Ok(false);
        };
        self.pump(task)?;
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let pager = &*self.tree.leaves().pager;
        let (cache_hits, cache_misses) = pager.cache.hits_and_misses();
        let counters = &pager.counters;
        Stats {
            cache_hits,
            cache_misses,
            evictions: counters.evictions.load(Ordering::Relaxed),
            pages_written_back: counters.written_back.load(Ordering::Relaxed),
            pages_checkpointed: counters.checkpointed.load(Ordering::Relaxed),
            checkpoints: self.checkpointer.completed(),
            cache_frames: pager.cache.ordinary() as u64,
            memory: self.memory(),
            mod_log: pager.pages.mod_log_stats(),
            places_taken: pager.pages.places_taken(),
            overflow: pager.overflow.stats(),
            ..self.tree.stats(pager.log.stats(pager.volume.stats()))
        }
    }
}

/// The snapshot vouches for an image that is newer than the log's end. The log was durable up to
/// that LSN, so it has lost records; whoever went on behind that end would give their LSNs out
/// again, and soon nobody could tell (`specs/page_shadowing/PageVersions.tla`, `FindEndEarly`).
#[cold]
fn log_too_short(layout: &Layout, (version, page): (Lsn, PageId), end: Lsn) -> Error {
    Error::Damaged {
        what: "log".into(),
        lba: layout.log_start(),
        expected: format!("records up to {version}, which {page} has"),
        found: format!("its end at {end}"),
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
