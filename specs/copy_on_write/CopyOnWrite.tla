---------------------------- MODULE CopyOnWrite -----------------------------
(***************************************************************************)
(* The copy-on-write page store, with the contents of its page table, and  *)
(* the superblock in two places: the "conventional page shadowing" of      *)
(* B⁻-tree §2.4 (ii) and §4.                                               *)
(*                                                                         *)
(* The paper has a sentence each: copy-on-write "must employ certain       *)
(* mechanisms (e.g., page mapping table) to keep track of the page         *)
(* location", and in the baseline "we persist the page table after each    *)
(* page flush".  It does not say what must be durable before what, nor     *)
(* when a slot that a page has left may be used again, nor what names the  *)
(* table.  The rules kept here:                                            *)
(*                                                                         *)
(*  1. What the table names is durable before the table is written, and is *)
(*     not written over while a crash may leave a table that names it      *)
(*     (NamedInv).                                                         *)
(*  2. Likewise for the snapshot that a superblock names (SnapshotInv) and *)
(*     the log from its redo start on (LogKeptInv).                        *)
(*  3. No slot has two owners in any table that a crash may leave          *)
(*     (OneOwnerInv); what recovery finds dead is struck off the table     *)
(*     before anything is written.                                         *)
(*  4. What recovery reads it writes again, unless it is durable for       *)
(*     another reason: a failed flush may have left it (Restart).          *)
(*                                                                         *)
(* FINDINGS.md has what goes wrong without each.                           *)
(*                                                                         *)
(* Left out: pages of several blocks, and so torn images: by rule 1 no     *)
(* table names one; several keys on a page, and so the contents of splits  *)
(* and merges (a put of a new key builds a page, a delete drops one); the  *)
(* log's blocks and epochs (WalRecovery); batches of pages; versions of    *)
(* pages, and a medium that rots (PageVersions); writes that are refused   *)
(* because the device is full; blocks of the table beyond those that the   *)
(* superblock counts.                                                      *)
(***************************************************************************)
EXTENDS CowPages

(* Bounds, for the wrapper.                                                *)
MayGet(c, p)      == TRUE
MayWrite(c, p, v) == TRUE
MayCheckpoint     == TRUE
MayCrash(n)       == TRUE
MayRestart(n)     == TRUE

-----------------------------------------------------------------------------
(* Clients.                                                                *)

CallGet(c) ==
    /\ Serving
    /\ ~Waits(c)
    /\ \E p \in Pages :
          /\ MayGet(c, p)
          /\ call' = [call EXCEPT ![c] = [op |-> "get", key |-> p, got |-> Pending]]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

CallWrite(c) ==
    /\ Serving
    /\ ~Waits(c)
    /\ \E p \in Pages, v \in {Len(log) + 1, Absent} \cap Contents :
          /\ MayWrite(c, p, v)
          /\ call' = [call EXCEPT ![c] =
                 [op |-> "write", key |-> p, value |-> v, at |-> "called", lsn |-> 0]]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

ReadPage(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ call' = [call EXCEPT ![c].got = page[call[c].key].value]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

AnswerGet(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got # Pending
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

WritesNow(c) == call[c].op = "write" /\ call[c].at = "called"

(* The record's append, and what the caller then waits for.                *)
Append_(c, kind) ==
    /\ log' = Append(log, [kind |-> kind, page |-> call[c].key, value |-> call[c].value])
    /\ call' = [call EXCEPT ![c].at = "waiting", ![c].lsn = Len(log) + 1]

NewContent(c) == [value |-> call[c].value, lsn |-> Len(log) + 1]

(* A put of a key that does not exist.  The name of a page is used again   *)
(* once the page that had it is freed.  engine/src/trees/btree/smo.rs.     *)
BuildPage(c) ==
    /\ Serving
    /\ WritesNow(c) /\ call[c].value # Absent
    /\ LET p == call[c].key
       IN /\ p \notin index
          /\ \A r \in retired : r.page # p
          /\ page' = [page EXCEPT ![p] = NewContent(c)]
          /\ index' = index \cup {p}
    /\ Append_(c, "build")
    /\ UNCHANGED <<persist, durable, oldest, table, free, retired, super>>
    /\ UNCHANGED <<stepVars, deviceVars, recoveryVars>>

(* Log record and page change under the page's latch, in one step.         *)
ChangePage(c) ==
    /\ Serving
    /\ WritesNow(c) /\ call[c].value # Absent
    /\ call[c].key \in index
    /\ page' = [page EXCEPT ![call[c].key] = NewContent(c)]
    /\ Append_(c, "put")
    /\ UNCHANGED <<persist, durable, oldest, index, table, free, retired, super>>
    /\ UNCHANGED <<stepVars, deviceVars, recoveryVars>>

(* A delete drops the page, whose slot is freed later (FreePage).  Of a    *)
(* key that does not exist, it is a record that changes nothing.           *)
DropPage(c) ==
    /\ Serving
    /\ WritesNow(c) /\ call[c].value = Absent
    /\ LET p == call[c].key
       IN /\ page' = [page EXCEPT ![p] = Gone]
          /\ index' = index \ {p}
          /\ retired' = IF p \in index
                        THEN retired \cup {[page |-> p, lsn |-> Len(log) + 1]} ELSE retired
    /\ Append_(c, "drop")
    /\ UNCHANGED <<persist, durable, oldest, table, free, super>>
    /\ UNCHANGED <<stepVars, deviceVars, recoveryVars>>

(* The log's flush, up to any record.                                      *)
CommitLog ==
    /\ Serving
    /\ \E n \in (durable + 1)..Len(log) : durable' = n
    /\ UNCHANGED <<persist, call, log, oldest, memoryVars, stepVars, deviceVars, recoveryVars>>

Acknowledge(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ call[c].at = "waiting"
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

(* After a failed flush no call can be completed.  Of a write that has     *)
(* been made, nobody knows whether it will survive.                        *)
FailCall(c) ==
    /\ phase = "up" /\ poisoned
    /\ Waits(c)
    /\ call' = [call EXCEPT ![c] =
           IF @.op = "write" /\ @.at = "waiting" /\ Bug # "refused-shows" THEN Unknown ELSE Refused]
    /\ UNCHANGED <<persist, logVars, memoryVars, stepVars, deviceVars, recoveryVars>>

-----------------------------------------------------------------------------
(* Checkpoint.  engine/src/store/checkpoint.rs.                            *)

At(step) == Serving /\ checkpoint.at = step

(* Redo will begin at the log's present end.                               *)
BeginCheckpoint ==
    /\ At("none")
    /\ MayCheckpoint
    /\ checkpoint' = [NoCheckpoint EXCEPT !.at = "sweep", !.begin = Len(log)]
    /\ UNCHANGED <<persist, call, logVars, memoryVars, writing, deviceVars, recoveryVars>>

(* A page that exists and whose image lacks a change up to `upTo`, since   *)
(* it was built.                                                           *)
Lacks(p, upTo) ==
    /\ p \in index
    /\ \E n \in (StoredLsn(p) + 1)..upTo :
          /\ log[n].page = p
          /\ \A m \in n..Len(log) : log[m].page = p => log[m].kind # "drop"

(* Every page with such a change has been written.  Which pages exist is   *)
(* written to a free slot.  engine/src/snapshot.rs.                        *)
WriteSnapshot ==
    /\ At("sweep")
    /\ \A p \in Pages : ~Lacks(p, checkpoint.begin) \/ Bug = "skips-sweep"
    /\ \E s \in Slots :
          /\ Take(s)
          /\ slotDev' = [slotDev EXCEPT ![s] = Append(@, Snapshot(super.number + 1, index))]
          /\ lost' = [lost EXCEPT !.slots = @ \ {s}]
          /\ free' = free \ {s}
          /\ checkpoint' = [checkpoint EXCEPT !.at = "snapshot", !.slot = s, !.upTo = Len(log)]
    /\ UNCHANGED <<persist, call, logVars, page, index, table, retired, super, writing>>
    /\ UNCHANGED <<tableDev, superDev, poisoned, recoveryVars>>

(* The table names the images written so far, durably.                     *)
(* CowStore::persist_table.                                                *)
PersistTable ==
    /\ At("snapshot")
    /\ writing = Quiet
    /\ DirtyBlocks = {} \/ Bug = "skips-table"
    /\ checkpoint' = [checkpoint EXCEPT !.at = "named"]
    /\ UNCHANGED <<persist, call, logVars, memoryVars, writing, deviceVars, recoveryVars>>

NewSuper ==
    [number |-> super.number + 1, redo |-> checkpoint.begin, snapshot |-> checkpoint.slot,
     made |-> super.number + 1]

(* The log is durable up to where the snapshot was taken, which may have a *)
(* page that only the log can build.  The device is flushed, and then the  *)
(* superblock is written to the place of the last but one.                 *)
WriteSuper ==
    /\ At("named")
    /\ checkpoint.upTo <= durable \/ Bug = "snapshot-before-log"
    /\ LET i       == PlaceOf(super.number + 1)
           flushed == Flushed(superDev, lost.super)
       IN /\ superDev' = [flushed EXCEPT ![i] = Append(@, NewSuper)]
          /\ lost' = [lost EXCEPT !.super = @ \ {i}]
    /\ IF Bug = "super-before-snapshot" THEN UNCHANGED <<slotDev, tableDev>>
       ELSE /\ slotDev' = Flushed(slotDev, lost.slots)
            /\ tableDev' = Flushed(tableDev, lost.table)
    /\ checkpoint' = [checkpoint EXCEPT !.at = "recorded"]
    /\ UNCHANGED <<persist, call, logVars, memoryVars, writing, poisoned, recoveryVars>>

(* The superblock is flushed.  The snapshot before it is free, and the log *)
(* before its redo start is given up.                                      *)
FinishCheckpoint ==
    /\ At("recorded")
    /\ LET left == {super.snapshot} \ {checkpoint.slot}
       IN IF Bug = "frees-before-super"
          THEN /\ slotDev' = Trimmed(slotDev, left)
               /\ free' = free \cup left
               /\ UNCHANGED <<tableDev, superDev>>
          ELSE /\ slotDev' = Trimmed(Flushed(slotDev, lost.slots), left)
               /\ tableDev' = Flushed(tableDev, lost.table)
               /\ superDev' = Flushed(superDev, lost.super)
               /\ free' = free \cup left
    /\ lost' = [lost EXCEPT !.slots = @ \ ToTrim({super.snapshot})]
    /\ super' = NewSuper
    /\ oldest' = checkpoint.begin
    /\ checkpoint' = NoCheckpoint
    /\ UNCHANGED <<persist, call, log, durable, page, index, table, retired, writing, poisoned>>
    /\ UNCHANGED recoveryVars

-----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

(* Of the log, the durable records survive and any number of those behind. *)
CutLog ==
    \E n \in durable..Len(log) : log' = SubSeq(log, 1, n) /\ durable' = n

(* What is in memory once superblock, snapshot and table are read.         *)
Reads(slots, blocks, chosen) ==
    /\ super' = chosen
    /\ index' = PagesOf(slots, chosen)
    /\ table' = TableOf(blocks)
    /\ page' = [p \in Pages |-> ImageAt(slots, table'[p], p)]
    /\ free' = Slots \ (NamedBy(table') \cup {chosen.snapshot})
    /\ oldest' = chosen.redo
    /\ redone' = chosen.redo

ForgetMemory ==
    /\ call' = [c \in Clients |-> Idle]
    /\ retired' = {}
    /\ writing' = Quiet /\ checkpoint' = NoCheckpoint
    /\ poisoned' = FALSE
    /\ crashes' = crashes + 1
    /\ UNCHANGED persist

(* The power fails, at any time, also during recovery: each place is left  *)
(* with any of its versions, independently of the others.                  *)
Crash ==
    /\ MayCrash(crashes)
    /\ CutLog
    /\ \E slots \in Left(slotDev), blocks \in Left(tableDev), supers \in LeftSupers :
          /\ Reads(slots, blocks, Chosen(supers))
          /\ slotDev' = AllDurably(slots)
          /\ tableDev' = AllDurably(blocks)
          /\ superDev' = AllDurably(supers)
    /\ lost' = NothingLost
    /\ ForgetMemory
    /\ phase' = "cut"

(* The process is restarted without a power failure.  What it reads is not *)
(* therefore durable, and after a failed flush a flush does not make it    *)
(* so.  So both superblocks and the table are written again, unchanged,    *)
(* before a slot is used again.  The images and the snapshot that they     *)
(* name were flushed before they were written.  A crash meanwhile is like  *)
(* one before it, since nothing new is written.                            *)
(* CowStore::repair, Superblock::rewrite.                                  *)
Restart ==
    /\ MayRestart(crashes)
    /\ CutLog
    /\ LET supers      == NewestOf(superDev)
           trusts      == Bug = "trusts-what-it-reads"
           lostTable   == IF Bug = "trusts-table" \/ trusts THEN lost.table ELSE {}
           lostSupers  == IF Bug = "trusts-superblock" \/ trusts THEN lost.super ELSE {}
       IN /\ Reads(NewestOf(slotDev), NewestOf(tableDev), Chosen(supers))
          /\ IF Bug = "restart-skips-flush"
             THEN UNCHANGED <<slotDev, tableDev, superDev, lost>>
             ELSE /\ slotDev' = Flushed(slotDev, lost.slots)
                  /\ tableDev' = Flushed(tableDev, lostTable)
                  /\ superDev' = Flushed(superDev, lostSupers)
                  /\ lost' = [slots |-> lost.slots, table |-> lostTable, super |-> lostSupers]
    /\ ForgetMemory
    /\ phase' = "killed"

Redoing == phase \in {"cut", "killed"} /\ ~poisoned

(* A record is redone on its page, unless the page has it already.  Pages  *)
(* may be written meanwhile.                                               *)
RedoRecord ==
    /\ Redoing
    /\ redone < Len(log)
    /\ LET n      == redone + 1
           record == log[n]
       IN /\ page' = [page EXCEPT ![record.page] = RedoOne(@, record, n)]
          /\ index' = Reindexed(index, record)
    /\ redone' = redone + 1
    /\ UNCHANGED <<persist, call, logVars, table, free, retired, super>>
    /\ UNCHANGED <<stepVars, deviceVars, phase, crashes>>

(* Pages that do not exist at the log's end are struck off the table.      *)
(* Their slots are not used before the table is written.  CowStore::       *)
(* set_live.                                                               *)
FinishRedo ==
    /\ Redoing
    /\ redone = Len(log) \/ Bug = "stops-redo-early"
    /\ writing = Quiet
    /\ page' = [p \in Pages |-> IF p \in index THEN page[p] ELSE Gone]
    /\ table' = [p \in Pages |-> IF p \in index THEN table[p] ELSE NoSlot]
    /\ LET dead == {table[p] : p \in Pages \ index}
           left == IF Bug = "reuses-dead" THEN Some(dead)
                   ELSE Some(dead) \ Persisted
       IN /\ slotDev' = Trimmed(slotDev, left)
          /\ lost' = [lost EXCEPT !.slots = @ \ ToTrim(left)]
          /\ free' = free \cup left
    /\ phase' = IF Bug = "reuses-dead" THEN "up" ELSE "clearing"
    /\ redone' = 0
    /\ UNCHANGED <<persist, call, logVars, index, retired, super, stepVars>>
    /\ UNCHANGED <<tableDev, superDev, poisoned, crashes>>

Open ==
    /\ phase = "clearing" /\ ~poisoned
    /\ writing = Quiet
    /\ DirtyBlocks = {}
    /\ phase' = "up"
    /\ UNCHANGED <<persist, call, logVars, memoryVars, stepVars, deviceVars, redone, crashes>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ ReadPage(c) \/ AnswerGet(c)
          \/ CallWrite(c) \/ BuildPage(c) \/ ChangePage(c) \/ DropPage(c)
          \/ Acknowledge(c) \/ FailCall(c)
    \/ CommitLog
    \/ \E p \in Pages : WriteImage(p) \/ FreePage(p)
    \/ NameImage \/ WriteTable \/ FinishTable
    \/ FlushDevice \/ FailFlush
    \/ BeginCheckpoint \/ WriteSnapshot \/ PersistTable \/ WriteSuper \/ FinishCheckpoint
    \/ Crash \/ Restart \/ RedoRecord \/ FinishRedo \/ Open

Spec == Init /\ [][Next]_vars

(* Fairness, so that clients are answered, checkpoints end, and so does    *)
(* recovery: every step except the optional ones.                          *)
ClientFairness ==
    \A c \in Clients :
        /\ WF_vars(ReadPage(c) \/ AnswerGet(c))
        /\ WF_vars(BuildPage(c) \/ ChangePage(c) \/ DropPage(c) \/ Acknowledge(c))
        /\ WF_vars(FailCall(c))

LogFairness == WF_vars(CommitLog)

PageFairness ==
    /\ \A p \in Pages : WF_vars(WriteImage(p)) /\ WF_vars(FreePage(p))
    /\ WF_vars(NameImage) /\ WF_vars(FinishTable)

TableFairness == WF_vars(WriteTable)

CheckpointFairness ==
    WF_vars(WriteSnapshot \/ PersistTable \/ WriteSuper \/ FinishCheckpoint)

RecoveryFairness == WF_vars(RedoRecord \/ FinishRedo \/ Open)

FairSpec ==
    /\ Spec
    /\ ClientFairness /\ LogFairness /\ PageFairness /\ TableFairness
    /\ CheckpointFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* The client of a record that is not durable still waits, unless a flush  *)
(* has failed.                                                             *)
AckInv ==
    \A n \in (durable + 1)..Len(log) :
        \/ poisoned
        \/ \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* No image on the device overtakes its log record.                        *)
WalRuleInv ==
    \A s \in Slots : \A block \in Survivors(slotDev[s]) :
        block.is = "image" => block.lsn <= durable

(* Memory is what the log describes.                                       *)
MemoryInv ==
    phase = "up" =>
        /\ [p \in Pages |-> page[p].value] = MapAfter(Len(log))
        /\ index = {p \in Pages : page[p] # Gone}

(* The table's image of a page that is clean is the page.                  *)
CleanInv ==
    \A p \in Pages :
        page[p] # Gone /\ ~IsDirty(p) => ImageAt(NewestOf(slotDev), table[p], p) = page[p]

(* A slot that a table names, in whatever version a crash may leave of a   *)
(* block: an image of that page, on the medium, and no other version.      *)
NamedInv ==
    \A b \in Blocks : \A entries \in Survivors(tableDev[b]) : \A p \in PagesIn(b) :
        entries[p] # NoSlot =>
            /\ Len(slotDev[entries[p]]) = 1
            /\ Newest(slotDev[entries[p]]).is = "image"
            /\ Newest(slotDev[entries[p]]).page = p

(* The snapshot of whichever superblock recovery would choose: likewise.   *)
SnapshotInv ==
    \A chosen \in MayChoose :
        /\ chosen.number # 0
        /\ Len(slotDev[chosen.snapshot]) = 1
        /\ Newest(slotDev[chosen.snapshot]).is = "snapshot"
        /\ Newest(slotDev[chosen.snapshot]).number = chosen.made

(* The log that it needs has not been given up.                            *)
LogKeptInv == \A chosen \in MayChoose : oldest <= chosen.redo

(* Without a tear both superblocks can be read, one written right after    *)
(* the other: what Superblock::load demands.                               *)
ConsecutiveInv ==
    ~Tears =>
        \A supers \in LeftSupers :
            /\ \A i \in SuperPlaces : supers[i].number % 2 = i
            /\ \/ supers[0].number = supers[1].number + 1
               \/ supers[1].number = supers[0].number + 1

(* What whichever tables and superblock a crash may leave name.            *)
Reachable ==
    Some(UNION {{entries[p] : p \in DOMAIN entries} :
                   entries \in UNION {Survivors(tableDev[b]) : b \in Blocks}})
    \cup {chosen.snapshot : chosen \in MayChoose}

(* What is free is out of reach of any recovery, and of any step ...       *)
FreeInv ==
    /\ free \cap Reachable = {}
    /\ free \cap NamedBy(table) = {}

(* ... and everything else is in use: no slot is lost.                     *)
InUse ==
    NamedBy(table) \cup Persisted \cup {super.snapshot} \cup Some({checkpoint.slot})
    \cup (IF writing.at = "image" THEN {writing.slot} ELSE {})
    \cup (IF writing.at = "table" THEN writing.left ELSE {})

LeakInv == ~poisoned => free \cup InUse = Slots

(* A page that does not exist has no slot, unless it is retired: then it   *)
(* gives the slot back.                                                    *)
DeadInv ==
    phase = "up" =>
        \A p \in Pages :
            table[p] # NoSlot \/ (writing.at = "image" /\ writing.page = p) =>
                p \in index \/ \E r \in retired : r.page = p

(* No slot has two owners, whichever versions of the blocks a crash        *)
(* leaves.                                                                 *)
OneOwnerInv ==
    \A p, q \in Pages : p # q =>
        \A s \in Some({entries[p] : entries \in Survivors(tableDev[BlockOf(p)])}) :
            /\ s \notin {entries[q] : entries \in Survivors(tableDev[BlockOf(q)])}
            /\ s \notin {chosen.snapshot : chosen \in MayChoose}

(* Whatever a crash leaves, redo makes of it what the durable log says.    *)
RecoverableInv ==
    \A chosen \in MayChoose, p \in Pages :
        \A entries \in Survivors(tableDev[BlockOf(p)]) :
            LET slots == NewestOf(slotDev)
            IN RedoFrom(p, ImageAt(slots, entries[p], p), p \in PagesOf(slots, chosen),
                        chosen.redo + 1, durable) = ValueAt(p, durable)

(* During recovery: the rest of the log makes memory what it describes.    *)
RecoveredInv ==
    phase # "up" => \A p \in Pages :
        RedoFrom(p, page[p], p \in index, IF phase = "clearing" THEN Len(log) + 1 ELSE redone + 1,
                 Len(log)) = ValueAt(p, Len(log))

(* A power cut leaves one version of each block.                           *)
CutProp ==
    [][phase' = "cut" /\ crashes' # crashes =>
           Unflushed(slotDev') = {} /\ Unflushed(tableDev') = {} /\ Unflushed(superDev') = {}]_vars

(* After a failed flush, what was written is in doubt, and until the next  *)
(* start nothing is written, and no slot is taken or given up.             *)
PoisonedProp ==
    [][/\ poisoned /\ crashes' = crashes =>
             UNCHANGED <<memoryVars, stepVars, deviceVars, oldest>>
       /\ ~poisoned /\ poisoned' => lost' # NothingLost
       /\ crashes' # crashes => ~poisoned']_vars

(* What is written is lost no longer.                                      *)
WrittenProp ==
    [][/\ \A s \in Slots : Len(slotDev'[s]) > Len(slotDev[s]) => s \notin lost'.slots
       /\ \A b \in Blocks : Len(tableDev'[b]) > Len(tableDev[b]) => b \notin lost'.table
       /\ \A i \in DOMAIN superDev :
             Len(superDev'[i]) > Len(superDev[i]) => i \notin lost'.super]_vars

(* But for a crash, no page goes back, and the redo start moves only       *)
(* forward.                                                                *)
OnwardProp ==
    [][crashes' = crashes =>
           /\ \A p \in Pages : page'[p].lsn >= page[p].lsn \/ page'[p] = Gone
           /\ oldest' >= oldest /\ durable' >= durable]_vars

(* Nothing is done for nothing: a block of the table is written only if it *)
(* differs.                                                                *)
EconomyProp ==
    [][crashes' = crashes => \A b \in Blocks :
           Len(tableDev'[b]) > Len(tableDev[b]) =>
               Newest(tableDev'[b]) # Newest(tableDev[b])]_vars

(* Where trims act, a slot is given up trimmed.  At a start, what nothing   *)
(* names is free as it is.                                                 *)
FreedProp ==
    [][crashes' = crashes =>
           \A s \in ToTrim(free' \ free) : Newest(slotDev'[s]) = Zeros]_vars

(* Liveness: every call is answered, unless a crash comes between.         *)
AnsweredProp == \A c \in Clients : Waits(c) ~> ~Waits(c)

RecoveredProp == phase # "up" /\ ~poisoned ~> phase = "up" \/ poisoned

CheckpointedProp ==
    checkpoint.at # "none" ~> checkpoint.at = "none" \/ poisoned

-----------------------------------------------------------------------------
(* The contract: the durable map, then what is in the log beyond it.       *)

WriterOf(n) ==
    IF \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    THEN CHOOSE c \in Clients : call[c].op = "write" /\ call[c].lsn = n
    ELSE "nobody"

AbstractTail ==
    [i \in 1..(Len(log) - durable) |->
        [by |-> WriterOf(durable + i), key |-> log[durable + i].page,
         value |-> log[durable + i].value]]

AbstractCall ==
    [c \in Clients |->
        IF call[c].op = "write"
        THEN [op |-> "write", key |-> call[c].key, value |-> call[c].value,
              done |-> call[c].at # "called"]
        ELSE call[c]]

(* Recovery begins in the step that ends the life before.                  *)
AbstractPhase == IF phase = "clearing" THEN "opening" ELSE phase

Contract == INSTANCE DurableMap WITH
    Keys <- Pages, base <- MapAfter(durable), tail <- AbstractTail, call <- AbstractCall,
    phase <- AbstractPhase

THEOREM Spec => Contract!Spec
=============================================================================
