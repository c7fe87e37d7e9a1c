// The theorems are not empty: in some behaviour, a write is acknowledged, the process is killed, and
// recovery begins.

include "Safety.dfy"

module Reach {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened WalRecovery
  import opened Invariant
  import opened Safety

  predicate Reachable(s: State) { exists b :: Behaviour(b) && b[|b| - 1] == s }

  lemma InitIsReachable(s: State)
    requires Init(s)
    ensures TypeInv(s) && Inv(s) && Reachable(s)
  {
    InitHolds(s);
    assert Behaviour([s]) && [s][|[s]| - 1] == s;
  }

  lemma Extend(s: State, t: State)
    requires TypeInv(s) && Inv(s) && Reachable(s) && Next(s, t)
    ensures TypeInv(t) && Inv(t) && Reachable(t)
  {
    NextKeeps(s, t);
    var b :| Behaviour(b) && b[|b| - 1] == s;
    var longer := b + [t];
    forall i | 0 <= i < |longer| - 1 ensures Step(longer[i], longer[i + 1]) {
      if i < |b| - 1 { assert Step(b[i], b[i + 1]); }
    }
    assert Behaviour(longer) && longer[|longer| - 1] == t;
  }

  function IndexAt(s: State, p: int): nat
    requires FlushesPlace(s, p)
    ensures Flushes(s, IndexAt(s, p)) && Place(IndexAt(s, p)) == p
  {
    var i: nat :| Flushes(s, i) && Place(i) == p; i
  }

  // The ring after a flush exists.
  function FlushedRing(s: State): imap<int, seq<LogBlock>>
    requires TypeInv(s)
    ensures WritesLog(s, FlushedRing(s))
  {
    imap p: int | 0 <= p < RingBlocks ::
      if FlushesPlace(s, p) then s.logDev[p] + [FlushedBlock(s, IndexAt(s, p))] else s.logDev[p]
  }

  lemma WriteIsLogged(s: State, c: Client, k: Key, v: Content) returns (t: State)
    requires Init(s)
    ensures TypeInv(t) && Inv(t) && Reachable(t) && t.phase == Up && !t.poisoned
    ensures Writes(t, c, Waiting) && t.durable == 0 && t.flushing == 0 && t.call[c].lsn == 1
    ensures End(t) == 1
  {
    InitIsReachable(s);
    BlockSpan(0);
    var called := s.(call := s.call[c := Write(k, v, Called, 0)]);
    assert CallWrite(s, called, c, k, v);
    assert ClientStep(s, called, c);
    Extend(s, called);
    var logged := called.(buffer := called.buffer + [Put(k, v)],
                          call := called.call[c := called.call[c].(at := Logged, lsn := 1)],
                          hist := called.hist + [Put(k, v)]);
    assert !Latched(called, k);
    assert AppendLog(called, logged, c);
    assert ClientStep(called, logged, c);
    Extend(called, logged);
    t := logged.(page := logged.page[k := Image(v, 1)],
                 dirtied := logged.dirtied[k := 1],
                 call := logged.call[c := logged.call[c].(at := Waiting)]);
    assert ChangePage(logged, t, c);
    assert ClientStep(logged, t, c);
    Extend(logged, t);
  }

  // A state in which a write is about to be acknowledged.
  lemma WriteIsAcknowledged(s: State, c: Client, k: Key, v: Content) returns (a: State, t: State)
    requires Init(s)
    ensures TypeInv(a) && Inv(a) && Reachable(a) && Acknowledge(a, t, c)
    ensures TypeInv(t) && Inv(t) && Reachable(t) && t.phase == Up
  {
    var w := WriteIsLogged(s, c, k, v);
    BlockSpan(0);
    var flight := w.(flushing := End(w),
                     logDev := FlushedRing(w),
                     lost := w.lost.(log := StillLost(w)),
                     call := imap d: Client ::
                               if Writes(w, d, Waiting) && w.durable < w.call[d].lsn
                               then Moved(w.call[d], Asleep) else w.call[d]);
    assert FlushLog(w, flight, c);
    assert ClientStep(w, flight, c);
    Extend(w, flight);
    var end := flight.flushing;
    a := DeviceFlush(flight).(durable := end, flushing := end,
                              buffer := Forget(flight, end),
                              base := Apply(flight.base, Tail(flight)[..end - flight.durable]),
                              call := WakeAll(flight));
    assert CompleteFlush(flight, a);
    Extend(flight, a);
    assert Writes(flight, c, Asleep);
    assert Writes(a, c, Waiting);
    t := a.(call := a.call[c := Idle]);
    assert Acknowledge(a, t, c);
    assert ClientStep(a, t, c);
    Extend(a, t);
  }

  // After which the process is killed, and begins to recover.
  lemma RecoveryBegins(s: State, c: Client, k: Key, v: Content) returns (t: State)
    requires Init(s)
    ensures TypeInv(t) && Inv(t) && Reachable(t) && t.phase == Redo
  {
    var a, u := WriteIsAcknowledged(s, c, k, v);
    var d := Left(u, NewestOf(u.logDev), NewestOf(u.pageDev), Newest(u.superDev));
    assert Restart(u, d);
    Extend(u, d);
    var next := NextBlockStart(ToRedoEnd(d));
    t := d.(phase := Redo, redone := Super(d).redo, epoch := Super(d).epoch + 1,
            durable := next, flushing := next, oldest := Super(d).redo,
            page := NewestOf(d.pageDev));
    assert LoadSuperblock(d, t);
    assert RecoveryStep(d, t);
    Extend(d, t);
  }
}
