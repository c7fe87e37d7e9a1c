// Clients, the log buffer and its flush: specs/wal_recovery/GroupCommit.tla. Each predicate is a
// step from s to t. Whatever `t == s.(...)` does not name is unchanged.

include "WalState.dfy"

module GroupCommit {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState

  predicate CallGet(s: State, t: State, c: Client, k: Key)
    requires TypeInv(s)
  {
    && s.phase == Up
    && s.call[c] == Idle
    && t == s.(call := s.call[c := Get(k, Pending)])
  }

  predicate CallWrite(s: State, t: State, c: Client, k: Key, v: Content)
    requires TypeInv(s)
  {
    && s.phase == Up
    && s.call[c] == Idle
    && t == s.(call := s.call[c := Write(k, v, Called, 0)])
  }

  // A get reads the page under its latch.
  predicate ReadPage(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && s.phase == Up
    && s.call[c].Get?
    && s.call[c].got == Pending
    && !Latched(s, s.call[c].key)
    && t == s.(call := s.call[c := s.call[c].(got := Got(s.page[s.call[c].key].value))])
  }

  predicate AnswerGet(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && s.phase == Up
    && s.call[c].Get?
    && s.call[c].got != Pending
    && t == s.(call := s.call[c := Idle])
  }

  // Under the page's latch, into the buffer, if the ring has room. The write has taken effect.
  predicate AppendLog(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && s.phase == Up
    && Writes(s, c, Called)
    && !s.poisoned
    && !Latched(s, s.call[c].key)
    && (BlockOf(End(s)) < BlockOf(s.oldest) + RingBlocks || Bug == OverrunsLog)
    && var record := Put(s.call[c].key, s.call[c].value);
       t == s.(buffer := s.buffer + [record],
               call := s.call[c := s.call[c].(at := Logged, lsn := End(s) + 1)],
               hist := s.hist + [record])
  }

  // The page in memory changes, and its latch is released.
  predicate ChangePage(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && Writes(s, c, Logged)
    && var k := s.call[c].key;
       var n := s.call[c].lsn;
       t == s.(page := s.page[k := Image(s.call[c].value, n)],
               dirtied := if s.dirtied[k] == 0 || Bug == DirtiedMoves then s.dirtied[k := n]
                          else s.dirtied,
               call := s.call[c := s.call[c].(
                 at := if s.durable < n && s.durable < s.flushing then Asleep else Waiting)])
  }

  predicate Acknowledge(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && Writes(s, c, Waiting)
    && (s.call[c].lsn <= s.durable || Bug == AcksBeforeFlush)
    && t == s.(call := s.call[c := Idle])
  }

  // After a failed flush it is unknown whether the write survives.
  predicate ReportFailure(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && s.poisoned
    && s.phase == Up
    && (Writes(s, c, Called) || (Writes(s, c, Waiting) && s.durable < s.call[c].lsn))
    && t == s.(call := s.call[c := Idle])
  }

  // -----------------------------------------------------------------------------------------------
  // The device.

  // A flush: every write so far is durable, whichever client made it.
  function DeviceFlush(s: State): State
    requires TypeInv(s)
  {
    s.(logDev := Flushed(s.logDev, s.lost.log),
       pageDev := Flushed(s.pageDev, s.lost.pages),
       superDev := if s.lost.super then s.superDev else Durably(Newest(s.superDev)))
  }

  // Every client that sleeps until the end of the flush looks again.
  function WakeAll(s: State): imap<Client, Call>
    requires TypeInv(s)
  {
    imap c: Client :: if Writes(s, c, Asleep) then Moved(s.call[c], Waiting) else s.call[c]
  }

  function Moved(call: Call, step: WriteStep): Call
    requires call.Write?
  {
    call.(at := step)
  }

  // The blocks up to position `end` are no longer in memory.
  function Forget(s: State, end: nat): seq<Record>
    requires TypeInv(s) && s.durable <= end <= End(s)
  {
    BlocksInOrder(s.durable, end); BlockSpan(end);
    s.buffer[BlockStart(end) - BufferStart(s)..]
  }

  // -----------------------------------------------------------------------------------------------
  // Group flush.

  // A flush writes block `index`.
  predicate Flushes(s: State, index: nat) {
    BlockOf(BufferStart(s)) <= index && Start(index) < End(s)
  }

  // With these records of the buffer.
  function FlushedBlock(s: State, index: nat): LogBlock
    requires Flushes(s, index)
  {
    BlockOfStart(BlockOf(s.durable)); AllBlocksApart();
    var from := Start(index) - BufferStart(s);
    LogBlock(s.epoch, index,
             s.buffer[from..if from + PerBlock < |s.buffer| then from + PerBlock else |s.buffer|])
  }

  // The ring after the blocks of the buffer were written, each at its place.
  predicate WritesLog(s: State, ring: imap<int, seq<LogBlock>>)
    requires TypeInv(s)
  {
    && IsRing(ring)
    && forall p :: p in ring ==>
         || (ring[p] == s.logDev[p] && !FlushesPlace(s, p))
         || exists i: nat :: Flushes(s, i) && Place(i) == p
                             && ring[p] == s.logDev[p] + [FlushedBlock(s, i)]
  }

  // Writing a block again saves it.
  function StillLost(s: State): iset<int> {
    iset p: int | p in s.lost.log && !FlushesPlace(s, p)
  }

  predicate FlushesPlace(s: State, p: int) { exists i: nat :: Flushes(s, i) && Place(i) == p }

  // A client that waits and finds no flush in flight leads one. Every other waiting client sleeps
  // until it is over.
  predicate FlushLog(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    && Writes(s, c, Waiting)
    && s.durable < s.call[c].lsn
    && s.durable == s.flushing
    && !s.poisoned
    && WritesLog(s, t.logDev)
    && t == s.(flushing := End(s),
               logDev := t.logDev,
               lost := s.lost.(log := StillLost(s)),
               call := imap d: Client ::
                         if Writes(s, d, Waiting) && s.durable < s.call[d].lsn
                         then Moved(s.call[d], Asleep) else s.call[d])
  }

  // The leader's flush has returned: its records are durable, and no others.
  predicate CompleteFlush(s: State, t: State)
    requires TypeInv(s)
  {
    var end := if Bug == AcksWhatCameLater then End(s) else s.flushing;
    && s.durable < s.flushing <= End(s)
    && !s.poisoned
    && t == DeviceFlush(s).(durable := end, flushing := end,
                            buffer := Forget(s, end),
                            base := Apply(s.base, Tail(s)[..end - s.durable]),
                            call := WakeAll(s))
  }

  // Any flush may fail: that of the log or of the checkpoint. Then all unflushed writes are in
  // doubt until they are written again; retrying the flush proves nothing.
  predicate FailFlush(s: State, t: State)
    requires TypeInv(s)
  {
    && (s.durable < s.flushing || s.checkpoint.at == AtSweep || s.checkpoint.at == AtWritten)
    && !s.poisoned
    && var forgets := s.(lost := Forgotten(Unflushed(s.logDev), Unflushed(s.pageDev),
                                           |s.superDev| > 1));
       t == if Bug == RetriesFailedFlush then forgets
            else forgets.(poisoned := true, flushing := s.durable, call := WakeAll(s))
  }
}
