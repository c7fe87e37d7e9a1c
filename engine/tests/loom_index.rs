//! Explores the index under loom: interleavings of small programs (at most two preemptions, 12 s
//! per program), and memory reorderings.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p treering-engine --release --test loom_index --target-dir
//! target/loom`
//!
//! Mutation check: the same with `TREERING_MUTATION=index-skips-revalidation RUSTFLAGS='--cfg loom
//! --cfg treering_mutations'` must fail (BUGS S5).
#![cfg(loom)]

use loom::thread;
use std::sync::Arc;
use treering_engine::PageId;
use treering_engine::index::IndexOf;

type Tiny = IndexOf<3>;

fn explore(keys: &'static [&'static str], program: impl Fn(Arc<Tiny>) + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    // The larger programs are stopped early. The count below shows how far they came.
    model.max_duration = Some(std::time::Duration::from_secs(12));
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = runs.clone();
    model.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let index = Arc::new(Tiny::new(PageId(0)));
        for key in keys {
            index.insert(key.as_bytes(), page(key));
        }
        program(index);
    });
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    println!("{keys:?}: {runs} executions");
    assert!(
        runs >= 50,
        "only {runs} executions: the program was not explored"
    );
}

fn page(key: &str) -> PageId {
    PageId(key.bytes().next().map_or(0, u64::from))
}

/// A find for a permanent fence must return its page, whatever `change` does meanwhile.
///
/// The reader is the spawned thread, so that the writer runs first. Loom 0.7 remembers only the
/// last access to an atomic, so a writer that loads a word before storing to it hides a reader's
/// earlier load. With the reader first, loom explored only a single execution.
fn unmoved_by(keys: &'static [&'static str], wanted: &'static str, change: fn(&Tiny)) {
    explore(keys, move |index| {
        let shared = index.clone();
        let reader = thread::spawn(move || shared.find(wanted.as_bytes()));
        change(&index);
        let found = reader.join().expect("the reader ended");
        assert_eq!(found, page(wanted), "find({wanted}) lost its leaf");
        assert_eq!(index.find(wanted.as_bytes()), page(wanted));
    });
}

#[test]
fn find_is_correct_while_the_root_grows() {
    unmoved_by(&["b", "d"], "d", |index| index.insert(b"c", page("c")));
}

#[test]
fn find_is_correct_while_a_bottom_node_splits() {
    unmoved_by(&["b", "d", "f", "h", "j"], "j", |index| {
        index.insert(b"g", page("g"))
    });
}

#[test]
fn find_is_correct_while_a_first_entry_is_removed() {
    unmoved_by(&["b", "d", "f", "h"], "h", |index| {
        assert!(index.remove(b"f"))
    });
}

#[test]
fn find_returns_a_leaf_being_removed_or_the_one_before() {
    explore(&["b", "d", "f"], |index| {
        let shared = index.clone();
        let reader = thread::spawn(move || shared.find(b"g"));
        assert!(index.remove(b"f"));
        let found = reader.join().expect("the reader ended");
        assert!(
            found == page("f") || found == page("d"),
            "find(g) answered {found}"
        );
        assert_eq!(index.find(b"g"), page("d"));
    });
}

#[test]
fn concurrent_inserts_are_both_kept() {
    explore(&["b", "d"], |index| {
        let shared = index.clone();
        let writer = thread::spawn(move || shared.insert(b"c", page("c")));
        index.insert(b"e", page("e"));
        writer.join().expect("the writer ended");
        let pages: Vec<_> = index
            .range(b"", 9)
            .into_iter()
            .map(|entry| entry.1)
            .collect();
        assert_eq!(pages, ["", "b", "c", "d", "e"].map(page));
    });
}
