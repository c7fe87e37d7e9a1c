//! Makes the mutants of a protocol.
//!
//! | operator | what it changes |
//! |---|---|
//! | `drop-condition` | a conjunct of a guard, or the condition of a set, becomes `TRUE`; `p => q` becomes `q` |
//! | `drop-case` | a disjunct of a condition becomes `FALSE` |
//! | `negate` | a condition becomes its opposite |
//! | `always`, `never` | the condition of an `IF` becomes `TRUE` or `FALSE` |
//! | `quantifier` | `\A` becomes `\E`, or the other way |
//! | `boundary` | `<` becomes `<=`, and so on |
//! | `weaken` | `=` becomes `<=` for numbers, `\subseteq` for sets |
//! | `off-by-one` | `n + 1` or `n - 1` becomes `n` |
//! | `constant` | a number in a comparison, a range or a sum is one larger |
//! | `unchanged` | `x' = e` becomes `x' = x` |
//! | `drop-update` | an update in `EXCEPT` is forgotten |
//! | `flip` | a field is set to `FALSE` for `TRUE`, or the other way |
//! | `forget` | `S \cup T`, `S \cap T`, `S \ T` become `S`; `{a, b}` becomes `{a}`; `Append(s, e)` becomes `s` |
//! | `swap` | `a \o b`, `f @@ g` and neighbours in `<<a, b>>` change places |
//! | `skip-step` | an action is never taken: its definition, or the disjunct, becomes `FALSE` |
//!
//! A mutant keeps the columns of what it does not change, because bulleted lists depend on them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::mutant::{Mutant, MutantsError};
use super::scope::{Scope, living_children, truth};
use super::syntax;
use super::tree::{Definition, Kind, Module, Node};

/// Makes all mutants of `scope`, without those of the modules in `others`.
pub(super) fn mutants(
    scope: &Scope,
    others: &BTreeSet<String>,
) -> Result<Vec<Mutant>, MutantsError> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut texts = BTreeSet::new();
    for module in &scope.modules {
        if module.name.starts_with("MC") || others.contains(&module.name) {
            continue;
        }
        for definition in &module.definitions {
            if !scope.reached.contains(&definition.name) {
                continue;
            }
            let mut maker = Maker {
                scope,
                others,
                module,
                drafts: Vec::new(),
            };
            maker.visit(&definition.body);
            for draft in maker.drafts {
                let mutant = draft.mutant(scope, &mut texts)?;
                mutants.extend(mutant);
            }
        }
    }
    name_apart(&mut mutants);
    Ok(mutants)
}

/// Numbers mutants that would have the same name.
fn name_apart(mutants: &mut [Mutant]) {
    let mut names = BTreeSet::new();
    for mutant in mutants {
        let (plain, mut number) = (mutant.name.clone(), 1);
        while !names.insert(mutant.name.clone()) {
            number += 1;
            mutant.name = format!("{plain}-{number}");
        }
    }
}

/// A change that may turn out not to be one.
struct Draft<'a> {
    module: &'a Module,
    operator: &'static str,
    /// Where the mutant's name says that it is.
    at: usize,
    /// The expression that is shown.
    shown: Range<usize>,
    /// In ascending order.
    edits: Vec<(Range<usize>, String)>,
}

impl Draft<'_> {
    fn mutant(
        self,
        scope: &Scope,
        texts: &mut BTreeSet<(String, String)>,
    ) -> Result<Option<Mutant>, MutantsError> {
        let module = self.module;
        let old = &module.text;
        let Some(text) = self.applied() else {
            return Ok(None);
        };
        let end = self.shown.end + text.len() - old.len();
        let new = self.shown.start..end.max(self.shown.start);
        let (before, after) = (tidy(&old[self.shown.clone()]), tidy(&text[new.clone()]));
        let inside = |d: &&Definition| d.bytes.start <= self.at && self.at < d.bytes.end;
        let Some(definition) = module.definitions.iter().find(inside) else {
            return Ok(None);
        };
        // All edits are in one definition, so nothing else need be read again.
        let changed = definition.bytes.end + text.len() - old.len();
        let changed = &text[definition.bytes.start..changed];
        // Spaces do not make two mutants different, and hardly anything is longer than a screen.
        let written = (module.name.clone(), tidy(changed));
        if before == after || !texts.insert(written) {
            return Ok(None);
        }
        // The change must be what it was meant to be: one that upsets a list is none.
        let parsed = syntax::parse(&module.name, changed);
        if !parsed.is_ok_and(|parsed| parsed.definitions.len() == 1) {
            return Ok(None);
        }
        let (line, column) = module.place(self.at);
        Ok(Some(Mutant {
            name: format!("{}:{line}:{column}:{}", module.name, self.operator),
            spec: scope.spec.clone(),
            module: module.name.clone(),
            definition: definition.name.clone(),
            operator: self.operator,
            before,
            after,
            lines_before: lines(old, self.shown.clone()),
            lines_after: lines(&text, new),
            text,
        }))
    }

    /// The module's text with the edits. `None` if they would move a bullet that has others below.
    fn applied(&self) -> Option<String> {
        let old = &self.module.text;
        let mut text = String::with_capacity(old.len() + 16);
        let mut done = 0;
        for (range, new) in &self.edits {
            text.push_str(&old[done..range.start]);
            let replaced = &old[range.clone()];
            if new.len() > replaced.len() && moves_bullet(old, range.end) {
                return None;
            }
            text.push_str(new);
            // What follows keeps its column, and lines keep their numbers.
            let mut left = new.len();
            for c in replaced.chars() {
                if c == '\n' {
                    text.push('\n');
                    left = 0;
                } else if left >= c.len_utf8() {
                    left -= c.len_utf8();
                } else {
                    left = 0;
                    text.push_str(&" ".repeat(c.len_utf8()));
                }
            }
            done = range.end;
        }
        text.push_str(&old[done..]);
        Some(text)
    }
}

/// Whether a bullet after `at` on its line begins a list that goes on below.
fn moves_bullet(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let Some(below) = text[end..].lines().find(|line| !line.trim().is_empty()) else {
        return false;
    };
    let bullet = below.len() - below.trim_start().len();
    let column = start + bullet;
    let sign = below.trim_start().get(..2).unwrap_or_default();
    (sign == "/\\" || sign == "\\/") && column >= at && text.get(column..column + 2) == Some(sign)
}

fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The whole lines that contain `range`, with single spaces.
fn lines(text: &str, range: Range<usize>) -> String {
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |end| range.end + end);
    tidy(&text[start..end])
}

struct Maker<'a> {
    scope: &'a Scope,
    others: &'a BTreeSet<String>,
    module: &'a Module,
    drafts: Vec<Draft<'a>>,
}

impl<'a> Maker<'a> {
    fn text(&self, range: Range<usize>) -> &'a str {
        self.module.text.get(range).unwrap_or_default()
    }

    /// Adds a change of `node`, named for the place `at`.
    fn change(
        &mut self,
        operator: &'static str,
        at: usize,
        node: &Node,
        edits: Vec<(Range<usize>, String)>,
    ) {
        self.drafts.push(Draft {
            module: self.module,
            operator,
            at,
            shown: node.bytes.clone(),
            edits,
        });
    }

    /// Replaces a whole expression.
    fn replace(&mut self, operator: &'static str, node: &Node, new: &str) {
        let edits = vec![(node.bytes.clone(), new.to_owned())];
        self.change(operator, node.bytes.start, node, edits);
    }

    /// Replaces the operator of an expression.
    fn operator(&mut self, operator: &'static str, node: &Node, new: &str) {
        let edits = vec![(node.operator.clone(), new.to_owned())];
        self.change(operator, node.operator.start, node, edits);
    }

    /// Keeps one child of an expression, and drops the rest.
    fn keep(&mut self, operator: &'static str, at: usize, node: &Node, child: &Node) {
        let before = node.bytes.start..child.bytes.start;
        let after = child.bytes.end..node.bytes.end;
        let edits = vec![(before, String::new()), (after, String::new())];
        self.change(operator, at, node, edits);
    }

    /// Drops one of several parts between commas.
    fn drop_part(&mut self, operator: &'static str, node: &Node, parts: &[Node], which: usize) {
        let part = parts[which].bytes.clone();
        let range = match which.checked_sub(1) {
            Some(before) => parts[before].bytes.end..part.end,
            None => part.start..parts[which + 1].bytes.start,
        };
        self.change(operator, part.start, node, vec![(range, String::new())]);
    }

    /// Exchanges two expressions on one line.
    fn swap(&mut self, node: &Node, at: usize, left: &Node, right: &Node) {
        let (first, second) = (
            self.text(left.bytes.clone()),
            self.text(right.bytes.clone()),
        );
        let between = self.text(left.bytes.end..right.bytes.start);
        let swapped = format!("{second}{between}{first}");
        if !swapped.contains('\n') {
            let edits = vec![(left.bytes.start..right.bytes.end, swapped)];
            self.change("swap", at, node, edits);
        }
    }

    fn visit(&mut self, node: &'a Node) {
        if truth(node).is_some() || self.scope.is_ghost(node) {
            return;
        }
        match &node.kind {
            Kind::And => self.conjunction(node),
            Kind::Or => self.disjunction(node),
            Kind::If if truth(&node.children[0]).is_none() => {
                let condition = &node.children[0];
                if !self.scope.is_bound(condition) {
                    self.replace("always", condition, "TRUE");
                    self.replace("never", condition, "FALSE");
                }
            }
            Kind::Infix(sign) => self.infix(node, sign),
            Kind::Quantifier(sign) if !self.scope.is_action(node) => {
                let other = if sign == "\\A" { "\\E" } else { "\\A" };
                self.operator("quantifier", node, other);
            }
            Kind::Filter => {
                if let Some(condition) = node.children.last()
                    && !condition.inner().kind.is_junction()
                {
                    self.replace("drop-condition", condition, "TRUE");
                }
            }
            Kind::Set if node.children.len() > 1 => {
                for which in 0..node.children.len() {
                    self.drop_part("forget", node, &node.children, which);
                }
            }
            Kind::Tuple => {
                for pair in node.children.windows(2) {
                    self.swap(node, pair[0].bytes.start, &pair[0], &pair[1]);
                }
            }
            Kind::Except => self.except(node),
            Kind::Record | Kind::Update => self.flips(node),
            Kind::Name(name) => self.call(node, name),
            // Which variables stay as they are is no part of a step.
            Kind::Prefix(word) if word == "UNCHANGED" => return,
            Kind::Box => return,
            _ => {}
        }
        for child in living_children(node) {
            self.visit(child);
        }
    }

    fn conjunction(&mut self, node: &'a Node) {
        for item in living_children(node) {
            if !self.scope.is_bound(item) && !self.scope.is_action(item) {
                self.replace("drop-condition", item, "TRUE");
                self.negate(item);
            }
        }
    }

    fn disjunction(&mut self, node: &'a Node) {
        let living: Vec<&Node> = living_children(node).collect();
        for item in &living {
            if self.scope.is_bound(item) {
                continue;
            }
            if self.scope.is_action(item) {
                self.skip(item, living.len());
            } else {
                if living.len() > 1 {
                    self.replace("drop-case", item, "FALSE");
                }
                self.negate(item);
            }
        }
    }

    /// Never takes an action. Its definition changes, so that fairness does not promise it either.
    fn skip(&mut self, item: &'a Node, steps: usize) {
        let named = item
            .inner()
            .name()
            .filter(|name| self.scope.reached.contains(*name));
        match named.and_then(|name| self.scope.definition(name)) {
            Some((module, definition)) if !self.others.contains(&module.name) => {
                self.drafts.push(Draft {
                    module,
                    operator: "skip-step",
                    at: definition.at,
                    shown: definition.body.bytes.clone(),
                    edits: vec![(definition.body.bytes.clone(), "FALSE".to_owned())],
                });
            }
            _ if steps > 1 => self.replace("skip-step", item, "FALSE"),
            _ => {}
        }
    }

    fn negate(&mut self, item: &Node) {
        let node = item.inner();
        let text = self.text(node.bytes.clone());
        if node.kind.is_junction() || text.contains('\n') {
            return;
        }
        let opposite = match node.infix() {
            Some("=") => Some("#"),
            Some("#" | "/=") => Some("="),
            Some("\\in") => Some("\\notin"),
            Some("\\notin") => Some("\\in"),
            Some("<") => Some(">="),
            Some("<=") => Some(">"),
            Some(">") => Some("<="),
            Some(">=") => Some("<"),
            _ => None,
        };
        match (opposite, &node.kind) {
            (Some(opposite), _) => self.operator("negate", node, opposite),
            (None, Kind::Not) => {
                self.keep("negate", node.bytes.start, node, &node.children[0]);
            }
            (None, _) => self.replace("negate", node, &format!("~({text})")),
        }
    }

    fn infix(&mut self, node: &'a Node, sign: &str) {
        let (left, right) = (&node.children[0], &node.children[1]);
        if let Some(name) = left.primed() {
            match sign {
                "=" => {
                    let edits = vec![(right.bytes.clone(), name.to_owned())];
                    self.change("unchanged", node.bytes.start, node, edits);
                }
                "\\in" => self.replace("unchanged", node, &format!("{name}' = {name}")),
                _ => {}
            }
            return;
        }
        match sign {
            "<" => self.operator("boundary", node, "<="),
            "<=" | "=<" => self.operator("boundary", node, "<"),
            ">" => self.operator("boundary", node, ">="),
            ">=" => self.operator("boundary", node, ">"),
            "=" if is_number(left) || is_number(right) => self.operator("weaken", node, "<="),
            "=" if is_set(left) || is_set(right) => self.operator("weaken", node, "\\subseteq"),
            "=>" if truth(left).is_none() => {
                self.keep("drop-condition", left.bytes.start, node, right);
            }
            "+" | "-" if self.text(right.bytes.clone()) == "1" => {
                self.keep("off-by-one", node.operator.start, node, left);
            }
            "\\cup" | "\\cap" | "\\" => {
                self.keep("forget", right.bytes.start, node, left);
                if sign == "\\cup" {
                    self.keep("forget", left.bytes.start, node, right);
                }
            }
            "\\o" | "@@" => self.swap(node, node.operator.start, left, right),
            _ => {}
        }
        let counted = ["<", "<=", ">", ">=", "=", "#", "..", "+", "-"].contains(&sign);
        let module = self.module;
        let text = |n: &Node| module.text.get(n.bytes.clone());
        let one = |n: &Node| ["+", "-"].contains(&sign) && text(n) == Some("1");
        for number in [left, right] {
            if counted && number.kind == Kind::Number && !one(number) {
                let text = self.text(number.bytes.clone());
                // Numbers of a spec are small.
                let larger = text.parse::<u32>().map_or(1, |n| n.saturating_add(1));
                let edits = vec![(number.bytes.clone(), larger.to_string())];
                self.change("constant", number.bytes.start, node, edits);
            }
        }
    }

    fn except(&mut self, node: &'a Node) {
        let (base, updates) = (&node.children[0], &node.children[1..]);
        if updates.len() == 1 {
            self.keep("drop-update", updates[0].bytes.start, node, base);
            return;
        }
        for which in 0..updates.len() {
            self.drop_part("drop-update", node, updates, which);
        }
    }

    /// Fields that are set to a truth value.
    fn flips(&mut self, node: &'a Node) {
        let values = match node.kind {
            Kind::Update => &node.children[node.children.len().saturating_sub(1)..],
            _ => &node.children[..],
        };
        for value in values {
            let other = match self.text(value.bytes.clone()) {
                "TRUE" => "FALSE",
                "FALSE" => "TRUE",
                _ => continue,
            };
            let edits = vec![(value.bytes.clone(), other.to_owned())];
            self.change("flip", value.bytes.start, node, edits);
        }
    }

    fn call(&mut self, node: &'a Node, name: &str) {
        if name == "Append" && node.children.len() == 2 {
            self.keep(
                "forget",
                node.children[1].bytes.start,
                node,
                &node.children[0],
            );
        }
        let Some((_, definition)) = self.scope.definition(name) else {
            return;
        };
        // An action that does nothing but set one variable.
        let body = &definition.body;
        let set = (body.infix() == Some("="))
            .then(|| body.children[0].primed())
            .flatten();
        if let Some(variable) = set {
            self.replace("unchanged", node, &format!("UNCHANGED {variable}"));
        }
    }
}

/// Whether an expression is certainly a number.
fn is_number(node: &Node) -> bool {
    let node = node.inner();
    match &node.kind {
        Kind::Number => true,
        Kind::Infix(sign) => ["+", "-", "*", "%", "\\div"].contains(&&**sign),
        Kind::Name(name) => name == "Len" || name == "Cardinality",
        _ => false,
    }
}

/// Whether an expression is certainly a set.
fn is_set(node: &Node) -> bool {
    let node = node.inner();
    match &node.kind {
        Kind::Set | Kind::Filter | Kind::Image => true,
        Kind::Infix(sign) => ["\\cup", "\\cap", "\\", ".."].contains(&&**sign),
        Kind::Prefix(word) => ["SUBSET", "UNION", "DOMAIN"].contains(&&**word),
        _ => false,
    }
}
