//! The parameters of a generator, and their defaults.

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
    /// All records are equally popular.
    Uniform,
    /// Zipf popularity, scrambled over the key space.
    Zipf,
    /// Zipf popularity by age, newest record first. Writes are inserts.
    Latest,
    /// A given share of the operations goes to a given share of the records.
    Hotspot,
    /// RocksDB's model of Facebook's social graph.
    Mixgraph,
    /// The load only, not marked as warm-up.
    Load,
    /// Operations visit the keys in ascending order, over and over.
    Sequential,
    /// A hotspot whose hot records become cold one after the other, while others become hot.
    Shifting,
    /// A log: puts append records, deletes remove the oldest one, and gets read any that is left.
    Log,
}

impl Workload {
    /// All workloads, with their names on the command line.
    pub const ALL: [(Workload, &'static str); 15] = [
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
        (Workload::Shifting, "shifting"),
        (Workload::Log, "log"),
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(workload, _)| *workload == self)
            .map_or("?", |(_, name)| name)
    }

    /// Whether the workload's definition fixes the shares of operations.
    pub(super) fn has_fixed_mix(self) -> bool {
        use Workload::*;
        matches!(self, YcsbA | YcsbB | YcsbC | YcsbD | YcsbE | YcsbF | Load)
    }

    pub(super) fn has_theta(self) -> bool {
        use Workload::*;
        !matches!(
            self,
            Uniform | Hotspot | Mixgraph | Load | Sequential | Shifting | Log
        )
    }

    pub(super) fn has_hot_records(self) -> bool {
        matches!(self, Workload::Hotspot | Workload::Shifting)
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

/// The order in which records are loaded, which also relates a record's age to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Random order. Records inserted later fall anywhere between the others.
    #[default]
    Random,
    /// Ascending by key. Records inserted later have the largest keys.
    Sorted,
}

impl Order {
    /// Returns the name on the command line.
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

/// Value lengths: uniform between two bounds. Each record keeps its length when it is updated.
///
/// ```
/// use treering_traces::generate::ValueSize;
///
/// assert_eq!("100".parse::<ValueSize>()?, ValueSize::fixed(100));
/// assert_eq!("16-400".parse::<ValueSize>()?, ValueSize { min: 16, max: 400 });
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSize {
    /// Shortest value in bytes.
    pub min: u32,
    /// Longest value in bytes (inclusive).
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

/// The parameters of a generated trace.
///
/// `None` means the workload's default. A parameter that the workload does not use is refused, not
/// ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct GenParams {
    /// The kind of trace.
    pub workload: Workload,
    /// Number of records that are loaded first and that the operations work on.
    pub records: u64,
    /// Number of operations after the load. Default: the number of records. `load` has none.
    pub ops: Option<u64>,
    /// Share of puts (`latest` and `log`: of inserts), 0 to 1. Default: 0.5; `latest` 0.05,
    /// `sequential` 1, `mixgraph` 0.14.
    pub writes: Option<f64>,
    /// Share of deletes, 0 to 1. Default: 0; `log` 0.5.
    pub deletes: Option<f64>,
    /// Share of scans, 0 to 1. Default: 0; `mixgraph` 0.01. The remaining operations are gets.
    pub scans: Option<f64>,
    /// Longest scan in records; lengths are uniform from 1. Default: 100 (YCSB E).
    pub max_scan: Option<u32>,
    /// Zipf exponent, 0 to 1.5. Default: 0.99 (YCSB).
    pub theta: Option<f64>,
    /// Share of operations on the hot records of `hotspot` and `shifting`. Default: 0.8 (YCSB).
    pub hot_ops: Option<f64>,
    /// Share of records that are hot in `hotspot` and `shifting`. Default: 0.2 (YCSB).
    pub hot_keys: Option<f64>,
    /// `shifting`: number of operations after which all hot records are others. Default: a tenth
    /// of the operations.
    pub shift_every: Option<u64>,
    /// Load order. Default: random; `log` sorted.
    pub order: Order,
    /// Key length in bytes. Default: 16; `mixgraph` 48.
    pub key_size: Option<u32>,
    /// Share of the numbers between the smallest and the largest key that are keys: 1, 1/2, 1/3 and
    /// so on, rounded up to one of these. Default: keys are spread over all numbers of their length.
    pub density: Option<f64>,
    /// Value lengths. Default: 100; `mixgraph` its Pareto distribution.
    pub value_size: Option<ValueSize>,
    /// Share of a value's bytes that are zero, 0 to 1. Default: 0.5 (B⁻-tree §4.1).
    pub zeros: f64,
    /// The seed of all random choices.
    pub seed: u64,
    /// Leaves out the load. The operations then meet an empty store, or one loaded from another
    /// trace with the same records, ops, key size and seed.
    pub no_load: bool,
    /// Number of clients. They take turns to issue the operations.
    pub clients: u32,
    /// The distributions of `mixgraph`.
    pub mixgraph: MixgraphParams,
}

impl GenParams {
    /// Default value length (db_bench's `value_size`).
    pub(crate) const VALUE_SIZE: ValueSize = ValueSize::fixed(100);
    /// Default key length (db_bench's `key_size`).
    pub(crate) const KEY_SIZE: u32 = 16;
    /// The most records that a trace may have.
    pub(crate) const MAX_RECORDS: u64 = 1 << 40;
    /// Longest key in bytes.
    pub(crate) const MAX_KEY_SIZE: u32 = 4096;
    /// Longest value in bytes.
    pub(crate) const MAX_VALUE_SIZE: u32 = 1 << 30;
    /// The largest Zipf exponent.
    pub(crate) const MAX_THETA: f64 = 1.5;

    /// Returns the defaults for a workload over `records` records.
    ///
    /// ```
    /// use treering_traces::generate::{GenParams, Workload};
    ///
    /// let defaults = GenParams::new(Workload::Zipf, 1000);
    /// let params = GenParams { theta: Some(0.8), seed: 7, ..defaults };
    /// assert_eq!(params.operations(), 1000);
    /// assert!(params.command().starts_with("gen zipf --records 1000 --theta 0.8"));
    ///
    /// let impossible = GenParams { theta: Some(9.0), ..params };
    /// let error = impossible.check().unwrap_err().to_string();
    /// assert_eq!(error, "theta: expected 0 to 1.5, found 9");
    /// ```
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
            shift_every: None,
            order: match workload {
                Workload::Log => Order::Sorted,
                _ => Order::default(),
            },
            key_size: None,
            density: None,
            value_size: None,
            zeros: 0.5,
            seed: 0,
            no_load: false,
            clients: 1,
            mixgraph: MixgraphParams::default(),
        }
    }

    /// Returns the number of operations after the load.
    pub fn operations(&self) -> u64 {
        match self.workload {
            Workload::Load => 0,
            _ => self.ops.unwrap_or(self.records),
        }
    }

    /// Returns the Zipf exponent: the one given, or the default.
    pub fn exponent(&self) -> f64 {
        self.theta.unwrap_or(0.99)
    }

    /// Returns the key length: the one given, or the default.
    pub fn key_bytes(&self) -> u32 {
        self.key_size.unwrap_or(match self.workload {
            Workload::Mixgraph => 48,
            _ => Self::KEY_SIZE,
        })
    }

    /// Returns after how many operations all hot records of `shifting` are others.
    pub(crate) fn shift_operations(&self) -> u64 {
        self.shift_every.unwrap_or((self.operations() / 10).max(1))
    }

    /// Returns the shares of puts, deletes and scans of a workload without a fixed mix.
    pub(crate) fn shares(&self) -> [f64; 3] {
        let (writes, scans) = match self.workload {
            Workload::Latest => (0.05, 0.0),
            Workload::Sequential => (1.0, 0.0),
            Workload::Mixgraph => (MixgraphParams::PUTS, MixgraphParams::SEEKS),
            _ => (0.5, 0.0),
        };
        // A given share of deletes or scans reduces the default share of puts where there is no
        // other room.
        let deletes = self.deletes.unwrap_or(match self.workload {
            Workload::Log => (1.0 - self.writes.unwrap_or(0.5)).min(0.5),
            _ => 0.0,
        });
        let scans = self.scans.unwrap_or(scans);
        let room = (1.0 - deletes - scans).max(0.0);
        [self.writes.unwrap_or(writes.min(room)), deletes, scans]
    }

    /// Returns the command line that generates this trace, for [`crate::Header::source`].
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
        flag("shift-every", self.shift_every.map(|n| n.to_string()));
        flag("order", Some(self.order.name().to_string()));
        flag("key-size", Some(self.key_bytes().to_string()));
        flag("density", share(self.density));
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
