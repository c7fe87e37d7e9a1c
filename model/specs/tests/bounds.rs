//! `specs/BOUNDS.md` speaks of every spec, and names only models that exist and hold.

use std::path::Path;

use treering_specs::check::configs::discover;
use treering_specs::check::mirrors::{COMPOSED, SPECS};

#[test]
fn the_models_that_lift_a_bound_exist() {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
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
    // The contract has no protocol whose bounds could hide anything.
    for spec in known.iter().filter(|spec| **spec != "DurableMap") {
        assert!(told.iter().any(|heading| heading == spec), "{spec}");
    }
    assert!(named > 30, "{named}");
}
