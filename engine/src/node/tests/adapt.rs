//! The choice between hints and fingerprints by keys and use (B-Trees Are Back §5.1).

use super::Tracked;
use crate::node::adapt::Use;
use crate::node::{LayoutChoice, PageLayout, Remedy};

/// A page whose records from number `alike` on all have the same head.
fn page(layout: PageLayout, count: u16, alike: u16) -> Tracked {
    let mut page = Tracked::new(layout, 4096, 1, b"", None);
    for n in 0..count {
        let head = n.min(alike).to_be_bytes();
        let key = [&head[..], b"..", &n.to_be_bytes()].concat();
        page.change(|p| p.put(&key, b"8 bytes.")).unwrap();
    }
    page
}

fn judge(page: &mut Tracked) {
    let judged = page.change(|p| {
        p.judge_heads();
        Ok::<_, ()>(())
    });
    judged.unwrap();
}

/// "If this number does not exceed 1/16 of the total record count, the heads are considered good";
/// with fewer than 16 keys and no collision they are.
#[test]
fn heads_are_good_up_to_a_sixteenth_of_collisions() {
    for (count, collisions, good) in [
        (64, 0, true),
        (64, 4, true),
        (64, 5, false),
        (79, 4, true),
        (80, 5, true),
        (15, 0, true),
        (15, 1, false),
        (16, 1, true),
        (1, 0, true),
        (0, 0, true),
    ] {
        let alike = if count == 0 {
            0
        } else {
            count - 1 - collisions
        };
        for layout in [PageLayout::Hints, PageLayout::Fingerprint] {
            let page = page(layout, count, alike);
            assert_eq!(
                page.view().has_good_heads(),
                good,
                "{collisions} of {count}"
            );
            let suited = if good {
                PageLayout::Hints
            } else {
                PageLayout::Fingerprint
            };
            assert_eq!(page.view().suited_layout(), suited);
        }
    }
}

/// The counter saturates at 0 and 3, where the page is converted at once; splits and merges test
/// for 2.
#[test]
fn scans_and_point_operations_move_the_counter_and_its_ends_convert() {
    let mut page = page(PageLayout::Fingerprint, 60, 0);
    judge(&mut page);
    let count = |page: &mut Tracked, used| page.change(|p| Ok::<_, ()>(p.count_use(used))).unwrap();
    assert_eq!(page.view().scans(), 0);
    assert_eq!(count(&mut page, Use::Point), None);
    assert_eq!(page.view().scans(), 0);
    assert_eq!(count(&mut page, Use::Scan), None);
    assert_eq!(page.view().suited_layout(), PageLayout::Fingerprint);
    assert_eq!(count(&mut page, Use::Scan), None);
    assert_eq!(page.view().scans(), 2);
    assert_eq!(page.view().suited_layout(), PageLayout::Hints);
    assert_eq!(count(&mut page, Use::Scan), Some(PageLayout::Hints));
    page.change(|p| p.relayout(PageLayout::Hints)).unwrap();
    assert_eq!(page.view().scans(), 3, "the page keeps its counter");
    assert_eq!(count(&mut page, Use::Scan), None);
    for left in [2, 1] {
        assert_eq!(count(&mut page, Use::Point), None);
        assert_eq!(page.view().scans(), left);
    }
    assert_eq!(count(&mut page, Use::Point), Some(PageLayout::Fingerprint));
}

/// 255: heads are good, and nothing is counted.
#[test]
fn good_heads_end_the_counting() {
    let mut page = page(PageLayout::Hints, 60, 60);
    judge(&mut page);
    assert_eq!(page.view().scans(), 255);
    for used in [Use::Scan, Use::Point, Use::Point] {
        assert_eq!(page.change(|p| Ok::<_, ()>(p.count_use(used))), Ok(None));
        assert_eq!(page.view().scans(), 255);
    }
    // A page that was never judged, as redo makes them.
    let mut fresh = self::page(PageLayout::Hints, 60, 60);
    assert_eq!(
        fresh.change(|p| Ok::<_, ()>(p.count_use(Use::Point))),
        Ok(None)
    );
    assert_eq!(fresh.view().scans(), 255);
    // Bad heads restart the counter.
    let mut bad = self::page(PageLayout::Hints, 60, 0);
    bad.bytes[37] = 255;
    judge(&mut bad);
    assert_eq!(bad.view().scans(), 0);
}

#[test]
fn a_full_leaf_is_split_into_what_suits_it() {
    for (alike, suited) in [(0, PageLayout::Fingerprint), (9999, PageLayout::Hints)] {
        let mut page = Tracked::new(PageLayout::Hints, 4096, 1, b"", None);
        let key = |n: u16| [&n.min(alike).to_be_bytes()[..], b"....", &n.to_be_bytes()].concat();
        // Values of varying lengths, so that no leaf becomes dense.
        let value = |n: u16| vec![7; usize::from(n % 5)];
        let full = (0..).find(|&n| page.change(|p| p.put(&key(n), &value(n))).is_err());
        let next = key(full.unwrap());
        let remedy = LayoutChoice::ADAPTIVE.remedy(&page.view(), &next, 4);
        let Some(Remedy::Split(plan)) = remedy else {
            panic!("{remedy:?}");
        };
        assert_eq!(plan.right, suited);
    }
}
