//! `treering check --against-engine`: runs the engine along the steps of a mirror's state graph.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use treering_specs::Mirror;
use treering_specs::check::configs::{BoundedModel, discover};
use treering_specs::check::mirrors::SPECS;
use treering_specs::check::suite::SuiteError;
use treering_specs::conformance::Budget;
use treering_specs::conformance::cover::{self, Cover};
use treering_specs::conformance::module::Module;
use treering_specs::conformance::refused::Refusal;
use treering_specs::conformance::situations::{self, Situations};
use treering_specs::conformance::{cow, layout, leaf, lodge, mini, redo, ring, shadow, snapshot};
use treering_specs::mirror::circular_buffer::CircularBuffer;
use treering_specs::mirror::copy_on_write::CopyOnWrite;
use treering_specs::mirror::index_snapshot::IndexSnapshot;
use treering_specs::mirror::leaf_buffering::LeafBuffering;
use treering_specs::mirror::leaf_layout::LeafLayout;
use treering_specs::mirror::mini_page::MiniPage;
use treering_specs::mirror::page_shadowing::PageShadowing;
use treering_specs::mirror::redo_log::RedoLog;
use treering_specs::mirror::surrogate_buffer::SurrogateBuffer;
use treering_specs::mirror::wal_recovery::WalRecovery;

use crate::args::CheckArgs;
use crate::behaviour;
use crate::failure::{self, Failure};
use crate::output::{self, Output, say};
use crate::specs::specs_folder;

/// The specs whose code the engine contains.
const WITH_ENGINE: [&str; 10] = [
    CircularBuffer::SPEC,
    CopyOnWrite::SPEC,
    IndexSnapshot::SPEC,
    LeafBuffering::SPEC,
    LeafLayout::SPEC,
    MiniPage::SPEC,
    PageShadowing::SPEC,
    RedoLog::SPEC,
    SurrogateBuffer::SPEC,
    WalRecovery::SPEC,
];

/// Time limit of a walk along a mirror's edges. Walks also end when no edge is left to take.
const WALKS: Duration = Duration::from_secs(900);
/// Time limit of recording episodes, which do not end by themselves.
const EPISODES: Duration = Duration::from_secs(60);
/// Seed of the episodes.
const SEED: u64 = 1;

/// The result of one spec.
struct Outcome {
    /// The refused event as a TLA+ behaviour; or why there is none.
    behaviour: Option<Result<Module, String>>,
    text: String,
    document: Value,
    failure: Option<Failure>,
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    if let Some(other) = (args.specs.iter()).find(|name| !WITH_ENGINE.contains(&name.as_str())) {
        return Err(Failure::usage(format!(
            "--against-engine {other}: expected a spec whose code the engine has: {}",
            WITH_ENGINE.join(", ")
        )));
    }
    if let Some(folder) = &args.tla {
        behaviour::check_folder(folder)?;
        let driven = |spec: &&str| [WalRecovery::SPEC, CircularBuffer::SPEC].contains(spec);
        if let Some(spec) = args.specs.iter().map(String::as_str).find(driven) {
            return Err(Failure::usage(format!(
                "--tla: {spec}: the engine is driven along its edges, so no event is recorded; see \
                 `treering oracle --mode events --tla`"
            )));
        }
    }
    let models =
        discover(&specs_folder(args.folder.as_deref())?, &SPECS).map_err(SuiteError::from)?;
    let mut documents = Vec::new();
    let mut failed = None;
    for spec in WITH_ENGINE {
        if !(args.specs.is_empty() || args.specs.iter().any(|name| name == spec)) {
            continue;
        }
        let budget = args.budget.map(Duration::from_nanos);
        let outcome = match spec == LeafLayout::SPEC {
            true => against_layouts(&models, budget)?,
            false => against(spec, named(&models, spec, "smoke")?, budget)?,
        };
        if json != Some(Output::Stdout) {
            say(outcome.text.as_bytes())?;
        }
        if let (Some(folder), Some(behaviour)) = (&args.tla, &outcome.behaviour) {
            behaviour::say_module(behaviour, folder)?;
        }
        documents.push(outcome.document);
        failed = failed.or(outcome.failure);
    }
    if let Some(json) = &json {
        json.write(&output::json(&json!({
            "schema": "treering.check/1",
            "complete": true,
            "results": [],
            "never_taken": [],
            "graphs": [],
            "against_engine": documents,
        }))?)?;
    }
    failed.map_or(Ok(()), Err)
}

fn named<'m>(
    models: &'m [BoundedModel],
    spec: &str,
    name: &str,
) -> Result<&'m BoundedModel, Failure> {
    let mut of = models.iter().filter(|model| model.spec == spec);
    let missing = || Failure::cannot_run(format!("the {name} model of {spec} is missing"));
    of.find(|model| model.name == name).ok_or_else(missing)
}

/// The steps of `LeafLayout` are those of several small models.
fn against_layouts(models: &[BoundedModel], budget: Option<Duration>) -> Result<Outcome, Failure> {
    let spec = LeafLayout::SPEC;
    let mirrors = layout::cover::MODELS.map(|name| mirror(named(models, spec, name)?));
    let mirrors: Vec<LeafLayout> = mirrors.into_iter().collect::<Result<_, _>>()?;
    let cover = layout::cover::run(&mirrors, SEED, budget.unwrap_or(EPISODES));
    let cover = cover.map_err(|e| failure::engine("a store", e))?;
    let never = cover.never(&[]);
    Ok(heard(spec, &cover, never, layout::cover::why_not))
}

fn against(spec: &str, model: &BoundedModel, budget: Option<Duration>) -> Result<Outcome, Failure> {
    if spec == LeafBuffering::SPEC {
        let mirror: LeafBuffering = mirror(model)?;
        let cover = leaf::cover::run(&mirror, SEED, budget.unwrap_or(EPISODES));
        return Ok(heard(spec, &cover, cover.never(&[]), leaf::cover::why_not));
    }
    if spec == SurrogateBuffer::SPEC {
        let mirror: SurrogateBuffer = mirror(model)?;
        let cover = lodge::cover::run(&mirror, SEED, budget.unwrap_or(EPISODES));
        return Ok(heard(spec, &cover, cover.never(&[]), lodge::cover::why_not));
    }
    if spec == MiniPage::SPEC {
        let mirror: MiniPage = mirror(model)?;
        let cover = mini::cover::run(&mirror, SEED, budget.unwrap_or(EPISODES));
        let never = mini::cover::NEVER.map(|(label, _)| label);
        return Ok(heard(
            spec,
            &cover,
            cover.never(&never),
            mini::cover::why_not,
        ));
    }
    if spec == PageShadowing::SPEC {
        let mirror: PageShadowing = mirror(model)?;
        let cover = shadow::cover::run(&mirror, SEED, Budget::of_time(budget.unwrap_or(EPISODES)));
        let cover = cover.map_err(|e| failure::engine("a store", e))?;
        return Ok(heard(
            spec,
            &cover,
            cover.never(&[]),
            shadow::cover::why_not,
        ));
    }
    if spec == RedoLog::SPEC {
        let mirror: RedoLog = mirror(model)?;
        let cover = redo::cover::run(&mirror, SEED, Budget::of_time(budget.unwrap_or(EPISODES)));
        let cover = cover.map_err(|e| failure::engine("a store", e))?;
        let never = cover.never(&redo::NEVER);
        return Ok(heard(spec, &cover, never, redo::cover::why_not));
    }
    if spec == CopyOnWrite::SPEC {
        let mirror: CopyOnWrite = mirror(model)?;
        let cover = cow::cover::run(&mirror, SEED, Budget::of_time(budget.unwrap_or(EPISODES)));
        let cover = cover.map_err(|e| failure::engine("a store", e))?;
        let never = [&cow::NEVER[..], &["BuildPage"]].concat();
        return Ok(heard(
            spec,
            &cover,
            cover.never(&never),
            cow::cover::why_not,
        ));
    }
    if spec == IndexSnapshot::SPEC {
        let mirror: IndexSnapshot = mirror(model)?;
        let cover = snapshot::cover::run(&mirror, SEED, budget.unwrap_or(EPISODES));
        let cover = cover.map_err(|e| failure::engine("a store", e))?;
        let never = cover.never(&snapshot::NEVER);
        return Ok(heard(spec, &cover, never, snapshot::cover::why_not));
    }
    let limit = budget.unwrap_or(WALKS);
    let cover = if spec == CircularBuffer::SPEC {
        ring::cover::run(&mirror(model)?, limit)
            .map_err(|e| Failure::cannot_run(format!("cannot build the model's ring: {e}")))?
    } else {
        cover::run(&mirror(model)?, limit).map_err(|e| failure::engine("a store", e))?
    };
    let failure = walks_failed(spec, &cover, limit);
    Ok(Outcome {
        behaviour: None,
        text: text(spec, &cover),
        document: document(spec, &cover),
        failure,
    })
}

fn mirror<M: Mirror>(model: &BoundedModel) -> Result<M, Failure> {
    M::from_config(&model.config).map_err(|e| Failure::usage(e.to_string()))
}

fn walks_failed(spec: &str, cover: &Cover, limit: Duration) -> Option<Failure> {
    if let Some(mismatch) = &cover.mismatch {
        let why = &mismatch.why;
        return Some(Failure::found(format!("{spec}: the engine differs: {why}")));
    }
    let never = cover.never_taken();
    if !never.is_empty() {
        return Some(Failure::not_reached(format!(
            "{spec}: never taken: {}",
            never.join(", ")
        )));
    }
    match cover.left.values().sum::<usize>() {
        0 => None,
        left => Some(Failure::not_reached(format!(
            "{spec}: {left} labelled edges were not tried within {limit:?}"
        ))),
    }
}

fn text(spec: &str, cover: &Cover) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{spec}: {} states, {} labelled edges; {} taken by the engine, in {} walks of {} steps",
        cover.states,
        cover.edges,
        cover.taken_in_all(),
        cover.walks,
        cover.steps
    );
    for (action, n) in &cover.taken {
        let _ = writeln!(text, "  {action:<22} {n:>8} taken");
    }
    for ((action, why), n) in &cover.not_takeable {
        let _ = writeln!(
            text,
            "  {action:<22} {n:>8} not a step of the engine: {why}"
        );
    }
    for (action, n) in &cover.behind {
        let _ = writeln!(
            text,
            "  {action:<22} {n:>8} reachable only through such an edge"
        );
    }
    for (action, n) in &cover.left {
        let _ = writeln!(
            text,
            "  {action:<22} {n:>8} not reached before the time limit"
        );
    }
    if let Some(mismatch) = &cover.mismatch {
        for (i, step) in mismatch.walk.iter().enumerate() {
            let _ = writeln!(text, "{:>4}. {step}", i + 1);
        }
        let _ = writeln!(
            text,
            "the engine differs: {}\nthe state before this step:\n{}",
            mismatch.why, mismatch.state
        );
    }
    text
}

fn document(spec: &str, cover: &Cover) -> Value {
    let reasons: Vec<_> = (cover.not_takeable.iter())
        .map(|((action, why), n)| json!({"action": action, "why": why, "edges": n}))
        .collect();
    json!({
        "spec": spec,
        "model": "smoke",
        "states": cover.states,
        "edges": cover.edges,
        "taken": cover.taken_in_all(),
        "not_takeable": reasons,
        "behind": cover.behind.values().sum::<usize>(),
        "left": cover.left.values().sum::<usize>(),
        "walks": cover.walks,
        "steps": cover.steps,
        "mismatch": cover.mismatch.as_ref().map(|mismatch| &mismatch.why),
    })
}

/// Reports the situations that episodes have covered.
fn heard<E: Debug, H: Debug, A: Debug>(
    spec: &str,
    cover: &situations::Cover<E, Refusal<H, A>>,
    never: Vec<&'static str>,
    why_not: fn(&str, &str) -> Option<&'static str>,
) -> Outcome {
    let total = |situations: &Situations| -> usize {
        situations.values().map(|situations| situations.len()).sum()
    };
    let (all, met) = (total(&cover.all), total(&cover.heard));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{spec}: {} states, {} labelled edges, which begin in {all} situations; {met} met in \
         {} events of the engine; beyond the graph {}",
        cover.states, cover.edges, cover.events, cover.beyond
    );
    let mut actions = Vec::new();
    for (action, situations) in &cover.all {
        let met = cover.heard.get(action);
        let of = situations.len();
        let _ = writeln!(
            text,
            "  {action:<22} {:>4} of {of:>4} situations met",
            met.map_or(0, |met| met.len())
        );
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut not_met = Vec::new();
        for situation in situations {
            if met.is_some_and(|met| met.contains(situation)) {
                continue;
            }
            match why_not(action, situation) {
                Some(why) => *reasons.entry(why).or_default() += 1,
                None => not_met.push(situation),
            }
        }
        for (why, n) in &reasons {
            let _ = writeln!(text, "  {:<22} {n:>4} not a step of the engine: {why}", "");
        }
        for situation in &not_met {
            let _ = writeln!(text, "  {:<22}    1 not met in this run: {situation}", "");
        }
        actions.push(json!({
            "action": action,
            "situations": of,
            "met": met.map_or(0, |met| met.len()),
            "no_step": reasons,
            "not_met": not_met,
        }));
    }
    let failure = match (&cover.refusal, never) {
        (Some((episode, refusal)), _) => {
            let _ = writeln!(text, "{episode:?}\n{refusal}");
            Some(Failure::found(format!(
                "{spec}: the mirror refuses an event of the engine: {}",
                refusal.why
            )))
        }
        (None, never) if !never.is_empty() => Some(Failure::not_reached(format!(
            "{spec}: never taken: {}",
            never.join(", ")
        ))),
        _ => None,
    };
    let refusal = cover.refusal.as_ref();
    Outcome {
        behaviour: refusal.map(|(_, refusal)| refusal.behaviour.clone()),
        document: json!({
            "spec": spec,
            "model": "smoke",
            "states": cover.states,
            "edges": cover.edges,
            "situations": all,
            "met": met,
            "beyond": cover.beyond,
            "events": cover.events,
            "actions": actions,
            "mismatch": cover.refusal.as_ref().map(|(_, refusal)| &refusal.why),
        }),
        text,
        failure,
    }
}
