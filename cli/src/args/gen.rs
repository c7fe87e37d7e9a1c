//! Flags of `treering gen`.

use std::path::PathBuf;

use clap::Args;

use crate::units;

/// Flags of `treering gen`. The generator checks whether they fit together.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering gen ycsb-a --records 1M --ops 5M -o a.trz\n  \
    treering gen zipf --theta 0.8 --writes 1 --value-size 16-400 --records 500k -o zipf.trz\n  \
    treering gen log --records 100k --ops 1M --value-size 500 -o log.trz\n  \
    treering gen mixgraph --records 50M --no-load --clients 16 -o fb.trz\n\n\
    Each workload first loads its records, marked as warm-up, unless --no-load is given; \
    the workload `load` consists of only this load, not marked as warm-up.")]
pub(crate) struct GenArgs {
    /// Workload: ycsb-a to ycsb-f, uniform, zipf, latest, hotspot, shifting (a hotspot that
    /// moves), mixgraph, load, sequential or log (append, trim the oldest)
    pub(crate) workload: String,
    /// Trace file to write, .trz or .jsonl
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Number of records to load first
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) records: u64,
    /// Number of operations after the load [default: the number of records]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) ops: Option<u64>,
    /// Share of puts among the operations [default: 0.5; latest 0.05,
    /// sequential 1, mixgraph 0.14]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) writes: Option<f64>,
    /// Share of deletes among the operations [default: 0; log 0.5]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) deletes: Option<f64>,
    /// Share of scans among the operations [default: 0; mixgraph 0.01]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) scans: Option<f64>,
    /// Length of the longest scan, in records [default: 100]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) max_scan: Option<u32>,
    /// Zipf exponent, 0 to 1.5 [default: 0.99]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) theta: Option<f64>,
    /// hotspot, shifting: share of operations on the hot records [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) hot_ops: Option<f64>,
    /// hotspot, shifting: share of records that are hot [default: 0.2]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) hot_keys: Option<f64>,
    /// shifting: number of operations after which all hot records are others [default: a tenth of
    /// the operations]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) shift_every: Option<u64>,
    /// Order in which records are loaded: random or sorted [default: random; log sorted]
    #[arg(long)]
    pub(crate) order: Option<String>,
    /// Key length in bytes [default: 16; mixgraph 48]
    #[arg(long, value_name = "N", value_parser = units::small_size)]
    pub(crate) key_size: Option<u32>,
    /// Share of the numbers from the smallest to the largest key that are keys: 1 is 0, 1, 2 and
    /// so on [default: keys are spread over all numbers of their length]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) density: Option<f64>,
    /// Value length in bytes, or MIN-MAX for uniformly distributed lengths [default: 100]
    #[arg(long, value_name = "N|MIN-MAX", value_parser = value_size)]
    pub(crate) value_size: Option<treering_traces::generate::ValueSize>,
    /// Share of a value's bytes that are zero
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = units::share)]
    pub(crate) zeros: f64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Do not load the records first
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Number of clients that share the operations
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::small_count)]
    pub(crate) clients: u32,
    #[command(flatten, next_help_heading = "Mixgraph, by db_bench's names")]
    pub(crate) mixgraph: MixgraphArgs,
}

/// Distributions of `mixgraph`.
#[derive(Debug, Args)]
pub(crate) struct MixgraphArgs {
    /// Access weights of the key ranges, a·exp(b·x) + c·exp(d·x)
    #[arg(long, value_name = "A,B,C,D", allow_hyphen_values = true, value_parser = four_numbers)]
    pub(crate) keyrange_dist: Option<[f64; 4]>,
    /// Number of key ranges
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) keyrange_num: Option<u64>,
    /// Power law of the keys within a range
    #[arg(long, value_name = "A,B", allow_hyphen_values = true, value_parser = two_numbers)]
    pub(crate) key_dist: Option<[f64; 2]>,
    /// Generalized Pareto distribution of value lengths
    #[arg(long, value_name = "THETA,K,SIGMA", allow_hyphen_values = true)]
    pub(crate) value_pareto: Option<String>,
    /// Maximum value length; longer ones wrap around
    #[arg(long, value_name = "N", value_parser = units::small_size)]
    pub(crate) mix_max_value_size: Option<u32>,
    /// Generalized Pareto distribution of scan lengths
    #[arg(long, value_name = "THETA,K,SIGMA", allow_hyphen_values = true)]
    pub(crate) iter_pareto: Option<String>,
    /// Maximum scan length; longer ones wrap around
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) mix_max_scan_len: Option<u32>,
}

fn value_size(text: &str) -> Result<treering_traces::generate::ValueSize, String> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let bytes = |part: &str| {
        units::small_size(part).map_err(|_| "expected bytes as N or MIN-MAX".to_string())
    };
    let size = treering_traces::generate::ValueSize {
        min: bytes(min)?,
        max: bytes(max)?,
    };
    if size.min > size.max {
        return Err("expected MIN-MAX with a minimum not above the maximum".into());
    }
    Ok(size)
}

fn numbers<const N: usize>(text: &str) -> Result<[f64; N], String> {
    let parsed: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    parsed
        .ok()
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("expected {N} numbers separated by commas"))
}

fn four_numbers(text: &str) -> Result<[f64; 4], String> {
    numbers(text)
}

fn two_numbers(text: &str) -> Result<[f64; 2], String> {
    numbers(text)
}
