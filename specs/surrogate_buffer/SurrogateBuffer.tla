-------------------------- MODULE SurrogateBuffer ---------------------------
(***************************************************************************)
(* LodgeTree's surrogate buffer (§III): writes are logged in the           *)
(* partitioned version log, buffered in the free slots of last-level inner *)
(* nodes, and flushed to few leaves at a time, which are split without a   *)
(* log.                                                                    *)
(*                                                                         *)
(* The paper says what is written where.  It does not say what recovery    *)
(* does with an entry whose pair has been flushed, which of several        *)
(* entries of a key wins, how to tell an entry from older contents of the  *)
(* space, how the inner nodes are rebuilt, or that a key may be written    *)
(* twice, or deleted.  FINDINGS.md has the counterexamples.  The rules     *)
(* followed here:                                                          *)
(*                                                                         *)
(*  - an entry has a number, drawn under the lock of its key's node, and a *)
(*    checksum (AppendEntry);                                              *)
(*  - a leaf records the number up to which it has everything, in the word *)
(*    that makes a flush valid: its stamp (SetBitmap);                     *)
(*  - recovery replays the entries beyond their leaf's stamp, for each     *)
(*    node in the order of the numbers, whatever logs exist (ReplayEntry); *)
(*  - a leaf knows where its range begins, and a split moves range, pairs  *)
(*    and sibling pointer in one word (SwitchSibling).                     *)
(*                                                                         *)
(* This module has clients, log, crash and recovery.  The way from the     *)
(* buffer to the leaves is in LeafCountFlush.                              *)
(*                                                                         *)
(* Left out: how many nodes a node is split into and when (§III-C: no      *)
(* crash depends on it); merging leaves (the paper has none); scans;       *)
(* allocation of leaves and of space for logs (whatever has no pointer to  *)
(* it is free).                                                            *)
(***************************************************************************)
EXTENDS LeafCountFlush

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayOpen(s)        == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE

-----------------------------------------------------------------------------
(* Clients.                                                                *)

CallGet(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<dramVars, leaf, log, recoveryVars, kept>>

(* The value of a write is the number that its entry has if waiting writes *)
(* go first.                                                               *)
NextValue == clock + Cardinality({c \in Clients : Waiting(c)})

CallWrite(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys, v \in {NextValue, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called", space |-> 0]]
    /\ UNCHANGED <<dramVars, leaf, log, recoveryVars, kept>>

(* Under the node's lock, for reading.                                     *)
ReadKey(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ LET k == call[c].key
       IN /\ nodes[NodeOf(k)].lock = Free
          /\ call' = [call EXCEPT ![c].got = Lookup(k)]
    /\ UNCHANGED <<dramVars, leaf, log, recoveryVars, kept>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<dramVars, leaf, log, recoveryVars, kept>>

-----------------------------------------------------------------------------
(* The log (§III-D).                                                       *)

(* "If the current log is full, PVL creates new logs with an incremented   *)
(* version number ... Subsequently, PVL updates the global version and the *)
(* count of valid entries." Nothing persistent records that: each entry    *)
(* identifies itself.  The count starts at L, so that a log is not free    *)
(* before it is full.                                                      *)
OpenLog(c) ==
    /\ phase = "up"
    /\ Waiting(c)
    /\ Current(c) = {}
    /\ \E s \in FreeSpaces :
          /\ MayOpen(s)
          /\ versions' = [versions EXCEPT ![s] =
                 [version |-> version + 1, owner |-> c, used |-> 0, valid |-> LogSize]]
    /\ version' = version + 1
    /\ UNCHANGED <<call, nodes, clock, leaf, log, recoveryVars, kept>>

(* Under the write lock of the key's node, which is held until the pair is *)
(* buffered.  So entries of one key are numbered in the order in which     *)
(* they take effect, and all numbered pairs of a node are in its buffer    *)
(* when it is flushed.                                                     *)
LogsFirst == Bug = "logs-before-lock"

(* The order of the entry.  In the paper it has the version of its log,    *)
(* and its place there.                                                    *)
NumberIn(s) ==
    IF Bug \in {"orders-by-version", "believes-stale-entry"}
    THEN versions[s].version * LogSize + versions[s].used + 1
    ELSE clock

PairOf(c) == [key |-> call[c].key, value |-> call[c].value]

AppendEntry(c) ==
    /\ phase = "up"
    /\ Waiting(c)
    /\ Current(c) # {}
    /\ LET n     == NodeOf(call[c].key)
           s     == CurrentOf(c)
           i     == versions[s].used + 1
           entry == EntryOf(PairOf(c), NumberIn(s))
       IN /\ nodes[n].lock = Free /\ ~IsFull(nodes[n]) /\ ~MustSplit(nodes[n])
          /\ nodes' = [nodes EXCEPT ![n].lock = IF LogsFirst THEN Free ELSE c]
          /\ versions' = [versions EXCEPT ![s].used = i]
          /\ log' = [log EXCEPT ![s][i] = [word \in DOMAIN @ |-> Store(@[word], entry[word])]]
          /\ call' = [call EXCEPT ![c].at = "appended", ![c].space = s]
    /\ clock' = clock + 1
    /\ UNCHANGED <<version, leaf, recoveryVars, kept>>

EntryFenced(c) ==
    LET s == call[c].space
    IN [log EXCEPT ![s][versions[s].used] = Fenced(@)]

KeptWith(c) == [kept EXCEPT ![call[c].key] = call[c].value]

(* The line is written back early, so the write can no longer be lost.     *)
(* (Without the lock the order of two write-backs proves nothing: there    *)
(* the fences count.)                                                      *)
WriteBackEntry(c) ==
    /\ ~LogsFirst
    /\ call[c].op = "write"
    /\ call[c].at = "appended"
    /\ log' = EntryFenced(c)
    /\ call' = [call EXCEPT ![c].at = "durable"]
    /\ kept' = KeptWith(c)
    /\ UNCHANGED <<dramVars, leaf, recoveryVars>>

(* A pair enters a buffer and replaces an older pair of its key, because   *)
(* the buffer "can absorb these repeated updates" (§IV-B).  The older      *)
(* entry is no longer needed.                                              *)
Absorbed(node, pair) ==
    IF InBuffer(node, pair.key) = {}
    THEN [node EXCEPT !.buffer = Append(@, pair)]
    ELSE [node EXCEPT !.buffer = [i \in DOMAIN @ |-> IF @[i].key = pair.key THEN pair ELSE @[i]]]

GivingWay(node, pair) ==
    IF Bug = "counts-flushes-only" THEN {}
    ELSE {node.buffer[i] : i \in InBuffer(node, pair.key)}

(* "After a key-value pair is inserted into PVL, its version number is     *)
(* recorded with buf_ver": after a fence.                                  *)
BufferPair(c) ==
    /\ call[c].op = "write"
    /\ call[c].at \in {"appended", "durable"}
    /\ LET s    == call[c].space
           n    == NodeOf(call[c].key)
           pair == [key |-> call[c].key, value |-> call[c].value,
                    number |-> Newest(log[s][versions[s].used].meta).number,
                    version |-> versions[s].version]
       IN /\ LogsFirst => nodes[n].lock = Free /\ ~IsFull(nodes[n]) /\ ~MustSplit(nodes[n])
          /\ nodes' = [nodes EXCEPT ![n] = [Absorbed(@, pair) EXCEPT !.lock = Free]]
          /\ versions' = Uncounted(GivingWay(nodes[n], pair))
          /\ IF Bug = "buffers-before-fence"
             THEN UNCHANGED <<log, kept>>
             ELSE /\ log' = EntryFenced(c)
                  /\ kept' = IF call[c].at = "durable" THEN kept ELSE KeptWith(c)
    /\ call' = [call EXCEPT ![c].at = "done"]
    /\ UNCHANGED <<version, clock, leaf, recoveryVars>>

Acknowledge(c) ==
    /\ call[c].op = "write"
    /\ call[c].at = "done" \/ (call[c].at = "appended" /\ Bug = "acks-at-once")
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<dramVars, leaf, log, recoveryVars, kept>>

-----------------------------------------------------------------------------
(* Crash and recovery (§IV-E, in one sentence: "reinsertion of key-value   *)
(* pairs in the log to last-level internal nodes").                        *)

(* Torn entries are cleared before anything else is logged there.          *)
(* Otherwise the same pair, logged again, may complete one, with its old   *)
(* number.                                                                 *)
Mended(entries) ==
    [s \in Spaces |-> [i \in 1..LogSize |->
        IF IsWhole(entries[s][i]) \/ Bug = "leaves-torn-entries" THEN entries[s][i] ELSE NoEntry]]

(* The clock continues after every number that may be found: the numbers   *)
(* of entries, and those of leaves, whose entries may be gone.             *)
ClockAfter(leaves, entries) ==
    LET logged  == {entries[at[1]][at[2]].meta.number : at \in Entries}
        stamped == {leaves[l][Header].stamp : l \in Leaves}
    IN 1 + Greatest(logged \cup IF Bug = "restarts-numbers" THEN {} ELSE stamped)

(* Recovery begins in the same step, because before it replays the first   *)
(* pair, it writes nothing that it would not write again: torn entries are *)
(* cleared, inner nodes are rebuilt from the leaves, all logs are old, and *)
(* none is needed so far.                                                  *)
StartOver(leaves, entries) ==
    /\ log' = [s \in Spaces |-> [i \in 1..LogSize |-> AllDurably(entries[s][i])]]
    /\ nodes' = <<NewNode(IndexOf(leaves), <<>>)>>
    /\ clock' = ClockAfter(leaves, entries)
    /\ versions' = OldVersions /\ version' = Cardinality(Spaces)
    /\ call' = [c \in Clients |-> Idle]
    /\ replayed' = {}
    /\ crashes' = crashes + 1
    /\ UNCHANGED kept

(* The power fails, at any time, also during recovery.                     *)
Crash ==
    /\ MayCrash(crashes)
    /\ \E left \in LeavesLeft(leaf), torn \in LogLeft(log) :
          LET leaves == Found(left)
          IN /\ leaf' = [l \in Leaves |-> AllDurably(leaves[l])]
             /\ StartOver(leaves, Mended(torn))
    /\ phase' = "cut"

(* The process is restarted without a power failure.  What recovery reads  *)
(* need not be persistent: it writes all leaves and entries back and       *)
(* fences before it builds on them. (An entry that is not fenced yet is    *)
(* written back before: WriteBackEntry.)                                   *)
Restart ==
    /\ MayRestart(crashes)
    /\ \A c \in Clients : call[c].op = "write" => call[c].at # "appended"
    /\ LET leaves == Found(LeavesNow)
       IN /\ leaf' = IF Bug = "trusts-what-it-reads" THEN leaf ELSE [l \in Leaves |-> AllDurably(leaves[l])]
          /\ StartOver(leaves, Mended(LogNow(log)))
    /\ phase' = "killed"

EntryAt(at)  == NewestOf(log[at[1]][at[2]])
NumberAt(at) == EntryAt(at).meta.number
PairAt(at)   == EntryAt(at).pair
StampFor(k)  == LeafNow(LeafOf(nodes[NodeOf(k)], k))[Header].stamp

(* The entries to replay: those that their leaf does not have yet.         *)
ToReplay ==
    {at \in Entries :
        /\ IsWhole(EntryAt(at))
        /\ at \notin replayed
        /\ NumberAt(at) > StampFor(PairAt(at).key) \/ Bug = "replays-flushed"}

IsNext(at) ==
    CASE Bug = "replays-in-parallel" -> TRUE
      [] Bug = "replays-log-by-log"  ->
             \A other \in ToReplay : at[1] < other[1] \/ (at[1] = other[1] /\ at[2] <= other[2])
      [] OTHER ->
             \A other \in ToReplay :
                 NodeOf(PairAt(other).key) = NodeOf(PairAt(at).key) => NumberAt(at) <= NumberAt(other)

(* An entry returns to the buffer, for each node in the order of the       *)
(* numbers: if the buffer has to be flushed on the way, the stamps of its  *)
(* leaves must not cover later entries.  So threads may replay nodes in    *)
(* parallel, but not logs.                                                 *)
ReplayEntry ==
    /\ phase # "up"
    /\ \E at \in ToReplay :
          /\ IsNext(at)
          /\ LET n     == NodeOf(PairAt(at).key)
                 pair  == [key |-> PairAt(at).key, value |-> PairAt(at).value,
                           number |-> NumberAt(at), version |-> versions[at[1]].version]
                 older == /\ Bug = "replays-log-by-log"
                          /\ \E i \in InBuffer(nodes[n], pair.key) : nodes[n].buffer[i].number > pair.number
             IN /\ nodes[n].lock = Free /\ ~IsFull(nodes[n]) /\ ~MustSplit(nodes[n])
                /\ nodes' = IF older THEN nodes ELSE [nodes EXCEPT ![n] = Absorbed(@, pair)]
                /\ versions' = IF older THEN versions
                               ELSE [Uncounted(GivingWay(nodes[n], pair)) EXCEPT ![at[1]].valid = @ + 1]
          /\ replayed' = replayed \cup {at}
    /\ UNCHANGED <<call, version, clock, leaf, log, phase, crashes, kept>>

FinishReplay ==
    /\ phase # "up"
    /\ ToReplay = {}
    /\ phase' = "up" /\ replayed' = {}
    /\ UNCHANGED <<call, dramVars, leaf, log, crashes, kept>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ ReadKey(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ OpenLog(c) \/ AppendEntry(c) \/ WriteBackEntry(c) \/ BufferPair(c)
          \/ Acknowledge(c)
    \/ \E n \in Leaves : NodeStep(n)
    \/ Crash \/ Restart \/ ReplayEntry \/ FinishReplay

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and recovery ends: every step    *)
(* except the optional ones.                                               *)
ClientFairness ==
    \A c \in Clients :
        WF_vars(ReadKey(c) \/ AnswerGet(c) \/ OpenLog(c) \/ AppendEntry(c) \/ BufferPair(c) \/ Acknowledge(c))

FlushFairness == \A n \in Leaves : WF_vars(NodeStep(n))

RecoveryFairness == WF_vars(ReplayEntry \/ FinishReplay)

FairSpec == Spec /\ ClientFairness /\ FlushFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* What recovery would make of these leaves and entries.                   *)
Believes(entries, at) ==
    LET entry == entries[at[1]][at[2]]
    IN CASE Bug = "believes-stale-entry" -> entry.pair.key # 0 /\ versions[at[1]].valid > 0
         [] Bug = "replays-valid-logs"   -> IsWhole(entry) /\ versions[at[1]].valid > 0
         [] OTHER                        -> IsWhole(entry)

OrderOf(entries, at) ==
    IF Bug = "believes-stale-entry" THEN versions[at[1]].version * LogSize + at[2]
    ELSE entries[at[1]][at[2]].meta.number

Recovered(leaves, entries) ==
    LET index    == IndexOf(leaves)
        believed == {at \in Entries : Believes(entries, at)}
        order(at) == OrderOf(entries, at)
    IN [k \in Keys |->
           LET words == leaves[LeafAt(index, k)]
               newer == {at \in believed :
                            /\ entries[at[1]][at[2]].pair.key = k
                            /\ \/ order(at) > words[Header].stamp
                               \/ Bug \in {"replays-flushed", "replays-valid-logs"}}
           IN IF newer = {} THEN ValueIn(words, k)
              ELSE LET last == CHOOSE at \in newer : \A other \in newer : order(other) <= order(at)
                   IN entries[last[1]][last[2]].pair.value]

(* From whatever a crash may leave, recovery restores exactly what no      *)
(* crash can undo.                                                         *)
RecoverableInv ==
    \A left \in LeavesLeft(leaf), entries \in LogLeft(log) :
        Recovered(Found(left), entries) = kept

(* And clients see the same.                                               *)
UnderWay(k) ==
    \E c \in Clients :
        call[c].op = "write" /\ call[c].key = k /\ call[c].at \in {"appended", "durable"}

VisibleInv ==
    phase = "up" =>
        \A k \in Keys : nodes[NodeOf(k)].lock = Free /\ ~UnderWay(k) => Lookup(k) = kept[k]

BufferedPairs == UNION {{nodes[n].buffer[i] : i \in DOMAIN nodes[n].buffer} : n \in DOMAIN nodes}

(* Every buffered pair is persistent in the log, where its version says.   *)
LogInv ==
    \A pair \in BufferedPairs :
        \E at \in Entries :
            /\ versions[at[1]].version = pair.version
            /\ Unflushed(log[at[1]][at[2]]) = {}
            /\ EntryAt(at) = EntryOf([key |-> pair.key, value |-> pair.value], pair.number)

(* The count of a version is the number of pairs that need it.             *)
CountInv ==
    \A s \in Spaces :
        versions[s].valid =
            (LogSize - versions[s].used)
            + Cardinality({pair \in BufferedPairs : pair.version = versions[s].version})
            + Cardinality({c \in Clients : call[c].op = "write" /\ call[c].space = s
                                              /\ call[c].at \in {"appended", "durable"}})

(* Buffered pairs are beyond the stamp of their leaf, unless they are      *)
(* being flushed.                                                          *)
StampInv ==
    \A n \in DOMAIN nodes : \A i \in DOMAIN nodes[n].buffer :
        LET pair == nodes[n].buffer[i]
            l    == LeafOf(nodes[n], pair.key)
        IN \/ pair.number > LeafNow(l)[Header].stamp
           \/ IsAt(n, {"marked"}) /\ pair \in GroupOf(nodes[n], Head(nodes[n].todo))

(* The next number is unused.                                              *)
NumberInv ==
    /\ \A at \in Entries : NumberAt(at) < clock
    /\ \A n \in DOMAIN nodes : \A i \in DOMAIN nodes[n].index :
           LeafNow(nodes[n].index[i].leaf)[Header].stamp < clock

(* A leaf has each key once, and only keys of its range.                   *)
LeafInv ==
    LET index == IndexOf(LeavesNow)
    IN \A i \in DOMAIN index :
           LET words == LeafNow(index[i].leaf)
           IN /\ Cardinality(KeysIn(words)) = Cardinality(words[Header].bits)
              /\ \A k \in KeysIn(words) : At(index, k) = i

RECURSIVE IndexUpTo(_)
IndexUpTo(n) == IF n = 0 THEN <<>> ELSE IndexUpTo(n - 1) \o nodes[n].index

(* The inner nodes agree with the leaves.                                  *)
IndexInv ==
    (\A n \in DOMAIN nodes : nodes[n].at # "switched") => IndexUpTo(Len(nodes)) = IndexOf(LeavesNow)

(* A buffer uses only free slots, and has each key once.                   *)
SpaceInv ==
    \A n \in DOMAIN nodes :
        /\ Len(nodes[n].index) + Len(nodes[n].buffer) <= Slots
        /\ \A i \in DOMAIN nodes[n].buffer :
               NodeOf(nodes[n].buffer[i].key) = n /\ InBuffer(nodes[n], nodes[n].buffer[i].key) = {i}

(* A flush goes to at most t_node leaves, and splits a leaf only if it is  *)
(* the only one.                                                           *)
FlushInv ==
    \A n \in DOMAIN nodes :
        /\ Len(nodes[n].todo) <= TNode
        /\ nodes[n].at \in {"prepared", "linked", "switched"} => Len(nodes[n].todo) = 1

(* A leaf that is not split has space for the pairs to be added.           *)
RoomInv == \A n \in Leaves : Merges(n) => Cardinality(KeysAfter(nodes[n], Head(nodes[n].todo))) <= LeafSlots

(* No word is stored twice before it is fenced: after a crash it is one of *)
(* two.                                                                    *)
DoubtInv ==
    /\ \A l \in Leaves, spot \in Spots : Len(leaf[l][spot]) <= 2
    /\ \A at \in Entries : \A half \in {"pair", "meta"} : Len(log[at[1]][at[2]][half]) <= 2

(* A power cut leaves one version of each word.                            *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           (\A l \in Leaves : Unflushed(leaf'[l]) = {})
           /\ \A s \in Spaces : \A i \in 1..LogSize : Unflushed(log'[s][i]) = {}]_vars

(* Liveness: every call is answered, unless a crash intervenes.            *)
AnsweredProp == \A c \in Clients : call[c] # Idle ~> call[c] = Idle

RecoveredProp == phase # "up" ~> phase = "up"

(* A flush ends, with its splits.                                          *)
IsLocked == \E n \in DOMAIN nodes : nodes[n].lock # "free"

UnlockedProp == IsLocked ~> ~IsLocked

-----------------------------------------------------------------------------
(* The contract.  A write takes effect when its entry is persistent, and   *)
(* then cannot be undone: the tail is always empty.                        *)

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> call[c].at \in {"durable", "done"}]
        ELSE call[c]]

(* Recovery begins in the step that ends the life before, so no phase is   *)
(* "opening".                                                              *)
Contract == INSTANCE DurableMap WITH
    base <- kept, tail <- <<>>, call <- AbstractCall, phase <- phase

THEOREM Spec => Contract!Spec
=============================================================================
