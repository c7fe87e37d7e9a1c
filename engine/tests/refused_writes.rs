//! Tests a write-back that finds no space while its page is changed again: the page stays dirty
//! from its first change on.

mod support;

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use support::{STORES, device_of, read_all, tiny};
use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
use treering_engine::{
    Durability, IoClass, Kv, Lba, Lsn, Options, Progress, Store, SystemClock, Task, TreeKind,
    required_blocks,
};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Refuses one write, to the log or to any other block, and calls a function first.
struct Refusing {
    memory: Arc<MemDevice>,
    of_log: AtomicBool,
    armed: AtomicBool,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Refusing {
    fn on(memory: Arc<MemDevice>) -> Arc<Refusing> {
        Arc::new(Refusing {
            memory,
            of_log: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            meanwhile: Mutex::new(None),
        })
    }

    fn copy(&self) -> Arc<Refusing> {
        Refusing::on(device_of(&read_all(&self.memory)))
    }
}

impl BlockDevice for Refusing {
    fn capacity_blocks(&self) -> u64 {
        self.memory.capacity_blocks()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.memory.read(lba, buf, class)
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        let wanted = (class == IoClass::Log) == self.of_log.load(Ordering::Acquire);
        if wanted && self.armed.swap(false, Ordering::AcqRel) {
            let meanwhile = self.meanwhile.lock().unwrap().take();
            meanwhile.into_iter().for_each(|meanwhile| meanwhile());
            return Err(DeviceError::Io {
                what: "write",
                lba,
                source: ErrorKind::StorageFull.into(),
            });
        }
        self.memory.write(lba, bytes, class)
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.memory.trim(lba, blocks)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

fn open(device: &Arc<Refusing>, options: &Options) -> Arc<Store> {
    let store = Store::open(device.clone(), Arc::new(SystemClock::new()), options).unwrap();
    store.abandon_on_drop();
    Arc::new(store)
}

#[test]
fn a_page_with_a_refused_write_stays_dirty_from_its_first_change() {
    for pages in STORES {
        for durability in [Durability::PerCommit, Durability::Deferred] {
            let options = Options {
                durability,
                ..tiny(TreeKind::BTree, pages)
            };
            refuse_one(&options, &format!("{pages:?}, {durability:?}"));
        }
    }
}

/// Refuses the write of a page, or of the log before it if that has not been flushed yet.
fn refuse_one(options: &Options, story: &str) {
    let device = Refusing::on(Arc::new(MemDevice::new(required_blocks(options, 600))));
    let store = open(&device, options);
    store.put(b"before", &value(0)).unwrap();
    // The page is durable in its present state, so that a modification log may build on it.
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    store.put(b"first", &value(1)).unwrap();
    let writer = Arc::clone(&store);
    let then = move || {
        writer.put(b"then", &value(2)).unwrap();
    };
    *device.meanwhile.lock().unwrap() = Some(Box::new(then));
    let of_log = options.durability == Durability::Deferred;
    device.of_log.store(of_log, Ordering::Release);
    device.armed.store(true, Ordering::Release);
    let refused = store.checkpoint().unwrap_err();
    assert!(refused.is_no_space(), "{story}: {refused:?}");
    // Continues the refused checkpoint. The process may be killed after each step.
    while store.pump(Task::Checkpoint).unwrap() == Progress::More {
        check(&device.copy(), options, of_log, story);
    }
    check(&device.copy(), options, of_log, story);
    store.sync(Lsn(u64::MAX)).unwrap();
    check(&device.copy(), options, false, story);
    store.checkpoint().unwrap();
    check(&device.copy(), options, false, story);
}

/// Changes of more than a segment.
fn value(n: u8) -> Vec<u8> {
    vec![n; 150]
}

fn check(device: &Arc<Refusing>, options: &Options, may_lack: bool, story: &str) {
    let store = open(device, options);
    let mut found_value = Vec::new();
    for (key, n) in [("before", 0), ("first", 1), ("then", 2)] {
        let found = store.get(key.as_bytes(), &mut found_value);
        let found = found.unwrap_or_else(|e| panic!("{story}: {key}: {e}"));
        let lacks = !found && may_lack && n > 0;
        assert!(lacks || found && found_value == value(n), "{story}: {key}");
    }
}
