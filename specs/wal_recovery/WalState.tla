------------------------------ MODULE WalState ------------------------------
(***************************************************************************)
(* What the log protocol of Bf-Tree §5.7 keeps in memory and on the        *)
(* device, and what a crash makes of it.  The steps are in WalRecovery.    *)
(***************************************************************************)
EXTENDS LogBlocks

CONSTANTS
    Clients,    \* who calls
    Keys,       \* what is asked for; each key has a page of its own name
    Values,     \* 1, 2, ...: the n-th write of all puts n, so no two are alike
    Absent,     \* the value of a key that is not there; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Reads       \* "free": a get returns what memory holds, durable or not;
                \* "judged": the same, and ReadsLastInv holds it against the protocol;
                \* "wait": it waits until that is durable, and is judged, too

VARIABLES
    call,       \* what each client is waiting for, and how far it is
    asked,      \* number of writes asked for so far
    \* The log in memory
    buffer,     \* the records from the start of the first block not wholly flushed
    durable,    \* all records up to this LSN are durable, says the log
    flushing,   \* the flush in flight makes them so up to here; = durable if none
    epoch,      \* the epoch written under
    oldest,     \* the log before this position has been given up
    poisoned,   \* a flush failed: nothing more is written until the next opening
    \* The pages in memory
    page,       \* each page's value, and the LSN of its last change
    dirtied,    \* LSN of the first change that its device image lacks; 0: clean
    \* Checkpoint and recovery
    checkpoint, \* the step that it is at, and the log's end at its begin
    phase,      \* "up"; "down" after a crash; "redo", then "opening": recovering
    redone,     \* in "redo": the log has been replayed up to here
    \* The device
    logDev,     \* the log's ring of blocks
    pageDev,    \* the pages, one block each
    superDev,   \* the superblock: an epoch, and where redo begins in it
    lost,       \* what a failed flush forgot, and nobody has written since
    \* For the observer
    base,       \* the map up to `durable`; while not up, the one to be recovered
    verdict,    \* "fine", or what the last crash did wrong
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

Idle == [op |-> "none"]

(* A write is "called", then "logged" (its record is in the buffer, its    *)
(* page latched), then "waiting" for its LSN to be durable, or "asleep"    *)
(* while a flush is in flight.                                             *)
Calls ==
    {Idle}
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
    /\ phase \in {"up", "down", "redo", "opening"}
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

(* The records that are not durable yet; the first has LSN durable + 1.    *)
Tail_ == SubSeq(buffer, durable - BufferStart + 1, Len(buffer))

Writes(c, step) == call[c].op = "write" /\ call[c].at = step

(* A client holds the page's latch between its record and its change.      *)
Latched(k) == \E c \in Clients : Writes(c, "logged") /\ call[c].key = k

NothingLost == [log |-> {}, pages |-> {}, super |-> FALSE]
Done        == [at |-> "idle", begin |-> 0]
EmptyPages  == [k \in Keys |-> [value |-> Absent, lsn |-> 0]]
Clean       == [k \in Keys |-> 0]

RECURSIVE Apply(_, _)
(* A map after some records.                                               *)
Apply(map, records) ==
    IF records = <<>> THEN map
    ELSE Apply([map EXCEPT ![Head(records).key] = Head(records).value], Tail(records))

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

-----------------------------------------------------------------------------
(* What recovery makes of the device's blocks.                             *)

(* The log record with LSN n, done again on its page unless that is newer. *)
(* engine/src/recovery.rs, Redo::apply_to_page.                            *)
RedoOne(pages, record, n) ==
    IF pages[record.key].lsn < n \/ Bug = "published-redo-always"
    THEN [pages EXCEPT ![record.key] = [value |-> record.value, lsn |-> n]]
    ELSE pages

RECURSIVE RedoAll(_, _, _)
RedoAll(pages, records, n) ==
    IF records = <<>> THEN pages
    ELSE RedoAll(RedoOne(pages, Head(records), n), Tail(records), n + 1)

LogFound(log, super)    == ReadLog(log, super.epoch, super.redo)
LogFoundEnd(log, super) == super.redo + Len(LogFound(log, super))

(* The map that recovery yields in the end.                                *)
Recovered(log, pages, super) ==
    LET found == RedoAll(pages, LogFound(log, super), super.redo + 1)
    IN [k \in Keys |-> found[k].value]

(* Whether the put of `value` is cut off by a log that ends at `end`.      *)
CutOff(value, end) ==
    \E n \in (durable + 1)..End : n > end /\ Tail_[n - durable].value = value

(* What the contract allows a crash to leave while the store is up.        *)
Prefixes == {Apply(base, SubSeq(Tail_, 1, n)) : n \in 0..Len(Tail_)}

(* The observer's opinion of a crash that leaves these blocks.  If it is   *)
(* not a prefix, a log that ends too early was the reason, or another.     *)
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
