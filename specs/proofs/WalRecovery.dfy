// Logging, checkpoints and recovery: specs/wal_recovery/WalRecovery.tla. Each predicate is a step
// from s to t. Whatever `t == s.(...)` does not name is unchanged.

include "GroupCommit.dfy"

module WalRecovery {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened GroupCommit

  // -----------------------------------------------------------------------------------------------
  // Page write-back.

  predicate Serving(s: State) { s.phase != Down && !s.poisoned }

  // A dirty page is written once the log is durable up to its last change: the WAL rule.
  predicate WriteBack(s: State, t: State, k: Key)
    requires TypeInv(s)
  {
    && Serving(s)
    && s.dirtied[k] != 0
    && !Latched(s, k)
    && (s.page[k].lsn <= s.durable || Bug == PageBeforeLog)
    && t == s.(dirtied := s.dirtied[k := 0],
               pageDev := if Bug == CleanWithoutWrite then s.pageDev
                          else s.pageDev[k := s.pageDev[k] + [s.page[k]]],
               lost := s.lost.(pages := s.lost.pages - iset{k}))
  }

  // A clean page may leave memory. It is read again when it is needed.
  predicate Reload(s: State, t: State, k: Key)
    requires TypeInv(s)
  {
    && s.phase == Up
    && !Latched(s, k)
    && (s.dirtied[k] == 0 || Bug == EvictsDirty)
    && t == s.(page := s.page[k := Newest(s.pageDev[k])], dirtied := s.dirtied[k := 0])
  }

  // -----------------------------------------------------------------------------------------------
  // Fuzzy checkpoint: clients continue meanwhile.

  predicate At(s: State, step: CheckpointStep) { Serving(s) && s.checkpoint.at == step }

  predicate BeginCheckpoint(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Up
    && At(s, AtIdle)
    && s.oldest < End(s)
    && t == s.(checkpoint := Checkpoint(AtSweep, End(s)))
  }

  // Every operation that appended before `begin` has changed its page, and every page with such a
  // change is written.
  predicate Swept(s: State)
    requires TypeInv(s)
  {
    && (forall c :: Writes(s, c, Logged) ==>
          s.call[c].lsn > s.checkpoint.begin || Bug == SkipsQuiesce)
    && (forall k :: s.dirtied[k] != 0 ==> s.dirtied[k] > s.checkpoint.begin)
  }

  // The written images are flushed.
  predicate FlushPages(s: State, t: State)
    requires TypeInv(s)
  {
    && At(s, AtSweep)
    && Swept(s)
    && var flushed := if || (Bug == CheckpointSkipsFlush && s.phase == Up)
                         || (Bug == RecoverySkipsFlush && s.phase == Opening)
                      then s else DeviceFlush(s);
       t == flushed.(checkpoint := s.checkpoint.(at := AtForced),
                     oldest := if Bug == TruncatesEarly then s.checkpoint.begin else s.oldest)
  }

  predicate WriteSuperblock(s: State, t: State)
    requires TypeInv(s)
  {
    && At(s, AtForced)
    && t == s.(superDev := s.superDev + [Superblock(s.epoch,
                             if Bug == RedoStartsLate then s.durable else s.checkpoint.begin)],
               lost := s.lost.(super := false),
               checkpoint := s.checkpoint.(at := AtWritten))
  }

  predicate FlushSuperblock(s: State, t: State)
    requires TypeInv(s)
  {
    && At(s, AtWritten)
    && t == DeviceFlush(s).(checkpoint := s.checkpoint.(at := AtRecorded))
  }

  // Not earlier, because until now a crash would have needed it.
  predicate TruncateLog(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Up
    && At(s, AtRecorded)
    && t == s.(oldest := s.checkpoint.begin, checkpoint := Done())
  }

  // -----------------------------------------------------------------------------------------------
  // Crash and recovery.

  // What is left in memory (nothing) and on the device (these blocks).
  function Left(s: State, log: Ring, pages: imap<Key, Image>, super: Superblock): State
    requires TypeInv(s) && IsRing(log) && (forall k :: k in pages)
  {
    State(imap c: Client :: Idle,
          [], 0, 0, 0, 0, false,
          EmptyPages(), Clean(),
          Done(), Down, 0,
          AllDurably(log), AllDurably(pages), Durably(super), NothingLost(),
          Recovered(log, pages, super), Judge(s, log, pages, super),
          CutAt(s.hist, LogFoundEnd(log, super)))
  }

  // The power fails, at any time, also during recovery. Each block is left in any of its versions,
  // independently of the others.
  predicate Crash(s: State, t: State, log: Ring, pages: imap<Key, Image>, super: Superblock)
    requires TypeInv(s)
  {
    && s.phase != Down
    && AfterCrash(s.logDev, log) && AfterCrash(s.pageDev, pages) && super in s.superDev
    && t == Left(s, log, pages, super)
  }

  // The process dies and is restarted, but the device and its cache live on: it reads the newest
  // versions. Before anything builds on them, they are flushed, and what a failed flush has
  // forgotten is written again.
  predicate Restart(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase != Down
    && t == Left(s, NewestOf(s.logDev), NewestOf(s.pageDev), Newest(s.superDev))
  }

  function Super(s: State): Superblock
    requires TypeInv(s)
  {
    Newest(s.superDev)
  }

  function ToRedo(s: State): seq<Record>
    requires TypeInv(s)
  {
    LogFound(NewestOf(s.logDev), Super(s))
  }

  function ToRedoEnd(s: State): nat
    requires TypeInv(s)
  {
    LogFoundEnd(NewestOf(s.logDev), Super(s))
  }

  // The superblock says where redo begins and under which epoch. The end of the log is found by
  // reading. The log will continue at the next block, under a new epoch.
  predicate LoadSuperblock(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Down
    && var next := NextBlockStart(ToRedoEnd(s));
       t == s.(phase := Redo,
               redone := Super(s).redo,
               epoch := if Bug == KeepsEpoch then Super(s).epoch else Super(s).epoch + 1,
               durable := next, flushing := next,
               oldest := Super(s).redo,
               page := NewestOf(s.pageDev))
  }

  // One record, unless the page has it.
  predicate RedoRecord(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Redo
    && Super(s).redo <= s.redone < ToRedoEnd(s)
    && var record := ToRedo(s)[s.redone - Super(s).redo];
       var n := s.redone + 1;
       var redo := s.(page := RedoOne(s.page, record, n), redone := n);
       t == if record.Put? && redo.page[record.key] != s.page[record.key]
               && s.dirtied[record.key] == 0
            then redo.(dirtied := s.dirtied[record.key := n]) else redo
  }

  // Recovery ends with a checkpoint, which also makes the new epoch durable before anything is
  // written under it.
  predicate FinishRedo(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Redo
    && (s.redone == ToRedoEnd(s) || Bug == StopsRedoEarly)
    && t == s.(phase := Opening, redone := 0, checkpoint := Checkpoint(AtSweep, s.durable))
  }

  predicate FinishRecovery(s: State, t: State)
    requires TypeInv(s)
  {
    && s.phase == Opening
    && At(s, AtRecorded)
    && t == s.(phase := Up, oldest := s.checkpoint.begin, checkpoint := Done(),
               hist := CutAt(s.hist, s.durable))
  }

  // -----------------------------------------------------------------------------------------------

  predicate ClientStep(s: State, t: State, c: Client)
    requires TypeInv(s)
  {
    || (exists k :: CallGet(s, t, c, k)) || ReadPage(s, t, c) || AnswerGet(s, t, c)
    || (exists k, v :: CallWrite(s, t, c, k, v)) || AppendLog(s, t, c) || ChangePage(s, t, c)
    || FlushLog(s, t, c) || Acknowledge(s, t, c) || ReportFailure(s, t, c)
  }

  predicate PageStep(s: State, t: State, k: Key)
    requires TypeInv(s)
  {
    WriteBack(s, t, k) || Reload(s, t, k)
  }

  predicate CheckpointStepTaken(s: State, t: State)
    requires TypeInv(s)
  {
    || BeginCheckpoint(s, t) || FlushPages(s, t) || WriteSuperblock(s, t)
    || FlushSuperblock(s, t) || TruncateLog(s, t)
  }

  predicate RecoveryStep(s: State, t: State)
    requires TypeInv(s)
  {
    LoadSuperblock(s, t) || RedoRecord(s, t) || FinishRedo(s, t) || FinishRecovery(s, t)
  }

  predicate Next(s: State, t: State)
    requires TypeInv(s)
  {
    || (exists c :: ClientStep(s, t, c))
    || CompleteFlush(s, t) || FailFlush(s, t)
    || (exists k :: PageStep(s, t, k))
    || CheckpointStepTaken(s, t)
    || (exists log, pages, super :: Crash(s, t, log, pages, super))
    || Restart(s, t)
    || RecoveryStep(s, t)
  }
}
