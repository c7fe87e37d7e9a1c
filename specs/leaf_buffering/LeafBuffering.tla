--------------------------- MODULE LeafBuffering ----------------------------
(***************************************************************************)
(* CCL-BTree: buffer nodes, write-conservative logging, logless split and  *)
(* merge, locality-aware log cleaning, recovery (CCL-BTree §3, §4).        *)
(*                                                                         *)
(* A leaf in persistent memory has a buffer node in DRAM.  A write goes to *)
(* the log and the buffer; if that is full, it is a *trigger write*, which *)
(* goes to the leaf with all that is buffered, and not to the log.  So the *)
(* newest value of a key may be in a log or in its leaf, and the leaf's    *)
(* timestamp says which.                                                   *)
(*                                                                         *)
(* What is repaired here, each with its counterexample in FINDINGS.md: the *)
(* timestamp is stored after the header's fence and may lag by a flush     *)
(* (FenceHeader); a buffer holds no key twice (LeafState, PlaceFor); a     *)
(* leaf keeps its smallest key (IsKept); a merge first flushes the left    *)
(* buffer (LatchLeft); a copied entry gets the new epoch's bit             *)
(* (ScanBuffer); logs end all at once (Reclaim, DropLogs); recovery        *)
(* replays the newest entry of a key, from all logs (LeafMemory), and      *)
(* resets no timestamp; what is read after a kill is first made durable    *)
(* (WriteBack).                                                            *)
(*                                                                         *)
(* A fence and the stores after it are one step: a crash between them is a *)
(* crash after them that keeps none.  Left out: range queries (each key of *)
(* one is a get), the inner nodes' own concurrency, readers that find the  *)
(* version changed and retry, variable-size keys and values, two replaying *)
(* threads.                                                                *)
(***************************************************************************)
EXTENDS LeafState

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayClean(e)       == TRUE
MayCrash(n)       == TRUE
MayKill(n)        == TRUE

-----------------------------------------------------------------------------
(* Clients.                                                                *)

CallGet(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<asked, written, bufferVars, job, logVars, memoryVars, powerVars>>

CallWrite(c) ==
    /\ phase = "up"
    /\ call[c] = Idle
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] = [op |-> "write", key |-> k, value |-> v, at |-> "called"]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<written, bufferVars, job, logVars, memoryVars, powerVars>>

(* A reader that finds the version odd, or changed, retries (§4.4).        *)
ReadKey(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ ~Latched(LeafFor(call[c].key))
    /\ call' = [call EXCEPT ![c].got = Lookup(call[c].key)]
    /\ UNCHANGED <<asked, written, bufferVars, job, logVars, memoryVars, powerVars>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, written, bufferVars, job, logVars, memoryVars, powerVars>>

(* The version lock of the buffer node also protects the leaf.  The global *)
(* epoch is read once, under the lock: log, time and bit depend on it.     *)
Latch(c) ==
    /\ phase = "up"
    /\ call[c].op = "write" /\ call[c].at = "called"
    /\ LET k == call[c].key
           l == LeafFor(k)
           b == buffer[l]
           kvs == UnflushedKvs(b)
           all == [o \in DOMAIN kvs \cup {k} |-> IF o = k THEN call[c].value ELSE kvs[o]]
           flush == IsTrigger(b, k) \/ (Bug = "flushes-logged-key" /\ k \in DOMAIN kvs)
       IN /\ ~Latched(l)
          /\ job' = [job EXCEPT ![c] =
                 [NoJob EXCEPT !.at = IF flush THEN "batch" ELSE "log",
                               !.leaf = l,
                               !.epoch = epoch,
                               !.batch = IF flush THEN all ELSE <<>>,
                               !.deletes = flush /\ \E o \in DOMAIN all : all[o] = Absent]]
    /\ call' = [call EXCEPT ![c].at = "begun"]
    /\ UNCHANGED <<asked, written, bufferVars, logVars, memoryVars, powerVars>>

(* The write of client c is durable.  A split may reveal it before all its *)
(* consequences are done, and others may write its key again.              *)
TakesEffect(c) ==
    IF call[c].at = "begun"
    THEN /\ call' = [call EXCEPT ![c].at = "done"]
         /\ written' = [written EXCEPT ![call[c].key] = call[c].value]
    ELSE UNCHANGED <<call, written>>

(* The write and all its consequences are done, and its client is told.    *)
Finish(c) ==
    /\ \/ job[c].at = "done"
       \/ job[c].at = "flushed" /\ ~ShouldMerge(job[c])
       \/ job[c].at = "logged" /\ Bug = "acks-at-once"
    /\ job' = [job EXCEPT ![c] = NoJob]
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, written, bufferVars, logVars, memoryVars, powerVars>>

-----------------------------------------------------------------------------
(* Logging (§3.3).                                                         *)

(* "When a new log chunk is needed, it is first retrieved from the free    *)
(* list": a chunk of an epoch that no longer counts and cannot return.     *)
FreeChunks ==
    {c \in Chunks : Visible[ChunkOf(c)] < IF Bug = "reuses-early" THEN Visible[First] ELSE Medium[First]}

(* Where logger x appends in epoch e.                                      *)
EndOf(x, e) ==
    IF log[x].epoch = e /\ log[x].used < Cardinality(Entries) THEN log[x]
    ELSE IF FreeChunks = {} THEN NoLog
    ELSE [chunk |-> Least(FreeChunks), used |-> 0, epoch |-> e]

EntryWords(end, kv) ==
    LET n == end.used + 1
    IN [w \in {ChunkOf(end.chunk), KvOf(end.chunk, n), TimeOf(end.chunk, n)} |->
           CASE w = ChunkOf(end.chunk)   -> end.epoch
             [] w = KvOf(end.chunk, n)   -> kv
             [] w = TimeOf(end.chunk, n) -> Stamped(<<end.epoch, tick + 1>>, kv)]

AppendTo(x, e, kv) ==
    LET end == EndOf(x, e)
    IN /\ end.chunk # 0
       /\ Becomes(Store(pm, EntryWords(end, kv)))
       /\ log' = [log EXCEPT ![x] = [end EXCEPT !.used = @ + 1]]
       /\ tick' = tick + 1

AppendLog(c) ==
    /\ job[c].at = "log"
    /\ AppendTo(c, job[c].epoch, [key |-> call[c].key, value |-> call[c].value])
    /\ job' = [job EXCEPT ![c].at = "logged"]
    /\ UNCHANGED <<clientVars, bufferVars, epoch, cleaning, powerVars>>

(* After the fence the KV is inserted into the buffer.                     *)
FenceLog(c) ==
    /\ job[c].at = "logged"
    /\ LET end   == log[c]
           l     == job[c].leaf
           read  == IF Bug = "reads-epoch-twice" THEN epoch ELSE job[c].epoch
           entry == {ChunkOf(end.chunk), KvOf(end.chunk, end.used), TimeOf(end.chunk, end.used)}
       IN /\ Becomes(IF Bug = "acks-before-fence" THEN pm ELSE Fence(pm, entry))
          /\ buffer' = [buffer EXCEPT ![l] = Buffered(@, call[c].key, call[c].value, read % 2)]
    /\ TakesEffect(c)
    /\ job' = [job EXCEPT ![c].at = "done"]
    /\ UNCHANGED <<asked, inner, logVars, powerVars>>

-----------------------------------------------------------------------------
(* A batch is inserted into a leaf (§4.2).  The steps are those of trigger *)
(* writes, of a merge that flushes the left buffer, and of recovery.       *)

(* Not older than any log entry so far, and older than the next.           *)
Now(w) == <<job[w].epoch, tick + IF Bug = "stamps-ahead" THEN 1 ELSE 0>>

(* "(1) Insert the entries into the empty slots in the data region ..."    *)
StoreRecords(w) ==
    /\ job[w].at = "batch"
    /\ LET l     == job[w].leaf
           batch == job[w].batch
           kept  == Kept(l, batch)
       IN /\ Fits(l, batch)
          /\ Becomes(Store(pm, RecordWords(l, Placed(kept, Free(Visible, l)), batch)))
    /\ job' = [job EXCEPT ![w].at = "records"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* "... (2) persist the modified cachelines using clwb and call one        *)
(* sfence to ensure the order; (3) update the fingerprints, timestamp, and *)
(* bitmap": but not the timestamp.                                         *)
StoreHeader(w) ==
    /\ job[w].at = "records"
    /\ LET l      == job[w].leaf
           batch  == job[w].batch
           slots  == SlotsFor(l, Kept(l, batch))
           header == [live |-> LiveAfter(l, batch), next |-> Visible[HeaderOf(l)].next]
           words  == IF Bug = "timestamp-with-bitmap" /\ w \in Clients THEN HeaderLine(l) ELSE {HeaderOf(l)}
       IN Becomes(Store(IF Bug = "header-before-records" THEN pm ELSE Fence(pm, SlotsOf(l, slots)),
                      [x \in words |-> IF x = HeaderOf(l) THEN header ELSE Now(w)]))
    /\ job' = [job EXCEPT ![w].at = "header"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* "... and persist the metadata region using single clwb and sfence."     *)
(* Only then is the timestamp stored: if it were durable and the bitmap    *)
(* not, recovery would ignore the log entries of all buffered keys.  It    *)
(* becomes durable with the next fence of its line.  Until then the old    *)
(* one is good enough: what was logged since then is in the leaf as last   *)
(* logged, and the key of a trigger write was not logged.                  *)
FenceHeader(w) ==
    /\ job[w].at = "header"
    /\ LET l      == job[w].leaf
           fenced == Fence(pm, HeaderLine(l))
       IN IF w = Recoverer
          THEN /\ Becomes(fenced)
               /\ job' = [job EXCEPT ![w] = NoJob]
               /\ UNCHANGED <<call, written, buffer>>
          ELSE /\ Becomes(Store(fenced, [x \in {StampOf(l)} |-> Now(w)]))
               /\ buffer' = [buffer EXCEPT ![l].count = 0]
               /\ job' = [job EXCEPT ![w].at = IF job[w].from = 0 THEN "flushed" ELSE "move",
                                     ![w].batch = <<>>]
               /\ TakesEffect(w)
    /\ UNCHANGED <<asked, inner, logVars, powerVars>>

-----------------------------------------------------------------------------
(* "Logless split of leaf nodes" (§4.2).                                   *)

(* "Allocate a new leaf node and copy half of the entries", with the part  *)
(* of the batch that belongs there.  Recovery may have more to replay:     *)
(* then the new leaf has the old one's timestamp.                          *)
StoreNewLeaf(w) ==
    /\ job[w].at = "batch"
    /\ LET l       == job[w].leaf
           batch   == job[w].batch
           new     == Least(Leaves \ InUse)
           content == NewContent(l, batch)
           placed  == Placed(DOMAIN content, Slots)
           header  == [live |-> {placed[n].slot : n \in DOMAIN placed}, next |-> Visible[HeaderOf(l)].next]
           stamp   == IF Bug = "new-leaf-unstamped" THEN Never
                      ELSE IF w \in Clients THEN Now(w)
                      ELSE IF Bug = "recovery-stamps-new-leaf" THEN <<NextEpoch, 0>>
                      ELSE Visible[StampOf(l)]
           records == RecordWords(new, placed, content)
       IN /\ ~Fits(l, batch)
          /\ Leaves \ InUse # {}
          /\ Becomes(Store(pm, [x \in DOMAIN records \cup HeaderLine(new) |->
                 IF x = HeaderOf(new) THEN header ELSE IF x = StampOf(new) THEN stamp ELSE records[x]]))
          /\ job' = [job EXCEPT ![w].at = "new", ![w].new = new, ![w].batch = Rest(l, batch)]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* "Flushes the entire newLeaf"; then the old leaf's bitmap and next       *)
(* pointer, in one word.  Its timestamp stays as it is: the rest of the    *)
(* batch is not in it yet.                                                 *)
StoreLink(w) ==
    /\ job[w].at = "new"
    /\ LET l      == job[w].leaf
           new    == job[w].new
           stay   == {s \in Live(Visible, l) : Visible[SlotOf(l, s)].key < LowOf(Visible, new)}
           header == [live |-> stay, next |-> new]
           words  == IF Bug = "split-stamps-old-leaf" THEN HeaderLine(l) ELSE {HeaderOf(l)}
       IN Becomes(Store(IF Bug = "links-before-fence" THEN pm ELSE Fence(pm, LeafLines(new)),
                      [x \in words |-> IF x = HeaderOf(l) THEN header ELSE Now(w)]))
    /\ job' = [job EXCEPT ![w].at = "link"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* The new leaf can be found from now on.  "Finally, the remaining KVs are *)
(* inserted into the oldLeaf through normal batch insertion."  The new     *)
(* leaf's buffer node starts with copies of its first entries, as in the   *)
(* published code; in recovery it starts empty.  The old leaf's buffer     *)
(* node keeps its contents (in the code and in the engine it gets copies   *)
(* too); in any case they equal the leaf's.                                *)
FenceLink(w) ==
    /\ job[w].at = "link"
    /\ LET l    == job[w].leaf
           new  == job[w].new
           stay == KeysIn(Visible, l)
           low  == IF Bug = "separator-between" THEN Greatest(stay) + 1 ELSE LowOf(Visible, new)
           i    == Position(l)
       IN /\ Becomes(Fence(pm, HeaderLine(l)))
          /\ inner' = SubSeq(inner, 1, i) \o <<[leaf |-> new, low |-> low]>> \o SubSeq(inner, i + 1, Len(inner))
          /\ buffer' = [buffer EXCEPT ![new] = IF w \in Clients THEN Copies(new) ELSE EmptyBuffer]
          /\ IF w \in Clients /\ call[w].key \notin DOMAIN job[w].batch
             THEN TakesEffect(w)
             ELSE UNCHANGED <<call, written>>
    /\ job' = [job EXCEPT ![w].at = IF job[w].batch = <<>> THEN "header" ELSE "batch", ![w].new = 0]
    /\ UNCHANGED <<asked, logVars, powerVars>>

-----------------------------------------------------------------------------
(* "If the deletion causes a leaf to be underutilized (i.e., < 50%) and    *)
(* its left sibling node has enough space, CCL-BTree merges the node to    *)
(* the left sibling node."                                                 *)

(* "It first acquires the locks of the two nodes"; the left one's buffer   *)
(* is flushed, because its timestamp will be raised.                       *)
LatchLeft(c) ==
    /\ job[c].at = "flushed"
    /\ ShouldMerge(job[c])
    /\ LET left  == LeftOf(job[c].leaf)
           batch == UnflushedKvs(buffer[left])
           straight == batch = <<>> \/ Bug = "merge-without-flush"
       IN /\ ~Latched(left)
          /\ job' = [job EXCEPT ![c] = [@ EXCEPT !.at = IF straight THEN "move" ELSE "batch",
                                                 !.leaf = left,
                                                 !.from = job[c].leaf,
                                                 !.epoch = epoch,
                                                 !.batch = IF straight THEN <<>> ELSE batch]]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, memoryVars, powerVars>>

(* From now on the left leaf's timestamp applies to the keys, so it must   *)
(* be as new as their own was.                                             *)
MoveRecords(c) ==
    /\ job[c].at = "move"
    /\ LET l       == job[c].leaf
           content == Records(job[c].from)
           records == RecordWords(l, Placed(DOMAIN content, Free(Visible, l)), content)
           stamp   == IF Bug = "merge-keeps-timestamp" THEN Visible[StampOf(l)] ELSE Now(c)
       IN Becomes(Store(pm, [x \in DOMAIN records \cup {StampOf(l)} |->
              IF x = StampOf(l) THEN stamp ELSE records[x]]))
    /\ job' = [job EXCEPT ![c].at = "moved"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* "Because the bitmap and the next pointer are 8 B, we can atomically     *)
(* detach the underutilized node from the linked list of leaf nodes and    *)
(* validate the newly inserted KVs in the sibling node."                   *)
StoreMerged(c) ==
    /\ job[c].at = "moved"
    /\ LET l      == job[c].leaf
           from   == job[c].from
           slots  == SlotsFor(l, DOMAIN Records(from))
           header == [live |-> Live(Visible, l) \cup slots, next |-> Visible[HeaderOf(from)].next]
       IN Becomes(Store(IF Bug = "merges-under-one-fence" THEN pm
                      ELSE Fence(pm, HeaderLine(l) \cup SlotsOf(l, slots)),
                      [x \in {HeaderOf(l)} |-> header]))
    /\ job' = [job EXCEPT ![c].at = "merged"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* The left buffer node's cache is dropped too: it may hold keys that a    *)
(* split moved away, and, since it was flushed before it was full, a key   *)
(* twice.                                                                  *)
FenceMerged(c) ==
    /\ job[c].at = "merged"
    /\ LET l    == job[c].leaf
           from == job[c].from
           i    == Position(from)
       IN /\ Becomes(Fence(pm, HeaderLine(l)))
          /\ inner' = SubSeq(inner, 1, i - 1) \o SubSeq(inner, i + 1, Len(inner))
          /\ buffer' = [buffer EXCEPT ![l] = IF Bug = "keeps-cache" THEN @ ELSE WithoutCache(@), ![from] = EmptyBuffer]
          /\ cleaning' = [cleaning EXCEPT !.todo = @ \ {from}]
    /\ job' = [job EXCEPT ![c].at = "done", ![c].from = 0]
    /\ UNCHANGED <<clientVars, log, epoch, tick, powerVars>>

-----------------------------------------------------------------------------
(* Locality-aware garbage collection (§3.4).                               *)

(* It "starts by flipping the global epoch number"; here numbers keep      *)
(* growing, and the epoch bit is their parity.                             *)
FlipEpoch ==
    /\ phase = "up"
    /\ cleaning.at = "idle"
    /\ MayClean(epoch)
    /\ epoch' = epoch + 1
    /\ cleaning' = [at |-> "scan", todo |-> {inner[i].leaf : i \in DOMAIN inner}, chunks |-> {}]
    /\ UNCHANGED <<clientVars, bufferVars, job, log, tick, memoryVars, powerVars>>

(* "The background GC thread scans all buffer nodes and copies the KVs     *)
(* that have not been written to leaf nodes to I-logs", under the node's   *)
(* latch, and gives them the new epoch's bit.  A buffer node stores no     *)
(* times: the copy gets the current time.  Its fence may wait (Reclaim).   *)
ScanBuffer(l) ==
    /\ cleaning.at = "scan"
    /\ l \in cleaning.todo
    /\ ~Latched(l) \/ Bug = "copies-unlatched"
    /\ LET b    == buffer[l]
           old  == {i \in Waiting(b) : b.slots[i].bit # epoch % 2}
           i    == Least(old)
           done == IF Cardinality(old) > 1 THEN cleaning.todo ELSE cleaning.todo \ {l}
       IN IF old = {}
          THEN /\ cleaning' = [cleaning EXCEPT !.todo = done]
               /\ UNCHANGED <<buffer, log, tick, memoryVars>>
          ELSE /\ AppendTo(Cleaner, epoch, [key |-> b.slots[i].key, value |-> b.slots[i].value])
               /\ buffer' = IF Bug = "copy-keeps-bit" THEN buffer
                            ELSE [buffer EXCEPT ![l].slots[i].bit = epoch % 2]
               /\ cleaning' = [cleaning EXCEPT !.todo = done, !.chunks = @ \cup {EndOf(Cleaner, epoch).chunk}]
    /\ UNCHANGED <<clientVars, inner, job, epoch, powerVars>>

(* "We mark the I-logs as new B-logs", after a fence for the copies: the   *)
(* old logs no longer count, all from the same moment on.                  *)
Reclaim ==
    /\ cleaning.at = "scan"
    /\ cleaning.todo = {}
    /\ LET copies == UNION {ChunkLines(c) : c \in cleaning.chunks}
       IN Becomes(Store(IF Bug = "reclaims-before-fence" THEN pm ELSE Fence(pm, copies),
                      [x \in {First} |-> epoch]))
    /\ cleaning' = [NoCleaning EXCEPT !.at = "reclaim"]
    /\ UNCHANGED <<clientVars, bufferVars, job, log, epoch, tick, powerVars>>

(* Their chunks become free.                                               *)
FreeLogs ==
    /\ cleaning.at = "reclaim"
    /\ Becomes(Fence(pm, {First}))
    /\ cleaning' = NoCleaning
    /\ UNCHANGED <<clientVars, bufferVars, job, log, epoch, tick, powerVars>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

ForgetMemory ==
    /\ crashes' = crashes + 1
    /\ inner' = <<>>
    /\ buffer' = [l \in Leaves |-> EmptyBuffer]
    /\ job' = [w \in Writers |-> NoJob]
    /\ log' = [x \in Loggers |-> NoLog] /\ epoch' = 0 /\ tick' = 0
    /\ cleaning' = NoCleaning
    /\ UNCHANGED <<clientVars, memoryVars>>

(* The power fails, at any time, also during recovery.                     *)
Crash ==
    /\ phase \in {"up", "killed", "recovery"}
    /\ MayCrash(crashes)
    /\ phase' = "failing"
    /\ ForgetMemory

(* The process dies, but the power is on: caches keep what is not durable, *)
(* and a restart reads it.  Until a restart nothing else happens, so the   *)
(* instant does not matter at which a power failure comes after it.        *)
Kill ==
    /\ phase \in {"up", "recovery"}
    /\ MayKill(crashes)
    /\ phase' = "killed"
    /\ ForgetMemory

(* Each word that was not fenced keeps any value that it has had since;    *)
(* one word a step, from the first address to the last, so that a          *)
(* surviving write becomes visible in one step.  The order makes no        *)
(* difference.                                                             *)
Settle ==
    /\ phase = "failing"
    /\ Dirty(pm) # {}
    /\ LET w == Least(Dirty(pm))
       IN \E v \in Survivors(pm[w]) : Becomes([pm EXCEPT ![w] = Durably(v)])
    /\ UNCHANGED <<clientVars, bufferVars, job, logVars, powerVars>>

(* What is read after a kill need not be durable, and recovery builds on   *)
(* it: what it finds in a leaf it does not replay.  So all lines are first *)
(* written back (engine/src/pm/leaves/recover.rs), word by word here, so   *)
(* that a surviving write becomes durable in one step.                     *)
WriteBack ==
    /\ phase = "killed"
    /\ Dirty(pm) # {}
    /\ Becomes(Fence(pm, {Least(Dirty(pm))}))
    /\ UNCHANGED <<clientVars, bufferVars, job, logVars, powerVars>>

(* "Rebuilding their inner nodes in DRAM while traversing the linked list  *)
(* of leaf nodes in PM"; the logs are read.                                *)
Restart ==
    /\ phase \in {"failing", "killed"}
    /\ Dirty(pm) = {} \/ (phase = "killed" /\ Bug = "trusts-what-it-reads")
    /\ phase' = "recovery"
    /\ inner' = ListFrom(Visible, 1)
    /\ call' = [c \in Clients |-> Idle]
    /\ written' = found
    /\ UNCHANGED <<asked, buffer, job, logVars, memoryVars, crashes>>

Missing == {k \in Keys : RecoveredKey(Visible, inner, k) # InLeaf(Visible, LeafFor(k), k)}

(* "By replaying log entries, we recover the KVs to leaf nodes": key by    *)
(* key, without changing timestamps, so that it can be repeated.           *)
Replay ==
    /\ phase = "recovery"
    /\ job[Recoverer].at = "none"
    /\ Missing # {}
    /\ LET k == Least(Missing)
       IN job' = [job EXCEPT ![Recoverer] =
              [NoJob EXCEPT !.at = "batch",
                            !.leaf = LeafFor(k),
                            !.batch = [o \in {k} |-> RecoveredKey(Visible, inner, k)]]]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, memoryVars, powerVars>>

(* Everything is in the leaves: the logs no longer count.                  *)
DropLogs ==
    /\ phase = "recovery"
    /\ job[Recoverer].at = "none"
    /\ Missing = {}
    /\ LET resets == IF Bug = "resets-timestamps" THEN {StampOf(l) : l \in Leaves} ELSE {}
       IN Becomes(Store(pm, [x \in {First} \cup resets |-> IF x = First THEN NextEpoch ELSE Never]))
    /\ job' = [job EXCEPT ![Recoverer].at = "done"]
    /\ UNCHANGED <<clientVars, bufferVars, logVars, powerVars>>

(* "CCL-BTree recovers all KV items and can serve new requests."           *)
Open ==
    /\ job[Recoverer].at = "done"
    /\ Becomes(Fence(pm, {First} \cup {StampOf(l) : l \in Leaves}))
    /\ job' = [job EXCEPT ![Recoverer] = NoJob]
    /\ phase' = "up" /\ epoch' = Visible[First]
    /\ UNCHANGED <<clientVars, bufferVars, log, tick, cleaning, crashes>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ ReadKey(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ Latch(c) \/ AppendLog(c) \/ FenceLog(c) \/ Finish(c)
          \/ LatchLeft(c) \/ MoveRecords(c) \/ StoreMerged(c) \/ FenceMerged(c)
    \/ \E w \in Writers :
          \/ StoreRecords(w) \/ StoreHeader(w) \/ FenceHeader(w)
          \/ StoreNewLeaf(w) \/ StoreLink(w) \/ FenceLink(w)
    \/ FlipEpoch \/ (\E l \in Leaves : ScanBuffer(l)) \/ Reclaim \/ FreeLogs
    \/ Crash \/ Kill \/ Settle \/ WriteBack \/ Restart \/ Replay \/ DropLogs \/ Open

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and cleaning and recovery end:   *)
(* whoever can keep taking a step eventually takes one.                    *)
ClientStep(c) ==
    \/ ReadKey(c) \/ AnswerGet(c)
    \/ Latch(c) \/ AppendLog(c) \/ FenceLog(c) \/ Finish(c)
    \/ StoreRecords(c) \/ StoreHeader(c) \/ FenceHeader(c)
    \/ StoreNewLeaf(c) \/ StoreLink(c) \/ FenceLink(c)
    \/ LatchLeft(c) \/ MoveRecords(c) \/ StoreMerged(c) \/ FenceMerged(c)

CleaningStep == (\E l \in Leaves : ScanBuffer(l)) \/ Reclaim \/ FreeLogs

RecoveryStep ==
    \/ Settle \/ WriteBack \/ Restart \/ Replay \/ DropLogs \/ Open
    \/ StoreRecords(Recoverer) \/ StoreHeader(Recoverer) \/ FenceHeader(Recoverer)
    \/ StoreNewLeaf(Recoverer) \/ StoreLink(Recoverer) \/ FenceLink(Recoverer)

ClientFairness   == \A c \in Clients : WF_vars(ClientStep(c))
CleaningFairness == WF_vars(CleaningStep)
RecoveryFairness == WF_vars(RecoveryStep)

FairSpec == Spec /\ ClientFairness /\ CleaningFairness /\ RecoveryFairness

(* A writer may stop under its latch.                                      *)
UnfairSpec == Spec /\ CleaningFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

UnderWay(k) ==
    {call[c].value : c \in {c \in Clients : call[c].op = "write" /\ call[c].at = "begun" /\ call[c].key = k}}

(* What a crash leaves is what took effect or, for a write in progress,    *)
(* what it writes.  While the words settle, or are written back, each      *)
(* state is what one crash left.                                           *)
KeptInv ==
    \A k \in Keys :
        \/ found[k] = written[k]
        \/ phase \in {"failing", "killed"} /\ found[k] \in UnderWay(k)

(* A key that nobody is writing is found with its last written value.      *)
LookupInv ==
    phase = "up" => \A k \in Keys : ~Latched(LeafFor(k)) => Lookup(k) = written[k]

(* No timestamp that a crash may leave is newer than an entry that is      *)
(* still to be flushed.                                                    *)
StampInv ==
    phase = "up" => \A j \in DOMAIN inner :
        LET l == inner[j].leaf
            b == buffer[l]
        IN \A i \in Waiting(b) :
               LET entries == EntriesOf(Medium, inner, b.slots[i].key)
               IN /\ entries # {}
                  /\ \A stamp \in Survivors(pm[StampOf(l)]) :
                        Before(stamp, Times(Medium, LastEntry(Medium, entries)))

(* The epoch bit says in which log an entry is.                            *)
BitInv ==
    phase = "up" => \A j \in DOMAIN inner :
        LET l == inner[j].leaf
            b == buffer[l]
        IN ~Latched(l) => \A i \in Waiting(b) :
               LET entries == EntriesOf(Visible, inner, b.slots[i].key)
               IN entries # {} /\ Times(Visible, LastEntry(Visible, entries))[1] % 2 = b.slots[i].bit

(* The list is sorted, and the inner nodes are what a restart would build. *)
ListInv ==
    phase = "up" =>
        /\ \A i \in 2..Len(inner) : inner[i - 1].low < inner[i].low
        /\ \A i \in DOMAIN inner : \A k \in KeysIn(Medium, inner[i].leaf) : LeafFor(k) = inner[i].leaf \/ Latched(inner[i].leaf)
        /\ (\A w \in Writers : job[w].at \notin {"link", "merged"}) => ListFrom(Medium, 1) = inner

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : call[c] # Idle ~> call[c] = Idle

CleanedProp == cleaning.at # "idle" ~> cleaning.at = "idle"

RecoveredProp == phase # "up" ~> phase = "up"

-----------------------------------------------------------------------------
(* The contract: the map is what recovery would find, at any time.  No     *)
(* write takes effect before that.                                         *)

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> \/ call[c].at = "done"
                       \/ call[c].at = "begun" /\ found[call[c].key] = call[c].value]
        ELSE call[c]]

(* While words settle, or are written back, each state is what one crash   *)
(* left; the last of them is the crash, and recovery begins in the same    *)
(* step (Restart).  To the map a kill is a crash, so they share a phase.   *)
AbstractPhase == IF phase = "recovery" THEN "cut" ELSE "up"

Contract == INSTANCE DurableMap WITH
    base <- found, tail <- <<>>, call <- AbstractCall, phase <- AbstractPhase

THEOREM Spec => Contract!Spec
=============================================================================
