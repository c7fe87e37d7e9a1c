----------------------------- MODULE LeafMemory -----------------------------
(***************************************************************************)
(* Persistent memory as CCL-BTree lays it out (§3.3, §4.1), and what       *)
(* recovery makes of it.                                                   *)
(*                                                                         *)
(* A word of 8 bytes is a place of Device: the values that a crash may     *)
(* leave there, oldest first.  A store adds one; a write-back of the line  *)
(* and a fence leave only the last.  Until then each word is independent   *)
(* of the others: caches write lines back at any time.                     *)
(*                                                                         *)
(*   leaf:    [bitmap, next] [timestamp] [kv] [kv] ...                     *)
(*   chunk:   [epoch]  [kv] [time]  [kv] [time]  ...                       *)
(*   store:   [first]                                                      *)
(*                                                                         *)
(* Key and value are one word here and two there: in a leaf nobody reads   *)
(* them before a fence, and for a log entry the one torn write shown here  *)
(* stands for three.  Fingerprints are left out: they are words of the     *)
(* header line like the timestamp, so recovery must not trust them.        *)
(*                                                                         *)
(* Three things are not in the paper (FINDINGS.md).  A time is an epoch    *)
(* and a tick, so that it may go on after a crash, when ticks restart;     *)
(* chunks name their epoch, and one word says which epochs count; a log    *)
(* entry has a checksum.                                                   *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Keys,           \* 1, 2, ...
    Leaves,         \* 1, 2, ...: room for leaves; the list begins with leaf 1
    Slots,          \* 1, 2, ...: of a leaf
    Chunks,         \* 1, 2, ...: room for log chunks
    Entries,        \* 1, 2, ...: of a chunk
    Absent,         \* the value of a key that does not exist: the paper's zero
    Bug             \* the seeded bug, or "none" for the correct protocol

(* Words have addresses: that of the store, then leaf by leaf, then chunk  *)
(* by chunk.                                                               *)
LeafSize  == 2 + Cardinality(Slots)
ChunkSize == 1 + 2 * Cardinality(Entries)

First        == 1
HeaderOf(l)  == 2 + (l - 1) * LeafSize
StampOf(l)   == HeaderOf(l) + 1
SlotOf(l, s) == HeaderOf(l) + 1 + s
ChunkOf(c)   == 2 + Cardinality(Leaves) * LeafSize + (c - 1) * ChunkSize
KvOf(c, i)   == ChunkOf(c) + 2 * i - 1
TimeOf(c, i) == ChunkOf(c) + 2 * i

Words == 1..(1 + Cardinality(Leaves) * LeafSize + Cardinality(Chunks) * ChunkSize)

(* Both are in one line: writing one back writes back both.                *)
HeaderLine(l)     == {HeaderOf(l), StampOf(l)}
SlotsOf(l, slots) == {SlotOf(l, s) : s \in slots}
LeafLines(l)      == HeaderLine(l) \cup SlotsOf(l, Slots)
ChunkLines(c)     == ChunkOf(c)..(ChunkOf(c) + ChunkSize - 1)

Zero   == [key |-> 0, value |-> Absent]
Never  == <<0, 0>>

(* `of` is what the checksum covers.                                       *)
Stamped(time, kv) == [at |-> time, of |-> kv]

Blank(w) ==
    CASE w = First                                     -> 1
      [] w \in {HeaderOf(l) : l \in Leaves}            -> [live |-> {}, next |-> 0]
      [] w \in {StampOf(l) : l \in Leaves}             -> Never
      [] w \in UNION {SlotsOf(l, Slots) : l \in Leaves} -> Zero
      [] w \in {ChunkOf(c) : c \in Chunks}             -> 0
      [] w \in {KvOf(c, i) : c \in Chunks, i \in Entries}   -> Zero
      [] w \in {TimeOf(c, i) : c \in Chunks, i \in Entries} -> Stamped(Never, Zero)

BlankMemory == [w \in Words |-> Durably(Blank(w))]

(* A memory after stores, and after a fence.                               *)
Store(memory, words) ==
    [w \in Words |->
        IF w \in DOMAIN words /\ words[w] # Newest(memory[w]) THEN Append(memory[w], words[w])
        ELSE memory[w]]

Fence(memory, words) ==
    [w \in Words |-> IF w \in words THEN Durably(Newest(memory[w])) ELSE memory[w]]

(* Its durable contents.                                                   *)
Durables(memory) == [w \in Words |-> memory[w][1]]

Dirty(memory) == {w \in Words : Len(memory[w]) > 1}

-----------------------------------------------------------------------------
(* A leaf.  From here on `m` is one value for each word.                   *)

Least(numbers)    == CHOOSE n \in numbers : \A o \in numbers : n <= o
Greatest(numbers) == CHOOSE n \in numbers : \A o \in numbers : n >= o

Live(m, l)   == m[HeaderOf(l)].live
Free(m, l)   == Slots \ Live(m, l)
KeysIn(m, l) == {m[SlotOf(l, s)].key : s \in Live(m, l)}

SlotWith(m, l, k) == CHOOSE s \in Live(m, l) : m[SlotOf(l, s)].key = k

InLeaf(m, l, k) == IF k \in KeysIn(m, l) THEN m[SlotOf(l, SlotWith(m, l, k))].value ELSE Absent

(* "We can reconstruct the CCL-BTree by rebuilding their inner nodes in    *)
(* DRAM while traversing the linked list of leaf nodes": with the smallest *)
(* key of each leaf for its separator, for the paper's leaf has no other.  *)
Beyond == Cardinality(Keys) + 1

LowOf(m, l) ==
    IF l = 1 THEN 0 ELSE IF KeysIn(m, l) = {} THEN Beyond ELSE Least(KeysIn(m, l))

RECURSIVE ListFrom(_, _)
ListFrom(m, l) ==
    <<[leaf |-> l, low |-> LowOf(m, l)]>>
    \o IF m[HeaderOf(l)].next = 0 THEN <<>> ELSE ListFrom(m, m[HeaderOf(l)].next)

(* The leaf whose range contains k.                                        *)
Route(inner, k) ==
    LET i == CHOOSE i \in DOMAIN inner :
                inner[i].low <= k /\ \A j \in (i + 1)..Len(inner) : k < inner[j].low
    IN inner[i].leaf

-----------------------------------------------------------------------------
(* The logs.                                                               *)

Before(s, t) == s[1] < t[1] \/ (s[1] = t[1] /\ s[2] < t[2])

IsLive(m, c) == m[ChunkOf(c)] >= m[First]

(* A place in a chunk that was used before may hold an old entry, or only  *)
(* one word of a new one.  It never holds words of another kind: memory    *)
(* that was not a log's is zeroed first (engine/src/pm/space.rs,           *)
(* take_chunk).                                                            *)
IsEntry(m, c, i) ==
    LET time == m[TimeOf(c, i)]
    IN /\ IsLive(m, c)
       /\ time.at # Never
       /\ time.at[1] = m[ChunkOf(c)] \/ Bug = "believes-old-entries"
       /\ time.of = m[KvOf(c, i)] \/ Bug = "believes-torn-entries"
       /\ m[KvOf(c, i)].value # Absent \/ Bug # "skips-tombstones"

Times(m, entry) == m[TimeOf(entry[1], entry[2])].at

Follows(d, e) == d[1] < e[1] \/ (d[1] = e[1] /\ d[2] < e[2])

(* Log by log, each entry raising its leaf's timestamp: an entry that is   *)
(* older than an earlier replayed one of its leaf is ignored.              *)
PassedOver(m, inner, entry) ==
    /\ Bug = "stamps-while-replaying"
    /\ \E c \in Chunks, i \in Entries :
          /\ Follows(<<c, i>>, entry) /\ IsEntry(m, c, i)
          /\ m[KvOf(c, i)].key \in Keys
          /\ Route(inner, m[KvOf(c, i)].key) = Route(inner, m[KvOf(entry[1], entry[2])].key)
          /\ Before(Times(m, entry), Times(m, <<c, i>>))

EntriesOf(m, inner, k) ==
    {entry \in Chunks \X Entries :
        /\ m[KvOf(entry[1], entry[2])].key = k
        /\ IsEntry(m, entry[1], entry[2])
        /\ ~PassedOver(m, inner, entry)}

(* The newest entry of all logs.                                           *)
LastEntry(m, entries) ==
    IF Bug = "log-by-log"
    THEN CHOOSE e \in entries : \A d \in entries : ~Follows(e, d)
    ELSE CHOOSE e \in entries : \A d \in entries : ~Before(Times(m, e), Times(m, d))

(* The value of k that a log has and its leaf does not: "if there are      *)
(* multiple versions of data of the same key in leaf nodes and WALs during *)
(* recovery, we can get the latest version of this key by just comparing   *)
(* their timestamps."                                                      *)
ToReplay(m, inner, k) ==
    LET entries == EntriesOf(m, inner, k)
    IN IF entries = {} THEN {}
       ELSE LET e == LastEntry(m, entries)
            IN IF Before(m[StampOf(Route(inner, k))], Times(m, e)) THEN {e} ELSE {}

(* The value of a key after recovery.                                      *)
RecoveredKey(m, inner, k) ==
    LET last == ToReplay(m, inner, k)
    IN IF last = {} THEN InLeaf(m, Route(inner, k), k)
       ELSE LET e == CHOOSE e \in last : TRUE IN m[KvOf(e[1], e[2])].value

Recovered(m) == LET inner == ListFrom(m, 1) IN [k \in Keys |-> RecoveredKey(m, inner, k)]
=============================================================================
