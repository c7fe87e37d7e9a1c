----------------------------- MODULE WeakCells ------------------------------
(***************************************************************************)
(* The cells of PageCells, as bad as AtomicPages allows: every image that  *)
(* may be left after a step is left by some crash, and every image that    *)
(* was ever written and is newer than what was flushed may come back.      *)
(*                                                                         *)
(* WalRecovery keeps its contract on such pages.  So it does on those of   *)
(* any store that keeps AtomicPages.                                       *)
(***************************************************************************)
EXTENDS WalRecovery

WeakNew(image) == [newest |-> image, left |-> {image}, cut |-> {}]

(* Or it goes without one of the images that might come back.              *)
WeakWritten(cell, image) ==
    LET back == {old \in cell.cut : \E low \in cell.left : low.lsn < old.lsn}
    IN {[newest |-> image,
         left   |-> cell.left \cup {image} \cup more,
         cut    |-> cell.cut \cup cell.left \cup {image}] : more \in {{}, back}}

WeakForced(cell) == [cell EXCEPT !.left = {cell.newest}]

WeakIsForced(cell) == cell.left = {cell.newest}

WeakRead(cell) == cell.newest

WeakLeft(cell) ==
    {[newest |-> image, left |-> {image}, cut |-> cell.cut \cup cell.left] : image \in cell.left}

(* What is read is written again and flushed.                              *)
WeakReopened(cell) ==
    {[newest |-> cell.newest, left |-> {cell.newest}, cut |-> cell.cut \cup cell.left]}

WeakTypeInv ==
    /\ call \in [Clients -> Calls]
    /\ page \in [Keys -> Image]
    /\ \A k \in Keys : pageDev[k].newest \in pageDev[k].left
=============================================================================
