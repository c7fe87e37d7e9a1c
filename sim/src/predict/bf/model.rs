//! Simulates mini-pages operation by operation. The state consists of leaves, record sets and
//! addresses.

use treering_engine::{BfShape, LeafReads, Lightest, Threshold};

use super::below::Below;
use super::pages::{MiniPage, Record};
use super::promotion::Promoter;
use super::ring::Ring;

/// Only so many leaves at the beginning of a scan may become mirrors.
const MIRRORED: usize = 8;

/// The cause of a merge, in the order of [`Counts::merges`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::predict) enum Cause {
    Eviction,
    CopyOnAccess,
    Room,
    Checkpoint,
}

/// Counts of the measured part.
#[derive(Clone, Default)]
pub(in crate::predict) struct Counts {
    pub(in crate::predict) misses: f64,
    pub(in crate::predict) insert_hits: f64,
    pub(in crate::predict) cache_hits: f64,
    pub(in crate::predict) leaf_reads: f64,
    pub(in crate::predict) promotions: f64,
    pub(in crate::predict) copies_to_tail: f64,
    pub(in crate::predict) evictions: f64,
    pub(in crate::predict) merges: [f64; 4],
    pub(in crate::predict) merged_records: f64,
    /// Bytes of log for records that checkpoints logged again, and leaves read for that.
    pub(in crate::predict) relogged: f64,
    pub(in crate::predict) relog_reads: f64,
    /// Bytes of the ring for what is promoted by a share that adapts, and bytes that its tail passed.
    pub(in crate::predict) promoted_bytes: f64,
    pub(in crate::predict) passed_bytes: f64,
}

impl Counts {
    /// Adds the counts of another run.
    pub(super) fn add(&mut self, other: &Counts) {
        self.misses += other.misses;
        self.insert_hits += other.insert_hits;
        self.cache_hits += other.cache_hits;
        self.leaf_reads += other.leaf_reads;
        self.promotions += other.promotions;
        self.copies_to_tail += other.copies_to_tail;
        self.evictions += other.evictions;
        self.merged_records += other.merged_records;
        self.relogged += other.relogged;
        self.promoted_bytes += other.promoted_bytes;
        self.passed_bytes += other.passed_bytes;
        self.relog_reads += other.relog_reads;
        for (sum, count) in self.merges.iter_mut().zip(other.merges) {
            *sum += count;
        }
    }
}

/// What the model needs to know of a key.
#[derive(Clone, Copy)]
pub(in crate::predict) struct Key {
    /// Its leaf.
    pub(in crate::predict) leaf: u32,
    /// Its position among the keys of the leaf.
    pub(in crate::predict) rank: u32,
    /// Bytes of its record in a mini-page.
    pub(in crate::predict) bytes: u32,
    /// Bytes that it is assumed to need in a leaf if the leaf is not known to hold it, beyond those
    /// that [`Below::free`] counts.
    pub(in crate::predict) growth: u32,
}

#[derive(Default)]
pub(super) struct Leaf {
    /// Whether its free bytes are known while there is no mini-page.
    known: bool,
    pub(super) mini: Option<Box<MiniPage>>,
}

/// The simulated mini-pages and their ring, on the leaves below.
pub(in crate::predict) struct Model<'a, B> {
    pub(super) shape: &'a BfShape,
    pub(super) weight: f64,
    pub(super) ring: Ring,
    pub(in crate::predict) below: B,
    pub(super) leaves: Vec<Leaf>,
    pub(in crate::predict) counts: Counts,
    promoter: Promoter,
    /// Merges, from the beginning.
    merged: u64,
    /// Below how many bytes of changes mini-pages are spared.
    pub(super) threshold: Threshold,
    /// When a checkpoint had last looked at all mini-pages.
    swept: u64,
}

impl<'a, B: Below> Model<'a, B> {
    /// An empty ring for leaves `0..leaves`; each stands for `weight` of them, and the ring is as
    /// much smaller.
    pub(in crate::predict) fn new(
        shape: &'a BfShape,
        leaves: usize,
        weight: f64,
        below: B,
    ) -> Model<'a, B> {
        let part = |bytes: u64| (bytes as f64 / weight) as u64;
        Model {
            shape,
            weight,
            ring: Ring::new(part(shape.ring), part(shape.in_place), shape.blocks.clone()),
            below,
            leaves: (0..leaves).map(|_| Leaf::default()).collect(),
            counts: Counts::default(),
            promoter: Promoter::new(shape.promote, weight),
            merged: 0,
            threshold: Threshold::new(),
            swept: 0,
        }
    }

    /// A put or delete, which the log already has.
    pub(in crate::predict) fn write(&mut self, key: Key) {
        while !self.put(key) {}
    }

    /// Evicts mini-pages ahead of need.
    pub(in crate::predict) fn tidy(&mut self) {
        self.below.tidy();
        let goal = (self.shape.free_goal as f64 / self.weight) as u64;
        while self.ring.room() < goal {
            self.evict_ahead(2 * goal);
            self.below.tidy();
        }
    }

    /// Merges the mini-pages of these leaves in this order, as a checkpoint does with all of them
    /// first (§5.7), or logs the dirty records of those that go on gathering again, as long as that
    /// is less than so many bytes. Returns the bytes of log that this takes.
    pub(in crate::predict) fn push_down(
        &mut self,
        leaves: impl IntoIterator<Item = u32>,
        relog: u64,
    ) -> f64 {
        let leaves: Vec<u32> = leaves.into_iter().collect();
        let (most, mut logged) = (relog as f64, 0.0);
        let mut chosen = self.lightest(&leaves, relog).choose();
        for leaf in leaves {
            if logged < most && self.gathers(leaf) && chosen.takes(self.bytes_of_changes(leaf)) {
                logged += self.log_again(leaf);
            } else {
                self.merge(leaf, Cause::Checkpoint);
            }
        }
        self.swept = self.below.now();
        self.counts.relogged += logged;
        logged
    }

    /// The mini-pages that may be logged again, weighed.
    fn lightest(&self, leaves: &[u32], relog: u64) -> Lightest {
        let mut lightest = Lightest::new((relog as f64 / self.weight) as u64);
        let weighed = if relog > 0 { leaves } else { &[] };
        for leaf in weighed.iter().filter(|leaf| self.gathers(**leaf)) {
            lightest.add(self.bytes_of_changes(*leaf));
        }
        lightest
    }

    fn bytes_of_changes(&self, leaf: u32) -> u64 {
        let mini = self.leaves[leaf as usize].mini.as_ref();
        mini.map_or(0, |mini| mini.bytes_of_changes())
    }

    /// Whether a leaf's mini-page was written since the last checkpoint.
    fn gathers(&self, leaf: u32) -> bool {
        let mini = self.leaves[leaf as usize].mini.as_ref();
        mini.is_some_and(|mini| mini.written > self.swept)
    }

    fn log_again(&mut self, leaf: u32) -> f64 {
        let mini = self.leaves[leaf as usize].mini.as_mut();
        let Some(mini) = mini.filter(|mini| mini.dirty() > 0) else {
            return 0.0;
        };
        if mini.dirty() > 1 {
            // For the order in which the records fit.
            self.counts.relog_reads += 1.0;
            self.below.read(leaf);
        }
        let bytes = self.below.log_again(leaf, &mini.records);
        mini.written = self.below.now();
        bytes
    }

    /// A write finds no room in the leaf, which will be split: dirty records are merged first, and
    /// a mini-page that had some makes room for the record of `bytes` bytes.
    pub(in crate::predict) fn before_split(&mut self, leaf: u32, bytes: usize) {
        self.look_at_leaf(leaf);
        let mini = self.leaves[leaf as usize].mini.as_ref();
        let Some(mini) = mini.filter(|mini| mini.dirty() > 0) else {
            return;
        };
        match mini.mirror {
            true => self.merge(leaf, Cause::Room),
            false => self.merge_and_reshape(leaf, bytes),
        }
        // The write begins again.
        self.look_at_leaf(leaf);
    }

    /// The leaf was split: the records from `rank` on leave its mini-page.
    pub(in crate::predict) fn divide(&mut self, leaf: u32, right: u32, rank: u32) {
        if self.below.is_played(right) {
            self.look_at_leaf(right);
            self.leaves[right as usize].known = true;
        }
        self.look_at_leaf(leaf);
        self.leaves[leaf as usize].known = true;
        let Some(mini) = self.leaves[leaf as usize].mini.take() else {
            return;
        };
        self.ring.free(mini.block, mini.class);
        let at = mini.find(rank).unwrap_or_else(|at| at);
        let (low, high) = mini.records.split_at(at);
        self.give(leaf, low, mini.mirror);
        if self.below.is_played(right) {
            self.give(right, high, mini.mirror);
        }
    }

    /// Bytes of a leaf that only the next merge will free.
    pub(in crate::predict) fn owe(&mut self, leaf: u32, bytes: u32) {
        let mini = self.leaves[leaf as usize].mini.as_mut();
        if let Some(mini) = mini.filter(|mini| mini.dirty() > 0) {
            mini.growth += bytes;
        }
    }

    /// Merges the mini-pages of two neighbours, whose leaves may be merged.
    pub(in crate::predict) fn settle_both(&mut self, left: u32, right: u32) {
        let counts = self.counts.clone();
        self.merge(left, Cause::Room);
        self.merge(right, Cause::Room);
        // These are no merges of a cause that is predicted.
        self.counts = counts;
    }

    /// Two leaves are merged: neither has a mini-page then.
    pub(in crate::predict) fn drop_both(&mut self, left: u32, right: u32) {
        for leaf in [left, right] {
            let page = &mut self.leaves[leaf as usize];
            page.known = false;
            if let Some(mini) = page.mini.take() {
                self.ring.free(mini.block, mini.class);
            }
        }
    }

    /// Gives a leaf a mini-page of these records, if a block is available at once.
    fn give(&mut self, leaf: u32, records: &[Record], mirror: bool) {
        if records.is_empty() && !mirror {
            return;
        }
        let class = self.class_for(self.mini_bytes(records.iter().copied()));
        if class < self.shape.blocks.len()
            && self.settle(leaf, class).is_ok()
            && let Some(mini) = &mut self.leaves[leaf as usize].mini
        {
            mini.records = records.to_vec();
            mini.mirror = mirror;
        }
    }

    /// Reads a record from the mini-page, or else from the leaf; sometimes promotes it (§5.1).
    pub(in crate::predict) fn get(&mut self, key: Key) {
        let marks = self.shape.marks;
        if let Some(mini) = &mut self.leaves[key.leaf as usize].mini
            && let Ok(index) = mini.find(key.rank)
        {
            mini.used(index, marks);
            let hits = if mini.records[index].dirty {
                &mut self.counts.insert_hits
            } else {
                self.promoter.answered(LeafReads::Lookups);
                &mut self.counts.cache_hits
            };
            *hits += 1.0;
            if self.ring.near_head(mini.block) {
                self.move_to_tail(key.leaf);
            }
            return;
        }
        if self.scans_mirror(key.leaf) {
            // A mirror also answers for absent keys.
            self.counts.cache_hits += 1.0;
            self.promoter.answered(LeafReads::Lookups);
            return;
        }
        self.counts.misses += 1.0;
        self.look_at_leaf(key.leaf);
        if self.wants_promotion(LeafReads::Lookups) {
            let bytes = || u64::from(key.bytes);
            self.counts.promoted_bytes += self.promoter.promotes(LeafReads::Lookups, bytes) as f64;
            self.promote(key);
        }
    }

    /// Reads a leaf.
    pub(in crate::predict) fn look_at_leaf(&mut self, leaf: u32) {
        self.counts.leaf_reads += 1.0;
        self.below.read(leaf);
    }

    /// Uses a leaf's mirror, if it has one, for all of its records.
    fn scans_mirror(&mut self, leaf: u32) -> bool {
        let Some(mini) = (self.leaves[leaf as usize].mini.as_mut()).filter(|mini| mini.mirror)
        else {
            return false;
        };
        mini.scanned = true;
        if self.ring.near_head(mini.block) {
            self.move_to_tail(leaf);
        }
        true
    }

    /// Scans a leaf, the `nth` of the scan: its mirror answers, or the leaf is read and sometimes
    /// gets a mirror (§5.3).
    pub(in crate::predict) fn scan(&mut self, leaf: u32, nth: usize) {
        if self.scans_mirror(leaf) {
            self.promoter.answered(LeafReads::Scans);
            return;
        }
        self.look_at_leaf(leaf);
        if nth < MIRRORED && self.wants_promotion(LeafReads::Scans) {
            let below = &self.below;
            let bytes = || {
                let records = below.records(leaf);
                records.iter().map(|record| u64::from(record.bytes)).sum()
            };
            let bytes = self.promoter.promotes(LeafReads::Scans, bytes);
            self.counts.promoted_bytes += bytes as f64;
            if let Err(short) = self.widen(leaf, 0)
                && short > 0
            {
                self.make_room(short);
            }
        }
    }

    /// Whether a leaf's mini-page has a record of a key, or a note that there is none.
    pub(in crate::predict) fn has(&self, key: Key) -> bool {
        let mini = self.leaves[key.leaf as usize].mini.as_ref();
        mini.is_some_and(|mini| mini.find(key.rank).is_ok())
    }

    /// Whether a record of this key was written and not merged into its leaf yet.
    pub(in crate::predict) fn has_dirty(&self, key: Key) -> bool {
        let mini = self.leaves[key.leaf as usize].mini.as_ref();
        mini.is_some_and(|mini| mini.find(key.rank).is_ok_and(|at| mini.records[at].dirty))
    }

    fn wants_promotion(&mut self, of: LeafReads) -> bool {
        self.promoter.wants(of, self.merged, self.ring.passed())
    }

    /// Promotes a record (copies it to the mini-page). If the ring is full, this makes room for the
    /// next one instead.
    fn promote(&mut self, key: Key) {
        let needed = self.needed(key);
        let made = if needed > self.shape.largest {
            self.widen(key.leaf, 0)
        } else {
            self.with_room(key.leaf, needed)
        };
        match made {
            Ok(()) => {
                self.counts.promotions += 1.0;
                self.enter(key, false);
            }
            Err(0) => {}
            Err(short) => self.make_room(short),
        }
    }

    /// Bytes of the mini-page with this key's record in it.
    fn needed(&self, key: Key) -> usize {
        let mini = self.leaves[key.leaf as usize].mini.as_deref();
        let records = mini.map_or(&[][..], |mini| &mini.records);
        let old = mini.and_then(|mini| mini.find(key.rank).ok());
        let old = old.map_or(0, |index| records[index].bytes as usize);
        self.mini_bytes(records.iter().copied()) - old + key.bytes as usize
    }

    pub(super) fn mini_bytes(&self, records: impl Iterator<Item = Record>) -> usize {
        self.shape.mini_page + records.map(|r| r.bytes as usize).sum::<usize>()
    }

    pub(super) fn class_for(&self, mini_page: usize) -> usize {
        let bytes = mini_page + self.shape.block_overhead;
        self.ring.class_for(bytes as u64)
    }

    /// Gives the mini-page a block of at least `needed` bytes: the current one, or a larger one
    /// (§4.2, "Grow").
    fn with_room(&mut self, leaf: u32, needed: usize) -> Result<(), u64> {
        let class = self.class_for(needed);
        match &self.leaves[leaf as usize].mini {
            Some(mini) if class <= mini.class => Ok(()),
            _ => self.settle(leaf, class),
        }
    }

    /// Turns a leaf's mini-page into a mirror with `spare` free bytes (§3.1, "Caching range gaps").
    ///
    /// # Errors
    /// The number of bytes missing in the ring; 0 if no block is large enough.
    fn widen(&mut self, leaf: u32, spare: usize) -> Result<(), u64> {
        let all = self.below.records(leaf);
        let class = self.class_for(self.mini_bytes(all.iter().copied()) + spare);
        if class == self.shape.blocks.len() {
            return Err(0);
        }
        self.settle(leaf, class)?;
        if let Some(mini) = &mut self.leaves[leaf as usize].mini {
            mini.widen(all.into_iter(), self.shape.marks);
        }
        Ok(())
    }

    /// Moves a leaf's mini-page to a block of this class, or creates it there.
    pub(super) fn settle(&mut self, leaf: u32, class: usize) -> Result<(), u64> {
        let passed = self.ring.passed();
        let block = self.ring.allocate(class, leaf)?;
        self.counts.passed_bytes += (self.ring.passed() - passed) as f64;
        let page = &mut self.leaves[leaf as usize];
        match &mut page.mini {
            Some(mini) => {
                self.ring.free(mini.block, mini.class);
                (mini.block, mini.class) = (block, class);
            }
            None => page.mini = Some(Box::new(MiniPage::new(block, class))),
        }
        Ok(())
    }

    /// Puts a record into a mini-page that has room for it.
    fn enter(&mut self, key: Key, dirty: bool) {
        let marks = self.shape.marks;
        let leaf = &mut self.leaves[key.leaf as usize];
        leaf.known = true;
        let Some(mini) = &mut leaf.mini else { return };
        match mini.find(key.rank) {
            Ok(index) => {
                mini.used(index, marks);
                mini.records[index].dirty |= dirty;
                mini.records[index].bytes = key.bytes;
            }
            Err(index) => {
                let record = Record {
                    rank: key.rank,
                    bytes: key.bytes,
                    dirty,
                };
                mini.insert(index, record, marks);
            }
        }
    }

    /// Puts a record into the mini-page once the leaf is known to have room (§5.2). Returns `false`
    /// if it has to be tried again.
    fn put(&mut self, key: Key) -> bool {
        let leaf = &self.leaves[key.leaf as usize];
        let mini = leaf.mini.as_deref();
        let has = mini.is_some_and(|mini| mini.find(key.rank).is_ok());
        let mut growth = if has { 0 } else { key.growth };
        let free = i64::from(self.below.free(key.leaf));
        let room = match mini {
            Some(mini) => Some(free - i64::from(mini.growth)),
            None => leaf.known.then_some(free),
        };
        let lacks_place = !has && self.below.has_places(key.leaf);
        if lacks_place || room.is_none_or(|room| i64::from(growth) > room) {
            // At this size the leaf already holds the key and all dirty records.
            self.look_at_leaf(key.leaf);
            growth = 0;
            if let Some(mini) = &mut self.leaves[key.leaf as usize].mini {
                mini.growth = 0;
            }
        }
        let needed = self.needed(key);
        let mirror = self.leaves[key.leaf as usize].mini.as_ref();
        let fits = self.class_for(needed) < self.shape.blocks.len();
        if !fits
            || needed > self.shape.largest_of_changes && !mirror.is_some_and(|mini| mini.mirror)
        {
            self.merge_and_reshape(key.leaf, key.bytes as usize);
            return false;
        }
        if let Err(short) = self.with_room(key.leaf, needed) {
            self.make_room(short);
            return false;
        }
        self.enter(key, true);
        let time = self.below.now();
        if let Some(mini) = &mut self.leaves[key.leaf as usize].mini {
            mini.growth += growth;
            mini.written = time;
            if self.ring.near_head(mini.block) {
                self.move_to_tail(key.leaf);
            }
        }
        true
    }

    /// Merges a mini-page that has become too large; it then becomes a mirror with `spare` bytes
    /// left, or shrinks (§5.5).
    fn merge_and_reshape(&mut self, leaf: u32, spare: usize) {
        self.merge(leaf, Cause::Room);
        self.look_at_leaf(leaf);
        if self.widen(leaf, spare).is_ok() {
            return;
        }
        let marks = self.shape.marks;
        let Some(mini) = &self.leaves[leaf as usize].mini else {
            return;
        };
        let bytes = self.mini_bytes(mini.wanted(marks, false));
        let hot = mini.wanted(marks, false).next().is_some();
        let stays = hot && bytes <= self.shape.largest / 2 && self.keep(leaf, false, false);
        if !stays && let Some(mini) = self.leaves[leaf as usize].mini.take() {
            self.ring.free(mini.block, mini.class);
        }
    }

    pub(super) fn merge(&mut self, leaf: u32, cause: Cause) {
        let page = &mut self.leaves[leaf as usize];
        let Some(mini) = &mut page.mini else { return };
        let records = mini.dirty();
        if records == 0 {
            return;
        }
        self.below.merge(leaf, mini.written, &mini.records);
        mini.merged();
        self.merged += 1;
        self.counts.merges[cause as usize] += 1.0;
        self.counts.merged_records += f64::from(records);
    }
}
