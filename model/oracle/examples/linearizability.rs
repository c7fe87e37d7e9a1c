//! Checks histories for linearizability, and reports how long that takes.
//!
//! ```text
//! cargo run --release -p treering-oracle --example linearizability -- made 1000000 4 10000
//! cargo run --release -p treering-oracle --example linearizability -- \
//!     engine btree:in-place 1000000 4 [SEED [tiny]]
//! cargo run --release -p treering-oracle --example linearizability -- file HISTORY.jsonl
//! ```
//!
//! `made` makes histories as a correct map would give them, with this many calls, clients and keys,
//! in three mixes. `engine` records histories of one of our engines under real threads, as
//! `treering oracle --mode concurrent` does, and saves the first wrong one in
//! `wrong-history.jsonl`. The exit status is 1 if something is wrong, and 2 on bad arguments.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use treering_oracle::concurrent::{self, Plan};
use treering_oracle::engines::{BTree, Geometry};
use treering_oracle::history::Action;
use treering_oracle::history::{History, Key, KeyId, Recorder, Start, Ticks, Version};
use treering_oracle::linear;
use treering_oracle::random::Random;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>();
    let right = match args.as_slice() {
        ["file", path] => file(path),
        ["made", calls, clients, keys] => match (number(calls), number(clients), number(keys)) {
            (Ok(calls), Ok(clients @ 1..), Ok(keys @ 1..)) => Ok(made(calls, clients, keys)),
            _ => Err("expected three numbers".into()),
        },
        ["engine", name, calls, clients, rest @ ..] => {
            let geometry = match rest.get(1) {
                Some(&"tiny") => Geometry::Tiny,
                _ => Geometry::Small,
            };
            let seed = rest.first().map_or(Ok(0), |seed| number(seed));
            match (number(calls), clients.parse(), seed) {
                (Ok(calls), Ok(clients), Ok(seed)) => {
                    engine(name, (calls, clients, seed), geometry)
                }
                _ => Err("expected numbers".into()),
            }
        }
        _ => {
            Err("expected made CALLS CLIENTS KEYS, engine NAME CALLS CLIENTS, or file PATH".into())
        }
    };
    match right {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn judge(what: &str, history: &History) -> bool {
    let began = Instant::now();
    let judged = linear::check(history);
    let seconds = began.elapsed().as_secs_f64();
    let calls = history.calls().len();
    println!("{what}: {calls} calls checked in {seconds:.3} s");
    match judged {
        Ok(judged) => {
            println!(
                "  linearizable: {} operations on {} keys, {} keys unjudged",
                judged.accesses,
                judged.keys,
                judged.unjudged.len()
            );
            true
        }
        Err(violation) => {
            print!("{violation}");
            false
        }
    }
}

fn file(path: &str) -> Result<bool, Failure> {
    let mut input = BufReader::new(std::fs::File::open(path)?);
    Ok(judge(path, &History::load(path, &mut input)?))
}

fn engine(
    name: &str,
    (calls, clients, seed): (u64, u32, u64),
    geometry: Geometry,
) -> Result<bool, Failure> {
    let engine = BTree::named(name, geometry).ok_or_else(|| {
        let names: Vec<_> = BTree::names().collect();
        format!("no engine {name}; expected one of {}", names.join(", "))
    })?;
    let plan = Plan {
        seed,
        clients,
        calls: calls.div_ceil(3),
        histories: 3,
        ..Plan::default()
    };
    let report = concurrent::run(&engine, &plan)?;
    let wrong = report.wrong;
    println!(
        "{name}: {} histories, {} calls ({} overlapping), {} operations on keys, {:.2} s, of that checking {:.2} s",
        report.histories,
        report.calls,
        report.overlapping,
        report.accesses,
        report.elapsed.as_secs_f64(),
        report.checking.as_secs_f64()
    );
    println!(
        "  {} splits, {} merges, {} evictions, {} checkpoints",
        report.splits, report.merges, report.evictions, report.checkpoints
    );
    let Some(wrong) = wrong else { return Ok(true) };
    println!("history {} ({}):", wrong.number, wrong.shape.name());
    wrong
        .findings
        .iter()
        .for_each(|finding| print!("{finding}"));
    let mut out = std::io::BufWriter::new(std::fs::File::create("wrong-history.jsonl")?);
    wrong.history.save(&mut out)?;
    println!("saved in wrong-history.jsonl");
    Ok(false)
}

fn made(calls: u64, clients: u64, keys: u64) -> bool {
    [
        ("uniform gets, puts and deletes", 1, 0),
        ("9 of 10 calls on 16 keys", 0, 0),
        ("1 scan in 20 calls", 1, 5),
    ]
    .iter()
    .all(|(name, uniform, scans)| {
        let history = make((calls, clients, keys), *uniform == 1, *scans);
        judge(name, &history)
    })
}

/// A history of a correct map whose clients' calls overlap all the time.
fn make((calls, clients, keys): (u64, u64, u64), uniform: bool, scans: u64) -> History {
    let mut random = Random::new(calls);
    let table: std::sync::Arc<[Key]> = (0..keys)
        .map(|key| Key::from(format!("key{key:010}").into_bytes()))
        .collect();
    let recorder = |client| Recorder::new(client as u32, table.clone());
    let mut recorders: Vec<Recorder> = (0..clients).map(recorder).collect();
    let ticks = Ticks::default();
    let mut map: BTreeMap<KeyId, Version> = BTreeMap::new();
    let mut answers: Vec<Option<Version>> = vec![None; clients as usize];
    let mut made = 0;
    while made < calls {
        let client = random.below(clients) as usize;
        let recorder = &mut recorders[client];
        if let Some(found) = answers[client].take() {
            recorder.returned(ticks.next(), found);
            continue;
        }
        made += 1;
        let among = if uniform || random.percent(10) {
            keys
        } else {
            16.min(keys)
        };
        let key = KeyId(random.below(among) as u32);
        let now = ticks.next();
        // The call takes effect at once. For an observer that is the same as any other time until
        // the client's next turn.
        let found = map.get(&key).copied().unwrap_or(Version::ABSENT);
        match random.below(100) {
            choice if choice < scans => {
                recorder.invoke_scan(now, Start::From(key), None, 20);
                for (key, version) in map.range(key..).take(20) {
                    recorder.row(&table[key.0 as usize], *version);
                }
            }
            0..50 => recorder.invoke(now, Action::Get { key, found }),
            50..85 => {
                let version = Version(made);
                map.insert(key, version);
                recorder.invoke(now, Action::Put { key, version });
            }
            _ => {
                map.remove(&key);
                recorder.invoke(now, Action::Delete { key });
            }
        }
        answers[client] = Some(found);
    }
    History::merge(recorders)
}
