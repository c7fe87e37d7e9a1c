------------------------------- MODULE RedoLog -------------------------------
(***************************************************************************)
(* The redo log of the engine in its two forms.                            *)
(*                                                                         *)
(* B⁻-tree §3.3: in a conventional log, "multiple consecutive redo log     *)
(* records are tightly packed into each 4KB block", so consecutive flushes *)
(* write the last block again, with more records (Fig. 7).  In a sparse    *)
(* log, "whenever the redo log buffer is flushed at a transaction commit,  *)
(* we always pad zeros into the log buffer to make its content 4KB-        *)
(* aligned", so each flush begins with a new block (Fig. 8).  The paper    *)
(* has this for a drive that compresses, and takes a write of 4 KiB to be  *)
(* atomic.  It does not say how a reader tells a block that stays partly   *)
(* empty from one whose last version was lost, and not what a drive does   *)
(* to either log that tears a block between its sectors.  The rules kept:  *)
(*                                                                         *)
(*  1. Every opening begins a new epoch at a fresh block, and the epoch is *)
(*     durable in the superblock before anything is written under it       *)
(*     (EpochInv).                                                         *)
(*  2. A block says whether the log goes on in the next one (`closed`).    *)
(*  3. A block says which blocks before it were not durable when it was    *)
(*     written (`unforced`).  So an end of the log that is legal is told   *)
(*     from one that damage made.                                          *)
(*  4. What recovery reads of the last flush, it writes again; and when    *)
(*     that is durable, it writes an end mark where it has found the log's *)
(*     end.  So what a failure has left on the device is settled, either   *)
(*     way: no later crash makes the log shorter or longer.                *)
(*  5. In the sparse log, no block that has a durable record is ever       *)
(*     written with anything else (OnceInv).  So no crash can tear it.     *)
(*                                                                         *)
(* Left out: pages, and so what a checkpoint writes besides the superblock *)
(* (WalRecovery); the two places of the superblock (CopyOnWrite); batches, *)
(* of which recovery may drop the parts of an intent that is incomplete    *)
(* (WriteBatch); TRIM of blocks that were given up (a trimmed block, like  *)
(* one of an earlier lap, is not part of the log); a device without room,  *)
(* to which the same buffer is written again; the length of a flush.       *)
(***************************************************************************)
EXTENDS RedoState

(* Bounds, for the wrapper.                                                *)
MayAppend(n, len) == TRUE
MayLeave          == TRUE
MayCheckpoint     == TRUE
MayClose          == TRUE
MayFail(n)        == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE
MayRot(n)         == TRUE

Serving == phase = "up" /\ ~poisoned

-----------------------------------------------------------------------------
(* Clients.                                                                *)

CallAppend(c) ==
    /\ Serving
    /\ ~Waits(c)
    /\ \E len \in 1..(2 * Units) :
          /\ MayAppend(asked + 1, len)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "append", record |-> asked + 1, len |-> len, at |-> "called", lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<bufferVars, memoryVars, deviceVars, recoveryVars, observerVars, boundVars>>

Appends(c, step) == call[c].op = "append" /\ call[c].at = step

HasRoom(len) == Next_ + len <= (BlockOf(oldest) + Ring) * Units \/ Bug = "overruns-log"

(* The record gets its place in the buffer, whatever is in flight.         *)
(* engine/src/wal/log.rs, Log::append.                                     *)
AppendRecord(c) ==
    /\ Serving
    /\ Appends(c, "called")
    /\ HasRoom(call[c].len)
    /\ LET lsn == Next_ + call[c].len
       IN /\ buffer' = buffer \o UnitsOf(call[c].record, call[c].len)
          /\ end' = lsn
          /\ call' = [call EXCEPT ![c].at = "waiting", ![c].lsn = lsn]
          /\ history' = Append(history, [record |-> call[c].record, lsn |-> lsn])
    /\ UNCHANGED <<asked, packing, epoch, startsAt, bufferAt, flying, memoryVars, deviceVars>>
    /\ UNCHANGED <<recoveryVars, acked, sure, verdict, boundVars>>

(* Error::LogFull.                                                         *)
RefuseAppend(c) ==
    /\ Serving
    /\ Appends(c, "called")
    /\ ~HasRoom(call[c].len)
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ UNCHANGED <<asked, bufferVars, memoryVars, deviceVars, recoveryVars, observerVars>>
    /\ UNCHANGED boundVars

(* Log::flush_to returns.                                                  *)
Acknowledge(c) ==
    /\ phase = "up"
    /\ Appends(c, "waiting")
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ acked' = Larger(acked, call[c].lsn)
    /\ UNCHANGED <<asked, bufferVars, memoryVars, deviceVars, recoveryVars>>
    /\ UNCHANGED <<history, sure, verdict, boundVars>>

(* A client that asked for less (Durability) does not wait.                *)
Leave(c) ==
    /\ phase = "up"
    /\ MayLeave
    /\ Appends(c, "waiting")
    /\ call[c].lsn > durable
    /\ ~poisoned
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ UNCHANGED <<asked, bufferVars, memoryVars, deviceVars, recoveryVars, observerVars>>
    /\ UNCHANGED boundVars

(* After a failed flush.  Error::Poisoned.                                 *)
FailCall(c) ==
    /\ phase = "up" /\ poisoned
    /\ Waits(c)
    /\ Appends(c, "called") \/ call[c].lsn > durable
    /\ call' = [call EXCEPT ![c] =
           IF Appends(c, "waiting") /\ Bug # "refused-shows" THEN Unknown ELSE Refused]
    /\ UNCHANGED <<asked, bufferVars, memoryVars, deviceVars, recoveryVars, observerVars>>
    /\ UNCHANGED boundVars

-----------------------------------------------------------------------------
(* Group flush.                                                            *)

(* A leader takes everything that was appended, and writes its blocks.     *)
(* The packed log goes on in the last block, which the next flush then     *)
(* writes again; the sparse log goes on in the next block.                 *)
(* Log::take_full, Buffer::continue_after, Log::write_out.                 *)
WriteLog ==
    /\ Serving
    /\ flying = OnGround
    /\ durable < end
    /\ LET blocks == SealedBlocks(epoch, startsAt, packing, bufferAt, buffer)
           places == {Place(index) : index \in DOMAIN blocks}
           used   == Next_ % Units
       IN /\ logDev' = [p \in Places |->
                 IF p \in places
                 THEN Put(logDev[p], blocks[CHOOSE index \in DOMAIN blocks : Place(index) = p])
                 ELSE logDev[p]]
          /\ lost' = [lost EXCEPT !.log = @ \ places]
          /\ bufferAt' = BlockOf(IF packing = "sparse" /\ Bug # "goes-on-in-block"
                                 THEN RoundUp(Next_) ELSE Next_)
          /\ buffer' = IF packing = "packed"
                       THEN SubSeq(buffer, Len(buffer) - used + 1, Len(buffer))
                       ELSE IF Bug = "goes-on-in-block" THEN [i \in 1..used |-> Empty]
                       ELSE <<>>
    /\ flying' = [at |-> bufferAt, to |-> end]
    /\ durable' = IF Bug = "acks-before-flush" THEN end ELSE durable
    /\ UNCHANGED <<clientVars, packing, epoch, startsAt, end, oldest, checkpoint, poisoned>>
    /\ UNCHANGED <<superDev, recoveryVars, observerVars, boundVars>>

(* From now on, a block that was written before this flush is missed if it *)
(* decays.  Log::finish.                                                   *)
CompleteFlush ==
    /\ Serving
    /\ flying # OnGround
    /\ DeviceFlush
    /\ durable' = flying.to
    /\ sure' = Larger(sure, flying.at * Units)
    /\ flying' = OnGround
    /\ UNCHANGED <<clientVars, packing, epoch, startsAt, bufferAt, buffer, end, oldest, checkpoint>>
    /\ UNCHANGED <<poisoned, lost, recoveryVars, history, acked, verdict, boundVars>>

ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ epoch' = 0 /\ startsAt' = 0 /\ bufferAt' = 0 /\ buffer' = <<>> /\ end' = 0
    /\ flying' = OnGround /\ oldest' = 0 /\ checkpoint' = NoCheckpoint /\ poisoned' = FALSE
    /\ found' = <<>>
    /\ UNCHANGED <<asked, packing, acked>>

(* A flush fails, whoever wanted it, and forgets what was written: it may  *)
(* be there after a crash or not, and no later flush changes that (BUGS    *)
(* D5).  A store that is opening gives up.                                 *)
FailFlush ==
    /\ phase \in {"up", "closing"} \/ Recovering
    /\ ~poisoned
    /\ SomethingWritten
    /\ MayFail(crashes)
    /\ lost' = [log |-> lost.log \cup Unflushed(logDev), super |-> lost.super \/ Len(superDev) > 1]
    /\ IF Recovering
       THEN /\ MayRestart(crashes)
            /\ ForgetMemory
            /\ crashes' = crashes + 1
            /\ phase' = "killed"
            /\ UNCHANGED durable
       ELSE /\ poisoned' = (Bug # "retries-failed-flush")
            /\ IF Bug = "retries-failed-flush" /\ flying # OnGround
               THEN durable' = flying.to /\ flying' = OnGround
               ELSE UNCHANGED <<durable, flying>>
            /\ UNCHANGED <<clientVars, packing, epoch, startsAt, bufferAt, buffer, end>>
            /\ UNCHANGED <<oldest, checkpoint, recoveryVars, acked, crashes>>
    /\ UNCHANGED <<logDev, superDev, history, sure, verdict, rotten>>

(* The places of the flush in flight, or of the witness.                   *)
InFlight ==
    IF phase = "closing" THEN {Place(BlockOf(RoundUp(end)))}
    ELSE {Place(index) : index \in flying.at..(BlockOf(RoundUp(flying.to)) - 1)}

(* The write of a flush or witness fails.  Some of its blocks are read as  *)
(* they were before, and still a crash may leave any of them as it was to  *)
(* be.                                                                     *)
FailWrite ==
    /\ \/ Serving /\ flying # OnGround
       \/ phase = "closing" /\ ~poisoned
    /\ MayFail(crashes)
    /\ \E hidden \in SUBSET {p \in InFlight : Len(logDev[p]) > 1} :
          /\ hidden # {}
          /\ logDev' = [p \in Places |->
                 IF p \in hidden THEN Append(logDev[p], logDev[p][Len(logDev[p]) - 1])
                 ELSE logDev[p]]
    /\ lost' = [lost EXCEPT !.log = @ \cup InFlight]
    /\ poisoned' = TRUE
    /\ UNCHANGED <<clientVars, bufferVars, durable, oldest, checkpoint, superDev, recoveryVars>>
    /\ UNCHANGED <<observerVars, boundVars>>

-----------------------------------------------------------------------------
(* Checkpoint.  engine/src/store/checkpoint.rs.                            *)

(* Redo will begin at the log's present end.  Log::begin_checkpoint.       *)
BeginCheckpoint ==
    /\ Serving
    /\ checkpoint.at = "none"
    /\ oldest < end
    /\ MayCheckpoint
    /\ checkpoint' = [at |-> "begun", begin |-> end]
    /\ UNCHANGED <<clientVars, bufferVars, durable, oldest, poisoned, deviceVars, recoveryVars>>
    /\ UNCHANGED <<observerVars, boundVars>>

(* The log is durable up to there, or a crash would leave a redo start     *)
(* that the log does not reach.                                            *)
WriteSuper ==
    /\ Serving
    /\ checkpoint.at = "begun"
    /\ checkpoint.begin <= durable \/ Bug = "super-before-log"
    /\ superDev' = Append(superDev,
           [epoch |-> epoch, redo |-> checkpoint.begin, redoEpoch |-> epoch])
    /\ lost' = [lost EXCEPT !.super = FALSE]
    /\ checkpoint' = [checkpoint EXCEPT !.at = "recorded"]
    /\ oldest' = IF Bug = "frees-before-super" THEN checkpoint.begin ELSE oldest
    /\ UNCHANGED <<clientVars, bufferVars, durable, poisoned, logDev, recoveryVars>>
    /\ UNCHANGED <<observerVars, boundVars>>

(* Log::truncate.                                                          *)
FinishCheckpoint ==
    /\ Serving
    /\ checkpoint.at = "recorded"
    /\ DeviceFlush
    /\ oldest' = checkpoint.begin
    /\ checkpoint' = NoCheckpoint
    /\ UNCHANGED <<clientVars, bufferVars, durable, poisoned, lost, recoveryVars>>
    /\ UNCHANGED <<observerVars, boundVars>>

-----------------------------------------------------------------------------
(* Closing.                                                                *)

(* A store that is closed or dropped in order leaves a witness behind the  *)
(* log's end, if recovery will read the log at all and there is room.  So  *)
(* damage to the last flush is not mistaken for a flush that a crash cut   *)
(* short.  Log::witness.                                                   *)
WriteWitness ==
    /\ Serving
    /\ MayClose
    /\ \A c \in Clients : ~Waits(c)
    /\ flying = OnGround /\ checkpoint.at = "none"
    /\ durable = end /\ oldest < end /\ startsAt * Units < end
    /\ LET index == BlockOf(RoundUp(end))
       IN /\ index < BlockOf(oldest) + Ring
          /\ IF Bug = "leaves-no-witness" THEN UNCHANGED <<logDev, lost>>
             ELSE /\ logDev' = [logDev EXCEPT ![Place(index)] = Put(@, Witness(epoch, index))]
                  /\ lost' = [lost EXCEPT !.log = @ \ {Place(index)}]
    /\ phase' = "closing"
    /\ UNCHANGED <<clientVars, bufferVars, memoryVars, superDev, found, observerVars, boundVars>>

Close ==
    /\ phase = "closing" /\ ~poisoned
    /\ DeviceFlush
    /\ ForgetMemory
    /\ sure' = durable
    /\ phase' = "killed"
    /\ UNCHANGED <<durable, lost, history, verdict, boundVars>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

(* The power fails, at any time, also during recovery.                     *)
Crash ==
    /\ MayCrash(crashes)
    /\ ~Down
    /\ \E blocks \in Left, super \in Survivors(superDev) :
          LET walk == ReadLog(blocks, super)
          IN /\ logDev' = AllDurably(blocks)
             /\ superDev' = Durably(super)
             /\ history' = HistoryRead(super, walk)
             /\ durable' = walk.end
             /\ verdict' = Judge(blocks, super)
    /\ lost' = NothingLost
    /\ ForgetMemory
    /\ crashes' = crashes + 1
    /\ phase' = "cut"
    /\ UNCHANGED <<sure, rotten>>

(* The process dies, and the device lives on.  What can be read may still  *)
(* be lost in a crash, and what cannot be read may still be there after    *)
(* one.                                                                    *)
Restart ==
    /\ MayRestart(crashes)
    /\ ~Down
    /\ verdict' = Judge(NewestOf(logDev), Newest(superDev))
    /\ ForgetMemory
    /\ crashes' = crashes + 1
    /\ phase' = "killed"
    /\ UNCHANGED <<durable, deviceVars, history, sure, rotten>>

(* A block decays while nobody looks.                                      *)
Rot ==
    /\ phase \in {"cut", "killed"}
    /\ MayRot(rotten)
    /\ \E p \in Places :
          /\ Len(logDev[p]) = 1
          /\ Newest(logDev[p]) # Zeros
          /\ logDev' = [logDev EXCEPT ![p] = Durably(Zeros)]
    /\ rotten' = rotten + 1
    /\ UNCHANGED <<clientVars, bufferVars, memoryVars, superDev, lost, recoveryVars>>
    /\ UNCHANGED <<observerVars, crashes>>

(* The log is read from the superblock's redo start on, up to its end.     *)
(* The blocks of the last flush are written again, and so is the           *)
(* superblock: a failed flush may have left them.  Everything before was   *)
(* durable when that flush began.  Log::scan_end, Superblock::rewrite,     *)
(* Log::create, Log::keep_from.                                            *)
OpenLog ==
    /\ phase \in {"cut", "killed"}
    /\ LET blocks == NewestOf(logDev)
           super  == Newest(superDev)
           walk   == ReadLog(blocks, super)
           start  == RoundUp(walk.end)
           again  == {Place(index) : index \in walk.flush..(BlockOf(start) - 1)}
       IN IF Damaged(blocks, walk)
          THEN /\ phase' = "damaged"
               /\ verdict' = IF rotten = 0 THEN "damaged" ELSE verdict
               /\ UNCHANGED <<packing, epoch, startsAt, bufferAt, end, oldest, found>>
               /\ UNCHANGED lost
          ELSE /\ phase' = "read"
               /\ verdict' = JudgeRead(walk)
               /\ found' = walk.found
               /\ packing' \in Packings
               /\ epoch' = IF Bug = "keeps-epoch" THEN super.epoch ELSE super.epoch + 1
               /\ startsAt' = BlockOf(start)
               /\ bufferAt' = BlockOf(start)
               /\ end' = start
               /\ oldest' = super.redo
               /\ lost' = IF Bug = "trusts-what-it-reads" THEN lost
                          ELSE [log |-> lost.log \ again, super |-> FALSE]
    /\ UNCHANGED <<clientVars, buffer, flying, durable, checkpoint, poisoned, logDev, superDev>>
    /\ UNCHANGED <<history, acked, sure, boundVars>>

FlushAgain ==
    /\ phase = "read"
    /\ DeviceFlush
    /\ durable' = IF found = <<>> THEN oldest ELSE found[Len(found)].lsn
    /\ phase' = "durable"
    /\ UNCHANGED <<clientVars, bufferVars, oldest, checkpoint, poisoned, lost, found>>
    /\ UNCHANGED <<observerVars, boundVars>>

(* What a failed write has left behind the end is overwritten by an end    *)
(* mark.  A witness may stay there: a log that has failed gets none.  By   *)
(* now the superblock is durable: if the log fills its ring, the one       *)
(* before needs the block.  Log::mark_end.                                 *)
MarkEnd ==
    /\ phase = IF Bug = "marks-end-early" THEN "read" ELSE "durable"
    /\ LET super == Newest(superDev)
           index == BlockOf(end)
           walk  == ReadLog(NewestOf(logDev), super)
           mark  == EndMark(epoch, index)
       IN IF \/ index = BlockOf(oldest) + Ring
             \/ Newest(logDev[Place(index)]) = Witness(walk.epoch, index)
             \/ Bug = "trusts-the-end"
          THEN UNCHANGED <<logDev, lost>>
          ELSE /\ logDev' = [logDev EXCEPT ![Place(index)] = Put(@, mark)]
               /\ lost' = [lost EXCEPT !.log = @ \ {Place(index)}]
    /\ phase' = "marked"
    /\ UNCHANGED <<clientVars, bufferVars, memoryVars, superDev, found, observerVars, boundVars>>

(* From now on, the records that were read are all there are.              *)
FlushMark ==
    /\ phase = "marked"
    /\ DeviceFlush
    /\ durable' = end
    /\ history' = UpTo(history, oldest) \o found
    /\ phase' = "settled"
    /\ UNCHANGED <<clientVars, bufferVars, oldest, checkpoint, poisoned, lost, found>>
    /\ UNCHANGED <<acked, sure, verdict, boundVars>>

(* The new epoch is recorded.  Redo then begins at its start, or, if a     *)
(* batch has to be completed first, still where it did.                    *)
(* Checkpointer::finish, Checkpointer::write_epoch.                        *)
RecordEpoch ==
    /\ phase = "settled"
    /\ \E super \in {[epoch |-> epoch, redo |-> end, redoEpoch |-> epoch],
                     [Newest(superDev) EXCEPT !.epoch = epoch]} :
          superDev' = IF Bug = "records-no-epoch" THEN superDev ELSE Append(superDev, super)
    /\ lost' = [lost EXCEPT !.super = FALSE]
    /\ phase' = "recorded"
    /\ UNCHANGED <<clientVars, bufferVars, memoryVars, logDev, found, observerVars, boundVars>>

Open ==
    /\ phase = "recorded"
    /\ DeviceFlush
    /\ oldest' = Newest(superDev).redo
    /\ found' = <<>>
    /\ phase' = "up"
    /\ UNCHANGED <<clientVars, bufferVars, durable, checkpoint, poisoned, lost>>
    /\ UNCHANGED <<observerVars, boundVars>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallAppend(c) \/ AppendRecord(c) \/ RefuseAppend(c)
          \/ Acknowledge(c) \/ Leave(c) \/ FailCall(c)
    \/ WriteLog \/ CompleteFlush \/ FailFlush \/ FailWrite
    \/ BeginCheckpoint \/ WriteSuper \/ FinishCheckpoint
    \/ WriteWitness \/ Close
    \/ Crash \/ Restart \/ Rot
    \/ OpenLog \/ FlushAgain \/ MarkEnd \/ FlushMark \/ RecordEpoch \/ Open

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered, checkpoints end, and so does    *)
(* recovery.                                                               *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(AppendRecord(c) \/ RefuseAppend(c))
        /\ WF_vars(Acknowledge(c)) /\ WF_vars(FailCall(c))

FlushFairness == WF_vars(WriteLog) /\ WF_vars(CompleteFlush)

CheckpointFairness == WF_vars(WriteSuper \/ FinishCheckpoint) /\ WF_vars(Close)

RecoveryFairness == WF_vars(OpenLog \/ FlushAgain \/ MarkEnd \/ FlushMark \/ RecordEpoch \/ Open)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ FlushFairness /\ CheckpointFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* Nothing is acknowledged that is not durable.                            *)
AckInv == (phase = "up" /\ rotten = 0) => acked <= durable

(* No crash loses a durable record ...                                     *)
KeptInv == verdict # "lost"

(* ... or leaves anything but a prefix of the records, in order ...        *)
PrefixInv == verdict # "mixed"

(* ... and recovery reads what the crash left ...                          *)
StableInv == verdict # "changed"

(* ... and never takes it for damage.                                      *)
OpensInv == verdict # "damaged"

(* A block that decays is missed, unless it is of the last flush.          *)
NoticedInv == verdict # "silent"

(* Whichever superblock a crash leaves has the epoch that is written.      *)
EpochInv == phase = "up" => \A super \in Survivors(superDev) : super.epoch = epoch

(* Wherever redo may begin, the log from there on has not been given up.   *)
LogKeptInv == phase = "up" => \A super \in Survivors(superDev) : oldest <= super.redo

(* The buffer continues what is written, and has all that is not.          *)
BufferInv ==
    phase = "up" =>
        /\ durable <= end
        /\ Len(history) > 0 /\ end > startsAt * Units => history[Len(history)].lsn = end
        /\ buffer # <<>> => Len(buffer) > 0 /\ Next_ <= (BlockOf(oldest) + Ring) * Units

(* In the sparse log, blocks that have durable records are not written.    *)
OnceInv ==
    phase = "up" /\ packing = "sparse" /\ oldest < durable =>
        \A index \in BlockOf(oldest)..BlockOf(durable - 1) :
            Len(logDev[Place(index)]) = 1 \/ Place(index) \in lost.log

(* Nothing that memory had outlives its process.                           *)
GoneInv ==
    phase \in {"cut", "killed"} =>
        /\ \A c \in Clients : call[c] = Idle
        /\ epoch = 0 /\ startsAt = 0 /\ bufferAt = 0 /\ buffer = <<>> /\ end = 0
        /\ flying = OnGround /\ oldest = 0 /\ checkpoint = NoCheckpoint /\ ~poisoned
        /\ found = <<>>

(* A power cut leaves one version of each block.                           *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(logDev') = {} /\ Len(superDev') = 1]_vars

(* After a failed flush or write, what was written is in doubt, and until  *)
(* the next start nothing happens but that calls end.                      *)
PoisonedProp ==
    [][/\ poisoned /\ crashes' = crashes =>
             UNCHANGED <<asked, bufferVars, memoryVars, deviceVars, recoveryVars>>
       /\ ~poisoned /\ poisoned' => lost'.log # {} \/ lost'.super]_vars

(* A call is refused only if it has had no effect: there was no room for   *)
(* it, or the store had failed.  And nobody is told that a record is in    *)
(* doubt that is durable, or was not appended.                             *)
RefuseProp ==
    [][crashes' = crashes => \A c \in Clients : Waits(c) =>
           /\ call'[c] = Refused =>
                 Appends(c, "called") /\ (poisoned \/ ~HasRoom(call[c].len))
           /\ call'[c] = Unknown => Appends(c, "waiting") /\ call[c].lsn > durable]_vars

(* While the store is up, the log only grows, and more of it becomes       *)
(* durable, and is given up.                                               *)
OnwardProp ==
    [][phase = "up" /\ phase' = "up" =>
           /\ end' >= end /\ durable' >= durable /\ oldest' >= oldest
           /\ Newest(superDev').redo >= Newest(superDev).redo]_vars

(* Only a store that runs is stopped, and it leaves a witness only if      *)
(* recovery will read its log.                                             *)
EconomyProp ==
    [][/\ crashes' # crashes => ~Down
       /\ phase = "up" /\ phase' = "closing" => oldest < end]_vars

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == phase \in {"cut", "killed"} \/ Recovering ~> phase \in {"up", "damaged"}

CheckpointedProp ==
    checkpoint.at # "none" ~> checkpoint.at = "none" \/ poisoned

-----------------------------------------------------------------------------
(* The contract.                                                           *)

WriterOf(n) ==
    IF \E c \in Clients : Appends(c, "waiting") /\ call[c].lsn = history[n].lsn
    THEN CHOOSE c \in Clients : Appends(c, "waiting") /\ call[c].lsn = history[n].lsn
    ELSE "nobody"

Kept == CountUpTo(history, durable)

AbstractKept == [i \in 1..Kept |-> history[i].record]

AbstractTail ==
    [i \in 1..(Len(history) - Kept) |->
        [by |-> WriterOf(Kept + i), record |-> history[Kept + i].record]]

(* Redo begins at the latest there.                                        *)
AbstractGiven ==
    LET most == CHOOSE redo \in {super.redo : super \in Survivors(superDev)} :
                    \A super \in Survivors(superDev) : super.redo <= redo
    IN CountUpTo(history, most)

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "append"
        THEN [op |-> "append", record |-> call[c].record, done |-> call[c].at # "called"]
        ELSE call[c]]

AbstractPhase ==
    IF Recovering THEN "opening"
    ELSE IF phase = "closing" THEN "up"
    ELSE IF phase = "damaged" THEN "killed"
    ELSE phase

AbstractSeen == [i \in 1..Len(found) |-> found[i].record]

Contract == INSTANCE DurableLog WITH
    kept <- AbstractKept, tail <- AbstractTail, given <- AbstractGiven, call <- AbstractCall,
    phase <- AbstractPhase, seen <- AbstractSeen

THEOREM Spec => Contract!Spec
=============================================================================
