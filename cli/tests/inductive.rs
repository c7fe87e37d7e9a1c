//! `treering check --inductive`: an invariant that no step leads out of, and what breaks it.

mod support;

use support::treering;

const SPECS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");

fn inductive(args: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let fixed = ["check", "--inductive", "--specs", SPECS];
    let output = treering(folder.path(), &[&fixed, args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output.status.code(), out, err)
}

#[test]
fn the_invariant_of_shadowed_pages_is_inductive() {
    let args = [
        "PageShadowing",
        "--only",
        "recovery",
        "--states",
        "300",
        "--json",
        "-",
    ];
    let (status, out, err) = inductive(&args);
    assert_eq!(status, Some(0), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["schema"], "treering.inductive/1");
    let model = &report["models"][0];
    assert_eq!(model["kept"], 300);
    assert!(model["broken"].is_null(), "{report}");
    assert!(model["actions"]["Restart"].as_u64() > Some(100), "{report}");
    assert_eq!(inductive(&args).1, out, "the same seed, the same report");
}

#[test]
fn a_bug_or_a_conjunct_that_is_left_out_shows_the_step() {
    let (status, out, err) = inductive(&["PageShadowing", "--only", "trims-live-log"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("DeltaInv broken by Trim(0)"), "{out}");
    let without = [
        "PageShadowing",
        "--only",
        "mutation",
        "--without",
        "StableInv",
    ];
    let (status, out, err) = inductive(&without);
    assert_eq!(status, Some(1), "{err}");
    assert!(
        out.contains("After Checkpoint, AnchorInv does not:\n/\\ call"),
        "{out}"
    );
    assert!(
        err.contains("PageShadowing mutation: Checkpoint breaks AnchorInv"),
        "{err}"
    );
}

#[test]
fn what_has_no_such_invariant_is_said() {
    let (status, _, err) = inductive(&["DurableMap"]);
    assert_eq!(status, Some(4), "{err}");
    assert!(err.contains("PageShadowing"), "{err}");
    let (status, _, err) = inductive(&["PageShadowing", "--without", "OakInv"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("expected one of PositionsInv"), "{err}");
}
