//! What mini-pages save: measured values beside predicted ones.

use serde::Serialize;

use super::mini_pages::MiniPagesReport;
use super::wa::{Row, error};
use crate::predict::Prediction;
use crate::predict::bf::MiniPagesPrediction;

/// One figure. Rates are per operation; shares are of gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the figure.
    pub name: &'static str,
    /// The measured value.
    pub measured: f64,
    /// The predicted value; `null` with `--no-predict`.
    pub predicted: Option<f64>,
    /// Measured divided by predicted, minus one; `null` if the figure is less than 3 % of the total
    /// that it belongs to.
    pub error: Option<f64>,
}

impl Compared {
    pub(super) fn row(&self, untried: bool) -> Row {
        Row {
            name: self.name,
            measured: self.measured,
            predicted: self.predicted,
            error: self.error,
            untried,
        }
    }
}

/// Pages read and written in the measured part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageIo {
    pub(crate) ops: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) log_bytes: u64,
    pub(crate) user_bytes: u64,
}

/// Computes all figures.
pub(crate) fn compared(
    m: &MiniPagesReport,
    io: PageIo,
    prediction: Option<&Prediction>,
) -> Vec<Compared> {
    let each = |count: u64| count as f64 / io.ops.max(1) as f64;
    let merges = each(m.merges);
    let gets = each(m.hits.total() + m.misses);
    let share = |rate: f64| if gets > 0.0 { rate / gets } else { 0.0 };
    let p = prediction.and_then(|p| p.mini_pages.as_ref());
    let log_bytes = prediction.map(|p| p.host.log * each(io.user_bytes));
    let list: [(&str, f64, Option<f64>, f64); 12] = [
        (
            "gets answered",
            m.hit_ratio,
            p.map(|p| p.hit_ratio),
            m.hit_ratio,
        ),
        (
            "by what the leaf lacks",
            share(each(m.hits.insert)),
            p.map(|p| share(p.insert_hits)),
            m.hit_ratio,
        ),
        (
            "by copies",
            share(each(m.hits.cache)),
            p.map(|p| share(p.cache_hits)),
            m.hit_ratio,
        ),
        (
            "page reads",
            each(io.reads),
            p.map(|p| p.page_reads),
            each(io.reads),
        ),
        (
            "page writes",
            each(io.writes),
            p.map(|p| p.page_writes),
            each(io.writes),
        ),
        (
            "log bytes",
            each(io.log_bytes),
            log_bytes,
            each(io.log_bytes),
        ),
        ("merges", merges, p.map(|p| p.merges.total()), merges),
        (
            "evicted",
            each(m.merges_by.eviction),
            p.map(|p| p.merges.eviction),
            merges,
        ),
        (
            "used near the head",
            each(m.merges_by.copy_on_access),
            p.map(|p| p.merges.copy_on_access),
            merges,
        ),
        (
            "short of room",
            each(m.merges_by.room),
            p.map(|p| p.merges.room),
            merges,
        ),
        (
            "for a checkpoint",
            each(m.merges_by.checkpoint),
            p.map(|p| p.merges.checkpoint),
            merges,
        ),
        (
            "records a merge",
            m.records_per_merge.unwrap_or(0.0),
            p.map(MiniPagesPrediction::records_per_merge),
            m.records_per_merge.unwrap_or(0.0),
        ),
    ];
    (list.into_iter())
        .map(|(name, measured, predicted, whole)| Compared {
            name,
            measured,
            predicted,
            error: predicted.and_then(|predicted| error(measured, predicted, whole)),
        })
        .collect()
}
