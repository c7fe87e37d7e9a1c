// Page write-back and checkpoints preserve the invariant.

include "Flush.dfy"

module Checkpoints {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened WalRecovery
  import opened Invariant
  import opened History
  import opened Flush

  // What a step leaves alone if it changes neither the calls nor the log.
  lemma CallsUntouched(s: State, t: State)
    requires TypeInv(s) && TypeInv(t) && Inv(s) && s.phase == Up
    requires t.call == s.call && t.hist == s.hist && t.durable == s.durable
    requires t.buffer == s.buffer && t.poisoned == s.poisoned && t.page == s.page
    ensures CallsInv(t) && AckInv(t)
    ensures forall k :: Latched(t, k) <==> Latched(s, k)
  {
    forall c ensures CallInv(t, c) { assert CallInv(s, c); }
    forall c ensures LatchInv(t, c) { assert LatchInv(s, c); }
    forall c, step ensures Writes(t, c, step) <==> Writes(s, c, step) {}
    forall c, d | Writes(t, c, Logged) && Writes(t, d, Logged) && t.call[c].key == t.call[d].key
      ensures c == d
    {
      assert Writes(s, c, Logged) && Writes(s, d, Logged);
    }
    forall n: nat | IsAwaited(s, n) ensures IsAwaited(t, n) {
      var c :| IsWriter(s, c, n);
      assert IsWriter(t, c, n);
    }
    forall k ensures Latched(t, k) <==> Latched(s, k) {
      if Latched(s, k) {
        var c :| Writes(s, c, Logged) && s.call[c].key == k;
        assert Writes(t, c, Logged);
      }
      if Latched(t, k) {
        var c :| Writes(t, c, Logged) && t.call[c].key == k;
        assert Writes(s, c, Logged);
      }
    }
  }

  // While recovering, nobody has a latch.
  lemma NobodyLatches(s: State, k: Key)
    requires TypeInv(s) && AllIdle(s)
    ensures !Latched(s, k)
  {
  }

  lemma WriteBackKeeps(s: State, t: State, k: Key)
    requires TypeInv(s) && Inv(s) && WriteBack(s, t, k)
    ensures TypeInv(t) && Inv(t)
  {
    assert TypeInv(t);
    assert Newest(t.pageDev[k]) == s.page[k];
    forall j, image | image in t.pageDev[j]
      ensures image in s.pageDev[j] || (j == k && image == s.page[k])
    {
    }
    assert NewestOf(t.logDev) == NewestOf(s.logDev);
    if s.phase == Up { CallsUntouched(s, t); }
    if s.phase == Redo { assert RedoInv(t); }
    if s.phase == Opening {
      forall super | super in t.superDev ensures OldOrNew(t, super) {
        assert OldOrNew(s, super);
      }
    }
    forall super, j, image | super in t.superDev && image in t.pageDev[j]
      ensures Complete(t.hist, j, image, super.redo)
    {
      if image !in s.pageDev[j] {
        if s.phase == Redo { assert super.redo <= s.redone; }
      }
    }
  }

  lemma ReloadKeeps(s: State, t: State, k: Key)
    requires TypeInv(s) && Inv(s) && Reload(s, t, k)
    ensures TypeInv(t) && Inv(t)
  {
    assert t.page == s.page;
    assert t.dirtied == s.dirtied;
    assert t == s;
  }

  lemma BeginCheckpointKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && BeginCheckpoint(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    CallsUntouched(s, t);
  }

  // Once all is swept, the pages on the device have all changes from before the checkpoint.
  lemma SweptIsComplete(s: State, k: Key)
    requires TypeInv(s) && Inv(s) && At(s, AtSweep) && Swept(s) && s.phase != Redo
    ensures Complete(s.hist, k, Newest(s.pageDev[k]), s.checkpoint.begin)
  {
    if s.phase == Up && s.dirtied[k] == 0 && Latched(s, k) {
      var c :| Writes(s, c, Logged) && s.call[c].key == k;
      assert LatchInv(s, c);
    }
  }

  // ... which the WAL rule allows only if the log is durable up to there.
  lemma SweptIsDurable(s: State)
    requires TypeInv(s) && Inv(s) && At(s, AtSweep) && Swept(s) && s.phase == Up
    ensures s.checkpoint.begin <= s.durable
  {
    var begin := s.checkpoint.begin;
    if begin > s.durable {
      assert s.hist[begin - 1].Put?;
      var k := s.hist[begin - 1].key;
      SweptIsComplete(s, k);
      assert Newest(s.pageDev[k]) in s.pageDev[k];
      assert Newest(s.pageDev[k]).lsn <= s.durable;
    }
  }

  lemma FlushPagesKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && FlushPages(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    DeviceFlushKeeps(s);
    DeviceFlushLeaves(s);
    var f := DeviceFlush(s);
    assert t == f.(checkpoint := s.checkpoint.(at := AtForced));
    forall k ensures Complete(s.hist, k, Newest(s.pageDev[k]), s.checkpoint.begin) {
      SweptIsComplete(s, k);
    }
    if s.phase == Up {
      SweptIsDurable(s);
      CallsUntouched(f, t);
    } else {
      forall super | super in t.superDev ensures OldOrNew(t, super) {
        assert OldOrNew(f, super);
      }
    }
  }

  lemma WriteSuperblockKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && WriteSuperblock(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    assert Newest(t.superDev) == Superblock(s.epoch, s.checkpoint.begin);
    if s.phase == Up {
      CallsUntouched(s, t);
    } else {
      forall super | super in t.superDev ensures OldOrNew(t, super) {
        if super in s.superDev { assert OldOrNew(s, super); }
      }
    }
  }

  lemma FlushSuperblockKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && FlushSuperblock(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    DeviceFlushKeeps(s);
    DeviceFlushLeaves(s);
    var f := DeviceFlush(s);
    if s.phase == Up {
      CallsUntouched(f, t);
    } else {
      forall super | super in t.superDev ensures OldOrNew(t, super) {
        assert OldOrNew(f, super);
      }
    }
  }

  lemma TruncateLogKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && TruncateLog(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    CallsUntouched(s, t);
    BlocksInOrder(s.oldest, t.oldest);
    var a, b := BlockOf(s.oldest) + RingBlocks, BlockOf(t.oldest) + RingBlocks;
    if a < b { BlocksApart(a, b); }
  }
}
