//! Causes over a recording.

use super::*;
use crate::recording::{Extent, NodeKind};

fn knowledge(face: Face, events: &[Event]) -> Knowledge {
    let mut survey = Survey {
        face,
        names: Names::new(),
        owners: Owners::default(),
        pieces: None,
        manifests: FxHashMap::default(),
        bytes: Vec::new(),
    };
    for (seq, event) in (0..).zip(events) {
        let mut recorded = Recorded::default();
        (recorded.seq, recorded.event) = (seq, event.clone());
        survey.note(&recorded).expect("there are no contents");
    }
    survey.finish(Rules::new(&[]).expect("the defaults"))
}

fn made(node: u64, name: &str) -> [Event; 2] {
    let node = NodeId(node);
    [
        Event::Make {
            node,
            kind: NodeKind::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            device: 0,
            target: Vec::new(),
        },
        Event::Link {
            parent: NodeId::ROOT,
            name: name.into(),
            node,
        },
    ]
}

#[test]
fn a_cause_follows_the_name_that_a_file_has_when_it_is_written() {
    let known = knowledge(Face::Files, &[]);
    let mut classifier = known.classifier();
    made(2, "000001.log")
        .iter()
        .for_each(|event| classifier.apply(event));
    let wal = classifier.of(NodeId(2));
    classifier.apply(&Event::Rename {
        parent: NodeId::ROOT,
        name: "000001.log".into(),
        to: NodeId::ROOT,
        to_name: "MANIFEST-1".into(),
        node: NodeId(2),
        other: None,
        exchange: false,
    });
    let manifest = classifier.of(NodeId(2));
    let names = classifier.causes().names();
    assert_eq!(names[usize::from(wal)], "wal");
    assert_eq!(names[usize::from(manifest)], "manifest");
}

#[test]
fn a_directory_that_is_flushed_is_told_from_files_without_a_rule() {
    let known = knowledge(Face::Files, &[]);
    let mut classifier = known.classifier();
    made(2, "what.ever")
        .iter()
        .for_each(|event| classifier.apply(event));
    let causes = [NodeId::ROOT, NodeId(2)].map(|node| classifier.of(node));
    let names = causes.map(|cause| classifier.causes().names()[usize::from(cause)].clone());
    assert_eq!(names, ["directories", "other"]);
}

#[test]
fn contents_tell_an_index_from_a_table_and_a_database_of_any_name() {
    let known = knowledge(Face::Files, &[]);
    let mut classifier = known.classifier();
    for (node, name, hint) in [(2, "notes.dat", "sqlite"), (3, "x-wal", "pg-index")] {
        made(node, name)
            .iter()
            .for_each(|event| classifier.apply(event));
        let what = hint.to_string();
        let node = NodeId(node);
        classifier.apply(&Event::Hint { node, what });
    }
    let causes = [classifier.of(NodeId(2)), classifier.of(NodeId(3))];
    let names = causes.map(|cause| classifier.causes().names()[usize::from(cause)].clone());
    assert_eq!(names, ["database", "wal"], "a name that tells is believed");
}

#[test]
fn a_block_of_a_real_file_system_has_the_cause_of_its_owner() {
    let map = |path: &str, lba| Event::Map {
        path: path.into(),
        inode: lba,
        extents: vec![Extent { lba, blocks: 2 }],
    };
    let region = Event::Region {
        name: "journal".into(),
        extents: vec![Extent { lba: 50, blocks: 1 }],
    };
    let events = [map("a.sst", 10), map("000001.log", 20), region];
    let known = knowledge(Face::Disk(crate::face::FileSystem::Ext4), &events);
    let mut classifier = known.classifier();
    let mut name = |lba| {
        let cause = classifier.of_block(NodeId::ROOT, 7, lba);
        let of_file_system = classifier.is_of_file_system(cause);
        let name = classifier.causes().names()[usize::from(cause)].clone();
        (name, of_file_system)
    };
    assert_eq!(name(10), ("sst".into(), false));
    assert_eq!(name(21), ("wal".into(), false));
    assert_eq!(name(50), ("journal".into(), true));
    assert_eq!(name(9), (UNKNOWN.into(), false));
}
