//! The mirror of PageShadowing against its configurations: the bugs it must find, and by which name.

use std::path::PathBuf;

use treering_model::check::mirrors;
use treering_model::{Config, ConfigError};

fn config(name: &str) -> Result<Config, ConfigError> {
    let specs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../specs/page_shadowing");
    Config::read(&specs.join(format!("MCPageShadowing_{name}.cfg")))
}

/// Every seeded bug, the invariant that it violates, and the states on the way there.
const BUGS: [(&str, &str, usize); 18] = [
    ("believes-torn-slot", "ImageInv", 6),
    ("checkpoint-skips-flush", "RedoStartInv", 6),
    ("evicts-dirty", "NotInMemoryInv", 4),
    ("forgets-dirty", "DirtyInv", 13),
    ("forgets-unflushed", "DurableInv", 6),
    ("logs-last-changes", "CleanInv", 16),
    ("names-slot", "CleanInv", 26),
    ("page-before-log", "WalRuleInv", 4),
    ("published_delta-at-once", "KeptInv", 22),
    ("published_nameless-log", "ImageInv", 17),
    ("published_ping-pong-at-once", "KeptInv", 21),
    ("published_resets-log-at-once", "KeptInv", 18),
    ("published_trims-at-once", "KeptInv", 17),
    ("published_trusts-what-it-reads", "KeptInv", 12),
    ("restart-skips-flush", "DurableInv", 6),
    ("takes-first-slot", "BitmapInv", 15),
    ("trims-late", "CleanInv", 9),
    ("trims-live-log", "CleanInv", 12),
];

#[test]
fn every_seeded_bug_is_caught_by_its_invariant_on_the_shortest_way() {
    for (bug, invariant, states) in BUGS {
        let config = config(bug).unwrap();
        assert_eq!(config.must_violate(), Some(invariant), "{bug}");
        let mirror = mirrors::open("PageShadowing", &config).unwrap();
        let found = mirror.counterexample().expect(bug);
        assert_eq!(found.property, invariant, "{bug}");
        assert_eq!(found.steps.len(), states, "{bug}");
    }
}

#[test]
fn without_a_bug_nothing_is_violated() {
    let holding = [
        ("recovery", 13_690),
        ("mutation", 31_827),
        ("three-segments", 47_845),
        ("two-pages", 56_059),
    ];
    for (model, states) in holding {
        let run = mirrors::open("PageShadowing", &config(model).unwrap())
            .unwrap()
            .run();
        assert!(!run.violated, "{model}");
        assert_eq!(run.distinct, states, "{model}");
    }
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    let mut config = config("mutation").unwrap();
    config.overrides.remove("MayRestart");
    let refused = mirrors::open("PageShadowing", &config).err().unwrap();
    assert!(refused.to_string().contains("MayRestart <- MCMayRestart"));
}
