//! Inserts the switches into the text of a file: each mutant becomes a call of `crate::mutant`,
//! whose first argument is the number of the mutant.

use super::find::Mutant;

/// Text to insert, or to replace other text with.
struct Edit {
    at: usize,
    until: usize,
    /// The order of edits at one position: closing ones before opening ones, the outermost opening
    /// and the innermost closing first.
    rank: (u8, i64, i64),
    text: String,
}

/// The text with all of its mutants.
pub(crate) fn splice(source: &str, mutants: &[&Mutant]) -> String {
    let mut edits = Vec::new();
    for mutant in mutants {
        let (start, end) = (mutant.range.start, mutant.range.end);
        let (number, kind) = (mutant.number, mutant.kind.as_str());
        let (open, between, close) = match (kind, &mutant.between) {
            ("keep", _) => (
                format!("if crate::mutant::keep({number}) {{ "),
                None,
                " }".to_owned(),
            ),
            ("lt" | "le" | "gt" | "ge" | "eq" | "ne", Some(between)) => (
                format!("crate::mutant::{kind}({number}, &("),
                Some((between, "), &(")),
                "))".to_owned(),
            ),
            (_, between) => (
                format!("crate::mutant::{kind}({number}, ("),
                between.as_ref().map(|between| (between, "), (")),
                "))".to_owned(),
            ),
        };
        let order = number as i64;
        edits.push(Edit {
            at: start,
            until: start,
            rank: (1, -(end as i64), order),
            text: open,
        });
        if let Some((between, text)) = between {
            edits.push(Edit {
                at: between.start,
                until: between.end,
                rank: (0, i64::MAX, 0),
                text: text.to_owned(),
            });
        }
        edits.push(Edit {
            at: end,
            until: end,
            rank: (0, -(start as i64), -order),
            text: close,
        });
    }
    edits.sort_by_key(|edit| (edit.at, edit.rank));
    let (mut text, mut at) = (String::with_capacity(source.len() * 2), 0);
    for edit in edits {
        text.push_str(&source[at..edit.at]);
        text.push_str(&edit.text);
        at = edit.until;
    }
    text.push_str(&source[at..]);
    text
}

/// The source of the module with the switches, for `count` mutants.
pub(crate) fn switches(count: usize) -> String {
    include_str!("switches.rs").replace("COUNT_OF_MUTANTS", &count.max(1).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::mutants;

    #[test]
    fn nested_mutants_are_spliced_from_the_outside_in() {
        let source = "fn f(a: u8) -> bool { if a + 1 < 3 { g(a); } a == 2 }";
        let found = mutants("f.rs", source, 0).unwrap();
        let text = splice(source, &found.iter().collect::<Vec<_>>());
        let names: Vec<(usize, &str)> = found.iter().map(|m| (m.number, m.kind.as_str())).collect();
        assert_eq!(
            text,
            "fn f(a: u8) -> bool { if crate::mutant::flip(0, (crate::mutant::lt(1, \
             &(crate::mutant::plus(2, (a), (crate::mutant::one_more(3, (1))))), \
             &(crate::mutant::one_more(4, (3)))))) \
             { if crate::mutant::keep(5) { g(a); } } crate::mutant::eq(6, &(a), \
             &(crate::mutant::one_more(7, (2)))) }",
            "{names:?}"
        );
        assert!(syn::parse_file(&text).is_ok());
    }
}
