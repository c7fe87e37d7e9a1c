//! The lifetime of a drive at a given daily write volume.
//!
//! ```text
//! endurance   = bytes of the medium × program/erase cycles      total bytes that can be programmed
//! host bytes  = endurance ÷ (medium bytes over host bytes)      by the drive's write amplification
//! user bytes  = host bytes ÷ (host bytes over user bytes)       by the tree's write amplification
//! years       = user bytes ÷ user bytes per day ÷ 365.25
//! ```
//!
//! Wear levelling is assumed to be perfect: all blocks reach their limit at the same time.

use serde::Serialize;

use super::numbers::{bytes, duration};

const DAYS_PER_YEAR: f64 = 365.25;
const NS_PER_DAY: f64 = 86_400e9;

/// Wear of the drive, and its remaining lifetime at a daily write volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LifetimeReport {
    /// Erases in the measured part; `null` on persistent memory.
    pub erases: Option<u64>,
    /// Mean erase count of a block over the whole run; `null` on persistent memory.
    pub mean_erases: Option<f64>,
    /// Largest erase count of a block; `null` on persistent memory.
    pub max_erases: Option<u32>,
    /// Program/erase cycles that a block endures, or writes that a line of persistent memory
    /// endures; `null` if the profile does not say.
    pub pe_limit_cycles: Option<f64>,
    /// Host bytes until the P/E limit at the measured WA; `null` without a limit or without writes.
    pub host_bytes: Option<f64>,
    /// Drive writes (writes of the whole capacity) until the P/E limit.
    pub drive_writes: Option<f64>,
    /// User bytes until the P/E limit.
    pub user_bytes: Option<f64>,
    /// Bytes that the user is assumed to write per day.
    pub user_bytes_per_day: f64,
    /// The source of the daily volume.
    pub user_bytes_per_day_from: DailyFrom,
    /// Drive writes per day (DWPD) at that volume; `null` if nothing was measured.
    pub drive_writes_per_day: Option<f64>,
    /// Years until the P/E limit at that volume; `null` without a limit or without writes.
    pub years_until_pe_limit: Option<f64>,
}

/// The source of the daily volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "source")]
pub enum DailyFrom {
    /// `--daily`.
    Flag,
    /// The measured operations of the trace, divided by the time between the first and the last.
    Trace {
        /// That time, in nanoseconds.
        span_ns: u64,
    },
    /// The trace has no times, so the user is assumed to write the drive's logical capacity daily.
    Capacity,
}

/// Bytes that a user is assumed to write per day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daily {
    bytes: f64,
    from: DailyFrom,
}

impl Daily {
    /// The volume that was requested; else the one that follows from the trace's times; else the
    /// drive's logical capacity, which suits drives of any size.
    pub(crate) fn new(
        asked_bytes: Option<u64>,
        user_bytes: u64,
        trace_span_ns: Option<u64>,
        logical_bytes: f64,
    ) -> Daily {
        let (bytes, from) = match (asked_bytes, trace_span_ns) {
            (Some(bytes), _) => (bytes as f64, DailyFrom::Flag),
            (None, Some(span_ns)) if span_ns > 0 && user_bytes > 0 => {
                let daily = user_bytes as f64 * NS_PER_DAY / span_ns as f64;
                (daily, DailyFrom::Trace { span_ns })
            }
            (None, _) => (logical_bytes, DailyFrom::Capacity),
        };
        Daily { bytes, from }
    }
}

/// The inputs for computing a lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worn {
    /// Erases in the measured part, and the mean and maximum erase count of a block.
    pub(crate) erases: Option<(u64, f64, u32)>,
    /// Program/erase cycles that the medium endures.
    pub(crate) limit_cycles: Option<f64>,
    /// Bytes of the medium that share the wear.
    pub(crate) medium_bytes: f64,
    /// Bytes that the host can address.
    pub(crate) logical_bytes: f64,
    /// Bytes written to the medium divided by host bytes.
    pub(crate) medium_over_host: f64,
    /// Host bytes divided by user bytes.
    pub(crate) host_over_user: f64,
    /// The daily volume.
    pub(crate) daily: Daily,
}

impl LifetimeReport {
    pub(crate) fn new(worn: &Worn) -> LifetimeReport {
        let Daily { bytes, from } = worn.daily;
        let positive = |x: f64| (x > 0.0).then_some(x);
        let host_bytes = (worn.limit_cycles.zip(positive(worn.medium_over_host)))
            .map(|(cycles, ratio)| worn.medium_bytes * cycles / ratio);
        let host_over_user = positive(worn.host_over_user);
        let user_bytes = host_bytes.zip(host_over_user).map(|(b, wa)| b / wa);
        LifetimeReport {
            erases: worn.erases.map(|(erases, ..)| erases),
            mean_erases: worn.erases.map(|(_, mean, _)| mean),
            max_erases: worn.erases.map(|(.., max)| max),
            pe_limit_cycles: worn.limit_cycles,
            host_bytes,
            drive_writes: host_bytes.map(|b| b / worn.logical_bytes),
            user_bytes,
            user_bytes_per_day: bytes,
            user_bytes_per_day_from: from,
            drive_writes_per_day: host_over_user.map(|wa| bytes * wa / worn.logical_bytes),
            years_until_pe_limit: user_bytes.map(|b| b / bytes / DAYS_PER_YEAR),
        }
    }

    /// The daily volume and its source.
    fn daily(&self) -> String {
        let from = match self.user_bytes_per_day_from {
            DailyFrom::Flag => "--daily".to_string(),
            DailyFrom::Trace { span_ns } => {
                format!("from the trace's times, over {}", duration(span_ns as f64))
            }
            DailyFrom::Capacity => {
                "the drive's logical capacity once a day, as the trace has no times".to_string()
            }
        };
        format!("{} ({from})", bytes(self.user_bytes_per_day))
    }

    /// Why the years are unknown, if they are.
    fn unknown(&self) -> Option<&'static str> {
        match (self.pe_limit_cycles, self.years_until_pe_limit) {
            (None, _) => Some("unknown: the profile gives no P/E limit"),
            (Some(_), None) => Some("unknown: nothing reached the drive after warm-up"),
            (Some(_), Some(_)) => None,
        }
    }

    /// Names and values, as shown by text and page.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
        let mut rows = vec![
            ("user data per day", self.daily()),
            (
                "drive writes/day",
                or_unknown(self.drive_writes_per_day.map(significant)),
            ),
            (
                "time to P/E limit",
                match (self.years_until_pe_limit, self.unknown()) {
                    (Some(years), None) => time(years),
                    (_, why) => why.unwrap_or("unknown").into(),
                },
            ),
        ];
        if let Some((user, drive_writes)) = self.user_bytes.zip(self.drive_writes) {
            let left = format!(
                "{} of user data, {} drive writes",
                bytes(user),
                significant(drive_writes)
            );
            rows.push(("data to P/E limit", left));
        }
        if let Some(limit) = self.pe_limit_cycles {
            let mut wear = format!("{} cycles", significant(limit));
            if let Some((erases, mean)) = self.erases.zip(self.mean_erases) {
                wear += &format!(
                    "; {} erases measured, {} per block over the whole run",
                    super::numbers::grouped(erases),
                    significant(mean)
                );
            }
            rows.push(("P/E limit", wear));
        }
        rows
    }
}

/// Formats years, and adds days if there are few.
fn time(years: f64) -> String {
    if years >= 1.0 {
        format!("{} years", significant(years))
    } else {
        let days = years * DAYS_PER_YEAR;
        format!("{} years ({} days)", significant(years), significant(days))
    }
}

/// Formats a number with three significant digits.
fn significant(n: f64) -> String {
    match n.abs() {
        0.0 => "0".into(),
        a if a >= 1e6 => format!("{n:.2e}"),
        a if a >= 100.0 => super::numbers::grouped(n.round() as u64),
        a if a >= 10.0 => format!("{n:.1}"),
        a if a >= 0.001 => format!("{n:.3}"),
        _ => format!("{n:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worn(limit_cycles: Option<f64>, daily: Daily) -> Worn {
        Worn {
            erases: Some((10, 2.5, 4)),
            limit_cycles,
            medium_bytes: 1280.0,
            logical_bytes: 1000.0,
            medium_over_host: 2.0,
            host_over_user: 4.0,
            daily,
        }
    }

    /// 1280 bytes × 3000 cycles = 3.84 MB programmed, 1.92 MB by the host, 480 kB by the user.
    #[test]
    fn a_lifetime_is_endurance_over_both_amplifications() {
        let daily = Daily::new(Some(500), 77, Some(9), 1000.0);
        let life = LifetimeReport::new(&worn(Some(3000.0), daily));
        assert_eq!(life.host_bytes, Some(1_920_000.0));
        assert_eq!(life.drive_writes, Some(1920.0));
        assert_eq!(life.user_bytes, Some(480_000.0));
        assert_eq!(life.drive_writes_per_day, Some(2.0));
        assert_eq!(life.years_until_pe_limit, Some(960.0 / 365.25));
        assert_eq!(life.user_bytes_per_day_from, DailyFrom::Flag);
    }

    #[test]
    fn the_daily_volume_is_the_flags_the_traces_or_the_drives() {
        // 77 bytes in half a day.
        let trace = Daily::new(None, 77, Some(43_200_000_000_000), 1000.0);
        assert_eq!(trace.bytes, 154.0);
        for span in [None, Some(0)] {
            let capacity = Daily::new(None, 77, span, 1000.0);
            assert_eq!(
                (capacity.bytes, capacity.from),
                (1000.0, DailyFrom::Capacity)
            );
        }
    }

    #[test]
    fn without_a_limit_the_years_are_unknown_and_the_drive_writes_are_not() {
        let daily = Daily::new(None, 77, None, 1000.0);
        let life = LifetimeReport::new(&worn(None, daily));
        assert_eq!(life.years_until_pe_limit, None);
        assert_eq!(life.drive_writes_per_day, Some(4.0));
        let rows = life.rows();
        let until = rows.iter().find(|(name, _)| *name == "time to P/E limit");
        let (_, said) = until.expect("a row");
        assert_eq!(said, "unknown: the profile gives no P/E limit");
    }
}
