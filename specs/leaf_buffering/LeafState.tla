------------------------------ MODULE LeafState -----------------------------
(***************************************************************************)
(* What CCL-BTree keeps in DRAM above its leaves: inner nodes, a buffer    *)
(* node for each leaf (§3.2), and who is writing what.  The steps are in   *)
(* LeafBuffering.                                                          *)
(***************************************************************************)
EXTENDS LeafMemory

CONSTANTS
    Clients,    \* the clients, each of which has its own log
    Values,     \* 1, 2, ...: the n-th write puts n
    Pending,    \* the result of a read that has not happened yet
    Batch       \* N_batch: slots of a buffer node

(* A leaf that a batch does not fit in has records to split.               *)
ASSUME Cardinality(Slots) >= Batch + 2

VARIABLES
    \* The clients
    call,       \* what each is waiting for
    asked,      \* number of writes asked for
    \* DRAM
    inner,      \* the inner nodes: leaves and their separators, in key order
    buffer,     \* each leaf's buffer node
    job,        \* what each writer does under its latches
    log,        \* the chunk that each log ends in
    epoch,      \* the global epoch
    tick,       \* the clock: last tick of a log entry
    cleaning,   \* how far log cleaning is
    \* Persistent memory
    pm,         \* every word
    \* The power
    phase,      \* "up", "failing" from a power cut until all words have settled, "killed" from the
                \* end of the process until all are written back, then "recovery"
    crashes,    \* number of crashes and kills so far
    \* For the observer
    found,      \* what recovery would find, if the power went and no word but the durable ones were left
    written     \* what it should find: the last write of each key that has taken effect

clientVars == <<call, asked, written>>
bufferVars == <<inner, buffer>>
logVars    == <<log, epoch, tick, cleaning>>
memoryVars == <<pm, found>>
powerVars  == <<phase, crashes>>

vars == <<clientVars, bufferVars, job, logVars, memoryVars, powerVars>>

Contents == Values \cup {Absent}

(* Recovery writes with the clients' own steps, cleaning appends to a log. *)
Recoverer == "recovery"
Cleaner   == "cleaner"
Writers   == Clients \cup {Recoverer}
Loggers   == Clients \cup {Cleaner}

Idle == [op |-> "none"]

(* A write has "begun" when it has the latch of its leaf, and is "done" as *)
(* soon as it is durable, before its client is told.                       *)
Calls ==
    {Idle}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents, at : {"called", "begun", "done"}]

(* A slot of a buffer node with its bit of the epoch bitmap.  The first    *)
(* `count` of them, the position counter, are not in the leaf yet; the     *)
(* others are, and are kept as a cache.                                    *)
NoKv == [key |-> 0, value |-> Absent, bit |-> 0]

EmptyBuffer == [slots |-> [i \in 1..Batch |-> NoKv], count |-> 0]

BufferNodes ==
    [slots : [1..Batch -> [key : Keys \cup {0}, value : Contents, bit : {0, 1}]], count : 0..Batch]

(* A writer holds the latches of `leaf` and, while it merges, `from`.      *)
(*                                                                         *)
(*   log -> logged -> done            a logged write                       *)
(*   batch -> records -> header       a flush: a trigger write with the    *)
(*     -> flushed                     buffered ones, or a replayed entry   *)
(*   batch -> new -> link -> batch    which splits the leaf first          *)
(*   flushed -> (batch ... ) -> move  a merge: the left leaf's buffer is   *)
(*     -> moved -> merged -> done     flushed, then the records move       *)
NoJob ==
    [at |-> "none", leaf |-> 0, from |-> 0, new |-> 0, epoch |-> 0, batch |-> <<>>, deletes |-> FALSE]

Steps ==
    {"none", "log", "logged", "batch", "records", "header", "new", "link", "flushed",
     "move", "moved", "merged", "done"}

NoLog == [chunk |-> 0, used |-> 0, epoch |-> 0]

NoCleaning == [at |-> "idle", todo |-> {}, chunks |-> {}]

TypeInv ==
    /\ call \in [Clients -> Calls] /\ asked \in Nat
    /\ \A i \in DOMAIN inner : inner[i].leaf \in Leaves /\ inner[i].low \in Keys \cup {0, Beyond}
    /\ \A l \in Leaves : buffer[l] \in BufferNodes
    /\ \A w \in Writers :
          /\ job[w].at \in Steps
          /\ {job[w].leaf, job[w].from, job[w].new} \subseteq Leaves \cup {0}
          /\ DOMAIN job[w].batch \subseteq Keys /\ \A k \in DOMAIN job[w].batch : job[w].batch[k] \in Contents
    /\ log \in [Loggers -> [chunk : Chunks \cup {0}, used : Entries \cup {0}, epoch : Nat]]
    /\ epoch \in Nat /\ tick \in Nat
    /\ cleaning \in [at : {"idle", "scan", "reclaim"}, todo : SUBSET Leaves, chunks : SUBSET Chunks]
    /\ DOMAIN pm = Words /\ \A w \in Words : pm[w] # <<>>
    /\ phase \in {"up", "failing", "killed", "recovery"} /\ crashes \in Nat
    /\ found \in [Keys -> Contents] /\ written \in [Keys -> Contents]

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ inner = <<[leaf |-> 1, low |-> 0]>>
    /\ buffer = [l \in Leaves |-> EmptyBuffer]
    /\ job = [w \in Writers |-> NoJob]
    /\ log = [x \in Loggers |-> NoLog] /\ epoch = 1 /\ tick = 0
    /\ cleaning = NoCleaning
    /\ pm = BlankMemory
    /\ phase = "up" /\ crashes = 0
    /\ found = [k \in Keys |-> Absent] /\ written = [k \in Keys |-> Absent]

-----------------------------------------------------------------------------
(* What caches and memory hold, and what a crash cannot take away.         *)
Visible == [w \in Words |-> Newest(pm[w])]
Medium  == Durables(pm)

(* The epoch of the store's next life: there may have been two epochs, and *)
(* neither number is used again.                                           *)
NextEpoch == Visible[First] + IF Bug = "epoch-too-low" THEN 1 ELSE 2

Becomes(memory) == pm' = memory /\ found' = Recovered(Durables(memory))

LeafFor(k)   == Route(inner, k)
Position(l)  == CHOOSE i \in DOMAIN inner : inner[i].leaf = l
Separator(l) == inner[Position(l)].low

Latched(l) == \E w \in Writers : job[w].at # "none" /\ l \in {job[w].leaf, job[w].from}

InUse == {inner[i].leaf : i \in DOMAIN inner} \cup {job[w].new : w \in Writers}

-----------------------------------------------------------------------------
(* Buffer nodes.                                                           *)

Waiting(b) == 1..b.count

(* The unflushed slot of k, or the next free one.                          *)
PlaceFor(b, k) ==
    LET same == {i \in Waiting(b) : b.slots[i].key = k}
    IN IF same = {} \/ Bug = "appends-duplicates" THEN b.count + 1 ELSE Least(same)

IsTrigger(b, k) == PlaceFor(b, k) > Batch

Buffered(b, k, v, bit) ==
    LET i == PlaceFor(b, k)
    IN [slots |-> [b.slots EXCEPT ![i] = [key |-> k, value |-> v, bit |-> bit]],
        count |-> IF i > b.count THEN i ELSE b.count]

(* The keys that are to be flushed from it, with their values.             *)
UnflushedKvs(b) ==
    [k \in {b.slots[i].key : i \in Waiting(b)} |->
        b.slots[CHOOSE i \in Waiting(b) :
            b.slots[i].key = k /\ \A j \in Waiting(b) : b.slots[j].key = k => j <= i].value]

WithoutCache(b) ==
    [b EXCEPT !.slots = [i \in 1..Batch |-> IF i <= b.count THEN b.slots[i] ELSE NoKv]]

(* "For correctness, we should scan the buffer nodes from the left-most    *)
(* slots to avoid getting the stale values."                               *)
Lookup(k) ==
    LET l    == LeafFor(k)
        hits == {i \in 1..Batch : buffer[l].slots[i].key = k}
    IN IF hits # {} THEN buffer[l].slots[Least(hits)].value ELSE InLeaf(Visible, l, k)

-----------------------------------------------------------------------------
(* The effect of a batch on a leaf.                                        *)

(* "When the tombstone KV is written to the leaf node, we clear its        *)
(* corresponding bit": except for the key that is the leaf's separator,    *)
(* which is kept, with its tombstone.                                      *)
IsKept(low, k, v) == v # Absent \/ k = low

Kept(l, batch) ==
    LET low == IF Bug = "clears-smallest" THEN 0 ELSE Separator(l)
    IN {k \in DOMAIN batch : IsKept(low, k, batch[k])}

Fits(l, batch) == Cardinality(Kept(l, batch)) <= Cardinality(Free(Visible, l))

(* Maps the n-th smallest key of a set to the n-th of some slots.          *)
Nth(numbers, n) == CHOOSE x \in numbers : Cardinality({y \in numbers : y < x}) = n - 1

Placed(keys, slots) == [n \in 1..Cardinality(keys) |-> [key |-> Nth(keys, n), slot |-> Nth(slots, n)]]

SlotsFor(l, keys) ==
    LET placed == Placed(keys, Free(Visible, l)) IN {placed[n].slot : n \in DOMAIN placed}

(* The words for some records of leaf l, given where they go.              *)
RecordWords(l, placed, content) ==
    [w \in {SlotOf(l, placed[n].slot) : n \in DOMAIN placed} |->
        LET n == CHOOSE n \in DOMAIN placed : SlotOf(l, placed[n].slot) = w
        IN [key |-> placed[n].key, value |-> content[placed[n].key]]]

(* The live slots after the batch.                                         *)
LiveAfter(l, batch) ==
    {s \in Live(Visible, l) : Visible[SlotOf(l, s)].key \notin DOMAIN batch}
    \cup SlotsFor(l, Kept(l, batch))

(* "Copy half of the entries": the upper half.  Its smallest key is the    *)
(* separator.                                                              *)
Moved(l) ==
    LET keys == KeysIn(Visible, l)
        n    == Cardinality(keys)
    IN {k \in keys : Cardinality({o \in keys : o < k}) >= n - n \div 2}

SplitKey(l) == Least(Moved(l))

(* The initial contents of the new leaf.                                   *)
NewContent(l, batch) ==
    LET low == SplitKey(l)
        all == [k \in Moved(l) \cup {k \in DOMAIN batch : k >= low} |->
                   IF k \in DOMAIN batch THEN batch[k] ELSE InLeaf(Visible, l, k)]
    IN [k \in {k \in DOMAIN all : IsKept(low, k, all[k])} |-> all[k]]

Rest(l, batch) == [k \in {k \in DOMAIN batch : k < SplitKey(l)} |-> batch[k]]

(* The records of a leaf, without tombstones.                              *)
Records(l) ==
    [k \in {k \in KeysIn(Visible, l) : InLeaf(Visible, l, k) # Absent} |-> InLeaf(Visible, l, k)]

(* A buffer node with copies of the first of them, and nothing to flush.   *)
Copies(l) ==
    LET content == Records(l)
        keys    == DOMAIN content
    IN [slots |-> [i \in 1..Batch |->
            IF i > Cardinality(keys) THEN NoKv
            ELSE [key |-> Nth(keys, i), value |-> content[Nth(keys, i)], bit |-> 0]],
        count |-> 0]

(* The left sibling of a leaf that is not the first.                       *)
LeftOf(l) == inner[Position(l) - 1].leaf

(* After a flush that deleted.                                             *)
ShouldMerge(j) ==
    /\ j.deletes
    /\ j.leaf # 1
    /\ LET here == Cardinality(DOMAIN Records(j.leaf))
           left == LeftOf(j.leaf)
       IN /\ 2 * here < Cardinality(Slots)
          /\ here + buffer[left].count <= Cardinality(Free(Visible, left))
=============================================================================
