//! Persistent memory in the report: amplification as CCL-BTree §2.1 defines it, and the activity of
//! tree and device.

use serde::Serialize;

use super::numbers::{bytes, grouped};
use super::predicted::PredictedValue;
use super::row::Row;
use super::wa::{Named, PageCauses};

/// CLI-amplification is the bytes that reach the XPBuffer divided by user bytes; XBI-amplification
/// is the bytes that reach the medium divided by user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Amplification<T> {
    /// CLI-amplification.
    pub cli: T,
    /// XBI-amplification.
    pub xbi: T,
    /// The part of XBI that leaves and records cause.
    pub xbi_leaf: T,
    /// The part of XBI that logs cause.
    pub xbi_log: T,
    /// The rest of XBI.
    pub xbi_extra: T,
}

impl<T: Copy> Amplification<T> {
    /// Applies `f` to each value.
    pub(crate) fn map<U>(&self, f: impl Fn(T) -> U) -> Amplification<U> {
        Amplification {
            cli: f(self.cli),
            xbi: f(self.xbi),
            xbi_leaf: f(self.xbi_leaf),
            xbi_log: f(self.xbi_log),
            xbi_extra: f(self.xbi_extra),
        }
    }

    fn rows(&self) -> [Named<T>; 5] {
        [
            ("to the XPBuffer (CLI)", "pm.cli", self.cli),
            ("to the medium (XBI)", "pm.xbi", self.xbi),
            ("  of it, leaves", "pm.xbi_leaf", self.xbi_leaf),
            ("  of it, logs", "pm.xbi_log", self.xbi_log),
            ("  of it, the rest", "pm.xbi_extra", self.xbi_extra),
        ]
    }
}

impl Amplification<PredictedValue> {
    /// The values without their intervals.
    #[must_use]
    pub fn values(&self) -> Amplification<f64> {
        self.map(|predicted| predicted.value())
    }
}

/// Measurements on persistent memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PmReport {
    /// Measured amplification.
    #[serde(flatten)]
    pub measured: Amplification<f64>,
    /// Predicted amplification; `null` without a prediction.
    pub predicted: Option<Amplification<PredictedValue>>,
    /// Measured divided by predicted, minus one; `null` if the component is under 3 % of the total.
    pub error: Option<Amplification<Option<f64>>>,
    /// Bytes read from the medium, including read-modify-writes.
    pub media_read_bytes: u64,
    /// Bytes written to the medium.
    pub media_write_bytes: u64,
    /// Share of written lines whose XPLine was in the XPBuffer.
    pub buffer_hit_ratio: f64,
    /// Media writes that needed a read first (read-modify-write).
    pub read_modify_writes: u64,
    /// Fences.
    pub fences: u64,
    /// Flushes to a leaf, of a buffer node or, without buffer nodes, of one record.
    pub leaf_flushes: u64,
    /// Writes that found their buffer node full.
    pub trigger_writes: u64,
    /// Log entries written, including copies made by cleaning.
    pub log_appends: u64,
    /// Cleanings of the logs.
    pub cleanings: u64,
    /// Log entries that cleanings copied.
    pub cleaning_copies: u64,
    /// Leaves that cleanings flushed.
    pub cleaning_flushes: u64,
    /// Bytes that cleanings wrote to the medium; `null` if queues are modelled, because other
    /// writes then interleave.
    pub cleaning_media_write_bytes: Option<u64>,
    /// Records that are only in a buffer node, at the end.
    pub buffered: u64,
    /// Bytes of leaves, at the end.
    pub leaf_bytes: u64,
    /// Bytes of live log entries, at the end.
    pub log_bytes: u64,
    /// Maximum bytes of live log entries since the store was created.
    pub log_peak_bytes: u64,
    /// DRAM used by buffer nodes, at the end.
    pub node_bytes: u64,
    /// Predicted activity; `null` without a prediction.
    pub predicted_activity: Option<PmPredicted>,
    /// Statistics that only a LodgeTree has.
    pub lodge: Option<LodgeReport>,
}

/// Predicted activity of a tree in persistent memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PmPredicted {
    /// Share of lookups that buffer nodes answer; `null` without lookups, or if it is not predicted.
    pub hit_ratio: Option<f64>,
    /// Flushes to a leaf.
    pub leaf_flushes: f64,
    /// Log entries written, including copies made by cleaning.
    pub log_appends: f64,
    /// Cleanings of the logs.
    pub cleanings: f64,
    /// Leaves, at the end.
    pub leaves: f64,
    /// Records that are only in a buffer node, at the end.
    pub buffered: f64,
}

impl PmPredicted {
    fn row(&self) -> String {
        let count = |count: f64| grouped(count.round() as u64);
        let mut row = format!(
            "{} leaves, {} flushes",
            count(self.leaves),
            count(self.leaf_flushes)
        );
        if self.log_appends > 0.0 {
            row += &format!(
                "; {} log entries, {} cleanings; {} records in buffer nodes only",
                count(self.log_appends),
                count(self.cleanings),
                count(self.buffered)
            );
        }
        if let Some(hits) = self.hit_ratio {
            row += &format!(
                "; {:.1} % of lookups answered by buffer nodes",
                100.0 * hits
            );
        }
        row
    }
}

/// A LodgeTree's last-level inner nodes, which act as its buffer nodes, and its logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LodgeReport {
    /// Flushes of inner nodes.
    pub flushes: u64,
    /// Mean number of changes that a flush brought to leaves.
    pub pairs_per_flush: f64,
    /// Mean number of changes that a leaf received per visit.
    pub pairs_per_leaf: f64,
    /// Maximum number of leaves that one flush visited without a split.
    pub most_leaves_flushed: u64,
    /// Leaves in which bits had to be cleared before updates had room.
    pub clears: u64,
    /// Splits of inner nodes into 2, 3, ... nodes.
    pub node_splits: Vec<u64>,
    /// Inner nodes of the last level, at the end.
    pub nodes: u64,
    /// Share of their slots that index no leaf, at the end (LodgeTree §II-C: 0.25 to 0.58).
    pub free_share: f64,
    /// Share of their slots that buffer a change, at the end.
    pub buffered_share: f64,
    /// Logs opened.
    pub logs_opened: u64,
    /// Number of entries that fit into the logs in use, at the end.
    pub log_room_entries: u64,
    /// The predicted values; `null` without a prediction.
    pub predicted: Option<LodgePredicted>,
}

/// Predicted values of a LodgeTree's inner nodes; the fields are those of [`LodgeReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LodgePredicted {
    /// Flushes of inner nodes.
    pub flushes: f64,
    /// Mean number of changes that a flush brings to leaves.
    pub pairs_per_flush: f64,
    /// Mean number of changes that a leaf receives per visit.
    pub pairs_per_leaf: f64,
    /// Inner nodes of the last level, at the end.
    pub nodes: f64,
    /// Share of their slots that index no leaf, at the end.
    pub free_share: f64,
    /// Share of their slots that buffer a change, at the end.
    pub buffered_share: f64,
}

impl LodgeReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let into = self.node_splits.iter().enumerate();
        let into: Vec<String> = into
            .filter(|(_, splits)| **splits > 0)
            .map(|(more, splits)| format!("{} into {}", grouped(*splits), more + 2))
            .collect();
        let mut rows = vec![
            (
                "inner nodes",
                format!(
                    "{}, {:.1} % of their slots index no leaf, {:.1} % buffer a record; splits: {}",
                    grouped(self.nodes),
                    100.0 * self.free_share,
                    100.0 * self.buffered_share,
                    if into.is_empty() {
                        "none".into()
                    } else {
                        into.join(", ")
                    }
                ),
            ),
            (
                "inner node flushes",
                format!(
                    "{}, with {:.2} records each, to at most {} leaves, {:.2} per leaf; {} leaves cleared \
                     first",
                    grouped(self.flushes),
                    self.pairs_per_flush,
                    self.most_leaves_flushed,
                    self.pairs_per_leaf,
                    grouped(self.clears)
                ),
            ),
            (
                "logs",
                format!(
                    "{} opened, room for {} entries in use at the end",
                    grouped(self.logs_opened),
                    grouped(self.log_room_entries)
                ),
            ),
        ];
        if let Some(p) = &self.predicted {
            let said = format!(
                "{} inner nodes, {:.1} % of their slots index no leaf, {:.1} % buffer a record; \
                 {} flushes of {:.2} records, {:.2} per leaf",
                grouped(p.nodes.round() as u64),
                100.0 * p.free_share,
                100.0 * p.buffered_share,
                grouped(p.flushes.round() as u64),
                p.pairs_per_flush,
                p.pairs_per_leaf
            );
            rows.push(("predicted", said));
        }
        rows
    }
}

impl PmReport {
    /// Amplification, measured beside predicted; `untried` marks predictions outside the tested
    /// range. The part of the bytes reaching the XPBuffer that long values cause has a row of its
    /// own.
    pub(super) fn compared(&self, causes: Option<&PageCauses>, untried: bool) -> Vec<Row> {
        let predicted = self.predicted.as_ref().map(Amplification::rows);
        let error = self.error.as_ref().map(Amplification::rows);
        let row = |(i, (name, path, measured)): (usize, Named<f64>)| Row {
            name,
            path,
            measured,
            predicted: predicted.map(|rows| rows[i].2),
            error: error.and_then(|rows| rows[i].2),
            // All but the first are parts of what reaches the medium.
            total: if i == 0 { measured } else { self.measured.xbi },
            untried,
        };
        let rows = self.measured.rows().into_iter().enumerate();
        let mut rows: Vec<Row> = rows.map(row).collect();
        let overflow = causes.and_then(|causes| causes.row(self.measured.cli, untried));
        if let Some(overflow) = overflow {
            rows.insert(
                1,
                Row {
                    name: "  of it, overflow",
                    ..overflow
                },
            );
        }
        rows
    }

    /// Names and values of the other statistics.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            (
                "medium",
                format!(
                    "{} written, {} read; {:.1} % of lines found their XPLine in the XPBuffer, \
                     {} read-modify-writes, {} fences",
                    bytes(self.media_write_bytes as f64),
                    bytes(self.media_read_bytes as f64),
                    100.0 * self.buffer_hit_ratio,
                    grouped(self.read_modify_writes),
                    grouped(self.fences)
                ),
            ),
            (
                "leaves",
                format!(
                    "{}, {} flushes, {} of them by trigger writes",
                    bytes(self.leaf_bytes as f64),
                    grouped(self.leaf_flushes),
                    grouped(self.trigger_writes)
                ),
            ),
        ];
        if self.log_appends > 0 {
            rows.push((
                "log",
                format!(
                    "{} entries, {} at the end ({} at most), {} cleanings, which copied {} \
                     entries and flushed {} leaves",
                    grouped(self.log_appends),
                    bytes(self.log_bytes as f64),
                    bytes(self.log_peak_bytes as f64),
                    grouped(self.cleanings),
                    grouped(self.cleaning_copies),
                    grouped(self.cleaning_flushes)
                ),
            ));
            rows.push((
                "buffer nodes",
                format!(
                    "{} of DRAM, {} records in them only",
                    bytes(self.node_bytes as f64),
                    grouped(self.buffered)
                ),
            ));
        }
        if let Some(predicted) = &self.predicted_activity {
            rows.push(("predicted", predicted.row()));
        }
        rows.extend(self.lodge.iter().flat_map(LodgeReport::rows));
        rows
    }
}
