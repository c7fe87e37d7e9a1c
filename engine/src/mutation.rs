//! Seeded bugs that show that the checks have teeth.
//!
//! Built with the feature `mutations` (or `RUSTFLAGS="--cfg treering_mutations"`), the engine asks here at the places where a known bug of
//! some real engine could sit; [`choose`], or `TREERING_MUTATION=name` in the environment, switches one on. A normal build contains nothing of
//! this: [`on`] is the constant `false`.

/// Every mutation by name, with the test that must fail; `oracle` is `treering oracle --mutations`. `BUGS` ids are the pool they are modelled on.
pub const MUTATIONS: &[(&str, &str)] = &[
    // D12-like: the page overtakes its log record.
    ("page-before-log", "store_crash"),
    // BUGS D8: the log is given up before the checkpoint that replaces it is durable.
    ("truncate-before-superblock", "store_crash"),
    // Torn pages: the home is written while the journal may still be in flight.
    ("journal-not-flushed", "store_crash"),
    // A crash during recovery finds pages redone twice.
    ("redo-ignores-page-lsn", "store_crash"),
    // BUGS C3: a page is marked clean although its image was never written.
    ("clean-without-write", "store_differential"),
    // BUGS D4: after a failed page write the dirty mark is gone.
    ("failed-write-stays-clean", "store_crash"),
    // A page that is changed while its write is refused is taken for one that is dirty since then.
    ("refused-write-forgets-its-lsn", "refused_writes"),
    // What a refused write would have covered is not written with the next one.
    ("refused-write-forgets-its-changes", "refused_writes"),
    // A table that was written in part is taken for one that was not written.
    ("refused-table-forgets-names", "lib"),
    // BUGS S5: an index answer is trusted without asking the leaf.
    ("trust-index", "store_concurrent"),
    // BUGS S5, inside the index: the parent is not looked at again after the child.
    ("index-skips-revalidation", "loom_index"),
    // BUGS D1: a merged page's place is reused before the merge is durable.
    ("free-before-durable", "store_crash"),
    // The copy-on-write table overtakes the page it names.
    ("table-before-page", "store_crash"),
    // Long values. The log names one that is not durable.
    ("overflow-not-synced-before-log", "store_crash"),
    // The place of one is another's before the record that replaced it is durable.
    ("overflow-freed-at-once", "store_crash"),
    // Repair or redo writes a page that is long dead over the value that has its place by now.
    ("overflow-redo-of-the-dead", "store_long"),
    // Redo moves a page to where a value is that nobody has told it of.
    ("overflow-redo-moves-over", "store_crash"),
    // What is read is taken for the value, whatever it is.
    ("overflow-block-unchecked", "store_long"),
    // A split waits for a frame with its leaf latched.
    ("frame-awaited-under-latch", "store_many_threads"),
    // BUGS L1: a turn ends, and whoever is next sleeps on.
    ("turn-ends-unheard", "loom_turns"),
    // A sparse leaf whose neighbour was busy is never looked at again.
    ("busy-leaf-forgotten", "lib"),
    // A leaf is merged with its right neighbour or not at all.
    ("left-neighbour-forgotten", "store_merging"),
    // The log that names sparse leaves is given up while they still are.
    ("checkpoint-forgets-notes", "store_merging"),
    // What was sparse before a crash is nobody's business after it.
    ("recovery-forgets-sparse", "store_merging"),
    // A store says that it is full, however little is in its leaves.
    ("full-without-merge", "store_merging"),
    // It says so while three neighbours fit two pages.
    ("full-without-sharing", "store_merging"),
    // A place is made for half of what a put takes, for ever.
    ("full-for-ever", "store_merging"),
    // While the table is written, the slots that it is about to free are nobody's: a store with room says that it is full.
    ("table-write-hides-held", "lib"),
    // Split records without the moved records' page being rebuilt.
    ("split-skips-right", "store_crash"),
    // D12-like: the log says "durable" before the device has flushed.
    ("log-acks-before-flush", "wal_crash"),
    // BUGS D5: after a failed flush the next one "succeeds".
    ("log-retries-failed-flush", "loom_wal"),
    // BUGS D11: appends go on behind a torn tail without a new epoch.
    ("log-keeps-epoch", "wal_crash"),
    // A store that is dropped takes with it what nobody has synced.
    ("drop-forgets-log", "store_life"),
    // Repair takes the newest image that it finds for the newest that was written.
    ("repair-trusts-stale-leaf", "repair"),
    // An interval of durability passes, and no writer looks at the clock.
    ("interval-needs-pump", "store_life"),
    // BUGS D5, across threads: a flush that failed under one thread is forgotten by another's.
    ("flush-forgets-failure", "store_edges"),
    // The journal mends a page that was damaged after it was durable, with an image of long ago.
    ("repair-with-old-page", "store_edges"),
    // A full store has no place left for the snapshot that would let it open again.
    ("leaves-take-every-slot", "store_edges"),
    // BUGS D5, across a restart: recovery builds on what it reads, which a failed flush has forgotten. Four kinds of blocks.
    ("restart-trusts-superblock", "store_restart"),
    ("restart-trusts-log", "store_restart"),
    ("restart-trusts-homes", "store_restart"),
    ("restart-trusts-table", "store_restart"),
    // Silent damage. A whole image is believed, however old.
    ("any-image-will-do", "store_silent"),
    // Where one superblock is bad the other is taken, though it may be the older one.
    ("one-superblock-will-do", "store_silent"),
    // A flush may be longer than the reader looks ahead.
    ("looks-ahead-a-mebibyte", "store_silent"),
    // A store that is dropped says nowhere that its last flush was durable.
    ("drop-leaves-no-witness", "store_silent"),
    // What a store left behind is believed in the next one in its place.
    ("stores-have-no-id", "oracle"),
    // What would have told the next store on the device from this one is discarded.
    ("log-gives-first-block-up", "oracle"),
    // BUGS L1: the end of a flush wakes nobody.
    ("log-sleeps-through", "loom_wal"),
    // The ring's, with the names of specs/circular_buffer/MCCircularBuffer_*.cfg. Findings 2 and 3 of the paper, as published.
    ("ring-listed-block-passed", "ring_model"),
    ("ring-no-padding", "ring_model"),
    // A popped block stays on its free list.
    ("ring-pop-unchecked", "ring_model"),
    // Whoever is done with its block moves the head, whatever is before.
    ("ring-head-out-of-order", "loom_ring"),
    // The head passes a mini-page that its page still points at.
    ("ring-evicted-before-unmapped", "loom_ring"),
    // An evictor takes what the header says for what the page's word says.
    ("ring-victim-unchecked", "loom_ring"),
    // BUGS L1: the head moves and wakes nobody.
    ("ring-lost-wake-up", "loom_ring"),
    // A reader becomes the writer beside another one.
    ("ring-writer-ignores-readers", "loom_ring"),
    // BUGS S1: keys whose first bytes are equal are taken for equal.
    ("equal-heads-equal-keys", "store_differential"),
    // An update of the same length is taken for one that changes nothing.
    ("same-length-same-value", "store_differential"),
    // An empty value is taken for none.
    ("empty-value-is-absent", "store_differential"),
    // The first record of the right-hand page does not survive a merge.
    ("merge-drops-first", "store_differential"),
    // BUGS R2, the other way round: a scan goes on behind the next leaf's first key.
    ("scan-skips-fence", "store_differential"),
    // BUGS R2: a scan goes on with the last key that it has seen.
    ("scan-repeats-last", "store_differential"),
    // A scan goes on although the visitor has had enough.
    ("scan-ignores-break", "store_differential"),
    // The same downwards: a scan goes on below the last byte of the fence.
    ("scan-back-skips-page", "oracle"),
    // BUGS D10: a delete is not logged, so what it deleted is back after a crash.
    ("delete-not-logged", "store_crash"),
    // The same from the other end: recovery redoes puts only.
    ("redo-skips-deletes", "store_crash"),
    // A page of another layout than the log believes has no place for what is put next.
    ("redo-skips-relayouts", "store_layouts"),
    // A leaf is split for writers who waited long ago.
    ("contention-never-forgotten", "store_contention"),
    // The log record of a split lacks the record at the separator.
    ("split-logs-too-little", "store_crash"),
    // BUGS D13: the log is given up to where the checkpoint began, though pages of before are still dirty.
    ("checkpoint-skips-pages", "store_crash"),
    // The log is given up to its durable end, whatever pages still need of it.
    ("truncate-to-end", "oracle"),
    // Of two good superblocks the one of the checkpoint before.
    ("older-superblock", "store_crash"),
    // BUGS D3: an I/O error in the middle, and the store goes on as if nothing had been.
    ("failed-store-goes-on", "oracle"),
    // BUGS C3: the mark goes when the write is done, though the page may have changed since it was copied.
    ("clean-after-write", "oracle"),
    // BUGS C6, in threads: a page is evicted whose newest image is in a batch that is not written yet.
    ("evict-picked-page", "oracle"),
    // The Bf-Tree's. MiniPage 1: a split fits between the index and the lock of the page.
    ("bf-page-not-asked-again", "oracle"),
    // MiniPage 5: room is made, and what was read before is promoted behind it.
    ("bf-late-promotion", "oracle"),
    // Changes are admitted for which the leaf has no room, so that neither merge nor redo can make them.
    ("bf-growth-ignored", "oracle"),
    // The same of places in dense leaves.
    ("bf-place-ignored", "store_layouts"),
    // Half of what is dirty goes down, and all of it is clean.
    ("bf-merge-some", "oracle"),
    // BUGS D10: a tombstone ends with its mini-page, and the leaf never hears of it.
    ("bf-tombstone-dropped", "oracle"),
    // BUGS D13: a leaf counts as dirty since the newest change that a merge brought it, and a checkpoint that began before passes it over.
    ("bf-dirty-since-newest", "oracle"),
    // BUGS R2: the left-hand mini-page still has what a split has moved to the right.
    ("bf-mini-page-outlives-split", "oracle"),
    // What two leaves that are merged have in their mini-pages is gone.
    ("bf-leaf-merge-forgets-mini-page", "oracle"),
    // BUGS D13: the log is given up, though what it says is in mini-pages only.
    ("bf-checkpoint-skips-buffered", "oracle"),
    // A scan lets the leaf have the last word.
    ("bf-scan-leaf-wins", "oracle"),
    // A key that was once looked for in vain cannot be put.
    ("bf-phantom-stays", "oracle"),
    // BUGS C6: a mini-page is thrown away as clean because its first record is.
    ("bf-first-record-speaks-for-all", "oracle"),
    // BUGS D12: a moved mini-page has no LSN, so its leaf overtakes the log.
    ("bf-copy-forgets-lsn", "oracle"),
    // A mirror is made without the leaf's first record.
    ("bf-mirror-misses-first", "oracle"),
    // A split range keeps, without a disk below, what it has given away; it comes back when the other one is swept.
    ("cache-split-keeps", "cache_only"),
    // A mini-page that has lost its cold records still passes for a mirror.
    ("bf-mirror-outlives-its-records", "oracle"),
    // Deterministic page shadowing (B⁻-tree §3.1) and the modification log (§3.2), with the names of specs/page_shadowing/MCPageShadowing_*.cfg.
    // Torn slots, and older ones, that pass for valid.
    ("believes-torn-slot", "store_crash"),
    ("takes-first-slot", "store_crash"),
    // Findings 1, 2, 4 and 6 of the paper, as published.
    ("trims-at-once", "store_crash"),
    ("resets-log-at-once", "store_crash"),
    ("delta-at-once", "store_crash"),
    ("ping-pong-at-once", "store_crash"),
    ("leaves-leftovers", "lib"),
    // The log block of the valid image is trimmed with the other slot.
    ("trims-live-log", "store_crash"),
    // Finding 3: a log block is laid over whatever image is there.
    ("nameless-log", "store_crash"),
    // Finding 5, BUGS D5 across a restart.
    ("restart-trusts-slots", "store_restart"),
    ("restart-trusts-log-blocks", "store_restart"),
    // What differs already is forgotten with the page, or at each write.
    ("forgets-dirty", "store_differential"),
    ("logs-last-changes", "store_differential"),
    // A damaged log block is followed.
    ("believes-log-block", "lib"),
    // The sparse log (B⁻-tree §3.3): to its reader a block that is closed and not full is the end.
    ("sparse-reader-knows-no-closed", "wal_crash"),
    // Or it was to be written again, so what follows without it is damage.
    ("sparse-closed-block-suspected", "wal_crash"),
    // Padding is forgotten: the next flush begins where the last one ended, and wipes out what is before.
    ("sparse-goes-on-in-block", "wal_crash"),
    // What is free in a closed block passes for room.
    ("sparse-closed-room-counts", "wal_log"),
    // Files and space. Places are handed out in turn, so that a file becomes as long as it may.
    ("places-in-turn", "lib"),
    // A hole is made of a block that was written since it was trimmed.
    ("punch-after-rewrite", "lib"),
    // An interval is taken for a thousand.
    ("interval-is-long", "oracle"),
    // What a split of a LodgeTree's leaf replaces is in use for ever.
    ("lodge-split-leaks", "oracle"),
    // BUGS D5: a flush that no system call is made for.
    ("flush-reaches-nobody", "oracle"),
    // A write of which the system did a part counts as done.
    ("short-write-is-whole", "oracle"),
    // Holes are never made.
    ("trims-not-punched", "store_space"),
    // The kernel refuses a ring, and is asked again for ever.
    ("uring-tries-for-ever", "lib"),
    // Opening believes that fewer pages have names than have.
    ("high-water-too-low", "store_space"),
    // A log flush that found no room is acknowledged.
    ("enospc-acknowledges", "store_space"),
    // The other slot is given up for an image whose second write failed half-way.
    ("torn-rewrite-counts", "lib"),
    // A full file system stops the store for good.
    ("enospc-poisons", "store_space"),
    // The journal is written over while a home that it vouches for is not written.
    ("owed-homes-forgotten", "lib"),
    // A store opened for reading writes.
    ("read-only-writes", "store_space"),
    // Two stores get one device.
    ("claim-not-taken", "store_space"),
    // Trees in persistent memory. The header word commits slots that are not durable.
    ("pm-header-before-data", "pm_crash"),
    ("pm-data-not-fenced", "pm_crash"),
    // A split commits before the new leaf is durable.
    ("pm-split-header-first", "pm_crash"),
    // A store is one before all of its superblock is.
    ("pm-magic-first", "pm_crash"),
    // A lost superblock is taken for a blank device, which is formatted.
    ("pm-blank-by-magic", "oracle"),
    // A record of zeros is the empty value.
    ("pm-record-anywhere", "oracle"),
    // Long values in pieces: the later ones are not durable when the first is; no recovery knows
    // that they are in use; nobody gives them back; a scan passes a long value, or reads all of
    // them before their rows.
    ("pm-later-pieces-cached", "pm_crash"),
    ("pm-later-pieces-unnamed", "pm_long"),
    ("pm-later-pieces-kept", "pm_long"),
    ("pm-scan-passes-long", "pm_long"),
    ("pm-scan-reads-ahead", "pm_long"),
    // The separator that recovery finds is another one than before: the smallest key was deleted.
    ("pm-anchor-dropped", "pm_crash"),
    // A record is written over that an entry of the log still names.
    ("pm-record-reused-at-once", "pm_crash"),
    // What records held passes for entries, when their chunk is a log's.
    ("pm-log-over-records", "pm_store"),
    // A leaf that another thread has merged away is looked at for its keys, which are in others' records by now.
    ("pm-merged-leaf-read", "lib"),
    // What threads must do to each other: a leaf is split while its lock is waited for; a node is changed while it is read.
    ("pm-trust-index", "pm_threads"),
    ("pm-read-unvalidated", "pm_threads"),
    ("lodge-trust-index", "pm_threads"),
    // A store that has sparse leaves says that it is full; or does not know of those from before
    // its opening.
    ("pm-full-before-merge", "pm_space"),
    ("pm-sparse-forgotten-at-open", "pm_space"),
    // It says that it is full while three neighbours fit two leaves.
    ("pm-full-without-sharing", "pm_space"),
    // Puts take what a delete needs; a chunk that held records is for ever theirs.
    ("pm-puts-take-all", "pm_space"),
    // A full store of long keys takes no delete, as none can be written down.
    ("pm-delete-wants-a-record", "pm_space"),
    ("pm-record-chunks-kept", "pm_space"),
    // Leaves are refused while the log is in their way, most of it garbage.
    ("ccl-full-of-log", "pm_store"),
    // A write is in the log, and then refused.
    ("ccl-logs-what-it-refuses", "pm_store"),
    // CCL-BTree's (§3.3, §3.4, §4.2). The timestamp goes with the header word, as published, and may be durable without it.
    ("ccl-early-timestamp", "pm_crash"),
    // It never goes at all, so that what unlogged writes replaced is replayed over them.
    ("ccl-timestamp-not-stored", "pm_crash"),
    // The same from the other end.
    ("ccl-replay-ignores-timestamp", "pm_crash"),
    // A merged leaf goes on with the left one's timestamp.
    ("ccl-merge-keeps-timestamp", "pm_crash"),
    // A write is acknowledged before it is durable: in the leaf, in the log.
    ("ccl-trigger-acked-early", "pm_crash"),
    ("ccl-log-not-fenced", "pm_crash"),
    // An entry of old and new words counts.
    ("ccl-torn-entry-believed", "pm_crash"),
    // The log is given up before what only it has is copied.
    ("ccl-reclaim-before-copy", "pm_crash"),
    // A copy keeps the bit of the old epoch, as published, and the cleaning after the next one passes it over.
    ("ccl-copy-keeps-epoch", "pm_crash"),
    // Chunks are reused that are live by what is durable.
    ("ccl-floor-not-stored", "pm_crash"),
    // Entries are replayed log by log.
    ("ccl-replay-unordered", "pm_crash"),
    // Fingerprints that a crash has torn off hide their keys.
    ("ccl-fingerprints-believed", "pm_crash"),
    // A write to a key that is in the buffer goes past the log, and past the entry that the log has of it.
    // An older copy outlives the newer one in the buffer.
    ("ccl-stale-copy-cached", "pm_store"),
    // LodgeTree's, with the names of specs/surrogate_buffer/MCSurrogateBuffer_*.cfg where they have one. The log: acknowledged too early, numbered before the lock,
    // reused while it is needed, an entry of old and new words believed.
    ("lodge-log-not-fenced", "pm_crash"),
    ("lodge-logs-before-lock", "pm_threads"),
    ("lodge-live-log-reused", "pm_crash"),
    ("lodge-torn-entry-believed", "pm_crash"),
    // A merge: the bit before the pair, the pair it replaces with it, the buffer given up before the bit is durable.
    ("lodge-bitmap-before-pairs", "pm_crash"),
    ("lodge-only-sets-bits", "lodge_store"),
    ("lodge-header-not-fenced", "pm_crash"),
    // A split: switched to a new leaf before that or its link is durable, or that is without a stamp; the old one stamped for what is still buffered; bitmap and use_n one after the other.
    ("lodge-switches-before-fence", "pm_crash"),
    ("lodge-new-leaf-without-stamp", "pm_crash"),
    ("lodge-stamps-at-switch", "pm_crash"),
    ("lodge-two-words", "pm_crash"),
    // A merge of leaves: linked before what moved is durable, the right leaf another's before the
    // link is, not stamped for what moved, stamped for what is buffered.
    ("lodge-merge-links-first", "pm_crash"),
    ("lodge-leaf-freed-early", "pm_crash"),
    ("lodge-merge-keeps-stamp", "pm_crash"),
    ("lodge-merges-unflushed", "pm_crash"),
    // A leaf is stamped for pairs that are still buffered for it.
    ("lodge-flushes-half-a-leaf", "pm_crash"),
    // Recovery: what has been flushed is replayed, entries log by log, numbers begin anew, what is read need not be durable.
    ("lodge-replays-flushed", "pm_crash"),
    ("lodge-replays-log-by-log", "pm_crash"),
    ("lodge-restarts-numbers", "pm_crash"),
    ("lodge-trusts-what-it-reads", "pm_crash"),
];

/// Changes that no check may object to, for they change nothing that was promised.
pub const HARMLESS: &[&str] = &[
    // The device is flushed once more than necessary.
    "harmless-second-flush",
    // A get looks twice.
    "harmless-second-look",
    // Every sync is a checkpoint, too.
    "harmless-checkpoint",
    // A trim is a hint, which the device does not take.
    "harmless-trim-ignored",
];

#[cfg(any(treering_mutations, feature = "mutations"))]
mod chosen {
    use super::{HARMLESS, MUTATIONS};
    use std::sync::Once;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Place of the one that is on, from 1; 0: none. A plain atomic: chosen while no store is open.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);
    static ENVIRONMENT: Once = Once::new();

    fn all() -> impl Iterator<Item = &'static str> {
        let seeded = MUTATIONS.iter().map(|(name, _)| *name);
        seeded.chain(HARMLESS.iter().copied())
    }

    /// Switches mutation `name` on, or with `None` whatever is on off; `false` if there is none of that name. No store may be open.
    pub fn choose(name: Option<&str>) -> bool {
        ENVIRONMENT.call_once(|| {});
        let place = match name {
            None => Some(0),
            Some(name) => all().position(|known| known == name).map(|at| at + 1),
        };
        CHOSEN.store(place.unwrap_or(0), Ordering::SeqCst);
        place.is_some()
    }

    /// Whether mutation `name` is switched on. The paths that ask are the hottest: one look at the table, and a comparison only while one is on.
    pub(crate) fn on(name: &str) -> bool {
        ENVIRONMENT.call_once(|| {
            let wanted = std::env::var("TREERING_MUTATION").unwrap_or_default();
            let place = all().position(|known| known == wanted);
            CHOSEN.store(place.map_or(0, |at| at + 1), Ordering::SeqCst);
        });
        match CHOSEN.load(Ordering::Relaxed) {
            0 => false,
            place => named(place - 1) == Some(name),
        }
    }

    /// What [`all`] has at `at`.
    fn named(at: usize) -> Option<&'static str> {
        let seeded = MUTATIONS.get(at).map(|(name, _)| *name);
        seeded.or_else(|| HARMLESS.get(at - MUTATIONS.len()).copied())
    }
}

#[cfg(any(treering_mutations, feature = "mutations"))]
pub use chosen::choose;
#[cfg(any(treering_mutations, feature = "mutations"))]
pub(crate) use chosen::on;

/// Whether mutation `name` is switched on: never, in a normal build.
#[cfg(not(any(treering_mutations, feature = "mutations")))]
#[inline(always)]
pub(crate) const fn on(_name: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::{HARMLESS, MUTATIONS};

    /// Where sources ask for a mutation, mostly by a name that they spell out.
    const ASKED: &str = "mutation::on(";

    fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                into.push(path);
            }
        }
    }

    /// One that nothing asks for would be alive without a reason, and one that is not listed can never be switched on.
    #[test]
    fn every_mutation_is_listed_once_and_asked_for() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut files,
        );
        let texts = files.iter().filter(|path| !path.ends_with("mutation.rs"));
        let text: String = texts.map(|p| std::fs::read_to_string(p).unwrap()).collect();
        let names: Vec<&str> = (MUTATIONS.iter().map(|(name, _)| *name))
            .chain(HARMLESS.iter().copied())
            .collect();
        let listed: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(listed.len(), names.len(), "a name is listed twice");
        for name in &names {
            assert!(
                text.contains(&format!("\"{name}\"")),
                "nothing asks for {name}"
            );
        }
        let asked = (text.split(ASKED).skip(1))
            .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        for name in asked {
            assert!(listed.contains(name), "{name} is not listed");
        }
    }
}
