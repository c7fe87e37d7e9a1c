//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same.

use super::invariants::INVARIANTS;
use super::room::{CLIENTS, KEYS, N, PER_BLOCK, PLACES, VALUES};
use super::state::Superblock;
use super::state::{
    ABSENT, At, Block, Call, Checkpoint, Image, Medium, PENDING, Phase, State, Versions,
};
use super::steps::call_write;
use super::{Action, Bug, Reads, Verdict, WalRecovery};
use crate::Value;

/// The version of each block that a crash has left. Version 0 is the durable one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The version left in each place of the log.
    pub log: Vec<usize>,
    /// The version left of each page.
    pub pages: Vec<usize>,
    /// The version left of the superblock.
    pub superblock: usize,
}

/// A log block as a judge compares it: its epoch, its index and the number of its records.
pub type BlockName = (u64, u64, usize);

impl WalRecovery {
    /// The protocol for the given number of clients and keys, with log blocks of `per_block`
    /// records. Any client may write and get anything. Any flush may fail, and the power may fail
    /// at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, keys: usize, per_block: usize) -> Self {
        assert!(clients <= CLIENTS && keys <= KEYS && (1..=PER_BLOCK).contains(&per_block));
        let named = |letter: char, n: usize| {
            let names = (1..=n).map(|i| Value::model(format!("{letter}{i}")));
            names.collect()
        };
        Self {
            clients: named('c', clients),
            keys: named('k', keys),
            values: VALUES,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            per_block: per_block as N,
            ring_blocks: PLACES as N,
            reads: Reads::Free,
            bug: Bug::None,
            deletes: 0,
            odd: 0,
            odd_keys: 0,
            readers: !0,
            read_keys: !0,
            max_crashes: N::MAX,
            flushes_fail: true,
            invariants: INVARIANTS.map(|(name, _)| name).into(),
        }
    }

    /// The maximum number of writes in a recording.
    pub const MOST_WRITES: u64 = VALUES as u64;

    /// The number of places of the log.
    pub const RING_BLOCKS: usize = PLACES;

    /// Whether this step is enabled. Of crashes, only those with a single outcome may be asked for.
    #[must_use]
    pub fn may(&self, s: &State, action: Action) -> bool {
        let mut enabled = Vec::new();
        match action {
            Action::CallGet(c, _)
            | Action::CallWrite(c, _)
            | Action::ReadPage(c)
            | Action::AnswerGet(c)
            | Action::AppendLog(c)
            | Action::ChangePage(c)
            | Action::Acknowledge(c)
            | Action::ReportFailure(c)
            | Action::FlushLog(c) => self.client_steps(s, c, &mut enabled),
            Action::CompleteFlush | Action::FailFlush => self.flush_steps(s, &mut enabled),
            Action::WriteBack(k) | Action::Reload(k) => self.page_steps(s, k, &mut enabled),
            Action::BeginCheckpoint
            | Action::FlushPages
            | Action::WriteSuperblock
            | Action::FlushSuperblock
            | Action::TruncateLog
            | Action::FinishRecovery => self.checkpoint_steps(s, &mut enabled),
            Action::LoadSuperblock | Action::RedoRecord | Action::FinishRedo => {
                self.recovery_steps(s, &mut enabled);
            }
            Action::Restart => return !s.it.phase.is_down(),
            Action::Crash(_) => return false,
        }
        enabled.contains(&action)
    }

    /// Takes a step if it is enabled. Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let may = self.may(s, action);
        if may {
            self.take(s, action);
        }
        may
    }

    /// Takes `CallWrite`, with the next value or `Absent`.
    pub fn try_call_write(&self, s: &mut State, c: u8, key: u8, absent: bool) -> bool {
        let may = self.may(s, Action::CallWrite(c, key));
        if may {
            let value = if absent { ABSENT } else { s.it.asked + 1 };
            call_write(s, c, key, value);
        }
        may
    }

    /// Takes a `Crash` that leaves these versions. Returns `false` if there are no such versions or
    /// the power is off already.
    pub fn try_crash(&self, s: &mut State, left: &Left) -> bool {
        let medium = (!s.it.phase.is_down()).then(|| pick(s, left));
        let Some(Some(medium)) = medium else {
            return false;
        };
        self.crash_leaving(s, &medium);
        true
    }

    /// All enabled steps, except crashes and restarts.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled_but_crashes(s, &mut actions);
        actions
    }

    /// The end of the log, including the buffer.
    #[must_use]
    pub fn log_end(&self, s: &State) -> u64 {
        self.end(s).into()
    }
}

fn pick(s: &State, left: &Left) -> Option<Medium> {
    let mut medium = s.newest();
    for (block, (place, at)) in medium.log.iter_mut().zip(s.log_dev.iter().zip(&left.log)) {
        *block = *place.all().get(*at)?;
    }
    for (image, (place, at)) in (medium.pages.iter_mut()).zip(s.page_dev.iter().zip(&left.pages)) {
        *image = *place.all().get(*at)?;
    }
    medium.superblock = *s.super_dev.all().get(left.superblock)?;
    Some(medium)
}

/// What a judge reads of a state. All numbers have 64 bits.
impl State {
    /// The initial state (`Init`).
    #[must_use]
    pub fn first() -> Self {
        Self::initial()
    }

    /// A client's outstanding call.
    #[must_use]
    pub fn call(&self, c: u8) -> Call {
        self.call[usize::from(c)]
    }

    /// The value that a client's get has read. 0 is `Absent`.
    #[must_use]
    pub fn got(&self, c: u8) -> Option<u64> {
        match self.call(c) {
            Call::Get { got, .. } if got != PENDING => Some(got.into()),
            _ => None,
        }
    }

    /// The clients that wait for a flush and may lead one.
    pub fn waiting(&self) -> impl Iterator<Item = u8> + '_ {
        let durable = self.it.durable;
        (0u8..)
            .zip(&self.call)
            .filter_map(move |(c, call)| match call {
                Call::Write {
                    at: At::Waiting,
                    lsn,
                    ..
                } if durable < *lsn => Some(c),
                _ => None,
            })
    }

    /// The clients that have appended their record and not yet changed their page, with their LSNs.
    pub fn logged(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        (0u8..).zip(&self.call).filter_map(|(c, call)| match call {
            Call::Write {
                at: At::Logged,
                lsn,
                ..
            } => Some((c, u64::from(*lsn))),
            _ => None,
        })
    }

    /// Number of writes asked for so far (`asked`).
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.it.asked.into()
    }

    /// The LSN up to which the log is durable (`durable`).
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.it.durable.into()
    }

    /// The LSN up to which the flush in flight makes the log durable (`flushing`).
    #[must_use]
    pub fn flushing(&self) -> u64 {
        self.it.flushing.into()
    }

    /// The current epoch (`epoch`).
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.it.epoch.into()
    }

    /// The position before which the log has been freed (`oldest`).
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.it.oldest.into()
    }

    /// Whether a flush has failed since the last opening (`poisoned`).
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.it.poisoned
    }

    /// The step of the checkpoint, and the position at which it began (`checkpoint`).
    #[must_use]
    pub fn checkpoint(&self) -> (Checkpoint, u64) {
        (self.it.checkpoint, self.it.begin.into())
    }

    /// The phase of the store's life (`phase`).
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.it.phase
    }

    /// The LSN up to which redo has replayed the log (`redone`).
    #[must_use]
    pub fn redone(&self) -> u64 {
        self.it.redone.into()
    }

    /// The verdict on the last crash (`verdict`).
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.it.verdict
    }

    /// The LSN of the last change of page `k` (`page[k].lsn`).
    #[must_use]
    pub fn page_lsn(&self, k: u8) -> u64 {
        self.page[usize::from(k)].lsn.into()
    }

    /// `page[k].value`. 0 is `Absent`.
    #[must_use]
    pub fn page_value(&self, k: u8) -> u64 {
        self.page[usize::from(k)].value.into()
    }

    /// The LSN of the first change of page `k` that its device image lacks (`dirtied[k]`).
    #[must_use]
    pub fn dirtied(&self, k: u8) -> u64 {
        self.dirtied[usize::from(k)].into()
    }

    /// The image of page `k` in memory (`page[k]`).
    #[must_use]
    pub fn page(&self, k: u8) -> Image {
        self.page[usize::from(k)]
    }

    /// The LSNs of the versions of page `k` on the device, oldest first.
    pub fn page_versions(&self, k: u8) -> impl Iterator<Item = u64> + '_ {
        let place = &self.page_dev[usize::from(k)];
        place.all().iter().map(|image| u64::from(image.lsn))
    }

    /// The versions of a log place on the device, oldest first.
    pub fn block_versions(&self, place: usize) -> impl Iterator<Item = BlockName> + '_ {
        self.log_dev[place].all().iter().map(Block::name)
    }

    /// The versions of the superblock on the device, oldest first: epoch and redo start.
    pub fn super_versions(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.super_dev.all().iter().map(Superblock::name)
    }

    /// Writes back an image of page `k` that was copied from memory before the page's last change.
    /// That change began at `dirtied` (0 if it has not reached the page yet). This is not a step of
    /// the spec, which copies and writes in one step: see [`crate::conformance`].
    pub fn write_back_copy(&mut self, k: u8, image: Image, dirtied: u64) {
        let at = usize::from(k);
        self.dirtied[at] = dirtied as N;
        self.page_dev[at].push(image);
        self.it.lost.pages &= !(1 << k);
    }

    /// The image of page `k` that a read of the device returns.
    #[must_use]
    pub fn newest_image(&self, k: u8) -> Image {
        self.page_dev[usize::from(k)].newest()
    }

    /// Makes the device hold these versions of page `k`, oldest first and at least one. Only the
    /// first is durable. This is not a step of the spec, whose flush covers what is written while
    /// it is in flight: see [`crate::conformance`].
    pub fn spare(&mut self, k: u8, versions: &[Image]) {
        let (first, later) = versions.split_first().expect("there is at least one");
        let mut spared = Versions::durably(*first);
        later.iter().for_each(|version| spared.push(*version));
        self.page_dev[usize::from(k)] = spared;
    }
}

impl Image {
    /// The LSN of its last change.
    #[must_use]
    pub fn lsn(&self) -> u64 {
        self.lsn.into()
    }
}

impl Block {
    /// The block's epoch, index and number of records.
    #[must_use]
    pub fn name(&self) -> BlockName {
        let records = self.records().len();
        (self.epoch.into(), self.index.into(), records)
    }
}

impl Superblock {
    /// The epoch and redo start.
    #[must_use]
    pub fn name(&self) -> (u64, u64) {
        (self.epoch.into(), self.redo.into())
    }
}
