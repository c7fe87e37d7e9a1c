//! A predicted case, described by the quantities that have bounds.

use rustc_hash::FxHashMap;
use treering_engine::{Durability, Options, PageStoreKind, TreeKind};
use treering_traces::OpKind;

use crate::predict::device::{Before, DeviceParams};
use crate::predict::leaf::LeafLevel;
use crate::predict::log::Pace;
use crate::predict::workload::{NEVER, Workload};

use super::grids::Family;
use super::quantity::Quantity;

/// A predicted case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The family whose grid applies; `None` if there is none.
    pub family: Option<Family>,
    /// Tree, store and drive in words.
    pub combination: String,
    values: Vec<(Quantity, f64)>,
}

impl Case {
    /// The case of a page tree on a drive.
    pub(in crate::predict) fn of_pages(
        workload: &Workload,
        options: &Options,
        level: &LeafLevel,
        (device, pace): (&DeviceParams, Option<&Pace>),
    ) -> Case {
        let compresses = device.compression.is_some();
        let buffered = matches!(options.tree, TreeKind::Bf(_));
        let family = match (compresses, buffered, options.mod_log.is_some()) {
            (false, false, false) if options.store != PageStoreKind::Shadow => Some(Family::Pages),
            (false, true, false) if options.store == PageStoreKind::InPlace => {
                Some(Family::MiniPages)
            }
            (true, _, false) => Some(Family::Compressed),
            (true, _, true) => Some(Family::CompressedModLog),
            (false, _, _) => None,
        };
        let in_place = options.store == PageStoreKind::InPlace;
        let combination = format!(
            "{}{} on {}",
            options.tree_name(),
            if options.mod_log.is_some() {
                " with a modification log"
            } else {
                ""
            },
            match (compresses, in_place) {
                (true, true) => "pages written in place, on a drive that compresses",
                (true, false) => "a drive that compresses",
                (false, true) => "pages written in place",
                (false, false) if options.store.table().is_some() => "copy-on-write pages",
                (false, false) if options.store == PageStoreKind::Shadow => "shadowed pages",
                (false, false) => "pages of another store",
            }
        );
        let mut case = Case {
            family: family.filter(|_| !(compresses && in_place)),
            combination,
            values: values(workload),
        };
        if let Durability::Grouped(interval) = options.durability {
            let seconds = interval.0 as f64 / 1e9;
            case.values.push((Quantity::FlushInterval, seconds));
        }
        case.values.extend(pace.iter().flat_map(|pace| {
            [
                (Quantity::Commits, f64::from(u8::from(pace.commits))),
                (Quantity::Clients, f64::from(pace.clients)),
            ]
        }));
        let in_use = f64::from(u8::from(device.before != Before::Nothing));
        case.values.push((Quantity::DriveInUse, in_use));
        let leaves = level.count();
        let leaf_bytes = leaves * options.page_size as f64;
        let ops = (workload.measured.all_ops() as f64).max(1.0);
        let warmup_end = workload.warmup.all_ops() / workload.tick;
        let grown = (level.splits.iter())
            .filter(|split| u64::from(split.time) >= warmup_end)
            .count();
        case.values.extend([
            (
                Quantity::CacheShare,
                options.cache_bytes as f64 / leaf_bytes.max(1.0),
            ),
            (Quantity::PageBytes, options.page_size as f64),
            (Quantity::Leaves, leaves),
            (Quantity::Runs, level.in_runs() / ops),
            (
                Quantity::Growth,
                grown as f64 * level.weight / leaves.max(1.0),
            ),
            (
                Quantity::RewritesOfLeaf,
                workload.rewrites_before / leaves.max(1.0),
            ),
        ]);
        case
    }

    /// The case of a tree in persistent memory.
    #[must_use]
    pub fn of_pm(workload: &Workload, family: Family) -> Case {
        let mut case = Case {
            family: Some(family),
            combination: String::new(),
            values: values(workload),
        };
        case.values.push((Quantity::Records, workload.records()));
        case
    }

    /// The value of a quantity, if the case has it.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        let found = self.values.iter().find(|(q, _)| *q == quantity);
        found.map(|(_, value)| *value)
    }

    #[cfg(test)]
    pub(super) fn made_up(family: Family, values: Vec<(Quantity, f64)>) -> Case {
        Case {
            family: Some(family),
            combination: String::new(),
            values,
        }
    }
}

/// The quantities that follow from the trace alone.
fn values(workload: &Workload) -> Vec<(Quantity, f64)> {
    let ops = (workload.measured.all_ops() as f64).max(1.0);
    let of = |kind| workload.measured.of(kind) as f64 / ops;
    let mut values = vec![
        (Quantity::HottestTenth, hottest_tenth(workload)),
        (Quantity::Writes, workload.measured.writes() as f64 / ops),
        (Quantity::Deletes, of(OpKind::Delete)),
        (Quantity::Scans, of(OpKind::Scan)),
        (
            Quantity::RecordBytes,
            workload.data_bytes() / workload.records().max(1.0),
        ),
    ];
    values.extend(workload.burstiness.map(|b| (Quantity::Burstiness, b)));
    values
}

/// Share of the measured operations that the hottest tenth of the keys takes.
fn hottest_tenth(workload: &Workload) -> f64 {
    // Group keys by count: there are fewer counts than keys.
    let mut by_count: FxHashMap<u64, u64> = FxHashMap::default();
    let (mut all, mut keys) = (0, 0);
    for k in workload.keys.iter().filter(|k| k.first_put != NEVER) {
        let count = u64::from(k.reads) + u64::from(k.writes);
        *by_count.entry(count).or_default() += 1;
        all += count;
        keys += 1;
    }
    let mut left = keys / 10;
    if all == 0 || left == 0 {
        return 0.0;
    }
    let mut by_count: Vec<(u64, u64)> = by_count.into_iter().collect();
    by_count.sort_unstable_by(|a, b| b.cmp(a));
    let mut hot = 0;
    for (count, keys) in by_count {
        let some = keys.min(left);
        hot += some * count;
        left -= some;
    }
    hot as f64 / all as f64
}
