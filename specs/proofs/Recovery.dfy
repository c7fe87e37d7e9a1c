// The steps of recovery preserve the invariant.

include "History.dfy"

module Recovery {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened WalRecovery
  import opened Invariant
  import opened History

  lemma LoadSuperblockKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && LoadSuperblock(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    assert ToRedoEnd(s) == |s.hist|;
    NextBlock(|s.hist|);
    assert TypeInv(t);
    forall k ensures t.page[k] in s.pageDev[k] {}
    assert RedoInv(t);
  }

  lemma RedoRecordKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && RedoRecord(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    var n := s.redone + 1;
    var record := ToRedo(s)[s.redone - Super(s).redo];
    assert record == s.hist[s.redone];
    forall k
      ensures Valid(t.hist, k, t.page[k]) && Complete(t.hist, k, t.page[k], t.redone)
    {
    }
    forall k
      ensures t.dirtied[k] <= |t.hist|
      ensures t.dirtied[k] == 0 ==> t.page[k] == Newest(t.pageDev[k])
      ensures t.dirtied[k] != 0 ==> Complete(t.hist, k, Newest(t.pageDev[k]), t.dirtied[k] - 1)
    {
    }
    assert RedoInv(t);
  }

  lemma FinishRedoKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && FinishRedo(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    assert s.redone == |s.hist|;
    assert OpeningInv(t);
  }

  lemma FinishRecoveryKeeps(s: State, t: State)
    requires TypeInv(s) && Inv(s) && FinishRecovery(s, t)
    ensures TypeInv(t) && Inv(t)
  {
    CutIs(s.hist, s.durable);
    BlockSpan(s.durable);
    BlocksApart(BlockOf(s.durable), BlockOf(s.durable) + RingBlocks);
    forall k, image | image in t.pageDev[k] ensures Valid(t.hist, k, image) {
      ValidLater(s.hist, k, image, t.hist);
    }
    forall k ensures t.base[k] == ValueAt(t.hist, k, t.durable) {
      CutValue(s.hist, k, s.durable);
    }
    forall k ensures Valid(t.hist, k, t.page[k]) { ValidLater(s.hist, k, s.page[k], t.hist); }
    forall i: nat | BlockOf(t.oldest) <= i ensures Start(i) >= t.durable {
      if BlockOf(t.oldest) < i { BlocksApart(BlockOf(t.oldest), i); }
    }
    forall c ensures CallInv(t, c) && LatchInv(t, c) {}
    assert UpInv(t);
  }
}
