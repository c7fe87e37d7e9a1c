--------------------------- MODULE IndWalRecovery ---------------------------
(***************************************************************************)
(* The inductive invariant of specs/proofs/Invariant.dfy.  TLC checks it   *)
(* in the states that the models reach.  The mirror checks that it is      *)
(* inductive, in typed states that need not be reachable                   *)
(* (`treering check WalRecovery --inductive`).                             *)
(*                                                                         *)
(* The proof has the whole history of the log as a variable.  Here it is   *)
(* derived: the records that the log still has, and in recovery those that *)
(* are redone.  What was logged before is known by its effect, the map     *)
(* `base` (BaseInv).                                                       *)
(***************************************************************************)
EXTENDS MCWalRecovery

(* The first of these records has LSN From + 1.                            *)
From       == IF phase = "up" THEN oldest ELSE superDev[1].redo
History    == IF phase = "up" THEN LiveLog ELSE LogFound(NewestOf(logDev), superDev[1])
HistoryEnd == From + Len(History)

Has(n)    == From < n /\ n <= HistoryEnd
SlotOf(n) == History[n - From]

(* No record after `from`, up to `to`, changes the key.                    *)
NoChange(k, from, to) ==
    \A n \in (From + 1)..HistoryEnd : from < n /\ n <= to => SlotOf(n).key # k

Complete(k, image, n) == NoChange(k, image.lsn, n)

(* An image has the value of the record that it names, if the log still    *)
(* has that record.                                                        *)
Valid(k, image) ==
    /\ image.lsn <= HistoryEnd
    /\ Has(image.lsn) => SlotOf(image.lsn) = [key |-> k, value |-> image.value]

AllImages(P(_, _)) == \A k \in Keys : \A image \in Survivors(pageDev[k]) : P(k, image)
AllPages(P(_, _))  == \A k \in Keys : P(k, page[k])

VerdictInv == verdict = "fine"

LostInv == poisoned \/ lost = NothingLost

ImagesInv == phase = "up" => AllImages(Valid)

(* The buffer has what the device has of the same block.                   *)
BufferInv ==
    phase = "up" =>
        /\ HistoryEnd = End /\ flushing <= End
        /\ \A i \in 1..Len(buffer) :
              Has(BufferStart + i) => SlotOf(BufferStart + i) = buffer[i]

(* `base` is the map up to `durable`, or to the end of what is redone:     *)
(* what the log says, or an image that has all changes.                    *)
BaseInv ==
    ~Down =>
        LET end    == IF phase = "up" THEN durable ELSE HistoryEnd
            old(k, image) ==
                image.lsn <= end /\ Complete(k, image, end) => image.value = base[k]
        IN /\ \A n \in (From + 1)..HistoryEnd :
                 n <= end /\ NoChange(SlotOf(n).key, n, end) =>
                    base[SlotOf(n).key] = SlotOf(n).value
           /\ AllImages(old) /\ AllPages(old)

(* The device has all changes before the first that counts as missing.     *)
DirtiedInv ==
    ~Down => \A k \in Keys :
        /\ dirtied[k] <= IF phase = "up" THEN End ELSE durable
        /\ dirtied[k] # 0 => Complete(k, Newest(pageDev[k]), dirtied[k] - 1)

RoomInv == phase = "up" => End <= (BlockOf(oldest) + RingBlocks) * PerBlock

(* Blocks of the epoch tell the truth about what the log still has.        *)
TruthInv ==
    phase = "up" =>
        \A p \in Places : \A block \in Survivors(logDev[p]) :
            /\ block.epoch <= epoch
            /\ block.epoch = epoch =>
                  LET start == block.index * PerBlock
                  IN /\ Len(block.records) <= PerBlock
                     /\ start + Len(block.records) <= End
                     /\ \A i \in 1..Len(block.records) :
                           Has(start + i) => block.records[i] = SlotOf(start + i)

(* What the flush in flight makes durable has been written.                *)
FlightInv ==
    phase = "up" /\ durable < flushing =>
        \A index \in BlockOf(durable)..BlockOf(flushing - 1) :
            LET block == Newest(logDev[Place(index)])
            IN /\ block.epoch = epoch /\ block.index = index
               /\ index * PerBlock + Len(block.records) >= flushing
                  \/ Len(block.records) = PerBlock

SuperInv ==
    phase = "up" =>
        /\ oldest <= durable
        /\ \A super \in Survivors(superDev) :
              /\ super.epoch = epoch
              /\ oldest <= super.redo /\ super.redo <= durable

(* A client waits for its own record.                                      *)
CallInv ==
    phase = "up" => \A c \in Clients :
        call[c].op = "write" /\ call[c].at # "called" =>
            /\ 1 <= call[c].lsn /\ call[c].lsn <= End
            /\ Has(call[c].lsn) =>
                  SlotOf(call[c].lsn) = [key |-> call[c].key, value |-> call[c].value]

(* The page of a client that is about to change it has all before that.  A *)
(* checkpoint has waited for clients from before.                          *)
LatchInv ==
    phase = "up" => \A c \in Clients :
        Writes(c, "logged") =>
            LET k == call[c].key
                n == call[c].lsn
            IN /\ page[k].lsn < n
               /\ n > IF checkpoint.at \in {"idle", "sweep"} THEN oldest ELSE checkpoint.begin
               /\ Complete(k, page[k], n - 1)
               /\ NoChange(k, n, End)
               /\ \A d \in Clients : Writes(d, "logged") /\ call[d].key = k => c = d

MemoryCompleteInv ==
    phase = "up" =>
        /\ AllPages(Valid)
        /\ \A k \in Keys : Latched(k) \/ Complete(k, page[k], End)

(* From the flush of the pages on, no page lacks a change from before the  *)
(* checkpoint began.                                                       *)
CheckpointInv ==
    LET begin == checkpoint.begin
        at    == checkpoint.at
    IN phase = "up" =>
          /\ begin <= End
          /\ at # "idle" => oldest <= begin
          /\ at \in {"forced", "written", "recorded"} =>
                /\ begin <= durable
                /\ \A k \in Keys : \A image \in Survivors(pageDev[k]) : Complete(k, image, begin)
          /\ at = "written" => Newest(superDev) = [epoch |-> epoch, redo |-> begin]
          /\ at = "recorded" => superDev = <<[epoch |-> epoch, redo |-> begin]>>

(* Between a crash and the end of recovery.                                *)
RestingInv ==
    phase # "up" =>
        /\ \A c \in Clients : call[c] = Idle
        /\ buffer = <<>> /\ durable = flushing /\ durable = BufferStart
        /\ \A p \in Places : Len(logDev[p]) = 1

OldBlocks(next) == \A p \in Places : Newest(logDev[p]).epoch < next

DownInv ==
    phase \in {"cut", "killed"} =>
        /\ durable = 0 /\ ~poisoned /\ checkpoint = Done /\ dirtied = Clean
        /\ Len(superDev) = 1 /\ \A k \in Keys : Len(pageDev[k]) = 1
        /\ OldBlocks(Super.epoch + 1) /\ AllImages(Valid)

(* Each page has what has been redone so far.                              *)
RedoInv ==
    phase = "redo" =>
        /\ Len(superDev) = 1 /\ Super.epoch = epoch - 1
        /\ Super.redo <= redone /\ redone <= ToRedoEnd /\ ToRedoEnd <= durable
        /\ OldBlocks(epoch) /\ checkpoint = Done /\ ~poisoned
        /\ AllImages(Valid) /\ AllPages(Valid)
        /\ \A k \in Keys : Complete(k, page[k], redone)

(* The log of the epoch before is needed until the new superblock is       *)
(* durable.  By then the images have all.                                  *)
OpeningInv ==
    phase = "opening" =>
        LET new == [epoch |-> epoch, redo |-> durable]
        IN /\ OldBlocks(epoch)
           /\ checkpoint.at # "idle" /\ checkpoint.begin = durable
           /\ \A super \in Survivors(superDev) : super.epoch = epoch - 1 \/ super = new
           /\ checkpoint.at \in {"sweep", "forced"} =>
                 \A super \in Survivors(superDev) : super.epoch < epoch
           /\ checkpoint.at = "written" => Newest(superDev) = new
           /\ checkpoint.at = "recorded" => superDev = <<new>>
           /\ superDev[1].epoch = epoch - 1 =>
                 HistoryEnd <= durable /\ AllImages(Valid) /\ AllPages(Valid)
           /\ \A k \in Keys : page[k].lsn <= durable /\ page[k].value = base[k]
           /\ checkpoint.at # "sweep" =>
                 /\ dirtied = Clean
                 /\ \A k \in Keys : \A image \in Survivors(pageDev[k]) : image.value = base[k]

(* While recovering, whatever is left on the device recovers to `base`.    *)
FindsAllInv ==
    phase # "up" =>
        \A super \in Survivors(superDev), pages \in AfterCrash(pageDev) :
            Recovered(NewestOf(logDev), pages, super) = base

IndInv ==
    /\ TypeInv /\ VerdictInv
    /\ LostInv /\ ImagesInv /\ RedoStartInv /\ LogKeptInv
    /\ DirtiedInv /\ CleanInv /\ RoomInv /\ BufferInv /\ TruthInv /\ DurableInv /\ FlightInv
    /\ WalRuleInv /\ SuperInv /\ BaseInv /\ CallInv /\ LatchInv /\ AckInv
    /\ MemoryInv /\ MemoryCompleteInv /\ CheckpointInv
    /\ RestingInv /\ DownInv /\ RedoInv /\ OpeningInv /\ FindsAllInv
=============================================================================
