//! Finds the lines of TLA+ that define an action, and the functions of the engine that the comment
//! above them names.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// What they define: an action, or a function as `Type::name`.
    pub item: String,
    /// The file, from the repository's root.
    pub file: String,
    /// The line of the definition, from 1.
    pub line: usize,
    /// The number of the first of the lines below.
    pub first: usize,
    /// The lines.
    pub text: String,
}

/// The most lines of a function that are shown.
const MOST_LINES: usize = 28;

/// The sources of a spec and of the engine.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    tla: Vec<(String, Vec<String>)>,
    /// Empty if the engine's sources are not beside the specs.
    engine: Vec<(String, Vec<String>)>,
}

impl Sources {
    /// Reads the modules beside `module` and those of the contract, and the engine beside `specs`.
    /// What cannot be read is left out.
    #[must_use]
    pub fn read(specs: &Path, module: &Path) -> Sources {
        let root = specs.parent().unwrap_or(specs);
        let mut sources = Sources::default();
        let own = module.parent().unwrap_or(specs).to_owned();
        for folder in [own, specs.join("contract")] {
            for path in files(&folder, "tla") {
                sources.tla.extend(lines(root, &path));
            }
        }
        for path in files(&root.join("engine/src"), "rs") {
            sources.engine.extend(lines(root, &path));
        }
        sources
    }

    /// Whether the engine's sources were found.
    #[must_use]
    pub fn has_engine(&self) -> bool {
        !self.engine.is_empty()
    }

    /// The definition of an action, with the comment above it.
    #[must_use]
    pub fn action(&self, name: &str) -> Option<Excerpt> {
        self.tla.iter().find_map(|(file, lines)| {
            let at = lines.iter().position(|line| defines(line, name))?;
            let is_comment = |line: &String| line.starts_with("(*") || line.starts_with("\\*");
            let above = lines[..at].iter().rev().take_while(|line| is_comment(line));
            let first = at - above.count();
            let goes_on = |line: &&String| line.starts_with([' ', '\t']);
            let below = lines[at + 1..].iter().take_while(goes_on).count();
            Some(Excerpt {
                item: name.to_owned(),
                file: file.clone(),
                line: at + 1,
                first: first + 1,
                text: lines[first..=at + below].join("\n"),
            })
        })
    }

    /// The parameters of an action.
    #[must_use]
    pub fn parameters(&self, name: &str) -> Vec<String> {
        let definition = self.tla.iter().find_map(|(_, lines)| {
            let mut lines = lines.iter();
            lines.find(|line| defines(line, name))
        });
        let inside = definition.and_then(|line| {
            let rest = line.strip_prefix(name)?.strip_prefix('(')?;
            rest.split_once(')').map(|(inside, _)| inside)
        });
        let names = inside.into_iter().flat_map(|inside| inside.split(','));
        names.map(|name| name.trim().to_owned()).collect()
    }

    /// The functions of the engine that a comment names, as `Type::name`.
    #[must_use]
    pub fn named_in(&self, comment: &str) -> Vec<Excerpt> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut found: Vec<Excerpt> = Vec::new();
        for word in comment.split(|c| !is_part(c)) {
            let Some((of, name)) = word.trim_matches(':').split_once("::") else {
                continue;
            };
            if !of.starts_with(char::is_uppercase) || found.iter().any(|e| e.item == word) {
                continue;
            }
            found.extend(self.function(of, name));
        }
        found
    }

    /// The functions of the engine that emit the events of an action of the spec in this folder, by
    /// the tables in the documentation of the engine's modules of events.
    #[must_use]
    pub fn emitting(&self, folder: &str, action: &str) -> Vec<Excerpt> {
        let about = format!("`specs/{folder}`");
        let named = format!("`{action}`");
        let mut found: Vec<Excerpt> = Vec::new();
        for (file, lines) in &self.engine {
            let head = || lines.iter().take_while(|line| line.starts_with("//!"));
            if !head().any(|line| line.contains(&about)) {
                continue;
            }
            let beside = file.rsplit_once('/').map_or("", |(beside, _)| beside);
            for row in head().filter(|row| row.starts_with("//! | [`") && row.contains(&named)) {
                let event = row.split('`').nth(1).unwrap_or_default();
                let others = self.engine.iter().filter(|(other, _)| other != file);
                let mut near = others.filter(|(other, _)| other.starts_with(beside));
                let emitter = near.find_map(|(file, lines)| emitter(file, lines, event));
                found.extend(emitter.filter(|new| !found.iter().any(|e| e.item == new.item)));
            }
        }
        found
    }

    /// A function of a type.
    fn function(&self, of: &str, name: &str) -> Option<Excerpt> {
        self.engine.iter().find_map(|(file, lines)| {
            let mut inside = false;
            let at = lines.iter().position(|line| {
                if line.starts_with("impl") {
                    inside = implemented(line) == of;
                }
                inside && is_function(line, name)
            })?;
            Some(whole(file, lines, at, format!("{of}::{name}")))
        })
    }
}

/// The function in which an event is emitted.
fn emitter(file: &str, lines: &[String], event: &str) -> Option<Excerpt> {
    let code = |line: &str| !line.trim_start().starts_with("//");
    let emits = |line: &str| {
        let mut parts = line.split("Event::").skip(1);
        let named = parts.any(|rest| {
            let after = rest.strip_prefix(event);
            after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        });
        named && code(line)
    };
    let at = lines.iter().position(|line| emits(line))?;
    let is_head = |line: &String| line.contains("fn ") && code(line) && line.contains('(');
    let head = at - lines[..=at].iter().rev().position(is_head)?;
    let name = lines[head].split_once("fn ")?.1;
    let end = name.find(['(', '<'])?;
    let of = lines[..head]
        .iter()
        .rev()
        .find(|line| line.starts_with("impl"));
    let of = of.map_or("", |line| implemented(line));
    Some(whole(file, lines, head, format!("{of}::{}", &name[..end])))
}

/// The function whose head is at `at`, with the documentation above it.
fn whole(file: &str, lines: &[String], at: usize, item: String) -> Excerpt {
    let is_doc = |line: &&String| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("#[")
    };
    let first = at - lines[..at].iter().rev().take_while(is_doc).count();
    let indent: String = lines[at].chars().take_while(|c| *c == ' ').collect();
    let end = format!("{indent}}}");
    let length = lines[at..].iter().position(|line| *line == end);
    let last = at + length.unwrap_or(0);
    let shown = last.min(first + MOST_LINES - 1);
    let cut = |line: &String| line.strip_prefix(&indent).unwrap_or(line).to_owned();
    let mut text: Vec<String> = lines[first..=shown].iter().map(cut).collect();
    if shown < last {
        text.push(format!("    … {} more lines", last - shown));
    }
    Excerpt {
        item,
        file: file.to_owned(),
        line: at + 1,
        first: first + 1,
        text: text.join("\n"),
    }
}

/// Whether a line begins the definition of this operator.
fn defines(line: &str, name: &str) -> bool {
    let Some(rest) = line.strip_prefix(name) else {
        return false;
    };
    rest.starts_with(['(', ' ']) && rest.contains("==")
}

/// The type that a line like `impl<T> Trait for Type<T> {` is about.
fn implemented(line: &str) -> &str {
    let rest = line.trim_start_matches("impl");
    let rest = match rest.starts_with('<') {
        true => rest.split_once("> ").map_or(rest, |(_, rest)| rest),
        false => rest,
    };
    let of = rest.split_once(" for ").map_or(rest, |(_, of)| of).trim();
    let end = of.find(|c: char| !c.is_alphanumeric()).unwrap_or(of.len());
    &of[..end]
}

fn is_function(line: &str, name: &str) -> bool {
    let Some((before, rest)) = line.split_once("fn ") else {
        return false;
    };
    let visible = before.trim();
    let is_head = visible.is_empty() || visible.starts_with("pub") || visible.starts_with("const");
    let after = rest.strip_prefix(name);
    is_head && after.is_some_and(|after| after.starts_with(['(', '<']))
}

/// The files with this extension below a folder, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn lines(root: &Path, path: &Path) -> Option<(String, Vec<String>)> {
    let text = std::fs::read_to_string(path).ok()?;
    let name = path.strip_prefix(root).unwrap_or(path).display();
    Some((name.to_string(), text.lines().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
        let specs = std::fs::canonicalize(specs).unwrap();
        Sources::read(&specs, &specs.join("wal_recovery/MCWalRecovery.tla"))
    }

    #[test]
    fn an_action_is_found_with_its_comment_and_the_function_that_it_names() {
        let sources = sources();
        let action = sources.action("WriteBack").unwrap();
        assert_eq!(action.file, "specs/wal_recovery/WalRecovery.tla");
        assert!(action.text.starts_with("(* A dirty page is written once"));
        assert!(action.text.contains("\nWriteBack(k) ==\n    /\\ Serving\n"));
        assert_eq!(sources.parameters("WriteBack"), ["k"]);
        let functions = sources.named_in(&action.text);
        assert_eq!(functions[0].item, "Pager::write_picked");
        assert_eq!(functions[0].file, "engine/src/pager/write_back.rs");
        assert!(functions[0].text.contains("fn write_picked(&self"));
        assert_eq!(sources.action("NoSuchAction"), None);
        let functions = sources.emitting("circular_buffer", "Unlist");
        assert!(functions[0].file.starts_with("engine/src/ring/"));
        assert_eq!(sources.emitting("circular_buffer", "NoSuchAction"), []);
    }

    #[test]
    fn the_type_of_an_implementation_is_read() {
        assert_eq!(implemented("impl Pager {"), "Pager");
        assert_eq!(implemented("impl<T: Copy> Kv for Store<T> {"), "Store");
    }
}
