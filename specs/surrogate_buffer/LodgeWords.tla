----------------------------- MODULE LodgeWords -----------------------------
(***************************************************************************)
(* What LodgeTree keeps in persistent memory: leaves (§III-A, III-B) and   *)
(* the partitioned version log (§III-D); what a crash leaves of it, and    *)
(* what recovery makes of that.                                            *)
(*                                                                         *)
(*   leaf       header bitmap, use_n, stamp       one word                 *)
(*              low    the least key it may hold  one word, never changed  *)
(*              next   next0, next1               one word each            *)
(*              slot   a key and a value          two words, taken as one  *)
(*   log entry  pair   a key and a value          two words, taken as one  *)
(*              meta   a number, and a checksum   one word                 *)
(*                     of number and pair                                  *)
(*                                                                         *)
(* A word is a *place* of Device: the values that it has had since it was  *)
(* last known to be persistent, oldest first.  A load sees the last; a     *)
(* crash leaves any of them, whatever it leaves of other words, be they in *)
(* the same line.  A write-back of its line and a fence make the last one  *)
(* persistent.  Words are written back only on purpose here: that a line   *)
(* takes its other words along makes more persistent, which a crash may do *)
(* anyway.  A pair counts as one word since nobody looks at it before its  *)
(* bit is set, or unless its checksum fits: half a pair is as good as none.*)
(*                                                                         *)
(* `stamp`, `low`, `number` and the checksum are not in the paper; it has  *)
(* `use_n` and bitmap, and does not say whether in one word.  Why they are *)
(* needed is in FINDINGS.md.                                               *)
(*                                                                         *)
(* engine/src/device/pm, MemPm.                                            *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Keys,       \* 1, 2, ...
    Leaves,     \* 1, 2, ...: space for leaves; the first is always the leftmost
    LeafSlots,  \* slots of a leaf
    Spaces,     \* 1, 2, ...: space for logs
    LogSize,    \* the paper's L: entries of a log
    Absent,     \* the value of an absent key; deleting writes it
    Bug         \* the seeded bug, or "none" for the correct protocol

Header     == <<"header", 0>>
Low        == <<"low", 0>>
Sibling(u) == <<"next", u>>
Slot(i)    == <<"slot", i>>

Places == 1..LeafSlots
Spots  == {Header, Low, Sibling(0), Sibling(1)} \cup {Slot(i) : i \in Places}

NoPair == [key |-> 0, value |-> Absent]
NoLeaf == 0

HeaderWord(bits, use, stamp) == [bits |-> bits, use |-> use, stamp |-> stamp]

(* An unused leaf, without contents.                                       *)
Blank(low, next) ==
    [spot \in Spots |->
        CASE spot = Header     -> HeaderWord({}, 0, 0)
          [] spot = Low        -> low
          [] spot = Sibling(0) -> next
          [] spot = Sibling(1) -> NoLeaf
          [] OTHER             -> NoPair]

NoEntry == [pair |-> NoPair, meta |-> [number |-> 0, sum |-> <<>>]]

(* The checksum is what it covers.                                         *)
EntryOf(pair, number) == [pair |-> pair, meta |-> [number |-> number, sum |-> <<number, pair>>]]

(* A further value of a word; and a leaf or entry with all words fenced.   *)
Store(place, value) == Append(place, value)
Fenced(places)      == AllDurably(NewestOf(places))

Greatest(numbers) == IF numbers = {} THEN 0 ELSE CHOOSE n \in numbers : \A m \in numbers : m <= n

RECURSIVE Ascending(_)
(* The members of a set of numbers, in order.                              *)
Ascending(set) ==
    IF set = {} THEN <<>>
    ELSE LET first == CHOOSE x \in set : \A y \in set : x <= y
         IN <<first>> \o Ascending(set \ {first})

-----------------------------------------------------------------------------
(* Reading.  `words` is a leaf with one value of each word, `leaves` all   *)
(* of them.                                                                *)

NextOf(words) == words[Sibling(words[Header].use)]

RECURSIVE ChainFrom(_, _, _)
(* The leaves from one on, along the sibling pointers; `left` more at most.*)
ChainFrom(leaves, l, left) ==
    IF l = NoLeaf \/ left = 0 THEN <<>>
    ELSE <<l>> \o ChainFrom(leaves, NextOf(leaves[l]), left - 1)

Chain(leaves) == ChainFrom(leaves, 1, Cardinality(Leaves))

PairsIn(words)  == {words[Slot(i)] : i \in words[Header].bits}
KeysIn(words)   == {pair.key : pair \in PairsIn(words)}

ValueIn(words, k) ==
    IF k \in KeysIn(words) THEN (CHOOSE pair \in PairsIn(words) : pair.key = k).value ELSE Absent

(* The leaf of an index to which a key belongs.  The first has low 0.      *)
At(index, k)     == Greatest({i \in 1..Len(index) : index[i].low <= k})
LeafAt(index, k) == index[At(index, k)].leaf

Least(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m

(* The index as recovery rebuilds it from the leaves alone: each leaf      *)
(* stores where it begins.  Without that, its smallest key must do.        *)
IndexOf(leaves) ==
    LET chain   == Chain(leaves)
        entry(l) == [low |-> leaves[l][Low], leaf |-> l]
        least(l) == [low |-> IF l = 1 THEN 0 ELSE Least(KeysIn(leaves[l])), leaf |-> l]
        holds(l) == l = 1 \/ KeysIn(leaves[l]) # {}
        kept     == SelectSeq(chain, holds)
    IN IF Bug = "separators-from-keys"
       THEN [i \in 1..Len(kept) |-> least(kept[i])]
       ELSE [i \in 1..Len(chain) |-> entry(chain[i])]

(* Whether an entry is complete.                                           *)
IsWhole(entry) ==
    /\ entry.meta.number # 0
    /\ \/ entry.meta.sum = <<entry.meta.number, entry.pair>>
       \/ Bug = "believes-torn-entry" /\ entry.pair # NoPair

(* The positions of entries.                                               *)
Entries == Spaces \X (1..LogSize)

-----------------------------------------------------------------------------
(* What a crash may leave.                                                 *)

(* The leaves that some version of a pointer leads to.  The others are     *)
(* free, and their contents do not matter.                                 *)
Pointed(leaf) ==
    {1} \cup (UNION {Survivors(leaf[l][Sibling(u)]) : l \in Leaves, u \in {0, 1}} \ {NoLeaf})

RECURSIVE Vary(_, _, _)
(* Everything is as in `now`, except that words in `doubtful` have any of  *)
(* their values.                                                           *)
Vary(now, doubtful, leaf) ==
    IF doubtful = {} THEN {now}
    ELSE LET at == CHOOSE x \in doubtful : TRUE
         IN UNION {Vary([now EXCEPT ![at[1]][at[2]] = value], doubtful \ {at}, leaf) :
                      value \in Survivors(leaf[at[1]][at[2]])}

LeavesLeft(leaf) ==
    Vary([l \in Leaves |-> NewestOf(leaf[l])],
         {at \in Pointed(leaf) \X Spots : Len(leaf[at[1]][at[2]]) > 1},
         leaf)

(* Recovery does not read free leaves or slots whose bit is clear.         *)
Tidy(words) ==
    [spot \in Spots |->
        IF spot \in {Slot(i) : i \in Places \ words[Header].bits} THEN NoPair ELSE words[spot]]

Found(leaves) ==
    LET chain == Chain(leaves)
    IN [l \in Leaves |->
           IF \E i \in 1..Len(chain) : chain[i] = l THEN Tidy(leaves[l]) ELSE Blank(0, NoLeaf)]

(* For an entry that is not fenced yet, each word has its old or new       *)
(* value.  The outcome in which both are new is left to the step           *)
(* WriteBackEntry, so that there is an instant at which the write takes    *)
(* effect.                                                                 *)
EntryLeft(places) ==
    LET now     == NewestOf(places)
        is(left) == left = now \/ (Bug = "believes-stale-entry" /\ left.pair = now.pair)
    IN {left \in [pair : Survivors(places.pair), meta : Survivors(places.meta)] : ~is(left)}

RECURSIVE VaryLog(_, _, _)
VaryLog(now, doubtful, log) ==
    IF doubtful = {} THEN {now}
    ELSE LET at == CHOOSE x \in doubtful : TRUE
         IN UNION {VaryLog([now EXCEPT ![at[1]][at[2]] = left], doubtful \ {at}, log) :
                      left \in EntryLeft(log[at[1]][at[2]])}

LogNow(log) == [s \in Spaces |-> [i \in 1..LogSize |-> NewestOf(log[s][i])]]

LogLeft(log) ==
    VaryLog(LogNow(log), {at \in Entries : Unflushed(log[at[1]][at[2]]) # {}}, log)
=============================================================================
