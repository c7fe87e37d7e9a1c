//! The terms that reports and help texts use and `docs/GLOSSARY.md` explains, each in one sentence.
//!
//! If a report begins to use another term, add it to `TERMS` and to the page. Tests compare the
//! page, the list and the reports.

/// The line at the end of reports that points to the glossary.
pub(crate) const SEE: &str = "Glossary: docs/GLOSSARY.md\n";

/// The terms, in alphabetical order.
#[cfg(test)]
const TERMS: [&str; 90] = [
    "action",
    "adapter",
    "background work",
    "buffer node",
    "cache miss",
    "cause",
    "check",
    "checkpoint",
    "cleaning",
    "CLI",
    "conformance",
    "counterexample",
    "crash",
    "crash point",
    "crash state",
    "cut",
    "damage",
    "delta",
    "depth",
    "device gc",
    "differential",
    "distinct",
    "drain",
    "edge",
    "engine",
    "episode",
    "event",
    "eviction",
    "extra write",
    "face",
    "fence",
    "finding",
    "flush",
    "harm",
    "history",
    "interrupted",
    "interval",
    "isolation",
    "limit",
    "linearizability",
    "log wrap",
    "mark",
    "medium",
    "merge",
    "mini-page",
    "mirror",
    "mode",
    "modification log",
    "mutant",
    "mutation",
    "non-temporal store",
    "opening",
    "over-provisioning",
    "page write",
    "point",
    "power cut",
    "predicted",
    "program",
    "promise",
    "recording",
    "recovery",
    "reference",
    "request",
    "room",
    "run",
    "scan",
    "seed",
    "spare",
    "spec",
    "split",
    "step",
    "store",
    "structure",
    "study",
    "superblock",
    "sweep",
    "tombstone",
    "torn line",
    "torn writes",
    "trigger write",
    "trim",
    "turn",
    "verdict",
    "walk",
    "warm-up",
    "write amplification",
    "write-back",
    "XBI",
    "XPBuffer",
    "XPLine",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use clap::CommandFactory as _;
    use treering_oracle::Check;
    use treering_oracle::crash::Point;

    use super::*;
    use crate::args::Cli;

    const PAGE: &str = include_str!("../../docs/GLOSSARY.md");

    /// The terms and explanations on the page.
    fn entries() -> Vec<(String, String)> {
        let entries = PAGE.split("\n- **").skip(1);
        entries
            .map(|entry| {
                let (term, text) = entry.split_once("**: ").expect("a term, and its sentence");
                let words: Vec<&str> = text.split_whitespace().collect();
                (term.to_owned(), words.join(" "))
            })
            .collect()
    }

    /// Folders and files whose string literals appear in reports.
    const SOURCES: [&str; 14] = [
        "cli/src/oracle_cmd",
        "cli/src/check_cmd.rs",
        "cli/src/against_cmd.rs",
        "cli/src/args",
        "cli/src/sweep_cmd",
        "cli/src/mutate_cmd.rs",
        "drive/src/info",
        "drive/src/report",
        "model/oracle/src",
        "model/specs/src",
        "sim/src/csd/drive.rs",
        "sim/src/report",
        "sim/src/replay",
        "sim/src/ssd/drive.rs",
    ];

    fn files(at: &Path, into: &mut Vec<PathBuf>) {
        if !at.is_dir() {
            return into.push(at.to_owned());
        }
        for entry in std::fs::read_dir(at).expect("a folder of sources") {
            files(&entry.expect("its files").path(), into);
        }
    }

    /// The string literals of a source file, without its tests.
    fn strings(source: &str) -> String {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code: Vec<&str> = code.collect();
        let code = code.join("\n").replace("\\\"", "'");
        let parts = code.split('"').skip(1).step_by(2);
        parts.collect::<Vec<_>>().join("\n")
    }

    fn said() -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut all = Vec::new();
        SOURCES
            .iter()
            .for_each(|at| files(&root.join(at), &mut all));
        let mut said: Vec<String> = (all.iter())
            .map(|file| strings(&std::fs::read_to_string(file).expect("a source")))
            .collect();
        let mut command = Cli::command();
        for name in ["oracle", "check", "replay"] {
            let command = command.find_subcommand_mut(name).expect("a command");
            said.push(command.render_long_help().to_string());
        }
        let text = said.join("\n").to_lowercase();
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
        format!(" {} ", words.collect::<Vec<_>>().join(" "))
    }

    /// Whether the texts use the term, in singular or plural.
    fn uses(said: &str, term: &str) -> bool {
        let term = term.to_lowercase();
        let forms = [term.clone(), format!("{term}s"), format!("{term}es")];
        forms.iter().any(|form| said.contains(&format!(" {form} ")))
    }

    #[test]
    fn every_word_is_explained_in_one_sentence_and_every_explanation_is_of_a_word() {
        let entries = entries();
        let explained: Vec<&str> = entries.iter().map(|(term, _)| term.as_str()).collect();
        assert_eq!(explained, TERMS);
        let sorted = TERMS.is_sorted_by_key(|term| term.to_lowercase());
        assert!(sorted, "by the alphabet");
        for (term, text) in &entries {
            assert!(
                text.ends_with('.') && !text.contains(". "),
                "{term}: {text}"
            );
        }
    }

    #[test]
    fn every_word_is_used_in_a_report_or_in_help() {
        let said = said();
        let unused: Vec<&str> = (TERMS.into_iter())
            .filter(|term| !uses(&said, term))
            .collect();
        assert!(unused.is_empty(), "nothing says {unused:?}");
        assert!(!uses(&said, "nonesuchword"));
    }

    #[test]
    fn what_reports_count_is_explained() {
        let terms: BTreeSet<&str> = TERMS.into_iter().collect();
        let points = Point::ALL.iter().map(|point| point.name());
        // These words need no explanation.
        let plain = ["nothing", "log write", "error", "panic", "progress"];
        let checks = Check::ALL.iter().map(|check| check.name());
        let compound = ["crash-in-recovery", "injected-failure"];
        for word in points.chain(checks) {
            let known = terms.contains(word) || plain.contains(&word) || compound.contains(&word);
            assert!(known, "{word} is not on the page");
        }
    }
}
