//! Which definitions and which expressions of a spec are its protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::mutant::MutantsError;
use super::syntax;
use super::tree::{Definition, Kind, Module, Node};
use crate::check::configs::BoundedModel;

/// The modules of a spec, and what of them its next-state relation reaches.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) spec: String,
    /// Those in the spec's folder, the wrapper last.
    pub(super) modules: Vec<Module>,
    /// The name of the next-state relation.
    pub(super) next: String,
    /// The variables of `[Next]_vars`, as text.
    pub(super) variables: String,
    /// The names of the definitions that Next reaches.
    pub(super) reached: BTreeSet<String>,
    /// Operators that models replace.
    pub(super) bounds: BTreeSet<String>,
    /// Variables that only serve the checking.
    pub(super) ghosts: BTreeSet<String>,
    /// For each definition that is an action, the variables whose next value it may set.
    pub(super) sets: BTreeMap<String, BTreeSet<String>>,
}

impl Scope {
    /// Reads the modules of the spec to which `models` belong.
    pub(super) fn read(models: &[&BoundedModel]) -> Result<Scope, MutantsError> {
        let first = models.first().ok_or_else(|| MutantsError::Spec {
            spec: "a spec".into(),
            why: "it has no models".into(),
        })?;
        let folder = first.module.parent().unwrap_or(Path::new("."));
        let wrapper = format!("MC{}", first.spec);
        let mut modules = Vec::new();
        read_module(folder, &wrapper, &mut modules)?;
        let bounds = models
            .iter()
            .flat_map(|m| m.config.overrides.keys().cloned());
        let specification = first.config.specification.as_deref().unwrap_or("Spec");
        Scope::of(&first.spec, modules, specification, bounds.collect())
    }

    pub(super) fn of(
        spec: &str,
        modules: Vec<Module>,
        specification: &str,
        bounds: BTreeSet<String>,
    ) -> Result<Scope, MutantsError> {
        let fail = |why: String| MutantsError::Spec {
            spec: spec.to_owned(),
            why,
        };
        let (module, formula) = relation(&modules, specification).ok_or_else(|| {
            fail(format!(
                "{specification} does not contain [][Next]_vars; expected that"
            ))
        })?;
        let text = |node: &Node| module.text[node.bytes.clone()].to_owned();
        let boxed = formula.children.iter().find_map(boxed_in);
        let boxed = boxed.ok_or_else(|| fail("it has no [][Next]_vars".into()))?;
        let next = (boxed.children[0].inner().name())
            .ok_or_else(|| fail("expected a name in [][Next]_vars".into()))?;
        let mut scope = Scope {
            spec: spec.to_owned(),
            next: next.to_owned(),
            variables: text(&boxed.children[1]),
            reached: BTreeSet::new(),
            ghosts: modules
                .iter()
                .flat_map(|m| m.ghosts.iter().cloned())
                .collect(),
            sets: BTreeMap::new(),
            bounds,
            modules,
        };
        scope.find_sets();
        scope.reach(&scope.next.clone());
        Ok(scope)
    }

    /// A definition and its module.
    pub(super) fn definition(&self, name: &str) -> Option<(&Module, &Definition)> {
        defined(&self.modules, name)
    }

    /// Whether an expression sets or keeps the next value of a variable.
    pub(super) fn is_action(&self, node: &Node) -> bool {
        !self.set_by(node).is_empty()
    }

    /// The variables whose next value an expression sets or keeps.
    pub(super) fn set_by(&self, node: &Node) -> BTreeSet<String> {
        let mut set = BTreeSet::new();
        node.each(&mut |node| {
            match &node.kind {
                Kind::Infix(operator) if operator == "=" || operator == "\\in" => {
                    set.extend(node.children[0].primed().map(str::to_owned));
                }
                Kind::Prefix(word) if word == "UNCHANGED" => {
                    // Only that it is an action matters: nothing is set.
                    set.insert("UNCHANGED".into());
                }
                Kind::Name(name) => set.extend(self.sets.get(name).into_iter().flatten().cloned()),
                _ => {}
            }
        });
        set
    }

    fn find_sets(&mut self) {
        loop {
            let mut found = BTreeMap::new();
            for definition in self.modules.iter().flat_map(|m| &m.definitions) {
                let set = self.set_by(&definition.body);
                if !set.is_empty() {
                    found.insert(definition.name.clone(), set);
                }
            }
            if found == self.sets {
                return;
            }
            self.sets = found;
        }
    }

    fn reach(&mut self, name: &str) {
        let there = self.definition(name).is_some();
        if !there || self.bounds.contains(name) || !self.reached.insert(name.to_owned()) {
            return;
        }
        let mut names = Vec::new();
        if let Some((_, definition)) = self.definition(name) {
            self.living(&definition.body, &mut |node| {
                names.extend(node.name().map(str::to_owned));
            });
        }
        for name in names {
            self.reach(&name);
        }
    }

    /// Visits what is evaluated without a seeded bug and does not only compute a ghost.
    fn living(&self, node: &Node, visit: &mut impl FnMut(&Node)) {
        if truth(node).is_some() || self.is_ghost(node) {
            return;
        }
        visit(node);
        // Which variables stay as they are is no part of a step.
        if matches!(&node.kind, Kind::Prefix(word) if word == "UNCHANGED") {
            return;
        }
        for child in living_children(node) {
            self.living(child, visit);
        }
    }

    /// Whether an expression sets a variable that only serves the checking.
    pub(super) fn is_ghost(&self, node: &Node) -> bool {
        let set = match node.infix() {
            Some("=" | "\\in") => node.children[0].primed(),
            _ => None,
        };
        set.is_some_and(|name| self.ghosts.contains(name))
    }

    /// Whether an expression is a bound of the models.
    pub(super) fn is_bound(&self, node: &Node) -> bool {
        node.inner()
            .name()
            .is_some_and(|name| self.bounds.contains(name))
    }
}

fn defined<'a>(modules: &'a [Module], name: &str) -> Option<(&'a Module, &'a Definition)> {
    modules.iter().find_map(|module| {
        let definition = module.definitions.iter().find(|d| d.name == name)?;
        Some((module, definition))
    })
}

/// Reads a module and those that it uses, if they are in the same folder.
fn read_module(folder: &Path, name: &str, into: &mut Vec<Module>) -> Result<(), MutantsError> {
    let path = folder.join(format!("{name}.tla"));
    if !path.is_file() || into.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).map_err(|source| MutantsError::Io {
        what: path.display().to_string(),
        source,
    })?;
    let module = syntax::parse(name, &text)?;
    for used in &module.uses {
        read_module(folder, used, into)?;
    }
    into.push(module);
    Ok(())
}

/// The formula with `[][Next]_vars` to which a specification leads.
fn relation<'a>(modules: &'a [Module], specification: &str) -> Option<(&'a Module, &'a Node)> {
    let (module, definition) = defined(modules, specification)?;
    let body = &definition.body;
    if body.kind == Kind::And {
        if body.children.iter().any(|part| boxed_in(part).is_some()) {
            return Some((module, body));
        }
        let mut parts = body.children.iter().filter_map(Node::name);
        return parts.find_map(|name| relation(modules, name));
    }
    relation(modules, body.name()?)
}

/// The `[Next]_vars` of `[][Next]_vars`.
fn boxed_in(node: &Node) -> Option<&Node> {
    let always = matches!(&node.kind, Kind::Prefix(word) if word == "[]");
    let inner = node.children.first().filter(|_| always)?;
    (inner.kind == Kind::Box).then_some(inner)
}

/// The value of a condition that depends only on seeded bugs, when none is enabled.
pub(super) fn truth(node: &Node) -> Option<bool> {
    let children = &node.children;
    match &node.kind {
        Kind::Group => truth(&children[0]),
        Kind::Not => truth(&children[0]).map(|value| !value),
        Kind::And if children.iter().any(|c| truth(c) == Some(false)) => Some(false),
        Kind::And => children
            .iter()
            .all(|c| truth(c) == Some(true))
            .then_some(true),
        Kind::Or if children.iter().any(|c| truth(c) == Some(true)) => Some(true),
        Kind::Or => children
            .iter()
            .all(|c| truth(c) == Some(false))
            .then_some(false),
        Kind::Infix(operator) => {
            let (left, right) = (&children[0], &children[1]);
            if operator == "=>" {
                return match (truth(left), truth(right)) {
                    (Some(false), _) | (_, Some(true)) => Some(true),
                    (Some(true), Some(false)) => Some(false),
                    _ => None,
                };
            }
            if left.name() != Some("Bug") {
                return None;
            }
            let none =
                |node: &Node| matches!(&node.kind, Kind::Literal(text) if text == "\"none\"");
            match &**operator {
                "=" => Some(none(right)),
                "#" | "/=" => Some(!none(right)),
                "\\in" => Some(right.children.iter().any(none)),
                "\\notin" => Some(!right.children.iter().any(none)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The children that are evaluated without a seeded bug.
pub(super) fn living_children(node: &Node) -> impl Iterator<Item = &Node> {
    let branch = match node.kind {
        Kind::If => truth(&node.children[0]).map(|value| if value { 1 } else { 2 }),
        _ => None,
    };
    let alive = move |(at, child): (usize, &'_ Node)| match branch {
        Some(branch) => at == branch,
        None => truth(child).is_none(),
    };
    (node.children.iter().enumerate())
        .filter(move |(at, child)| alive((*at, child)))
        .map(|(_, child)| child)
}
