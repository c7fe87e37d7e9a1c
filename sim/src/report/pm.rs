//! Persistent memory in the report: amplification as CCL-BTree §2.1 defines it, and what tree and
//! device did.

use serde::Serialize;

use super::numbers::{bytes, grouped};
use super::wa::{PageCauses, Row};

/// CLI-amplification, bytes that reach the XPBuffer over user bytes; XBI-amplification, bytes that
/// reach the medium over user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Amplification<T> {
    /// CLI-amplification.
    pub cli: T,
    /// XBI-amplification.
    pub xbi: T,
    /// Of it, by leaves and records.
    pub xbi_leaf: T,
    /// Of it, by logs.
    pub xbi_log: T,
    /// Of it, by the rest.
    pub xbi_extra: T,
}

impl<T: Copy> Amplification<T> {
    fn rows(&self) -> [(&'static str, T); 5] {
        [
            ("to the XPBuffer (CLI)", self.cli),
            ("to the medium (XBI)", self.xbi),
            ("  of it, leaves", self.xbi_leaf),
            ("  of it, logs", self.xbi_log),
            ("  of it, the rest", self.xbi_extra),
        ]
    }
}

/// The measured part on persistent memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PmReport {
    /// Measured.
    #[serde(flatten)]
    pub measured: Amplification<f64>,
    /// Predicted; `null` where nothing was.
    pub predicted: Option<Amplification<f64>>,
    /// Measured over predicted, minus one; `null` where the component is under 3 % of the total.
    pub error: Option<Amplification<Option<f64>>>,
    /// Bytes read from the medium, those of read-modify-writes included.
    pub media_read_bytes: u64,
    /// Bytes written to the medium.
    pub media_write_bytes: u64,
    /// Share of the lines written whose XPLine was in the XPBuffer.
    pub buffer_hit_ratio: f64,
    /// Media writes that needed a read first.
    pub read_modify_writes: u64,
    /// Fences.
    pub fences: u64,
    /// Flushes of a buffer node, or of one record where there is none, to a leaf.
    pub leaf_flushes: u64,
    /// Writes that found their buffer node full.
    pub trigger_writes: u64,
    /// Log entries, copies of cleaning included.
    pub log_appends: u64,
    /// Cleanings of the logs.
    pub cleanings: u64,
    /// Log entries that these copied.
    pub cleaning_copies: u64,
    /// Leaves that these flushed.
    pub cleaning_flushes: u64,
    /// Bytes that these wrote to the medium; `null` where queues are modelled, for then others
    /// write in between.
    pub cleaning_media_write_bytes: Option<u64>,
    /// Records that are in a buffer node only, at the end.
    pub buffered: u64,
    /// Bytes of leaves, at the end.
    pub leaf_bytes: u64,
    /// Bytes of live log entries, at the end.
    pub log_bytes: u64,
    /// The most of them since the store was made.
    pub log_peak_bytes: u64,
    /// Bytes of DRAM for buffer nodes, at the end.
    pub node_bytes: u64,
    /// What only a LodgeTree has.
    pub lodge: Option<LodgeReport>,
}

/// A LodgeTree's last-level inner nodes and logs; its buffer nodes are those inner nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LodgeReport {
    /// Flushes of inner nodes.
    pub flushes: u64,
    /// Changes that one brought to leaves, in the mean.
    pub pairs_per_flush: f64,
    /// Changes that a leaf got by a visit, in the mean.
    pub pairs_per_leaf: f64,
    /// The most leaves that one flush went to without a split.
    pub most_leaves_flushed: u64,
    /// Leaves in which bits were cleared before updates had room.
    pub clears: u64,
    /// Splits of inner nodes into 2, 3, ... nodes.
    pub node_splits: Vec<u64>,
    /// Inner nodes of the last level, at the end.
    pub nodes: u64,
    /// Share of their slots that index no leaf, at the end (LodgeTree §II-C: 0.25 to 0.58).
    pub free_share: f64,
    /// Share of their slots that buffer a change, at the end.
    pub buffered_share: f64,
    /// Logs that were opened.
    pub logs_opened: u64,
    /// Entries that logs in use have room for, at the end.
    pub log_room_entries: u64,
    /// What was predicted of them; `null` where there is no prediction.
    pub predicted: Option<LodgePredicted>,
}

/// What a predictor says of a LodgeTree's inner nodes: as in [`LodgeReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LodgePredicted {
    /// Flushes of inner nodes.
    pub flushes: f64,
    /// Changes that one brought to leaves, in the mean.
    pub pairs_per_flush: f64,
    /// Changes that a leaf got by a visit, in the mean.
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
                "their flushes",
                format!(
                    "{}, of {:.2} records to {} leaves at most, {:.2} a leaf; {} leaves cleared \
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
                 {} flushes of {:.2} records, {:.2} a leaf",
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
    /// Amplification, measured beside predicted; `untried` marks what is predicted. What long
    /// values have of the bytes that get to the XPBuffer is a row of its own.
    pub(super) fn compared(&self, causes: Option<&PageCauses>, untried: bool) -> Vec<Row> {
        let predicted = self.predicted.as_ref().map(Amplification::rows);
        let error = self.error.as_ref().map(Amplification::rows);
        let row = |(i, (name, measured)): (usize, (&'static str, f64))| Row {
            name,
            measured,
            predicted: predicted.map(|rows| rows[i].1),
            error: error.and_then(|rows| rows[i].1),
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

    /// Names and values of the rest.
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
        rows.extend(self.lodge.iter().flat_map(LodgeReport::rows));
        rows
    }
}
