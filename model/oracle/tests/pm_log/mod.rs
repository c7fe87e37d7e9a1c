//! A small store in persistent memory, for the oracle to judge: a log of entries, and a map of them
//! in DRAM.
//!
//! ```text
//! line 0     root word: MAGIC | which half
//! half 0     entry entry entry 0 0 0 …          entry: commit word, key, value; whole words
//! half 1     (the content before the last compaction, or zeros)
//! ```
//!
//! - **Append.** The payload is stored, written back and fenced. Then its commit word is, which
//!   says that there is an entry and how long it is. One word is stored atomically, so an entry is
//!   there or not.
//! - **Invariant.** The word after the last entry is zero and durable. That marks the log's end.
//! - **Compaction.** All live entries, and zeros after them, are written to the other half past the
//!   cache. After a fence, the root word is switched to that half.
//! - **Recovery** reads up to the first zero. If anything follows, an append was interrupted, and a
//!   later entry might end right before its remains. So recovery compacts, and the new half has
//!   zeros after its end.
//!
//! [`Bug`] lists mistakes that people make here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use treering_engine::device::{DeviceError, LINE_SIZE, PmDevice, WORD_SIZE};
use treering_engine::{Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};

const LINE: u64 = LINE_SIZE as u64;
const WORD: u64 = WORD_SIZE as u64;
/// Space for more than the live entries of any program at their greatest length.
const HALF: u64 = 32 << 10;
const MAGIC: u64 = 0x7472_6565_7069_6e00;
const PRESENT: u64 = 1 << 63;
const REMOVED: u64 = 1 << 62;
/// Background work compacts if there are at least this many dead bytes.
const WASTE: u64 = 1 << 10;

const LIMITS: Limits = Limits {
    max_key: 32,
    max_record: 56,
    empty_key: true,
};

/// A seeded mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The root word of a new store is never written back (BUGS P1).
    RootNotFlushed,
    /// Only the first line of a payload is written back.
    SecondLineForgotten,
    /// An append returns before the fence that makes its commit word durable.
    NoFenceBeforeReturn,
    /// No fence between a payload and its commit word.
    CommitBeforePayload,
    /// The commit word and the first word of the payload are stored together, as if sixteen aligned
    /// bytes were stored atomically.
    SixteenByteCommit,
    /// Recovery stores and writes back, but does not fence.
    RecoveryNotFenced,
}

/// The store, with or without a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PmLog(pub(crate) Option<Bug>);

impl Engine for PmLog {
    fn name(&self) -> String {
        "pm-log".into()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Pm(LINE + 2 * HALF)
    }

    fn promise(&self) -> Promise {
        Promise::OnReturn
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Pm(pm) = disk else {
            unreachable!("it asked for persistent memory");
        };
        let log = Log::open(Arc::clone(pm), self.0)?;
        Ok(Arc::new(Open(Mutex::new(log))))
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Log {
    pm: Arc<dyn PmDevice>,
    bug: Option<Bug>,
    half: u64,
    /// The offset of the next commit word in its half.
    end: u64,
    map: Map,
    recovering: bool,
}

fn wrong(why: &str) -> Error {
    Error::Foreign {
        engine: "pm-log",
        why: why.to_owned(),
    }
}

fn on_device<T>(result: std::result::Result<T, DeviceError>) -> Result<T> {
    result.map_err(|e| wrong(&e.to_string()))
}

/// The commit word, then the payload in whole words.
fn entry(key: &[u8], value: Option<&[u8]>, align: u64) -> Vec<u8> {
    let len = value.map_or(0, <[u8]>::len) as u64;
    let removed = if value.is_none() { REMOVED } else { 0 };
    let commit = PRESENT | removed | (key.len() as u64) << 16 | len;
    let mut bytes = commit.to_le_bytes().to_vec();
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value.unwrap_or_default());
    bytes.resize(bytes.len().next_multiple_of(align as usize), 0);
    bytes
}

impl Log {
    fn open(pm: Arc<dyn PmDevice>, bug: Option<Bug>) -> Result<Log> {
        let mut log = Log {
            pm,
            bug,
            half: 0,
            end: 0,
            map: Map::new(),
            recovering: false,
        };
        match log.word(0)? {
            0 => log.turn_to(0)?,
            root if root & !1 == MAGIC => {
                log.half = root & 1;
                log.recover()?;
            }
            _ => return Err(wrong("the root word is none")),
        }
        Ok(log)
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn word(&self, at: u64) -> Result<u64> {
        let mut bytes = [0; WORD_SIZE];
        on_device(self.pm.load(at, &mut bytes))?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_back(&self, from: u64, len: u64) -> Result<()> {
        let lines = from / LINE..(from + len).div_ceil(LINE);
        let most = if self.has(Bug::SecondLineForgotten) {
            1
        } else {
            usize::MAX
        };
        lines
            .take(most)
            .try_for_each(|line| on_device(self.pm.clwb(line * LINE)))
    }

    fn fence(&self) {
        if !(self.recovering && self.has(Bug::RecoveryNotFenced)) {
            self.pm.fence();
        }
    }

    /// Switches the store to that half.
    fn turn_to(&mut self, half: u64) -> Result<()> {
        let new = self.word(0)? == 0;
        on_device(self.pm.store(0, &(MAGIC | half).to_le_bytes()))?;
        if !(new && self.has(Bug::RootNotFlushed)) {
            self.write_back(0, WORD)?;
            self.fence();
        }
        self.half = half;
        Ok(())
    }

    fn start(half: u64) -> u64 {
        LINE + half * HALF
    }

    fn align(&self) -> u64 {
        if self.has(Bug::SixteenByteCommit) {
            2 * WORD
        } else {
            WORD
        }
    }

    fn recover(&mut self) -> Result<()> {
        let mut bytes = vec![0; HALF as usize];
        on_device(self.pm.load(Self::start(self.half), &mut bytes))?;
        let mut rest = bytes.as_slice();
        while let Some((commit, payload)) = rest.split_first_chunk::<WORD_SIZE>() {
            let commit = u64::from_le_bytes(*commit);
            if commit == 0 {
                break;
            }
            let (key, len) = ((commit >> 16 & 0xffff) as usize, (commit & 0xffff) as usize);
            if commit & PRESENT == 0 || key + len > payload.len() {
                return Err(wrong("a commit word is none"));
            }
            let (key, value) = payload[..key + len].split_at(key);
            if commit & REMOVED == 0 {
                self.map.insert(key.into(), value.into());
            } else {
                self.map.remove(key);
            }
            let size = (WORD_SIZE + key.len() + len).next_multiple_of(self.align() as usize);
            rest = rest.get(size..).unwrap_or_default();
        }
        self.end = HALF - rest.len() as u64;
        if rest.iter().any(|byte| *byte != 0) {
            self.recovering = true;
            self.compact()?;
            self.recovering = false;
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let half = 1 - self.half;
        let mut end = 0;
        for (key, value) in &self.map {
            let entry = entry(key, Some(value), self.align());
            on_device(self.pm.ntstore(Self::start(half) + end, &entry))?;
            end += entry.len() as u64;
        }
        let zeros = vec![0; (HALF - end) as usize];
        on_device(self.pm.ntstore(Self::start(half) + end, &zeros))?;
        self.fence();
        self.turn_to(half)?;
        self.end = end;
        Ok(())
    }

    fn live(&self) -> u64 {
        let entries = self.map.iter();
        let size = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            (WORD + (key.len() + value.len()) as u64).next_multiple_of(self.align())
        };
        entries.map(size).sum()
    }

    fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Lsn> {
        let entry = entry(key, value, self.align());
        let len = entry.len() as u64;
        // One word is reserved for the end mark.
        if self.end + len + WORD > HALF {
            self.compact()?;
        }
        if self.end + len + WORD > HALF {
            return Err(wrong("full"));
        }
        let at = Self::start(self.half) + self.end;
        // The commit word is stored last, and says that the rest is there.
        let commit = self.align();
        let (head, payload) = entry.split_at(commit as usize);
        if !payload.is_empty() {
            on_device(self.pm.store(at + commit, payload))?;
            self.write_back(at + commit, payload.len() as u64)?;
            if !self.has(Bug::CommitBeforePayload) {
                self.fence();
            }
        }
        on_device(self.pm.store(at, head))?;
        self.write_back(at, commit)?;
        if !self.has(Bug::NoFenceBeforeReturn) {
            self.fence();
        }
        self.end += len;
        match value {
            Some(value) => self.map.insert(key.into(), value.into()),
            None => self.map.remove(key),
        };
        Ok(Lsn(self.end))
    }
}

struct Open(Mutex<Log>);

impl Open {
    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().expect("nobody panics")
    }
}

impl Kv for Open {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let log = self.log();
        let found = log.map.get(key);
        value.extend_from_slice(found.map_or(&[], |found| found));
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.log().append(key, Some(value))
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.log().append(key, None)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let map = self.log().map.clone();
        for (key, value) in map.range(from.to_vec()..) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// A write that has returned is durable.
    fn sync(&self, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&self) -> Result<Lsn> {
        let mut log = self.log();
        log.compact()?;
        Ok(Lsn(log.end))
    }

    fn pump_due(&self) -> Result<bool> {
        let mut log = self.log();
        if log.end > log.live() + WASTE {
            log.compact()?;
        }
        Ok(false)
    }
}
