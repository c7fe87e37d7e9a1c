//! Checks mirrors on their configurations: the bugs that they must find, the invariants that the
//! bugs violate, and the correct models.

mod leaf_buffering;
mod overflow;
mod page_shadowing;
mod page_versions;
mod surrogate_buffer;
mod wal_recovery;
mod write_batch;

use std::path::PathBuf;
use std::thread;

use treering_specs::check::mirrors;
use treering_specs::{Config, ConfigError, Value};

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

const ALL: [Expected; 7] = [
    leaf_buffering::EXPECTED,
    overflow::EXPECTED,
    page_shadowing::EXPECTED,
    page_versions::EXPECTED,
    surrogate_buffer::EXPECTED,
    wal_recovery::EXPECTED,
    write_batch::EXPECTED,
];

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
            let found = mirror.counterexample().expect(&name);
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
            let run = mirrors::open(expected.spec, &config).unwrap().run();
            assert!(!run.violated, "{} {model}", expected.spec);
            assert_eq!(run.distinct, *states, "{} {model}", expected.spec);
        }
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
