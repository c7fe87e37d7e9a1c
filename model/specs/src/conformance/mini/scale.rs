//! Translates the engine's bytes to the spec: keys and values to numbers, page and mini-page sizes
//! to numbers of records.
//!
//! All records have one length, so counting bytes and counting records agree. Only tombstones are
//! shorter, by eight bytes of 420. Even so, a mini-page or leaf has room for the same number of
//! records as the spec's.

use treering_engine::mini::Kind;
use treering_engine::mini::events::{LeafImage, MiniImage};

use crate::mirror::wide::mini_page::MiniPage;
use crate::mirror::wide::mini_page::records::{self, ABSENT, Content, Page};

/// The number of records that mini-pages of 512 bytes, 1, 2, 3 and 4 KiB have room for.
const SIZES: [u8; 5] = [1, 2, 4, 7, 9];
/// The number of records that a leaf of 4 KiB has room for.
pub(super) const LEAF_CAPACITY: u8 = 9;

const KEY_BYTES: usize = 404;
const VALUE_BYTES: usize = 8;

/// The sizes of mini-pages up to so many per cent of a page.
pub(super) fn sizes(max_mini_page: u8) -> &'static [u8] {
    match max_mini_page {
        100.. => &SIZES,
        _ => &SIZES[..3],
    }
}

/// A record of a mini-page: key, kind, value, reference bit.
pub(super) type Row = (u8, records::Kind, Content, bool);

/// A leaf: its fences, keys and values.
pub(super) type Leaf = (u8, u8, Vec<(u8, Content)>);

/// The keys of an episode.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    keys: Vec<Vec<u8>>,
}

impl Scale {
    pub(super) fn new(keys: u8) -> Scale {
        assert!(usize::from(keys) <= MiniPage::MOST_KEYS, "no room");
        let key = |n| {
            // Keys differ in their first bytes, so that leaves have hardly any common prefix to
            // omit and separators are short.
            let mut bytes = format!("{n:02}").into_bytes();
            bytes.resize(KEY_BYTES, b'.');
            bytes
        };
        Scale {
            keys: (1..=keys).map(key).collect(),
        }
    }

    pub(super) fn len(&self) -> u8 {
        self.keys.len() as u8
    }

    /// The bytes of a key.
    pub(super) fn bytes(&self, key: u8) -> &[u8] {
        &self.keys[usize::from(key) - 1]
    }

    /// The bytes of a value.
    pub(super) fn value(content: Content) -> [u8; VALUE_BYTES] {
        [content; VALUE_BYTES]
    }

    /// The number of a key.
    pub(super) fn key(&self, bytes: &[u8]) -> Result<u8, String> {
        let place = self.keys.binary_search_by(|key| key.as_slice().cmp(bytes));
        let unknown = |_| format!("no client uses the key {}", bytes.escape_ascii());
        place.map(|n| n as u8 + 1).map_err(unknown)
    }

    /// The first key that is not below a fence.
    pub(super) fn fence(&self, bytes: &[u8]) -> u8 {
        self.keys.partition_point(|key| key.as_slice() < bytes) as u8 + 1
    }

    /// The number of a value.
    pub(super) fn content(bytes: &[u8]) -> Result<Content, String> {
        match bytes {
            [] => Ok(ABSENT),
            [first, ..] if bytes == Scale::value(*first) && *first != ABSENT => Ok(*first),
            _ => Err(format!(
                "no client writes the value {}",
                bytes.escape_ascii()
            )),
        }
    }

    /// The number of records that a mini-page has room for. 0 if there is no mini-page.
    pub(super) fn size(mini: Option<&MiniImage>) -> Result<u8, String> {
        let Some(mini) = mini else { return Ok(0) };
        // Less the header of the block and the marks.
        let class = [512, 1024, 2048, 3072, 4096].iter().position(|size| {
            let block = mini.bytes.next_multiple_of(512);
            block == *size
        });
        match class {
            Some(class) => Ok(SIZES[class]),
            None => Err(format!("a mini-page of {} bytes", mini.bytes)),
        }
    }

    /// The records of a mini-page as the engine reports them.
    pub(super) fn told(&self, mini: Option<&MiniImage>) -> Result<Vec<Row>, String> {
        let records = mini.into_iter().flat_map(|mini| &mini.records);
        let row = |record: &treering_engine::mini::events::MiniRecord| {
            let kind = match record.kind {
                Kind::Insert => records::Kind::Insert,
                Kind::Cache => records::Kind::Cache,
                Kind::Tombstone => records::Kind::Tombstone,
                Kind::Phantom => records::Kind::Phantom,
            };
            let (key, value) = (self.key(&record.key)?, Scale::content(&record.value)?);
            Ok((key, kind, value, record.used))
        };
        records.map(row).collect()
    }

    /// A leaf as the engine reports it.
    pub(super) fn told_leaf(&self, leaf: &LeafImage) -> Result<Leaf, String> {
        let row = |(key, value): &(Vec<u8>, Vec<u8>)| Ok((self.key(key)?, Scale::content(value)?));
        let rows: Result<Vec<_>, String> = leaf.records.iter().map(row).collect();
        let upper = (leaf.upper.as_ref()).map_or(self.len() + 1, |fence| self.fence(fence));
        Ok((self.fence(&leaf.lower), upper, rows?))
    }
}

/// The records of the mirror's mini-page.
pub(super) fn rows(page: &Page) -> Vec<Row> {
    let records = (1..).zip(page.mini.rec).filter(|(_, r)| r.is_some());
    records
        .map(|(key, r)| (key, r.kind(), r.value(), r.hot()))
        .collect()
}

/// The mirror's leaf.
pub(super) fn leaf(page: &Page) -> Leaf {
    let records = (1..).zip(page.leaf).filter(|(_, c)| *c != ABSENT);
    (page.low, page.high, records.collect())
}
