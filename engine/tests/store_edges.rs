//! Regression tests for cases that random programs seldom reach: keys that share almost all of
//! their bytes, a full store, damage after a clean close, and a flush that fails during another
//! thread's commit.

mod support;

use std::sync::{Arc, Mutex};

use support::{IN_PLACE, Pages, TREES};
use treering_engine::device::{AlignedBuf, BlockDevice, CrashDevice, DeviceError, MemDevice};
use treering_engine::{
    BLOCK_SIZE, Durability, Error, IoClass, Kv, Lba, Options, Store, SystemClock, Task, TreeKind,
    required_blocks, verify,
};

fn options(tree: TreeKind, store: Pages, page_size: usize) -> Options {
    Options {
        log_bytes: 64 * page_size as u64,
        checkpoint_log_bytes: 32 * page_size as u64,
        log_buffer_bytes: 8 * page_size as u64,
        durability: Durability::Deferred,
        ..support::options(tree, store, page_size, 64, 0)
    }
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<impl BlockDevice + 'static>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
}

/// A split moves half a page. If its log record repeated the shared prefix in every key, the record
/// would be many pages long and fit into no log.
#[test]
fn keys_with_long_shared_prefixes_split_within_a_small_log() {
    for (tree, page_size) in TREES
        .into_iter()
        .flat_map(|t| [4096, 8192, 16384].map(|s| (t, s)))
    {
        let options = options(tree, IN_PLACE, page_size);
        let device = Arc::new(MemDevice::new(1 << 15));
        let store = open(&device, &options).unwrap();
        let prefix = vec![b'p'; page_size / 8 - 12];
        let key = |i: u32| [prefix.as_slice(), format!("{i:06}").as_bytes()].concat();
        for j in 0..20_000_u32 {
            let i = j * 7919 % 20_000;
            store
                .put(&key(i), b"")
                .unwrap_or_else(|e| panic!("{tree:?}, {page_size}-byte pages, put {j}: {e}"));
        }
        assert!(store.stats().splits > 0);
        store.close().unwrap();
        let store = open(&device, &options).unwrap();
        let mut value = Vec::new();
        for i in 0..20_000 {
            assert!(store.get(&key(i), &mut value).unwrap(), "{page_size}: {i}");
        }
    }
}

/// Neighbouring keys differ only near their ends, so separators have hundreds of bytes and a
/// snapshot of the inner level takes many slots. These slots must be available even when leaves
/// have filled the store.
#[test]
fn a_full_store_with_long_separators_can_checkpoint_and_reopen() {
    for (tree, kind) in support::all() {
        let options = options(tree, kind, 4096);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 1000)));
        let store = open(&device, &options).unwrap();
        let mut random = 1_u64;
        let mut kept = Vec::new();
        let full = 'fill: loop {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            for last in [b'a', b'b'] {
                let key = [&[b'-'; 300][..], &random.to_be_bytes(), &[last]].concat();
                match store.put(&key, &[7; 1000]) {
                    Ok(_) => kept.push(key),
                    Err(error) => break 'fill error,
                }
            }
        };
        assert!(
            matches!(full, Error::Full { .. }),
            "{tree:?} on {kind:?}: {full}"
        );
        assert!(
            kept.len() > 1000,
            "{tree:?} on {kind:?}: full after {}",
            kept.len()
        );
        store
            .checkpoint()
            .unwrap_or_else(|e| panic!("{tree:?} on {kind:?}: {e}"));
        drop(store);
        let store = open(&device, &options).unwrap_or_else(|e| panic!("{tree:?} on {kind:?}: {e}"));
        let mut value = Vec::new();
        for key in &kept {
            assert!(store.get(key, &mut value).unwrap(), "{tree:?} on {kind:?}");
        }
    }
}

#[test]
fn a_full_store_can_be_emptied_and_filled_again() {
    for (tree, kind) in support::all() {
        let options = Options {
            cache_bytes: 4 << 20,
            ..options(tree, kind, 4096)
        };
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let store = open(&device, &options).unwrap();
        let count = (0_u32..)
            .find(|n| store.put(&n.to_be_bytes(), &[1; 400]).is_err())
            .unwrap();
        for i in 0..count {
            store.delete(&i.to_be_bytes()).unwrap();
        }
        for i in 0..count * 9 / 10 {
            store
                .put(&i.to_be_bytes(), &[2; 400])
                .unwrap_or_else(|e| panic!("{tree:?} on {kind:?}: {i} of {count}: {e}"));
        }
    }
}

/// The double-write journal still holds very old images. They may repair a torn write, but must
/// never replace a page that was written completely and damaged later.
#[test]
fn damage_after_a_clean_close_is_reported_and_never_repaired_with_a_stale_page() {
    TREES.into_iter().for_each(damage_is_told);
}

fn damage_is_told(tree: TreeKind) {
    let options = Options {
        write_batch_pages: 8,
        ..options(tree, IN_PLACE, 4096)
    };
    let device = Arc::new(MemDevice::new(required_blocks(&options, 100)));
    let store = open(&device, &options).unwrap();
    for i in 0..200_u32 {
        store.put(&i.to_be_bytes(), b"old").unwrap();
        store
            .put(&(i | 1 << 16).to_be_bytes(), &[b'o'; 100])
            .unwrap();
    }
    store.checkpoint().unwrap();
    for i in (0..200_u32).step_by(20) {
        store
            .put(&(i | 1 << 16).to_be_bytes(), &[b'n'; 100])
            .unwrap();
        store.checkpoint().unwrap();
    }
    store.close().unwrap();

    let mut damaged = 0;
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    // After superblocks, log and journal.
    let homes = 2 + options.log_bytes / BLOCK_SIZE as u64 + 2 * options.write_batch_pages as u64;
    for home in homes..device.capacity_blocks() {
        device.read(Lba(home), &mut block, IoClass::Page).unwrap();
        if &block[24..26] != b"TR" {
            continue;
        }
        block[2000] ^= 1;
        device.write(Lba(home), &block, IoClass::Page).unwrap();
        let report = verify(device.clone()).unwrap();
        assert_eq!(report.pages_repaired, 0, "block {home}");
        let told = !report.damage.is_empty() || {
            let refused = open(&device, &options).and_then(|store| {
                let mut value = Vec::new();
                for i in (0..200_u32).flat_map(|i| [i, i | 1 << 16]) {
                    assert!(store.get(&i.to_be_bytes(), &mut value)?);
                    if i > 1 << 16 && (i & 0xffff).is_multiple_of(20) {
                        assert_eq!(value[0], b'n', "block {home}: a stale value of {i}");
                    }
                }
                Ok(())
            });
            refused.is_err()
        };
        assert!(told, "block {home}");
        damaged += 1;
        block[2000] ^= 1;
        device.write(Lba(home), &block, IoClass::Page).unwrap();
    }
    assert!(damaged > 5, "{damaged} pages damaged");
}

type Hook = Box<dyn FnOnce() + Send>;

/// A device that calls a function once, after the first write to the log.
struct Interrupted {
    inner: Arc<CrashDevice>,
    hook: Mutex<Option<Hook>>,
}

impl BlockDevice for Interrupted {
    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }
    fn read(&self, at: Lba, into: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.inner.read(at, into, class)
    }
    fn write(&self, at: Lba, from: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.inner.write(at, from, class)?;
        if class == IoClass::Log {
            let hook = self.hook.lock().unwrap().take();
            if let Some(hook) = hook {
                hook();
            }
        }
        Ok(())
    }
    fn trim(&self, at: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.inner.trim(at, blocks)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }
}

/// After a failed flush, the device may have dropped any write before it, including those of other
/// threads. Their own flush then succeeds although their writes are lost (fsyncgate).
#[test]
fn a_flush_that_fails_in_another_thread_acknowledges_nothing() {
    TREES.into_iter().for_each(a_flush_that_failed);
}

fn a_flush_that_failed(tree: TreeKind) {
    let options = Options {
        durability: Durability::PerCommit,
        ..options(tree, IN_PLACE, 4096)
    };
    let crash = Arc::new(CrashDevice::new(required_blocks(&options, 300)));
    let device = Arc::new(Interrupted {
        inner: crash.clone(),
        hook: Mutex::new(None),
    });
    let store = Arc::new(open(&device, &options).unwrap());
    for i in 0..500_u32 {
        store.put(&i.to_be_bytes(), &[1; 200]).unwrap();
    }
    store.pump(Task::Checkpoint).unwrap();
    let (other, failing) = (store.clone(), crash.clone());
    *device.hook.lock().unwrap() = Some(Box::new(move || {
        failing.fail_flush_in(0);
        assert!(other.checkpoint().is_err());
    }));
    let acknowledged = store.put(&499_u32.to_be_bytes(), &[9; 200]);
    assert!(
        device.hook.lock().unwrap().is_none(),
        "the log must have been written"
    );
    assert!(acknowledged.is_err());

    let survived = Arc::new(CrashDevice::from_image(crash.crash(&mut |_| 0)));
    let store = open(&survived, &options).unwrap();
    let mut value = Vec::new();
    assert!(store.get(&499_u32.to_be_bytes(), &mut value).unwrap());
    assert_eq!(value[0], 1);
}
