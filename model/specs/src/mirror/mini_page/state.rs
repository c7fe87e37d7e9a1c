//! The variables of `MiniPage.tla` and `MiniTree.tla`.

use std::hash::{Hash, Hasher};

use super::records::{Content, Image, Page};
use super::room::{self, CLIENTS, KEYS, Row, Set};

pub(super) const PAGES: usize = KEYS;
/// Room for the rows of a scan. A scan returns each key once; with a seeded bug it returns one page
/// twice.
pub(super) const ROWS: usize = 2 * KEYS;

pub(super) const NO_PAGE: u8 = 0;

/// The rows that a scan has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Rows {
    // invariant: entries from `len` on are no row, so that equal rows are equal arrays.
    rows: [Row; ROWS],
    len: u8,
}

impl Rows {
    pub(super) const NONE: Self = Self {
        rows: [room::NO_ROW; ROWS],
        len: 0,
    };

    pub(super) fn push(&mut self, key: u8, value: Content) -> Option<()> {
        *self.rows.get_mut(usize::from(self.len))? = room::row(key, value);
        self.len += 1;
        Some(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, Content)> {
        let rows = &self.rows[..usize::from(self.len)];
        rows.iter().copied().map(room::parts)
    }
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// A get (`GetCall`).
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: Content,
    },
    /// A put or delete (`WriteCall`).
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: Content,
    },
    /// A scan (`ScanCall`).
    Scan {
        /// The next key.
        cursor: u8,
        /// The rows returned so far.
        rows: Rows,
    },
}

impl Call {
    /// `Target`. 0 if there is no call.
    pub(super) fn target(&self) -> u8 {
        match *self {
            Self::Idle => 0,
            Self::Get { key, .. } | Self::Write { key, .. } => key,
            Self::Scan { cursor, .. } => cursor,
        }
    }
}

/// A client's progress: the strings of `Steps`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, bitcode::Encode, bitcode::Decode,
)]
#[strum(serialize_all = "lowercase")]
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
    #[strum(serialize = "inner first")]
    InnerFirst,
    Join,
    Joined,
}

/// A client: `call`, `step`, `at` and `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Client {
    pub(super) call: Call,
    pub(super) step: Step,
    pub(super) at: u8,
    pub(super) right: u8,
}

impl Hash for Client {
    // One word, two for a scan.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let (op, a, b) = match self.call {
            Call::Idle => (0, 0, 0),
            Call::Get { key, got } => (1, key, got),
            Call::Write { key, value } => (2, key, value),
            Call::Scan { cursor, rows } => {
                room::hash_rows(&rows.rows, hasher);
                (3, cursor, rows.len)
            }
        };
        let (step, at, right) = (self.step as u8, self.at, self.right);
        hasher.write_u64(u64::from_le_bytes([op, a, b, step, at, right, 0, 0]));
    }
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) page: [Page; PAGES],
    pub(super) client: [Client; CLIENTS],
    pub(super) inner: [u8; KEYS],
    pub(super) store: Image,
    pub(super) inner_lock: u8,
    pub(super) outdated: Set,
    pub(super) honest: bool,
}

impl State {
    pub(super) fn page(&self, p: u8) -> &Page {
        &self.page[usize::from(p) - 1]
    }

    pub(super) fn page_mut(&mut self, p: u8) -> &mut Page {
        &mut self.page[usize::from(p) - 1]
    }

    pub(super) fn client(&self, c: u8) -> &Client {
        &self.client[usize::from(c)]
    }

    pub(super) fn client_mut(&mut self, c: u8) -> &mut Client {
        &mut self.client[usize::from(c)]
    }

    /// The page that a client goes to or holds.
    pub(super) fn page_of(&self, c: u8) -> &Page {
        self.page(self.client(c).at)
    }

    /// The page that the inner node leads to for a key (`Child`).
    pub(super) fn child(&self, key: u8) -> u8 {
        let begin = self.inner[..usize::from(key)].iter().rev();
        begin.copied().find(|p| *p != NO_PAGE).unwrap_or(NO_PAGE)
    }

    pub(super) fn holds(&self, key: u8) -> Content {
        self.store[usize::from(key) - 1]
    }
}
