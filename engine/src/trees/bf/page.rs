//! What trees do with one page and its mini-page: lock it, give it room, reduce it to some records, note what was used.

use crate::error::{Error, Result};
use crate::events::Hook;
use crate::index::{Index, Located};
use crate::mapping::{LeafAddress, PageError};
use crate::mini::events::{Event as Told, MiniImage};
use crate::mini::{Leaf, Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::ring::{Exclusive, NoBlock, Ring, Shared};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::types::{Lsn, PageId};

/// Room that is made beyond what is needed, so that the next ones who allocate need not.
pub(super) const SPARE_ROOM: u64 = 4096;

/// Pages that a ring must have room for to have mirrors: a smaller one would hold little else.
const LEAST_MIRRORS: usize = 4;

/// What is known of a leaf, as the mapping table keeps it while there is no mini-page: nothing until the leaf was looked at.
pub(super) fn address(leaf: Option<Leaf>) -> LeafAddress {
    LeafAddress::new(leaf.map_or(0, Leaf::to_bits)).expect("33 bits fit")
}

/// Size classes: doubling up to half a page, and two for mirrors, if the ring is large enough to have some.
pub(super) fn ring_sizes(page_size: usize, capacity: usize) -> Vec<usize> {
    let doubling = std::iter::successors(Some(64), |size| Some(size * 2));
    let mut sizes: Vec<_> = doubling.take_while(|size| *size <= page_size / 2).collect();
    if capacity >= LEAST_MIRRORS * page_size {
        sizes.extend([page_size / 4 * 3, page_size]);
    }
    sizes
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

/// The same; also says how the page was found.
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
            // Split or merged meanwhile; or so new that nobody has told the mapping table.
            Ok(_) => hook.tell(|| Told::Restarted { page }),
            Err(PageError::Unknown { .. }) => {}
            Err(e) => return Err(unexpected(&e)),
        }
        crate::sync::yield_now();
    }
}

/// Locks the page of the greatest lower fence below a key, or of all, to read; also says the fence.
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

/// The page with a mini-page of at least `needed` bytes; one that has to be made is for this leaf, as of `lsn`.
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

/// Copies the mini-page, with only those records that `keep` is for, to a block that is as small as can be; all others are clean. Their marks
/// are cleared: they have to be used again. Without a record to keep there is no mini-page any more; without room nothing happens, and
/// the page comes back.
pub(super) fn keep<'a>(
    mut guard: Exclusive<'a>,
    hook: &Hook<Told>,
    keep: impl Fn(usize) -> bool,
) -> Option<Exclusive<'a>> {
    let old = guard.bytes().map(MiniRef::new)?;
    // The mirror of an empty leaf is worth something, too.
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

/// A page's mini-page, if it has one, as a listener is told of it.
pub(super) fn image(mini: Option<&[u8]>, marks: Option<&AtomicU32>) -> Option<MiniImage> {
    Some(MiniImage::of(mini?, marks_of(marks)))
}

/// Something was used that has this mark: readers say so together.
#[inline]
pub(super) fn note_use(marks: Option<&AtomicU32>, bit: u32) {
    // A bit that is set already is not written again, to spare the cache line.
    if let Some(marks) = marks
        && marks.load(Ordering::Relaxed) & bit == 0
    {
        marks.fetch_or(bit, Ordering::Relaxed);
    }
}

/// A record was put; `Err` if it is new.
pub(super) fn note_put(guard: &Exclusive<'_>, at: std::result::Result<usize, usize>) {
    let Some(mini) = guard.bytes().map(MiniRef::new) else {
        return;
    };
    match at {
        // Of a mirror, where several share a mark, they stay with their places.
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

/// Index and mapping table do not agree: an error of ours, or damage that passed all checks.
pub(super) fn unexpected(e: &PageError) -> Error {
    Error::Foreign {
        engine: "bf",
        why: e.to_string(),
    }
}
