//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same. Some steps are not the spec's: see [`LeafLayout::flush`],
//! [`LeafLayout::try_checkpoint`] and [`LeafLayout::restore`].

use std::sync::Arc;

use super::super::wal_recovery::Versions;
use super::invariants::INVARIANTS;
use super::room::{CLIENTS, KEYS, LOG, N, PAGES, Set};
use super::sizes::Sizes;
use super::state::{ABSENT, Call, Content, Is, Layout, Leaf, PENDING, Phase, State};
use super::steps::end;
use super::{Action, Bug, LeafLayout};
use crate::Value;
use crate::mirror::Phase as Ended;

/// A page, as a judge compares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafName {
    /// The layout.
    pub layout: Layout,
    /// The lower fence.
    pub lower: u64,
    /// The upper fence.
    pub upper: u64,
    /// The LSN of its last change.
    pub lsn: u64,
    /// The keys that exist, with their values.
    pub records: Vec<(u64, u64)>,
}

impl LeafLayout {
    /// The protocol for the given number of clients, these keys, pages that take what `sizes` says,
    /// and these general layouts. Any client may call anything, and the power may fail at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(
        clients: usize,
        keys: &[N],
        sizes: Arc<dyn Sizes>,
        generals: &[Layout],
    ) -> Self {
        assert!(clients <= CLIENTS && keys.len() <= KEYS);
        let names = (1..=clients).map(|i| Value::model(format!("c{i}")));
        Self {
            clients: names.collect(),
            keys: keys.to_vec(),
            values: 0,
            pages: PAGES as u8,
            sizes,
            lengths: Vec::new(),
            generals: generals.to_vec(),
            choices: vec![true, false],
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            bug: Bug::None,
            plan: Default::default(),
            deletes: 0,
            // Calls are taken as they come.
            writers: 0,
            readers: 0,
            read_keys: Set::MAX,
            max_log: N::MAX,
            adapts: true,
            merges: true,
            max_crashes: N::MAX,
            max_restarts: N::MAX,
            invariants: INVARIANTS
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| name.ends_with("Inv"))
                .collect(),
        }
    }

    /// The maximum number of keys.
    pub const MOST_KEYS: usize = KEYS;

    /// The maximum number of pages.
    pub const MOST_PAGES: usize = PAGES;

    /// The initial state.
    #[must_use]
    pub fn first(&self) -> State {
        self.initial()
    }

    /// All enabled steps, except calls, crashes and restarts.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled_but_crashes(s, &mut actions);
        actions
    }

    /// Takes a step, other than a call, a checkpoint, a crash or a restart, if it is enabled.
    /// Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let mut actions = Vec::new();
        match action {
            Action::WritePage(p) if self.may_write(s, p) => actions.push(action),
            Action::Adapt(p, _) | Action::Prepare(p) | Action::Merge(p) if s.is_up() => {
                self.page_steps(s, p, &mut actions);
            }
            Action::ChangeLeaf(c)
            | Action::LayOut(c)
            | Action::Divide(c, _)
            | Action::Acknowledge(c)
            | Action::ReadLeaf(c)
            | Action::AnswerGet(c) => self.client_steps(s, c, &mut actions),
            Action::CommitLog if s.is_up() && s.durable < s.log_len => actions.push(action),
            Action::RedoRecord | Action::FinishRedo if s.recovers() => {
                self.recovery_steps(s, &mut actions);
            }
            _ => {}
        }
        let may = actions.contains(&action);
        if may {
            self.take(s, action);
        }
        may
    }

    /// Takes `CallGet` of the key of this number. Returns whether it was enabled.
    pub fn try_call_get(&self, s: &mut State, c: u8, key: u8) -> bool {
        let call = Call::Get { key, got: PENDING };
        self.calls_with(s, c, call)
    }

    /// Takes `CallWrite` of the key of this number, of a value of so many bytes, or a delete.
    /// Returns whether it was enabled.
    pub fn try_call_write(&mut self, s: &mut State, c: u8, key: u8, len: Option<u64>) -> bool {
        let value = match len {
            Some(_) => s.asked as Content + 1,
            None => ABSENT,
        };
        let call = Call::Write { key, value, lsn: 0 };
        let may = self.calls_with(s, c, call);
        if may {
            s.asked += 1;
            self.lengths.push(len.unwrap_or(0) as N);
            self.values = s.asked as Content;
        }
        may
    }

    fn calls_with(&self, s: &mut State, c: u8, call: Call) -> bool {
        let may = s.is_up() && s.call[usize::from(c)] == Call::Idle;
        if may {
            s.call[usize::from(c)] = call;
        }
        may
    }

    /// Takes `Checkpoint`, up to record `n` rather than as far as possible: the engine's redo start
    /// is where its checkpoint began. Returns `false` if that is too far.
    pub fn try_checkpoint(&self, s: &mut State, n: u64) -> bool {
        let may = s.is_up() && n >= s.redo_start.into() && n <= self.swept(s).into();
        if may {
            s.redo_start = n as N;
            s.device_flush();
        }
        may
    }

    /// A flush of the device for something else. The spec leaves it out, since it only leaves less
    /// to a crash.
    pub fn flush(&self, s: &mut State) {
        s.device_flush();
    }

    /// Takes a `Crash` that leaves the log up to record `n`, and of each page the version of this
    /// number, counted from the durable one. Returns `false` if there are no such versions.
    pub fn try_crash(&self, s: &mut State, n: u64, left: &[usize]) -> bool {
        let Some(n) = log_end(s, n) else {
            return false;
        };
        let mut places = s.leaf_dev.iter_mut().zip(left);
        let may = places.all(|(place, version)| {
            let left = place.all().get(*version).copied();
            left.map(|left| *place = Versions::durably(left)).is_some()
        });
        if may {
            s.durable = n;
            end(s, n, Ended::Cut, true);
        }
        may
    }

    /// Takes a `Restart` that finds the log up to record `n`. Returns `false` if the log cannot end
    /// there.
    pub fn try_restart(&self, s: &mut State, n: u64) -> bool {
        let n = log_end(s, n);
        if let Some(n) = n {
            self.take(s, Action::Restart(n, true));
        }
        n.is_some()
    }

    /// Says what the options of this life allow. It is known when the store is opened; the spec
    /// chooses it when the life before ends.
    pub fn set_options(&self, s: &mut State, allows: bool) {
        s.allows = allows;
    }

    /// The journal restores the image of a page, while recovery begins. The spec has no journal.
    pub fn restore(&self, s: &mut State, page: u8, image: &LeafName) {
        let number = |value: u64| value as N;
        let mut leaf = Leaf {
            layout: image.layout,
            lower: number(image.lower),
            upper: number(image.upper),
            lsn: number(image.lsn),
            ..Leaf::default()
        };
        for (key, value) in &image.records {
            let k = self.keys.iter().position(|known| *known == number(*key));
            leaf.map[k.unwrap_or(0)] = *value as Content;
        }
        leaf.len = self.len_of(leaf.layout, &leaf.map);
        s.leaf_dev[usize::from(page) - 1].push(leaf);
        if s.recovers() {
            *s.page_mut(page) = leaf;
        }
    }

    /// Whether the page of a client's write refuses it.
    #[must_use]
    pub fn refuses(&self, s: &State, c: u8) -> bool {
        match s.call[usize::from(c)] {
            Call::Write { key, value, lsn: 0 } => {
                let (_, key, leaf) = self.leaf_of(s, key);
                !self.takes(leaf, key, value)
            }
            _ => false,
        }
    }

    /// The page that has a key, given by its number.
    #[must_use]
    pub fn page_of(&self, s: &State, key: u8) -> u8 {
        self.leaf_of(s, key).0
    }

    /// A page, as it is in memory.
    #[must_use]
    pub fn page_now(&self, s: &State, page: u8) -> LeafName {
        self.name(s.page(page))
    }

    /// The versions of a page on the device, oldest first.
    pub fn versions<'a>(
        &'a self,
        s: &'a State,
        page: u8,
    ) -> impl DoubleEndedIterator<Item = LeafName> + 'a {
        s.images(page).iter().map(|leaf| self.name(leaf))
    }

    /// The page to the right of another one.
    #[must_use]
    pub fn right_of(&self, s: &State, page: u8) -> Option<u8> {
        self.right_neighbour(s, page)
    }

    /// The bytes of a value.
    #[must_use]
    pub fn length_of(&self, value: u64) -> u64 {
        self.length(value as Content).into()
    }

    fn name(&self, leaf: &Leaf) -> LeafName {
        let records = self.keys.iter().zip(leaf.map.iter().copied());
        let records = records.filter(|(_, value)| *value != ABSENT);
        LeafName {
            layout: leaf.layout,
            lower: leaf.lower.into(),
            upper: leaf.upper.into(),
            lsn: leaf.lsn.into(),
            records: records
                .map(|(key, value)| (u64::from(*key), u64::from(value)))
                .collect(),
        }
    }
}

fn log_end(s: &State, n: u64) -> Option<N> {
    let known = u64::from(s.durable)..=u64::from(s.log_len);
    known.contains(&n).then_some(n as N)
}

/// What a judge reads of a state. All numbers have 64 bits.
impl State {
    /// A client's outstanding call.
    #[must_use]
    pub fn call(&self, c: u8) -> Call {
        self.call[usize::from(c)]
    }

    /// Number of writes asked for so far (`asked`). The last value has this number.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.into()
    }

    /// The value that a client's get has read.
    #[must_use]
    pub fn got(&self, c: u8) -> Option<u64> {
        match self.call(c) {
            Call::Get { got, .. } if got != PENDING => Some(got.into()),
            _ => None,
        }
    }

    /// The LSN of the record of a client's write; 0 if it has none.
    #[must_use]
    pub fn lsn_of_write(&self, c: u8) -> u64 {
        match self.call(c) {
            Call::Write { lsn, .. } => lsn.into(),
            _ => 0,
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

    /// In recovery, the LSN up to which the log has been replayed (`redone`).
    #[must_use]
    pub fn redone(&self) -> u64 {
        self.redone.into()
    }

    /// Kind of record `n`, the page that it names, the fence or key, and the right page.
    #[must_use]
    pub fn record_of(&self, n: u64) -> Option<(Is, u8, u64, u8)> {
        let n = N::try_from(n).ok().filter(|n| *n <= self.log_len)?;
        let (_, record) = self.first(n).next_back()?;
        Some((record.is, record.page, record.key.into(), record.right))
    }

    /// Whether the store serves clients.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_up()
    }

    /// Whether recovery found that a page is lost.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.phase == Phase::Damaged
    }

    /// The number of pages that were ever made.
    #[must_use]
    pub fn pages(&self) -> u8 {
        self.fresh() - 1
    }

    /// Whether a page has a layout after the log's first `n` records.
    #[must_use]
    pub fn is_page_at(&self, page: u8, n: u64) -> bool {
        !matches!(self.layout_at(page, n as N), Layout::None | Layout::Lost)
    }

    /// Whether there is no room for an episode to go on.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.log_len as usize + 64 > LOG || usize::from(self.fresh()) + 8 > PAGES
    }
}
