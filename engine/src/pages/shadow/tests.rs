//! Tests which slot is valid after all that a crash or damage may leave, and what happens to the
//! other one.

use super::*;
use crate::device::CrashDevice;
use crate::node::{ChangeMap, PageLayout, PageMut};
use crate::options::{Options, PageStoreKind, ResetRule};
use crate::types::StoreId;

const PAGE: PageId = PageId(5);
const PAGE_BYTES: usize = 8192;

const RULE: ModLog = ModLog {
    threshold: 1024,
    segment: 64,
    reset: ResetRule::AtThreshold,
};

fn options(mod_log: Option<ModLog>) -> Options {
    Options {
        page_size: PAGE_BYTES,
        store: PageStoreKind::Shadow,
        mod_log,
        log_bytes: 64 * 4096,
        ..Options::default()
    }
}

fn layout(mod_log: Option<ModLog>) -> Layout {
    Layout::plan(&options(mod_log), 2_000, StoreId::default()).expect("a layout")
}

/// Returns a page with one value, at an LSN.
fn page(page: PageId, lsn: u64, value: u8) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    let mut changes = ChangeMap::new();
    let mut edit = PageMut::new(&mut bytes, &mut changes);
    edit.init(PageLayout::Slotted, page, b"", None)
        .expect("no fences");
    // Put it at the end of the page, with data before it that never changes, back into the first
    // block.
    edit.put(b"k", &[value; 40]).expect("fits");
    for key in [b"l", b"m", b"n", b"o"] {
        edit.put(key, &[7; 1_300]).expect("fits");
    }
    edit.set_lsn(Lsn(lsn));
    edit.seal();
    bytes
}

/// Returns a log block that turns `base` into `to`.
fn log_block(base: &[u8], to: &[u8]) -> Vec<u8> {
    let logs = ModLogs::new(Some(RULE), &layout(Some(RULE)));
    let mut changes = ChangeMap::new();
    logs.written(&image(base, &changes), None);
    for (i, (old, new)) in base.chunks(64).zip(to.chunks(64)).enumerate() {
        if i > 0 && old != new {
            changes.mark(i * 64..i * 64 + 64);
        }
    }
    let (block, _) = logs
        .delta(&image(to, &changes), true)
        .expect("it is little");
    block.to_vec()
}

fn image<'a>(bytes: &'a [u8], changes: &'a ChangeMap) -> PageImage<'a> {
    PageImage {
        page: PageRef::new(bytes).page_id(),
        bytes,
        changes,
    }
}

/// Returns the image with only its first block written.
fn torn(image: &[u8]) -> Vec<u8> {
    let mut bytes = image.to_vec();
    bytes[BLOCK_SIZE..].fill(0);
    bytes
}

/// Returns the choice for a slot, a log block and a slot.
fn choose(parts: [&[u8]; 3]) -> std::result::Result<Choice, PageDamage> {
    let layout = layout(Some(RULE));
    let bytes = parts.concat();
    let reading = Reading {
        layout: &layout,
        bytes: &bytes,
    };
    reading.choose(PAGE)
}

const NO_PAGE: &[u8] = &[0; PAGE_BYTES];
const NO_LOG: &[u8] = &[0; BLOCK_SIZE];

fn choice(slot: u8, lsn: u64, delta: Option<u32>, leftover: bool) -> Choice {
    Choice {
        slot,
        lsn: Lsn(lsn),
        delta,
        leftover,
    }
}

#[test]
fn the_only_whole_slot_is_valid_and_the_newer_one_of_two() {
    let (old, new) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    let alone = choice(0, 10, None, false);
    assert_eq!(choose([&old, NO_LOG, NO_PAGE]), Ok(alone));
    let alone = choice(1, 20, None, false);
    assert_eq!(choose([NO_PAGE, NO_LOG, &new]), Ok(alone));
    let second = choice(1, 20, None, true);
    assert_eq!(choose([&old, NO_LOG, &new]), Ok(second));
    let first = choice(0, 20, None, true);
    assert_eq!(choose([&new, NO_LOG, &old]), Ok(first));
}

#[test]
fn a_torn_slot_is_passed_over_for_a_whole_one() {
    let (old, new) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    let kept = choice(0, 10, None, true);
    assert_eq!(choose([&old, NO_LOG, &torn(&new)]), Ok(kept));
    // Half of the previous image, half of the one before it.
    let mixed = [&new[..BLOCK_SIZE], &page(PAGE, 5, 9)[BLOCK_SIZE..]].concat();
    assert_ne!(new[BLOCK_SIZE..], mixed[BLOCK_SIZE..]);
    assert_eq!(choose([&old, NO_LOG, &mixed]), Ok(kept));
    // A whole image of another page is not one of this page.
    let other = page(PageId(6), 30, 3);
    assert_eq!(choose([&old, NO_LOG, &other]), Ok(kept));
}

#[test]
fn nothing_is_nothing_and_two_torn_slots_are_damage() {
    assert_eq!(choose([NO_PAGE, NO_LOG, NO_PAGE]), Err(PageDamage::Zeroed));
    let (old, new) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    let both = choose([&torn(&new), NO_LOG, &torn(&old)]);
    assert!(both.is_err_and(|damage| damage != PageDamage::Zeroed));
}

#[test]
fn a_log_block_counts_with_its_base() {
    let (base, to) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    let block = log_block(&base, &to);
    let Ok(found) = choose([&base, &block, NO_PAGE]) else {
        panic!("a base and its log block are a page");
    };
    assert_eq!(found, choice(0, 20, found.delta, false));
    assert!(found.delta.is_some_and(|len| len > 0));
    // Older by its image, newer with its log block.
    let between = page(PAGE, 15, 3);
    let with_it = choice(0, 20, found.delta, true);
    assert_eq!(choose([&base, &block, &between]), Ok(with_it));
    let with_it = choice(1, 20, found.delta, true);
    assert_eq!(choose([&between, &block, &base]), Ok(with_it));
}

#[test]
fn a_log_block_of_another_image_or_page_is_a_leftover() {
    let (base, to, newer) = (page(PAGE, 10, 1), page(PAGE, 20, 2), page(PAGE, 30, 3));
    // The base is in the other slot, or trimmed.
    let block = log_block(&base, &to);
    let newest = choice(1, 30, None, true);
    assert_eq!(choose([&base, &block, &newer]), Ok(newest));
    assert_eq!(choose([NO_PAGE, &block, &newer]), Ok(newest));
    // Whatever its LSN: the block belonged to another page that had this place.
    let (a, b) = (page(PageId(6), 40, 1), page(PageId(6), 50, 2));
    let foreign = choice(0, 10, None, true);
    assert_eq!(choose([&base, &log_block(&a, &b), NO_PAGE]), Ok(foreign));
}

#[test]
fn a_log_block_whose_base_is_gone_is_damage_and_a_damaged_one_is_passed_over() {
    let (old, base, to) = (page(PAGE, 10, 1), page(PAGE, 20, 2), page(PAGE, 30, 3));
    let mut block = log_block(&base, &to);
    // It was written when its base was durable, so the base is damaged and not torn.
    let gone = choose([&old, &block, &torn(&base)]);
    assert!(matches!(gone, Err(PageDamage::Broken { .. })), "{gone:?}");
    // A block that is not whole is ignored; the page's version tells whether Δ is missing.
    block[100] ^= 1;
    let passed_over = choice(1, 20, None, true);
    assert_eq!(choose([&old, &block, &base]), Ok(passed_over));
    assert_eq!(choose([NO_PAGE, &block, &base]), Ok(passed_over));
}

struct Rig {
    device: Arc<CrashDevice>,
    volume: Arc<Volume>,
    store: ShadowStore,
}

impl Rig {
    fn on(device: Arc<CrashDevice>) -> Rig {
        let volume = Arc::new(Volume::new(Arc::clone(&device) as _));
        let store = ShadowStore::new(Arc::clone(&volume), layout(Some(RULE)), Some(RULE), 8);
        Rig {
            device,
            volume,
            store,
        }
    }

    fn new() -> Rig {
        Rig::on(Arc::new(CrashDevice::new(2_000)))
    }

    /// Opens the store again on what is on the device now.
    fn again(&self) -> Rig {
        let image = self.device.crash(&mut |n| n - 1);
        Rig::on(Arc::new(CrashDevice::from_image(image)))
    }

    fn write(&self, bytes: &[u8]) {
        let mut all = ChangeMap::new();
        all.mark(0..PAGE_BYTES);
        let batch = [image(bytes, &all)];
        self.store.write_batch(&batch).expect("writes");
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; PAGE_BYTES];
        let found = self.store.read(PAGE, &mut bytes).expect("reads");
        assert_eq!(found, Found::Image);
        bytes
    }

    /// Returns which of slot, log block and slot hold anything.
    fn in_use(&self) -> [bool; 3] {
        let layout = layout(Some(RULE));
        let mut bytes = vec![0; layout.blocks_per_slot() as usize * BLOCK_SIZE];
        let at = layout.slot_lba(Slot(PAGE.0));
        self.volume
            .read(at, &mut bytes, IoClass::Page)
            .expect("reads");
        let (slot, rest) = bytes.split_at(PAGE_BYTES);
        let (log, other) = rest.split_at(BLOCK_SIZE);
        [slot, log, other].map(|part| part.iter().any(|b| *b != 0))
    }
}

#[test]
fn the_other_slot_goes_when_the_new_image_is_durable_and_not_before() {
    let rig = Rig::new();
    let (first, second, third) = (page(PAGE, 10, 1), page(PAGE, 20, 2), page(PAGE, 30, 3));
    rig.write(&first);
    rig.volume.flush().expect("flushes");
    rig.write(&second);
    rig.store.persist_table().expect("settles");
    assert_eq!(rig.in_use(), [true, false, true], "not durable yet");
    // Not durable yet: to the same slot once more.
    rig.write(&third);
    assert!(rig.read() == third);
    assert_eq!(rig.in_use(), [true, false, true]);
    rig.volume.flush().expect("flushes");
    rig.store.persist_table().expect("settles");
    assert_eq!(rig.in_use(), [false, false, true]);
    assert!(rig.read() == third);
}

#[test]
fn a_log_block_goes_with_the_slot_before() {
    let rig = Rig::new();
    let (base, logged, whole) = (page(PAGE, 10, 1), page(PAGE, 20, 2), page(PAGE, 30, 3));
    rig.write(&base);
    rig.volume.flush().expect("flushes");
    let mut changes = ChangeMap::new();
    changes.mark(PAGE_BYTES - 64..PAGE_BYTES);
    let batch = [image(&logged, &changes)];
    rig.store.write_batch(&batch).expect("writes");
    assert_eq!(rig.in_use(), [true, true, false]);
    assert!(rig.read() == logged && rig.again().read() == logged);
    rig.write(&whole);
    assert_eq!(rig.in_use(), [true, true, true], "not durable yet");
    assert!(rig.read() == whole && rig.again().read() == whole);
    rig.volume.flush().expect("flushes");
    rig.store.persist_table().expect("settles");
    assert_eq!(rig.in_use(), [false, false, true]);
}

#[test]
fn what_a_crash_left_in_the_other_slot_is_trimmed_by_whoever_loads_the_page() {
    let rig = Rig::new();
    let (first, second) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    rig.write(&first);
    rig.volume.flush().expect("flushes");
    rig.write(&second);
    rig.volume.flush().expect("flushes");
    // A crash before anything was trimmed.
    let rig = rig.again();
    assert!(rig.read() == second);
    rig.store.persist_table().expect("settles");
    assert_eq!(rig.in_use(), [false, false, true]);
    assert!(rig.read() == second);
}

#[test]
fn a_log_block_that_is_not_what_was_written_is_damage_where_the_page_is_known_and_old_where_not() {
    for known in [true, false] {
        let mut rig = Rig::new();
        let (base, logged) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
        rig.write(&base);
        rig.volume.flush().expect("flushes");
        let mut changes = ChangeMap::new();
        changes.mark(PAGE_BYTES - 64..PAGE_BYTES);
        rig.store
            .write_batch(&[image(&logged, &changes)])
            .expect("writes");
        if !known {
            rig = rig.again();
        }
        let at = layout(Some(RULE)).mod_log_lba(Slot(PAGE.0));
        let mut block = vec![0; BLOCK_SIZE];
        rig.volume
            .read(at, &mut block, IoClass::Page)
            .expect("reads");
        block[200] ^= 1;
        rig.volume
            .write(at, &block, IoClass::Page)
            .expect("damages");
        let read = |rig: &Rig| {
            let mut page = vec![0; PAGE_BYTES];
            let found = rig.store.read(PAGE, &mut page);
            found.map(|_| PageRef::new(&page).lsn())
        };
        // The base, which is older than the page: whoever knows the page's version notices.
        let expect = |found: Result<Lsn>| match found {
            Err(Error::Damaged { .. }) => assert!(known),
            found => assert_eq!(found.ok(), (!known).then_some(Lsn(10))),
        };
        expect(read(&rig));
        rig.volume.trim(at, 1).expect("trims");
        expect(read(&rig));
    }
}

#[test]
fn an_image_torn_when_it_was_written_again_does_not_count_as_durable() {
    let rig = Rig::new();
    let (first, second, third) = (page(PAGE, 10, 1), page(PAGE, 20, 2), page(PAGE, 30, 3));
    rig.write(&first);
    rig.volume.flush().expect("flushes");
    rig.write(&second);
    // The rewrite goes to the same slot and fails halfway; the flush comes only then.
    rig.device.fail_write_in(0);
    let mut all = ChangeMap::new();
    all.mark(0..PAGE_BYTES);
    let failed = rig.store.write_batch(&[image(&third, &all)]);
    assert!(failed.is_err());
    rig.volume.flush().expect("flushes");
    rig.store.persist_table().expect("settles");
    assert!(rig.in_use()[0], "the image before was given up");
    rig.write(&third);
    rig.volume.flush().expect("flushes");
    rig.store.persist_table().expect("settles");
    assert!(rig.read() == third && rig.again().read() == third);
    assert_eq!(rig.in_use(), [false, false, true]);
}

#[test]
fn what_a_failed_write_left_in_the_other_slot_is_trimmed() {
    let rig = Rig::new();
    let (first, second) = (page(PAGE, 10, 1), page(PAGE, 20, 2));
    rig.write(&first);
    rig.volume.flush().expect("flushes");
    rig.store.persist_table().expect("settles");
    rig.device.fail_write_in(0);
    let mut all = ChangeMap::new();
    all.mark(0..PAGE_BYTES);
    assert!(rig.store.write_batch(&[image(&second, &all)]).is_err());
    rig.store.persist_table().expect("settles");
    assert_eq!(rig.in_use(), [true, false, false]);
}
