//! One replay: a tree, records loaded as warm-up, and the operations after them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::{CclOptions, PmTreeKind};
use treering_sim::pm;
use treering_sim::replay::{ReplayConfig, ReplayError, Target, Tree, run};
use treering_sim::report::{PmReport, ReplayReport};
use treering_traces::OpKind;

use crate::trace::Trace;

/// Seed of everything random.
const SEED: u64 = 0;

/// The operations after the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// New keys in random order (CCL-BTree §5.2, §5.3).
    Inserts,
    /// Uniform updates of keys.
    Uniform,
    /// Updates of keys by Zipf's law with this exponent (CCL-BTree §5.1: 0.9).
    Zipf(f64),
    /// Uniform searches for keys (CCL-BTree §5.3).
    Searches,
    /// Half inserts, half Zipf updates of the loaded keys.
    GrowingZipf(f64),
}

impl Work {
    pub(crate) fn name(self) -> String {
        match self {
            Work::Inserts => "inserts".into(),
            Work::Uniform => "uniform updates".into(),
            Work::Searches => "searches".into(),
            Work::Zipf(theta) => format!("Zipf {theta} updates"),
            Work::GrowingZipf(theta) => format!("half inserts, half Zipf {theta} updates"),
        }
    }
}

/// A trace of `loaded` records and then `ops` operations.
pub(crate) fn trace(loaded: u64, ops: u64, work: Work) -> Result<Trace, ReplayError> {
    let mut draws = Draws::new(loaded, work);
    let records = (0..loaded).chain((0..ops).map(|i| draws.key(loaded, i)));
    // Odd multiples of the number are distinct and in no order.
    let keys = records.map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let kind = |at: usize| match work == Work::Searches && at as u64 >= loaded {
        true => OpKind::Get,
        false => OpKind::Put,
    };
    let all = keys.enumerate().map(|(at, key)| (kind(at), key));
    Trace::of(&work.name(), (loaded + ops, loaded), all)
}

/// Draws the record of the next operation.
struct Draws {
    work: Work,
    rng: StdRng,
    /// Cumulative weights of ranks.
    weights: Vec<f64>,
}

impl Draws {
    fn new(records: u64, work: Work) -> Draws {
        let mut sum = 0.0;
        let weights = match work {
            Work::Inserts | Work::Uniform | Work::Searches => Vec::new(),
            Work::Zipf(theta) | Work::GrowingZipf(theta) => (1..=records)
                .map(|rank| {
                    sum += (rank as f64).powf(-theta);
                    sum
                })
                .collect(),
        };
        Draws {
            work,
            rng: StdRng::seed_from_u64(SEED),
            weights,
        }
    }

    fn key(&mut self, loaded: u64, i: u64) -> u64 {
        match self.work {
            Work::Inserts => loaded + i,
            Work::GrowingZipf(_) if i.is_multiple_of(2) => loaded + i / 2,
            Work::Uniform | Work::Searches => self.rng.random_range(0..loaded),
            Work::Zipf(_) | Work::GrowingZipf(_) => {
                let all = self.weights.last().copied().unwrap_or_default();
                let at = self.rng.random::<f64>() * all;
                self.weights.partition_point(|sum| *sum < at) as u64
            }
        }
    }
}

/// A CCL-BTree with N_batch slots per buffer node.
pub(crate) fn ccl(batch: usize) -> PmTreeKind {
    PmTreeKind::Ccl(CclOptions {
        batch,
        ..CclOptions::default()
    })
}

/// Replays the trace on the calibrated device. `set` can change the configuration.
pub(crate) fn replay(
    trace: &Trace,
    tree: PmTreeKind,
    set: impl FnOnce(&mut ReplayConfig),
) -> Result<ReplayReport, ReplayError> {
    let (name, profile) = pm::builtin("pm").expect("it is built in");
    let target = Target::pm(profile, name);
    let mut config = ReplayConfig::new(trace.path().to_path_buf(), target);
    config.tree = Tree::pm(tree);
    set(&mut config);
    run(&config, &mut |_| {})
}

/// The persistent memory part of the report.
pub(crate) fn pm_of(report: &ReplayReport) -> &PmReport {
    report.pm.as_ref().expect("it ran on persistent memory")
}

/// Relative saving, as a share.
pub(crate) fn less(new: f64, old: f64) -> f64 {
    1.0 - new / old
}
