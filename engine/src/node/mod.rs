//! Slotted leaf pages: where records live.
//!
//! A page is 4-64 KiB of plain bytes that holds one key range of the tree, `[lower fence, upper fence)`, with
//! records of variable length in key order (B-Trees Are Back §2). The missing upper fence of the rightmost
//! page means "no bound"; the lower fence `""` of the leftmost one lies below every key.
//!
//! ```text
//!   0      8    16   24            40         44        48                                          page size
//!   +------+----+----+-------------+----------+---------+-------+------+---------+-----------+-------+-------+
//!   | xxh3 | id |lsn | sizes, kind |heap start|heap used| slots |  ->  | gap     | <- heap   | upper | lower |
//!   +------+----+----+-------------+----------+---------+-------+------+---------+-----------+-------+-------+
//!                                                       ^ sorted by key          ^ heap start         fences
//!   slot (10 B):   | offset u16 | key len u16 | value len u16 | head u32 |        all integers little-endian
//!   payload:       | key without the page's prefix | value |
//! ```
//!
//! - **Prefix truncation** (§3.1): all keys of the page share the common prefix of its fences, so payloads leave
//!   it out. The fences themselves are stored whole at the very end of the page, which keeps splits and merges
//!   simple and lets an index answer be checked against the leaf. No upper fence, no prefix.
//! - **Heads** (§3.2; Bf-Tree §3.5 "look-ahead bytes"): a slot repeats the first 4 bytes behind the prefix, zero
//!   padded, as an integer. Different heads order like their keys; equal heads say nothing (`test` and
//!   `teste`, `a` and `a\0`), then the whole keys are compared.
//! - **Empty payloads** (empty suffix, empty value) take no heap; their slot has offset 0. So an offset
//!   always lies inside the page and fits 16 bits even at 64 KiB. Bounds that may equal the page size are 32 bits.
//! - **Lazy compaction** (§2 "Remove"): deletes and growing values leave holes; `heap used` counts the live bytes
//!   (payloads and fences). When the gap is too small but the holes would do, the page is rewritten without holes.
//!
//! Reading is [`PageRef`], changing is [`PageMut`], which also notes in a [`ChangeMap`] which 64-byte segments
//! changed since the page was last written (DESIGN, "Pages change only through a guard").
//!
//! # Redo needs no history
//! Whether a change fits depends on fences and records alone, never on holes or on the order of earlier changes. So a
//! put that was logged because it fitted also fits when redo repeats it on an image of the same records.
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

mod change;
mod check;
mod edit;
mod image;
mod layout;
mod limit;
pub mod records;
mod split;
mod view;

#[cfg(test)]
mod tests;

pub use change::{ChangeMap, SEGMENT_BYTES};
pub use check::{PageDamage, check, check_deep, check_structure};
pub use edit::{PageMut, Put};
pub(crate) use layout::common_prefix;
pub use layout::{HEADER_BYTES, MAX_PAGE_BYTES, MIN_PAGE_BYTES, SLOT_BYTES, is_page_size};
pub use limit::{Limits, Refused, limits};
pub use split::SplitPlan;
pub use view::{PageRef, Records};
