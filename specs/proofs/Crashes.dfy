// Crashes preserve the invariant: whatever a power cut leaves, recovery finds a prefix of the
// history that has all that was durable, and finds the same if it is interrupted.

include "History.dfy"

module Crashes {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened WalRecovery
  import opened Invariant
  import opened History

  // What a crash may leave.
  predicate Leaves(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s)
  {
    && s.phase != Down
    && AfterCrash(s.logDev, log) && AfterCrash(s.pageDev, pages) && super in s.superDev
  }

  // The history up to the end of the log that is found.
  function Kept(s: State, log: Ring, super: Superblock): seq<Record>
    requires IsRing(log)
  {
    CutAt(s.hist, LogFoundEnd(log, super))
  }

  // While the store is up, recovery finds the log up to `durable` at least, and nothing that was
  // not written.
  lemma FindsPrefix(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Leaves(s, log, pages, super) && s.phase == Up
    ensures var end := LogFoundEnd(log, super);
            s.durable <= end <= |s.hist| && LogFound(log, super) == s.hist[super.redo..end]
  {
    BlocksInOrder(s.oldest, super.redo);
    var a, b := BlockOf(s.oldest) + RingBlocks, BlockOf(super.redo) + RingBlocks;
    if a < b { BlocksApart(a, b); }
    forall p | p in log && log[p].epoch == super.epoch ensures Truthful(log[p], s.hist) {
      assert log[p] in s.logDev[p];
    }
    forall i: nat | BlockOf(super.redo) <= i && Start(i) < s.durable
      ensures Place(i) in log && Reaches(log[Place(i)], super.epoch, i, s.durable)
    {
      PlaceInRing(i);
      assert log[Place(i)] in s.logDev[Place(i)];
    }
    ReadLogFinds(log, super.epoch, super.redo, s.hist, s.durable);
  }

  // While recovering, it finds all of the history: the old superblock by reading, the new one
  // because nothing comes after it.
  lemma FindsSame(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Leaves(s, log, pages, super) && s.phase != Up
    ensures var end := LogFoundEnd(log, super);
            && |s.hist| <= end
            && super.redo <= end
            && LogFound(log, super) == CutAt(s.hist, end)[super.redo..end]
            && BlocksAreOld(log, super)
  {
    assert RecoveringInv(s);
    forall p | p in log ensures log[p] == NewestOf(s.logDev)[p] {
      assert log[p] in s.logDev[p];
      assert |s.logDev[p]| == 1;
    }
    assert log == NewestOf(s.logDev);
    if super == Superblock(s.epoch, s.durable) {
      ReadLogOfNewEpoch(log, super.epoch, super.redo);
      assert LogFoundEnd(log, super) == s.durable;
      assert CutAt(s.hist, s.durable)[s.durable..s.durable] == [];
    } else {
      assert FindsAll(s, super);
      assert CutAt(s.hist, |s.hist|) == s.hist;
      assert s.hist[super.redo..|s.hist|] == s.hist[super.redo..];
    }
  }

  predicate BlocksAreOld(log: Ring, super: Superblock) {
    forall p :: p in log ==> log[p].epoch <= super.epoch
  }

  // In either case: the log found is the rest of the kept history, and the pages are as old or
  // older, but lack nothing from before the start of redo.
  lemma FindsKept(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Leaves(s, log, pages, super)
    ensures var kept := Kept(s, log, super);
            && super.redo <= |kept|
            && LogFound(log, super) == kept[super.redo..]
            && BlocksAreOld(log, super)
            && forall k :: && Valid(kept, k, pages[k])
                           && Complete(kept, k, pages[k], super.redo)
  {
    var kept := Kept(s, log, super);
    var end := LogFoundEnd(log, super);
    if s.phase == Up {
      FindsPrefix(s, log, pages, super);
      assert kept[super.redo..] == s.hist[super.redo..end];
      forall p | p in log ensures log[p].epoch <= super.epoch { assert log[p] in s.logDev[p]; }
    } else {
      FindsSame(s, log, pages, super);
      assert kept[super.redo..] == kept[super.redo..end];
    }
    CutIs(s.hist, end);
    forall k ensures Valid(kept, k, pages[k]) && Complete(kept, k, pages[k], super.redo) {
      assert pages[k] in s.pageDev[k];
      assert Valid(s.hist, k, pages[k]);
      assert Complete(s.hist, k, pages[k], super.redo);
      ValidCut(s.hist, k, pages[k], end);
    }
  }

  // So recovery ends with the map after the kept history.
  lemma RecoversKept(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Leaves(s, log, pages, super)
    ensures var kept := Kept(s, log, super);
            forall k :: Recovered(log, pages, super)[k] == ValueAt(kept, k, |kept|)
  {
    FindsKept(s, log, pages, super);
    var kept := Kept(s, log, super);
    assert kept[super.redo..|kept|] == kept[super.redo..];
    forall k ensures Recovered(log, pages, super)[k] == ValueAt(kept, k, |kept|) {
      RedoAllIs(pages, kept, k, super.redo, |kept|);
      CompleteValue(kept, k, RedoAll(pages, LogFound(log, super), super.redo)[k], |kept|);
    }
  }

  // While up, that is a prefix of the writes with all durable ones; else, the same as before.
  lemma VerdictIsFine(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Leaves(s, log, pages, super)
    ensures Judge(s, log, pages, super) == Fine
  {
    RecoversKept(s, log, pages, super);
    var recovered := Recovered(log, pages, super);
    var end := LogFoundEnd(log, super);
    if s.phase == Up {
      FindsPrefix(s, log, pages, super);
      BlockSpan(s.durable);
      var n := end - s.durable;
      assert Tail(s)[..n] == s.hist[s.durable..end];
      ApplyIs(s.base, s.hist, s.durable, end);
      var expected := Apply(s.base, Tail(s)[..n]);
      forall k ensures recovered[k] == expected[k] {
        CutIs(s.hist, end);
        ValueAtSame(s.hist, Kept(s, log, super), k, end);
      }
      assert recovered == expected;
      assert IsPrefix(s, recovered);
    } else {
      FindsSame(s, log, pages, super);
      forall k ensures recovered[k] == s.base[k] { CutValue(s.hist, k, end); }
      assert recovered == s.base;
    }
  }

  lemma CrashKeeps(s: State, t: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s) && Inv(s) && Crash(s, t, log, pages, super)
    ensures TypeInv(t) && Inv(t)
  {
    FindsKept(s, log, pages, super);
    RecoversKept(s, log, pages, super);
    VerdictIsFine(s, log, pages, super);
    BlockSpan(0);
    assert TypeInv(t);
    assert NewestOf(t.logDev) == log;
    assert Super(t) == super;
    assert DownInv(t);
  }

  // A killed process is a power cut that leaves the newest versions.
  lemma RestartKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && Restart(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    NewestMaySurvive(s.logDev);
    NewestMaySurvive(s.pageDev);
    CrashKeeps(s, t, NewestOf(s.logDev), NewestOf(s.pageDev), Newest(s.superDev));
  }
}
