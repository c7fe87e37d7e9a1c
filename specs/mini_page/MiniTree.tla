------------------------------ MODULE MiniTree ------------------------------
(***************************************************************************)
(* The tree around the mini-pages: who calls, how a call comes down to its *)
(* page, and how leaf pages split and join (Bf-Tree, sections 3.3-3.5 and  *)
(* 5.5).  What a call does once it holds its page is in MiniPage.          *)
(*                                                                         *)
(* One inner node stands for all of them: it maps the lowest key of each   *)
(* page to the page's id, and has the 8-byte version lock of section 3.4.  *)
(* Each page id has a reader-writer lock in the mapping table; it guards   *)
(* the leaf page and its mini-page together (section 3.3).                 *)
(*                                                                         *)
(* Ignored here: further levels of inner nodes (they change and are read   *)
(* as this one), and the cost and the failure of I/O.                      *)
(***************************************************************************)
EXTENDS MiniRecords

VARIABLES
    inner,      \* inner node: for each key that begins a page, the page's id
    innerLock,  \* the client that holds the inner node's version lock, or Nobody
    lock,       \* mapping table: the reader-writer lock of each page id
    low,        \* low fence key of each page: the first key that may lie in it
    high,       \* high fence key of each page: the first key beyond it
    leaf,       \* leaf page on disk
    mini,       \* its mini-page, or NoMini
    call,       \* what each client is waiting for
    step,       \* how far it has come
    at,         \* the page that it goes to or holds
    right,      \* the right-hand page of its split or join
    outdated,   \* clients whose version of the inner node is not the latest
    store,      \* ghost: the map, as the writes so far have made it
    honest      \* ghost: FALSE once a read returned something else

treeVars == <<low, high, leaf, mini>>
ghosts   == <<store, honest>>
vars == <<inner, innerLock, lock, treeVars, call, step, at, right, outdated, ghosts>>

-----------------------------------------------------------------------------
Nobody == "nobody"
NoPage == 0

(* Calls.  A scan goes over all keys in order: `cursor` is the next one,   *)
(* `rows` are the keys and values that it has returned so far.             *)
Idle            == [op |-> "none"]
GetCall(k)      == [op |-> "get", key |-> k, got |-> Pending]
WriteCall(k, v) == [op |-> "write", key |-> k, value |-> v]
ScanCall        == [op |-> "scan", cursor |-> 1, rows |-> <<>>]

IsCall(r) ==
    \/ r = Idle
    \/ r.op = "get"   /\ r.key \in Keys /\ r.got \in Contents \cup {Pending}
    \/ r.op = "write" /\ r.key \in Keys /\ r.value \in Contents
    \/ r.op = "scan"  /\ r.cursor \in 1..MaxKey + 1
                      /\ \A i \in 1..Len(r.rows) : r.rows[i] \in Keys \X Values

Steps ==
    {"idle", "descend", "version", "child", "answered",     \* any call
     "get", "loaded", "promote", "write", "scan",           \* with its page locked
     "full", "split", "divided", "shortened",               \* splitting a leaf
     "left", "both", "inner first", "join", "joined"}       \* joining two leaves

TypeInv ==
    /\ inner \in [Keys -> Pages \cup {NoPage}]
    /\ innerLock \in Clients \cup {Nobody}
    /\ lock \in [Pages -> [writer : Clients \cup {Nobody}, readers : SUBSET Clients]]
    /\ low \in [Pages -> 0..MaxKey]
    /\ high \in [Pages -> 0..MaxKey + 1]
    /\ leaf \in [Pages -> Image]
    /\ \A p \in Pages :
          /\ DOMAIN mini[p] = {"size", "mirror", "rec"}
          /\ mini[p].size \in {0, LeafCapacity} \cup Sizes
          /\ mini[p].mirror \in BOOLEAN
          /\ \A k \in Keys : mini[p].rec[k] \in Records
    /\ \A c \in Clients : IsCall(call[c])
    /\ step \in [Clients -> Steps]
    /\ at \in [Clients -> Pages \cup {NoPage}]
    /\ right \in [Clients -> Pages \cup {NoPage}]
    /\ outdated \subseteq Clients
    /\ store \in [Keys -> Contents]
    /\ honest \in BOOLEAN

(* One empty leaf page for all keys.                                       *)
Init ==
    /\ inner = [k \in Keys |-> IF k = 1 THEN 1 ELSE NoPage]
    /\ innerLock = Nobody
    /\ lock = [p \in Pages |-> [writer |-> Nobody, readers |-> {}]]
    /\ low = [p \in Pages |-> IF p = 1 THEN 1 ELSE 0]
    /\ high = [p \in Pages |-> IF p = 1 THEN MaxKey + 1 ELSE 0]
    /\ leaf = [p \in Pages |-> EmptyImage]
    /\ mini = [p \in Pages |-> NoMini]
    /\ call = [c \in Clients |-> Idle]
    /\ step = [c \in Clients |-> "idle"]
    /\ at = [c \in Clients |-> NoPage]
    /\ right = [c \in Clients |-> NoPage]
    /\ outdated = {}
    /\ store = [k \in Keys |-> Absent]
    /\ honest = TRUE

-----------------------------------------------------------------------------
(* Locks, and moving on.                                                   *)

Free(p)         == lock[p].writer = Nobody /\ lock[p].readers = {}
LockedFor(c, p) == [lock EXCEPT ![p].writer = c]
Released(c, p)  ==
    [lock EXCEPT ![p] = [writer  |-> IF @.writer = c THEN Nobody ELSE @.writer,
                         readers |-> @.readers \ {c}]]

Go(c, where) == step' = [step EXCEPT ![c] = where]

(* The client releases its page and goes on to `where`.                    *)
Leave(c, where) ==
    /\ Go(c, where)
    /\ lock' = Released(c, at[c])
    /\ at' = [at EXCEPT ![c] = NoPage]

(* Where a client goes after it has split or joined pages: back to the     *)
(* start of its call, if it has one.                                       *)
Again(c) == IF call[c] = Idle THEN "idle" ELSE "descend"

(* The inner node, searched for a key.                                     *)
Child(k) ==
    inner[CHOOSE s \in Keys : /\ s <= k /\ inner[s] # NoPage
                              /\ \A t \in s + 1..k : inner[t] = NoPage]

-----------------------------------------------------------------------------
(* A client asks.  The wrapper bounds who may ask what.                    *)
MayGet(c, k)      == TRUE
MayWrite(c, k, v) == TRUE
MayScan(c)        == TRUE

Ask(c, request) ==
    /\ step[c] = "idle"
    /\ call' = [call EXCEPT ![c] = request]
    /\ Go(c, "descend")
    /\ UNCHANGED <<inner, innerLock, lock, treeVars, at, right, outdated, ghosts>>

CallGet(c)    == \E k \in Keys : MayGet(c, k) /\ Ask(c, GetCall(k))
CallPut(c)    == \E k \in Keys, v \in Values : MayWrite(c, k, v) /\ Ask(c, WriteCall(k, v))
CallDelete(c) == \E k \in Keys : MayWrite(c, k, Absent) /\ Ask(c, WriteCall(k, Absent))
CallScan(c)   == MayScan(c) /\ Ask(c, ScanCall)

Return(c) ==
    /\ step[c] = "answered"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ Go(c, "idle")
    /\ UNCHANGED <<inner, innerLock, lock, treeVars, at, right, outdated, ghosts>>

-----------------------------------------------------------------------------
(* Lock-free descent (section 3.4): remember the version of the inner      *)
(* node, find the child, lock the child, and go on only if the version is  *)
(* still the same; else begin again.                                       *)
(*                                                                         *)
(* Versions are compared for equality only, and never repeat.  So instead  *)
(* of numbers the spec keeps the set of the clients whose number differs   *)
(* from the inner node's (`outdated`); a change of the node adds every     *)
(* client that is on its way.                                              *)
(*                                                                         *)
(* The paper says that a reader compares the version "before and after the *)
(* operation" on the inner node.  Done to the letter, that is before the   *)
(* page is locked, and too early (finding 1).                              *)

OnTheWay == {c \in Clients : step[c] \in {"version", "child"}}

Target(c) == IF call[c].op = "scan" THEN call[c].cursor ELSE call[c].key

ReadVersion(c) ==
    /\ step[c] = "descend"
    /\ innerLock = Nobody
    /\ Go(c, "version")
    /\ UNCHANGED <<inner, innerLock, lock, treeVars, call, at, right, outdated, ghosts>>

ReadChild(c) ==
    /\ step[c] = "version"
    /\ Bug = "as-published-early-validation" => c \notin outdated /\ innerLock = Nobody
    /\ at' = [at EXCEPT ![c] = Child(Target(c))]
    /\ Go(c, "child")
    /\ UNCHANGED <<inner, innerLock, lock, treeVars, call, right, outdated, ghosts>>

Validates(c) ==
    \/ c \notin outdated /\ innerLock = Nobody
    \/ Bug = "as-published-early-validation"
    \/ Bug = "scan-trusts-neighbour" /\ call[c].op = "scan" /\ call[c].cursor > 1

(* Locking and checking the version again are one step: if the version     *)
(* changes between them, it could as well have changed before, because     *)
(* that change does not depend on the lock that is about to be taken.      *)
LockPage(c) ==
    /\ step[c] = "child"
    /\ Validates(c)
    /\ lock[at[c]].writer = Nobody
    /\ IF call[c].op = "write"
       THEN lock[at[c]].readers = {} /\ lock' = LockedFor(c, at[c])
       ELSE lock' = [lock EXCEPT ![at[c]].readers = @ \cup {c}]
    /\ Go(c, call[c].op)
    /\ outdated' = outdated \ {c}
    /\ UNCHANGED <<inner, innerLock, treeVars, call, at, right, ghosts>>

(* The version has changed, or is about to.                                *)
Restart(c) ==
    /\ \/ step[c] = "child" /\ ~Validates(c)
       \/ /\ Bug = "as-published-early-validation"
          /\ step[c] = "version"
          /\ c \in outdated \/ innerLock # Nobody
    /\ Go(c, "descend")
    /\ at' = [at EXCEPT ![c] = NoPage]
    /\ outdated' = outdated \ {c}
    /\ UNCHANGED <<inner, innerLock, lock, treeVars, call, right, ghosts>>

-----------------------------------------------------------------------------
(* Leaf page split (section 5.5), for a client that holds the page and has *)
(* found that the leaf has no room for the mini-page's records (step       *)
(* "full", or "write" and NeedsSplit).  In steps: lock the inner node; set *)
(* up the right-hand page with its half of the leaf and of the mini-page;  *)
(* cut the left-hand page; then tell the inner node.                       *)
(*                                                                         *)
(* The paper lets the merge go on into "the corresponding leaf pages" once *)
(* the leaf is split.  Here the mini-page is divided and the client begins *)
(* again: its key may be in the other half by now (finding 3), and one     *)
(* split need not be enough (finding 4).                                   *)

NeedsSplit(c) ==
    LET p == at[c]  m == mini[p]
    IN /\ ~Hits(m, call[c].key) /\ ~HasRoom(m)
       /\ ~m.mirror /\ ~CanGrow(m) /\ ~Fits(m, leaf[p])

WantsSplit(c) == step[c] = "full" \/ (step[c] = "write" /\ NeedsSplit(c))

LockInner(c) ==
    /\ WantsSplit(c)
    /\ innerLock = Nobody
    /\ innerLock' = c
    /\ Go(c, "split")
    /\ UNCHANGED <<inner, lock, treeVars, call, at, right, outdated, ghosts>>

Unused   == {p \in Pages : high[p] = 0 /\ Free(p)}
FreePage == CHOOSE p \in Unused : \A q \in Unused : p <= q

(* Any key that leaves something on both sides: a record, or the key about *)
(* to be written.  (Finding 4 must not depend on an unlucky choice: there, *)
(* the merged records lie on both sides, if possible.)                     *)
SplitKeys(c) ==
    LET p      == at[c]
        merged == KeysOf(Merged(mini[p], leaf[p]))
        held   == IF Bug = "as-published-one-split" /\ Cardinality(merged) > 1 THEN merged
                  ELSE KeysOf(leaf[p]) \cup RecordsOf(mini[p])
                       \cup (IF call[c].op = "write" THEN {call[c].key} ELSE {})
    IN {s \in low[p] + 1..high[p] - 1 : \E i, j \in held : i < s /\ s <= j}

MiniOf(p, rec) == IF mini[p].size = 0 THEN NoMini ELSE Shrunk(rec)
Whole(p) ==
    IF Bug = "as-published-one-split" THEN Merged(mini[p], leaf[p]) ELSE leaf[p]

AllocateRight(c) ==
    /\ step[c] = "split"
    /\ \E s \in SplitKeys(c) :
          LET p == at[c]  q == FreePage  early == Bug = "separator-first"
          IN /\ low'  = [low EXCEPT ![q] = IF early THEN 0 ELSE s]
             /\ high' = [high EXCEPT ![q] = IF early THEN 0 ELSE high[p]]
             /\ leaf' = [leaf EXCEPT ![q] =
                            IF early THEN EmptyImage ELSE NotBelow(Whole(p), s, Absent)]
             /\ mini' = [mini EXCEPT ![q] =
                            IF early \/ Bug \in {"as-published-one-split", "split-loses-right-records"}
                            THEN NoMini ELSE MiniOf(p, NotBelow(mini[p].rec, s, NoRecord))]
             /\ inner' = IF early THEN [inner EXCEPT ![s] = q] ELSE inner
             /\ innerLock' = IF early THEN Nobody ELSE innerLock
             /\ lock' = LockedFor(c, q)
             /\ right' = [right EXCEPT ![c] = q]
    /\ Go(c, "divided")
    /\ UNCHANGED <<call, at, outdated, ghosts>>

ShortenLeft(c) ==
    /\ step[c] = "divided"
    /\ LET p == at[c]  s == low[right[c]]
       IN /\ high' = IF Bug = "stale-high-fence" THEN high ELSE [high EXCEPT ![p] = s]
          /\ leaf' = [leaf EXCEPT ![p] = Below(Whole(p), s, Absent)]
          /\ mini' = [mini EXCEPT ![p] =
                         CASE Bug = "as-published-one-split"   -> NoMini
                           [] Bug = "split-keeps-right-records" -> mini[p]
                           [] OTHER -> MiniOf(p, Below(mini[p].rec, s, NoRecord))]
    /\ Go(c, "shortened")
    /\ UNCHANGED <<inner, innerLock, lock, low, call, at, right, outdated, ghosts>>

InsertSeparator(c) ==
    /\ step[c] = "shortened"
    /\ LET p == at[c]  q == right[c]  stay == Bug = "as-published-insert-after-merge" /\ call[c] # Idle
       IN /\ inner' = [inner EXCEPT ![low[q]] = q]
          /\ lock' = IF stay THEN Released(c, q)
                     ELSE [lock EXCEPT ![p].writer = Nobody, ![q].writer = Nobody]
          /\ at' = IF stay THEN at ELSE [at EXCEPT ![c] = NoPage]
          /\ Go(c, IF stay THEN "write" ELSE Again(c))
    /\ innerLock' = Nobody
    /\ outdated' = outdated \cup OnTheWay
    /\ right' = [right EXCEPT ![c] = NoPage]
    /\ UNCHANGED <<treeVars, call, ghosts>>

-----------------------------------------------------------------------------
(* Leaf merge: two neighbours that fit in one leaf are joined.  The paper  *)
(* mentions it in half a sentence (section 3.4); the steps are ours.  Lock *)
(* the left page, the page that its high fence leads to, and the inner     *)
(* node, in this order, which is also the order in which a split takes its *)
(* locks; then move the right page's records over, dirty ones included;    *)
(* then take the separator out and give the right page's id back.          *)

(* The wrapper bounds which clients maintain the tree: they split pages    *)
(* ahead of need and join them.                                            *)
MayKeepHouse(c) == TRUE

JoinFits(p, q) ==
    Count(Together(mini[p], leaf[p])) + Count(Together(mini[q], leaf[q])) <= LeafCapacity

(* What it sees before it holds the locks is only a hint.                  *)
LockLeft(c, p) ==
    /\ step[c] = "idle" /\ MayKeepHouse(c)
    /\ high[p] \in Keys /\ Free(p)
    /\ JoinFits(p, Child(high[p]))
    /\ lock' = LockedFor(c, p)
    /\ at' = [at EXCEPT ![c] = p]
    /\ Go(c, "left")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, right, outdated, ghosts>>

LockRight(c) ==
    /\ step[c] = IF Bug = "inner-before-right" THEN "inner first" ELSE "left"
    /\ LET q == Child(high[at[c]])
       IN /\ Free(q)
          /\ lock' = LockedFor(c, q)
          /\ Bug = "inner-before-right" => JoinFits(at[c], q)
          /\ right' = [right EXCEPT ![c] = q]
    /\ Go(c, IF Bug = "inner-before-right" THEN "join" ELSE "both")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, at, outdated, ghosts>>

LockInnerToJoin(c) ==
    /\ IF Bug = "inner-before-right" THEN step[c] = "left"
       ELSE step[c] = "both" /\ JoinFits(at[c], right[c])
    /\ innerLock = Nobody
    /\ innerLock' = c
    /\ Go(c, IF Bug = "inner-before-right" THEN "inner first" ELSE "join")
    /\ UNCHANGED <<inner, lock, treeVars, call, at, right, outdated, ghosts>>

(* A record was added in between.                                          *)
GiveUpJoin(c) ==
    /\ step[c] = "both"
    /\ ~JoinFits(at[c], right[c])
    /\ lock' = [lock EXCEPT ![at[c]].writer = Nobody, ![right[c]].writer = Nobody]
    /\ at' = [at EXCEPT ![c] = NoPage]
    /\ right' = [right EXCEPT ![c] = NoPage]
    /\ Go(c, "idle")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, outdated, ghosts>>

(* Both mini-pages are merged first, and then dropped.                     *)
MoveRecords(c) ==
    /\ step[c] = "join"
    /\ LET p == at[c]  q == right[c]
           moved == IF Bug = "join-drops-dirty" THEN leaf[q] ELSE Merged(mini[q], leaf[q])
       IN /\ leaf' = [leaf EXCEPT ![p] = [k \in Keys |->
                         IF k < low[q] THEN Merged(mini[p], leaf[p])[k] ELSE moved[k]]]
          /\ mini' = [mini EXCEPT ![p] = NoMini]
          /\ high' = [high EXCEPT ![p] = high[q]]
    /\ Go(c, "joined")
    /\ UNCHANGED <<inner, innerLock, lock, low, call, at, right, outdated, ghosts>>

RemoveSeparator(c) ==
    /\ step[c] = "joined"
    /\ LET p == at[c]  q == right[c]
       IN /\ inner' = IF Bug = "join-leaves-separator" THEN inner
                      ELSE [inner EXCEPT ![low[q]] = NoPage]
          /\ low'  = [low EXCEPT ![q] = 0]
          /\ high' = [high EXCEPT ![q] = 0]
          /\ leaf' = [leaf EXCEPT ![q] = EmptyImage]
          /\ mini' = [mini EXCEPT ![q] = NoMini]
          /\ lock' = [lock EXCEPT ![p].writer = Nobody, ![q].writer = Nobody]
    /\ innerLock' = Nobody
    /\ outdated' = IF Bug = "join-keeps-version" THEN outdated ELSE outdated \cup OnTheWay
    /\ at' = [at EXCEPT ![c] = NoPage]
    /\ right' = [right EXCEPT ![c] = NoPage]
    /\ Go(c, "idle")
    /\ UNCHANGED <<call, ghosts>>
=============================================================================
