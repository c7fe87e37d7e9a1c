//! Write amplification in a report: measured, predicted, and the error.

use std::ops::Deref;

use serde::Serialize;

use super::limit::{LimitReport, WaterfallStep};
use super::predicted::PredictedValue;
use super::row::{Row, error};
use crate::predict::tried::{Decides, Untried};

/// Write amplification: measured, predicted, and the relative error.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaReport {
    /// Bytes that the engine wrote divided by user bytes; on persistent memory, bytes of lines that
    /// reached the XPBuffer.
    pub host: HostReport,
    /// Bytes that the drive programmed divided by user bytes; `null` on files.
    pub device: Option<DeviceWa<f64>>,
    /// The predicted values; `null` without a prediction.
    pub predicted: Option<WaSide<PredictedValue>>,
    /// Measured divided by predicted, minus one; `null` if the component is under 3 % of the total.
    pub error: Option<WaSide<Option<f64>>>,
    /// The effect of compression; `null` on drives without it.
    pub csd: Option<CsdWa>,
    /// The properties of the run for which predictions were not tested; empty if there are none.
    pub untried: Vec<Untried>,
    /// The least that the memory allows; `null` in persistent memory, for a drive alone, for a run
    /// that was cut short, and with `--no-predict` but without `--explain-wa`.
    pub limit: Option<LimitReport>,
    /// The steps from the limit to what the device wrote (on files: the engine); empty without a
    /// limit.
    pub waterfall: Vec<WaterfallStep>,
}

/// The engine's writes by class, and the causes of page writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// By class.
    #[serde(flatten)]
    pub by_class: HostWa<f64>,
    /// Class page by cause; `null` on persistent memory.
    pub page_causes: Option<PageCauses>,
}

impl Deref for HostReport {
    type Target = HostWa<f64>;

    fn deref(&self) -> &HostWa<f64> {
        &self.by_class
    }
}

/// Bytes of class page divided by user bytes, by contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageCauses {
    /// Leaves, and the differences of leaves in modification logs; in persistent memory also keys
    /// and values of a single piece.
    pub leaf: f64,
    /// Values longer than a quarter of a page, which have blocks of their own; in persistent
    /// memory, values longer than a chunk.
    pub overflow: f64,
    /// The predicted overflow.
    pub overflow_predicted: Option<PredictedValue>,
}

impl PageCauses {
    /// The row of overflow blocks, if there are any. `total` is the measured sum of all classes.
    pub(super) fn row(&self, total: f64, untried: bool) -> Option<Row> {
        let predicted = self.overflow_predicted;
        let any = self.overflow > 0.0 || predicted.is_some_and(|p| p.value() > 0.0);
        any.then(|| Row {
            name: "host page overflow",
            path: "host.page_causes.overflow",
            measured: self.overflow,
            predicted,
            error: predicted.and_then(|p| error(self.overflow, p.value(), total)),
            total,
            untried,
        })
    }
}

/// Write amplification on a compressing drive, relative to user bytes and to compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CsdWa {
    /// Compressed bytes divided by host bytes, by class: α of B⁻-tree eq. (2); `null` if nothing
    /// was written.
    pub alpha: HostWa<Option<f64>>,
    /// Compressed bytes divided by user bytes, by class: α·WA of the same equation.
    pub stored: HostWa<f64>,
    /// Bytes programmed divided by compressed bytes: only garbage collection and extent headers.
    pub gc_only: f64,
}

impl CsdWa {
    pub(super) fn rows(&self) -> Vec<Named<f64>> {
        let mut rows = CsdWa::of_classes(self.stored).to_vec();
        rows.push(("flash over compressed", "csd.gc_only", self.gc_only));
        rows
    }

    pub(super) fn of_classes<T: Copy>(stored: HostWa<T>) -> [Named<T>; 4] {
        [
            ("compressed log", "csd.log", stored.log),
            ("compressed page", "csd.page", stored.page),
            ("compressed extra", "csd.extra", stored.extra),
            ("compressed total", "csd.total", stored.total),
        ]
    }
}

/// Host and device together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaSide<T> {
    /// Bytes written by the engine.
    pub host: HostWa<T>,
    /// Bytes programmed by the drive.
    pub device: Option<DeviceWa<T>>,
    /// Compressed bytes by class: α·WA of B⁻-tree eq. (2); `null` on drives without compression.
    pub csd: Option<HostWa<T>>,
}

impl WaSide<PredictedValue> {
    /// The values without their intervals.
    ///
    /// ```
    /// use treering_sim::report::{HostWa, PredictedValue, WaSide};
    ///
    /// let side: WaSide<PredictedValue> = WaSide {
    ///     host: HostWa::default(),
    ///     device: None,
    ///     csd: None,
    /// };
    /// assert_eq!(side.values().host.total, 0.0);
    /// ```
    #[must_use]
    pub fn values(&self) -> WaSide<f64> {
        let value = |p: PredictedValue| p.value();
        WaSide {
            host: self.host.map(value),
            device: self.device.map(|device| DeviceWa {
                total: device.total.value(),
                gc: device.gc.value(),
                nand_over_host: device.nand_over_host.value(),
            }),
            csd: self.csd.map(|csd| csd.map(value)),
        }
    }
}

/// Name of a row, where JSON has the value, and the value.
pub(super) type Named<T> = (&'static str, &'static str, T);

/// Write amplification by class of write, B⁻-tree eq. (1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa<T> {
    /// Redo log.
    pub log: T,
    /// Pages at their home locations.
    pub page: T,
    /// Journal, page table, snapshots, superblocks.
    pub extra: T,
    /// The sum.
    pub total: T,
}

impl<T: Copy> HostWa<T> {
    pub(super) fn rows(&self) -> [Named<T>; 4] {
        [
            ("host log", "host.log", self.log),
            ("host page", "host.page", self.page),
            ("host extra", "host.extra", self.extra),
            ("host total", "host.total", self.total),
        ]
    }

    fn map<U>(&self, f: impl Fn(T) -> U) -> HostWa<U> {
        HostWa {
            log: f(self.log),
            page: f(self.page),
            extra: f(self.extra),
            total: f(self.total),
        }
    }
}

/// Write amplification inside the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceWa<T> {
    /// All programmed bytes.
    pub total: T,
    /// Bytes programmed by garbage collection.
    pub gc: T,
    /// The drive's own write amplification: programmed bytes divided by host bytes.
    pub nand_over_host: T,
}

impl<T: Copy> DeviceWa<T> {
    pub(super) fn rows(&self) -> [Named<T>; 3] {
        [
            (DEVICE_GC, "device.gc", self.gc),
            ("device total", "device.total", self.total),
            (
                FLASH_OVER_HOST,
                "device.nand_over_host",
                self.nand_over_host,
            ),
        ]
    }
}

/// Name of the row for garbage collection only.
const DEVICE_GC: &str = "device gc";
/// Name of the row for the drive's own ratio.
const FLASH_OVER_HOST: &str = "flash over host";

impl WaReport {
    /// A paragraph that explains the mark; `None` if no value has it.
    pub(super) fn untried_note(&self) -> Option<String> {
        untried_note(&self.untried)
    }

    /// Whether the prediction for the engine (or else for garbage collection) is outside the tested
    /// range.
    pub(super) fn is_untried(&self, decides: Decides) -> bool {
        is_untried(&self.untried, decides)
    }

    /// The rows of all components, measured beside predicted.
    pub(super) fn rows(&self) -> Vec<Row> {
        let (predicted, error) = (self.predicted.as_ref(), self.error.as_ref());
        let host = (0..).zip(self.host.rows());
        let host = host.map(|(i, (name, path, measured))| Row {
            name,
            path,
            measured,
            predicted: predicted.map(|p| p.host.rows()[i].2),
            error: error.and_then(|e| e.host.rows()[i].2),
            total: self.host.total,
            untried: self.is_untried(Decides::All),
        });
        let mut host: Vec<Row> = host.collect();
        let causes = self.host.page_causes.as_ref();
        if let Some(overflow) =
            causes.and_then(|causes| causes.row(self.host.total, self.is_untried(Decides::All)))
        {
            host.insert(2, overflow);
        }
        let device = self.device.iter().flat_map(|d| (0..).zip(d.rows()));
        let device = device.map(|(i, (name, path, measured))| Row {
            name,
            path,
            measured,
            predicted: predicted.and_then(|p| Some(p.device.as_ref()?.rows()[i].2)),
            error: error.and_then(|e| e.device.as_ref()?.rows()[i].2),
            // The last is a ratio, and no part of the total.
            total: match name {
                FLASH_OVER_HOST => measured,
                _ => self.device.map_or(0.0, |d| d.total),
            },
            untried: self.is_untried(match name {
                DEVICE_GC => Decides::Collection,
                _ => Decides::All,
            }),
        });
        let csd = self.csd.iter().flat_map(|c| (0..).zip(c.rows()));
        let csd = csd.map(|(i, (name, path, measured))| Row {
            name,
            path,
            measured,
            predicted: predicted.and_then(|p| Some(CsdWa::of_classes(p.csd?).get(i)?.2)),
            error: error.and_then(|e| CsdWa::of_classes(e.csd?).get(i)?.2),
            total: self.csd.map_or(0.0, |csd| csd.stored.total),
            untried: self.is_untried(Decides::All),
        });
        host.into_iter().chain(device).chain(csd).collect()
    }
}

/// Whether these make predictions for the engine (or else for garbage collection) uncertain.
pub(super) fn is_untried(untried: &[Untried], decides: Decides) -> bool {
    let mut untried = untried.iter();
    untried.any(|u| u.decides == Decides::All || u.decides == decides)
}

/// A paragraph on what is outside the tested range; `None` if nothing is.
pub(super) fn untried_note(untried: &[Untried]) -> Option<String> {
    if untried.is_empty() {
        return None;
    }
    let of = |decides| {
        let list = untried.iter().filter(move |u| u.decides == decides);
        let list: Vec<&str> = list.map(|u| u.sentence.as_str()).collect();
        list.join("; ")
    };
    let (all, collection) = (of(Decides::All), of(Decides::Collection));
    let collection = match collection.is_empty() {
        true => String::new(),
        false => format!("garbage collection alone: {collection}"),
    };
    let parts: Vec<String> = [all, collection]
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    Some(format!(
        "? The predictor was not tested for such runs: {}.",
        parts.join("; ")
    ))
}
