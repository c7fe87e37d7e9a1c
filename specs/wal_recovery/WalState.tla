------------------------------ MODULE WalState ------------------------------
(***************************************************************************)
(* The state that the log protocol of Bf-Tree §5.7 keeps in memory and on  *)
(* the device, and the effect of a crash on it.  The steps are in          *)
(* WalRecovery.                                                            *)
(***************************************************************************)
EXTENDS LogBlocks, TreePages

CONSTANTS
    Clients,    \* the clients
    Keys,       \* the keys; each key has its own page
    Values,     \* 1, 2, ...: the n-th write of all puts n, so no two are alike
    Absent,     \* the value of an absent key; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Reads       \* "free": a get returns the value in memory, durable or not;
                \* "judged": the same, and ReadsLastInv checks it;
                \* "wait": a get waits until the value is durable, and is checked

VARIABLES
    call,       \* what each client is waiting for, and its progress
    asked,      \* number of writes asked for so far
    \* The log in memory
    buffer,     \* the records from the start of the first block not completely flushed
    durable,    \* the log considers all records up to this LSN durable
    flushing,   \* the flush in flight makes records durable up to here; = durable if none
    epoch,      \* the current epoch of the log
    oldest,     \* the log before this position has been freed
    poisoned,   \* a flush failed: nothing more is written until the next opening
    \* The pages in memory
    page,       \* each page's value, and the LSN of its last change
    dirtied,    \* LSN of the first change that its device image lacks; 0: clean
    \* Checkpoint and recovery
    checkpoint, \* its current step, and the end of the log when it began
    phase,      \* "up"; "cut" by a crash or "killed"; "redo", then "opening": recovering
    redone,     \* in "redo": the log has been replayed up to here
    \* The device
    logDev,     \* the ring of log blocks
    pageDev,    \* the pages, a cell each (PageCells): here one block
    superDev,   \* the superblock: an epoch, and where redo begins in it
    lost,       \* the places that a failed flush forgot and that were not written since
    \* For checking
    base,       \* the map up to `durable`; while not up, the map to be recovered
    verdict,    \* "fine", or what the last crash did wrong
    \* For the bounds
    crashes     \* number of crashes so far

clientVars     == <<call, asked>>
logVars        == <<buffer, durable, flushing, epoch, oldest, poisoned>>
pageVars       == <<page, dirtied>>
recoveryVars   == <<checkpoint, phase, redone>>
deviceVars     == <<logDev, pageDev, superDev, lost>>
observerVars   == <<base, verdict, crashes>>

vars == <<clientVars, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

Contents == Values \cup {Absent}
Lsns     == Nat

Record == [key : Keys, value : Contents]

(* No call; or the last one failed, with or without an effect.             *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

(* A write is "called", then "logged" (its record is in the buffer, its    *)
(* page latched), then "waiting" for its LSN to be durable, or "asleep"    *)
(* while a flush is in flight.                                             *)
Calls ==
    {Idle, Refused, Unknown}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents,
          at : {"called", "logged", "waiting", "asleep"}, lsn : Lsns]

Image       == [value : Contents, lsn : Lsns]
LogBlock    == [epoch : Nat, index : Nat, records : Seq(Record)]
Superblock  == [epoch : Nat, redo : Lsns]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ asked \in Nat
    /\ buffer \in Seq(Record)
    /\ durable \in Lsns /\ flushing \in Lsns /\ durable <= flushing
    /\ epoch \in Nat /\ oldest \in Lsns
    /\ poisoned \in BOOLEAN
    /\ page \in [Keys -> Image]
    /\ dirtied \in [Keys -> Lsns]
    /\ checkpoint \in [at : {"idle", "sweep", "forced", "written", "recorded"}, begin : Lsns]
    /\ phase \in {"up", "cut", "killed", "redo", "opening"}
    /\ redone \in Lsns
    /\ logDev \in [Places -> Seq(LogBlock)] /\ \A p \in Places : logDev[p] # <<>>
    /\ pageDev \in [Keys -> Seq(Image)] /\ \A k \in Keys : pageDev[k] # <<>>
    /\ superDev \in Seq(Superblock) /\ superDev # <<>>
    /\ lost \in [log : SUBSET Places, pages : SUBSET Keys, super : BOOLEAN]
    /\ base \in [Keys -> Contents]
    /\ verdict \in {"fine", "lost", "mixed", "changed", "vanished"}
    /\ crashes \in Nat

-----------------------------------------------------------------------------
(* The log in memory.                                                      *)

BufferStart == BlockStart(durable)
End         == BufferStart + Len(buffer)

(* The records that are not durable yet.  The first has LSN durable + 1.   *)
Tail_ == SubSeq(buffer, durable - BufferStart + 1, Len(buffer))

(* Neither up nor recovering.                                              *)
Down == phase \in {"cut", "killed"}

Waits(c)        == call[c] \notin {Idle, Refused, Unknown}
Writes(c, step) == call[c].op = "write" /\ call[c].at = step

(* A client holds the page's latch between its record and its change.      *)
Latched(k) == \E c \in Clients : Writes(c, "logged") /\ call[c].key = k

NothingLost == [log |-> {}, pages |-> {}, super |-> FALSE]
Done        == [at |-> "idle", begin |-> 0]
EmptyPages  == [k \in Keys |-> EmptyPage(k, Absent)]
Clean       == [k \in Keys |-> 0]

RECURSIVE Apply(_, _)
(* A map after some records.                                               *)
Apply(map, records) ==
    IF records = <<>> THEN map
    ELSE Apply(Effect(map, Head(records)), Tail(records))

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ buffer = <<>> /\ durable = 0 /\ flushing = 0
    /\ epoch = 1 /\ oldest = 0 /\ poisoned = FALSE
    /\ page = EmptyPages /\ dirtied = Clean
    /\ checkpoint = Done /\ phase = "up" /\ redone = 0
    /\ logDev = [p \in Places |-> Durably(NoBlock)]
    /\ pageDev = [k \in Keys |-> NewCell(EmptyPages[k])]
    /\ superDev = Durably([epoch |-> 1, redo |-> 0])
    /\ lost = NothingLost
    /\ base = [k \in Keys |-> Absent] /\ verdict = "fine" /\ crashes = 0

-----------------------------------------------------------------------------
(* What recovery makes of the blocks on the device.                        *)

(* The log record with LSN n, redone on its page unless the page is newer. *)
(* engine/src/recovery.rs, Redo::apply_to_page.                            *)
RedoOne(pages, record, n) == Redone(pages, record, n, Bug = "published-redo-always")

RECURSIVE RedoAll(_, _, _)
RedoAll(pages, records, n) ==
    IF records = <<>> THEN pages
    ELSE RedoAll(RedoOne(pages, Head(records), n), Tail(records), n + 1)

LogFound(log, super)    == ReadLog(log, super.epoch, super.redo)
LogFoundEnd(log, super) == super.redo + Len(LogFound(log, super))

(* The map at the end of recovery.                                         *)
Recovered(log, pages, super) ==
    LET found == RedoAll(pages, LogFound(log, super), super.redo + 1)
    IN [k \in Keys |-> ValueIn(found, k)]

(* Whether a log that ends at `end` cuts off the put of `value`.           *)
CutOff(value, end) ==
    \E n \in (durable + 1)..End : n > end /\ Tail_[n - durable].value = value

(* The contents that the contract allows after a crash while the store is  *)
(* up.                                                                     *)
Prefixes == {Apply(base, SubSeq(Tail_, 1, n)) : n \in 0..Len(Tail_)}

(* The verdict on a crash that leaves these blocks.  If the contents are   *)
(* not a prefix, the cause is either a log that ends too early or          *)
(* something else.                                                         *)
Judge(log, pages, super) ==
    LET end == LogFoundEnd(log, super)
        map == Recovered(log, pages, super)
    IN IF phase # "up"
       THEN IF map = base THEN "fine" ELSE "changed"
       ELSE IF map \notin Prefixes
            THEN IF end < durable THEN "lost" ELSE "mixed"
       ELSE IF /\ Reads # "free"
               /\ \E c \in Clients : /\ call[c].op = "get"
                                     /\ call[c].got # Pending
                                     /\ CutOff(call[c].got, end)
            THEN "vanished"
       ELSE "fine"
=============================================================================
