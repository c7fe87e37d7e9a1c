----------------------------- MODULE MiniPlaces -----------------------------
(***************************************************************************)
(* Places for mini-pages: the interface between a tree that buffers        *)
(* changes and the memory in which it does.                                *)
(*                                                                         *)
(* A mini-page is there or not.  The memory may take it away, and may      *)
(* refuse a place; it may move it, at any time, and then nothing is to be  *)
(* seen here.  Whoever takes it away merges it first.  So of each key      *)
(* three things count: whether its page has a mini-page, the change that   *)
(* is only there, and what the leaf says.                                  *)
(*                                                                         *)
(* CircularBuffer keeps this (its model `places`); MiniPage does, and runs *)
(* on any memory that refuses and evicts as it likes                       *)
(* (layers/MiniOverPlaces); and so does BfTree, which is both.             *)
(***************************************************************************)
CONSTANTS
    Keys,
    Nothing     \* no change

VARIABLES
    there,      \* whether a mini-page is there, for each key
    held,       \* the change that only the mini-page has, or Nothing
    stored      \* what the leaf says

vars == <<there, held, stored>>

Init == \A k \in Keys : held[k] = Nothing

(* How the step of a key can be understood: from h held and s stored, to g *)
(* and r; with a mini-page before (t) and after (u) or not.                *)
WaysOf(t, h, s, u, g, r) ==
    \* A change is held, and only by a mini-page that is there before and after.
    (IF t /\ u /\ g # Nothing /\ r = s THEN {"write"} ELSE {})
    \* Nothing happens, or a mini-page comes, or goes that holds no change, or it is moved.
    \cup (IF g = h /\ r = s /\ (g # Nothing => t /\ u) THEN {"move"} ELSE {})
    \* The change gets into the leaf, and may be held on; or it is dropped because it is there.
    \cup (IF h # Nothing /\ r = h /\ g \in {h, Nothing} /\ (g # Nothing => t /\ u)
          THEN {"move"} ELSE {})

Ways(k) == WaysOf(there[k], held[k], stored[k], there'[k], held'[k], stored'[k])

(* One key is written, at most; the memory does the rest.                  *)
Next ==
    \/ \A k \in Keys : "move" \in Ways(k)
    \/ \E k \in Keys : "write" \in Ways(k) /\ \A j \in Keys \ {k} : "move" \in Ways(j)

Spec == Init /\ [][Next]_vars
=============================================================================
