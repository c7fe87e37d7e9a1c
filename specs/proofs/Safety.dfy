// What the invariant is for: in every behaviour, of any length, the contract holds.

include "Clients.dfy"
include "Flush.dfy"
include "Checkpoints.dfy"
include "Crashes.dfy"
include "Recovery.dfy"

module Safety {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened WalRecovery
  import opened Invariant
  import opened History
  import Clients
  import Flush
  import Checkpoints
  import Crashes
  import Recovery

  // -----------------------------------------------------------------------------------------------
  // The invariant is inductive.

  lemma ClientStepKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && ClientStep(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    if k :| CallGet(s, t, c, k) { Clients.CallGetKeeps(s, t, c, k); }
    else if ReadPage(s, t, c) { Clients.ReadPageKeeps(s, t, c); }
    else if AnswerGet(s, t, c) { Clients.AnswerGetKeeps(s, t, c); }
    else if k, v :| CallWrite(s, t, c, k, v) { Clients.CallWriteKeeps(s, t, c, k, v); }
    else if AppendLog(s, t, c) { Clients.AppendLogKeeps(s, t, c); }
    else if ChangePage(s, t, c) { Clients.ChangePageKeeps(s, t, c); }
    else if FlushLog(s, t, c) { Flush.FlushLogKeeps(s, t, c); }
    else if Acknowledge(s, t, c) { Clients.AcknowledgeKeeps(s, t, c); }
    else { Clients.ReportFailureKeeps(s, t, c); }
  }

  lemma CheckpointStepKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CheckpointStepTaken(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    if BeginCheckpoint(s, t) { Checkpoints.BeginCheckpointKeeps(s, t); }
    else if FlushPages(s, t) { Checkpoints.FlushPagesKeeps(s, t); }
    else if WriteSuperblock(s, t) { Checkpoints.WriteSuperblockKeeps(s, t); }
    else if FlushSuperblock(s, t) { Checkpoints.FlushSuperblockKeeps(s, t); }
    else { Checkpoints.TruncateLogKeeps(s, t); }
  }

  lemma RecoveryStepKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && RecoveryStep(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    if LoadSuperblock(s, t) { Recovery.LoadSuperblockKeeps(s, t); }
    else if RedoRecord(s, t) { Recovery.RedoRecordKeeps(s, t); }
    else if FinishRedo(s, t) { Recovery.FinishRedoKeeps(s, t); }
    else { Recovery.FinishRecoveryKeeps(s, t); }
  }

  lemma NextKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && Next(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    if c :| ClientStep(s, t, c) { ClientStepKeeps(s, t, c); }
    else if CompleteFlush(s, t) { Flush.CompleteFlushKeeps(s, t); }
    else if FailFlush(s, t) { Flush.FailFlushKeeps(s, t); }
    else if k :| PageStep(s, t, k) {
      if WriteBack(s, t, k) { Checkpoints.WriteBackKeeps(s, t, k); }
      else { Checkpoints.ReloadKeeps(s, t, k); }
    }
    else if CheckpointStepTaken(s, t) { CheckpointStepKeeps(s, t); }
    else if log, pages, super :| Crash(s, t, log, pages, super) {
      Crashes.CrashKeeps(s, t, log, pages, super);
    }
    else if Restart(s, t) { Crashes.RestartKeeps(s, t); }
    else { RecoveryStepKeeps(s, t); }
  }

  // -----------------------------------------------------------------------------------------------
  // Behaviours. A step is one of the protocol, or changes nothing.

  predicate Step(s: State, t: State) { t == s || (TypeInv(s) && Next(s, t)) }

  predicate Behaviour(b: seq<State>) {
    && |b| > 0
    && Init(b[0])
    && forall i :: 0 <= i < |b| - 1 ==> Step(b[i], b[i + 1])
  }

  lemma InvHolds(b: seq<State>, i: nat)
    requires Behaviour(b) && i < |b|
    ensures TypeInv(b[i]) && Inv(b[i])
  {
    if i == 0 {
      InitHolds(b[0]);
    } else {
      InvHolds(b, i - 1);
      assert Step(b[i - 1], b[i - 1 + 1]);
      if b[i] != b[i - 1] { NextKeeps(b[i - 1], b[i]); }
    }
  }

  // -----------------------------------------------------------------------------------------------
  // Safety.

  // The slots that no crash can undo, and the map that comes of them.
  function Safe(s: State): nat { if s.phase == Up then s.durable else |s.hist| }

  // What holds in each state: the invariants of WalRecovery.tla, by their names.
  predicate SafetyInv(s: State) {
    && TypeInv(s)
    // KeptInv, PrefixInv, StableInv: no crash loses a durable write, leaves anything but a prefix
    // of the writes in order, or changes, during recovery, what the previous crash left.
    && s.verdict == Fine
    // The map that no crash can undo is the history up to there.
    && BaseIs(s, Safe(s))
    && (s.phase != Down ==> DirtiedInv(s))                                  // CleanInv
    && (s.phase != Down ==> WalRuleInv(s))
    && RedoStartInv(s)
    && (s.phase == Up ==> AckInv(s) && DurableInv(s) && ReadsLatestInv(s) && LogKeptInv(s))
  }

  // Reads see the latest write: MemoryInv of WalRecovery.tla.
  predicate ReadsLatestInv(s: State)
    requires TypeInv(s)
  {
    var current := Apply(s.base, Tail(s));
    forall k :: Latched(s, k) || s.page[k].value == current[k]
  }

  // Wherever redo may begin, the log from there on still exists.
  predicate LogKeptInv(s: State) { forall super :: super in s.superDev ==> s.oldest <= super.redo }

  lemma ReadsLatest(s: State)
    requires TypeInv(s) && Inv(s) && s.phase == Up
    ensures ReadsLatestInv(s)
  {
    BlockSpan(s.durable);
    assert Tail(s) == s.hist[s.durable..|s.hist|];
    ApplyIs(s.base, s.hist, s.durable, |s.hist|);
    forall k | !Latched(s, k) ensures s.page[k].value == Apply(s.base, Tail(s))[k] {
      CompleteValue(s.hist, k, s.page[k], |s.hist|);
    }
  }

  lemma InvIsSafe(s: State)
    requires TypeInv(s) && Inv(s)
    ensures SafetyInv(s)
  {
    if s.phase == Up { ReadsLatest(s); }
    if s.phase == Redo || s.phase == Opening {
      forall k, image | image in s.pageDev[k] ensures image.lsn <= s.durable {
        assert Valid(s.hist, k, image);
      }
    }
  }

  // What is safe stays, in place and in order: no step, and no crash, takes a slot of it back or
  // puts something else there.
  predicate Stays(s: State, t: State) {
    && Safe(s) <= |s.hist| && Safe(s) <= Safe(t) <= |t.hist|
    && forall i :: 0 <= i < Safe(s) ==> t.hist[i] == s.hist[i]
  }

  lemma NextStays(s: State, t: State)
    requires TypeInv(s) && Inv(s) && Next(s, t)
    ensures Stays(s, t)
  {
    NextKeeps(s, t);
    BlockSpan(s.durable);
    if log, pages, super :| Crash(s, t, log, pages, super) {
      CrashStays(s, t, log, pages, super);
    } else if Restart(s, t) {
      NewestMaySurvive(s.logDev);
      NewestMaySurvive(s.pageDev);
      CrashStays(s, t, NewestOf(s.logDev), NewestOf(s.pageDev), Newest(s.superDev));
    } else if FinishRecovery(s, t) {
      CutIs(s.hist, s.durable);
    } else if c :| ClientStep(s, t, c) {
      assert |t.hist| >= |s.hist|;
    } else if k :| PageStep(s, t, k) {
      assert t.hist == s.hist;
    }
  }

  lemma CrashStays(s: State, t: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Crash(s, t, log, pages, super)
    ensures Stays(s, t)
  {
    CutIs(s.hist, LogFoundEnd(log, super));
    if s.phase == Up { Crashes.FindsPrefix(s, log, pages, super); }
    else { Crashes.FindsSame(s, log, pages, super); }
  }

  lemma BehaviourStays(b: seq<State>, i: nat, j: nat)
    requires Behaviour(b) && i <= j < |b|
    ensures Stays(b[i], b[j])
    decreases j
  {
    InvHolds(b, i);
    InvIsSafe(b[i]);
    if i < j {
      BehaviourStays(b, i, j - 1);
      InvHolds(b, j - 1);
      InvIsSafe(b[j - 1]);
      assert Step(b[j - 1], b[j - 1 + 1]);
      if b[j] != b[j - 1] { NextStays(b[j - 1], b[j]); }
    }
  }

  // -----------------------------------------------------------------------------------------------
  // The theorems.

  // In every state of every behaviour the invariants of WalRecovery.tla hold.
  lemma AlwaysSafe(b: seq<State>, i: nat)
    requires Behaviour(b) && i < |b|
    ensures SafetyInv(b[i])
  {
    InvHolds(b, i);
    InvIsSafe(b[i]);
  }

  // What was acknowledged survives. If step i acknowledges the write with LSN n, then in every
  // later state j, after any crashes, recoveries and checkpoints, slot n - 1 of the history has its
  // record, and the map that no crash can undo is the result of at least the first n slots.
  lemma AcknowledgedSurvives(b: seq<State>, i: nat, c: Client, j: nat)
    requires Behaviour(b) && i < j < |b|
    requires TypeInv(b[i]) && Acknowledge(b[i], b[i + 1], c)
    ensures var n := b[i].call[c].lsn;
            && TypeInv(b[j])
            && 1 <= n <= |b[i].hist|
            && n <= Safe(b[j]) <= |b[j].hist|
            && b[j].hist[n - 1] == Put(b[i].call[c].key, b[i].call[c].value)
            && forall k :: b[j].base[k] == ValueAt(b[j].hist, k, Safe(b[j]))
  {
    InvHolds(b, i);
    assert CallInv(b[i], c);
    BehaviourStays(b, i, j);
    AlwaysSafe(b, j);
  }
}
