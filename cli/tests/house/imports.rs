//! The graph of imports between a crate's files, from `use` declarations and paths.
//!
//! Re-exports are followed: an edge leads to the file that defines the name. A re-export itself is
//! not an edge, and imports in tests are ignored. This reads text, not types, so method calls are
//! not edges either.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::circles::Arrows;

/// A module path: the names from the crate's root.
type Module = Vec<String>;
/// A path as written in the source: `crate`, `super`, names.
type Names = Vec<String>;

/// The imports of a crate.
pub(crate) struct Imports {
    /// The file of each module.
    modules: BTreeMap<Module, PathBuf>,
    /// The paths behind the names that a module imports.
    imported: BTreeMap<Module, BTreeMap<String, Names>>,
    /// Paths that a module mentions.
    mentioned: BTreeMap<Module, Vec<Names>>,
    arrows: Arrows,
}

impl Imports {
    /// Reads the crate whose root is in the folder `src`.
    pub(crate) fn read(src: &Path) -> Imports {
        let mut imports = Imports {
            modules: BTreeMap::new(),
            imported: BTreeMap::new(),
            mentioned: BTreeMap::new(),
            arrows: Arrows::new(),
        };
        let roots = ["lib.rs", "main.rs"].map(|name| src.join(name));
        let root = roots.into_iter().find(|path| path.exists());
        if let Some(root) = root {
            imports.load(&root, Vec::new());
        }
        imports.resolve_all();
        imports
    }

    /// Number of files read.
    pub(crate) fn files(&self) -> usize {
        self.modules.len()
    }

    /// The graph of imports.
    pub(crate) fn arrows(&self) -> &Arrows {
        &self.arrows
    }

    /// The folder that a file belongs to; a `name.rs` beside a folder `name` belongs to that
    /// folder.
    pub(crate) fn folder(&self, file: &Path) -> PathBuf {
        let inner = file.with_extension("");
        match inner.is_dir() {
            true => inner,
            false => file.parent().unwrap_or(file).to_owned(),
        }
    }

    fn load(&mut self, file: &Path, module: Module) {
        let text = std::fs::read_to_string(file).expect("a source file reads");
        let text = without_tests(&without_comments(&text));
        let beside = match file.file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "main.rs" | "mod.rs") => file.parent().unwrap_or(file).to_owned(),
            _ => file.with_extension(""),
        };
        for child in children(&text) {
            let names = [format!("{child}.rs"), format!("{child}/mod.rs")];
            let found = names.into_iter().map(|name| beside.join(name));
            if let Some(found) = found.into_iter().find(|path| path.exists()) {
                let inner = [module.clone(), vec![child]].concat();
                self.load(&found, inner);
            }
        }
        self.note(&module, &text);
        self.modules.insert(module, file.to_owned());
    }

    /// Records what a module imports and mentions.
    fn note(&mut self, module: &Module, text: &str) {
        let (uses, rest) = split_uses(text);
        let imported = self.imported.entry(module.clone()).or_default();
        let mentioned = self.mentioned.entry(module.clone()).or_default();
        let words: BTreeSet<&str> = rest.split(|c| !is_name(c)).collect();
        for (public, tree) in uses {
            for (path, name) in flatten(&tree) {
                let is_used = !public || words.contains(name.as_str());
                imported.insert(name, path.clone());
                if is_used {
                    mentioned.push(path);
                }
            }
        }
        mentioned.extend(paths(&rest));
    }

    fn resolve_all(&mut self) {
        let mut arrows = Arrows::new();
        for (module, file) in &self.modules {
            let to = arrows.entry(file.clone()).or_default();
            for path in &self.mentioned[module] {
                let mut path = path.clone();
                if path
                    .last()
                    .is_some_and(|last| last == "self" || last == "*")
                {
                    path.pop();
                }
                let defined = self.resolve(module, &path, &mut BTreeSet::new());
                if let Some(other) = defined.filter(|other| other != module) {
                    to.insert(self.modules[&other].clone());
                }
            }
        }
        self.arrows = arrows;
    }

    /// The module that defines `path` as written in `module`; `None` if it is outside the crate.
    fn resolve(
        &self,
        module: &Module,
        path: &[String],
        seen: &mut BTreeSet<(Module, Names)>,
    ) -> Option<Module> {
        if path.is_empty() || !seen.insert((module.clone(), path.to_vec())) {
            return None;
        }
        let mut at = module.clone();
        let mut rest = path;
        match path[0].as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [module.clone(), vec![first.to_owned()]].concat();
                if !self.modules.contains_key(&child) {
                    let imported = self.imported[module].get(first)?;
                    if imported.as_slice() == path {
                        return None;
                    }
                    let whole = [imported.as_slice(), &path[1..]].concat();
                    return self.resolve(module, &whole, seen);
                }
            }
        }
        while let Some((name, behind)) = rest.split_first() {
            let child = [at.clone(), vec![name.clone()]].concat();
            if self.modules.contains_key(&child) {
                at = child;
                rest = behind;
                continue;
            }
            if let Some(imported) = self.imported.get(&at).and_then(|names| names.get(name)) {
                let whole = [imported.as_slice(), behind].concat();
                if let Some(found) = self.resolve(&at, &whole, seen) {
                    return Some(found);
                }
            }
            break;
        }
        self.modules.contains_key(&at).then_some(at)
    }
}

/// All Rust files of a crate: sources, tests, examples, benchmarks.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let folders = ["src", "tests", "examples", "benches"].map(|name| folder.join(name));
    folders
        .iter()
        .flat_map(|folder| sources_in(folder))
        .collect()
}

/// All Rust files below a folder.
pub(crate) fn sources_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a folder lists").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text without line comments and without the contents of strings.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut quoted = false;
        let mut previous = ' ';
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            if !quoted && c == '/' && chars.peek() == Some(&'/') {
                break;
            }
            if c == '"' && previous != '\\' && previous != '\'' {
                quoted = !quoted;
                out.push(c);
            } else if !quoted {
                out.push(c);
            }
            previous = if previous == '\\' { ' ' } else { c };
        }
        out.push('\n');
    }
    out
}

/// The end of the block that opens just before `from`.
pub(crate) fn block_end(text: &str, from: usize) -> usize {
    let mut depth = 1;
    for (at, c) in text[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return from + at + 1;
        }
    }
    text.len()
}

/// The text without test-only modules. In other inline modules, `super` is resolved to the file
/// itself.
pub(crate) fn without_tests(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("mod ") {
        let (before, from) = rest.split_at(at);
        let name_end = from[4..]
            .find(|c| !is_name(c))
            .map_or(from.len(), |end| end + 4);
        let opens = from[name_end..].trim_start().starts_with('{');
        let line = before.rfind("#[cfg(").map(|at| &before[at..]);
        let for_tests = line.is_some_and(|attributes| {
            let condition = attributes.split(']').next().unwrap_or_default();
            let between: String = attributes.chars().skip(condition.len() + 1).collect();
            condition.contains("test") && !between.contains([';', '}'])
        });
        let end = match opens {
            true => block_end(from, name_end + from[name_end..].find('{').unwrap_or(0) + 1),
            false => name_end,
        };
        out.push_str(before);
        match (for_tests, opens) {
            (true, _) => {}
            (false, true) => out.push_str(&from[..end].replace("super::", "self::")),
            (false, false) => out.push_str(&from[..end]),
        }
        rest = &from[end.max(4)..];
    }
    out.push_str(rest);
    out
}

/// The modules that a file declares.
fn children(text: &str) -> Vec<String> {
    let declares = |line: &str| {
        let at = line.find("mod ")?;
        let name = line[at + 4..].strip_suffix(';')?;
        name.chars().all(is_name).then(|| name.to_owned())
    };
    text.lines()
        .filter_map(|line| declares(line.trim()))
        .collect()
}

/// The trees of the `use` declarations, each with its visibility, and the text without `use` and
/// module declarations.
pub(crate) fn split_uses(text: &str) -> (Vec<(bool, String)>, String) {
    let mut uses = Vec::new();
    let mut rest = String::new();
    let mut declaration: Option<(bool, String)> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some((_, tree)) = &mut declaration {
            tree.push_str(trimmed);
        } else {
            let words = trimmed.strip_prefix("pub").map(|behind| {
                let at = if behind.starts_with('(') {
                    behind.find(')')
                } else {
                    None
                };
                behind[at.map_or(0, |at| at + 1)..].trim_start()
            });
            let public = words.is_some();
            match words.unwrap_or(trimmed).strip_prefix("use ") {
                Some(tree) => declaration = Some((public, tree.to_owned())),
                None if trimmed.ends_with(';') && trimmed.contains("mod ") => {}
                None => {
                    rest.push_str(line);
                    rest.push('\n');
                }
            }
        }
        if declaration
            .as_ref()
            .is_some_and(|(_, tree)| tree.ends_with(';'))
        {
            uses.extend(declaration.take());
        }
    }
    (uses, rest)
}

/// The paths of a `use` tree, each with its local name.
pub(crate) fn flatten(tree: &str) -> Vec<(Names, String)> {
    fn walk(before: &[String], tree: &str, found: &mut Vec<(Names, String)>) {
        let tree = tree.trim();
        if let Some((lead, inner)) = tree.split_once('{') {
            let lead = lead
                .split("::")
                .map(str::trim)
                .filter(|name| !name.is_empty());
            let before = [before, &lead.map(str::to_owned).collect::<Vec<_>>()].concat();
            let inner = inner.strip_suffix('}').unwrap_or(inner);
            let (mut depth, mut from) = (0, 0);
            for (at, c) in inner.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        walk(&before, &inner[from..at], found);
                        from = at + 1;
                    }
                    _ => {}
                }
            }
            walk(&before, &inner[from..], found);
        } else if !tree.is_empty() {
            let (path, alias) = match tree.split_once(" as ") {
                Some((path, alias)) => (path, Some(alias.trim().to_owned())),
                None => (tree, None),
            };
            let names = path.split("::").map(|name| name.trim().to_owned());
            let path = [before, &names.collect::<Vec<_>>()].concat();
            let own = path.iter().rev().find(|name| *name != "self").cloned();
            found.push((path, alias.or(own).unwrap_or_default()));
        }
    }
    let mut found = Vec::new();
    walk(&[], tree.trim_end_matches(';'), &mut found);
    found
}

/// The paths with at least two names that the text mentions.
fn paths(text: &str) -> Vec<Names> {
    let is_path = |c: char| is_name(c) || c == ':';
    // `pub(in crate::node)` is a visibility, not an import.
    let text = text.replace("pub(in crate::", "pub(");
    let words = text.split(|c| !is_path(c));
    let long = words.filter(|word| word.contains("::") && !word.starts_with("::"));
    long.map(|word| {
        let names = word.split("::").filter(|name| !name.is_empty());
        names
            .map(|name| name.trim_matches(':').to_owned())
            .collect()
    })
    .collect()
}

#[test]
fn use_trees_are_flattened() {
    let found = flatten("crate::{a::{self, B as C}, d::*};");
    let shown: Vec<_> = found
        .iter()
        .map(|(path, name)| format!("{} {name}", path.join("::")))
        .collect();
    assert_eq!(
        shown,
        ["crate::a::self a", "crate::a::B C", "crate::d::* *"]
    );
}

#[test]
fn imports_in_tests_and_comments_are_ignored() {
    let text = "use a::B; // use c::D\n#[cfg(test)]\nmod tests {\n use e::F;\n}\nmod g;\n";
    let text = without_tests(&without_comments(text));
    assert_eq!(split_uses(&text).0, [(false, "a::B;".to_owned())]);
    assert_eq!(children(&text), ["g"]);
}
