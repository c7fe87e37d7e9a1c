//! From the name of a finding in `specs/FINDINGS.md`, or of a model, to the model.

use std::path::Path;

use treering_specs::check::configs::BoundedModel;

use crate::failure::Failure;

/// A model, and the section of the finding that is about it.
pub(super) struct Chosen<'a> {
    pub(super) model: &'a BoundedModel,
    pub(super) section: Option<String>,
}

/// Finds the model that `name` and `only` mean.
pub(super) fn find<'a>(
    specs: &Path,
    models: &'a [BoundedModel],
    name: &str,
    only: Option<&str>,
) -> Result<Chosen<'a>, Failure> {
    let of = |spec: &str, model: &str| {
        let mut models = models.iter();
        models.find(|m| m.spec == spec && m.name == model)
    };
    if let Some(only) = only {
        let model = of(name, only);
        let model = model.ok_or_else(|| unknown(models, name, only))?;
        return Ok(Chosen {
            model,
            section: None,
        });
    }
    if let Some((spec, number)) = finding(models, name) {
        let findings = specs.join("FINDINGS.md");
        let text = std::fs::read_to_string(&findings)
            .map_err(|e| Failure::file(&findings.display().to_string(), &e))?;
        let none = || {
            Failure::usage(format!(
                "{name}: {} has no such finding",
                findings.display()
            ))
        };
        let section = section(&text, spec, number).ok_or_else(none)?;
        let model = shown_model(&section, spec).and_then(|model| of(spec, &model));
        let model = model.ok_or_else(|| {
            Failure::not_reached(format!(
                "{name}: the finding names no model, so there is no counterexample to show"
            ))
        })?;
        return Ok(Chosen {
            model,
            section: Some(section),
        });
    }
    let mut named = models.iter().filter(|m| m.name == name);
    match (named.next(), named.next()) {
        (Some(model), None) => Ok(Chosen {
            model,
            section: None,
        }),
        (Some(one), Some(other)) => Err(Failure::usage(format!(
            "{name}: {} and {} have a model of this name; expected the spec and --only {name}",
            one.spec, other.spec
        ))),
        (None, _) => Err(Failure::usage(format!(
            "{name}: no such spec, finding or model; expected one of {}, or a finding such as \
             'WalRecovery 1'",
            treering_specs::check::mirrors::SPECS.join(", ")
        ))),
    }
}

fn unknown(models: &[BoundedModel], spec: &str, only: &str) -> Failure {
    let of_spec = models.iter().filter(|m| m.spec == spec);
    let known: Vec<&str> = of_spec.map(|m| &*m.name).collect();
    match known.is_empty() {
        true => Failure::usage(format!(
            "{spec}: no such spec; expected one of {}",
            treering_specs::check::mirrors::SPECS.join(", ")
        )),
        false => Failure::usage(format!(
            "--only {only}: expected one of {}",
            known.join(", ")
        )),
    }
}

/// The spec and number of a name like `WalRecovery 1`.
fn finding<'a>(models: &'a [BoundedModel], name: &str) -> Option<(&'a str, u32)> {
    let spec = models.iter().map(|m| &*m.spec);
    let spec = spec
        .filter(|spec| name.starts_with(spec))
        .max_by_key(|s| s.len())?;
    let rest = name[spec.len()..].trim_start_matches([' ', '-', '/', '#']);
    Some((spec, rest.parse().ok()?))
}

/// The section of a finding, with its heading.
fn section(text: &str, spec: &str, number: u32) -> Option<String> {
    let chapter = format!("## {spec} ");
    let heading = format!("### {spec} {number}: ");
    let chapter = text.lines().skip_while(|line| !line.starts_with(&chapter));
    let own = chapter.skip(1).take_while(|line| !line.starts_with("## "));
    let mut lines = own.skip_while(|line| !line.starts_with(&heading));
    let mut section = lines.next()?.trim_start_matches("### ").to_owned();
    for line in lines.take_while(|line| !line.starts_with("### ")) {
        section.push('\n');
        section.push_str(line);
    }
    Some(section.trim_end().to_owned())
}

/// The model that a section shows: the first one behind "See it." that is named as `MCSpec_model`.
fn shown_model(section: &str, spec: &str) -> Option<String> {
    let prefix = format!("MC{spec}_");
    let see = section.split_once("**See it.**")?.1;
    let rest = see.split_once(&prefix)?.1;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## Wal (x)\n\n### Wal 1: One\n\n`MCWal_b.cfg`\n**See it.** `MCWal_a.cfg`: c.\n\n\
                        ### Wal 2: Two\nc\n\n## Other\n";

    #[test]
    fn a_section_ends_at_the_next_heading() {
        let one = section(TEXT, "Wal", 1).unwrap();
        assert!(one.starts_with("Wal 1: One\n\n"), "{one}");
        assert!(one.ends_with(": c."), "{one}");
        assert_eq!(section(TEXT, "Wal", 2).unwrap(), "Wal 2: Two\nc");
        assert_eq!(section(TEXT, "Wal", 3), None);
        assert_eq!(shown_model(&one, "Wal").unwrap(), "a");
        assert_eq!(shown_model("`MCWal_a.cfg`", "Wal"), None);
    }
}
