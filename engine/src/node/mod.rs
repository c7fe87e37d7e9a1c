//! Leaf pages: where records live.
//!
//! A page is 4-64 KiB of plain bytes that holds one key range of the tree, `[lower fence, upper fence)`, with
//! records of variable length in key order (B-Trees Are Back §2). The missing upper fence of the rightmost
//! page means "no bound"; the lower fence `""` of the leftmost one lies below every key.
//!
//! ```text
//!   0      8    16   24   26       27     28                                                         page size
//!   +------+----+----+----+--------+------+---------------------+-------+------+---------+-----------+-------+-------+
//!   | xxh3 | id |lsn | TR | layout | size | counts and lengths  | slots |  ->  | gap     | <- heap   | upper | lower |
//!   +------+----+----+----+--------+------+---------------------+-------+------+---------+-----------+-------+-------+
//!    envelope                              header                ^ sorted by key          ^ heap start         fences
//!
//!   slot:          | offset | key len | value len | head |        all integers little-endian
//!   payload:       | key without the page's prefix | value |
//! ```
//!
//! The envelope (`layout`) is the same for every page; its byte 26 names the layout of the rest:
//!
//! | [`PageLayout`] | header | slot | head | index behind the slots | of |
//! |---|---|---|---|---|---|
//! | baseline (`plain`) | 20 B | 6 B | | | B-Trees Are Back §2; whole keys |
//! | prefix (`plain`) | 20 B | 6 B | | | §3.1 |
//! | slotted (`slotted`) | 20 B | 10 B | 4 B | | §3.2 "heads" |
//! | hints (`hints`) | 20 B | 10 B | 4 B | 16 heads, from 33 records on | §3.3 |
//! | fingerprint (`fingerprint`) | 20 B | 6 B | | a byte of hash a record; slots in no order | §3.4 |
//! | compact (`compact`) | 12 B | 8 B | 2 B | | Bf-Tree §3.2, §3.5; mini-pages share it (`mini`) |
//! | semi-dense (`semi_dense`) | 20 B | 2 B a place | | | B-Trees Are Back §3.5; numbers between the fences |
//! | fully dense (`fully_dense`) | 20 B | 1 bit a place | | | §3.5; numbers near each other, values of one length |
//!
//! # One interface
//!
//! Trees see [`PageRef`] and [`PageMut`] and ask for no layout: search and get, put and delete, scans from either end, where to split, split, merge, what of a
//! page is free, the list of records that a log record carries. Each of these asks the page for its layout once and then runs code that was compiled for it.
//! Three things are up to a layout, and their users must not rely on more:
//!
//! - **In which order records lie.** Indices are ranks in the order of keys; where slots are in another order, an index costs a sort. Iterators are right
//!   in any case, and [`PageMut::sort`] makes them cheap.
//! - **What a record takes.** [`PageLayout::slots_bytes`] says what any number of them does.
//! - **Which records it takes.** A dense page refuses a record that it has no place for. Whoever is refused, for that or for want of room, asks the tree's
//!   [`LayoutChoice`] what to do: to lay the page out anew ([`PageMut::relayout`]), or where to split it. A dense page takes over no neighbour; it is laid out anew first.
//!
//! What all layouts with slots do is written once, in `body` and `body_mut`, for any `Format`: how slots are coded, whether they have heads and are in order, what
//! indexes them; what dense ones do in `dense`, for any `DenseFormat`. What stays the same for the others: page stores and checks of bytes from a device see the envelope; the modification log sees
//! changed segments; the log names keys and records, never bytes of a page, and says of a new page which layout it has.
//!
//! - **Prefix truncation** (§3.1): all keys of the page share the common prefix of its fences, so payloads leave
//!   it out. The fences themselves are stored whole at the very end of the page, which keeps splits and merges
//!   simple and lets an index answer be checked against the leaf. No upper fence, no prefix.
//! - **Heads** (§3.2; Bf-Tree §3.5 "look-ahead bytes"): a slot repeats the first bytes behind the prefix, zero
//!   padded, as an integer. Different heads order like their keys; equal heads say nothing (`test` and
//!   `teste`, `a` and `a\0`), then the whole keys are compared.
//! - **Empty payloads** (empty suffix, empty value) take no heap; their slot has offset 0. So an offset
//!   always lies inside the page and fits 16 bits even at 64 KiB.
//! - **Lazy compaction** (§2 "Remove"): deletes and growing values leave holes; `heap used` counts the live bytes
//!   (payloads and fences). When the gap is too small but the holes would do, the page is rewritten without holes.
//!
//! Reading is [`PageRef`], changing is [`PageMut`], which also notes in a [`ChangeMap`] which 64-byte segments
//! changed since the page was last written (DESIGN, "Pages change only through a guard").
//!
//! # Redo needs no history
//! Whether a change fits depends on layout, fences and records alone, never on holes or on the order of earlier changes. So a
//! put that was logged because it fitted also fits when redo repeats it on an image of the same records, if a new layout is logged as well.
//!
//! # Who trusts whom
//! [`check`] is the gate for bytes from a device: checksum, identity and header bounds. [`check_deep`] adds every
//! slot. No accessor relies on either to stay within bounds: on damaged bytes a view answers wrongly (a missing
//! key, an empty value, [`Refused::NoSpace`]) but never panics and never reads outside the page.
//!
//! # Room for one more
//! A split leaves both sides non-empty and always fits (see [`SplitPlan`]); a page with a single record
//! always has room for a second one of maximal size (see [`limits`]). So "split until the record fits" ends after fewer
//! splits than the page has records.

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
