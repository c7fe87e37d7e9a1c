---------------------------- MODULE WalRecovery -----------------------------
(***************************************************************************)
(* Logging, checkpoints and recovery: Bf-Tree §5.7.                        *)
(*                                                                         *)
(* "Before any write operation is committed, it must append a log entry to *)
(* the WAL and wait until the log is flushed."  That, a fuzzy checkpoint,  *)
(* and recovery that loads the checkpoint and replays the log, is all that *)
(* the paper says.  It leaves to "standard mechanisms" what this module    *)
(* spells out: the order of page and log writes, where redo begins, what   *)
(* tells a page that has a change from one that lacks it, how the log's    *)
(* end is told from old blocks, and what a failed flush means.  Each of    *)
(* these is needed: FINDINGS.md has the counterexamples.                   *)
(*                                                                         *)
(* Left out: several keys on a page, and so splits, merges, the index and  *)
(* its snapshot (see MiniPage; here a page is where it always is); pages   *)
(* larger than a block (see PageShadowing); the two places of the          *)
(* superblock (one that is replaced atomically stands for them); scans     *)
(* (page by page they are gets).                                           *)
(***************************************************************************)
EXTENDS WalState

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ buffer = <<>> /\ durable = 0 /\ flushing = 0
    /\ epoch = 1 /\ oldest = 0 /\ poisoned = FALSE
    /\ page = EmptyPages /\ dirtied = Clean
    /\ checkpoint = Done /\ phase = "up" /\ redone = 0
    /\ logDev = [p \in Places |-> Durably(NoBlock)]
    /\ pageDev = AllDurably(EmptyPages)
    /\ superDev = Durably([epoch |-> 1, redo |-> 0])
    /\ lost = NothingLost
    /\ base = [k \in Keys |-> Absent] /\ verdict = "fine" /\ crashes = 0

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayFail(n)        == TRUE     \* after n crashes
MayCrash(n)       == TRUE

-----------------------------------------------------------------------------
(* Clients.                                                                *)

(* engine/src/store.rs, Kv::get.                                           *)
CallGet(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* Kv::put, Kv::delete.                                                    *)
CallWrite(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called", lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* A get looks at the page under its latch.  Whether it may return what is *)
(* not durable yet §5.7 does not say: see `Reads`.  BTree::get.            *)
ReadPage(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ ~Latched(call[c].key)
    /\ Reads = "wait" => page[call[c].key].lsn <= durable
    /\ call' = [call EXCEPT ![c].got = page[call[c].key].value]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* "It must append a log entry to the WAL": under the page's latch, into   *)
(* the buffer, if the ring has room.  The write has taken effect.          *)
(* BTree::try_put, Log::append.                                            *)
AppendLog(c) ==
    /\ phase = "up"
    /\ Writes(c, "called")
    /\ ~poisoned
    /\ ~Latched(call[c].key)
    /\ BlockOf(End) < BlockOf(oldest) + RingBlocks \/ Bug = "overruns-log"
    /\ buffer' = Append(buffer, [key |-> call[c].key, value |-> call[c].value])
    /\ call' = [call EXCEPT ![c].at = "logged", ![c].lsn = End + 1]
    /\ UNCHANGED <<asked, durable, flushing, epoch, oldest, poisoned>>
    /\ UNCHANGED <<pageVars, recoveryVars, deviceVars, observerVars>>

(* The page in memory changes, and its latch is released.  WriteGuard::    *)
(* changed.                                                                *)
ChangePage(c) ==
    /\ Writes(c, "logged")
    /\ LET k == call[c].key
           n == call[c].lsn
       IN /\ page' = [page EXCEPT ![k] = [value |-> call[c].value, lsn |-> n]]
          /\ dirtied' = [dirtied EXCEPT ![k] =
                            IF @ = 0 \/ Bug = "dirtied-moves" THEN n ELSE @]
          /\ call' = [call EXCEPT ![c].at =
                         IF durable < n /\ durable < flushing THEN "asleep" ELSE "waiting"]
    /\ UNCHANGED <<asked, logVars, recoveryVars, deviceVars, observerVars>>

(* "... and wait until the log is flushed."  Log::flush_to returns.        *)
Acknowledge(c) ==
    /\ Writes(c, "waiting")
    /\ call[c].lsn <= durable \/ Bug = "acks-before-flush"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* After a failed flush: whether the write survives, nobody knows.         *)
(* Error::Poisoned.                                                        *)
ReportFailure(c) ==
    /\ poisoned
    /\ phase = "up"
    /\ Writes(c, "called") \/ (Writes(c, "waiting") /\ durable < call[c].lsn)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* The device.                                                             *)

(* A flush: every write so far is durable, whoever made it.                *)
DeviceFlush ==
    /\ logDev' = Flushed(logDev, lost.log)
    /\ pageDev' = Flushed(pageDev, lost.pages)
    /\ superDev' = IF lost.super THEN superDev ELSE Durably(Newest(superDev))

(* Everybody who sleeps until the flush is over looks again.               *)
WakeAll(upTo) ==
    call' = [c \in Clients |->
                IF Writes(c, "asleep") /\ (Bug = "sleeps-through" => call[c].lsn <= upTo)
                THEN [call[c] EXCEPT !.at = "waiting"] ELSE call[c]]

(* The blocks up to position `end` are in memory no more.                  *)
Forget(end) == SubSeq(buffer, BlockStart(end) - BufferStart + 1, Len(buffer))

-----------------------------------------------------------------------------
(* Group flush.                                                            *)

(* A client that waits and finds no flush in flight leads one: it writes   *)
(* the blocks from the first that is not durable to the last, for all that *)
(* is appended by now.  Whoever else waits sleeps until it is over.  What  *)
(* the paper calls "log full or default 1ms interval" is when the leader   *)
(* comes.  Log::flush_to, write_out.                                       *)
FlushLog(c) ==
    /\ Writes(c, "waiting")
    /\ durable < call[c].lsn
    /\ durable = flushing
    /\ ~poisoned
    /\ Bug = "waits-for-full-buffer" => Len(buffer) > PerBlock
    /\ flushing' = End
    /\ LET written == BlocksOf(epoch, BufferStart, buffer)
           places  == {Place(index) : index \in DOMAIN written}
       IN /\ logDev' = [p \in Places |->
                 IF p \in places
                 THEN Append(logDev[p], written[CHOOSE i \in DOMAIN written : Place(i) = p])
                 ELSE logDev[p]]
          /\ lost' = [lost EXCEPT !.log = @ \ places]
    /\ call' = [d \in Clients |->
                   IF Writes(d, "waiting") /\ durable < call[d].lsn
                   THEN [call[d] EXCEPT !.at = "asleep"] ELSE call[d]]
    /\ UNCHANGED <<asked, buffer, durable, epoch, oldest, poisoned, pageVars, recoveryVars>>
    /\ UNCHANGED <<pageDev, superDev, observerVars>>

(* The leader's flush has returned: what it wrote is durable, and no more. *)
(* Log::finish.                                                            *)
CompleteFlush ==
    /\ durable < flushing
    /\ ~poisoned
    /\ DeviceFlush
    /\ LET end == IF Bug = "acks-what-came-later" THEN End ELSE flushing
       IN /\ durable' = end
          /\ flushing' = end
          /\ buffer' = Forget(end)
          /\ base' = Apply(base, SubSeq(Tail_, 1, end - durable))
          /\ WakeAll(end)
    /\ UNCHANGED <<asked, epoch, oldest, poisoned, pageVars, recoveryVars>>
    /\ UNCHANGED <<lost, verdict, crashes>>

(* Any flush may fail: the log's or the checkpoint's.  Then everything     *)
(* unflushed is in doubt until it is written again; trying the flush again *)
(* proves nothing (BUGS D5).  Nobody is told "durable" any more, until the *)
(* next opening.  A failed write comes to the same.  Volume::flush,        *)
(* Log::finish, Pager::poison.                                             *)
FailFlush ==
    /\ MayFail(crashes)
    /\ durable < flushing \/ checkpoint.at \in {"sweep", "written"}
    /\ ~poisoned
    /\ lost' = [log |-> Unflushed(logDev), pages |-> Unflushed(pageDev),
                super |-> Len(superDev) > 1]
    /\ IF Bug = "retries-failed-flush"
       THEN UNCHANGED <<poisoned, flushing, call>>
       ELSE poisoned' = TRUE /\ flushing' = durable /\ WakeAll(flushing)
    /\ UNCHANGED <<asked, buffer, durable, epoch, oldest, pageVars, recoveryVars>>
    /\ UNCHANGED <<logDev, pageDev, superDev, observerVars>>

-----------------------------------------------------------------------------
(* Page write-back.                                                        *)

Serving == phase \in {"up", "redo", "opening"} /\ ~poisoned

(* A dirty page is written, but not before the log up to its last change   *)
(* is durable: the WAL rule, which §5.7 does not mention.  It is then      *)
(* clean, though not yet durable.  Pager::write_picked.                    *)
WriteBack(k) ==
    /\ Serving
    /\ dirtied[k] # 0
    /\ ~Latched(k)
    /\ page[k].lsn <= durable \/ Bug = "page-before-log"
    /\ dirtied' = [dirtied EXCEPT ![k] = 0]
    /\ pageDev' = IF Bug = "clean-without-write" THEN pageDev
                  ELSE [pageDev EXCEPT ![k] = Append(@, page[k])]
    /\ lost' = [lost EXCEPT !.pages = @ \ {k}]
    /\ UNCHANGED <<clientVars, logVars, page, recoveryVars, logDev, superDev, observerVars>>

(* A page that is clean may leave memory; it is read again when it is      *)
(* asked for.  Cache::evict, Pager::read.                                  *)
Reload(k) ==
    /\ phase = "up"
    /\ ~Latched(k)
    /\ dirtied[k] = 0 \/ Bug = "evicts-dirty"
    /\ page' = [page EXCEPT ![k] = Newest(pageDev[k])]
    /\ dirtied' = [dirtied EXCEPT ![k] = 0]
    /\ UNCHANGED <<clientVars, logVars, recoveryVars, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* Fuzzy checkpoint: clients go on meanwhile.  engine/src/checkpoint.rs.   *)

At(step) == Serving /\ checkpoint.at = step

(* Redo will begin where the log ends now.  Checkpointer::step_towards.    *)
BeginCheckpoint ==
    /\ phase = "up"
    /\ At("idle")
    /\ oldest < End
    /\ checkpoint' = [at |-> "sweep", begin |-> End]
    /\ UNCHANGED <<clientVars, logVars, pageVars, phase, redone, deviceVars, observerVars>>

(* No operation has appended before `begin` and not yet changed its page   *)
(* (Pager::quiesce), and no page lacks such a change on the device         *)
(* (Pager::checkpoint_sweep).                                              *)
Swept ==
    /\ \A c \in Clients :
          /\ Writes(c, "logged") => call[c].lsn > checkpoint.begin \/ Bug = "skips-quiesce"
          /\ Writes(c, "called") => Bug # "quiesces-who-waits-for-room"
    /\ \A k \in Keys : dirtied[k] # 0 => dirtied[k] > checkpoint.begin

(* The images written are flushed.  Checkpointer::finish.                  *)
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

(* Only now, for until now a crash would have needed it (BUGS D8).         *)
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
    /\ checkpoint' = Done /\ phase' = "down" /\ redone' = 0
    /\ crashes' = crashes + 1
    /\ UNCHANGED asked

(* The power goes, at any time, also during recovery.  Each block is left  *)
(* in any of its versions, independently of the others.                    *)
Crash ==
    /\ MayCrash(crashes)
    /\ phase # "down"
    /\ \E log \in AfterCrash(logDev), pages \in AfterCrash(pageDev), super \in Survivors(superDev) :
          /\ logDev' = AllDurably(log)
          /\ pageDev' = AllDurably(pages)
          /\ superDev' = Durably(super)
          /\ base' = Recovered(log, pages, super)
          /\ verdict' = Judge(log, pages, super)
    /\ lost' = NothingLost
    /\ ForgetMemory

(* The process dies and is started again, but the device and its cache     *)
(* live on: what it reads is the newest, and may yet vanish.  So before    *)
(* anything is built on that it is flushed; and what a failed flush has    *)
(* forgotten, which no flush will save, is written again: all log blocks   *)
(* and pages that changed since redo's beginning.  A crash on the way is   *)
(* one before it, since nothing new is written.  Store::open (which        *)
(* flushes, but writes nothing again: see FINDINGS.md).                    *)
Restart ==
    /\ MayCrash(crashes)
    /\ phase # "down"
    /\ LET log   == NewestOf(logDev)
           pages == NewestOf(pageDev)
           super == Newest(superDev)
       IN /\ base' = Recovered(log, pages, super)
          /\ verdict' = Judge(log, pages, super)
          /\ IF Bug = "trusts-what-it-reads"
             THEN DeviceFlush /\ UNCHANGED lost
             ELSE /\ logDev' = AllDurably(log)
                  /\ pageDev' = AllDurably(pages)
                  /\ superDev' = Durably(super)
                  /\ lost' = NothingLost
    /\ ForgetMemory

Super == Newest(superDev)

(* What there is to replay.  The log is not written to during recovery.    *)
ToRedo    == LogFound(NewestOf(logDev), Super)
ToRedoEnd == LogFoundEnd(NewestOf(logDev), Super)

(* The superblock says where redo begins and under which epoch; the end of *)
(* the log is found by reading.  The log will go on at the next block,     *)
(* under a new epoch; the torn tail is thereby cut.  Store::recover,       *)
(* Log::scan_end, Log::create, Log::keep_from.                             *)
LoadSuperblock ==
    /\ phase = "down"
    /\ phase' = "redo"
    /\ redone' = Super.redo
    /\ epoch' = IF Bug = "keeps-epoch" THEN Super.epoch ELSE Super.epoch + 1
    /\ durable' = NextBlockStart(ToRedoEnd)
    /\ flushing' = NextBlockStart(ToRedoEnd)
    /\ oldest' = Super.redo
    /\ page' = NewestOf(pageDev)
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
          /\ dirtied' = IF page'[record.key] # page[record.key] /\ dirtied[record.key] = 0
                        THEN [dirtied EXCEPT ![record.key] = n] ELSE dirtied
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

(* What must go on, for clients to be answered and recovery to end: every  *)
(* step but those that nobody is obliged to (calls, crashes, failures) and *)
(* that change nothing (Reload).                                           *)
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

(* Who wrote a record that is not durable still waits, or was told that it *)
(* failed.                                                                 *)
AckInv ==
    \A n \in (durable + 1)..End :
        poisoned \/ \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* What the log believes durable, every crash leaves.                      *)
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
    phase # "down" => \A k \in Keys : \A image \in Survivors(pageDev[k]) : image.lsn <= durable

(* A page that counts as clean is on the device as it is in memory.        *)
CleanInv ==
    phase # "down" => \A k \in Keys : dirtied[k] = 0 => page[k] = Newest(pageDev[k])

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

(* Wherever redo may begin, no page that a crash may leave lacks a change  *)
(* from before.                                                            *)
RedoStartInv ==
    phase = "up" =>
        LET log == LiveLog
        IN \A super \in Survivors(superDev), k \in Keys :
              \A image \in Survivors(pageDev[k]), i \in 1..Len(log) :
                  ~ (log[i].key = k /\ image.lsn < oldest + i /\ oldest + i <= super.redo)

(* Wherever redo may begin, the log from there on has not been given up.   *)
LogKeptInv ==
    phase = "up" => \A super \in Survivors(superDev) : oldest <= super.redo

(* No crash loses what was durable ...                                     *)
KeptInv == verdict # "lost"

(* ... or leaves anything but a prefix of the writes, in their order ...   *)
PrefixInv == verdict # "mixed"

(* ... or, during recovery, changes what the crash before had left.        *)
StableInv == verdict # "changed"

(* What a get has returned is never taken back (only if Reads is not       *)
(* "free": the contract does not ask for it).                              *)
ReadsLastInv == verdict # "vanished"

(* Liveness: every call is answered, unless a crash comes between; in      *)
(* particular a flush is eventually acknowledged.                          *)
AnsweredProp == \A c \in Clients : call[c] # Idle ~> call[c] = Idle

(* Recovery ends, well or with the error of a device that failed.          *)
RecoveredProp == phase # "up" ~> (phase = "up" \/ poisoned)

-----------------------------------------------------------------------------
(* The contract: the durable map, then what is in the log beyond it.       *)

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

Contract == INSTANCE DurableMap WITH
    tail <- AbstractTail, call <- AbstractCall, up <- (phase = "up")

THEOREM Spec => Contract!Spec
=============================================================================
