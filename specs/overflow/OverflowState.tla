--------------------------- MODULE OverflowState ----------------------------
(***************************************************************************)
(* What the protocol of long values keeps in memory and on the device, and *)
(* what recovery makes of it.  The steps are in Overflow.                  *)
(*                                                                         *)
(* A value lies on blocks of its own.  The record in the leaf and the log  *)
(* record have its *pointer*: the value's name, which no other value ever  *)
(* has, and its blocks in order.  Each block names its value and its part. *)
(*                                                                         *)
(* engine/src/overflow/{mod,block}.rs.                                     *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Clients,    \* the clients
    Keys,       \* the keys; each key has its own leaf
    Values,     \* 1, 2, ...: the n-th write of all puts n, so no two are alike
    Blocks,     \* 1, 2, ...: what long values lie on
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Discards,   \* "act": a trim writes zeros; "inert": the device ignores it
    Bug         \* the seeded bug, or "none" for the correct protocol

ASSUME Discards \in {"act", "inert"}

(* How many blocks a value takes; none: it is short and stays in the leaf. *)
Size(v) == 1

VARIABLES
    call,       \* what each client is waiting for, and how far it is
    asked,      \* number of writes asked for so far
    named,      \* the last name that a value got; no crash resets it
    \* The log: its records from the beginning of time; the n-th has LSN n
    log,
    written,    \* up to here the log is being written, so a crash may keep it
    durable,    \* up to here every crash keeps it
    forcing,    \* a flush has flushed the device for the records up to here; 0: none
    redoStart,  \* where redo begins
    \* Memory
    leaf,       \* each key's record, and the LSN of its last change
    free,       \* the blocks that a put may take
    retired,    \* pointers that no leaf has any more, with the LSN that replaced them
    \* The device
    leafDev,    \* the leaves
    blockDev,   \* the blocks of long values
    \* Crash and recovery
    phase,      \* "up"; in recovery, how it ended: "cut" by a crash, or "killed"
    redone,     \* in recovery: the log has been replayed up to here
    crashes     \* number of crashes so far

logVars      == <<log, written, durable, forcing, redoStart>>
memoryVars   == <<leaf, free, retired>>
deviceVars   == <<leafDev, blockDev>>
recoveryVars == <<phase, redone, crashes>>

vars == <<call, asked, named, logVars, memoryVars, deviceVars, recoveryVars>>

Contents == Values \cup {Absent}
Lsns     == Nat

-----------------------------------------------------------------------------
(* Pointers and blocks.                                                    *)

Nowhere == [name |-> 0, blocks |-> <<>>]

BlocksOf(pointer) == {pointer.blocks[i] : i \in DOMAIN pointer.blocks}

IsLong(pointer) == pointer.blocks # <<>>

(* An entry of a leaf, or of the log, for a key.  The value of a long one  *)
(* is not really there: it stands for what the pointer refers to.          *)
Entry(value, pointer) == [value |-> value, at |-> pointer]

Empty == Entry(Absent, Nowhere)

(* A block that is not part of a value: formatted, trimmed, or a page's.   *)
NoPart == [name |-> 0, part |-> 0, value |-> Absent]

(* The i-th block of an entry.  Its bytes are identified by its owner.     *)
Part(entry, i) == [name |-> entry.at.name, part |-> i, value |-> entry.value]

(* The header of a block.  The engine's also names the key, and the        *)
(* pointer has a checksum of the whole value.  Header::read.               *)
SaysItIs(block, pointer, i) == block.name = pointer.name /\ block.part = i

-----------------------------------------------------------------------------
(* No call; or the last one was refused.                                   *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]

Waits(c) == call[c] \notin {Idle, Refused}

(* A get is "called"; then "reading" the blocks of the record it copied,   *)
(* `parts` so far; then it has "read" them.  If a block was not the        *)
(* value's it looks at the leaf "again", and either begins anew or says    *)
(* that the value is "damaged".  `got` is whose bytes it has.  A write is  *)
(* "called"; its blocks are "stored"; its record is appended, and it is    *)
(* "waiting" for that to be durable.                                       *)
Pointers == [name : Nat, blocks : Seq(Blocks)]
Entries  == [value : Contents, at : Pointers]

Calls ==
    {Idle, Refused}
    \cup [op : {"get"}, key : Keys, at : {"called", "reading", "read", "again", "damaged"},
          from : Entries, parts : Nat, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents, at : {"called", "stored", "waiting"},
          to : Pointers, lsn : Lsns]

Record == [key : Keys, entry : Entries]
Leaf   == [entry : Entries, lsn : Lsns]
Block  == [name : Nat, part : Nat, value : Contents]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ asked \in Nat /\ named \in Nat
    /\ log \in Seq(Record)
    /\ redoStart <= durable /\ durable <= written /\ written <= Len(log)
    /\ forcing = 0 \/ (durable < forcing /\ forcing <= Len(log))
    /\ leaf \in [Keys -> Leaf]
    /\ free \subseteq Blocks
    /\ retired \subseteq [lsn : 1..Len(log), at : Pointers]
    /\ leafDev \in [Keys -> Seq(Leaf)] /\ \A k \in Keys : leafDev[k] # <<>>
    /\ blockDev \in [Blocks -> Seq(Block)] /\ \A b \in Blocks : blockDev[b] # <<>>
    /\ phase \in {"up", "cut", "killed"}
    /\ redone \in Lsns /\ (phase = "up" => redone = 0)
    /\ crashes \in Nat

EmptyLeaves == [k \in Keys |-> [entry |-> Empty, lsn |-> 0]]

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0 /\ named = 0
    /\ log = <<>> /\ written = 0 /\ durable = 0 /\ forcing = 0 /\ redoStart = 0
    /\ leaf = EmptyLeaves /\ free = Blocks /\ retired = {}
    /\ leafDev = AllDurably(EmptyLeaves)
    /\ blockDev = [b \in Blocks |-> Durably(NoPart)]
    /\ phase = "up" /\ redone = 0 /\ crashes = 0

-----------------------------------------------------------------------------
(* What the log says.                                                      *)

Last(lsns) == CHOOSE n \in lsns : \A m \in lsns : m <= n

(* A key's entry after the first n records.                                *)
EntryAt(k, n) ==
    LET changes == {m \in 1..n : log[m].key = k}
    IN IF changes = {} THEN Empty ELSE log[Last(changes)].entry

RECURSIVE RedoFrom(_, _, _)
(* A leaf after redoing the records from n on that it lacks.               *)
RedoFrom(k, image, n) ==
    IF n > Len(log) THEN image
    ELSE RedoFrom(k,
                  IF log[n].key = k /\ image.lsn < n
                  THEN [entry |-> log[n].entry, lsn |-> n] ELSE image,
                  n + 1)

(* The blocks that these leaves name.                                      *)
NamedBy(leaves) == UNION {BlocksOf(leaves[k].entry.at) : k \in Keys}

(* What a recovery may end with: the log's end is anywhere from `durable`  *)
(* to `written`.                                                           *)
MayEndWith == {EntryAt(k, n) : k \in Keys, n \in durable..written}
=============================================================================
