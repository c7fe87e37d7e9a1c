//! What the tests of all inductive invariants share.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use treering_specs::check::configs::{BoundedModel, Lane, discover};
use treering_specs::check::mirrors::SPECS;
use treering_specs::check::run::{self, Verdict};
use treering_specs::check::tools;
use treering_specs::inductive::{Induction, Inductive, Plan, check, typed};
use treering_specs::value::state_text;
use treering_specs::{Config, Value};

fn specs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs")
}

/// The models of a spec that a mirror judges.
pub(crate) fn models<M: Inductive>() -> Vec<BoundedModel> {
    let mut models = discover(&specs(), &SPECS).expect("the models");
    models.retain(|model| model.spec == M::SPEC && !model.config.invariants.is_empty());
    models
}

pub(crate) fn plan(states: u64) -> Plan {
    Plan {
        states: Some(states),
        seed: 1,
        versions: 2,
        without: None,
    }
}

pub(crate) fn without(conjunct: &str, states: u64) -> Plan {
    Plan {
        without: Some(conjunct.to_owned()),
        ..plan(states)
    }
}

pub(crate) fn mirror<M: Inductive>(name: &str) -> M {
    let all = models::<M>();
    let model = all.iter().find(|m| m.name == name).expect("the model");
    M::from_config(&model.config).expect("a mirror")
}

/// The models with a seeded bug, and what the search finds with it.
pub(crate) fn with_bugs<M: Inductive>(states: u64) -> Vec<(BoundedModel, Induction)> {
    let has_bug = |model: &BoundedModel| {
        let bug = model.config.constants.get("Bug");
        bug != Some(&Value::str("none"))
    };
    let models = models::<M>().into_iter().filter(has_bug);
    models
        .map(|model| {
            let mirror = M::from_config(&model.config).expect("a mirror");
            let found = check(&mirror, &plan(states), &|_| {});
            (model, found)
        })
        .collect()
}

/// Whether reachable states have the invariant; how many were visited, at most `most`.
pub(crate) fn reachable<M: Inductive>(model: &M, most: usize) -> usize {
    let mut states = model.init_states();
    let mut seen: HashSet<M::State> = states.iter().cloned().collect();
    let mut next = 0;
    while next < states.len().min(most) {
        let state = states[next].clone();
        next += 1;
        for conjunct in M::CONJUNCTS {
            assert!(conjunct.holds(model, &state), "{}", conjunct.name);
        }
        let after = model.next_steps(&state).into_iter().map(|(_, after)| after);
        states.extend(after.filter(|after| seen.insert(after.clone())));
    }
    next
}

/// Conjuncts whose texts may differ unless another one holds: which of two entries of one number is
/// the last (`CHOOSE`), and whether a pair in two buffers is counted once (as a set).
const UNDETERMINED: [(&str, &str); 2] = [("RecoverableInv", "OrderInv"), ("CountInv", "SpaceInv")];

/// A module whose initial states are typed states, some of which lack a conjunct. In each, exactly
/// the conjuncts that the mirror names must not hold. No conjunct speaks of `crashes`, which numbers
/// them. Returns how many lack one, too.
pub(crate) fn module<M: Inductive>(model: &M, constants: &str, each: u64) -> (String, usize) {
    let mut states = typed(model, &plan(4 * each));
    for conjunct in M::CONJUNCTS {
        states.extend(typed(model, &without(conjunct.name, each)));
    }
    let (mut initial, mut expected) = (String::new(), String::new());
    let mut lacking = 0;
    for (n, state) in states.iter().enumerate() {
        let text = state_text(&model.variables(state));
        let lines = text
            .lines()
            .map(|line| match line.starts_with("/\\ crashes = ") {
                true => format!("/\\ crashes = {n}"),
                false => line.to_owned(),
            });
        for (i, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            let start = if i == 0 { "    \\/ " } else { "       " };
            writeln!(initial, "{start}{line}").unwrap();
        }
        let lacks = M::CONJUNCTS.iter().filter(|c| !c.holds(model, state));
        let lacks: Vec<&str> = lacks.map(|c| c.name).collect();
        let chosen = |name: &str| {
            let mut all = UNDETERMINED.iter();
            all.any(|(it, unless)| *it == name && lacks.contains(unless))
        };
        let lacks = lacks.iter().filter(|name| !chosen(name));
        let lacks: Vec<String> = lacks.map(|name| format!("\"{name}\"")).collect();
        lacking += usize::from(!lacks.is_empty());
        let comma = if n == 0 { "" } else { "," };
        write!(expected, "{comma}\n    {{{}}}", lacks.join(", ")).unwrap();
    }
    let found: Vec<String> = M::CONJUNCTS
        .iter()
        .map(|c| {
            let unless = UNDETERMINED.iter().filter(|(name, _)| *name == c.name);
            let unless: String = unless.map(|(_, other)| format!(" \\/ ~{other}")).collect();
            format!("(IF {0}{unless} THEN {{}} ELSE {{\"{0}\"}})", c.name)
        })
        .collect();
    let text = format!(
        "---- MODULE Typed ----\nEXTENDS Ind{}\nCONSTANTS {constants}\nTypedInit ==\n{initial}\n\
         TypedSpec == TypedInit /\\ [][FALSE]_vars\nExpected == <<{expected}>>\n\
         AgreeInv == {} = Expected[crashes + 1]\n====\n",
        M::SPEC,
        found.join("\n    \\cup ")
    );
    (text, lacking)
}

/// Runs `tla-mc` on that module, with the constants of a model and these. Returns `None` if it is
/// not installed. It is not fetched.
pub(crate) fn agreement<M: Inductive>(
    text: &str,
    name: &str,
    constants: &str,
) -> Option<run::Outcome> {
    let specs = specs();
    let here = specs.join("target/tla-mc-0.2.2/bin/tla-mc").is_file();
    if !here && std::env::var_os("TLA_MC").is_none() {
        return None;
    }
    let program = tools::tla_mc(&specs, &mut |_| {}).expect("tla-mc");
    let folder = tempfile::tempdir().expect("a folder");
    let all = models::<M>();
    let model = all.iter().find(|m| m.name == name).expect("the model");
    let config = model
        .module
        .with_file_name(format!("MC{}_{name}.cfg", M::SPEC));
    let config = std::fs::read_to_string(config).expect("the configuration");
    let (config, _) = config.split_once("INVARIANTS").expect("invariants");
    let own = constants.split(", ").map(|c| format!("    {c} = {c}\n"));
    let own: String = own.collect();
    let config = config
        .replace("SPECIFICATION Spec", "SPECIFICATION TypedSpec")
        .replace("    Clients =", &format!("{own}    Clients ="));
    let config = format!("{config}INVARIANTS\n    AgreeInv\nCHECK_DEADLOCK FALSE\n");
    let at = folder.path().join("Typed.cfg");
    std::fs::write(&at, config).expect("a configuration");
    std::fs::write(folder.path().join("Typed.tla"), text).expect("a module");
    let beside = model.module.parent().expect("a folder");
    for file in std::fs::read_dir(beside).expect("the modules") {
        let file = file.expect("a file").path();
        if file.extension().is_some_and(|kind| kind == "tla") {
            let name = file.file_name().expect("a name");
            std::fs::copy(&file, folder.path().join(name)).expect("a copy");
        }
    }
    let model = BoundedModel {
        spec: "Typed".into(),
        name: "typed".into(),
        lane: Lane::Smoke,
        module: folder.path().join("Typed.tla"),
        config: Config::read(&at).expect("a configuration"),
    };
    Some(run::tla_mc(&program, &specs, &model).expect("tla-mc runs"))
}

/// The text in TLA+ judges typed states as the mirror does. A mirror that forgot the conjunct
/// `forgets` would differ.
pub(crate) fn agrees<M: Inductive>(name: &str, constants: &str, each: u64, forgets: &str) {
    let (text, lacking) = module(&mirror::<M>(name), constants, each);
    assert!(lacking > 50, "{lacking}");
    let Some(outcome) = agreement::<M>(&text, name, constants) else {
        return;
    };
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.error);
    assert!(outcome.distinct > Some(300), "{:?}", outcome.distinct);
    let wrong = text.replace(&format!("\n    {{\"{forgets}\"}}"), "\n    {}");
    assert!(wrong != text, "no state lacks {forgets} alone");
    let outcome = agreement::<M>(&wrong, name, constants).expect("tla-mc was there");
    assert_eq!(outcome.verdict, Verdict::Violated, "{:?}", outcome.error);
}
