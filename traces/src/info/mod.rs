//! Statistics of a trace (`trace info`), in bounded memory (at most 240 MiB for any length): in one
//! pass, or in two or three with the curve of pages.
//!
//! | part | how | bounded by |
//! |---|---|---|
//! | counts, bytes, time | sums | |
//! | distinct keys | a table of key hashes; exact to 3.6 M keys, then within 0.1 % | `count` |
//! | working set | distinct keys among the first 1, 2, 5, 10, … operations | 60 points |
//! | cache curve | depths of accesses in the order of last use; sampled above 65,536 keys | `reuse` |
//! | page curve | the same for pages of keys in order, which a second pass plays | `pages` |
//! | windows | operations, working set, growth and drift over the length of the trace | `windows` |
//! | times | reuse times, overwrite intervals, mean working set | `times` |
//! | read-modify-writes | reads of a put's key shortly before it, and by chance | `pairs` |
//! | runs | operations in a row on neighbouring keys | `runs` |
//! | together | whether keys that are written together are overwritten together | `together` |
//! | lives | deletes, and how long records live | `lives` |
//! | popularity | Zipf exponent by maximum likelihood on the frequencies of counts | `fit` |
//! | sizes | counts by length, exact below 64 KiB | `sizes` |
//!
//! Operations that the header marks as warm-up count only towards the totals and the set of keys.
//! They load the store, and would bias popularity, sizes and the write share. A scan is an access
//! to its first key; only the page curve sees all its records.

#[cfg(test)]
mod brute;
mod clock;
mod collect;
mod correlation;
mod count;
mod fit;
mod kinds;
mod lives;
mod pages;
mod pairs;
mod render;
mod reuse;
mod runs;
mod sizes;
mod steps;
mod times;
mod together;
mod windows;

pub use collect::{collect, collect_with_pages};
pub use kinds::OpCounts;
pub use lives::Lives;
pub use pages::{PageCurve, PagePoint};
pub use pairs::ReadModifyWrite;
pub use reuse::{CacheCurve, CachePoint};
pub use runs::{RunStats, Runs};
pub use sizes::{SizeBin, SizeStats, Sizes};
pub use times::{MeanWorkingSet, ReuseTimes};
pub use together::{Together, WrittenTogether};
pub use windows::Window;

use serde::Serialize;

use crate::Blocks;

/// The statistics of a trace. All except `all` are about the operations after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Always [`TraceInfo::SCHEMA`].
    pub schema: &'static str,
    /// Whether the number of operations read matches the header.
    pub complete: bool,
    /// The trace's name.
    pub name: String,
    /// The trace's source, from its header.
    pub source: String,
    /// How a block trace's blocks are replayed; `None` for other traces. If the trace has no puts,
    /// the size is that of the records that a replay loads first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Operations, warm-up included.
    pub ops: u64,
    /// How many of them are warm-up.
    pub warmup_ops: u64,
    /// Operations by kind, warm-up included.
    pub all: OpCounts,
    /// Operations by kind after the warm-up.
    pub measured: OpCounts,
    /// Share of puts and deletes among all operations; `None` without operations.
    pub write_share: Option<f64>,
    /// Key and value bytes of puts and key bytes of deletes.
    pub user_bytes: u64,
    /// Share of zero bytes in the values of puts, by bytes.
    pub zeros: f64,
    /// Distinct keys of the trace, warm-up included.
    pub distinct_keys: u64,
    /// Distinct keys after the warm-up.
    pub accessed_keys: u64,
    /// Whether the two numbers above are exact, which holds up to 3.6 M keys.
    pub keys_exact: bool,
    /// The opposite of `keys_exact`: whether these numbers are estimates from a sample.
    pub estimated: bool,
    /// Relative standard error of these numbers; 0 if they are exact.
    pub keys_error: f64,
    /// Keys whose first operation, warm-up included, is not a put, so they existed before the
    /// trace. An estimate if the numbers of keys are.
    pub keys_there_before: u64,
    /// Gets after the warm-up of keys that no earlier operation wrote. An estimate if the numbers
    /// of keys are.
    pub reads_of_unwritten: u64,
    /// Distinct keys as a function of operations.
    pub working_set: Vec<WorkingSet>,
    /// Misses and write-backs of caches of any size, after the warm-up; `None` without operations.
    pub cache: Option<CacheCurve>,
    /// The same of caches of pages; `None` without operations, and from [`collect`], whose one pass
    /// cannot know the pages.
    pub page_cache: Option<PageCurve>,
    /// The trace in windows of equal length; none without operations.
    pub windows: Vec<Window>,
    /// Intervals between operations on the same key.
    pub reuse_times: ReuseTimes,
    /// Runs of neighbouring keys.
    pub runs: Runs,
    /// Whether keys that are written together are overwritten together; `None` if the trace decides
    /// about no pair of writes.
    pub written_together: Option<WrittenTogether>,
    /// How records come and go.
    pub lives: Lives,
    /// How unevenly keys are accessed; `None` if there are fewer than two keys or none is accessed
    /// twice.
    pub popularity: Option<Popularity>,
    /// Key lengths of all operations.
    pub key_bytes: Option<SizeStats>,
    /// Value lengths of puts.
    pub value_bytes: Option<SizeStats>,
    /// Number of records that a scan asks for.
    pub scan_records: Option<SizeStats>,
    /// Distinct clients, counted up to a million.
    pub clients: u64,
    /// Time between the first and the last timestamp, in nanoseconds.
    pub duration_ns: Option<u64>,
}

/// One point of the working-set curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkingSet {
    /// A number of operations from the start of the trace.
    pub ops: u64,
    /// The distinct keys that they access.
    pub distinct_keys: u64,
    /// Whether the number of keys is an estimate from a sample.
    pub estimated: bool,
}

/// How unevenly keys are accessed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Popularity {
    /// Always `true`: the law is fitted to the counts.
    pub estimated: bool,
    /// The maximum-likelihood Zipf exponent; 0 is uniform.
    pub theta: f64,
    /// Its standard error, if the trace follows a Zipf law; see [`Popularity::ks_distance`].
    pub theta_error: f64,
    /// Kolmogorov-Smirnov distance: the largest difference between the observed and the fitted
    /// distribution of access counts. 0 is a perfect fit; above 0.1 the trace is not Zipf.
    pub ks_distance: f64,
    /// Number of keys under the fitted law: the trace's keys if a load shows them all, else an
    /// estimate that includes keys that happened not to be accessed.
    pub population: u64,
    /// Relative error of `population`, at one standard error of the exponent.
    pub population_error: f64,
    /// The shares of accesses that go to the most popular keys.
    pub hottest: Vec<Hottest>,
}

/// The most popular keys and their share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hottest {
    /// Share of the distinct keys of the trace.
    pub keys: f64,
    /// Share of the accesses that these keys get.
    pub accesses: f64,
    /// The number of these keys, if they are a fraction of a key or only a few keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

impl TraceInfo {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "treering.trace-info/1";

    /// Renders the statistics as text.
    pub fn render_text(&self) -> String {
        render::text(self)
    }
}

#[cfg(test)]
mod tests;
