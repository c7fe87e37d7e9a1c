//! Commands that texts tell their readers to type: the examples of `--help`, and the shell blocks
//! in documents.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command or subcommand, and its help text.
pub(crate) struct Help {
    /// The words after `treering`.
    pub(crate) path: Vec<String>,
    /// The help as a terminal of unlimited width shows it.
    text: String,
}

impl Help {
    /// The help of the command and all its subcommands.
    pub(crate) fn of_all() -> Vec<Help> {
        let mut found = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let help = Help {
                text: help_text(&path, 10_000),
                path,
            };
            for name in help.subcommands() {
                open.push([&help.path[..], &[name]].concat());
            }
            found.push(help);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// The command as a reader types it.
    pub(crate) fn name(&self) -> String {
        ["treering"]
            .into_iter()
            .chain(self.path.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Names of the direct subcommands.
    pub(crate) fn subcommands(&self) -> Vec<String> {
        section(&self.text, "Commands:")
            .iter()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    }

    /// Its examples, without the text after them.
    pub(crate) fn examples(&self) -> Vec<String> {
        section(&self.text, "EXAMPLES:")
            .iter()
            .map(|line| line.trim().split("   ").next().unwrap_or(line).to_owned())
            .collect()
    }

    /// The help as a terminal of a hundred columns shows it.
    pub(crate) fn on_a_terminal(&self) -> String {
        help_text(&self.path, 100)
    }
}

fn help_text(path: &[String], columns: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(path)
        .arg("--help")
        .env("COLUMNS", columns.to_string())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "treering {path:?} --help");
    String::from_utf8(output.stdout).expect("text")
}

/// Lines after a heading, up to an empty one.
fn section<'a>(text: &'a str, headline: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| *line != headline).skip(1);
    lines.take_while(|line| !line.trim().is_empty()).collect()
}

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The project's documents, in Markdown, by their paths from the root.
pub(crate) fn documents() -> Vec<String> {
    let mut found = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["bench", "docs", "engine", "model", "sim", "specs"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_str().expect("a name of text");
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// The text of a document.
pub(crate) fn read(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).expect("a document")
}

/// Commands in the shell blocks of a document, without comments.
pub(crate) fn shell_lines(document: &str) -> Vec<String> {
    let text = read(document);
    let (mut lines, mut within, mut open) = (Vec::new(), false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            within = line == "```sh";
            continue;
        }
        let line = line.split(" #").next().unwrap_or(line).trim();
        if !within || line.is_empty() || line.starts_with('#') {
            continue;
        }
        open.push_str(line.trim_end_matches('\\'));
        if !line.ends_with('\\') {
            lines.push(std::mem::take(&mut open));
        }
    }
    lines
}

/// The cargo commands in the running text of a document.
pub(crate) fn cargo_spans(document: &str) -> Vec<String> {
    let text = read(document);
    let (mut prose, mut within) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            within = !within;
        } else if !within {
            prose.push_str(line.trim());
            prose.push(' ');
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    spans
        .filter(|span| span.contains("cargo ") && !span.contains('"'))
        .map(str::to_owned)
        .collect()
}

/// Folders of the workspace's packages, by name.
fn packages() -> Vec<(String, PathBuf)> {
    let folders = [
        "bench",
        "cli",
        "drive",
        "engine",
        "model/oracle",
        "model/specs",
        "model/adapters",
        "model/mutants",
        "sim",
        "traces",
    ];
    let package = |folder: &&str| {
        let folder = root().join(folder);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let name = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        (name.expect("a name").trim_matches('"').to_owned(), folder)
    };
    folders.iter().map(package).collect()
}

/// Checks that the packages, features and targets of a cargo command exist. The command is not run:
/// that would take minutes, and the build that runs the test holds a lock.
pub(crate) fn cargo_names(line: &str) -> Result<(), String> {
    let own = line.split(" -- ").next().unwrap_or(line);
    let words: Vec<&str> = own.split_whitespace().collect();
    let values = |flags: &[&str]| -> Vec<&str> {
        let pairs = words.windows(2).filter(|pair| flags.contains(&pair[0]));
        pairs.flat_map(|pair| pair[1].split(',')).collect()
    };
    let known = packages();
    let mut named = values(&["-p", "--package"]);
    if let Some(name) = named
        .iter()
        .find(|name| known.iter().all(|(other, _)| other != *name))
    {
        return Err(format!("{line}: no package {name}"));
    }
    if named.is_empty()
        && (words.contains(&"run") || words.contains(&"--features"))
        && !words.contains(&"--example")
    {
        named.push("treering");
    }
    let folders: Vec<&Path> = known
        .iter()
        .filter(|(name, _)| named.is_empty() || named.contains(&name.as_str()))
        .map(|(_, folder)| folder.as_path())
        .collect();
    for feature in values(&["--features"]) {
        let feature = feature.rsplit('/').next().unwrap_or(feature);
        if !folders
            .iter()
            .any(|folder| features(folder).iter().any(|name| name == feature))
        {
            return Err(format!("{line}: no feature {feature}"));
        }
    }
    let kinds = [
        ("--example", "examples"),
        ("--test", "tests"),
        ("--bench", "benches"),
        ("--bin", "src/bin"),
    ];
    for (flag, below) in kinds {
        for target in values(&[flag]) {
            let is_there = |folder: &&Path| {
                let place = folder.join(below);
                place.join(format!("{target}.rs")).is_file()
                    || place.join(target).join("main.rs").is_file()
            };
            if target != "NAME" && !folders.iter().any(is_there) {
                return Err(format!("{line}: no {flag} {target}"));
            }
        }
    }
    Ok(())
}

fn features(folder: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let lines = manifest
        .lines()
        .skip_while(|line| *line != "[features]")
        .skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The script of the project that a line begins with.
pub(crate) fn script_exists(line: &str) -> Result<(), String> {
    let script = line.split(' ').next().unwrap_or(line);
    let is_there = root().join(script).is_file();
    is_there
        .then_some(())
        .ok_or_else(|| format!("{line}: no script {script}"))
}
