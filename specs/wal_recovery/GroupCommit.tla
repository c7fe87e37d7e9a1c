---------------------------- MODULE GroupCommit -----------------------------
(***************************************************************************)
(* Clients, the log buffer and its flush: Bf-Tree §5.7, "Logging".         *)
(*                                                                         *)
(* "Before any write operation is committed, it must append a log entry to *)
(* the WAL (write-ahead-log) and wait (log full or default 1ms interval)   *)
(* until the log is flushed.  The log entry points to a page on disk and   *)
(* describes an operation (e.g., insert, delete)."                         *)
(*                                                                         *)
(* A flush is one step here.  In reality it takes time, but a client that  *)
(* waits for it does nothing else, and writes of other clients during the  *)
(* flush are equivalent to writes after it.                                *)
(***************************************************************************)
EXTENDS WalState

(* Bounds, for the wrapper; n is the number of crashes so far.             *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayFail(n)        == TRUE

-----------------------------------------------------------------------------
(* Clients.                                                                *)

(* engine/src/store.rs, Kv::get.                                           *)
CallGet(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* Kv::put, Kv::delete.                                                    *)
CallWrite(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called", lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* A get reads the page under its latch.  §5.7 does not say whether it may *)
(* return a value that is not durable yet: see `Reads`. BTree::get.        *)
ReadPage(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ ~Latched(call[c].key)
    /\ Reads = "wait" => page[call[c].key].lsn <= durable
    /\ call' = [call EXCEPT ![c].got = ValueIn(page, call[c].key)]
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
    /\ buffer' = Append(buffer, RecordOf(page, call[c].key, call[c].value))
    /\ call' = [call EXCEPT ![c].at = "logged", ![c].lsn = End + 1]
    /\ UNCHANGED <<asked, durable, flushing, epoch, oldest, poisoned>>
    /\ UNCHANGED <<pageVars, recoveryVars, deviceVars, observerVars>>

(* The client waits for its record, or sleeps while a flush is in flight.  *)
AwaitFlush(c) ==
    call' = [call EXCEPT ![c].at =
                IF durable < call[c].lsn /\ durable < flushing THEN "asleep" ELSE "waiting"]

(* The page in memory changes, and its latch is released.  WriteGuard::    *)
(* changed.                                                                *)
ChangePage(c) ==
    /\ Writes(c, "logged")
    /\ LET k == call[c].key
           n == call[c].lsn
       IN /\ page' = [page EXCEPT ![k] = [value |-> call[c].value, lsn |-> n]]
          /\ dirtied' = [dirtied EXCEPT ![k] =
                            IF @ = 0 \/ Bug = "dirtied-moves" THEN n ELSE @]
          /\ AwaitFlush(c)
    /\ UNCHANGED <<asked, logVars, recoveryVars, deviceVars, observerVars>>

(* "... and wait until the log is flushed."  Log::flush_to returns.        *)
Acknowledge(c) ==
    /\ Writes(c, "waiting")
    /\ \/ call[c].lsn <= durable
       \/ Bug = "acks-before-flush"
       \/ Bug = "acks-when-poisoned" /\ poisoned
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* After a failed flush it is unknown whether the write survives, unless   *)
(* it was not logged at all.  Error::Poisoned.                             *)
ReportFailure(c) ==
    /\ poisoned
    /\ phase = "up"
    /\ \/ /\ Writes(c, "called")
          /\ call' = [call EXCEPT ![c] = Refused]
       \/ /\ Writes(c, "waiting")
          /\ durable < call[c].lsn
          /\ call' = [call EXCEPT ![c] = IF Bug = "refused-shows" THEN Refused ELSE Unknown]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* The device.                                                             *)

(* A flush: every write so far is durable, whichever client made it.       *)
DeviceFlush ==
    /\ logDev' = Flushed(logDev, lost.log)
    /\ pageDev' = ForcedCells(pageDev, lost.pages)
    /\ superDev' = IF lost.super THEN superDev ELSE Durably(Newest(superDev))

(* Every client that sleeps until the end of the flush looks again.        *)
WakeAll(upTo) ==
    call' = [c \in Clients |->
                IF Writes(c, "asleep") /\ (Bug = "sleeps-through" => call[c].lsn <= upTo)
                THEN [call[c] EXCEPT !.at = "waiting"] ELSE call[c]]

(* The blocks up to position `end` are no longer in memory.                *)
Forget(end) == SubSeq(buffer, BlockStart(end) - BufferStart + 1, Len(buffer))

-----------------------------------------------------------------------------
(* Group flush.                                                            *)

(* A client that waits and finds no flush in flight leads one: it writes   *)
(* the blocks from the first that is not durable to the last, for all      *)
(* records appended by now.  Every other waiting client sleeps until the   *)
(* flush is over.  The paper's "log full or default 1ms interval"          *)
(* determines when the leader comes.  Log::flush_to, write_out.            *)
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

(* The leader's flush has returned: its records are durable, and no        *)
(* others.  Log::finish.                                                   *)
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

(* Any flush may fail: that of the log or of the checkpoint.  Then all     *)
(* unflushed writes are in doubt until they are written again; retrying    *)
(* the flush proves nothing (BUGS D5).  No client is told "durable" until  *)
(* the next opening.  A failed write has the same effect.  Volume::flush,  *)
(* Log::finish, Pager::poison.                                             *)
FailFlush ==
    /\ MayFail(crashes)
    /\ durable < flushing \/ checkpoint.at \in {"sweep", "written"}
    /\ ~poisoned
    /\ lost' = [log |-> Unflushed(logDev), pages |-> NotForced(pageDev),
                super |-> Len(superDev) > 1]
    /\ IF Bug = "retries-failed-flush"
       THEN UNCHANGED <<poisoned, flushing, call>>
       ELSE poisoned' = TRUE /\ flushing' = durable /\ WakeAll(flushing)
    /\ UNCHANGED <<asked, buffer, durable, epoch, oldest, pageVars, recoveryVars>>
    /\ UNCHANGED <<logDev, pageDev, superDev, observerVars>>
=============================================================================
