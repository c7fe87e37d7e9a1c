//! The places of records against real pages.

use std::ops::Range;

use treering_engine::PageId;
use treering_engine::node::{ChangeMap, LayoutChoice, PageLayout, PageMut};
use treering_traces::generate::{GenParams, ValueSize, Workload as Kind, build};

use super::bodies::{Bodies, Touched};
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::{Span, Workload};
use crate::ssd::gc::SplitMix;
use crate::values::Values;

const PAGE: usize = 8192;

/// Touched ranges, as the engine notes them.
struct Map(ChangeMap);

impl Touched for Map {
    fn touch(&mut self, range: Range<usize>) {
        self.0.mark(range.start..range.end.min(PAGE));
    }
}

/// Puts and deletes on one page: the segments that they dirty are those of a real page.
fn compare(layout: PageLayout, lengths: Range<u64>) {
    let mut params = GenParams::new(Kind::Zipf, 30);
    params.key_size = Some(16);
    params.value_size = Some(ValueSize::fixed(40));
    let (header, mut source) = build(&params).expect("good parameters");
    let span = Span::after(header.warmup_ops);
    let workload = Workload::analyze(&mut *source, span).expect("a trace");
    let level = LeafLevel::grow(&workload, PAGE, LayoutChoice::of(layout));
    assert_eq!(level.leaves.len(), 1, "all records fit one page");
    let mut bodies = Bodies::new((&workload, &level), PAGE, layout);

    let (mut bytes, mut changes) = (vec![0; PAGE], ChangeMap::new());
    PageMut::new(&mut bytes, &mut changes)
        .init(layout, PageId(1), b"", None)
        .expect("an empty page");
    let mut values = Values::new(1, workload.zeros);
    let mut random = SplitMix(5);
    let (mut dirty, mut missed, mut wrong) = (0, 0, 0);
    for number in 0..4_000 {
        let key = random.below(workload.keys.len() as u64) as u32;
        let mut changes = ChangeMap::new();
        let mut page = PageMut::new(&mut bytes, &mut changes);
        let mut map = Map(ChangeMap::new());
        if random.below(10) == 0 {
            page.delete(workload.key(key));
            bodies.delete(0, key, &mut map);
        } else {
            let len = lengths.start + random.below(lengths.end - lengths.start);
            let value = values.make(number, len as usize);
            page.put(workload.key(key), value).expect("room");
            bodies.put(0, key, len as usize, &mut map);
        }
        dirty += changes.count();
        missed += changes.segments().filter(|i| !map.0.is_marked(*i)).count();
        wrong += map.0.segments().filter(|i| !changes.is_marked(*i)).count();
    }
    // Bytes may be equal by chance, and a page laid out again may find some zeros where they were.
    assert!(
        100 * missed <= dirty && 20 * wrong <= dirty,
        "{layout:?}, {lengths:?}: {missed} missed and {wrong} too many of {dirty}"
    );
}

#[test]
fn segments_that_puts_and_deletes_dirty_are_those_of_a_real_page() {
    for layout in [PageLayout::Slotted, PageLayout::Hints, PageLayout::Compact] {
        compare(layout, 100..101);
        compare(layout, 20..200);
    }
}
