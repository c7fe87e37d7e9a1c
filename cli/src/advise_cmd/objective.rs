//! What is to be least or most, as a function of a report's figures.
//!
//! Predictions and replays have the same figures at the same paths, so that one function serves
//! both:
//!
//! | objective | value | best |
//! |---|---|---|
//! | wa | `wa.device.total`, or `pm.xbi` | least |
//! | lifetime | years: medium bytes × cycles ÷ (`wa.device.total` × user bytes a year) | most |
//! | latency | mean over the operations of the 99th percentile of their kind | least |
//! | space | `space.physical_bytes` | least |
//! | cost | dollars a year: flash over its lifetime, the cache's memory over five years | least |
//!
//! Without `--daily`, the user of *lifetime* writes the drive's logical capacity each day, as in
//! `lifetime` of a replay. A drive is thrown away after five years at the latest.
//!
//! A prediction has no latency. There, designs are compared by the time that their reads and writes
//! take on flash: 60 µs for each page that is not in memory, and 20 µs for each 4 KiB that the drive
//! writes (600 µs on one of 32 dies). So for *latency* the replays decide.

use serde_json::Value;
use treering_sim::replay::ReplayConfig;

use super::words::{figure, size};
use crate::args::Objective;
use crate::figures;

const DAYS_PER_YEAR: f64 = 365.25;
/// Years after which a drive or memory is thrown away.
const SERVICE_YEARS: f64 = 5.0;
const GIB: f64 = (1u64 << 30) as f64;
/// Time to read a page, and to write 4 KiB, in nanoseconds.
const READ_NS: f64 = 60_000.0;
const WRITE_NS: f64 = 20_000.0;
const KINDS: [&str; 4] = ["get", "put", "delete", "scan"];

/// An objective with what it needs besides the figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) objective: Objective,
    /// Dollars per GiB of flash, and of memory.
    pub(super) prices: (f64, f64),
}

impl Goal {
    /// What the value is.
    pub(super) fn unit(&self) -> &'static str {
        match self.objective {
            Objective::Wa => "bytes written to the medium per user byte",
            Objective::Lifetime => "years until the drive is worn out",
            Objective::Latency => "nanoseconds of the 99th percentile",
            Objective::Space => "bytes of the store",
            Objective::Cost => "dollars a year",
        }
    }

    /// The value for people.
    pub(super) fn said(&self, value: f64) -> String {
        match self.objective {
            Objective::Wa => figure(value),
            Objective::Lifetime => format!("{} years", figure(value)),
            Objective::Latency => format!("{} µs", figure(value / 1e3)),
            Objective::Space => size(value),
            Objective::Cost => format!("${} a year", figure(value)),
        }
    }

    /// What is done with the value.
    pub(super) fn verb(&self) -> &'static str {
        match self.objective {
            Objective::Wa => "least write amplification",
            Objective::Lifetime => "longest lifetime",
            Objective::Latency => "least latency",
            Objective::Space => "least space",
            Objective::Cost => "least cost",
        }
    }

    /// Whether runs must have queues.
    pub(super) fn is_timed(&self) -> bool {
        self.objective == Objective::Latency
    }

    /// Whether a prediction's interval holds for the value. There is none for a latency, and space
    /// is an estimate.
    pub(super) fn is_predicted(&self) -> bool {
        !matches!(self.objective, Objective::Latency | Objective::Space)
    }

    /// Whether one value is better than another.
    pub(super) fn is_better(&self, a: f64, b: f64) -> bool {
        match self.objective {
            Objective::Lifetime => a > b,
            _ => a < b,
        }
    }

    /// How much worse a value is than the best, as a share of the best.
    pub(super) fn behind(&self, value: f64, best: f64) -> f64 {
        match self.objective {
            _ if value == best => 0.0,
            Objective::Lifetime => best / value - 1.0,
            _ => value / best - 1.0,
        }
    }

    /// The value of a replay's report or of a prediction, which has its figures at the same
    /// paths. `None` if figures are missing.
    pub(super) fn value(&self, report: &Value, config: &ReplayConfig) -> Option<f64> {
        match self.objective {
            Objective::Wa => written(report),
            Objective::Lifetime => years(report, config),
            Objective::Latency => latency(report).or_else(|| busy(report)),
            Objective::Space => number(report, "space.physical_bytes"),
            Objective::Cost => self.cost(report, config),
        }
    }

    fn cost(&self, report: &Value, config: &ReplayConfig) -> Option<f64> {
        let (flash, memory) = self.prices;
        let drive = flash * medium(report)? / GIB / years(report, config)?.min(SERVICE_YEARS);
        let cache = number(report, "options.cache").unwrap_or(0.0);
        Some(drive + memory * cache / GIB / SERVICE_YEARS)
    }
}

/// A number of a report.
pub(super) fn number(report: &Value, path: &str) -> Option<f64> {
    figures::at(report, path)?.as_f64()
}

/// Bytes written to the medium per user byte.
fn written(report: &Value) -> Option<f64> {
    number(report, "wa.device.total").or_else(|| number(report, "pm.xbi"))
}

/// Bytes of the medium.
fn medium(report: &Value) -> Option<f64> {
    let spare = number(report, "options.op").unwrap_or(0.0);
    Some(number(report, "options.capacity")? * (1.0 + spare))
}

fn years(report: &Value, config: &ReplayConfig) -> Option<f64> {
    let mut target = config.target.clone();
    let cycles = f64::from(target.flash_mut()?.pe_limit?);
    let daily = match config.daily_bytes {
        Some(bytes) => bytes as f64,
        None => number(report, "options.capacity")?,
    };
    let a_year = written(report)? * daily * DAYS_PER_YEAR;
    Some(medium(report)? * cycles / a_year).filter(|years| years.is_finite())
}

/// The mean over the operations of the 99th percentile of their kind.
fn latency(report: &Value) -> Option<f64> {
    let of = |kind: &str| {
        let p99 = number(report, &format!("latency_ns.{kind}.p99"))?;
        Some((number(report, &format!("latency_ns.{kind}.count"))?, p99))
    };
    mean(KINDS.into_iter().filter_map(of))
}

fn mean(weighted: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (count, sum) = weighted.fold((0.0, 0.0), |(n, sum), (count, value)| {
        (n + count, sum + count * value)
    });
    (count > 0.0).then(|| sum / count)
}

/// The time that an operation keeps the drive busy, by a prediction.
fn busy(report: &Value) -> Option<f64> {
    let operations = KINDS
        .into_iter()
        .filter_map(|kind| number(report, &format!("ops.{kind}")));
    let operations: f64 = operations.sum();
    let misses = 1.0 - number(report, "cache.hit_ratio").unwrap_or(0.0);
    let blocks = written(report)? * number(report, "user_bytes")? / 4096.0;
    (operations > 0.0).then(|| misses * READ_NS + blocks / operations * WRITE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use treering_sim::replay::Target;

    fn goal(objective: Objective) -> Goal {
        Goal {
            objective,
            prices: (1.0, 10.0),
        }
    }

    fn config() -> ReplayConfig {
        let target = Target::builtin("ssd").expect("a built-in drive");
        ReplayConfig::new("a.trz".into(), target)
    }

    #[test]
    fn each_objective_is_computed_from_the_figures() {
        let gib = 1u64 << 30;
        let report = json!({
            "wa": {"device": {"total": 4.0}},
            "options": {"capacity": gib, "op": 0.5, "cache": gib},
            "space": {"physical_bytes": 7},
            "latency_ns": {"get": {"count": 3, "p99": 10}, "put": {"count": 1, "p99": 50}},
        });
        let value = |objective| goal(objective).value(&report, &config()).expect("a value");
        assert_eq!(value(Objective::Wa), 4.0);
        assert_eq!(value(Objective::Space), 7.0);
        assert_eq!(value(Objective::Latency), 20.0);
        let years = 1.5 * 3000.0 / 4.0 / 365.25;
        assert!((value(Objective::Lifetime) - years).abs() < 1e-9);
        let cost = 1.5 / years + 10.0 / 5.0;
        assert!((value(Objective::Cost) - cost).abs() < 1e-9);
        let lifetime = goal(Objective::Lifetime);
        assert!(lifetime.is_better(3.0, 2.0) && (lifetime.behind(2.0, 3.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_is_missing_has_no_value() {
        let report = json!({"wa": null});
        for objective in [Objective::Wa, Objective::Lifetime, Objective::Cost] {
            assert_eq!(goal(objective).value(&report, &config()), None);
        }
    }
}
