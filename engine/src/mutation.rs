//! Seeded bugs that prove that the checks work.
//!
//! Built with the feature `mutations` (or `RUSTFLAGS="--cfg treering_mutations"`), the engine
//! checks for a mutation wherever a known bug of some real engine could be. [`choose`], or
//! `TREERING_MUTATION=name` in the environment, switches one on. A normal build contains nothing of
//! this: [`on`] is the constant `false`.

/// Every mutation by name, with the test that must fail; `oracle` is `treering oracle --mutations`,
/// and `mirror` a test in `model/specs` of the events that a mirror refuses.
/// `BUGS` ids refer to the bugs on which they are modelled.
pub const MUTATIONS: &[(&str, &str)] = &[
    // D12-like: a page is written before its log record.
    ("page-before-log", "store_crash"),
    // BUGS D8: the log is freed before the checkpoint that replaces it is durable.
    ("truncate-before-superblock", "store_crash"),
    // Torn pages: the home is written while the journal may still be in flight.
    ("journal-not-flushed", "store_crash"),
    // A crash during recovery leads to pages that are redone twice.
    ("redo-ignores-page-lsn", "store_crash"),
    // BUGS C3: a page is marked clean although its image was never written.
    ("clean-without-write", "store_differential"),
    // BUGS D4: after a failed page write, the page is no longer dirty.
    ("failed-write-stays-clean", "store_crash"),
    // A page that is changed while its write is refused counts as dirty only since that change.
    ("refused-write-forgets-its-lsn", "refused_writes"),
    // What a refused write would have covered is not written with the next one.
    ("refused-write-forgets-its-changes", "refused_writes"),
    // A page table that was partly written is treated as not written.
    ("refused-table-forgets-names", "lib"),
    // BUGS S5: an answer of the index is trusted without checking the leaf.
    ("trust-index", "store_concurrent"),
    // BUGS S5, inside the index: the parent is not checked again after the child.
    ("index-skips-revalidation", "loom_index"),
    // BUGS D1: a merged page's place is reused before the merge is durable.
    ("free-before-durable", "store_crash"),
    // The copy-on-write table is written before a page that it names.
    ("table-before-page", "store_crash"),
    // A slot that the table on the device names is free as soon as its page has left it.
    ("cow-frees-held", "store_crash"),
    // A checkpoint trims the chunks of its snapshot after a flush has failed.
    ("failed-checkpoint-trims", "store_life"),
    // The index snapshot of the last checkpoint is free before the superblock after it is durable.
    ("snapshot-freed-early", "store_crash"),
    // A snapshot is believed if its number and its number of entries are right.
    ("snapshot-sum-unchecked", "lib"),
    // Or whatever chunk is there.
    ("snapshot-believed", "mirror"),
    // The superblock is written before the chunks are durable; or the records behind their pages.
    ("snapshot-not-flushed", "mirror"),
    ("snapshot-before-log", "mirror"),
    // An entry promises a newer image than there is.
    ("snapshot-version-ahead", "mirror"),
    // Redo begins where the snapshot ends, and not where the checkpoint began.
    ("redo-from-snapshot", "mirror"),
    // Redo leaves the index as the snapshot has it: fences that are new or gone.
    ("redo-skips-new-fences", "mirror"),
    ("redo-keeps-gone-fences", "mirror"),
    // Long values. A log record refers to one that is not durable.
    ("overflow-not-synced-before-log", "store_crash"),
    // The place of a long value is reused before the record that replaced it is durable.
    ("overflow-freed-at-once", "store_crash"),
    // Repair or redo writes a page that was freed long ago over the value that now has its place.
    ("overflow-redo-of-the-dead", "store_long"),
    // Redo moves a page to the place of a value that it does not know of.
    ("overflow-redo-moves-over", "store_crash"),
    // Whatever is read is accepted as the value, unchecked.
    ("overflow-block-unchecked", "store_long"),
    // The blocks by which a file has grown are not noted, so that a cut is not told.
    ("growth-not-noted", "open_path"),
    // Batches. Changes are made that no intent has announced.
    ("batch-made-before-intent", "store_crash"),
    // An intent whose last part is missing counts as complete.
    ("batch-happens-incomplete", "store_batch"),
    // A batch that has ended is made again, over what was written later.
    ("batch-never-ends", "store_crash"),
    // A batch whose changes were cut short is left as it is.
    ("recovery-forgets-batch", "store_crash"),
    // The record that ends a batch comes before its last change.
    ("batch-ends-early", "store_batch"),
    // A checkpoint frees the intent of the batch that is being made.
    ("checkpoint-ignores-batch", "store_batch"),
    // The intent of a batch is freed before the one that replaces it is in the log.
    ("batch-moves-before-intent", "store_batch"),
    // Recovery logs an intent once more although nothing follows it, each time that it crashes.
    ("recovery-renews-each-time", "store_batch"),
    // Recovery continues the log behind an intent that a crash cut short.
    ("recovery-keeps-cut-parts", "store_batch"),
    // What an older epoch left behind a new one's beginning counts as proof of damage.
    ("older-epoch-proves", "store_batch"),
    // Recovery gives the places of long values away to which only an intent refers.
    ("batch-values-not-taken", "store_crash"),
    // A long value is put once more, and so retired as the value that it replaces.
    ("batch-retires-its-own-value", "store_crash"),
    // Readers see one change of a batch after the other.
    ("batch-shown-piecemeal", "store_batch"),
    // A batch that could not be completed is forgotten as long as the store is open.
    ("unfinished-batch-forgotten", "store_batch"),
    // A batch leaves its long values behind when it is refused.
    ("refused-batch-keeps-values", "store_batch"),
    // Writers do not wait for the batch that is being made.
    ("writers-pass-closed-gate", "loom_gate"),
    // A split waits for a frame while it holds its leaf's latch.
    ("frame-awaited-under-latch", "store_many_threads"),
    // BUGS L1: a turn ends, and the next thread sleeps on.
    ("turn-ends-unheard", "loom_turns"),
    // A sparse leaf whose neighbour was busy is never tried again.
    ("busy-leaf-forgotten", "lib"),
    // A leaf is merged with its right neighbour or not at all.
    ("left-neighbour-forgotten", "store_merging"),
    // The log records that name sparse leaves are freed while the leaves are still sparse.
    ("checkpoint-forgets-notes", "store_merging"),
    // Leaves that were sparse before a crash are forgotten after it.
    ("recovery-forgets-sparse", "store_merging"),
    // A store reports that it is full, however little is in its leaves.
    ("full-without-merge", "store_merging"),
    // A store reports that it is full while three neighbours fit two pages.
    ("full-without-sharing", "store_merging"),
    // Room is made for half of what a put needs, again and again, forever.
    ("full-for-ever", "store_merging"),
    // Slots that a table write is about to free are not counted: the store seems full.
    ("table-write-hides-held", "lib"),
    // Redo of a split does not rebuild the page of the moved records.
    ("split-skips-right", "store_crash"),
    // D12-like: the log reports "durable" before the device has flushed.
    ("log-acks-before-flush", "wal_crash"),
    // BUGS D5: after a failed flush, the next one "succeeds".
    ("log-retries-failed-flush", "loom_wal"),
    // BUGS D11: appends continue behind a torn tail without a new epoch.
    ("log-keeps-epoch", "wal_crash"),
    // Each block of a flush claims that the ones before it were durable.
    ("log-counts-no-unforced", "wal_crash"),
    // A put is refused as if the device had failed, and nothing has.
    ("refuses-for-nothing", "store_differential"),
    // Dropping a store loses what was not synced.
    ("drop-forgets-log", "store_life"),
    // Repair takes the newest image that it finds for the newest that was written.
    ("repair-trusts-stale-leaf", "repair"),
    // With interval durability, the interval passes and no writer checks the clock.
    ("interval-needs-pump", "store_life"),
    // BUGS D5, across threads: a flush that failed in one thread is forgotten by another's.
    ("flush-forgets-failure", "store_edges"),
    // The journal repairs a page that was damaged after it was durable, with a very old image.
    ("repair-with-old-page", "store_edges"),
    // A full store has no slot left for the snapshot that would let it open again.
    ("leaves-take-every-slot", "store_edges"),
    // BUGS D5, across a restart: recovery builds on what it reads, although a failed flush has lost
    // it. Four kinds of blocks.
    ("restart-trusts-superblock", "store_restart"),
    ("restart-trusts-log", "store_restart"),
    // The other side of it: a record that is not read may be there after the next power cut.
    ("restart-trusts-end", "wal_crash"),
    ("restart-trusts-homes", "store_restart"),
    ("restart-trusts-table", "store_restart"),
    // Silent damage. A whole image is trusted, however old.
    ("any-image-will-do", "store_silent"),
    // If one superblock is bad the other is taken, though it may be the older one.
    ("one-superblock-will-do", "store_silent"),
    // A flush may be longer than the reader looks ahead.
    ("looks-ahead-a-mebibyte", "store_silent"),
    // Dropping a store leaves no witness that its last flush was durable.
    ("drop-leaves-no-witness", "store_silent"),
    // A store that has failed writes a witness when it is dropped.
    ("drop-writes-after-failure", "store_restart"),
    // Leftovers of a previous store on the device are trusted by the next one.
    ("stores-have-no-id", "oracle"),
    // The block that would distinguish the next store on the device from this one is discarded.
    ("log-gives-first-block-up", "oracle"),
    // BUGS L1: the end of a flush wakes nobody.
    ("log-sleeps-through", "loom_wal"),
    // The ring's mutations, with the names of specs/circular_buffer/MCCircularBuffer_*.cfg.
    // Findings 2 and 3 of the paper, as published.
    ("ring-listed-block-passed", "ring_model"),
    ("ring-no-padding", "ring_model"),
    // A popped block stays on its free list.
    ("ring-pop-unchecked", "ring_model"),
    // A thread that is done with its block moves the head, whatever is before.
    ("ring-head-out-of-order", "loom_ring"),
    // The head passes a mini-page to which its page still points.
    ("ring-evicted-before-unmapped", "loom_ring"),
    // An evictor trusts the header instead of the page's word.
    ("ring-victim-unchecked", "loom_ring"),
    // BUGS L1: the head moves and wakes nobody.
    ("ring-lost-wake-up", "loom_ring"),
    // A reader becomes a writer while there is another reader.
    ("ring-writer-ignores-readers", "loom_ring"),
    // BUGS S1: keys whose first bytes are equal are treated as equal.
    ("equal-heads-equal-keys", "store_differential"),
    // An update of the same length is treated as no change.
    ("same-length-same-value", "store_differential"),
    // An empty value is treated as absent.
    ("empty-value-is-absent", "store_differential"),
    // The first record of the right-hand page is lost in a merge.
    ("merge-drops-first", "store_differential"),
    // BUGS R2, the other way round: a scan continues behind the next leaf's first key.
    ("scan-skips-fence", "store_differential"),
    // BUGS R2: a scan continues with the last key that it has visited.
    ("scan-repeats-last", "store_differential"),
    // A scan continues although the visitor has stopped it.
    ("scan-ignores-break", "store_differential"),
    // The same in descending order: a scan continues below the last byte of the fence.
    ("scan-back-skips-page", "oracle"),
    // BUGS D10: a delete is not logged, so the record is back after a crash.
    ("delete-not-logged", "store_crash"),
    // The same from the other end: recovery redoes puts only.
    ("redo-skips-deletes", "store_crash"),
    // A page whose layout differs from the logged one has no place for the next put.
    ("redo-skips-relayouts", "store_layouts"),
    // A dense leaf is split at its middle, also if the right side has too few places.
    ("dense-split-unfit", "store_layouts"),
    // The right side of a split gets the layout that suits the leaf, also if it does not fit.
    ("adaptive-split-unfit", "store_layouts"),
    // A conversion is not logged; or does not raise the leaf's LSN; or loses a record.
    ("relayout-not-logged", "mirror"),
    ("relayout-keeps-lsn", "mirror"),
    ("conversion-drops-record", "mirror"),
    // A dense leaf absorbs its neighbour, and its conversion is not logged.
    ("merge-not-prepared", "mirror"),
    // The log record of a split has the layout of the left leaf, or redo builds the right one in
    // the general layout.
    ("split-logs-its-layout", "mirror"),
    ("redo-builds-general", "mirror"),
    // A dense leaf that is nearly empty is split behind its places; a semi-dense one counts a value
    // that is replaced; a partition ends before the places do.
    ("dense-never-back", "mirror"),
    ("semi-dense-counts-the-old", "mirror"),
    ("partition-leaves-places", "mirror"),
    // A delete does not free the place. A value that is too long is cut.
    ("dense-delete-keeps-bit", "mirror"),
    ("dense-cuts-value", "mirror"),
    // A leaf is split because of writers that waited long ago.
    ("contention-never-forgotten", "store_contention"),
    // The log record of a split lacks the record at the separator.
    ("split-logs-too-little", "store_crash"),
    // BUGS D13: the log is freed up to the checkpoint's beginning, though older pages are still
    // dirty.
    ("checkpoint-skips-pages", "store_crash"),
    // The log is freed up to its durable end, though pages still need parts of it.
    ("truncate-to-end", "oracle"),
    // Of two good superblocks, that of the previous checkpoint is taken.
    ("older-superblock", "store_crash"),
    // BUGS D3: after an I/O error, the store goes on as if nothing had happened.
    ("failed-store-goes-on", "oracle"),
    // BUGS C3: the dirty mark is cleared after the write, though the page may have changed since it
    // was copied.
    ("clean-after-write", "oracle"),
    // BUGS C6, with threads: a page is evicted while its newest image is in a batch that is not
    // written yet.
    ("evict-picked-page", "oracle"),
    // The Bf-Tree's mutations. MiniPage 1: a split happens between the index lookup and the page's
    // lock.
    ("bf-page-not-asked-again", "oracle"),
    // MiniPage 5: room is made, and a record that was read before is promoted afterwards.
    ("bf-late-promotion", "oracle"),
    // Changes are admitted for which the leaf has no room, so neither merge nor redo can apply
    // them.
    ("bf-growth-ignored", "oracle"),
    // The same for places in dense leaves.
    ("bf-place-ignored", "store_layouts"),
    // Half of the dirty records are merged, and all are marked clean.
    ("bf-merge-some", "oracle"),
    // BUGS D10: a tombstone is dropped with its mini-page, without reaching the leaf.
    ("bf-tombstone-dropped", "oracle"),
    // BUGS D13: a leaf counts as dirty since the newest change that a merge brought it, so a
    // checkpoint that began before skips it.
    ("bf-dirty-since-newest", "oracle"),
    // BUGS R2: the left-hand mini-page still has what a split has moved to the right.
    ("bf-mini-page-outlives-split", "oracle"),
    // When two leaves are merged, the records in their mini-pages are lost.
    ("bf-leaf-merge-forgets-mini-page", "oracle"),
    // BUGS D13: the log is freed although some changes exist only in mini-pages.
    ("bf-checkpoint-skips-buffered", "oracle"),
    // A checkpoint that logs dirty records again forgets deletes, takes the records for clean then,
    // comes between the intent and the end of a batch, or does not choose the lightest mini-pages.
    ("relog-forgets-deletes", "store_relog"),
    ("relog-cleans", "store_relog"),
    // Dirty records are logged again in the order of keys, in which they may not fit.
    ("relog-in-key-order", "store_relog"),
    // Records are logged again behind newer ones of their page, which redo then makes first.
    ("relogs-behind-newer", "store_relog"),
    ("relogs-beside-batch", "lib"),
    ("relogs-the-first", "store_relog"),
    // What the head spares, or what moves near it, leaves its changes behind.
    ("bf-spare-forgets-changes", "store_spare"),
    // A scan prefers the leaf's record to the mini-page's.
    ("bf-scan-leaf-wins", "oracle"),
    // A key that was once looked up in vain cannot be put.
    ("bf-phantom-stays", "oracle"),
    // BUGS C6: a mini-page is dropped as clean because its first record is.
    ("bf-first-record-speaks-for-all", "oracle"),
    // BUGS D12: a moved mini-page has no LSN, so its leaf is written before the log.
    ("bf-copy-forgets-lsn", "oracle"),
    // A mirror is made without the leaf's first record.
    ("bf-mirror-misses-first", "oracle"),
    // Without a disk below, a split range keeps what it has given away; it comes back when the
    // other range is swept.
    ("cache-split-keeps", "cache_only"),
    // A mini-page that has lost its cold records still counts as a mirror.
    ("bf-mirror-outlives-its-records", "oracle"),
    // Deterministic page shadowing (B⁻-tree §3.1) and the modification log (§3.2), with the names
    // of specs/page_shadowing/MCPageShadowing_*.cfg. Torn slots, and older ones, are treated as
    // valid.
    ("believes-torn-slot", "store_crash"),
    ("takes-first-slot", "store_crash"),
    // Findings 1, 2, 4 and 6 of the paper, as published.
    ("trims-at-once", "store_crash"),
    ("resets-log-at-once", "store_crash"),
    ("delta-at-once", "store_crash"),
    ("ping-pong-at-once", "store_crash"),
    ("leaves-leftovers", "lib"),
    // Redo reads a page below a chunk of the snapshot, and the chunk is trimmed as its other slot.
    ("redo-reads-below-snapshot", "hinted_trims"),
    // The log block of the valid image is trimmed with the other slot.
    ("trims-live-log", "store_crash"),
    // Finding 3: a log block is applied to whatever image is there.
    ("nameless-log", "store_crash"),
    // Finding 5, BUGS D5 across a restart.
    ("restart-trusts-slots", "store_restart"),
    ("restart-trusts-log-blocks", "store_restart"),
    // The accumulated changes are forgotten with the page, or at each write.
    ("forgets-dirty", "store_differential"),
    ("logs-last-changes", "store_differential"),
    // A damaged log block is trusted.
    ("believes-log-block", "lib"),
    // The sparse log (B⁻-tree §3.3): the reader takes a closed block that is not full for the end.
    ("sparse-reader-knows-no-closed", "wal_crash"),
    // Or the reader expects the block to be written again, so what follows counts as damage.
    ("sparse-closed-block-suspected", "wal_crash"),
    // Padding is forgotten: the next flush begins where the last one ended, and overwrites its
    // block.
    ("sparse-goes-on-in-block", "wal_crash"),
    // The unused rest of a closed block counts as room.
    ("sparse-closed-room-counts", "wal_log"),
    // Files and space. Places are handed out in turn, so that a file becomes as long as possible.
    ("places-in-turn", "lib"),
    // A hole is punched for a block that was written since it was trimmed.
    ("punch-after-rewrite", "lib"),
    // An interval is taken for a thousand times its length.
    ("interval-is-long", "oracle"),
    // What a split of a LodgeTree's leaf replaces is never freed.
    ("lodge-split-leaks", "oracle"),
    // BUGS D5: a flush makes no system call.
    ("flush-reaches-nobody", "oracle"),
    // A partial write counts as complete.
    ("short-write-is-whole", "oracle"),
    // A hole for which a full file system had no room is never punched.
    ("full-disk-forgets-holes", "file_trims"),
    // Holes are never punched.
    ("trims-not-punched", "store_space"),
    // The kernel refuses a ring, and is asked again forever.
    ("uring-tries-for-ever", "lib"),
    // Opening assumes that fewer page ids are in use than are.
    ("high-water-too-low", "store_space"),
    // A log flush that found no room is acknowledged.
    ("enospc-acknowledges", "store_space"),
    // The other slot is freed for an image whose second write failed half-way.
    ("torn-rewrite-counts", "lib"),
    // A full file system stops the store for good.
    ("enospc-poisons", "store_space"),
    // The journal is overwritten while a home that it protects is not written.
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
    // A store's magic is written before the rest of its superblock is durable.
    ("pm-magic-first", "pm_crash"),
    // A lost superblock is taken for a blank device, which is formatted.
    ("pm-blank-by-magic", "oracle"),
    // A record of zeros is read as the empty value.
    ("pm-record-anywhere", "oracle"),
    // Long values in pieces: the later pieces are not durable when the first is; no recovery knows
    // that they are in use; they are never freed; a scan skips a long value, or reads all long
    // values before their rows.
    ("pm-later-pieces-cached", "pm_crash"),
    ("pm-later-pieces-unnamed", "pm_long"),
    ("pm-later-pieces-kept", "pm_long"),
    ("pm-scan-passes-long", "pm_long"),
    ("pm-scan-reads-ahead", "pm_long"),
    // After recovery, a leaf's separator differs from before, because its smallest key was deleted.
    ("pm-anchor-dropped", "pm_crash"),
    // A record is overwritten while an entry of the log still names it.
    ("pm-record-reused-at-once", "pm_crash"),
    // Old records are taken for entries when their chunk becomes a log's.
    ("pm-log-over-records", "pm_store"),
    // The keys of a leaf that another thread has merged away are read, although their records are
    // reused by now.
    ("pm-merged-leaf-read", "lib"),
    // Races between threads: a leaf is split while its lock is awaited; a node is changed while it
    // is read.
    ("pm-trust-index", "pm_threads"),
    ("pm-read-unvalidated", "pm_threads"),
    ("lodge-trust-index", "pm_threads"),
    // A store that has sparse leaves reports that it is full; or does not know of those from before
    // its opening.
    ("pm-full-before-merge", "pm_space"),
    ("pm-sparse-forgotten-at-open", "pm_space"),
    // A store reports that it is full while three neighbours fit two leaves.
    ("pm-full-without-sharing", "pm_space"),
    // Puts take the room that a delete needs; a chunk that held records is reserved for records
    // forever.
    ("pm-puts-take-all", "pm_space"),
    // A full store of long keys refuses all deletes, because none can be recorded.
    ("pm-delete-wants-a-record", "pm_space"),
    ("pm-record-chunks-kept", "pm_space"),
    // Leaves are refused while the log takes their room, most of it garbage.
    ("ccl-full-of-log", "pm_store"),
    // A write is logged and then refused.
    ("ccl-logs-what-it-refuses", "pm_store"),
    // CCL-BTree's mutations (§3.3, §3.4, §4.2). The timestamp goes with the header word, as
    // published, and may be durable without it.
    ("ccl-early-timestamp", "pm_crash"),
    // The timestamp is never written, so that replay overwrites unlogged writes with what they
    // replaced.
    ("ccl-timestamp-not-stored", "pm_crash"),
    // The same from the other end.
    ("ccl-replay-ignores-timestamp", "pm_crash"),
    // A merged leaf keeps the left one's timestamp.
    ("ccl-merge-keeps-timestamp", "pm_crash"),
    // A write is acknowledged before it is durable: in the leaf, in the log.
    ("ccl-trigger-acked-early", "pm_crash"),
    ("ccl-log-not-fenced", "pm_crash"),
    // An entry made of old and new words counts.
    ("ccl-torn-entry-believed", "pm_crash"),
    // The log is freed before the entries that only it has are copied.
    ("ccl-reclaim-before-copy", "pm_crash"),
    // A copy keeps the bit of the old epoch, as published, and the cleaning after the next one
    // skips it.
    ("ccl-copy-keeps-epoch", "pm_crash"),
    // Chunks are reused that are live according to what is durable.
    ("ccl-floor-not-stored", "pm_crash"),
    // Entries are replayed log by log.
    ("ccl-replay-unordered", "pm_crash"),
    // Fingerprints that a crash has torn off hide their keys.
    ("ccl-fingerprints-believed", "pm_crash"),
    // A write to a buffered key bypasses the log, and the entry that the log has of it. An older
    // copy outlives the newer one in the buffer.
    ("ccl-stale-copy-cached", "pm_store"),
    // LodgeTree's mutations, with the names of specs/surrogate_buffer/MCSurrogateBuffer_*.cfg where
    // they have one. The log: acknowledged too early, numbered before the lock, reused while it is
    // needed, an entry made of old and new words trusted.
    ("lodge-log-not-fenced", "pm_crash"),
    ("lodge-logs-before-lock", "pm_threads"),
    ("lodge-live-log-reused", "pm_crash"),
    ("lodge-torn-entry-believed", "pm_crash"),
    // A merge: the bit before the pair, the pair it replaces with it, the buffer freed before the
    // bit is durable.
    ("lodge-bitmap-before-pairs", "pm_crash"),
    ("lodge-only-sets-bits", "lodge_store"),
    ("lodge-header-not-fenced", "pm_crash"),
    // A split: switched to a new leaf before that leaf or its link is durable, or to one without a
    // stamp; the old leaf stamped for what is still buffered; bitmap and use_n written one after
    // the other.
    ("lodge-switches-before-fence", "pm_crash"),
    ("lodge-new-leaf-without-stamp", "pm_crash"),
    ("lodge-stamps-at-switch", "pm_crash"),
    ("lodge-two-words", "pm_crash"),
    // A merge of leaves: linked before what moved is durable, the right leaf reused before the link
    // is durable, not stamped for what moved, stamped for what is buffered.
    ("lodge-merge-links-first", "pm_crash"),
    ("lodge-leaf-freed-early", "pm_crash"),
    ("lodge-merge-keeps-stamp", "pm_crash"),
    ("lodge-merges-unflushed", "pm_crash"),
    // A leaf is stamped for pairs that are still buffered for it.
    ("lodge-flushes-half-a-leaf", "pm_crash"),
    // Recovery: what has been flushed is replayed, entries are replayed log by log, numbers
    // restart, what is read need not be durable.
    ("lodge-replays-flushed", "pm_crash"),
    ("lodge-replays-log-by-log", "pm_crash"),
    ("lodge-restarts-numbers", "pm_crash"),
    ("lodge-trusts-what-it-reads", "pm_crash"),
];

/// Mutations that no check may object to, because they break no promise.
pub const HARMLESS: &[&str] = &[
    // The device is flushed once more than necessary.
    "harmless-second-flush",
    // A get reads twice.
    "harmless-second-look",
    // Every sync is also a checkpoint.
    "harmless-checkpoint",
    // The device ignores a trim, which is only a hint.
    "harmless-trim-ignored",
];

#[cfg(any(treering_mutations, feature = "mutations"))]
mod chosen {
    use super::{HARMLESS, MUTATIONS};
    use std::sync::Once;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Position of the active mutation, counted from 1; 0: none. A plain atomic: it is chosen while
    /// no store is open.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);
    static ENVIRONMENT: Once = Once::new();

    fn all() -> impl Iterator<Item = &'static str> {
        let seeded = MUTATIONS.iter().map(|(name, _)| *name);
        seeded.chain(HARMLESS.iter().copied())
    }

    /// Switches mutation `name` on, or with `None` the active one off. Returns `false` if there is
    /// none of that name. No store may be open.
    pub fn choose(name: Option<&str>) -> bool {
        ENVIRONMENT.call_once(|| {});
        let place = match name {
            None => Some(0),
            Some(name) => all().position(|known| known == name).map(|at| at + 1),
        };
        CHOSEN.store(place.unwrap_or(0), Ordering::SeqCst);
        place.is_some()
    }

    /// Returns whether mutation `name` is switched on. This is called on the hottest paths, so it
    /// costs one load of the table's index, and a comparison only while a mutation is on.
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

    /// The name that [`all`] has at `at`.
    fn named(at: usize) -> Option<&'static str> {
        let seeded = MUTATIONS.get(at).map(|(name, _)| *name);
        seeded.or_else(|| HARMLESS.get(at - MUTATIONS.len()).copied())
    }
}

#[cfg(any(treering_mutations, feature = "mutations"))]
pub use chosen::choose;
#[cfg(any(treering_mutations, feature = "mutations"))]
pub(crate) use chosen::on;

/// Returns whether mutation `name` is switched on: never, in a normal build.
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

    /// How sources check for a mutation, mostly with its name as a literal.
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

    /// A mutation that nothing checks would survive without reason, and one that is not listed
    /// could never be switched on.
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
