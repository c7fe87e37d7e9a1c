//! The code follows its architecture: import cycles are small and stay within a folder,
//! dependencies between crates are acyclic, and no file is too long to read in one go.
//!
//! `docs/ARCHITECTURE.md` describes the architecture.

mod circles;
mod imports;
mod interface;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imports::Imports;

/// The crates, and those that each may depend on. All other dependencies are forbidden.
const CRATES: &[(&str, &[&str])] = &[
    ("traces", &[]),
    ("engine", &[]),
    ("sim", &["treering-engine", "treering-traces"]),
    (
        "drive",
        &["treering-engine", "treering-sim", "treering-traces"],
    ),
    ("model/oracle", &["treering-engine"]),
    ("model/specs", &["treering-engine", "treering-oracle"]),
    ("model/adapters", &["treering-engine", "treering-oracle"]),
    (
        "model/mutants",
        &["treering-engine", "treering-oracle", "treering-specs"],
    ),
    (
        "cli",
        &[
            "treering-adapters",
            "treering-drive",
            "treering-engine",
            "treering-oracle",
            "treering-sim",
            "treering-specs",
            "treering-traces",
        ],
    ),
    (
        "bench",
        &[
            "treering-adapters",
            "treering-engine",
            "treering-oracle",
            "treering-sim",
            "treering-traces",
        ],
    ),
];

/// Maximum number of files in an import cycle.
const LARGEST_CIRCLE: usize = 3;

/// Maximum number of lines in a file.
const MOST_LINES: usize = 600;

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("`cli` is a folder of the repository")
        .to_owned()
}

#[test]
fn import_cycles_have_at_most_three_files_in_one_folder() {
    let mut wrong = Vec::new();
    for (name, _) in CRATES {
        let imports = Imports::read(&root().join(name).join("src"));
        assert!(imports.files() > 0, "{name} has sources");
        for circle in circles::of(imports.arrows()) {
            let folders: BTreeMap<_, _> = circle
                .iter()
                .map(|file| (imports.folder(file), file))
                .collect();
            if circle.len() > LARGEST_CIRCLE || folders.len() > 1 {
                let shown: Vec<_> = circle
                    .iter()
                    .map(|file| {
                        file.strip_prefix(root())
                            .unwrap_or(file)
                            .display()
                            .to_string()
                    })
                    .collect();
                wrong.push(format!("{name}: {}", shown.join(" ↔ ")));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "expected import cycles of at most {LARGEST_CIRCLE} files within one folder; found\n{}",
        wrong.join("\n")
    );
}

#[test]
fn dependencies_between_crates_are_acyclic() {
    for (name, allowed) in CRATES {
        let manifest = root().join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("is there");
        // `[dev-dependencies]` are not checked, because tests may use more crates.
        let mut in_dependencies = false;
        for line in text.lines() {
            if let Some(section) = line.trim().strip_prefix('[') {
                in_dependencies = section.starts_with("dependencies");
            } else if in_dependencies && line.starts_with("treering-") {
                let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
                let depends_on = &line[..end];
                assert!(
                    allowed.contains(&depends_on),
                    "{name} depends on {depends_on}; expected only {allowed:?}"
                );
            }
        }
    }
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let mut long = Vec::new();
    for (name, _) in CRATES {
        for file in imports::sources(&root().join(name)) {
            let lines = std::fs::read_to_string(&file)
                .expect("reads")
                .lines()
                .count();
            if lines > MOST_LINES {
                let shown = file.strip_prefix(root()).unwrap_or(&file);
                long.push(format!("{} has {lines}", shown.display()));
            }
        }
    }
    assert!(
        long.is_empty(),
        "expected at most {MOST_LINES} lines per file; found\n{}",
        long.join("\n")
    );
}

/// The crates that other projects use as libraries.
const LIBRARIES: &[&str] = &["engine", "traces", "sim", "model/oracle", "model/specs"];

/// `API.txt` lists the public interface of a crate. A change of that list affects users and belongs
/// in `CHANGELOG.md`. Run with `TREERING_WRITE_API=1` to rewrite the lists.
#[test]
fn public_interfaces_match_their_api_lists() {
    let write = std::env::var_os("TREERING_WRITE_API").is_some();
    for name in LIBRARIES {
        let names = interface::of(&root().join(name).join("src"));
        assert!(names.len() > 10, "{name}: {names:?}");
        let (file, found) = (root().join(name).join("API.txt"), names.join("\n") + "\n");
        if write {
            std::fs::write(&file, &found).expect("writes");
        }
        let listed = std::fs::read_to_string(&file).unwrap_or_default();
        let listed: Vec<_> = listed.lines().collect();
        let gone = listed
            .iter()
            .filter(|line| !names.iter().any(|name| name == *line));
        let new = names.iter().filter(|name| !listed.contains(&name.as_str()));
        let differ: Vec<_> = gone
            .map(|line| format!("gone: {line}"))
            .chain(new.map(|line| format!("new: {line}")))
            .collect();
        assert!(differ.is_empty(), "{name}/API.txt:\n{}", differ.join("\n"));
    }
}
