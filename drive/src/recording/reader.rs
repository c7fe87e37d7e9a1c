//! Reads the events of a recording.
//!
//! Chunks of contents are skipped by their headers: reading events costs neither their bytes nor
//! their decompression. Only the event chunk that is being read is in memory.

use std::path::Path;

use super::chunk::{Head, Kind};
use super::codec::{Decoder, Recorded};
use super::header::{Header, Summary};
use super::input::{Input, Next};
use super::pieces::Pieces;
use crate::error::DriveError;

/// Where a recording ends that has no last chunk, because its writer was killed or could not go
/// on. All events before are complete and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Bytes of the recording that are used.
    pub offset: u64,
    /// Bytes behind them: a chunk that was not written to its end.
    pub ignored: u64,
    /// Events before.
    pub events: u64,
}

/// Reads a recording from its beginning to its end.
///
/// ```no_run
/// use treering_drive::recording::{Event, Reader, Recorded};
///
/// let mut reader = Reader::open("run.log")?;
/// let (mut recorded, mut bytes) = (Recorded::default(), 0);
/// while reader.next(&mut recorded)? {
///     if let Event::Write(write) = &recorded.event {
///         bytes += u64::from(write.len);
///     }
/// }
/// println!("{bytes} bytes");
/// # Ok::<(), treering_drive::DriveError>(())
/// ```
pub struct Reader {
    input: Input,
    header: Header,
    first_chunk: u64,
    next_chunk: u64,
    chunk: u64,
    chunk_left: u32,
    payload: Vec<u8>,
    stored: Vec<u8>,
    decoder: Decoder,
    seq: u64,
    next_piece: u64,
    counts: Option<Summary>,
    truncated: Option<Truncated>,
}

impl Reader {
    /// Opens a recording. It may still be being written: then it ends where it ended now.
    ///
    /// # Errors
    /// [`DriveError::System`] if the file cannot be read, [`DriveError::Bad`] if it is no
    /// recording, or one of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, DriveError> {
        Reader::new(Input::open(path.as_ref())?)
    }

    /// Reads a recording in memory.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Reader, DriveError> {
        Reader::new(Input::memory(bytes))
    }

    fn new(input: Input) -> Result<Reader, DriveError> {
        let (header, first_chunk) = input.header()?;
        Ok(Reader {
            input,
            header,
            first_chunk,
            next_chunk: first_chunk,
            chunk: first_chunk,
            chunk_left: 0,
            payload: Vec::new(),
            stored: Vec::new(),
            decoder: Decoder::default(),
            seq: 0,
            next_piece: 1,
            counts: None,
            truncated: None,
        })
    }

    /// What the recording says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the recording was cut off; `None` if it is complete, or its end is not reached yet.
    #[must_use]
    pub fn truncated(&self) -> Option<Truncated> {
        self.truncated
    }

    /// What the recording holds, when its end is reached and it is complete.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        self.counts
    }

    /// Bytes of the recording before the next chunk, and in all: how far the reader is.
    #[must_use]
    pub fn position(&self) -> (u64, u64) {
        (self.next_chunk, self.input.len())
    }

    /// Begins again with the first event.
    pub fn rewind(&mut self) {
        self.next_chunk = self.first_chunk;
        (self.chunk_left, self.seq, self.next_piece) = (0, 0, 1);
        (self.counts, self.truncated) = (None, None);
    }

    /// Opens the contents of the recording, for any thread and in any order.
    ///
    /// # Errors
    /// As [`Reader::next`]: the headers of all chunks are read.
    pub fn pieces(&self) -> Result<Pieces, DriveError> {
        Pieces::open(self.input.clone(), self.first_chunk)
    }

    /// Reads the next event. Returns `false` at the end of the recording.
    ///
    /// # Errors
    /// [`DriveError::Bad`] where the recording is damaged, [`DriveError::System`] if it cannot be
    /// read.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, into: &mut Recorded) -> Result<bool, DriveError> {
        if self.chunk_left == 0 && !self.next_events(None)? {
            return Ok(false);
        }
        if let Err(malformed) = self.decoder.next(&self.payload, into) {
            return Err(self.malformed(malformed.0));
        }
        into.seq = self.seq;
        self.seq += 1;
        self.chunk_left -= 1;
        if self.chunk_left == 0 && self.decoder.place() != self.payload.len() {
            return Err(self.malformed("the end of the chunk after its last event"));
        }
        Ok(true)
    }

    /// Goes to the event with the number `seq`, forward or back, so that [`Reader::next`] reads
    /// it. Returns `false` if the recording ends before. Chunks between are not read.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn seek(&mut self, seq: u64) -> Result<bool, DriveError> {
        if seq < self.seq {
            self.rewind();
        }
        if seq >= self.seq + u64::from(self.chunk_left) && !self.next_events(Some(seq))? {
            return Ok(false);
        }
        let mut skipped = Recorded::default();
        while self.seq < seq {
            if !self.next(&mut skipped)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn malformed(&self, expected: &str) -> DriveError {
        let place = format!(
            "event {}, byte {} of the chunk at offset {}",
            self.seq,
            self.decoder.place(),
            self.chunk
        );
        self.input.bad(place, expected, "other bytes")
    }

    /// Reads the next chunk of events, or that of the event `wanted`. Returns `false` at the end.
    fn next_events(&mut self, wanted: Option<u64>) -> Result<bool, DriveError> {
        if wanted.is_some() {
            self.seq += u64::from(self.chunk_left);
            self.chunk_left = 0;
        }
        if self.counts.is_some() || self.truncated.is_some() {
            return Ok(false);
        }
        loop {
            let offset = self.next_chunk;
            let Next::Chunk(head) = self.input.next(offset)? else {
                self.truncated = Some(Truncated {
                    offset,
                    ignored: self.input.len().saturating_sub(offset),
                    events: self.seq,
                });
                return Ok(false);
            };
            match head.kind {
                Kind::Header => return Err(self.input.misplaced(offset, "another chunk", &head)),
                Kind::Data => {
                    self.continues(offset, &head, self.next_piece)?;
                    self.next_piece += u64::from(head.count);
                }
                Kind::Events => {
                    self.continues(offset, &head, self.seq)?;
                    self.next_chunk = offset + Input::size(&head);
                    if wanted.is_some_and(|seq| seq >= head.first + u64::from(head.count)) {
                        self.seq += u64::from(head.count);
                        continue;
                    }
                    self.begin(offset, &head)?;
                    return Ok(true);
                }
                Kind::End => {
                    self.end(offset, &head)?;
                    return Ok(false);
                }
            }
            self.next_chunk = offset + Input::size(&head);
        }
    }

    /// Checks that no chunk is missing before this one.
    fn continues(&self, offset: u64, head: &Head, next: u64) -> Result<(), DriveError> {
        let what = if head.kind == Kind::Data {
            "piece"
        } else {
            "event"
        };
        let place = || format!("offset {offset}");
        if head.first != next {
            let (expected, found) = (format!("{what} {next}"), format!("{what} {}", head.first));
            return Err(self.input.bad(place(), expected, found));
        }
        if head.count == 0 || head.count > head.raw_len {
            let expected = format!("1 to {} {what}s", head.raw_len);
            return Err(self.input.bad(place(), expected, head.count.to_string()));
        }
        match head.first.checked_add(u64::from(head.count)) {
            Some(_) => Ok(()),
            None => Err(self
                .input
                .bad(place(), "a number of 64 bits", "a larger one")),
        }
    }

    fn begin(&mut self, offset: u64, head: &Head) -> Result<(), DriveError> {
        self.input
            .payload(offset, head, &mut self.stored, &mut self.payload)?;
        (self.chunk, self.chunk_left) = (offset, head.count);
        match Decoder::begin(&self.payload) {
            Ok(decoder) => self.decoder = decoder,
            Err(malformed) => return Err(self.malformed(malformed.0)),
        }
        if self.decoder.first_piece() > self.next_piece {
            return Err(self.malformed("pieces whose chunks come before"));
        }
        Ok(())
    }

    fn end(&mut self, offset: u64, head: &Head) -> Result<(), DriveError> {
        let mut json = Vec::new();
        self.input
            .payload(offset, head, &mut self.stored, &mut json)?;
        let place = || format!("offset {offset}");
        let counts: Summary = serde_json::from_slice(&json).map_err(|error| {
            self.input.bad(
                place(),
                "the counts of the recording as JSON",
                error.to_string(),
            )
        })?;
        let text = |events: u64, pieces: u64| format!("{events} events and {pieces} pieces");
        let found = (self.seq, self.next_piece - 1);
        if (counts.events, counts.stored_pieces) != found {
            let expected = text(counts.events, counts.stored_pieces);
            return Err(self.input.bad(place(), expected, text(found.0, found.1)));
        }
        let behind = offset + Input::size(head);
        if self.input.len() != behind {
            let found = format!("{} bytes more", self.input.len() - behind);
            return Err(self
                .input
                .bad(format!("offset {behind}"), "the end of the file", found));
        }
        self.counts = Some(counts);
        Ok(())
    }

    /// Reads all events that are left, for small recordings.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn read_all(&mut self) -> Result<Vec<Recorded>, DriveError> {
        let (mut all, mut recorded) = (Vec::new(), Recorded::default());
        while self.next(&mut recorded)? {
            all.push(recorded.clone());
        }
        Ok(all)
    }

    /// Where the first chunk behind the header begins.
    #[cfg(test)]
    pub(super) fn first_chunk_at(&self) -> u64 {
        self.first_chunk
    }

    /// Where all chunks behind the header begin.
    #[cfg(test)]
    pub(super) fn chunk_places(&self) -> Result<Vec<usize>, DriveError> {
        let (mut places, mut offset) = (Vec::new(), self.first_chunk);
        while let Next::Chunk(head) = self.input.next(offset)? {
            places.push(offset as usize);
            offset += Input::size(&head);
        }
        Ok(places)
    }
}
