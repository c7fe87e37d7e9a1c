//! Which states are legal: small programs whose states are all known, and random ones beside a
//! reference that knows only versions of sectors.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::content::Store;
use super::model::Model;
use super::shapes::Shapes;
use super::subject::{Choice, Rules, Subject};
use super::tree::Tree;
use crate::face::{Face, FileSystem, PageCache};
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Contents, Event, Header, NodeId, NodeKind, Recorder, Sink};

const ROOT: NodeId = NodeId::ROOT;
const F: NodeId = NodeId(2);
const G: NodeId = NodeId(3);
const D: NodeId = NodeId(4);

/// What a program does.
#[derive(Clone, Debug)]
enum Op {
    Does(Event),
    Writes(NodeId, u64, Vec<u8>, bool),
}

fn make(node: NodeId, kind: NodeKind) -> Op {
    Op::Does(Event::Make {
        node,
        kind,
        mode: 0o644,
        uid: 0,
        gid: 0,
        device: 0,
        target: Vec::new(),
    })
}

fn link(parent: NodeId, name: &str, node: NodeId) -> Op {
    let name = name.into();
    Op::Does(Event::Link { parent, name, node })
}

fn unlink(parent: NodeId, name: &str, node: NodeId) -> Op {
    let name = name.into();
    Op::Does(Event::Unlink { parent, name, node })
}

fn rename(name: &str, to: &str, node: NodeId, other: Option<NodeId>) -> Op {
    Op::Does(Event::Rename {
        parent: ROOT,
        name: name.into(),
        to: ROOT,
        to_name: to.into(),
        node,
        other,
        exchange: false,
    })
}

fn write(node: NodeId, offset: u64, byte: u8, len: usize) -> Op {
    Op::Writes(node, offset, vec![byte; len], false)
}

fn resize(node: NodeId, size: u64) -> Op {
    Op::Does(Event::Resize { node, size })
}

fn sync(node: NodeId) -> Op {
    let kind = FlushKind::File;
    Op::Does(Event::Flush { node, kind })
}

fn sync_directory(node: NodeId) -> Op {
    let kind = FlushKind::Directory;
    Op::Does(Event::Flush { node, kind })
}

/// A file with a name, both durable.
fn durable(node: NodeId, name: &str) -> Vec<Op> {
    vec![
        make(node, NodeKind::File),
        link(ROOT, name, node),
        sync(node),
        sync_directory(ROOT),
    ]
}

/// A recording of a program.
struct Recorded {
    subject: Subject,
    store: Arc<Store>,
    _dir: tempfile::TempDir,
}

fn record(model: Model, unit: u64, face: Face, program: &[Op]) -> Recorded {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log");
    let header = Header::new(face, 1000, PageCache::WriteThrough);
    let recorder = Recorder::create(&path, header, Contents::All).expect("a recording");
    for op in program {
        match op {
            Op::Does(event) => recorder.note(event.clone()).expect("room"),
            Op::Writes(node, offset, bytes, synced) => {
                let write = Write {
                    node: *node,
                    offset: *offset,
                    len: bytes.len() as u32,
                    extents: Vec::new(),
                    synced: *synced,
                    cached: false,
                };
                recorder.write(write, bytes).expect("room");
            }
        }
    }
    recorder.finish().expect("an end");
    let rules = Rules {
        model,
        unit,
        tears: true,
        limit: 1000,
        seed: 1,
    };
    let store = Arc::new(Store::default());
    let subject = Subject::open(&path, rules, &store).expect("opens");
    Recorded {
        subject,
        store,
        _dir: dir,
    }
}

impl Recorded {
    /// All states of all points that the shapes give, each once.
    fn each_state(&self, shapes_of_point: usize, mut each: impl FnMut(&Tree, &Choice)) {
        let mut reader = self.subject.reader().expect("opens");
        let mut walk = self.subject.walk(&mut reader);
        for point in &self.subject.points.points {
            assert!(walk.go_to(point.place).expect("reads"));
            let builder = self.subject.builder(&walk.window);
            let shapes = Shapes::new(&builder, true, point.place.event);
            for number in 0..shapes.listed() + shapes_of_point {
                let fates = shapes.fates(number);
                let tree = builder.build(&fates).expect("builds");
                let choice = Choice::of(point.place, builder.effects(), &fates);
                // What is told in words is the same state.
                assert_eq!(choice.fates(builder.effects()), fates);
                each(&tree, &choice);
            }
        }
    }

    fn bytes(&self, tree: &Tree, id: NodeId) -> Vec<u8> {
        let node = tree.get(id).expect("there");
        let mut bytes = Vec::new();
        for block in 0..node.size.div_ceil(4096) {
            let mut cell = [0; 4096];
            let read = self.store.read(node.blocks.get(block), &mut cell);
            read.expect("reads");
            bytes.extend_from_slice(&cell);
        }
        bytes.truncate(node.size as usize);
        bytes
    }

    /// A tree as text: `f=aaa.` is a file of four units, the last of zeros.
    fn words(&self, tree: &Tree) -> String {
        let mut words = Vec::new();
        for (parent, path) in tree.reachable() {
            let parent = tree.get(parent).expect("there");
            for (name, id) in &parent.entries {
                let name = String::from_utf8([&path[..], &name[..]].join(&b'/')).expect("ASCII");
                let name = name.trim_start_matches('/');
                if tree.get(*id).expect("there").kind == NodeKind::Directory {
                    words.push(format!("{name}/"));
                    continue;
                }
                let bytes = self.bytes(tree, *id);
                let unit = |unit: &[u8]| match unit[0] {
                    0 => '.',
                    byte => byte as char,
                };
                let text = bytes.chunks(self.subject.rules.unit as usize).map(unit);
                words.push(format!("{name}={}", text.collect::<String>()));
            }
        }
        words.sort();
        words.join(" ")
    }
}

/// What may be left at the end of a program.
fn left(model: Model, program: &[Op]) -> BTreeSet<String> {
    let recorded = record(model, 4096, Face::Files, program);
    let last = recorded.subject.points.points.last().map(|p| p.place);
    let mut found = BTreeSet::new();
    recorded.each_state(200, |tree, choice| {
        if Some(choice.place) == last {
            found.insert(recorded.words(tree));
        }
    });
    found
}

fn set(states: &[&str]) -> BTreeSet<String> {
    states.iter().map(ToString::to_string).collect()
}

#[test]
fn of_a_new_file_name_size_and_bytes_come_as_the_model_says() {
    let program = [
        make(F, NodeKind::File),
        link(ROOT, "f", F),
        write(F, 0, b'a', 8192),
    ];
    let any = set(&["", "f=", "f=..", "f=a.", "f=.a", "f=aa"]);
    assert_eq!(left(Model::Strict, &program), any);
    assert_eq!(left(Model::Ext4Writeback, &program), any);
    let ordered = set(&["", "f=", "f=a", "f=aa"]);
    for model in [Model::Ext4Ordered, Model::Xfs, Model::Btrfs] {
        assert_eq!(left(model, &program), ordered, "{}", model.name());
    }
}

#[test]
fn fsync_of_a_file_makes_its_name_durable_but_not_in_strict() {
    let program = [
        make(F, NodeKind::File),
        link(ROOT, "f", F),
        write(F, 0, b'a', 4096),
        sync(F),
    ];
    assert_eq!(left(Model::Strict, &program), set(&["", "f=a"]));
    for model in &Model::FILES[1..] {
        assert_eq!(left(*model, &program), set(&["f=a"]), "{}", model.name());
    }
    let both = [&program[..], &[sync_directory(ROOT)]].concat();
    assert_eq!(left(Model::Strict, &both), set(&["f=a"]));
}

fn failed_sync(node: NodeId) -> Op {
    let kind = FlushKind::File;
    Op::Does(Event::FailedFlush { node, kind })
}

#[test]
fn what_a_failed_flush_dropped_is_not_made_durable_by_the_next_one() {
    let begin = [durable(F, "f"), vec![write(F, 0, b'o', 12_288), sync(F)]].concat();
    let fails = [
        write(F, 0, b'n', 8192),
        failed_sync(F),
        write(F, 8192, b'm', 4096),
        sync(F),
    ];
    let program = [&begin[..], &fails].concat();
    for model in Model::FILES {
        assert_eq!(left(model, &program), set(&["f=oom"]), "{}", model.name());
    }
    // Below a real file system it is no flush, and what was written stays as it was.
    let disk = [
        write(ROOT, 0, b'n', 4096),
        failed_sync(ROOT),
        write(ROOT, 4096, b'm', 4096),
        Op::Does(Event::Flush {
            node: ROOT,
            kind: FlushKind::Drive,
        }),
    ];
    let disk = record(Model::Disk, 4096, Face::Disk(FileSystem::None), &disk);
    let last = disk.subject.points.points.last().map(|p| p.place);
    disk.each_state(10, |tree, choice| {
        let bytes = disk.bytes(tree, ROOT);
        let after = Some(choice.place) == last;
        assert!(!after || (bytes[0], bytes[4096]) == (b'n', b'm'));
    });
}

#[test]
fn what_a_failed_flush_dropped_comes_with_its_page_if_that_is_written_again() {
    let begin = [durable(F, "f"), vec![write(F, 0, b'o', 8192), sync(F)]].concat();
    let fails = [
        // The end of a page and the beginning of the next one.
        write(F, 4000, b'n', 200),
        failed_sync(F),
        write(F, 0, b'm', 10),
        sync(F),
    ];
    let program = [&begin[..], &fails].concat();
    let recorded = record(Model::Strict, 512, Face::Files, &program);
    let last = recorded.subject.points.points.last().map(|p| p.place);
    let mut seen = 0;
    recorded.each_state(10, |tree, choice| {
        if Some(choice.place) == last {
            let bytes = recorded.bytes(tree, F);
            let of = |at: usize| bytes[at] as char;
            assert_eq!([of(0), of(10), of(4000), of(4095)], ['m', 'o', 'n', 'n']);
            assert_eq!([of(4096), of(4199), of(4200)], ['o', 'o', 'o']);
            seen += 1;
        }
    });
    assert!(seen > 0);
    // Truncated, the page is gone, and what was dropped of it.
    let cut = [
        failed_sync(F),
        resize(F, 0),
        write(F, 0, b'x', 4096),
        sync(F),
    ];
    let program = [&begin[..], &fails[..1], &cut].concat();
    assert_eq!(left(Model::Strict, &program), set(&["f=x"]));
}

#[test]
fn a_rename_over_a_file_without_fsync_loses_bytes_except_on_ext4_ordered() {
    let old = [durable(G, "g"), vec![write(G, 0, b'o', 4096), sync(G)]].concat();
    let new = [
        make(F, NodeKind::File),
        link(ROOT, "t", F),
        write(F, 0, b'n', 4096),
        rename("t", "g", F, Some(G)),
    ];
    let program = [&old[..], &new].concat();
    let gone = |states: &BTreeSet<String>| states.iter().any(|s| s == "g=" || s == "g=.");
    for model in Model::FILES {
        let states = left(model, &program);
        assert_eq!(
            gone(&states),
            model != Model::Ext4Ordered,
            "{}: {states:?}",
            model.name()
        );
        // The name is never lost, and never something else.
        assert!(states.iter().all(|s| s.contains("g=")), "{states:?}");
        assert!(
            states.contains("g=o") && states.contains("g=n"),
            "{states:?}"
        );
    }
    let strict = left(Model::Strict, &program);
    assert!(strict.contains("g=n t=n"), "both names: {strict:?}");
    // With the bytes synced first, the old ones or the new ones are there.
    let synced = [&old[..], &new[..3], &[sync(F)], &new[3..]].concat();
    for model in Model::FILES {
        let states = left(model, &synced);
        assert!(
            states
                .iter()
                .all(|s| s.contains("g=o") || s.contains("g=n")),
            "{states:?}"
        );
    }
}

#[test]
fn what_else_a_flush_makes_durable_is_the_journals_business() {
    // A name is given before, and one after, a file that is synced.
    let before = [durable(F, "f"), durable(G, "g")].concat();
    let after = [rename("g", "h", G, None), write(F, 0, b'a', 4096), sync(F)];
    let program = [&before[..], &after].concat();
    let both = set(&["f=a g=", "f=a h="]);
    let strict = set(&["f=a g=", "f=a g= h=", "f=a h="]);
    assert_eq!(left(Model::Strict, &program), strict.clone());
    // The bytes of f were written in place of nothing: only its size is in the inode, and neither
    // size nor bytes are ordered behind the rename.
    assert_eq!(left(Model::Btrfs, &program), both);
    let renamed = [
        rename("g", "h", G, None),
        rename("f", "e", F, None),
        sync(F),
        rename("h", "i", G, None),
    ];
    let program = [&before[..], &renamed].concat();
    let ordered = set(&["e= h=", "e= i="]);
    for model in [Model::Ext4Ordered, Model::Ext4Writeback, Model::Xfs] {
        assert_eq!(left(model, &program), ordered, "{}", model.name());
    }
    let btrfs = set(&["e= g=", "e= h=", "e= i="]);
    assert_eq!(left(Model::Btrfs, &program), btrfs);
}

#[test]
fn a_truncation_comes_before_what_is_written_behind_it() {
    let old = [durable(F, "f"), vec![write(F, 0, b'o', 8192), sync(F)]].concat();
    let program = [&old[..], &[resize(F, 0), write(F, 0, b'n', 4096)]].concat();
    let states = left(Model::Strict, &program);
    assert_eq!(states, set(&["f=", "f=.", "f=n", "f=oo"]));
    let ordered = left(Model::Ext4Ordered, &program);
    assert_eq!(ordered, set(&["f=", "f=n", "f=oo"]));
}

#[test]
fn a_directory_ends_after_its_entries() {
    let program = [
        make(D, NodeKind::Directory),
        link(ROOT, "d", D),
        make(F, NodeKind::File),
        link(D, "f", F),
        sync_directory(D),
        sync_directory(ROOT),
        unlink(D, "f", F),
        unlink(ROOT, "d", D),
    ];
    assert_eq!(left(Model::Strict, &program), set(&["", "d/", "d/ d/f="]));
}

#[test]
fn a_synchronous_write_is_durable_with_what_shares_its_units() {
    let synced = Op::Writes(F, 100, vec![b'b'; 100], true);
    let program = [
        durable(F, "f"),
        vec![write(F, 0, b'a', 100), write(F, 4096, b'c', 100), synced],
    ]
    .concat();
    let recorded = record(Model::Strict, 512, Face::Files, &program);
    let last = recorded.subject.points.points.last().map(|p| p.place);
    let mut seen = BTreeSet::new();
    recorded.each_state(50, |tree, choice| {
        if Some(choice.place) == last {
            let bytes = recorded.bytes(tree, F);
            assert_eq!(&bytes[..200], [[b'a'; 100], [b'b'; 100]].concat());
            seen.insert(bytes[4096]);
        }
    });
    assert_eq!(
        seen,
        BTreeSet::from([0, b'c']),
        "the other write may be lost"
    );
}

#[test]
fn a_disk_keeps_what_came_before_a_flush_and_any_part_of_the_rest() {
    let drive = FlushKind::Drive;
    let flush = Op::Does(Event::Flush {
        node: ROOT,
        kind: drive,
    });
    let punch = Op::Does(Event::Punch {
        node: ROOT,
        offset: 4096,
        len: 4096,
    });
    let program = [
        write(ROOT, 0, b'a', 4096),
        write(ROOT, 4096, b'b', 4096),
        flush,
        write(ROOT, 0, b'c', 1024),
        punch,
    ];
    let face = Face::Disk(crate::face::FileSystem::Ext4);
    let recorded = record(Model::Disk, 512, face, &program);
    let mut found = BTreeSet::new();
    let last = recorded.subject.points.points.last().map(|p| p.place);
    recorded.each_state(100, |tree, choice| {
        if Some(choice.place) == last {
            let bytes = recorded.bytes(tree, ROOT);
            let at = [0, 512, 1024, 4096].map(|at| bytes[at].max(b'.') as char);
            found.insert(String::from_iter(at));
        }
    });
    let firsts = ["aa", "ca", "ac", "cc"];
    let all = firsts
        .iter()
        .flat_map(|first| [format!("{first}ab"), format!("{first}a.")]);
    let expected: BTreeSet<String> = all.collect();
    // A punch is torn at 512 bytes as a write is; its first sector stands for it here.
    assert_eq!(found, expected);
}

/// Every sector of every state is one that was there at some time since the last flush, and each
/// such version is found.
#[test]
fn sectors_are_versions_since_the_last_flush() {
    const SECTORS: u64 = 12;
    let mut rng = SmallRng::seed_from_u64(7);
    let (mut states, mut old) = (0, 0);
    for round in 0..60 {
        let mut program = durable(F, "f");
        program.push(write(F, 0, b'0', SECTORS as usize * 512));
        program.push(sync(F));
        let mut now = vec![b'0'; SECTORS as usize * 512];
        // Versions of each sector since the last flush.
        let sector = |now: &[u8], at: usize| now[at * 512..(at + 1) * 512].to_vec();
        let all = |now: &[u8]| -> Vec<BTreeSet<Vec<u8>>> {
            let one = |at| BTreeSet::from([sector(now, at)]);
            (0..SECTORS as usize).map(one).collect()
        };
        let mut versions = all(&now);
        for number in 0..rng.random_range(1..6u8) {
            if rng.random_bool(0.2) {
                program.push(sync(F));
                versions = all(&now);
                continue;
            }
            let from = rng.random_range(0..SECTORS as usize * 512);
            let len = rng.random_range(1..=(SECTORS as usize * 512 - from).min(1500));
            program.push(write(F, from as u64, b'a' + number, len));
            now[from..from + len].fill(b'a' + number);
            let touched = from / 512..(from + len).div_ceil(512);
            for (at, known) in versions.iter_mut().enumerate() {
                if touched.contains(&at) {
                    known.insert(sector(&now, at));
                }
            }
        }
        let recorded = record(Model::Strict, 512, Face::Files, &program);
        let last = recorded.subject.points.points.last().map(|p| p.place);
        let mut found: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new(); SECTORS as usize];
        recorded.each_state(300, |tree, choice| {
            if Some(choice.place) != last {
                return;
            }
            let bytes = recorded.bytes(tree, F);
            for (at, known) in versions.iter().enumerate() {
                let sector = sector(&bytes, at);
                assert!(
                    known.contains(&sector),
                    "round {round}, sector {at}: {program:?}"
                );
                found[at].insert(sector);
            }
            states += 1;
        });
        assert_eq!(found, versions, "round {round}");
        old += versions.iter().filter(|known| known.len() > 1).count();
    }
    assert!(
        states > 10_000 && old > 100,
        "{states} states, {old} sectors with a choice"
    );
}
