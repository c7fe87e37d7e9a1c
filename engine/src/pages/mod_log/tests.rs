//! Tests of log blocks: round trips, the rule, what fits, and damage.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::node::{PageLayout, PageMut, check};
use crate::options::{Options, PageStoreKind};

const PAGE: PageId = PageId(3);

fn logs(page_size: usize, threshold: u32, segment: u32, reset: ResetRule) -> ModLogs {
    let rule = ModLog {
        threshold,
        segment,
        reset,
    };
    rule.check().expect("a rule that can be chosen");
    let options = Options {
        page_size,
        store: PageStoreKind::InPlace,
        mod_log: Some(rule),
        log_bytes: 1 << 20,
        ..Options::default()
    };
    let layout = Layout::plan(&options, 1 << 16, StoreId::default()).expect("a layout");
    ModLogs::new(Some(rule), &layout)
}

/// A page in memory, and the ranges changed since it was written.
#[derive(Clone)]
struct Page {
    bytes: Vec<u8>,
    changes: ChangeMap,
}

impl Page {
    fn new(page_size: usize) -> Page {
        let mut page = Page {
            bytes: vec![0; page_size],
            changes: ChangeMap::new(),
        };
        page.change(Lsn(1), |p| {
            p.init(PageLayout::Slotted, PAGE, b"", None)
                .expect("no fences");
            for i in 0..30_u8 {
                p.put(&[i], &vec![i; page_size / 50]).expect("fits");
            }
        });
        page
    }

    fn change(&mut self, lsn: Lsn, change: impl FnOnce(&mut PageMut<'_>)) {
        let mut page = PageMut::new(&mut self.bytes, &mut self.changes);
        change(&mut page);
        page.set_lsn(lsn);
        page.seal();
    }

    fn image(&self) -> PageImage<'_> {
        PageImage {
            page: PAGE,
            bytes: &self.bytes,
            changes: &self.changes,
        }
    }

    /// Returns the page with its last `bytes` bytes marked as changed, in whole segments.
    fn with_marked(page_size: usize, bytes: usize) -> Page {
        let mut page = Page::new(page_size);
        page.changes.clear();
        page.changes.mark(page_size - bytes..page_size);
        page
    }

    fn lsn(&self) -> Lsn {
        PageRef::new(&self.bytes).lsn()
    }
}

/// Returns |Δ| of the block for a page that differs in `bytes` bytes from an image that was just
/// written.
fn delta_of(logs: &ModLogs, bytes: usize) -> Option<u32> {
    let page = Page::with_marked(logs.page_size, bytes);
    logs.written(&page.image(), None);
    logs.delta(&page.image(), true).map(|(_, len)| len)
}

/// Returns a base, the page made of it, and the log block between the two.
fn logged() -> (Page, Page, AlignedBuf) {
    let logs = logs(8192, 2048, 128, ResetRule::AtThreshold);
    let base = Page::new(8192);
    logs.written(&base.image(), None);
    let mut page = base.clone();
    page.changes.clear();
    page.change(Lsn(9), |p| {
        p.put(&[4], &[0xee; 163]).expect("fits");
    });
    let (block, _) = logs.delta(&page.image(), true).expect("little differs");
    (base, page, block)
}

/// Loads what lies on the device into a store that was just opened.
fn load(page_size: usize, base: &[u8], block: &[u8]) -> (Vec<u8>, Option<u32>, ModLogs) {
    let logs = logs(page_size, 2048, 128, ResetRule::AtThreshold);
    let mut image = base.to_vec();
    let len = logs.load(PAGE, &mut image, Some(block));
    (image, len, logs)
}

#[test]
fn a_page_comes_back_from_its_base_and_its_log_block() {
    let mut rng = SmallRng::seed_from_u64(6);
    for page_size in [8192, 16_384, 65_536] {
        for segment in [64, 128, 256, 512, 1024, 2048] {
            let threshold = 2048;
            let logs = logs(page_size, threshold, segment, ResetRule::AtThreshold);
            let mut page = Page::new(page_size);
            let (mut base, mut block) = (Vec::new(), AlignedBuf::zeroed(BLOCK_SIZE));
            let (mut deltas, mut wholes) = (0, 0);
            for lsn in 2..200 {
                match logs.delta(&page.image(), true) {
                    Some((new, len)) => {
                        assert!(len < threshold && len.is_multiple_of(segment));
                        logs.written(&page.image(), Some(len));
                        block = new;
                        deltas += 1;
                    }
                    None => {
                        logs.written(&page.image(), None);
                        base.clone_from(&page.bytes);
                        wholes += 1;
                    }
                }
                page.changes.clear();
                // The block of the previous base is ignored.
                let (image, len, _) = load(page_size, &base, &block);
                assert!(image == page.bytes, "{page_size} B pages, Ds {segment}");
                assert_eq!(check(&image, PAGE), Ok(()));
                assert_eq!(len.is_some(), base != page.bytes);
                page.change(Lsn(lsn), |p| {
                    let key = rng.random_range(0..30_u8);
                    let value = vec![rng.random(); page_size / 50];
                    p.put(&[key], &value).expect("fits");
                });
            }
            assert!(
                wholes > 5 && (deltas > 5 || segment >= 1024),
                "{page_size} B pages, Ds {segment}: {deltas} logged, {wholes} whole"
            );
        }
    }
}

#[test]
fn at_exactly_the_threshold_the_two_readings_differ() {
    for (bytes, at, above) in [
        (960, Some(960), Some(960)),
        (1024, None, Some(1024)),
        (1088, None, None),
    ] {
        let rule = |reset| delta_of(&logs(8192, 1024, 64, reset), bytes);
        assert_eq!(rule(ResetRule::AtThreshold), at, "{bytes} bytes");
        assert_eq!(rule(ResetRule::AboveThreshold), above, "{bytes} bytes");
    }
}

/// T may be a whole block, of which vector, envelope and names take a part.
#[test]
fn no_more_goes_into_a_block_than_fits() {
    for (page_size, segment, most) in [
        (8192, 64, 62 * 64),
        (8192, 128, 31 * 128),
        (8192, 1024, 3 * 1024),
        (8192, 2048, 2048),
        (8192, 4096, 0),
        (65_536, 64, 61 * 64),
        (65_536, 128, 31 * 128),
        (65_536, 2048, 2048),
        (65_536, 4096, 0),
    ] {
        let logs = logs(page_size, 4096, segment, ResetRule::AboveThreshold);
        let story = format!("{page_size} B pages, Ds {segment}");
        assert_eq!(delta_of(&logs, most), Some(most as u32), "{story}");
        assert_eq!(delta_of(&logs, most + segment as usize), None, "{story}");
    }
}

#[test]
fn what_differs_already_is_logged_again_also_by_who_loads_the_page() {
    let (base, mut page, block) = logged();
    let (_, len, logs) = load(8192, &base.bytes, &block);
    page.changes.clear();
    page.change(Lsn(10), |p| {
        p.put(&[20], &[0xdd; 163]).expect("fits");
    });
    let (block, more) = logs.delta(&page.image(), true).expect("little differs");
    assert!(len.is_some_and(|len| len > 0 && len < more));
    let (image, ..) = load(8192, &base.bytes, &block);
    assert!(image == page.bytes);
}

#[test]
fn a_page_is_logged_only_over_a_base_that_is_known_and_durable() {
    let logs = logs(8192, 2048, 128, ResetRule::AtThreshold);
    let page = Page::with_marked(8192, 128);
    assert!(logs.delta(&page.image(), true).is_none(), "no base");
    logs.written(&page.image(), None);
    assert!(logs.delta(&page.image(), false).is_none(), "not durable");
    assert!(logs.delta(&page.image(), true).is_some());
    logs.forget(PAGE);
    assert!(logs.delta(&page.image(), true).is_none(), "forgotten");
}

#[test]
fn a_log_block_with_any_byte_flipped_is_passed_over() {
    let (base, page, mut block) = logged();
    let (image, ..) = load(8192, &base.bytes, &block);
    assert!(image == page.bytes);
    for at in 0..BLOCK_SIZE {
        block[at] ^= 0x10;
        let (image, len, _) = load(8192, &base.bytes, &block);
        assert!(image == base.bytes && len.is_none(), "byte {at}: {len:?}");
        block[at] ^= 0x10;
    }
}

/// A matching checksum does not make an invalid block valid.
#[test]
fn a_block_that_cannot_be_is_not_followed_though_its_checksum_fits() {
    let (_, _, block) = logged();
    let vector = VECTOR..VECTOR + 8;
    for (at, bytes, expected) in [
        (4..8, &b"MLOX"[..], "other bytes"),
        (SEGMENT..SEGMENT + 2, &[0, 0], "segment size"),
        (SEGMENT..SEGMENT + 2, &[96, 0], "segment size"),
        (SEGMENT..SEGMENT + 2, &[0, 0x20], "segment size"),
        (DELTA_LEN..DELTA_LEN + 2, &[0xff, 0xff], "than fit"),
        (DELTA_LEN..DELTA_LEN + 2, &[0, 0], "vector"),
        (vector, &[0xff; 8], "vector"),
    ] {
        let mut block = block.to_vec();
        block[at.clone()].copy_from_slice(bytes);
        let crc = StoreId::default().crc(&block[4..]);
        block[0..4].copy_from_slice(&crc.to_le_bytes());
        let Err(found) = Block::read(&block, PAGE, 8192, StoreId::default()) else {
            panic!("{at:?} as {bytes:?} is followed");
        };
        assert!(found.contains(expected), "{at:?}: {found}");
    }
}

#[test]
fn a_block_of_another_page_or_image_is_passed_over() {
    let (base, page, block) = logged();
    let foreign = Block::read(&block, PageId(4), 8192, StoreId::default());
    assert!(matches!(foreign, Ok(Block::Foreign)));
    let mine = Block::read(&block, PAGE, 8192, StoreId::default()).expect("whole");
    let delta = mine.over(&base.bytes).expect("its base");
    assert_eq!((delta.base_lsn(), delta.lsn()), (base.lsn(), page.lsn()));
    // The page itself, written whole since; and another image with the base's LSN.
    assert!(mine.over(&page.bytes).is_none());
    let mut other = base.clone();
    other.change(base.lsn(), |p| {
        p.put(&[4], &[0x11; 163]).expect("fits");
    });
    assert!(mine.over(&other.bytes).is_none());
    let (image, len, _) = load(8192, &other.bytes, &block);
    assert!(image == other.bytes && len.is_none());
}

#[test]
fn zeros_are_an_empty_log_block() {
    let base = Page::new(8192);
    let zeros = [0; BLOCK_SIZE];
    let (image, len, _) = load(8192, &base.bytes, &zeros);
    assert!(image == base.bytes && len.is_none());
}
