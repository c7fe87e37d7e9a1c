//! A segment of rows for keys that came one after another, and the keys themselves.
//!
//! If all keys have the same length, they are stored in the rows; otherwise in an arena, and each
//! row says where its key starts. The beginning of a row is defined in [`super::keys`].

use std::io;

use crate::codec::{Decoder, Encoder, malformed};

/// Number of keys in a segment.
pub(super) const SEGMENT_KEYS: usize = 1 << 16;

/// Bytes of a row before its key, and of an offset into the arena.
pub(super) const HEAD: usize = 9;
const START: usize = 4;

/// The first bytes of a row.
pub(super) type Head = [u8; HEAD];

/// Up to [`SEGMENT_KEYS`] keys that came one after another.
#[derive(Debug)]
pub(super) struct Segment {
    rows: Vec<u8>,
    /// Bytes of a row.
    stride: usize,
    /// Whether keys are in the arena.
    apart: bool,
    arena: Vec<u8>,
    /// Lower bits of the number of scans, by key; 0 for keys beyond its end.
    scans: Vec<u8>,
}

impl Segment {
    /// An empty segment, for keys of one length until another length comes.
    pub(super) fn new(key_len: usize) -> Segment {
        Segment {
            rows: Vec::new(),
            stride: HEAD + key_len,
            apart: false,
            arena: Vec::new(),
            scans: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() / self.stride
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() + self.arena.capacity() + self.scans.capacity()
    }

    #[inline]
    pub(super) fn head(&self, at: usize) -> &Head {
        let head = self.rows[at * self.stride..].first_chunk();
        head.expect("rows are longer than heads")
    }

    /// The first and the last byte of a row.
    #[inline]
    pub(super) fn ends(&self, at: usize) -> [u8; 2] {
        let first = at * self.stride;
        [self.rows[first], self.rows[first + self.stride - 1]]
    }

    #[inline]
    pub(super) fn head_mut(&mut self, at: usize) -> &mut Head {
        let head = self.rows[at * self.stride..].first_chunk_mut();
        head.expect("rows are longer than heads")
    }

    #[inline]
    pub(super) fn key(&self, at: usize) -> &[u8] {
        match self.apart {
            false => &self.rows[at * self.stride..][HEAD..self.stride],
            true => &self.arena[self.start(at)..self.end(at)],
        }
    }

    #[inline]
    pub(super) fn key_len(&self, at: usize) -> usize {
        match self.apart {
            false => self.stride - HEAD,
            true => self.end(at) - self.start(at),
        }
    }

    fn start(&self, at: usize) -> usize {
        let start = self.rows[at * self.stride + HEAD..].first_chunk();
        start.map_or(0, |start| u32::from_le_bytes(*start) as usize)
    }

    fn end(&self, at: usize) -> usize {
        match (at + 1) * self.stride < self.rows.len() {
            true => self.start(at + 1),
            false => self.arena.len(),
        }
    }

    /// Adds a row; `spare` is the number of further rows to reserve memory for.
    pub(super) fn push(&mut self, head: Head, key: &[u8], spare: usize) {
        if !self.apart && self.stride != HEAD + key.len() {
            self.set_apart();
        }
        let spare = spare.min(SEGMENT_KEYS - self.len());
        if self.rows.capacity() - self.rows.len() < self.stride {
            self.rows.reserve_exact(self.stride * spare);
        }
        self.rows.extend_from_slice(&head);
        if !self.apart {
            self.rows.extend_from_slice(key);
            return;
        }
        // 2^16 keys of 2^16 - 1 bytes: fits.
        let start = self.arena.len() as u32;
        self.rows.extend_from_slice(&start.to_le_bytes());
        if self.arena.capacity() - self.arena.len() < key.len() {
            self.arena
                .reserve_exact(key.len().max(self.arena.len() / 16).max(1024));
        }
        self.arena.extend_from_slice(key);
    }

    /// Moves the keys to the arena.
    fn set_apart(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let old = self.stride;
        self.stride = HEAD + START;
        self.apart = true;
        for row in rows.chunks_exact(old) {
            let (head, key) = row.split_at(HEAD);
            let start = self.arena.len() as u32;
            self.rows.extend_from_slice(head);
            self.rows.extend_from_slice(&start.to_le_bytes());
            self.arena.extend_from_slice(key);
        }
        self.rows.shrink_to_fit();
        self.arena.shrink_to_fit();
    }

    /// Ends the segment: no more keys will be added.
    pub(super) fn close(&mut self) {
        self.arena.shrink_to_fit();
    }

    pub(super) fn scans(&self, at: usize) -> u32 {
        self.scans.get(at).copied().map_or(0, u32::from)
    }

    /// Counts a scan of a key; returns whether the counter wrapped to 0.
    pub(super) fn add_scan(&mut self, at: usize) -> bool {
        if self.scans.len() <= at {
            let room = self.rows.capacity() / self.stride;
            self.scans.reserve_exact(room - self.scans.len());
            self.scans.resize(room, 0);
        }
        let (count, carried) = self.scans[at].overflowing_add(1);
        self.scans[at] = count;
        carried
    }

    pub(super) fn save(&self, out: &mut Encoder<'_>) -> io::Result<()> {
        out.number(self.stride as u64)?;
        out.number(self.apart.into())?;
        out.bytes(&self.rows)?;
        out.bytes(&self.arena)?;
        out.bytes(&self.scans)
    }

    pub(super) fn load(from: &mut Decoder<'_>) -> io::Result<Segment> {
        let segment = Segment {
            stride: from.small()?,
            apart: from.flag()?,
            rows: from.bytes()?,
            arena: from.bytes()?,
            scans: from.bytes()?,
        };
        let least = HEAD + if segment.apart { START } else { 0 };
        if segment.stride < least || !segment.rows.len().is_multiple_of(segment.stride) {
            return Err(malformed("rows of keys have the wrong length"));
        }
        Ok(segment)
    }

    /// Restores the number of scans of a key that has some.
    pub(super) fn set_scans(&mut self, at: usize, count: u8) {
        if let Some(scans) = self.scans.get_mut(at) {
            *scans = count;
        }
    }
}
