----------------------------- MODULE LodgeState -----------------------------
(***************************************************************************)
(* LodgeTree's last level (§III-A): the inner nodes with their surrogate   *)
(* buffers in DRAM, over the words of LodgeWords.  The steps are in        *)
(* LeafCountFlush and SurrogateBuffer.                                     *)
(*                                                                         *)
(* Upper levels are not modelled: nodes form a row, and a thread that      *)
(* needs the node of a key gets it, with its lock, in one step.            *)
(***************************************************************************)
EXTENDS LodgeWords

CONSTANTS
    Clients,    \* the clients; each has a partition of the log
    Values,     \* 1, 2, ...: the n-th write puts n
    Pending,    \* the result of a read that has not happened yet
    Slots,      \* slots of an inner node, index part and buffer part together
    Fanout,     \* the number of leaves at which an inner node is split
    TNode,      \* t_node: the most leaves that one flush goes to
    TSplit,     \* t_split: the most pairs that a leaf may hold
    Lows        \* where the initial leaves begin: 0, and perhaps others

(* A leaf has more than t_split pairs only as a half of a split.  That is  *)
(* a half of what it had and of what one buffer has for it: at most        *)
(* Slots - 2 pairs, for each key is in the buffer once, and the index and  *)
(* the designated slot take two.  So no leaf gets more than the greater of *)
(* both numbers, and one split makes room for all pairs if both fit.       *)
ASSUME
    /\ TSplit \in 1..LeafSlots /\ Slots >= 2 /\ Fanout >= 2 /\ 0 \in Lows
    /\ Slots - 2 <= LeafSlots \/ Cardinality(Keys) <= 2 * LeafSlots

(* The lower half of n pairs is split again, in the same flush, if it has  *)
(* more than t_split: n \div 2 > TSplit, or n >= 2 * TSplit + 2.  Each     *)
(* split takes a slot of the node, and frees those of the pairs that move; *)
(* the node has one slot to spare.  So SpaceInv fails if neither split     *)
(* moves a buffered pair, or, in the next flush, if only one pair was      *)
(* flushed.  In the first case all pairs of the flush are among the        *)
(* n \div 4 lowest, and the leaf already has the n - n \div 4 others, which *)
(* are fewest for the least n.  In the second it has n - 1, no fewer.      *)
SplitTwice == 2 * TSplit + 2 - (TSplit + 1) \div 2

(* A leaf never has that many pairs; or, if it has, its node has no other  *)
(* leaf at the beginning of a flush (a node of Fanout leaves is split      *)
(* before), so that the whole buffer would be among the lowest; or there   *)
(* are too few keys.  LeafSlots 3, TSplit 1 and Slots 7 have none of it.   *)
(* The engine merges the lower half after one split, whatever t_split is   *)
(* (engine/src/pm/trees/lodge/split.rs), so it needs one slot.              *)
ASSUME
    \/ LeafSlots < SplitTwice \/ Slots - 2 < SplitTwice
    \/ Fanout < 3 \/ Cardinality(Keys) < 2 * TSplit + 2

VARIABLES
    call,       \* what each client is waiting for, and its progress
    \* In DRAM
    nodes,      \* the last-level inner nodes, from left to right
    versions,   \* what is known of each log: its version, and how many entries are needed
    version,    \* the global version: that of the newest log
    clock,      \* the number that the next entry gets
    \* Persistent
    leaf,       \* the words of each leaf
    log,        \* the words of each entry of each log
    \* Recovery
    phase,      \* "up"; in recovery, how it ended: "cut" by a crash, or "killed"
    replayed,   \* in recovery: the entries that are done
    crashes,    \* number of crashes and restarts so far
    \* For checking
    kept        \* the map that no crash can undo: all writes whose entries are persistent

dramVars     == <<nodes, versions, version, clock>>
recoveryVars == <<phase, replayed, crashes>>

vars == <<call, dramVars, leaf, log, recoveryVars, kept>>

Contents == Values \cup {Absent}

Idle == [op |-> "none"]

(* A write is "called", "appended" to the log, there perhaps "durable"     *)
(* before its fence, and "done" when it is fenced and buffered.  `space`   *)
(* is the log that it went to.  Its entry is the last one there.           *)
Calls ==
    {Idle}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents,
          at : {"called", "appended", "durable", "done"}, space : Spaces \cup {0}]

(* A pair in a buffer, with its number, and its version (the paper's       *)
(* buf_ver).                                                               *)
Buffered == [key : Keys, value : Contents, number : Nat, version : Nat]

Free     == "free"
Flushing == "flush"

(* An inner node.  `lock` is the reader-writer lock held for writing;      *)
(* readers finish in one step and do not appear.  A flush has yet to go to *)
(* the leaves `todo`, and is `at` some step with the first of them.  If it *)
(* splits that leaf, it creates the leaf `fresh`.                          *)
(*                                                                         *)
(* leaf_count is left out: its counts follow from the bitmaps, and the     *)
(* leaf of a pair follows from its key.                                    *)
Node ==
    [index  : Seq([low : Nat, leaf : Leaves]),
     buffer : Seq(Buffered),
     lock   : {Free, Flushing} \cup Clients,
     todo   : Seq(Leaves),
     at     : {"idle", "cleared", "written", "marked", "prepared", "linked", "switched"},
     fresh  : Leaves \cup {NoLeaf}]

NewNode(index, buffer) ==
    [index |-> index, buffer |-> buffer, lock |-> Free, todo |-> <<>>, at |-> "idle", fresh |-> NoLeaf]

(* A log of the partition of `owner`: `used` of its entries are written,   *)
(* and `valid` ones are needed or still to be written.  If `valid` is 0,   *)
(* its space is free.                                                      *)
Nobody == "nobody"

Version == [version : Nat, owner : Clients \cup {Nobody}, used : 0..LogSize, valid : 0..LogSize]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ \A n \in 1..Len(nodes) : nodes[n] \in Node
    /\ versions \in [Spaces -> Version]
    /\ version \in Nat /\ clock \in Nat
    /\ \A l \in Leaves, spot \in Spots : leaf[l][spot] # <<>>
    /\ \A at \in Entries : DOMAIN log[at[1]][at[2]] = {"pair", "meta"}
    /\ phase \in {"up", "cut", "killed"}
    /\ replayed \subseteq Entries
    /\ crashes \in Nat
    /\ kept \in [Keys -> Contents]

-----------------------------------------------------------------------------
(* The first leaves are empty; nothing was ever logged.                    *)
FirstLeaf(l) ==
    LET lows == Ascending(Lows)
    IN IF l <= Len(lows) THEN Blank(lows[l], IF l < Len(lows) THEN l + 1 ELSE NoLeaf)
       ELSE Blank(0, NoLeaf)

FirstIndex ==
    LET lows == Ascending(Lows) IN [i \in 1..Len(lows) |-> [low |-> lows[i], leaf |-> i]]

(* The logs of which no entry is needed, and their versions.               *)
OldVersions == [s \in Spaces |-> [version |-> s, owner |-> Nobody, used |-> LogSize, valid |-> 0]]

Init ==
    /\ call = [c \in Clients |-> Idle]
    /\ leaf = [l \in Leaves |-> AllDurably(FirstLeaf(l))]
    /\ log = [s \in Spaces |-> [i \in 1..LogSize |-> AllDurably(NoEntry)]]
    /\ nodes = <<NewNode(FirstIndex, <<>>)>>
    /\ versions = OldVersions /\ version = Cardinality(Spaces)
    /\ clock = 1
    /\ phase = "up" /\ replayed = {} /\ crashes = 0
    /\ kept = [k \in Keys |-> Absent]

-----------------------------------------------------------------------------
(* Reading the state.                                                      *)

LeafNow(l) == NewestOf(leaf[l])
LeavesNow  == [l \in Leaves |-> LeafNow(l)]

(* The node that a key belongs to.                                         *)
NodeOf(k) == Greatest({n \in 1..Len(nodes) : nodes[n].index[1].low <= k})

LeafOf(node, k) == LeafAt(node.index, k)

InBuffer(node, k) == {i \in 1..Len(node.buffer) : node.buffer[i].key = k}

(* "LodgeTree can directly hit the key-value pairs buffered in last-level  *)
(* internal nodes" (§IV-B).  Otherwise it reads the leaf.                  *)
Lookup(k) ==
    LET node == nodes[NodeOf(k)]
        hits == InBuffer(node, k)
    IN IF hits # {} THEN node.buffer[CHOOSE i \in hits : TRUE].value
       ELSE ValueIn(LeafNow(LeafOf(node, k)), k)

(* The log that a client's partition appends to, if it has space.          *)
Current(c)  == {s \in Spaces : versions[s].owner = c /\ versions[s].used < LogSize}
CurrentOf(c) == CHOOSE s \in Current(c) : TRUE

IsFree(s) ==
    \/ versions[s].valid = 0
    \/ Bug = "reuses-live-log" /\ versions[s].used = LogSize

FreeSpaces == {s \in Spaces : IsFree(s)}

(* The versions once the entries of some pairs are no longer needed.       *)
Uncounted(pairs) ==
    [s \in Spaces |->
        [versions[s] EXCEPT !.valid = @ - Cardinality({p \in pairs : p.version = versions[s].version})]]

Waiting(c) == call[c].op = "write" /\ call[c].at = "called"

(* One slot is "designated ... for pairs generated during leaf node        *)
(* splits" (§III-A).                                                       *)
IsFull(node) ==
    Len(node.index) + Len(node.buffer) >= (IF Bug = "no-designated-slot" THEN Slots ELSE Slots - 1)

MustSplit(node) == Len(node.index) >= Fanout
=============================================================================
