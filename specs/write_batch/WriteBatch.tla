----------------------------- MODULE WriteBatch -----------------------------
(***************************************************************************)
(* Atomic write batches over the redo log.  No paper has them:             *)
(* engine/src/store/batch.rs is what is modelled.                          *)
(*                                                                         *)
(*   close the gate                 writers wait; readers do not           *)
(*     log     intent               from its last part on it will happen   *)
(*     show    the changes          readers see all of them at once        *)
(*     make    each change          an ordinary put, with its own record   *)
(*     log     the end                                                     *)
(*     hide    the changes          the leaves have all of them now        *)
(*   open the gate                                                         *)
(*                                                                         *)
(* A crash may come at any step, and lose any part of the log's unflushed  *)
(* end.  Recovery redoes the log.  If that has a whole intent without its  *)
(* end, recovery makes the new epoch durable and completes the batch.      *)
(*                                                                         *)
(* Left out: long values, whose places a batch takes before (Overflow);    *)
(* scans, which copy what is shown as they begin; several keys on a leaf,  *)
(* splits and merges; pages that a crash loses because they were not       *)
(* flushed, the log's blocks, and the superblock's (WalRecovery): here a   *)
(* leaf is durable when it is written, and a checkpoint ends in one step.  *)
(***************************************************************************)
EXTENDS BatchState

(* Bounds, for the wrapper; n is the number of writes asked for so far, or *)
(* of crashes.                                                             *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayBatch(c, n)    == TRUE
MayRefuse(n)      == TRUE
MayStop(n)        == TRUE
MayCrash(n)       == TRUE

(* What the batch that is write n does: it puts n to all keys, in order.   *)
ChangesOf(n) == [k \in Keys |-> [key |-> k, value |-> n]]

-----------------------------------------------------------------------------
(* Readers.                                                                *)

Reads(c, step)   == call[c].op = "get" /\ call[c].at = step
Writes(c, step)  == call[c].op = "write" /\ call[c].at = step
Batching(c, step) == call[c].op = "batch" /\ call[c].at = step

CallGet(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "get", key |-> k, at |-> "called", version |-> 0, got |-> Pending]]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

(* The change that is shown for a key.                                     *)
IsShown(k)  == \E i \in DOMAIN shown : shown[i].key = k
ShownFor(k) == shown[CHOOSE i \in DOMAIN shown : shown[i].key = k].value

(* A get takes what is shown for its key, or else notes the version.       *)
(* Core::get_stored, Batches::shown_for.                                   *)
Look(c) ==
    /\ Reads(c, "called")
    /\ LET k == call[c].key
       IN call' = IF IsShown(k)
                  THEN [call EXCEPT ![c].at = "read", ![c].got = ShownFor(k)]
                  ELSE [call EXCEPT ![c].at = "looked", ![c].version = version]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

(* It reads the leaf, and begins anew if the version is another by then.   *)
(* In the engine these are two steps.  A change of the version between     *)
(* them makes it repeat a read that was good.  Core::get_stored.           *)
ReadLeaf(c) ==
    /\ Reads(c, "looked")
    /\ call' = IF version = call[c].version
               THEN [call EXCEPT ![c].at = "read", ![c].version = 0,
                                 ![c].got = leaf[call[c].key].value]
               ELSE [call EXCEPT ![c].at = "called", ![c].version = 0]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

AnswerGet(c) ==
    /\ Reads(c, "read")
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

-----------------------------------------------------------------------------
(* Ordinary writers.                                                       *)

CallWrite(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called", lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<batchVars, logVars, leafVars, recoveryVars, effects>>

(* A batch that waits to be completed: its gate is open.                   *)
Unfinished == batch # NoBatch /\ gate = Nobody

(* A writer counts itself in, unless the gate is closed or a batch must be *)
(* completed first.  Gate::pass, Batches::pass.                            *)
Pass(c) ==
    /\ Writes(c, "called")
    /\ gate = Nobody \/ Bug = "writers-pass-closed-gate"
    /\ ~Unfinished \/ Bug = "unfinished-batch-forgotten"
    /\ call' = [call EXCEPT ![c].at = "passing"]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

(* Record and change of the leaf, under its latch.  Then it counts itself  *)
(* out.  If the log is full it waits for a checkpoint.  BTree::try_put.    *)
WriteOne(c) ==
    /\ Writes(c, "passing")
    /\ Left >= 1
    /\ LET n      == Len(log) + 1
           change == [key |-> call[c].key, value |-> call[c].value]
       IN /\ log' = Append(log, Put(change))
          /\ leaf' = [leaf EXCEPT ![change.key] = [value |-> change.value, lsn |-> n]]
          /\ effects' = Append(effects, [lsn |-> n, changes |-> <<change>>])
          /\ call' = [call EXCEPT ![c].at = "waiting", ![c].lsn = n]
    /\ UNCHANGED <<asked, batchVars, durable, pin, checkpoint, redoStart, leafDev>>
    /\ UNCHANGED <<recoveryVars>>

(* Put, delete or batch is durable.                                        *)
Acknowledge(c) ==
    /\ Writes(c, "waiting") \/ Batching(c, "waiting")
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, batchVars, logVars, leafVars, recoveryVars, effects>>

-----------------------------------------------------------------------------
(* Batches.  The gate says who takes the steps: a client or recovery.      *)

CallBatch(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ asked + 1 \in Values
    /\ MayBatch(c, asked)
    /\ call' = [call EXCEPT ![c] =
           [op |-> "batch", changes |-> ChangesOf(asked + 1), at |-> "called", lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<batchVars, logVars, leafVars, recoveryVars, effects>>

(* The gate is marked as closed: by a batch, or by a writer that has to    *)
(* complete another's batch.  Gate::close, Core::finish_batch.             *)
CloseGate(c) ==
    /\ gate = Nobody
    /\ \/ Batching(c, "called") /\ call' = [call EXCEPT ![c].at = "closed"]
       \/ /\ Writes(c, "called") /\ Unfinished
          /\ Bug # "unfinished-batch-forgotten"
          /\ call' = [call EXCEPT ![c].at = "finishing"]
    /\ gate' = c
    /\ UNCHANGED <<asked, batch, shown, version, logVars, leafVars, recoveryVars, effects>>

(* Room that an intent of so many parts keeps free: to be renewed here and *)
(* in recovery, and for one change.  engine/src/store/batch.rs,            *)
(* log_reserve.                                                            *)
Reserve(parts) == 2 * parts + Spare

(* Nobody passes any more, no other batch waits, and the log has room.     *)
(* From now on checkpoints keep the log.  Core::make_batch_room,           *)
(* Log::open_batch.                                                        *)
OpenBatch(c) ==
    /\ Batching(c, "closed")
    /\ batch = NoBatch
    /\ \A d \in Clients : ~Writes(d, "passing") \/ Bug = "batch-does-not-wait"
    /\ LET changes == call[c].changes
       IN /\ Left >= Len(changes) + Reserve(Len(changes))
          /\ batch' = [at      |-> IF Bug = "batch-made-before-intent" THEN "logged"
                                   ELSE "logging",
                       changes |-> changes, made |-> 0, parts |-> 0, begin |-> Len(log) + 1]
          /\ effects' = IF Bug = "batch-made-before-intent"
                         THEN Append(effects, [lsn |-> Len(log) + 1, changes |-> changes])
                         ELSE effects
    /\ pin' = Len(log) + 1
    /\ call' = [call EXCEPT ![c].at = "writing"]
    /\ UNCHANGED <<asked, gate, shown, version, log, durable, checkpoint, redoStart, leafVars>>
    /\ UNCHANGED <<recoveryVars>>

(* One part of the intent.  With the last part of a new intent,            *)
(* checkpoints need to keep only that.  Core::log_intent, Log::move_batch. *)
LogPart ==
    /\ batch.at \in {"logging", "renewing"}
    /\ Left >= 1
    /\ LET at   == batch.made + batch.parts + 1
           last == at = Len(batch.changes)
       IN /\ log' = Append(log, Part(batch.parts, last, batch.changes[at]))
          /\ batch' = [batch EXCEPT
                 !.parts = @ + 1,
                 !.at = CASE ~last -> @ [] last /\ @ = "logging" -> "logged" [] OTHER -> "moving"]
          /\ pin' = IF last THEN batch.begin ELSE pin
          /\ effects' = IF last /\ batch.at = "logging"
                         THEN Append(effects, [lsn |-> Len(log) + 1, changes |-> batch.changes])
                         ELSE effects
    /\ UNCHANGED <<clientVars, gate, shown, version, durable, checkpoint, redoStart, leafVars>>
    /\ UNCHANGED <<recoveryVars>>

(* A batch that cannot be logged has changed nothing and never will.  Its  *)
(* first parts stay in the log.  NotWritten::Nothing.                      *)
Refuse(c) ==
    /\ MayRefuse(asked)
    /\ Batching(c, "writing") /\ batch.at = "logging"
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ gate' = Nobody /\ batch' = NoBatch /\ pin' = 0
    /\ UNCHANGED <<asked, shown, version, log, durable, checkpoint, redoStart, leafVars>>
    /\ UNCHANGED <<recoveryVars, effects>>

(* All changes are shown to readers at once.  Batches::show.               *)
Show ==
    /\ batch.at = "logged"
    /\ batch' = [batch EXCEPT !.at = "making"]
    /\ IF Bug = "batch-shown-piecemeal" THEN UNCHANGED <<shown, version>>
       ELSE shown' = batch.changes /\ version' = version + 1
    /\ UNCHANGED <<clientVars, gate, logVars, leafVars, recoveryVars, effects>>

AllMade == batch.made = Len(batch.changes)

Short == Left < Reserve(batch.parts)

Making == gate # Nobody /\ batch.at = "making"

(* One change, by an ordinary put or delete.  Core::make_change.           *)
MakeChange ==
    /\ Making /\ ~AllMade /\ ~Short
    /\ LET change == batch.changes[batch.made + 1]
           early  == Bug = "batch-ends-early" /\ batch.made + 1 = Len(batch.changes)
           before == IF early THEN Append(log, End) ELSE log
       IN /\ log' = Append(before, Put(change))
          /\ leaf' = [leaf EXCEPT ![change.key] =
                         [value |-> change.value, lsn |-> Len(before) + 1]]
          /\ batch' = [batch EXCEPT !.made = @ + 1, !.at = IF early THEN "ended" ELSE @]
    /\ UNCHANGED <<clientVars, gate, shown, version, durable, pin, checkpoint, redoStart>>
    /\ UNCHANGED <<leafDev, recoveryVars, effects>>

(* The log runs short: what is left of the batch is logged once more.      *)
(* Core::renew_intent.                                                     *)
RenewIntent ==
    /\ Making /\ ~AllMade /\ Short
    /\ batch' = [batch EXCEPT !.at = "renewing", !.parts = 0, !.begin = Len(log) + 1]
    /\ pin' = IF Bug = "batch-moves-before-intent" THEN Len(log) + 1 ELSE pin
    /\ UNCHANGED <<clientVars, gate, shown, version, log, durable, checkpoint, redoStart>>
    /\ UNCHANGED <<leafVars, recoveryVars, effects>>

(* A checkpoint has freed the log before the new intent.                   *)
(* Checkpointer::run.                                                      *)
FreeOldIntent ==
    /\ batch.at = "moving" /\ gate # Nobody
    /\ redoStart + 1 >= pin
    /\ batch' = [batch EXCEPT !.at = "making"]
    /\ UNCHANGED <<clientVars, gate, shown, version, logVars, leafVars, recoveryVars, effects>>

LogEnd ==
    /\ Making /\ AllMade
    /\ log' = Append(log, End)
    /\ batch' = [batch EXCEPT !.at = "ended"]
    /\ UNCHANGED <<clientVars, gate, shown, version, durable, pin, checkpoint, redoStart>>
    /\ UNCHANGED <<leafVars, recoveryVars, effects>>

(* The leaves have all changes, so they need not be shown any more.  The   *)
(* gate is opened, or, if the batch was another's, its own follows.        *)
(* Core::finish_or_keep.                                                   *)
Hide(c) ==
    /\ phase = "up" /\ gate = c
    /\ batch.at = "ended"
    /\ batch' = NoBatch /\ pin' = 0
    /\ shown' = <<>>
    /\ version' = IF shown = <<>> THEN version ELSE version + 1
    /\ call' = CASE Batching(c, "writing") ->
                      [call EXCEPT ![c].at = "waiting", ![c].lsn = Len(log)]
                 [] Writes(c, "finishing") -> [call EXCEPT ![c].at = "called"]
                 [] Batching(c, "closed") -> call
    /\ gate' = IF Batching(c, "closed") THEN c ELSE Nobody
    /\ UNCHANGED <<asked, log, durable, checkpoint, redoStart, leafVars, recoveryVars>>
    /\ UNCHANGED <<effects>>

(* The batch cannot be completed at once, for example because the file     *)
(* system is full.  Its changes stay shown, and the next writer completes  *)
(* them.  Of a client's own batch nobody knows; a write or batch that had  *)
(* to complete another's first has done nothing.  Batches::keep_unfinished *)
StopShort(c) ==
    /\ MayStop(asked)
    /\ gate = c
    /\ batch.at \in {"making", "moving"}
    /\ call' = [call EXCEPT ![c] =
           IF Batching(c, "writing") /\ Bug # "refused-shows" THEN Unknown ELSE Refused]
    /\ gate' = Nobody
    /\ batch' = [batch EXCEPT !.at = "making"]
    /\ UNCHANGED <<asked, shown, version, logVars, leafVars, recoveryVars, effects>>

-----------------------------------------------------------------------------
(* Log, leaves and checkpoint.                                             *)

(* Recovery flushes it, too, before it writes a leaf that it has changed.  *)
FlushLog ==
    /\ phase # "down"
    /\ durable < Len(log)
    /\ durable' = Len(log)
    /\ UNCHANGED <<clientVars, batchVars, log, pin, checkpoint, redoStart, leafVars>>
    /\ UNCHANGED <<recoveryVars, effects>>

(* A dirty leaf is written, once the log is durable up to its last change. *)
(* Pager::write_picked.                                                    *)
WriteBack(k) ==
    /\ phase # "down"
    /\ leafDev[k] # leaf[k]
    /\ leaf[k].lsn <= durable
    /\ leafDev' = [leafDev EXCEPT ![k] = leaf[k]]
    /\ UNCHANGED <<clientVars, batchVars, logVars, leaf, recoveryVars, effects>>

(* Redo will begin at the end of the log, or at the intent of the open     *)
(* batch.  In recovery a checkpoint runs only to free an old intent.       *)
(* Log::begin_checkpoint.                                                  *)
BeginCheckpoint ==
    /\ phase = "up" \/ batch.at = "moving"
    /\ checkpoint = 0
    /\ LET begin == IF pin # 0 /\ Bug # "checkpoint-ignores-batch" THEN pin - 1 ELSE Len(log)
       IN redoStart < begin /\ checkpoint' = begin
    /\ UNCHANGED <<clientVars, batchVars, log, durable, pin, redoStart, leafVars>>
    /\ UNCHANGED <<recoveryVars, effects>>

(* All leaves have on the device what was changed before its beginning.    *)
(* Pager::checkpoint_sweep.                                                *)
Swept ==
    \A n \in (redoStart + 1)..checkpoint :
        log[n].kind = "put" => leafDev[log[n].change.key].lsn >= n

(* The log is flushed to its end, and the superblock written and flushed.  *)
(* Checkpointer::finish.                                                   *)
FinishCheckpoint ==
    /\ checkpoint # 0
    /\ Swept
    /\ durable' = Len(log)
    /\ redoStart' = checkpoint
    /\ superEpoch' = epoch
    /\ checkpoint' = 0
    /\ UNCHANGED <<clientVars, batchVars, log, pin, leafVars, epoch, phase, crashes, effects>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

(* The power fails, at any time, also during recovery.                     *)
Crash ==
    /\ MayCrash(crashes)
    /\ phase # "down"
    /\ \E n \in durable..Len(log) :
          /\ log' = SubSeq(log, 1, n)
          /\ durable' = n
          /\ effects' = EffectsUpTo(n)
    /\ call' = [c \in Clients |-> Idle]
    /\ gate' = Nobody /\ batch' = NoBatch /\ shown' = <<>> /\ version' = 0
    /\ pin' = 0 /\ checkpoint' = 0
    /\ leaf' = EmptyLeaves /\ epoch' = 0
    /\ phase' = "down" /\ crashes' = crashes + 1
    /\ UNCHANGED <<asked, redoStart, leafDev, superEpoch>>

(* Redo.  If no batch was cut short, recovery ends with a checkpoint.      *)
(* Redo appends nothing, so it is one step.  Core::recover.                *)
Redo ==
    /\ phase = "down"
    /\ LET found == Redone(leafDev, redoStart + 1, Len(log))
       IN /\ leaf' = found
          /\ epoch' = superEpoch + 1
          /\ IF PendingAt(Len(log)) = <<>>
             THEN /\ phase' = "up"
                  /\ leafDev' = found
                  /\ redoStart' = Len(log)
                  /\ superEpoch' = superEpoch + 1
                  /\ UNCHANGED <<gate, batch>>
             ELSE /\ phase' = "completing"
                  /\ gate' = Recovery
                  /\ batch' = [at |-> "epoch", changes |-> PendingAt(Len(log)),
                               made |-> 0, parts |-> 0, begin |-> 0]
                  /\ UNCHANGED <<leafDev, redoStart, superEpoch>>
    /\ UNCHANGED <<clientVars, shown, version, log, durable, pin, checkpoint, crashes>>
    /\ UNCHANGED <<effects>>

RECURSIVE WholeEnd(_)
(* The end of the log up to n, without the parts of an incomplete intent.  *)
(* Intents::whole.                                                         *)
WholeEnd(n) ==
    IF n = 0 \/ log[n].kind # "part" THEN n
    ELSE IF log[n].last THEN n ELSE WholeEnd(n - 1)

(* The new epoch is made durable on its own, before anything is appended   *)
(* under it.  Parts at the end of the log without a last one are written   *)
(* over.  An intent that nothing follows is used as it is; otherwise it is *)
(* logged again.  Then the log before it is freed.  Without Resumes, the   *)
(* log keeps the parts, and each intent is logged again: see FINDINGS.md.  *)
(* Core::complete_pending, Checkpointer::write_epoch.                      *)
WriteEpoch ==
    /\ batch.at = "epoch"
    /\ superEpoch' = IF Bug = "recovery-skips-epoch" THEN superEpoch ELSE epoch
    /\ LET end   == IF Resumes THEN WholeEnd(Len(log)) ELSE Len(log)
           whole == Resumes /\ log[end].kind = "part"
           begin == IF whole THEN end - log[end].number ELSE end + 1
       IN /\ log' = SubSeq(log, 1, end) /\ durable' = end
          /\ batch' = [batch EXCEPT !.at = IF whole THEN "moving" ELSE "renewing",
                                    !.parts = IF whole THEN Len(batch.changes) ELSE 0,
                                    !.begin = begin]
          /\ pin' = IF whole THEN begin ELSE pin
    /\ UNCHANGED <<clientVars, gate, shown, version, checkpoint, redoStart, leafVars>>
    /\ UNCHANGED <<epoch, phase, crashes, effects>>

(* The batch is complete, and recovery ends with a checkpoint.             *)
FinishRecovery ==
    /\ phase = "completing" /\ batch.at = "ended"
    /\ phase' = "up"
    /\ gate' = Nobody /\ batch' = NoBatch /\ pin' = 0
    /\ leafDev' = leaf
    /\ durable' = Len(log) /\ redoStart' = Len(log)
    /\ superEpoch' = epoch
    /\ UNCHANGED <<clientVars, shown, version, log, checkpoint, leaf, epoch, crashes, effects>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ Look(c) \/ ReadLeaf(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ Pass(c) \/ WriteOne(c) \/ Acknowledge(c)
          \/ CallBatch(c) \/ CloseGate(c) \/ OpenBatch(c) \/ Refuse(c)
          \/ Hide(c) \/ StopShort(c)
    \/ LogPart \/ Show \/ MakeChange \/ RenewIntent \/ FreeOldIntent \/ LogEnd
    \/ FlushLog \/ BeginCheckpoint \/ FinishCheckpoint
    \/ \E k \in Keys : WriteBack(k)
    \/ Crash \/ Redo \/ WriteEpoch \/ FinishRecovery

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and recovery ends: every step    *)
(* but those that nobody is obliged to (calls, errors, crashes).           *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(Look(c) \/ ReadLeaf(c) \/ AnswerGet(c))
        /\ SF_vars(Pass(c)) /\ WF_vars(WriteOne(c)) /\ WF_vars(Acknowledge(c))
        /\ SF_vars(CloseGate(c)) /\ WF_vars(OpenBatch(c)) /\ WF_vars(Hide(c))

BatchFairness ==
    /\ WF_vars(LogPart) /\ WF_vars(Show) /\ WF_vars(MakeChange) /\ WF_vars(RenewIntent)
    /\ WF_vars(FreeOldIntent) /\ WF_vars(LogEnd)

LogFairness == WF_vars(FlushLog) /\ \A k \in Keys : WF_vars(WriteBack(k))

CheckpointFairness == WF_vars(BeginCheckpoint) /\ WF_vars(FinishCheckpoint)

RecoveryFairness == WF_vars(Redo) /\ WF_vars(WriteEpoch) /\ WF_vars(FinishRecovery)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ BatchFairness /\ LogFairness /\ CheckpointFairness
    /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* How far the log has taken effect: not a batch that is not shown yet.    *)
EffectEnd == IF phase = "up" /\ batch.at \in {"logging", "logged"} THEN pin - 1 ELSE Len(log)

(* What a get finds at each key.                                           *)
Seen == [k \in Keys |-> IF IsShown(k) THEN ShownFor(k) ELSE leaf[k].value]

(* Readers see what the log says: of each batch all changes or none.       *)
VisibleInv == phase = "up" => Seen = MapAfter(EffectEnd)

(* Wherever a crash may cut the log, recovery makes of it what it says,    *)
(* and so all of a batch or nothing.                                       *)
RecoverInv == \A n \in durable..Len(log) : Recovered(n) = MapAfter(n)

(* The client of a put that is not durable still waits.                    *)
AckInv ==
    phase = "up" =>
        \A i \in DOMAIN effects :
            LET n == effects[i].lsn
            IN n > durable /\ log[n].kind = "put" =>
                   \E c \in Clients : Writes(c, "waiting") /\ call[c].lsn = n

(* No other writer's record lies between a batch's intent and its end.     *)
AloneInv ==
    pin # 0 /\ batch # NoBatch =>
        \A n \in pin..Len(log) :
            log[n].kind = "put" => \E i \in DOMAIN batch.changes : batch.changes[i] = log[n].change

(* The newest complete intent of the open batch has not been freed.        *)
IntentKeptInv == pin # 0 => redoStart < pin

(* No leaf on the device overtakes its log record.                         *)
WalRuleInv == \A k \in Keys : leafDev[k].lsn <= durable

(* No record is of an epoch that the superblock does not name: another     *)
(* opening would use that epoch again, and what is left of this one would  *)
(* join its log.  Nor is the epoch of recovery that of any record.         *)
EpochInv ==
    /\ \A n \in DOMAIN log : log[n].epoch <= superEpoch
    /\ batch.at = "epoch" => \A n \in DOMAIN log : log[n].epoch < epoch

(* The log is never fuller than full, and never lacks the room for an      *)
(* intent that has to be logged; nor, while a batch is written, for what   *)
(* is kept free for it.                                                    *)
RoomInv ==
    /\ Left >= 0
    /\ batch.at = "logging" =>
           LET parts == Len(batch.changes) IN Left >= parts - batch.parts + Reserve(parts)
    /\ batch.at = "making" /\ ~AllMade /\ log # <<>> =>
           (log[Len(log)].kind = "put" => Left >= Reserve(batch.parts) - 1)
    /\ batch.at \in {"logging", "renewing"} /\ phase # "up" =>
           Left >= Len(batch.changes) - batch.made - batch.parts

(* Whoever has closed the gate is still there to open it.  A batch that is *)
(* left to others has its intent in the log, and needs no checkpoint.      *)
GateInv ==
    /\ gate = Nobody /\ batch # NoBatch => batch.at = "making"
    /\ (gate = Recovery) <=> (phase = "completing")
    /\ gate \in Clients =>
           \/ Batching(gate, "closed") \/ Batching(gate, "writing")
           \/ Writes(gate, "finishing")

(* Checkpoints keep the log of a batch, and of nothing else.               *)
PinInv ==
    /\ pin # 0 => batch # NoBatch
    /\ batch # NoBatch /\ phase = "up" => pin # 0

(* Each change of a batch is made once, and the batch ends once.           *)
OnceInv ==
    /\ \A n \in 2..Len(log) : ~(log[n].kind = "end" /\ log[n - 1].kind = "end")
    /\ pin # 0 =>
           Cardinality({n \in pin..Len(log) : log[n].kind = "put"}) <= Len(batch.changes)

(* The parts of the newest intent are where the batch says, and once it is *)
(* whole, it has all changes that are not made.                            *)
IntentInv ==
    batch # NoBatch /\ batch.at # "epoch" =>
        /\ \A i \in 1..batch.parts :
               LET n == batch.begin + i - 1
               IN n \in DOMAIN log /\ log[n].kind = "part" /\ log[n].number = i - 1
        /\ batch.at \in {"logged", "moving"} =>
               batch.parts = Len(batch.changes) - batch.made

(* While changes are made, the intent is whole, and has all that are left. *)
WholeInv ==
    batch.at = "making" =>
        /\ batch.parts > 0 /\ log[batch.begin + batch.parts - 1].last
        /\ batch.parts >= Len(batch.changes) - batch.made

(* A client waits for its own record.                                      *)
WaitInv ==
    \A c \in Clients :
        /\ Writes(c, "waiting") =>
               /\ call[c].lsn \in DOMAIN log
               /\ log[call[c].lsn].kind = "put"
               /\ log[call[c].lsn].change = [key |-> call[c].key, value |-> call[c].value]
        /\ Batching(c, "waiting") =>
               call[c].lsn \in DOMAIN log /\ log[call[c].lsn].kind = "end"

(* A checkpoint gives something up, which the log has.                     *)
CheckpointInv == checkpoint # 0 => redoStart < checkpoint /\ checkpoint <= Len(log)

(* The version is odd while changes are shown.                             *)
VersionInv == (version % 2 = 1) <=> (shown # <<>>)

(* Nothing that memory had outlives a crash, and what a call or a record   *)
(* does not use is at its default.                                         *)
GoneInv ==
    /\ phase = "down" =>
           /\ \A c \in Clients : call[c] = Idle
           /\ gate = Nobody /\ batch = NoBatch /\ shown = <<>> /\ version = 0
           /\ pin = 0 /\ checkpoint = 0 /\ leaf = EmptyLeaves /\ epoch = 0
    /\ \A c \in Clients : Reads(c, "read") => call[c].version = 0
    /\ \A n \in DOMAIN log :
           /\ log[n].kind # "part" => log[n].number = 0 /\ ~log[n].last
           /\ log[n].kind = "end" => log[n].change = NoChange

(* Liveness: every call is answered, unless a crash comes between, and     *)
(* recovery ends.                                                          *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == phase # "up" ~> phase = "up"

-----------------------------------------------------------------------------
(* The contract.  A batch takes effect when it is shown.  If its intent is *)
(* durable before, a crash in between makes it take effect.                *)

DoneEnd == IF durable < EffectEnd THEN durable ELSE EffectEnd

ChangesAsMap(changes) ==
    [k \in {changes[i].key : i \in DOMAIN changes} |->
        changes[CHOOSE i \in DOMAIN changes : changes[i].key = k].value]

IsDone(c) ==
    \/ Writes(c, "waiting") \/ Batching(c, "waiting")
    \/ Batching(c, "writing") /\ batch.at \notin {"logging", "logged"}

(* The client that waits for an effect to be durable.                      *)
WriterOf(effect) ==
    LET these == {c \in Clients :
            \/ Writes(c, "waiting") /\ call[c].lsn = effect.lsn
            \/ call[c].op = "batch" /\ IsDone(c) /\ call[c].changes = effect.changes}
    IN IF these = {} THEN Nobody ELSE CHOOSE c \in these : TRUE

AbstractTail ==
    LET IsInTail(effect) == effect.lsn > DoneEnd /\ effect.lsn <= EffectEnd
        some == SelectSeq(effects, IsInTail)
    IN [i \in DOMAIN some |->
           [by |-> WriterOf(some[i]), changes |-> ChangesAsMap(some[i].changes)]]

AbstractCall ==
    [c \in Clients |->
        CASE call[c].op = "get" -> [op |-> "get", key |-> call[c].key, got |-> call[c].got]
          [] call[c].op = "write" ->
               [op |-> "write", changes |-> [k \in {call[c].key} |-> call[c].value],
                done |-> IsDone(c)]
          [] call[c].op = "batch" ->
               [op |-> "write", changes |-> ChangesAsMap(call[c].changes), done |-> IsDone(c)]
          [] OTHER -> call[c]]

(* Without a batch to complete, recovery is one step.                      *)
AbstractPhase ==
    CASE phase = "down" -> "cut" [] phase = "completing" -> "opening" [] OTHER -> phase

Contract == INSTANCE DurableBatches WITH
    base <- MapAfter(DoneEnd), tail <- AbstractTail, call <- AbstractCall,
    phase <- AbstractPhase

THEOREM Spec => Contract!Spec
=============================================================================
