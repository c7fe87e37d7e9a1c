//! An engine with batches, and mistakes that can be switched on. It keeps a map in memory, and a
//! log with one block for each write.
//!
//! ```text
//! block | number of changes | changes: key length, value length or all ones, key, value |
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use treering_oracle::device::BlockDevice;
use treering_oracle::{
    BLOCK_SIZE, Batch, Disk, DiskKind, Engine, Error, IoClass, Kv, Lba, Limits, Lsn, Promise,
    Result, Visitor,
};

/// A mistake with batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// Each change is in a block of its own, so that a power cut may keep some and lose others.
    LoggedInParts,
    /// The log gets a batch only after the next write.
    LoggedLate,
    /// Readers see one change after another.
    ShownInParts,
    /// A batch that is refused as too large has made its first change.
    RefusedInPart,
    /// A batch whose block could not be written has made its first change.
    FailsInPart,
    /// The last change is left out.
    LeavesOneOut,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

struct State {
    map: Map,
    /// The number of blocks in use.
    end: u64,
    /// A batch that is not in the log yet.
    late: Option<Changes>,
    /// The error after which it takes no more writes.
    poison: Option<String>,
}

struct Log {
    device: Arc<dyn BlockDevice>,
    state: Mutex<State>,
    mistake: Mistake,
}

fn apply(map: &mut Map, (key, value): &(Vec<u8>, Option<Vec<u8>>)) {
    match value {
        Some(value) => map.insert(key.clone(), value.clone()),
        None => map.remove(key),
    };
}

fn encode(changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Vec<u8> {
    let mut block = (changes.len() as u16).to_le_bytes().to_vec();
    for (key, value) in changes {
        block.extend((key.len() as u16).to_le_bytes());
        let len = value.as_ref().map_or(u16::MAX, |value| value.len() as u16);
        block.extend(len.to_le_bytes());
        block.extend(key);
        block.extend(value.as_deref().unwrap_or_default());
    }
    block
}

fn decode(block: &[u8]) -> Changes {
    let word = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
    let mut at = 2;
    let mut change = || {
        let (key, value) = (word(at), word(at + 2));
        let from = at + 4 + key;
        let there = value != usize::from(u16::MAX);
        let to = from + if there { value } else { 0 };
        let change = (
            block[at + 4..from].to_vec(),
            there.then(|| block[from..to].to_vec()),
        );
        at = to;
        change
    };
    (0..word(0)).map(|_| change()).collect()
}

fn check(state: &State) -> Result<()> {
    match state.poison.clone() {
        Some(why) => Err(Error::Poisoned { why }),
        None => Ok(()),
    }
}

/// After a failure, except for lack of space, nobody knows what the log holds.
fn note(state: &mut State, done: Result<()>) -> Result<()> {
    if let Some(e) = done.as_ref().err().filter(|e| !e.is_no_space()) {
        state.poison = Some(e.to_string());
    }
    done
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, state: &mut State, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        let mut block = encode(changes);
        block.resize(BLOCK_SIZE, 0);
        check(state)?;
        let written = self.device.write(Lba(state.end), &block, IoClass::Log);
        note(state, written.map_err(Error::from))?;
        state.end += 1;
        Ok(())
    }

    fn log_late(&self, state: &mut State) -> Result<()> {
        match state.late.take() {
            Some(late) => self.log(state, &late),
            None => Ok(()),
        }
    }

    fn write_one(&self, key: &[u8], value: Option<&[u8]>) -> Result<Lsn> {
        let state = &mut *self.state();
        let change = (key.to_vec(), value.map(<[u8]>::to_vec));
        self.log(state, std::slice::from_ref(&change))?;
        self.log_late(state)?;
        apply(&mut state.map, &change);
        Ok(Lsn(state.end))
    }
}

impl Kv for Log {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let state = self.state();
        let found = state.map.get(key);
        value.extend(found.into_iter().flatten());
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.write_one(key, Some(value))
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.write_one(key, None)
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let changes = batch
            .iter()
            .map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
        let mut changes: Changes = changes.collect();
        let mut state = self.state();
        let bytes = encode(&changes).len();
        let first = |state: &mut State| {
            if let Some(change) = changes.first() {
                apply(&mut state.map, change);
            }
        };
        if bytes > BLOCK_SIZE {
            if self.mistake == Mistake::RefusedInPart {
                first(&mut state);
            }
            return Err(Error::BatchTooLarge {
                bytes: bytes as u64,
                max: BLOCK_SIZE as u64,
            });
        }
        self.log_late(&mut state)?;
        if changes.is_empty() {
            return Ok(Lsn(state.end));
        }
        match self.mistake {
            Mistake::LoggedInParts => {
                for change in &changes {
                    self.log(&mut state, std::slice::from_ref(change))?;
                }
            }
            Mistake::LoggedLate => state.late = Some(changes.clone()),
            _ => {
                if let Err(e) = self.log(&mut state, &changes) {
                    if self.mistake == Mistake::FailsInPart {
                        first(&mut state);
                    }
                    return Err(e);
                }
            }
        }
        if self.mistake == Mistake::LeavesOneOut && changes.len() > 1 {
            changes.pop();
        }
        let lsn = Lsn(state.end);
        for change in &changes {
            apply(&mut state.map, change);
            if self.mistake == Mistake::ShownInParts {
                drop(state);
                std::thread::yield_now();
                state = self.state();
            }
        }
        Ok(lsn)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let map = self.state().map.clone();
        for (key, value) in map.range(from.to_vec()..) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self, _: Lsn) -> Result<()> {
        let state = &mut *self.state();
        self.log_late(state)?;
        check(state)?;
        note(state, self.device.flush().map_err(Error::from))
    }
}

/// The engine, on a device of so many blocks.
pub(crate) struct BatchLog {
    pub(crate) mistake: Mistake,
    pub(crate) blocks: u64,
}

impl Engine for BatchLog {
    fn name(&self) -> String {
        "batch-log".into()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Blocks(self.blocks)
    }

    fn promise(&self) -> Promise {
        Promise::OnSync
    }

    fn limits(&self) -> Limits {
        Limits {
            max_key: 40,
            max_record: 300,
            empty_key: true,
        }
    }

    fn batch_bytes(&self) -> Option<u64> {
        Some(BLOCK_SIZE as u64)
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Blocks(device) = disk else {
            unreachable!("it asked for blocks")
        };
        let (mut map, mut end, mut block) = (Map::new(), 0, vec![0; BLOCK_SIZE]);
        loop {
            device.read(Lba(end), &mut block, IoClass::Log)?;
            let changes = decode(&block);
            if changes.is_empty() {
                break;
            }
            changes.iter().for_each(|change| apply(&mut map, change));
            end += 1;
        }
        // Blocks after a hole were never acknowledged, and must not come back when the hole is
        // filled.
        for later in end..device.capacity_blocks() {
            device.read(Lba(later), &mut block, IoClass::Log)?;
            if block.iter().any(|byte| *byte != 0) {
                device.write(Lba(later), &vec![0; BLOCK_SIZE], IoClass::Log)?;
            }
        }
        device.flush()?;
        Ok(Arc::new(Log {
            device: Arc::clone(device),
            state: Mutex::new(State {
                map,
                end,
                late: None,
                poison: None,
            }),
            mistake: self.mistake,
        }))
    }
}
