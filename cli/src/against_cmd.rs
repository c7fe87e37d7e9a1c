//! `treering check WalRecovery --against-engine`: the engine does each step that the mirror can do.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use treering_model::Mirror;
use treering_model::check::configs::discover;
use treering_model::check::mirrors::SPECS;
use treering_model::check::suite::SuiteError;
use treering_model::mirror::wal_recovery::WalRecovery;
use treering_model::oracle::events::cover::{self, Cover};

use crate::args::CheckArgs;
use crate::check_cmd::specs_folder;
use crate::failure::{self, Failure};
use crate::output::{self, Output, say};

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let json = (args.json.as_deref().map(|path| Output::new("--json", path))).transpose()?;
    let spec = WalRecovery::SPEC;
    if let Some(other) = args.specs.iter().find(|name| *name != spec) {
        return Err(Failure::usage(format!(
            "--against-engine {other}: expected {spec}, the spec whose code the engine has"
        )));
    }
    let models =
        discover(&specs_folder(args.folder.as_deref())?, &SPECS).map_err(SuiteError::from)?;
    let smoke = models
        .iter()
        .find(|model| model.spec == spec && model.name == "smoke");
    let Some(smoke) = smoke else {
        return Err(Failure::cannot_run(format!(
            "the smoke model of {spec} is missing"
        )));
    };
    let mirror =
        WalRecovery::from_config(&smoke.config).map_err(|e| Failure::usage(e.to_string()))?;
    let limit = Duration::from_nanos(args.budget.unwrap_or(900_000_000_000));
    let cover = cover::run(&mirror, limit).map_err(|e| failure::engine("a store", e))?;
    say(text(&cover).as_bytes())?;
    if let Some(json) = &json {
        json.write(&output::json(&document(&cover))?)?;
    }
    if let Some(mismatch) = &cover.mismatch {
        return Err(Failure::found(format!(
            "{spec}: the engine differs: {}",
            mismatch.why
        )));
    }
    match cover.left.values().sum::<usize>() {
        0 => Ok(()),
        left => Err(Failure::not_reached(format!(
            "{spec}: {left} labelled edges were not tried in {limit:?}"
        ))),
    }
}

fn text(cover: &Cover) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{}: {} states, {} labelled edges; {} taken by the engine, in {} walks of {} steps",
        WalRecovery::SPEC,
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
        let _ = writeln!(text, "  {action:<22} {n:>8} no step of the engine: {why}");
    }
    for (action, n) in &cover.behind {
        let _ = writeln!(
            text,
            "  {action:<22} {n:>8} begin where only such an edge leads"
        );
    }
    for (action, n) in &cover.left {
        let _ = writeln!(text, "  {action:<22} {n:>8} left for want of time");
    }
    if let Some(mismatch) = &cover.mismatch {
        for (i, step) in mismatch.walk.iter().enumerate() {
            let _ = writeln!(text, "{:>4}. {step}", i + 1);
        }
        let _ = writeln!(
            text,
            "the engine differs: {}\nthe state before it:\n{}",
            mismatch.why, mismatch.state
        );
    }
    text
}

fn document(cover: &Cover) -> serde_json::Value {
    let reasons: Vec<_> = (cover.not_takeable.iter())
        .map(|((action, why), n)| json!({"action": action, "why": why, "edges": n}))
        .collect();
    json!({
        "schema": "treering.check/1",
        "complete": true,
        "results": [],
        "never_taken": [],
        "graphs": [],
        "against_engine": [{
            "spec": WalRecovery::SPEC,
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
        }],
    })
}
