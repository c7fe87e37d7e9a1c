-------------------------- MODULE IndLeafBuffering --------------------------
(***************************************************************************)
(* An inductive invariant of LeafBuffering: it holds at the beginning, no  *)
(* step leads out of it, and it implies the invariants of the protocol.    *)
(* So they hold after any number of writes, flushes, splits, merges,       *)
(* cleanings, crashes and recoveries.                                      *)
(*                                                                         *)
(* Its core is SettledInv: however the words settle after a crash, there   *)
(* is a list of leaves, and recovery finds in leaves and logs what took    *)
(* effect.  So a crash leads to a state in which recovery is right, and    *)
(* what it writes keeps it so, for it may be cut off at any word.  The     *)
(* others are what a step needs: a log entry beyond its leaf's stamp is of *)
(* a key that waits in the buffer node, and no other (FlushedInv,          *)
(* SlotInv); no time is later than now, and recovery begins later epochs   *)
(* (TimeInv); each step of a flush, a split or a merge knows what it has   *)
(* stored.  So a leaf has what was written of all keys that do not wait.   *)
(*                                                                         *)
(* TLC checks it in the states that the models reach.  The mirror checks   *)
(* that it is inductive, in typed states that need not be reachable        *)
(* (`treering check LeafBuffering --inductive`).                           *)
(***************************************************************************)
EXTENDS MCLeafBuffering

Up == phase = "up"

Indexed == {inner[i].leaf : i \in DOMAIN inner}

(* The keys between a leaf's separator and the next one's.                 *)
Range(l) ==
    IF l \notin Indexed THEN {}
    ELSE LET i == Position(l)
         IN {k \in Keys : inner[i].low <= k /\ (i < Len(inner) => k < inner[i + 1].low)}

(* Each record of a leaf has a key of its own, of these.                   *)
HoldsOnce(m, l, keys) ==
    KeysIn(m, l) \subseteq keys /\ Cardinality(KeysIn(m, l)) = Cardinality(Live(m, l))

HasWritten(m, l, keys) == \A k \in keys : InLeaf(m, l, k) = written[k]

NextOf(m, l) == m[HeaderOf(l)].next

(* The times of entries of these keys that a crash may leave, by what the  *)
(* checksum vouches for.                                                   *)
Places == Chunks \X Entries

TimesAt(place) == Survivors(pm[TimeOf(place[1], place[2])])

TimesOf(keys) == {t.at : t \in {t \in UNION {TimesAt(p) : p \in Places} : t.of.key \in keys}}

NotBefore(stamp, times) == \A t \in times : ~Before(stamp, t)

-----------------------------------------------------------------------------
(* All ways in which the words may settle.                                 *)
RECURSIVE SettledFrom(_, _)
SettledFrom(m, dirty) ==
    IF dirty = {} THEN {m}
    ELSE LET w == Least(dirty)
         IN UNION {SettledFrom([m EXCEPT ![w] = v], dirty \ {w}) : v \in Survivors(pm[w])}

Settlings == SettledFrom(Medium, Dirty(pm))

RECURSIVE Chain(_, _, _)
Chain(m, l, most) ==
    IF l = 0 \/ most = 0 THEN <<>> ELSE <<l>> \o Chain(m, NextOf(m, l), most - 1)

(* The leaves are a list in the order of their keys.                       *)
IsList(m) ==
    LET chain    == Chain(m, 1, Cardinality(Leaves) + 1)
        upper(i) == IF i < Len(chain) THEN LowOf(m, chain[i + 1]) ELSE Beyond
    IN /\ Len(chain) <= Cardinality(Leaves)
       /\ \A i \in DOMAIN chain :
             /\ LowOf(m, chain[i]) < upper(i)
             /\ HoldsOnce(m, chain[i], {k \in Keys : k < upper(i)})

(* Whatever a crash leaves is a list of leaves, in which recovery finds    *)
(* what took effect or, of a write in progress, what it writes.            *)
SettledInv ==
    \A m \in Settlings :
        /\ IsList(m)
        /\ LET recovered == Recovered(m)
           IN \A k \in Keys : recovered[k] = written[k] \/ recovered[k] \in UnderWay(k)

-----------------------------------------------------------------------------
(* Memory is empty after the end of a life, and in recovery but for the    *)
(* inner nodes and what recovery writes.                                   *)
PhaseInv ==
    /\ phase # "recovery" => job[Recoverer] = NoJob
    /\ phase \in {"failing", "killed"} => inner = <<>>
    /\ ~Up =>
          /\ \A l \in Leaves : buffer[l] = EmptyBuffer
          /\ \A c \in Clients : job[c] = NoJob
          /\ \A x \in Loggers : log[x] = NoLog
          /\ epoch = 0 /\ tick = 0
          /\ cleaning = NoCleaning
    /\ phase = "recovery" => \A c \in Clients : call[c] = Idle

(* The epochs that count.                                                  *)
EpochInv ==
    LET newest == Visible[First]
        ends   == phase = "recovery" /\ job[Recoverer].at = "done"
    IN /\ Up =>
             /\ epoch = newest + IF cleaning.at = "scan" THEN 1 ELSE 0
             /\ pm[First] = IF cleaning.at = "reclaim" THEN <<newest - 1, newest>> ELSE <<newest>>
       /\ phase \in {"failing", "killed"} => \A e \in Survivors(pm[First]) : e >= Medium[First]
       /\ phase = "recovery" => pm[First] = IF ends THEN <<newest - 2, newest>> ELSE <<newest>>

(* No time is later than now.                                              *)
IsPastEpoch(e) == e <= Medium[First] + 1 /\ (Up => e <= epoch)

IsPast(t) == IsPastEpoch(t[1]) /\ (Up => t[1] < Medium[First] \/ t[2] <= tick)

TimeInv ==
    /\ \A l \in Leaves : \A t \in Survivors(pm[StampOf(l)]) : IsPast(t)
    /\ \A place \in Places : \A t \in TimesAt(place) : IsPast(t.at)
    /\ \A c \in Chunks : \A e \in Survivors(pm[ChunkOf(c)]) : IsPastEpoch(e)

(* A time in a chunk is of the chunk's epoch, or of one that does not      *)
(* count.                                                                  *)
ChunkInv ==
    Up => \A place \in Places : \A t \in TimesAt(place) :
              t.at[1] < Medium[First] \/ t.at[1] = Visible[ChunkOf(place[1])]

(* Each log ends in a chunk of its own, of its epoch, with nothing of this *)
(* epoch behind its end.  Chunks with copies that are not durable are of   *)
(* the newest epoch, and cleaning's.                                       *)
EndInv ==
    LET open == {x \in Loggers : log[x].chunk # 0 /\ log[x].epoch >= Medium[First]}
    IN Up =>
        /\ \A c \in cleaning.chunks : Visible[ChunkOf(c)] = epoch
        /\ \A x \in open :
              LET end == log[x]
              IN /\ Visible[ChunkOf(end.chunk)] = end.epoch
                 /\ x = Cleaner \/ end.chunk \notin cleaning.chunks
                 /\ \A y \in open \ {x} : log[y].chunk # end.chunk
                 /\ \A i \in Entries : i > end.used =>
                       \A t \in TimesAt(<<end.chunk, i>>) : t.at[1] # end.epoch

(* The inner nodes are what a restart would build.                         *)
RowInv ==
    phase \in {"up", "recovery"} =>
        /\ inner # <<>> /\ inner[1] = [leaf |-> 1, low |-> 0]
        /\ \A i \in 2..Len(inner) : inner[i - 1].low < inner[i].low
        /\ Cardinality(Indexed) = Len(inner)
        /\ \A i \in DOMAIN inner :
              /\ LowOf(Medium, inner[i].leaf) = inner[i].low
              /\ NextOf(Medium, inner[i].leaf) = IF i < Len(inner) THEN inner[i + 1].leaf ELSE 0

-----------------------------------------------------------------------------
(* Writers and their steps.                                                *)

Batching == {"batch", "records", "header", "new", "link"}

(* The writers at these steps, of which all leaves are in the inner nodes. *)
At(steps) ==
    {w \in Writers :
        /\ job[w].at \in steps
        /\ job[w].leaf \in Indexed /\ job[w].from \in Indexed \cup {0}
        /\ job[w].at \in {"new", "link"} => job[w].new # 0}

IsWrite(w) == w \in Clients /\ call[w].op = "write"
IsBegun(w) == IsWrite(w) /\ call[w].at = "begun"

Owns(j) ==
    /\ j.leaf \in Indexed
    /\ IF j.at \in {"new", "link"} THEN j.new # 0 /\ j.new \notin Indexed ELSE j.new = 0

LeavesOf(j) == {j.leaf, j.from, j.new} \ {0}

(* Who holds which latches, and how far the call is.                       *)
JobInv ==
    /\ \/ job[Recoverer].at \in {"none", "done"}
       \/ job[Recoverer].at \in Batching /\ job[Recoverer].from = 0 /\ Owns(job[Recoverer])
    /\ Up => \A c \in Clients :
          LET j == job[c]
          IN IF ~IsWrite(c) \/ call[c].at = "called"
             THEN j.at = "none" /\ LeavesOf(j) = {}
             ELSE /\ j.at # "none" /\ Owns(j)
                  /\ \A other \in Clients \ {c} : LeavesOf(j) \cap LeavesOf(job[other]) = {}
                  /\ CASE j.at \in {"log", "logged"} ->
                             IsBegun(c) /\ ~IsTrigger(buffer[j.leaf], call[c].key)
                       [] j.at \in Batching /\ j.from = 0         -> TRUE
                       [] OTHER                                   -> ~IsBegun(c)
                  /\ CASE j.at \in {"move", "moved", "merged"}    -> j.from # 0
                       [] j.at \in {"batch", "records", "header"} -> TRUE
                       [] OTHER                                   -> j.from = 0
                  /\ j.from # 0 =>
                        \E i \in 2..Len(inner) :
                            inner[i].leaf = j.from /\ inner[i - 1].leaf = j.leaf
                  /\ IsBegun(c) => LeafFor(call[c].key) = j.leaf

(* A writer read the epoch under its latch.  Nothing of a later one        *)
(* concerns its leaf, which cleaning has still to scan if it began since.  *)
LatchedInv ==
    Up => \A w \in At(Batching \cup {"log", "logged", "move"}) :
        LET j == job[w]
        IN /\ \/ j.epoch = epoch
              \/ j.epoch + 1 = epoch /\ cleaning.at = "scan" /\ j.leaf \in cleaning.todo
           /\ \A t \in TimesOf(Range(j.leaf) \cup Range(j.from)) : t[1] <= j.epoch
           /\ \A t \in Survivors(pm[StampOf(j.leaf)]) : t[1] <= j.epoch

(* The clients whose entry is stored and not durable.                      *)
Logged == {c \in Clients : Up /\ IsWrite(c) /\ job[c].at = "logged"}

(* That entry ends its log, and is the newest of its key.                  *)
LoggedInv ==
    \A c \in Logged :
        LET end   == log[c]
            place == <<end.chunk, end.used>>
            word  == Visible[TimeOf(end.chunk, end.used)]
            kv    == [key |-> call[c].key, value |-> call[c].value]
        IN /\ end.chunk # 0 /\ end.used # 0
           /\ end.epoch = job[c].epoch /\ word.at[1] = job[c].epoch
           /\ Visible[ChunkOf(end.chunk)] = job[c].epoch /\ job[c].epoch >= Medium[First]
           /\ word.of = kv /\ Visible[KvOf(end.chunk, end.used)] = kv
           /\ \A other \in Places \ {place} : \A t \in TimesAt(other) :
                 t.of.key = kv.key => Before(t.at, word.at)
           /\ \A t \in Survivors(pm[StampOf(job[c].leaf)]) : Before(t, word.at)

(* The words of a leaf that a writer is changing.                          *)
Filled(l, keys) ==
    IF Cardinality(keys) <= Cardinality(Free(Visible, l)) THEN SlotsOf(l, SlotsFor(l, keys)) ELSE {}

Changing(j) ==
    IF j.leaf \notin Indexed THEN {}
    ELSE CASE j.at = "records"                      -> Filled(j.leaf, Kept(j.leaf, j.batch))
           [] j.at = "moved" /\ j.from \in Indexed  -> Filled(j.leaf, DOMAIN Records(j.from))
           [] j.at = "new" /\ j.new # 0             -> LeafLines(j.new)
           [] j.at \in {"header", "link", "merged"} -> {HeaderOf(j.leaf)}
           [] OTHER                                 -> {}

(* All words are durable but those that a writer, cleaning or the end of   *)
(* recovery is changing, and the stamps.                                   *)
RestInv ==
    phase \in {"up", "recovery"} =>
        Dirty(pm) \subseteq
            UNION {Changing(job[w]) : w \in Writers}
            \cup (IF cleaning.at = "reclaim" \/ job[Recoverer].at = "done" THEN {First} ELSE {})
            \cup (IF Up THEN {StampOf(l) : l \in Leaves} ELSE {})
            \cup UNION {IF log[c].chunk = 0 \/ log[c].used = 0 THEN {}
                        ELSE {ChunkOf(log[c].chunk), KvOf(log[c].chunk, log[c].used),
                              TimeOf(log[c].chunk, log[c].used)} : c \in Logged}
            \cup UNION {ChunkLines(c) : c \in cleaning.chunks}

(* What a batch has: all that waits in the buffer node of its leaf and, if *)
(* its write has not taken effect, what that writes.  In recovery, what is *)
(* missing.                                                                *)
BatchInv ==
    \A w \in At(Batching) :
        LET j    == job[w]
            here == IF j.at \in {"new", "link"}
                    THEN {k \in Range(j.leaf) : k < LowOf(Visible, j.new)} ELSE Range(j.leaf)
            kvs  == UnflushedKvs(buffer[j.leaf])
            own  == IF IsBegun(w) THEN {call[w].key} ELSE {}
        IN IF w = Recoverer
           THEN DOMAIN j.batch \subseteq here /\ \A k \in DOMAIN j.batch : j.batch[k] = written[k]
           ELSE /\ IsWrite(w)
                /\ IF j.from # 0 THEN j.batch = kvs /\ DOMAIN kvs \subseteq here
                   ELSE /\ buffer[j.leaf].count = Batch
                        /\ call[w].key \notin DOMAIN kvs
                        /\ j.batch = [k \in (DOMAIN kvs \cup own) \cap here |->
                                         IF k \in own THEN call[w].value ELSE kvs[k]]

(* The records of a batch are in free slots.                               *)
AreStored(l, keys, content) ==
    /\ Cardinality(keys) <= Cardinality(Free(Visible, l))
    /\ LET words == RecordWords(l, Placed(keys, Free(Visible, l)), content)
       IN \A x \in DOMAIN words : Visible[x] = words[x]

RecordsInv ==
    \A w \in At({"records"}) :
        AreStored(job[w].leaf, Kept(job[w].leaf, job[w].batch), job[w].batch)

(* With the new bitmap, a leaf has what its batch says, and what it had of *)
(* all other keys.                                                         *)
HeaderInv ==
    \A w \in At({"header"}) :
        LET l     == job[w].leaf
            batch == job[w].batch
        IN /\ HoldsOnce(Visible, l, Range(l))
           /\ LowOf(Visible, l) = Separator(l)
           /\ NextOf(Visible, l) = NextOf(Medium, l)
           /\ \A k \in Keys :
                 LET old == InLeaf(Medium, l, k)
                 IN InLeaf(Visible, l, k) = IF k \in DOMAIN batch THEN batch[k] ELSE old

(* A new leaf has the upper keys of the old one, as they are to be, and    *)
(* the leaf after it for the next.  Its stamp is as new as their log       *)
(* entries; in recovery it is that of the old one.                         *)
NewInv ==
    \A w \in At({"new", "link"}) :
        LET l     == job[w].leaf
            new   == job[w].new
            low   == LowOf(Visible, new)
            upper == {k \in Range(l) : k >= low}
            stamp == Visible[StampOf(new)]
            held  == [k \in upper |-> InLeaf(Visible, new, k)]
        IN /\ low \in Range(l) /\ low > Separator(l)
           /\ HoldsOnce(Visible, new, upper)
           /\ NextOf(Visible, new) = NextOf(Medium, l)
           /\ IF w = Recoverer
              THEN /\ stamp = Visible[StampOf(l)]
                   /\ \A k \in upper : held[k] \in {written[k], InLeaf(Medium, l, k)}
              ELSE /\ NotBefore(stamp, TimesOf(upper))
                   /\ \A k \in upper :
                         LET own == IsBegun(w) /\ call[w].key = k
                         IN held[k] = IF own THEN call[w].value ELSE written[k]

(* The new leaf is durable.  The link and the bitmap of the old leaf       *)
(* change in one word.                                                     *)
LinkInv ==
    \A w \in At({"link"}) :
        LET l    == job[w].leaf
            new  == job[w].new
            stay == {s \in Live(Medium, l) : Medium[SlotOf(l, s)].key < LowOf(Visible, new)}
        IN /\ Dirty(pm) \cap LeafLines(new) = {}
           /\ Visible[HeaderOf(l)] = [live |-> stay, next |-> new]

(* A leaf that is merged has nothing buffered, and the left one has room   *)
(* for its records.                                                        *)
MergeInv ==
    /\ \A w \in At({"flushed"}) : buffer[job[w].leaf].count = 0
    /\ \A w \in At({"batch", "records", "header", "move", "moved", "merged"}) :
          LET j     == job[w]
              moved == DOMAIN Records(j.from)
              kept  == IF j.at \in {"batch", "records"} THEN Kept(j.leaf, j.batch) ELSE {}
          IN j.from # 0 =>
                /\ buffer[j.from].count = 0
                /\ \/ j.at = "merged"
                   \/ Cardinality(moved) + Cardinality(kept) <= Cardinality(Free(Visible, j.leaf))
                /\ j.at \in Batching \/ buffer[j.leaf].count = 0
                /\ j.at = "moved" => AreStored(j.leaf, moved, Records(j.from))

(* The stamp of the left leaf is as new as the log entries of the records  *)
(* that are moved there.                                                   *)
MovedInv ==
    \A w \in At({"moved", "merged"}) :
        LET keys == Range(job[w].leaf) \cup Range(job[w].from)
        IN NotBefore(Visible[StampOf(job[w].leaf)], TimesOf(keys))

(* With the new bitmap and link, the left leaf has all records of both.    *)
MergedInv ==
    \A w \in At({"merged"}) :
        LET l    == job[w].leaf
            from == job[w].from
            keys == Range(l) \cup Range(from)
        IN /\ StampOf(l) \notin Dirty(pm)
           /\ HoldsOnce(Visible, l, keys)
           /\ LowOf(Visible, l) = Separator(l)
           /\ NextOf(Visible, l) = IF from = 0 THEN 0 ELSE NextOf(Medium, from)
           /\ HasWritten(Visible, l, keys)

-----------------------------------------------------------------------------
(* No entry that counts is newer than the stamp of its leaf, but those of  *)
(* keys that wait in the buffer node, and of a write that is about to.     *)
FlushedInv ==
    Up => \A l \in Indexed :
        LET waiting == {buffer[l].slots[i].key : i \in Waiting(buffer[l])}
            logged  == {call[c].key : c \in Logged}
            times   == TimesOf(Range(l) \ (waiting \cup logged))
        IN NotBefore(Visible[StampOf(l)], {t \in times : t[1] >= Medium[First]})

(* What waits in a buffer node is in a log, beyond all stamps that a crash *)
(* may leave, in the epoch of its bit.  A write in progress may have       *)
(* logged its key again, which is not what waits.  The keys that a split   *)
(* has moved away wait until the rest of the batch is in the leaf.         *)
IsWaiting(l, slot) ==
    LET k       == slot.key
        again   == {<<log[c].chunk, log[c].used>> : c \in Logged}
        durably == EntriesOf(Medium, inner, k)
        waiting == EntriesOf(Visible, inner, k) \ again
        bits    == IF slot.bit = epoch % 2 THEN epoch ELSE epoch - 1
        last    == IF waiting = {} THEN 0 ELSE Times(Visible, LastEntry(Visible, waiting))[1]
    IN /\ durably # {}
       /\ \A stamp \in Survivors(pm[StampOf(l)]) :
             Before(stamp, Times(Medium, LastEntry(Medium, durably)))
       /\ IF LeafFor(k) = l
          THEN slot.value = written[k] /\ last = bits
          ELSE /\ last >= bits
               /\ \E w \in At(Batching) : job[w].leaf = l /\ job[w].from = 0

SlotInv ==
    Up => \A l \in Indexed : \A i \in Waiting(buffer[l]) :
        LET slot == buffer[l].slots[i]
        IN /\ slot.key \in Keys
           /\ \A o \in 1..(i - 1) : buffer[l].slots[o].key # slot.key
           /\ IsWaiting(l, slot)

(* What a buffer node has of a key beside what waits is what was written.  *)
(* That of a leaf into which another is merged is dropped.                 *)
CacheInv ==
    Up => \A l \in Indexed :
        \/ \E w \in Writers : job[w].leaf = l /\ job[w].from # 0
        \/ \A i \in 1..Batch \ Waiting(buffer[l]) :
              LET slot == buffer[l].slots[i]
              IN slot.key # 0 =>
                    \/ LeafFor(slot.key) # l
                    \/ \E o \in Waiting(buffer[l]) : buffer[l].slots[o].key = slot.key
                    \/ slot.value = written[slot.key]

(* Cleaning has still to scan each buffer node with a slot of the epoch    *)
(* before.                                                                 *)
TodoInv ==
    Up =>
        /\ cleaning.at = "scan" \/ (cleaning.todo = {} /\ cleaning.chunks = {})
        /\ cleaning.todo \subseteq Indexed
        /\ \A l \in Indexed \ cleaning.todo :
              \A i \in Waiting(buffer[l]) : buffer[l].slots[i].bit = epoch % 2

IndInv ==
    /\ PhaseInv /\ EpochInv /\ RowInv /\ TimeInv /\ ChunkInv /\ EndInv
    /\ JobInv /\ LoggedInv /\ RestInv /\ LatchedInv
    /\ BatchInv /\ RecordsInv /\ HeaderInv /\ NewInv /\ LinkInv
    /\ MergeInv /\ MovedInv /\ MergedInv
    /\ FlushedInv /\ SlotInv /\ CacheInv /\ TodoInv /\ KeptInv /\ SettledInv
=============================================================================
