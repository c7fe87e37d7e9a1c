//! Operations of trees on one page and its mini-page: locking it, giving it room, reducing it to
//! some records, marking what was used.

use crate::error::{Error, Result};
use crate::events::Hook;
use crate::index::{Index, Located};
use crate::mapping::{LeafAddress, PageError};
use crate::mini::events::{Event as Told, MiniImage};
use crate::mini::{Leaf, Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::ring::{Exclusive, NoBlock, Ring, Shared};
use crate::stats::SIZE_CLASSES;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::types::{Lsn, PageId};

/// Room that is made beyond what is needed, so that the next allocations need not make any.
pub(super) const SPARE_ROOM: u64 = 4096;

/// Bytes of the smallest mini-page.
pub(super) const SMALLEST: u64 = 64;

/// A ring has mirrors only if it has room for this many pages; a smaller ring would hold little
/// else.
const LEAST_MIRRORS: usize = 4;

/// Encodes what is known of a leaf for the mapping table, which stores it while there is no
/// mini-page. Nothing is known until the leaf has been read.
pub(super) fn address(leaf: Option<Leaf>) -> LeafAddress {
    LeafAddress::new(leaf.map_or(0, Leaf::to_bits)).expect("33 bits fit")
}

/// Size classes of a ring: each `growth` per cent larger than the one below, up to half a page, or
/// to a page if the ring is large enough for some of these. Sizes that double have three quarters
/// of a page before it. In large pages, where a ring would have more sizes than it can, they grow
/// faster.
pub(super) fn ring_sizes(page_size: usize, capacity: usize, growth: u8) -> Vec<usize> {
    let next = |size: &usize| Some((size + size * usize::from(growth) / 100).next_multiple_of(8));
    let from = |size| std::iter::successors(Some(size), next);
    let half = page_size / 2;
    let mut sizes: Vec<_> = from(SMALLEST as usize)
        .take_while(|size| *size < half)
        .collect();
    sizes.push(half);
    if capacity >= LEAST_MIRRORS * page_size {
        match growth {
            100.. => sizes.push(page_size / 4 * 3),
            _ => sizes.extend(from(half).skip(1).take_while(|size| *size < page_size)),
        }
        sizes.push(page_size);
    }
    match sizes.len() > SIZE_CLASSES {
        true => ring_sizes(page_size, capacity, growth.saturating_add(5)),
        false => sizes,
    }
}

/// Locks the page of `key`.
pub(super) fn lock<G>(
    index: &Index,
    hook: &Hook<Told>,
    key: &[u8],
    lock: impl Fn(PageId) -> std::result::Result<G, PageError>,
) -> Result<(PageId, G)> {
    locate_and_lock(index, hook, key, lock).map(|(located, guard)| (located.page, guard))
}

/// As [`lock`], but also returns how the page was found.
pub(super) fn locate_and_lock<'i, G>(
    index: &'i Index,
    hook: &Hook<Told>,
    key: &[u8],
    lock: impl Fn(PageId) -> std::result::Result<G, PageError>,
) -> Result<(Located<'i>, G)> {
    loop {
        hook.tell(|| Told::Descends);
        let located = index.locate(key);
        let page = located.page;
        match lock(page) {
            Ok(guard) if index.is_current(key, &located) => return Ok((located, guard)),
            Ok(guard) if mutation::on("bf-page-not-asked-again") => return Ok((located, guard)),
            // The page was split or merged meanwhile; or it is so new that the mapping table does
            // not have it yet.
            Ok(_) => hook.tell(|| Told::Restarted { page }),
            Err(PageError::Unknown { .. }) => {}
            Err(e) => return Err(unexpected(&e)),
        }
        crate::sync::yield_now();
    }
}

/// Locks the page with the greatest lower fence below a key, or of all, for reading. Also returns
/// the fence.
pub(super) fn lock_before<'a>(
    index: &Index,
    hook: &Hook<Told>,
    ring: &'a Ring,
    before: Option<&[u8]>,
) -> Result<(Vec<u8>, PageId, Shared<'a>)> {
    loop {
        hook.tell(|| Told::Descends);
        let (lower, page) = index.before(before);
        match ring.shared(page) {
            Ok(guard) if index.before(before) == (lower.clone(), page) => {
                return Ok((lower, page, guard));
            }
            Ok(_) => hook.tell(|| Told::Restarted { page }),
            Err(PageError::Unknown { .. }) => {}
            Err(e) => return Err(unexpected(&e)),
        }
        crate::sync::yield_now();
    }
}

/// Ensures that the page has a mini-page of at least `needed` bytes. A new one is made for `leaf`,
/// as of `lsn`.
pub(super) fn with_room<'a>(
    guard: Exclusive<'a>,
    hook: &Hook<Told>,
    needed: usize,
    leaf: Leaf,
    lsn: Lsn,
) -> std::result::Result<Exclusive<'a>, NoBlock<'a>> {
    if guard.bytes().is_some_and(|block| block.len() >= needed) {
        return Ok(guard);
    }
    let (page, marks) = (guard.page(), marks_of(guard.marks()));
    let mut fresh = guard.allocate(needed)?;
    let (old, new) = fresh.both();
    let old = old.map(MiniRef::new);
    let mut mini = MiniMut::init(new, old.map_or(leaf, MiniRef::leaf));
    match old {
        Some(old) => mini.copy_from(old, |_| true),
        None => mini.set_lsn(lsn),
    }
    let guard = fresh.publish();
    set_marks(guard.marks(), marks);
    hook.tell(|| Told::Grown {
        page,
        mini: image(guard.bytes(), guard.marks()),
    });
    Ok(guard)
}

/// Copies the records of the mini-page that `keep` selects to the smallest possible block; all
/// others must be clean. Their marks are cleared: they must be used again to be kept. If no record
/// is selected, the page has no mini-page any more. If there is no room, nothing happens and the
/// page is returned.
pub(super) fn keep<'a>(
    mut guard: Exclusive<'a>,
    hook: &Hook<Told>,
    keep: impl Fn(usize) -> bool,
) -> Option<Exclusive<'a>> {
    let old = guard.bytes().map(MiniRef::new)?;
    // The mirror of an empty leaf is useful, too.
    if !((0..old.count()).any(&keep) || old.count() == 0 && old.is_whole()) {
        let leaf = address(Some(old.leaf()));
        let page = guard.page();
        guard.set_leaf(leaf);
        hook.tell(|| Told::Kept { page, mini: None });
        return None;
    }
    let len = old.bytes_of(&keep);
    let mut fresh = match guard.allocate(len) {
        Ok(fresh) => fresh,
        Err(none) => return Some(none.page),
    };
    let (old, new) = fresh.both();
    let old = MiniRef::new(old.expect("it has one"));
    MiniMut::init(new, old.leaf()).copy_from(old, keep);
    let guard = fresh.publish();
    hook.tell(|| Told::Kept {
        page: guard.page(),
        mini: image(guard.bytes(), guard.marks()),
    });
    None
}

/// The image of a page's mini-page, if it has one, for the observer.
pub(super) fn image(mini: Option<&[u8]>, marks: Option<&AtomicU32>) -> Option<MiniImage> {
    Some(MiniImage::of(mini?, marks_of(marks)))
}

/// Sets a mark for something that was used. Readers may do so concurrently.
#[inline]
pub(super) fn note_use(marks: Option<&AtomicU32>, bit: u32) {
    // A bit that is already set is not written again, to spare the cache line.
    if let Some(marks) = marks
        && marks.load(Ordering::Relaxed) & bit == 0
    {
        marks.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Marks a record that was put as used; `at` is `Err` if the record is new.
pub(super) fn note_put(guard: &Exclusive<'_>, at: std::result::Result<usize, usize>) {
    let Some(mini) = guard.bytes().map(MiniRef::new) else {
        return;
    };
    match at {
        // In a mirror, several records share a mark, so marks stay where they are.
        Err(index) if !mini.is_whole() => {
            set_marks(guard.marks(), marks_of(guard.marks()).insert(index));
        }
        Ok(index) | Err(index) => note_use(guard.marks(), mini.mark(index)),
    }
}

pub(super) fn marks_of(marks: Option<&AtomicU32>) -> Marks {
    Marks(marks.map_or(0, |marks| marks.load(Ordering::Relaxed)))
}

pub(super) fn set_marks(marks: Option<&AtomicU32>, to: Marks) {
    if let Some(marks) = marks {
        marks.store(to.0, Ordering::Relaxed);
    }
}

/// The error when index and mapping table disagree: a bug, or damage that passed all checks.
pub(super) fn unexpected(e: &PageError) -> Error {
    Error::Foreign {
        engine: "bf",
        why: e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_by_the_growth_and_are_never_too_many() {
        for page_size in [4096, 8192, 16_384, 32_768, 65_536] {
            for growth in [10, 25, 50, 99, 100] {
                let sizes = ring_sizes(page_size, 1 << 30, growth);
                assert!(sizes.len() <= SIZE_CLASSES, "{page_size} {growth}");
                assert_eq!(sizes[0], SMALLEST as usize);
                assert!(sizes.contains(&(page_size / 2)));
                assert_eq!(sizes.last(), Some(&page_size));
                // The ring wants steps of eight.
                assert!(sizes.windows(2).all(|pair| pair[1] >= pair[0] + 8));
                assert!(sizes.iter().all(|size| size.is_multiple_of(8)));
                let few = sizes.windows(2).all(|pair| 10 * pair[1] <= 21 * pair[0]);
                assert!(
                    few,
                    "no size is more than about twice the one below: {sizes:?}"
                );
            }
        }
        let doubling = [64, 128, 256, 512, 1024, 2048, 3072, 4096];
        assert_eq!(ring_sizes(4096, 1 << 20, 100), doubling);
        assert_eq!(ring_sizes(4096, 1 << 13, 100), doubling[..6]);
    }
}
