//! Checks of a page's bytes: are they the page that the engine wrote?
//!
//! [`check`] runs on every read and verifies checksum, identity and header bounds. [`check_deep`]
//! also verifies what a bug, rather than a device, could have broken before the checksum was
//! computed: slots, heap, key order and accounting. `verify` runs the deep check, and debug builds
//! run its structural part, [`check_structure`], after changes.

use std::fmt;

use super::adapt;
use super::body::Body;
use super::dense::Dense;
use super::dispatch::by_layout;
use super::envelope::{self, MAGIC, field, is_page_len, is_page_size, u16_at, u64_at};
use super::format::LeafFormat;
use super::limit::limits;
use crate::error::Error;
use crate::options::PageLayout;
use crate::types::{Lba, PageId, StoreId};

/// Describes how the bytes of a page are damaged. Its `Display` is a sentence with what, expected
/// and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageDamage {
    /// All bytes are zero: the page was never written, or was trimmed. This need not be damage;
    /// recovery decides.
    Zeroed,
    /// The checksum in the header does not match the bytes.
    Checksum {
        /// The checksum in the header.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// The page is whole but has another page's id, after a misdirected write or read.
    OtherPage {
        /// The page that was asked for.
        expected: PageId,
        /// The page that is there.
        found: PageId,
    },
    /// The checksum is correct, but the bytes are not a page, or break an invariant of pages.
    Broken {
        /// The field or record.
        what: String,
        /// The invariant.
        expected: String,
        /// What is there instead.
        found: String,
    },
}

impl PageDamage {
    #[cold]
    fn broken(
        what: impl Into<String>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        PageDamage::Broken {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Returns what is damaged, what was expected and what was found.
    #[must_use]
    pub fn parts(&self) -> (String, String, String) {
        match self {
            PageDamage::Zeroed => (
                "page".into(),
                "a tree page".into(),
                "only zeros (never written, or trimmed)".into(),
            ),
            PageDamage::Checksum { expected, found } => (
                "page checksum".into(),
                format!("{expected:#018x} as in the header"),
                format!("{found:#018x} over the bytes"),
            ),
            PageDamage::OtherPage { expected, found } => (
                "page id".into(),
                expected.to_string(),
                format!("{found} (misdirected write or read)"),
            ),
            PageDamage::Broken {
                what,
                expected,
                found,
            } => (what.clone(), expected.clone(), found.clone()),
        }
    }

    /// Converts this damage of page `page` at `lba` to the engine's error.
    #[must_use]
    pub fn into_error(self, page: PageId, lba: Lba) -> Error {
        let (what, expected, found) = self.parts();
        Error::Damaged {
            what: format!("{page} ({what})"),
            lba,
            expected,
            found,
        }
    }
}

impl fmt::Display for PageDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, expected, found) = self.parts();
        write!(f, "{what}: expected {expected}, found {found}")
    }
}

impl std::error::Error for PageDamage {}

/// Checks that `bytes` are page `expected`, sealed for no particular store. The same as
/// [`check_for`] with store id 0.
///
/// # Errors
/// [`PageDamage`] if they are not.
pub fn check(bytes: &[u8], expected: PageId) -> Result<(), PageDamage> {
    check_for(bytes, expected, StoreId::default())
}

/// Checks that `bytes` are page `expected`, sealed for this store: checksum, page id, header
/// bounds.
///
/// # Errors
/// [`PageDamage`] if they are not.
pub fn check_for(bytes: &[u8], expected: PageId, store: StoreId) -> Result<(), PageDamage> {
    if !is_page_size(bytes.len()) {
        return Err(bad_size(bytes.len()));
    }
    let stored = u64_at(bytes, field::CHECKSUM);
    let sum = envelope::checksum(bytes, store);
    if stored != sum {
        return Err(if bytes.iter().all(|&b| b == 0) {
            PageDamage::Zeroed
        } else {
            PageDamage::Checksum {
                expected: stored,
                found: sum,
            }
        });
    }
    check_header(bytes)?;
    let found = PageId(u64_at(bytes, field::PAGE_ID));
    if found != expected {
        return Err(PageDamage::OtherPage { expected, found });
    }
    Ok(())
}

/// The store that a page was sealed for. The answer is right only if the page is intact.
#[must_use]
pub(crate) fn sealed_for(bytes: &[u8]) -> StoreId {
    let plain = envelope::checksum(bytes, StoreId::default());
    StoreId(u64_at(bytes, field::CHECKSUM) ^ plain)
}

/// Runs both [`check`] and [`check_structure`].
///
/// # Errors
/// [`PageDamage`] if either fails.
pub fn check_deep(bytes: &[u8], expected: PageId) -> Result<(), PageDamage> {
    check(bytes, expected)?;
    check_structure(bytes)
}

/// Checks every invariant of a page in memory, sealed or not: all but checksum and identity.
///
/// # Errors
/// [`PageDamage::Broken`].
pub fn check_structure(bytes: &[u8]) -> Result<(), PageDamage> {
    if !is_page_len(bytes.len()) {
        return Err(bad_size(bytes.len()));
    }
    check_header(bytes)?;
    by_layout!(PageLayout::of(bytes), F => {
        let page = Body::<F>::new(bytes);
        check_fences(page)?;
        check_slots(page)?;
        check_index(page)?;
        check_order(page)
    }, D => Dense::<D>::new(bytes).check_records().map_err(named))
}

#[cold]
fn bad_size(len: usize) -> PageDamage {
    PageDamage::broken(
        "page size",
        "a power of two from 4096 to 65536 bytes",
        format_args!("{len} bytes"),
    )
}

fn need(holds: bool, what: &str, expected: &str, found: usize) -> Result<(), PageDamage> {
    if holds {
        Ok(())
    } else {
        Err(PageDamage::broken(what, expected, found))
    }
}

/// Checks the header's invariants, first the envelope's and then the layout's. Later checks rely on
/// earlier ones.
fn check_header(bytes: &[u8]) -> Result<(), PageDamage> {
    let magic = u16_at(bytes, field::MAGIC);
    need(magic == MAGIC, "page magic", "0x5254", magic.into())?;
    let kind = bytes[field::KIND];
    let Some(layout) = PageLayout::from_number(kind) else {
        let known = "1 to 8, each in version 1";
        return Err(PageDamage::broken("page layout", known, kind));
    };
    let log2 = u32::from(bytes[field::SIZE_LOG2]);
    let same_size = log2 == bytes.len().ilog2();
    let as_read = "the size that was read";
    need(same_size, "log2 of the page size", as_read, log2 as usize)?;
    by_layout!(
        layout,
        F => check_numbers(Body::<F>::new(bytes)),
        D => Dense::<D>::new(bytes).check_numbers().map_err(named)
    )
}

#[cold]
fn named((what, expected, found): (String, String, String)) -> PageDamage {
    PageDamage::broken(what, expected, found)
}

fn check_numbers<F: LeafFormat>(page: Body<'_, F>) -> Result<(), PageDamage> {
    let bytes = page.bytes();
    let size = bytes.len();
    let bounded = F::bounded(bytes);
    need(bounded <= 1, "upper-fence flag", "0 or 1", bounded.into())?;
    let reserved = F::reserved(bytes).iter();
    let stray: usize = reserved.map(|&b| usize::from(b)).sum();
    need(stray == 0, "sum of the reserved header bytes", "0", stray)?;

    let scans = bytes[super::leaves::slotted::header::SCANS];
    let known = !F::ADAPTS || adapt::is_counter(scans);
    need(known, "counter of scans", "0 to 3 or 255", scans.into())?;

    let (lower, upper) = (F::lower_len(bytes), F::upper_len(bytes));
    let fences = lower + upper;
    let none = bounded == 1 || upper == 0;
    need(
        none,
        "upper-fence length",
        "0 without an upper fence",
        upper,
    )?;
    let slots_end = F::slots_end(F::count(bytes));
    let heap_start = F::heap_start(bytes);
    let heap_used = F::heap_used(bytes);
    let room = size - F::SLOTS_AT;
    need(fences <= room, "fence lengths", "within the page", fences)?;
    let apart = slots_end <= heap_start && heap_start <= size - fences;
    let between = "between slots and fences";
    need(apart, "heap start", between, heap_start)?;
    let plausible = fences <= heap_used && heap_used <= size - heap_start;
    let at_least = "at least the fences, at most the heap";
    need(plausible, "used heap bytes", at_least, heap_used)?;

    let ordered = page.upper_fence().is_none_or(|u| page.lower_fence() < u);
    need(ordered, "upper fence", "above the lower fence", upper)?;
    let prefix = F::prefix_len(bytes);
    let shared = F::truncated(page.lower_fence(), page.upper_fence());
    let common = match F::TRUNCATES {
        true => "the common prefix of the fences",
        false => "0, because keys are stored whole",
    };
    need(prefix == shared, "prefix length", common, prefix)
}

fn check_fences<F: LeafFormat>(page: Body<'_, F>) -> Result<(), PageDamage> {
    let max_key = limits(page.bytes().len()).max_key;
    let (lower, upper) = (page.lower_fence(), page.upper_fence());
    let longest = lower.len().max(upper.map_or(0, <[u8]>::len));
    if longest > max_key {
        let expected = format_args!("at most {max_key} bytes").to_string();
        return Err(PageDamage::broken("longest fence", expected, longest));
    }
    Ok(())
}

/// Checks that each slot points at its payload, that payloads do not overlap, and that their sum is
/// the one in the header.
fn check_slots<F: LeafFormat>(page: Body<'_, F>) -> Result<(), PageDamage> {
    let heap_end = page.heap_end();
    let mut extents = Vec::with_capacity(page.count());
    for (index, raw) in page.slots().iter().enumerate() {
        let slot = F::decode(raw);
        let (start, len) = (usize::from(slot.offset), slot.payload_len());
        if slot.kind != 0 {
            let what = format!("kind of record {index}");
            return Err(PageDamage::broken(what, "0 as in every leaf", slot.kind));
        }
        if len == 0 {
            if start != 0 {
                let what = format!("offset of record {index}, which is empty");
                return Err(PageDamage::broken(what, 0, start));
            }
        } else if start < page.heap_start() || start + len > heap_end {
            return Err(PageDamage::broken(
                format!("payload of record {index}"),
                format_args!("within bytes {} to {heap_end}", page.heap_start()),
                format_args!("bytes {start} to {}", start + len),
            ));
        } else {
            extents.push((start, start + len));
        }
        let computed = F::head(page.suffix_of(raw));
        if slot.head != computed {
            let what = format!("head of record {index}");
            return Err(PageDamage::broken(
                what,
                format_args!("{computed:#x} as in its key"),
                format_args!("{:#x}", slot.head),
            ));
        }
    }
    extents.sort_unstable();
    for pair in extents.windows(2) {
        if pair[0].1 > pair[1].0 {
            let expected = format!("at or behind byte {}", pair[0].1);
            let found = format!("byte {}", pair[1].0);
            return Err(PageDamage::broken("start of a payload", expected, found));
        }
    }
    let live: usize = extents.iter().map(|(start, end)| end - start).sum();
    let used = page.heap_used();
    let expected = live + page.bytes().len() - heap_end;
    if used != expected {
        return Err(PageDamage::broken("used heap bytes", expected, used));
    }
    Ok(())
}

/// Checks that the index equals one rebuilt from the slots.
fn check_index<F: LeafFormat>(page: Body<'_, F>) -> Result<(), PageDamage> {
    if !F::INDEXED {
        return Ok(());
    }
    let (bytes, count) = (page.bytes(), page.count());
    let mut rebuilt = bytes.to_vec();
    F::build_index(&mut rebuilt, count);
    let index = F::slot_at(count)..F::slots_end(count);
    let at = index.clone().find(|&at| bytes[at] != rebuilt[at]);
    if let Some(at) = at {
        return Err(PageDamage::broken(
            format!("byte {} of the index of slots", at - index.start),
            format_args!("{:#04x}, computed from the slots", rebuilt[at]),
            format_args!("{:#04x}", bytes[at]),
        ));
    }
    let (claimed, found) = (F::in_order(bytes), F::in_order(&rebuilt));
    if !F::SORTED && claimed > found {
        let most = format_args!("at most {found}").to_string();
        return Err(PageDamage::broken("records in order", most, claimed));
    }
    Ok(())
}

/// Checks that keys ascend strictly (after sorting, where slots are unsorted) and lie within the
/// fences.
fn check_order<F: LeafFormat>(page: Body<'_, F>) -> Result<(), PageDamage> {
    let slots = page.ordered();
    let suffix = |index: usize| page.suffix_of(&slots[index]);
    for index in 1..slots.len() {
        if suffix(index - 1) >= suffix(index) {
            return Err(PageDamage::broken(
                format!("key of record {index}"),
                "a key greater than the one before",
                format_args!("{:02x?}", suffix(index)),
            ));
        }
    }
    let ends = [0, slots.len().saturating_sub(1)];
    for index in ends.into_iter().filter(|&i| i < slots.len()) {
        let key = [page.prefix(), suffix(index)].concat();
        if !page.covers(&key) {
            return Err(PageDamage::broken(
                format!("key of record {index}"),
                "one within the fences",
                format_args!("{key:02x?}"),
            ));
        }
    }
    Ok(())
}
