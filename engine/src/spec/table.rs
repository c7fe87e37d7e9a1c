//! The registry as documentation.

use std::fmt::Write as _;

use super::registry::{parts, trees};
use super::show::parameters;

/// The registry as a table in Markdown: trees, then parts, then the parameters of both.
///
/// ```
/// assert!(treering_engine::spec::table().contains("| `bminus` | block device |"));
/// ```
#[must_use]
pub fn table() -> String {
    let mut out = String::from("| tree | runs on | from | what it is |\n|---|---|---|---|\n");
    for entry in trees() {
        let device = entry.tree.family().device();
        let (name, source, about) = (entry.name, entry.source, entry.about);
        let _ = writeln!(out, "| `{name}` | {device} | {source} | {about} |");
    }
    out.push_str("\n| part of a page tree | one of |\n|---|---|\n");
    for (part, names) in parts() {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "| {part} | {} |", names.join(", "));
    }
    out.push_str("\n| of | parameter | default | what it is |\n|---|---|---|---|\n");
    for parameter in parameters() {
        let (of, name) = (parameter.of, parameter.name);
        let (default, about) = (parameter.default, parameter.about);
        let _ = writeln!(out, "| `{of}` | `{name}` | {default} | {about} |");
    }
    out
}
