------------------------- MODULE IndSurrogateBuffer -------------------------
(***************************************************************************)
(* An inductive invariant of SurrogateBuffer: it holds at the beginning,   *)
(* no step leads out of it, and it implies the invariants of the protocol. *)
(* So they hold after any number of writes, flushes, splits, reused logs,  *)
(* crashes and replays.                                                    *)
(*                                                                         *)
(* The first version of each word is what is persistent for certain.  By   *)
(* these words alone, the leaves are in their order, and each has its      *)
(* pairs once.  An entry beyond the stamp of its leaf is in the buffer, or *)
(* replaced there by a later one of its key; in recovery it may be one     *)
(* that is still to be replayed.  So a log that no buffered pair needs may *)
(* be written over.  Each step of a flush has a conjunct which says what   *)
(* words it is changing, and to what.                                      *)
(*                                                                         *)
(* TLC checks it in the states that the models reach.  The mirror checks   *)
(* that it is inductive, in typed states that need not be reachable        *)
(* (`treering check SurrogateBuffer --inductive`).                         *)
(***************************************************************************)
EXTENDS MCSurrogateBuffer

Before(places)  == [p \in DOMAIN places |-> places[p][1]]
LeafBefore(l)   == Before(leaf[l])
EntryBefore(at) == Before(log[at[1]][at[2]])

(* The words that have several versions.                                   *)
Doubtful(l) == Unflushed(leaf[l])

Index   == IndexUpTo(Len(nodes))
Indexed == {Index[i].leaf : i \in DOMAIN Index}
NodeSet == DOMAIN nodes

(* The keys from where a leaf begins to where the next one does.           *)
Range(i) ==
    {k \in Keys : Index[i].low <= k /\ (i < Len(Index) => k < Index[i + 1].low)}

(* Writes whose node is locked for them, and where their entries are.      *)
InFlight(c) == call[c].op = "write" /\ call[c].at \in {"appended", "durable"}
OwnEntry(c) == <<call[c].space, versions[call[c].space].used>>

-----------------------------------------------------------------------------
(* The nodes know all leaves that recovery would find if nothing more      *)
(* became persistent.                                                      *)
RowInv ==
    /\ \A n \in NodeSet : nodes[n].index # <<>>
    /\ Index # <<>> /\ Index[1].low = 0
    /\ \A i \in 2..Len(Index) : Index[i - 1].low < Index[i].low
    /\ Index = IndexOf([l \in Leaves |-> LeafBefore(l)])

(* In recovery there are no clients, and all logs are old.                 *)
PhaseInv ==
    IF phase = "up" THEN replayed = {}
    ELSE /\ \A c \in Clients : call[c] = Idle
         /\ \A s \in Spaces : versions[s].used = LogSize /\ versions[s].owner = Nobody

(* A write that is under way has the last entry of a log of its client.    *)
CallInv ==
    \A c \in Clients : InFlight(c) =>
        /\ call[c].space # 0
        /\ versions[call[c].space].owner = c /\ versions[call[c].space].used # 0

(* Entries are whole or were never written.  The last one of a write that  *)
(* is under way has both its old and its new words.                        *)
EntryInv ==
    \A at \in Entries :
        LET words == log[at[1]][at[2]]
            own   == {c \in Clients : InFlight(c) /\ call[c].space # 0 /\ OwnEntry(c) = at}
            count == IF \E c \in own : call[c].at = "appended" THEN 2 ELSE 1
        IN /\ EntryBefore(at) = NoEntry \/ IsWhole(EntryBefore(at))
           /\ \A c \in own :
                 NumberAt(at) # 0 /\ EntryAt(at) = EntryOf(PairOf(c), NumberAt(at))
           /\ Len(words.pair) = count /\ Len(words.meta) = count

(* No two entries have the same number.                                    *)
NumbersOf(at) == {EntryBefore(at).meta.number, NumberAt(at)} \ {0}

OrderInv == \A at, other \in Entries : at # other => NumbersOf(at) \cap NumbersOf(other) = {}

(* A leaf has each key once, and only keys of its range.                   *)
RangeInv ==
    \A i \in DOMAIN Index :
        LET words == LeafBefore(Index[i].leaf)
        IN /\ KeysIn(words) \subseteq Range(i)
           /\ Cardinality(KeysIn(words)) = Cardinality(words[Header].bits)

-----------------------------------------------------------------------------
(* Buffers and log.                                                        *)

(* A buffered pair is in the log, among the entries that its log has used. *)
PlacedInv ==
    \A pair \in BufferedPairs :
        \E at \in Entries :
            /\ versions[at[1]].version = pair.version
            /\ at[2] <= versions[at[1]].used
            /\ Unflushed(log[at[1]][at[2]]) = {}
            /\ EntryAt(at) = EntryOf([key |-> pair.key, value |-> pair.value], pair.number)

StampBefore(node, k) == LeafBefore(LeafOf(node, k))[Header].stamp

(* It is beyond the stamp of its leaf.                                     *)
BeyondInv ==
    \A n \in NodeSet : \A i \in DOMAIN nodes[n].buffer :
        nodes[n].buffer[i].number > StampBefore(nodes[n], nodes[n].buffer[i].key)

(* An entry beyond the stamp is in the buffer, or a later one of its key.  *)
(* In recovery, it may be one that is still to be replayed, after all that *)
(* are in the buffer.  Or its write is about to buffer it.                 *)
NeededInv ==
    \A at \in Entries :
        LET entry  == EntryBefore(at)
            k      == entry.pair.key
            number == entry.meta.number
            node   == nodes[NodeOf(k)]
        IN IsWhole(entry) /\ number > StampBefore(node, k) =>
            IF phase # "up" /\ at \notin replayed
            THEN \A i \in DOMAIN node.buffer : node.buffer[i].number < number
            ELSE \/ \E i \in InBuffer(node, k) : node.buffer[i].number >= number
                 \/ \E c \in Clients :
                       /\ InFlight(c) /\ call[c].at = "durable"
                       /\ call[c].space # 0 /\ OwnEntry(c) = at

(* A write that is under way has a later number than all pairs of its      *)
(* node, and than the stamp of its leaf.                                   *)
NewestInv ==
    \A c \in Clients :
        InFlight(c) /\ call[c].space # 0 /\ OwnEntry(c) \in Entries =>
            LET node   == nodes[NodeOf(call[c].key)]
                number == NumberAt(OwnEntry(c))
            IN /\ number > StampBefore(node, call[c].key)
               /\ \A i \in DOMAIN node.buffer : node.buffer[i].number < number

(* Versions are different, and the global one is the greatest.             *)
VersionInv ==
    /\ \A s \in Spaces : versions[s].version <= version
    /\ \A s, other \in Spaces : s # other => versions[s].version # versions[other].version

-----------------------------------------------------------------------------
(* Flushes.                                                                *)

IsSplitting(node) == node.at \in {"prepared", "linked", "switched"}

(* Who holds a node's lock, and how far its flush is.  A new leaf is one   *)
(* that nobody else has.                                                   *)
LockInv ==
    \A n \in NodeSet :
        LET node    == nodes[n]
            holders == {c \in Clients : InFlight(c) /\ NodeOf(call[c].key) = n}
        IN /\ IF node.lock \in Clients THEN holders = {node.lock} ELSE holders = {}
           /\ node.lock = Flushing <=> node.todo # <<>>
           /\ node.at # "idle" => node.todo # <<>>
           /\ IsSplitting(node) <=> node.fresh # NoLeaf
           /\ IsSplitting(node) =>
                 /\ node.fresh \notin Indexed
                 /\ \A other \in NodeSet \ {n} : nodes[other].fresh # node.fresh

(* A flush goes to different leaves of its node, each with pairs.  If they *)
(* are several, none is split.                                             *)
TodoInv ==
    \A n \in NodeSet :
        LET node == nodes[n]
        IN /\ Len(node.todo) <= TNode
           /\ \A i \in DOMAIN node.todo :
                 /\ \E j \in DOMAIN node.index : node.index[j].leaf = node.todo[i]
                 /\ \A j \in 1..(i - 1) : node.todo[j] # node.todo[i]
                 /\ GroupOf(node, node.todo[i]) # {}
                 /\ Len(node.todo) > 1 => ~Splits(node, node.todo[i]) /\ ~IsSplitting(node)

SplitsAt(node, l) ==
    IF IsSplitting(node) THEN LeafNow(node.fresh)[Low] ELSE Separator(KeysAfter(node, l))

(* There is a slot for the separator of a split of a leaf that is to have  *)
(* these keys, and for each that follows because a lower half is split     *)
(* again.  Each takes a slot, and frees those of its flushed pairs.        *)
RECURSIVE HasSlots(_, _, _, _, _)
HasSlots(keys, low, group, leaves, buffered) ==
    LET flushed == From(group, low)
        lower   == {k \in keys : k < low}
        left    == buffered - Cardinality(flushed)
        taken   == leaves + 1 + left
    IN IF flushed = group
       THEN taken < Slots \/ (taken = Slots /\ (left = 0 \/ leaves + 1 >= Fanout))
       ELSE /\ taken <= Slots
            /\ Cardinality(lower) > TSplit =>
                  HasSlots(lower, Separator(lower), group \ flushed, leaves + 1, left)

(* A node has a slot for the separator of a split.  A split takes it, and  *)
(* the flush frees one again.  Recovery may put more leaves in a node,     *)
(* which is split or has no buffer then.                                   *)

CapacityInv ==
    \A n \in NodeSet :
        LET node  == nodes[n]
            taken == Len(node.index) + Len(node.buffer)
        IN CASE node.lock \in Clients -> taken + 1 < Slots
             [] node.lock = Flushing /\ Len(node.todo) = 1 ->
                    LET l == node.todo[1]
                    IN /\ taken <= Slots
                       /\ IsSplitting(node) \/ (node.at = "idle" /\ Splits(node, l)) =>
                             HasSlots(KeysAfter(node, l), SplitsAt(node, l), GroupOf(node, l),
                                      Len(node.index), Len(node.buffer))
             [] OTHER ->
                    \/ taken < Slots
                    \/ taken = Slots /\ (MustSplit(node) \/ node.buffer = <<>>)

-----------------------------------------------------------------------------
(* The words that a flush is changing.                                     *)

(* Its leaf, and the pairs that this leaf is to have, or both leaves if it *)
(* is split.                                                               *)
First(node)  == Head(node.todo)
Group(node)  == GroupOf(node, First(node))
Words(node)  == leaf[First(node)]
Old(node)    == LeafBefore(First(node))
New(node)    == LeafNow(First(node))
OldUse(node) == Old(node)[Header].use

AllAfter(node) ==
    {pair \in PairsIn(Old(node)) : pair.key \notin KeysOf(Group(node))}
        \cup {[key |-> p.key, value |-> p.value] : p \in Puts(Group(node))}

Has(words, pairs) ==
    PairsIn(words) = pairs /\ Cardinality(words[Header].bits) = Cardinality(pairs)

(* The nodes whose flush is at this step.                                  *)
NodesAt(points) == {nodes[n] : n \in {m \in NodeSet : IsAt(m, points)}}

(* A leaf that no flush is changing has one version of each word.          *)
RestInv ==
    \A l \in Indexed :
        \/ \E n \in NodeSet :
              nodes[n].todo # <<>> /\ First(nodes[n]) = l /\ nodes[n].at \notin {"idle", "prepared"}
        \/ Doubtful(l) = {}

(* Bits are cleared of keys whose new pairs are in the log.                *)
ClearedInv ==
    \A node \in NodesAt({"cleared"}) :
        LET word == Old(node)[Header]
            gone == SlotsOf(Old(node), KeysOf(Group(node)))
        IN /\ Doubtful(First(node)) \subseteq {Header}
           /\ Words(node)[Header] = <<word, [word EXCEPT !.bits = @ \ gone]>>

(* The pairs are in slots whose bits are clear.                            *)
WrittenInv ==
    \A node \in NodesAt({"written"}) :
        LET puts == Puts(Group(node))
            free == FreeIn(New(node))
        IN /\ Doubtful(First(node)) \subseteq {Slot(i) : i \in free}
           /\ HasRoom(New(node), Group(node))
           /\ LET filled == Filled(New(node), puts)
              IN \A i \in DOMAIN filled : New(node)[Slot(i)] = filled[i]

(* The bits and the stamp are set in one word.                             *)
MarkedInv ==
    \A node \in NodesAt({"marked"}) :
        LET word == New(node)[Header]
        IN /\ Doubtful(First(node)) = {Header} /\ Len(Words(node)[Header]) = 2
           /\ word.use = OldUse(node) /\ word.stamp = Stamp(Group(node))
           /\ Has(New(node), AllAfter(node))

(* The new leaf has the upper half of all pairs, and the stamp.            *)
PreparedInv ==
    \A node \in NodesAt({"prepared", "linked", "switched"}) :
        LET all   == AllAfter(node)
            fresh == LeafNow(node.fresh)
        IN /\ Cardinality(all) > TSplit
           /\ fresh[Low] = Separator(KeysOf(all))
           /\ Has(fresh, From(all, fresh[Low]))
           /\ fresh[Header].stamp = Stamp(Group(node))
           /\ NextOf(fresh) = NextOf(Old(node))

(* The new leaf is persistent, and the pointer to it is not in use.        *)
LinkedInv ==
    \A node \in NodesAt({"linked", "switched"}) :
        LET spare == Sibling(1 - OldUse(node))
        IN /\ Doubtful(node.fresh) = {}
           /\ New(node)[spare] = node.fresh
           /\ Doubtful(First(node)) \subseteq
                 (IF node.at = "linked" THEN {spare} ELSE {spare, Header})

(* The range, the pairs and the pointer move in one word.  The stamp       *)
(* stays.                                                                  *)
SwitchedInv ==
    \A node \in NodesAt({"switched"}) :
        LET word == Old(node)[Header]
            gone == SlotsOf(Old(node), {k \in Keys : k >= LeafNow(node.fresh)[Low]})
        IN /\ Sibling(1 - OldUse(node)) \notin Doubtful(First(node))
           /\ Words(node)[Header] = <<word, HeaderWord(word.bits \ gone, 1 - word.use, word.stamp)>>

IndInv ==
    /\ RowInv /\ PhaseInv /\ CallInv /\ EntryInv /\ OrderInv /\ RangeInv
    /\ PlacedInv /\ BeyondInv /\ NeededInv /\ NewestInv
    /\ LockInv /\ TodoInv /\ CapacityInv
    /\ RestInv /\ ClearedInv /\ WrittenInv /\ MarkedInv /\ PreparedInv /\ LinkedInv /\ SwitchedInv
    /\ SpaceInv /\ VersionInv /\ CountInv /\ NumberInv /\ RecoverableInv
=============================================================================
