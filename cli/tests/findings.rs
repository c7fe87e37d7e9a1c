//! Checks `specs/FINDINGS.md`: each finding has the same shape, the table has each finding, and
//! what they say of models and of the engine exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The parts of a finding, in order.
const PARTS: [&str; 6] = ["Promise", "Scenario", "Lost", "Repair", "Engine", "See it"];

/// One finding.
struct Finding {
    /// Its spec and number, such as `WalRecovery 1`.
    name: String,
    title: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("a file of the project")
}

fn findings() -> Vec<Finding> {
    let text = read("specs/FINDINGS.md");
    let sections = text.split("\n## ").skip(1);
    let mut found = Vec::new();
    for section in sections {
        let spec = section.split_whitespace().next().expect("a heading");
        for part in section.split("\n### ").skip(1) {
            let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
            let Some((name, title)) = heading.split_once(": ") else {
                continue;
            };
            if name.starts_with(spec) {
                found.push(Finding {
                    name: name.to_owned(),
                    title: title.to_owned(),
                    text: text.to_owned(),
                });
            }
        }
    }
    found
}

impl Finding {
    fn spec_and_number(&self) -> (&str, usize) {
        let (spec, number) = self.name.split_once(' ').expect("a spec and a number");
        (spec, number.parse().expect("a number"))
    }

    /// The text of a part, up to the next one or to a further paragraph in bold.
    fn part(&self, name: &str) -> &str {
        let label = format!("**{name}.**");
        let behind = self.text.split_once(&label).map_or("", |(_, text)| text);
        behind.split("\n\n**").next().expect("a text").trim()
    }

    /// The model that has the counterexample, and the property that it violates.
    fn shown(&self) -> Option<(String, String)> {
        let (spec, _) = self.spec_and_number();
        let spans: Vec<&str> = spans(self.part("See it")).collect();
        let model = spans.first()?.strip_prefix(&format!("MC{spec}_"))?;
        let model = model.strip_suffix(".cfg")?;
        Some((model.to_owned(), (*spans.get(1)?).to_owned()))
    }

    /// The anchor that a heading has in a rendered document.
    fn anchor(&self) -> String {
        let heading = format!("{}: {}", self.name, self.title).to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    }
}

/// The texts in backquotes.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn none_of(stories: &[String]) {
    assert!(stories.is_empty(), "{}", stories.join("\n"));
}

#[test]
fn each_finding_has_the_same_parts_and_at_most_five_steps() {
    let mut stories = Vec::new();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for finding in findings() {
        let name = &finding.name;
        let (spec, number) = finding.spec_and_number();
        let before = last.insert(spec.to_owned(), number).unwrap_or(0);
        if number != before + 1 {
            stories.push(format!("{name}: follows number {before}"));
        }
        let places: Vec<Option<usize>> = PARTS
            .iter()
            .map(|part| finding.text.find(&format!("\n**{part}.**")))
            .collect();
        if places.iter().any(Option::is_none) || !places.is_sorted() {
            stories.push(format!("{name}: expected {PARTS:?}, in this order"));
            continue;
        }
        if let Some(empty) = PARTS.iter().find(|part| finding.part(part).is_empty()) {
            stories.push(format!("{name}: {empty} is empty"));
        }
        let steps = finding.part("Scenario").lines();
        let steps: Vec<usize> = steps
            .filter_map(|line| line.split_once(". ")?.0.parse().ok())
            .collect();
        if steps != (1..=steps.len()).collect::<Vec<_>>() || !(2..=5).contains(&steps.len()) {
            stories.push(format!("{name}: the steps are {steps:?}, expected 1 to 5"));
        }
        let command = format!("`treering explore '{name}'`");
        let see = finding.part("See it").split_whitespace();
        if !see.collect::<Vec<_>>().join(" ").contains(&command) {
            stories.push(format!("{name}: does not say {command}"));
        }
    }
    assert!(last.len() >= 8, "only findings of {last:?}");
    none_of(&stories);
}

#[test]
fn the_table_has_each_finding_with_its_model_as_in_the_manifest() {
    let manifest: Value = serde_json::from_str(&read("specs/manifest.json")).expect("JSON");
    let models = manifest["models"].as_array().expect("models");
    let text = read("specs/FINDINGS.md");
    let table = text.split_once("<!-- findings -->\n").expect("a table").1;
    let table = table.split_once("<!-- end -->").expect("its end").0;
    let mut rows = table.lines().skip(2);
    let mut stories = Vec::new();
    for finding in findings() {
        let name = &finding.name;
        let row = rows.next().unwrap_or_default();
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let link = format!("[{name}](#{})", finding.anchor());
        let Some((model, property)) = finding.shown() else {
            stories.push(format!("{name}: names no model and property"));
            continue;
        };
        let (spec, _) = finding.spec_and_number();
        let known = models
            .iter()
            .find(|m| m["spec"] == spec && m["model"] == *model);
        let Some(known) = known else {
            stories.push(format!("{name}: specs/manifest.json has no model {model}"));
            continue;
        };
        // Of properties that something will happen, the manifest has no length.
        let states = known["trace_length"].as_u64();
        let states = states.map_or("–".to_owned(), |states| states.to_string());
        let wanted = [
            &link,
            &format!("`{property}`"),
            &format!("`{model}`"),
            &states,
        ];
        let found = [0, 3, 4, 5].map(|at| cells.get(at).copied().unwrap_or_default());
        if known["property"] != *property || found != wanted {
            stories.push(format!(
                "{name}: the table has {found:?}, expected {wanted:?}"
            ));
        }
        let title = finding.title.to_lowercase();
        if cells.get(1).map(|cell| cell.to_lowercase()) != Some(title) {
            stories.push(format!("{name}: the table has another title: {row}"));
        }
    }
    stories.extend(rows.map(|row| format!("a row without a finding: {row}")));
    none_of(&stories);
}

/// A name in backquotes behind a file must be in that file.
#[test]
fn the_engine_has_the_files_and_names_that_findings_give() {
    let mut stories = Vec::new();
    let mut count = 0;
    for finding in findings() {
        let name = &finding.name;
        let mut file: Option<(&str, String)> = None;
        for span in spans(finding.part("Engine")) {
            if span.starts_with("engine/") {
                match std::fs::read_to_string(root().join(span)) {
                    Ok(text) => file = Some((span, text)),
                    Err(_) => stories.push(format!("{name}: there is no {span}")),
                }
                continue;
            }
            let Some((path, text)) = &file else {
                stories.push(format!("{name}: `{span}` is in no file"));
                continue;
            };
            count += 1;
            let word = span.rsplit("::").next().unwrap_or(span);
            if !text.contains(word) {
                stories.push(format!("{name}: {path} has no {word}"));
            }
        }
        if file.is_none() {
            stories.push(format!("{name}: names no file of the engine"));
        }
    }
    assert!(count >= 60, "only {count} names were found");
    none_of(&stories);
}
