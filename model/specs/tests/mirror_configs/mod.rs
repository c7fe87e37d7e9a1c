//! Checks a mirror on its configurations. Shared by the tests of all mirrors.

use std::path::PathBuf;

use treering_specs::check::mirrors;
use treering_specs::{Config, ConfigError};

/// A spec and its folder in `specs/`.
pub(crate) struct Spec(pub(crate) &'static str, pub(crate) &'static str);

impl Spec {
    pub(crate) fn config(&self, name: &str) -> Result<Config, ConfigError> {
        let Spec(spec, folder) = self;
        let specs = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../specs")
            .join(folder);
        Config::read(&specs.join(format!("MC{spec}_{name}.cfg")))
    }

    /// Checks that each seeded bug violates its invariant after this many states.
    pub(crate) fn catches(&self, bugs: &[(&str, &str, usize)]) {
        for (bug, invariant, states) in bugs {
            let config = self.config(bug).unwrap();
            assert_eq!(config.must_violate(), Some(*invariant), "{bug}");
            let mirror = mirrors::open(self.0, &config).unwrap();
            let found = mirror.counterexample().expect(bug);
            assert_eq!(found.property, *invariant, "{bug}");
            assert_eq!(found.steps.len(), *states, "{bug}");
        }
    }

    /// Checks that each model holds and has this many distinct states.
    pub(crate) fn holds(&self, models: &[(&str, u64)]) {
        for (model, states) in models {
            let config = self.config(model).unwrap();
            let run = mirrors::open(self.0, &config).unwrap().run();
            assert!(!run.violated, "{model}");
            assert_eq!(run.distinct, *states, "{model}");
        }
    }

    /// Checks that the mutation's configuration is refused if an operator is unbounded.
    pub(crate) fn needs_bound(&self, operator: &str) {
        let mut config = self.config("mutation").unwrap();
        config.overrides.remove(operator);
        let refused = mirrors::open(self.0, &config).err().unwrap();
        assert!(
            refused
                .to_string()
                .contains(&format!("{operator} <- MC{operator}"))
        );
    }
}
