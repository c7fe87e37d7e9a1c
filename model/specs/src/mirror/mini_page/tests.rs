//! The models of `specs/mini_page/`, run by the mirror alone.

use std::path::{Path, PathBuf};

use stateright::{Checker, Model};
use strum::EnumCount;

use super::Mirror;
use super::mini_page::{Bug, MiniPage};
use crate::{Config, graph};

fn models() -> Vec<(PathBuf, Config)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/mini_page");
    let files = std::fs::read_dir(folder).expect("specs/mini_page is there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let models = paths.filter(|path| path.extension().is_some_and(|e| e == "cfg"));
    models
        .map(|path| {
            (
                path.clone(),
                Config::read(&path).expect("it is well formed"),
            )
        })
        .collect()
}

#[test]
fn every_seeded_bug_is_caught_by_the_invariant_that_its_model_names() {
    // The mirror does not judge properties: there it must find nothing.
    let mut caught = 0;
    for (path, config) in models() {
        let model = MiniPage::from_config(&config).expect("the mirror has room for it");
        if model.bug == Bug::None {
            continue;
        }
        let found = graph::counterexample(&model).map(|found| found.property);
        let judged = config.must_violate().filter(|name| {
            let mut invariants = config.invariants.iter();
            invariants.any(|invariant| invariant == name)
        });
        assert_eq!(found.as_deref(), judged, "{}", path.display());
        caught += 1;
    }
    assert_eq!(caught, Bug::COUNT - 1, "each bug but none has a model");
}

#[test]
fn the_smoke_model_has_as_many_states_as_tlc_counts() {
    let all = models();
    let smoke = all
        .iter()
        .find(|(path, _)| path.ends_with("MCMiniPage_smoke.cfg"));
    let (_, config) = smoke.expect("there is a smoke model");
    let model = MiniPage::from_config(config).expect("the mirror has room for it");
    let checker = model.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), 67_749);
}
