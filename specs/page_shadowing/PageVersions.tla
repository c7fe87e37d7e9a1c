---------------------------- MODULE PageVersions ----------------------------
(***************************************************************************)
(* PageShadowing on a medium that decays: every page has a *version*, the  *)
(* LSN of its newest image, including its differences.                     *)
(*                                                                         *)
(* B⁻-tree §3.1 finds the valid slot by its checksum and its LSN: the      *)
(* newest of those that read whole.  A block that decays, or a write that  *)
(* the drive lost, makes the newest image unreadable and leaves the one    *)
(* before it, or the base without its differences: whole, but old.  If     *)
(* discards do nothing, there always is one (FINDINGS.md, PageVersions 1). *)
(*                                                                         *)
(*   in memory    the version of every page; exact once an image of the    *)
(*                page was written, or read and accepted                   *)
(*   snapshot     the versions at a checkpoint, durable with the redo      *)
(*                start: after a start, all that is known                  *)
(*                                                                         *)
(* After a start, a page that the log does not name after the redo start   *)
(* must have exactly its version.  If the log names it, the version is a   *)
(* lower bound: it may have been written since, and redo repeats whatever  *)
(* the image lacks.  In neither case is an image newer than the log's end. *)
(* A page that fails these checks is reported (`told`): it is damaged, and *)
(* nothing is answered from it.  A log block that is not whole is ignored: *)
(* the version shows that the page lacks something.                        *)
(*                                                                         *)
(* engine/src/pages/versioned.rs.                                          *)
(*                                                                         *)
(* Left out: repair, after which a damaged page may be answered from       *)
(* again; decay of superblock, snapshot and redo log, which have checksums *)
(* and no older version that could be mistaken for them, except for the    *)
(* log's end (FindEndEarly).                                               *)
(***************************************************************************)
EXTENDS PageShadowing

CONSTANTS
    Rotten      \* the content of a block that is no longer valid

VARIABLES
    version,    \* of each page: the LSN of its newest image, or a lower bound
    exact,      \* the pages of which it is that LSN
    snapshot,   \* on the device, with the redo start: the versions then
    taken,      \* the checkpoint in progress: what it is going to record
    told,       \* the pages that were found to be damaged since the last start
    spoilt      \* number of blocks that decayed, and of writes that were lost

versionVars == <<version, exact, snapshot, taken, told, spoilt>>

(* Bounds, for the wrapper.                                                *)
MayRot(n)       == TRUE
MayBecome(kind) == TRUE
MayLoseEnd(n)   == TRUE

NotTaken == [at |-> "none"]

Taken == [at : {"taken"}, redoStart : Lsns, versions : [Pages -> Lsns]]

VersionTypeInv ==
    /\ version \in [Pages -> Lsns] /\ exact \in SUBSET Pages
    /\ snapshot \in [Pages -> Lsns]
    /\ taken \in {NotTaken} \cup Taken
    /\ told \in SUBSET Pages
    /\ spoilt \in Nat

VersionInit ==
    /\ Init
    /\ version = [p \in Pages |-> 0] /\ exact = Pages
    /\ snapshot = [p \in Pages |-> 0] /\ taken = NotTaken
    /\ told = {} /\ spoilt = 0

-----------------------------------------------------------------------------
(* Which image is accepted.                                                *)

(* As published: any image that is whole.  If there is none, the page was  *)
(* never written, or the log has all of it; else it is damaged.            *)
AnyImage(p, blocks) ==
    \/ Found(p, blocks).image.lsn # 0
    \/ p \notin exact
    \/ version[p] = 0

Accepts(p, blocks) ==
    LET lsn == Found(p, blocks).image.lsn
    IN IF Bug = "any-image-will-do" THEN AnyImage(p, blocks)
       ELSE /\ IF p \in exact \/ Bug = "bound-for-exact"
               THEN lsn = version[p] ELSE version[p] <= lsn
            /\ lsn <= Len(log) \/ Bug = "believes-the-future"

-----------------------------------------------------------------------------
(* Steps that have nothing to do with versions.                            *)

SameVersions == UNCHANGED versionVars

Ask(c) == (CallGet(c) \/ CallWrite(c)) /\ SameVersions

LookAtPage(c) == ReadPage(c) /\ SameVersions

GiveAnswer(c) == (AnswerGet(c) \/ Acknowledge(c)) /\ SameVersions

Change(c) == ChangePage(c) /\ SameVersions

Commit == CommitLog /\ SameVersions

Discard(p) == Trim(p) /\ SameVersions

Flush == (FlushDevice \/ FailFlush) /\ SameVersions

Redo == RedoRecord /\ SameVersions

(* A client whose page is damaged gets an error, and nothing has happened. *)
Refuse(c) ==
    /\ phase = "up" /\ Serving
    /\ \/ call[c].op = "get" /\ call[c].got = Pending
       \/ call[c].op = "write" /\ (call[c].at = "called" \/ Bug = "refused-shows")
    /\ PageOf(call[c].key) \in told
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ UNCHANGED <<logVars, mem, valid, deviceVars, recoveryVars, versionVars>>

-----------------------------------------------------------------------------
(* Steps that set a version, or check it.                                  *)

(* The write of an image, or of its differences, has returned.             *)
WriteBack(p) ==
    /\ WriteDelta(p) \/ WriteWhole(p)
    /\ version' = [version EXCEPT ![p] = mem[p].lsn]
    /\ exact' = exact \cup {p}
    /\ UNCHANGED <<snapshot, taken, told, spoilt>>

(* A page is evicted, and its version stays: what is loaded later must be  *)
(* what was written last.                                                  *)
Drop(p) ==
    /\ Evict(p)
    /\ IF Bug = "forgets-version"
       THEN /\ version' = [version EXCEPT ![p] = snapshot[p]]
            /\ exact' = exact \ {p}
       ELSE UNCHANGED <<version, exact>>
    /\ UNCHANGED <<snapshot, taken, told, spoilt>>

(* A page is read and accepted.  From then on its version is exact, also   *)
(* in redo: records that were redone would not be redone on an older       *)
(* image.                                                                  *)
Accept(p) ==
    /\ p \notin told
    /\ \E blocks \in Read(dev[p]) : Accepts(p, blocks) /\ LoadAs(p, blocks)
    /\ version' = [version EXCEPT ![p] = mem'[p].lsn]
    /\ exact' = exact \cup {p}
    /\ UNCHANGED <<snapshot, taken, told, spoilt>>

(* Or it is not accepted, until the next start.  If redo needs the page,   *)
(* recovery ends: the store does not open.                                 *)
Tell(p) ==
    /\ Serving
    /\ ~IsIn(p) /\ p \notin told
    /\ \E blocks \in Read(dev[p]) : ~Accepts(p, blocks)
    /\ told' = told \cup {p}
    /\ UNCHANGED <<call, logVars, mem, valid, deviceVars, recoveryVars>>
    /\ UNCHANGED <<version, exact, snapshot, taken, spoilt>>

-----------------------------------------------------------------------------
(* A checkpoint.  The versions are taken before the flush begins: of those *)
(* images it is then sure that they are durable.  What is written while    *)
(* the snapshot is on its way does not touch them (PageShadowing).         *)

BeginCheckpoint ==
    /\ phase = "up" /\ Serving
    /\ taken = NotTaken
    /\ redoStart < Swept
    /\ taken' = [at |-> "taken", redoStart |-> Swept, versions |-> version]
    /\ IF Bug = "snapshots-late"
       THEN DeviceFlush /\ valid' = AfterFlush(valid)
       ELSE UNCHANGED <<dev, valid>>
    /\ UNCHANGED <<call, logVars, mem, lost, poisoned, recoveryVars>>
    /\ UNCHANGED <<version, exact, snapshot, told, spoilt>>

EndCheckpoint ==
    /\ phase = "up" /\ Serving
    /\ taken # NotTaken
    /\ redoStart' = taken.redoStart
    /\ taken' = NotTaken
    /\ IF Bug = "snapshots-late"
       THEN snapshot' = version /\ UNCHANGED <<dev, valid>>
       ELSE /\ snapshot' = taken.versions
            /\ DeviceFlush /\ valid' = AfterFlush(valid)
    /\ UNCHANGED <<call, log, durable, mem, lost, poisoned, recoveryVars>>
    /\ UNCHANGED <<version, exact, told, spoilt>>

-----------------------------------------------------------------------------
(* Starts.                                                                 *)

(* The pages that are newer than a log which ends here.                    *)
Beyond(end) ==
    IF Bug = "judges-end-late" THEN {} ELSE {p \in Pages : snapshot[p] > end}

(* What is known of versions then.  A version after the log's end proves   *)
(* that the end is wrong.  That is reported at once: the log grows again,  *)
(* and whoever first loads the page later would find nothing wrong.        *)
FromSnapshot ==
    /\ version' = snapshot
    /\ exact' = {p \in Pages : ~Named(p)}
    /\ told' = Beyond(durable')
    /\ taken' = NotTaken
    /\ UNCHANGED snapshot

LosePower == Crash /\ FromSnapshot /\ UNCHANGED spoilt

StartAgain == Restart /\ FromSnapshot /\ UNCHANGED spoilt

(* All pages that the log names have been read: all versions are exact.    *)
(* A page that is newer than the log proves that its end is wrong.  The    *)
(* store is not opened then: LSNs would be given out twice, and after the  *)
(* next crash nothing would show it.                                       *)
EndRedo == Beyond(durable) = {} /\ FinishRedo /\ SameVersions

-----------------------------------------------------------------------------
(* Rot.                                                                    *)

(* A block that is not whole: a slot fails its checksum, the log block is  *)
(* passed over.                                                            *)
NotWhole(spot) ==
    CASE spot = Log  -> Delta(0, 0, [i \in {1} |-> Rotten])
      [] spot[2] = 1 -> [lsn |-> 0, all |-> [i \in Segments |-> Rotten]]
      [] OTHER       -> Rotten

(* What a block may turn into: not whole; the log block reads as zeros; or *)
(* a write was lost, so the old content remains, and the flush succeeds.   *)
Spoils(spot, place) ==
    (IF MayBecome("not-whole") THEN {NotWhole(spot)} ELSE {})
    \cup (IF MayBecome("zeros") /\ spot = Log THEN {Trimmed} ELSE {})
    \cup (IF MayBecome("older") /\ Len(place) > 1 THEN {place[Len(place) - 1]} ELSE {})

(* At any time, also in recovery.                                          *)
Rot(p) ==
    /\ MayRot(spoilt)
    /\ \E spot \in Spots : \E block \in Spoils(spot, dev[p][spot]) :
          /\ dev[p][spot] # Durably(block)
          /\ dev' = [dev EXCEPT ![p][spot] = Durably(block)]
    /\ spoilt' = spoilt + 1
    /\ UNCHANGED <<call, logVars, mem, valid, lost, poisoned, recoveryVars>>
    /\ UNCHANGED <<version, exact, snapshot, taken, told>>

(* After a crash the redo log's end is found too early: a block of it has  *)
(* decayed, or the superblock is an older one, and its protection failed.  *)
(* Then writes are lost, which the log must report (WalRecovery); but no   *)
(* page may be accepted from a future that the log does not know of,       *)
(* because LSNs are given out again.                                       *)
FindEndEarly ==
    /\ MayLoseEnd(spoilt)
    /\ phase # "up" /\ redone = redoStart
    /\ told = {} /\ \A p \in Pages : ~IsIn(p) /\ valid[p] = Unknown
    /\ \E n \in redoStart..(durable - 1) : log' = SubSeq(log, 1, n) /\ durable' = n
    /\ FromSnapshot
    /\ spoilt' = spoilt + 1
    /\ UNCHANGED <<call, redoStart, mem, valid, deviceVars, recoveryVars>>

-----------------------------------------------------------------------------
VersionNext ==
    \/ \E c \in Clients :
          Ask(c) \/ LookAtPage(c) \/ GiveAnswer(c) \/ Change(c) \/ Refuse(c)
    \/ Commit
    \/ \E p \in Pages :
          WriteBack(p) \/ Discard(p) \/ Drop(p) \/ Accept(p) \/ Tell(p) \/ Rot(p)
    \/ Flush \/ BeginCheckpoint \/ EndCheckpoint
    \/ LosePower \/ StartAgain \/ Redo \/ EndRedo
    \/ FindEndEarly

VersionSpec == VersionInit /\ [][VersionNext]_<<vars, versionVars>>

(* Fairness, as in PageShadowing; damage is found and clients are told.    *)
FairVersionSpec ==
    /\ VersionSpec
    /\ \A c \in Clients :
          WF_<<vars, versionVars>>(LookAtPage(c) \/ GiveAnswer(c) \/ Change(c) \/ Refuse(c))
    /\ \A p \in Pages : WF_<<vars, versionVars>>(Accept(p) \/ Tell(p))
    /\ WF_<<vars, versionVars>>(Commit)
    /\ WF_<<vars, versionVars>>(Redo \/ EndRedo)

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

(* What is answered is the newest write, or an error: memory has what the  *)
(* log says, and so has whatever would be accepted; in redo, once the      *)
(* remaining records are done.                                             *)
IsNewest(p, image) ==
    IF phase = "up" THEN image.values = PageAt(p, Len(log))
    ELSE RedoFrom(p, image, redone + 1).values = PageAt(p, Len(log))

NeverOldInv ==
    \A p \in Pages :
        IF IsIn(p) THEN IsNewest(p, ImageOf(mem[p]))
        ELSE p \in told \/ \A blocks \in Read(dev[p]) :
                 Accepts(p, blocks) => IsNewest(p, Found(p, blocks).image)

(* Nothing counts as damaged unless a block decayed: a torn write does     *)
(* not.                                                                    *)
NeverToldWithoutRotInv ==
    spoilt = 0 =>
        \A p \in Pages :
            /\ p \notin told
            /\ IsIn(p) \/ \A blocks \in Read(dev[p]) : Accepts(p, blocks)

(* No crash leaves less than the snapshot says.                            *)
SnapshotInv ==
    spoilt = 0 =>
        \A p \in Pages : \A blocks \in Left(dev[p]) :
            snapshot[p] <= ReadBoth(AsRead(blocks)).image.lsn

(* Versions are what they claim to be; for all pages when the store is up. *)
VersionInv ==
    /\ phase = "up" => exact \cup told = Pages
    /\ spoilt = 0 =>
        \A p \in Pages : \A blocks \in Read(dev[p]) :
            LET lsn == Found(p, blocks).image.lsn
            IN IF p \in exact THEN lsn = version[p] ELSE version[p] <= lsn

(* A client gets an error for no page but a damaged one.                   *)
RefuseProp ==
    [][\A c \in Clients : Waits(c) /\ call'[c] = Refused => PageOf(call[c].key) \in told]_<<
        vars, versionVars>>

(* The redo start moves only forward, while the store is up; one           *)
(* checkpoint ends before the next begins, and none begins for nothing.    *)
CheckpointProp ==
    [][crashes' = crashes =>
           /\ redoStart' # redoStart => phase = "up" /\ redoStart' > redoStart
           /\ taken # NotTaken /\ taken' # taken => taken' = NotTaken
           /\ taken = NotTaken /\ taken' # taken => taken'.redoStart > redoStart]_<<
        vars, versionVars>>

(* Liveness: every call is answered, and recovery ends unless a page that  *)
(* it needs is damaged.                                                    *)
OpensOrTellsProp == phase # "up" ~> (phase = "up" \/ told # {})

THEOREM VersionSpec => Contract!Spec
=============================================================================
