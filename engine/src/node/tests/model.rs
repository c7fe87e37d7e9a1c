//! Differential test: a leaf level of real pages against `BTreeMap`, through puts, deletes, splits
//! and merges.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Tracked;
use crate::node::{
    ChangeMap, LayoutChoice, PageLayout, PageMut, PageRef, Put, Refused, Remedy, SplitPlan, limits,
    records,
};
use crate::types::PageId;

/// All layouts. A dense layout is the one that leaves get where possible.
pub(super) fn every() -> impl Iterator<Item = PageLayout> {
    PageLayout::ALL.into_iter().chain(PageLayout::DENSE)
}

/// Leaf pages in key order. Their fences tile the key space.
pub(super) struct Level {
    choice: LayoutChoice,
    page_size: usize,
    pub(super) pages: Vec<Tracked>,
    next_id: u64,
    pub(super) splits: usize,
    pub(super) merges: usize,
    pub(super) relayouts: usize,
}

impl Level {
    pub(super) fn new(layout: PageLayout, page_size: usize) -> Level {
        let choice = LayoutChoice::of(layout);
        Level {
            choice,
            page_size,
            pages: vec![Tracked::new(choice.general(), page_size, 0, b"", None)],
            next_id: 1,
            splits: 0,
            merges: 0,
            relayouts: 0,
        }
    }

    fn home(&self, key: &[u8]) -> usize {
        let home = (self.pages.iter()).position(|p| p.view().covers(key));
        home.expect("the fences tile the key space")
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Put {
        loop {
            let home = self.home(key);
            match self.pages[home].change(|p| p.put(key, value)) {
                Ok(put) => return put,
                Err(refused @ (Refused::NoSpace | Refused::Unfit)) => {
                    let page = self.pages[home].view();
                    assert!(refused == Refused::NoSpace || page.layout().is_dense());
                    if !page.layout().is_dense() {
                        assert_would_not_fit(page, key, value);
                    }
                    let remedy = self.choice.remedy(&page, key, value.len());
                    match remedy.expect("a page that is too full holds two records") {
                        Remedy::Relayout(layout) => self.relayout(home, layout),
                        Remedy::Split(plan) => self.split(home, &plan),
                    }
                }
                Err(other) => panic!("put of an admitted record: {other}"),
            }
        }
    }

    fn relayout(&mut self, home: usize, layout: PageLayout) {
        let before = self.pages[home].clone();
        assert_ne!(before.view().layout(), layout);
        self.pages[home]
            .change(|p| p.relayout(layout))
            .expect("it was tried");
        let after = self.pages[home].view();
        assert_eq!(after.layout(), layout);
        assert!(whole(after).eq(whole(before.view())), "other records");
        self.relayouts += 1;
    }

    /// Splits as live code does and again as redo does. Both must give the same bytes.
    fn split(&mut self, home: usize, plan: &SplitPlan) {
        let old = self.pages[home].clone();
        assert_good_plan(old.view(), plan, self.choice);
        let id = PageId(self.next_id);
        self.next_id += 1;
        self.splits += 1;

        let mut bytes = vec![0x5a; self.page_size];
        let mut map = ChangeMap::new();
        self.pages[home]
            .change(|left| left.split_into(&mut PageMut::new(&mut bytes, &mut map), id, plan))
            .expect("a split always fits");
        assert_eq!(
            map.count(),
            self.page_size.div_ceil(64),
            "a new page is all changed"
        );
        self.pages.insert(home + 1, Tracked { bytes });

        let moved = old.view().encode_records(plan.at);
        let moved = records::decode(&moved).unwrap();
        let mut right = Tracked::new(PageLayout::Slotted, self.page_size, 99, b"", None);
        let (upper, lsn) = (old.view().upper_fence(), old.view().lsn());
        (right.change(|p| p.build(plan.right, id, &plan.separator, upper, lsn, moved))).unwrap();
        let mut left = old.clone();
        left.change(|p| p.truncate_to(&plan.separator)).unwrap();
        assert!(
            left.bytes == self.pages[home].bytes,
            "redo of a split: left page"
        );
        assert!(
            right.bytes == self.pages[home + 1].bytes,
            "redo of a split: right page"
        );
    }

    fn merge(&mut self, home: usize) {
        if home + 1 >= self.pages.len() {
            return;
        }
        // As in trees: a dense page is converted to the general layout before it absorbs a
        // neighbour.
        let general = self.choice.general();
        let _ = self.pages[home].change(|p| p.relayout(general));
        let right = self.pages[home + 1].clone();
        let fits = self.pages[home].view().can_absorb(&right.view());
        let expected = self.pages[home].view().absorbed_bytes(&right.view());
        let moved = right.view().encode_records(0);
        let moved = records::decode(&moved).unwrap();
        let merged = self.pages[home].change(|p| p.absorb(right.view().upper_fence(), moved));
        if fits {
            assert_eq!(merged, Ok(()));
            assert_eq!(self.pages[home].view().used_bytes(), expected);
            self.pages.remove(home + 1);
            self.merges += 1;
        } else {
            let dense = self.pages[home].view().layout().is_dense();
            let expected = if dense {
                Refused::Unfit
            } else {
                Refused::NoSpace
            };
            assert_eq!(merged, Err(expected));
        }
    }

    fn sort(&mut self, home: usize) {
        let before = self.pages[home].clone();
        let wanted = !before.view().is_in_order();
        assert!(!wanted || before.view().layout() == PageLayout::Fingerprint);
        let sorted = self.pages[home].change(|p| Ok::<_, Refused>(p.sort()));
        assert_eq!(sorted, Ok(wanted));
        let page = self.pages[home].view();
        assert!(page.is_in_order());
        assert!(page.iter().eq(before.view().iter()), "other records");
        assert_eq!(page.used_bytes(), before.view().used_bytes());
        assert!(wanted || before.bytes == self.pages[home].bytes);
    }

    fn check_against(&self, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let mut lower: Option<Vec<u8>> = Some(Vec::new());
        let mut all = Vec::new();
        for page in &self.pages {
            let page = page.view();
            assert_eq!(
                Some(page.lower_fence()),
                lower.as_deref(),
                "fences must tile"
            );
            lower = page.upper_fence().map(<[u8]>::to_vec);
            for (index, (suffix, value)) in page.iter().enumerate() {
                let key = [page.prefix(), &suffix].concat();
                assert_eq!(page.search(&key), Ok(index));
                all.push((key, value.to_vec()));
            }
        }
        assert_eq!(lower, None, "the last page has no upper fence");
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(all, expected);
    }

    fn check_reads(&self, key: &[u8], model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let page = self.pages[self.home(key)].view();
        assert_eq!(
            page.get(key),
            model.get(key).map(Vec::as_slice),
            "get {key:?}"
        );
        assert_eq!(page.get_covered(key), page.get(key), "get_covered {key:?}");
        let upper = page.upper_fence().map(<[u8]>::to_vec);
        let from_here =
            (page.iter_from(key)).map(|(s, v)| ([page.prefix(), &s].concat(), v.to_vec()));
        let expected: Vec<_> = (model.range(key.to_vec()..))
            .take_while(|(k, _)| upper.as_ref().is_none_or(|upper| *k < upper))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert!(from_here.eq(expected.iter().cloned()), "iter_from {key:?}");
        // Lookups as in a descent.
        let here = page.lower_fence().to_vec()..=key.to_vec();
        let floor = model.range(here).next_back().map(|(_, value)| &value[..]);
        assert_eq!(page.floor(key), floor, "floor {key:?}");
        for most in [1, 3, usize::MAX] {
            let mut visited = Vec::new();
            let more = page.visit_from(key, |suffix, value| {
                visited.push(([page.prefix(), suffix].concat(), value.to_vec()));
                visited.len() < most
            });
            assert_eq!(visited, expected[..most.min(expected.len())], "{key:?}");
            assert_eq!(more, expected.len() < most);
        }
    }
}

/// The page's records with whole keys.
fn whole<'a>(page: PageRef<'a>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'a {
    (page.iter()).map(move |(suffix, value)| ([page.prefix(), &suffix].concat(), value.to_vec()))
}

/// Asserts that the page was right to refuse the record.
fn assert_would_not_fit(page: PageRef<'_>, key: &[u8], value: &[u8]) {
    let slots = |count| page.layout().slots_bytes(count);
    let suffix = key.len() - page.prefix().len();
    let (old, count) = (page.get(key), page.count());
    let gone = old.map_or(0, |old| suffix + old.len());
    let slot = old.map_or(slots(count + 1) - slots(count), |_| 0);
    let used = page.used_bytes() - gone + slot + suffix + value.len();
    assert!(used > page.page_size(), "refused, but {used} bytes fit");
}

/// Asserts that every left key < separator <= every right key, that nothing shorter would do, and
/// that both sides are non-empty. A dense split moves nothing.
fn assert_good_plan(page: PageRef<'_>, plan: &SplitPlan, choice: LayoutChoice) {
    if page.layout() == PageLayout::FullyDense && plan.at == page.count() {
        assert!(page.is_empty() || page.key(plan.at - 1) < plan.separator);
        assert!(page.covers(&plan.separator) && plan.separator.as_slice() > page.lower_fence());
        return;
    }
    assert!(plan.at >= 1 && plan.at < page.count());
    let (left, right) = (page.key(plan.at - 1), page.key(plan.at));
    let separator = &plan.separator;
    assert!(
        left < *separator && *separator <= right,
        "{left:?} {separator:?} {right:?}"
    );
    // Where leaves may be fully dense, a page may be split behind its last place.
    let at_last_place = choice == LayoutChoice::of(PageLayout::FullyDense)
        && plan.at >= page.count() / 2
        && separator.len() == left.len()
        && separator.len() <= right.len();
    let shorter = &right[..separator.len() - 1];
    assert!(at_last_place || *left >= *shorter, "{shorter:?} would do");
    assert!(*separator.as_slice() > *page.lower_fence());
    assert!(
        page.upper_fence()
            .is_none_or(|upper| separator.as_slice() < upper)
    );
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Put(Vec<u8>, usize),
    Delete(Vec<u8>),
    Split(usize),
    Merge(usize),
    Read(Vec<u8>),
    /// Sorts the records of a page, if they are unsorted.
    Sort(usize),
}

/// Keys that are prefixes of each other, end in zero bytes, share long prefixes, or are empty.
fn key(max_key: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0_u8, 1, b'a', 0xff]);
    prop_oneof![
        4 => prop::collection::vec(byte.clone(), 0..6),
        2 => prop::collection::vec(byte.clone(), 0..4).prop_map(|t| [&b"https://www."[..], &t].concat()),
        2 => (0_u64..400).prop_map(|n| n.to_be_bytes().to_vec()),
        1 => (byte, 0..=max_key).prop_map(|(b, n)| vec![b; n]),
    ]
}

fn step(max_key: usize, max_record: usize) -> impl Strategy<Value = Step> {
    let size = prop_oneof![
        4 => 0_usize..40,
        2 => 0..max_record,
        1 => Just(max_record),
        1 => Just(0_usize),
    ];
    prop_oneof![
        12 => (key(max_key), size).prop_map(|(k, n)| Step::Put(k, n)),
        4 => key(max_key).prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::Split),
        1 => any::<usize>().prop_map(Step::Merge),
        1 => any::<usize>().prop_map(Step::Sort),
        4 => key(max_key).prop_map(Step::Read),
    ]
}

pub(super) fn run(layout: PageLayout, page_size: usize, steps: &[Step]) -> Level {
    let max_record = limits(page_size).max_record;
    let mut level = Level::new(layout, page_size);
    let mut model = BTreeMap::new();
    for (time, step) in steps.iter().enumerate() {
        match step {
            Step::Put(key, size) => {
                let value = vec![time as u8; (*size).min(max_record - key.len())];
                let put = level.put(key, &value);
                let expected = match model.insert(key.clone(), value) {
                    None => Put::Inserted,
                    Some(_) => Put::Replaced,
                };
                assert_eq!(put, expected, "put {key:?}");
                level.check_reads(key, &model);
            }
            Step::Delete(key) => {
                let home = level.home(key);
                let was_there = level.pages[home].change(|p| Ok::<_, Refused>(p.delete(key)));
                assert_eq!(was_there, Ok(model.remove(key).is_some()), "delete {key:?}");
                level.check_reads(key, &model);
            }
            Step::Split(which) => {
                let home = which % level.pages.len();
                if let Some(plan) = level.pages[home].view().choose_separator() {
                    level.split(home, &plan);
                } else {
                    assert!(level.pages[home].view().count() < 2);
                }
            }
            Step::Merge(which) => level.merge(which % level.pages.len()),
            Step::Sort(which) => level.sort(which % level.pages.len()),
            Step::Read(key) => level.check_reads(key, &model),
        }
    }
    level.check_against(&model);
    level
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn pages_behave_like_an_ordered_map(steps in prop::collection::vec(step(512, 1502), 1..250)) {
        for layout in every() {
            run(layout, 4096, &steps);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Values of a few bytes: many records a page, deep searches, long runs of equal heads.
    #[test]
    fn pages_of_tiny_records_behave_like_an_ordered_map(
        steps in prop::collection::vec(step(8, 24), 200..1200)
    ) {
        for layout in every() {
            run(layout, 4096, &steps);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// `limits`: whatever the sizes, a put of an admitted record ends, and no page with fewer than
    /// two records ever refuses it (`Level::split` would panic).
    #[test]
    fn any_admitted_record_finds_room_in_any_page_size(
        log2 in 12_u32..=16,
        shapes in prop::collection::vec((0_u8..6, 0_u16..50, any::<u8>()), 1..120),
    ) {
        let page_size = 1 << log2;
        let limits = limits(page_size);
        let steps: Vec<_> = shapes.iter().map(|&(shape, tail, fill)| {
            // The keys differ only near their end, so separators need (nearly) the whole key.
            let long = |len: usize| {
                let mut key = vec![if fill < 200 { 7 } else { fill }; len - 2];
                key.extend(tail.to_be_bytes());
                key
            };
            match shape {
                0 => Step::Put(long(limits.max_key), limits.max_record),
                1 => Step::Put(long(limits.max_key), 0),
                2 => Step::Put(long(2), limits.max_record),
                3 => Step::Put(long(2), 0),
                4 => Step::Put(long(limits.max_key / 2), usize::from(tail)),
                _ => Step::Put(Vec::new(), limits.max_record / 2),
            }
        }).collect();
        for layout in every() {
            run(layout, page_size, &steps);
        }
    }
}

#[test]
fn the_model_test_really_splits_and_merges() {
    let keys = (0..300_u64).map(|n| Step::Put((n * 7 % 300).to_be_bytes().to_vec(), 40));
    let merges = (0..300).map(|n| Step::Merge(n % 20));
    let deletes = (0..290_u64).map(|n| Step::Delete(n.to_be_bytes().to_vec()));
    let steps: Vec<_> = keys.chain(deletes).chain(merges).collect();
    for layout in PageLayout::ALL {
        let level = run(layout, 4096, &steps);
        assert!(level.splits >= 4, "{}", level.splits);
        assert!(level.merges >= 4, "{}", level.merges);
    }
}

#[test]
fn a_page_with_one_maximal_record_takes_another_one() {
    for layout in PageLayout::ALL {
        for log2 in 12..=16 {
            let limits = limits(1 << log2);
            let key = |last: u8| {
                let mut key = vec![b'k'; limits.max_key];
                key[limits.max_key - 1] = last;
                key
            };
            // The worst case: both fences maximal. Their shared prefix would be truncated, so force
            // it to be empty.
            let mut upper = vec![b'z'; limits.max_key];
            upper[0] = b'l';
            let mut page = Tracked::new(layout, 1 << log2, 1, &key(0), Some(&upper));
            let value = vec![1; limits.max_record - limits.max_key];
            for last in [1, 2] {
                assert_eq!(
                    page.change(|p| p.put(&key(last), &value)),
                    Ok(Put::Inserted)
                );
            }
            assert_eq!(
                page.change(|p| p.put(&key(3), &value)),
                Err(Refused::NoSpace)
            );
            let spared = match layout {
                PageLayout::Slotted | PageLayout::Hints => 0,
                PageLayout::Compact => 8 + 2 * 2,
                PageLayout::Baseline | PageLayout::Prefix => 2 * 4,
                PageLayout::Fingerprint => 2 * 3,
                PageLayout::SemiDense | PageLayout::FullyDense => {
                    unreachable!("takes no such keys")
                }
            };
            let free = page.view().free_bytes();
            assert!(free < 2 + spared, "the limit could be larger");
            let longer = [&value[..], &[0]].concat();
            assert_eq!(
                page.change(|p| p.put(&key(1), &longer)),
                Err(Refused::TooLarge)
            );
        }
    }
}
