//! Tests of the copy-on-write store against a page table that is written while others allocate,
//! or written only in part.

use std::sync::OnceLock;

use super::*;
use crate::device::{BlockDevice, CrashDevice, DeviceError, MemDevice};
use crate::node::ChangeMap;
use crate::options::{Options, PageStoreKind};
use crate::types::StoreId;

/// Allocates a new page during each write of the page table, as another thread might.
struct Meddling {
    inner: MemDevice,
    store: OnceLock<Arc<CowStore>>,
    answers: Mutex<Vec<Result<PageId>>>,
}

impl BlockDevice for Meddling {
    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }
    fn read(
        &self,
        at: Lba,
        into: &mut [u8],
        class: IoClass,
    ) -> std::result::Result<(), DeviceError> {
        self.inner.read(at, into, class)
    }
    fn write(&self, at: Lba, from: &[u8], class: IoClass) -> std::result::Result<(), DeviceError> {
        if let (IoClass::Extra, Some(store)) = (class, self.store.get()) {
            self.answers.lock().push(store.allocate(0));
        }
        self.inner.write(at, from, class)
    }
    fn trim(&self, at: Lba, blocks: u64) -> std::result::Result<(), DeviceError> {
        self.inner.trim(at, blocks)
    }
    fn flush(&self) -> std::result::Result<(), DeviceError> {
        self.inner.flush()
    }
}

/// Creates a store that writes its table at checkpoints.
fn new_store(device: Arc<dyn BlockDevice>) -> CowStore {
    let options = Options {
        store: PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        },
        log_bytes: 96 << 12,
        ..Options::default()
    };
    let blocks = device.capacity_blocks();
    let layout = Layout::plan(&options, blocks, StoreId(7)).expect("a layout");
    let (table, persist) = (PageTable::new(&layout), TablePersist::Checkpoint);
    let volume = Arc::new(Volume::new(device));
    CowStore::new(volume, layout, table, persist, None, 8, &[]).expect("a store")
}

#[test]
fn while_the_table_is_written_the_slots_that_it_frees_count_as_room() {
    let device = Arc::new(Meddling {
        inner: MemDevice::new(700),
        store: OnceLock::new(),
        answers: Mutex::new(Vec::new()),
    });
    let store = Arc::new(new_store(Arc::clone(&device) as Arc<dyn BlockDevice>));
    let layout = store.layout;
    let pages: Vec<_> = (0..layout.slots * 2 / 3)
        .map(|_| store.allocate(0).expect("room for two thirds"))
        .collect();
    let bytes = vec![1; layout.page_size];
    let mut changes = ChangeMap::default();
    changes.mark(0..1);
    let image = |page: &PageId| PageImage {
        page: *page,
        bytes: &bytes,
        changes: &changes,
    };
    let write_all = || {
        for batch in pages.chunks(8) {
            let images: Vec<_> = batch.iter().map(image).collect();
            store.write_batch(&images).expect("room for new images");
        }
    };
    write_all();
    store.persist_table().expect("persisted");
    device.store.set(Arc::clone(&store)).ok().expect("once");
    // Each page's new image needs a slot while its old one is held, so the table must be written on
    // the way.
    write_all();
    let answers = device.answers.lock();
    assert!(!answers.is_empty(), "no table was written");
    for answer in &*answers {
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn a_table_that_was_written_in_part_names_no_slot_of_another() {
    let device = Arc::new(CrashDevice::new(900));
    let store = new_store(Arc::clone(&device) as Arc<dyn BlockDevice>);
    let layout = store.layout;
    // One more than the table's first block covers.
    let pages: Vec<PageId> = (0..=510)
        .map(|_| store.allocate(0).expect("room for it"))
        .collect();
    let write = |page: PageId| {
        let bytes = vec![page.0 as u8; layout.page_size];
        let mut changes = ChangeMap::default();
        changes.mark(0..1);
        store.write_batch(&[PageImage {
            page,
            bytes: &bytes,
            changes: &changes,
        }])
    };
    write(pages[0]).expect("room");
    store.persist_table().expect("room");
    // The first block is rewritten and refers to another slot; the second is refused.
    write(pages[0]).expect("room");
    write(pages[510]).expect("room");
    device.set_full(true);
    store.persist_table().expect_err("no room for a new block");
    device.set_full(false);
    let named = store.home(pages[0]).expect("a place");
    // What it refers to must not change as long as the power may fail.
    write(pages[0]).expect("room");
    for page in &pages[1..100] {
        write(*page).expect("room");
        assert_ne!(store.home(*page), Some(named), "page {}", page.0);
    }
    // Once the whole table is written, that slot is free, and so is the one before it.
    let used = |store: &CowStore| store.state.lock().slots.used();
    let before = used(&store);
    store.persist_table().expect("room");
    assert_eq!(used(&store), before - 2);
}
