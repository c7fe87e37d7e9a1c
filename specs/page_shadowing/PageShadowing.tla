--------------------------- MODULE PageShadowing ----------------------------
(***************************************************************************)
(* Deterministic page shadowing and localized page modification logging:   *)
(* B⁻-tree §3.1 and §3.2, under the redo log of §3.3.                      *)
(*                                                                         *)
(* A page has two slots, and full images go to them in turns; the slot     *)
(* that is not valid any more is trimmed.  While at most T of it differs   *)
(* from its image on the device, only the differences are written, to the  *)
(* page's log block.  Which slot is valid is known in memory only, and     *)
(* found again by reading both.                                            *)
(*                                                                         *)
(* The paper says what is written where, and not in which order it becomes *)
(* durable: when a slot may be trimmed, when the log block may be written  *)
(* over, which image a log block belongs to, and what a page that was      *)
(* written twice between two flushes may rely on.  FINDINGS.md has the     *)
(* counterexamples.  The rule kept here: *as long as the newest image is   *)
(* not durable, the one before it, its log block included, is not touched* *)
(* (WriteDelta, WriteWhole, Trim).                                         *)
(*                                                                         *)
(* Sparse redo logging (§3.3) places log records in blocks.  Here it only  *)
(* matters that a record is durable before its client is told, and before  *)
(* its page is written.                                                    *)
(*                                                                         *)
(* Nothing here relies on a trim for more than space (Discards).  With     *)
(* decay that would change: a newest image that can no longer be read      *)
(* uncovers the one before it.  That is why pages have versions            *)
(* (PageVersions).                                                         *)
(*                                                                         *)
(* Left out: several redo starts and the checkpoint's own steps (one step  *)
(* here; WalRecovery); a flush that takes time (what is written while it   *)
(* lasts is not covered by it); pages that come and go (MiniPage).         *)
(***************************************************************************)
EXTENDS ShadowState

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayEvict(p)       == TRUE
MayFail(n)        == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE

Serving == ~poisoned

-----------------------------------------------------------------------------
(* Clients.  A page is there when it is asked for: see Load.               *)

CallGet(c) ==
    /\ phase = "up" /\ Serving
    /\ ~Waits(c)
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars>>

CallWrite(c) ==
    /\ phase = "up" /\ Serving
    /\ ~Waits(c)
    /\ \E k \in Keys, v \in {Len(log) + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> k, value |-> v, at |-> "called", lsn |-> 0]]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars>>

ReadPage(c) ==
    /\ phase = "up" /\ Serving
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ LET k == call[c].key
       IN /\ IsIn(PageOf(k))
          /\ call' = [call EXCEPT ![c].got = mem[PageOf(k)].values[SegmentOf(k)]]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars>>

AnswerGet(c) ==
    /\ phase = "up" /\ Serving
    /\ call[c].op = "get"
    /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars>>

(* A change of a page in memory: "whenever the i-th segment in one         *)
(* in-memory page is modified, B⁻-tree will set its corresponding f_i".    *)
Changed(page, i, value, lsn) ==
    [page EXCEPT !.lsn = lsn, !.values[i] = value, !.dirty = @ \cup {i}]

(* Log record and page change under the page's latch, in one step.         *)
ChangePage(c) ==
    /\ phase = "up" /\ Serving
    /\ call[c].op = "write"
    /\ call[c].at = "called"
    /\ LET k == call[c].key
           n == Len(log) + 1
           p == PageOf(k)
       IN /\ IsIn(p)
          /\ log' = Append(log, [key |-> k, value |-> call[c].value])
          /\ mem' = [mem EXCEPT ![p] = Changed(@, SegmentOf(k), call[c].value, n)]
          /\ call' = [call EXCEPT ![c].at = "waiting", ![c].lsn = n]
    /\ UNCHANGED <<durable, redoStart, valid, deviceVars, recoveryVars>>

(* The redo log's flush, up to any record.                                 *)
CommitLog ==
    /\ Serving
    /\ \E n \in (durable + 1)..Len(log) : durable' = n
    /\ UNCHANGED <<call, log, redoStart, mem, valid, deviceVars, recoveryVars>>

Acknowledge(c) ==
    /\ Serving
    /\ call[c].op = "write"
    /\ call[c].at = "waiting"
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars>>

-----------------------------------------------------------------------------
(* Writing a page.                                                         *)

(* A dirty page is written when its last change is durable in the log.     *)
(* The paper does not say so; without that rule the page LSNs of the two   *)
(* slots do not tell which is newer, for LSNs that a crash takes back are  *)
(* given out again.                                                        *)
MayWriteBack(p) ==
    /\ Serving
    /\ IsDirty(p)
    /\ mem[p].lsn <= durable \/ Bug = "page-before-log"

(* The blocks of page p, some with one more version.                       *)
Written(p, blocks) ==
    [dev EXCEPT ![p] = [spot \in Spots |->
        IF spot \in DOMAIN blocks THEN Append(@[spot], blocks[spot]) ELSE @[spot]]]

(* "If |Δ| <= T, then B⁻-tree will invoke the page modification logging":  *)
(* if there is an image to which Δ applies, and it is durable.  Until then *)
(* the log block is part of the image before it.                           *)
IsLogged(p) ==
    /\ mem[p].base # 0
    /\ Cardinality(mem[p].dirty) <= Threshold
    /\ valid[p].is # "written" \/ Bug = "delta-at-once"

(* Writing only the changes since the page was last written would not be   *)
(* enough: the block is overwritten.                                       *)
DeltaOf(p) ==
    LET page  == mem[p]
        since == {i \in page.dirty : page.values[i] # PageAt(p, page.stored)[i]}
    IN Delta(IF Bug = "names-slot" THEN valid[p].slot + 1 ELSE page.base,
             page.lsn,
             [i \in IF Bug = "logs-last-changes" THEN since ELSE page.dirty |-> page.values[i]])

WriteDelta(p) ==
    /\ MayWriteBack(p)
    /\ IsLogged(p)
    /\ dev' = Written(p, [spot \in {Log} |-> DeltaOf(p)])
    /\ lost' = [lost EXCEPT ![p] = @ \ {Log}]
    /\ mem' = [mem EXCEPT ![p].stored = mem[p].lsn]
    /\ valid' = [valid EXCEPT ![p].logged = TRUE]
    /\ UNCHANGED <<call, logVars, poisoned, recoveryVars>>

(* The slots "alternatively serve the memory-to-storage flush": but while  *)
(* the last image written is not durable, it is the one to be replaced,    *)
(* not the one before it.                                                  *)
NextSlot(p) ==
    IF valid[p].is = "written" /\ Bug # "ping-pong-at-once"
    THEN valid[p].slot ELSE 1 - valid[p].slot

(* "Once |Δ| becomes larger than the threshold T, we will reset the        *)
(* process by flushing the entire up-to-date page to storage with Δ = ∅    *)
(* and f being an all-zero vector."  In memory; on the device the log      *)
(* block is left alone, because it belongs to the image before.            *)
WriteWhole(p) ==
    /\ MayWriteBack(p)
    /\ ~IsLogged(p)
    /\ LET s      == NextSlot(p)
           image  == ImageOf(mem[p])
           resets == IF Bug = "resets-log-at-once" THEN {Log} ELSE {}
           spots  == SpotsOf(s) \cup resets
           blocks == [spot \in spots |-> IF spot = Log THEN Zeros(Log) ELSE SlotBlock(image, spot[2])]
       IN /\ IF Bug = "trims-late" /\ valid[p].is = "durable"
             THEN dev' = [dev EXCEPT ![p] = [spot \in Spots |->
                      IF spot \in spots THEN @[spot] \o <<blocks[spot], Trimmed>> ELSE @[spot]]]
             ELSE dev' = Written(p, blocks)
          /\ lost' = [lost EXCEPT ![p] = @ \ spots]
          /\ valid' = [valid EXCEPT ![p] = [slot |-> s, is |-> "written", logged |-> FALSE]]
    /\ mem' = [mem EXCEPT ![p] = Loaded(ImageOf(@), @.lsn, @.lsn, {})]
    /\ UNCHANGED <<call, logVars, poisoned, recoveryVars>>

(* "Once a page has been flushed from memory into one slot, B⁻-tree will   *)
(* issue a TRIM command over the other slot": once the image is durable.   *)
(* And over the log block, unless it has been written over that image.     *)
(* A file, or a drive that does not implement TRIM, may ignore it: what    *)
(* was replaced then stays, whole, until it is written over.               *)
ToTrim(p) ==
    SpotsOf(1 - valid[p].slot)
    \cup IF valid[p].logged /\ Bug # "trims-live-log" THEN {} ELSE {Log}

Trim(p) ==
    /\ Serving
    /\ valid[p].is = "durable" \/ (Bug = "trims-at-once" /\ valid[p].is = "written")
    /\ LET spots == {spot \in ToTrim(p) : Newest(dev[p][spot]) # Trimmed}
       IN IF Discards = "inert"
          THEN UNCHANGED <<dev, lost>>
          ELSE /\ dev' = Written(p, [spot \in spots |-> Trimmed])
               /\ lost' = [lost EXCEPT ![p] = @ \ spots]
    /\ valid' = [valid EXCEPT ![p].is = "alone"]
    /\ UNCHANGED <<call, logVars, mem, poisoned, recoveryVars>>

-----------------------------------------------------------------------------
(* The device.                                                             *)

DeviceFlush == dev' = [p \in Pages |-> Flushed(dev[p], lost[p])]

(* What was written is durable, and is known to be.                        *)
AfterFlush(known) ==
    [p \in Pages |-> IF known[p].is = "written" THEN [known[p] EXCEPT !.is = "durable"] ELSE known[p]]

SomethingWritten == \E p \in Pages : Unflushed(dev[p]) # {}

FlushDevice ==
    /\ Serving
    /\ SomethingWritten
    /\ DeviceFlush
    /\ valid' = AfterFlush(valid)
    /\ UNCHANGED <<call, logVars, mem, lost, poisoned, recoveryVars>>

(* What was unflushed may or may not be on the medium, and only writing it *)
(* again will put it there (see WalRecovery).                              *)
FailFlush ==
    /\ MayFail(crashes)
    /\ Serving
    /\ SomethingWritten
    /\ lost' = [p \in Pages |-> Unflushed(dev[p])]
    /\ poisoned' = TRUE
    /\ UNCHANGED <<call, logVars, mem, valid, dev, recoveryVars>>

(* Where redo may begin: before the first change that no image on the      *)
(* device has.                                                             *)
Swept ==
    LET missing == {n \in (redoStart + 1)..durable :
                       LET page == mem[PageOf(log[n].key)]
                       IN page.at = "in" /\ page.stored < n}
    IN IF missing = {} THEN durable
       ELSE (CHOOSE n \in missing : \A m \in missing : n <= m) - 1

(* A checkpoint: the device is flushed, then the redo start recorded.      *)
Checkpoint ==
    /\ phase = "up" /\ Serving
    /\ redoStart < Swept
    /\ redoStart' = Swept
    /\ IF Bug = "checkpoint-skips-flush"
       THEN UNCHANGED <<dev, valid>>
       ELSE DeviceFlush /\ valid' = AfterFlush(valid)
    /\ UNCHANGED <<call, log, durable, mem, lost, poisoned, recoveryVars>>

-----------------------------------------------------------------------------
(* Memory.                                                                 *)

(* A clean page is evicted.  What is known of its slots stays.             *)
Evict(p) ==
    /\ MayEvict(p)
    /\ Serving
    /\ IsIn(p)
    /\ ~IsDirty(p) \/ Bug = "evicts-dirty"
    /\ mem' = [mem EXCEPT ![p] = Out]
    /\ valid' = [valid EXCEPT ![p].is = IF Bug = "forgets-unflushed" /\ @ = "written" THEN "durable" ELSE @]
    /\ UNCHANGED <<call, logVars, deviceVars, recoveryVars>>

(* What is known of a page after both slots were read.  What is in the     *)
(* slot that was not chosen, or in a log block that belongs to it, has yet *)
(* to be trimmed.                                                          *)
KnownAfter(blocks) ==
    LET s        == ValidSlot(blocks)
        logged   == ReadSlot(blocks, s).logged
        others   == SpotsOf(1 - s) \cup IF logged THEN {} ELSE {Log}
        leftover == \E spot \in others : blocks[spot] # Zeros(spot)
    IN [slot   |-> s,
        is     |-> IF leftover /\ Bug # "leaves-leftovers" THEN "durable" ELSE "alone",
        logged |-> logged]

(* The page, and what is known of it, if its blocks read like this.        *)
KnownWith(p, blocks) == IF valid[p].is = "unknown" THEN KnownAfter(blocks) ELSE valid[p]

Found(p, blocks) == ReadSlot(blocks, KnownWith(p, blocks).slot)

(* "When B⁻-tree loads one page for the first time, it reads both slots",  *)
(* later the valid one; and the log block with it.  The vector f is read   *)
(* back, too: what is next written to the log block must have all of Δ.    *)
LoadAs(p, blocks) ==
    /\ Serving
    /\ ~IsIn(p)
    /\ valid' = [valid EXCEPT ![p] = KnownWith(p, blocks)]
    /\ LET found == Found(p, blocks)
       IN mem' = [mem EXCEPT ![p] =
              Loaded(found.image, found.base, found.image.lsn,
                     IF Bug = "forgets-dirty" THEN {} ELSE found.dirty)]
    /\ UNCHANGED <<call, logVars, deviceVars, recoveryVars>>

Load(p) == \E blocks \in Read(dev[p]) : LoadAs(p, blocks)

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ mem' = [p \in Pages |-> Out]
    /\ poisoned' = FALSE
    /\ redone' = redoStart
    /\ crashes' = crashes + 1
    /\ UNCHANGED redoStart

(* Of the log, the durable records survive and any number of those behind. *)
CutLog ==
    \E n \in durable..Len(log) : log' = SubSeq(log, 1, n) /\ durable' = n

(* For each page one of its possible outcomes.                             *)
EachOf(options) ==
    {f \in [Pages -> UNION {options[p] : p \in Pages}] : \A p \in Pages : f[p] \in options[p]}

(* The power fails, at any time, also during recovery: each block is left  *)
(* in any of its versions, independently of the others.                    *)
Crash ==
    /\ MayCrash(crashes)
    /\ CutLog
    /\ \E left \in EachOf([p \in Pages |-> Left(dev[p])]) :
          dev' = [p \in Pages |-> AllDurably(left[p])]
    /\ lost' = NoneLost
    /\ valid' = [p \in Pages |-> Unknown]
    /\ ForgetMemory
    /\ phase' = "cut"

(* The process is restarted without a power failure.  What it reads is not *)
(* therefore durable, and after a failed flush a flush does not make it    *)
(* so.  Worse, a forgotten trim may read either way.  So the pages that    *)
(* the log names are read, both slots, here and once, and the choice is    *)
(* written again, valid slot and log block; of the others everything was   *)
(* durable when the redo start was recorded.  A crash meanwhile is like    *)
(* one before it, since nothing new is written.                            *)
Named(p) == \E n \in (redoStart + 1)..durable' : PageOf(log[n].key) = p

Rewritten(p, blocks) ==
    IF Named(p) /\ Bug # "trusts-what-it-reads"
    THEN SpotsOf(ValidSlot(blocks)) \cup IF ReadBoth(blocks).logged THEN {Log} ELSE {}
    ELSE {}

(* A page's places after that; the device is flushed.                      *)
WrittenAgain(p, blocks) ==
    [spot \in Spots |->
        IF spot \in Rewritten(p, blocks) THEN Durably(blocks[spot])
        ELSE IF spot \in lost[p] THEN dev[p][spot]
        ELSE Durably(Newest(dev[p][spot]))]

Restart ==
    /\ MayRestart(crashes)
    /\ CutLog
    /\ \E read \in EachOf([p \in Pages |-> Read(dev[p])]) :
          /\ valid' = [p \in Pages |-> IF Named(p) THEN KnownAfter(read[p]) ELSE Unknown]
          /\ IF Bug = "restart-skips-flush"
             THEN UNCHANGED <<dev, lost>>
             ELSE /\ dev' = [p \in Pages |-> WrittenAgain(p, read[p])]
                  /\ lost' = [p \in Pages |-> lost[p] \ Rewritten(p, read[p])]
    /\ ForgetMemory
    /\ phase' = "killed"

(* A record is redone on its page, unless the page has it already.         *)
RedoRecord ==
    /\ phase # "up" /\ Serving
    /\ redone < Len(log)
    /\ LET n      == redone + 1
           record == log[n]
           p      == PageOf(record.key)
       IN /\ IsIn(p)
          /\ mem' = IF mem[p].lsn < n
                    THEN [mem EXCEPT ![p] = Changed(@, SegmentOf(record.key), record.value, n)]
                    ELSE mem
    /\ redone' = redone + 1
    /\ UNCHANGED <<call, logVars, valid, deviceVars, phase, crashes>>

(* Pages that the log does not name are read when they are asked for.      *)
FinishRedo ==
    /\ phase # "up" /\ Serving
    /\ redone = Len(log)
    /\ phase' = "up" /\ redone' = 0
    /\ UNCHANGED <<call, logVars, mem, valid, deviceVars, crashes>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ ReadPage(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ ChangePage(c) \/ Acknowledge(c)
    \/ CommitLog
    \/ \E p \in Pages : WriteDelta(p) \/ WriteWhole(p) \/ Trim(p) \/ Evict(p) \/ Load(p)
    \/ FlushDevice \/ FailFlush \/ Checkpoint
    \/ Crash \/ Restart \/ RedoRecord \/ FinishRedo

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered, recovery ends and trims are     *)
(* made: every step except the optional ones.  A page that is evicted      *)
(* again and again before it is used needs strong fairness, or a pin; the  *)
(* models of liveness have no eviction.                                    *)
ClientFairness ==
    \A c \in Clients : WF_vars(ReadPage(c) \/ AnswerGet(c) \/ ChangePage(c) \/ Acknowledge(c))

LogFairness == WF_vars(CommitLog)

PageFairness ==
    \A p \in Pages : WF_vars(Load(p) \/ WriteDelta(p) \/ WriteWhole(p) \/ Trim(p))

FlushFairness == WF_vars(FlushDevice)

RecoveryFairness == WF_vars(RedoRecord \/ FinishRedo)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ LogFairness /\ PageFairness /\ FlushFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a record that is not durable still waits.                 *)
AckInv ==
    \A n \in (durable + 1)..Len(log) :
        \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* No image on the device overtakes its log record.                        *)
WalRuleInv ==
    \A p \in Pages, spot \in {<<0, 1>>, <<1, 1>>, Log} :
        \A block \in Survivors(dev[p][spot]) : ReadAs(spot, block).lsn <= durable

(* Memory holds all writes and nothing else.                               *)
MemoryInv ==
    phase = "up" => \A p \in Pages : IsIn(p) => mem[p].values = PageAt(p, Len(log))

(* A page that is not in memory is on the device, however it is read.      *)
NotInMemoryInv ==
    phase = "up" => \A p \in Pages :
        ~IsIn(p) => \A blocks \in Read(dev[p]) :
            Found(p, blocks).image.values = PageAt(p, Len(log))

(* Reading a page that is in memory yields the last image written.         *)
CleanInv ==
    \A p \in Pages : IsIn(p) => \A blocks \in Read(dev[p]) :
        LET found == ReadSlot(blocks, valid[p].slot)
        IN /\ found.image.lsn = mem[p].stored
           /\ IsDirty(p) \/ found.image.values = mem[p].values

(* All differences from the base image are in f.                           *)
DirtyInv ==
    \A p \in Pages : IsIn(p) => \A blocks \in Read(dev[p]) :
        LET base == ImageIn(blocks, valid[p].slot)
        IN /\ base.lsn = mem[p].base
           /\ \A i \in Segments \ mem[p].dirty : base.values[i] = mem[p].values[i]

(* What is known of the slots is what reading both would yield.            *)
BitmapInv ==
    \A p \in Pages : valid[p].is # "unknown" =>
        ValidSlot(AsRead(NewestOf(dev[p]))) = valid[p].slot

(* An image that counts as durable is: no crash leaves another image in    *)
(* that slot.                                                              *)
DurableInv ==
    \A p \in Pages : valid[p].is \in {"durable", "alone"} =>
        \A i \in Segments : Cardinality(Survivors(dev[p][<<valid[p].slot, i>>])) = 1

(* A log block counts as that of an image only if it names it.             *)
LogBlockInv ==
    \A p \in Pages : valid[p].is # "unknown" =>
        LET newest == AsRead(NewestOf(dev[p]))
            image  == ImageIn(newest, valid[p].slot)
        IN valid[p].logged <=> image.lsn # 0 /\ newest[Log].base = image.lsn

(* Whatever a crash leaves of a page has all changes before the redo       *)
(* start.                                                                  *)
HasChanges(p, blocks) == Greatest(Changes(p, redoStart)) <= ReadBoth(blocks).image.lsn

RedoStartInv == \A p \in Pages : \A blocks \in Left(dev[p]) : HasChanges(p, AsRead(blocks))

(* After a crash: no page lacks changes that the log cannot redo ...       *)
KeptInv ==
    phase # "up" => \A p \in Pages : \A blocks \in Read(dev[p]) : HasChanges(p, blocks)

(* ... no page is in a state that never existed ...                        *)
ImageInv ==
    phase # "up" => \A p \in Pages : \A blocks \in Read(dev[p]) :
        LET image == ReadBoth(blocks).image
        IN image.lsn <= Len(log) /\ image.values = PageAt(p, image.lsn)

(* ... and redo makes them what the log says.                              *)
RecoveredInv ==
    phase # "up" => \A p \in Pages : \A blocks \in Read(dev[p]) :
        RedoFrom(p, ReadBoth(blocks).image, redoStart + 1).values = PageAt(p, Len(log))

(* A power cut leaves one version of each block.                           *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           \A p \in Pages : Unflushed(dev'[p]) = {}]_vars

(* After a failed flush nothing happens until the next start, which        *)
(* forgets the failure and all that was in memory.                         *)
PoisonedProp ==
    [][/\ poisoned => crashes' # crashes
       /\ crashes' # crashes =>
             ~poisoned' /\ \A p \in Pages : mem'[p] = Out /\ \A c \in Clients : call'[c] = Idle]_vars

(* When an image becomes alone, what it replaced reads as zeros, its log   *)
(* block included, if trims do anything.                                   *)
AloneProp ==
    [][\A p \in Pages :
           Discards = "act" /\ valid[p].is # "alone" /\ valid'[p].is = "alone" =>
               \A spot \in SpotsOf(1 - valid'[p].slot) \cup (IF valid'[p].logged THEN {} ELSE {Log}) :
                   ReadAs(spot, Newest(dev'[p][spot])) = Zeros(spot)]_vars

(* What is written is lost no longer.                                      *)
WrittenProp ==
    [][\A p \in Pages, spot \in Spots :
           Len(dev'[p][spot]) > Len(dev[p][spot]) => spot \notin lost'[p]]_vars

(* But for a crash, the redo start moves only forward, while the store is  *)
(* up, and a page in memory does not go back.                              *)
OnwardProp ==
    [][crashes' = crashes =>
           /\ redoStart' # redoStart => phase = "up" /\ redoStart' > redoStart
           /\ durable' >= durable
           /\ \A p \in Pages : IsIn(p) /\ mem'[p].at = "in" =>
                 mem'[p].lsn >= mem[p].lsn /\ mem'[p].stored >= mem[p].stored]_vars

(* Nothing is done for nothing: only a page that differs from its image is *)
(* written, and nothing is trimmed twice; a start writes again only pages  *)
(* that the log names.                                                     *)
EconomyProp ==
    [][\A p \in Pages :
           /\ crashes' = crashes => \A spot \in Spots :
                 Len(dev'[p][spot]) > Len(dev[p][spot]) =>
                     IF Newest(dev'[p][spot]) = Trimmed
                     THEN Newest(dev[p][spot]) # Trimmed
                     ELSE IsDirty(p)
           /\ crashes' # crashes /\ phase' = "killed" /\ ~Named(p) =>
                 \A spot \in lost[p] : dev'[p][spot] = dev[p][spot]]_vars

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == phase # "up" ~> phase = "up"

(* For a page that was read, eventually only one slot takes space on the   *)
(* medium, and no log block that belongs to the other.                     *)
TrimmedProp ==
    \A p \in Pages :
        <>[](valid[p].is # "unknown" =>
                \A spot \in SpotsOf(1 - valid[p].slot) \cup (IF valid[p].logged THEN {} ELSE {Log}) :
                    \A block \in Survivors(dev[p][spot]) : ReadAs(spot, block) = Zeros(spot))

-----------------------------------------------------------------------------
(* The contract: the durable map, then what is in the log beyond it.       *)

MapAfter(n) == [k \in Keys |-> PageAt(PageOf(k), n)[SegmentOf(k)]]

WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

AbstractTail ==
    [i \in 1..(Len(log) - durable) |->
        [by |-> WriterOf(durable + i), key |-> log[durable + i].key, value |-> log[durable + i].value]]

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> call[c].at # "called"]
        ELSE call[c]]

(* Recovery begins in the step that ends the life before, so no phase is   *)
(* "opening".                                                              *)
Contract == INSTANCE DurableMap WITH
    base <- MapAfter(durable), tail <- AbstractTail, call <- AbstractCall,
    phase <- phase

THEOREM Spec => Contract!Spec
=============================================================================
