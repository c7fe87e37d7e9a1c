---------------------------- MODULE ShadowState -----------------------------
(***************************************************************************)
(* What a page store with deterministic shadowing and localized            *)
(* modification logging keeps in memory and on the device, under a redo    *)
(* log.  The steps are in PageShadowing.                                   *)
(*                                                                         *)
(* The redo log is a sequence of records, of which the first `durable` are *)
(* durable; WalRecovery models how it becomes so, is truncated and is      *)
(* found again.  It has its own device: nothing may depend on its flush    *)
(* also flushing the pages.                                                *)
(***************************************************************************)
EXTENDS PageImages

CONSTANTS
    Clients,    \* the clients
    Values,     \* 1, 2, ...: a write puts the LSN that is next when it is asked for
    Pending,    \* the result of a read that has not happened yet
    Threshold,  \* T: the most segments that the log block is written with
    Discards    \* "act": a trim writes zeros; "inert": the device ignores it

ASSUME Discards \in {"act", "inert"}

VARIABLES
    call,       \* what each client is waiting for, and its progress
    \* The redo log
    log,        \* all records ever; the LSN of the n-th is n
    durable,    \* those up to here survive any crash
    redoStart,  \* those up to here have been freed, and are kept only for checking
    \* The pages in memory
    mem,        \* each page's image, if it is there, and how it was stored
    valid,      \* each page's valid slot, what is known of it, and of the log block
    \* The device
    dev,        \* each page's blocks
    lost,       \* blocks of each page that a failed flush forgot and that are not rewritten yet
    poisoned,   \* a flush failed: nothing more is written until the next start
    \* Recovery
    phase,      \* "up"; in recovery, how it ended: "cut" by a crash, or "killed"
    redone,     \* in recovery: the log has been replayed up to here
    crashes     \* number of crashes so far

logVars      == <<log, durable, redoStart>>
deviceVars   == <<dev, lost, poisoned>>
recoveryVars == <<phase, redone, crashes>>

vars == <<call, logVars, mem, valid, deviceVars, recoveryVars>>

Keys     == Pages \X Segments
Contents == Values \cup {Absent}
Lsns     == Nat

PageOf(key)    == key[1]
SegmentOf(key) == key[2]

Record == [key : Keys, value : Contents]

(* No call; or the last one was refused (PageVersions).                    *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]

Waits(c) == call[c] \notin {Idle, Refused}

(* A write is "called", then "waiting" for its record to be durable.       *)
Calls ==
    {Idle, Refused}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents,
          at : {"called", "waiting"}, lsn : Lsns]

(* A page in memory: `dirty` is the paper's vector f, the segments that    *)
(* differ from the base image, whose LSN is `base`; `stored` is the LSN of *)
(* the newest image that the device was given, base or overlay.  The page  *)
(* is clean if that is its own.                                            *)
Out == [at |-> "out"]

InMemory ==
    [at : {"in"}, lsn : Lsns, values : [Segments -> Contents], dirty : SUBSET Segments,
     base : Lsns, stored : Lsns]

(* The paper's bitmap has one bit: the slot.  What else must be known,     *)
(* whether or not the page is in memory: whether the slot's image is       *)
(* "written", "durable", or even "alone" (what it replaced is trimmed);    *)
(* and whether the log block was written over it.                          *)
Unknown == [slot |-> 1, is |-> "unknown", logged |-> FALSE]

Known == [slot : Slots, is : {"unknown", "written", "durable", "alone"}, logged : BOOLEAN]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ log \in Seq(Record)
    /\ durable \in 0..Len(log) /\ redoStart \in 0..durable
    /\ DOMAIN mem = Pages /\ \A p \in Pages : mem[p] \in {Out} \cup InMemory
    /\ valid \in [Pages -> Known]
    /\ DOMAIN dev = Pages
    /\ \A p \in Pages : DOMAIN dev[p] = Spots /\ \A spot \in Spots : dev[p][spot] # <<>>
    /\ lost \in [Pages -> SUBSET Spots]
    /\ poisoned \in BOOLEAN
    /\ phase \in {"up", "cut", "killed"}
    /\ redone \in Lsns /\ crashes \in Nat

Loaded(image, base, stored, dirty) ==
    [at |-> "in", lsn |-> image.lsn, values |-> image.values, dirty |-> dirty,
     base |-> base, stored |-> stored]

ImageOf(page) == [lsn |-> page.lsn, values |-> page.values]

IsIn(p)    == mem[p].at = "in"
IsDirty(p) == IsIn(p) /\ mem[p].lsn # mem[p].stored

NoneLost == [p \in Pages |-> {}]

Init ==
    /\ call = [c \in Clients |-> Idle]
    /\ log = <<>> /\ durable = 0 /\ redoStart = 0
    /\ mem = [p \in Pages |-> Loaded(Empty, 0, 0, {})]
    /\ valid = [p \in Pages |-> [slot |-> 1, is |-> "alone", logged |-> FALSE]]
    /\ dev = [p \in Pages |-> NeverWritten]
    /\ lost = NoneLost /\ poisoned = FALSE
    /\ phase = "up" /\ redone = 0 /\ crashes = 0

-----------------------------------------------------------------------------
(* The expected contents of the pages, for checking.                       *)

(* The records that a page has, once it has LSN n.                         *)
Changes(p, n) == {i \in 1..n : i <= Len(log) /\ PageOf(log[i].key) = p}

Greatest(lsns) == IF lsns = {} THEN 0 ELSE CHOOSE n \in lsns : \A m \in lsns : m <= n

(* The segments of page p after the first n records.                       *)
PageAt(p, n) ==
    [i \in Segments |->
        LET writes == {m \in Changes(p, n) : SegmentOf(log[m].key) = i}
        IN IF writes = {} THEN Absent ELSE log[Greatest(writes)].value]

(* The log record with LSN n, redone on its page unless the page is newer: *)
(* as often as needed, since a page keeps the LSN of its last change.      *)
RECURSIVE RedoFrom(_, _, _)
RedoFrom(p, image, n) ==
    IF n > Len(log) THEN image
    ELSE RedoFrom(p,
            IF PageOf(log[n].key) = p /\ image.lsn < n
            THEN [lsn |-> n, values |-> [image.values EXCEPT ![SegmentOf(log[n].key)] = log[n].value]]
            ELSE image,
            n + 1)
=============================================================================
