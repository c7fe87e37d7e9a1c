//! What a generator is asked for, its defaults, and the sentences that refuse the impossible.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::mixgraph::MixgraphParams;
use crate::TraceError;

/// The kinds of generated traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// YCSB A: half reads, half updates, scrambled Zipf.
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates, scrambled Zipf.
    YcsbB,
    /// YCSB C: reads only, scrambled Zipf.
    YcsbC,
    /// YCSB D: 95 % reads skewed towards the newest records, 5 % inserts.
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 records, 5 % inserts, scrambled Zipf.
    YcsbE,
    /// YCSB F: half reads, half read-modify-writes, scrambled Zipf.
    YcsbF,
    /// Every record equally likely.
    Uniform,
    /// Zipf popularity, scrambled over the key space.
    Zipf,
    /// Zipf popularity by age, the newest record first; writes are inserts.
    Latest,
    /// A share of the operations on a share of the records.
    Hotspot,
    /// RocksDB's model of Facebook's social graph.
    Mixgraph,
    /// Only the load, not marked as warm-up.
    Load,
    /// Operations walk the keys in ascending order, again and again.
    Sequential,
}

impl Workload {
    /// All workloads with their names on the command line.
    pub const ALL: [(Workload, &'static str); 13] = [
        (Workload::YcsbA, "ycsb-a"),
        (Workload::YcsbB, "ycsb-b"),
        (Workload::YcsbC, "ycsb-c"),
        (Workload::YcsbD, "ycsb-d"),
        (Workload::YcsbE, "ycsb-e"),
        (Workload::YcsbF, "ycsb-f"),
        (Workload::Uniform, "uniform"),
        (Workload::Zipf, "zipf"),
        (Workload::Latest, "latest"),
        (Workload::Hotspot, "hotspot"),
        (Workload::Mixgraph, "mixgraph"),
        (Workload::Load, "load"),
        (Workload::Sequential, "sequential"),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(workload, _)| *workload == self)
            .map_or("?", |(_, name)| name)
    }

    /// Whether the shares of operations are part of the workload's definition.
    pub(super) fn has_fixed_mix(self) -> bool {
        use Workload::*;
        matches!(self, YcsbA | YcsbB | YcsbC | YcsbD | YcsbE | YcsbF | Load)
    }

    pub(super) fn has_theta(self) -> bool {
        use Workload::*;
        !matches!(self, Uniform | Hotspot | Mixgraph | Load | Sequential)
    }
}

impl FromStr for Workload {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(workload, _)| *workload)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
                TraceError::parameter(
                    "workload",
                    format!("expected one of {}, found {text}", names.join(", ")),
                )
            })
    }
}

/// The order in which records are loaded, and how age relates to key order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In random order; records inserted later fall anywhere between the others.
    #[default]
    Random,
    /// By ascending key; records inserted later have the largest keys.
    Sorted,
}

impl Order {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Order::Random => "random",
            Order::Sorted => "sorted",
        }
    }
}

impl FromStr for Order {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        match text {
            "random" => Ok(Order::Random),
            "sorted" => Ok(Order::Sorted),
            _ => Err(TraceError::parameter(
                "order",
                format!("expected random or sorted, found {text}"),
            )),
        }
    }
}

/// Value lengths: uniform between two bounds, which may be equal; every record keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSize {
    /// Shortest value in bytes.
    pub min: u32,
    /// Longest value in bytes, included.
    pub max: u32,
}

impl ValueSize {
    /// Every value is `len` bytes long.
    pub const fn fixed(len: u32) -> Self {
        ValueSize { min: len, max: len }
    }
}

impl fmt::Display for ValueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{}-{}", self.min, self.max)
        }
    }
}

/// `100` or `16-400`, in bytes.
impl FromStr for ValueSize {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let number = |part: &str| {
            part.trim().parse::<u32>().map_err(|_| {
                TraceError::parameter(
                    "value-size",
                    format!("expected bytes as N or MIN-MAX, found {text}"),
                )
            })
        };
        let size = match text.split_once('-') {
            Some((min, max)) => ValueSize {
                min: number(min)?,
                max: number(max)?,
            },
            None => ValueSize::fixed(number(text)?),
        };
        size.check()?;
        Ok(size)
    }
}

impl ValueSize {
    pub(super) fn check(&self) -> Result<(), TraceError> {
        if self.min > self.max {
            return Err(TraceError::parameter(
                "value-size",
                format!(
                    "the minimum must not exceed the maximum, found {}-{}",
                    self.min, self.max
                ),
            ));
        }
        if self.max > GenParams::MAX_VALUE_SIZE {
            return Err(TraceError::parameter(
                "value-size",
                format!(
                    "at most {} bytes, found {}",
                    GenParams::MAX_VALUE_SIZE,
                    self.max
                ),
            ));
        }
        Ok(())
    }
}

/// A generator's parameters. `None` means the workload's default; a parameter that the workload has no use for is refused
/// rather than ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct GenParams {
    /// Which trace.
    pub workload: Workload,
    /// Records loaded first, and on which the operations work.
    pub records: u64,
    /// Operations after the load; default: as many as records. `load` takes none.
    pub ops: Option<u64>,
    /// Share of puts (`latest`: of inserts), 0 to 1; default 0.5, `latest` 0.05, `sequential` 1, `mixgraph` 0.14.
    pub writes: Option<f64>,
    /// Share of deletes, 0 to 1; default 0.
    pub deletes: Option<f64>,
    /// Share of scans, 0 to 1; default 0, `mixgraph` 0.01. What remains are gets.
    pub scans: Option<f64>,
    /// Longest scan in records, lengths being uniform from 1; default 100 (YCSB E).
    pub max_scan: Option<u32>,
    /// Zipf exponent, 0 to 1.5; default 0.99 (YCSB).
    pub theta: Option<f64>,
    /// Share of operations that go to the hot records of `hotspot`; default 0.8 (YCSB).
    pub hot_ops: Option<f64>,
    /// Share of records that are hot in `hotspot`; default 0.2 (YCSB).
    pub hot_keys: Option<f64>,
    /// Load order.
    pub order: Order,
    /// Key length in bytes; default 16, `mixgraph` 48.
    pub key_size: Option<u32>,
    /// Value lengths; default 100, `mixgraph` its Pareto law.
    pub value_size: Option<ValueSize>,
    /// Share of a value's bytes that are zero, 0 to 1; default 0.5 (B⁻-tree §4.1).
    pub zeros: f64,
    /// Decides everything random.
    pub seed: u64,
    /// Leaves the load out: the operations meet an empty store or one loaded by another trace with the same
    /// records, ops, key size and seed.
    pub no_load: bool,
    /// Clients among which the operations are dealt out in turn.
    pub clients: u32,
    /// The laws of `mixgraph`.
    pub mixgraph: MixgraphParams,
}

impl GenParams {
    /// Value length where nothing else is said (db_bench's `value_size`).
    pub const VALUE_SIZE: ValueSize = ValueSize::fixed(100);
    /// Key length where nothing else is said (db_bench's `key_size`).
    pub const KEY_SIZE: u32 = 16;
    /// Most records that a trace may have.
    pub const MAX_RECORDS: u64 = 1 << 40;
    /// Longest key in bytes.
    pub const MAX_KEY_SIZE: u32 = 4096;
    /// Longest value in bytes.
    pub const MAX_VALUE_SIZE: u32 = 1 << 30;
    /// The largest Zipf exponent.
    pub const MAX_THETA: f64 = 1.5;

    /// Defaults for a workload over so many records.
    pub fn new(workload: Workload, records: u64) -> Self {
        GenParams {
            workload,
            records,
            ops: None,
            writes: None,
            deletes: None,
            scans: None,
            max_scan: None,
            theta: None,
            hot_ops: None,
            hot_keys: None,
            order: Order::default(),
            key_size: None,
            value_size: None,
            zeros: 0.5,
            seed: 0,
            no_load: false,
            clients: 1,
            mixgraph: MixgraphParams::default(),
        }
    }

    /// Operations after the load.
    pub fn operations(&self) -> u64 {
        match self.workload {
            Workload::Load => 0,
            _ => self.ops.unwrap_or(self.records),
        }
    }

    /// The Zipf exponent in force.
    pub fn exponent(&self) -> f64 {
        self.theta.unwrap_or(0.99)
    }

    /// The key length in force.
    pub fn key_bytes(&self) -> u32 {
        self.key_size.unwrap_or(match self.workload {
            Workload::Mixgraph => 48,
            _ => Self::KEY_SIZE,
        })
    }

    /// Shares of puts, deletes and scans of a workload without a fixed mix.
    pub(crate) fn shares(&self) -> [f64; 3] {
        let (writes, scans) = match self.workload {
            Workload::Latest => (0.05, 0.0),
            Workload::Sequential => (1.0, 0.0),
            Workload::Mixgraph => (MixgraphParams::PUTS, MixgraphParams::SEEKS),
            _ => (0.5, 0.0),
        };
        // An explicit share of deletes or scans takes from the default share of puts, if there is no room else.
        let deletes = self.deletes.unwrap_or(0.0);
        let scans = self.scans.unwrap_or(scans);
        let room = (1.0 - deletes - scans).max(0.0);
        [self.writes.unwrap_or(writes.min(room)), deletes, scans]
    }

    /// The command line that makes this trace, for [`crate::Header::source`].
    pub fn command(&self) -> String {
        let mut line = format!("gen {} --records {}", self.workload.name(), self.records);
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(line, " --{name} {value}");
            }
        };
        let share = |share: Option<f64>| share.map(|share| share.to_string());
        flag("ops", self.ops.map(|ops| ops.to_string()));
        flag("writes", share(self.writes));
        flag("deletes", share(self.deletes));
        flag("scans", share(self.scans));
        flag("max-scan", self.max_scan.map(|len| len.to_string()));
        flag("theta", share(self.theta));
        flag("hot-ops", share(self.hot_ops));
        flag("hot-keys", share(self.hot_keys));
        flag("order", Some(self.order.name().to_string()));
        flag("key-size", Some(self.key_bytes().to_string()));
        match (self.value_size, self.workload) {
            (None, Workload::Mixgraph) => {}
            (size, _) => flag(
                "value-size",
                Some(size.unwrap_or(Self::VALUE_SIZE).to_string()),
            ),
        }
        flag("zeros", Some(self.zeros.to_string()));
        flag(
            "clients",
            (self.clients > 1).then(|| self.clients.to_string()),
        );
        flag("seed", Some(self.seed.to_string()));
        if self.no_load {
            line.push_str(" --no-load");
        }
        if self.workload == Workload::Mixgraph {
            line.push_str(&self.mixgraph.flags());
        }
        line
    }
}
