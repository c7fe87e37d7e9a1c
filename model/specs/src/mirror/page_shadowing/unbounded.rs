//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same. Two steps are finer than the spec's, and do less: see
//! [`PageShadowing::try_checkpoint`] and [`PageShadowing::try_redo`].

use super::invariants::INVARIANTS;
use super::reading;
use super::room::{CLIENTS, LOG, N, PAGES, SEGMENTS, Set};
use super::state::{Block, Blocks, Call, Known, LOG_BLOCK, PENDING, Page, SPOTS, State};
use super::state::{key, page_of, segment_of, spot};
use super::steps::swept;
use super::{Action, Bug, Discards, PageShadowing};
use crate::Value;
use crate::mirror::invariants;

/// A version of a page's block, as a judge compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockName {
    /// Reads as zeros: it was trimmed, or never written.
    Zeros,
    /// The first block of a slot, with the page's LSN.
    First(u64),
    /// Another block of a slot, with the value in it.
    Segment(u64),
    /// A log block, with the LSN of the base image and the LSN of the page with the log block
    /// applied.
    Log(u64, u64),
}

/// A block's place in a page: in slot 0, in slot 1, or the log block. A slot has as many blocks as
/// the page has segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A block of a slot: which slot, and which block of it, both counted from 0.
    Slot(u8, usize),
    /// The log block.
    Log,
}

impl Spot {
    fn number(self) -> usize {
        match self {
            Spot::Slot(slot, i) => spot(usize::from(slot), i),
            Spot::Log => LOG_BLOCK,
        }
    }
}

/// A page in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InMemory {
    /// The LSN of its last change.
    pub lsn: u64,
    /// The LSN of its base image.
    pub base: u64,
    /// How many of its segments differ from the base image.
    pub dirty: u32,
}

impl PageShadowing {
    /// The protocol for the given number of clients and pages. Each page has `segments` segments,
    /// at most `threshold` of which go to the log block. Any client may write and get anything. Any
    /// page may be evicted, any flush may fail, and the power may fail at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, pages: usize, segments: usize, threshold: u32) -> Self {
        assert!(clients <= CLIENTS && pages <= PAGES && (1..=SEGMENTS).contains(&segments));
        let named = |letter: char, n: usize| {
            let names = (1..=n).map(|i| Value::model(format!("{letter}{i}")));
            names.collect()
        };
        Self {
            clients: named('c', clients),
            pages: named('p', pages),
            segments,
            values: LOG as N,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            trimmed: Value::model("Trimmed"),
            rotten: Value::model("Rotten"),
            threshold,
            bug: Bug::None,
            discards: Discards::Act,
            deletes: 0,
            narrow: 0,
            readers: Set::MAX,
            evicted: Set::MAX,
            max_crashes: N::MAX,
            max_restarts: N::MAX,
            flushes_fail: true,
            invariants: invariants(&INVARIANTS),
        }
    }

    /// The maximum number of records in a recording.
    pub const MOST_RECORDS: usize = LOG;

    /// The maximum number of pages.
    pub const MOST_PAGES: usize = PAGES;

    /// The key of a segment of a page.
    #[must_use]
    pub fn key_of(page: usize, segment: usize) -> u8 {
        key(page, segment)
    }

    /// The page of a key, and its segment of the page.
    #[must_use]
    pub fn page_and_segment(key: u8) -> (usize, usize) {
        (page_of(key), segment_of(key))
    }

    /// Takes a step, other than a crash or restart, if it is enabled. Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let guarded = match action {
            // In the models clients only get first segments.
            Action::CallGet(c, of) => Action::CallGet(c, key(page_of(of), 0)),
            other => other,
        };
        let may = self.steps(s).contains(&guarded);
        if may {
            self.take(s, action);
        }
        may
    }

    /// All enabled steps, except crashes and restarts.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled_but_crashes(s, &mut actions);
        actions
    }

    /// Takes a `Crash` that leaves the log up to record `n` and the given version of each block of
    /// each page. Version 0 is the durable one. Returns `false` if there are no such versions.
    pub fn try_crash(
        &self,
        s: &mut State,
        n: u64,
        left: &dyn Fn(usize, Spot) -> Option<usize>,
    ) -> bool {
        let Some(n) = log_end(s, n) else {
            return false;
        };
        let mut blocks = s.dev.map(|places| places.map(|place| place.all()[0]));
        for p in self.pages() {
            for spot in self.places_of_a_page() {
                let versions = s.dev[p][spot.number()];
                let version = left(p, spot).and_then(|at| versions.all().get(at).copied());
                let Some(version) = version else {
                    return false;
                };
                blocks[p][spot.number()] = version;
            }
        }
        self.crash_leaving(s, n, &blocks);
        true
    }

    /// Takes a `Restart` that finds the log up to record `n` and reads the newest version of every
    /// block. Returns `false` if the log cannot end there.
    pub fn try_restart(&self, s: &mut State, n: u64) -> bool {
        let Some(n) = log_end(s, n) else {
            return false;
        };
        let read = s.dev.map(|places| reading::read(&places, 0));
        self.restart_reading(s, n, &read);
        true
    }

    /// Takes a `Checkpoint` that may give up less of the log than the spec's: the engine's redo
    /// start is where its checkpoint began, and the spec's is the latest possible. Returns `false`
    /// if no image on the device has some change up to `n`.
    pub fn try_checkpoint(&self, s: &mut State, n: u64) -> bool {
        let may =
            s.phase.is_up() && !s.poisoned && u64::from(s.redo_start) < n && n <= swept(s).into();
        if may {
            s.redo_start = n as N;
            s.device_flush();
            s.after_flush();
        }
        may
    }

    /// Takes the `RedoRecord` of record `n`. Records are redone in order for each page, but not in
    /// log order: the engine redoes page by page, and records of different pages commute. The
    /// engine reports only records that the page lacked. Returns `false` if the page is not in
    /// memory, or if another record is next.
    pub fn try_redo(&self, s: &mut State, n: u64) -> bool {
        let Some((n, record)) = s.records().find(|(m, _)| u64::from(*m) == n) else {
            return false;
        };
        let p = page_of(record.key);
        let missing = self.missing(s, p);
        let Some(page) = s.mem[p]
            .as_mut()
            .filter(|_| !s.phase.is_up() && missing == Some(n))
        else {
            return false;
        };
        page.change(segment_of(record.key), record.value, n);
        true
    }

    /// The first record that redo has yet to apply to a page. The page is taken from memory or, if
    /// it is not there, as the device reads.
    fn missing(&self, s: &State, p: usize) -> Option<N> {
        let lsn = match &s.mem[p] {
            Some(page) => page.image.lsn,
            None => self.read_both(&reading::read(&s.dev[p], 0)).image.lsn,
        };
        let later = |(n, record): &(N, super::Record)| {
            page_of(record.key) == p && *n > lsn && *n > s.redo_start
        };
        s.records().find(later).map(|(n, _)| n)
    }

    /// Takes `FinishRedo`, after redoing all records that [`PageShadowing::try_redo`] was not told
    /// of since their pages had them.
    ///
    /// # Errors
    /// The page, and a record that it lacks.
    pub fn try_finish_redo(&self, s: &mut State) -> Result<(), (usize, u64)> {
        let mut lacking = self.pages().map(|p| (p, self.missing(s, p)));
        if let Some((p, Some(n))) = lacking.find(|(_, missing)| missing.is_some()) {
            return Err((p, n.into()));
        }
        s.redone = s.log_len;
        self.take(s, Action::FinishRedo);
        Ok(())
    }

    /// The places of a page's blocks.
    pub fn places_of_a_page(&self) -> impl Iterator<Item = Spot> + use<> {
        let segments = self.segments;
        let slots = [0, 1].into_iter();
        let of = move |slot| (0..segments).map(move |i| Spot::Slot(slot, i));
        slots.flat_map(of).chain([Spot::Log])
    }

    /// The number of ways in which a page may be read.
    #[must_use]
    pub fn readings(&self, s: &State, p: usize) -> u32 {
        reading::read_count(&s.dev[p])
    }

    /// The result of reading both slots of a page, with the newest version of each block.
    #[must_use]
    pub fn chosen(&self, s: &State, p: usize) -> (Known, InMemory) {
        let blocks: Blocks = reading::read(&s.dev[p], 0);
        let known = self.known_after(&blocks);
        let found = self.read_both(&blocks);
        let page = InMemory {
            lsn: found.image.lsn.into(),
            base: found.base.into(),
            dirty: found.dirty.count_ones(),
        };
        (known, page)
    }
}

fn log_end(s: &State, n: u64) -> Option<N> {
    let known = u64::from(s.durable)..=u64::from(s.log_len);
    known.contains(&n).then_some(n as N)
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

    /// The value that a client's get has read.
    #[must_use]
    pub fn got(&self, c: u8) -> Option<u64> {
        match self.call(c) {
            Call::Get { got, .. } if got != PENDING => Some(got.into()),
            _ => None,
        }
    }

    /// Number of records in the log (`Len(log)`).
    #[must_use]
    pub fn log_len(&self) -> u64 {
        self.log_len.into()
    }

    /// The LSN up to which the log is durable (`durable`).
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.into()
    }

    /// The LSN after which redo begins (`redoStart`).
    #[must_use]
    pub fn redo_start(&self) -> u64 {
        self.redo_start.into()
    }

    /// Whether a flush has failed since the last start (`poisoned`).
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.poisoned
    }

    /// Whether the store is up (`phase = "up"`).
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.phase.is_up()
    }

    /// Whether anything is written and not flushed.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        self.something_written()
    }

    /// The knowledge of the slots of page `p` (`valid[p]`).
    #[must_use]
    pub fn known(&self, p: usize) -> Known {
        self.valid[p]
    }

    /// The image of page `p` in memory, if it is there (`mem[p]`).
    #[must_use]
    pub fn in_memory(&self, p: usize) -> Option<InMemory> {
        self.mem[p].as_ref().map(|page: &Page| InMemory {
            lsn: page.image.lsn.into(),
            base: page.base.into(),
            dirty: page.dirty.count_ones(),
        })
    }

    /// The page of record `n`.
    #[must_use]
    pub fn page_of_record(&self, n: u64) -> Option<usize> {
        let mut records = self.records();
        let (_, record) = records.find(|(m, _)| u64::from(*m) == n)?;
        Some(page_of(record.key))
    }

    /// The versions of a block, oldest first.
    pub fn versions(&self, p: usize, spot: Spot) -> impl Iterator<Item = BlockName> + '_ {
        let all = self.dev[p][spot.number()].all();
        all.iter().map(move |block| block.name(spot))
    }
}

impl Block {
    fn name(&self, spot: Spot) -> BlockName {
        let block = self.as_read();
        match spot {
            _ if *self == Block::TRIMMED => BlockName::Zeros,
            Spot::Slot(_, 0) => BlockName::First(block.lsn().into()),
            Spot::Slot(..) => BlockName::Segment(block.value(0).into()),
            Spot::Log if block == Block::default() => BlockName::Zeros,
            Spot::Log => BlockName::Log(block.base().into(), block.lsn().into()),
        }
    }
}

const _: () = assert!(SPOTS <= Set::BITS as usize);
