//! `treering check` without any installed tools: it runs the mirrors, and reports missing tools and
//! unexpected results.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn treering(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_treering"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    treering(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Copies the contract's folder, so that tests can damage it.
fn copied() -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: PathBuf, to: &str| {
        std::fs::copy(&from, folder.path().join(to))
            .unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    };
    std::fs::create_dir(folder.path().join("contract")).unwrap();
    for file in [
        "pom.xml",
        "manifest.json",
        "contract/MCDurableMap_smoke.cfg",
    ] {
        copy(source.join(file), file);
    }
    folder
}

fn smoke(folder: &Path) -> Output {
    let specs = folder.to_str().unwrap();
    run(&[
        "check",
        "DurableMap",
        "--checker",
        "mirror",
        "--specs",
        specs,
        "--json",
        "-",
    ])
}

#[test]
fn every_mirror_agrees_with_the_manifest() {
    let output = run(&["check", "--checker", "mirror", "--mutations", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "treering.check/1");
    assert_eq!(document["complete"], true);
    let results = document["results"].as_array().unwrap();
    let holds = results.iter().filter(|r| r["verdict"] == "holds");
    assert!(holds.count() >= 1, "{document}");
    for result in results {
        let verdict = result["verdict"].as_str().unwrap();
        assert!(
            ["holds", "violated", "killed"].contains(&verdict),
            "{result}"
        );
    }
}

/// Checkers run in other working directories, so a relative path must be resolved first.
#[cfg(unix)]
#[test]
fn the_folder_of_specs_may_be_relative() {
    use std::os::unix::fs::PermissionsExt;
    let folder = copied();
    let program = folder.path().join("target/tla-mc-0.2.2/bin/tla-mc");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!/bin/sh\necho \"$@\" >>\"$0.told\"\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let name = folder.path().file_name().unwrap();
    let mut command = treering(&["check", "DurableMap", "--checker", "tla-mc", "--specs"]);
    command
        .arg(name)
        .current_dir(folder.path().parent().unwrap());
    command.env_remove("TLA_MC");
    let said = text(&command.output().unwrap().stderr);
    let told = std::fs::read_to_string(program.with_extension("told"));
    assert!(
        told.is_ok_and(|told| told.contains("MCDurableMap_smoke.cfg")),
        "{said}"
    );
}

#[test]
fn a_wrong_count_in_the_manifest_gives_status_1() {
    let folder = copied();
    assert_eq!(smoke(folder.path()).status.code(), Some(0));
    let path = folder.path().join("manifest.json");
    let manifest = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, manifest.replace("53000", "53001")).unwrap();
    let output = smoke(folder.path());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("expected distinct states 53001, found 53000"),
        "{said}"
    );
}

#[test]
fn an_unreadable_spec_gives_status_2_with_file_and_line() {
    let folder = copied();
    let path = folder.path().join("contract/MCDurableMap_smoke.cfg");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("MaxTail = 2", "MaxTail = {2")).unwrap();
    let output = smoke(folder.path());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("MCDurableMap_smoke.cfg, line "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    std::fs::write(&path, config.replace("MaxTail = 2", "MaxTail = 200")).unwrap();
    let output = smoke(folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("MaxTail: expected an integer 0 to "));

    std::fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    std::fs::write(&path, config).unwrap();
    let output = smoke(folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("manifest.json: "));
}

#[test]
fn a_model_without_room_in_its_mirror_gives_status_2_and_one_sentence() {
    let folder = copied();
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let name = "copy_on_write/MCCopyOnWrite_smoke.cfg";
    let config = std::fs::read_to_string(specs.join(name)).unwrap();
    let config = config.replace("Crashes = 1", "Crashes = 2");
    let config = config.replace("Restarts = 1", "Restarts = 2");
    std::fs::create_dir(folder.path().join("copy_on_write")).unwrap();
    std::fs::write(folder.path().join(name), config).unwrap();
    let mut command = treering(&["check", "CopyOnWrite", "--checker", "mirror", "--specs"]);
    let output = command.arg(folder.path()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the mirror has no room"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_missing_tool_gives_status_3_and_one_sentence() {
    let nowhere = tempfile::tempdir().unwrap();
    let without = |variable: &str, arguments: &[&str]| {
        let mut command = treering(arguments);
        command.env("PATH", nowhere.path()).env_remove("JAVA_HOME");
        command.env(variable, nowhere.path().join("nothing"));
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let tlc = without("JAVA_HOME", &["check", "DurableMap", "--checker", "tlc"]);
    assert!(tlc.contains("Java is missing"), "{tlc}");
    let second = without("TLA_MC", &["check", "DurableMap", "--checker", "tla-mc"]);
    assert!(second.contains("TLA_MC names"), "{second}");
}

/// A limit of zero bytes for files stands for a disk without room.
#[cfg(unix)]
#[test]
fn states_that_find_no_room_on_disk_give_status_3_and_one_sentence() {
    let check = |limit: &str, memory: &str| {
        let script = format!("trap '' XFSZ; {limit} exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_treering")]);
        command.args([
            "check",
            "Overflow",
            "--only",
            "inert",
            "--checker",
            "mirror",
        ]);
        command.args(["--memory", memory]).output().unwrap()
    };
    let refused = check("ulimit -f 0;", "0");
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in ["temporary file in", "File too large", "TMPDIR", "--memory"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // It is the files alone: with them, or with memory, the check passes.
    for (limit, memory) in [("", "0"), ("ulimit -f 0;", "64MiB")] {
        let passed = check(limit, memory);
        assert_eq!(passed.status.code(), Some(0), "{}", text(&passed.stderr));
    }
}

#[test]
fn mutants_are_named_without_running_them() {
    let output = run(&["check", "PageShadowing", "--mutate", "--list"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let list = text(&output.stdout);
    let names: Vec<&str> = list
        .lines()
        .filter_map(|l| l.split_once("  ").map(|l| l.0))
        .collect();
    assert!(names.len() > 200, "{list}");
    for name in &names {
        assert_eq!(name.split(':').count(), 4, "{name}");
    }
    let sampled = run(&[
        "check",
        "PageShadowing",
        "--mutate",
        "--list",
        "--sample",
        "10",
    ]);
    let sampled = text(&sampled.stdout);
    assert!(
        list.len() > 5 * sampled.len() && !sampled.is_empty(),
        "{sampled}"
    );
    assert!(sampled.lines().all(|line| list.contains(line)), "{sampled}");
}

#[test]
fn mutants_that_are_not_known_are_bad_usage() {
    for (arguments, told) in [
        (
            &["check", "DurableMap", "--mutate"][..],
            "DurableMap: expected a protocol",
        ),
        (
            &["check", "--mutate", "--mutant", "M:1:1:swap"][..],
            "M:1:1:swap: no mutant",
        ),
        (
            &["check", "--budget", "1s"][..],
            "--budget: expected --against-engine or --mutate",
        ),
    ] {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(told), "{said}");
    }
}
