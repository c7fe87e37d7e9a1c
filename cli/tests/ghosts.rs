//! `treering check --ghosts`: history variables decide nothing, and one that does is found.

mod support;

use support::{copy_specs, treering};

const SPECS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");

#[test]
fn what_only_remembers_decides_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = [
        "check",
        "WalRecovery",
        "SurrogateBuffer",
        "--ghosts",
        "--only",
        "smoke",
    ];
    let output = treering(
        folder.path(),
        &[&args[..], &["--specs", SPECS, "--json", "-"]].concat(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], "treering.ghosts/1");
    let models = report["models"].as_array().expect("models");
    assert_eq!(models.len(), 2, "{report}");
    for model in models {
        assert!(model["decided"].is_null(), "{model}");
        assert!(model["states"].as_u64() > Some(1000), "{model}");
    }
}

/// The number of crashes decides whether there is another. Called a ghost, it is found out.
#[test]
fn a_ghost_that_decides_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let specs = folder.path().join("specs");
    copy_specs(&specs);
    let file = specs.join("wal_recovery/WalState.tla");
    let text = std::fs::read_to_string(&file).expect("the module");
    assert!(text.contains("    \\* For the bounds\n"));
    std::fs::write(&file, text.replace("    \\* For the bounds\n", "")).expect("a module");
    let args = [
        "check",
        "WalRecovery",
        "--ghosts",
        "--only",
        "smoke",
        "--specs",
        "specs",
    ];
    let output = treering(folder.path(), &args);
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("can be taken with"), "{told}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("WalRecovery smoke: a ghost decides a step"),
        "{said}"
    );
    // The contract has no ghosts.
    let output = treering(
        folder.path(),
        &["check", "DurableMap", "--ghosts", "--specs", SPECS],
    );
    assert_eq!(output.status.code(), Some(4));
    let output = treering(
        folder.path(),
        &["check", "Oak", "--ghosts", "--specs", SPECS],
    );
    assert_eq!(output.status.code(), Some(2));
}
