---------------------------- MODULE MiniRecords ----------------------------
(***************************************************************************)
(* What a mini-page and a leaf page hold, and how the one is merged into   *)
(* the other (Bf-Tree, sections 3.1, 3.2, 5.4-5.6 and Table 1).  Only      *)
(* functions of values: the tree and its clients are in MiniTree.          *)
(*                                                                         *)
(* A page's size is counted in records.  Ignored here: bytes, prefix       *)
(* compression, look-ahead bytes, where in the circular buffer a mini-page *)
(* lies (CircularBuffer), and crashes (WalRecovery).                       *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS
    Clients,        \* the clients
    Keys,           \* the keys: 1..n
    Values,         \* what is stored
    Absent,         \* the value of a key that does not exist
    Pending,        \* the result of a read that has not happened yet
    Pages,          \* page ids: 1..n; enough for one page a key
    Sizes,          \* the sizes of mini-pages, in records
    LeafCapacity,   \* the size of a leaf page and of its mirror, in records
    Bug             \* "none", or the name of a seeded bug

ASSUME
    /\ Keys = 1..Cardinality(Keys)
    /\ Pages = 1..Cardinality(Pages) /\ Cardinality(Pages) >= Cardinality(Keys)
    /\ Sizes # {} /\ \A n \in Sizes : n > 0
    /\ LeafCapacity > 0
    /\ Absent \notin Values

MaxKey   == Cardinality(Keys)
Contents == Values \cup {Absent}

-----------------------------------------------------------------------------
(* Records of a mini-page, Table 1.  `hot` is the reference bit: set when  *)
(* the record is accessed, cleared when cold records are evicted.  The     *)
(* paper does not say how a new record starts; here it starts cleared.     *)

Record(kind, value, hot) == [kind |-> kind, value |-> value, hot |-> hot]

NoRecord == Record("none", Absent, FALSE)

Records ==
    {NoRecord}
    \cup {Record(kind, v, hot) : kind \in {"insert", "cache"}, v \in Values, hot \in BOOLEAN}
    \cup {Record(kind, Absent, hot) : kind \in {"tombstone", "phantom"}, hot \in BOOLEAN}

IsDirty(r) == r.kind \in {"insert", "tombstone"}
Exists(r)  == r.kind \in {"insert", "cache"}

(* The record that a put or a delete leaves, and the one that caches what  *)
(* a get found in the leaf (section 5.6: a phantom caches a negative).     *)
Written(v, hot) == Record(IF v = Absent THEN "tombstone" ELSE "insert", v, hot)
Cached(v, hot)  == Record(IF v = Absent THEN "phantom" ELSE "cache", v, hot)

-----------------------------------------------------------------------------
(* Pages.  A leaf image is the content of the leaf page on disk; a         *)
(* mini-page of size 0 does not exist.  A `mirror` is a mini-page of a     *)
(* leaf's full size: a key without a record in it is known to be absent.   *)

Image == [Keys -> Contents]
EmptyImage == [k \in Keys |-> Absent]

Mini(size, rec)  == [size |-> size, mirror |-> FALSE, rec |-> rec]
NoMini == Mini(0, [k \in Keys |-> NoRecord])

Minis == [size : {0, LeafCapacity} \cup Sizes, mirror : BOOLEAN, rec : [Keys -> Records]]

KeysOf(image)  == {k \in Keys : image[k] # Absent}
RecordsOf(m)   == {k \in Keys : m.rec[k].kind # "none"}
Count(image)   == Cardinality(KeysOf(image))
Used(m)        == Cardinality(RecordsOf(m))
HasRoom(m)     == Used(m) < m.size

Larger(m)   == {n \in Sizes : n > m.size}
CanGrow(m)  == ~m.mirror /\ Larger(m) # {}
Smallest(s) == CHOOSE n \in s : \A other \in s : n <= other
NextSize(m) == Smallest(Larger(m))

(* A mini-page just large enough for some records.                         *)
Shrunk(rec) ==
    LET n == Cardinality({k \in Keys : rec[k].kind # "none"})
    IN IF n = 0 THEN NoMini ELSE Mini(Smallest({size \in Sizes : size >= n}), rec)

(* What the mini-page alone can answer, and what the two pages say of a    *)
(* key together.                                                           *)
Hits(m, k) == m.mirror \/ m.rec[k].kind # "none"
Says(m, image, k) ==
    IF Hits(m, k) THEN IF Exists(m.rec[k]) THEN m.rec[k].value ELSE Absent
    ELSE image[k]
Together(m, image) == [k \in Keys |-> Says(m, image, k)]

-----------------------------------------------------------------------------
(* Merging (section 5.5).  Dirty records go to the leaf: an insert becomes *)
(* the leaf's record, a tombstone removes it.                              *)
Merged(m, image) ==
    [k \in Keys |->
        CASE m.rec[k].kind = "insert"    -> m.rec[k].value
          [] m.rec[k].kind = "tombstone" ->
                IF Bug = "merge-drops-tombstone" THEN image[k] ELSE Absent
          [] OTHER                       -> image[k]]

Fits(m, image) == Count(Merged(m, image)) <= LeafCapacity

(* The mini-page that mirrors a leaf.  Existing records keep their         *)
(* reference bit; a mirror needs no phantoms or tombstones.                *)
MirrorOf(m, image) ==
    [size   |-> LeafCapacity,
     mirror |-> TRUE,
     rec    |-> [k \in Keys |-> IF image[k] = Absent THEN NoRecord
                                ELSE Cached(image[k], m.rec[k].hot)]]

-----------------------------------------------------------------------------
(* Evicting cold records (section 5.5).  Records whose reference bit is    *)
(* clear are evicted, the others stay with their bit cleared.  If an       *)
(* evicted record is dirty, the whole mini-page is merged, and the rest is *)
(* clean: an insert becomes a cache record, a tombstone a phantom.         *)

Cold(m) == {k \in RecordsOf(m) : ~m.rec[k].hot}
Hot(m)  == {k \in RecordsOf(m) : m.rec[k].hot}

MustMerge(m) ==
    Bug # "cold-dirty-dropped" /\ \E k \in Cold(m) : IsDirty(m.rec[k])

Cleaned(r) == IF IsDirty(r) THEN Cached(r.value, r.hot) ELSE r
Cooled(r)  == [r EXCEPT !.hot = FALSE]

(* The leaf after the eviction.                                            *)
ImageAfterCooling(m, image) ==
    IF ~MustMerge(m) THEN image
    ELSE [k \in Keys |->
             IF \/ Bug = "hot-insert-not-merged" /\ m.rec[k].hot /\ m.rec[k].kind = "insert"
                \/ Bug = "hot-tombstone-not-merged" /\ m.rec[k].hot /\ m.rec[k].kind = "tombstone"
             THEN image[k]
             ELSE Merged(m, image)[k]]

(* The mini-page after the eviction.  A mirror that loses records is no    *)
(* longer a mirror (the paper does not say so, and finding 2 is what       *)
(* happens otherwise); one with too many hot records for a smaller size    *)
(* stays.                                                                  *)
MiniAfterCooling(m) ==
    LET kept(k)  == IF MustMerge(m) THEN Cleaned(m.rec[k]) ELSE m.rec[k]
        hotOnly  == [k \in Keys |-> IF m.rec[k].hot THEN Cooled(kept(k)) ELSE NoRecord]
        everyOne == [k \in Keys |-> Cooled(kept(k))]
        room     == \E n \in Sizes : n >= Cardinality(Hot(m))
    IN CASE ~m.mirror                    -> Shrunk(hotOnly)
         [] m.mirror /\ Bug = "as-published-cold-mirror"
                                         -> [m EXCEPT !.rec = hotOnly]
         [] m.mirror /\ Bug # "as-published-cold-mirror" /\ (Cold(m) = {} \/ ~room)
                                         -> [m EXCEPT !.rec = everyOne]
         [] OTHER                        -> Shrunk(hotOnly)

-----------------------------------------------------------------------------
(* Dividing a page at a split key s.                                       *)
Below(rec, s, none)   == [k \in Keys |-> IF k < s THEN rec[k] ELSE none]
NotBelow(rec, s, none) == [k \in Keys |-> IF k < s THEN none ELSE rec[k]]
=============================================================================
