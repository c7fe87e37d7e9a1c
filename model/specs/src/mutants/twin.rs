//! Puts a mutant and the unchanged protocol into one specification.
//!
//! Each definition through which `Next` reaches the change gets a twin: its unchanged text, under
//! another name of the same length, so that columns stay as they are. Then a step of either
//! protocol must be a step of both:
//!
//! ```text
//!   TwinSpec == Init /\ [][Next \/ Nex_]_vars
//!   TwinProp == [][Next /\ Nex_]_vars
//! ```
//!
//! If that holds, both have the same states and the same steps, apart from steps that change
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::mutant::{Mutant, MutantsError};
use super::scope::Scope;
use super::tokens::{self, TokenKind};
use super::tree::{Definition, Module};

/// The modules of the specification of both, by name. `None` if a name has no twin.
pub(super) fn modules(
    scope: &Scope,
    mutant: &Mutant,
) -> Result<Option<Vec<(String, String)>>, MutantsError> {
    let Some(twins) = twins(scope, &mutant.definition)? else {
        return Ok(None);
    };
    let Some(next) = twins.get(&scope.next) else {
        return Ok(None);
    };
    let mut modules = Vec::new();
    for module in &scope.modules {
        let mut text = match module.name == mutant.module {
            true => mutant.text.clone(),
            false => module.text.clone(),
        };
        let mut copies = String::new();
        for definition in module
            .definitions
            .iter()
            .filter(|d| twins.contains_key(&d.name))
        {
            copies.push_str(&copy(module, definition, &twins)?);
            copies.push_str("\n\n");
        }
        if module.name == format!("MC{}", scope.spec) {
            let (old, init, variables) = (&scope.next, &scope.init, &scope.variables);
            copies.push_str(&format!(
                "TwinSpec == {init} /\\ [][{old} \\/ {next}]_{variables}\n\
                 TwinProp == [][{old} /\\ {next}]_{variables}\n"
            ));
        }
        // What follows the end of a module does not count, so the copies go before it.
        let end = text.len() - (module.text.len() - module.end);
        text.insert_str(end, &copies);
        modules.push((module.name.clone(), text));
    }
    Ok(Some(modules))
}

/// A configuration without specification, invariants and properties, and with those of twins.
pub(super) fn config(text: &str) -> String {
    let dropped = [
        "SPECIFICATION",
        "INVARIANT",
        "INVARIANTS",
        "PROPERTY",
        "PROPERTIES",
    ];
    let kept = without(&dropped, text);
    format!("{kept}SPECIFICATION TwinSpec\nPROPERTIES TwinProp\n")
}

/// A configuration without the sections that have these names.
pub(super) fn without(dropped: &[&str], text: &str) -> String {
    const SECTIONS: [&str; 10] = [
        "SPECIFICATION",
        "INVARIANT",
        "INVARIANTS",
        "PROPERTY",
        "PROPERTIES",
        "CONSTANT",
        "CONSTANTS",
        "CONSTRAINT",
        "CONSTRAINTS",
        "CHECK_DEADLOCK",
    ];
    let mut kept = String::new();
    let mut keeps = true;
    for line in text.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if SECTIONS.contains(&word) {
            keeps = !dropped.contains(&word);
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The definitions through which `Next` reaches `changed`, and the names of their twins.
fn twins(scope: &Scope, changed: &str) -> Result<Option<BTreeMap<String, String>>, MutantsError> {
    let mut involved = BTreeSet::from([changed.to_owned()]);
    loop {
        let before = involved.len();
        for name in &scope.reached {
            let Some((_, definition)) = scope.definition(name) else {
                continue;
            };
            let mut uses = false;
            definition.body.each(&mut |node| {
                uses |= node.name().is_some_and(|name| involved.contains(name));
            });
            if uses {
                involved.insert(name.clone());
            }
        }
        if involved.len() == before {
            break;
        }
    }
    let mut words = BTreeSet::new();
    for module in &scope.modules {
        let tokens = tokens::split(&module.name, &module.text)?;
        words.extend(tokens.iter().map(|token| token.text.to_owned()));
    }
    let mut twins = BTreeMap::new();
    for name in involved {
        let Some(twin) = other_name(&name, &words) else {
            return Ok(None);
        };
        words.insert(twin.clone());
        twins.insert(name, twin);
    }
    Ok(Some(twins))
}

/// A name of the same length that is no word yet.
fn other_name(name: &str, words: &BTreeSet<String>) -> Option<String> {
    let ends = ('0'..='9').chain('A'..='Z').chain('a'..='z');
    let places = (1..name.len()).rev().chain([0]);
    for place in places {
        for end in std::iter::once('_').chain(ends.clone()) {
            let mut other = name.to_owned();
            other.replace_range(place..=place, end.encode_utf8(&mut [0; 4]));
            let starts_well = other.starts_with(|c: char| c.is_ascii_alphabetic());
            if starts_well && !words.contains(&other) && !tlaplus(&other) {
                return Some(other);
            }
        }
    }
    None
}

/// Words that mean something in TLA+ or its standard modules and that a short name might become.
fn tlaplus(word: &str) -> bool {
    ["IF", "IN", "Nat", "Int", "Len", "Seq", "LET"].contains(&word)
        || word.starts_with("WF_")
        || word.starts_with("SF_")
}

/// The unchanged definition under its twin's name, which refers to twins.
fn copy(
    module: &Module,
    definition: &Definition,
    twins: &BTreeMap<String, String>,
) -> Result<String, MutantsError> {
    let mut text = module.text[definition.bytes.clone()].to_owned();
    let tokens = tokens::split(&module.name, &module.text)?;
    for (at, token) in tokens.iter().enumerate() {
        let inside = definition.bytes.contains(&token.at);
        let field = at
            .checked_sub(1)
            .is_some_and(|before| tokens[before].is("."))
            || tokens.get(at + 1).is_some_and(|after| after.is("|->"));
        let twin = twins.get(token.text);
        if let Some(twin) = twin.filter(|_| inside && !field && token.kind == TokenKind::Word) {
            let start = token.at - definition.bytes.start;
            text.replace_range(start..start + twin.len(), twin);
        }
    }
    Ok(text)
}
