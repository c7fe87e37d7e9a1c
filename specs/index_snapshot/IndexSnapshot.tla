--------------------------- MODULE IndexSnapshot ----------------------------
(***************************************************************************)
(* What changes the structure of the tree, and how it survives: splits and *)
(* merges of leaves under concurrent calls, the snapshot of the index that *)
(* a checkpoint reads meanwhile, and recovery from it.                     *)
(*                                                                         *)
(* Inner nodes exist only in memory.  What recovery needs of them is the   *)
(* map from lower fences to leaf pages.  A checkpoint reads it *fuzzily*,  *)
(* entry by entry, and the log has every change of it.  B-Trees Are Back   *)
(* does not say how a tree is recovered.  Bf-Tree §5.7 pauses all writes   *)
(* for a snapshot, and replays the log by "simply finding the              *)
(* corresponding page and re-applying the operation".  The rules kept here:*)
(*                                                                         *)
(*  1. Each split or merge is one record, with the records that move and   *)
(*     the fence.  It is redone on each page by that page's LSN, and on    *)
(*     the index always, in the log's order (RecoverableInv).              *)
(*  2. A checkpoint waits for changes of the structure that were logged    *)
(*     before it began: redo begins behind them (WriteSnapshot).           *)
(*  3. The log is durable up to the snapshot's end before the superblock   *)
(*     is written: the snapshot may name pages that only the log can build.*)
(*  4. Chunks are durable before the superblock that names them is, and    *)
(*     not written over while a crash may leave that (SnapshotInv): redo   *)
(*     does not build a page in the slot of a chunk.                       *)
(*  5. A page that was merged away keeps its slot until the merge is       *)
(*     durable (OneOwnerInv).                                              *)
(*  6. An image that is older than the snapshot says is not used.          *)
(*                                                                         *)
(* Left out: the log's blocks (WalRecovery); failed flushes (WalRecovery,  *)
(* CopyOnWrite); torn pages (PageShadowing); the second superblock, and    *)
(* pages that move (CopyOnWrite); the cache: every leaf is in memory while *)
(* the store is up; two changes of the structure at the same time, which   *)
(* have different leaves and fences; layouts of leaves, whose conversion   *)
(* is a record that changes no key (engine/src/node/adapt.rs); which       *)
(* leaves should be split or merged (engine/src/trees/notes.rs).           *)
(***************************************************************************)
EXTENDS SnapshotTree

(* Bounds, for the wrapper.                                                *)
MayCheckpoint == TRUE
MayCrash(n)   == TRUE
MayRestart(n) == TRUE

-----------------------------------------------------------------------------
(* Checkpoint.  engine/src/store/checkpoint.rs.                            *)

At(step) == Serving /\ checkpoint.at = step

(* Redo will begin at the log's present end.                               *)
BeginCheckpoint ==
    /\ At("none")
    /\ MayCheckpoint
    /\ checkpoint' = [NoCheckpoint EXCEPT !.at = "sweep", !.begin = Len(log)]
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* A dirty page whose first change that is not written was logged by then. *)
(* Records about an earlier page with this name do not count.              *)
DirtySince(p, n) ==
    /\ IsDirty(p)
    /\ \E m \in (version[p] + 1)..n :
          /\ m <= page[p].lsn
          /\ Names(log[m], p)
          /\ \A later \in m..page[p].lsn : ~Ends(log[later], p)

(* Operations in flight have released their latches, and pages with old    *)
(* changes are written.  The first chunk's slot is taken.                  *)
(* Pager::quiesce, Pager::checkpoint_sweep.                                *)
BeginSnapshot ==
    /\ At("sweep")
    /\ \/ change.at = "none" \/ change.lsn > checkpoint.begin
       \/ ~Latched(change.page) \/ Bug = "waits-for-nobody"
    /\ \A p \in Slots : ~DirtySince(p, checkpoint.begin) \/ Bug = "skips-sweep"
    /\ \E s \in Slots :
          /\ Take(s)
          /\ free' = free \ {s}
          /\ checkpoint' = [checkpoint EXCEPT !.at = "fence", !.head = s, !.last = s,
                                              !.slots = {s}, !.next = Least]
    /\ UNCHANGED <<call, logVars, leafVars, index, retired, chain, super, change, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

NextFence ==
    CHOOSE f \in FencesFrom(index, checkpoint.next) :
        \A g \in FencesFrom(index, checkpoint.next) : f <= g

(* The next entry of the index, as it is now.                              *)
ReadFence ==
    /\ At("fence")
    /\ FencesFrom(index, checkpoint.next) # {}
    /\ checkpoint' = [checkpoint EXCEPT !.at = "version", !.next = NextFence,
                                        !.page = index[NextFence]]
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

Written(s, block) == slotDev' = [slotDev EXCEPT ![s] = Append(@, block)]

(* The chunk in memory is written, or the device loses the write.          *)
WriteChunk(next) ==
    \/ /\ Written(checkpoint.last, Chunk(super.number + 1, checkpoint.entries, next))
       /\ losses' = losses
    \/ /\ MayLose(losses)
       /\ slotDev' = slotDev
       /\ losses' = losses + 1

(* The version is read a little later: the page may have been written, or  *)
(* may even be another leaf by now.                                        *)
NewEntry ==
    Entry(checkpoint.next, checkpoint.page,
          IF Bug = "version-of-memory" THEN page[checkpoint.page].lsn
          ELSE version[checkpoint.page])

AddEntry ==
    /\ At("version")
    /\ Len(checkpoint.entries) < PerChunk
    /\ checkpoint' = [checkpoint EXCEPT
           !.at = "fence", !.entries = Append(@, NewEntry), !.sum = Append(@, NewEntry),
           !.next = @ + 1, !.page = NoSlot]
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* The chunk is full.  It is written once the next one's slot is known.    *)
AddChunk ==
    /\ At("version")
    /\ Len(checkpoint.entries) = PerChunk
    /\ \E s \in Slots :
          /\ Take(s)
          /\ free' = free \ {s}
          /\ WriteChunk(s)
          /\ checkpoint' = [checkpoint EXCEPT
                 !.at = "fence", !.last = s, !.slots = @ \cup {s}, !.entries = <<NewEntry>>,
                 !.sum = Append(@, NewEntry), !.next = @ + 1, !.page = NoSlot]
    /\ UNCHANGED <<call, logVars, leafVars, index, retired, chain, super, change, superDev>>
    /\ UNCHANGED recoveryVars

(* No fence is left: the last chunk is written.                            *)
EndSnapshot ==
    /\ At("fence")
    /\ FencesFrom(index, checkpoint.next) = {}
    /\ WriteChunk(NoSlot)
    /\ checkpoint' = [checkpoint EXCEPT !.at = "read", !.upTo = Len(log), !.entries = <<>>]
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, superDev>>
    /\ UNCHANGED recoveryVars

NewSuper ==
    [number |-> super.number + 1,
     redo |-> IF Bug = "redo-from-snapshot" THEN checkpoint.upTo ELSE checkpoint.begin,
     head |-> checkpoint.head, sum |-> checkpoint.sum]

AllFlushed(places) == Flushed(places, {})

WriteSuper ==
    /\ At("read")
    /\ checkpoint.upTo <= durable \/ Bug = "snapshot-before-log"
    /\ slotDev' = IF Bug = "super-before-flush" THEN slotDev ELSE AllFlushed(slotDev)
    /\ superDev' = Append(superDev, NewSuper)
    /\ checkpoint' = [checkpoint EXCEPT !.at = "recorded"]
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, recoveryVars, losses>>

(* The superblock is flushed.  The snapshot before it is free, and the log *)
(* before its redo start is given up.                                      *)
FinishCheckpoint ==
    /\ At("recorded")
    /\ IF Bug = "frees-before-super"
       THEN slotDev' = Trimmed(slotDev, chain) /\ superDev' = superDev
       ELSE /\ slotDev' = Trimmed(AllFlushed(slotDev), chain)
            /\ superDev' = Durably(Newest(superDev))
    /\ free' = free \cup chain
    /\ chain' = checkpoint.slots
    /\ super' = NewSuper
    /\ oldest' = NewSuper.redo
    /\ checkpoint' = NoCheckpoint
    /\ UNCHANGED <<call, log, durable, leafVars, index, retired, change, recoveryVars, losses>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

(* What is in memory once superblock, snapshot and pages are read.  An     *)
(* index without its least fence stands for a chain that is damaged.       *)
(* Only the pages that redo needs are read in the engine.                  *)
Reads(blocks, chosen) ==
    LET read   == ChainOf(blocks, chosen)
        leaves == [p \in Slots |-> LeafIn(blocks[p], VersionIn(read.entries, p))]
    IN /\ super' = chosen
       /\ chain' = read.slots
       /\ index' = IndexOf(read.entries)
       /\ page' = leaves
       /\ version' = [p \in Slots |-> leaves[p].lsn]
       /\ oldest' = chosen.redo
       /\ redone' = chosen.redo

(* Of the log, the durable records survive and any number of those behind. *)
CutLog == \E n \in durable..Len(log) : log' = SubSeq(log, 1, n) /\ durable' = n

ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ free' = {} /\ retired' = {}
    /\ change' = NoChange /\ checkpoint' = NoCheckpoint
    /\ crashes' = crashes + 1
    /\ losses' = losses

RECURSIVE Vary(_, _)
(* All functions that equal `blocks`, except at these places.              *)
Vary(blocks, places) ==
    IF DOMAIN places = {} THEN {blocks}
    ELSE LET at   == CHOOSE p \in DOMAIN places : TRUE
             rest == [p \in DOMAIN places \ {at} |-> places[p]]
         IN UNION {Vary([blocks EXCEPT ![at] = block], rest) : block \in places[at]}

Left == Vary(NewestOf(slotDev), [s \in Unflushed(slotDev) |-> Survivors(slotDev[s])])

(* The power fails, at any time, also during recovery: each place is left  *)
(* with any of its versions, independently of the others.                  *)
Crash ==
    /\ MayCrash(crashes)
    /\ CutLog
    /\ \E blocks \in Left, chosen \in Survivors(superDev) :
          /\ Reads(blocks, chosen)
          /\ slotDev' = AllDurably(blocks)
          /\ superDev' = Durably(chosen)
    /\ ForgetMemory
    /\ phase' = "cut"

(* The process is restarted, and the device has lived on.  What is read is *)
(* flushed before anything is built on it.                                 *)
Restart ==
    /\ MayRestart(crashes)
    /\ CutLog
    /\ Reads(NewestOf(slotDev), Newest(superDev))
    /\ slotDev' = AllFlushed(slotDev)
    /\ superDev' = Durably(Newest(superDev))
    /\ ForgetMemory
    /\ phase' = "killed"

Recovering == phase \in {"cut", "killed"}
IsReadable == IsFence(index, Least)

(* A record is redone on its pages, unless they have it already, and on    *)
(* the index.  Pages may be written meanwhile.                             *)
RedoRecord ==
    /\ Recovering /\ IsReadable
    /\ redone < Len(log)
    /\ LET n      == redone + 1
           finds  == Bug = "finds-page" /\ log[n].is = "put"
           record == IF finds THEN [log[n] EXCEPT !.page = Find(index, log[n].key)] ELSE log[n]
           leaves == [p \in Slots |-> Redone(p, page[p], record, n, chain)]
       IN /\ page' = leaves
          /\ version' = [p \in Slots |-> IF leaves[p] = Gone THEN 0 ELSE version[p]]
          /\ index' = Reindexed(index, record)
    /\ redone' = redone + 1
    /\ UNCHANGED <<call, logVars, spaceVars, change, checkpoint, deviceVars, phase, crashes>>
    /\ UNCHANGED losses

(* Every fence has a page that is there, and no page has two.              *)
IsSound ==
    /\ IsReadable
    /\ \A f, g \in {k \in Keys : IsFence(index, k)} :
          page[index[f]] # Gone /\ (index[f] = index[g] => f = g)

(* What no fence names is dead.  Redo::finish.                             *)
FinishRedo ==
    /\ Recovering
    /\ redone = Len(log) \/ ~IsReadable \/ Bug = "stops-redo-early"
    /\ IsSound
    /\ page' = [p \in Slots |-> IF p \in InIndex(index) THEN page[p] ELSE Gone]
    /\ version' = [p \in Slots |-> IF p \in InIndex(index) THEN version[p] ELSE 0]
    /\ free' = Slots \ (InIndex(index) \cup chain)
    /\ phase' = "up"
    /\ redone' = 0
    /\ UNCHANGED <<call, logVars, index, retired, chain, super, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<crashes, losses>>

(* The store does not open.  Nothing is answered that might be wrong.      *)
FindDamage ==
    /\ Recovering
    /\ redone = Len(log) \/ ~IsReadable
    /\ ~IsSound
    /\ phase' = "damaged"
    /\ UNCHANGED <<call, logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<redone, crashes, losses>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ CallScan(c) \/ CallWrite(c)
          \/ Descend(c) \/ DescendAgain(c)
          \/ ReadLeaf(c) \/ CopyLeaf(c) \/ CopyBack(c) \/ Answer(c)
          \/ ChangeLeaf(c) \/ Acknowledge(c)
    \/ CommitLog
    \/ \E p \in Slots : AppendSplit(p) \/ AppendMerge(p) \/ WritePage(p) \/ FreePage(p)
    \/ ChangeLeaves \/ UpdateIndex
    \/ BeginCheckpoint \/ BeginSnapshot \/ ReadFence \/ AddEntry \/ AddChunk \/ EndSnapshot
    \/ WriteSuper \/ FinishCheckpoint
    \/ Crash \/ Restart \/ RedoRecord \/ FinishRedo \/ FindDamage

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered, checkpoints end, and so does    *)
(* recovery: every step except calls, crashes, and the beginnings of       *)
(* splits, merges and checkpoints.                                         *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(Descend(c) \/ DescendAgain(c))
        /\ WF_vars(ReadLeaf(c) \/ CopyLeaf(c) \/ CopyBack(c) \/ Answer(c))
        /\ WF_vars(ChangeLeaf(c) \/ Acknowledge(c))

LogFairness == WF_vars(CommitLog)

TreeFairness == WF_vars(ChangeLeaves \/ UpdateIndex)

PageFairness == \A p \in Slots : WF_vars(WritePage(p)) /\ WF_vars(FreePage(p))

CheckpointFairness ==
    /\ WF_vars(BeginSnapshot \/ ReadFence \/ AddEntry \/ AddChunk)
    /\ WF_vars(EndSnapshot \/ WriteSuper \/ FinishCheckpoint)

RecoveryFairness == WF_vars(RedoRecord \/ FinishRedo \/ FindDamage)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ LogFairness /\ TreeFairness /\ PageFairness
    /\ CheckpointFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a put that is not durable still waits.                    *)
AckInv ==
    \A n \in (durable + 1)..Len(log) :
        IsPut(n) => \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* No image on the device overtakes its log record.                        *)
WalRuleInv ==
    \A s \in Slots : \A block \in Survivors(slotDev[s]) :
        block.is = "image" => block.leaf.lsn <= durable

(* The index, as the leaves that are being changed already say.            *)
TrueIndex ==
    IF change.at = "changed" THEN Reindexed(index, log[change.lsn]) ELSE index

(* Each leaf begins where its fence says, and ends where the next begins.  *)
FenceInv ==
    phase = "up" =>
        \A f \in Keys : IsFence(TrueIndex, f) =>
            LET leaf == page[TrueIndex[f]]
            IN leaf.lower = f /\ leaf.upper = UpperOf(TrueIndex, f)

(* The leaves have what the log says.                                      *)
MemoryInv ==
    phase = "up" =>
        \A k \in Keys :
            LET leaf == page[Find(TrueIndex, k)]
            IN Covers(leaf, k) /\ leaf.map[k] = ValueAt(k, Len(log))

(* What was read was current at an instant since the call.                 *)
CurrentSince(k, value, from) ==
    value # Pending => \E n \in from..Len(log) : value = ValueAt(k, n)

AnswerInv ==
    \A c \in Clients :
        CASE call[c].op = "get"  -> CurrentSince(call[c].key, call[c].got, call[c].from)
          [] call[c].op = "scan" ->
               /\ \A k \in Keys : CurrentSince(k, call[c].got[k], call[c].from)
               /\ ~LooksUp(c) => \A k \in Keys : call[c].got[k] # Pending
          [] OTHER -> TRUE

(* A page that is clean is what the device has.                            *)
CleanInv ==
    losses = 0 /\ phase # "damaged" => \A p \in Slots :
        page[p] # Gone /\ ~IsDirty(p) => Newest(slotDev[p]) = Image(page[p])

(* What whichever superblock a crash may leave names.                      *)
ReadOf(chosen) == ChainOf(NewestOf(slotDev), chosen)

Named == UNION {ReadOf(chosen).slots : chosen \in Survivors(superDev)}

(* Its chunks are on the medium, and no other version of them is.          *)
SnapshotInv ==
    losses = 0 => \A chosen \in Survivors(superDev) :
        /\ ReadOf(chosen).ok
        /\ \A s \in ReadOf(chosen).slots : Len(slotDev[s]) = 1

(* A checkpoint writes each of its chunks once.                            *)
OnceInv ==
    phase = "up" => \A s \in checkpoint.slots :
        Cardinality({i \in 2..Len(slotDev[s]) : slotDev[s][i].is = "chunk"}) <= 1

(* The log that it needs has not been given up.                            *)
LogKeptInv == \A chosen \in Survivors(superDev) : oldest <= chosen.redo

RetiredPages == {r.page : r \in retired}

Taken == InIndex(index) \cup RetiredPages \cup chain \cup checkpoint.slots
         \cup (IF change.is = "none" THEN {} ELSE {change.right})

(* What is free has no owner, and everything else has one.  (If a chunk    *)
(* was lost, the one before it may lead to others that are as good.)       *)
FreeInv ==
    phase = "up" => free \cap Taken = {} /\ (losses = 0 => free \cap Named = {})

LeakInv == phase = "up" => free \cup Taken = Slots

(* No slot has two owners.                                                 *)
OneOwnerInv ==
    phase = "up" =>
        /\ InIndex(index) \cap (RetiredPages \cup chain \cup checkpoint.slots) = {}
        /\ RetiredPages \cap (chain \cup checkpoint.slots) = {}
        /\ chain \cap checkpoint.slots = {}

(* Key k after redo of the records n to `end`, on these leaves and index:  *)
(* what the log says.  If the device lost a write, its leaf may be missing.*)
IsRestored(k, ix, leaf, n, end, held) ==
    LET redo == RedoneFrom(Find(ix, k), leaf, n, end, held)
    IN \/ Covers(redo, k) /\ redo.map[k] = ValueAt(k, end)
       \/ losses > 0 /\ redo = Gone

(* Whatever a crash leaves, redo makes of it what the durable log says.    *)
RecoverableInv ==
    \A chosen \in Survivors(superDev) :
        LET read == ReadOf(chosen)
            ix   == ReindexedFrom(IndexOf(read.entries), chosen.redo + 1, durable)
        IN \/ losses > 0 /\ ~read.ok
           \/ \A k \in Keys :
                LET p == Find(ix, k)
                IN \A block \in Survivors(slotDev[p]) :
                      IsRestored(k, ix, LeafIn(block, VersionIn(read.entries, p)),
                                 chosen.redo + 1, durable, read.slots)

(* During recovery: the rest of the log makes memory what it describes.    *)
RecoveredInv ==
    Recovering /\ IsReadable =>
        LET ix == ReindexedFrom(index, redone + 1, Len(log))
        IN \A k \in Keys :
              IsRestored(k, ix, page[Find(ix, k)], redone + 1, Len(log), chain)

(* A store is not taken for damaged unless it is.                          *)
OpensInv == phase = "damaged" => losses > 0

(* A power cut leaves one version of each block.                           *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(slotDev') = {} /\ Len(superDev') = 1]_vars

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == Recovering ~> phase \in {"up", "damaged"}

CheckpointedProp == checkpoint.at # "none" ~> checkpoint.at = "none"

(* A page that was merged away is freed, unless a crash comes between.     *)
FreedProp == retired # {} ~> retired = {}

-----------------------------------------------------------------------------
(* The contract: the durable map, then the puts in the log beyond it.      *)

WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

Beyond == SelectSeq([i \in 1..(Len(log) - durable) |-> durable + i], IsPut)

AbstractTail ==
    [i \in 1..Len(Beyond) |->
        [by |-> WriterOf(Beyond[i]), key |-> log[Beyond[i]].key, value |-> log[Beyond[i]].value]]

AbstractCall ==
    [c \in Clients |->
        CASE call[c].op = "get"   -> [op |-> "get", key |-> call[c].key, got |-> call[c].got]
          [] call[c].op = "write" -> [op |-> "write", key |-> call[c].key,
                                      value |-> call[c].value, done |-> call[c].lsn # 0]
          [] call[c].op = "scan"  -> [op |-> "scan", got |-> call[c].got]
          [] OTHER                -> call[c]]

(* Recovery begins in the step that ends the life before.  That of a       *)
(* damaged store never ends.                                               *)
AbstractPhase == IF phase = "damaged" THEN "opening" ELSE phase

Contract == INSTANCE DurableMap WITH
    base <- MapAfter(durable), tail <- AbstractTail, call <- AbstractCall,
    phase <- AbstractPhase

THEOREM Spec => Contract!Spec
=============================================================================
