//! `treering explore` shows a counterexample as a story.

#[path = "support/browser.rs"]
mod browser;
#[path = "support/serving.rs"]
mod serving;
mod support;

use std::path::{Path, PathBuf};

use support::treering;

/// Runs a command that must end with this status, and returns what it printed.
fn ends(folder: &Path, words: &[&str], status: i32) -> String {
    let output = treering(folder, words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    said
}

fn specs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs")
}

/// The data of a page.
fn story(page: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(page).unwrap();
    let data = text.split_once("finding} = ").unwrap().1;
    let data = data.split_once(";\nconst $").unwrap().0;
    serde_json::from_str(data).unwrap()
}

#[test]
fn a_finding_opens_by_its_name_with_lanes_changes_and_sources() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let said = ends(
        folder,
        &["explore", "WalRecovery 1", "--html", "story.html"],
        0,
    );
    assert_eq!(
        said,
        "story.html: WalRecovery published_no-wal-rule, 8 states\n"
    );
    let data = story(&folder.join("story.html"));
    let finding = data["finding"].as_str().unwrap();
    assert!(finding.starts_with("WalRecovery 1: A later write survives"));
    let story = &data["story"];
    assert_eq!(story["property"], "PrefixInv");
    assert_eq!(
        story["lanes"],
        serde_json::json!(["c1", "c2", "background", "device"])
    );
    let steps = story["steps"].as_array().unwrap();
    let lanes: Vec<_> = steps.iter().map(|step| step["lane"].as_u64()).collect();
    // Two clients write, their page is written back, the power fails.
    let wanted = [0, 0, 1, 1, 1, 2, 3].map(Some);
    assert_eq!(lanes[1..], wanted);
    let written = &steps[6];
    assert_eq!(written["action"], "WriteBack");
    assert_eq!(written["changes"][0]["path"], "dirtied[k2]");
    assert_eq!(written["tla"]["file"], "specs/wal_recovery/WalRecovery.tla");
    assert_eq!(written["engine"][0]["item"], "Pager::write_picked");
    let text = written["engine"][0]["text"].as_str().unwrap();
    assert!(text.contains("fn write_picked(&self"), "{text}");
}

/// No variable of the client changes when its mini-page grows.
#[test]
fn a_step_is_in_the_lane_of_the_client_that_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["explore", "MiniPage 1", "--html", "mini.html"], 0);
    let data = story(&folder.join("mini.html"));
    let steps = data["story"]["steps"].as_array().unwrap();
    let grow = steps.iter().find(|step| step["action"] == "Grow").unwrap();
    assert_eq!(grow["lane"], 0, "{grow}");
}

#[test]
fn the_same_model_is_found_by_its_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let by = |words: &[&str]| {
        let words = [&["explore"], words, &["--html", "-"]].concat();
        ends(folder, &words, 0)
    };
    let page = by(&["WalRecovery", "--only", "published_no-epoch"]);
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert_eq!(page, by(&["published_no-epoch"]));
}

#[test]
fn without_the_engine_beside_the_specs_the_story_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for part in ["contract", "wal_recovery"] {
        std::fs::create_dir_all(folder.join("specs").join(part)).unwrap();
        for entry in std::fs::read_dir(specs().join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap();
                std::fs::copy(&path, folder.join("specs").join(part).join(name)).unwrap();
            }
        }
    }
    std::fs::copy(specs().join("pom.xml"), folder.join("specs/pom.xml")).unwrap();
    let line = ["explore", "page-before-log", "--html", "story.html"];
    let only = ["--specs", "specs"];
    let words = ["explore", "WalRecovery", "--only", "page-before-log"];
    let words = [&words[..], &line[2..], &only].concat();
    ends(folder, &words, 0);
    let data = story(&folder.join("story.html"));
    assert_eq!(data["story"]["has_engine"], false);
    let steps = data["story"]["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    assert_eq!(last["tla"]["item"], "WriteBack");
    assert_eq!(last["engine"], serde_json::json!([]));
}

#[test]
fn what_is_no_story_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &["WalRecovery", "--only", "no-such"],
            2,
            "expected one of smoke",
        ),
        (&["WalRecovery 99"], 2, "has no such finding"),
        (&["NoSuchThing"], 2, "no such spec, finding or model"),
        (&["smoke"], 2, "have a model of this name"),
        (
            &["WalRecovery", "--only", "smoke"],
            4,
            "no property is violated",
        ),
        (&["WalRecovery", "--html", "x.html"], 2, "expected a story"),
        (
            &["WalRecovery 1", "--html", "nowhere/x.html"],
            2,
            "does not exist",
        ),
    ];
    for (words, status, why) in cases {
        let said = ends(folder, &[&["explore"], words].concat(), status);
        assert!(said.contains(why), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    }
}

#[test]
fn a_story_is_served_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let command = "treering explore WalRecovery --only page-before-log";
    serving::serves(folder.path(), command, "--address").unwrap();
}

#[test]
fn a_browser_shows_the_story_in_both_colour_schemes() {
    let Some(program) = browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let page = folder.join("story.html");
    ends(
        folder,
        &["explore", "CircularBuffer 3", "--html", "story.html"],
        0,
    );
    for (width, dark) in [(1400, false), (1400, true), (420, false)] {
        let view = browser::View { width, dark };
        let shown = browser::open(&program, &page, view, &folder.join("shot.png"));
        assert!(shown.contains("The initial state"), "{shown}");
        assert!(shown.contains("class=\"pill\">LockPage</span>"), "{shown}");
        assert!(shown.contains("NoStraddleInv"), "{shown}");
    }
}
