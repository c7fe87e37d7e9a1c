//! Tests the ring against a map from pages to bytes, in one thread and with tiny regions, so that
//! everything wraps within a few dozen steps.
//!
//! Mutation checks (each must fail): `TREERING_MUTATION=m RUSTFLAGS='--cfg treering_mutations'
//! cargo test -p treering-engine --release --test ring_model` for m of `ring-listed-block-passed`,
//! `ring-pop-unchecked`, `ring-no-padding`.
#![cfg(not(any(loom, shuttle)))]

use std::collections::BTreeMap;
use std::convert::Infallible;

use proptest::prelude::*;
use treering_engine::PageId;
use treering_engine::mapping::{LeafAddress, PageError};
use treering_engine::ring::{AllocateError, Eviction, Full, Ring, RingError, RingOptions, SIZES};

fn options(capacity: usize, percent: u8, sizes: &[usize]) -> RingOptions {
    RingOptions {
        capacity,
        copy_on_access_percent: percent,
        sizes: sizes.to_vec(),
        pages: 64,
        marks: false,
    }
}

fn leaf(address: u64) -> LeafAddress {
    LeafAddress::new(address).expect("a small address")
}

/// A merge that never fails and forgets the contents of the mini-page.
fn forget(_: PageId, _: &mut [u8]) -> Result<LeafAddress, Infallible> {
    Ok(leaf(7))
}

/// Fills the page's new mini-page. Returns `Full` if there is no room.
fn put(ring: &Ring, page: PageId, len: usize, fill: u8) -> Result<(), Full> {
    let guard = ring.exclusive(page).expect("a page of the test");
    match guard.allocate(len) {
        Ok(mut fresh) => {
            fresh.bytes_mut().fill(fill);
            drop(fresh.publish());
            Ok(())
        }
        Err(refused) => match refused.give_back() {
            AllocateError::Full(full) => Err(full),
            other => panic!("{other}"),
        },
    }
}

fn pages(ring: &Ring, n: u64) -> Vec<PageId> {
    let page = |n| ring.create_page(leaf(n)).expect("64 pages are enough");
    (0..n).map(page).collect()
}

// The model.

/// What the tree above would know: leaves and mini-pages. The content of a page is one byte,
/// repeated.
struct Model {
    ring: Ring,
    leaves: BTreeMap<PageId, u8>,
    minis: BTreeMap<PageId, (usize, u8)>,
    /// Whether the next merges fail.
    broken: bool,
    moved: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    /// Create, grow, or shrink: allocates a block of at least this many bytes.
    Move(u8, usize),
    /// The same, but the block is dropped before it is published.
    Drop(u8, usize),
    Write(u8),
    Discard(u8),
    Evict,
    /// A page is freed and another one is allocated.
    Renew(u8),
    Break(bool),
}

fn steps(largest: usize) -> impl Strategy<Value = Vec<Step>> {
    let page = 0u8..12;
    let step = prop_oneof![
        2 => page.clone().prop_map(Step::Read),
        8 => (page.clone(), 1..=largest).prop_map(|(p, n)| Step::Move(p, n)),
        1 => (page.clone(), 1..=largest).prop_map(|(p, n)| Step::Drop(p, n)),
        3 => page.clone().prop_map(Step::Write),
        1 => page.clone().prop_map(Step::Discard),
        1 => Just(Step::Evict),
        1 => page.prop_map(Step::Renew),
        1 => (0u8..4).prop_map(|n| Step::Break(n == 0)),
    ];
    prop::collection::vec(step, 1..200)
}

impl Model {
    fn new(options: &RingOptions) -> Self {
        let ring = Ring::new(options).expect("a ring");
        let page = |_| (ring.create_page(leaf(0)).expect("64 are enough"), 0);
        let leaves = (0..12).map(page).collect();
        Self {
            ring,
            leaves,
            minis: BTreeMap::new(),
            broken: false,
            moved: 0,
        }
    }

    fn page(&self, n: u8) -> PageId {
        *self.leaves.keys().nth(n.into()).expect("12 pages")
    }

    fn merge(&mut self, full: Option<Full>) -> Result<bool, &'static str> {
        let Self {
            ring,
            leaves,
            minis,
            broken,
            ..
        } = self;
        let merge = |page: PageId, bytes: &mut [u8]| {
            if *broken {
                return Err("the disk is broken");
            }
            let (len, fill) = minis.remove(&page).expect("a mini-page that was put");
            assert_eq!(bytes, vec![fill; len], "{page} is evicted with wrong bytes");
            leaves.insert(page, fill);
            Ok(leaf(fill.into()))
        };
        match full {
            Some(full) => ring.make_room(full.short, merge).map(|made| made > 0),
            None => ring.evict(merge).map(|e| e != Eviction::Empty),
        }
    }

    /// Allocates a new block, which is published or dropped. The page's previous contents are lost.
    fn replace(&mut self, page: PageId, len: usize, publish: bool) {
        loop {
            let was = self.minis.get(&page).copied();
            let fill = was.map_or(self.leaves[&page], |(_, fill)| fill);
            let guard = self.ring.exclusive(page).expect("a page");
            let refused = match guard.allocate(len) {
                Ok(mut fresh) => {
                    let (old, new) = fresh.both();
                    assert_eq!(old, was.map(|(len, fill)| vec![fill; len]).as_deref());
                    new.fill(fill);
                    let size = new.len();
                    assert_eq!(Some(size), self.ring.size_for(len));
                    if publish {
                        let guard = fresh.publish();
                        assert_eq!(guard.bytes(), Some(&*vec![fill; size]));
                        self.minis.insert(page, (size, fill));
                    } else {
                        let old = was.map(|(len, fill)| vec![fill; len]);
                        assert_eq!(fresh.abandon().bytes(), old.as_deref());
                    }
                    return;
                }
                Err(refused) => refused.give_back(),
            };
            let AllocateError::Full(full) = refused else {
                panic!("{refused}");
            };
            assert!(full.short > 0);
            match self.merge(Some(full)) {
                Ok(made) => assert!(made, "a full ring has something to evict"),
                Err(_) => return,
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read(n) => self.read(self.page(n)),
            Step::Move(n, len) => self.replace(self.page(n), len, true),
            Step::Drop(n, len) => self.replace(self.page(n), len, false),
            Step::Write(n) => {
                let page = self.page(n);
                let mut guard = self.ring.exclusive(page).expect("a page");
                if let Some(mini) = self.minis.get_mut(&page) {
                    mini.1 = mini.1.wrapping_add(1);
                    guard.bytes_mut().expect("it is there").fill(mini.1);
                }
            }
            Step::Discard(n) => {
                let page = self.page(n);
                if let Some((_, fill)) = self.minis.remove(&page) {
                    let mut guard = self.ring.exclusive(page).expect("a page");
                    guard.set_leaf(leaf(fill.into()));
                    self.leaves.insert(page, fill);
                }
            }
            Step::Evict => {
                _ = self.merge(None);
            }
            Step::Renew(n) => {
                let page = self.page(n);
                self.ring.exclusive(page).expect("a page").free_page();
                assert!(self.ring.shared(page).is_err());
                self.leaves.remove(&page);
                self.minis.remove(&page);
                let page = self.ring.create_page(leaf(0)).expect("an id is free");
                self.leaves.insert(page, 0);
            }
            Step::Break(broken) => self.broken = broken,
        }
    }

    /// Reads a page. Like the paper, copies it to the tail.
    fn read(&mut self, page: PageId) {
        let guard = self.ring.shared(page).expect("a page");
        let was = self.minis.get(&page).copied();
        match was {
            Some((len, fill)) => {
                assert_eq!(guard.bytes(), Some(&*vec![fill; len]));
                assert_eq!(guard.leaf(), None);
            }
            None => {
                assert_eq!(guard.bytes(), None);
                assert_eq!(
                    guard.leaf().map(|leaf| leaf.get() as u8),
                    Some(self.leaves[&page])
                );
                assert!(!guard.in_copy_on_access_region());
            }
        }
        if guard.in_copy_on_access_region() {
            let alone = guard
                .try_upgrade()
                .unwrap_or_else(|_| panic!("no other reader"));
            let (len, fill) = was.expect("only blocks are near the head");
            let alone = match alone.allocate(len) {
                Ok(mut fresh) => {
                    let (old, new) = fresh.both();
                    new.copy_from_slice(old.expect("the block near the head"));
                    self.moved += 1;
                    fresh.publish()
                }
                // Not copying is better than reading again.
                Err(refused) => refused.page,
            };
            assert_eq!(alone.downgrade().bytes(), Some(&*vec![fill; len]));
        }
    }

    fn check(&self) {
        let census = self
            .ring
            .audit()
            .unwrap_or_else(|broken| panic!("{broken}"));
        assert_eq!(census.total(), self.ring.stats().capacity_bytes);
        assert_eq!((census.allocated, census.evicted), (0, 0));
        assert!(census.pages.iter().eq(self.minis.keys()));
        let ready: usize = self.minis.values().map(|(len, _)| len + 8).sum();
        assert_eq!(census.ready, ready as u64);
        assert_eq!(self.ring.stats().live_bytes(), ready as u64);
        for (page, (len, fill)) in &self.minis {
            let guard = self.ring.shared(*page).expect("a page");
            assert_eq!(
                guard.bytes(),
                Some(&*vec![*fill; *len]),
                "{page} has wrong bytes"
            );
        }
    }
}

fn run(options: &RingOptions, steps: &[Step]) -> Model {
    let mut model = Model::new(options);
    for step in steps {
        model.step(step);
        model.check();
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn contents_survive_and_every_byte_belongs_to_one_block(
        percent in prop_oneof![Just(0u8), Just(10), Just(50), Just(100)],
        steps in steps(SIZES[7]),
    ) {
        run(&options(12 << 10, percent, &SIZES), &steps);
    }

    #[test]
    fn contents_survive_with_odd_sizes(steps in steps(600)) {
        run(&options(4 << 10, 30, &[16, 72, 200, 600]), &steps);
    }
}

// Tests of single properties.

#[test]
fn a_freed_block_is_reused_only_by_its_class() {
    let ring = Ring::new(&options(4096, 0, &[64, 128])).expect("a ring");
    let pages = pages(&ring, 3);
    for page in &pages[..2] {
        put(&ring, *page, 64, 1).expect("there is room");
    }
    put(&ring, pages[0], 128, 2).expect("there is room");
    put(&ring, pages[2], 128, 3).expect("there is room");
    put(&ring, pages[1], 60, 4).expect("there is room");
    let stats = ring.stats();
    let taken = |class: usize| {
        (
            stats.classes[class].from_tail,
            stats.classes[class].from_list,
        )
    };
    assert_eq!((taken(0), taken(1)), ((2, 1), (2, 0)));
    assert_eq!(stats.allocations(), 5);
    let live = |class: usize| (stats.classes[class].freed, stats.classes[class].live());
    assert_eq!((live(0), live(1)), ((2, 1), (0, 2)));
    assert_eq!(stats.live_bytes(), 72 + 2 * 136);
    assert_eq!(stats.listed_bytes, 72, "the block of the last page's past");
    assert_eq!(stats.span_bytes, 2 * 72 + 2 * 136);
}

#[test]
fn space_before_the_physical_end_is_padded_and_skipped() {
    let ring = Ring::new(&options(4096, 0, &[1400])).expect("a ring");
    let pages = pages(&ring, 4);
    for page in &pages[..2] {
        put(&ring, *page, 1400, 1).expect("there is room");
    }
    // 2816 of 4096 bytes are taken. The third block fits neither before the physical end nor after
    // the first block.
    let full = put(&ring, pages[2], 1400, 1).expect_err("no room");
    assert_eq!(
        ring.stats().padding_bytes,
        0,
        "Pad needs room for the block"
    );
    assert_eq!(full.short, 1280 + 1408 - 1280);
    ring.make_room(full.short, forget).expect("no failure");
    put(&ring, pages[2], 1400, 1).expect("there is room");
    assert_eq!(ring.stats().padding_bytes, 1280);
    let census = ring.audit().expect("sound");
    assert_eq!((census.tombstone, census.ready), (1280, 2 * 1408));
    let full = put(&ring, pages[3], 1400, 1).expect_err("no room");
    ring.make_room(full.short, forget).expect("no failure");
    assert_eq!(ring.audit().expect("sound").pages.len(), 1);
}

#[test]
fn the_copy_on_access_region_has_the_configured_share() {
    for (percent, near) in [(0, 0), (50, 4), (100, 8)] {
        let ring = Ring::new(&options(4096, percent, &[504])).expect("a ring");
        let pages = pages(&ring, 8);
        for page in &pages {
            put(&ring, *page, 504, 1).expect("there is room");
        }
        let is_near = |page: &&PageId| {
            let guard = ring.shared(**page).expect("a page");
            guard.in_copy_on_access_region()
        };
        assert_eq!(pages.iter().filter(is_near).count(), near, "{percent} %");
    }
}

#[test]
fn a_failed_merge_changes_nothing_and_is_retried_first() {
    let ring = Ring::new(&options(4096, 10, &[504])).expect("a ring");
    let pages = pages(&ring, 9);
    for page in &pages[..8] {
        put(&ring, *page, 504, page.0 as u8).expect("there is room");
    }
    let full = put(&ring, pages[8], 504, 8).expect_err("no room");
    for _ in 0..3 {
        let failed = ring.make_room(full.short, |page, bytes| {
            assert_eq!((page, bytes[0]), (pages[0], 0));
            Err::<LeafAddress, _>("EIO")
        });
        assert_eq!(failed, Err("EIO"));
        assert_eq!(ring.audit().expect("sound").pages.len(), 8);
        assert_eq!(
            ring.shared(pages[0]).expect("a page").bytes(),
            Some(&[0; 504][..])
        );
    }
    assert_eq!(ring.make_room(full.short, forget), Ok(512));
    put(&ring, pages[8], 504, 8).expect("there is room");
    assert_eq!(ring.stats().failed_evictions, 3);
}

#[test]
fn a_panicking_callback_leaves_the_ring_sound() {
    let ring = Ring::new(&options(4096, 10, &[504])).expect("a ring");
    let page = pages(&ring, 1)[0];
    put(&ring, page, 504, 5).expect("there is room");
    let evict = || ring.evict(|_, _| -> Result<LeafAddress, Infallible> { panic!("in merge") });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(evict));
    assert!(panicked.is_err());
    ring.audit().expect("sound");
    assert_eq!(ring.evict(forget), Ok(Eviction::Block(512)));
    assert_eq!(ring.evict(forget), Ok(Eviction::Empty));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "an evicting thread must hold no page"]
fn eviction_while_holding_a_page_panics() {
    let ring = Ring::new(&options(4096, 10, &[504])).expect("a ring");
    let page = pages(&ring, 1)[0];
    let _guard = ring.shared(page).expect("a page");
    _ = ring.evict(forget);
}

#[test]
fn invalid_options_are_refused_with_what_was_expected() {
    let refused = |options: RingOptions| match Ring::new(&options) {
        Ok(_) => panic!("{options:?} is accepted"),
        Err(error) => error.to_string(),
    };
    let good = options(12 << 10, 10, &SIZES);
    let capacity = |capacity| RingOptions {
        capacity,
        ..good.clone()
    };
    assert_eq!(good.least_capacity(), 12 << 10);
    assert!(refused(capacity(8 << 10)).contains("at least 12288"));
    assert!(refused(capacity((12 << 10) + 8)).contains("multiple of 4096"));
    for sizes in [&[][..], &[8], &[64, 64], &[64, 70], &[1 << 20]] {
        assert!(refused(options(1 << 20, 10, sizes)).contains("ascending multiples of 8"));
    }
    assert!(refused(options(1 << 20, 101, &SIZES)).contains("101 %"));
    let pages = |pages| RingOptions {
        pages,
        ..good.clone()
    };
    assert!(refused(pages(0)).contains("1 to"));
    assert!(matches!(
        Ring::new(&pages((1 << 40) + 1)),
        Err(RingError::Pages { .. })
    ));
    let too_large = {
        let ring = Ring::new(&good).expect("a ring");
        let page = ring.create_page(leaf(1)).expect("an id");
        let guard = ring.exclusive(page).expect("a page");
        guard
            .allocate(5000)
            .map(|_| ())
            .map_err(|refused| refused.why)
    };
    let largest = SIZES[7];
    assert_eq!(
        too_large,
        Err(AllocateError::TooLarge { len: 5000, largest })
    );
}

#[test]
fn absent_pages_are_refused() {
    let ring = Ring::new(&options(4096, 10, &[504])).expect("a ring");
    let page = PageId(3);
    assert_eq!(ring.shared(page).err(), Some(PageError::Unknown { page }));
    drop(ring.adopt_page(page, leaf(9)).expect("free"));
    assert_eq!(ring.exclusive(page).expect("a page").leaf(), Some(leaf(9)));
    ring.exclusive(page).expect("a page").free_page();
    assert_eq!(
        ring.exclusive(page).err(),
        Some(PageError::Unknown { page })
    );
    assert!(ring.try_shared(page).is_err() && ring.try_exclusive(page).is_err());
    assert_eq!(ring.pages(), 0);
}

#[test]
fn a_large_ring_is_zeroed_and_reports_huge_pages() {
    let ring = Ring::new(&RingOptions::default()).expect("a ring");
    assert_eq!(ring.stats().capacity_bytes, 32 << 20);
    let page = ring.create_page(leaf(1)).expect("an id");
    let guard = ring.exclusive(page).expect("a page");
    let mut fresh = guard.allocate(SIZES[7]).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(fresh.bytes_mut().iter().all(|byte| *byte == 0));
    println!("huge pages: {}", ring.stats().huge_pages);
}
