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
//! | half random, half text | 0.5 µs | 3.5 µs | 1,160 | 0.502 |
//! | random | 0.5 µs | 2.6 µs | 1,580 | 1.001 |
//! | duplicates of 1,000 blocks | 0.6–0.7 µs | 1.5–1.7 µs | 2,460–2,660 | 0.005 |
//! | not recorded | 0.08 µs | 0.2 µs | | 0.000 |
//!
//! Writes of 1 MiB of random bytes cost less: 1.5 µs a 4 KiB in the recorder's thread.
//!
//! Reading takes 34 ns an event, and a CPU-second for 4.9 GB of contents. `docs/RECORDING.md` has
//! what recording costs a program.
//!
//! # Compression
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
//!
//! Bytes that are nearly random, as fio's buffers are, take zstd five to ten times as long as
//! random ones, and it saves few of them. So a sample decides whether a chunk is compressed. Other
//! contents are checksummed and written from where they lie in the queue.

use std::io::{self, IoSlice};
use std::ops::Range;

use super::chunk::{Codec, HEAD, Head, Kind, MAX_PAYLOAD, preamble};
use super::codec::{Encoder, PIECE, PieceId};
use super::equal::{Equal, Hash, REMEMBERED, hash_unless_zeros};
use super::event::{Event, Write};
use super::filling::Filling;
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
///
/// `bytes` of its methods are those of the queue at hand, of which contents that are not written
/// yet may be a part: [`Stream::carry`] comes before the next queue.
pub(super) struct Stream {
    chunks: Chunks,
    events_codec: zstd::bulk::Compressor<'static>,
    data_codec: zstd::bulk::Compressor<'static>,
    compressed: Vec<u8>,
    gathered: Vec<u8>,
    events: Encoder,
    events_since: u64,
    data: Filling,
    equal: Equal,
    pieces: Vec<PieceId>,
    counts: Summary,
}

impl Stream {
    /// Begins a recording.
    pub(super) fn create(out: Box<dyn io::Write + Send>, header: &Header) -> io::Result<Self> {
        let mut stream = Stream {
            chunks: Chunks { out, written: 0 },
            events_codec: zstd::bulk::Compressor::new(EVENTS_LEVEL)?,
            data_codec: zstd::bulk::Compressor::new(DATA_LEVEL)?,
            compressed: Vec::new(),
            gathered: Vec::new(),
            events: Encoder::default(),
            events_since: 0,
            data: Filling::default(),
            equal: Equal::new(REMEMBERED),
            pieces: Vec::new(),
            counts: Summary::default(),
        };
        let first = preamble(Header::VERSION);
        stream.chunks.write_all(&mut [IoSlice::new(&first)])?;
        let json = serde_json::to_vec(header)?;
        stream.chunks.add(Kind::Header, (0, 1), None, [&json[..]])?;
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
    pub(super) fn event(&mut self, wall_ns: u64, event: &Event, bytes: &[u8]) -> io::Result<()> {
        let next = self.next_piece().0;
        let before = self.events.bytes().len();
        self.events.event(wall_ns, event, next);
        if self.events.bytes().len() - before > MOST_EVENT {
            return Err(io::Error::other("an event of more than 16 MiB"));
        }
        self.added(wall_ns, bytes)
    }

    /// Adds a write, and says where its bytes lie if they are to be recorded.
    pub(super) fn write(
        &mut self,
        wall_ns: u64,
        write: &Write,
        place: Option<Range<usize>>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let next = self.next_piece().0;
        self.pieces.clear();
        let recorded = place.is_some();
        if let Some(place) = place {
            let room = PIECE - (write.offset % PIECE as u64) as usize;
            self.add_pieces(place, room, bytes)?;
        }
        let ids = recorded.then_some(&self.pieces[..]);
        self.events.write(wall_ns, write, ids, next);
        self.counts.writes += 1;
        self.counts.written_bytes += u64::from(write.len);
        self.added(wall_ns, bytes)
    }

    fn added(&mut self, wall_ns: u64, bytes: &[u8]) -> io::Result<()> {
        self.counts.events += 1;
        if self.events.count() == 1 {
            self.events_since = wall_ns;
        }
        if self.events.bytes().len() >= EVENTS_BYTES {
            self.flush(bytes)?;
        }
        Ok(())
    }

    /// Adds the pieces of a write, the first of which has at most `room` bytes. They are looked up
    /// some at a time, so that the table's cache misses overlap.
    fn add_pieces(
        &mut self,
        mut rest: Range<usize>,
        mut room: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        const AT_ONCE: usize = 32;
        let mut hashes = [None; AT_ONCE];
        while !rest.is_empty() {
            let (mut end, mut count) = (rest.start, 0);
            let first = room;
            while end < rest.end && count < AT_ONCE {
                let begin = end;
                end = rest.end.min(begin + room);
                room = PIECE;
                hashes[count] = hash_unless_zeros(&bytes[begin..end]);
                count += 1;
            }
            self.equal.fetch(&hashes[..count]);
            let mut begin = rest.start;
            for (n, hash) in hashes[..count].iter().enumerate() {
                let len = if n == 0 { first } else { PIECE };
                let place = begin..rest.end.min(begin + len);
                begin = place.end;
                let id = self.piece(place, *hash, bytes)?;
                self.pieces.push(id);
            }
            rest.start = end;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        place: Range<usize>,
        hash: Option<Hash>,
        bytes: &[u8],
    ) -> io::Result<PieceId> {
        self.counts.pieces += 1;
        let Some(hash) = hash else {
            self.counts.zero_pieces += 1;
            return Ok(PieceId::ZEROS);
        };
        let new = self.next_piece();
        if let Some(known) = self.equal.find_or_insert(hash, new) {
            self.counts.equal_pieces += 1;
            return Ok(known);
        }
        self.counts.stored_pieces += 1;
        self.counts.stored_bytes += place.len() as u64;
        self.data.push(place);
        if self.data.payload_len() >= DATA_BYTES {
            self.flush_data(bytes)?;
        }
        Ok(new)
    }

    /// Keeps what will be needed of the queue at hand.
    pub(super) fn carry(&mut self, bytes: &[u8]) {
        self.data.carry(bytes);
    }

    fn flush_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = self.data.count();
        if count == 0 {
            return Ok(());
        }
        let numbers = (self.counts.stored_pieces + 1 - count as u64, count as u32);
        if self.is_compressible(bytes) {
            self.gathered.clear();
            for part in self.data.payload(bytes) {
                self.gathered.extend_from_slice(part);
            }
            let raw = &self.gathered[..];
            let compressed = compress(&mut self.data_codec, raw, &mut self.compressed);
            self.chunks.add(Kind::Data, numbers, compressed, [raw])?;
        } else {
            let payload = self.data.payload(bytes);
            self.chunks.add(Kind::Data, numbers, None, payload)?;
        }
        self.data.clear();
        Ok(())
    }

    /// Whether a sample of the contents promises that compression saves an eighth. Less is not
    /// worth its time: of bytes that are nearly random, zstd compresses only 400 MB a second.
    fn is_compressible(&mut self, bytes: &[u8]) -> bool {
        self.data.sample(bytes, &mut self.gathered);
        let most = self.gathered.len() / 8 * 7;
        compress(&mut self.data_codec, &self.gathered, &mut self.compressed)
            .is_some_and(|compressed| compressed.len() <= most)
    }

    /// Writes what has been added.
    pub(super) fn flush(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush_data(bytes)?;
        if self.events.count() == 0 {
            return Ok(());
        }
        let count = self.events.count();
        let first = self.counts.events - u64::from(count);
        let raw = self.events.bytes();
        let compressed = compress(&mut self.events_codec, raw, &mut self.compressed);
        self.chunks
            .add(Kind::Events, (first, count), compressed, [raw])?;
        self.events.clear();
        Ok(())
    }

    /// Writes the rest and the last chunk. All is carried.
    pub(super) fn finish(mut self) -> io::Result<Summary> {
        self.flush(&[])?;
        self.counts.file_bytes = self.chunks.written;
        let json = serde_json::to_vec(&self.counts)?;
        self.chunks
            .add(Kind::End, (self.counts.events, 0), None, [&json[..]])?;
        self.chunks.out.flush()?;
        Ok(self.counts)
    }
}

/// Compresses into `into`; `None` if that saves nothing.
fn compress<'a>(
    codec: &mut zstd::bulk::Compressor<'_>,
    raw: &[u8],
    into: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    into.clear();
    into.reserve(raw.len());
    // An error means that the compressed bytes do not fit into the room.
    let len = codec.compress_to_buffer(raw, into).ok()?;
    (len < raw.len()).then_some(&into[..])
}

/// Writes chunks.
struct Chunks {
    out: Box<dyn io::Write + Send>,
    /// Bytes of the recording so far.
    written: u64,
}

impl Chunks {
    /// Writes a chunk with one system call, from where its bytes are. `numbers` are the first
    /// thing in it and how many; `raw` is its payload, in parts.
    fn add<'a>(
        &mut self,
        kind: Kind,
        numbers: (u64, u32),
        compressed: Option<&'a [u8]>,
        raw: impl IntoIterator<Item = &'a [u8]>,
    ) -> io::Result<()> {
        let raw: Vec<&[u8]> = raw.into_iter().collect();
        let raw_len = raw.iter().map(|part| part.len()).sum::<usize>();
        let (codec, stored) = match compressed {
            Some(compressed) => (Codec::Zstd, vec![compressed]),
            None => (Codec::Raw, raw),
        };
        let stored_len = stored.iter().map(|part| part.len()).sum::<usize>();
        if raw_len > MAX_PAYLOAD as usize {
            return Err(io::Error::other("a chunk of more than 64 MiB"));
        }
        let mut crc = crc32fast::Hasher::new();
        stored.iter().for_each(|part| crc.update(part));
        let head = Head {
            kind,
            codec,
            raw_len: raw_len as u32,
            stored_len: stored_len as u32,
            first: numbers.0,
            count: numbers.1,
            payload_crc: crc.finalize(),
        };
        let head: [u8; HEAD] = head.to_bytes();
        let slices = std::iter::once(&head[..]).chain(stored).map(IoSlice::new);
        self.write_all(&mut slices.collect::<Vec<_>>())
    }

    fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Leaves empty ones at the beginning out: writing nothing would look like a full disk.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.out.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => {
                    self.written += len as u64;
                    IoSlice::advance_slices(&mut slices, len);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::face::{Face, PageCache};
    use crate::recording::event::NodeId;

    /// A recording in memory, which takes a part of a write only, as disks may.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(100_000);
            self.0.lock().extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Records a write of these bytes, in queues of `queue` bytes. Returns the recording.
    fn record(bytes: &[u8], queue: usize) -> Vec<u8> {
        let memory = Memory::default();
        let mut header = Header::new(Face::Files, 1000, PageCache::WriteBack);
        header.began_unix_ms = 0;
        let mut stream = Stream::create(Box::new(memory.clone()), &header).expect("begins");
        for (n, queued) in bytes.chunks(queue).enumerate() {
            for (m, part) in queued.chunks(10_000).enumerate() {
                let at = m * 10_000;
                let write = Write {
                    node: NodeId(2),
                    offset: (n * queue + at) as u64,
                    len: part.len() as u32,
                    extents: Vec::new(),
                    synced: false,
                    cached: false,
                };
                let place = Some(at..at + part.len());
                stream.write(0, &write, place, queued).expect("is written");
            }
            stream.carry(queued);
        }
        let counts = stream.finish().expect("is written");
        assert!(counts.file_bytes < memory.0.lock().len() as u64);
        memory.0.lock().clone()
    }

    /// `len` bytes of which each `period` have `random` random ones and else text; with `repeats`,
    /// each random word stands there twice.
    fn bytes(len: usize, period: usize, random: usize, repeats: usize) -> Vec<u8> {
        let word = |at: usize| xxhash_rust::xxh3::xxh3_64(&(at / 8 / repeats).to_le_bytes());
        let byte = |at: usize| match at % period < random {
            true => word(at).to_le_bytes()[at % 8],
            false => b"a row of a table"[at % 16],
        };
        (0..len).map(byte).collect()
    }

    #[test]
    fn where_queues_end_changes_nothing() {
        let written = bytes(3_000_000, 4096, 4096, 1);
        let whole = record(&written, written.len());
        assert!(whole == record(&written, 700_000));
        assert!(whole == record(&written, 10_000));
        let compressible = bytes(3_000_000, 4096, 1000, 1);
        let whole = record(&compressible, compressible.len());
        assert!(whole == record(&compressible, 700_000));
    }

    #[test]
    fn contents_are_compressed_where_a_sample_promises_an_eighth() {
        let ratio = |written: &[u8]| record(written, 1 << 20).len() as f64 / written.len() as f64;
        let random = ratio(&bytes(2 << 20, 4096, 4096, 1));
        assert!((1.0..1.01).contains(&random), "{random}");
        for (period, part, repeats) in [(4096, 2048, 1), (512, 256, 1), (4096, 4096, 2)] {
            let found = ratio(&bytes(2 << 20, period, part, repeats));
            assert!(found < 0.8, "{part} of {period}, {repeats} times: {found}");
        }
        // One block of random bytes, of which each write changes some.
        let mut block = bytes(1 << 20, 1 << 20, 4096, 1)[..4096].repeat(256);
        for (n, written) in block.chunks_mut(4096).enumerate() {
            written[n * 8..n * 8 + 16].fill(n as u8);
        }
        let rewritten = ratio(&block);
        assert!(rewritten < 0.2, "{rewritten}");
        let nearly = ratio(&bytes(2 << 20, 64, 62, 1));
        assert!((1.0..1.01).contains(&nearly), "{nearly}");
    }
}
