------------------------------ MODULE RedoState ------------------------------
(***************************************************************************)
(* What the redo log keeps in memory and on the device, and what a crash   *)
(* leaves of it.  The steps are in RedoLog.                                *)
(*                                                                         *)
(* engine/src/wal/{mod,log,buffer}.rs, engine/src/layout.rs.               *)
(***************************************************************************)
EXTENDS LogFormat

CONSTANTS
    Clients,    \* the clients
    Records,    \* 1, 2, ...: the n-th record that is asked for is n
    Packings,   \* how a life of the store may write its log: "packed", "sparse"
    Tears       \* what a drive writes whole: a "block", or only a "sector"

VARIABLES
    call,       \* what each client is waiting for, and its progress
    asked,      \* number of records asked for so far
    \* The log in memory
    packing,    \* one of Packings, chosen at each opening
    epoch,      \* the epoch under which this life writes
    startsAt,   \* the first block of the epoch
    bufferAt,   \* the first block of the buffer
    buffer,     \* what was appended since the last flush began; in the packed log, also what is
                \* before it in the same block
    end,        \* LSN of the last record; the start of the epoch if there is none
    flying,     \* the flush in flight: the first of its blocks, and the end
    durable,    \* all records up to here are durable; a dead process's, for checking
    oldest,     \* the log before this position has been given up
    checkpoint, \* the current step of a checkpoint, and where redo will begin
    poisoned,   \* a flush failed: nothing more is written until the next opening
    \* The device
    logDev,     \* the ring of log blocks
    superDev,   \* the superblock: the newest epoch, where redo begins, and in which epoch
    lost,       \* places that a failed flush forgot and that were not written since
    \* Recovery
    phase,      \* "up", "closing"; how it ended: "cut" or "killed"; "read", "durable",
                \* "recorded": recovering; "damaged": it refuses to open
    found,      \* the records that the recovery under way has read
    \* For checking
    history,    \* all records that were appended and not lost since, with their LSNs
    acked,      \* a client was told that everything up to here is durable
    sure,       \* no damage of the medium up to here goes unnoticed
    verdict,    \* "fine", or what was wrong with what was read
    \* For the bounds
    crashes,    \* number of crashes so far
    rotten      \* number of decayed blocks so far

clientVars   == <<call, asked>>
bufferVars   == <<packing, epoch, startsAt, bufferAt, buffer, end, flying>>
memoryVars   == <<durable, oldest, checkpoint, poisoned>>
deviceVars   == <<logDev, superDev, lost>>
recoveryVars == <<phase, found>>
observerVars == <<history, acked, sure, verdict>>
boundVars    == <<crashes, rotten>>

vars == <<clientVars, bufferVars, memoryVars, deviceVars, recoveryVars, observerVars, boundVars>>

-----------------------------------------------------------------------------
(* No call; or the last one failed, with or without an effect.             *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

Waits(c) == call[c] \notin {Idle, Refused, Unknown}

(* An append is "called", then "waiting" for its record to be durable.     *)
Calls ==
    {Idle, Refused, Unknown}
    \cup [op : {"append"}, record : Nat, len : Nat, at : {"called", "waiting"}, lsn : Nat]

Entry == [record : Nat, lsn : Nat]

OnGround == [at |-> 0, to |-> 0]

NoCheckpoint == [at |-> "none", begin |-> 0]

Super == [epoch : Nat, redo : Nat, redoEpoch : Nat]

NothingLost == [log |-> {}, super |-> FALSE]

TypeInv ==
    /\ call \in [Clients -> Calls] /\ asked \in Nat
    /\ packing \in {"packed", "sparse"}
    /\ epoch \in Nat /\ startsAt \in Nat
    /\ bufferAt \in Nat
    /\ \A i \in 1..Len(buffer) : buffer[i] \in [record : Nat, len : Nat, part : Nat]
    /\ end \in Nat /\ durable \in Nat /\ oldest \in Nat
    /\ flying \in [at : Nat, to : Nat]
    /\ checkpoint \in [at : {"none", "begun", "recorded"}, begin : Nat]
    /\ poisoned \in BOOLEAN
    /\ DOMAIN logDev = Places /\ \A p \in Places : logDev[p] # <<>>
    /\ superDev \in Seq(Super) /\ superDev # <<>>
    /\ lost \in [log : SUBSET Places, super : BOOLEAN]
    /\ phase \in {"up", "closing", "cut", "killed", "damaged",
                  "read", "durable", "marked", "settled", "recorded"}
    /\ found \in Seq(Entry) /\ history \in Seq(Entry)
    /\ acked \in Nat /\ sure \in Nat
    /\ verdict \in {"fine", "lost", "mixed", "changed", "silent", "damaged"}
    /\ crashes \in Nat /\ rotten \in Nat

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ packing \in Packings
    /\ epoch = 1 /\ startsAt = 0
    /\ bufferAt = 0 /\ buffer = <<>> /\ end = 0 /\ flying = OnGround
    /\ durable = 0 /\ oldest = 0 /\ checkpoint = NoCheckpoint /\ poisoned = FALSE
    /\ logDev = [p \in Places |-> Durably(Zeros)]
    /\ superDev = Durably([epoch |-> 1, redo |-> 0, redoEpoch |-> 1])
    /\ lost = NothingLost
    /\ phase = "up" /\ found = <<>>
    /\ history = <<>> /\ acked = 0 /\ sure = 0 /\ verdict = "fine"
    /\ crashes = 0 /\ rotten = 0

-----------------------------------------------------------------------------
(* The position of the next record.                                        *)
Next_ == bufferAt * Units + Len(buffer)

(* Neither up nor recovering.                                              *)
Down       == phase \in {"cut", "killed", "damaged"}
Recovering == phase \in {"read", "durable", "marked", "settled", "recorded"}

(* Writing what is there already is no new version.                        *)
Put(place, content) == IF Newest(place) = content THEN place ELSE Append(place, content)

(* A flush of the device.                                                  *)
DeviceFlush ==
    /\ logDev' = Flushed(logDev, lost.log)
    /\ superDev' = IF lost.super THEN superDev ELSE Durably(Newest(superDev))

SomethingWritten == Unflushed(logDev) # {} \/ Len(superDev) > 1

(* The ghost records up to an LSN.                                         *)
CountUpTo(entries, lsn) == Cardinality({i \in 1..Len(entries) : entries[i].lsn <= lsn})
UpTo(entries, lsn)      == SubSeq(entries, 1, CountUpTo(entries, lsn))

-----------------------------------------------------------------------------
(* What a crash may leave.                                                 *)

RECURSIVE Vary(_, _)
(* All functions that equal `blocks`, except at these places.              *)
Vary(blocks, places) ==
    IF DOMAIN places = {} THEN {blocks}
    ELSE LET at   == CHOOSE p \in DOMAIN places : TRUE
             rest == [p \in DOMAIN places \ {at} |-> places[p]]
         IN UNION {Vary([blocks EXCEPT ![at] = block], rest) : block \in places[at]}

(* Any version, or sectors of several.                                     *)
LeftOf(place) ==
    LET versions == Survivors(place)
        sectors  == [1..(Units - 1) -> UNION {{v.rest[i] : i \in 1..(Units - 1)} : v \in versions}]
    IN IF Tears = "block" THEN versions
       ELSE {[head |-> v.head, rest |-> s] : v \in versions,
                s \in {t \in sectors :
                          \A i \in 1..(Units - 1) : \E w \in versions : t[i] = w.rest[i]}}

Left == Vary(NewestOf(logDev), [p \in Unflushed(logDev) |-> LeftOf(logDev[p])])

(* The history after a recovery that reads this.                           *)
HistoryRead(super, walk) == UpTo(history, super.redo) \o walk.found

(* The verdict on it.  No damage may be reported, nothing that is durable  *)
(* may be missing, and what is there must be a prefix.  If the medium has  *)
(* decayed, damage is reported rightly, and some of the last flush may be  *)
(* missing: a power cut may need a block that the newest superblock does   *)
(* not.                                                                    *)
Judge(blocks, super) ==
    LET walk == ReadLog(blocks, super)
        read == HistoryRead(super, walk)
        kept == IF rotten = 0 THEN durable ELSE sure
    IN IF Damaged(blocks, walk) THEN IF rotten = 0 THEN "damaged" ELSE "fine"
       ELSE IF ~(Len(read) <= Len(history) /\ read = SubSeq(history, 1, Len(read))) THEN "mixed"
       ELSE IF Len(read) < CountUpTo(history, kept) THEN "lost"
       ELSE "fine"

(* The verdict on what recovery reads.  If the device lives on, it may     *)
(* read less than is there.  If the medium has decayed, some of the last   *)
(* flush may be missing.                                                   *)
JudgeRead(walk) ==
    LET read == HistoryRead(Newest(superDev), walk)
        most == IF rotten = 0 THEN durable ELSE sure
    IN IF read = history THEN "fine"
       ELSE IF /\ Len(read) < Len(history) /\ read = SubSeq(history, 1, Len(read))
               /\ Len(read) >= CountUpTo(history, most)
               /\ phase = "killed" \/ rotten > 0
            THEN "fine"
       ELSE IF rotten = 0 THEN "changed"
       ELSE "silent"
=============================================================================
