//! The mirror as the judge of a recording: it is led step by step, and nothing bounds it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same. What a crash leaves is not chosen by the mirror, but found on
//! a device: [`RedoLog::try_crash`] takes it if it is one of the outcomes.

use super::format::{Block, Content, N, Super, Unit};
use super::invariants::INVARIANTS;
use super::state::{Call, Packing, Phase, State, Step, Verdict};
use super::{Action, Bug, RedoLog};
use crate::Value;

/// What a block's header says, and how many units follow it. The default is a block of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // As in `LogFormat.tla`.
pub struct Header {
    pub epoch: u32,
    pub index: u32,
    pub first: u32,
    pub unforced: u32,
    pub starts: bool,
    pub closed: bool,
    pub witness: bool,
    pub end_mark: bool,
    pub units: u32,
}

/// A block as it is found on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its header.
    pub header: Header,
    /// All units for which it has room. The default stands for one that is empty.
    pub units: Vec<Unit>,
    /// Whether it passes its checksum.
    pub whole: bool,
}

/// What recovery reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where it begins.
    pub from: u32,
    /// LSN of the last record.
    pub end: u32,
    /// Where the next epoch begins.
    pub next_start: u32,
    /// The first block of the last flush.
    pub doubtful: u32,
    /// The epoch of the last block.
    pub epoch: u32,
    /// The LSNs of all records.
    pub records: Vec<u32>,
    /// Whether recovery refuses to open.
    pub damaged: bool,
}

impl Block {
    fn header(&self) -> Header {
        Header {
            epoch: self.epoch,
            index: self.index,
            first: self.first,
            unforced: self.unforced,
            starts: self.starts,
            closed: self.closed,
            witness: self.witness,
            end_mark: self.end_mark,
            units: self.units.len() as N,
        }
    }
}

impl Unit {
    /// Part `part`, from 1, of a record of `len` units.
    #[must_use]
    pub fn new(record: u32, len: u32, part: u32) -> Unit {
        Unit { record, len, part }
    }
}

impl RedoLog {
    /// The protocol with this many clients, and a log of `ring` blocks of `units` units. Clients may
    /// append anything and go away, the store may be closed, any flush may fail, and the power may
    /// fail at any time. With `tears`, the drive only writes sectors whole.
    #[must_use]
    pub fn unbounded(clients: usize, units: u32, ring: u32, tears: bool) -> RedoLog {
        let names = (1..=clients).map(|i| Value::model(format!("c{i}")));
        RedoLog {
            clients: names.collect(),
            units,
            ring,
            packings: vec![Packing::Packed, Packing::Sparse],
            tears_at_sectors: tears,
            bug: Bug::None,
            records: N::MAX,
            lengths: (1..=2 * units).collect(),
            leaves: true,
            checkpoints: 1,
            closes: true,
            // These are not chosen here, but found.
            max_crashes: 0,
            max_restarts: N::MAX,
            switches: false,
            flushes_fail: true,
            writes_fail: false,
            max_rotten: 0,
            invariants: INVARIANTS.map(|(name, _)| name).into(),
        }
    }

    /// The initial state, with a log of this form.
    #[must_use]
    pub fn first(&self, packing: Packing) -> State {
        self.initial(packing)
    }

    /// All enabled steps, except crashes.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled(s, &mut actions);
        actions
    }

    /// Takes a step, other than a crash, if it is enabled. Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let may = self.steps(s).contains(&action);
        if may {
            self.take(s, action);
        }
        may
    }

    /// Forgets a checkpoint of which nothing was written yet.
    ///
    /// Not a step of the spec, whose store is closed only between two checkpoints. The spec has all
    /// that follows: it is as if the checkpoint had not begun.
    pub fn drop_checkpoint(&self, s: &mut State) -> bool {
        let begun = s.checkpoint.0 == Step::Begun;
        if begun {
            s.checkpoint = (Step::None, 0);
        }
        begun
    }

    /// Takes `FailCall` although no flush has failed, for a failure of which the spec has nothing: a
    /// page could not be written.
    pub fn fail_call(&self, s: &mut State, c: usize) {
        s.call[c] = match s.call[c] {
            Call::Append { lsn: 0, .. } => Call::Refused,
            Call::Append { .. } => Call::Unknown,
            other => other,
        };
    }

    /// Takes a `Crash` that leaves these blocks, by place, and this superblock.
    ///
    /// # Errors
    /// Why the mirror has no such outcome.
    pub fn try_crash(&self, s: &mut State, left: &[Found], of: Super) -> Result<(), String> {
        let (blocks, of) = self.left(s, left, of)?;
        if s.is_down() {
            return Err(format!(
                "there is no crash while the store is {:?}",
                s.phase
            ));
        }
        self.leave(s, blocks, of);
        Ok(())
    }

    /// Takes a `FailWrite` that leaves these blocks to be read, if some of the flush in flight are not
    /// there, or the witness is not. Returns the step.
    pub fn try_fail_write(&self, s: &mut State, read: &[Found], of: Super) -> Option<Action> {
        if !self.may_fail_write(s) {
            return None;
        }
        let (blocks, _) = self.left(s, read, of).ok()?;
        let newest = s.newest();
        let is_hidden =
            |place: usize| !self.is_dead(&newest[place], of) && blocks[place] != newest[place];
        let places = self.rewritten(s).into_iter().enumerate();
        let hidden = places.filter(|(_, place)| is_hidden(*place));
        let hidden: Vec<usize> = hidden.map(|(i, _)| i).collect();
        // A flush has few blocks.
        let digits = hidden.iter().map(|i| 1usize.checked_shl(*i as u32));
        let digits = digits.sum::<Option<usize>>().filter(|digits| *digits > 0)?;
        let action = Action::FailWrite(digits);
        self.take(s, action);
        Some(action)
    }

    /// Checks that a device reads these blocks and this superblock.
    ///
    /// # Errors
    /// The first difference.
    pub fn reads(&self, s: &State, read: &[Found], of: Super) -> Result<(), String> {
        let (blocks, found) = self.left(s, read, of)?;
        if found != s.newest_super() {
            return Err(format!(
                "the superblock reads as {found:?}, and {:?} was written last",
                s.newest_super()
            ));
        }
        for (place, (block, newest)) in blocks.iter().zip(s.newest()).enumerate() {
            let dead = |content: &Content| self.is_dead(content, of);
            if *block != newest && !(dead(block) && dead(&newest)) {
                return Err(format!(
                    "place {place} reads as {:?}, and {:?} was written last",
                    block.head.header(),
                    newest.head.header()
                ));
            }
        }
        Ok(())
    }

    /// What a device holds, in versions of the mirror.
    fn left(&self, s: &State, left: &[Found], of: Super) -> Result<(Vec<Content>, Super), String> {
        if !s.super_dev.contains(&of) {
            return Err(format!(
                "the superblock is {of:?}, which is none of {:?}",
                s.super_dev
            ));
        }
        let blocks = s.log_dev.iter().zip(left).enumerate();
        let blocks = blocks.map(|(place, (versions, found))| {
            self.left_at(versions, found, of).map_err(|why| {
                let headers = versions.iter().map(|version| version.head.header());
                let headers: Vec<Header> = headers.collect();
                format!("place {place} of the log holds {found:?}, {why} {headers:?}")
            })
        });
        Ok((blocks.collect::<Result<_, String>>()?, of))
    }

    /// Whether a block is no longer part of the log that begins at this superblock's redo start. It
    /// may be trimmed, and nobody can tell it from zeros.
    fn is_dead(&self, content: &Content, of: Super) -> bool {
        content.head.epoch == 0 || content.head.index < self.block_of(of.redo)
    }

    fn left_at(
        &self,
        versions: &[Content],
        found: &Found,
        of: Super,
    ) -> Result<Content, &'static str> {
        let dead = versions.iter().rfind(|version| self.is_dead(version, of));
        let same_head = |version: &&Content| {
            let first = version.head.units.first().copied().unwrap_or_default();
            version.head.header() == found.header && first == found.units[0]
        };
        let head = match versions.iter().rfind(same_head) {
            None if found.header == Header::default() => dead,
            head => head,
        };
        let Some(head) = head else {
            return Err("whose head is of none of");
        };
        let mut content = head.clone();
        let trimmed = found.header == Header::default();
        for (i, unit) in found.units[1..].iter().enumerate() {
            let known = versions.iter().any(|version| version.rest[i] == *unit);
            match dead {
                _ if content.rest[i] == *unit || trimmed && *unit == Unit::default() => {}
                _ if known => content.rest[i] = *unit,
                // It was trimmed, and a unit of zeros is left of that.
                Some(_) if *unit == Unit::default() => content.rest[i] = *unit,
                _ => return Err("which has a unit of none of"),
            }
        }
        if !self.tears_at_sectors && !versions.contains(&content) {
            return Err("which is a mixture of");
        }
        if !self.is_dead(&content, of) && self.is_whole(&content) != found.whole {
            return Err("and the checksum does not tell the same of");
        }
        Ok(content)
    }

    /// The name of an invariant that the state violates.
    #[must_use]
    pub fn broken(&self, s: &State) -> Option<&'static str> {
        let invariants = INVARIANTS.iter();
        let mut invariants = invariants.filter(|(name, _)| !name.starts_with("Reach"));
        let broken = invariants.find(|(_, holds)| !holds(self, s));
        broken.map(|(name, _)| *name)
    }

    /// The header of the newest block at the place of block `index`.
    #[must_use]
    pub fn written(&self, s: &State, index: u32) -> Header {
        let place = &s.log_dev[self.place(index)];
        place[place.len() - 1].head.header()
    }

    /// The blocks of the flush in flight.
    #[must_use]
    pub fn in_flight(&self, s: &State) -> std::ops::Range<u32> {
        let (at, to) = s.flying;
        at..self.block_of(self.round_up(to))
    }

    /// What recovery reads now.
    #[must_use]
    pub fn reading(&self, s: &State) -> Reading {
        let (blocks, of) = (s.newest(), s.newest_super());
        let walk = self.read_log(&blocks, of);
        let next_start = self.round_up(walk.end);
        Reading {
            from: of.redo,
            end: walk.end,
            next_start,
            doubtful: walk.flush.min(self.block_of(next_start)),
            epoch: walk.epoch,
            damaged: self.is_damaged(&blocks, &walk),
            records: walk.found.iter().map(|entry| entry.lsn).collect(),
        }
    }

    /// Whether recovery, which has read the log, writes an end mark.
    #[must_use]
    pub fn marks_end(&self, s: &State) -> bool {
        self.end_mark(s).is_some()
    }

    /// The index of the block for a witness.
    #[must_use]
    pub fn place_of_witness(&self, s: &State) -> u32 {
        self.witness_at(s)
    }
}

/// What a judge reads of a state.
impl State {
    /// A client's outstanding call.
    #[must_use]
    pub fn call(&self, c: usize) -> Call {
        self.call[c]
    }

    /// The epoch under which the log is written (`epoch`).
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// LSN of the last record (`end`).
    #[must_use]
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The LSN up to which the log is durable (`durable`).
    #[must_use]
    pub fn durable(&self) -> u32 {
        self.durable
    }

    /// The position before which the log has been given up (`oldest`).
    #[must_use]
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The step of the checkpoint, and where redo will begin (`checkpoint`).
    #[must_use]
    pub fn checkpoint(&self) -> (Step, u32) {
        self.checkpoint
    }

    /// Whether a flush has failed (`poisoned`).
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.poisoned
    }

    /// The phase (`phase`).
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The verdict on what was read last (`verdict`).
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The places that a failed flush forgot, and whether it forgot the superblock (`lost`).
    #[must_use]
    pub fn lost(&self) -> (Vec<bool>, bool) {
        (self.lost_log.clone(), self.lost_super)
    }

    /// The newest superblock.
    #[must_use]
    pub fn superblock(&self) -> Super {
        self.newest_super()
    }
}

impl Super {
    /// The superblock with this epoch, and redo from a position of another epoch on.
    #[must_use]
    pub fn new(epoch: u32, redo: u32, redo_epoch: u32) -> Super {
        Super {
            epoch,
            redo,
            redo_epoch,
        }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(self) -> u32 {
        self.epoch
    }

    /// Where redo begins.
    #[must_use]
    pub fn redo(self) -> u32 {
        self.redo
    }
}
