// The protocol refines the contract: each step of WalRecovery is a step of DurableMap, or changes
// nothing that the contract sees.

include "DurableMap.dfy"
include "Safety.dfy"

module Refinement {
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
  import Crashes
  import Safety
  import DurableMap

  // -----------------------------------------------------------------------------------------------
  // The mapping: the durable map, followed by the log after it.

  function WriterOf(s: State, n: nat): DurableMap.Waiter
    requires TypeInv(s)
  {
    if c :| IsWriter(s, c, n) then DurableMap.By(c) else DurableMap.Nobody
  }

  function RequestOf(call: Call): DurableMap.Request {
    match call
    case Idle => DurableMap.NoRequest
    case Get(key, got) => DurableMap.GetRequest(key, got)
    case Write(key, value, at, lsn) => DurableMap.WriteRequest(key, value, at != Called)
  }

  // The entries of the slots from n on.
  function TailFrom(s: State, n: nat): seq<DurableMap.Entry>
    requires TypeInv(s) && s.durable <= n <= End(s)
    ensures |TailFrom(s, n)| == End(s) - n
    decreases End(s) - n
  {
    BlockSpan(s.durable);
    if n == End(s) then []
    else [DurableMap.Entry(WriterOf(s, n + 1), s.buffer[n - BufferStart(s)])] + TailFrom(s, n + 1)
  }

  function Abstract(s: State): DurableMap.Store
    requires TypeInv(s)
    ensures DurableMap.Total(Abstract(s))
  {
    DurableMap.Store(s.base, TailFrom(s, s.durable),
                     imap c: Client :: RequestOf(s.call[c]), s.phase == Up)
  }

  lemma TailIs(s: State, n: nat)
    requires TypeInv(s) && s.durable <= n <= End(s)
    ensures forall i :: 0 <= i < End(s) - n ==>
              && BufferStart(s) <= n + i
              && TailFrom(s, n)[i] == DurableMap.Entry(WriterOf(s, n + i + 1),
                                                       s.buffer[n + i - BufferStart(s)])
    decreases End(s) - n
  {
    BlockSpan(s.durable);
    if n < End(s) {
      TailIs(s, n + 1);
      forall i | 0 <= i < End(s) - n
        ensures TailFrom(s, n)[i] == DurableMap.Entry(WriterOf(s, n + i + 1),
                                                      s.buffer[n + i - BufferStart(s)])
      {
        if i > 0 { assert TailFrom(s, n)[i] == TailFrom(s, n + 1)[i - 1]; }
      }
    }
  }

  lemma RecordsAre(s: State, n: nat)
    requires TypeInv(s) && n <= |Tail(s)|
    ensures DurableMap.Records(Abstract(s).tail[..n]) == Tail(s)[..n]
  {
    TailIs(s, s.durable);
    BlockSpan(s.durable);
  }

  // Nobody waits twice, so the name in the tail is the only one.
  lemma WriterIs(s: State, c: Client, n: nat)
    requires TypeInv(s) && Inv(s) && s.phase == Up && IsWriter(s, c, n)
    ensures WriterOf(s, n) == DurableMap.By(c)
  {
  }

  // Steps that the contract does not see.
  lemma SameTail(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Inv(s) && Inv(t) && s.phase == Up && t.phase == Up
    requires t.buffer == s.buffer && t.durable == s.durable
    requires forall c, n :: IsWriter(t, c, n) <==> IsWriter(s, c, n)
    ensures Abstract(t).tail == Abstract(s).tail
  {
    TailIs(s, s.durable); TailIs(t, t.durable);
    forall n ensures WriterOf(s, n) == WriterOf(t, n) {
      if c :| IsWriter(s, c, n) { WriterIs(s, c, n); WriterIs(t, c, n); }
    }
  }

  lemma SameCalls(s: State, t: State)
    requires TypeInv(s) && TypeInv(t)
    requires forall c :: RequestOf(t.call[c]) == RequestOf(s.call[c])
    ensures Abstract(t).call == Abstract(s).call
  {
  }

  // Steps of a client that change neither its record nor the log.
  lemma CallRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && s.phase == Up
    requires t == s.(call := s.call[c := t.call[c]])
    requires !(s.call[c].Write? && s.call[c].at != Called)
    requires !(t.call[c].Write? && t.call[c].at != Called)
    ensures Abstract(t) == Abstract(s).(
              call := Abstract(s).call[c := RequestOf(t.call[c])])
  {
    forall d, n ensures IsWriter(t, d, n) <==> IsWriter(s, d, n) {}
    SameTail(s, t);
    assert Abstract(t).call == Abstract(s).call[c := RequestOf(t.call[c])];
  }

  lemma ReadRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && ReadPage(s, t, c)
    ensures DurableMap.Read(Abstract(s), Abstract(t), c)
  {
    CallRefines(s, t, c);
    Safety.ReadsLatest(s);
    RecordsAre(s, |Tail(s)|);
    var a := Abstract(s);
    assert a.tail[..|Tail(s)|] == a.tail;
    assert Tail(s)[..|Tail(s)|] == Tail(s);
    assert a.call[c] == RequestOf(s.call[c]);
  }

  lemma AppendRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && AppendLog(s, t, c)
    ensures DurableMap.Write(Abstract(s), Abstract(t), c)
  {
    var a, b := Abstract(s), Abstract(t);
    TailIs(s, s.durable); TailIs(t, t.durable);
    BlockSpan(s.durable);
    forall n: nat | n <= End(s) ensures WriterOf(t, n) == WriterOf(s, n) {
      if d :| IsWriter(s, d, n) {
        assert IsWriter(t, d, n);
        WriterIs(s, d, n); WriterIs(t, d, n);
      } else if d :| IsWriter(t, d, n) {
        assert d != c;
        assert IsWriter(s, d, n);
      }
    }
    assert IsWriter(t, c, End(s) + 1);
    WriterIs(t, c, End(s) + 1);
    var entry := DurableMap.Entry(DurableMap.By(c), Put(s.call[c].key, s.call[c].value));
    assert b.tail == a.tail + [entry];
    assert a.call[c] == RequestOf(s.call[c]);
    assert b.call == a.call[c := a.call[c].(done := true)];
  }

  lemma CompleteRefines(s: State, t: State)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && CompleteFlush(s, t)
    ensures DurableMap.Harden(Abstract(s), Abstract(t), t.durable - s.durable)
  {
    var n := t.durable - s.durable;
    CompleteCutsTail(s, t);
    RecordsAre(s, n);
    SameCalls(s, t);
  }

  lemma CompleteCutsTail(s: State, t: State)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && CompleteFlush(s, t)
    ensures var n := t.durable - s.durable;
            n <= |Abstract(s).tail| && Abstract(t).tail == Abstract(s).tail[n..]
  {
    CompleteCutsBuffer(s, t);
    CompleteKeepsWriters(s, t);
    SameWriters(s, t);
    TailIsCut(s, t);
  }

  lemma CompleteCutsBuffer(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && CompleteFlush(s, t)
    ensures s.durable <= t.durable && End(s) == End(t) && BufferStart(s) <= BufferStart(t)
    ensures BufferStart(t) - BufferStart(s) <= |s.buffer|
    ensures t.buffer == s.buffer[BufferStart(t) - BufferStart(s)..]
  {
    BlocksInOrder(s.durable, t.durable); BlockSpan(t.durable); BlockSpan(s.durable);
  }

  lemma CompleteKeepsWriters(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && CompleteFlush(s, t)
    ensures forall c, m :: IsWriter(t, c, m) <==> IsWriter(s, c, m)
    ensures s.phase == t.phase
  {
  }

  lemma SameWriters(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Inv(s) && Inv(t) && s.phase == Up && t.phase == Up
    requires forall c, m :: IsWriter(t, c, m) <==> IsWriter(s, c, m)
    ensures forall m :: WriterOf(s, m) == WriterOf(t, m)
  {
    forall m ensures WriterOf(s, m) == WriterOf(t, m) {
      if c :| IsWriter(s, c, m) { WriterIs(s, c, m); WriterIs(t, c, m); }
    }
  }

  lemma TailIsCut(s: State, t: State)
    requires TypeInv(s) && TypeInv(t)
    requires s.durable <= t.durable && End(s) == End(t) && BufferStart(s) <= BufferStart(t)
    requires BufferStart(t) - BufferStart(s) <= |s.buffer|
    requires t.buffer == s.buffer[BufferStart(t) - BufferStart(s)..]
    requires forall m :: WriterOf(s, m) == WriterOf(t, m)
    ensures var n := t.durable - s.durable;
            n <= |Abstract(s).tail| && Abstract(t).tail == Abstract(s).tail[n..]
  {
    TailIs(s, s.durable); TailIs(t, t.durable);
    BlockSpan(s.durable); BlockSpan(t.durable);
    var a, b, n := Abstract(s).tail, Abstract(t).tail, t.durable - s.durable;
    forall i | 0 <= i < |b| ensures b[i] == a[n..][i] {
      assert a[n + i].record == s.buffer[s.durable + n + i - BufferStart(s)];
    }
  }

  lemma AcknowledgeRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && Acknowledge(s, t, c)
    ensures DurableMap.Return(Abstract(s), Abstract(t), c)
  {
    var a, b := Abstract(s), Abstract(t);
    TailIs(s, s.durable); TailIs(t, t.durable);
    forall n: nat | n > s.durable ensures WriterOf(t, n) == WriterOf(s, n) {
      if d :| IsWriter(s, d, n) {
        assert d != c && IsWriter(t, d, n);
        WriterIs(s, d, n); WriterIs(t, d, n);
      } else if d :| IsWriter(t, d, n) {
        assert IsWriter(s, d, n);
      }
    }
    assert b.tail == a.tail;
    if DurableMap.InTail(a, c) {
      var i :| 0 <= i < |a.tail| && a.tail[i].waiter == DurableMap.By(c);
      assert IsWriter(s, c, s.durable + i + 1);
    }
    assert a.call[c] == RequestOf(s.call[c]);
    assert b.call == a.call[c := DurableMap.NoRequest];
  }

  lemma FailureRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && ReportFailure(s, t, c)
    ensures DurableMap.Fail(Abstract(s), Abstract(t), c)
  {
    var a, b := Abstract(s), Abstract(t);
    TailIs(s, s.durable); TailIs(t, t.durable);
    forall i | 0 <= i < |a.tail| ensures b.tail[i] == DurableMap.Disowned(a.tail, c)[i] {
      var n := s.durable + i + 1;
      if IsWriter(s, c, n) {
        WriterIs(s, c, n);
        forall d ensures !IsWriter(t, d, n) {
          if IsWriter(t, d, n) { assert d != c && IsWriter(s, d, n); }
        }
      } else if d :| IsWriter(s, d, n) {
        assert IsWriter(t, d, n);
        WriterIs(s, d, n); WriterIs(t, d, n);
      } else if d :| IsWriter(t, d, n) {
        assert IsWriter(s, d, n);
      }
    }
    assert b.tail == DurableMap.Disowned(a.tail, c);
    assert a.call[c] == RequestOf(s.call[c]);
    assert b.call == a.call[c := DurableMap.NoRequest];
  }

  lemma CrashRefines(s: State, t: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Crash(s, t, log, pages, super)
    requires Resting(t)
    ensures s.phase == Up ==> exists n :: DurableMap.Crash(Abstract(s), Abstract(t), n)
    ensures s.phase != Up ==> Abstract(t) == Abstract(s)
  {
    Crashes.VerdictIsFine(s, log, pages, super);
    if s.phase == Up {
      var n :| 0 <= n <= |Tail(s)| && t.base == Apply(s.base, Tail(s)[..n]);
      CrashWhileUp(s, t, n);
    } else {
      IsResting(s);
      UnseenWhileDown(s, t);
    }
  }

  lemma CrashWhileUp(s: State, t: State, n: nat)
    requires TypeInv(s) && TypeInv(t) && n <= |Tail(s)| && s.phase == Up
    requires t.phase == Down && Resting(t)
    requires t.base == Apply(s.base, Tail(s)[..n])
    ensures DurableMap.Crash(Abstract(s), Abstract(t), n)
  {
    RestingIsEmpty(t);
    RecordsAre(s, n);
  }

  // Between a crash and the end of recovery, nobody waits and nothing is in the buffer.
  predicate Resting(s: State)
    requires TypeInv(s)
  {
    AllIdle(s) && s.buffer == [] && s.durable == BufferStart(s)
  }

  lemma RestingIsEmpty(s: State)
    requires TypeInv(s) && Resting(s)
    ensures Abstract(s).tail == []
    ensures Abstract(s).call == imap c: Client :: DurableMap.NoRequest
  {
    var a := Abstract(s);
    assert |a.tail| == 0;
    var none := imap c: Client :: DurableMap.NoRequest;
    forall c ensures a.call[c] == none[c] { assert s.call[c] == Idle; }
  }

  lemma IsResting(s: State)
    requires TypeInv(s) && Inv(s) && s.phase != Up
    ensures Resting(s)
  {
    BlockSpan(0);
  }

  // Recovery does nothing that the contract sees, crashes included.
  lemma UnseenWhileDown(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Resting(s) && Resting(t)
    requires s.phase != Up && t.phase != Up
    requires t.base == s.base
    ensures Abstract(t) == Abstract(s)
  {
    RestingIsEmpty(s);
    RestingIsEmpty(t);
  }

  // Of what happens while the store is up, the contract sees calls, records and durability.
  lemma Unseen(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Inv(s) && Inv(t) && s.phase == Up && t.phase == Up
    requires t.buffer == s.buffer && t.durable == s.durable && t.base == s.base
    requires forall c :: RequestOf(t.call[c]) == RequestOf(s.call[c])
    requires forall c :: s.call[c].Write? ==> t.call[c].Write? && t.call[c].lsn == s.call[c].lsn
    ensures Abstract(t) == Abstract(s)
  {
    forall c, n ensures IsWriter(t, c, n) <==> IsWriter(s, c, n) {
      assert RequestOf(t.call[c]) == RequestOf(s.call[c]);
    }
    SameTail(s, t);
    SameCalls(s, t);
  }

  lemma ChangeRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && ChangePage(s, t, c)
    ensures Abstract(t) == Abstract(s)
  {
    Unseen(s, t);
  }

  lemma FlushRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && FlushLog(s, t, c)
    ensures Abstract(t) == Abstract(s)
  {
    Unseen(s, t);
  }

  // A client calls, or gets the answer of its get.
  predicate Calls(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    || (exists k :: CallGet(s, t, c, k))
    || (exists k, v :: CallWrite(s, t, c, k, v))
    || AnswerGet(s, t, c)
  }

  lemma CallsRefine(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && Calls(s, t, c)
    ensures DurableMap.Next(Abstract(s), Abstract(t))
  {
    var a, b := Abstract(s), Abstract(t);
    CallRefines(s, t, c);
    assert a.call[c] == RequestOf(s.call[c]);
    if AnswerGet(s, t, c) { assert DurableMap.Return(a, b, c); }
    else { assert DurableMap.Call(a, b, c, RequestOf(t.call[c])); }
  }

  lemma ClientRefines(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && ClientStep(s, t, c)
    ensures DurableMap.Next(Abstract(s), Abstract(t)) || Abstract(t) == Abstract(s)
  {
    if Calls(s, t, c) { CallsRefine(s, t, c); }
    else if ReadPage(s, t, c) { ReadRefines(s, t, c); }
    else if AppendLog(s, t, c) { AppendRefines(s, t, c); }
    else if ChangePage(s, t, c) { ChangeRefines(s, t, c); }
    else if FlushLog(s, t, c) { FlushRefines(s, t, c); }
    else if Acknowledge(s, t, c) { AcknowledgeRefines(s, t, c); }
    else { FailureRefines(s, t, c); }
  }

  lemma RecoveryRefines(s: State, t: State)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && FinishRecovery(s, t)
    ensures DurableMap.Recover(Abstract(s), Abstract(t))
  {
    IsResting(s);
    RestingIsEmpty(s);
    RestingIsEmpty(t);
  }

  // The steps that nobody waits for.
  predicate Background(s: State, t: State)
    requires TypeInv(s)
  {
    || FailFlush(s, t)
    || (exists k :: PageStep(s, t, k))
    || CheckpointStepTaken(s, t)
    || LoadSuperblock(s, t) || RedoRecord(s, t) || FinishRedo(s, t)
  }

  // None of them touches the log in memory, and calls only to wake who sleeps.
  lemma BackgroundTouches(s: State, t: State)
    requires TypeInv(s) && Background(s, t)
    ensures t.base == s.base
    ensures s.phase == Up <==> t.phase == Up
    ensures s.phase == Up ==> t.buffer == s.buffer && t.durable == s.durable
    ensures FailFlush(s, t) || t.call == s.call
  {
  }

  lemma BackgroundRefines(s: State, t: State)
    requires TypeInv(s) && Inv(s) && TypeInv(t) && Inv(t) && Background(s, t)
    ensures Abstract(t) == Abstract(s)
  {
    BackgroundTouches(s, t);
    if s.phase == Up {
      forall c ensures RequestOf(t.call[c]) == RequestOf(s.call[c])
                       && (s.call[c].Write? ==> t.call[c].Write? && t.call[c].lsn == s.call[c].lsn)
      {
        if FailFlush(s, t) { WokenIsSame(s, t, c); } else { assert t.call == s.call; }
      }
      Unseen(s, t);
    } else {
      IsResting(s);
      IsResting(t);
      UnseenWhileDown(s, t);
    }
  }

  lemma WokenIsSame(s: State, t: State, c: Client)
    requires TypeInv(s) && TypeInv(t) && FailFlush(s, t)
    ensures RequestOf(t.call[c]) == RequestOf(s.call[c])
    ensures s.call[c].Write? ==> t.call[c].Write? && t.call[c].lsn == s.call[c].lsn
  {
  }

  // Every step of the protocol is one of the contract, or changes nothing of it.
  lemma NextRefines(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Inv(s) && Inv(t) && Next(s, t)
    ensures DurableMap.Next(Abstract(s), Abstract(t)) || Abstract(t) == Abstract(s)
  {
    if c :| ClientStep(s, t, c) {
      ClientRefines(s, t, c);
    } else if CompleteFlush(s, t) {
      CompleteRefines(s, t);
    } else if log, pages, super :| Crash(s, t, log, pages, super) {
      IsResting(t);
      CrashRefines(s, t, log, pages, super);
    } else if Restart(s, t) {
      NewestMaySurvive(s.logDev);
      NewestMaySurvive(s.pageDev);
      IsResting(t);
      CrashRefines(s, t, NewestOf(s.logDev), NewestOf(s.pageDev), Newest(s.superDev));
    } else if FinishRecovery(s, t) {
      RecoveryRefines(s, t);
    } else {
      BackgroundRefines(s, t);
    }
  }

  lemma InitRefines(s: State)
    requires Init(s)
    ensures TypeInv(s) && DurableMap.Init(Abstract(s))
  {
    InitHolds(s);
    BlockSpan(0);
    RestingIsEmpty(s);
  }

  // The theorem: Spec => Contract!Spec.
  lemma Refines(b: seq<State>, i: nat)
    requires Safety.Behaviour(b) && i < |b|
    ensures TypeInv(b[0]) && DurableMap.Init(Abstract(b[0]))
    ensures TypeInv(b[i])
    ensures i + 1 < |b| ==>
              && TypeInv(b[i + 1])
              && (DurableMap.Next(Abstract(b[i]), Abstract(b[i + 1]))
                  || Abstract(b[i + 1]) == Abstract(b[i]))
  {
    InitRefines(b[0]);
    Safety.InvHolds(b, i);
    if i + 1 < |b| {
      assert Safety.Step(b[i], b[i + 1]);
      if b[i + 1] != b[i] {
        Safety.NextKeeps(b[i], b[i + 1]);
        NextRefines(b[i], b[i + 1]);
      }
    }
  }
}
