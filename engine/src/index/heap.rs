//! Storage for the tails of long separators: words that may be recycled, and so overwritten while
//! they are read.
//!
//! The first 8 bytes of a key are in its node. The rest is stored here, 8 bytes a word, in slots of
//! fixed size classes. A [`KeyRef`] packs length and place: `length (24 bits) | chunk (20) | word
//! in chunk (20)`. Chunks are never freed, so following a stale reference is memory-safe; the
//! reader notices it by the node's version.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release, fence};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Words in an ordinary chunk; a larger key gets a chunk of its own.
const CHUNK_WORDS: usize = if cfg!(loom) { 4 } else { 8192 };
const GROUP: usize = 1024;
const LEN_BITS: u32 = 24;

/// The length and place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRef(pub(super) u64);

impl KeyRef {
    pub(super) const EMPTY: KeyRef = KeyRef(0);

    pub(super) fn len(self) -> usize {
        (self.0 >> 40) as usize
    }
    fn chunk(self) -> usize {
        (self.0 >> 20) as usize & 0xf_ffff
    }
    fn word(self) -> usize {
        self.0 as usize & 0xf_ffff
    }
}

/// The first 8 bytes as a big-endian number, padded with zeros. Heads have the order of their keys,
/// except that different keys may have equal heads.
pub(super) fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

fn tail_words(len: usize) -> usize {
    len.saturating_sub(8).div_ceil(8)
}

/// The slot size for a tail: exact up to 8 words, then rounded up in steps of an eighth of the next
/// power of two.
fn class(words: usize) -> usize {
    if words <= 8 {
        words
    } else {
        words.next_multiple_of((words.next_power_of_two() / 8).max(1))
    }
}

#[derive(Debug, Default)]
struct Space {
    /// Free slots by size class.
    free: BTreeMap<usize, Vec<(u32, u32)>>,
    chunks: usize,
    /// The chunk being filled, and its first unused word.
    open: Option<(usize, usize)>,
    words: usize,
}

type Chunk = Box<[AtomicU64]>;
/// `GROUP` chunks, each allocated when first needed.
type Group = Box<[OnceLock<Chunk>]>;

/// Storage of key tails.
#[derive(Debug)]
pub(super) struct Heap {
    groups: Box<[OnceLock<Group>]>,
    space: Mutex<Space>,
}

impl Heap {
    pub(super) fn new() -> Self {
        Self {
            groups: (0..GROUP).map(|_| OnceLock::new()).collect(),
            space: Mutex::new(Space::default()),
        }
    }

    fn chunk(&self, chunk: usize) -> Option<&[AtomicU64]> {
        Some(
            self.groups
                .get(chunk / GROUP)?
                .get()?
                .get(chunk % GROUP)?
                .get()?,
        )
    }

    /// Stores a copy of `key`.
    pub(super) fn store(&self, key: &[u8]) -> KeyRef {
        assert!(
            key.len() < 1 << LEN_BITS,
            "a separator fits in a page, so it is far below 16 MiB"
        );
        let words = tail_words(key.len());
        if words == 0 {
            return KeyRef((key.len() as u64) << 40);
        }
        let (chunk, word) = self.allocate(class(words));
        // The words may be recycled. A reader that sees the new words must, after its own fence,
        // also see the version that the node got when it gave the slot up. The mutex orders that
        // version before this fence.
        fence(Release);
        let target = self
            .chunk(chunk as usize)
            .expect("an allocated chunk exists");
        for (slot, bytes) in target[word as usize..].iter().zip(key[8..].chunks(8)) {
            slot.store(head(bytes), Relaxed);
        }
        KeyRef((key.len() as u64) << 40 | u64::from(chunk) << 20 | u64::from(word))
    }

    fn allocate(&self, size: usize) -> (u32, u32) {
        let mut space = self.space.lock();
        if let Some(slot) = space.free.get_mut(&size).and_then(Vec::pop) {
            return slot;
        }
        if size <= CHUNK_WORDS
            && let Some((chunk, used)) = space.open
            && used + size <= CHUNK_WORDS
        {
            space.open = Some((chunk, used + size));
            return (chunk as u32, used as u32);
        }
        let chunk = space.chunks;
        assert!(chunk < GROUP * GROUP, "separators fill 64 GiB");
        let words = size.max(CHUNK_WORDS);
        let group = self.groups[chunk / GROUP]
            .get_or_init(|| (0..GROUP).map(|_| OnceLock::new()).collect());
        group[chunk % GROUP].get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        space.chunks += 1;
        space.words += words;
        if size < CHUNK_WORDS {
            space.open = Some((chunk, size));
        }
        (chunk as u32, 0)
    }

    /// Frees a slot. Only the writer whose locked node held the reference may call this.
    pub(super) fn free(&self, key: KeyRef) {
        let words = tail_words(key.len());
        if words > 0 {
            let slot = (key.chunk() as u32, key.word() as u32);
            self.space
                .lock()
                .free
                .entry(class(words))
                .or_default()
                .push(slot);
        }
    }

    /// Compares a stored key with `key`, whose head is equal. A stale reference gives an arbitrary
    /// result; the caller validates.
    pub(super) fn compare_tied(&self, stored: KeyRef, key: &[u8]) -> Ordering {
        let shorter = stored.len().min(key.len());
        if shorter > 8
            && let Some(chunk) = self.chunk(stored.chunk())
            && let Some(words) = chunk.get(stored.word()..)
        {
            let words = words.iter().take(tail_words(shorter));
            for (word, bytes) in words.zip(key[8..].chunks(8)) {
                let order = word.load(Relaxed).cmp(&head(bytes));
                if order.is_ne() {
                    return order;
                }
            }
        }
        // All shared bytes are equal, or zero padding met real zeros: the shorter key is a prefix
        // of the other.
        stored.len().cmp(&key.len())
    }

    /// Returns a copy of a stored key; arbitrary bytes if the reference is stale.
    pub(super) fn copy(&self, head: u64, stored: KeyRef) -> Vec<u8> {
        let mut key = head.to_be_bytes().to_vec();
        if stored.len() > 8
            && let Some(chunk) = self.chunk(stored.chunk())
            && let Some(words) = chunk.get(stored.word()..)
        {
            for word in words.iter().take(tail_words(stored.len())) {
                key.extend_from_slice(&word.load(Relaxed).to_be_bytes());
            }
        }
        key.truncate(stored.len());
        key
    }

    /// Bytes allocated for words.
    pub(super) fn bytes(&self) -> usize {
        self.space.lock().words * 8
    }
}
