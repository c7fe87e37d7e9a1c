//! Reading a spec.

use std::str::FromStr;

use super::pages::PageTree;
use super::registry::parts;
use super::{SpecError, TreeSpec, reason};
use crate::options::param::{self, choice, size};
use crate::options::{
    BfOptions, ContentionSplit, LayoutChoice, LogPacking, ModLog, Options, PageStoreKind, Policy,
    TablePersist, TreeKind,
};

/// A name with its parameters.
struct Part<'a> {
    name: &'a str,
    /// Parameters in the order in which they are given; a flag has no value.
    parameters: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Part<'a> {
    fn read(text: &'a str) -> Result<Part<'a>, String> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Part {
                name: text.trim(),
                parameters: Vec::new(),
            });
        };
        let inner = rest.trim_end().strip_suffix(')');
        let inner = inner.ok_or("expected ) at the end of the parameters")?;
        let mut parameters: Vec<(&str, Option<&str>)> = Vec::new();
        for parameter in inner.split(',') {
            let (name, value) = match parameter.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (parameter.trim(), None),
            };
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is given twice"));
            }
            parameters.push((name, value));
        }
        Ok(Part {
            name: name.trim(),
            parameters,
        })
    }

    /// The parameters, each of which must have a value.
    fn values(&self) -> impl Iterator<Item = Result<(&'a str, &'a str), String>> {
        self.parameters.iter().map(|(name, value)| match value {
            Some(value) => Ok((*name, *value)),
            None => Err(format!("expected {name}=VALUE")),
        })
    }
}

impl FromStr for TreeSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<TreeSpec, SpecError> {
        let error = |why| SpecError {
            spec: text.trim().into(),
            why,
        };
        let spec = read(text).map_err(error)?;
        spec.check().map_err(|e| error(reason(&e)))?;
        Ok(spec)
    }
}

impl Options {
    /// The options of a store with the tree of pages that a spec names; the rest are defaults.
    ///
    /// ```
    /// use treering_engine::Options;
    ///
    /// let options = Options { cache_bytes: 8 << 20, ..Options::of_tree("bf+cow")? };
    /// assert_eq!(options.spec().to_string(), "bf+cow");
    /// assert!(Options::of_tree("lodge").is_err());
    /// # Ok::<(), treering_engine::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// A spec that names no tree of pages.
    pub fn of_tree(spec: &str) -> Result<Options, SpecError> {
        let options = spec.parse::<TreeSpec>()?.options();
        options.ok_or_else(|| SpecError {
            spec: spec.into(),
            why: "expected a tree on a block device".into(),
        })
    }
}

fn read(text: &str) -> Result<TreeSpec, String> {
    let mut rest = text.split('+');
    let tree = Part::read(rest.next().unwrap_or_default())?;
    let Some(mut spec) = TreeSpec::named(tree.name) else {
        let names: Vec<_> = TreeSpec::names().collect();
        return Err(format!("expected one of {}", names.join(", ")));
    };
    match &mut spec {
        TreeSpec::Pm(pm) => {
            for parameter in tree.values() {
                let (name, value) = parameter?;
                pm.set(name, value)?;
            }
            match rest.next() {
                Some(part) => Err(format!("{part}: expected no parts below {}", tree.name)),
                None => Ok(spec),
            }
        }
        TreeSpec::Pages(pages) => {
            read_tree(pages, &tree)?;
            let mut seen = Vec::new();
            for part in rest {
                let kind = read_part(pages, &Part::read(part)?)?;
                if seen.contains(&kind) {
                    return Err(format!("a {kind} is named twice"));
                }
                seen.push(kind);
            }
            Ok(spec)
        }
    }
}

/// Sets the parameters that stand with a page tree.
fn read_tree(pages: &mut PageTree, tree: &Part<'_>) -> Result<(), String> {
    let is_split = |name: &str| {
        let mut params = ContentionSplit::PARAMS.iter();
        params.any(|param| param.name == name)
    };
    // Others change what the policy says, wherever it stands.
    let policy = tree.parameters.iter().find(|(name, _)| *name == "policy");
    if let (TreeKind::Bf(bf), Some((_, Some(name)))) = (&mut pages.tree, policy) {
        let mut policy = Policy::default();
        choice(&mut policy, name, Policy::NAMED).map_err(|e| format!("policy={name}: {e}"))?;
        *bf = BfOptions::of(policy);
    }
    for (name, value) in &tree.parameters {
        match (*name, *value) {
            ("policy", Some(_)) if matches!(pages.tree, TreeKind::Bf(_)) => {}
            ("contention-split", None) => {
                pages.contention_split.get_or_insert_default();
            }
            ("page", Some(value)) => {
                size(&mut pages.page_size, value).map_err(|e| format!("page={value}: {e}"))?;
            }
            (name, Some(value)) if is_split(name) => {
                let split = pages.contention_split.get_or_insert_default();
                param::set(ContentionSplit::PARAMS, split, name, value)?;
            }
            (name, None) => return Err(format!("expected {name}=VALUE")),
            (name, Some(value)) => match &mut pages.tree {
                TreeKind::Bf(bf) => param::set(BfOptions::PARAMS, bf, name, value)?,
                TreeKind::BTree => {
                    return Err(format!("{name}: expected page or contention-split"));
                }
            },
        }
    }
    Ok(())
}

/// Sets a part below a page tree. Returns what kind of part it is.
fn read_part(pages: &mut PageTree, part: &Part<'_>) -> Result<&'static str, String> {
    let [stores, logs, layouts] = parts();
    if let Some(store) = PageStoreKind::named(part.name) {
        pages.store = store;
        for parameter in part.values() {
            let (name, value) = parameter?;
            set_store(pages, name, value)?;
        }
        return Ok(stores.0);
    }
    let kind = match (LogPacking::named(part.name), LayoutChoice::named(part.name)) {
        (Some(log), _) => {
            pages.log_packing = log;
            logs.0
        }
        (None, Some(layout)) => {
            pages.layout = layout;
            layouts.0
        }
        (None, None) => {
            let names = [stores.1, logs.1, layouts.1].concat();
            return Err(format!("{}: expected {}", part.name, names.join(", ")));
        }
    };
    match part.parameters.first() {
        Some((name, _)) => Err(format!("{name}: expected no parameters of {}", part.name)),
        None => Ok(kind),
    }
}

/// Sets a parameter that stands with the page store: its own, or one of the modification log, which
/// any store can have.
fn set_store(pages: &mut PageTree, name: &str, value: &str) -> Result<(), String> {
    if let (PageStoreKind::CopyOnWrite { table }, "table") = (&mut pages.store, name) {
        return choice(table, value, TablePersist::NAMED)
            .map_err(|e| format!("table={value}: {e}"));
    }
    if name == "T" && value == "0" {
        pages.mod_log = None;
        return Ok(());
    }
    let log = pages.mod_log.get_or_insert_with(ModLog::default);
    param::set(ModLog::PARAMS, log, name, value)
}
