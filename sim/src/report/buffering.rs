//! What mini-pages save: measured values beside predicted ones.

use serde::Serialize;

use super::mini_pages::MiniPagesReport;
use super::predicted::PredictedValue;
use super::row::{Row, error};
use crate::predict::bf::MiniPagesPrediction;
use crate::predict::{Bars, Prediction};

/// One figure. Rates are per operation; shares are of gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the figure.
    pub name: &'static str,
    /// Its name in [`ReplayReport::outside`](super::ReplayReport::outside).
    #[serde(skip)]
    pub path: &'static str,
    /// The measured value.
    pub measured: f64,
    /// The predicted value; `null` with `--no-predict`.
    pub predicted: Option<PredictedValue>,
    /// Measured divided by predicted, minus one; `null` if the figure is less than 3 % of the total
    /// that it belongs to.
    pub error: Option<f64>,
    /// The measured total that it belongs to.
    #[serde(skip)]
    pub total: f64,
}

impl Compared {
    pub(super) fn row(&self, untried: bool) -> Row {
        Row {
            name: self.name,
            path: self.path,
            measured: self.measured,
            predicted: self.predicted,
            error: self.error,
            total: self.total,
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
    let ops = io.ops.max(1) as f64;
    let each = |count: u64| count as f64 / ops;
    let merges = each(m.merges);
    let gets = each(m.hits.total() + m.misses);
    let share = |rate: f64| if gets > 0.0 { rate / gets } else { 0.0 };
    let p = prediction.and_then(|p| p.mini_pages.as_ref());
    let (model, bars) = prediction.map_or_else(Default::default, |p| (p.model, p.bars));
    let with =
        |value: f64, half_width: f64| PredictedValue::new(value, bars.map(|_| half_width), model);
    // A rate is known as well as the number of events that it counts.
    let rate = |rate: f64| with(rate, Bars::of_count(rate * ops));
    let share_of = |rate: f64| with(share(rate), Bars::of_count(rate * ops));
    let hits = |p: &MiniPagesPrediction| {
        let misses = (1.0 - p.hit_ratio) * gets * ops;
        with(p.hit_ratio, Bars::of_hits(p.hit_ratio, misses))
    };
    let log_bytes = prediction.map(|p| {
        let half_width = bars.map_or(0.0, |bars| bars.host_log);
        with(p.host.log * each(io.user_bytes), half_width)
    });
    let per_merge = |p: &MiniPagesPrediction| {
        let half_width = Bars::of_count(p.merges.total() * ops);
        with(p.records_per_merge(), half_width)
    };
    let records_per_merge = m.records_per_merge.unwrap_or(0.0);
    let (reads, writes, log) = (each(io.reads), each(io.writes), each(io.log_bytes));
    let by = &m.merges_by;
    let figure = |(name, path), measured: f64, total, predicted: Option<PredictedValue>| Compared {
        name,
        path,
        measured,
        predicted,
        error: predicted.and_then(|p| error(measured, p.value(), total)),
        total,
    };
    vec![
        figure(
            ("gets answered", "mini_pages.hit_ratio"),
            m.hit_ratio,
            m.hit_ratio,
            p.map(hits),
        ),
        figure(
            ("by what the leaf lacks", "mini_pages.insert_hits"),
            share(each(m.hits.insert)),
            m.hit_ratio,
            p.map(|p| share_of(p.insert_hits)),
        ),
        figure(
            ("by copies", "mini_pages.cache_hits"),
            share(each(m.hits.cache)),
            m.hit_ratio,
            p.map(|p| share_of(p.cache_hits)),
        ),
        figure(
            ("page reads", "mini_pages.page_reads"),
            reads,
            reads,
            p.map(|p| rate(p.page_reads)),
        ),
        figure(
            ("page writes", "mini_pages.page_writes"),
            writes,
            writes,
            p.map(|p| rate(p.page_writes)),
        ),
        figure(("log bytes", "mini_pages.log_bytes"), log, log, log_bytes),
        figure(
            ("merges", "mini_pages.merges"),
            merges,
            merges,
            p.map(|p| rate(p.merges.total())),
        ),
        figure(
            ("evicted", "mini_pages.merges.eviction"),
            each(by.eviction),
            merges,
            p.map(|p| rate(p.merges.eviction)),
        ),
        figure(
            ("used near the head", "mini_pages.merges.copy_on_access"),
            each(by.copy_on_access),
            merges,
            p.map(|p| rate(p.merges.copy_on_access)),
        ),
        figure(
            ("short of room", "mini_pages.merges.room"),
            each(by.room),
            merges,
            p.map(|p| rate(p.merges.room)),
        ),
        figure(
            ("for a checkpoint", "mini_pages.merges.checkpoint"),
            each(by.checkpoint),
            merges,
            p.map(|p| rate(p.merges.checkpoint)),
        ),
        figure(
            ("records a merge", "mini_pages.records_per_merge"),
            records_per_merge,
            records_per_merge,
            p.map(per_merge),
        ),
    ]
}
