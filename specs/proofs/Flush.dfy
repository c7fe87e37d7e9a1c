// The group flush, and the flush of the device, preserve the invariant.

include "History.dfy"

module Flush {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened Invariant
  import opened History

  // -----------------------------------------------------------------------------------------------
  // The device.

  // After a flush, each place has the version that is read, and no version is new.
  lemma DeviceFlushLeaves(s: State)
    requires TypeInv(s) && s.lost == NothingLost()
    ensures var t := DeviceFlush(s);
            && TypeInv(t)
            && (forall p :: p in t.logDev ==> t.logDev[p] == [Newest(s.logDev[p])])
            && (forall k :: t.pageDev[k] == [Newest(s.pageDev[k])])
            && t.superDev == [Newest(s.superDev)]
  {
  }

  // A flush only takes versions away, so what holds for all versions still holds.
  lemma DeviceFlushKeeps(s: State)
    requires TypeInv(s) && Inv(s) && !s.poisoned
    ensures TypeInv(DeviceFlush(s)) && Inv(DeviceFlush(s))
  {
    var t := DeviceFlush(s);
    DeviceFlushLeaves(s);
    assert LostInv(t) && ImagesInv(t) && RedoStartInv(t);
    if s.phase == Up {
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
      forall n: nat | IsAwaited(s, n) ensures IsAwaited(t, n) {
        var c :| IsWriter(s, c, n);
        assert IsWriter(t, c, n);
      }
      forall c ensures LatchInv(t, c) { assert LatchInv(s, c); }
      forall c ensures CallInv(t, c) { assert CallInv(s, c); }
    } else {
      assert forall p :: p in t.logDev ==> NewestOf(t.logDev)[p] == NewestOf(s.logDev)[p];
      assert NewestOf(t.logDev) == NewestOf(s.logDev);
      if s.phase == Down { assert DownInv(t); }
      if s.phase == Redo { assert RedoInv(t); }
      if s.phase == Opening {
        forall super | super in t.superDev ensures OldOrNew(t, super) {
          assert OldOrNew(s, super);
        }
      }
    }
  }

  // -----------------------------------------------------------------------------------------------
  // Group flush.

  // The blocks that a flush writes hold what the history says.
  lemma FlushedBlockIsTrue(s: State, i: nat)
    requires TypeInv(s) && BufferInv(s) && Flushes(s, i)
    ensures Truthful(FlushedBlock(s, i), s.hist)
    ensures Reaches(FlushedBlock(s, i), s.epoch, i, End(s))
  {
    BlockOfStart(BlockOf(s.durable));
    if i > BlockOf(s.durable) { BlocksApart(BlockOf(s.durable), i); }
  }

  // A block that a flush writes is within one lap of the oldest.
  lemma FlushedBlockFits(s: State, i: nat)
    requires TypeInv(s) && Inv(s) && s.phase == Up && Flushes(s, i)
    ensures BlockOf(s.oldest) <= i < BlockOf(s.oldest) + RingBlocks
  {
    BlockOfStart(BlockOf(s.durable));
    BlocksInOrder(s.oldest, s.durable);
    if i > BlockOf(s.oldest) + RingBlocks { BlocksApart(BlockOf(s.oldest) + RingBlocks, i); }
  }

  lemma FlushLogKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && FlushLog(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    assert s.phase == Up;
    BlockSpan(s.durable);
    assert TypeInv(t);
    FlushKeepsCalls(s, t, c);
    FlushWritesTruth(s, t, c);
    FlushWritesAll(s, t, c);
    FlushKeepsDurable(s, t, c);
    forall k ensures Latched(t, k) <==> Latched(s, k) { FlushKeepsLatches(s, t, c, k); }
  }

  lemma FlushKeepsLatches(s: State, t: State, c: Client, k: Key)
    requires TypeInv(s) && TypeInv(t) && FlushLog(s, t, c)
    ensures Latched(t, k) <==> Latched(s, k)
  {
    if Latched(s, k) {
      var d :| Writes(s, d, Logged) && s.call[d].key == k;
      assert Writes(t, d, Logged);
    }
    if Latched(t, k) {
      var d :| Writes(t, d, Logged) && t.call[d].key == k;
      assert Writes(s, d, Logged);
    }
  }

  lemma FlushKeepsCalls(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && FlushLog(s, t, c) && TypeInv(t)
    ensures CallsInv(t) && AckInv(t)
  {
    forall d ensures CallInv(t, d) { assert CallInv(s, d); }
    forall d ensures LatchInv(t, d) { assert LatchInv(s, d); }
    forall d, e | Writes(t, d, Logged) && Writes(t, e, Logged) && t.call[d].key == t.call[e].key
      ensures d == e
    {
      assert Writes(s, d, Logged) && Writes(s, e, Logged);
    }
    forall n: nat | IsAwaited(s, n) ensures IsAwaited(t, n) {
      var d :| IsWriter(s, d, n);
      assert IsWriter(t, d, n);
    }
  }

  lemma FlushWritesTruth(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && FlushLog(s, t, c) && TypeInv(t)
    ensures TruthInv(t)
  {
    forall p, block | p in t.logDev && block in t.logDev[p]
      ensures block.epoch <= t.epoch && (block.epoch == t.epoch ==> Truthful(block, t.hist))
    {
      if t.logDev[p] != s.logDev[p] {
        var i: nat :| Flushes(s, i) && Place(i) == p
                      && t.logDev[p] == s.logDev[p] + [FlushedBlock(s, i)];
        FlushedBlockIsTrue(s, i);
      }
    }
  }

  lemma FlushWritesAll(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && FlushLog(s, t, c) && TypeInv(t)
    ensures FlightInv(t)
  {
    BlockOfStart(BlockOf(s.durable));
    forall i: nat | BlockOf(t.durable) <= i && Start(i) < t.flushing
      ensures Place(i) in t.logDev
      ensures Reaches(Newest(t.logDev[Place(i)]), t.epoch, i, t.flushing)
    {
      PlaceInRing(i);
      assert Flushes(s, i);
      assert FlushesPlace(s, Place(i));
      var j: nat :| Flushes(s, j) && Place(j) == Place(i)
                    && t.logDev[Place(i)] == s.logDev[Place(i)] + [FlushedBlock(s, j)];
      FlushedBlockFits(s, i); FlushedBlockFits(s, j);
      if i <= j { PlacesApart(i, j); } else { PlacesApart(j, i); }
      FlushedBlockIsTrue(s, i);
    }
  }

  lemma FlushKeepsDurable(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && FlushLog(s, t, c) && TypeInv(t)
    ensures DurableInv(t)
  {
    forall i: nat | BlockOf(t.oldest) <= i && Start(i) < t.durable
      ensures Place(i) in t.logDev
      ensures forall block :: block in t.logDev[Place(i)] ==> Reaches(block, t.epoch, i, t.durable)
    {
      PlaceInRing(i);
      forall block | block in t.logDev[Place(i)] ensures Reaches(block, t.epoch, i, t.durable) {
        if block !in s.logDev[Place(i)] {
          var j: nat :| Flushes(s, j) && Place(j) == Place(i) && block == FlushedBlock(s, j);
          FlushedBlockFits(s, j);
          BlockOfStart(BlockOf(s.durable)); BlockSpan(s.durable);
          if i > j { BlocksApart(j, i); BlockSpan(End(s)); }
          if BlockOf(s.durable) < i { BlocksApart(BlockOf(s.durable), i); }
          PlacesApart(i, j);
          FlushedBlockIsTrue(s, j);
        }
      }
    }
  }

  lemma CompleteFlushKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CompleteFlush(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    assert s.phase == Up;
    DeviceFlushLeaves(s);
    CompleteKeepsBuffer(s, t);
    assert TypeInv(t);
    CompleteKeepsCalls(s, t);
    CompleteMakesDurable(s, t);
    CompleteKeepsBase(s, t);
    forall super, k, image | super in t.superDev && image in t.pageDev[k]
      ensures Complete(t.hist, k, image, super.redo)
    {
      assert super in s.superDev && image in s.pageDev[k];
    }
    assert MemoryInv(t) && DirtiedInv(t) && CheckpointInv(t) && WalRuleInv(t) && SuperInv(t);
  }

  lemma CompleteKeepsBuffer(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CompleteFlush(s, t)
    ensures TypeInv(t) && BufferInv(t) && RoomInv(t)
  {
    DeviceFlushLeaves(s);
    BlocksInOrder(s.durable, t.durable); BlockSpan(t.durable); BlockSpan(s.durable);
    assert End(t) == End(s);
    forall k ensures k in t.base {}
  }

  lemma CompleteKeepsBase(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CompleteFlush(s, t)
    ensures TypeInv(t) && BaseIs(t, t.durable)
  {
    CompleteKeepsBuffer(s, t);
    BlockSpan(s.durable);
    assert Tail(s)[..t.durable - s.durable] == s.hist[s.durable..t.durable];
    ApplyIs(s.base, s.hist, s.durable, t.durable);
  }

  lemma CompleteKeepsCalls(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CompleteFlush(s, t) && TypeInv(t) && End(t) == End(s)
    ensures CallsInv(t) && AckInv(t)
    ensures forall k :: Latched(t, k) <==> Latched(s, k)
  {
    forall d ensures CallInv(t, d) { assert CallInv(s, d); }
    forall d ensures LatchInv(t, d) { assert LatchInv(s, d); }
    forall d, e | Writes(t, d, Logged) && Writes(t, e, Logged) && t.call[d].key == t.call[e].key
      ensures d == e
    {
      assert Writes(s, d, Logged) && Writes(s, e, Logged);
    }
    forall n: nat | IsAwaited(s, n) ensures IsAwaited(t, n) {
      var d :| IsWriter(s, d, n);
      assert IsWriter(t, d, n);
    }
    forall k ensures Latched(t, k) <==> Latched(s, k) {
      if Latched(s, k) {
        var d :| Writes(s, d, Logged) && s.call[d].key == k;
        assert Writes(t, d, Logged);
      }
      if Latched(t, k) {
        var d :| Writes(t, d, Logged) && t.call[d].key == k;
        assert Writes(s, d, Logged);
      }
    }
  }

  lemma CompleteMakesDurable(s: State, t: State)
    requires TypeInv(s) && Inv(s) && CompleteFlush(s, t) && TypeInv(t)
    ensures DurableInv(t) && TruthInv(t) && FlightInv(t)
  {
    DeviceFlushLeaves(s);
    forall i: nat | BlockOf(t.oldest) <= i && Start(i) < t.durable
      ensures Place(i) in t.logDev
      ensures forall block :: block in t.logDev[Place(i)] ==> Reaches(block, t.epoch, i, t.durable)
    {
      PlaceInRing(i);
      var block := Newest(s.logDev[Place(i)]);
      if i < BlockOf(s.durable) {
        BlocksApart(i, BlockOf(s.durable));
        BlockSpan(s.durable);
        assert Reaches(block, s.epoch, i, s.durable);
        assert Truthful(block, s.hist);
      } else {
        assert Reaches(block, s.epoch, i, s.flushing);
      }
    }
  }

  // -----------------------------------------------------------------------------------------------
  // Failure.

  lemma FailFlushKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && FailFlush(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    if s.phase == Up {
      forall d ensures CallInv(t, d) { assert CallInv(s, d); }
      forall d ensures LatchInv(t, d) { assert LatchInv(s, d); }
      forall d, e | Writes(t, d, Logged) && Writes(t, e, Logged)
                    && t.call[d].key == t.call[e].key
        ensures d == e
      {
        assert Writes(s, d, Logged) && Writes(s, e, Logged);
      }
      forall k ensures Latched(t, k) <==> Latched(s, k) {
        if Latched(s, k) {
          var d :| Writes(s, d, Logged) && s.call[d].key == k;
          assert Writes(t, d, Logged);
        }
        if Latched(t, k) {
          var d :| Writes(t, d, Logged) && t.call[d].key == k;
          assert Writes(s, d, Logged);
        }
      }
    }
    if s.phase == Opening {
      forall super | super in t.superDev ensures OldOrNew(t, super) {
        assert OldOrNew(s, super);
      }
    }
  }
}
