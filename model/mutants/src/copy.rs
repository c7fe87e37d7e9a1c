//! Copies the project, with all mutants of the engine in one build, each behind a switch.
//!
//! Not every mutant compiles: operands may have other types, and borrows may end too early. The
//! compiler reports the place, and the mutants that cover it are left out until the rest compiles.
//! So thousands of mutants need one build, instead of one build of minutes each.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::find::{Mutant, mutants};
use crate::splice::{splice, switches};

/// The files and folders that get mutants, below `engine/src`.
const ROOMS: [&str; 18] = [
    "trees",
    "pages",
    "wal",
    "ring",
    "mini",
    "pm",
    "pager",
    "cache",
    "index",
    "node",
    "device/file.rs",
    "device/file/punch.rs",
    "store/recovery.rs",
    "snapshot.rs",
    "store/batch.rs",
    "store/checkpoint.rs",
    "store/room.rs",
    "layout.rs",
];

/// The result of `make`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) schema: String,
    /// The mutants that compile.
    pub(crate) mutants: Vec<Mutant>,
    /// The number of mutants found, including those that do not compile.
    pub(crate) found: usize,
    /// The engine's own tests. Each program has all mutants.
    pub(crate) tests: Vec<TestProgram>,
}

/// A program of the engine's tests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TestProgram {
    /// `lib`, or the name of the file in `tests`.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
}

/// The prefix of the files that list the mutants that a run reached.
pub(crate) const HITS: &str = "hits-";

/// The file beside the copy that lists its mutants.
pub(crate) const LIST: &str = "mutants.json";

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

/// Copies tracked and new files, but no build output.
fn copy_project(project: &Path, to: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(project)
        .output()
        .context("git ls-files")?;
    ensure!(
        listed.status.success(),
        "git ls-files failed in {}",
        project.display()
    );
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (project.join(name), to.join(name));
        let Ok(bytes) = std::fs::read(&from) else {
            continue;
        };
        // Up-to-date files are not touched, so that the next build can reuse the results of the
        // last one.
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        std::fs::write(&to, bytes).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// Makes the copy in `to`, and builds the command there, and the engine's tests if `with_tests` is
/// set.
pub(crate) fn make(project: &Path, to: &Path, with_tests: bool) -> Result<Made> {
    copy_project(project, to)?;
    let engine = project.join("engine/src");
    let mut files = Vec::new();
    for room in ROOMS {
        let path = engine.join(room);
        if path.is_dir() {
            rust_files(&path, &mut files)?;
            let beside = engine.join(format!("{room}.rs"));
            files.extend(beside.exists().then_some(beside));
        } else {
            ensure!(path.exists(), "engine/src/{room} no longer exists");
            files.push(path);
        }
    }
    let mut sources = BTreeMap::new();
    let mut all: Vec<Mutant> = Vec::new();
    for path in files {
        let name = path.strip_prefix(project)?.display().to_string();
        if name.contains("/tests") {
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        all.extend(mutants(&name, &source, all.len()).with_context(|| name.clone())?);
        sources.insert(name, source);
    }
    let found = all.len();
    std::fs::write(to.join("engine/src/mutant.rs"), switches(found))?;
    let lib = std::fs::read_to_string(engine.join("lib.rs"))?;
    let lib = format!("{lib}\n#[doc(hidden)]\npub mod mutant;\n");
    std::fs::write(to.join("engine/src/lib.rs"), lib)?;
    for round in 1.. {
        for (name, source) in &sources {
            let of_file: Vec<&Mutant> = all.iter().filter(|m| m.file == *name).collect();
            std::fs::write(to.join(name), splice(source, &of_file))?;
        }
        let bad = misfits(to, &all, &sources)?;
        eprintln!(
            "round {round}: {} of {found} mutants, {} of which do not compile",
            all.len(),
            bad.len()
        );
        if bad.is_empty() {
            break;
        }
        ensure!(round < 40, "after {round} rounds the copy does not compile");
        all.retain(|mutant| !bad.contains(&mutant.number));
    }
    let built = cargo(to, "build").args(["-p", "treering"]).status()?;
    ensure!(
        built.success(),
        "the copy in {} does not build",
        to.display()
    );
    let made = Made {
        schema: "treering.mutants/2".into(),
        mutants: all,
        found,
        tests: match with_tests {
            true => tests(to)?,
            false => Vec::new(),
        },
    };
    std::fs::write(to.join(LIST), serde_json::to_vec_pretty(&made)?)?;
    forget_surveys(to)?;
    Ok(made)
}

fn cargo(folder: &Path, what: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .args([what, "--release"])
        .current_dir(folder)
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        // Plain arithmetic operators are switched, and an overflow kills a mutant.
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .env("RUSTFLAGS", "--cap-lints allow")
        .env("CARGO_TARGET_DIR", folder.join("target"));
    cargo
}

/// Removes earlier surveys, whose numbers refer to other mutants.
fn forget_surveys(copy: &Path) -> Result<()> {
    for entry in std::fs::read_dir(copy)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(HITS) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Builds the engine's tests.
fn tests(copy: &Path) -> Result<Vec<TestProgram>> {
    let built = cargo(copy, "test")
        .args(["-p", "treering-engine", "--lib", "--tests", "--no-run"])
        .arg("--message-format=json")
        .output()?;
    ensure!(
        built.status.success(),
        "the tests in {} do not build:\n{}",
        copy.display(),
        said(&built.stdout)
    );
    let mut tests = Vec::new();
    for line in String::from_utf8_lossy(&built.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if let (Some(executable), true) = (
            message["executable"].as_str(),
            message["profile"]["test"] == true,
        ) {
            let lib = message["target"]["kind"][0] == "lib";
            let name = message["target"]["name"].as_str().unwrap_or_default();
            tests.push(TestProgram {
                name: if lib { "lib" } else { name }.to_owned(),
                executable: executable.into(),
            });
        }
    }
    ensure!(!tests.is_empty(), "the engine has no tests");
    Ok(tests)
}

/// The numbers of the mutants that cover code that the compiler rejects.
fn misfits(copy: &Path, all: &[Mutant], sources: &BTreeMap<String, String>) -> Result<Vec<usize>> {
    let output = cargo(copy, "check")
        .args(["-p", "treering-engine", "--message-format=json"])
        .output()?;
    let mut bad = Vec::new();
    let mut spliced: HashMap<String, String> = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["message"]["level"] != "error" {
            continue;
        }
        let Some(spans) = message["message"]["spans"].as_array() else {
            continue;
        };
        let mut blame = |span: &Value, more: usize| -> Result<Vec<usize>> {
            let Some(name) = span["file_name"]
                .as_str()
                .filter(|name| sources.contains_key(*name))
            else {
                return Ok(Vec::new());
            };
            if !spliced.contains_key(name) {
                spliced.insert(name.to_owned(), std::fs::read_to_string(copy.join(name))?);
            }
            let place = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
            let range = place("byte_start").saturating_sub(more)..place("byte_end") + more;
            Ok(innermost(&spliced[name], range, all))
        };
        // If a borrow or move lasts too long, the error is reported elsewhere. Then the mutants at
        // the other places that the compiler names, or close by, are to blame.
        let mut of_this = Vec::new();
        for (primary, more) in [
            (true, 0),
            (false, 0),
            (false, 100),
            (false, 400),
            (false, 2000),
        ] {
            for span in spans
                .iter()
                .filter(|span| !primary || span["is_primary"] == true)
            {
                of_this.extend(blame(span, more)?);
            }
            if !of_this.is_empty() {
                break;
            }
        }
        bad.extend(of_this);
    }
    if bad.is_empty() && !output.status.success() {
        bail!(
            "the copy does not compile, and no mutant is to blame:\n{}",
            said(&output.stdout)
        );
    }
    bad.sort_unstable();
    bad.dedup();
    Ok(bad)
}

fn said(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let rendered = text.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(message["message"]["rendered"].as_str()?.to_owned())
    });
    rendered.take(5).collect()
}

/// The innermost call of a switch that encloses the range, or all calls within the range if it
/// encloses them.
fn innermost(text: &str, range: std::ops::Range<usize>, all: &[Mutant]) -> Vec<usize> {
    const CALL: &str = "crate::mutant::";
    let mut around: Option<(usize, usize)> = None;
    let mut within = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(CALL) {
        let start = at + found;
        at = start + CALL.len();
        if start > range.end {
            break;
        }
        let Some(open) = text[at..].find('(').map(|open| at + open) else {
            break;
        };
        let digits: String = text[open + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let Ok(number) = digits.parse::<usize>() else {
            continue;
        };
        let keeps = text[at..].starts_with("keep");
        let end = match keeps {
            // The block after the condition.
            true => match text[open..].find('{') {
                Some(brace) => closing(text, open + brace),
                None => continue,
            },
            false => closing(text, open),
        };
        if start <= range.start && range.end <= end {
            let size = end - start;
            if around.is_none_or(|(_, least)| size <= least) {
                around = Some((number, size));
            }
        } else if start < range.end && range.start < end {
            within.push(number);
        }
    }
    let known = |number: &usize| all.iter().any(|mutant| mutant.number == *number);
    match around {
        Some((number, _)) => vec![number],
        None => within.into_iter().filter(known).collect(),
    }
}

/// The position of the bracket that closes the one at `open`. Brackets in strings and comments do
/// not count.
fn closing(text: &str, open: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = open;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += usize::from(bytes[at] == b'\\') + 1;
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => at += 3,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_errors_are_attributed_to_the_innermost_mutant() {
        let source = "fn f(a: u8) -> bool { a + 1 < 3 }";
        let all = mutants("f.rs", source, 0).unwrap();
        let text = splice(source, &all.iter().collect::<Vec<_>>());
        let at = text.find("(a)").unwrap();
        let blamed = innermost(&text, at..at + 1, &all);
        assert_eq!(all[blamed[0]].kind, "plus", "{text}");
        let whole = innermost(&text, 20..text.len(), &all);
        assert_eq!(whole.len(), all.len());
    }
}
