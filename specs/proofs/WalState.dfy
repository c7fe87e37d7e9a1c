// The state of the log protocol: specs/wal_recovery/WalState.tla. Same names; what differs:
//
//   - `hist` is a history variable: the contents of every log slot so far. No guard reads it.
//   - `asked` and `crashes` are left out, because only the bounds of the models read them. A write
//     may store any value.
//   - `Reads` is "free": a get returns what is in memory, durable or not.
//   - Keys, values and clients are opaque types, with any number of elements.

include "LogBlocks.dfy"

module WalState {
  import opened Device
  import opened Positions
  import opened LogBlocks

  // The seeded bug. `check` changes the next line, and the proof must fail.
  const Bug: BugName := NoBug

  datatype BugName =
    | NoBug
    | PageBeforeLog | SkipsQuiesce | CheckpointSkipsFlush | RecoverySkipsFlush | TruncatesEarly
    | RedoStartsLate | AcksBeforeFlush | AcksWhatCameLater | RetriesFailedFlush | KeepsEpoch
    | OverrunsLog | EvictsDirty | CleanWithoutWrite | DirtiedMoves | StopsRedoEarly

  type Client(==, !new)

  datatype WriteStep = Called | Logged | Waiting | Asleep

  // A write is `Called`, then `Logged` (its record is in the buffer, its page latched), then
  // `Waiting` for its LSN to be durable, or `Asleep` while a flush is in flight.
  datatype Call =
    | Idle
    | Get(key: Key, got: Result)
    | Write(key: Key, value: Content, at: WriteStep, lsn: nat)

  datatype Result = Pending | Got(content: Content)

  datatype Image = Image(value: Content, lsn: nat)
  datatype Superblock = Superblock(epoch: nat, redo: nat)
  datatype CheckpointStep = AtIdle | AtSweep | AtForced | AtWritten | AtRecorded
  datatype Checkpoint = Checkpoint(at: CheckpointStep, begin: nat)
  datatype Phase = Up | Down | Redo | Opening
  datatype Verdict = Fine | Lost | Mixed | Changed
  datatype Forgotten = Forgotten(log: iset<int>, pages: iset<Key>, super: bool)

  type Map = imap<Key, Content>

  datatype State = State(
    call: imap<Client, Call>,
    // The log in memory.
    buffer: seq<Record>, durable: nat, flushing: nat, epoch: nat, oldest: nat, poisoned: bool,
    // The pages in memory.
    page: imap<Key, Image>, dirtied: imap<Key, nat>,
    // Checkpoint and recovery.
    checkpoint: Checkpoint, phase: Phase, redone: nat,
    // The device.
    logDev: imap<int, seq<LogBlock>>, pageDev: imap<Key, seq<Image>>, superDev: seq<Superblock>,
    lost: Forgotten,
    // For checking.
    base: Map, verdict: Verdict, hist: seq<Record>)

  predicate TypeInv(s: State) {
    && (forall c :: c in s.call)
    && (forall k :: k in s.page)
    && (forall k :: k in s.dirtied)
    && (forall k :: k in s.pageDev)
    && (forall k :: k in s.base)
    && IsRing(s.logDev)
    && Written(s.pageDev) && Written(s.logDev) && |s.superDev| > 0
    && s.durable <= s.flushing
    && s.durable <= BufferStart(s) + |s.buffer|
  }

  // -----------------------------------------------------------------------------------------------
  // The log in memory.

  function BufferStart(s: State): nat { BlockStart(s.durable) }
  function End(s: State): nat { BufferStart(s) + |s.buffer| }

  // The records that are not durable yet. The first has LSN durable + 1.
  function Tail(s: State): seq<Record>
    requires TypeInv(s)
    ensures |Tail(s)| == End(s) - s.durable
  {
    BlockSpan(s.durable);
    s.buffer[s.durable - BufferStart(s)..]
  }

  predicate Writes(s: State, c: Client, step: WriteStep)
    requires TypeInv(s)
  {
    s.call[c].Write? && s.call[c].at == step
  }

  // A client holds the page's latch between its record and its change.
  predicate Latched(s: State, k: Key)
    requires TypeInv(s)
  {
    exists c :: Writes(s, c, Logged) && s.call[c].key == k
  }

  function NothingLost(): Forgotten { Forgotten(iset{}, iset{}, false) }
  function Done(): Checkpoint { Checkpoint(AtIdle, 0) }
  function EmptyPages(): imap<Key, Image> { imap k: Key :: Image(Absent, 0) }
  function Clean(): imap<Key, nat> { imap k: Key :: 0 }
  function EmptyMap(): Map { imap k: Key :: Absent }

  // A map after some records. TLA+ takes them off the front; the map is the same.
  function Apply(m: Map, records: seq<Record>): Map
    requires forall k :: k in m
    ensures forall k :: k in Apply(m, records)
  {
    if records == [] then m
    else
      var last := records[|records| - 1];
      var before := Apply(m, records[..|records| - 1]);
      if last.Gap? then before else before[last.key := last.value]
  }

  predicate Init(s: State) {
    s == State(
      imap c: Client :: Idle,
      [], 0, 0, 1, 0, false,
      EmptyPages(), Clean(),
      Done(), Up, 0,
      imap p | 0 <= p < RingBlocks :: Durably(LogBlock(0, 0, [])),
      AllDurably(EmptyPages()), Durably(Superblock(1, 0)), NothingLost(),
      EmptyMap(), Fine, [])
  }

  // -----------------------------------------------------------------------------------------------
  // What recovery makes of the blocks on the device.

  // The record with LSN n, redone on its page unless the page is newer.
  function RedoOne(pages: imap<Key, Image>, record: Record, n: nat): imap<Key, Image>
    requires forall k :: k in pages
    ensures forall k :: k in RedoOne(pages, record, n)
  {
    if record.Put? && pages[record.key].lsn < n
    then pages[record.key := Image(record.value, n)]
    else pages
  }

  // Records from position `from` on.
  function RedoAll(pages: imap<Key, Image>, records: seq<Record>, from: nat): imap<Key, Image>
    requires forall k :: k in pages
    ensures forall k :: k in RedoAll(pages, records, from)
  {
    if records == [] then pages
    else
      var n := |records| - 1;
      RedoOne(RedoAll(pages, records[..n], from), records[n], from + n + 1)
  }

  function LogFound(log: Ring, super: Superblock): seq<Record>
    requires IsRing(log)
  {
    ReadLog(log, super.epoch, super.redo)
  }

  function LogFoundEnd(log: Ring, super: Superblock): nat
    requires IsRing(log)
  {
    super.redo + |LogFound(log, super)|
  }

  // The map at the end of recovery.
  function Recovered(log: Ring, pages: imap<Key, Image>, super: Superblock): Map
    requires IsRing(log) && (forall k :: k in pages)
    ensures forall k :: k in Recovered(log, pages, super)
  {
    var found := RedoAll(pages, LogFound(log, super), super.redo);
    imap k: Key :: found[k].value
  }

  // The contents that the contract allows after a crash while the store is up.
  predicate IsPrefix(s: State, m: Map)
    requires TypeInv(s)
  {
    exists n :: 0 <= n <= |Tail(s)| && m == Apply(s.base, Tail(s)[..n])
  }

  // The verdict on a crash that leaves these blocks.
  function Judge(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock): Verdict
    requires TypeInv(s) && IsRing(log) && (forall k :: k in pages)
  {
    var recovered := Recovered(log, pages, super);
    if s.phase != Up then (if recovered == s.base then Fine else Changed)
    else if IsPrefix(s, recovered) then Fine
    else if LogFoundEnd(log, super) < s.durable then Lost
    else Mixed
  }

  // The history that a log with this end leaves: a prefix, or gaps up to where an epoch began.
  function CutAt(hist: seq<Record>, end: nat): seq<Record>
    ensures |CutAt(hist, end)| == end
    decreases end
  {
    if end <= |hist| then hist[..end] else CutAt(hist, end - 1) + [Gap]
  }
}
