----------------------------- MODULE LeafLayout -----------------------------
(***************************************************************************)
(* Leaves that change their layout, under the redo log: B-Trees Are Back   *)
(* §3.5 (dense leaves, dense leaf split, partition detection) and §5.      *)
(*                                                                         *)
(* "The creation of a dense node is attempted whenever a comparison-based  *)
(* leaf would otherwise be split", and a dense leaf is converted back "if  *)
(* too few records are present".  The paper says nothing of logging or     *)
(* recovery.  A log record names a page and a key; whether the page takes  *)
(* the record depends on its layout.  So redo must give a page the layout  *)
(* that it had, before each record.  The rules kept here:                  *)
(*                                                                         *)
(*  1. A conversion is a log record, before the record that needs it, and  *)
(*     raises the page's LSN like any other change (LayoutInv).            *)
(*  2. The record of a split says the layout of the right page.            *)
(*  3. Redo repeats decisions, and makes none: what is decided depends on  *)
(*     the options with which the store was opened, and they may change.   *)
(*  4. A page that refuses a record in redo is lost (RecoverInv,           *)
(*     DamagedInv: that never happens).                                    *)
(*  5. A page is converted only if all its records fit (RemedyInv); back   *)
(*     to the general layout only if the new one does, too, or conversions *)
(*     would follow each other for ever (ThrashInv, AnsweredProp).         *)
(*  6. Both sides of a split can have the layout that its record says: a   *)
(*     dense right page may have fewer places than the page that is split  *)
(*     (RemedyInv).                                                        *)
(*                                                                         *)
(*  7. A dense page is converted before it absorbs its right neighbour in  *)
(*     a merge, by a record of its own (RecoverInv).                       *)
(*  8. Which of several general layouts a page has depends on how it is    *)
(*     used (engine/src/node/adapt.rs), so it may be any one; but only if  *)
(*     all its records fit, also in the right page of a split (FitInv).    *)
(*                                                                         *)
(* Left out: the index, and the place of a page that was merged away       *)
(* (IndexSnapshot); when pages are merged (engine/src/trees/notes.rs); the *)
(* log's blocks, epochs and the checkpoint's steps (WalRecovery, RedoLog); *)
(* failed flushes.                                                         *)
(***************************************************************************)
EXTENDS LayoutState

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayLayOut(n)      == TRUE
MayAdapt(n)       == TRUE
MayMerge(n)       == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE

-----------------------------------------------------------------------------
(* What to do with a page that refuses a record: engine/src/node/choice.rs,*)
(* LayoutChoice::remedy.  It depends on the page, the record and the       *)
(* options.  A split at 0 is none: there are too few records.              *)

ToLayout(layout) == [is |-> "relayout", layout |-> layout, at |-> 0]
SplitAt(k, right) == [is |-> "split", layout |-> right, at |-> k]

(* The fence before the key that so many are smaller than.                 *)
Before(keys, n) == Separator(Nth(keys, n - 1), Nth(keys, n))

(* So many records are left of the boundary at which the bytes on both     *)
(* sides differ least.                                                     *)
ByteMedian(page) ==
    LET keys     == KeysIn(page.map)
        count    == Cardinality(keys)
        below(n) == Bytes(page.map, {k \in keys : Cardinality({l \in keys : l < k}) < n},
                          RecordBytes(page.layout, page.lower, page.upper))
        half     == Smallest({n \in 0..(count - 1) : 2 * below(n + 1) > below(count)})
        closer   == IF below(count) - 2 * below(half) <= 2 * below(half + 1) - below(count)
                    THEN half ELSE half + 1
    IN CASE closer < 1 -> 1 [] closer > count - 1 -> count - 1 [] OTHER -> closer

(* At the median.  PageRef::choose_separator.                              *)
Middle(page) ==
    LET keys == KeysIn(page.map)
    IN CASE Cardinality(keys) < 2  -> 0
         [] page.layout = "dense" -> Before(keys, Near(keys, Cardinality(keys) \div 2))
         [] OTHER                  -> Before(keys, Near(keys, ByteMedian(page)))

(* A dense page, so that the right page can be dense, too, or else         *)
(* general: at the median, or at the first key behind it where that is so. *)
(* The right page may have fewer places, because its fence is longer; and  *)
(* a semi-dense left page less room, because its new upper fence is.       *)
(* LayoutChoice::split_dense.                                              *)
SplitOfDense(page) ==
    LET keys  == KeysIn(page.map)
        right(i)        == From(page.map, Nth(keys, i))
        fits(layout, i) == Fits(layout, right(i), Before(keys, i), page.upper)
        left(i)  == Below(page.map, Nth(keys, i))
        stays(i) == Semi => HasRoomInSemi(left(i), page.lower, Before(keys, i))
        middle   == Near(keys, Cardinality(keys) \div 2)
        possible == {i \in middle..(Cardinality(keys) - 1) :
                        i > 0 /\ stays(i) /\ (fits("dense", i) \/ fits("general", i))}
        first == Smallest(possible)
    IN IF possible = {} \/ Bug = "split-unfit" THEN SplitAt(Middle(page), "dense")
       ELSE SplitAt(Before(keys, first), IF fits("dense", first) THEN "dense" ELSE "general")

(* Partition detection: before the first record that cannot be dense, or   *)
(* where the places end before it, if half of the records or more can.     *)
(* 0 if they cannot.  Only for fully dense pages.                          *)
Partition(page) ==
    LET keys  == KeysIn(page.map)
        len   == LengthIn(page.map)
        end   == EndOfPartition(page.lower, len)
        other == {k \in keys : Length(page.map[k]) # len \/ k >= end}
        first == Smallest(other)
        left  == Cardinality({k \in keys : k < first})
    IN IF Semi \/ Cardinality(keys) < 2 \/ other = {} THEN 0
       ELSE IF left = 0 \/ left < Cardinality(keys) \div 2 THEN 0
       ELSE IF end <= first THEN end ELSE Before(keys, left)

(* The page can be dense, and if it were fully dense, the record would be  *)
(* as long as the others.                                                  *)
ShouldBeDense(page, v) ==
    /\ allows
    /\ page.layout = "general"
    /\ KeysIn(page.map) # {}
    /\ Semi \/ Length(v) = LengthIn(page.map)
    /\ CanBe(page, "dense")

RemedyForGeneral(page, v) ==
    IF ShouldBeDense(page, v) THEN ToLayout("dense")
    ELSE IF allows /\ Partition(page) # 0 THEN SplitAt(Partition(page), page.layout)
    ELSE SplitAt(Middle(page), page.layout)

FitsBack(map, page) == FitsGeneral("general", map, page.lower, page.upper)

(* The records fit as they are, and with the new one, which may replace a  *)
(* longer one.                                                             *)
WouldFit(page, k, v) ==
    \/ /\ FitsBack(page.map, page) \/ Bug = "forgets-the-old"
       /\ FitsBack(With(page.map, k, v), page)
    \/ Bug = "conversion-drops-record"

IsNearlyEmpty(page) == Cardinality(KeysIn(page.map)) <= Few

(* The paper converts a nearly empty page back, and does not ask whether   *)
(* the record will fit.                                                    *)
RemedyForDense(page, k, v) ==
    LET end == EndOfPlaces(page.lower, page.len)
    IN IF ~Semi /\ end < page.upper /\ k >= end
       THEN IF /\ IsNearlyEmpty(page)
               /\ WouldFit(page, k, v) \/ (Bug = "converts-in-vain" /\ FitsBack(page.map, page))
            THEN ToLayout("general")
            ELSE SplitAt(end, "general")
       ELSE IF WouldFit(page, k, v) THEN ToLayout("general")
       ELSE SplitOfDense(page)

Remedy(page, k, v) ==
    IF page.layout = "dense" THEN RemedyForDense(page, k, v) ELSE RemedyForGeneral(page, v)

-----------------------------------------------------------------------------
(* Clients.                                                                *)

(* engine/src/store.rs, Kv::put, Kv::delete.                               *)
CallWrite(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys, v \in {asked + 1, Absent} \cap Contents :
          /\ MayWrite(c, k, v)
          /\ call' = [call EXCEPT ![c] = [op |-> "write", key |-> k, value |-> v, lsn |-> 0]]
    /\ asked' = asked + 1
    /\ UNCHANGED <<logVars, leaf, allows, leafDev, recoveryVars>>

IsCalled(c) == phase = "up" /\ call[c].op = "write" /\ call[c].lsn = 0

(* The leaf of a call's key, and whether it takes the record.              *)
LeafOf(c)   == Owner(call[c].key, Len(log))
IsTaken(c)  == Takes(leaf[LeafOf(c)], call[c].key, call[c].value)
RemedyOf(c) == Remedy(leaf[LeafOf(c)], call[c].key, call[c].value)

Stamped(page, n) == [page EXCEPT !.lsn = n]

(* Log record and change of the leaf, under its latch.  BTree::try_put.    *)
ChangeLeaf(c) ==
    /\ IsCalled(c)
    /\ IsTaken(c)
    /\ LET p == LeafOf(c)
           n == Len(log) + 1
       IN /\ log' = Append(log, PutOf(p, call[c].key, call[c].value))
          /\ leaf' = [leaf EXCEPT ![p] = Stamped(Put(@, call[c].key, call[c].value), n)]
          /\ call' = [call EXCEPT ![c].lsn = n]
    /\ UNCHANGED <<asked, durable, redoStart, allows, leafDev, recoveryVars>>

(* The leaf refuses the record, and is converted, under its latch.  The    *)
(* put then tries again.  BTree::lay_out.                                  *)
LayOut(c) ==
    /\ IsCalled(c)
    /\ ~IsTaken(c)
    /\ RemedyOf(c).is = "relayout"
    /\ MayLayOut(Len(log))
    /\ LET p     == LeafOf(c)
           n     == Len(log) + 1
           k     == call[c].key
           v     == call[c].value
           other == Relaid(leaf[p], RemedyOf(c).layout)
       IN IF Bug = "relayout-after-put" /\ Takes(other, k, v)
          THEN /\ log' = log \o <<PutOf(p, k, v), RelayoutOf(p, RemedyOf(c).layout)>>
               /\ leaf' = [leaf EXCEPT ![p] = Stamped(Put(other, k, v), n + 1)]
               /\ call' = [call EXCEPT ![c].lsn = n]
          ELSE /\ log' = IF Bug \in {"relayout-not-logged", "decides-anew"} THEN log
                         ELSE Append(log, RelayoutOf(p, RemedyOf(c).layout))
               /\ leaf' = [leaf EXCEPT ![p] =
                      IF Bug \in {"relayout-not-logged", "decides-anew", "relayout-keeps-lsn"}
                      THEN other ELSE Stamped(other, n)]
               /\ call' = call
    /\ UNCHANGED <<asked, durable, redoStart, allows, leafDev, recoveryVars>>

(* The layouts that the right page may get: that of the remedy, or, if     *)
(* that is a general one, another that its records fit.                    *)
(* LayoutChoice::remedy.                                                   *)
RightLayouts(page, remedy) ==
    {remedy.layout} \cup
    {layout \in Generals :
        /\ remedy.layout \in Generals /\ IsGeneral(page)
        /\ \/ FitsGeneral(layout, From(page.map, remedy.at), remedy.at, page.upper)
           \/ Bug = "suits-unfit"}

(* Or it is split: one log record for both pages.  BTree::divide_at.       *)
Divide(c) ==
    /\ IsCalled(c)
    /\ ~IsTaken(c)
    /\ RemedyOf(c).is = "split"
    /\ Fresh \in Pages
    /\ \E layout \in RightLayouts(leaf[LeafOf(c)], RemedyOf(c)) :
       LET p     == LeafOf(c)
           n     == Len(log) + 1
           at    == RemedyOf(c).at
           moved == From(leaf[p].map, at)
           told  == IF Bug = "split-logs-too-little" /\ KeysIn(moved) # {}
                    THEN With(moved, Smallest(KeysIn(moved)), Absent) ELSE moved
           right == Built(layout, moved, at, leaf[p].upper)
       IN /\ log' = Append(log, SplitOf(p, at, layout, Fresh, leaf[p].upper, told))
          /\ leaf' = [leaf EXCEPT ![p] = Stamped(Truncated(@, at), n),
                                  ![Fresh] = Stamped(right, n)]
    /\ UNCHANGED <<call, asked, durable, redoStart, allows, leafDev, recoveryVars>>

Acknowledge(c) ==
    /\ call[c].op = "write" /\ call[c].lsn # 0
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, leaf, allows, leafDev, recoveryVars>>

CallGet(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E k \in Keys :
          /\ MayGet(c, k)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> k, got |-> Pending]]
    /\ UNCHANGED <<asked, logVars, leaf, allows, leafDev, recoveryVars>>

(* A record is read under the leaf's latch.  engine/src/store.rs, Kv::get. *)
ReadLeaf(c) ==
    /\ phase = "up"
    /\ call[c].op = "get" /\ call[c].got = Pending
    /\ call' = [call EXCEPT ![c].got = leaf[LeafOf(c)].map[call[c].key]]
    /\ UNCHANGED <<asked, logVars, leaf, allows, leafDev, recoveryVars>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ call[c].op = "get" /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<asked, logVars, leaf, allows, leafDev, recoveryVars>>

-----------------------------------------------------------------------------
(* Conversions and merges that no write asks for.                          *)

(* A page is converted, under its latch: one log record.                   *)
Converts(p, layout) ==
    LET n == Len(log) + 1
    IN /\ log' = Append(log, RelayoutOf(p, layout))
       /\ leaf' = [leaf EXCEPT ![p] = Stamped(Relaid(@, layout), n)]
       /\ UNCHANGED <<call, asked, durable, redoStart, allows, leafDev, recoveryVars>>

(* The page is in the index.  After recovery, memory may have others.      *)
IsLive(p) == IsThere(leaf[p]) /\ Owner(leaf[p].lower, Len(log)) = p

(* A page gets another general layout, which suits its keys and its use    *)
(* better, if its records fit.  BTree::adapt, BTree::count_use_of.         *)
Adapt(p) ==
    /\ phase = "up"
    /\ MayAdapt(Len(log))
    /\ IsLive(p) /\ IsGeneral(leaf[p])
    /\ \E layout \in Generals \ {leaf[p].layout} :
          /\ FitsGeneral(layout, leaf[p].map, leaf[p].lower, leaf[p].upper)
          /\ Converts(p, layout)

(* Pages that are neighbours.                                              *)
AreNeighbours(p, q) ==
    IsLive(p) /\ leaf[p].upper < Top /\ Owner(leaf[p].upper, Len(log)) = q

(* The records of both fit the left page, if that has this layout.         *)
FitTogether(layout, p, q) ==
    FitsGeneral(layout, Together(leaf[p].map, leaf[q].map), leaf[p].lower, leaf[q].upper)

(* A dense page is to absorb its right neighbour, and is converted first.  *)
(* BTree::merge_right.                                                     *)
Prepare(p) ==
    /\ phase = "up"
    /\ MayMerge(Len(log))
    /\ leaf[p].layout = "dense"
    /\ CanBe(leaf[p], "general")
    /\ \E q \in Pages : AreNeighbours(p, q) /\ FitTogether("general", p, q)
    /\ Converts(p, "general")

(* A page absorbs its right neighbour, under both latches: one log record. *)
(* BTree::merge_right.                                                     *)
Merge(p) ==
    /\ phase = "up"
    /\ MayMerge(Len(log))
    /\ IsGeneral(leaf[p]) \/ (Bug = "merge-not-prepared" /\ leaf[p].layout = "dense")
    /\ \E q \in Pages :
          LET n     == Len(log) + 1
              moved == leaf[q].map
              told  == IF Bug = "merge-logs-too-little" /\ KeysIn(moved) # {}
                       THEN With(moved, Smallest(KeysIn(moved)), Absent) ELSE moved
          IN /\ AreNeighbours(p, q)
             /\ FitTogether(IF IsGeneral(leaf[p]) THEN leaf[p].layout ELSE "general", p, q)
                \/ Bug = "merge-unfit"
             /\ log' = Append(log, MergeOf(p, leaf[q].lower, q, leaf[q].upper, told))
             /\ leaf' = [leaf EXCEPT
                    ![p] = Stamped(Absorbed(IF IsGeneral(@) THEN @ ELSE Relaid(@, "general"),
                                            moved, leaf[q].upper), n),
                    ![q] = Gone]
    /\ UNCHANGED <<call, asked, durable, redoStart, allows, leafDev, recoveryVars>>

-----------------------------------------------------------------------------
(* Log, pages and checkpoint.                                              *)

DeviceFlush == leafDev' = Flushed(leafDev, {})

(* The log is written and flushed.  WalRecovery has its steps.             *)
CommitLog ==
    /\ phase = "up"
    /\ durable < Len(log)
    /\ durable' = Len(log)
    /\ DeviceFlush
    /\ UNCHANGED <<call, asked, log, redoStart, leaf, allows, recoveryVars>>

Stored(p) == Newest(leafDev[p])

(* A dirty page is written, once the log is durable up to its last change: *)
(* its layout, LSN and records in one.  Pager::write_picked.               *)
WritePage(p) ==
    /\ IsThere(leaf[p])
    /\ Stored(p) # leaf[p]
    /\ leaf[p].lsn <= durable \/ Bug = "page-before-log"
    /\ leafDev' = [leafDev EXCEPT ![p] = Append(@, leaf[p])]
    /\ UNCHANGED <<call, asked, logVars, leaf, allows, recoveryVars>>

(* Where redo may begin: before the first change that no page on the       *)
(* device has.  A page that was merged away needs none.                    *)
IsMissing(n) ==
    /\ \E p \in Pages : Names(log[n], p) /\ Stored(p).lsn < n /\ ~HasEnded(p)
    /\ ~(log[n].is = "relayout" /\ Bug = "checkpoint-forgets-relayouts")

Swept ==
    LET missing == {n \in (redoStart + 1)..durable : IsMissing(n)}
    IN IF missing = {} THEN durable ELSE Smallest(missing) - 1

(* The device is flushed, then the redo start recorded: the log before it  *)
(* is given up.  engine/src/store/checkpoint.rs.                           *)
Checkpoint ==
    /\ phase = "up"
    /\ redoStart < Swept
    /\ redoStart' = Swept
    /\ IF Bug = "checkpoint-skips-flush" THEN UNCHANGED leafDev ELSE DeviceFlush
    /\ UNCHANGED <<call, asked, log, durable, leaf, allows, recoveryVars>>

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Recovering == phase \in {"cut", "killed"}

(* Memory is lost.  The next life may have other options.                  *)
ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ allows' \in Choices
    /\ redone' = redoStart
    /\ crashes' = crashes + 1
    /\ UNCHANGED <<asked, redoStart>>

(* The power fails, at any time, also during recovery.  Each page is left  *)
(* in any of its versions, and of the log any prefix that has the durable  *)
(* records.                                                                *)
Crash ==
    /\ MayCrash(crashes)
    /\ \E n \in durable..Len(log) : log' = SubSeq(log, 1, n) /\ durable' = n
    /\ \E left \in AfterCrash(leafDev) :
          /\ leafDev' = AllDurably(left)
          /\ leaf' = left
    /\ phase' = "cut"
    /\ ForgetMemory

(* The process dies and is restarted, and the device lives on.  What is    *)
(* read is flushed before anything is built on it.  Store::open.           *)
Restart ==
    /\ MayRestart(crashes)
    /\ \E n \in durable..Len(log) :
          /\ log' = SubSeq(log, 1, n)
          /\ durable' = IF Bug = "trusts-what-it-reads" THEN durable ELSE n
    /\ IF Bug = "trusts-what-it-reads" THEN UNCHANGED leafDev ELSE DeviceFlush
    /\ leaf' = [p \in Pages |-> Stored(p)]
    /\ phase' = "killed"
    /\ ForgetMemory

(* A put in redo.  The page must take it as it is.                         *)
RedonePut(page, k, v) ==
    IF Takes(page, k, v) THEN Put(page, k, v)
    ELSE IF /\ Bug = "decides-anew" /\ Covers(page, k)
            /\ Remedy(page, k, v).is = "relayout"
            /\ Takes(Relaid(page, Remedy(page, k, v).layout), k, v)
    THEN Put(Relaid(page, Remedy(page, k, v).layout), k, v)
    ELSE Lost

RedoneBuild(record) ==
    LET layout == IF Bug = "redo-builds-general" THEN "general" ELSE record.layout
    IN IF CanBeBuilt(layout, record.map, record.key, record.upper)
       THEN Built(layout, record.map, record.key, record.upper) ELSE Lost

(* What a record makes of a page that it names.                            *)
Changed(p, page, record) ==
    CASE Builds(record, p)      -> RedoneBuild(record)
      [] Ends(record, p)        -> Gone
      [] record.is = "put"      -> RedonePut(page, record.key, record.value)
      [] record.is = "relayout" ->
           IF CanBe(page, record.layout) THEN Relaid(page, record.layout) ELSE Lost
      [] record.is = "merge" ->
           IF CanAbsorb(page, record.map, record.key, record.upper)
           THEN Absorbed(page, record.map, record.upper) ELSE Lost
      [] OTHER ->
           IF Covers(page, record.key) THEN Truncated(page, record.key) ELSE Lost

(* A record is redone on a page that it names, unless the page has it.     *)
(* A lost page comes back only if it is built anew; one that is merged     *)
(* away is forgotten, whatever it is.                                      *)
(* engine/src/store/recovery.rs, Redo::apply_to_page.                      *)
Redone(p, page, n) ==
    LET record == log[n]
        after  == Changed(p, page, record)
    IN IF \/ ~Names(record, p)
          \/ page = Lost /\ ~Builds(record, p) /\ ~Ends(record, p)
          \/ page.lsn >= n /\ Bug # "redo-ignores-page-lsn"
          \/ record.is = "relayout" /\ Bug = "redo-skips-relayouts"
       THEN page
       ELSE IF after \in {Lost, Gone} THEN after ELSE Stamped(after, n)

RECURSIVE RedoneFrom(_, _, _, _)
(* A page after redo of the records from m to n.                           *)
RedoneFrom(p, page, m, n) ==
    IF m > n THEN page ELSE RedoneFrom(p, Redone(p, page, m), m + 1, n)

RedoRecord ==
    /\ Recovering
    /\ redone < Len(log)
    /\ leaf' = [p \in Pages |-> Redone(p, leaf[p], redone + 1)]
    /\ redone' = redone + 1
    /\ UNCHANGED <<call, asked, logVars, allows, leafDev, phase, crashes>>

(* A page of the index is lost: then the store does not open.              *)
(* Redo::finish.                                                           *)
IsDamaged == \E k \in Keys : ~IsThere(leaf[Owner(k, Len(log))])

FinishRedo ==
    /\ Recovering
    /\ redone = Len(log) \/ Bug = "stops-redo-early"
    /\ phase' = IF IsDamaged THEN "damaged" ELSE "up"
    /\ redone' = 0
    /\ UNCHANGED <<call, asked, logVars, leaf, allows, leafDev, crashes>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallWrite(c) \/ ChangeLeaf(c) \/ LayOut(c) \/ Divide(c) \/ Acknowledge(c)
          \/ CallGet(c) \/ ReadLeaf(c) \/ AnswerGet(c)
    \/ CommitLog
    \/ \E p \in Pages : WritePage(p) \/ Adapt(p) \/ Prepare(p) \/ Merge(p)
    \/ Checkpoint
    \/ Crash \/ Restart \/ RedoRecord \/ FinishRedo

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered and recovery ends.               *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(ChangeLeaf(c) \/ LayOut(c) \/ Divide(c)) /\ WF_vars(Acknowledge(c))
        /\ WF_vars(ReadLeaf(c) \/ AnswerGet(c))

LogFairness == WF_vars(CommitLog)

RecoveryFairness == WF_vars(RedoRecord \/ FinishRedo)

FairSpec == Spec /\ ClientFairness /\ LogFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a write that is not durable still waits.                  *)
AckInv ==
    \A n \in (durable + 1)..Len(log) :
        log[n].is = "put" => \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* No page on the device overtakes its log record.                         *)
WalRuleInv == \A p \in Pages : \A image \in Survivors(leafDev[p]) : image.lsn <= durable

(* The layout of a page, in memory or on the device, is the one that the   *)
(* log says for its LSN.                                                   *)
LayoutInv ==
    \A p \in Pages : \A image \in Survivors(leafDev[p]) \cup {leaf[p]} :
        IsThere(image) => image.layout = LayoutAt(p, image.lsn)

(* The records of each page fit its layout.                                *)
FitInv ==
    \A p \in Pages :
        CASE IsGeneral(leaf[p]) ->
               FitsGeneral(leaf[p].layout, leaf[p].map, leaf[p].lower, leaf[p].upper)
          [] leaf[p].layout = "dense" /\ Semi ->
               HasRoomInSemi(leaf[p].map, leaf[p].lower, leaf[p].upper)
          [] leaf[p].layout = "dense" /\ ~Semi ->
               \A k \in KeysIn(leaf[p].map) :
                   Length(leaf[p].map[k]) = leaf[p].len /\ HasPlace(leaf[p], k)
          [] OTHER -> TRUE

(* Memory is what the log describes.                                       *)
MemoryInv ==
    phase = "up" =>
        \A k \in Keys :
            LET page == leaf[Owner(k, Len(log))]
            IN Covers(page, k) /\ page.map[k] = ValueAt(k, Len(log))

(* Whatever a crash leaves of a page has all changes before the redo       *)
(* start, unless the page was merged away.                                 *)
RedoStartInv ==
    \A p \in Pages : ~HasEnded(p) => \A image \in Survivors(leafDev[p]) :
        \A n \in (image.lsn + 1)..redoStart : ~Names(log[n], p)

(* What redo of the first n records makes of what a crash may leave of     *)
(* page p.                                                                 *)
AfterRedo(p, n) == {RedoneFrom(p, image, redoStart + 1, n) : image \in Survivors(leafDev[p])}

(* Whatever a crash leaves, redo makes of it what the log says: no page    *)
(* refuses a record ...                                                    *)
RecoverInv ==
    \A n \in durable..Len(log), p \in Pages :
        LET keys == {k \in Keys : Owner(k, n) = p}
        IN keys # {} => \A page \in AfterRedo(p, n) : \A k \in keys :
              Covers(page, k) /\ page.map[k] = ValueAt(k, n)

(* ... and each page gets the layout that it had.                          *)
RepeatedInv ==
    \A n \in durable..Len(log), p \in Pages :
        LayoutAt(p, n) # "none" => \A page \in AfterRedo(p, n) : page.layout = LayoutAt(p, n)

(* So every store opens.                                                   *)
DamagedInv == phase # "damaged"

(* A value of each length.                                                 *)
Samples == {CHOOSE v \in Values : Length(v) = len : len \in {Length(v) : v \in Values}}

(* What each page refuses has a remedy, which is possible.                 *)
Refusals ==
    {refusal \in Pages \X Keys \X Samples :
        /\ Covers(leaf[refusal[1]], refusal[2])
        /\ ~Takes(leaf[refusal[1]], refusal[2], refusal[3])}

IsPossible(page, remedy) ==
    IF remedy.is = "relayout" THEN Fits(remedy.layout, page.map, page.lower, page.upper)
    ELSE /\ page.lower < remedy.at /\ remedy.at < page.upper
         /\ Fits(remedy.layout, From(page.map, remedy.at), remedy.at, page.upper)
         /\ IF IsGeneral(page)
            THEN FitsGeneral(page.layout, Below(page.map, remedy.at), page.lower, remedy.at)
            ELSE Semi => HasRoomInSemi(Below(page.map, remedy.at), page.lower, remedy.at)

RemedyInv ==
    phase = "up" => \A refusal \in Refusals :
        LET page == leaf[refusal[1]] IN IsPossible(page, Remedy(page, refusal[2], refusal[3]))

(* A page that was converted takes the record, or is split next: no        *)
(* conversion leads back.                                                  *)
ThrashInv ==
    phase = "up" => \A refusal \in Refusals :
        LET page   == leaf[refusal[1]]
            remedy == Remedy(page, refusal[2], refusal[3])
            after  == Relaid(page, remedy.layout)
        IN remedy.is = "relayout" =>
              \/ Takes(after, refusal[2], refusal[3])
              \/ Remedy(after, refusal[2], refusal[3]).is = "split"

(* A power cut leaves one version of each block.                           *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(leafDev') = {}]_vars

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == Recovering ~> phase = "up"

-----------------------------------------------------------------------------
(* The contract: the durable map, then what is in the log beyond it.       *)

MapAfter(n) == [k \in Keys |-> ValueAt(k, n)]

(* Which client's a record is.                                             *)
WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

(* Conversions and splits are no writes.                                   *)
AbstractTail ==
    LET puts == {n \in (durable + 1)..Len(log) : log[n].is = "put"}
    IN [i \in 1..Cardinality(puts) |->
           LET n == Nth(puts, i - 1)
           IN [by |-> WriterOf(n), key |-> log[n].key, value |-> log[n].value]]

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> call[c].lsn # 0]
        ELSE call[c]]

Contract == INSTANCE DurableMap WITH
    base <- MapAfter(durable), tail <- AbstractTail, call <- AbstractCall

THEOREM Spec => Contract!Spec
=============================================================================
