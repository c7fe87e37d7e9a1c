//! The operators on small modules, the scope, and the fates on a toy protocol.

use std::collections::BTreeSet;
use std::path::Path;

use super::mutant::Mutant;
use super::scope::Scope;
use super::{Fate, Request, Selection, Trial, operators, syntax, tree};
use crate::check::configs::discover;
use crate::check::mirrors::SPECS;
use crate::check::tools::TLA_MC_VERSION;

fn scope_of(text: &str) -> Scope {
    let module = syntax::parse("M", text).unwrap();
    let bounds = BTreeSet::from(["MayStep".to_owned()]);
    Scope::of("M", vec![module], "Spec", bounds).unwrap()
}

fn mutants_of(text: &str) -> Vec<Mutant> {
    operators::mutants(&scope_of(text), &BTreeSet::new()).unwrap()
}

/// The mutants of a module with this action, as operator, before and after.
fn changes(action: &str) -> Vec<String> {
    let text = format!(
        "---- MODULE M ----\nEXTENDS Naturals\nVARIABLES x, y\nA ==\n{action}\nNext == A\n\
         Spec == x = 0 /\\ [][Next]_<<x, y>>\n====\n"
    );
    let told = |m: Mutant| format!("{}: {} => {}", m.operator, m.before, m.after);
    mutants_of(&text).into_iter().map(told).collect()
}

#[test]
fn conditions_are_dropped_and_negated() {
    let found = changes("    /\\ x < 3\n    /\\ ~(y \\in {1})\n    /\\ x' = x\n    /\\ y' = y");
    let expected = [
        "drop-condition: x < 3 => TRUE",
        "negate: x < 3 => x >= 3",
        "drop-condition: ~(y \\in {1}) => TRUE",
        "negate: ~(y \\in {1}) => (y \\in {1})",
        "boundary: x < 3 => x <= 3",
        "constant: x < 3 => x < 4",
    ];
    assert_eq!(found, expected);
}

#[test]
fn assignments_are_forgotten() {
    let found =
        changes("    /\\ x' = [x EXCEPT !.a = TRUE, ![1] = @ \\cup {2}]\n    /\\ y' \\in {1}");
    let expected = [
        "unchanged: x' = [x EXCEPT !.a = TRUE, ![1] = @ \\cup {2}] => x' = x",
        "drop-update: [x EXCEPT !.a = TRUE, ![1] = @ \\cup {2}] => [x EXCEPT ![1] = @ \\cup {2}]",
        "drop-update: [x EXCEPT !.a = TRUE, ![1] = @ \\cup {2}] => [x EXCEPT !.a = TRUE ]",
        "flip: !.a = TRUE => !.a = FALSE",
        "forget: @ \\cup {2} => @",
        "forget: @ \\cup {2} => {2}",
        "unchanged: y' \\in {1} => y' = y",
    ];
    assert_eq!(found, expected);
}

#[test]
fn expressions_lose_parts_and_change_order() {
    let found = changes(
        "    /\\ x' = IF x = {} THEN y \\o <<1, 2>> ELSE Append(y, x + 1)\n    \
         /\\ UNCHANGED <<y, x>>",
    );
    let whole = "x' = IF x = {} THEN y \\o <<1, 2>> ELSE Append(y, x + 1)";
    let expected = [
        format!("unchanged: {whole} => x' = x"),
        "always: x = {} => TRUE".into(),
        "never: x = {} => FALSE".into(),
        "weaken: x = {} => x \\subseteq {}".into(),
        "swap: y \\o <<1, 2>> => <<1, 2>> \\o y".into(),
        "swap: <<1, 2>> => <<2, 1>>".into(),
        "forget: Append(y, x + 1) => y".into(),
        "off-by-one: x + 1 => x".into(),
    ];
    assert_eq!(found, expected);
}

#[test]
fn quantifiers_filters_and_implications_are_weakened() {
    let found = changes(
        "    /\\ \\A n \\in {m \\in y : m = x} : n # x => n \\in y\n    /\\ x' = 1 /\\ UNCHANGED y",
    );
    let wanted = [
        "quantifier: \\A n \\in {m \\in y : m = x} : n # x => n \\in y => \
         \\E n \\in {m \\in y : m = x} : n # x => n \\in y",
        "drop-condition: m = x => TRUE",
        "drop-condition: n # x => n \\in y => n \\in y",
    ];
    for wanted in wanted {
        assert!(
            found.iter().any(|change| change == wanted),
            "{wanted} in {found:#?}"
        );
    }
}

#[test]
fn a_step_that_is_skipped_is_skipped_in_its_definition() {
    let text = "---- MODULE M ----\nVARIABLES x\nSet(n) == x' = n\n\
        Next == \\/ Set(1)\n        \\/ x' = 0\nSpec == x = 0 /\\ [][Next]_x\n====\n";
    let found: Vec<String> = mutants_of(text).into_iter().map(|m| m.name).collect();
    assert!(found.contains(&"M:3:1:skip-step".to_owned()), "{found:?}");
    assert!(found.contains(&"M:5:12:skip-step".to_owned()), "{found:?}");
}

#[test]
fn bounds_seeded_bugs_ghosts_and_what_checks_have_no_mutants() {
    let text = "---- MODULE M ----\nCONSTANT Bug\nVARIABLES\n    x,  \\* a value\n    \
        y   \\* ghost: what x was\n\
        MayStep(n) == TRUE\n\
        Old == x + 1\n\
        Step ==\n    /\\ MayStep(x)\n    /\\ Bug = \"none\" \\/ x = 7\n    \
        /\\ x' = IF Bug = \"late\" THEN x + 7 ELSE 2\n    /\\ y' = Old\n\
        Next == Step\nSpec == x = 0 /\\ [][Next]_<<x, y>>\nInv == x < 9\n====\n";
    let found: Vec<String> = mutants_of(text).into_iter().map(|m| m.name).collect();
    assert_eq!(found, ["M:11:8:unchanged"]);
}

#[test]
fn lists_keep_their_columns() {
    let action = "    /\\ \\/ x = 1 /\\ /\\ y = 1\n                   \
        /\\ y = 2\n       \\/ y = 3\n    \
        /\\ x' = 2 /\\ y' = 2";
    let text = format!(
        "---- MODULE M ----\nVARIABLES x, y\nA ==\n{action}\nNext == A\n\
         Spec == x = 0 /\\ [][Next]_<<x, y>>\n====\n"
    );
    let whole = syntax::parse("M", &text).unwrap();
    let junctions = |module: &tree::Module| {
        let mut count = 0;
        module.definitions[0]
            .body
            .each(&mut |node| count += usize::from(node.kind.is_junction()));
        count
    };
    for mutant in mutants_of(&text) {
        let module = syntax::parse("M", &mutant.text).unwrap();
        let left = junctions(&module);
        assert!(
            left <= junctions(&whole),
            "{}:\n{}",
            mutant.name,
            mutant.text
        );
        // Only what is dropped as a whole takes lists away.
        let lists = ["/\\", "\\/"]
            .iter()
            .any(|sign| mutant.before.contains(sign));
        assert!(
            left == junctions(&whole) || lists,
            "{}:\n{}",
            mutant.name,
            mutant.text
        );
        assert_eq!(mutant.text.lines().count(), text.lines().count());
    }
}

fn specs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs")
}

#[test]
fn every_protocol_has_mutants_with_names_of_their_own() {
    let models = discover(&specs(), &SPECS).unwrap();
    let mut modules = BTreeSet::new();
    for spec in SPECS.iter().filter(|spec| **spec != "DurableMap") {
        let of_spec: Vec<_> = models.iter().filter(|m| m.spec == *spec).collect();
        let scope = Scope::read(&of_spec).unwrap_or_else(|e| panic!("{e}"));
        let mutants = operators::mutants(&scope, &modules).unwrap();
        modules.extend(scope.modules.iter().map(|module| module.name.clone()));
        let names: BTreeSet<&str> = mutants.iter().map(|m| &*m.name).collect();
        eprintln!(
            "{spec}: {} mutants, ghosts {:?}",
            mutants.len(),
            scope.ghosts
        );
        assert_eq!(names.len(), mutants.len(), "{spec}");
        assert!(mutants.len() > 50, "{spec} has {} mutants", mutants.len());
        for mutant in &mutants {
            assert!(!mutant.definition.ends_with("Inv"), "{}", mutant.name);
        }
    }
}

/// A protocol that counts to its limit and sets a flag. It has the name of one that the project
/// knows, because only those are checked.
const TOY: &str = "---- MODULE WalRecovery ----
EXTENDS Naturals
CONSTANT Limit
VARIABLES x, y
Init == x = 0 /\\ y = {}
Count ==
    /\\ x < Limit
    /\\ x' = x + 1
    /\\ UNCHANGED y
Flag ==
    /\\ x <= 5
    /\\ y' = {x} \\cup y
    /\\ UNCHANGED x
Again ==
    /\\ x < 1
    /\\ x' = x + 1
    /\\ y' = y
Next == Count \\/ Flag \\/ Again
Spec == Init /\\ [][Next]_<<x, y>>
LimitInv == x <= 2
====
";

fn toy(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    for name in ["contract", "wal_recovery"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    write(
        "manifest.json",
        "{\"schema\":\"treering.specs/1\",\"tlc\":\"2.18\",\"tla_mc\":\"0.2.2\",\"models\":[]}",
    );
    write("wal_recovery/WalRecovery.tla", TOY);
    let wrapper = "---- MODULE MCWalRecovery ----\nEXTENDS WalRecovery\n====\n";
    write("wal_recovery/MCWalRecovery.tla", wrapper);
    write(
        "wal_recovery/MCWalRecovery_smoke.cfg",
        "\\* The toy.\nSPECIFICATION Spec\nCONSTANTS Limit = 2\n\
         INVARIANTS LimitInv\nCHECK_DEADLOCK FALSE\n",
    );
    let key = "WalRecovery\tFlag\tunchanged\ty' = {x} \\cup y\ty' = y";
    write(
        "survivors.tsv",
        &format!("{key}\tno invariant is about y\n"),
    );
    std::os::unix::fs::symlink(specs().join("target"), folder.join("target")).unwrap();
}

#[test]
fn a_toy_has_killed_equivalent_and_living_mutants() {
    let there = specs().join(format!("target/tla-mc-{TLA_MC_VERSION}/bin/tla-mc"));
    if std::env::var_os("TLA_MC").is_none() && !there.is_file() {
        eprintln!("SKIPPED: tla-mc is not installed; `treering check --checker tla-mc` fetches it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    toy(folder.path());
    let request = Request {
        specs: folder.path().to_owned(),
        only_specs: Vec::new(),
        selection: Selection::All,
        budget: None,
    };
    let report = super::run(&request, &|_| {}).unwrap();
    let fate = |change: &str| {
        let told = |t: &&Trial| format!("{}: {} => {}", t.operator, t.before, t.after) == change;
        let trial = report.trials.iter().find(told);
        let trial = trial.unwrap_or_else(|| panic!("{change} in {:#?}", report.trials));
        (trial.fate.clone(), trial.reason.clone())
    };
    let killed = Fate::Killed {
        by: "LimitInv".into(),
        model: "smoke".into(),
    };
    assert_eq!(fate("boundary: x < Limit => x <= Limit").0, killed);
    assert_eq!(fate("drop-condition: x < Limit => TRUE").0, killed);
    assert_eq!(fate("boundary: x <= 5 => x < 5").0, Fate::Equivalent);
    assert_eq!(fate("drop-condition: x <= 5 => TRUE").0, Fate::Equivalent);
    // The step is counted twice, and is the same one.
    assert_eq!(fate("boundary: x < 1 => x <= 1").0, Fate::Equivalent);
    let (alive, reason) = fate("unchanged: y' = {x} \\cup y => y' = y");
    assert!(matches!(alive, Fate::Alive { .. }), "{alive:?}");
    assert_eq!(reason.as_deref(), Some("no invariant is about y"));
    let score = super::scores(&report.trials);
    assert_eq!(score.len(), 1);
    let score = &score[0];
    assert_eq!(score.mutants, report.trials.len());
    let sum = score.killed + score.equivalent + score.alive + score.stillborn;
    assert_eq!(sum, score.mutants);

    let again = Request {
        selection: Selection::Named(vec!["WalRecovery:7:10:boundary".into()]),
        ..request.clone()
    };
    let again = super::run(&again, &|_| {}).unwrap();
    assert_eq!(again.trials.len(), 1);
    assert_eq!(again.trials[0].fate, killed);
    let unknown = Request {
        selection: Selection::Named(vec!["WalRecovery:7:9:boundary".into()]),
        ..request
    };
    let unknown = super::run(&unknown, &|_| {}).unwrap_err().to_string();
    assert!(
        unknown.starts_with("WalRecovery:7:9:boundary: no mutant"),
        "{unknown}"
    );
}
