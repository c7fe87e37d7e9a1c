------------------------------ MODULE Overflow ------------------------------
(***************************************************************************)
(* Long values on blocks of their own, under the redo log.  No paper has   *)
(* it: engine/src/overflow/mod.rs is what is modelled, and its four        *)
(* promises are invariants here:                                           *)
(*                                                                         *)
(*  1. A durable record names only durable values (ForcedInv).             *)
(*  2. Values that a recovery may name are not overwritten (KeptInv).      *)
(*  3. What no record names is free, and nothing else (LeakInv, FreeInv,   *)
(*     OneOwnerInv).                                                       *)
(*  4. Redo overwrites no value (KeptInv, during redo).                    *)
(*                                                                         *)
(* Readers hold nothing while they read blocks, so blocks can be reused    *)
(* without waiting for them.  Still, readers never return another value's  *)
(* bytes (ReaderInv), and never report an undamaged value as damaged       *)
(* (DamagedInv).                                                           *)
(*                                                                         *)
(* Left out: runs (a pointer names the first run of blocks, and that the   *)
(* next; here it names all); several keys on a leaf, and so splits and     *)
(* merges, which copy pointers like any value; leaves that leave memory,   *)
(* and mini-pages; the log's blocks, its epochs and the checkpoint's steps *)
(* (WalRecovery); flushes that fail (there, and in PageShadowing); marks,  *)
(* which say which leaves recovery must read (all of them, here).          *)
(***************************************************************************)
EXTENDS OverflowState

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayMove(b)        == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE

-----------------------------------------------------------------------------
(* Writers.                                                                *)

(* engine/src/store.rs, Kv::put, Kv::delete.                               *)
CallWrite(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called",
                  to |-> Nowhere, lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<named, logVars, memoryVars, deviceVars, recoveryVars>>

Writes(c, step) == call[c].op = "write" /\ call[c].at = step

SizeOf(value) == IF value = Absent THEN 0 ELSE Size(value)

RECURSIVE Ascending(_)
Ascending(blocks) ==
    IF blocks = {} THEN <<>>
    ELSE LET first == CHOOSE b \in blocks : \A other \in blocks : b <= other
         IN <<first>> \o Ascending(blocks \ {first})

(* The blocks of a long value are written, to any that are free; in no     *)
(* particular order, since the device has a cache.  If there are too few,  *)
(* the put waits.  Pager::write_value.                                     *)
WriteBlocks(c) ==
    /\ phase = "up"
    /\ Writes(c, "called")
    /\ SizeOf(call[c].value) > 0
    /\ \E places \in SUBSET free :
          /\ Cardinality(places) = SizeOf(call[c].value)
          /\ LET pointer == [name |-> named + 1, blocks |-> Ascending(places)]
                 entry   == Entry(call[c].value, pointer)
             IN /\ call' = [call EXCEPT ![c].at = "stored", ![c].to = pointer]
                /\ blockDev' = [b \in Blocks |->
                       IF b \in places
                       THEN Append(blockDev[b],
                                   Part(entry, CHOOSE i \in DOMAIN pointer.blocks :
                                                   pointer.blocks[i] = b))
                       ELSE blockDev[b]]
          /\ free' = IF Bug = "takes-late" THEN free ELSE free \ places
    /\ named' = named + 1
    /\ UNCHANGED <<asked, logVars, leaf, retired, leafDev, recoveryVars>>

(* Log record and change of the leaf, under its latch.  The old pointer is *)
(* retired.  BTree::try_put, Pager::retire_value.                          *)
AppendRecord(c) ==
    /\ phase = "up"
    /\ Writes(c, "stored") \/ (Writes(c, "called") /\ SizeOf(call[c].value) = 0)
    /\ LET k     == call[c].key
           n     == Len(log) + 1
           entry == Entry(call[c].value, call[c].to)
           old   == leaf[k].entry.at
       IN /\ log' = Append(log, [key |-> k, entry |-> entry])
          /\ leaf' = [leaf EXCEPT ![k] = [entry |-> entry, lsn |-> n]]
          /\ retired' = IF IsLong(old) THEN retired \cup {[lsn |-> n, at |-> old]} ELSE retired
          /\ call' = [call EXCEPT ![c].at = "waiting", ![c].lsn = n]
          /\ free' = IF Bug = "takes-late" THEN free \ BlocksOf(call[c].to) ELSE free
    /\ UNCHANGED <<asked, named, written, durable, forcing, redoStart, deviceVars, recoveryVars>>

Acknowledge(c) ==
    /\ Writes(c, "waiting")
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

(* Once the record that replaced it is durable, the blocks of a value are  *)
(* trimmed, and free.  A reader that still reads them will notice. Until   *)
(* the trim is flushed, a crash may leave the old blocks.                  *)
(* Pager::free_values.                                                     *)
FreeValue ==
    /\ phase = "up"
    /\ \E r \in retired :
          /\ r.lsn <= durable \/ Bug = "freed-at-once"
          /\ blockDev' = [b \in Blocks |->
                 IF b \in BlocksOf(r.at) /\ Discards = "act" THEN Append(blockDev[b], NoPart)
                 ELSE blockDev[b]]
          /\ free' = free \cup BlocksOf(r.at)
          /\ retired' = retired \ {r}
    /\ UNCHANGED <<call, asked, named, logVars, leaf, leafDev, recoveryVars>>

-----------------------------------------------------------------------------
(* Readers.                                                                *)

Reads(c, step) == call[c].op = "get" /\ call[c].at = step

CalledGet(k) ==
    [op |-> "get", key |-> k, at |-> "called", from |-> Empty, parts |-> 0, got |-> Pending]

CallGet(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = CalledGet(k)]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

(* The record is copied under the leaf's latch, which is then released.    *)
(* engine/src/store.rs, Store::get.                                        *)
CopyRecord(c) ==
    /\ phase = "up"
    /\ Reads(c, "called")
    /\ LET entry == leaf[call[c].key].entry
       IN call' = [call EXCEPT ![c].at = IF IsLong(entry.at) THEN "reading" ELSE "read",
                               ![c].from = entry, ![c].got = entry.value]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

(* One block is read.  engine/src/overflow/values.rs, read_run.            *)
ReadBlock(c) ==
    /\ phase = "up"
    /\ Reads(c, "reading")
    /\ LET pointer == call[c].from.at
           i       == call[c].parts + 1
           block   == Newest(blockDev[pointer.blocks[i]])
       IN IF \/ SaysItIs(block, pointer, i)
             \/ Bug = "block-unchecked"
             \/ Bug = "only-first-checked" /\ i > 1
          THEN call' = [call EXCEPT
                   ![c].at = IF i = Len(pointer.blocks) THEN "read" ELSE "reading",
                   ![c].parts = i,
                   ![c].got = IF block.value = call[c].from.value THEN @ ELSE block.value]
          ELSE call' = [call EXCEPT ![c].at = "again", ![c].got = Pending]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

(* A block does not belong to the value: if the record still has the       *)
(* pointer, it was never retired, since no two values have the same name,  *)
(* and so the value is damaged.  Otherwise the get restarts.               *)
LookAgain(c) ==
    /\ phase = "up"
    /\ Reads(c, "again")
    /\ IF leaf[call[c].key].entry.at = call[c].from.at \/ Bug = "tells-at-once"
       THEN call' = [call EXCEPT ![c].at = "damaged"]
       ELSE call' = [call EXCEPT ![c] = CalledGet(call[c].key)]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ Reads(c, "read") \/ Reads(c, "damaged")
    /\ call' = [call EXCEPT ![c] = IF Reads(c, "read") THEN Idle ELSE Refused]
    /\ UNCHANGED <<asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

-----------------------------------------------------------------------------
(* The log's flush: device flush, log blocks, device flush.                *)

DeviceFlush ==
    /\ leafDev' = Flushed(leafDev, {})
    /\ blockDev' = Flushed(blockDev, {})

(* The values named by the records appended so far become durable.  The    *)
(* engine omits the flush if no value was written since the last one.      *)
(* Volume::flush_before_log.                                               *)
ForceValues ==
    /\ phase = "up"
    /\ forcing = 0 /\ written = durable /\ durable < Len(log)
    /\ forcing' = Len(log)
    /\ IF Bug = "not-flushed-before-log" THEN UNCHANGED deviceVars ELSE DeviceFlush
    /\ UNCHANGED <<call, asked, named, log, written, durable, redoStart, memoryVars, recoveryVars>>

(* Their blocks of the log are written, and no later ones.  From now on a  *)
(* crash may keep some of these records, the first ones.  Log::write_out.  *)
WriteLog ==
    /\ phase = "up"
    /\ forcing # 0
    /\ written' = IF Bug = "writes-what-came-later" THEN Len(log) ELSE forcing
    /\ forcing' = 0
    /\ UNCHANGED <<call, asked, named, log, durable, redoStart>>
    /\ UNCHANGED <<memoryVars, deviceVars, recoveryVars>>

(* Log::finish.                                                            *)
FlushLog ==
    /\ phase = "up"
    /\ durable < written
    /\ durable' = written
    /\ DeviceFlush
    /\ UNCHANGED <<call, asked, named, log, written, forcing, redoStart, memoryVars, recoveryVars>>

-----------------------------------------------------------------------------
(* Leaves and checkpoint.                                                  *)

Stored(k) == Newest(leafDev[k])

(* A dirty leaf is written, once the log is durable up to its last change. *)
(* With it goes its pointer.  Pager::write_picked.                         *)
WriteBack(k) ==
    /\ Stored(k).lsn # leaf[k].lsn
    /\ leaf[k].lsn <= durable \/ Bug = "page-before-log"
    /\ leafDev' = [leafDev EXCEPT ![k] = Append(@, leaf[k])]
    /\ UNCHANGED <<call, asked, named, logVars, memoryVars, blockDev, recoveryVars>>

(* Where redo may begin: before the first change that no leaf on the       *)
(* device has.                                                             *)
Swept ==
    LET missing == {n \in (redoStart + 1)..durable : Stored(log[n].key).lsn < n}
    IN IF missing = {} THEN durable ELSE (CHOOSE n \in missing : \A m \in missing : n <= m) - 1

(* The device is flushed, then the redo start recorded: the log before it  *)
(* is given up, and with it the record of the leaves' old pointers.        *)
(* engine/src/checkpoint.rs.                                               *)
Checkpoint ==
    /\ phase = "up"
    /\ redoStart < Swept
    /\ redoStart' = Swept
    /\ IF Bug = "checkpoint-skips-flush" THEN UNCHANGED deviceVars ELSE DeviceFlush
    /\ UNCHANGED <<call, asked, named, log, written, durable, forcing, memoryVars, recoveryVars>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

(* Recovery begins in the step that ends a life.                           *)
Recovering == phase # "up"

(* Memory is lost, and with it the list of free blocks.                    *)
ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ forcing' = 0 /\ free' = {} /\ retired' = {}
    /\ redone' = redoStart
    /\ named' = IF Bug = "names-again" THEN 0 ELSE named
    /\ crashes' = crashes + 1
    /\ UNCHANGED <<asked, redoStart>>

(* The power fails, at any time, also during recovery.  Each block is left *)
(* in any of its versions, independently of the others: so a value may     *)
(* survive in part.  Of the log records being written, any prefix          *)
(* survives.                                                               *)
Crash ==
    /\ MayCrash(crashes)
    /\ \E n \in durable..written :
          /\ log' = SubSeq(log, 1, n)
          /\ durable' = n /\ written' = n
    /\ \E leaves \in AfterCrash(leafDev), blocks \in AfterCrash(blockDev) :
          /\ leafDev' = AllDurably(leaves)
          /\ blockDev' = AllDurably(blocks)
          /\ leaf' = leaves
    /\ phase' = "cut"
    /\ ForgetMemory

(* The process dies and is restarted, and the device and its cache live    *)
(* on: it reads the newest versions.  The log ends anywhere in what was    *)
(* being written.  Before anything builds on what is read, it is flushed.  *)
(* Store::open.                                                            *)
Restart ==
    /\ MayRestart(crashes)
    /\ \E n \in durable..written :
          /\ log' = SubSeq(log, 1, n)
          /\ written' = n
          /\ durable' = IF Bug = "trusts-what-it-reads" THEN durable ELSE n
    /\ IF Bug = "trusts-what-it-reads" THEN UNCHANGED deviceVars ELSE DeviceFlush
    /\ leaf' = [k \in Keys |-> Stored(k)]
    /\ phase' = "killed"
    /\ ForgetMemory

(* A record is redone, unless the leaf has it already.  That needs no      *)
(* block of a value.  Until redo ends, a leaf may have a pointer that is   *)
(* dead. engine/src/recovery.rs, Redo::take.                               *)
RedoRecord ==
    /\ Recovering
    /\ redone < Len(log)
    /\ LET n == redone + 1
           k == log[n].key
       IN leaf' = IF leaf[k].lsn < n
                  THEN [leaf EXCEPT ![k] = [entry |-> log[n].entry, lsn |-> n]] ELSE leaf
    /\ redone' = redone + 1
    /\ UNCHANGED <<call, asked, named, logVars, free, retired, deviceVars, phase, crashes>>

(* The values that redo will end with, which a first pass over the log     *)
(* finds: those named by the last record of a key, and those named by a    *)
(* leaf whose key the rest of the log does not mention.  Seen::hold_live.  *)
Held ==
    IF Bug = "redo-moves-over" THEN NamedBy(leaf)
    ELSE NamedBy([k \in Keys |-> RedoFrom(k, leaf[k], redone + 1)])

(* Redo writes a page to any other place: copy-on-write to a free one and, *)
(* if a page's name is its place, the place of a page that died before the *)
(* place was freed again.  Before recovery ends, the page moves on or      *)
(* dies.                                                                   *)
RedoPage(b) ==
    /\ MayMove(b)
    /\ Recovering
    /\ b \notin Held
    /\ Newest(blockDev[b]) # NoPart
    /\ blockDev' = [blockDev EXCEPT ![b] = Append(@, NoPart)]
    /\ UNCHANGED <<call, asked, named, logVars, memoryVars, leafDev, recoveryVars>>

(* The leaves are read: the blocks that they name are taken, all others    *)
(* are free.  engine/src/overflow/recover.rs, Taken.                       *)
FinishRedo ==
    /\ Recovering
    /\ redone = Len(log) \/ Bug = "stops-redo-early"
    /\ free' = CASE Bug = "takes-redone-only" ->
                      Blocks \ UNION {BlocksOf(log[n].entry.at) : n \in (redoStart + 1)..Len(log)}
                 [] Bug = "takes-what-looks-so" -> {b \in Blocks : Newest(blockDev[b]) = NoPart}
                 [] OTHER -> Blocks \ NamedBy(leaf)
    /\ phase' = "up" /\ redone' = 0
    /\ UNCHANGED <<call, asked, named, logVars, leaf, retired, deviceVars, crashes>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallWrite(c) \/ WriteBlocks(c) \/ AppendRecord(c) \/ Acknowledge(c)
          \/ CallGet(c) \/ CopyRecord(c) \/ ReadBlock(c) \/ LookAgain(c) \/ AnswerGet(c)
    \/ FreeValue
    \/ ForceValues \/ WriteLog \/ FlushLog
    \/ \E k \in Keys : WriteBack(k)
    \/ Checkpoint
    \/ Crash \/ Restart \/ RedoRecord \/ FinishRedo
    \/ \E b \in Blocks : RedoPage(b)

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and recovery ends: every step    *)
(* except the optional ones.                                               *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(WriteBlocks(c)) /\ WF_vars(AppendRecord(c)) /\ WF_vars(Acknowledge(c))
        /\ WF_vars(CopyRecord(c) \/ ReadBlock(c) \/ LookAgain(c) \/ AnswerGet(c))

LogFairness == WF_vars(ForceValues) /\ WF_vars(WriteLog) /\ WF_vars(FlushLog)

FreeFairness == WF_vars(FreeValue)

RecoveryFairness == WF_vars(RedoRecord) /\ WF_vars(FinishRedo)

FairSpec == Spec /\ ClientFairness /\ LogFairness /\ FreeFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a record that is not durable still waits.                 *)
AckInv ==
    \A n \in (durable + 1)..Len(log) :
        \E c \in Clients : Writes(c, "waiting") /\ call[c].lsn = n

(* What a recovery may end with is on the medium, whole: a record that a   *)
(* crash may keep names only durable values ...                            *)
ForcedInv ==
    \A entry \in MayEndWith : \A i \in DOMAIN entry.at.blocks :
        Head(blockDev[entry.at.blocks[i]]) = Part(entry, i)

(* ... and neither that, nor what a leaf names, is overwritten.            *)
Live == MayEndWith \cup (IF phase = "up" THEN {leaf[k].entry : k \in Keys} ELSE {})

KeptInv ==
    \A entry \in Live : \A i \in DOMAIN entry.at.blocks :
        Newest(blockDev[entry.at.blocks[i]]) = Part(entry, i)

(* The pointers whose blocks are not free: those that leaves have, those   *)
(* that a crash may go back to, and those of puts under way.               *)
InUse ==
    {leaf[k].entry.at : k \in Keys}
    \cup {entry.at : entry \in MayEndWith}
    \cup {call[c].to : c \in {d \in Clients : Writes(d, "stored")}}

(* No block belongs to two values.                                         *)
OneOwnerInv ==
    phase = "up" => \A p, q \in InUse : p # q => BlocksOf(p) \cap BlocksOf(q) = {}

(* No block that a leaf or a recovery may name is free.                    *)
FreeInv ==
    /\ free \cap NamedBy(leaf) = {}
    /\ \A entry \in MayEndWith : free \cap BlocksOf(entry.at) = {}

(* A block that is not free belongs to a value, or will be freed.          *)
LeakInv ==
    phase = "up" =>
        Blocks = free \cup UNION {BlocksOf(p) : p \in InUse \cup {r.at : r \in retired}}

(* What is freed is trimmed.  A recovery frees without that.               *)
TrimmedInv ==
    Discards = "act" /\ phase = "up" /\ crashes = 0 =>
        \A b \in free : Newest(blockDev[b]) = NoPart

(* A value has as many blocks as it needs, and a deletion none; 0 names    *)
(* nothing.  Only what has blocks is retired.                              *)
PointerInv ==
    /\ \A n \in DOMAIN log :
        LET entry == log[n].entry
        IN /\ Len(entry.at.blocks) = IF entry.value = Absent THEN 0 ELSE Size(entry.value)
           /\ IsLong(entry.at) => entry.at.name \in 1..named
    /\ \A c \in Clients : Writes(c, "stored") => IsLong(call[c].to)
    /\ \A r \in retired : IsLong(r.at)

(* A get has the bytes of the value that it was promised, all of them ...  *)
ReaderInv ==
    \A c \in Clients :
        /\ Reads(c, "reading") \/ Reads(c, "read") => call[c].got = call[c].from.value
        /\ Reads(c, "read") => call[c].parts = Len(call[c].from.at.blocks)

(* ... and none is told that a value is damaged: nothing decays here.      *)
DamagedInv == \A c \in Clients : ~Reads(c, "damaged") /\ call[c] # Refused

(* No leaf on the device overtakes its log record.                         *)
WalRuleInv == \A k \in Keys : \A image \in Survivors(leafDev[k]) : image.lsn <= durable

(* Memory is what the log describes.                                       *)
MemoryInv == phase = "up" => \A k \in Keys : leaf[k].entry = EntryAt(k, Len(log))

(* Whatever a crash leaves of a leaf has all changes before the redo       *)
(* start.                                                                  *)
RedoStartInv ==
    \A k \in Keys : \A image \in Survivors(leafDev[k]) :
        \A n \in (image.lsn + 1)..redoStart : log[n].key # k

(* A power cut leaves one version of each block, of which no other cut     *)
(* leaves another.                                                         *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(leafDev') = {} /\ Unflushed(blockDev') = {}]_vars

(* But for a crash, no leaf goes back, and the redo start moves only       *)
(* forward, while the store is up.                                         *)
OnwardProp ==
    [][crashes' = crashes =>
           /\ \A k \in Keys : leaf'[k].lsn >= leaf[k].lsn
           /\ redoStart' # redoStart => phase = "up" /\ redoStart' > redoStart]_vars

(* Nothing is done for nothing: no place is written that has the same, and *)
(* the device is flushed for more of the log, or to give some of it up.    *)
EconomyProp ==
    [][crashes' = crashes =>
           /\ \A k \in Keys :
                 Len(leafDev'[k]) > Len(leafDev[k]) => Newest(leafDev'[k]) # Newest(leafDev[k])
           /\ \A b \in Blocks :
                 Len(blockDev'[b]) > Len(blockDev[b]) => Newest(blockDev'[b]) # Newest(blockDev[b])
           /\ Unflushed(leafDev) \cup Unflushed(blockDev) # {}
              /\ Unflushed(leafDev') \cup Unflushed(blockDev') = {} =>
                 <<forcing, durable, redoStart>>' # <<forcing, durable, redoStart>>]_vars

(* Liveness: every call is answered, unless a crash comes between; if      *)
(* blocks are short, this needs retired values to be freed eventually.     *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == Recovering ~> ~Recovering

-----------------------------------------------------------------------------
(* The contract: the durable map, then what is in the log beyond it.  A    *)
(* get that restarts corresponds to one that is refused and another: both  *)
(* are within the real one, so a value that is current during the second   *)
(* is current during the real one.                                         *)

MapAfter(n) == [k \in Keys |-> EntryAt(k, n).value]

WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

AbstractTail ==
    [i \in 1..(Len(log) - durable) |->
        LET n == durable + i
        IN [by |-> WriterOf(n), key |-> log[n].key, value |-> log[n].entry.value]]

AbstractCall ==
    [c \in Clients |->
        CASE call[c].op = "write" ->
               [op |-> "write", key |-> call[c].key, value |-> call[c].value,
                done |-> call[c].at = "waiting"]
          [] Reads(c, "called") \/ Reads(c, "reading") \/ Reads(c, "read") ->
               [op |-> "get", key |-> call[c].key, got |-> call[c].got]
          [] Reads(c, "again") \/ Reads(c, "damaged") -> Refused
          [] OTHER -> call[c]]

Contract == INSTANCE DurableMap WITH
    base <- MapAfter(durable), tail <- AbstractTail, call <- AbstractCall

THEOREM Spec => Contract!Spec
=============================================================================
