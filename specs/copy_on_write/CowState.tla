------------------------------ MODULE CowState ------------------------------
(***************************************************************************)
(* What the copy-on-write store keeps in memory and on the device, and     *)
(* what recovery reads of it.  The steps are in CopyOnWrite.               *)
(*                                                                         *)
(* Three kinds of places are on the device.  A *slot* holds the image of a *)
(* page, or the snapshot of the index.  A block of the *page table* says   *)
(* in which slots some pages are.  Two *superblocks* are written by turns: *)
(* that with number n lies in place n modulo 2, and names the snapshot and *)
(* where redo begins.                                                      *)
(*                                                                         *)
(*   superblock --> snapshot: which pages exist                            *)
(*   table block --> images                                                *)
(*   log from the redo start on: what they lack                            *)
(*                                                                         *)
(* engine/src/pages/{cow,table}.rs, engine/src/layout.rs.                  *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Clients,    \* the clients
    Pages,      \* the pages; each has one key, and exists while its key does
    Blocks,     \* the blocks of the page table
    Slots,      \* 1, 2, ...: the places of images and snapshots
    Values,     \* 1, 2, ...: a write puts the LSN that is next when it is asked for
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Persists,   \* when the table is written: "each" page write, or at "checkpoints"
    Tears,      \* whether a crash may leave a superblock torn, and so unreadable
    Discards,   \* "act": a trim writes zeros; "inert": the device ignores it
    Bug         \* the seeded bug, or "none" for the correct protocol

ASSUME Discards \in {"act", "inert"}

(* The block of the table that has a page's entry.                         *)
BlockOf(p) == CHOOSE b \in Blocks : TRUE

VARIABLES
    persist,    \* one of Persists, fixed when the store is made
    call,       \* what each client is waiting for, and its progress
    \* The redo log
    log,        \* all records ever; the LSN of the n-th is n
    durable,    \* those up to here survive any crash
    oldest,     \* those up to here have been given up, and are kept only for checking
    \* Memory
    page,       \* each page's content, and the LSN of its last change
    index,      \* the pages that exist
    table,      \* each page's slot
    free,       \* the slots that may be taken
    retired,    \* pages that exist no more, with the LSN that says so, and are not freed yet
    super,      \* the newest superblock that is known to be durable
    \* What is under way
    writing,    \* the write of a page, or of the table: one at a time
    checkpoint, \* the checkpoint's current step
    \* The device
    slotDev,    \* the slots
    tableDev,   \* the blocks of the table
    superDev,   \* the two places of the superblock
    lost,       \* places that a failed flush forgot and that are not rewritten yet
    poisoned,   \* a flush failed: nothing more is written until the next start
    \* Recovery
    phase,      \* "up"; how it ended: "cut" or "killed"; "clearing": redo is done
    redone,     \* in recovery: the log has been replayed up to here
    crashes     \* number of crashes so far

logVars      == <<log, durable, oldest>>
memoryVars   == <<page, index, table, free, retired, super>>
stepVars     == <<writing, checkpoint>>
deviceVars   == <<slotDev, tableDev, superDev, lost, poisoned>>
recoveryVars == <<phase, redone, crashes>>

vars == <<persist, call, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

Contents == Values \cup {Absent}
Lsns     == Nat

(* A record builds a page, changes one, or drops one.  A split builds its  *)
(* right page, a merge drops its right one.                                *)
Record == [kind : {"build", "put", "drop"}, page : Pages, value : Contents]

-----------------------------------------------------------------------------
(* What places hold.                                                       *)

NoSlot == 0
Some(slots) == slots \ {NoSlot}

Zeros == [is |-> "zeros"]
Image(p, content) ==
    [is |-> "image", page |-> p, value |-> content.value, lsn |-> content.lsn]
Snapshot(number, pages) == [is |-> "snapshot", number |-> number, pages |-> pages]

(* A block of the table: the entries of its pages.                         *)
PagesIn(b)      == {p \in Pages : BlockOf(p) = b}
Entries(map, b) == [p \in PagesIn(b) |-> map[p]]
InBlocks(map)   == [b \in Blocks |-> Entries(map, b)]

(* The table that these blocks are.                                        *)
TableOf(blocks) == [p \in Pages |-> blocks[BlockOf(p)][p]]
NamedBy(map)    == Some({map[p] : p \in DOMAIN map})

(* A superblock names its snapshot's slot, and under which number that was *)
(* made.  One that is torn, or was never written, has number 0.            *)
SuperPlaces == {0, 1}
Unreadable  == [number |-> 0, redo |-> 0, snapshot |-> NoSlot, made |-> 0]

PlaceOf(number) == IF Bug = "one-place" THEN 0 ELSE number % 2

(* Recovery takes the newer of the two, if both can be read.               *)
(* engine/src/layout.rs, Superblock::load: it refuses to open with one.    *)
Chosen(supers) ==
    IF supers[0].number > supers[1].number
    THEN IF Bug = "takes-older" /\ supers[1].number # 0 THEN supers[1] ELSE supers[0]
    ELSE IF Bug = "takes-older" /\ supers[0].number # 0 THEN supers[0] ELSE supers[1]

-----------------------------------------------------------------------------
(* Memory.                                                                 *)

(* A page that does not exist, or whose image cannot be found.             *)
Gone == [value |-> Absent, lsn |-> 0]

Content == [value : Contents, lsn : Lsns]

(* The image of page p in a slot, if it is there.                          *)
ImageAt(slots, slot, p) ==
    IF slot # NoSlot /\ slots[slot].is = "image" /\ slots[slot].page = p
    THEN [value |-> slots[slot].value, lsn |-> slots[slot].lsn]
    ELSE Gone

(* Which pages a superblock says exist.                                    *)
PagesOf(slots, chosen) ==
    LET found == slots[chosen.snapshot]
    IN IF chosen.snapshot # NoSlot /\ found.is = "snapshot" /\ found.number = chosen.made
       THEN found.pages ELSE {}

StoredLsn(p) == ImageAt(NewestOf(slotDev), table[p], p).lsn

IsDirty(p) == page[p] # Gone /\ page[p].lsn # StoredLsn(p)

(* The slots that the table on the device names.  Those of them that the   *)
(* table in memory does not name any more are *held*: they are free after  *)
(* the next write of the table.                                            *)
OnDevice  == TableOf(NewestOf(tableDev))
Persisted == NamedBy(OnDevice)
Held      == Persisted \ NamedBy(table)

DirtyBlocks == {b \in Blocks : Entries(table, b) # Newest(tableDev[b])}

-----------------------------------------------------------------------------
(* No call; or the last one failed, with or without an effect.             *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

Waits(c) == call[c] \notin {Idle, Refused, Unknown}

(* A write is "called", then "waiting" for its record to be durable.       *)
Calls ==
    {Idle, Refused, Unknown}
    \cup [op : {"get"}, key : Pages, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Pages, value : Contents, at : {"called", "waiting"}, lsn : Lsns]

(* The write of a page: its "image" is written to a slot that no table     *)
(* names yet.  Of the table: blocks are written, and these slots are free  *)
(* once they are flushed.                                                  *)
Quiet            == [at |-> "idle"]
Imaging(p, slot) == [at |-> "image", page |-> p, slot |-> slot]
Naming(left)     == [at |-> "table", left |-> left]

Writes == {Quiet} \cup [at : {"image"}, page : Pages, slot : Slots]
                  \cup [at : {"table"}, left : SUBSET Slots]

(* A checkpoint: pages are written ("sweep"), its snapshot is, the table   *)
(* that names the pages is ("named"), its superblock is ("recorded").      *)
NoCheckpoint == [at |-> "none", begin |-> 0, upTo |-> 0, slot |-> NoSlot]

Steps == [at : {"none", "sweep", "snapshot", "named", "recorded"}, begin : Lsns, upTo : Lsns,
          slot : Slots \cup {NoSlot}]

Super == [number : Nat, redo : Lsns, snapshot : Slots \cup {NoSlot}, made : Nat]

InSlot ==
    {Zeros} \cup [is : {"image"}, page : Pages, value : Contents, lsn : Lsns]
            \cup [is : {"snapshot"}, number : Nat, pages : SUBSET Pages]

NothingLost == [slots |-> {}, table |-> {}, super |-> {}]

TypeInv ==
    /\ persist \in {"each", "checkpoints"}
    /\ call \in [Clients -> Calls]
    /\ log \in Seq(Record)
    /\ durable \in 0..Len(log) /\ oldest \in 0..durable
    /\ page \in [Pages -> Content]
    /\ index \subseteq Pages
    /\ table \in [Pages -> Slots \cup {NoSlot}]
    /\ free \subseteq Slots
    /\ \A r \in retired : r \in [page : Pages, lsn : Lsns]
    /\ super \in Super
    /\ writing \in Writes
    /\ checkpoint \in Steps
    /\ DOMAIN slotDev = Slots /\ \A s \in Slots : slotDev[s] # <<>>
    /\ \A s \in Slots : \A i \in DOMAIN slotDev[s] : slotDev[s][i] \in InSlot
    /\ DOMAIN tableDev = Blocks /\ \A b \in Blocks : tableDev[b] # <<>>
    /\ \A b \in Blocks : tableDev[b] \in Seq([PagesIn(b) -> Slots \cup {NoSlot}])
    /\ superDev \in [SuperPlaces -> Seq(Super)] /\ \A i \in SuperPlaces : superDev[i] # <<>>
    /\ lost \in [slots : SUBSET Slots, table : SUBSET Blocks, super : SUBSET SuperPlaces]
    /\ poisoned \in BOOLEAN
    /\ phase \in {"up", "cut", "killed", "clearing"}
    /\ redone \in Lsns /\ crashes \in Nat

(* A new store: no pages.  Its first checkpoint was written to both        *)
(* places, one after the other.  Checkpointer::write_twin.                 *)
First(number) == [number |-> number, redo |-> 0, snapshot |-> 1, made |-> 1]

Init ==
    /\ persist \in Persists
    /\ call = [c \in Clients |-> Idle]
    /\ log = <<>> /\ durable = 0 /\ oldest = 0
    /\ page = [p \in Pages |-> Gone] /\ index = {}
    /\ table = [p \in Pages |-> NoSlot]
    /\ free = Slots \ {1} /\ retired = {}
    /\ super = First(2)
    /\ writing = Quiet /\ checkpoint = NoCheckpoint
    /\ slotDev = [s \in Slots |-> Durably(IF s = 1 THEN Snapshot(1, {}) ELSE Zeros)]
    /\ tableDev = AllDurably(InBlocks(table))
    /\ superDev = [i \in SuperPlaces |-> Durably(First(2 - i))]
    /\ lost = NothingLost /\ poisoned = FALSE
    /\ phase = "up" /\ redone = 0 /\ crashes = 0

-----------------------------------------------------------------------------
(* Redo.                                                                   *)

(* A page with the record that has LSN n.  A page that is gone can only be *)
(* built; one that is at least as new keeps its content.                   *)
(* engine/src/store/recovery.rs, Redo::apply_to_page.                      *)
RedoOne(content, record, n) ==
    CASE record.kind = "build" -> IF content.lsn < n THEN [value |-> record.value, lsn |-> n]
                                  ELSE content
      [] record.kind = "put"   -> IF content # Gone /\ content.lsn < n
                                  THEN [value |-> record.value, lsn |-> n] ELSE content
      [] record.kind = "drop"  -> IF content.lsn < n THEN Gone ELSE content

Reindexed(pages, record) ==
    CASE record.kind = "build" -> pages \cup {record.page}
      [] record.kind = "drop"  -> pages \ {record.page}
      [] OTHER                 -> pages

RECURSIVE RedoFrom(_, _, _, _, _)
(* What page p is after the records n to `end`, and whether it exists.     *)
RedoFrom(p, content, exists, n, end) ==
    IF n > end THEN IF exists THEN content.value ELSE Absent
    ELSE IF log[n].page # p THEN RedoFrom(p, content, exists, n + 1, end)
    ELSE RedoFrom(p, RedoOne(content, log[n], n),
                  p \in Reindexed(IF exists THEN {p} ELSE {}, log[n]), n + 1, end)

(* The value of a page after the first n records.                          *)
ValueAt(p, n) ==
    LET writes == {m \in 1..n : log[m].page = p}
    IN IF writes = {} THEN Absent
       ELSE log[CHOOSE m \in writes : \A other \in writes : other <= m].value

MapAfter(n) == [p \in Pages |-> ValueAt(p, n)]

-----------------------------------------------------------------------------
(* What a crash may leave.                                                 *)

RECURSIVE Vary(_, _)
(* All functions that equal `blocks`, except at these places.              *)
Vary(blocks, places) ==
    IF DOMAIN places = {} THEN {blocks}
    ELSE LET at   == CHOOSE p \in DOMAIN places : TRUE
             rest == [p \in DOMAIN places \ {at} |-> places[p]]
         IN UNION {Vary([blocks EXCEPT ![at] = block], rest) : block \in places[at]}

Left(places) == Vary(NewestOf(places), [p \in Unflushed(places) |-> Survivors(places[p])])

(* A superblock that was not flushed may also be torn.                     *)
SuperSurvivors(i) ==
    Survivors(superDev[i])
    \cup IF Tears /\ Len(superDev[i]) > 1 THEN {Unreadable} ELSE {}

LeftSupers == Vary(NewestOf(superDev), [i \in Unflushed(superDev) |-> SuperSurvivors(i)])

(* The superblocks that a recovery may choose.                             *)
MayChoose == {Chosen(supers) : supers \in LeftSupers}
=============================================================================
