//! Import cycles: the strongly connected components with more than one node (Tarjan).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The graph of imports.
pub(crate) type Arrows = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The components with more than one file, largest first.
pub(crate) fn of(arrows: &Arrows) -> Vec<Vec<PathBuf>> {
    let mut walk = Walk {
        arrows,
        numbers: BTreeMap::new(),
        lowest: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for file in arrows.keys() {
        if !walk.numbers.contains_key(file) {
            walk.visit(file);
        }
    }
    let mut found = walk.found;
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

struct Walk<'a> {
    arrows: &'a Arrows,
    numbers: BTreeMap<&'a PathBuf, usize>,
    lowest: BTreeMap<&'a PathBuf, usize>,
    stack: Vec<&'a PathBuf>,
    found: Vec<Vec<PathBuf>>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, file: &'a PathBuf) {
        let number = self.numbers.len();
        self.numbers.insert(file, number);
        self.lowest.insert(file, number);
        self.stack.push(file);
        for next in self.arrows.get(file).into_iter().flatten() {
            let lowest = if !self.numbers.contains_key(next) {
                self.visit(next);
                self.lowest[next]
            } else if self.stack.contains(&next) {
                self.numbers[next]
            } else {
                continue;
            };
            let own = self.lowest[file].min(lowest);
            self.lowest.insert(file, own);
        }
        if self.lowest[file] == number {
            let at = self.stack.iter().position(|other| *other == file);
            let component = self.stack.split_off(at.unwrap_or_default());
            if component.len() > 1 {
                self.found.push(component.into_iter().cloned().collect());
            }
        }
    }
}

#[test]
fn cycles_are_found_and_chains_are_not_cycles() {
    let path = |name: &str| PathBuf::from(name);
    let arrows: Arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")]
        .into_iter()
        .map(|(from, to)| (path(from), BTreeSet::from([path(to)])))
        .fold(Arrows::new(), |mut all, (from, to)| {
            all.entry(from).or_default().extend(to);
            all
        });
    let found = of(&arrows);
    assert_eq!(found.len(), 1);
    assert_eq!(
        BTreeSet::from_iter(&found[0]),
        BTreeSet::from_iter([&path("a"), &path("b"), &path("c")])
    );
}
