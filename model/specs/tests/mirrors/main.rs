//! Checks mirrors on their configurations: the bugs that they must find, the invariants that the
//! bugs violate, and the correct models.

mod expected;

use std::path::PathBuf;
use std::thread;

use treering_specs::check::mirrors::{self, Effort, RunError};
use treering_specs::{Config, ConfigError, Value};

use expected::ALL;

/// What a mirror must find in the configurations of its spec.
struct Expected {
    spec: &'static str,
    /// The folder in `specs/`.
    folder: &'static str,
    /// Every seeded bug, the invariant that it violates, and the number of states on the shortest
    /// path.
    bugs: &'static [(&'static str, &'static str, usize)],
    /// Correct models, and the number of their distinct states.
    holds: &'static [(&'static str, u64)],
    /// An operator that a configuration must bound.
    bounded: &'static str,
}

/// What the mirror of a spec must find.
fn of(spec: &str) -> &'static Expected {
    let mut all = ALL.iter();
    all.find(|expected| expected.spec == spec).expect(spec)
}

impl Expected {
    fn config(&self, name: &str) -> Result<Config, ConfigError> {
        let specs = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs"));
        let file = format!("MC{}_{name}.cfg", self.spec);
        Config::read(&specs.join(self.folder).join(file))
    }

    /// Checks that each of these configurations violates its invariant after this many states.
    fn violates(&self, configurations: &[(&str, &str, usize)]) {
        for (name, invariant, states) in configurations {
            let config = self.config(name).unwrap();
            let name = format!("{} {name}", self.spec);
            assert_eq!(config.must_violate(), Some(*invariant), "{name}");
            let mirror = mirrors::open(self.spec, &config).unwrap();
            let found = mirror.counterexample().unwrap().expect(&name);
            assert_eq!(found.property, *invariant, "{name}");
            assert_eq!(found.steps.len(), *states, "{name}");
        }
    }

    /// Checks that the mirror refuses this configuration, and that the error says so.
    fn refuses(&self, config: &Config, why: &str) {
        let refused = mirrors::open(self.spec, config).err().expect(self.spec);
        assert!(refused.to_string().contains(why), "{refused}");
    }

    /// Checks that the mutation's configuration is refused if a constant has this value.
    fn refuses_constant(&self, constant: &str, value: Value, why: &str) {
        let mut config = self.config("mutation").unwrap();
        config.constants.insert(constant.into(), value);
        self.refuses(&config, why);
    }
}

fn check_all(check: impl Fn(&Expected) + Sync) {
    thread::scope(|scope| {
        for expected in &ALL {
            scope.spawn(|| check(expected));
        }
    });
}

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    check_all(|expected| expected.violates(expected.bugs));
}

#[test]
fn correct_models_violate_nothing() {
    check_all(|expected| {
        for (model, states) in expected.holds {
            let config = expected.config(model).unwrap();
            let run = mirrors::open(expected.spec, &config).unwrap();
            let run = run.run(&Effort::default()).unwrap();
            assert!(!run.violated, "{} {model}", expected.spec);
            assert_eq!(run.distinct, *states, "{} {model}", expected.spec);
        }
    });
}

#[test]
fn states_that_are_kept_in_files_are_the_same_states() {
    check_all(|expected| {
        let (model, states) = expected.holds[0];
        let config = expected.config(model).unwrap();
        let mirror = mirrors::open(expected.spec, &config).unwrap();
        let run = |memory| mirror.run(&Effort { threads: 1, memory }).unwrap();
        let (in_memory, in_files) = (run(Effort::default().memory), run(0));
        assert_eq!(in_files.distinct, states, "{} {model}", expected.spec);
        assert_eq!(in_files.depth, in_memory.depth, "{} {model}", expected.spec);
    });
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    for expected in &ALL {
        let operator = expected.bounded;
        let mut config = expected.config("mutation").unwrap();
        config.overrides.remove(operator);
        expected.refuses(&config, &format!("{operator} <- MC{operator}"));
    }
}

#[test]
fn a_model_that_needs_more_room_than_its_mirror_has_is_refused_while_it_runs() {
    let mut config = of("CopyOnWrite").config("smoke").unwrap();
    for limit in ["MaxCrashes", "MaxRestarts"] {
        config.constants.insert(limit.into(), Value::int(2));
    }
    let mirror = mirrors::open("CopyOnWrite", &config).unwrap();
    let refused = |error: Option<ConfigError>| {
        let error = error.expect("an error").to_string();
        assert!(error.contains("MCCopyOnWrite_smoke.cfg"), "{error}");
        assert!(error.contains("8 versions of a block"), "{error}");
    };
    // A thread of its own does not make it a panic either.
    for threads in [1, 3] {
        let effort = Effort {
            threads,
            ..Effort::default()
        };
        let Some(RunError::Config(error)) = mirror.run(&effort).err() else {
            panic!("expected an error of the configuration");
        };
        refused(Some(error));
    }
    refused(mirror.graph().err());
    refused(mirror.labels().err());
    refused(mirror.counterexample().err());
}

#[test]
fn an_impossible_plan_is_refused() {
    let plan = Value::set([Value::Int(19)]);
    of("LeafBuffering").refuses_constant("Plan", plan, "10 n + k");
}

#[test]
fn a_home_that_is_not_a_key_is_refused() {
    of("Overflow").refuses_constant("Home", Value::model("k9"), "Home");
}

/// The same for long values.
const OVERFLOW_PROBES: [(&str, &str, usize); 3] = [
    ("reach-no-redo", "ReachNoRedo", 10),
    ("reach-page", "ReachPage", 5),
    ("reach-stale", "ReachStale", 15),
];

#[test]
fn recoveries_without_redo_pages_in_redo_and_stale_blocks_are_reached() {
    of("Overflow").violates(&OVERFLOW_PROBES);
}

/// The same for pages and their log blocks.
const SHADOW_PROBES: [(&str, &str, usize); 4] = [
    ("reach-no-redo", "ReachNoRedo", 7),
    ("reach-evicted", "ReachEvicted", 2),
    ("reach-untrimmed", "ReachUntrimmed", 8),
    ("reach-trimmed-log", "ReachTrimmedLog", 18),
];

#[test]
fn evicted_pages_and_trims_that_are_not_durable_are_reached() {
    of("PageShadowing").violates(&SHADOW_PROBES);
}

/// The same for pages that decay.
const DECAY_PROBES: [(&str, &str, usize); 3] = [
    ("reach-told-decayed", "ReachTold", 8),
    ("reach-told-lost", "ReachTold", 8),
    ("reach-told-zeros", "ReachTold", 14),
];

#[test]
fn each_kind_of_damage_is_reached_and_told_of() {
    of("PageVersions").violates(&DECAY_PROBES);
}

#[test]
fn an_unknown_kind_of_damage_is_refused() {
    let unknown = Value::set([Value::str("molten")]);
    of("PageVersions").refuses_constant("Becomes", unknown, "molten");
}

#[test]
fn a_configuration_where_one_split_frees_too_little_is_refused() {
    let mut config = of("SurrogateBuffer").config("recovery").unwrap();
    let one = Value::int(1);
    config.constants.insert("LeafSlots".into(), one.clone());
    config.constants.insert("TSplit".into(), one);
    of("SurrogateBuffer").refuses(&config, "one split");
}

/// What must be reachable, so that the models show it.
const PROBES: [(&str, &str, usize); 4] = [
    ("reach-help", "ReachHelp", 15),
    ("reach-renewal", "ReachRenewal", 10),
    ("reach-second-crash", "ReachSecondCrash", 21),
    ("renews-each-time", "RoomInv", 19),
];

#[test]
fn renewal_help_and_repeated_crashes_are_reached() {
    of("WriteBatch").violates(&PROBES);
}

/// The same for the copy-on-write store.
const COW_PROBES: [(&str, &str, usize); 5] = [
    ("reach-dead", "ReachDead", 13),
    ("reach-held", "ReachHeld", 12),
    ("reach-new-owner", "ReachNewOwner", 12),
    ("reach-older-place", "ReachOlderPlace", 11),
    ("reach-torn-taken", "ReachTornTaken", 12),
];

#[test]
fn held_slots_new_owners_and_the_older_superblock_are_reached() {
    of("CopyOnWrite").violates(&COW_PROBES);
}

#[test]
fn a_home_that_is_not_a_page_is_refused() {
    of("CopyOnWrite").refuses_constant("Home", Value::model("p9"), "Home");
}

/// The same for the redo log.
const REDO_PROBES: [(&str, &str, usize); 7] = [
    ("reach-both-forms", "ReachBothForms", 16),
    ("reach-dead-record", "ReachDeadRecord", 5),
    ("reach-left-over", "ReachLeftOver", 11),
    ("reach-noticed", "ReachNoticed", 10),
    ("reach-torn", "ReachTorn", 5),
    ("reach-unnoticed", "ReachUnnoticed", 9),
    ("reach-witness", "ReachWitness", 8),
];

#[test]
fn torn_blocks_dead_records_and_logs_of_both_forms_are_reached() {
    of("RedoLog").violates(&REDO_PROBES);
}

#[test]
fn a_log_of_an_unknown_form_is_refused() {
    let packings = Value::set([Value::str("loose")]);
    of("RedoLog").refuses_constant("Packings", packings, "packed");
}

/// The same for the snapshot of the index.
const SNAPSHOT_PROBES: [(&str, &str, usize); 6] = [
    ("reach-cut-off", "ReachCutOff", 7),
    ("reach-damage", "ReachDamage", 9),
    ("reach-mixture", "ReachMixture", 19),
    ("reach-moved", "ReachMoved", 6),
    ("reach-new-owner", "ReachNewOwner", 14),
    ("reach-under-chunk", "ReachUnderChunk", 16),
];

#[test]
fn mixed_snapshots_new_owners_and_lost_writes_are_reached() {
    of("IndexSnapshot").violates(&SNAPSHOT_PROBES);
}

#[test]
fn an_index_without_its_least_fence_is_refused() {
    let fences = Value::set([Value::Int(2)]);
    of("IndexSnapshot").refuses_constant("Fences", fences, "least key");
}

/// The same for leaves that change their layout.
const LAYOUT_PROBES: [(&str, &str, usize); 8] = [
    ("reach-back", "ReachBack", 20),
    ("reach-dense-middle", "ReachDenseMiddle", 21),
    ("reach-dense-split", "ReachDenseSplit", 12),
    ("reach-few", "ReachFew", 12),
    ("reach-other-options", "ReachOtherOptions", 15),
    ("reach-partition", "ReachPartition", 11),
    ("reach-semi-back", "ReachBack", 24),
    ("reach-semi-split", "ReachDenseMiddle", 17),
];

#[test]
fn conversions_both_ways_and_splits_of_dense_leaves_are_reached() {
    of("LeafLayout").violates(&LAYOUT_PROBES);
}

#[test]
fn a_plan_with_an_unknown_key_is_refused() {
    let plan = Value::set([Value::Int(19)]);
    of("LeafLayout").refuses_constant("Plan", plan, "10 n + k");
}
