//! The quantities of a case that have bounds: their names, and how they are shown.

/// The quantities that have bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes of the cache divided by bytes of all leaves.
    CacheShare,
    /// Share of operations on the most popular tenth of the keys.
    HottestTenth,
    /// How much accesses to a key deviate from independence; see [`crate::predict::recency`].
    Burstiness,
    /// Share of operations that are puts or deletes.
    Writes,
    /// Share of operations that are deletes.
    Deletes,
    /// Share of operations that are scans.
    Scans,
    /// Share of operations that follow one on the preceding key.
    Runs,
    /// Splits in the measured part divided by the number of leaves.
    Growth,
    /// Mean size of a record (key and value), in bytes.
    RecordBytes,
    /// Page size in bytes.
    PageBytes,
    /// Number of leaves.
    Leaves,
    /// Number of records.
    Records,
    /// Updates of a leaf before the measured part.
    RewritesOfLeaf,
    /// Maximum number of seconds between flushes of the log.
    FlushInterval,
    /// 1 if each commit waits for a flush, else 0.
    Commits,
    /// Number of clients.
    Clients,
    /// 1 if the drive was filled with foreign data, else 0.
    DriveInUse,
}

impl Quantity {
    /// Its name in a sentence about a case.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::CacheShare => "cache over all leaves",
            Quantity::HottestTenth => "operations on the hottest tenth of the keys",
            Quantity::Burstiness => "burstiness of accesses to a key (independent: 1)",
            Quantity::Writes => "share of writes",
            Quantity::Deletes => "share of deletes",
            Quantity::Scans => "share of scans",
            Quantity::Runs => "operations in runs of neighbouring keys",
            Quantity::Growth => "leaves that appear while measuring",
            Quantity::RecordBytes => "mean record",
            Quantity::PageBytes => "page size",
            Quantity::Leaves => "leaves",
            Quantity::Records => "records",
            Quantity::RewritesOfLeaf => "updates of a leaf before measuring",
            Quantity::FlushInterval => "seconds between flushes of the log",
            Quantity::Commits => "share of commits that wait for a flush",
            Quantity::Clients => "clients",
            Quantity::DriveInUse => "share of the drive that was in use before",
        }
    }

    /// Formats a value for readers.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Quantity::Burstiness => format!("{value:.2}"),
            Quantity::RecordBytes | Quantity::PageBytes => format!("{value:.0} B"),
            Quantity::Leaves | Quantity::Records | Quantity::Clients => format!("{value:.0}"),
            Quantity::FlushInterval => format!("{value}"),
            Quantity::RewritesOfLeaf => format!("{value:.1}"),
            _ => {
                let percent = format!("{:.1}", 100.0 * value);
                format!("{} %", percent.trim_end_matches(".0"))
            }
        }
    }
}
