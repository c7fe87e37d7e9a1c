//! Leaf pages, which hold the records of a tree.
//!
//! A page is 4-64 KiB of plain bytes. It covers one key range of the tree, `[lower fence, upper
//! fence)`, and holds records of variable length in key order (B-Trees Are Back §2). The rightmost
//! page has no upper fence, which means "no bound"; the lower fence `""` of the leftmost page lies
//! below every key.
//!
//! ```text
//!   0      8    16    24   26       27     28                                      page size
//!   +------+----+-----+----+--------+------+--------+----------+-----+---------+-------+-------+
//!   | xxh3 | id | lsn | TR | layout | size | counts | slots -> | gap | <- heap | upper | lower |
//!   +------+----+-----+----+--------+------+--------+----------+-----+---------+-------+-------+
//!    envelope                               header   ^ sorted by key   ^ heap start      fences
//!
//!   slot:          | offset | key len | value len | head |        all integers little-endian
//!   payload:       | key without the page's prefix | value |
//! ```
//!
//! The envelope (`envelope`) is the same for every page. Its byte 26 names the layout of the rest:
//!
//! | [`PageLayout`] | header | slot | head | index behind the slots | of |
//! |---|---|---|---|---|---|
//! | baseline (`plain`) | 20 B | 6 B | | | B-Trees Are Back §2; whole keys |
//! | prefix (`plain`) | 20 B | 6 B | | | §3.1 |
//! | slotted (`slotted`) | 20 B | 10 B | 4 B | | §3.2 "heads" |
//! | hints (`hints`) | 20 B | 10 B | 4 B | 16 heads, from 33 records on | §3.3 |
//! | fingerprint (`fingerprint`) | 20 B | 6 B | | a hash byte per record; unsorted slots | §3.4 |
//! | compact (`compact`) | 12 B | 8 B | 2 B | | Bf-Tree §3.2, §3.5; shared by mini-pages (`mini`) |
//! | semi-dense (`semi_dense`) | 20 B | 2 B a place | | | §3.5; numbers between the fences |
//! | fully dense (`fully_dense`) | 20 B | 1 bit a place | | | §3.5; close numbers, same lengths |
//!
//! (A § without a paper's name refers to B-Trees Are Back.)
//!
//! # One interface
//!
//! Trees use [`PageRef`] and [`PageMut`] and need not know the layout. These offer search and get,
//! put and delete, scans from either end, the choice of a separator, split, merge, the free bytes
//! of a page, and the list of records that a log record carries. Each operation looks up the page's
//! layout once and then runs code compiled for that layout. A layout decides three things, and
//! callers must not assume more:
//!
//! - **The order of records in the page.** An index is a rank in key order; where slots are in
//!   another order, looking one up costs a sort. Iterators always go in key order, and
//!   [`PageMut::sort`] makes them cheap.
//! - **The bytes that a record takes.** [`PageLayout::slots_bytes`] returns them for any number of
//!   records.
//! - **The records that a page accepts.** A dense page refuses a record for which it has no place.
//!   A caller whose record is refused, for that reason or for want of room, asks the tree's
//!   [`LayoutChoice`] whether to convert the page ([`PageMut::relayout`]) or where to split it. A
//!   dense page cannot absorb a neighbour; it must be converted first.
//!
//! The code that all slotted layouts share is in `body` and `body_mut`, generic over `Format`: the
//! encoding of slots, whether they have heads and are sorted, and their index. The code that dense
//! layouts share is in `dense`, generic over `DenseFormat`. Nothing else depends on the layout:
//! page stores and the checks of bytes from a device see the envelope; the modification log sees
//! changed segments; the redo log names keys and records, never bytes of a page, and records the
//! layout of each new page.
//!
//! - **Prefix truncation** (§3.1): all keys of the page share the common prefix of its fences, so
//!   payloads leave it out. The fences themselves are stored whole at the very end of the page.
//!   That keeps splits and merges simple, and allows a leaf to be checked against the index entry
//!   that led to it. A page without an upper fence has no prefix.
//! - **Heads** (§3.2; Bf-Tree §3.5 "look-ahead bytes"): a slot repeats the first bytes behind the
//!   prefix, zero padded, as an integer. Different heads order like their keys. Equal heads decide
//!   nothing (`test` and `teste`, `a` and `a\0`), so then the whole keys are compared.
//! - **Empty payloads** (empty suffix, empty value) take no heap; their slot has offset 0. So an
//!   offset always lies inside the page and fits 16 bits even at 64 KiB.
//! - **Lazy compaction** (§2 "Remove"): deletes and growing values leave holes; `heap used` counts
//!   the live bytes (payloads and fences). If the gap is too small but gap and holes together
//!   suffice, the page is rewritten without holes.
//!
//! [`PageRef`] reads a page. [`PageMut`] changes one, and marks in a [`ChangeMap`] which 64-byte
//! segments have changed since the page was last written (DESIGN, "Pages change only through a
//! guard").
//!
//! # Redo needs no history
//! Whether a change fits depends on layout, fences and records alone, never on holes or on the
//! order of earlier changes. So a put that was logged because it fitted also fits when redo repeats
//! it on an image of the same records, provided that changes of the layout are logged as well.
//!
//! # Damaged bytes
//! [`check`] validates bytes from a device: checksum, identity and header bounds. [`check_deep`]
//! also validates every slot. No accessor relies on either to stay within bounds: on damaged bytes
//! a view gives wrong answers (a missing key, an empty value, [`Refused::NoSpace`]) but never
//! panics and never reads outside the page.
//!
//! # Room for one more
//! A split leaves both sides non-empty and always fits (see [`SplitPlan`]). A page with a single
//! record always has room for a second one of maximal size (see [`limits`]). So "split until the
//! record fits" ends after fewer splits than the page has records.

pub mod adapt;
pub(crate) mod body;
pub(crate) mod body_mut;
mod change;
mod check;
mod choice;
mod dense;
mod dense_image;
mod descent;
mod dispatch;
mod edit;
mod envelope;
pub(crate) mod format;
mod image;
pub(crate) mod leaves;
mod limit;
mod places;
pub mod records;
mod room;
mod share;
mod split;
mod suffix;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use change::Untracked;
pub use change::{ChangeMap, SEGMENT_BYTES};
pub(crate) use check::sealed_for;
pub use check::{PageDamage, check, check_deep, check_for, check_structure};
pub use choice::Remedy;
pub use edit::{PageMut, Put};
pub(crate) use envelope::common_prefix;
pub use envelope::{ENVELOPE_BYTES, MAX_PAGE_BYTES, MIN_PAGE_BYTES, is_page_size};
pub use limit::{Limits, Refused, limits};
pub use places::{Places, places};
pub use split::SplitPlan;
pub use suffix::Suffix;
pub use view::{PageRef, Records};

pub use crate::options::{LayoutChoice, PageLayout};
