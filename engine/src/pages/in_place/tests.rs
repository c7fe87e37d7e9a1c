//! Tests that a home that cannot be written is owed, and that its half of the journal is kept until
//! it is written.

use super::*;
use crate::device::{BlockDevice, DeviceError, MemDevice};
use crate::node::{ChangeMap, PageLayout, PageMut};
use crate::options::{Options, PageStoreKind};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::types::BLOCK_SIZE;
use crate::types::StoreId;

const PAGE_BYTES: usize = 8192;

/// A copy-on-write file system that has room for one block when it is full.
struct Full {
    memory: MemDevice,
    full: AtomicBool,
}

impl BlockDevice for Full {
    fn capacity_blocks(&self) -> u64 {
        self.memory.capacity_blocks()
    }
    fn read(&self, at: Lba, into: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.memory.read(at, into, class)
    }
    fn write(&self, at: Lba, from: &[u8], class: IoClass) -> Result<(), DeviceError> {
        if class == IoClass::Page && self.full.load(Ordering::Relaxed) {
            self.memory.write(at, &from[..BLOCK_SIZE], class)?;
            return Err(DeviceError::Io {
                what: "write",
                lba: at,
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        self.memory.write(at, from, class)
    }
    fn trim(&self, at: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.memory.trim(at, blocks)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.memory.flush()
    }
}

fn page(page: u64, lsn: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    let mut changes = ChangeMap::new();
    let mut edit = PageMut::new(&mut bytes, &mut changes);
    edit.init(PageLayout::Slotted, PageId(page), b"", None)
        .expect("no fences");
    for key in [b"a", b"b", b"c"] {
        edit.put(key, &[lsn as u8; 1_500]).expect("fits");
    }
    edit.set_lsn(Lsn(lsn));
    edit.seal();
    bytes
}

/// Tears the home of page 1 when its second image is written, then writes `others` more batches.
/// Returns the page's LSN after recovery.
fn recovered_after(others: u64) -> Option<Lsn> {
    let options = Options {
        page_size: PAGE_BYTES,
        store: PageStoreKind::InPlace,
        log_bytes: 64 * 4096,
        write_batch_pages: 2,
        ..Options::default()
    };
    let layout = Layout::plan(&options, 2_000, StoreId::default()).expect("a layout");
    let device = Arc::new(Full {
        memory: MemDevice::new(2_000),
        full: AtomicBool::new(false),
    });
    let open = || {
        let device = Arc::clone(&device) as Arc<dyn BlockDevice>;
        InPlaceStore::new(Arc::new(Volume::new(device)), layout, None)
    };
    let store = open();
    let mut changes = ChangeMap::new();
    changes.mark(0..PAGE_BYTES);
    let write = |n: u64, lsn: u64| {
        let bytes = page(n, lsn);
        let image = PageImage {
            page: PageId(n),
            bytes: &bytes,
            changes: &changes,
        };
        store.write_batch(&[image])
    };
    write(1, 10).expect("room");
    device.full.store(true, Ordering::Relaxed);
    assert!(write(1, 20).is_err_and(|e| e.is_no_space()));
    device.full.store(false, Ordering::Relaxed);
    for n in 2..2 + others {
        write(n, 30 + n).expect("room");
    }
    let store = open();
    store.repair(&|_| false, Lsn(0)).expect("repairs");
    let mut found = vec![0; PAGE_BYTES];
    store.read(PageId(1), &mut found).expect("reads");
    node::check(&found, PageId(1)).ok()?;
    Some(PageRef::new(&found).lsn())
}

#[test]
fn a_home_that_found_no_room_is_mended_by_what_the_journal_has() {
    // As many batches as there are halves, and more.
    for others in 0..5 {
        let found = recovered_after(others);
        assert_eq!(found, Some(Lsn(20)), "{others} other batches since");
    }
}
