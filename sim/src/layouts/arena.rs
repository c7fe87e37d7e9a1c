//! Memory for pages that are addressed by number and never move.
//!
//! ```text
//!   chunk 0                        chunk 1
//!   | page 0 | page 1 | ... |      | page 256 | ...      each page starts on a cache line
//! ```

/// Pages in a chunk.
const CHUNK: usize = 1 << 8;
/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Pages of one size, numbered in the order of allocation.
#[derive(Debug)]
pub(super) struct Arena {
    page_bytes: usize,
    /// Distance between pages in bytes.
    stride: usize,
    /// The chunks: the offset of the first page, aligned to a cache line, and the bytes.
    chunks: Vec<(usize, Box<[u8]>)>,
    pages: usize,
}

impl Arena {
    pub(super) fn new(page_bytes: usize) -> Arena {
        Arena {
            page_bytes,
            stride: page_bytes.next_multiple_of(LINE),
            chunks: Vec::new(),
            pages: 0,
        }
    }

    /// Number of pages.
    pub(super) fn len(&self) -> usize {
        self.pages
    }

    /// Bytes that pages take, including the gaps between them.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.chunks.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Copies a page into the arena and returns its number.
    pub(super) fn push(&mut self, page: &[u8]) -> u64 {
        if self.pages == self.chunks.len() * CHUNK {
            let bytes = vec![0; CHUNK * self.stride + LINE].into_boxed_slice();
            let from = bytes.as_ptr().align_offset(LINE).min(LINE);
            self.chunks.push((from, bytes));
        }
        let number = self.pages as u64;
        self.pages += 1;
        self.bytes_mut(number).copy_from_slice(page);
        number
    }

    #[inline]
    pub(super) fn bytes(&self, number: u64) -> &[u8] {
        let number = number as usize;
        let (from, bytes) = &self.chunks[number / CHUNK];
        let at = from + number % CHUNK * self.stride;
        &bytes[at..at + self.page_bytes]
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, number: u64) -> &mut [u8] {
        let number = number as usize;
        let (from, bytes) = &mut self.chunks[number / CHUNK];
        let at = *from + number % CHUNK * self.stride;
        &mut bytes[at..at + self.page_bytes]
    }
}
