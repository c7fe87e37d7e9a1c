//! Turns events into chunks and writes them.
//!
//! Two chunks are being filled: events, and pieces of contents. A chunk of contents is written
//! before the events that need it, so each prefix of the recording is a recording. Chunks end by
//! size and by the wall times of their events alone: equal events at equal times give equal bytes.
//!
//! # Costs
//!
//! Measured by `examples/recorder_speed` on two shared cores, in CPU time a write of 4 KiB:
//!
//! | contents | face's thread | all threads | MB a CPU-second | file over written bytes |
//! |---|---|---|---|---|
//! | half random, half text | 0.8–1.3 µs | 4.5–5.6 µs | 730–920 | 0.502 |
//! | random | 0.9–1.3 µs | 4.4–5.8 µs | 700–930 | 1.001 |
//! | duplicates of 1,000 blocks | 0.6–1.1 µs | 1.5–2.4 µs | 1,700–2,700 | 0.005 |
//! | not recorded | 0.08–0.10 µs | 0.2–0.3 µs | | 0.000 |
//!
//! The slower of each pair is from a sitting with eight other threads on these two cores.
//!
//! A FUSE file system of the same crate that keeps bytes in memory takes 37 µs a direct write of
//! 4 KiB, and 10.5 µs for 4 KiB in sequence. Recording takes 0.12 to 0.15 of the first and 0.43 to
//! 0.53 of the second, of which the face's own thread has a fifth. Reading takes 42 to 47 ns an
//! event, and a CPU-second for 2.7 to 4.4 GB of contents. Resident memory of the example, less its
//! own blocks and the reader's chunks, is 32 MiB at 0.5 GB of writes and 38 MiB at 4.3 GB.
//!
//! Contents are compressed by zstd at level -1, in chunks of 512 KiB. By
//! `examples/compression_levels`, over object code of this project: MB a CPU-second, and
//! compressed over uncompressed bytes:
//!
//! | | half random | random | object code |
//! |---|---|---|---|
//! | zstd -7 | 2,536 · 0.503 | 3,949 · 1.000 | 764 · 0.370 |
//! | zstd -3 | 2,163 · 0.501 | 3,548 · 1.000 | 736 · 0.267 |
//! | **zstd -1** | 2,089 · 0.501 | 3,711 · 1.000 | 683 · 0.213 |
//! | zstd 1 | 1,314 · 0.501 | 3,311 · 1.000 | 612 · 0.192 |
//! | zstd 3 | 1,101 · 0.503 | 3,257 · 1.000 | 474 · 0.187 |
//! | LZ4 | 1,907 · 0.506 | 5,256 · 1.004 | 461 · 0.301 |
//!
//! Chunks of 128 KiB and of 1 MiB compress as well, within 2 %. Larger ones cost less to seek over,
//! smaller ones less to read one piece.

use std::io::{self, Write as _};

use super::chunk::{Codec, HEAD, Head, Kind, MAX_PAYLOAD, preamble};
use super::codec::{Encoder, PIECE, PieceId};
use super::equal::{Equal, REMEMBERED, is_zeros};
use super::event::{Event, Write};
use super::header::{Header, Summary};

/// Bytes of events before compression from which a chunk is written.
const EVENTS_BYTES: usize = 128 << 10;

/// Bytes of contents before compression from which a chunk is written.
pub(super) const DATA_BYTES: usize = 512 << 10;

/// The most bytes of an event other than a write.
const MOST_EVENT: usize = 16 << 20;

const EVENTS_LEVEL: i32 = 1;
const DATA_LEVEL: i32 = -1;

/// A recording that is being written.
pub(super) struct Stream {
    out: Box<dyn io::Write + Send>,
    events_codec: zstd::bulk::Compressor<'static>,
    data_codec: zstd::bulk::Compressor<'static>,
    frame: Vec<u8>,
    events: Encoder,
    events_since: u64,
    data: Vec<u8>,
    lens: Vec<u16>,
    equal: Equal,
    pieces: Vec<PieceId>,
    counts: Summary,
}

impl Stream {
    /// Begins a recording.
    pub(super) fn create(out: Box<dyn io::Write + Send>, header: &Header) -> io::Result<Self> {
        let mut stream = Stream {
            out,
            events_codec: zstd::bulk::Compressor::new(EVENTS_LEVEL)?,
            data_codec: zstd::bulk::Compressor::new(DATA_LEVEL)?,
            frame: Vec::new(),
            events: Encoder::default(),
            events_since: 0,
            data: Vec::new(),
            lens: Vec::new(),
            equal: Equal::new(REMEMBERED),
            pieces: Vec::new(),
            counts: Summary::default(),
        };
        let first = preamble(Header::VERSION);
        stream.out.write_all(&first)?;
        stream.counts.file_bytes = first.len() as u64;
        let json = serde_json::to_vec(header)?;
        stream.chunk(Kind::Header, &json, 0, 1)?;
        Ok(stream)
    }

    /// The wall time of the oldest event that is not written yet.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.events.count() > 0).then_some(self.events_since)
    }

    fn next_piece(&self) -> PieceId {
        PieceId(self.counts.stored_pieces + 1)
    }

    /// Adds an event other than a write.
    pub(super) fn event(&mut self, wall_ns: u64, event: &Event) -> io::Result<()> {
        let next = self.next_piece().0;
        let before = self.events.bytes().len();
        self.events.event(wall_ns, event, next);
        if self.events.bytes().len() - before > MOST_EVENT {
            return Err(io::Error::other("an event of more than 16 MiB"));
        }
        self.added(wall_ns)
    }

    /// Adds a write, with its bytes if they are to be recorded.
    pub(super) fn write(
        &mut self,
        wall_ns: u64,
        write: &Write,
        bytes: Option<&[u8]>,
    ) -> io::Result<()> {
        let next = self.next_piece().0;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        if let Some(mut rest) = bytes {
            let mut room = PIECE - (write.offset % PIECE as u64) as usize;
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(room.min(rest.len()));
                pieces.push(self.piece(piece)?);
                (rest, room) = (after, PIECE);
            }
        }
        let recorded = bytes.map(|_| &pieces[..]);
        self.events.write(wall_ns, write, recorded, next);
        self.pieces = pieces;
        self.counts.writes += 1;
        self.counts.written_bytes += u64::from(write.len);
        self.added(wall_ns)
    }

    fn added(&mut self, wall_ns: u64) -> io::Result<()> {
        self.counts.events += 1;
        if self.events.count() == 1 {
            self.events_since = wall_ns;
        }
        if self.events.bytes().len() >= EVENTS_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<PieceId> {
        self.counts.pieces += 1;
        if is_zeros(bytes) {
            self.counts.zero_pieces += 1;
            return Ok(PieceId::ZEROS);
        }
        let new = self.next_piece();
        if let Some(known) = self.equal.find_or_insert(bytes, new) {
            self.counts.equal_pieces += 1;
            return Ok(known);
        }
        self.counts.stored_pieces += 1;
        self.counts.stored_bytes += bytes.len() as u64;
        self.data.extend_from_slice(bytes);
        self.lens.push(bytes.len() as u16);
        if self.data.len() + 2 * self.lens.len() >= DATA_BYTES {
            self.flush_data()?;
        }
        Ok(new)
    }

    fn flush_data(&mut self) -> io::Result<()> {
        if self.lens.is_empty() {
            return Ok(());
        }
        let count = self.lens.len() as u64;
        let first = self.counts.stored_pieces + 1 - count;
        let mut data = std::mem::take(&mut self.data);
        data.extend(self.lens.iter().flat_map(|len| len.to_le_bytes()));
        self.chunk(Kind::Data, &data, first, count as u32)?;
        data.clear();
        self.data = data;
        self.lens.clear();
        Ok(())
    }

    /// Writes what has been added.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.flush_data()?;
        if self.events.count() == 0 {
            return Ok(());
        }
        let count = self.events.count();
        let first = self.counts.events - u64::from(count);
        let mut events = std::mem::take(&mut self.events);
        self.chunk(Kind::Events, events.bytes(), first, count)?;
        events.clear();
        self.events = events;
        Ok(())
    }

    /// Writes the rest and the last chunk.
    pub(super) fn finish(mut self) -> io::Result<Summary> {
        self.flush()?;
        let counts = self.counts;
        self.chunk(Kind::End, &serde_json::to_vec(&counts)?, counts.events, 0)?;
        self.out.flush()?;
        Ok(counts)
    }

    /// Writes a chunk with one system call.
    fn chunk(&mut self, kind: Kind, raw: &[u8], first: u64, count: u32) -> io::Result<()> {
        let too_large = |_| io::Error::other("a chunk of more than 64 MiB");
        let raw_len = u32::try_from(raw.len()).map_err(too_large)?;
        if raw_len > MAX_PAYLOAD {
            return Err(io::Error::other("a chunk of more than 64 MiB"));
        }
        let frame = &mut self.frame;
        frame.clear();
        frame.resize(HEAD + raw.len(), 0);
        let compressor = match kind {
            Kind::Data => Some(&mut self.data_codec),
            Kind::Events => Some(&mut self.events_codec),
            Kind::Header | Kind::End => None,
        };
        // An error means that the compressed bytes do not fit into the raw ones.
        let compressed = compressor
            .and_then(|codec| codec.compress_to_buffer(raw, &mut frame[HEAD..]).ok())
            .filter(|len| *len < raw.len());
        let (codec, stored_len) = match compressed {
            Some(len) => (Codec::Zstd, len),
            None => {
                frame[HEAD..].copy_from_slice(raw);
                (Codec::Raw, raw.len())
            }
        };
        frame.truncate(HEAD + stored_len);
        let head = Head {
            kind,
            codec,
            raw_len,
            stored_len: stored_len as u32,
            first,
            count,
            payload_crc: crc32fast::hash(&frame[HEAD..]),
        };
        frame[..HEAD].copy_from_slice(&head.to_bytes());
        self.out.write_all(frame)?;
        self.counts.file_bytes += frame.len() as u64;
        Ok(())
    }
}
