//! Recordings are written and read again.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::face::{Face, PageCache};
use crate::recording::codec::{PIECE, Recorded};
use crate::recording::event::{Attributes, Extent, FlushKind, NodeKind};
use crate::recording::reader::Reader;

/// A recording in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header() -> Header {
    Header {
        began_unix_ms: 0,
        ..Header::new(Face::Files, 1000, PageCache::WriteBack)
    }
}

fn start(out: impl io::Write + Send + 'static, contents: Contents) -> (Recorder, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Clock::Set(Arc::clone(&time));
    let path = Path::new("test.log");
    let recorder = Recorder::start(path, Box::new(out), header(), contents, clock);
    (recorder.expect("starts"), time)
}

/// An event, its bytes if it is a write, and the time since the event before.
type Story = Vec<(Event, Vec<u8>, u64)>;

fn record(story: &Story, contents: Contents) -> Vec<u8> {
    let memory = Memory::default();
    let (recorder, time) = start(memory.clone(), contents);
    for (event, bytes, later) in story {
        time.fetch_add(*later, Ordering::Relaxed);
        match event {
            Event::Write(write) => recorder.write(write.clone(), bytes),
            other => recorder.note(other.clone()),
        }
        .expect("is taken");
    }
    let summary = recorder.finish().expect("is written");
    assert_eq!(summary.events, story.len() as u64);
    memory.0.lock().clone()
}

/// Events that were read, with the bytes of writes.
type Found = Vec<(Recorded, Vec<u8>)>;

/// Reads all events and the bytes of their writes.
fn read(bytes: Vec<u8>) -> Result<(Reader, Found), DriveError> {
    let mut reader = Reader::from_bytes(bytes)?;
    let mut pieces = reader.pieces()?;
    let mut all = Vec::new();
    for recorded in reader.read_all()? {
        let mut bytes = Vec::new();
        pieces.read(&recorded, &mut bytes)?;
        all.push((recorded, bytes));
    }
    Ok((reader, all))
}

fn write(node: u64, offset: u64, bytes: &[u8]) -> (Event, Vec<u8>, u64) {
    let write = Write {
        node: NodeId(node),
        offset,
        len: bytes.len() as u32,
        extents: vec![Extent {
            lba: offset / 4096,
            blocks: 1,
        }],
        synced: false,
        cached: true,
    };
    (Event::Write(write), bytes.to_vec(), 1000)
}

fn link(name: &str, node: u64) -> (Event, Vec<u8>, u64) {
    let event = Event::Link {
        parent: NodeId::ROOT,
        name: name.into(),
        node: NodeId(node),
    };
    (event, Vec::new(), 1000)
}

fn flush(node: u64) -> (Event, Vec<u8>, u64) {
    let event = Event::Flush {
        node: NodeId(node),
        kind: FlushKind::Data,
    };
    (event, Vec::new(), 1000)
}

/// Bytes that do not repeat.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).flat_map(|n| {
        let word = xxhash_rust::xxh3::xxh3_64_with_seed(&n.to_le_bytes(), seed);
        word.to_le_bytes()
    });
    words.take(len).collect()
}

fn small_story() -> Story {
    vec![
        link("a", 2),
        write(2, 0, b"hello"),
        write(2, 4090, &noise(1, 5000)),
        flush(2),
        write(2, 8192, &[0; 4096]),
        write(2, 0, &noise(1, 300)),
        (
            Event::Mark {
                line: b"user_bytes 7".to_vec(),
            },
            Vec::new(),
            LINGER_NS,
        ),
        write(3, 100, b"after a while"),
        flush(1),
    ]
}

fn extents() -> impl Strategy<Value = Vec<Extent>> {
    let extent = (any::<u64>(), any::<u64>()).prop_map(|(lba, blocks)| Extent { lba, blocks });
    prop::collection::vec(extent, 0..4)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..9)
}

fn node() -> impl Strategy<Value = NodeId> {
    prop_oneof![(0..9_u64).prop_map(NodeId), any::<u64>().prop_map(NodeId)]
}

fn kind() -> impl Strategy<Value = NodeKind> {
    prop::sample::select(vec![
        NodeKind::File,
        NodeKind::Directory,
        NodeKind::Symlink,
        NodeKind::Fifo,
        NodeKind::Socket,
        NodeKind::CharDevice,
        NodeKind::BlockDevice,
    ])
}

fn flush_kind() -> impl Strategy<Value = FlushKind> {
    prop::sample::select(vec![
        FlushKind::Data,
        FlushKind::File,
        FlushKind::Directory,
        FlushKind::Drive,
    ])
}

fn any_write() -> impl Strategy<Value = (Event, Vec<u8>)> {
    let offset = prop_oneof![(0..20_000_u64), any::<u64>()];
    let parts = (
        node(),
        offset,
        1..10_000_usize,
        0..4_u64,
        extents(),
        any::<(bool, bool)>(),
    );
    parts.prop_map(|(node, offset, len, seed, extents, (synced, cached))| {
        let bytes = match seed {
            0 => vec![0; len],
            seed => noise(seed, len),
        };
        let write = Write {
            node,
            offset,
            len: len as u32,
            extents,
            synced,
            cached,
        };
        (Event::Write(write), bytes)
    })
}

fn any_other() -> impl Strategy<Value = Event> {
    let make = (node(), kind(), any::<[u32; 4]>(), bytes()).prop_map(|(node, kind, n, target)| {
        let [mode, uid, gid, device] = n;
        Event::Make {
            node,
            kind,
            mode,
            uid,
            gid,
            device,
            target,
        }
    });
    let entry =
        (node(), bytes(), node(), any::<bool>()).prop_map(
            |(parent, name, node, link)| match link {
                true => Event::Link { parent, name, node },
                false => Event::Unlink { parent, name, node },
            },
        );
    let rename = (
        (node(), bytes(), node(), bytes()),
        (node(), prop::option::of(node()), any::<bool>()),
    )
        .prop_map(
            |((parent, name, to, to_name), (node, other, exchange))| Event::Rename {
                parent,
                name,
                to,
                to_name,
                node,
                other,
                exchange,
            },
        );
    let range = (node(), any::<u64>(), any::<u64>(), 0..5).prop_map(|(node, a, b, which)| {
        let (offset, len) = (a, b);
        match which {
            0 => Event::Free { node },
            1 => Event::Resize { node, size: a },
            2 => Event::Punch { node, offset, len },
            keep => Event::Allocate {
                node,
                offset,
                len,
                keep_size: keep == 3,
            },
        }
    });
    let change = any::<(Option<u32>, Option<u32>, Option<u32>, Option<i64>)>();
    let attributes = (node(), change).prop_map(|(node, (mode, uid, gid, modified_ns))| {
        let change = Attributes {
            mode,
            uid,
            gid,
            modified_ns,
        };
        Event::Attributes { node, change }
    });
    let xattr = (node(), bytes(), prop::option::of(bytes()))
        .prop_map(|(node, name, value)| Event::Xattr { node, name, value });
    let places = (node(), extents(), bytes(), any::<u64>(), ".{0,5}", 0..5).prop_map(
        |(node, extents, path, inode, name, which)| match which {
            0 => Event::Discard { node, extents },
            1 => Event::Region { name, extents },
            2 => Event::Map {
                path,
                inode,
                extents,
            },
            3 => Event::Hint { node, what: name },
            _ => Event::Mark { line: path },
        },
    );
    let flush = (node(), flush_kind()).prop_map(|(node, kind)| Event::Flush { node, kind });
    prop_oneof![make, entry, rename, range, attributes, xattr, places, flush]
}

fn any_story() -> impl Strategy<Value = Story> {
    let event = prop_oneof![
        any_write(),
        any_other().prop_map(|event| (event, Vec::new()))
    ];
    let timed = (event, prop_oneof![0..2000_u64, 0..LINGER_NS]);
    let timed = timed.prop_map(|((event, bytes), later)| (event, bytes, later));
    prop::collection::vec(timed, 0..60)
}

/// Panics unless what was read is the beginning of the story.
fn check_prefix(story: &Story, found: &[(Recorded, Vec<u8>)]) {
    let mut now = 0;
    for (n, ((event, bytes, later), (recorded, read))) in story.iter().zip(found).enumerate() {
        now += later;
        let found = (recorded.seq, recorded.wall_ns, &recorded.event, read);
        assert_eq!(found, (n as u64, now, event, bytes));
    }
    assert!(found.len() <= story.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_events_come_back(story in any_story()) {
        let (reader, found) = read(record(&story, Contents::All)).expect("is readable");
        check_prefix(&story, &found);
        prop_assert_eq!(found.len(), story.len());
        prop_assert_eq!(reader.truncated(), None);
        prop_assert_eq!(reader.summary().expect("complete").events, story.len() as u64);
    }

    #[test]
    fn flipped_bytes_never_give_other_events(
        story in any_story(),
        places in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let good = record(&story, Contents::All);
        let mut bad = good.clone();
        for (place, flip) in places {
            bad[place.index(good.len())] ^= flip;
        }
        if bad != good {
            let error = read(bad).map(|_| ()).expect_err("is noticed");
            prop_assert!(matches!(error, DriveError::Bad { .. }), "{}", error);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = match crate::recording::codec::Decoder::begin(&bytes) {
            Ok(decoder) => decoder,
            Err(_) => return Ok(()),
        };
        let mut recorded = Recorded::default();
        while decoder.next(&bytes, &mut recorded).is_ok() {}
        let _ = Reader::from_bytes(bytes).map(|_| ());
    }
}

#[test]
fn a_recording_cut_anywhere_gives_a_prefix() {
    let story = small_story();
    let whole = record(&story, Contents::All);
    let header_end = Reader::from_bytes(whole.clone())
        .expect("is readable")
        .first_chunk_at();
    let mut lengths = Vec::new();
    for len in 0..whole.len() {
        let result = read(whole[..len].to_vec());
        if (len as u64) < header_end {
            let error = result.map(|_| ()).expect_err("has no header");
            assert!(matches!(error, DriveError::Bad { .. }), "{len}: {error}");
            continue;
        }
        let (reader, found) = result.expect("a cut tail is no error");
        check_prefix(&story, &found);
        let truncated = reader.truncated().expect("is cut");
        assert_eq!(truncated.offset + truncated.ignored, len as u64);
        assert_eq!(truncated.events, found.len() as u64);
        lengths.push(found.len());
    }
    assert!(lengths.is_sorted());
    lengths.dedup();
    assert_eq!(lengths, [0, 6, 9], "two chunks of events: the times say so");
}

#[test]
fn each_flipped_bit_is_noticed() {
    let whole = record(&small_story(), Contents::All);
    for bit in 0..whole.len() * 8 {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let error = read(bad).map(|_| ()).expect_err("is noticed");
        assert!(
            matches!(error, DriveError::Bad { .. }),
            "bit {bit}: {error}"
        );
    }
}

#[test]
fn a_lost_chunk_and_bytes_behind_the_end_are_noticed() {
    let whole = record(&small_story(), Contents::All);
    let reader = Reader::from_bytes(whole.clone()).expect("is readable");
    let mut begins = reader.chunk_places().expect("is readable");
    begins.push(whole.len());
    assert!(begins.len() >= 6, "{begins:?}");
    // Without the last chunk it is a recording that was cut off.
    for pair in begins[..begins.len() - 1].windows(2) {
        let without = [&whole[..pair[0]], &whole[pair[1]..]].concat();
        read(without).map(|_| ()).expect_err("is noticed");
    }
    let error = read([&whole[..], &[0; 40]].concat())
        .map(|_| ())
        .expect_err("is noticed");
    assert!(
        error.to_string().contains("expected the end of the file"),
        "{error}"
    );
}

#[test]
fn what_is_no_recording_or_newer_is_told_in_one_sentence() {
    let text = |bytes: Vec<u8>| {
        Reader::from_bytes(bytes)
            .map(|_| ())
            .expect_err("bad")
            .to_string()
    };
    let other = text(b"PNG and many other bytes".to_vec());
    let expected = "(memory): offset 0: expected a recording of `treering drive`, \
                    found \"PNG and \"";
    assert_eq!(other, expected);
    let mut newer = record(&small_story(), Contents::All);
    newer[..16].copy_from_slice(&crate::recording::chunk::preamble(7));
    let expected = "(memory): its version: expected version 1 of the format, \
                    found version 7; another version of treering reads it";
    assert_eq!(text(newer), expected);
}

#[test]
fn equal_pieces_and_zeros_take_no_room() {
    let block = noise(3, PIECE);
    let mut story: Story = (0..300).map(|n| write(2, n * 4096, &block)).collect();
    story.extend((0..300).map(|n| write(3, n * 4096, &[0; PIECE])));
    let whole = record(&story, Contents::All);
    assert!(whole.len() < 8000, "{}", whole.len());
    let (reader, found) = read(whole).expect("is readable");
    check_prefix(&story, &found);
    let counts = reader.summary().expect("complete");
    let found = (
        counts.stored_pieces,
        counts.equal_pieces,
        counts.zero_pieces,
    );
    assert_eq!(found, (1, 299, 300));
}

#[test]
fn only_watched_files_keep_their_bytes() {
    let story = vec![
        link("MANIFEST-000001", 2),
        link("000002.sst", 3),
        write(2, 0, b"level 0"),
        write(3, 0, b"a table"),
    ];
    let (_, found) = read(record(&story, Contents::Watched)).expect("is readable");
    assert_eq!(found[2].1, b"level 0");
    assert_eq!((found[3].0.contents(), &found[3].1[..]), (None, &b""[..]));
    let (reader, found) = read(record(&story, Contents::None)).expect("is readable");
    assert!(
        found
            .iter()
            .all(|(recorded, _)| recorded.contents().is_none())
    );
    assert_eq!(reader.header().contents, Contents::None);
}

#[test]
fn equal_events_at_equal_times_give_equal_bytes() {
    let mut story = small_story();
    story.extend((0..3000).map(|n| write(2, n * 4096, &noise(n, PIECE))));
    let first = record(&story, Contents::All);
    assert!(first == record(&story, Contents::All));
}

#[test]
fn events_are_found_by_their_numbers() {
    let story: Story = (0..40_000)
        .map(|n| write(2, n * 7, &n.to_le_bytes()))
        .collect();
    let mut reader = Reader::from_bytes(record(&story, Contents::All)).expect("is readable");
    let mut recorded = Recorded::default();
    for seq in [39_999, 3, 17, 17, 20_000, 0, 39_998] {
        assert!(reader.seek(seq).expect("is readable"), "{seq}");
        assert!(reader.next(&mut recorded).expect("is readable"));
        assert_eq!(
            (recorded.seq, &recorded.event),
            (seq, &story[seq as usize].0)
        );
    }
    assert!(!reader.seek(40_000).expect("is readable"));
    assert!(reader.seek(5).expect("is readable"));
}

/// Takes bytes one chunk at a time, when it is let.
struct Slow(Arc<Mutex<()>>);

impl io::Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        drop(self.0.lock());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_holds_the_program_back() {
    let gate = Arc::new(Mutex::new(()));
    let (recorder, _) = start(Slow(Arc::clone(&gate)), Contents::All);
    let closed = gate.lock();
    let recorder = Arc::new(recorder);
    let taken = Arc::new(AtomicU64::new(0));
    let (of_thread, count) = (Arc::clone(&recorder), Arc::clone(&taken));
    let program = std::thread::spawn(move || {
        for n in 0..40 {
            let (event, bytes, _) = write(2, n << 20, &noise(n, 1 << 20));
            let Event::Write(write) = event else { continue };
            of_thread.write(write, &bytes).expect("is taken");
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    std::thread::sleep(Duration::from_millis(700));
    let held = taken.load(Ordering::Relaxed);
    assert!((4..=10).contains(&held), "{held} MiB were taken");
    drop(closed);
    program.join().expect("goes on");
    assert_eq!(recorder.finish().expect("is written").writes, 40);
}

/// A disk with room for some bytes.
struct Small(usize, Memory);

impl io::Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.0);
        if len == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= len;
        self.1.write(&bytes[..len])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn on_a_full_disk_events_are_refused_and_the_prefix_is_readable() {
    let memory = Memory::default();
    let (recorder, time) = start(Small(3 << 20, memory.clone()), Contents::All);
    let story: Story = (0..60_000)
        .map(|n| write(2, n * 4096, &noise(n, 1024)))
        .collect();
    let refused = story.iter().position(|(event, bytes, _)| match event {
        Event::Write(write) => {
            time.fetch_add(LINGER_NS / 500, Ordering::Relaxed);
            recorder.write(write.clone(), bytes) == Err(Stopped)
        }
        _ => false,
    });
    assert!(refused.is_some());
    assert_eq!(recorder.note(flush(2).0), Err(Stopped));
    let error = recorder.finish().expect_err("the disk is full").to_string();
    assert!(error.starts_with("record to test.log: "), "{error}");
    let bytes = memory.0.lock().clone();
    let (reader, found) = read(bytes).expect("is readable");
    assert!(reader.truncated().is_some() && !found.is_empty());
    let all = found.iter().zip(&story);
    for ((recorded, bytes), (event, written, _)) in all {
        assert_eq!((&recorded.event, bytes), (event, written));
    }
}

#[test]
fn after_its_end_nothing_is_taken() {
    let (recorder, _) = start(Memory::default(), Contents::All);
    recorder.finish().expect("is written");
    assert_eq!(recorder.note(flush(2).0), Err(Stopped));
    let again = recorder.finish().expect_err("was finished").to_string();
    assert_eq!(
        again,
        "record to test.log: the recording was finished before"
    );
}
