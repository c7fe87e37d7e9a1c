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
use std::path::Path;

use super::judge::{Judge, Step};
use crate::Mirror;
use crate::check::tools::Tlc;
use crate::mirror::wide::wal_recovery::unbounded::Left;
use crate::mirror::wide::wal_recovery::{Action, Call, State, WalRecovery};

/// The name of the module and of its file.
const NAME: &str = "Recording";

/// The two files that TLC reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text of the module `Recording.tla`.
    pub tla: String,
    /// The text of the configuration `Recording.cfg`.
    pub cfg: String,
    /// The number of events in it.
    pub events: usize,
}

/// Writes the steps that a judge has recorded. The episode must have had a single thread: with
/// several threads there may be steps that the spec does not have.
#[must_use]
pub fn module(judge: &Judge) -> Option<Module> {
    let trace = judge.trace();
    let (_, end) = trace.last()?;
    let mut events = String::new();
    let mut before = State::first();
    for (i, (step, after)) in trace.iter().enumerate() {
        let comma = if i == 0 { "" } else { ",\n" };
        let _ = write!(events, "{comma}    [{}]", event(step, &before, after)?);
        before = *after;
    }
    let (clients, keys) = (judge.promised.len(), judge.keys.len());
    let names: Vec<String> = (1..=clients)
        .map(|c| format!("c{c}"))
        .chain((1..=keys).map(|k| format!("k{k}")))
        .collect();
    let variables = judge.mirror().variables(end);
    let conjuncts: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("        /\\ {name} = {value}"))
        .collect();
    let tla = BODY
        .replace("@MODULE@", NAME)
        .replace("@NAMES@", &names.join(", "))
        .replace("@EVENTS@", &events)
        .replace("@STATE@", &conjuncts.join("\n"));
    Some(Module {
        tla,
        cfg: configuration(judge, &names, clients),
        events: trace.len(),
    })
}

fn configuration(judge: &Judge, names: &[String], clients: usize) -> String {
    let (c, k) = names.split_at(clients);
    let values: Vec<String> = (1..=judge.state().asked()).map(|n| n.to_string()).collect();
    let own: Vec<String> = names
        .iter()
        .map(|name| format!("    {name} = {name}"))
        .collect();
    format!(
        "\\* TLC must find a counterexample to NotAtEnd: the recording, followed to its end.\n\
         INIT TraceInit\nNEXT Follow\nCONSTANTS\n{}\n    Clients = {{{}}}\n    Keys = {{{}}}\n    Values = {{{}}}\n    \
         Absent = Absent\n    Pending = Pending\n    PerBlock = {}\n    RingBlocks = {}\n    Reads = \"free\"\n    \
         Bug = \"none\"\nINVARIANTS EndInv NotAtEnd\nCHECK_DEADLOCK FALSE\n",
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

fn content(value: u64) -> String {
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

fn outcome(left: &Left) -> String {
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

/// TLC's verdict on a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recording is a behaviour of the spec, and its final state is the mirror's.
    Accepted,
    /// TLC cannot follow the recording to its end.
    Refused,
    /// TLC follows the recording to a different final state.
    EndsElsewhere,
    /// TLC gave another result, which is quoted.
    Unclear(String),
}

/// Runs TLC on a recording.
///
/// # Errors
/// The files cannot be written, or TLC cannot be started.
pub fn check(module: &Module, tlc: &Tlc, specs: &Path) -> std::io::Result<Verdict> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(format!("{NAME}.tla"));
    std::fs::write(&path, &module.tla)?;
    std::fs::write(path.with_extension("cfg"), &module.cfg)?;
    let specs = std::path::absolute(specs)?;
    let library = [specs.join("wal_recovery"), specs.join("contract")];
    let mut command = tlc.command(&library)?;
    command
        .current_dir(folder.path())
        .args(["-workers", "1", "-metadir", "states", NAME]);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(match output.status.code() {
        Some(0) => Verdict::Refused,
        Some(12) if said.contains("Invariant NotAtEnd is violated") => Verdict::Accepted,
        Some(12) if said.contains("Invariant EndInv is violated") => Verdict::EndsElsewhere,
        _ => Verdict::Unclear(said.lines().rev().take(40).collect::<Vec<_>>().join("\n")),
    })
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

NotAtEnd == at <= Len(Events)

EndInv ==
    at > Len(Events) =>
@STATE@
=============================================================================
"#;
