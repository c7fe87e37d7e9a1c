---------------------------- MODULE LayoutState -----------------------------
(***************************************************************************)
(* What leaves with several layouts keep in memory and on the device, what *)
(* a page of each layout takes, and what the log says.  The steps are in   *)
(* LeafLayout.                                                             *)
(*                                                                         *)
(*  - A *general* page takes any record, as long as its bytes fit.  There  *)
(*    may be several general layouts, in which records take more or less   *)
(*    (B-Trees Are Back §5.1).                                             *)
(*  - A *dense* page has a place for each key, from its lower fence on: as *)
(*    many as fit if all values have one length.  It has no place for a    *)
(*    key further on, and takes no value of another length; but each       *)
(*    record takes less room (B-Trees Are Back §3.5, fully dense leaves).  *)
(*  - Or dense pages are *semi-dense* (§3.5): each key between the fences  *)
(*    has a place, which takes some room, and values have any length.  So  *)
(*    whether a record fits depends on both fences, and there must be an   *)
(*    upper one.                                                           *)
(*                                                                         *)
(* engine/src/node/{choice,split,dense}.rs.                                *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Clients,    \* the clients
    Keys,       \* the keys: numbers
    Values,     \* 1, 2, ...: the n-th write of all puts n, so no two are alike
    Pages,      \* 1, 2, ...: the pages; the first is the tree's first leaf
    Room,       \* the bytes of a page
    KeySize,    \* the bytes that a record takes beside its value, in a general page
    Fence,      \* the bytes that the lower fence takes from the places of a dense page
    Few,        \* a dense page with so many records, or fewer, is nearly empty
    Semi,       \* whether dense pages are semi-dense
    Generals,   \* the general layouts: "general", and perhaps "other"
    Choices,    \* whether dense pages are made: what the options of a life may say
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Bug         \* the seeded bug, or "none" for the correct protocol

(* The bytes of a value.                                                   *)
Length(v) == 1

(* What the fences cost.  A page stores them, and does not store in each   *)
(* record what they have in common: so a general page has more or less     *)
(* room for records, and they take more or less, depending on its fences.  *)
(* And a page with so many records may have an index of them.  By default  *)
(* all that costs nothing.                                                 *)
RoomIn(layout, lower, upper, records) == Room
RecordBytes(layout, lower, upper) == KeySize

(* The fence between two neighbours: it may be shorter than the right key, *)
(* and so lie before it.                                                   *)
Separator(left, right) == right

(* A split at the median, with so many keys on the left, may be made near  *)
(* it, where the fence is shorter.                                         *)
Near(keys, n) == n

VARIABLES
    call,       \* what each client is waiting for, and how far it is
    asked,      \* number of writes asked for so far
    \* The log: its records from the beginning of time; the n-th has LSN n
    log,
    durable,    \* up to here every crash keeps it
    redoStart,  \* where redo begins
    \* Memory
    leaf,       \* the pages
    allows,     \* whether the options of this life allow dense pages
    \* The device
    leafDev,    \* the pages
    \* Crash and recovery
    phase,      \* "up"; in recovery, how it ended: "cut", "killed"; "damaged": it failed
    redone,     \* in recovery: the log has been replayed up to here
    crashes     \* number of crashes so far

logVars      == <<log, durable, redoStart>>
recoveryVars == <<phase, redone, crashes>>

vars == <<call, asked, logVars, leaf, allows, leafDev, recoveryVars>>

Contents == Values \cup {Absent}
Lsns     == Nat

(* What is left of a value that was cut.  No correct page has one.         *)
Cut == 0

-----------------------------------------------------------------------------
(* Calls.                                                                  *)

(* No call.                                                                *)
Idle == [op |-> "none"]

Waits(c) == call[c] # Idle

(* A write has an LSN once its record is in the log.                       *)
Calls ==
    {Idle}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents, lsn : Lsns]

-----------------------------------------------------------------------------
(* Pages.                                                                  *)

Least == CHOOSE k \in Keys : \A other \in Keys : k <= other
Top   == (CHOOSE k \in Keys : \A other \in Keys : other <= k) + 1

Nothing == [k \in Keys |-> Absent]

(* A page with fences; `len` is the length of all values of a fully dense  *)
(* page.                                                                   *)
Page(layout, lower, upper, len, map, lsn) ==
    [layout |-> layout, lower |-> lower, upper |-> upper, len |-> len, map |-> map, lsn |-> lsn]

(* A page that has never been there, and one that redo could not go on     *)
(* with: it refused a record.                                              *)
Gone == Page("none", 0, 0, 0, Nothing, 0)
Lost == Page("lost", 0, 0, 0, Nothing, 0)

Layouts == Generals \cup {"dense"}

IsThere(page)   == page.layout \in Layouts
IsGeneral(page) == page.layout \in Generals

Covers(page, k) == IsThere(page) /\ page.lower <= k /\ k < page.upper

KeysIn(map) == {k \in Keys : map[k] # Absent}

(* The smallest of some keys, and the one that so many are smaller than.   *)
Smallest(keys) == CHOOSE k \in keys : \A other \in keys : k <= other
Nth(keys, n)   == CHOOSE k \in keys : Cardinality({other \in keys : other < k}) = n

RECURSIVE Bytes(_, _, _)
(* The bytes of these records, of which each takes so many beside its      *)
(* value.                                                                  *)
Bytes(map, keys, beside) ==
    IF keys = {} THEN 0
    ELSE LET k == Smallest(keys) IN beside + Length(map[k]) + Bytes(map, keys \ {k}, beside)

(* Records fit a page with one of the general layouts and these fences.    *)
FitsGeneral(layout, map, lower, upper) ==
    Bytes(map, KeysIn(map), RecordBytes(layout, lower, upper))
        <= RoomIn(layout, lower, upper, Cardinality(KeysIn(map)))

(* The number of places of a dense page with this lower fence, for values  *)
(* of this length.  (Beside them there is room for an upper fence, and for *)
(* a bit for each place that says whether it is taken.  The first page's   *)
(* lower fence is empty.)  FullyDense::places.                             *)
Places(lower, len) == (IF lower = Least THEN Room ELSE Room - Fence) \div len

(* The first key, from this lower fence on, that has no place any more.    *)
EndOfPlaces(lower, len) == lower + Places(lower, len)

(* Where a page is split so that its left side can become dense: there the *)
(* places are counted without knowing the upper fence.                     *)
EndOfPartition(lower, len) == EndOfPlaces(lower, len)

LengthIn(map) == IF KeysIn(map) = {} THEN 0 ELSE Length(map[Smallest(KeysIn(map))])

(* All values have one length, and all keys a place.  A page without a     *)
(* record cannot tell the length.                                          *)
FitsDense(map, lower) ==
    /\ KeysIn(map) # {}
    /\ \A k \in KeysIn(map) :
          Length(map[k]) = LengthIn(map) /\ k < EndOfPlaces(lower, LengthIn(map))

(* What a semi-dense page has beside its places, of one byte each, and     *)
(* what a record takes of it beside its value.  SemiDense::places, put.    *)
RoomOfSemi(lower, upper) == Room - (upper - lower)
BesideInSemi == 0

(* Without an upper fence, every number would need a place.                *)
HasRoomInSemi(map, lower, upper) ==
    /\ upper # Top
    /\ Bytes(map, KeysIn(map), BesideInSemi) <= RoomOfSemi(lower, upper)

FitsSemi(map, lower, upper) == KeysIn(map) # {} /\ HasRoomInSemi(map, lower, upper)

Fits(layout, map, lower, upper) ==
    IF layout # "dense" THEN FitsGeneral(layout, map, lower, upper)
    ELSE IF Semi THEN FitsSemi(map, lower, upper)
    ELSE FitsDense(map, lower)

(* A semi-dense page has a place for each key that it covers.              *)
HasPlace(page, k) == Semi \/ k < EndOfPlaces(page.lower, page.len)

(* The length of all values of a page with these records.                  *)
LengthOf(layout, map) == IF layout = "dense" /\ ~Semi THEN LengthIn(map) ELSE 0

With(map, k, v) == [other \in Keys |-> IF other = k THEN v ELSE map[other]]

Below(map, k) == [other \in Keys |-> IF other < k THEN map[other] ELSE Absent]
From(map, k)  == [other \in Keys |-> IF other < k THEN Absent ELSE map[other]]

-----------------------------------------------------------------------------
(* Changes of a page.  Each says whether the page can be changed so, and   *)
(* what it then is, apart from its LSN.                                    *)

(* A delete is never refused.  PageMut::put, Dense::put.                   *)
Takes(page, k, v) ==
    /\ Covers(page, k)
    /\ CASE v = Absent -> TRUE
         [] page.layout = "dense" /\ Semi ->
              \/ HasRoomInSemi(With(page.map, k, v), page.lower, page.upper)
              \/ Bug = "overfills-semi"
         [] page.layout = "dense" /\ ~Semi ->
              /\ Length(v) = page.len \/ Bug = "cuts-value"
              /\ HasPlace(page, k) \/ Bug = "place-wraps"
         [] OTHER ->
              \/ FitsGeneral(page.layout, With(page.map, k, v), page.lower, page.upper)
              \/ Bug = "overfills"

(* Where the record goes, and what of it.                                  *)
PlaceOf(page, k) ==
    IF page.layout = "dense" /\ Bug = "place-wraps"
    THEN page.lower + ((k - page.lower) % Places(page.lower, page.len)) ELSE k

PartOf(page, v) ==
    IF page.layout = "dense" /\ Bug = "cuts-value" /\ v # Absent /\ Length(v) # page.len
    THEN Cut ELSE v

Put(page, k, v) ==
    IF v = Absent /\ page.layout = "dense" /\ Bug = "delete-keeps-bit" THEN page
    ELSE [page EXCEPT !.map = With(@, PlaceOf(page, k), PartOf(page, v))]

(* Conversion, with the same records.  PageMut::relayout.                  *)
CanBe(page, layout) ==
    /\ IsThere(page)
    /\ page.layout = layout \/ Fits(layout, page.map, page.lower, page.upper)
       \/ Bug = "conversion-drops-record"

(* The records that a dense page has places for, of the first one's length.*)
Kept(map, lower) ==
    [k \in Keys |->
        IF /\ map[k] # Absent
           /\ Length(map[k]) = LengthIn(map) /\ k < EndOfPlaces(lower, LengthIn(map))
        THEN map[k] ELSE Absent]

Relaid(page, layout) ==
    IF page.layout = layout THEN page
    ELSE [page EXCEPT !.layout = layout,
                      !.len = LengthOf(layout, page.map),
                      !.map = IF Bug = "conversion-drops-record" /\ layout = "dense"
                              THEN Kept(@, page.lower) ELSE @]

(* The two sides of a split.  PageMut::truncate_to, PageMut::build.        *)
Truncated(page, at) == [page EXCEPT !.upper = at, !.map = Below(@, at)]

CanBeBuilt(layout, map, lower, upper) == Fits(layout, map, lower, upper)

Built(layout, map, lower, upper) ==
    Page(layout, lower, upper, LengthOf(layout, map), map, 0)

(* A merge: a page takes the records and the upper fence of its right      *)
(* neighbour.  A dense page must be converted first.  PageMut::absorb.     *)
Together(map, other) == [k \in Keys |-> IF other[k] = Absent THEN map[k] ELSE other[k]]

CanAbsorb(page, map, at, upper) ==
    /\ IsGeneral(page)
    /\ page.upper = at
    /\ FitsGeneral(page.layout, Together(page.map, map), page.lower, upper)

Absorbed(page, map, upper) == [page EXCEPT !.upper = upper, !.map = Together(@, map)]

-----------------------------------------------------------------------------
(* The log.                                                                *)

(* A put or delete of `key` in `page`; a relayout of `page`; a split of    *)
(* `page` at `key`, with what `right` is built of; a merge of `page` with  *)
(* `right`, whose lower fence is `key`, with what it had.                  *)
Entry(is, page, key, value, layout, right, upper, map) ==
    [is |-> is, page |-> page, key |-> key, value |-> value, layout |-> layout,
     right |-> right, upper |-> upper, map |-> map]

PutOf(p, k, v) == Entry("put", p, k, v, "none", 0, 0, Nothing)

RelayoutOf(p, layout) == Entry("relayout", p, 0, Absent, layout, 0, 0, Nothing)

SplitOf(p, at, layout, right, upper, map) ==
    Entry("split", p, at, Absent, layout, right, upper, map)

MergeOf(p, at, right, upper, map) == Entry("merge", p, at, Absent, "none", right, upper, map)

Record == [is : {"put", "relayout", "split", "merge"}, page : Pages, key : Nat, value : Contents,
           layout : Layouts \cup {"none"}, right : Pages \cup {0}, upper : Nat,
           map : [Keys -> Contents \cup {Cut}]]

Builds(record, p) == record.is = "split" /\ record.right = p
Ends(record, p)   == record.is = "merge" /\ record.right = p
Names(record, p)  == record.page = p \/ Builds(record, p) \/ Ends(record, p)

Last(lsns) == CHOOSE n \in lsns : \A m \in lsns : m <= n

(* A key's value after the first n records.                                *)
ValueAt(k, n) ==
    LET changes == {m \in 1..n : log[m].is = "put" /\ log[m].key = k}
    IN IF changes = {} THEN Absent ELSE log[Last(changes)].value

(* A page's layout after the first n records: the log alone says it.       *)
LayoutAt(p, n) ==
    LET changes == {m \in 1..n : Builds(log[m], p) \/ Ends(log[m], p)
                                  \/ (log[m].is = "relayout" /\ log[m].page = p)}
    IN IF changes # {} THEN log[Last(changes)].layout
       ELSE IF p = 1 THEN "general" ELSE "none"

RECURSIVE OwnerFrom(_, _, _, _)
OwnerFrom(p, k, m, n) ==
    IF m > n THEN p
    ELSE OwnerFrom(CASE log[m].is = "split" /\ log[m].page = p /\ k >= log[m].key -> log[m].right
                     [] Ends(log[m], p) -> log[m].page
                     [] OTHER -> p, k, m + 1, n)

(* The page of a key after the first n records.  The index, which recovery *)
(* has by a protocol of its own (IndexSnapshot), is no variable here.      *)
Owner(k, n) == OwnerFrom(1, k, 1, n)

Splits == {n \in 1..Len(log) : log[n].is = "split"}

(* The page that the next split makes.  Numbers are not given again; a     *)
(* page that was merged away, and its place, are those of IndexSnapshot.   *)
Fresh == Cardinality(Splits) + 2

(* A crash cannot undo that the page was merged away.                      *)
HasEnded(p) == \E n \in 1..durable : Ends(log[n], p)

-----------------------------------------------------------------------------
Leaf == [layout : Layouts \cup {"none", "lost"}, lower : Nat, upper : Nat, len : Nat,
         map : [Keys -> Contents \cup {Cut}], lsn : Lsns]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ asked \in Nat
    /\ log \in Seq(Record)
    /\ redoStart <= durable /\ durable <= Len(log)
    /\ leaf \in [Pages -> Leaf]
    /\ allows \in BOOLEAN
    /\ leafDev \in [Pages -> Seq(Leaf)] /\ \A p \in Pages : leafDev[p] # <<>>
    /\ phase \in {"up", "cut", "killed", "damaged"}
    /\ redone \in Lsns
    /\ crashes \in Nat

FirstLeaves ==
    [p \in Pages |-> IF p = 1 THEN Page("general", Least, Top, 0, Nothing, 0) ELSE Gone]

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ log = <<>> /\ durable = 0 /\ redoStart = 0
    /\ leaf = FirstLeaves /\ allows = (TRUE \in Choices)
    /\ leafDev = AllDurably(FirstLeaves)
    /\ phase = "up" /\ redone = 0 /\ crashes = 0
=============================================================================
