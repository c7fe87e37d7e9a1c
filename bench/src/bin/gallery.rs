//! The rows of the gallery (docs/DRIVES.md) that are Rust crates: loads a store in the current
//! directory and updates it.
//!
//! `cargo build --release -p treering-bench --features peers --bin gallery`
//!
//! A record has a key of 16 bytes and a value of 112, half of it random and half zero. Records are
//! loaded in a scattered order, 1,000 a commit; then uniformly chosen ones are overwritten, a group
//! a commit, each commit durable. `bench/gallery/kv.c` writes the same records.
//!
//! `$TREERING_ACKS` gets the bytes so far, and a line `loaded`. At the end the number of commits is
//! printed, and a checksum of all records.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use treering_engine::device::{FileDevice, FileIo};
use treering_engine::{Durability, Kv, Lsn, Options, Store, SystemClock, required_blocks};

const KEY: usize = 16;
const VALUE: usize = 112;
const LOAD_GROUP: u64 = 1000;

type Outcome<T> = Result<T, Box<dyn Error>>;
type Key = [u8; KEY];
type Value = [u8; VALUE];

/// Loads a store in the current directory and updates it
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    /// The engine
    #[arg(value_enum)]
    engine: Name,
    /// Records to load
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Updates
    #[arg(long, default_value_t = 200_000)]
    updates: u64,
    /// Updates that are committed together
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    group: u64,
    /// MiB of the engine's cache
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    cache: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    Redb,
    Sled,
    Fjall,
    Btree,
    Bf,
    Bminus,
}

trait Engine {
    /// Writes all records, durable on return.
    fn commit(&mut self, group: &[(Key, Value)]) -> Outcome<()>;
    /// Visits all records in the order of their keys.
    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()>;
    fn close(self: Box<Self>) -> Outcome<()>;
}

struct Redb(redb::Database);

const TABLE: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("records");

impl Engine for Redb {
    fn commit(&mut self, group: &[(Key, Value)]) -> Outcome<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in group {
                table.insert(&key[..], &value[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        use redb::{ReadableDatabase as _, ReadableTable as _};
        let table = self.0.begin_read()?.open_table(TABLE)?;
        for record in table.iter()? {
            let (key, value) = record?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

struct Sled(sled::Db);

impl Engine for Sled {
    fn commit(&mut self, group: &[(Key, Value)]) -> Outcome<()> {
        let mut batch = sled::Batch::default();
        for (key, value) in group {
            batch.insert(&key[..], &value[..]);
        }
        self.0.apply_batch(batch)?;
        self.0.flush()?;
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        for record in self.0.iter() {
            let (key, value) = record?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

struct Fjall {
    /// Declared before the database, so that it is dropped first.
    records: fjall::Keyspace,
    database: fjall::Database,
}

impl Engine for Fjall {
    fn commit(&mut self, group: &[(Key, Value)]) -> Outcome<()> {
        let mut batch = self
            .database
            .batch()
            .durability(Some(fjall::PersistMode::SyncData));
        for (key, value) in group {
            batch.insert(&self.records, &key[..], &value[..]);
        }
        Ok(batch.commit()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        for record in self.records.iter() {
            let (key, value) = record.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

struct Ours(Store);

impl Engine for Ours {
    fn commit(&mut self, group: &[(Key, Value)]) -> Outcome<()> {
        let mut last = Lsn(0);
        for (key, value) in group {
            last = self.0.put(key, value)?;
        }
        Ok(self.0.sync(last)?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        self.0.scan(b"", &mut |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.0.close()?)
    }
}

fn open(args: &Args) -> Outcome<Box<dyn Engine>> {
    let cache = args.cache << 20;
    let ours = |tree| -> Outcome<Box<dyn Engine>> {
        let options = Options {
            cache_bytes: cache,
            durability: Durability::Deferred,
            ..Options::of_tree(tree)?
        };
        // Leaves are at least a third full.
        let leaf = options.page_size as u64 / 3 / (KEY + VALUE) as u64;
        let blocks = required_blocks(&options, args.records / leaf + 1024);
        let device = FileDevice::create_for("treering.db", blocks, FileIo::Direct)?;
        let clock = Arc::new(SystemClock::new());
        Ok(Box::new(Ours(Store::open(
            Arc::new(device),
            clock,
            &options,
        )?)))
    };
    Ok(match args.engine {
        Name::Redb => Box::new(Redb(
            redb::Builder::new()
                .set_cache_size(cache as usize)
                .create("records.redb")?,
        )),
        Name::Sled => Box::new(Sled(
            sled::Config::new()
                .path("sled")
                .cache_capacity(cache)
                .flush_every_ms(None)
                .open()?,
        )),
        Name::Fjall => {
            let database = fjall::Database::builder("fjall").cache_size(cache).open()?;
            let options = || {
                use fjall::config::CompressionPolicy;
                fjall::KeyspaceCreateOptions::default()
                    .max_memtable_size(cache)
                    .data_block_compression_policy(CompressionPolicy::all(
                        fjall::CompressionType::None,
                    ))
            };
            let records = database.keyspace("records", options)?;
            Box::new(Fjall { records, database })
        }
        Name::Btree => ours("btree")?,
        Name::Bf => ours("bf")?,
        Name::Bminus => ours("bminus")?,
    })
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

fn record(number: u64, random: &mut Random) -> (Key, Value) {
    let mut value = [0; VALUE];
    for word in value[..VALUE / 2].chunks_exact_mut(8) {
        word.copy_from_slice(&random.draw().to_le_bytes());
    }
    let mut key = [0; KEY];
    key.copy_from_slice(format!("{number:016}").as_bytes());
    (key, value)
}

/// Tells the drive how much was put so far, and a line if there is one.
fn tell(puts: u64, line: &str) -> Outcome<()> {
    if let Some(path) = std::env::var_os("TREERING_ACKS") {
        let mut acks = OpenOptions::new().append(true).open(path)?;
        let bytes = puts * (KEY + VALUE) as u64;
        acks.write_all(format!("user_bytes {bytes}\n{line}").as_bytes())?;
    }
    Ok(())
}

fn run(args: &Args) -> Outcome<()> {
    let mut engine = open(args)?;
    let mut random = Random(1);
    let mut group = Vec::new();
    for i in 0..args.records {
        let number = u128::from(i) * 2_654_435_761 % u128::from(args.records);
        group.push(record(number as u64, &mut random));
        if group.len() as u64 == LOAD_GROUP || i + 1 == args.records {
            engine.commit(&group)?;
            group.clear();
        }
    }
    tell(args.records, "loaded\n")?;
    for i in 0..args.updates {
        let number = random.draw() % args.records;
        group.push(record(number, &mut random));
        if group.len() as u64 == args.group || i + 1 == args.updates {
            engine.commit(&group)?;
            group.clear();
        }
    }
    tell(args.records + args.updates, "")?;
    // FNV-1a.
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    engine.scan(&mut |key, value| {
        for byte in key.iter().chain(value) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    })?;
    println!("commits {}", args.updates.div_ceil(args.group));
    println!("checksum {sum:016x}");
    engine.close()
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("gallery: {e}");
            ExitCode::FAILURE
        }
    }
}
