------------------------------ MODULE BfLeaves ------------------------------
(***************************************************************************)
(* The leaf pages of a Bf-Tree, as the log protocol of WalRecovery meets   *)
(* them: the operators of TreePages, with several keys on a page, and      *)
(* splits.                                                                 *)
(*                                                                         *)
(* A leaf has its fences, its records and the LSN of its last change.  The *)
(* index above the leaves is not modelled: it is what the fences say.  Its *)
(* snapshot, which makes recovery fast, has nothing that they have not.    *)
(*                                                                         *)
(* A change is logged against the leaf of its key, although only a         *)
(* mini-page gets it; a split is logged with the records that move, so     *)
(* that the redo of one page needs no other (engine/src/wal/record.rs,     *)
(* Record; engine/src/store/recovery.rs).                                  *)
(***************************************************************************)
EXTENDS WalRecovery

CONSTANTS
    Sizes,          \* the sizes of mini-pages, in records
    LeafCapacity    \* the size of a leaf page, in records

(* Records of mini-pages, and how they are merged: §3.2, §5.5.             *)
M == INSTANCE MiniRecords WITH Pages <- Keys

(* Page ids are those of MiniPage: 1, 2, ..., enough for one page a key.   *)
PageIds == Keys

Leaf(low, high, values, lsn) == [low |-> low, high |-> high, values |-> values, lsn |-> lsn]

(* Page 1 is there from the beginning, and has all keys.                   *)
BfEmptyPage(p, absent) ==
    Leaf(IF p = 1 THEN 1 ELSE 0, IF p = 1 THEN M!MaxKey + 1 ELSE 0, [k \in Keys |-> absent], 0)

IsUsed(leaf)    == leaf.high # 0
Covers(leaf, k) == leaf.low <= k /\ k < leaf.high

(* The page of a key.                                                      *)
HomeIn(pages, k) == CHOOSE p \in PageIds : Covers(pages[p], k)

BfValueIn(pages, k) ==
    IF \E p \in PageIds : Covers(pages[p], k) THEN pages[HomeIn(pages, k)].values[k] ELSE Absent

-----------------------------------------------------------------------------
(* The log.                                                                *)

BfRecordOf(pages, k, v) ==
    [kind |-> "change", page |-> HomeIn(pages, k), key |-> k, value |-> v]

(* The leaf is split at key s: `right` gets the records from there on.     *)
SplitRecord(p, s, right, high, values) ==
    [kind |-> "split", page |-> p, at |-> s, right |-> right, high |-> high,
     moved |-> M!NotBelow(values, s, Absent)]

IsSplit(record) == record.kind = "split"

(* The pages that a record changes.                                        *)
Concerns(record) == {record.page} \cup IF IsSplit(record) THEN {record.right} ELSE {}

BfEffect(map, record) ==
    IF IsSplit(record) THEN map ELSE [map EXCEPT ![record.key] = record.value]

(* What a record with LSN n makes of page p, which it concerns.            *)
RedoneOn(p, leaf, record, n) ==
    CASE ~IsSplit(record) ->
            [leaf EXCEPT !.values[record.key] = record.value, !.lsn = n]
      [] IsSplit(record) /\ p = record.page ->
            Leaf(leaf.low, record.at, M!Below(leaf.values, record.at, Absent), n)
      [] OTHER ->
            Leaf(record.at, record.high, record.moved, n)

BfRedone(pages, record, n, always) ==
    [p \in PageIds |->
        IF p \in Concerns(record) /\ (pages[p].lsn < n \/ always)
        THEN RedoneOn(p, pages[p], record, n) ELSE pages[p]]
=============================================================================
