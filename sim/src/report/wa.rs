//! Write amplification in a report: measured, predicted, and how far apart they are.

use std::ops::Deref;

use serde::Serialize;

use crate::predict::tried::{Decides, Untried};

/// Components under this share of the total have no error in the report: a per cent of next to
/// nothing says nothing.
pub const LEAST_SHARE: f64 = 0.03;

/// Write amplification: measured, predicted, and the relative error.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaReport {
    /// Bytes the engine wrote over user bytes; on persistent memory, bytes of lines that reached
    /// the XPBuffer.
    pub host: HostReport,
    /// Bytes the drive programmed over user bytes; `null` on files.
    pub device: Option<DeviceWa<f64>>,
    /// The same, predicted; `null` where there is no prediction.
    pub predicted: Option<WaSide<f64>>,
    /// Measured over predicted, minus one; `null` where the component is under 3 % of the total.
    pub error: Option<WaSide<Option<f64>>>,
    /// What compression makes of it; `null` on drives without.
    pub csd: Option<CsdWa>,
    /// What of the prediction lies outside the bounds between which predictions were tried; empty
    /// if nothing does.
    pub untried: Vec<Untried>,
}

/// By class, and what wrote the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// By class.
    #[serde(flatten)]
    pub by_class: HostWa<f64>,
    /// The part of class page, by cause; `null` on persistent memory.
    pub page_causes: Option<PageCauses>,
}

impl Deref for HostReport {
    type Target = HostWa<f64>;

    fn deref(&self) -> &HostWa<f64> {
        &self.by_class
    }
}

/// Bytes of class page over user bytes, by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageCauses {
    /// Leaves, and the differences of leaves in modification logs; in persistent memory also keys
    /// and values of one piece.
    pub leaf: f64,
    /// Values that are longer than a quarter of a page, on blocks of their own; in persistent
    /// memory those that are longer than a chunk.
    pub overflow: f64,
    /// The same, predicted.
    pub overflow_predicted: Option<f64>,
}

impl PageCauses {
    /// The row of overflow blocks beside those of all pages, if there are any; `total`: measured,
    /// all classes.
    pub(super) fn row(&self, total: f64, untried: bool) -> Option<Row> {
        let predicted = self.overflow_predicted;
        let any = self.overflow > 0.0 || predicted.is_some_and(|p| p > 0.0);
        any.then(|| Row {
            name: "host page overflow",
            measured: self.overflow,
            predicted,
            error: predicted.and_then(|p| error(self.overflow, p, total)),
            untried,
        })
    }
}

/// Write amplification on a compressing drive, both ways: over user bytes and over compressed
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CsdWa {
    /// Compressed bytes over host bytes by class, α of B⁻-tree eq. (2); `null` where nothing was
    /// written.
    pub alpha: HostWa<Option<f64>>,
    /// Compressed bytes over user bytes by class, α·WA of the same equation.
    pub stored: HostWa<f64>,
    /// Bytes programmed over compressed bytes: garbage collection (and extent headers) alone.
    pub gc_only: f64,
}

impl CsdWa {
    pub(super) fn rows(&self) -> Vec<(&'static str, f64)> {
        let mut rows = CsdWa::of_classes(self.stored).to_vec();
        rows.push(("flash over compressed", self.gc_only));
        rows
    }

    pub(super) fn of_classes<T: Copy>(stored: HostWa<T>) -> [(&'static str, T); 4] {
        [
            ("compressed log", stored.log),
            ("compressed page", stored.page),
            ("compressed extra", stored.extra),
            ("compressed total", stored.total),
        ]
    }
}

/// Host and device together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaSide<T> {
    /// By the engine.
    pub host: HostWa<T>,
    /// By the drive.
    pub device: Option<DeviceWa<T>>,
    /// Compressed, by class: α·WA of B⁻-tree eq. (2); `null` on drives that do not.
    pub csd: Option<HostWa<T>>,
}

/// By class of the write, B⁻-tree eq. (1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa<T> {
    /// Redo log.
    pub log: T,
    /// Pages at their home.
    pub page: T,
    /// Journal, page table, snapshots, superblocks.
    pub extra: T,
    /// All.
    pub total: T,
}

impl<T: Copy> HostWa<T> {
    pub(super) fn rows(&self) -> [(&'static str, T); 4] {
        [
            ("host log", self.log),
            ("host page", self.page),
            ("host extra", self.extra),
            ("host total", self.total),
        ]
    }
}

/// Inside the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceWa<T> {
    /// All programs.
    pub total: T,
    /// Programs of garbage collection.
    pub gc: T,
    /// The drive's own ratio: programs over host writes.
    pub nand_over_host: T,
}

impl<T: Copy> DeviceWa<T> {
    pub(super) fn rows(&self) -> [(&'static str, T); 3] {
        [
            (DEVICE_GC, self.gc),
            ("device total", self.total),
            ("flash over host", self.nand_over_host),
        ]
    }
}

/// Name of the row of garbage collection alone.
const DEVICE_GC: &str = "device gc";

/// One row of the table of components, as every face shows it.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) measured: f64,
    pub(super) predicted: Option<f64>,
    pub(super) error: Option<f64>,
    /// Whether it is predicted outside the bounds between which predictions were tried.
    pub(super) untried: bool,
}

impl Row {
    /// The predicted value as tables show it, with the mark of what was never tried.
    pub(super) fn predicted(&self) -> Option<String> {
        let mark = if self.untried { UNTRIED_MARK } else { "" };
        self.predicted.map(|p| format!("{p:.3}{mark}"))
    }
}

/// Stands beside a value predicted outside the bounds between which predictions were tried.
const UNTRIED_MARK: &str = " ?";

impl WaReport {
    /// What the mark means here, in a paragraph; nothing if no value has one.
    pub(super) fn untried_note(&self) -> Option<String> {
        if self.untried.is_empty() {
            return None;
        }
        let of = |decides| {
            let list = self.untried.iter().filter(move |u| u.decides == decides);
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
            "? Predicted outside what the predictor was tried on: {}.",
            parts.join("; ")
        ))
    }

    /// Whether what is predicted of the engine (or else of garbage collection) was never tried like
    /// this.
    pub(super) fn is_untried(&self, decides: Decides) -> bool {
        let mut untried = self.untried.iter();
        untried.any(|u| u.decides == Decides::All || u.decides == decides)
    }

    /// All components, measured beside predicted.
    pub(super) fn rows(&self) -> Vec<Row> {
        let (predicted, error) = (self.predicted.as_ref(), self.error.as_ref());
        let host = (0..)
            .zip(self.host.rows())
            .map(|(i, (name, measured))| Row {
                name,
                measured,
                predicted: predicted.map(|p| p.host.rows()[i].1),
                error: error.and_then(|e| e.host.rows()[i].1),
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
        let device = device.map(|(i, (name, measured))| Row {
            name,
            measured,
            predicted: predicted.and_then(|p| Some(p.device.as_ref()?.rows()[i].1)),
            error: error.and_then(|e| e.device.as_ref()?.rows()[i].1),
            untried: self.is_untried(match name {
                DEVICE_GC => Decides::Collection,
                _ => Decides::All,
            }),
        });
        let csd = self.csd.iter().flat_map(|c| (0..).zip(c.rows()));
        let csd = csd.map(|(i, (name, measured))| Row {
            name,
            measured,
            predicted: predicted.and_then(|p| Some(CsdWa::of_classes(p.csd?).get(i)?.1)),
            error: error.and_then(|e| CsdWa::of_classes(e.csd?).get(i)?.1),
            untried: self.is_untried(Decides::All),
        });
        host.into_iter().chain(device).chain(csd).collect()
    }
}

/// `measured / predicted − 1`, or nothing for a component of little weight (on both sides).
pub fn error(measured: f64, predicted: f64, measured_total: f64) -> Option<f64> {
    let counts = measured.max(predicted) >= LEAST_SHARE * measured_total;
    (counts && predicted > 0.0).then(|| measured / predicted - 1.0)
}
