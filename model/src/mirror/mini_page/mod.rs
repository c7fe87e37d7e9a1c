//! `specs/mini_page/MiniPage.tla`: mini-pages over leaf pages, and the tree around them (Bf-Tree §3, §5).
//!
//! - [`records`]: `MiniRecords`, functions of values.
//! - `steps`: the actions of `MiniTree` and `MiniPage`, in their order.
//! - `invariants`: what holds.
//! - this file: the state, which steps may be worth a try, and what a state is in TLA+.
//!
//! Keys and page ids are numbered from 1 as in the spec, clients from 0.

mod invariants;
pub mod records;
mod steps;

use std::hash::{Hash, Hasher};

use stateright::{Model, Property};

use self::invariants::{INVARIANTS, Invariant};
use self::records::{ABSENT, Content, Image, KEYS, Kind, PENDING, Page, Record, Sizes};
use super::{Mirror, listed};
use crate::{Config, ConfigError, Value};

/// Room in a state; a configuration that needs more is refused.
const PAGES: usize = KEYS;
const CLIENTS: usize = 3;
/// A scan returns each key once; a scan with a bug, one page twice.
const ROWS: usize = 2 * KEYS;

const NOBODY: u8 = 0xff;
const NO_PAGE: u8 = 0;

/// A seeded bug; the names are those of the constant `Bug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Bug {
    None,
    MergeDropsTombstone,
    ColdDirtyDropped,
    HotInsertNotMerged,
    HotTombstoneNotMerged,
    TombstoneReadThrough,
    MirrorBypassed,
    UpgradeAmongReaders,
    ScanReadsLeaf,
    ScanFromLowFence,
    ScanTrustsNeighbour,
    SplitLosesRightRecords,
    SplitKeepsRightRecords,
    SeparatorFirst,
    StaleHighFence,
    InnerBeforeRight,
    JoinDropsDirty,
    JoinLeavesSeparator,
    JoinKeepsVersion,
    PublishedEarlyValidation,
    PublishedColdMirror,
    PublishedInsertAfterMerge,
    PublishedOneSplit,
    PublishedLatePromotion,
}

const BUGS: [(&str, Bug); 24] = [
    ("none", Bug::None),
    ("merge-drops-tombstone", Bug::MergeDropsTombstone),
    ("cold-dirty-dropped", Bug::ColdDirtyDropped),
    ("hot-insert-not-merged", Bug::HotInsertNotMerged),
    ("hot-tombstone-not-merged", Bug::HotTombstoneNotMerged),
    ("tombstone-read-through", Bug::TombstoneReadThrough),
    ("mirror-bypassed", Bug::MirrorBypassed),
    ("upgrade-among-readers", Bug::UpgradeAmongReaders),
    ("scan-reads-leaf", Bug::ScanReadsLeaf),
    ("scan-from-low-fence", Bug::ScanFromLowFence),
    ("scan-trusts-neighbour", Bug::ScanTrustsNeighbour),
    ("split-loses-right-records", Bug::SplitLosesRightRecords),
    ("split-keeps-right-records", Bug::SplitKeepsRightRecords),
    ("separator-first", Bug::SeparatorFirst),
    ("stale-high-fence", Bug::StaleHighFence),
    ("inner-before-right", Bug::InnerBeforeRight),
    ("join-drops-dirty", Bug::JoinDropsDirty),
    ("join-leaves-separator", Bug::JoinLeavesSeparator),
    ("join-keeps-version", Bug::JoinKeepsVersion),
    (
        "as-published-early-validation",
        Bug::PublishedEarlyValidation,
    ),
    ("as-published-cold-mirror", Bug::PublishedColdMirror),
    (
        "as-published-insert-after-merge",
        Bug::PublishedInsertAfterMerge,
    ),
    ("as-published-one-split", Bug::PublishedOneSplit),
    ("as-published-late-promotion", Bug::PublishedLatePromotion),
];

/// What a scan has returned: key in the low half of a byte, value in the high one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    // invariant: 0 from `len` on, so that equal rows are equal bytes.
    rows: [u8; ROWS],
    len: u8,
}

impl Rows {
    const NONE: Self = Self {
        rows: [0; ROWS],
        len: 0,
    };

    fn push(&mut self, key: u8, value: Content) -> Option<()> {
        *self.rows.get_mut(usize::from(self.len))? = key | value << 4;
        self.len += 1;
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = (u8, Content)> {
        let rows = &self.rows[..usize::from(self.len)];
        rows.iter().map(|row| (row & 0xf, row >> 4))
    }
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Nothing.
    Idle,
    /// `GetCall`.
    Get {
        /// Which key.
        key: u8,
        /// What was read.
        got: Content,
    },
    /// `WriteCall`.
    Write {
        /// Which key.
        key: u8,
        /// What to write there.
        value: Content,
    },
    /// `ScanCall`.
    Scan {
        /// The next key.
        cursor: u8,
        /// What has been returned.
        rows: Rows,
    },
}

impl Call {
    /// `Target`; of no call, no key.
    fn target(&self) -> u8 {
        match *self {
            Self::Idle => 0,
            Self::Get { key, .. } | Self::Write { key, .. } => key,
            Self::Scan { cursor, .. } => cursor,
        }
    }
}

/// How far a client has come: the strings of `Steps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum Step {
    Idle,
    Descend,
    Version,
    Child,
    Answered,
    Get,
    Loaded,
    Promote,
    Write,
    Scan,
    Full,
    Split,
    Divided,
    Shortened,
    Left,
    Both,
    InnerFirst,
    Join,
    Joined,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Descend => "descend",
            Self::Version => "version",
            Self::Child => "child",
            Self::Answered => "answered",
            Self::Get => "get",
            Self::Loaded => "loaded",
            Self::Promote => "promote",
            Self::Write => "write",
            Self::Scan => "scan",
            Self::Full => "full",
            Self::Split => "split",
            Self::Divided => "divided",
            Self::Shortened => "shortened",
            Self::Left => "left",
            Self::Both => "both",
            Self::InnerFirst => "inner first",
            Self::Join => "join",
            Self::Joined => "joined",
        }
    }
}

/// A client: `call`, `step`, `at` and `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    call: Call,
    step: Step,
    at: u8,
    right: u8,
}

impl Hash for Client {
    // One word, two for a scan.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let (op, a, b) = match self.call {
            Call::Idle => (0, 0, 0),
            Call::Get { key, got } => (1, key, got),
            Call::Write { key, value } => (2, key, value),
            Call::Scan { cursor, rows } => {
                hasher.write_u64(u64::from_le_bytes(rows.rows));
                (3, cursor, rows.len)
            }
        };
        let (step, at, right) = (self.step as u8, self.at, self.right);
        hasher.write_u64(u64::from_le_bytes([op, a, b, step, at, right, 0, 0]));
    }
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    page: [Page; PAGES],
    client: [Client; CLIENTS],
    inner: [u8; KEYS],
    store: Image,
    inner_lock: u8,
    outdated: u8,
    honest: bool,
}

impl State {
    fn page(&self, p: u8) -> &Page {
        &self.page[usize::from(p) - 1]
    }

    fn page_mut(&mut self, p: u8) -> &mut Page {
        &mut self.page[usize::from(p) - 1]
    }

    fn client(&self, c: u8) -> &Client {
        &self.client[usize::from(c)]
    }

    fn client_mut(&mut self, c: u8) -> &mut Client {
        &mut self.client[usize::from(c)]
    }

    /// The page that a client goes to or holds.
    fn page_of(&self, c: u8) -> &Page {
        self.page(self.client(c).at)
    }

    /// `Child`.
    fn child(&self, key: u8) -> u8 {
        let begin = self.inner[..usize::from(key)].iter().rev();
        begin.copied().find(|p| *p != NO_PAGE).unwrap_or(NO_PAGE)
    }

    fn holds(&self, key: u8) -> Content {
        self.store[usize::from(key) - 1]
    }
}

/// A step: the actions of the module, with client, page and whatever else is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Call(u8, Call),
    Return(u8),
    ReadVersion(u8),
    ReadChild(u8),
    LockPage(u8),
    Restart(u8),
    ReadMini(u8),
    ReadLeaf(u8),
    Decline(u8),
    Upgrade(u8),
    Promote(u8),
    WriteRecord(u8),
    Grow(u8),
    MergeToMirror(u8),
    EvictMirror(u8),
    ScanPage(u8),
    GrowToMirror(u8),
    LockInner(u8),
    /// Client and split key.
    AllocateRight(u8, u8),
    ShortenLeft(u8),
    InsertSeparator(u8),
    LockLeft(u8, u8),
    LockRight(u8),
    LockInnerToJoin(u8),
    GiveUpJoin(u8),
    MoveRecords(u8),
    RemoveSeparator(u8),
    FindLeafFull(u8, u8),
    EvictMini(u8),
    CopyToTail(u8),
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct MiniPage {
    clients: Vec<Value>,
    values: Vec<Value>,
    absent: Value,
    pending: Value,
    keys: u8,
    pages: u8,
    sizes: Sizes,
    capacity: u8,
    bug: Bug,
    /// The calls that the wrapper allows each client.
    requests: Vec<Vec<Call>>,
    /// The clients that look after the tree, a bit each.
    keepers: u8,
    invariants: Vec<&'static (&'static str, Invariant)>,
}

impl MiniPage {
    fn all_pages(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.pages
    }

    fn all_keys(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.keys
    }

    fn all_clients(&self) -> std::ops::Range<u8> {
        0..self.clients.len() as u8
    }

    /// What the client may try; `next_state` decides.
    fn client_actions(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        match state.client(c).step {
            Step::Idle => {
                let requests = self.requests[usize::from(c)].iter();
                actions.extend(requests.map(|call| Action::Call(c, *call)));
                if self.keepers >> c & 1 == 1 {
                    actions.extend(self.all_pages().map(|p| Action::LockLeft(c, p)));
                    actions.extend(self.all_pages().map(|p| Action::FindLeafFull(c, p)));
                }
            }
            Step::Descend => actions.push(Action::ReadVersion(c)),
            Step::Version => {
                actions.push(Action::ReadChild(c));
                actions.push(Action::Restart(c));
            }
            Step::Child => {
                actions.push(Action::LockPage(c));
                actions.push(Action::Restart(c));
            }
            Step::Answered => actions.push(Action::Return(c)),
            Step::Get => {
                actions.push(Action::ReadMini(c));
                actions.push(Action::ReadLeaf(c));
            }
            Step::Loaded => {
                actions.push(Action::Decline(c));
                actions.push(Action::Upgrade(c));
            }
            Step::Promote => {
                actions.push(Action::Promote(c));
                actions.push(Action::Grow(c));
            }
            Step::Write => {
                actions.push(Action::WriteRecord(c));
                actions.push(Action::Grow(c));
                actions.push(Action::MergeToMirror(c));
                actions.push(Action::EvictMirror(c));
                actions.push(Action::LockInner(c));
            }
            Step::Scan => {
                actions.push(Action::ScanPage(c));
                actions.push(Action::GrowToMirror(c));
            }
            Step::Full => actions.push(Action::LockInner(c)),
            Step::Split => {
                let page = state.page_of(c);
                let splits = page.low + 1..page.high;
                actions.extend(splits.map(|s| Action::AllocateRight(c, s)));
            }
            Step::Divided => actions.push(Action::ShortenLeft(c)),
            Step::Shortened => actions.push(Action::InsertSeparator(c)),
            Step::Left => {
                actions.push(Action::LockRight(c));
                actions.push(Action::LockInnerToJoin(c));
            }
            Step::Both => {
                actions.push(Action::LockInnerToJoin(c));
                actions.push(Action::GiveUpJoin(c));
            }
            Step::InnerFirst => actions.push(Action::LockRight(c)),
            Step::Join => actions.push(Action::MoveRecords(c)),
            Step::Joined => actions.push(Action::RemoveSeparator(c)),
        }
    }
}

impl Model for MiniPage {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut page = [Page::UNUSED; PAGES];
        page[0].low = 1;
        page[0].high = self.keys + 1;
        let mut inner = [NO_PAGE; KEYS];
        inner[0] = 1;
        let client = Client {
            call: Call::Idle,
            step: Step::Idle,
            at: NO_PAGE,
            right: NO_PAGE,
        };
        vec![State {
            page,
            client: [client; CLIENTS],
            inner,
            store: [ABSENT; KEYS],
            inner_lock: NOBODY,
            outdated: 0,
            honest: true,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for c in self.all_clients() {
            self.client_actions(state, c, actions);
        }
        actions.extend(self.all_pages().map(Action::EvictMini));
        actions.extend(self.all_pages().map(Action::CopyToTail));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let listed = self.invariants.iter();
        listed
            .map(|(name, condition)| Property::always(name, *condition))
            .collect()
    }
}

impl Mirror for MiniPage {
    const SPEC: &'static str = "MiniPage";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let name = config.string("Bug")?;
        let bug = BUGS.iter().find(|(known, _)| *known == name);
        let Some((_, bug)) = bug else {
            return Err(config.wrong("Bug", format!("the mirror does not know {name}")));
        };
        let clients = config.members("Clients", CLIENTS)?;
        let values = config.members("Values", usize::from(PENDING) - 1)?;
        let among = |name: &str| -> Result<u8, ConfigError> {
            let members = config.members(name, CLIENTS)?;
            let bit = |(i, c): (usize, &Value)| u8::from(members.contains(c)) << i;
            Ok(clients.iter().enumerate().map(bit).sum())
        };
        let requests = |c: usize| -> Result<Vec<Call>, ConfigError> {
            let mut calls = Vec::new();
            if among("Getters")? >> c & 1 == 1 {
                let keys = integers(config, "GetKeys", KEYS)?.into_iter();
                calls.extend(keys.map(|key| Call::Get { key, got: PENDING }));
            }
            if among("Writers")? >> c & 1 == 1 {
                for key in integers(config, "PutKeys", KEYS)? {
                    let values = 1..=values.len() as u8;
                    calls.extend(values.map(|value| Call::Write { key, value }));
                }
                let keys = integers(config, "DeleteKeys", KEYS)?.into_iter();
                let value = ABSENT;
                calls.extend(keys.map(|key| Call::Write { key, value }));
            }
            if among("Scanners")? >> c & 1 == 1 {
                let rows = Rows::NONE;
                calls.push(Call::Scan { cursor: 1, rows });
            }
            Ok(calls)
        };
        Ok(Self {
            requests: (0..clients.len()).map(requests).collect::<Result<_, _>>()?,
            keepers: among("Keepers")?,
            keys: integers(config, "Keys", KEYS)?.len() as u8,
            pages: integers(config, "Pages", PAGES)?.len() as u8,
            sizes: Sizes(integers(config, "Sizes", KEYS)?),
            capacity: config.int("LeafCapacity", KEYS as u8)?,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            bug: *bug,
            invariants: listed(config, &INVARIANTS)?,
            clients,
            values,
        })
    }

    fn label(action: &Action) -> &'static str {
        match action {
            Action::Call(_, Call::Get { .. }) => "CallGet",
            Action::Call(_, Call::Write { value: ABSENT, .. }) => "CallDelete",
            Action::Call(_, Call::Write { .. }) => "CallPut",
            Action::Call(..) => "CallScan",
            Action::Return(..) => "Return",
            Action::ReadVersion(..) => "ReadVersion",
            Action::ReadChild(..) => "ReadChild",
            Action::LockPage(..) => "LockPage",
            Action::Restart(..) => "Restart",
            Action::ReadMini(..) => "ReadMini",
            Action::ReadLeaf(..) => "ReadLeaf",
            Action::Decline(..) => "Decline",
            Action::Upgrade(..) => "Upgrade",
            Action::Promote(..) => "Promote",
            Action::WriteRecord(..) => "WriteRecord",
            Action::Grow(..) => "Grow",
            Action::MergeToMirror(..) => "MergeToMirror",
            Action::EvictMirror(..) => "EvictMirror",
            Action::ScanPage(..) => "ScanPage",
            Action::GrowToMirror(..) => "GrowToMirror",
            Action::LockInner(..) => "LockInner",
            Action::AllocateRight(..) => "AllocateRight",
            Action::ShortenLeft(..) => "ShortenLeft",
            Action::InsertSeparator(..) => "InsertSeparator",
            Action::LockLeft(..) => "LockLeft",
            Action::LockRight(..) => "LockRight",
            Action::LockInnerToJoin(..) => "LockInnerToJoin",
            Action::GiveUpJoin(..) => "GiveUpJoin",
            Action::MoveRecords(..) => "MoveRecords",
            Action::RemoveSeparator(..) => "RemoveSeparator",
            Action::FindLeafFull(..) => "FindLeafFull",
            Action::EvictMini(..) => "EvictMini",
            Action::CopyToTail(..) => "CopyToTail",
        }
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        let pages = &state.page[..usize::from(self.pages)];
        let by_page = |f: &dyn Fn(&Page) -> Value| Value::seq(pages.iter().map(f));
        let clients = &state.client[..self.clients.len()];
        let by_client = |f: &dyn Fn(&Client) -> Value| {
            Value::fun(self.clients.iter().cloned().zip(clients.iter().map(f)))
        };
        let inner = state.inner[..usize::from(self.keys)].iter();
        vec![
            ("inner", Value::seq(inner.map(|p| Value::int(*p)))),
            ("innerLock", self.client_or_nobody(state.inner_lock)),
            ("lock", by_page(&|p| self.lock_value(p))),
            ("low", by_page(&|p| Value::int(p.low))),
            ("high", by_page(&|p| Value::int(p.high))),
            ("leaf", by_page(&|p| self.image_value(&p.leaf))),
            ("mini", by_page(&|p| self.mini_value(p))),
            ("call", by_client(&|c| self.call_value(&c.call))),
            ("step", by_client(&|c| Value::str(c.step.name()))),
            ("at", by_client(&|c| Value::int(c.at))),
            ("right", by_client(&|c| Value::int(c.right))),
            ("outdated", self.client_set(state.outdated)),
            ("store", self.image_value(&state.store)),
            ("honest", state.honest.into()),
        ]
    }
}

/// How states read in TLA+.
impl MiniPage {
    fn client_or_nobody(&self, c: u8) -> Value {
        match c {
            NOBODY => Value::str("nobody"),
            c => self.clients[usize::from(c)].clone(),
        }
    }

    fn client_set(&self, bits: u8) -> Value {
        let clients = self.clients.iter().enumerate();
        Value::set(clients.filter_map(|(i, c)| (bits >> i & 1 == 1).then(|| c.clone())))
    }

    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => self.values[usize::from(n) - 1].clone(),
        }
    }

    fn image_value(&self, image: &Image) -> Value {
        let contents = image[..usize::from(self.keys)].iter();
        Value::seq(contents.map(|c| self.content(*c)))
    }

    fn lock_value(&self, page: &Page) -> Value {
        Value::record([
            ("writer", self.client_or_nobody(page.writer)),
            ("readers", self.client_set(page.readers)),
        ])
    }

    fn record_value(&self, record: Record) -> Value {
        let kind = match record.kind() {
            Kind::None => "none",
            Kind::Insert => "insert",
            Kind::Cache => "cache",
            Kind::Tombstone => "tombstone",
            Kind::Phantom => "phantom",
        };
        Value::record([
            ("kind", Value::str(kind)),
            ("value", self.content(record.value())),
            ("hot", record.hot().into()),
        ])
    }

    fn mini_value(&self, page: &Page) -> Value {
        let records = page.mini.rec[..usize::from(self.keys)].iter();
        Value::record([
            ("size", Value::int(page.mini.size)),
            ("mirror", page.mini.mirror.into()),
            ("rec", Value::seq(records.map(|r| self.record_value(*r)))),
        ])
    }

    fn call_value(&self, call: &Call) -> Value {
        let row = |(k, v)| Value::seq([Value::int(k), self.content(v)]);
        match *call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(key)),
                ("value", self.content(value)),
            ]),
            Call::Scan { cursor, rows } => Value::record([
                ("op", Value::str("scan")),
                ("cursor", Value::int(cursor)),
                ("rows", Value::seq(rows.iter().map(row))),
            ]),
        }
    }
}

/// A constant that is a set of small integers, in their order.
fn integers(config: &Config, name: &str, most: usize) -> Result<Vec<u8>, ConfigError> {
    let members = config.members(name, most)?;
    let small = |value: &Value| match value {
        Value::Int(n @ 1..) if *n <= most as i64 => Ok(*n as u8),
        other => Err(config.wrong(
            name,
            format!("expected integers 1 to {most}, found {other}"),
        )),
    };
    members.iter().map(small).collect()
}
