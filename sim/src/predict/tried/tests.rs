//! Tests bounds from both sides: values on a bound count as tested, values just outside are named.

use super::*;

/// A value between all bounds of a quantity.
fn inside(tried: &Tried, quantity: Quantity) -> f64 {
    let bounds = tried.all_bounds().filter(|b| b.quantity == quantity);
    let (low, high) = bounds.fold((0.0f64, f64::INFINITY), |(low, high), b| {
        (low.max(b.low), high.min(b.high))
    });
    if high.is_finite() {
        (low + high) / 2.0
    } else {
        low * 2.0
    }
}

fn case(tried: &Tried, quantity: Quantity, value: f64) -> Case {
    let others = tried
        .all_bounds()
        .map(|b| (b.quantity, inside(tried, b.quantity)));
    let mut values: Vec<_> = others.filter(|(q, _)| *q != quantity).collect();
    values.push((quantity, value));
    Case::made_up(tried.family, values)
}

#[test]
fn each_bound_holds_from_both_sides() {
    for tried in TRIED {
        for bound in tried.all_bounds() {
            let doubts = |value| -> Vec<Untried> {
                let all = untried(&case(tried, bound.quantity, value));
                assert!(all.iter().all(|u| u.what == bound.quantity.name()));
                let of_all = all.iter().any(|u| u.decides == Decides::All);
                let decides = |u: &Untried| u.decides == bound.decides || of_all;
                all.into_iter().filter(decides).collect()
            };
            let story = |value: f64| format!("{:?}, {:?} {value}", tried.family, bound.quantity);
            let step = |value: f64| 0.05 * value.abs().max(0.02);
            assert_eq!(doubts(inside(tried, bound.quantity)), [], "{bound:?}");
            for (edge, beyond) in [(bound.low, -1.0), (bound.high, 1.0)] {
                if edge.is_infinite() || (edge <= 0.0 && beyond < 0.0) {
                    continue;
                }
                let within = doubts(edge);
                let strict = |u: &&Untried| u.decides == bound.decides;
                assert!(within.iter().find(strict).is_none(), "{}", story(edge));
                let past = edge + beyond * step(edge);
                assert_eq!(doubts(past).len(), 1, "{}", story(past));
            }
        }
    }
}

#[test]
fn what_no_grid_tries_is_named_whole() {
    let mut case = Case::made_up(Family::Pages, Vec::new());
    case.family = None;
    case.combination = "btree on a drive nobody has".into();
    let all = untried(&case);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].what, "btree on a drive nobody has");
    assert_eq!(all[0].decides, Decides::All);
}
