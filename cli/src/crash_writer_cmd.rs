//! `treering crash-writer`: the process that the kill -9 test kills.
//!
//! ```text
//! thread t:  "i SEQ KEY p" ──▶ ack file                            intent, before
//!            put(KEY, value of (KEY, SEQ)) ──durable──▶
//!            "a SEQ KEY p" ──▶ ack file                            acknowledgement, after
//! ```
//!
//! Each line is one `write` in append mode, so it survives the death of the process whole. Each
//! thread has its own keys (`KEY mod threads`) and rising sequence numbers, so the operations on a
//! key are ordered by their numbers.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use treering_engine::device::FileDevice;
use treering_engine::{Durability, Kv, Options, Store, SystemClock, required_blocks};

use crate::args::CrashWriterArgs;
use crate::failure::{self, Failure};

const THREADS: u64 = 4;
const KEYS: u64 = 4000;
/// Pages of the store: about four times what the keys need.
const PAGES: u64 = 4000;

/// Writes until it is killed or has done all operations.
pub(crate) fn run(args: &CrashWriterArgs) -> Result<(), Failure> {
    let name = args.store_file.display().to_string();
    let options = options(args);
    let device = open(args, &options).map_err(|e| failure::engine(&name, e))?;
    let store = Store::open(Arc::new(device), Arc::new(SystemClock::new()), &options)
        .map_err(|e| failure::engine(&name, e))?;
    let ack_name = args.ack.display().to_string();
    let ack = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&args.ack)
        .map_err(|e| Failure::file(&ack_name, &e))?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| store.pump_until(&stop));
        let threads: Vec<_> = (0..THREADS)
            .map(|t| {
                let (store, ack) = (&store, &ack);
                scope.spawn(move || write(store, ack, args, t))
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        stop.store(true, std::sync::atomic::Ordering::Release);
        let pumped = pump.join();
        for result in results {
            result.map_err(|_| Failure::cannot_run("a writer panicked"))??;
        }
        pumped
            .map_err(|_| Failure::cannot_run("the pump panicked"))?
            .map_err(|e| failure::engine(&name, e))
    })?;
    store.close().map_err(|e| failure::engine(&name, e))
}

/// Options small enough that eviction, checkpoints and log wraps happen within milliseconds.
fn options(args: &CrashWriterArgs) -> Options {
    let parts = args.tree.options().unwrap_or_default();
    Options {
        cache_bytes: 64 * parts.page_size as u64,
        durability: Durability::PerCommit,
        log_bytes: 512 << 10,
        checkpoint_log_bytes: 128 << 10,
        log_buffer_bytes: 32 << 10,
        write_batch_pages: 8,
        ..parts
    }
}

fn open(args: &CrashWriterArgs, options: &Options) -> treering_engine::Result<FileDevice> {
    let path = &args.store_file;
    // An earlier process may have been killed while it created the file.
    if path.metadata().is_ok_and(|meta| meta.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
    if path.exists() {
        return Ok(FileDevice::open(path)?);
    }
    Ok(FileDevice::create(path, required_blocks(options, PAGES))?)
}

fn write(
    store: &Store,
    mut ack: &File,
    args: &CrashWriterArgs,
    thread: u64,
) -> Result<(), Failure> {
    let mut random = args.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (thread << 32);
    let mut note = |line: String| {
        ack.write_all(line.as_bytes())
            .map_err(|e| Failure::file(&args.ack.display().to_string(), &e))
    };
    for number in 0..args.ops {
        let sequence = args.first + number * THREADS + thread;
        random = mix(random.wrapping_add(sequence));
        let key = (random % (KEYS / THREADS)) * THREADS + thread;
        let is_delete = (random >> 40).is_multiple_of(8);
        let kind = if is_delete { 'd' } else { 'p' };
        note(format!("i {sequence} {key} {kind}\n"))?;
        let name = format!("key{key:08}");
        let done = if is_delete {
            store.delete(name.as_bytes())
        } else {
            store.put(name.as_bytes(), &value(key, sequence))
        };
        done.map_err(|e| failure::engine("crash-writer", e))?;
        note(format!("a {sequence} {key} {kind}\n"))?;
    }
    Ok(())
}

/// The value for a key and sequence number: `KEY SEQ xxxx…`. Both decide the tail's length and
/// bytes.
fn value(key: u64, sequence: u64) -> Vec<u8> {
    let random = mix(key ^ (sequence << 20));
    let mut value = format!("{key} {sequence} ").into_bytes();
    let length = value.len() + (random % 700) as usize;
    value.resize(length, b'a' + (random >> 32) as u8 % 26);
    value
}

/// The finaliser of splitmix64.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
