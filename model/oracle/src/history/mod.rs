//! Histories: the calls of several clients on one map, with the times of invocation and return.
//!
//! ```text
//! client 0   |--put a 1--|        |-get a → 1-|
//! client 1        |--------scan → (a,1) (c,7)------|
//! client 2      |--put b 2------------------------------- …  (never returned)
//! time       1   2 3     4        5  6        7    8
//! ```
//!
//! Time is a counter that every invocation and every return advances. One call is *before* another
//! if and only if it returned before the other was invoked. A call that failed or never returned
//! may have taken effect at any later time, or never; its answer does not count.
//!
//! Keys are indexes into a sorted table. A call takes 40 bytes, a scanned row 16, so a million
//! calls fit 64 MiB. Each client has a [`Recorder`], and [`History::merge`] combines them;
//! [`History::save`] and [`History::load`] use a text format.

mod file;
mod record;

pub use file::HistoryError;
pub use record::{Recorder, Ticks};

/// The content of a key, as the version of the write that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The key is absent. No write has this version.
    pub const ABSENT: Version = Version(0);
    /// Bytes that no write wrote. No write has this version.
    pub const FOREIGN: Version = Version(u64::MAX);

    /// Whether a put may have this version.
    #[must_use]
    pub fn is_writable(self) -> bool {
        self != Version::ABSENT && self != Version::FOREIGN
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Version::ABSENT => write!(f, "absent"),
            Version::FOREIGN => write!(f, "bytes that no write wrote"),
            Version(number) => write!(f, "version {number}"),
        }
    }
}

/// A key, as an index into the history's sorted table. Indexes have the order of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

/// A key of a table.
pub type Key = Box<[u8]>;

/// What a call does, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read one key. The answer counts if the call returned.
    Get {
        /// The key.
        key: KeyId,
        /// The content that was read.
        found: Version,
    },
    /// Set a key.
    Put {
        /// The key.
        key: KeyId,
        /// The content to set.
        version: Version,
    },
    /// Remove a key, if it is there.
    Delete {
        /// The key.
        key: KeyId,
    },
    /// Write a batch, as an index into [`History::batches`].
    Write(u32),
    /// A scan, as an index into [`History::scans`].
    Scan(u32),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned an answer.
    Returned,
    /// It returned an error. It may have taken effect, or may do so later.
    Failed,
    /// It never returned, as if it had failed at the end of time.
    Pending,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The client.
    pub client: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The tick of its invocation.
    pub invoke: u64,
    /// The tick at which it returned or failed; `u64::MAX` if it is pending.
    pub end: u64,
    /// What it does, and its answer.
    pub action: Action,
}

/// A row that a scan delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: KeyId,
    /// The content of the key.
    pub version: Version,
}

/// Where a scan begins, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Upwards, from this key, inclusive.
    From(KeyId),
    /// Downwards, from this key, exclusive.
    Below(KeyId),
    /// Downwards, from the last key.
    End,
}

impl Start {
    /// Whether the scan goes downwards.
    #[must_use]
    pub fn is_down(self) -> bool {
        !matches!(self, Start::From(_))
    }

    /// Whether the scan reaches `key` before `other`.
    #[must_use]
    pub fn first_to(self, key: KeyId, other: KeyId) -> bool {
        if self.is_down() {
            key > other
        } else {
            key < other
        }
    }

    /// Whether the scan may return `key`.
    #[must_use]
    pub fn admits(self, key: KeyId) -> bool {
        match self {
            Start::From(from) => key >= from,
            Start::Below(before) => key < before,
            Start::End => true,
        }
    }
}

/// A scan. Its visitor stops at the `limit`-th row, or at the first row beyond `through`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Where it begins.
    pub start: Start,
    /// The last key of interest.
    pub through: Option<KeyId>,
    /// The most rows, at least 1.
    pub limit: u32,
    /// The index of its first row in [`History::rows`].
    pub first: u32,
    /// The number of rows that the visitor was given.
    pub rows: u32,
}

/// A batch: changes of different keys that take effect together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The index of its first change in [`History::rows`]. The version of a delete is
    /// [`Version::ABSENT`].
    pub first: u32,
    /// The number of its changes.
    pub changes: u32,
}

/// A recorded history. Calls are in the order of their invocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    keys: Vec<Key>,
    calls: Vec<Call>,
    scans: Vec<Scan>,
    batches: Vec<Batch>,
    rows: Vec<Row>,
}

impl History {
    /// Makes a history of parts in any order. Sorts the keys, and the calls by invocation.
    ///
    /// # Panics
    /// If a key, scan, batch or row does not exist.
    #[must_use]
    pub fn assemble(
        keys: Vec<Key>,
        calls: Vec<Call>,
        scans: Vec<Scan>,
        batches: Vec<Batch>,
        rows: Vec<Row>,
    ) -> History {
        let mut history = History {
            keys,
            calls,
            scans,
            batches,
            rows,
        };
        if !history.keys.is_sorted_by(|a, b| a < b) {
            history.sort_keys();
        }
        history
            .calls
            .sort_unstable_by_key(|call| (call.invoke, call.client));
        history
    }

    fn sort_keys(&mut self) {
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let place = |key: &Key| KeyId(sorted.binary_search(key).expect("each key is there") as u32);
        let renamed: Vec<KeyId> = self.keys.iter().map(place).collect();
        let rename = |key: &mut KeyId| *key = renamed[key.0 as usize];
        for call in &mut self.calls {
            match &mut call.action {
                Action::Get { key, .. } | Action::Put { key, .. } | Action::Delete { key } => {
                    rename(key);
                }
                Action::Scan(_) | Action::Write(_) => {}
            }
        }
        for scan in &mut self.scans {
            if let Start::From(key) | Start::Below(key) = &mut scan.start {
                rename(key);
            }
            scan.through.iter_mut().for_each(rename);
        }
        self.rows.iter_mut().for_each(|row| rename(&mut row.key));
        self.keys = sorted;
    }

    /// All keys, sorted.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The bytes of a key.
    #[must_use]
    pub fn key(&self, id: KeyId) -> &[u8] {
        &self.keys[id.0 as usize]
    }

    /// All calls, in the order of their invocations.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// All scans.
    #[must_use]
    pub fn scans(&self) -> &[Scan] {
        &self.scans
    }

    /// All batches.
    #[must_use]
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// The changes of one batch.
    #[must_use]
    pub fn changes_of(&self, batch: &Batch) -> &[Row] {
        &self.rows[batch.first as usize..][..batch.changes as usize]
    }

    /// What a put, a delete or a batch changes. Empty for a read.
    #[must_use]
    pub fn written_by(&self, call: &Call) -> Vec<Row> {
        match call.action {
            Action::Put { key, version } => vec![Row { key, version }],
            Action::Delete { key } => vec![Row {
                key,
                version: Version::ABSENT,
            }],
            Action::Write(batch) => self.changes_of(&self.batches[batch as usize]).to_vec(),
            Action::Get { .. } | Action::Scan(_) => Vec::new(),
        }
    }

    /// The rows of all scans, and the changes of all batches.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of one scan.
    #[must_use]
    pub fn rows_of(&self, scan: &Scan) -> &[Row] {
        &self.rows[scan.first as usize..][..scan.rows as usize]
    }

    /// The index of the row of `scan` at which the visitor stopped, if it did.
    #[must_use]
    pub fn broke_at(&self, scan: &Scan) -> Option<usize> {
        self.rows_of(scan).iter().enumerate().position(|(n, row)| {
            let beyond = |through| scan.start.first_to(through, row.key);
            n + 1 >= scan.limit as usize || scan.through.is_some_and(beyond)
        })
    }

    /// The keys that `scan` covers: from its beginning to the row at which the visitor stopped, or
    /// to the end. A range of key indexes.
    #[must_use]
    pub fn covered(&self, scan: &Scan) -> std::ops::Range<u32> {
        let all = self.keys.len() as u32;
        let last = (self.broke_at(scan)).map(|last| self.rows_of(scan)[last].key.0);
        match scan.start {
            Start::From(from) => from.0..last.map_or(all, |last| last + 1),
            Start::Below(before) => last.unwrap_or(0)..before.0,
            Start::End => last.unwrap_or(0)..all,
        }
    }

    /// A description of a call, for reports.
    #[must_use]
    pub fn describe(&self, call: &Call) -> String {
        let name = |key: KeyId| show_key(self.key(key));
        let asked = match call.action {
            Action::Get { key, found } if call.outcome == Outcome::Returned => {
                return format!("get {} found {found}", name(key));
            }
            Action::Get { key, .. } => format!("get {}", name(key)),
            Action::Put { key, version } => format!("put {} {version}", name(key)),
            Action::Delete { key } => format!("delete {}", name(key)),
            Action::Write(_) => {
                let changes = self.written_by(call).into_iter().map(|row| match row {
                    Row { key, version } if version == Version::ABSENT => {
                        format!("delete {}", name(key))
                    }
                    Row { key, version } => format!("put {} {version}", name(key)),
                });
                format!("write [{}]", changes.collect::<Vec<_>>().join(", "))
            }
            Action::Scan(scan) => {
                let scan = &self.scans[scan as usize];
                let through = scan
                    .through
                    .map_or(String::new(), |key| format!(" through {}", name(key)));
                let start = match scan.start {
                    Start::From(from) => format!("scan from {}", name(from)),
                    Start::Below(before) => format!("scan back from below {}", name(before)),
                    Start::End => "scan back from the end".to_owned(),
                };
                format!(
                    "{start}{through}, {} rows of at most {}",
                    scan.rows, scan.limit
                )
            }
        };
        match call.outcome {
            Outcome::Returned => asked,
            Outcome::Failed => format!("{asked}: failed, may take effect later"),
            Outcome::Pending => format!("{asked}: never returned"),
        }
    }
}

/// A key as text, for reports.
#[must_use]
pub fn show_key(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => {
            let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_calls_are_at_home_in_64_mib() {
        assert!(size_of::<Call>() <= 40);
        assert!(size_of::<Row>() <= 16);
    }

    #[test]
    fn keys_are_brought_into_order_and_everything_that_names_them_follows() {
        let keys = [&b"b"[..], b"a"].map(Key::from).to_vec();
        let calls = vec![
            Call {
                client: 0,
                outcome: Outcome::Returned,
                invoke: 3,
                end: 4,
                action: Action::Scan(0),
            },
            Call {
                client: 0,
                outcome: Outcome::Returned,
                invoke: 1,
                end: 2,
                action: Action::Put {
                    key: KeyId(0),
                    version: Version(1),
                },
            },
        ];
        let scans = vec![Scan {
            start: Start::From(KeyId(1)),
            through: Some(KeyId(1)),
            limit: 9,
            first: 0,
            rows: 1,
        }];
        let rows = vec![Row {
            key: KeyId(0),
            version: Version(1),
        }];
        let history = History::assemble(keys, calls, scans, Vec::new(), rows);
        assert_eq!(
            history.describe(&history.calls()[0]),
            "put \"b\" version 1",
            "calls are in order of time"
        );
        let scan = &history.scans()[0];
        assert_eq!(
            (scan.start, scan.through),
            (Start::From(KeyId(0)), Some(KeyId(0)))
        );
        assert_eq!(history.rows()[0].key, KeyId(1));
        assert_eq!(
            (history.broke_at(scan), history.covered(scan)),
            (Some(0), 0..2)
        );
    }
}
