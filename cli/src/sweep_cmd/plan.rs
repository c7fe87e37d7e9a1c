//! Which runs a study needs. A run is known by the hash of everything that decides its result:
//!
//! ```text
//! point ──parse──▶ configuration of the replay (flags, profile of the device, defaults)
//! trace file ────▶ length and hash of its bytes
//! program ───────▶ its version and those of the reports
//! ```
//!
//! So `4KiB` and `4096` are one run, a renamed trace has the results of the old name, and a changed
//! device profile is a new run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use treering_sim::replay::{Preload, ReplayConfig, Statistics, Stop, Target, Tree};
use treering_sim::report::{PREDICT_SCHEMA, SCHEMA};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::generated::Placed;
use super::points::Point;
use crate::failure::Failure;
use crate::replay_config;

/// A point with its identity.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) point: Point,
    /// 32 hexadecimal digits.
    pub(super) hash: String,
    /// Why `replay` refuses the point, if it does.
    pub(super) refused: Option<Failure>,
    /// Runs with the same name share the statistics of their trace; `None` without predictions.
    pub(super) statistics: Option<String>,
    pub(super) trace_bytes: u64,
    /// With which others it may share a run of the tree, if with any.
    pub(super) together: Option<Together>,
}

/// What runs have in common that differ in the drive only, so that the tree may run once for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Together {
    /// 32 hexadecimal digits.
    pub(super) tree: String,
    /// The same for drives of any size.
    pub(super) store: String,
    /// The codec of a drive that compresses.
    pub(super) codec: Option<String>,
}

impl Together {
    /// `rest` is what decides the result besides the configuration.
    fn of(config: &ReplayConfig, rest: &str) -> Option<Together> {
        let Tree::Pages(_) = &config.tree else {
            return None;
        };
        let asked = config.target.drive()?;
        // A store that fills another drive is another store. Sizes are rounded by profiles.
        let fitted = |_| [1_000, 100_003, 10_000_019].map(|n| asked.profile.fitted_blocks(n));
        let size = asked.capacity_bytes.ok_or(()).map_err(fitted);
        let codec = match &config.target {
            Target::Csd { profile, .. } => Some(format!("{} {}", profile.codec, profile.level)),
            _ => None,
        };
        let one = ReplayConfig {
            target: Target::builtin("ssd")?,
            daily_bytes: None,
            ..config.clone()
        };
        Some(Together {
            tree: hash(&format!("{rest} {size:?} {one:?}")),
            store: hash(&format!("{rest} {one:?}")),
            codec,
        })
    }
}

/// The runs of a study.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) runs: Vec<Run>,
    /// Number of points that were left out because an earlier one is the same run.
    pub(super) duplicates: usize,
    /// The run of each point, by its place in `runs`.
    pub(super) places: Vec<usize>,
}

/// The content of a file.
#[derive(Clone, Debug)]
struct Content {
    bytes: u64,
    /// Its length and hash.
    name: String,
}

impl Content {
    fn of(path: &Path) -> Result<Content, Failure> {
        let failure = |e| Failure::file(&path.display().to_string(), &e);
        let mut file = File::open(path).map_err(failure)?;
        let (mut hash, mut len) = (Xxh3::new(), 0);
        let mut bytes = vec![0; 1 << 20];
        loop {
            match file.read(&mut bytes).map_err(failure)? {
                0 => break,
                n => {
                    hash.update(&bytes[..n]);
                    len += n as u64;
                }
            }
        }
        Ok(Content {
            bytes: len,
            name: format!("{len}-{:032x}", hash.digest128()),
        })
    }
}

/// Files that were read once, and those that are generated later.
#[derive(Default)]
struct Contents(BTreeMap<PathBuf, Content>, BTreeSet<PathBuf>);

impl Contents {
    fn of(&mut self, path: &Path) -> Result<Content, Failure> {
        if let Some(known) = self.0.get(path) {
            return Ok(known.clone());
        }
        let content = Content::of(path)?;
        self.0.insert(path.to_owned(), content.clone());
        Ok(content)
    }
}

impl Plan {
    /// Identifies all points, and leaves out those that are there twice.
    ///
    /// # Errors
    /// If a trace cannot be read.
    pub(crate) fn of(points: Vec<Point>) -> Result<Plan, Failure> {
        Plan::with(points, &[])
    }

    /// The same with traces that may not be there yet.
    ///
    /// # Errors
    /// If another trace cannot be read.
    pub(super) fn with(points: Vec<Point>, generated: &[Placed]) -> Result<Plan, Failure> {
        let (mut plan, mut contents) = (Plan::default(), Contents::default());
        for trace in generated {
            let content = Content {
                bytes: trace.least_bytes(),
                name: trace.command(),
            };
            contents.0.insert(trace.path.clone(), content);
            contents.1.insert(trace.path.clone());
        }
        let mut seen = BTreeMap::new();
        for point in points {
            let run = Run::of(point, &mut contents)?;
            let next = plan.runs.len();
            let at = *seen.entry(run.hash.clone()).or_insert(next);
            match at == next {
                true => plan.runs.push(run),
                false => plan.duplicates += 1,
            }
            plan.places.push(at);
        }
        Ok(plan)
    }
}

impl Run {
    fn of(point: Point, contents: &mut Contents) -> Result<Run, Failure> {
        let path = Path::new(point.path());
        let trace = contents.of(path)?;
        if !contents.1.contains(path) {
            // Refuses what is no trace before anything is run.
            treering_traces::open(path)?;
        }
        let mut text = format!(
            "{} {SCHEMA} {PREDICT_SCHEMA} {}",
            env!("CARGO_PKG_VERSION"),
            trace.name
        );
        let config = point.parsed().and_then(|args| {
            let config = replay_config::of(&args)?;
            Ok((args.strict, config))
        });
        let (refused, statistics, together) = match config {
            Ok((strict, config)) => {
                let config = stripped(config);
                let preload = match &config.preload {
                    Preload::File(path) => Some(contents.of(path)?),
                    _ => None,
                };
                let loaded = preload.as_ref().map(|content| &content.name);
                let _ = write!(text, " {strict} {loaded:?}");
                let together = Together::of(&config, &text);
                let _ = write!(text, " {config:?}");
                let shared = statistics(&config, &trace, preload.as_ref());
                (None, config.predict.then_some(shared), together)
            }
            Err(failure) => {
                let _ = write!(text, " {:?}", point.settings);
                (Some(failure), None, None)
            }
        };
        Ok(Run {
            point,
            hash: hash(&text),
            refused,
            statistics,
            trace_bytes: trace.bytes,
            together,
        })
    }
}

/// The configuration without what does not decide the result. The content of the trace stands for
/// its path.
fn stripped(config: ReplayConfig) -> ReplayConfig {
    ReplayConfig {
        trace: PathBuf::new(),
        statistics: Statistics::default(),
        stop: Stop::default(),
        ..config
    }
}

/// A name for the statistics that a replay reads from its trace; all that they depend on is in it.
/// If something were missing, `replay` would see that a file does not fit, and replace it.
fn statistics(config: &ReplayConfig, trace: &Content, preload: Option<&Content>) -> String {
    let page = match &config.tree {
        Tree::Pages(options) => options.page_size,
        Tree::Pm(_) | Tree::Direct => 0,
    };
    hash(&format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {page} {}",
        trace.name,
        config.limit,
        config.warmup,
        config.preload,
        preload.map(|content| &content.name),
        config.oversize,
        std::mem::discriminant(&config.tree),
        config.seed,
    ))
}

fn hash(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}
