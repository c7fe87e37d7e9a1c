//! The records of the redo log: physiological redo records, each of which names the pages that it
//! changes (ARIES; Bf-Tree §5.7).
//!
//! ```text
//! record  = len body            len: varint, bytes of body
//! put     = 1 page klen key value
//! delete  = 2 page key
//! split   = 3 left right slen ulen+1 separator upper records
//! merge   = 4 left right llen ulen+1 right_lower upper records
//! split   = 5 layout left right slen ulen+1 separator upper records
//! layout  = 6 layout page
//! batch   = 7 part last changes     last: 1 in the last part; changes as in `intent`
//! ended   = 8
//! ```
//!
//! Numbers are LEB128 varints (seven bits a byte, low bits first). The last field of a body needs
//! no length, because the body has one. `ulen+1` is 0 if there is no upper fence. A split of kind 3
//! makes a page of the slotted layout, one of kind 5 a page of the named layout. A record has no
//! checksum: its blocks have.

use crate::node::PageLayout;
use crate::types::PageId;

/// The length of the longest record that the log takes, including its framing. A split or merge
/// carries at most one 64 KiB page and three of its keys.
pub const MAX_RECORD_BYTES: usize = 192 << 10;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const SPLIT: u8 = 3;
const MERGE: u8 = 4;
const SPLIT_AS: u8 = 5;
const RELAYOUT: u8 = 6;
const BATCH: u8 = 7;
const BATCH_END: u8 = 8;

/// One change. Redo applies it to exactly those of its pages whose LSN is smaller than the
/// record's.
///
/// ```
/// use treering_engine::PageId;
/// use treering_engine::wal::{Frame, Record, RecordDamage, next_frame};
///
/// let put = Record::Put { page: PageId(3), key: b"apple", value: b"red" };
/// let bytes = put.to_bytes();
/// let Frame::Whole { from, to } = next_frame(&bytes)? else {
///     panic!("the record is complete");
/// };
/// assert_eq!(Record::decode(&bytes[from..to])?, put);
/// assert_eq!(next_frame(&bytes[..4])?, Frame::Partial);
/// # Ok::<(), RecordDamage>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// `page` maps `key` to `value` from now on.
    Put {
        /// The leaf.
        page: PageId,
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// `page` no longer has `key`.
    Delete {
        /// The leaf.
        page: PageId,
        /// The key.
        key: &'a [u8],
    },
    /// `left` was cut at `separator`; its records from there on make up the new page `right`.
    Split {
        /// The layout of `right`.
        layout: PageLayout,
        /// The page that was full.
        left: PageId,
        /// The new page.
        right: PageId,
        /// Upper fence of `left`, lower fence of `right`.
        separator: &'a [u8],
        /// Upper fence of `right`; `None` if it is the rightmost leaf.
        upper: Option<&'a [u8]>,
        /// The records that moved, as `node::records` encodes them.
        records: &'a [u8],
    },
    /// `left` absorbed all records of `right`, which was freed.
    Merge {
        /// The remaining page.
        left: PageId,
        /// The page that is freed.
        right: PageId,
        /// Lower fence of `right`.
        right_lower: &'a [u8],
        /// Upper fence of `right`, now of `left`; `None` if it was the rightmost leaf.
        upper: Option<&'a [u8]>,
        /// The records that moved, as `node::records` encodes them.
        records: &'a [u8],
    },
    /// `page` changed its layout and kept its records. Which records fit from now on depends on the
    /// layout.
    Relayout {
        /// The leaf.
        page: PageId,
        /// The new layout.
        layout: PageLayout,
    },
    /// A part of the changes that a batch is about to make.
    Batch {
        /// The number of the part, from 0.
        part: u64,
        /// Whether the batch has no more parts.
        last: bool,
        /// The encoded changes.
        changes: &'a [u8],
    },
    /// All changes of the last batch have been made and logged.
    BatchEnd,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordDamage {
    /// The body ends inside a field.
    #[error("a field that extends beyond its record")]
    Cut,
    /// A number that does not fit 64 bits.
    #[error("a number of more than 64 bits")]
    Number,
    /// An unknown kind.
    #[error("unknown record kind {0}")]
    Kind(u8),
    /// An unknown page layout.
    #[error("unknown page layout {0}")]
    Layout(u64),
    /// Extra bytes behind the last field.
    #[error("{0} extra bytes behind the last field")]
    Trailing(usize),
    /// A length beyond [`MAX_RECORD_BYTES`].
    #[error("a record of {0} bytes, which is too long")]
    Long(u64),
}

/// Maximum number of bytes before the first part: length, kind and five numbers.
const HEAD: usize = 10 + 1 + 5 * 10;
/// Offset of the kind in the head; the length is right-aligned before it.
const KIND_AT: usize = 10;

/// A record ready to be copied: a small head on the stack and slices of the caller.
pub(crate) struct Encoded<'a> {
    head: [u8; HEAD],
    head_from: usize,
    head_to: usize,
    parts: [&'a [u8]; 3],
}

impl<'a> Encoded<'a> {
    fn new(kind: u8, parts: [&'a [u8]; 3]) -> Encoded<'a> {
        let mut head = [0; HEAD];
        head[KIND_AT] = kind;
        Encoded {
            head,
            head_from: KIND_AT,
            head_to: KIND_AT + 1,
            parts,
        }
    }

    fn number(mut self, number: u64) -> Self {
        self.head_to += put_varint(&mut self.head[self.head_to..], number);
        self
    }

    fn framed(mut self) -> Self {
        let parts: usize = self.parts.iter().map(|p| p.len()).sum();
        let body = (self.head_to - KIND_AT + parts) as u64;
        let len = varint_len(body);
        self.head_from = KIND_AT - len;
        put_varint(&mut self.head[KIND_AT - len..], body);
        self
    }

    /// Bytes in the log, without block headers.
    pub(crate) fn len(&self) -> usize {
        self.head_to - self.head_from + self.parts.iter().map(|p| p.len()).sum::<usize>()
    }

    /// The pieces in order.
    pub(crate) fn pieces(&self) -> [&[u8]; 4] {
        let [a, b, c] = self.parts;
        [&self.head[self.head_from..self.head_to], a, b, c]
    }
}

impl<'a> Record<'a> {
    pub(crate) fn encode(&self) -> Encoded<'a> {
        let up = |upper: Option<&[u8]>| upper.map_or(0, |u| u.len() as u64 + 1);
        match *self {
            Record::Put { page, key, value } => Encoded::new(PUT, [key, value, b""])
                .number(page.0)
                .number(key.len() as u64),
            Record::Delete { page, key } => Encoded::new(DELETE, [key, b"", b""]).number(page.0),
            Record::Split {
                layout,
                left,
                right,
                separator,
                upper,
                records,
            } => {
                let parts = [separator, upper.unwrap_or_default(), records];
                let head = match layout {
                    PageLayout::Slotted => Encoded::new(SPLIT, parts),
                    other => Encoded::new(SPLIT_AS, parts).number(other.number().into()),
                };
                head.number(left.0)
                    .number(right.0)
                    .number(separator.len() as u64)
                    .number(up(upper))
            }
            Record::Merge {
                left,
                right,
                right_lower,
                upper,
                records,
            } => Encoded::new(MERGE, [right_lower, upper.unwrap_or_default(), records])
                .number(left.0)
                .number(right.0)
                .number(right_lower.len() as u64)
                .number(up(upper)),
            Record::Relayout { page, layout } => Encoded::new(RELAYOUT, [b""; 3])
                .number(layout.number().into())
                .number(page.0),
            Record::Batch {
                part,
                last,
                changes,
            } => Encoded::new(BATCH, [changes, b"", b""])
                .number(part)
                .number(last.into()),
            Record::BatchEnd => Encoded::new(BATCH_END, [b""; 3]),
        }
        .framed()
    }

    /// The pages that the record changes: none, one or two.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + use<> {
        let pages = match *self {
            Record::Put { page, .. }
            | Record::Delete { page, .. }
            | Record::Relayout { page, .. } => [Some(page), None],
            Record::Split { left, right, .. } | Record::Merge { left, right, .. } => {
                [Some(left), Some(right)]
            }
            Record::Batch { .. } | Record::BatchEnd => [None, None],
        };
        pages.into_iter().flatten()
    }

    /// Bytes that this record takes in the log, including framing but not block headers.
    pub fn encoded_len(&self) -> usize {
        self.encode().len()
    }

    /// The bytes of this record in the log, including framing.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode().pieces().concat()
    }

    /// Decodes a body that [`next_frame`] has found.
    ///
    /// # Errors
    /// [`RecordDamage`] if the bytes are not a record. Never panics.
    pub fn decode(body: &'a [u8]) -> Result<Record<'a>, RecordDamage> {
        let mut f = Fields(body);
        match f.byte()? {
            PUT => {
                let page = PageId(f.number()?);
                let klen = f.number()?;
                Ok(Record::Put {
                    page,
                    key: f.bytes(klen)?,
                    value: f.0,
                })
            }
            DELETE => Ok(Record::Delete {
                page: PageId(f.number()?),
                key: f.0,
            }),
            kind @ (SPLIT | SPLIT_AS) => {
                let layout = if kind == SPLIT {
                    PageLayout::Slotted
                } else {
                    f.layout()?
                };
                let (left, right, separator, upper) = f.two_pages()?;
                Ok(Record::Split {
                    layout,
                    left,
                    right,
                    separator,
                    upper,
                    records: f.0,
                })
            }
            MERGE => {
                let (left, right, right_lower, upper) = f.two_pages()?;
                Ok(Record::Merge {
                    left,
                    right,
                    right_lower,
                    upper,
                    records: f.0,
                })
            }
            RELAYOUT => {
                let layout = f.layout()?;
                let page = PageId(f.number()?);
                f.end().map(|()| Record::Relayout { page, layout })
            }
            BATCH => {
                let (part, last) = (f.number()?, f.number()?);
                Ok(Record::Batch {
                    part,
                    last: last != 0,
                    changes: f.0,
                })
            }
            BATCH_END => f.end().map(|()| Record::BatchEnd),
            kind => Err(RecordDamage::Kind(kind)),
        }
    }
}

/// The rest of a body.
pub(super) struct Fields<'a>(&'a [u8]);

type TwoPages<'a> = (PageId, PageId, &'a [u8], Option<&'a [u8]>);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that nothing is left.
    fn end(&self) -> Result<(), RecordDamage> {
        match self.0.len() {
            0 => Ok(()),
            extra => Err(RecordDamage::Trailing(extra)),
        }
    }

    fn byte(&mut self) -> Result<u8, RecordDamage> {
        let (byte, rest) = self.0.split_first().ok_or(RecordDamage::Cut)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, RecordDamage> {
        let (number, len) = get_varint(self.0)?.ok_or(RecordDamage::Cut)?;
        self.0 = &self.0[len..];
        Ok(number)
    }

    fn layout(&mut self) -> Result<PageLayout, RecordDamage> {
        let number = self.number()?;
        (u8::try_from(number).ok())
            .and_then(PageLayout::from_number)
            .ok_or(RecordDamage::Layout(number))
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<&'a [u8], RecordDamage> {
        let len = usize::try_from(len).map_err(|_| RecordDamage::Cut)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(RecordDamage::Cut)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn two_pages(&mut self) -> Result<TwoPages<'a>, RecordDamage> {
        let (left, right) = (PageId(self.number()?), PageId(self.number()?));
        let (lower_len, upper_len) = (self.number()?, self.number()?);
        let lower = self.bytes(lower_len)?;
        let upper = upper_len
            .checked_sub(1)
            .map(|len| self.bytes(len))
            .transpose()?;
        Ok((left, right, lower, upper))
    }
}

/// The position of the next record in `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The body is `bytes[from..to]`; the next record begins at `to`.
    Whole {
        /// First byte of the body.
        from: usize,
        /// Behind the body.
        to: usize,
    },
    /// The record continues behind `bytes`.
    Partial,
}

/// Finds the next record in `bytes`.
///
/// # Errors
/// [`RecordDamage`] if no record can begin like this.
pub fn next_frame(bytes: &[u8]) -> Result<Frame, RecordDamage> {
    let Some((len, from)) = get_varint(bytes)? else {
        return Ok(Frame::Partial);
    };
    if len == 0 {
        return Err(RecordDamage::Cut);
    }
    if len > MAX_RECORD_BYTES as u64 {
        return Err(RecordDamage::Long(len));
    }
    let to = from + len as usize;
    Ok(if to <= bytes.len() {
        Frame::Whole { from, to }
    } else {
        Frame::Partial
    })
}

fn varint_len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub(super) fn put_varint(out: &mut [u8], mut number: u64) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
}

/// Reads a number and the length of its encoding. `None` if it continues behind `bytes`.
fn get_varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, RecordDamage> {
    let mut number = 0u64;
    for (i, byte) in bytes.iter().enumerate() {
        if i == 9 && *byte > 1 {
            return Err(RecordDamage::Number);
        }
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Ok(Some((number, i + 1)));
        }
    }
    Ok(None)
}
