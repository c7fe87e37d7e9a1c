//! `treering trees`: the registry of trees, their parts and parameters.

use std::fmt::Write as _;

use treering_engine::TreeSpec;
use treering_engine::spec::{parameters, parts, trees};

use crate::args::TreesArgs;
use crate::failure::Failure;
use crate::output::{self, Output};

/// `treering.trees/1`.
#[derive(serde::Serialize)]
struct Document {
    schema: &'static str,
    /// The shortest form of the spec, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
    trees: Vec<Tree>,
    parts: Vec<Part>,
    parameters: Vec<Parameter>,
}

#[derive(serde::Serialize)]
struct Tree {
    name: &'static str,
    runs_on: &'static str,
    source: &'static str,
    about: &'static str,
}

#[derive(serde::Serialize)]
struct Part {
    part: &'static str,
    names: Vec<&'static str>,
}

#[derive(serde::Serialize)]
struct Parameter {
    of: &'static str,
    name: &'static str,
    default: String,
    about: &'static str,
}

/// Prints the registry, or the shortest form of a spec.
pub(crate) fn run(args: &TreesArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let document = document(args.spec.as_ref());
    if let Some(to) = &json {
        to.write(&output::json(&document)?)?;
    }
    if json == Some(Output::Stdout) {
        return Ok(());
    }
    match &document.spec {
        Some(spec) => output::say(format!("{spec}\n").as_bytes()),
        None => output::say(text(&document).as_bytes()),
    }
}

fn document(spec: Option<&TreeSpec>) -> Document {
    let wanted = |name: &str| spec.is_none_or(|spec| spec.name() == name);
    let trees = trees().into_iter().filter(|entry| wanted(entry.name));
    let trees = trees.map(|entry| Tree {
        name: entry.name,
        runs_on: entry.tree.family().device(),
        source: entry.source,
        about: entry.about,
    });
    let parameters = parameters().into_iter().map(|shown| Parameter {
        of: shown.of,
        name: shown.name,
        default: shown.default,
        about: shown.about,
    });
    Document {
        schema: "treering.trees/1",
        spec: spec.map(TreeSpec::to_string),
        trees: trees.collect(),
        parts: parts().map(|(part, names)| Part { part, names }).into(),
        parameters: parameters.collect(),
    }
}

fn text(document: &Document) -> String {
    let mut out = String::from("A tree is named by a spec: TREE(PARAMETER=VALUE,…)+PART+PART\n\n");
    for tree in &document.trees {
        let (name, about) = (tree.name, tree.about);
        let _ = writeln!(
            out,
            "{name:<14} {about} ({}; {})",
            tree.source, tree.runs_on
        );
    }
    out.push_str("\nParts of a tree of pages; each has a default that depends on the tree:\n\n");
    for part in &document.parts {
        let _ = writeln!(out, "{:<14} {}", part.part, part.names.join(", "));
    }
    out.push_str("\nParameters:\n\n");
    for parameter in &document.parameters {
        let (of, name) = (parameter.of, parameter.name);
        let (default, about) = (&parameter.default, parameter.about);
        let _ = writeln!(out, "{of:<14} {name:<16} {default:<16} {about}");
    }
    out
}
