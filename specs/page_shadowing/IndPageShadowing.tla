-------------------------- MODULE IndPageShadowing --------------------------
(***************************************************************************)
(* An inductive invariant of PageShadowing: it holds at the beginning, no  *)
(* step leads out of it, and it implies the invariants of the protocol.    *)
(* So they hold after any number of writes, checkpoints and crashes.       *)
(*                                                                         *)
(* Each page has an *anchor*, the slot that no crash changes, because its  *)
(* image is durable.  While the last image is only written, that is the    *)
(* other slot.  Whichever versions a crash leaves of the other blocks, the *)
(* anchor and the log block have all changes from before the redo start,   *)
(* and whatever else looks whole is true as well, and newer.               *)
(*                                                                         *)
(* TLC checks it in the states that the models reach.  The mirror checks   *)
(* that it is inductive, in typed states that need not be reachable        *)
(* (`treering check PageShadowing --inductive`).                           *)
(***************************************************************************)
EXTENDS MCPageShadowing

NewestRead(p) == AsRead(NewestOf(dev[p]))

VersionsRead(p, spot) == {ReadAs(spot, block) : block \in Survivors(dev[p][spot])}

(* The slot whose image reading yields now.                                *)
Shown(p) ==
    IF valid[p].is = "unknown" THEN ValidSlot(NewestRead(p)) ELSE valid[p].slot

Anchor(p) == IF valid[p].is = "written" THEN 1 - Shown(p) ELSE Shown(p)

NewestImage(p, s) == ImageIn(NewestRead(p), s)

(* Whether this log block was written over an image, and the LSN of both.  *)
IsOver(delta, image)  == image.lsn # 0 /\ delta.base = image.lsn
LsnWith(delta, image) == IF IsOver(delta, image) THEN delta.lsn ELSE image.lsn

LsnShown(p) == LsnWith(NewestRead(p)[Log], NewestImage(p, Shown(p)))

IsChange(p, n) == n \in Changes(p, Len(log))

(* The changes that a page has, in memory or on the device.                *)
KnownChanges(p) == Greatest(Changes(p, IF phase = "up" THEN Len(log) ELSE redone))

-----------------------------------------------------------------------------
(* The log, and how far redo has come.                                     *)
PositionsInv ==
    /\ redoStart <= durable /\ durable <= Len(log)
    /\ IF phase = "up" THEN redone = 0
       ELSE redoStart <= redone /\ redone <= Len(log) /\ durable = Len(log)

(* Blocks that vouch for a page tell the truth: what the page was once, by *)
(* the durable part of the log.                                            *)
IsTrueFirst(p, block) ==
    /\ block.lsn = 0 \/ (IsChange(p, block.lsn) /\ block.lsn <= durable)
    /\ block.all = PageAt(p, block.lsn)

IsTrueDelta(p, delta) ==
    \/ delta = Zeros(Log)
    \/ /\ IsChange(p, delta.base) /\ IsChange(p, delta.lsn)
       /\ delta.base < delta.lsn /\ delta.lsn <= durable
       /\ \A i \in Segments :
             IF i \in DOMAIN delta.segments
             THEN delta.segments[i] = PageAt(p, delta.lsn)[i]
             ELSE PageAt(p, delta.base)[i] = PageAt(p, delta.lsn)[i]

TruthInv ==
    \A p \in Pages :
        /\ \A s \in Slots : \A block \in VersionsRead(p, <<s, 1>>) : IsTrueFirst(p, block)
        /\ \A delta \in VersionsRead(p, Log) : IsTrueDelta(p, delta)

(* No image is in both slots, not even a part of it.                       *)
FirstsInv ==
    \A p \in Pages :
        \A one \in VersionsRead(p, <<0, 1>>), other \in VersionsRead(p, <<1, 1>>) :
            one.lsn = other.lsn => one.lsn = 0

(* The anchor has an image, unless the page was never written.             *)
WholeInv ==
    \A p \in Pages :
        \/ NewestImage(p, Anchor(p)).lsn # 0
        \/ Anchor(p) = 1 /\ NewestRead(p)[<<1, 1>>].lsn = 0

(* No crash changes it ...                                                 *)
SingleInv ==
    \A p \in Pages, i \in Segments : Cardinality(Survivors(dev[p][<<Anchor(p), i>>])) = 1

(* ... and it has all changes before the redo start, with the log block.   *)
AnchorInv ==
    \A p \in Pages : \A delta \in VersionsRead(p, Log) :
        LsnWith(delta, NewestImage(p, Anchor(p))) >= Greatest(Changes(p, redoStart))

(* The log block has changes of the anchor's image, the newest last, or    *)
(* older ones.                                                             *)
DeltaInv ==
    \A p \in Pages : \A delta \in VersionsRead(p, Log) :
        LET image  == NewestImage(p, Anchor(p))
            newest == NewestRead(p)[Log]
        IN IF IsOver(delta, image)
           THEN IsOver(newest, image) /\ delta.lsn <= newest.lsn
           ELSE delta.lsn = 0 \/ delta.lsn < image.lsn

SlotInv == \A p \in Pages : valid[p].is # "unknown" => ValidSlot(NewestRead(p)) = valid[p].slot

(* A slot is trimmed as a whole.                                           *)
TrimInv ==
    \A p \in Pages, s \in Slots :
        (\E i \in Segments : Newest(dev[p][<<s, i>>]) = Trimmed /\ Len(dev[p][<<s, i>>]) > 1)
        => \A i \in Segments : Newest(dev[p][<<s, i>>]) = Trimmed

(* What is written but not durable is newer than the anchor.               *)
WrittenInv ==
    \A p \in Pages : valid[p].is = "written" =>
        LET image == NewestImage(p, valid[p].slot)
        IN /\ image.lsn > NewestImage(p, 1 - valid[p].slot).lsn
           /\ \A delta \in VersionsRead(p, Log) : delta.lsn < image.lsn
           /\ \A i \in Segments : Newest(dev[p][<<valid[p].slot, i>>]) # Trimmed

LoggedInv ==
    \A p \in Pages : valid[p].is # "unknown" =>
        (valid[p].logged <=> IsOver(NewestRead(p)[Log], NewestImage(p, Shown(p))))

(* A flush that failed has forgotten nothing that the store relies on.     *)
LostInv ==
    \A p \in Pages :
        /\ lost[p] \subseteq Unflushed(dev[p])
        /\ valid[p].is = "written" /\ ~poisoned => lost[p] \cap SpotsOf(valid[p].slot) = {}

(* A page that was not read since the start reads in one way.              *)
UnknownInv ==
    \A p \in Pages : valid[p].is = "unknown" =>
        /\ Unflushed(dev[p]) \subseteq lost[p]
        /\ \A blocks \in Left(dev[p]) : ValidSlot(AsRead(blocks)) = Shown(p)

(* What a flush does not make durable cannot take back what is read.       *)
StableInv ==
    \A p \in Pages : ~poisoned /\ Log \in lost[p] =>
        \A delta \in VersionsRead(p, Log) :
            LsnWith(delta, NewestImage(p, Shown(p))) = LsnShown(p)

(* A page in memory is what the log says, and knows its base image.        *)
PageInv ==
    \A p \in Pages : IsIn(p) =>
        LET page == mem[p]
            base == NewestImage(p, Shown(p))
        IN /\ valid[p].is # "unknown"
           /\ page.lsn = 0 \/ IsChange(p, page.lsn)
           /\ page.values = PageAt(p, page.lsn)
           /\ page.lsn >= KnownChanges(p)
           /\ page.base = base.lsn
           /\ page.stored = LsnShown(p) /\ page.stored <= page.lsn
           /\ \A i \in Segments \ page.dirty : base.values[i] = page.values[i]

(* A page that is not has on the device all that it would have.            *)
EvictedInv == \A p \in Pages : ~IsIn(p) => LsnShown(p) >= KnownChanges(p)

(* A client waits for its own record, and none does in recovery.           *)
CallInv ==
    \A c \in Clients :
        /\ phase # "up" => call[c] = Idle
        /\ call[c].op = "write" /\ call[c].lsn # 0 =>
              /\ call[c].lsn <= Len(log)
              /\ log[call[c].lsn] = [key |-> call[c].key, value |-> call[c].value]

IndInv ==
    /\ PositionsInv /\ TruthInv /\ FirstsInv /\ WholeInv /\ SingleInv /\ AnchorInv
    /\ DeltaInv /\ SlotInv /\ TrimInv /\ WrittenInv /\ LoggedInv /\ LostInv
    /\ UnknownInv /\ StableInv /\ PageInv /\ EvictedInv /\ CallInv /\ AckInv
=============================================================================
