//! Judge your own engine in 40 lines: `cargo run --release -p treering-oracle --example judge`.
//!
//! The engine here keeps a map in memory and a log with one block for each write. With `--
//! forgetful` its `sync` forgets to flush, and the oracle finds the smallest program that loses a
//! write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use treering_engine::device::BlockDevice;
use treering_engine::{BLOCK_SIZE, IoClass, Kv, Lba, Lsn, Result, Visitor};
use treering_oracle::campaign::{self, Plan};
use treering_oracle::crash::Effort;
use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Log {
    device: Arc<dyn BlockDevice>,
    state: Mutex<(Map, u64)>,
    forgetful: bool,
}

impl Log {
    /// Appends a block: the key's length, the value's length (all ones for a delete), key and
    /// value.
    fn append(&self, key: &[u8], value: Option<&[u8]>) -> Result<Lsn> {
        let (map, end) = &mut *self.state.lock().expect("nobody panics");
        let mut block = vec![0; BLOCK_SIZE];
        block[..2].copy_from_slice(&(key.len() as u16 + 1).to_le_bytes());
        let len = value.map_or(u16::MAX, |value| value.len() as u16);
        block[2..4].copy_from_slice(&len.to_le_bytes());
        block[4..][..key.len()].copy_from_slice(key);
        block[4 + key.len()..][..value.map_or(0, <[u8]>::len)]
            .copy_from_slice(value.unwrap_or_default());
        self.device.write(Lba(*end), &block, IoClass::Log)?;
        *end += 1;
        apply(map, key, value);
        Ok(Lsn(*end))
    }
}

fn apply(map: &mut Map, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => map.insert(key.into(), value.into()),
        None => map.remove(key),
    };
}

// 1. What it does.
impl Kv for Log {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let state = self.state.lock().expect("nobody panics");
        let found = state.0.get(key);
        value.extend_from_slice(found.map_or(&[], |found| found));
        Ok(found.is_some())
    }
    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.append(key, Some(value))
    }
    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.append(key, None)
    }
    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let map = self.state.lock().expect("nobody panics").0.clone();
        for (key, value) in map.range(from.to_vec()..) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn sync(&self, _: Lsn) -> Result<()> {
        if !self.forgetful {
            self.device.flush()?;
        }
        Ok(())
    }
}

struct LogEngine {
    forgetful: bool,
}

// 2. How it is opened, what it promises, what it takes.
impl Engine for LogEngine {
    fn name(&self) -> String {
        "log".into()
    }
    fn disk(&self) -> DiskKind {
        DiskKind::Blocks(2_000)
    }
    fn promise(&self) -> Promise {
        Promise::OnSync
    }
    fn limits(&self) -> Limits {
        Limits {
            max_key: 100,
            max_record: 2_000,
            empty_key: true,
        }
    }
    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Blocks(device) = disk else {
            unreachable!("it asked for blocks")
        };
        let (mut map, mut end, mut block) = (Map::new(), 0, vec![0; BLOCK_SIZE]);
        loop {
            device.read(Lba(end), &mut block, IoClass::Log)?;
            let word = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
            let Some(key) = word(0).checked_sub(1) else {
                break;
            };
            let value = (word(2) != usize::from(u16::MAX)).then(|| &block[4 + key..][..word(2)]);
            apply(&mut map, &block[4..4 + key], value);
            end += 1;
        }
        // Blocks after a hole were never acknowledged, and must not come back when the hole is
        // filled.
        device.write(Lba(end), &vec![0; BLOCK_SIZE], IoClass::Log)?;
        for later in end..device.capacity_blocks() {
            device.read(Lba(later), &mut block, IoClass::Log)?;
            if block.iter().any(|byte| *byte != 0) {
                device.write(Lba(later), &vec![0; BLOCK_SIZE], IoClass::Log)?;
            }
        }
        device.flush()?;
        Ok(Arc::new(Log {
            device: Arc::clone(device),
            state: Mutex::new((map, end)),
            forgetful: self.forgetful,
        }))
    }
}

// 3. Judge it.
fn main() {
    let engine = LogEngine {
        forgetful: std::env::args().any(|arg| arg == "forgetful"),
    };
    let plan = Plan {
        threads: 2,
        ..Plan::default()
    };
    let beside = campaign::differential(&engine, &plan, &|_| {});
    let cut = campaign::crashes(&engine, &plan, Effort::default(), &|_| {});
    let (operations, states) = (beside.done.operations, cut.done.states);
    println!("{operations} operations, {states} crash states");
    for (seed, failure) in beside.failure.into_iter().chain(cut.failure) {
        let said = failure.finding.to_string();
        println!("seed {seed}: {said}");
        println!("{}", failure.program.save(&engine.name(), Some(&said)));
    }
}
