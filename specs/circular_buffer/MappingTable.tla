---------------------------- MODULE MappingTable ----------------------------
(***************************************************************************)
(* The mapping table (Bf-Tree, section 3.3): where each page's mini-page   *)
(* is, and the page's reader-writer lock.  "The reader-writer lock is      *)
(* co-located with the page address; they are together packed into a       *)
(* 64-bit word": so one step may read the address and take the lock, or    *)
(* change the address and drop the lock.  The lock of a mini-page is the   *)
(* lock of its leaf page too.                                              *)
(*                                                                         *)
(* A page without a mini-page is `None` here: its leaf page is always at   *)
(* the same place on disk.                                                 *)
(***************************************************************************)
CONSTANTS
    Pages,      \* the pages
    Clients,    \* the clients that lock them
    Pointers,   \* where a mini-page may be
    None,       \* no mini-page, no writer
    Bug         \* "none", or the name of a seeded bug

VARIABLE
    word        \* for each page: where it is, and who has locked it

Free(at) == [at |-> at, writer |-> None, readers |-> {}]

TableTypeInv ==
    word \in [Pages -> [at : Pointers \cup {None},
                        writer : Clients \cup {None},
                        readers : SUBSET Clients]]

TableInit == word = [p \in Pages |-> Free(None)]

At(p) == word[p].at

CanShare(p) == word[p].writer = None

CanLock(p) ==
    /\ word[p].writer = None
    /\ word[p].readers = {} \/ Bug = "writer-ignores-readers"

Share(c, p) ==
    /\ CanShare(p)
    /\ word' = [word EXCEPT ![p].readers = @ \cup {c}]

Lock(c, p) ==
    /\ CanLock(p)
    /\ word' = [word EXCEPT ![p].writer = c]

(* A reader alone may become the writer.                                   *)
CanUpgrade(c, p) == word[p].readers = {c}

Locked(c, p) == word[p].writer = c

(* The only reader becomes the writer; for a writer nothing changes.       *)
HoldAlone(c, p) ==
    /\ Locked(c, p) \/ CanUpgrade(c, p)
    /\ word' = [word EXCEPT ![p].writer = c, ![p].readers = {}]

(* The writer sets the address of the mini-page.                           *)
PointTo(p, at) == word' = [word EXCEPT ![p].at = at]

(* Releases whatever lock `c` holds.                                       *)
Unlock(c, p) ==
    word' = [word EXCEPT ![p].writer = IF @ = c THEN None ELSE @,
                         ![p].readers = @ \ {c}]

(* A page has one writer or some readers.                                  *)
LockInv == \A p \in Pages : word[p].writer = None \/ word[p].readers = {}
=============================================================================
