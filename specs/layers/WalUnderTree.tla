---------------------------- MODULE WalUnderTree ----------------------------
(***************************************************************************)
(* WalRecovery under a tree that buffers changes as PageHistory allows:    *)
(* each change is kept above its page, and the page gets it later, at any  *)
(* time, or when a checkpoint needs it.                                    *)
(*                                                                         *)
(* The log keeps its contract under this tree.  So it does under any that  *)
(* keeps PageHistory.                                                      *)
(***************************************************************************)
EXTENDS WalRecovery

VARIABLE
    kept        \* the changes above each page, oldest first: LSN and value

allVars == <<vars, kept>>

InitKept == Init /\ kept = [k \in Keys |-> <<>>]

LastOf(changes) == changes[Len(changes)]

(* The value that the tree has, above the page or in it.                   *)
Says(k) == IF kept[k] = <<>> THEN page[k].value ELSE LastOf(kept[k]).value

ReadTree(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ ~Latched(call[c].key)
    /\ call' = [call EXCEPT ![c].got = Says(call[c].key)]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars, kept>>

(* In place of ChangePage.                                                 *)
KeepChange(c) ==
    /\ Writes(c, "logged")
    /\ AwaitFlush(c)
    /\ kept' = [kept EXCEPT ![call[c].key] =
                   Append(@, [lsn |-> call[c].lsn, value |-> call[c].value])]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>

(* The page gets all changes.  It lacks them on the device, from the first *)
(* on.                                                                     *)
Merge(k) ==
    /\ phase = "up" /\ ~poisoned
    /\ kept[k] # <<>> /\ ~Latched(k)
    /\ page' = [page EXCEPT ![k] = LastOf(kept[k])]
    /\ dirtied' = [dirtied EXCEPT ![k] =
                      IF @ # 0 THEN @
                      ELSE IF Bug = "dirty-since-newest" THEN LastOf(kept[k]).lsn
                      ELSE Head(kept[k]).lsn]
    /\ kept' = [kept EXCEPT ![k] = <<>>]
    /\ UNCHANGED <<clientVars, logVars, recoveryVars, deviceVars, observerVars>>

(* A checkpoint waits until nothing is kept from before it began.          *)
FlushMerged ==
    /\ FlushPages
    /\ \/ \A k \in Keys : kept[k] # <<>> => Head(kept[k]).lsn > checkpoint.begin
       \/ Bug = "checkpoint-skips-buffered"
    /\ UNCHANGED kept

EndLife == (Crash \/ Restart) /\ kept' = [k \in Keys |-> <<>>]

NextUnderTree ==
    \/ /\ \/ \E c \in Clients :
                \/ CallGet(c) \/ AnswerGet(c) \/ CallWrite(c) \/ AppendLog(c) \/ FlushLog(c)
                \/ Acknowledge(c) \/ ReportFailure(c)
          \/ CompleteFlush \/ FailFlush
          \/ \E k \in Keys : WriteBack(k) \/ Reload(k)
          \/ BeginCheckpoint \/ WriteSuperblock \/ FlushSuperblock \/ TruncateLog
          \/ LoadSuperblock \/ RedoRecord \/ FinishRedo \/ FinishRecovery
       /\ UNCHANGED kept
    \/ \E c \in Clients : ReadTree(c) \/ KeepChange(c)
    \/ \E k \in Keys : Merge(k)
    \/ FlushMerged
    \/ EndLife

SpecUnderTree == InitKept /\ [][NextUnderTree]_allVars

-----------------------------------------------------------------------------
(* The tree holds all writes and nothing else (MemoryInv).                 *)
TreeInv ==
    phase = "up" =>
        LET current == Apply(base, Tail_)
        IN \A k \in Keys : Latched(k) \/ Says(k) = current[k]

(* What was logged for a page and is kept above it, or on the way there.   *)
KeptAbove(k) ==
    {kept[k][i].lsn : i \in DOMAIN kept[k]}
    \cup {call[c].lsn : c \in {d \in Clients : Writes(d, "logged") /\ call[d].key = k}}

History == INSTANCE PageHistory WITH
    Pages <- Keys,
    up    <- phase = "up",
    lsn   <- [k \in Keys |-> page[k].lsn],
    lacks <- [k \in Keys |-> KeptAbove(k)],
    redo  <- Newest(superDev).redo

THEOREM SpecUnderTree => Contract!Spec /\ History!Spec
=============================================================================
