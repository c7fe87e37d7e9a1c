//! Seeded bugs that show that the checks have teeth.
//!
//! Built with `RUSTFLAGS="--cfg treering_mutations"`, the engine asks here at the places where a known bug of some real engine
//! could sit, and `TREERING_MUTATION=name` switches that one on. A normal build contains nothing of this: [`on`] is the
//! constant `false`.

/// Every mutation by name, with the check that must fail. `BUGS` ids are the pool they are modelled on.
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
    // BUGS S5: an index answer is trusted without asking the leaf.
    ("trust-index", "store_concurrent"),
    // BUGS S5, inside the index: the parent is not looked at again after the child.
    ("index-skips-revalidation", "loom_index"),
    // BUGS D1: a merged page's place is reused before the merge is durable.
    ("free-before-durable", "store_crash"),
    // The copy-on-write table overtakes the page it names.
    ("table-before-page", "store_crash"),
    // Split records without the moved records' page being rebuilt.
    ("split-skips-right", "store_crash"),
    // D12-like: the log says "durable" before the device has flushed.
    ("log-acks-before-flush", "wal_crash"),
    // BUGS D5: after a failed flush the next one "succeeds".
    ("log-retries-failed-flush", "loom_wal"),
    // BUGS D11: appends go on behind a torn tail without a new epoch.
    ("log-keeps-epoch", "wal_crash"),
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
    // BUGS L1: the end of a flush wakes nobody.
    ("log-sleeps-through", "loom_wal"),
];

/// Whether mutation `name` is switched on.
#[cfg(treering_mutations)]
pub(crate) fn on(name: &str) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    debug_assert!(
        MUTATIONS.iter().any(|(known, _)| *known == name),
        "unlisted mutation {name}"
    );
    CHOSEN
        .get_or_init(|| std::env::var("TREERING_MUTATION").ok())
        .as_deref()
        == Some(name)
}

/// Whether mutation `name` is switched on: never, in a normal build.
#[cfg(not(treering_mutations))]
#[inline(always)]
pub(crate) const fn on(_name: &str) -> bool {
    false
}
