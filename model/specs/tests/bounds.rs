//! `specs/BOUNDS.md` speaks of every spec, and names only models that exist and hold. A mirror
//! refuses sizes that its spec excludes.

use std::path::{Path, PathBuf};

use treering_specs::check::configs::discover;
use treering_specs::check::mirrors::{COMPOSED, SPECS};
use treering_specs::mirror::surrogate_buffer::SurrogateBuffer;
use treering_specs::{Config, Mirror as _, Value};

fn specs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs")
}

#[test]
fn the_models_that_lift_a_bound_exist() {
    let specs = specs();
    let models = discover(&specs, &SPECS).expect("the models");
    let known = [&SPECS[..], &COMPOSED].concat();
    let text = std::fs::read_to_string(specs.join("BOUNDS.md")).expect("BOUNDS.md");
    let mut told = Vec::new();
    let mut named = 0;
    for section in text.split("\n## ").skip(1) {
        let (heading, rows) = section.split_once('\n').expect("a heading");
        told.push(heading.to_owned());
        for row in rows.lines().filter(|row| row.starts_with("| ")) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let lifted = cells.last().copied().unwrap_or_default();
            for name in lifted.split('`').skip(1).step_by(2) {
                if name.contains(' ') || known.contains(&name) {
                    continue;
                }
                let spec = known.iter().find(|spec| **spec == heading);
                let model = models.iter().find(|model| {
                    model.name == name && spec.is_none_or(|spec| model.spec == **spec)
                });
                let model = model.unwrap_or_else(|| panic!("{heading}: no model {name}"));
                assert_eq!(model.must_violate(), None, "{heading}: {name} holds");
                named += 1;
            }
        }
    }
    for spec in &known {
        assert!(told.iter().any(|heading| heading == spec), "{spec}");
    }
    assert!(named > 30, "{named}");
}

/// The assumptions of `LodgeState.tla`, as the mirror of `SurrogateBuffer` has them.
#[test]
fn sizes_with_which_a_flush_splits_a_leaf_twice_are_refused() {
    let path = specs().join("surrogate_buffer/MCSurrogateBuffer_two-leaves.cfg");
    let refused = |sizes: &[(&str, i64)], keys: i64| {
        let mut config = Config::read(&path).expect("a configuration");
        for (name, size) in sizes {
            config.constants.insert((*name).into(), Value::Int(*size));
        }
        let keys = Value::set((1..=keys).map(Value::Int));
        config.constants.insert("Keys".into(), keys);
        let error = SurrogateBuffer::from_config(&config).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let sizes = |slots| [("LeafSlots", 3), ("TSplit", 1), ("Slots", slots)];
    // The fourth pair of a leaf of three may be the lowest of all, twice.
    let error = refused(&sizes(5), 4);
    assert!(error.contains("split a leaf of 3 pairs twice"), "{error}");
    let error = refused(&sizes(7), 6);
    assert!(error.contains("split a leaf of 3 pairs twice"), "{error}");
    // Buffers with two pairs for a leaf never fill it; three keys are never halved twice; and with
    // `t_split` 2, five pairs would be needed.
    for (sizes, keys) in [
        (sizes(4), 4),
        (sizes(5), 3),
        ([("LeafSlots", 3), ("TSplit", 2), ("Slots", 5)], 4),
    ] {
        let error = refused(&sizes, keys);
        assert_eq!(error, "");
    }
    // Three pairs of one buffer for a leaf that has two are more than two leaves hold.
    let sizes = [("LeafSlots", 2), ("TSplit", 1), ("Slots", 5)];
    let error = refused(&sizes, 5);
    assert!(error.contains("one split would not make room"), "{error}");
    assert_eq!(refused(&sizes, 3), "");
}
