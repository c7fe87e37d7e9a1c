--------------------------- MODULE SnapshotState ----------------------------
(***************************************************************************)
(* What a B-tree whose inner nodes exist only in memory keeps there and on *)
(* the device, and what redo makes of it.  The steps of clients and leaves *)
(* are in SnapshotTree, those of checkpoints and recovery in IndexSnapshot.*)
(*                                                                         *)
(*   superblock --> chunk --> chunk      the index, as it was read          *)
(*       |            |                                                    *)
(*       |            +--> leaf pages, and how new each must at least be   *)
(*       +--> log from the redo start on: what index and leaves lack       *)
(*                                                                         *)
(* The device has numbered *slots*.  Page p lies in slot p; a chunk of a   *)
(* snapshot lies in any slot that no page has.                             *)
(*                                                                         *)
(* engine/src/snapshot.rs, engine/src/index, engine/src/pages/in_place.rs. *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Clients,    \* the clients
    Keys,       \* 1, 2, ...: the least stands for the lower bound of all keys
    Slots,      \* 1, 2, ...: the places of pages and chunks
    Values,     \* 1, 2, ...: the n-th write puts n, unless it deletes
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Fences,     \* the lower fences of a new store's leaves
    Room,       \* the most records of a leaf
    PerChunk,   \* the most entries of a chunk
    Trims,      \* whether a trim does anything
    Bug         \* the seeded bug, or "none" for the correct protocol

VARIABLES
    call,       \* what each client is waiting for, and its progress
    \* The redo log
    log,        \* all records ever; the LSN of the n-th is n
    durable,    \* those up to here survive any crash
    oldest,     \* those up to here have been given up, and are kept only for checking
    \* Memory
    page,       \* each leaf page
    version,    \* of each page, the LSN of the image that it is known to have on the device
    index,      \* of each lower fence, the page of its leaf
    free,       \* the slots that may be taken
    retired,    \* pages that were merged away and are not freed yet, with the LSN that says so
    chain,      \* the slots of the snapshot that `super` names
    super,      \* the newest superblock that is known to be durable
    \* What is under way
    change,     \* the split or merge, which holds the latches of its leaves: one at a time
    checkpoint, \* the checkpoint's current step
    \* The device
    slotDev,    \* the slots
    superDev,   \* the superblock
    \* Recovery
    phase,      \* "up"; how it ended: "cut" or "killed"; "damaged": it cannot be opened
    redone,     \* in recovery: the log has been replayed up to here
    crashes,    \* number of crashes so far
    losses      \* number of writes that the device reported as done and has lost

logVars      == <<log, durable, oldest>>
leafVars     == <<page, version>>
spaceVars    == <<free, retired, chain, super>>
deviceVars   == <<slotDev, superDev>>
recoveryVars == <<phase, redone, crashes>>

vars == <<call, logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars, recoveryVars,
          losses>>

Contents == Values \cup {Absent}
Lsns     == Nat

Least  == CHOOSE k \in Keys : \A other \in Keys : k <= other
(* The fence behind the last key, as the upper fence of the last leaf.     *)
Top    == Cardinality(Keys) + 1
Bounds == Keys \cup {Top}

NoSlot == 0
Places == Slots \cup {NoSlot}

-----------------------------------------------------------------------------
(* Leaves.                                                                 *)

Nothing == [k \in Keys |-> Absent]

(* A leaf has the keys from its lower fence to below its upper fence.  Its *)
(* own fences are authoritative, and the index is only a way to it.        *)
Leaf == [lower : Bounds \cup {0}, upper : Bounds \cup {0}, map : [Keys -> Contents], lsn : Lsns]

(* A page that does not exist, or whose image cannot be used.              *)
Gone == [lower |-> 0, upper |-> 0, map |-> Nothing, lsn |-> 0]

Covers(leaf, k) == leaf.lower <= k /\ k < leaf.upper

Size(map) == Cardinality({k \in Keys : map[k] # Absent})

HasRoomFor(leaf, k, v) == v = Absent \/ leaf.map[k] # Absent \/ Size(leaf.map) < Room

(* The records of a map from a key on, and those before it.                *)
From(map, k)   == [j \in Keys |-> IF j >= k THEN map[j] ELSE Absent]
Before(map, k) == [j \in Keys |-> IF j < k THEN map[j] ELSE Absent]
Joined(left, right, k) == [j \in Keys |-> IF j < k THEN left[j] ELSE right[j]]

-----------------------------------------------------------------------------
(* The log.  A split carries the records that move to its right leaf, and  *)
(* a merge those that come from it; so the redo of a page needs no other   *)
(* page.  Each names the fence that the index gains or loses.              *)
(* engine/src/wal/record.rs, Record.                                       *)

Put(p, k, v) == [is |-> "put", page |-> p, key |-> k, value |-> v]

Split(p, right, fence) ==
    [is |-> "split", page |-> p, right |-> right, key |-> fence, upper |-> page[p].upper,
     map |-> From(page[p].map, fence)]

Merge(p, right) ==
    [is |-> "merge", page |-> p, right |-> right, key |-> page[right].lower,
     upper |-> page[right].upper, map |-> page[right].map]

Records ==
    [is : {"put"}, page : Slots, key : Keys, value : Contents]
    \cup [is : {"split", "merge"}, page : Slots, right : Slots, key : Keys, upper : Bounds,
          map : [Keys -> Contents]]

IsPut(n)   == log[n].is = "put"
IsSplit(n) == log[n].is = "split"
IsMerge(n) == log[n].is = "merge"

(* Whether a record changes page p.                                        *)
Names(record, p) == record.page = p \/ (record.is = "split" /\ record.right = p)

(* Whether it is the end of page p.                                        *)
Ends(record, p) == record.is = "merge" /\ record.right = p

Puts(n) == {m \in 1..n : IsPut(m)}

(* The value of a key after the first n records.                           *)
ValueAt(k, n) ==
    LET writes == {m \in Puts(n) : log[m].key = k}
    IN IF writes = {} THEN Absent
       ELSE log[CHOOSE m \in writes : \A other \in writes : other <= m].value

MapAfter(n) == [k \in Keys |-> ValueAt(k, n)]

NextValue == Cardinality(Puts(Len(log))) + 1

-----------------------------------------------------------------------------
(* The index: of each key its page, if the key is a fence.                 *)

IsFence(ix, k) == ix[k] # NoSlot

(* The fence of the leaf that covers k, and the greatest one below a bound.*)
FenceOf(ix, k) ==
    CHOOSE f \in Keys : /\ IsFence(ix, f) /\ f <= k
                        /\ \A g \in Keys : IsFence(ix, g) /\ g <= k => g <= f

FenceBefore(ix, bound) == FenceOf(ix, bound - 1)

Find(ix, k) == ix[FenceOf(ix, k)]

FencesFrom(ix, k) == {f \in Keys : f >= k /\ IsFence(ix, f)}

UpperOf(ix, f) ==
    IF FencesFrom(ix, f + 1) = {} THEN Top
    ELSE CHOOSE g \in FencesFrom(ix, f + 1) : \A h \in FencesFrom(ix, f + 1) : g <= h

InIndex(ix) == {ix[f] : f \in Keys} \ {NoSlot}

(* A record's change of the index: "fence -> page", or "fence gone".       *)
Reindexed(ix, record) ==
    CASE record.is = "split" -> IF Bug = "skips-new-fences" THEN ix
                                ELSE [ix EXCEPT ![record.key] = record.right]
      [] record.is = "merge" -> IF Bug = "skips-gone-fences" THEN ix
                                ELSE [ix EXCEPT ![record.key] = NoSlot]
      [] OTHER               -> ix

RECURSIVE ReindexedFrom(_, _, _)
ReindexedFrom(ix, n, end) ==
    IF n > end THEN ix ELSE ReindexedFrom(Reindexed(ix, log[n]), n + 1, end)

-----------------------------------------------------------------------------
(* What slots hold.                                                        *)

Zeros == [is |-> "zeros"]
Image(leaf) == [is |-> "image", leaf |-> leaf]

(* An entry of a chunk, and the chunk, which names the next one's slot.    *)
Entry(fence, p, v) == [fence |-> fence, page |-> p, version |-> v]
Chunk(number, entries, next) ==
    [is |-> "chunk", number |-> number, entries |-> entries, next |-> next]

Entries == [fence : Keys, page : Slots, version : Lsns]

InSlot ==
    {Zeros} \cup [is : {"image"}, leaf : Leaf]
            \cup [is : {"chunk"}, number : Nat, entries : Seq(Entries), next : Places]

(* A superblock: its number, which its chunks have, too; where redo        *)
(* begins; the first chunk; and the checksum of all entries, here the      *)
(* entries themselves.                                                     *)
Super == [number : Nat, redo : Lsns, head : Places, sum : Seq(Entries)]

(* What reading a chain of chunks yields.                                  *)
NoChain == [entries |-> <<>>, slots |-> {}, ok |-> FALSE]

RECURSIVE ChainFrom(_, _, _, _)
ChainFrom(blocks, number, s, seen) ==
    IF s = NoSlot THEN [entries |-> <<>>, slots |-> {}, ok |-> TRUE]
    ELSE IF s \in seen \/ blocks[s].is # "chunk" THEN NoChain
    ELSE IF blocks[s].number # number /\ Bug # "takes-any-chunk" THEN NoChain
    ELSE LET rest == ChainFrom(blocks, number, blocks[s].next, seen \cup {s})
         IN [entries |-> blocks[s].entries \o rest.entries, slots |-> {s} \cup rest.slots,
             ok |-> rest.ok]

IsMap(entries) ==
    /\ entries # <<>> /\ entries[1].fence = Least
    /\ \A i \in 2..Len(entries) : entries[i - 1].fence < entries[i].fence

(* It is damaged (not `ok`) unless it is what was written.  Its number and *)
(* length alone do not say so: a checkpoint that a crash has cut off had   *)
(* the number that the next one has.                                       *)
IsWhatWasWritten(entries, chosen) ==
    CASE Bug = "takes-any-chunk" -> TRUE
      [] Bug = "trusts-number"   -> Len(entries) = Len(chosen.sum)
      [] OTHER                   -> entries = chosen.sum

ChainOf(blocks, chosen) ==
    LET read == ChainFrom(blocks, chosen.number, chosen.head, {})
    IN IF read.ok /\ IsMap(read.entries) /\ IsWhatWasWritten(read.entries, chosen) THEN read
       ELSE NoChain

IndexOf(entries) ==
    [k \in Keys |->
        IF \E i \in 1..Len(entries) : entries[i].fence = k
        THEN entries[CHOOSE i \in 1..Len(entries) : entries[i].fence = k].page ELSE NoSlot]

(* How new a page's image is at least, according to a snapshot.            *)
VersionIn(entries, p) ==
    LET of == {entries[i].version : i \in {j \in 1..Len(entries) : entries[j].page = p}}
    IN IF of = {} THEN 0 ELSE CHOOSE v \in of : \A other \in of : other <= v

(* What recovery takes for page p.  An image that is older than the        *)
(* snapshot says is the remainder of a write that was lost.  Only a page   *)
(* whose records in the log begin with a split can do without.             *)
(* engine/src/pages/versioned.rs.                                          *)
LeafIn(block, v) ==
    IF block.is # "image" THEN Gone
    ELSE IF block.leaf.lsn < v /\ Bug # "takes-any-image" THEN Gone
    ELSE block.leaf

-----------------------------------------------------------------------------
(* Redo.                                                                   *)

(* A record on a leaf that it changes.  If the leaf refuses, it is the     *)
(* image of an earlier page with this name, and cannot be used.            *)
(* engine/src/store/recovery.rs, Redo::stamp.                              *)
Applied(leaf, record, n) ==
    CASE record.is = "put" ->
           IF Covers(leaf, record.key) /\ HasRoomFor(leaf, record.key, record.value)
           THEN [leaf EXCEPT !.map[record.key] = record.value, !.lsn = n] ELSE Gone
      [] record.is = "split" ->
           IF leaf.lower < record.key /\ record.key < leaf.upper
           THEN [leaf EXCEPT !.upper = record.key, !.map = Before(@, record.key), !.lsn = n]
           ELSE Gone
      [] record.is = "merge" ->
           IF leaf.upper < record.upper /\ From(record.map, leaf.upper) = record.map
              /\ Size(leaf.map) + Size(record.map) <= Room
           THEN [leaf EXCEPT !.upper = record.upper, !.map = Joined(@, record.map, leaf.upper),
                             !.lsn = n]
           ELSE Gone

Built(record, n) ==
    [lower |-> record.key, upper |-> record.upper, map |-> record.map, lsn |-> n]

Lacks(leaf, n) == leaf.lsn < n \/ Bug = "reapplies"

(* Page p with the record that has LSN n.  One that is at least as new     *)
(* keeps its content.  A slot of the snapshot that recovery began with is  *)
(* not written: if recovery is cut off, the chunk is needed again.  The    *)
(* page is dead by the end of the log, since its slot got another owner.   *)
(* engine/src/store/recovery.rs, Redo::apply_to_page.                      *)
Redone(p, leaf, record, n, held) ==
    CASE record.page = p ->
           IF leaf = Gone \/ ~Lacks(leaf, n) THEN leaf ELSE Applied(leaf, record, n)
      [] record.is = "split" /\ record.right = p ->
           IF p \in held /\ Bug # "builds-over-chunk" THEN Gone
           ELSE IF Bug = "skips-right" \/ (leaf # Gone /\ leaf.lsn >= n) THEN leaf
           ELSE Built(record, n)
      [] Ends(record, p) -> IF leaf.lsn < n THEN Gone ELSE leaf
      [] OTHER           -> leaf

RECURSIVE RedoneFrom(_, _, _, _, _)
RedoneFrom(p, leaf, n, end, held) ==
    IF n > end THEN leaf
    ELSE RedoneFrom(p, Redone(p, leaf, log[n], n, held), n + 1, end, held)

-----------------------------------------------------------------------------
(* Calls.  Of get and scan `from` is a ghost: the log's end at the call.   *)
Idle == [op |-> "none"]

Waits(c) == call[c] # Idle

(* `page` is where a descent has led, if there was one since the last leaf *)
(* that was read.  A scan goes on from the bound `at`, upwards, or         *)
(* downwards (`back`), when it must remember the leaf's fence, too.        *)
GetCall(k)      == [op |-> "get", key |-> k, got |-> Pending, page |-> NoSlot, from |-> Len(log)]
WriteCall(k, v) == [op |-> "write", key |-> k, value |-> v, page |-> NoSlot, lsn |-> 0]
ScanCall(back)  ==
    [op |-> "scan", back |-> back, at |-> IF back THEN Top ELSE Least, fence |-> 0,
     page |-> NoSlot, got |-> [k \in Keys |-> Pending], from |-> Len(log)]

Calls ==
    {Idle}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}, page : Places, from : Lsns]
    \cup [op : {"write"}, key : Keys, value : Contents, page : Places, lsn : Lsns]
    \cup [op : {"scan"}, back : BOOLEAN, at : Bounds, fence : Keys \cup {0}, page : Places,
          got : [Keys -> Contents \cup {Pending}], from : Lsns]

(* A split or merge: its record is "logged", then its leaves are "changed",*)
(* and then the index.                                                     *)
NoChange == [at |-> "none", is |-> "none", page |-> NoSlot, right |-> NoSlot, lsn |-> 0]

Changes == [at : {"none", "logged", "changed"}, is : {"none", "split", "merge"}, page : Places,
            right : Places, lsn : Lsns]

(* A checkpoint: pages are written ("sweep"); the snapshot is read entry   *)
(* by entry from fence `next` on ("fence", then "version"), and so far has *)
(* the entries `sum` in `slots`, of which `entries` are in memory; its     *)
(* superblock is to be written ("read"), or is ("recorded").               *)
NoCheckpoint ==
    [at |-> "none", begin |-> 0, upTo |-> 0, head |-> NoSlot, last |-> NoSlot, slots |-> {},
     entries |-> <<>>, sum |-> <<>>, next |-> 0, page |-> NoSlot]

Steps ==
    [at : {"none", "sweep", "fence", "version", "read", "recorded"}, begin : Lsns, upTo : Lsns,
     head : Places, last : Places, slots : SUBSET Slots, entries : Seq(Entries), sum : Seq(Entries),
     next : Bounds \cup {0}, page : Places]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ log \in Seq(Records)
    /\ durable \in 0..Len(log) /\ oldest \in 0..durable
    /\ page \in [Slots -> Leaf]
    /\ version \in [Slots -> Lsns]
    /\ index \in [Keys -> Places]
    /\ free \subseteq Slots /\ chain \subseteq Slots
    /\ \A r \in retired : r \in [page : Slots, lsn : Lsns]
    /\ super \in Super
    /\ change \in Changes
    /\ checkpoint \in Steps
    /\ DOMAIN slotDev = Slots
    /\ \A s \in Slots : slotDev[s] # <<>> /\ \A i \in DOMAIN slotDev[s] : slotDev[s][i] \in InSlot
    /\ superDev \in Seq(Super) /\ superDev # <<>>
    /\ phase \in {"up", "cut", "killed", "damaged"}
    /\ redone \in Lsns /\ crashes \in Nat /\ losses \in Nat

(* A new store: empty leaves, the n-th in slot n, and behind them the      *)
(* chunks of their snapshot.                                               *)
Leaves    == Cardinality(Fences)
Nth(n)    == CHOOSE f \in Fences : Cardinality({g \in Fences : g < f}) = n - 1
NewLeaf(n) ==
    [lower |-> Nth(n), upper |-> IF n = Leaves THEN Top ELSE Nth(n + 1), map |-> Nothing,
     lsn |-> 0]

NewChunks == (Leaves + PerChunk - 1) \div PerChunk
NewChunk(i) ==
    LET first == (i - 1) * PerChunk
        last  == IF i = NewChunks THEN Leaves ELSE first + PerChunk
    IN Chunk(1, [j \in 1..(last - first) |-> Entry(Nth(first + j), first + j, 0)],
             IF i = NewChunks THEN NoSlot ELSE Leaves + i + 1)

Init ==
    /\ call = [c \in Clients |-> Idle]
    /\ log = <<>> /\ durable = 0 /\ oldest = 0
    /\ page = [s \in Slots |-> IF s <= Leaves THEN NewLeaf(s) ELSE Gone]
    /\ version = [s \in Slots |-> 0]
    /\ index = [k \in Keys |-> IF k \in Fences THEN CHOOSE n \in 1..Leaves : Nth(n) = k ELSE NoSlot]
    /\ chain = (Leaves + 1)..(Leaves + NewChunks)
    /\ free = Slots \ (1..(Leaves + NewChunks)) /\ retired = {}
    /\ super = [number |-> 1, redo |-> 0, head |-> Leaves + 1,
                sum |-> [n \in 1..Leaves |-> Entry(Nth(n), n, 0)]]
    /\ change = NoChange /\ checkpoint = NoCheckpoint
    /\ slotDev = [s \in Slots |->
           Durably(IF s <= Leaves THEN Image(NewLeaf(s))
                   ELSE IF s <= Leaves + NewChunks THEN NewChunk(s - Leaves) ELSE Zeros)]
    /\ superDev = Durably(super)
    /\ phase = "up" /\ redone = 0 /\ crashes = 0 /\ losses = 0
=============================================================================
