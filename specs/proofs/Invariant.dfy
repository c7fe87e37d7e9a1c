// The inductive invariant: what holds initially, and what every step of the protocol preserves,
// whatever the number of keys, clients, records, blocks, crashes and checkpoints.

include "WalRecovery.dfy"

module Invariant {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit
  import opened WalRecovery

  // -----------------------------------------------------------------------------------------------
  // The history, key by key.

  // The value of a key after the first n slots.
  function ValueAt(hist: seq<Record>, k: Key, n: nat): Content
    requires n <= |hist|
  {
    if n == 0 then Absent
    else if hist[n - 1].Put? && hist[n - 1].key == k then hist[n - 1].value
    else ValueAt(hist, k, n - 1)
  }

  // No record in the slots from `from` to before `to` changes the key.
  predicate NoChange(hist: seq<Record>, k: Key, from: nat, to: nat) {
    forall i :: from <= i < to && i < |hist| ==> !(hist[i].Put? && hist[i].key == k)
  }

  // An image says how much of the history it has, and has it.
  predicate Valid(hist: seq<Record>, k: Key, image: Image) {
    image.lsn <= |hist| && image.value == ValueAt(hist, k, image.lsn)
  }

  // An image lacks no change of the first n slots.
  predicate Complete(hist: seq<Record>, k: Key, image: Image, n: nat) {
    NoChange(hist, k, image.lsn, n)
  }

  // -----------------------------------------------------------------------------------------------
  // Clauses of every phase.

  // No failed flush is forgotten: nothing is lost unless the log knows.
  predicate LostInv(s: State) { s.poisoned || s.lost == NothingLost() }

  // What is on the pages of the device is old, not wrong.
  predicate ImagesInv(s: State)
    requires TypeInv(s)
  {
    forall k, image :: image in s.pageDev[k] ==> Valid(s.hist, k, image)
  }

  // Wherever redo may begin, every page that a crash may leave has all changes from before.
  predicate RedoStartInv(s: State)
    requires TypeInv(s)
  {
    forall super, k, image :: super in s.superDev && image in s.pageDev[k] ==>
      Complete(s.hist, k, image, super.redo)
  }

  // `base` is the map after the first n slots.
  predicate BaseIs(s: State, n: nat)
    requires TypeInv(s)
  {
    n <= |s.hist| && forall k :: s.base[k] == ValueAt(s.hist, k, n)
  }

  // A page that counts as clean is the same on the device and in memory. Otherwise the device has
  // all changes before the first that counts as missing.
  predicate DirtiedInv(s: State)
    requires TypeInv(s)
  {
    forall k ::
      && s.dirtied[k] <= |s.hist|
      && (s.dirtied[k] == 0 ==> s.page[k] == Newest(s.pageDev[k]))
      && (s.dirtied[k] != 0 ==>
            Complete(s.hist, k, Newest(s.pageDev[k]), s.dirtied[k] - 1))
  }

  // -----------------------------------------------------------------------------------------------
  // Clauses of phase Up.

  // The buffer is the end of the history. From `durable` on there are no gaps.
  predicate BufferInv(s: State)
    requires TypeInv(s)
  {
    && |s.hist| == End(s)
    && s.buffer == s.hist[BufferStart(s)..]
    && s.flushing <= End(s)
    && (forall i :: s.durable <= i < |s.hist| ==> s.hist[i].Put?)
  }

  // The ring has room for what is in the log.
  predicate RoomInv(s: State) {
    End(s) <= Start(BlockOf(s.oldest) + RingBlocks)
  }

  // Blocks of the epoch tell the truth; no block is of a later epoch.
  predicate TruthInv(s: State)
    requires TypeInv(s)
  {
    forall p, block :: p in s.logDev && block in s.logDev[p] ==>
      block.epoch <= s.epoch && (block.epoch == s.epoch ==> Truthful(block, s.hist))
  }

  // Every crash leaves all records that the log considers durable.
  predicate DurableInv(s: State)
    requires TypeInv(s)
  {
    forall i: nat {:trigger Place(i)} :: BlockOf(s.oldest) <= i && Start(i) < s.durable ==>
      Place(i) in s.logDev &&
      forall block :: block in s.logDev[Place(i)] ==> Reaches(block, s.epoch, i, s.durable)
  }

  // What the flush in flight makes durable has been written.
  predicate FlightInv(s: State)
    requires TypeInv(s)
  {
    s.durable < s.flushing ==>
      forall i: nat {:trigger Place(i)} :: BlockOf(s.durable) <= i && Start(i) < s.flushing ==>
        Place(i) in s.logDev &&
        Reaches(Newest(s.logDev[Place(i)]), s.epoch, i, s.flushing)
  }

  // No page image overtakes its log record.
  predicate WalRuleInv(s: State)
    requires TypeInv(s)
  {
    forall k, image :: image in s.pageDev[k] ==> image.lsn <= s.durable
  }

  // Redo may begin only where the log still exists and is durable.
  predicate SuperInv(s: State)
    requires TypeInv(s)
  {
    && s.oldest <= s.durable
    && forall super :: super in s.superDev ==>
         super.epoch == s.epoch && s.oldest <= super.redo <= s.durable
  }

  // A client waits for its own record.
  predicate CallInv(s: State, c: Client)
    requires TypeInv(s)
  {
    s.call[c].Write? && s.call[c].at != Called ==>
      && 1 <= s.call[c].lsn <= |s.hist|
      && s.hist[s.call[c].lsn - 1] == Put(s.call[c].key, s.call[c].value)
  }

  // The record of a client that is about to change its page. No other client changes that page.
  predicate LatchInv(s: State, c: Client)
    requires TypeInv(s)
  {
    Writes(s, c, Logged) ==>
      var k, n := s.call[c].key, s.call[c].lsn;
      && 1 <= n <= |s.hist|
      && s.hist[n - 1] == Put(k, s.call[c].value)
      && s.page[k].lsn < n
      && Complete(s.hist, k, s.page[k], n - 1)
      && NoChange(s.hist, k, n, |s.hist|)
  }

  predicate CallsInv(s: State)
    requires TypeInv(s)
  {
    && (forall c :: CallInv(s, c))
    && (forall c :: LatchInv(s, c))
    && (forall c, d :: Writes(s, c, Logged) && Writes(s, d, Logged)
                       && s.call[c].key == s.call[d].key ==> c == d)
    // Two writes never wait for the same record.
    && (forall c, d :: s.call[c].Write? && s.call[d].Write? && s.call[c].at != Called
                       && s.call[d].at != Called && s.call[c].lsn == s.call[d].lsn ==> c == d)
  }

  // The client of a record that is not durable still waits, or was told that its write failed.
  predicate AckInv(s: State)
    requires TypeInv(s)
  {
    s.poisoned || forall n :: s.durable < n <= End(s) ==> IsAwaited(s, n)
  }

  predicate IsAwaited(s: State, n: nat)
    requires TypeInv(s)
  {
    exists c :: IsWriter(s, c, n)
  }

  predicate IsWriter(s: State, c: Client, n: nat)
    requires TypeInv(s)
  {
    s.call[c].Write? && s.call[c].at != Called && s.call[c].lsn == n
  }

  // Memory holds all writes and nothing else, except for those whose client has the latch.
  predicate MemoryInv(s: State)
    requires TypeInv(s)
  {
    forall k ::
      && Valid(s.hist, k, s.page[k])
      && (!Latched(s, k) ==> Complete(s.hist, k, s.page[k], |s.hist|))
  }

  // From the flush of the pages on, no page lacks a change from before the checkpoint began.
  predicate CheckpointInv(s: State)
    requires TypeInv(s)
  {
    var c := s.checkpoint;
    && c.begin <= |s.hist|
    && (c.at in {AtForced, AtWritten, AtRecorded} ==>
          && s.oldest <= c.begin <= s.durable
          && forall k, image :: image in s.pageDev[k] ==> Complete(s.hist, k, image, c.begin))
    && (c.at == AtSweep ==> s.oldest <= c.begin)
    && (c.at == AtWritten ==> Newest(s.superDev) == Superblock(s.epoch, c.begin))
    && (c.at == AtRecorded ==> s.superDev == [Superblock(s.epoch, c.begin)])
  }

  predicate UpInv(s: State)
    requires TypeInv(s)
  {
    && BufferInv(s) && RoomInv(s) && TruthInv(s) && DurableInv(s) && FlightInv(s)
    && WalRuleInv(s) && SuperInv(s) && CallsInv(s) && AckInv(s) && MemoryInv(s)
    && DirtiedInv(s) && CheckpointInv(s)
    && BaseIs(s, s.durable)
  }

  // -----------------------------------------------------------------------------------------------
  // Clauses of the other phases. The history is what recovery finds, whichever superblock it reads.

  predicate AllIdle(s: State)
    requires TypeInv(s)
  {
    forall c :: s.call[c] == Idle
  }

  // One version of each log block is left, none of an epoch that is still to come.
  predicate OldBlocks(s: State, next: nat)
    requires TypeInv(s)
  {
    && (forall p :: p in s.logDev ==> |s.logDev[p]| == 1)
    && (forall p :: p in s.logDev ==> Newest(s.logDev[p]).epoch < next)
  }

  // The superblock of the epoch that ended: from it, reading finds the rest of the history.
  predicate FindsAll(s: State, super: Superblock)
    requires TypeInv(s)
  {
    && super.redo <= |s.hist|
    && LogFound(NewestOf(s.logDev), super) == s.hist[super.redo..]
  }

  predicate DownInv(s: State)
    requires TypeInv(s)
  {
    && AllIdle(s)
    && s.buffer == [] && s.durable == 0 && s.flushing == 0 && !s.poisoned
    && s.checkpoint == Done()
    && s.superDev == [Super(s)]
    && OldBlocks(s, Super(s).epoch + 1)
    && FindsAll(s, Super(s))
    && BaseIs(s, |s.hist|)
    && (forall k :: |s.pageDev[k]| == 1)
    && (forall k :: s.dirtied[k] == 0)
  }

  // Redo and Opening: the log continues at a fresh block under a fresh epoch.
  predicate RecoveringInv(s: State)
    requires TypeInv(s)
  {
    && AllIdle(s)
    && s.buffer == [] && s.flushing == s.durable && s.durable == BufferStart(s)
    && |s.hist| <= s.durable
    && s.epoch > 0 && OldBlocks(s, s.epoch)
    && BaseIs(s, |s.hist|)
    && DirtiedInv(s)
    && (forall k :: Valid(s.hist, k, s.page[k]))
  }

  // Each page has what has been redone so far.
  predicate RedoInv(s: State)
    requires TypeInv(s)
  {
    && RecoveringInv(s)
    && s.superDev == [Super(s)]
    && Super(s).epoch == s.epoch - 1
    && FindsAll(s, Super(s))
    && Super(s).redo <= s.redone <= |s.hist|
    && (forall k :: Complete(s.hist, k, s.page[k], s.redone))
    && s.checkpoint == Done()
    && !s.poisoned
  }

  predicate OldOrNew(s: State, super: Superblock)
    requires TypeInv(s)
  {
    || (super.epoch == s.epoch - 1 && FindsAll(s, super))
    || super == Superblock(s.epoch, s.durable)
  }

  // The checkpoint that ends recovery. Until its superblock is durable, a crash finds the log of
  // the epoch before; then it finds all on the pages.
  predicate OpeningInv(s: State)
    requires TypeInv(s)
  {
    && RecoveringInv(s)
    && (forall super :: super in s.superDev ==> OldOrNew(s, super))
    && (forall k :: Complete(s.hist, k, s.page[k], |s.hist|))
    && s.checkpoint.at != AtIdle && s.checkpoint.begin == s.durable
    && (s.checkpoint.at in {AtForced, AtWritten, AtRecorded} ==>
          forall k, image :: image in s.pageDev[k] ==> Complete(s.hist, k, image, |s.hist|))
    && (s.checkpoint.at == AtSweep || s.checkpoint.at == AtForced ==>
          forall super :: super in s.superDev ==> super.epoch < s.epoch)
    && (s.checkpoint.at == AtWritten ==>
          Newest(s.superDev) == Superblock(s.epoch, s.durable))
    && (s.checkpoint.at == AtRecorded ==> s.superDev == [Superblock(s.epoch, s.durable)])
  }

  predicate Inv(s: State) {
    && TypeInv(s)
    && s.verdict == Fine
    && LostInv(s) && ImagesInv(s) && RedoStartInv(s)
    && (s.phase == Up ==> UpInv(s))
    && (s.phase == Down ==> DownInv(s))
    && (s.phase == Redo ==> RedoInv(s))
    && (s.phase == Opening ==> OpeningInv(s))
  }

  lemma InitHolds(s: State)
    requires Init(s)
    ensures TypeInv(s) && Inv(s)
  {
    AllBlockSpans(); AllBlocksApart();
    forall i: nat ensures 0 <= Place(i) < RingBlocks { PlaceInRing(i); }
    assert Start(BlockOf(0)) == 0;
    if BlockOf(0) > 0 { BlocksApart(0, BlockOf(0)); }
    BlocksApart(BlockOf(0), BlockOf(0) + RingBlocks);
  }
}
