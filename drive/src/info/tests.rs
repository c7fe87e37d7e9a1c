//! Reports of small recordings that were counted by hand.

use super::*;
use crate::face::{Face, PageCache};
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Contents, Event, Extent, NodeId, Recorder, Sink as _};

fn write(node: u64, lba: u64, offset: u64, len: u32) -> Write {
    let blocks = (offset % 4096 + u64::from(len)).div_ceil(4096);
    Write {
        node: NodeId(node),
        offset,
        len,
        extents: vec![Extent { lba, blocks }],
        synced: false,
        cached: true,
    }
}

fn link(name: &str, node: u64) -> Event {
    Event::Link {
        parent: NodeId::ROOT,
        name: name.into(),
        node: NodeId(node),
    }
}

fn discard(node: u64, lba: u64, blocks: u64) -> Event {
    Event::Discard {
        node: NodeId(node),
        extents: vec![Extent { lba, blocks }],
    }
}

fn flush(node: u64) -> Event {
    Event::Flush {
        node: NodeId(node),
        kind: FlushKind::Data,
    }
}

/// A block of which the first half does not compress.
fn half(seed: u64) -> Vec<u8> {
    let words = (0..256_u64).flat_map(|n| {
        let word = xxhash_rust::xxh3::xxh3_64_with_seed(&n.to_le_bytes(), seed);
        word.to_le_bytes()
    });
    words.chain([0; 2048]).collect()
}

fn recording(contents: Contents) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut header = crate::recording::Header::new(Face::Files, 1024, PageCache::WriteBack);
    header.command = vec!["program".into(), "--flag".into()];
    let recorder = Recorder::create(file.path(), header, contents).expect("begins");
    let note = |event: Event| recorder.note(event).expect("is taken");
    let write = |write: Write, bytes: &[u8]| recorder.write(write, bytes).expect("is taken");
    note(link("wal", 2));
    note(link("data", 3));
    write(self::write(2, 10, 0, 4096), &half(1));
    note(flush(2));
    write(self::write(3, 300, 0, 4096), &[0; 4096]);
    write(self::write(3, 301, 4096, 4096), &half(1));
    write(self::write(2, 10, 0, 4096), &half(2));
    note(flush(2));
    write(self::write(2, 11, 4196, 100), &[7; 100]);
    note(Event::Mark {
        line: b"user_bytes 5000".to_vec(),
    });
    note(Event::Free { node: NodeId(3) });
    note(discard(3, 300, 2));
    recorder.finish().expect("is written");
    file
}

fn report(contents: Contents) -> InfoReport {
    let file = recording(contents);
    let causes = [("WAL", "wal"), ("data", "data")];
    let causes = causes.map(|(name, glob)| (name.to_string(), glob.to_string()));
    info(file.path(), &causes).expect("is readable")
}

#[test]
fn a_report_says_what_happened() {
    let info = report(Contents::All);
    assert!(info.complete);
    assert_eq!((info.marks, info.user_bytes), (1, Some(5000)));
    let causes = info.causes.iter();
    let causes: Vec<_> = causes
        .map(|c| (&c.name[..], c.writes, c.bytes, c.flushes))
        .collect();
    assert_eq!(causes, [("WAL", 3, 8292, 2), ("data", 2, 8192, 0)]);
    assert_eq!(info.causes[1].discarded_blocks, 2);
    assert_eq!((info.total.bytes, info.total.blocks), (16_484, 5));
    let alignment = Alignment {
        blocks: 16_384,
        sectors: 0,
        unaligned: 100,
        partial_blocks: 1,
    };
    assert_eq!(info.alignment, alignment);
    let again = &info.overwrites;
    assert_eq!((again.written_blocks, again.first_writes), (4, 4));
    let distance = again
        .distance_bytes
        .as_ref()
        .expect("one block was written again");
    assert_eq!(
        (distance.count, distance.min, distance.max),
        (1, 12_288, 12_288)
    );
    let life = again.life_bytes.as_ref().expect("two were discarded");
    assert_eq!((life.count, life.min, life.max), (2, 8292, 12_388));
    assert_eq!(info.flush_bytes.as_ref().expect("two flushes").max, 12_288);
    let contents = info.contents.expect("is recorded");
    let counts = (contents.pieces, contents.zero_pieces, contents.equal_pieces);
    assert_eq!(counts, (5, 1, 1));
    assert_eq!(contents.sampled, 1.0);
    let alpha = info.causes[0].alpha.expect("is recorded");
    assert!((0.5..0.54).contains(&alpha), "{alpha}");
    assert_eq!(info.causes[0].alpha_blocks, 2);
    let files: Vec<_> = info
        .top_files
        .iter()
        .map(|f| (&f.path[..], f.bytes))
        .collect();
    assert_eq!(files, [("wal", 8292), ("data", 8192)]);
    let hot: Vec<_> = info
        .hot_extents
        .iter()
        .map(|h| (h.lba, h.block_writes))
        .collect();
    assert_eq!(hot, [(0, 3), (256, 2)]);
    assert_eq!(
        info.timeline.iter().flat_map(|w| &w.bytes).sum::<u64>(),
        16_484
    );
}

#[test]
fn without_contents_the_rest_is_the_same() {
    let (with, without) = (report(Contents::All), report(Contents::None));
    assert_eq!(without.contents, None);
    assert_eq!(without.total.alpha, None);
    assert_eq!(with.overwrites, without.overwrites);
    assert_eq!(with.total.bytes, without.total.bytes);
}

#[test]
fn text_and_page_show_all_parts() {
    let info = report(Contents::All);
    let text = info.render_text();
    for part in [
        "command        program --flag",
        "files, capacity 4.0 MiB, page cache write-back",
        "WAL",
        "written between overwrites",
        "wal (WAL)",
        "user bytes     4.9 KiB; 3.30 bytes reached the drive for each",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 130),
        "{text}"
    );
    let page = info.render_html();
    for part in [
        "<svg",
        "Written bytes over time",
        "program --flag",
        "<td>wal</td>",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    assert!(
        !page.contains("NaN") && !page.contains("<p>plotters"),
        "{page}"
    );
    let json = serde_json::to_value(&info).expect("is JSON");
    assert_eq!(json["schema"], "treering.drive-info/1");
}

#[test]
fn an_empty_recording_has_a_report() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let header = crate::recording::Header::new(Face::Files, 1024, PageCache::WriteBack);
    let recorder = Recorder::create(file.path(), header, Contents::All).expect("begins");
    recorder.finish().expect("is written");
    let info = info(file.path(), &[]).expect("is readable");
    assert_eq!(
        (info.events, info.causes.len(), info.contents),
        (0, 0, None)
    );
    assert!(info.render_html().contains("Recording") && !info.render_text().contains("NaN"));
}
