--------------------------- MODULE LeafCountFlush ---------------------------
(***************************************************************************)
(* How LodgeTree moves pairs from a buffer to the leaves (§III-B): to      *)
(* which leaves a flush goes, how pairs become valid there, how a leaf is  *)
(* split without a log; and the split of an inner node (§III-C).           *)
(*                                                                         *)
(* All steps of a flush are under the node's lock, which also covers its   *)
(* leaves.  A fence and the stores that follow it are one step: a crash    *)
(* between them leaves what a crash after the stores may leave.            *)
(***************************************************************************)
EXTENDS LodgeState

-----------------------------------------------------------------------------
(* The leaf count-based flush (§III-B), under the node's lock.             *)

(* The leaves for which pairs are buffered, in the order of the buffer:    *)
(* "the Buffer Part is traversed from left to right".                      *)
RECURSIVE Wanted(_, _)
Wanted(node, i) ==
    IF i = 0 THEN <<>>
    ELSE LET before == Wanted(node, i - 1)
             l      == LeafOf(node, node.buffer[i].key)
         IN IF \E j \in 1..Len(before) : before[j] = l THEN before ELSE Append(before, l)

(* All pairs for a leaf, so that its stamp is true.  The paper's grouping  *)
(* stops at the first pair that belongs to one leaf too many.              *)
GroupOf(node, l) ==
    LET others == {i \in DOMAIN node.buffer :
                      \A j \in DOMAIN node.todo : LeafOf(node, node.buffer[i].key) # node.todo[j]}
        ends   == Bug = "flushes-half-a-leaf" /\ node.todo # <<>>
    IN {node.buffer[i] : i \in {j \in DOMAIN node.buffer :
            /\ LeafOf(node, node.buffer[j].key) = l
            /\ ends => \A i \in others : j < i}}

KeysOf(pairs) == {pair.key : pair \in pairs}
Puts(pairs)   == {pair \in pairs : pair.value # Absent}
Stamp(pairs)  == Greatest({pair.number : pair \in pairs})

(* The keys that a leaf would have after the flush.                        *)
KeysAfter(node, l) ==
    LET group == GroupOf(node, l)
    IN (KeysIn(LeafNow(l)) \ KeysOf(group)) \cup KeysOf(Puts(group))

(* "A leaf node is about to split": if it would have more than t_split.    *)
Splits(node, l) ==
    IF Bug = "counts-leaf-alone"
    THEN Cardinality(KeysIn(LeafNow(l))) >= TSplit
    ELSE Cardinality(KeysAfter(node, l)) > TSplit

(* "The grouping process stops ... when the number of targeted leaf nodes  *)
(* reaches the threshold t_node", and before a leaf that splits.  If that  *)
(* is the first, "only the key-value pairs belonging to the leaf node are  *)
(* flushed".                                                               *)
Targets(node) ==
    LET wanted == Wanted(node, Len(node.buffer))
        before == {i \in 1..Len(wanted) : i <= TNode /\ \A j \in 1..i : ~Splits(node, wanted[j])}
    IN CASE Bug = "splits-among-others" -> SubSeq(wanted, 1, Least({TNode, Len(wanted)}))
         [] Splits(node, wanted[1])     -> <<wanted[1]>>
         [] OTHER                       -> SubSeq(wanted, 1, Greatest(before))

(* A client wants a log, and no space is free.  The paper lets the log     *)
(* grow; if it may not, the pairs that keep logs in use must be flushed.   *)
IsSqueezed ==
    FreeSpaces = {} /\ \E c \in Clients : Waiting(c) /\ Current(c) = {}

(* "The Leaf Count-Based Flush is performed when the Buffer Part is full." *)
StartFlush(n) ==
    /\ n <= Len(nodes)
    /\ LET node == nodes[n]
       IN /\ node.lock = Free /\ node.buffer # <<>> /\ ~MustSplit(node)
          /\ IsFull(node) \/ IsSqueezed
          /\ nodes' = [nodes EXCEPT ![n].lock = Flushing, ![n].todo = Targets(node)]
    /\ UNCHANGED <<call, versions, version, clock, leaf, log, recoveryVars, kept>>

IsAt(n, points) == n <= Len(nodes) /\ nodes[n].todo # <<>> /\ nodes[n].at \in points

Merges(n) == IsAt(n, {"idle"}) /\ ~Splits(nodes[n], Head(nodes[n].todo))

FreeIn(words)         == Places \ words[Header].bits
SlotsOf(words, keys)  == {i \in words[Header].bits : words[Slot(i)].key \in keys}

(* The i-th pair goes to the i-th free slot.                               *)
Filled(words, pairs) ==
    LET slots == Ascending(FreeIn(words))
        keys  == Ascending(KeysOf(pairs))
        place == [k \in KeysOf(pairs) |-> slots[CHOOSE i \in 1..Len(keys) : keys[i] = k]]
    IN [i \in {place[k] : k \in KeysOf(pairs)} |->
           LET pair == CHOOSE p \in pairs : place[p.key] = i
           IN [key |-> pair.key, value |-> pair.value]]

WithHeader(l, word) == [leaf EXCEPT ![l][Header] = Store(@, word)]

HasRoom(words, pairs) == Cardinality(Puts(pairs)) <= Cardinality(FreeIn(words))

(* The empty slots do not suffice, but they do together with those of the  *)
(* replaced pairs: their bits are cleared first.  The log has the new      *)
(* values of all these pairs.                                              *)
ClearSlots(n) ==
    /\ Merges(n)
    /\ LET node  == nodes[n]
           l     == Head(node.todo)
           group == GroupOf(node, l)
           words == LeafNow(l)
           word  == words[Header]
       IN /\ ~HasRoom(words, group)
          /\ leaf' = WithHeader(l, [word EXCEPT !.bits = @ \ SlotsOf(words, KeysOf(group))])
    /\ nodes' = [nodes EXCEPT ![n].at = "cleared"]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* "Searching for key-value slots in the leaf node, writing the pairs to   *)
(* empty slots."                                                           *)
WritePairs(n) ==
    /\ Merges(n) \/ IsAt(n, {"cleared"})
    /\ LET node   == nodes[n]
           l      == Head(node.todo)
           group  == GroupOf(node, l)
           words  == Tidy(LeafNow(l))
           fenced == IF node.at = "cleared" THEN Fenced(leaf[l]) ELSE leaf[l]
       IN /\ HasRoom(words, group)
          /\ LET filled == Filled(words, Puts(group))
             IN leaf' = [leaf EXCEPT ![l] = [spot \in Spots |->
                    IF spot[1] = "slot" /\ spot[2] \in DOMAIN filled
                    THEN Store(fenced[spot], filled[spot[2]]) ELSE fenced[spot]]]
    /\ nodes' = [nodes EXCEPT ![n].at = "written"]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* "Persisting the pairs with a single CLFLUSH, and updating the bitmap by *)
(* modifying the corresponding bits from 0 to 1", and from 1 to 0 for the  *)
(* old pairs of the same keys; the stamp is in the same word.              *)
SetBitmap(n) ==
    /\ IsAt(n, {"written"})
    /\ LET node   == nodes[n]
           l      == Head(node.todo)
           group  == GroupOf(node, l)
           words  == LeafNow(l)
           word   == words[Header]
           filled == DOMAIN Filled(words, Puts(group))
           gone   == IF Bug = "only-sets-bits" THEN {} ELSE SlotsOf(words, KeysOf(group))
           fenced == IF Bug = "bitmap-before-pairs" THEN leaf[l] ELSE Fenced(leaf[l])
       IN leaf' = [leaf EXCEPT ![l] = [fenced EXCEPT ![Header] =
              Store(@, HeaderWord((word.bits \ gone) \cup filled, word.use, Stamp(group)))]]
    /\ nodes' = [nodes EXCEPT ![n].at = "marked"]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* The node without the flushed pairs.  Its first leaf is done.            *)
Without(node, pairs) ==
    LET stays(pair) == pair \notin pairs
    IN [node EXCEPT !.buffer = SelectSeq(@, stays), !.at = "idle"]

NextLeaf(node) ==
    [node EXCEPT !.todo = Tail(@), !.lock = IF Len(node.todo) = 1 THEN Free ELSE Flushing]

(* "Then persisting the bitmap with CLFLUSH to complete the merge          *)
(* operation."  Only then "the number of valid entries of the version      *)
(* number in buf_ver can be decreased".                                    *)
FinishMerge(n) ==
    /\ IsAt(n, {"marked"})
    /\ LET node  == nodes[n]
           l     == Head(node.todo)
           group == GroupOf(node, l)
       IN /\ leaf' = [leaf EXCEPT ![l] = AllDurably(Tidy(LeafNow(l)))]
          /\ nodes' = [nodes EXCEPT ![n] = NextLeaf(Without(node, group))]
          /\ versions' = Uncounted(group)
    /\ UNCHANGED <<call, version, clock, log, recoveryVars, kept>>

-----------------------------------------------------------------------------
(* The log-less split of a leaf (§III-B).                                  *)

(* Leaves without a pointer to them, now or soon.                          *)
FreeLeaves ==
    Leaves \ UNION {{nodes[n].index[i].leaf : i \in DOMAIN nodes[n].index} \cup {nodes[n].fresh} :
                       n \in DOMAIN nodes}

(* The smallest key of the upper half of all keys that the leaf would      *)
(* have, so that one split frees enough space for all.                     *)
Separator(keys) == Ascending(keys)[Cardinality(keys) \div 2 + 1]

From(pairs, low) == {pair \in pairs : pair.key >= low}

(* The new leaf is created, with the pairs that move and those that are    *)
(* buffered for it.  There is no pointer to it yet.                        *)
PrepareLeaf(n) ==
    /\ IsAt(n, {"idle"})
    /\ FreeLeaves # {}
    /\ LET node  == nodes[n]
           l     == Head(node.todo)
           words == LeafNow(l)
           group == GroupOf(node, l)
           low   == Separator(KeysAfter(node, l))
           moved == {pair \in From(PairsIn(words), low) : pair.key \notin KeysOf(group)}
           pairs == moved \cup {[key |-> p.key, value |-> p.value] : p \in From(Puts(group), low)}
           new   == Least(FreeLeaves)
           blank == Blank(low, NextOf(words))
           stamp == IF Bug = "new-leaf-without-stamp" THEN 0 ELSE Stamp(group)
           filled == Filled(blank, pairs)
           image == [spot \in Spots |->
                        CASE spot = Header   -> HeaderWord(DOMAIN filled, 0, stamp)
                          [] spot[1] = "slot" /\ spot[2] \in DOMAIN filled -> filled[spot[2]]
                          [] OTHER           -> blank[spot]]
       IN /\ Splits(node, l)
          /\ leaf' = [leaf EXCEPT ![new] = [spot \in Spots |-> Store(@[spot], image[spot])]]
          /\ nodes' = [nodes EXCEPT ![n].at = "prepared", ![n].fresh = new]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* "If use_n points to next0, next1 will point to the new node", which is  *)
(* persistent by then.                                                     *)
LinkLeaf(n) ==
    /\ IsAt(n, {"prepared"})
    /\ LET node  == nodes[n]
           l     == Head(node.todo)
           spare == Sibling(1 - LeafNow(l)[Header].use)
           new   == IF Bug = "links-before-fence" THEN leaf[node.fresh] ELSE Fenced(leaf[node.fresh])
       IN leaf' = [leaf EXCEPT ![l][spare] = Store(@, node.fresh), ![node.fresh] = new]
    /\ nodes' = [nodes EXCEPT ![n].at = "linked"]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* "Once the new node is prepared, use_n is switched ..., signifying the   *)
(* completion of the node split", and the bits of the moved pairs are      *)
(* cleared: in one word.  The stamp stays, because the pairs buffered for  *)
(* the lower half are not in the leaf yet.                                 *)
SwitchSibling(n) ==
    /\ IsAt(n, {"linked"})
    /\ LET node   == nodes[n]
           l      == Head(node.todo)
           words  == LeafNow(l)
           word   == words[Header]
           low    == LeafNow(node.fresh)[Low]
           stays  == word.bits \ SlotsOf(words, {k \in Keys : k >= low})
           stamp  == IF Bug = "stamps-at-switch" THEN Stamp(GroupOf(node, l)) ELSE word.stamp
           both   == HeaderWord(stays, 1 - word.use, stamp)
           fenced == IF Bug = "switches-before-fence" THEN leaf[l] ELSE Fenced(leaf[l])
           \* The two words are written back in either order.
           halves == <<[word EXCEPT !.bits = stays], [word EXCEPT !.use = 1 - @]>>
       IN leaf' = [leaf EXCEPT ![l] = [fenced EXCEPT ![Header] =
              IF Bug = "two-words" THEN @ \o Append(halves, both) ELSE Store(@, both)]]
    /\ nodes' = [nodes EXCEPT ![n].at = "switched"]
    /\ UNCHANGED <<call, versions, version, clock, log, recoveryVars, kept>>

(* "Following the flush, the pair with [the separator] and the pointer to  *)
(* the newly generated leaf node are inserted." The remaining pairs for    *)
(* the lower half are merged next.                                         *)
FinishSplit(n) ==
    /\ IsAt(n, {"switched"})
    /\ LET node    == nodes[n]
           l       == Head(node.todo)
           low     == LeafNow(node.fresh)[Low]
           place   == At(node.index, low)
           index   == SubSeq(node.index, 1, place) \o <<[low |-> low, leaf |-> node.fresh]>>
                          \o SubSeq(node.index, place + 1, Len(node.index))
           flushed == From(GroupOf(node, l), low)
           known   == IF Bug = "forgets-new-leaf" THEN node.index ELSE index
           split   == [Without(node, flushed) EXCEPT !.index = known, !.fresh = NoLeaf]
       IN /\ leaf' = [leaf EXCEPT ![l] = AllDurably(Tidy(LeafNow(l)))]
          /\ nodes' = [nodes EXCEPT ![n] = IF flushed = GroupOf(node, l) THEN NextLeaf(split) ELSE split]
          /\ versions' = Uncounted(flushed)
    /\ UNCHANGED <<call, version, clock, log, recoveryVars, kept>>

-----------------------------------------------------------------------------
(* The split of a last-level inner node (§III-C), in DRAM. A split into    *)
(* more than two parts is a sequence of such splits.  Buffered pairs move  *)
(* with their versions; the log is not affected.                           *)
SplitNode(n) ==
    /\ n <= Len(nodes)
    /\ LET node  == nodes[n]
           half  == Len(node.index) \div 2
           low   == node.index[half + 1].low
           left(pair)  == pair.key < low
           right(pair) == pair.key >= low
           moved == SelectSeq(node.buffer, right)
           upper == IF Bug = "split-forgets-version"
                    THEN [i \in DOMAIN moved |-> [moved[i] EXCEPT !.version = 0]] ELSE moved
       IN /\ node.lock = Free /\ MustSplit(node)
          /\ nodes' = SubSeq(nodes, 1, n - 1)
                 \o <<NewNode(SubSeq(node.index, 1, half), SelectSeq(node.buffer, left)),
                      NewNode(SubSeq(node.index, half + 1, Len(node.index)), upper)>>
                 \o SubSeq(nodes, n + 1, Len(nodes))
    /\ UNCHANGED <<call, versions, version, clock, leaf, log, recoveryVars, kept>>

NodeStep(n) ==
    \/ StartFlush(n)
    \/ ClearSlots(n) \/ WritePairs(n) \/ SetBitmap(n) \/ FinishMerge(n)
    \/ PrepareLeaf(n) \/ LinkLeaf(n) \/ SwitchSibling(n) \/ FinishSplit(n)
    \/ SplitNode(n)
=============================================================================
