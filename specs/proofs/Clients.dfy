// The steps of the clients preserve the invariant.

include "History.dfy"

module Clients {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened Invariant
  import opened History

  // A step that only lets a client begin or end a call that holds no latch, and that leaves no
  // record unattended.
  lemma CallChanges(s: State, t: State, c: Client, call: Call)
    requires TypeInv(s) && Inv(s) && s.phase == Up
    requires t == s.(call := s.call[c := call])
    requires !Writes(s, c, Logged)
    requires call.Write? ==> call.at == Called
    requires s.poisoned || (s.call[c].Write? && s.call[c].at != Called ==>
                              s.call[c].lsn <= s.durable)
    ensures TypeInv(t) && Inv(t)
  {
    forall d | d != c ensures t.call[d] == s.call[d] {}
    forall k ensures Latched(t, k) <==> Latched(s, k) {
      if Latched(s, k) {
        var d :| Writes(s, d, Logged) && s.call[d].key == k;
        assert Writes(t, d, Logged);
      }
    }
    forall n: nat | IsAwaited(s, n) && s.durable < n && !s.poisoned ensures IsAwaited(t, n) {
      var d :| IsWriter(s, d, n);
      assert IsWriter(t, d, n);
    }
    forall d ensures LatchInv(t, d) { assert LatchInv(s, d); }
    forall d ensures CallInv(t, d) { assert CallInv(s, d); }
  }

  lemma CallGetKeeps(s: State, t: State, c: Client, k: Key)
    requires TypeInv(s) && Inv(s) && CallGet(s, t, c, k)
    ensures TypeInv(t) && Inv(t)
  {
    CallChanges(s, t, c, t.call[c]);
  }

  lemma CallWriteKeeps(s: State, t: State, c: Client, k: Key, v: Content)
    requires TypeInv(s) && Inv(s) && CallWrite(s, t, c, k, v)
    ensures TypeInv(t) && Inv(t)
  {
    CallChanges(s, t, c, t.call[c]);
  }

  lemma ReadPageKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && ReadPage(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    CallChanges(s, t, c, t.call[c]);
  }

  lemma AnswerGetKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && AnswerGet(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    CallChanges(s, t, c, t.call[c]);
  }

  lemma AcknowledgeKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && Acknowledge(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    assert s.phase == Up;
    CallChanges(s, t, c, t.call[c]);
  }

  lemma ReportFailureKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && ReportFailure(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    CallChanges(s, t, c, t.call[c]);
  }

  // The record joins the history; images, blocks and superblocks speak of what was before.
  lemma AppendLogKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && AppendLog(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    var n := End(s) + 1;
    assert t.hist[..|s.hist|] == s.hist;
    AppendKeepsRoom(s, t, c);
    AppendKeepsHistory(s, t, c);
    AppendKeepsCalls(s, t, c);
    forall p, block | p in t.logDev && block in t.logDev[p] && block.epoch == t.epoch
      ensures Truthful(block, t.hist)
    {
      assert Truthful(block, s.hist);
      assert block.records == t.hist[Start(block.index)..Start(block.index) + |block.records|];
    }
    BlockSpan(s.durable);
    assert t.buffer == t.hist[BufferStart(t)..];
  }

  lemma AppendKeepsRoom(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && AppendLog(s, t, c)
    ensures RoomInv(t)
  {
    BlockSpan(End(s));
    if BlockOf(End(s)) < BlockOf(s.oldest) + RingBlocks {
      BlocksApart(BlockOf(End(s)), BlockOf(s.oldest) + RingBlocks);
    }
  }

  lemma AppendKeepsHistory(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && AppendLog(s, t, c)
    ensures TypeInv(t) && ImagesInv(t) && RedoStartInv(t) && BaseIs(t, t.durable) && MemoryInv(t)
    ensures DirtiedInv(t)
  {
    forall k, image | image in t.pageDev[k] ensures Valid(t.hist, k, image) {
      ValidLater(s.hist, k, image, t.hist);
    }
    forall k ensures t.base[k] == ValueAt(t.hist, k, t.durable) {
      ValueAtSame(s.hist, t.hist, k, s.durable);
    }
    forall super, k, image | super in t.superDev && image in t.pageDev[k]
      ensures Complete(t.hist, k, image, super.redo)
    {
      assert Complete(s.hist, k, image, super.redo);
    }
    forall k ensures Valid(t.hist, k, t.page[k]) { ValidLater(s.hist, k, s.page[k], t.hist); }
    forall k | !Latched(t, k) ensures Complete(t.hist, k, t.page[k], |t.hist|) {
      assert Writes(t, c, Logged);
      assert k != s.call[c].key;
      if Latched(s, k) {
        var d :| Writes(s, d, Logged) && s.call[d].key == k;
        assert Writes(t, d, Logged);
      }
      assert Complete(s.hist, k, s.page[k], |s.hist|);
    }
    forall k | t.dirtied[k] != 0
      ensures Complete(t.hist, k, Newest(t.pageDev[k]), t.dirtied[k] - 1)
    {
      assert Complete(s.hist, k, Newest(s.pageDev[k]), s.dirtied[k] - 1);
    }
  }

  lemma AppendKeepsCalls(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && AppendLog(s, t, c)
    ensures TypeInv(t) && CallsInv(t) && AckInv(t)
  {
    forall d ensures CallInv(t, d) { assert CallInv(s, d); }
    forall d ensures LatchInv(t, d) {
      assert LatchInv(s, d);
      if d != c && Writes(t, d, Logged) {
        assert Writes(s, d, Logged);
        assert s.call[d].key != s.call[c].key;
      }
      if d == c {
        assert Complete(s.hist, s.call[c].key, s.page[s.call[c].key], |s.hist|);
      }
    }
    forall d | d != c ensures t.call[d] == s.call[d] {}
    forall d, e | Writes(t, d, Logged) && Writes(t, e, Logged) && t.call[d].key == t.call[e].key
      ensures d == e
    {
      if d == c && e != c { assert Writes(s, e, Logged); assert Latched(s, s.call[c].key); }
      if e == c && d != c { assert Writes(s, d, Logged); assert Latched(s, s.call[c].key); }
      if d != c && e != c { assert Writes(s, d, Logged) && Writes(s, e, Logged); }
    }
    forall d, e | t.call[d].Write? && t.call[e].Write? && t.call[d].at != Called
                  && t.call[e].at != Called && t.call[d].lsn == t.call[e].lsn
      ensures d == e
    {
      assert CallInv(s, d) && CallInv(s, e);
    }
    forall n: nat | t.durable < n <= End(t) ensures IsAwaited(t, n) {
      if n <= End(s) {
        assert IsAwaited(s, n);
        var d :| IsWriter(s, d, n);
        assert IsWriter(t, d, n);
      } else {
        assert IsWriter(t, c, n);
      }
    }
  }

  lemma ChangePageKeeps(s: State, t: State, c: Client)
    requires TypeInv(s) && Inv(s) && ChangePage(s, t, c)
    ensures TypeInv(t) && Inv(t)
  {
    var k := s.call[c].key;
    var n := s.call[c].lsn;
    assert s.phase == Up;
    assert LatchInv(s, c);
    assert ValueAt(s.hist, k, n) == s.call[c].value;
    forall d | d != c ensures t.call[d] == s.call[d] {}
    forall d ensures CallInv(t, d) { assert CallInv(s, d); }
    forall d ensures LatchInv(t, d) {
      assert LatchInv(s, d);
      if Writes(t, d, Logged) {
        assert d != c && Writes(s, d, Logged);
        assert s.call[d].key != k;
      }
    }
    forall d, e | Writes(t, d, Logged) && Writes(t, e, Logged) && t.call[d].key == t.call[e].key
      ensures d == e
    {
      assert Writes(s, d, Logged) && Writes(s, e, Logged);
    }
    forall j ensures Valid(t.hist, j, t.page[j])
                     && (!Latched(t, j) ==> Complete(t.hist, j, t.page[j], |t.hist|))
    {
      if j != k && Latched(s, j) {
        var d :| Writes(s, d, Logged) && s.call[d].key == j;
        assert Writes(t, d, Logged);
      }
    }
    forall m: nat | IsAwaited(s, m) ensures IsAwaited(t, m) {
      var d :| IsWriter(s, d, m);
      assert IsWriter(t, d, m);
    }
    forall j
      ensures t.dirtied[j] == 0 ==> t.page[j] == Newest(t.pageDev[j])
      ensures t.dirtied[j] != 0 ==> Complete(t.hist, j, Newest(t.pageDev[j]), t.dirtied[j] - 1)
    {
    }
  }
}
