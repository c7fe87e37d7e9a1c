//! `kill -9` at random moments, round after round on the same store: acknowledged writes survive,
//! and only intended writes appear.
//!
//! The state of the store after each round is the baseline of the next. For each key, a reader may
//! see the last operation acknowledged in the round or any intended after it. If none was
//! acknowledged, it may also see the baseline.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use treering_engine::device::{BlockDevice, FileDevice};
use treering_engine::{BfOptions, Error, Kv, Options, Store, SystemClock, TreeKind};

/// The value of a key as its writer numbers it: the sequence number of its last put.
type State = HashMap<u64, u64>;

/// The operations of one round that may have been the last on a key.
#[derive(Default)]
struct Candidates {
    acknowledged: bool,
    /// Sequence number, and whether it is a put: the acknowledged operation first, then later ones.
    ops: Vec<(u64, bool)>,
}

/// Reads the notes of the killed writer. The kill may have truncated the last line.
fn candidates(ack: &str) -> (HashMap<u64, Candidates>, u64, u64) {
    let mut keys: HashMap<u64, Candidates> = HashMap::new();
    let (mut highest, mut acknowledged) = (0, 0);
    for line in ack
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [what, sequence, key, kind] = words[..] else {
            panic!("expected four words, found {line:?}");
        };
        let sequence: u64 = sequence.parse().expect("a number");
        let of_key = keys.entry(key.parse().expect("a number")).or_default();
        highest = highest.max(sequence);
        if what == "i" {
            of_key.ops.push((sequence, kind == "p"));
        } else {
            acknowledged += 1;
            of_key.acknowledged = true;
            of_key.ops.retain(|(s, _)| *s >= sequence);
        }
    }
    (keys, highest, acknowledged)
}

/// Opens the store after a kill and reads all of it. Returns `None` if the kill came before the
/// store existed.
fn survivors(path: &Path, tree: TreeKind) -> Option<State> {
    if path.metadata().map_or(0, |meta| meta.len()) == 0 {
        return None;
    }
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path).expect("the file opens"));
    let options = match Options::of_store(&device) {
        Ok(options) => Options {
            tree,
            // A cache that is small for either tree.
            cache_bytes: 24 * options.page_size as u64,
            ..options
        },
        Err(Error::NotAStore { .. }) => return None,
        Err(e) => panic!("the store does not open: {e}"),
    };
    let store = Store::open(device, Arc::new(SystemClock::new()), &options)
        .unwrap_or_else(|e| panic!("the store does not recover: {e}"));
    let mut state = State::new();
    store
        .scan(b"", &mut |key, value| {
            let text = String::from_utf8_lossy(value);
            let mut words = text.split(' ');
            let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
            let (written_key, sequence) = (number(), number());
            let named = std::str::from_utf8(key)
                .ok()
                .and_then(|name| name.strip_prefix("key"))
                .and_then(|name| name.parse::<u64>().ok())
                .expect("a key that the writer makes");
            assert_eq!(written_key, Some(named), "another key's value");
            state.insert(named, sequence.expect("a sequence number"));
            ControlFlow::Continue(())
        })
        .expect("the scan succeeds");
    // No `close`: recovery alone must suffice.
    store.abandon();
    Some(state)
}

fn check(round: u64, baseline: &State, ops: &HashMap<u64, Candidates>, found: &State) {
    for key in found.keys().chain(baseline.keys()).chain(ops.keys()) {
        let now = found.get(key).copied();
        let of_key = ops.get(key);
        let old =
            of_key.is_none_or(|of_key| !of_key.acknowledged) && now == baseline.get(key).copied();
        let new = of_key.is_some_and(|of_key| {
            of_key
                .ops
                .iter()
                .any(|&(sequence, is_put)| now == is_put.then_some(sequence))
        });
        assert!(
            old || new,
            "round {round}, key {key}: expected one of {:?} (acknowledged: {}) or, without an acknowledgement, {:?}; found {now:?}",
            of_key.map(|of_key| &of_key.ops),
            of_key.is_some_and(|of_key| of_key.acknowledged),
            baseline.get(key)
        );
    }
}

fn rounds() -> u64 {
    std::env::var("TREERING_KILL_ROUNDS")
        .ok()
        .map_or(5, |n| n.parse().expect("TREERING_KILL_ROUNDS is a number"))
}

/// The first reader uses the writer's tree. A reader with the other tree must find the same
/// records.
fn kill_rounds(tree: &str, seed: u64) {
    let mut kinds = [TreeKind::BTree, TreeKind::Bf(BfOptions::default())];
    if tree.starts_with("bf") {
        kinds.reverse();
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (path, ack) = (folder.path().join("store"), folder.path().join("ack"));
    let mut random = StdRng::seed_from_u64(seed);
    let (mut baseline, mut first, mut acknowledged) = (State::new(), 1, 0);
    for round in 0..rounds() {
        std::fs::write(&ack, b"").expect("emptied");
        let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
            .arg("crash-writer")
            .arg(&path)
            .arg("--ack")
            .arg(&ack)
            .args(["--seed", &(seed + round).to_string()])
            .args(["--tree", tree])
            .args(["--first", &first.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the writer starts");
        std::thread::sleep(Duration::from_millis(random.random_range(20..400)));
        let early = child.try_wait().expect("asked");
        child.kill().expect("killed");
        let output = child.wait_with_output().expect("waited for");
        assert!(
            early.is_none(),
            "the writer ended before it was killed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let (ops, highest, done) = candidates(&std::fs::read_to_string(&ack).expect("read"));
        let verified = support_verify(&path);
        let found = survivors(&path, kinds[0]).unwrap_or_default();
        check(round, &baseline, &ops, &found);
        let again = survivors(&path, kinds[1]).unwrap_or_default();
        assert!(
            found == again,
            "round {round}: another tree finds other records"
        );
        assert!(verified, "round {round}: verify found damage");
        baseline = found;
        first = first.max(highest + 1);
        acknowledged += done;
    }
    assert!(
        acknowledged > 0,
        "no write was ever acknowledged, so nothing was tested"
    );
    println!(
        "{acknowledged} acknowledged writes survived {} kills ({tree})",
        rounds()
    );
}

/// `treering verify` runs before recovery. A store whose creation was interrupted is not damaged.
fn support_verify(path: &Path) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_treering"))
        .arg("verify")
        .arg(path)
        .output()
        .expect("verify starts");
    match output.status.code() {
        Some(0) => true,
        Some(2) => survivors(path, TreeKind::BTree).is_none(),
        _ => {
            eprintln!("{}", String::from_utf8_lossy(&output.stdout));
            false
        }
    }
}

#[test]
fn acknowledged_writes_survive_kill_nine_in_place() {
    kill_rounds("btree", 11);
}

#[test]
fn acknowledged_writes_survive_kill_nine_in_place_below_mini_pages() {
    kill_rounds("bf", 12);
}

#[test]
fn acknowledged_writes_survive_kill_nine_copy_on_write() {
    kill_rounds("btree+cow", 23);
}

#[test]
fn acknowledged_writes_survive_kill_nine_copy_on_write_below_mini_pages() {
    kill_rounds("bf+cow(table=each-flush)", 24);
}

#[test]
fn acknowledged_writes_survive_kill_nine_on_shadowed_pages_with_modification_logs() {
    kill_rounds("bminus", 35);
}

#[test]
fn acknowledged_writes_survive_kill_nine_on_shadowed_pages_below_mini_pages() {
    kill_rounds("bf(page=8KiB)+shadow(T=2KiB)+sparse", 36);
}

#[test]
fn the_checker_detects_lost_and_invented_writes() {
    let (ops, ..) = candidates("i 1 7 p\na 1 7 p\ni 5 7 d\ni 9 8 p\ni 13 ");
    let empty = State::new();
    check(0, &empty, &ops, &State::from([(7, 1)]));
    check(0, &empty, &ops, &State::from([(8, 9)]));
    for wrong in [State::from([(7, 2)]), State::from([(9, 1), (7, 1)])] {
        let caught = std::panic::catch_unwind(|| check(0, &State::new(), &ops, &wrong));
        assert!(caught.is_err(), "{wrong:?} went through");
    }
    let (ops, ..) = candidates("i 1 7 p\na 1 7 p\n");
    assert!(std::panic::catch_unwind(|| check(0, &State::new(), &ops, &State::new())).is_err());
}
