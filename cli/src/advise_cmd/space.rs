//! What is considered: designs first, and then their settings, one flag after the other.
//!
//! ```text
//! devices × trees × page stores × modification log × redo log ─▶ designs
//! the best designs × page sizes × thresholds × redo log          ─▶ variants
//! the best of those × thresholds, × page sizes, × policies of bf … ─▶ variants
//! ```
//!
//! A flag that the user has given is not varied, or only among the values of its list. What a tree's
//! spec names, such as `bf+cow(table=each-flush)`, is not varied either.

use std::collections::BTreeMap;
use std::path::Path;

use treering_engine::{Family, TreeSpec};
use treering_sim::replay::Target;

use crate::args::{Listed, Objective};
use crate::devices_cmd;
use crate::failure::Failure;
use crate::sweep_cmd::{Point, check};

/// A flag and its values.
type Axis = (&'static str, &'static [&'static str]);

/// Settings that are tried together. Large pages pay with a modification log only, and with one of
/// another size than small pages; then the redo log is a larger share of what is written. With few
/// slots in a buffer node, writes that trigger a flush are so many that it pays not to log them.
const TOGETHER: [Axis; 5] = [
    ("page", &["4KiB", "8KiB", "16KiB", "32KiB"]),
    ("threshold", &["0", "1KiB", "2KiB", "3KiB"]),
    ("log", &["packed", "sparse"]),
    ("nbatch", &["1", "2", "3", "4", "5", "6"]),
    ("logging", &["conservative", "naive"]),
];

/// Settings of trees of pages, in the order in which they are tried. What decides the use of the
/// memory of `bf` is tried in all combinations: with mini-pages that are full, others are worth
/// copying.
const PAGES: [&[Axis]; 4] = [
    &[("threshold", &["0", "512", "1KiB", "2KiB", "3KiB"])],
    &[("page", &["4KiB", "8KiB", "16KiB", "32KiB"])],
    &[
        ("promote", &["auto", "0", "30"]),
        ("copy-on-access", &["0", "10", "50"]),
        ("relog", &["0", "50"]),
    ],
    &[("op", &[])],
];

/// Layouts that take different space, for the objective space.
const LAYOUTS: [&[Axis]; 1] = [&[("layout", &["adaptive", "compact", "slotted"])]];

/// Settings of trees in persistent memory.
const MEMORY: [&[Axis]; 4] = [
    &[("t-node", &["1", "2", "4"])],
    &[("t-split", &["14", "20", "26"])],
    &[("slots", &["9", "19", "29"])],
    &[("op", &[])],
];

/// Flags that decide a design.
const OF_DESIGNS: [&str; 5] = ["device", "tree", "store", "threshold", "log"];

/// What may vary, and what may not.
#[derive(Clone, Debug)]
pub(super) struct Space {
    base: Point,
    /// Lists that were given.
    lists: BTreeMap<String, Vec<String>>,
}

impl Space {
    /// The space that these flags leave.
    ///
    /// # Errors
    /// If a value is bad, or given twice.
    pub(super) fn of(trace: &Path, flags: &[Listed]) -> Result<Space, Failure> {
        let Some(trace) = trace.to_str() else {
            let trace = trace.display();
            return Err(Failure::usage(format!("{trace}: expected a path in UTF-8")));
        };
        let mut space = Space {
            base: Point::of(trace),
            lists: BTreeMap::new(),
        };
        for Listed { flag, values } in flags {
            for (at, value) in values.iter().enumerate() {
                check(flag, value).map_err(|why| Failure::usage(format!("--{why}")))?;
                if values[..at].contains(value) {
                    return Err(Failure::usage(format!(
                        "--{flag} {value}: given twice; expected different values"
                    )));
                }
            }
            if let [only] = values.as_slice() {
                space.base.set(flag, only);
            }
            space.lists.insert(flag.clone(), values.clone());
        }
        Ok(space)
    }

    /// The point of the given flags alone: with lists, of their first values.
    pub(super) fn default(&self) -> Point {
        let firsts = self.lists.iter().map(|(flag, values)| (flag, &values[0]));
        firsts.fold(self.base.clone(), |point, (flag, value)| {
            point.with(flag, value)
        })
    }

    /// Whether several values of a flag were given.
    pub(super) fn is_list(&self, flag: &str) -> bool {
        self.lists.get(flag).is_some_and(|values| values.len() > 1)
    }

    /// The given values of a flag, or else these.
    fn values(&self, flag: &str, or: &[&str]) -> Vec<String> {
        let or = || or.iter().map(|value| (*value).to_owned()).collect();
        self.lists.get(flag).cloned().unwrap_or_else(or)
    }

    /// The designs.
    ///
    /// # Errors
    /// If a device does not exist.
    pub(super) fn designs(&self) -> Result<Vec<Point>, Failure> {
        let mut points = Vec::new();
        for device in self.values("device", &[""]) {
            let (start, target) = match device.as_str() {
                "" => (self.base.clone(), None),
                name => (
                    self.base.with("device", name),
                    Some(devices_cmd::find(name)?),
                ),
            };
            let family = match target {
                Some(Target::Pm { .. }) => Family::Pm,
                _ => Family::Pages,
            };
            let is_of = |name: &&str| family_of(name) == Some(family);
            let trees: Vec<&str> = TreeSpec::names().filter(is_of).collect();
            for tree in self.values("tree", &trees) {
                let start = start.with("tree", &tree);
                // Without a device, each tree has its own default.
                match family_of(&tree) {
                    Some(Family::Pages) => {
                        let compresses = matches!(target, Some(Target::Csd { .. }));
                        points.extend(self.of_pages(&start, &tree, compresses));
                    }
                    Some(Family::Pm) | None => points.push(start),
                }
            }
        }
        for (flag, values) in &self.lists {
            if values.len() > 1 && !OF_DESIGNS.contains(&flag.as_str()) {
                points = points.iter().flat_map(|p| begun(p, flag, values)).collect();
            }
        }
        Ok(points)
    }

    /// The designs of a tree of pages.
    fn of_pages(&self, start: &Point, tree: &str, compresses: bool) -> Vec<Point> {
        // A B⁻-tree is a page store, a log and a modification log.
        let is_whole = tree.starts_with("bminus");
        let mut points = vec![start.clone()];
        let mut vary = |flag: &str, values: &[&str]| {
            if names(tree, flag) || (is_whole && !self.lists.contains_key(flag)) {
                return;
            }
            let values = self.values(flag, values);
            let with = |point: &Point| values.iter().map(|v| point.with(flag, v)).collect();
            points = points.iter().flat_map(|p| -> Vec<_> { with(p) }).collect();
        };
        vary("store", &["in-place", "cow", "shadow"]);
        vary("threshold", &["0", "2KiB"]);
        if compresses || self.lists.contains_key("log") {
            vary("log", &["packed", "sparse"]);
        }
        points
    }

    /// The settings, in the order in which they are tried; those of a group in all combinations.
    pub(super) fn axes(&self, of: Objective) -> Vec<&'static [Axis]> {
        let layouts: &[_] = match of == Objective::Space || self.is_list("layout") {
            true => &LAYOUTS,
            false => &[],
        };
        let all = PAGES.iter().chain(layouts).chain(&MEMORY);
        all.copied().collect()
    }

    /// The point with the settings that are tried together.
    pub(super) fn together(&self, point: &Point) -> Vec<Point> {
        self.combinations(point, &TOGETHER)
    }

    /// The point, and with all other combinations of some settings.
    pub(super) fn combinations(&self, point: &Point, axes: &[Axis]) -> Vec<Point> {
        let mut points = vec![point.clone()];
        for axis in axes {
            let variants = points.iter().flat_map(|point| self.variants(point, *axis));
            let variants: Vec<Point> = variants.collect();
            points.extend(variants);
        }
        points
    }

    /// The point with the other values of a setting.
    fn variants(&self, point: &Point, (flag, values): (&str, &[&str])) -> Vec<Point> {
        let tree = point.get("tree").unwrap_or_default();
        // Where the redo log is no part of the design, it is not varied.
        let is_fixed = flag == "log" && point.get(flag).is_none();
        if is_fixed || names(tree, flag) || (!self.lists.contains_key(flag) && !takes(tree, flag)) {
            return Vec::new();
        }
        let values = self.values(flag, values).into_iter();
        let others = values.filter(|value| point.get(flag) != Some(value));
        others.map(|value| point.with(flag, &value)).collect()
    }
}

/// A design with the values of a list that was given. Of a setting with the first, since the search
/// tries the others; of another flag with each, since they are more than a variation.
fn begun(point: &Point, flag: &str, values: &[String]) -> Vec<Point> {
    let settings = PAGES.iter().chain(&LAYOUTS).chain(&MEMORY);
    let is_setting = settings.copied().flatten().any(|(name, _)| *name == flag);
    let tree = point.get("tree").unwrap_or_default();
    if is_setting && (names(tree, flag) || !takes(tree, flag)) {
        return vec![point.clone()];
    }
    let values = if is_setting { &values[..1] } else { values };
    values.iter().map(|value| point.with(flag, value)).collect()
}

/// The family of a tree's spec; `None` without a tree.
fn family_of(tree: &str) -> Option<Family> {
    tree.parse::<TreeSpec>().ok().map(|tree| tree.family())
}

/// Whether a setting is one of this tree.
fn takes(tree: &str, flag: &str) -> bool {
    let name = tree.split(['(', '+']).next().unwrap_or_default();
    match flag {
        "promote" | "copy-on-access" | "relog" | "growth" | "spare" | "max-mini-page" => {
            name == "bf"
        }
        "page" | "threshold" | "layout" => matches!(name, "btree" | "bf" | "bminus"),
        "nbatch" | "logging" => name == "ccl",
        "slots" | "t-node" | "t-split" => name == "lodge",
        _ => true,
    }
}

/// Whether a tree's spec says what the flag would.
fn names(tree: &str, flag: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| tree.contains(word));
    match flag {
        "store" => has(&["+in-place", "+cow", "+shadow"]),
        "log" => has(&["+packed", "+sparse"]),
        "threshold" => has(&["(T=", ",T="]),
        "layout" => {
            let layouts = ["slotted", "compact", "baseline", "prefix", "hints"];
            let more = ["fingerprint", "semi-dense", "fully-dense", "adaptive"];
            let mut all = layouts.iter().chain(&more);
            all.any(|layout| tree.contains(&format!("+{layout}")))
        }
        flag => tree.contains(&format!("({flag}=")) || tree.contains(&format!(",{flag}=")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(words: &[(&str, &str)]) -> Space {
        let flags = words.iter().map(|(flag, values)| Listed {
            flag: (*flag).to_owned(),
            values: values.split(';').map(str::to_owned).collect(),
        });
        let flags: Vec<Listed> = flags.collect();
        Space::of(Path::new("a.trz"), &flags).expect("a space")
    }

    fn said(points: &[Point], flags: &str) -> Vec<String> {
        let said = |point: &Point| {
            let values = flags.split(' ').filter_map(|flag| point.get(flag));
            values.collect::<Vec<_>>().join(" ")
        };
        points.iter().map(said).collect()
    }

    #[test]
    fn designs_are_the_stores_of_each_tree_and_a_whole_b_minus_tree() {
        let designs = space(&[]).designs().expect("designs");
        let trees = said(&designs, "tree");
        let count = |tree| trees.iter().filter(|name| *name == tree).count();
        assert_eq!((count("btree"), count("bf"), count("bminus")), (6, 6, 1));
        let cow = designs.iter().filter(|p| p.get("store") == Some("cow"));
        assert_eq!(cow.count(), 4);
        let memory = space(&[("device", "pm")]).designs().expect("designs");
        assert_eq!(
            said(&memory, "tree"),
            ["ccl", "lodge", "pmtree", "pmtree-global"]
        );
    }

    #[test]
    fn what_is_given_is_not_varied_and_a_list_only_within() {
        let space = space(&[
            ("tree", "bf+cow;btree"),
            ("threshold", "0"),
            ("store", "shadow"),
            ("page", "8KiB;16KiB"),
        ]);
        let designs = space.designs().expect("designs");
        assert_eq!(
            said(&designs, "tree store"),
            ["bf+cow shadow", "btree shadow"]
        );
        let variants = |axis| space.variants(&designs[1], axis);
        assert_eq!(said(&designs, "page"), ["8KiB", "8KiB"]);
        assert_eq!(said(&variants(("page", &["4KiB"])), "page"), ["16KiB"]);
        assert!(variants(("threshold", &["512"])).is_empty());
        assert!(variants(("promote", &["0"])).is_empty());
    }

    #[test]
    fn what_depends_on_each_other_is_tried_together() {
        let with = |points: &[Point], values: &str| {
            let all = said(points, "page threshold log");
            all.iter().filter(|said| *said == values).count()
        };
        let space_ = space(&[("device", "csd")]);
        let designs = space_.designs().expect("designs");
        let is_sparse = |p: &&Point| p.get("tree") == Some("bf") && p.get("log") == Some("sparse");
        let sparse = designs.iter().find(is_sparse).expect("a sparse log");
        let together = space_.together(sparse);
        assert_eq!(with(&together, "32KiB 3KiB packed"), 1);
        assert_eq!(with(&together, "32KiB 1KiB sparse"), 1);
        // A drive that does not compress has no design with a sparse log, and a B⁻-tree no other.
        let blocks = space(&[]);
        let plain = &blocks.designs().expect("designs")[0];
        let logs = |points: Vec<Point>| points.iter().filter_map(|p| p.get("log")).count();
        assert_eq!(logs(blocks.together(plain)), 0);
        let whole = designs.iter().find(|p| p.get("tree") == Some("bminus"));
        assert_eq!(logs(space_.together(whole.expect("a B⁻-tree"))), 0);
    }

    #[test]
    fn bad_values_are_refused_before_anything_is_predicted() {
        for (flag, values, expected) in [
            ("cache", "5%;5%", "given twice"),
            ("cache", "5 bits", "expected a size"),
            ("device", "floppy", "no such drive"),
        ] {
            let listed = Listed {
                flag: flag.into(),
                values: values.split(';').map(str::to_owned).collect(),
            };
            let why = Space::of(Path::new("a.trz"), &[listed]).expect_err(values);
            assert!(why.message.contains(expected), "{}", why.message);
        }
    }
}
