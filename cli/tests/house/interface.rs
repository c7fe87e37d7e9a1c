//! The public interface of a crate as a list of names: its public items, and the public functions
//! of its types. Like [`crate::imports`], this reads text, not types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports::{block_end, flatten, is_name, split_uses, without_comments, without_tests};

/// The public names of the crate whose root is in the folder `src`, sorted.
pub(crate) fn of(src: &Path) -> Vec<String> {
    let mut listing = Listing {
        names: BTreeSet::new(),
        types: BTreeMap::new(),
    };
    listing.module(&src.join("lib.rs"), "");
    let mut names = listing.names;
    for file in crate::imports::sources_in(src) {
        for (of, function) in functions(&read(&file)) {
            if let Some(path) = listing.types.get(&of) {
                names.insert(format!("fn {path}::{function}"));
            }
        }
    }
    names.into_iter().collect()
}

struct Listing {
    names: BTreeSet<String>,
    /// Public types by their last name, with the path that users write.
    types: BTreeMap<String, String>,
}

fn read(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a source file reads");
    without_tests(&without_comments(&text))
}

impl Listing {
    /// Records a path to a type; the shortest is kept.
    fn name(&mut self, last: &str, path: String) {
        let known = self.types.get(last);
        if known.is_none_or(|known| path.len() < known.len()) {
            self.types.insert(last.to_owned(), path);
        }
    }

    fn module(&mut self, file: &Path, path: &str) {
        let text = read(file);
        let join = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}::{name}"),
        };
        let (uses, rest) = split_uses(&text);
        for line in rest.lines().filter(|line| line.starts_with("pub ")) {
            let Some((kind, name)) = item(line) else {
                continue;
            };
            self.names.insert(format!("{kind} {}", join(name)));
            self.name(name, join(name));
        }
        // Items visible only in the crate are not exported.
        let (inner, _) = split_uses(&text.replace("pub use ", "use "));
        let exported = uses
            .into_iter()
            .zip(inner)
            .filter(|((visible, _), (crate_only, _))| *visible && !crate_only);
        let folder = match file.file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "mod.rs") => file.parent().unwrap_or(file).to_owned(),
            _ => file.with_extension(""),
        };
        for ((_, tree), _) in exported {
            for (mut names, name) in flatten(&tree) {
                // `a::b::*` exports what `b` does, under the path of this module.
                let leads = names.pop().filter(|last| last == "*");
                let inner = names.iter().fold(folder.clone(), |at, name| at.join(name));
                if let Some(inner) = leads.and(source(&inner)) {
                    self.module(&inner, path);
                    continue;
                }
                self.names.insert(format!("use {}", join(&name)));
                self.name(&name, join(&name));
            }
        }
        for line in text.lines().filter(|line| line.starts_with("pub mod ")) {
            let name: String = line[8..].chars().take_while(|c| is_name(*c)).collect();
            self.names.insert(format!("mod {}", join(&name)));
            if let Some(inner) = source(&folder.join(&name)) {
                self.module(&inner, &join(&name));
            }
        }
    }
}

/// The file of the module at this path without an extension. `None` if it has no file of its own.
fn source(module: &Path) -> Option<PathBuf> {
    let files = [module.with_extension("rs"), module.join("mod.rs")];
    files.into_iter().find(|file| file.exists())
}

/// The kind and name of the public item that begins on this line.
fn item(line: &str) -> Option<(&'static str, &str)> {
    let mut rest = line.strip_prefix("pub ")?;
    for word in ["const fn ", "unsafe fn ", "async fn "] {
        if let Some(behind) = rest.strip_prefix(word) {
            return Some(("fn", first_name(behind)));
        }
    }
    for kind in ["fn", "struct", "enum", "trait", "const", "static", "type"] {
        if let Some(behind) = rest
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix(' '))
        {
            rest = behind;
            return Some((kind, first_name(rest)));
        }
    }
    None
}

fn first_name(text: &str) -> &str {
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    &text[..end]
}

/// The public functions in the `impl` blocks of a file, each with its type.
fn functions(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("\nimpl") {
        let start = from + at + 1;
        let Some(open) = text[start..].find('{') else {
            break;
        };
        let end = block_end(text, start + open + 1);
        let head = &text[start..start + open];
        from = end;
        // Functions in an implementation of a trait belong to the trait.
        if head.contains(" for ") {
            continue;
        }
        let behind = match head[4..].trim_start().strip_prefix('<') {
            Some(generic) => skip_angles(generic),
            None => &head[4..],
        };
        let name = first_name(behind.trim_start()).to_owned();
        for line in text[start..end].lines() {
            if let Some(("fn", function)) = item(line.trim_start()) {
                found.push((name.clone(), function.to_owned()));
            }
        }
    }
    found
}

/// The text after the matching closing angle bracket.
fn skip_angles(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[test]
fn functions_of_types_are_found_but_not_those_of_traits() {
    let text = "\nimpl<K: Kv> Range<'_, K> {\n    pub const fn len(&self) {}\n    fn own() {}\n}\n\
                \nimpl Kv for Store {\n    pub fn get() {}\n}\n";
    assert_eq!(functions(text), [("Range".to_owned(), "len".to_owned())]);
}
