//! The models that judge the mutants of a spec.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::checker::{self, Counts, Folder, Ran, Tools};
use super::mutant::MutantsError;
use super::scope::Scope;
use super::steps::Graph;
use crate::Value;
use crate::check::configs::{BoundedModel, Lane};
use crate::check::manifest::Manifest;

/// Distinct states of a model that is small enough to judge every mutant. The smoke model and the
/// one for seeded bugs are used in any case. Not its time, which depends on the machine.
const SMALL: u64 = 65_000;

/// A model, and its result for the unchanged protocol.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) model: BoundedModel,
    pub(super) counts: Counts,
    /// Its steps; `None` for a probe.
    pub(super) graph: Option<Graph>,
    /// How long a mutant may take. A larger state graph is possible; one without end, too.
    pub(super) limit: Duration,
    /// The actions that the unchanged protocol takes, if this model counts them.
    pub(super) taken: Option<BTreeSet<String>>,
}

/// The models of every spec that can count actions. `smoke` takes all (`treering check` sees to
/// that), the other is often smaller.
fn counts_actions(model: &BoundedModel) -> bool {
    ["smoke", "mutation"].contains(&&*model.name) && model.must_violate().is_none()
}

/// Leaves the counting of actions to the smallest model that takes as many as any.
pub(super) fn let_one_count(judges: &mut [Judge]) {
    let taken = |judge: &Judge| judge.taken.as_ref().map_or(0, BTreeSet::len);
    let most = judges.iter().map(taken).max().unwrap_or(0);
    let best = (judges.iter().filter(|judge| taken(judge) == most))
        .map(|judge| judge.counts.distinct)
        .min();
    for judge in judges {
        if taken(judge) < most || Some(judge.counts.distinct) != best {
            judge.taken = None;
        }
    }
}

/// Selects the models that judge the mutants of a spec, in the order in which they run: invariants
/// before temporal properties, small ones first, and probes at the end.
pub(super) fn select(
    models: &[BoundedModel],
    manifest: &Manifest,
    spec: &str,
) -> Vec<BoundedModel> {
    let judges = |model: &&BoundedModel| {
        let clean =
            (model.config.constants.get("Bug")).is_none_or(|bug| *bug == Value::str("none"));
        if model.spec != spec || !clean || matches!(model.lane, Lane::Full | Lane::Large) {
            return false;
        }
        if model.must_violate().is_some() {
            return model.name.starts_with("reach");
        }
        let states = manifest.entry(spec, &model.name).and_then(|e| e.distinct);
        states.unwrap_or(0) <= SMALL || ["smoke", "mutation"].contains(&&*model.name)
    };
    let mut selected: Vec<BoundedModel> = models.iter().filter(judges).cloned().collect();
    selected.sort_by_key(|model| {
        let temporal = (model.config.properties.iter()).any(|name| !name.starts_with("Contract"));
        let states = manifest.entry(spec, &model.name).and_then(|e| e.distinct);
        (model.must_violate().is_some(), temporal, states)
    });
    selected
}

/// Checks the unchanged protocol. The second value is the processor time.
pub(super) fn prepare(
    tools: &Tools,
    specs: &Path,
    scope: &Scope,
    model: BoundedModel,
) -> Result<(Judge, Duration), MutantsError> {
    let folder = Folder::new(scope, &model, &[])?;
    let ran = folder.run(&tools.tla_mc, specs, &model, None)?;
    let (counts, mut time) = (ran.counts(), ran.cpu);
    let limit = time * 4 + Duration::from_secs(5);
    let mut graph = None;
    if model.must_violate().is_none() {
        let noted = folder.run_noting_steps(&tools.tla_mc, specs, &model, None)?;
        time += noted.cpu;
        if noted.graph.is_none() {
            return Err(MutantsError::Spec {
                why: format!(
                    "the steps of the model {} cannot be noted: {}",
                    model.name,
                    said(&noted, &model)
                ),
                spec: model.spec,
            });
        }
        graph = noted.graph;
    }
    let taken = match counts_actions(&model) {
        true => {
            let config = folder.write("bare.cfg", &checker::bare(&model)?)?;
            folder.taken(&tools.tlc, specs, &model, &config, None)?.0
        }
        false => None,
    };
    let as_expected = match model.must_violate() {
        Some(property) => ran.violated(&model).as_deref() == Some(property),
        None => ran.findings.holds,
    };
    match counts.filter(|_| as_expected) {
        Some(counts) => {
            let judge = Judge {
                limit,
                model,
                counts,
                graph,
                taken,
            };
            Ok((judge, time))
        }
        None => Err(MutantsError::Spec {
            why: format!(
                "the model {} is not as expected: {}",
                model.name,
                said(&ran, &model)
            ),
            spec: model.spec,
        }),
    }
}

fn said(ran: &Ran, model: &BoundedModel) -> String {
    match (ran.violated(model), &ran.findings.error) {
        (Some(property), _) => format!("violates {property}"),
        (None, Some(error)) => error.clone(),
        (None, None) => "it holds".into(),
    }
}
