//! Memory for pages: found by a number, never moved.
//!
//! ```text
//!   chunk 0                        chunk 1
//!   | page 0 | page 1 | ... |      | page 256 | ...          each from the beginning of a cache line on
//! ```

/// Pages of a chunk.
const CHUNK: usize = 1 << 8;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Pages of one size, numbered in the order in which they come.
#[derive(Debug)]
pub(super) struct Arena {
    page_bytes: usize,
    /// Bytes from page to page.
    stride: usize,
    /// Where each one's first page begins, for it to begin with a cache line, and its bytes.
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

    /// Bytes that pages take, with what is between them.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.chunks.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Takes over a page and says its number.
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
