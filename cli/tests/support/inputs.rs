//! A folder with small versions of the inputs that the examples name.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use treering_drive::face::{Face, PageCache};
use treering_drive::recording::event::Write as DriveWrite;
use treering_drive::recording::{Contents, Event, Extent, Header, NodeId, Recorder, Sink as _};

use super::support::ok;
use super::told::root;

/// A program that once found a bug. The bug is fixed, so it finds nothing.
const PROGRAM: &str = concat!(
    "{\"schema\":\"treering.program/1\",\"engine\":\"btree:cow\"}\n",
    "put \"k\" 100\nsync\nget \"k\"\ncrash keep-oldest\nget \"k\"\n"
);

/// Creates all inputs in `folder`, except the files that examples write themselves.
pub(crate) fn prepare(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("write");
    for below in [
        "mnt/test",
        ".local/share/bash-completion/completions",
        ".config/fish/completions",
    ] {
        std::fs::create_dir_all(folder.join(below)).expect("a folder");
    }
    for below in ["traces", "studies"] {
        std::os::unix::fs::symlink(root().join(below), folder.join(below)).expect("a link");
    }
    ok(
        folder,
        &words("gen zipf --records 2k --writes 1 -o zipf.trz"),
    );
    std::fs::copy(
        root().join("traces/samples/blocks.parquet"),
        folder.join("io.parquet"),
    )
    .expect("the sample");

    write("tpcc.trace.xz", &xz(mqsim().as_bytes()));
    write("cloudphysics.csv.xz", &xz(cloudphysics().as_bytes()));
    write("io.csv.gz", &gzip(columns().as_bytes()));
    write("mydrive.csv", columns().as_bytes());
    let wiki = zstd::encode_all(&oracle_general()[..], 1).expect("in memory");
    write("wiki.oracleGeneral.zst", &wiki);
    write("vm.csv", cloudphysics().as_bytes());
    ok(folder, &words("import cloudphysics vm.csv -o vm.trz"));

    // The reports to compare: two orders of the same load.
    for (name, seed) in [("a", 0), ("b", 1)] {
        let line = format!("replay zipf.trz --limit 3k --seed {seed} --json {name}.json");
        ok(folder, &words(&line));
    }

    let line = "sweep zipf.trz --tree btree,bf --predict-only --out trees";
    ok(folder, &words(line));

    let line = "oracle --tree btree+cow --mode crash --runs 4 --json oracle.json";
    let output = super::support::treering(folder, &words(line));
    // So few programs do not reach everything.
    assert!(matches!(output.status.code(), Some(0 | 4)));

    write("keys.txt", keys().as_bytes());
    write("urls.txt.xz", &xz(keys().as_bytes()));
    for name in ["found.program", "oracle-btree-cow-7.program"] {
        write(name, PROGRAM.as_bytes());
    }
    let case = "check WalRecovery --only page-before-log --to-oracle wal.case";
    ok(folder, &words(case));
    write("my-drive.toml", ok(folder, &["devices", "ssd"]).as_bytes());

    adapters(folder);

    recording(&folder.join("app.rec"), None);
    // Its store is never made, and nothing is acknowledged, so every state is legal.
    recording(&folder.join("sqlite.rec"), Some("store kv.db"));
    write(
        "my-benchmark",
        b"#!/bin/sh\nhead -c 300000 /dev/urandom >a.db\n",
    );
    write("my-checker", b"#!/bin/sh\ntest -d \"$TREERING_DIR\"\n");
    for program in ["my-benchmark", "my-checker"] {
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(program), executable).expect("chmod");
    }

    write("store.jsonl", rows().as_bytes());
    write("store.jsonl.xz", &xz(rows().as_bytes()));
    for name in ["mnt/store", "a.store"] {
        ok(folder, &["load", name, "store.jsonl"]);
    }
}

/// A recording of a program that loads a file, says so, and overwrites it. Before all that it says
/// `first`.
fn recording(log: &Path, first: Option<&str>) {
    let header = Header::new(Face::Files, 10_000, PageCache::WriteBack);
    let recorder = Recorder::create(log, header, Contents::All).expect("a recording");
    if let Some(first) = first {
        let line = first.into();
        recorder.note(Event::Mark { line }).expect("room");
    }
    let link = Event::Link {
        parent: NodeId::ROOT,
        name: b"app.db".into(),
        node: NodeId(2),
    };
    recorder.note(link).expect("room");
    for (i, lba) in scattered(4000).enumerate() {
        let write = DriveWrite {
            node: NodeId(2),
            offset: lba * 4096,
            len: 4096,
            extents: vec![Extent { lba, blocks: 1 }],
            synced: false,
            cached: true,
        };
        recorder.write(write, &[i as u8; 4096]).expect("room");
        if i == 1500 {
            let line = b"loaded".into();
            recorder.note(Event::Mark { line }).expect("room");
        }
    }
    recorder.finish().expect("room");
}

/// Engines for `oracle --exec` and `--so`: the toy of the oracle's own tests, and an example.
fn adapters(folder: &Path) {
    let toy = root().join("model/oracle/tests/adapters/toy.py");
    // One that survives power cuts.
    let toy = std::fs::read_to_string(toy).expect("the toy");
    let toy = toy.replace("BUGS = set(sys.argv[1:])", "BUGS = {\"fsync\"}");
    std::fs::write(folder.join("adapter.py"), toy).expect("room");
    let script = folder.join("adapter");
    std::fs::write(&script, "#!/bin/sh\nexec python3 adapter.py\n").expect("write");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(script, runs).expect("chmod");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(folder.join("libmine.so"))
        .arg(root().join("model/adapters/exec/c/so_toy.c"))
        .status();
    assert!(built.expect("cc starts").success());
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Block numbers that recur in scattered order: each is multiplied by a number coprime to their
/// count.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761) % 1500)
}

fn mqsim() -> String {
    let mut text = String::new();
    for (i, block) in scattered(3000).enumerate() {
        let kind = u8::from(i % 3 == 0);
        let _ = writeln!(text, "{} 0 {} 8 {kind}", i * 1000, block * 8);
    }
    text
}

fn cloudphysics() -> String {
    let mut text = "version,time,op,size,lbn\n".to_owned();
    for (i, block) in scattered(4000).enumerate() {
        let op = if i % 3 == 0 { "28" } else { "2a" };
        let _ = writeln!(text, "1,{},{op},4096,{}", 5_633_898 + i / 100, block * 8);
    }
    text
}

/// Columns: time, host, operation, device, offset and size.
fn columns() -> String {
    let mut text = String::new();
    for (i, block) in scattered(1000).enumerate() {
        let op = if i % 3 == 0 { "R" } else { "W" };
        let _ = writeln!(text, "{i},host,{op},0,{},4096", block * 4096);
    }
    text
}

/// Records of libCacheSim's `oracleGeneral`: time, object, size, next access.
fn oracle_general() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, id) in (0u32..).zip(scattered(1000)) {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(512u32.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
    }
    bytes
}

fn keys() -> String {
    (0..3000).fold(String::new(), |mut text, i| {
        let _ = writeln!(
            text,
            "https://example.org/wiki/Page_{:06}",
            i * 7919 % 100_003
        );
        text
    })
}

fn rows() -> String {
    (0..300).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "{{\"key\":\"key {i:04}\",\"value\":\"value {i}\"}}");
        text
    })
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut reader = liblzma::read::XzEncoder::new(bytes, 1);
    reader.read_to_end(&mut packed).expect("in memory");
    packed
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut reader = flate2::read::GzEncoder::new(bytes, flate2::Compression::fast());
    reader.read_to_end(&mut packed).expect("in memory");
    packed
}
