---------------------------- MODULE WalRecovery -----------------------------
(***************************************************************************)
(* Logging, checkpoints and recovery: Bf-Tree §5.7.                        *)
(*                                                                         *)
(* "Before any write operation is committed, it must append a log entry to *)
(* the WAL and wait until the log is flushed." The paper adds only a fuzzy *)
(* checkpoint, and recovery that loads the checkpoint and replays the log. *)
(* It leaves to "standard mechanisms" what this module specifies: the      *)
(* order of page and log writes, where redo begins, how to tell whether a  *)
(* page has a change, how to distinguish the end of the log from old       *)
(* blocks, and what a failed flush means.  Each of these is needed:        *)
(* FINDINGS.md has the counterexamples.                                    *)
(*                                                                         *)
(* Left out: several keys on a page, and so splits, merges, the index and  *)
(* its snapshot (see MiniPage, and layers/BfTree for both); pages larger   *)
(* than a block (see PageShadowing, and layers/BMinusTree for both); the   *)
(* two places of the superblock (one that is replaced atomically stands    *)
(* for them); scans (page by page they are gets).                          *)
(***************************************************************************)
EXTENDS GroupCommit

(* Bound, for the wrapper: whether the power may fail after n crashes.     *)
MayCrash(n) == TRUE

-----------------------------------------------------------------------------
(* Page write-back.                                                        *)

Serving == phase \in {"up", "redo", "opening"} /\ ~poisoned

(* A dirty page is written once the log is durable up to its last change:  *)
(* the WAL rule, which §5.7 does not mention.  The page is then clean,     *)
(* though not yet durable.  Pager::write_picked.                           *)
WriteBack(k) ==
    /\ Serving
    /\ dirtied[k] # 0
    /\ ~Latched(k)
    /\ page[k].lsn <= durable \/ Bug = "page-before-log"
    /\ dirtied' = [dirtied EXCEPT ![k] = 0]
    /\ IF Bug = "clean-without-write" THEN UNCHANGED pageDev
       ELSE \E cell \in Written(pageDev[k], page[k]) : pageDev' = [pageDev EXCEPT ![k] = cell]
    /\ lost' = [lost EXCEPT !.pages = @ \ {k}]
    /\ UNCHANGED <<clientVars, logVars, page, recoveryVars, logDev, superDev, observerVars>>

(* A clean page may leave memory.  It is read again when it is needed.     *)
(* Cache::evict, Pager::read.                                              *)
Reload(k) ==
    /\ phase = "up"
    /\ ~Latched(k)
    /\ dirtied[k] = 0 \/ Bug = "evicts-dirty"
    /\ page' = [page EXCEPT ![k] = ImageRead(pageDev[k])]
    /\ dirtied' = [dirtied EXCEPT ![k] = 0]
    /\ UNCHANGED <<clientVars, logVars, recoveryVars, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* Fuzzy checkpoint: clients continue meanwhile. engine/src/checkpoint.rs. *)

At(step) == Serving /\ checkpoint.at = step

(* Redo will begin at the current end of the log.                          *)
(* Checkpointer::step_towards.                                             *)
BeginCheckpoint ==
    /\ phase = "up"
    /\ At("idle")
    /\ oldest < End
    /\ checkpoint' = [at |-> "sweep", begin |-> End]
    /\ UNCHANGED <<clientVars, logVars, pageVars, phase, redone, deviceVars, observerVars>>

(* Every operation that appended before `begin` has changed its page       *)
(* (Pager::quiesce), and every page with such a change is written          *)
(* (Pager::checkpoint_sweep).                                              *)
Swept ==
    /\ \A c \in Clients :
          /\ Writes(c, "logged") => call[c].lsn > checkpoint.begin \/ Bug = "skips-quiesce"
          /\ Writes(c, "called") => Bug # "quiesces-who-waits-for-room"
    /\ \A k \in Keys : dirtied[k] # 0 => dirtied[k] > checkpoint.begin

(* The written images are flushed.  Checkpointer::finish.                  *)
FlushPages ==
    /\ At("sweep")
    /\ Swept
    /\ IF \/ Bug = "checkpoint-skips-flush" /\ phase = "up"
          \/ Bug = "recovery-skips-flush" /\ phase = "opening"
       THEN UNCHANGED <<logDev, pageDev, superDev>>
       ELSE DeviceFlush
    /\ checkpoint' = [checkpoint EXCEPT !.at = "forced"]
    /\ oldest' = IF Bug = "truncates-early" THEN checkpoint.begin ELSE oldest
    /\ UNCHANGED <<clientVars, buffer, durable, flushing, epoch, poisoned, pageVars>>
    /\ UNCHANGED <<phase, redone, lost, observerVars>>

WriteSuperblock ==
    /\ At("forced")
    /\ superDev' = Append(superDev,
          [epoch |-> epoch,
           redo  |-> IF Bug = "redo-starts-late" THEN durable ELSE checkpoint.begin])
    /\ lost' = [lost EXCEPT !.super = FALSE]
    /\ checkpoint' = [checkpoint EXCEPT !.at = "written"]
    /\ UNCHANGED <<clientVars, logVars, pageVars, phase, redone, logDev, pageDev, observerVars>>

FlushSuperblock ==
    /\ At("written")
    /\ DeviceFlush
    /\ checkpoint' = [checkpoint EXCEPT !.at = "recorded"]
    /\ UNCHANGED <<clientVars, logVars, pageVars, phase, redone, lost, observerVars>>

(* Not earlier, because until now a crash would have needed it (BUGS D8).  *)
(* Log::truncate.                                                          *)
TruncateLog ==
    /\ phase = "up"
    /\ At("recorded")
    /\ oldest' = checkpoint.begin
    /\ checkpoint' = Done
    /\ UNCHANGED <<clientVars, buffer, durable, flushing, epoch, poisoned, pageVars>>
    /\ UNCHANGED <<phase, redone, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ buffer' = <<>> /\ durable' = 0 /\ flushing' = 0
    /\ epoch' = 0 /\ oldest' = 0 /\ poisoned' = FALSE
    /\ page' = EmptyPages /\ dirtied' = Clean
    /\ checkpoint' = Done /\ redone' = 0
    /\ crashes' = crashes + 1
    /\ UNCHANGED asked

(* The power fails, at any time, also during recovery.  Each block is left *)
(* in any of its versions, independently of the others.                    *)
Crash ==
    /\ MayCrash(crashes)
    /\ ~Down
    /\ \E log \in AfterCrash(logDev), cells \in CellsLeft(pageDev), super \in Survivors(superDev) :
          /\ logDev' = AllDurably(log)
          /\ pageDev' = cells
          /\ superDev' = Durably(super)
          /\ base' = Recovered(log, ImagesRead(cells), super)
          /\ verdict' = Judge(log, ImagesRead(cells), super)
    /\ lost' = NothingLost
    /\ ForgetMemory
    /\ phase' = "cut"

(* The process dies and is restarted, but the device and its cache live    *)
(* on: it reads the newest versions, which may still disappear.  So before *)
(* anything builds on them, they are flushed; and what a failed flush has  *)
(* forgotten, which no flush will save, is written again: all log blocks   *)
(* and pages changed since the redo start.  A crash on the way is          *)
(* equivalent to one before it, because nothing new is written.            *)
(* Store::open (which flushes, but writes nothing again: see FINDINGS.md). *)
Restart ==
    /\ MayCrash(crashes)
    /\ ~Down
    /\ \E cells \in CellsReopened(pageDev) :
          LET log   == NewestOf(logDev)
              super == Newest(superDev)
          IN /\ base' = Recovered(log, ImagesRead(cells), super)
             /\ verdict' = Judge(log, ImagesRead(cells), super)
             /\ IF Bug = "trusts-what-it-reads"
                THEN DeviceFlush /\ UNCHANGED lost
                ELSE /\ logDev' = AllDurably(log)
                     /\ pageDev' = cells
                     /\ superDev' = Durably(super)
                     /\ lost' = NothingLost
    /\ ForgetMemory
    /\ phase' = "killed"

Super == Newest(superDev)

(* The records to replay.  The log is not written during recovery.         *)
ToRedo    == LogFound(NewestOf(logDev), Super)
ToRedoEnd == LogFoundEnd(NewestOf(logDev), Super)

(* The superblock says where redo begins and under which epoch.  The end   *)
(* of the log is found by reading.  The log will continue at the next      *)
(* block, under a new epoch, which cuts off the torn tail.                 *)
(* Store::recover, Log::scan_end, Log::create, Log::keep_from.             *)
LoadSuperblock ==
    /\ Down
    /\ phase' = "redo"
    /\ redone' = Super.redo
    /\ epoch' = IF Bug = "keeps-epoch" THEN Super.epoch ELSE Super.epoch + 1
    /\ durable' = NextBlockStart(ToRedoEnd)
    /\ flushing' = NextBlockStart(ToRedoEnd)
    /\ oldest' = Super.redo
    /\ page' = ImagesRead(pageDev)
    /\ UNCHANGED <<clientVars, buffer, poisoned, dirtied, checkpoint, deviceVars, observerVars>>

(* "Replaying the WAL consists of simply finding the corresponding page    *)
(* and re-applying the operation": one record, unless the page has it.     *)
(* Redo::take.                                                             *)
RedoRecord ==
    /\ phase = "redo"
    /\ redone < ToRedoEnd
    /\ LET record == ToRedo[redone - Super.redo + 1]
           n      == redone + 1
       IN /\ page' = RedoOne(page, record, n)
          /\ dirtied' = [k \in Keys |->
                            IF page'[k] # page[k] /\ dirtied[k] = 0 THEN n ELSE dirtied[k]]
    /\ redone' = redone + 1
    /\ UNCHANGED <<clientVars, logVars, checkpoint, phase, deviceVars, observerVars>>

(* Recovery ends with a checkpoint, which also makes the new epoch durable *)
(* before anything is written under it.                                    *)
FinishRedo ==
    /\ phase = "redo"
    /\ redone = ToRedoEnd \/ Bug = "stops-redo-early"
    /\ phase' = "opening"
    /\ redone' = 0
    /\ checkpoint' = [at |-> "sweep", begin |-> durable]
    /\ UNCHANGED <<clientVars, logVars, pageVars, deviceVars, observerVars>>

FinishRecovery ==
    /\ phase = "opening"
    /\ At("recorded")
    /\ phase' = "up"
    /\ oldest' = checkpoint.begin
    /\ checkpoint' = Done
    /\ UNCHANGED <<clientVars, buffer, durable, flushing, epoch, poisoned, pageVars, redone>>
    /\ UNCHANGED <<deviceVars, observerVars>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ ReadPage(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ AppendLog(c) \/ ChangePage(c) \/ FlushLog(c)
          \/ Acknowledge(c) \/ ReportFailure(c)
    \/ CompleteFlush \/ FailFlush
    \/ \E k \in Keys : WriteBack(k) \/ Reload(k)
    \/ BeginCheckpoint \/ FlushPages \/ WriteSuperblock \/ FlushSuperblock \/ TruncateLog
    \/ Crash \/ Restart
    \/ LoadSuperblock \/ RedoRecord \/ FinishRedo \/ FinishRecovery

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and recovery ends: every step    *)
(* except the optional ones (calls, crashes, failures) and those that      *)
(* change nothing (Reload).                                                *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(ReadPage(c)) /\ WF_vars(AnswerGet(c))
        /\ WF_vars(AppendLog(c)) /\ WF_vars(ChangePage(c)) /\ WF_vars(FlushLog(c))
        /\ WF_vars(Acknowledge(c)) /\ WF_vars(ReportFailure(c))

FlushFairness == WF_vars(CompleteFlush)

WriteBackFairness == \A k \in Keys : WF_vars(WriteBack(k))

CheckpointFairness ==
    /\ WF_vars(BeginCheckpoint) /\ WF_vars(FlushPages)
    /\ WF_vars(WriteSuperblock) /\ WF_vars(FlushSuperblock) /\ WF_vars(TruncateLog)

RecoveryFairness ==
    /\ WF_vars(LoadSuperblock) /\ WF_vars(RedoRecord)
    /\ WF_vars(FinishRedo) /\ WF_vars(FinishRecovery)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ FlushFairness /\ WriteBackFairness
    /\ CheckpointFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a record that is not durable still waits, or was told     *)
(* that nobody knows about its write.  Who was told what, the contract     *)
(* says.                                                                   *)
AckInv ==
    \A n \in (durable + 1)..End :
        poisoned \/ \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* Every crash leaves all records that the log considers durable.          *)
DurableInv ==
    phase = "up" /\ oldest < durable =>
        \A index \in BlockOf(oldest)..BlockOf(durable - 1) :
            \A block \in Survivors(logDev[Place(index)]) :
                /\ block.epoch = epoch
                /\ block.index = index
                /\ index * PerBlock + Len(block.records) >= durable
                   \/ Len(block.records) = PerBlock

(* No page image overtakes its log record.                                 *)
WalRuleInv ==
    ~Down => \A k \in Keys : \A image \in ImagesLeft(pageDev[k]) : image.lsn <= durable

(* A page that counts as clean is the same on the device and in memory.    *)
CleanInv ==
    ~Down => \A k \in Keys : dirtied[k] = 0 => page[k] = ImageRead(pageDev[k])

(* Memory holds all writes and nothing else.                               *)
MemoryInv ==
    phase = "up" =>
        LET current == Apply(base, Tail_)
        IN \A k \in Keys : Latched(k) \/ page[k].value = current[k]

(* All records from `oldest` on: on the device, then in the buffer.        *)
LiveLog ==
    LET onDevice == ReadLog(NewestOf(logDev), epoch, oldest)
        end      == oldest + Len(onDevice)
    IN IF end < BufferStart THEN onDevice
       ELSE onDevice \o SubSeq(buffer, end - BufferStart + 1, Len(buffer))

(* Wherever redo may begin, every page that a crash may leave has all      *)
(* changes from before.                                                    *)
RedoStartInv ==
    phase = "up" =>
        LET log == LiveLog
        IN \A super \in Survivors(superDev), k \in Keys :
              \A image \in ImagesLeft(pageDev[k]), i \in 1..Len(log) :
                  ~ (log[i].key = k /\ image.lsn < oldest + i /\ oldest + i <= super.redo)

(* Wherever redo may begin, the log from there on still exists.            *)
LogKeptInv ==
    phase = "up" => \A super \in Survivors(superDev) : oldest <= super.redo

(* No crash loses a durable write ...                                      *)
KeptInv == verdict # "lost"

(* ... or leaves anything but a prefix of the writes, in order ...         *)
PrefixInv == verdict # "mixed"

(* ... or, during recovery, changes what the previous crash left.          *)
StableInv == verdict # "changed"

(* A value that a get has returned is never taken back (only if Reads is   *)
(* not "free": the contract does not require it).                          *)
ReadsLastInv == verdict # "vanished"

(* A power cut leaves one version of each block of the log.                *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(logDev') = {} /\ Len(superDev') = 1]_vars

(* After a failed flush, what was written is in doubt, and until the next  *)
(* start nothing is written or given up, and nothing becomes durable.      *)
PoisonedProp ==
    [][/\ poisoned /\ crashes' = crashes =>
             UNCHANGED <<durable, flushing, epoch, oldest, poisoned, recoveryVars, deviceVars>>
       /\ ~poisoned /\ poisoned' => Unflushed(logDev) \subseteq lost'.log]_vars

(* A call is refused only after a failed flush, and if it was not logged.  *)
RefuseProp ==
    [][crashes' = crashes => \A c \in Clients : Waits(c) =>
           /\ call'[c] = Refused => poisoned /\ Writes(c, "called")
           /\ call'[c] = Unknown => poisoned]_vars

(* What is written is lost no longer.                                      *)
WrittenProp ==
    [][/\ \A p \in Places : Len(logDev'[p]) > Len(logDev[p]) => p \notin lost'.log
       /\ Len(superDev') > Len(superDev) => ~lost'.super]_vars

(* While the store is up, no page goes back, and the log only grows, and   *)
(* more of it becomes durable, and is given up.                            *)
OnwardProp ==
    [][phase = "up" /\ phase' = "up" =>
           /\ \A k \in Keys : page'[k].lsn >= page[k].lsn
           /\ End' >= End /\ durable' >= durable /\ oldest' >= oldest]_vars

(* Liveness: every call is answered, unless a crash intervenes; in         *)
(* particular, every flush is eventually acknowledged.                     *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

(* Recovery ends, successfully or with the error of a failed device.       *)
RecoveredProp == phase # "up" ~> (phase = "up" \/ poisoned)

(* A checkpoint that has begun ends, and frees the log before it.          *)
CheckpointedProp == checkpoint.at # "idle" ~> (checkpoint.at = "idle" \/ poisoned)

(* Nobody is told that a write is in doubt whose record is durable.        *)
DoubtProp ==
    [][\A c \in Clients :
        call[c].op = "write" /\ call'[c] = Unknown => durable < call[c].lsn]_vars

(* Nothing is written that the device has already: a page, the superblock, *)
(* or a block of the log.                                                  *)
News(old, new) == Len(new) > Len(old) => Newest(new) # Newest(old)

SparingProp ==
    [][~Down /\ ~Down' =>
        /\ \A k \in Keys : News(pageDev[k], pageDev'[k])
        /\ \A p \in Places : News(logDev[p], logDev'[p])
        /\ News(superDev, superDev')]_vars

-----------------------------------------------------------------------------
(* The contract: the durable map, followed by the log after it.            *)

WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

AbstractTail ==
    [i \in 1..Len(Tail_) |->
        [by |-> WriterOf(durable + i), key |-> Tail_[i].key, value |-> Tail_[i].value]]

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> call[c].at # "called"]
        ELSE call[c]]

AbstractPhase == IF phase \in {"redo", "opening"} THEN "opening" ELSE phase

Contract == INSTANCE DurableMap WITH
    tail <- AbstractTail, call <- AbstractCall, phase <- AbstractPhase

THEOREM Spec => Contract!Spec
=============================================================================
