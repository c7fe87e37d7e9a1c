--------------------------- MODULE IndWalRecovery ---------------------------
(***************************************************************************)
(* The inductive invariant of specs/proofs/Invariant.dfy, so that TLC      *)
(* checks it in the states that the models reach.                          *)
(*                                                                         *)
(* The proof has the history of the log as a variable.  Here its part      *)
(* after `base` is derived: the tail while the store is up, and nothing    *)
(* while it is not.  So what speaks of single records speaks of LiveLog,   *)
(* all records from `oldest` on.                                           *)
(***************************************************************************)
EXTENDS MCWalRecovery

SlotOf(n) == LiveLog[n - oldest]

(* No record in the live log after `from`, up to `to`, changes the key.    *)
NoChange(k, from, to) ==
    \A n \in (oldest + 1)..(oldest + Len(LiveLog)) :
        from < n /\ n <= to => SlotOf(n).key # k

Complete(k, image, n) == NoChange(k, image.lsn, n)

(* An image has the value of the record that it names, if the log still    *)
(* has that record.                                                        *)
Valid(k, image) ==
    /\ image.lsn <= End
    /\ oldest < image.lsn /\ image.lsn <= oldest + Len(LiveLog) =>
          SlotOf(image.lsn) = [key |-> k, value |-> image.value]

LostInv == poisoned \/ lost = NothingLost

ImagesInv ==
    phase = "up" => \A k \in Keys : \A image \in Survivors(pageDev[k]) : Valid(k, image)

(* The device has all changes before the first that counts as missing.     *)
DirtiedInv ==
    phase = "up" => \A k \in Keys :
        /\ dirtied[k] <= End
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
                           oldest < start + i /\ start + i <= oldest + Len(LiveLog) =>
                              block.records[i] = SlotOf(start + i)

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
            /\ oldest < call[c].lsn =>
                  SlotOf(call[c].lsn) = [key |-> call[c].key, value |-> call[c].value]

(* The page of a client that is about to change it has all before that.    *)
LatchInv ==
    phase = "up" => \A c \in Clients :
        Writes(c, "logged") =>
            LET k == call[c].key
                n == call[c].lsn
            IN /\ page[k].lsn < n
               /\ Complete(k, page[k], n - 1)
               /\ NoChange(k, n, End)
               /\ \A d \in Clients : Writes(d, "logged") /\ call[d].key = k => c = d

MemoryCompleteInv ==
    phase = "up" => \A k \in Keys :
        /\ Valid(k, page[k])
        /\ Latched(k) \/ Complete(k, page[k], End)

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
        /\ OldBlocks(Super.epoch + 1)

RedoInv ==
    phase = "redo" =>
        /\ Len(superDev) = 1 /\ Super.epoch = epoch - 1
        /\ Super.redo <= redone /\ redone <= ToRedoEnd /\ ToRedoEnd <= durable
        /\ OldBlocks(epoch) /\ checkpoint = Done /\ ~poisoned

OpeningInv ==
    phase = "opening" =>
        /\ OldBlocks(epoch)
        /\ checkpoint.at # "idle" /\ checkpoint.begin = durable
        /\ \A super \in Survivors(superDev) :
              \/ super.epoch = epoch - 1
              \/ super = [epoch |-> epoch, redo |-> durable]
        /\ checkpoint.at \in {"sweep", "forced"} =>
              \A super \in Survivors(superDev) : super.epoch < epoch
        /\ checkpoint.at = "recorded" => superDev = <<[epoch |-> epoch, redo |-> durable]>>

(* While recovering, whatever is left on the device recovers to `base`.    *)
FindsAllInv ==
    phase # "up" =>
        \A super \in Survivors(superDev), pages \in AfterCrash(pageDev) :
            Recovered(NewestOf(logDev), pages, super) = base

IndInv ==
    /\ TypeInv /\ verdict = "fine"
    /\ LostInv /\ ImagesInv /\ RedoStartInv /\ LogKeptInv
    /\ DirtiedInv /\ CleanInv /\ RoomInv /\ TruthInv /\ DurableInv /\ FlightInv
    /\ WalRuleInv /\ SuperInv /\ CallInv /\ LatchInv /\ AckInv
    /\ MemoryInv /\ MemoryCompleteInv /\ CheckpointInv
    /\ RestingInv /\ DownInv /\ RedoInv /\ OpeningInv /\ FindsAllInv
=============================================================================
