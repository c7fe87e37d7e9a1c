//! Makes a counterexample of `WalRecovery` a test of the engine: writes it as a file, and drives
//! the engine through the steps of one.
//!
//! The mirror finds a shortest counterexample among the steps that the engine can take separately
//! ([`search`]). Where the counterexample ends before anything is lost, because an invariant tells
//! earlier, the shortest way from there to a crash that loses something follows. The engine then
//! takes these steps one by one, as in a walk ([`super`]), compared with the mirror after each. The
//! power is cut where the counterexample has its crash, with the same survivors. Then the store is
//! opened and read, and what it has must be something that the contract allows.
//!
//! The engine without the bug does not follow: at some step it does something else.

mod bugs;
mod search;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stateright::Model as _;
use treering_engine::device::CrashDevice;
use treering_engine::{BLOCK_SIZE, Kv as _, Result, survey};
use treering_oracle::value;

use self::bugs::Seeded;
use super::compare::Atlas;
use super::device::StepDevice;
use super::graph;
use super::rig::{self, Not, Rig, open};
use crate::conformance::case::{Case, CaseError, Ending, Loss, SCHEMA, Step, content};
use crate::conformance::setup::Setup;
use crate::mirror::wal_recovery::{Action, Call, Phase, State, WalRecovery};
use crate::{Config, Mirror};

/// The steps of a counterexample, with the state before each.
type Way = Vec<(State, Action)>;

/// Makes a test of the shortest counterexample of a model.
///
/// # Errors
/// The configuration does not fit the mirror, or there is no counterexample that ends with a crash.
pub(in crate::conformance) fn case(
    model: &str,
    config: &Config,
    text: &str,
) -> std::result::Result<Case, CaseError> {
    let mirror = WalRecovery::from_config(config).map_err(|e| CaseError::Bad(e.to_string()))?;
    let Some(found) = search::shortest(&mirror) else {
        let why = match config.must_violate() {
            Some(property) if !config.invariants.iter().any(|i| i == property) => {
                format!("{property} is about whole behaviours, which only TLC judges")
            }
            _ => "the mirror finds no violation".to_owned(),
        };
        return Err(CaseError::None(format!(
            "WalRecovery {model}: {why}, so there is no counterexample for the engine"
        )));
    };
    let seeded = Seeded::of(mirror.bug());
    let loss = match found.way.last() {
        Some((from, action @ (Action::Crash(_) | Action::Restart))) => {
            let to = mirror
                .next_state(from, *action)
                .expect("the mirror took it");
            to.is_broken()
                .then(|| loss(&mirror, from, mirror.kept(&to)))
        }
        _ => None,
    };
    let bug = match config.constants.get("Bug") {
        Some(bug) => bug.to_string().trim_matches('"').to_owned(),
        None => "none".into(),
    };
    Ok(Case {
        schema: SCHEMA.into(),
        complete: true,
        spec: WalRecovery::SPEC.into(),
        model: model.to_owned(),
        title: config.title.clone(),
        adapted: None,
        property: found.property.to_owned(),
        bug,
        engine_bug: seeded.on(&found.way).map(str::to_owned),
        violated_at: found.violated_at,
        steps: (found.way.iter())
            .map(|(from, action)| step(&mirror, from, *action))
            .collect(),
        loss,
        config: text.to_owned(),
    })
}

/// The step of an action, with its choices.
fn step(mirror: &WalRecovery, from: &State, action: Action) -> Step {
    let step = Step::new(WalRecovery::label(&action));
    let client = |step: Step, c: u8| step.with("client", format!("c{}", c + 1));
    let key = |step: Step, k: u8| step.with("key", format!("k{}", k + 1));
    match action {
        Action::CallGet(c, k) => key(client(step, c), k),
        Action::CallWrite(c, k) => {
            let to = mirror.next_state(from, action).expect("it is enabled");
            let Call::Write { value, .. } = to.call(c) else {
                unreachable!("the client has called a write");
            };
            key(client(step, c), k).with("value", value)
        }
        Action::ReadPage(c)
        | Action::AnswerGet(c)
        | Action::AppendLog(c)
        | Action::ChangePage(c)
        | Action::Acknowledge(c)
        | Action::ReportFailure(c)
        | Action::FlushLog(c) => client(step, c),
        Action::WriteBack(k) | Action::Reload(k) => key(step, k),
        Action::Crash(outcome) => {
            let left = from.left_by(outcome);
            step.with("log", left.log)
                .with("pages", left.pages)
                .with("superblock", left.superblock)
        }
        _ => step,
    }
}

/// Follows the steps of a file on the mirror.
fn way(mirror: &WalRecovery, case: &Case) -> std::result::Result<Way, CaseError> {
    let mut at = State::first();
    let mut way = Way::new();
    for (number, wanted) in (1..).zip(&case.steps) {
        let mut actions = Vec::new();
        mirror.actions(&at, &mut actions);
        let mut same = actions.into_iter();
        let Some(action) = same.find(|action| step(mirror, &at, *action) == *wanted) else {
            return Err(CaseError::Bad(format!(
                "step {number}: the spec has no step {wanted} here"
            )));
        };
        way.push((at, action));
        at = mirror.next_state(&at, action).expect("it is enabled");
    }
    Ok(way)
}

fn named(values: &[u64]) -> BTreeMap<String, String> {
    let text = |value: &u64| match value {
        0 => "Absent".to_owned(),
        n => n.to_string(),
    };
    (1..)
        .zip(values)
        .map(|(k, v)| (format!("k{k}"), text(v)))
        .collect()
}

/// What is lost if `found` is left by a crash in the state `from`.
fn loss(mirror: &WalRecovery, from: &State, found: Vec<u64>) -> Loss {
    let promised = mirror.promised(from);
    let allowed: Vec<_> = promised.iter().map(|map| named(map)).collect();
    let durable = content(&allowed[0]);
    let left = named(&found);
    let what = if promised.len() == 1 {
        format!(
            "{durable} was durable, and after recovery the store has {}",
            content(&left)
        )
    } else {
        let latest = content(allowed.last().expect("one at least"));
        format!(
            "{durable} was durable and {latest} was written, and after recovery the store has {}, \
             which is no state in between",
            content(&left)
        )
    };
    Loss {
        what,
        allowed,
        found: left,
    }
}

/// The place where cases run: a store that was built without any bug.
pub(in crate::conformance) struct Stage {
    /// The engine's seeded bug.
    #[cfg(feature = "mutations")]
    engine_bug: Option<String>,
    mirror: WalRecovery,
    way: Way,
    setup: Setup,
    atlas: Atlas,
    blank: StepDevice,
}

impl Stage {
    /// Reads the steps of a case, and builds the store. No bug may be switched on.
    ///
    /// # Errors
    /// The steps are not those of the spec, or the engine's own errors.
    pub(in crate::conformance) fn new(case: &Case) -> std::result::Result<Stage, CaseError> {
        let config = Config::parse(Path::new("config"), &case.config);
        let config = config.map_err(|e| CaseError::Bad(e.to_string()))?;
        let mirror =
            WalRecovery::from_config(&config).map_err(|e| CaseError::Bad(e.to_string()))?;
        let way = way(&mirror, case)?;
        let engine = |e: treering_engine::Error| CaseError::Bad(format!("building a store: {e}"));
        let setup = Setup::small(mirror.per_block()).map_err(engine)?;
        let found = survey(Arc::new(CrashDevice::from_image(setup.image().to_vec())));
        let found = found.map_err(engine)?;
        let mut pages = vec![0; setup.pages.len()];
        for (page, key) in &setup.pages {
            pages[usize::from(*key)] = found.pages[page].1.0 as usize;
        }
        let page_blocks = setup.options().page_size / BLOCK_SIZE;
        Ok(Stage {
            #[cfg(feature = "mutations")]
            engine_bug: case.engine_bug.clone(),
            mirror,
            way,
            atlas: Atlas::new(&found, setup.scale, pages, page_blocks),
            blank: StepDevice::new(setup.image()),
            setup,
        })
    }

    /// Drives the engine through the steps.
    ///
    /// # Errors
    /// The engine's own, while the store is opened before the first step.
    pub(in crate::conformance) fn run(&self) -> Result<Ending> {
        self.run_with(&self.atlas, &|| {})
    }

    /// As [`Stage::run`], on the engine with the seeded bug that the case names.
    ///
    /// # Errors
    /// As [`Stage::run`].
    #[cfg(feature = "mutations")]
    pub(in crate::conformance) fn run_with_bug(&self) -> Result<Ending> {
        let bug = self.engine_bug.as_deref();
        let plain = self.atlas.clone().without_epochs();
        let atlas = match self.seeded().compares_epochs() {
            true => &self.atlas,
            false => &plain,
        };
        let ending = self.run_with(atlas, &|| {
            treering_engine::choose_mutation(bug);
        });
        treering_engine::choose_mutation(None);
        ending
    }

    /// Calls `begun` when the store is open.
    fn run_with(&self, atlas: &Atlas, begun: &dyn Fn()) -> Result<Ending> {
        let mut rig = Rig::new(&self.setup, atlas, &self.blank);
        rig.begin(&self.blank)?;
        begun();
        let ending = self.drive(&mut rig);
        rig.end_process();
        Ok(ending)
    }

    fn seeded(&self) -> Seeded {
        Seeded::of(self.mirror.bug())
    }

    fn drive(&self, rig: &mut Rig<'_>) -> Ending {
        let seeded = self.seeded();
        let mut at = 0;
        while let Some((from, action)) = self.way.get(at) {
            // A seeded bug of the engine may take several steps of the spec at once.
            let together = seeded.together(&self.way[at..]);
            let last = at + together - 1;
            let (before, end) = &self.way[last];
            let to = self.mirror.next_state(before, *end).expect("it is enabled");
            let taken = match graph::cannot(&self.mirror, from, *action) {
                Some(why) => Err(Not::Able(why)),
                None if together > 1 => seeded.take(rig, &to),
                None => rig.take(&self.mirror, *action, from, &to),
            };
            match taken.and_then(|()| self.compare(rig, &to)) {
                Ok(()) => {}
                Err(Not::Able(why)) if !seeded.waits(from, *action) => {
                    return Ending::NotTakeable {
                        step: at + 1,
                        why: why.to_owned(),
                    };
                }
                Err(Not::Able(seen)) => return self.refused(last + 1, seen.to_owned()),
                Err(Not::Same(seen)) => return self.refused(last + 1, seen),
            }
            at = last + 1;
        }
        match self.way.last() {
            Some((from, Action::Crash(_) | Action::Restart)) => self.recover(rig, from),
            _ => Ending::Survived,
        }
    }

    fn refused(&self, step: usize, seen: String) -> Ending {
        let page = match self.way.get(step - 1) {
            Some((_, Action::WriteBack(k) | Action::Reload(k))) => {
                format!("the page of k{}", k + 1)
            }
            _ => "a page".to_owned(),
        };
        Ending::Refused {
            step,
            does: self.seeded().instead.replace("a page", &page),
            seen,
        }
    }

    /// Compares what a walk does not need to compare: the end of the log, and how much of it the
    /// engine takes for durable.
    fn compare(&self, rig: &Rig<'_>, to: &State) -> rig::Step {
        rig.atlas.compare_end(&rig.device, to).map_err(Not::Same)?;
        let Some(store) = rig.store.as_ref().filter(|_| to.phase() == Phase::Up) else {
            return Ok(());
        };
        let durable = self
            .setup
            .scale
            .position(store.durable())
            .map_err(Not::Same)?;
        if durable < to.durable() {
            let wanted = to.durable();
            return rig::differs(format!(
                "the log is durable up to {durable} in the engine, and up to {wanted} in the spec"
            ));
        }
        Ok(())
    }

    /// Opens the store on what the crash has left, and judges what it has.
    fn recover(&self, rig: &mut Rig<'_>, from: &State) -> Ending {
        let found = match self.read_all(rig) {
            Ok(found) => found,
            Err(e) => {
                let mut lost = loss(&self.mirror, from, Vec::new());
                lost.what = format!("the store does not open: {e}");
                return Ending::Lost(lost);
            }
        };
        if self.mirror.promised(from).contains(&found) {
            return Ending::Survived;
        }
        Ending::Lost(loss(&self.mirror, from, found))
    }

    fn read_all(&self, rig: &Rig<'_>) -> Result<Vec<u64>> {
        let device = Arc::new(rig.device.copy());
        let store = open(&device, self.setup.options())?;
        let mut bytes = Vec::new();
        let mut all = Vec::new();
        for key in self.setup.keys.iter().take(self.mirror.key_count()) {
            let there = store.get(key, &mut bytes)?;
            let version = value::version(&bytes).filter(|_| there);
            all.push(version.unwrap_or(u64::MAX));
        }
        StepDevice::ignore_none();
        Ok(all)
    }
}
