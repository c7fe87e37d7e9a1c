//! The bytes of recorded writes, in any order.

use std::collections::VecDeque;

use super::chunk::{Head, Kind};
use super::codec::{PIECE, PieceId, Recorded, pieces_of};
use super::event::Event;
use super::input::{Input, Next};
use crate::error::DriveError;

/// The number of chunks that are kept decompressed.
const KEPT: usize = 32;

struct Chunk {
    first: u64,
    offset: u64,
    head: Head,
}

struct Open {
    chunk: usize,
    raw: Vec<u8>,
    /// Where each piece begins, and the end of the last.
    begins: Vec<u32>,
}

/// Reads pieces of contents by their ids. A few chunks are kept decompressed, 512 KiB each, so
/// that pieces near each other cost one decompression.
pub struct Pieces {
    input: Input,
    chunks: Vec<Chunk>,
    count: u64,
    /// The last used first.
    open: VecDeque<Open>,
    stored: Vec<u8>,
}

impl Pieces {
    /// Reads the headers of all chunks.
    pub(super) fn open(input: Input, first_chunk: u64) -> Result<Pieces, DriveError> {
        let (mut chunks, mut count, mut offset) = (Vec::new(), 0, first_chunk);
        while let Next::Chunk(head) = input.next(offset)? {
            if head.kind == Kind::Data {
                if head.first != count + 1 || head.count == 0 {
                    let found = format!("{} from {}", head.count, head.first);
                    let expected = format!("pieces from {}", count + 1);
                    return Err(input.bad(format!("offset {offset}"), expected, found));
                }
                count += u64::from(head.count);
                chunks.push(Chunk {
                    first: head.first,
                    offset,
                    head,
                });
            }
            if head.kind == Kind::End {
                break;
            }
            offset += Input::size(&head);
        }
        Ok(Pieces {
            input,
            chunks,
            count,
            open: VecDeque::new(),
            stored: Vec::new(),
        })
    }

    /// The number of different pieces, without that of zeros.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Opens the same contents again, for another thread.
    #[must_use]
    pub fn another(&self) -> Pieces {
        Pieces {
            input: self.input.clone(),
            chunks: self.chunks.iter().map(|c| Chunk { ..*c }).collect(),
            count: self.count,
            open: VecDeque::new(),
            stored: Vec::new(),
        }
    }

    /// Returns a piece's bytes. [`PieceId::ZEROS`] gives 4096 zeros, of which a write has as many
    /// as it needs.
    ///
    /// # Errors
    /// [`DriveError::Bad`] if there is no such piece, or its chunk is damaged;
    /// [`DriveError::System`] if it cannot be read.
    pub fn bytes(&mut self, id: PieceId) -> Result<&[u8], DriveError> {
        static ZEROS: [u8; PIECE] = [0; PIECE];
        if id == PieceId::ZEROS {
            return Ok(&ZEROS);
        }
        if id.0 > self.count {
            let expected = format!("a piece from 0 to {}", self.count);
            return Err(self.input.bad("its contents", expected, id.0.to_string()));
        }
        let number = self.chunks.partition_point(|c| c.first <= id.0) - 1;
        self.decompress(number)?;
        let open = &self.open[0];
        let at = (id.0 - self.chunks[number].first) as usize;
        Ok(&open.raw[open.begins[at] as usize..open.begins[at + 1] as usize])
    }

    /// Appends the bytes of a write to `into`. Returns `false` if they are not recorded.
    ///
    /// # Errors
    /// As [`Pieces::bytes`]; also if a piece has another length than its part of the write.
    pub fn read(&mut self, recorded: &Recorded, into: &mut Vec<u8>) -> Result<bool, DriveError> {
        let (Event::Write(write), Some(pieces)) = (&recorded.event, recorded.contents()) else {
            return Ok(false);
        };
        debug_assert_eq!(pieces.len(), pieces_of(write.offset, write.len));
        let mut room = PIECE - (write.offset % PIECE as u64) as usize;
        let mut left = write.len as usize;
        for id in pieces {
            let len = room.min(left);
            let bytes = self.bytes(*id)?;
            let fits = bytes.len() == len || *id == PieceId::ZEROS;
            if !fits {
                let (place, found) = (format!("piece {}", id.0), format!("{}", bytes.len()));
                return Err(self.input.bad(place, format!("{len} bytes"), found));
            }
            into.extend_from_slice(&bytes[..len]);
            (left, room) = (left - len, PIECE);
        }
        Ok(true)
    }

    /// Brings a chunk to the front of those that are decompressed.
    fn decompress(&mut self, number: usize) -> Result<(), DriveError> {
        match self.open.iter().position(|open| open.chunk == number) {
            Some(0) => return Ok(()),
            Some(at) => {
                if let Some(open) = self.open.remove(at) {
                    self.open.push_front(open);
                }
                return Ok(());
            }
            None => {}
        }
        let mut open = match self.open.len() {
            KEPT.. => self.open.pop_back(),
            _ => None,
        }
        .unwrap_or(Open {
            chunk: number,
            raw: Vec::new(),
            begins: Vec::new(),
        });
        let chunk = &self.chunks[number];
        let (offset, head) = (chunk.offset, &chunk.head);
        self.input
            .payload(offset, head, &mut self.stored, &mut open.raw)?;
        open.chunk = number;
        open.begins.clear();
        if !find_pieces(&open.raw, head.count, &mut open.begins) {
            let expected = format!("{} pieces of 1 to 4096 bytes", head.count);
            let place = format!("offset {offset}");
            return Err(self.input.bad(place, expected, "other lengths"));
        }
        self.open.push_front(open);
        Ok(())
    }
}

/// Finds where pieces begin: a chunk is their bytes, then their lengths, two bytes each.
fn find_pieces(raw: &[u8], count: u32, begins: &mut Vec<u32>) -> bool {
    let Some(bytes) = raw.len().checked_sub(2 * count as usize) else {
        return false;
    };
    let mut at = 0;
    begins.push(0);
    for len in raw[bytes..].chunks_exact(2) {
        let len = u16::from_le_bytes([len[0], len[1]]);
        if len == 0 || usize::from(len) > PIECE {
            return false;
        }
        at += u32::from(len);
        begins.push(at);
    }
    at as usize == bytes
}
