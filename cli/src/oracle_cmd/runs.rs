//! Runs one mode on one engine.

use std::cell::OnceCell;
use std::sync::Mutex;

use treering_engine::device::RequestKind;
use treering_engine::{PageStoreKind, TablePersist};
use treering_oracle::campaign::{self, Plan, Watch};
use treering_oracle::crash::{Coverage, Effort};
use treering_oracle::damage::HarmKind;
use treering_oracle::edges::Edges;
use treering_oracle::engines::{BTree, Geometry, PmTree};
use treering_oracle::medium::When;
use treering_oracle::reach::{Area, Reach};
use treering_oracle::{Check, DiskKind, Engine, Finding, Program, Tally, generate};
use treering_specs::conformance::{
    self as events, Budget, Cast, Variant, mini, refused, ring, shadow,
};

use super::judged::Judged;
use super::report::{ACTIONS_TAKEN, Row};
use super::{block_events, overlapping, pm_events};
use crate::progress::Progress;

/// A way to judge an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Differential,
    Crash,
    Concurrent,
    Events,
    Damage,
}

impl Mode {
    pub(super) const ALL: [Mode; 5] = [
        Mode::Differential,
        Mode::Crash,
        Mode::Concurrent,
        Mode::Events,
        Mode::Damage,
    ];

    /// The mode that runs programs like this one.
    pub(super) fn of(program: &Program) -> Mode {
        match program.crashes.is_empty() {
            true => Mode::Differential,
            false => Mode::Crash,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Differential => "differential",
            Mode::Crash => "crash",
            Mode::Concurrent => "concurrent",
            Mode::Events => "events",
            Mode::Damage => "damage",
        }
    }

    /// What the mode must do at least once. A run in which it never happened has shown nothing.
    pub(super) fn purpose(self) -> &'static str {
        match self {
            Mode::Differential => "an operation beside the reference map",
            Mode::Crash => "a power cut",
            Mode::Concurrent => "calls that overlap",
            Mode::Events => "an event that a mirror accepts",
            Mode::Damage => "harm to a store",
        }
    }

    /// The number of programs, and of operations in each.
    pub(super) fn defaults(self, engine: &dyn Engine) -> (u64, usize) {
        match self {
            Mode::Differential => (500, 1_000),
            // Persistent memory has crash points at every line, ten times as many as other devices.
            Mode::Crash if matches!(engine.disk(), DiskKind::Pm(_)) => (12, 200),
            Mode::Crash => (60, 200),
            Mode::Concurrent if matches!(engine.disk(), DiskKind::Pm(_)) => (24, 10_000),
            Mode::Concurrent => (12, 20_000),
            // Episodes have a length of their own.
            Mode::Events => (200, 0),
            // Each store is damaged a hundred times; 25 times in persistent memory, where a case
            // costs more.
            Mode::Damage => (20, 1_500),
        }
    }

    /// Whether some of the mode's stores have hundreds or thousands of leaves.
    pub(super) fn grows(self) -> bool {
        self == Mode::Differential
    }

    /// Whether the mode can judge this engine; the error is the reason why not.
    pub(super) fn judges(self, engine: &dyn Engine) -> Result<(), &'static str> {
        match (self, engine.disk()) {
            (Mode::Crash, DiskKind::Folder) if !engine.can_be_killed() => {
                Err("it manages its own files, so power cuts cannot be simulated")
            }
            (Mode::Concurrent, _) if engine.name().ends_with("-16k") => Err(
                "its large pages hardly ever split or merge; the same code is tested with small pages",
            ),
            (Mode::Events, _)
                if variant(engine).is_none()
                    && bf_store(engine).is_none()
                    && block_events::shadows(engine).is_none()
                    && pm_events::Tree::of(engine).is_none() =>
            {
                Err(
                    "only btree:in-place, btree:cow, btree:shadow, bminus, bf, ccl, pmtree and lodge \
                     say what they do as a spec has it",
                )
            }
            (Mode::Damage, _)
                if BTree::named(&engine.name(), Geometry::Tiny).is_none()
                    && PmTree::named(&engine.name(), Geometry::Tiny).is_none() =>
            {
                Err("it does not promise to detect bit rot and lost writes")
            }
            _ => Ok(()),
        }
    }
}

fn variant(engine: &dyn Engine) -> Option<Variant> {
    let name = engine.name();
    Variant::ALL
        .into_iter()
        .find(|variant| variant.name() == name)
}

/// The page store of the leaves of a `bf` tree.
fn bf_store(engine: &dyn Engine) -> Option<PageStoreKind> {
    let table = match engine.name().as_str() {
        "bf:in-place" => return Some(PageStoreKind::InPlace),
        "bf:cow" => TablePersist::EachFlush,
        "bf:cow-lazy" => TablePersist::Checkpoint,
        "bf:bminus" => return Some(PageStoreKind::Shadow),
        _ => return None,
    };
    Some(PageStoreKind::CopyOnWrite { table })
}

/// What a tiny store should have done and did not. Engines without counters are skipped.
fn never_done(engine: &dyn Engine, tally: &Tally) -> Vec<String> {
    // A store in persistent memory has no cache to evict from, no checkpoints, and a log that does
    // not wrap.
    let asked = match engine.disk() {
        DiskKind::Pm(_) => 2,
        DiskKind::Blocks(_) | DiskKind::Folder => 5,
    };
    let counted = [
        ("splits", tally.splits),
        ("merges", tally.merges),
        ("evictions", tally.evictions),
        ("checkpoints", tally.checkpoints),
        ("log wraps", tally.log_wraps),
    ];
    if counted.iter().all(|(_, n)| *n == 0) {
        return Vec::new();
    }
    let asked = counted.iter().take(asked);
    let asked = asked.filter(|(name, _)| *name != "merges" || engine.merges_leaves());
    let missing = asked.filter(|(_, n)| *n == 0);
    missing.map(|(name, _)| (*name).to_owned()).collect()
}

/// Crash points that were never hit. Only our engines distinguish kinds of writes; all writes of
/// other engines count as one kind.
fn never_crashed(engine: &dyn Engine, coverage: &Coverage) -> Vec<String> {
    let name = engine.name();
    let classes = name.starts_with("btree") || name.starts_with("bminus");
    let never = coverage.never(engine, classes).into_iter();
    never
        .map(|(phase, point)| format!("a crash at a {} in {}", point.name(), phase.name()))
        .collect()
}

/// Shows progress in a bar, and ends the process if a program hangs.
struct Watcher<'a> {
    engine: &'a dyn Engine,
    mode: Mode,
    plan: &'a Plan,
    began: std::time::Instant,
    progress: Mutex<Progress>,
}

impl Watch for Watcher<'_> {
    fn through(&self, runs: u64) {
        let Ok(mut progress) = self.progress.lock() else {
            return;
        };
        match self.plan.budget {
            Some(budget) if self.plan.runs == u64::MAX => {
                let elapsed = self.began.elapsed().min(budget);
                progress.tell(self.mode.name(), elapsed.as_secs(), budget.as_secs());
            }
            _ => progress.tell(self.mode.name(), runs, self.plan.runs),
        }
    }

    fn stuck(&self, seed: u64) {
        let Plan {
            operations,
            trouble,
            ..
        } = *self.plan;
        let engine = self.plan.engine(self.engine, seed);
        let program = match self.mode {
            Mode::Crash if !engine.can_be_killed() => {
                generate::on_a_built_store(&*engine, seed, operations, trouble)
            }
            _ => generate::program(&*engine, seed, operations, trouble),
        };
        let what = format!(
            "{}: after {:?} a call of this program has not returned",
            Check::Progress,
            self.plan.patience
        );
        let name = engine.name();
        let file = format!("oracle-{}-{seed}.program", name.replace([':', '/'], "-"));
        let saved = std::fs::write(&file, program.save(&name, Some(&what)));
        let mode = self.mode.name();
        let kept = saved.map_or_else(|e| format!("not saved: {e}"), |()| file);
        eprintln!("treering: {name} {mode}: {what} ({kept})");
        // A hanging thread can only be ended by ending the process.
        std::process::exit(1);
    }
}

/// The engine with as much persistent memory as the programs of a mode need; `None` if it is not in
/// persistent memory. In long programs logs outgrow a small memory, and a full memory is not a bug.
pub(super) fn roomy(engine: &dyn Engine, mode: Mode) -> Option<PmTree> {
    let geometry = match mode {
        Mode::Crash => Geometry::Tiny,
        Mode::Differential | Mode::Damage => Geometry::Medium,
        Mode::Concurrent | Mode::Events => Geometry::Small,
    };
    PmTree::named(&engine.name(), geometry)
}

/// State that a job keeps from turn to turn because it takes long to build: the stores of
/// [`Mode::Events`].
#[derive(Default)]
pub(super) struct Kept {
    setups: OnceCell<Vec<events::Setup>>,
    blocks: block_events::Stores,
}

/// Runs the mode; `before` of its programs were run in earlier turns.
pub(super) fn run(
    engine: &dyn Engine,
    mode: Mode,
    plan: &Plan,
    (before, kept): (u64, &Kept),
) -> Row {
    let watcher = Watcher {
        engine,
        mode,
        plan,
        began: std::time::Instant::now(),
        progress: Mutex::new(Progress::new()),
    };
    let roomy = roomy(engine, mode);
    let engine = roomy.as_ref().map_or(engine, |roomy| roomy as &dyn Engine);
    let mut row = Row::new(engine.name(), mode);
    row.never_does = engine.never_does();
    match mode {
        Mode::Crash if engine.can_be_killed() => by_kills(engine, plan, &watcher, &mut row),
        Mode::Differential => {
            let outcome = campaign::differential(engine, &without_kills(engine, plan), &watcher);
            row.note(&outcome);
            row.fail(outcome.failure);
            row.never = never_done(engine, &outcome.done);
            row.did = outcome.done.operations;
            row.tally = outcome.done;
            faults_wanted(engine, &mut row.actions);
            row.limits = Edges::within(&engine.limits());
        }
        Mode::Crash => {
            let outcome = campaign::crashes(engine, plan, Effort::on(engine.disk()), &watcher);
            row.note(&outcome);
            row.fail(outcome.failure);
            row.did = outcome.done.judged;
            row.never = never_crashed(engine, &outcome.done);
            row.never.extend(never_done(engine, &outcome.done.tally));
            row.tally = outcome.done.tally;
            row.crash_states = outcome.done.states;
            row.recoveries = outcome.done.judged;
            row.points = outcome.done.points;
            row.counts = vec![
                (
                    "points with all states tried".into(),
                    outcome.done.exhausted,
                ),
                ("points with a sample tried".into(), outcome.done.sampled),
            ];
            if outcome.done.damaged > 0 {
                row.counts.extend([
                    ("blocks damaged".into(), outcome.done.damaged),
                    ("of which an error told".into(), outcome.done.told),
                ]);
            }
        }
        Mode::Concurrent => overlapping::run(engine, plan, before, &mut row),
        Mode::Events => by_events(engine, plan, kept, &mut row),
        Mode::Damage => by_damage(engine, plan, &watcher, &mut row),
    }
    row.note_batches(engine);
    row
}

/// The plan for programs in which no process is killed.
pub(super) fn without_kills(engine: &dyn Engine, plan: &Plan) -> Plan {
    let mut plan = *plan;
    plan.trouble.power &= !engine.can_be_killed();
    plan
}

/// Runs [`Mode::Crash`] on an engine whose process can be killed: random programs in which that
/// happens between two calls, or in the middle of one.
fn by_kills(engine: &dyn Engine, plan: &Plan, watch: &dyn Watch, row: &mut Row) {
    let outcome = campaign::differential(engine, plan, watch);
    row.note(&outcome);
    row.fail(outcome.failure);
    row.did = outcome.done.crashes;
    row.counts = vec![("processes killed".into(), outcome.done.crashes)];
    row.tally = outcome.done;
}

/// Runs [`Mode::Damage`].
fn by_damage(engine: &dyn Engine, plan: &Plan, watch: &dyn Watch, row: &mut Row) {
    let outcome = campaign::damage(engine, plan, watch);
    row.note(&outcome);
    row.finding = outcome.failure.map(|(_, finding)| *finding);
    row.did = outcome.done.cases();
    let done = outcome.done;
    row.never = done.never();
    row.tally.operations = done.operations;
    for (kind, (cases, told)) in HarmKind::ALL.iter().zip(done.harms) {
        // In persistent memory there is no second store from which a stale block could be taken.
        if cases > 0 || *kind != HarmKind::Foreign || done.unguarded == 0 {
            row.actions.want(Area::Fault, format!("harm: {kind}"));
            row.actions
                .want(Area::Fault, format!("harm that an error tells of: {kind}"));
        }
        row.actions.met(Area::Fault, format!("harm: {kind}"), cases);
        row.actions.met(
            Area::Fault,
            format!("harm that an error tells of: {kind}"),
            told,
        );
    }
    let kinds = HarmKind::ALL.iter().zip(done.harms);
    row.counts = kinds
        .flat_map(|(kind, (cases, told))| {
            [(kind.to_string(), cases), (format!("{kind}: told"), told)]
        })
        .chain([
            ("in a real file".into(), done.in_files),
            ("harms to a log's last flush".into(), done.last_flush),
            ("taken for a flush cut short".into(), done.cut_short),
            ("harms that no check covers".into(), done.unguarded),
            ("wrong answers after those".into(), done.unguarded_wrong),
        ])
        .collect();
}

/// Registers the faults that programs inject on purpose and that a store on blocks should meet: a
/// failing write of each kind, wherever such writes occur.
fn faults_wanted(engine: &dyn Engine, reach: &mut Reach) {
    if !matches!(engine.disk(), DiskKind::Blocks(_)) {
        return;
    }
    let ours = BTree::named(&engine.name(), Geometry::Tiny).is_some();
    if ours {
        reach.want(Area::Fault, "write refused by a full store");
    }
    for kind in RequestKind::ALL {
        let classes = matches!(kind, RequestKind::WriteOf(_));
        if kind == RequestKind::Write || classes && !ours {
            continue;
        }
        for when in [When::Opening, When::InUse] {
            reach.want(
                Area::Fault,
                format!("{} fails {}", kind.name(), when.name()),
            );
        }
    }
}

pub(super) fn finding(check: Check, what: &str, expected: &str, found: impl ToString) -> Finding {
    Finding {
        check,
        operation: None,
        what: what.to_owned(),
        expected: expected.to_owned(),
        found: found.to_string(),
    }
}

/// One episode in this many uses threads; its events then come in an order of their own.
const WITH_THREADS: u64 = 8;

fn by_events(engine: &dyn Engine, plan: &Plan, stores: &Kept, row: &mut Row) {
    let began = std::time::Instant::now();
    let budget = match plan.budget {
        Some(begins_for) => Budget::Within {
            episodes: plan.runs,
            begins_for,
            at_most: plan.at_most.unwrap_or(begins_for),
        },
        None => Budget::Episodes(plan.runs),
    };
    if let Some(store) = bf_store(engine) {
        by_events_of_bf(store, plan.seed, budget, row);
        row.elapsed = began.elapsed();
        return;
    }
    if let Some(variant) = block_events::shadows(engine) {
        by_events_of_blocks(
            variant,
            (plan.seed, part_of(budget, 2)),
            &stores.blocks,
            row,
        );
        row.elapsed = began.elapsed();
        return;
    }
    if let Some(tree) = pm_events::Tree::of(engine) {
        note_judged(row, Ok(Some(pm_events::run(tree, plan.seed, budget))));
        row.elapsed = began.elapsed();
        return;
    }
    let Some(variant) = variant(engine) else {
        return;
    };
    let in_place = variant == Variant::InPlace;
    let part = if in_place { part_of(budget, 3) } else { budget };
    let report =
        block_events::kept(&stores.setups, || events::setups(variant)).and_then(|setups| {
            let budget = part.less(began.elapsed());
            events::run_on(setups, Cast::Mixed(WITH_THREADS), plan.seed, budget)
        });
    let report = match report {
        Ok(report) => report,
        Err(e) => {
            row.finding = Some(finding(Check::Error, "an episode", "no error", e));
            return;
        }
    };
    row.elapsed = began.elapsed();
    row.runs = report.episodes;
    row.interrupted = report.interrupted;
    row.tally.operations = report.accepted();
    row.did = report.accepted();
    row.never = (report.never_heard().into_iter().chain(report.never_taken()))
        .map(str::to_owned)
        .collect();
    row.counts = vec![
        ("events accepted".into(), report.accepted()),
        (
            "steps of the mirror".into(),
            report.tally.taken.values().sum(),
        ),
        (ACTIONS_TAKEN.into(), report.tally.taken.len() as u64),
    ];
    for (action, n) in &report.tally.taken {
        row.actions.met(Area::Step, format!("action {action}"), *n);
    }
    for action in report.never_taken() {
        row.actions.want(Area::Step, format!("action {action}"));
    }
    row.refused = (report.refusal.as_ref()).map(|(seed, _)| (report.setup, *seed, report.threads));
    row.finding = report.refusal.map(|(seed, refusal)| {
        let what = format!("the episode of seed {seed}");
        refusal.in_words(&what)
    });
    if row.finding.is_none() {
        let judged = block_events::of_tree(variant, (plan.seed, part), &stores.blocks);
        note_judged(row, judged);
        row.elapsed = began.elapsed();
    }
    if row.finding.is_none() {
        let judged = block_events::of_leaves(variant, (plan.seed, part), &stores.blocks);
        note_judged(row, judged);
        row.elapsed = began.elapsed();
    }
}

/// Adds what a part has done, if there is such a part.
fn note_judged(row: &mut Row, judged: treering_engine::Result<Option<Judged>>) {
    match judged {
        Ok(None) => {}
        Ok(Some(judged)) => {
            note_tally(row, judged.part, &judged.tally, &judged.actions);
            row.runs += judged.episodes;
            row.interrupted += judged.interrupted;
            row.finding = judged.finding;
            row.behaviour = judged.behaviour;
        }
        Err(e) => row.finding = Some(finding(Check::Error, "an episode", "no error", e)),
    }
}

/// The budget of one of `parts`: its share of the time.
fn part_of(budget: Budget, parts: u32) -> Budget {
    match budget {
        Budget::Within {
            episodes,
            begins_for,
            at_most,
        } => Budget::Within {
            episodes,
            begins_for: begins_for / parts,
            at_most: at_most / parts,
        },
        other => other,
    }
}

/// Runs an equal number of episodes for mini-pages over leaves in this store and for the ring
/// alone.
fn by_events_of_bf(store: PageStoreKind, seed: u64, budget: Budget, row: &mut Row) {
    let part = part_of(budget, 2);
    let report = mini::run_mixed(store, seed, part);
    let actions = [&mini::ALONE[..], &mini::TOGETHER].concat();
    let minis = Judged::new("mini-pages", actions, report, |episode| {
        format!("mini-pages, {episode:?}")
    });
    note_judged(row, Ok(Some(minis)));
    if row.finding.is_some() {
        return;
    }
    let report = ring::run_mixed(seed, part);
    let ring = Judged::new("ring", ring::ALONE.to_vec(), report, |episode| {
        format!("the ring, {episode:?}")
    });
    note_judged(row, Ok(Some(ring)));
}

/// Runs an equal number of episodes for shadowed pages and for the redo log.
fn by_events_of_blocks(
    variant: shadow::Variant,
    part: (u64, Budget),
    stores: &block_events::Stores,
    row: &mut Row,
) {
    for run in [block_events::of_pages, block_events::of_log] {
        note_judged(row, run(variant, part, stores).map(Some));
        if row.finding.is_some() {
            return;
        }
    }
}

/// Records what a part has done, and which actions it never took.
fn note_tally(row: &mut Row, part: &str, tally: &refused::Tally, actions: &[&str]) {
    let said = |label: &str| format!("{part}: {label}");
    row.tally.operations += tally.heard;
    row.did += tally.heard;
    row.counts.push((said("events accepted"), tally.heard));
    let taken = tally.taken.iter();
    row.counts.extend(taken.map(|(label, n)| (said(label), *n)));
    for action in actions {
        row.actions.want(Area::Step, said(action));
    }
    for (action, n) in &tally.taken {
        row.actions.met(Area::Step, said(action), *n);
    }
    row.never.extend(tally.never(actions).into_iter().map(said));
}
