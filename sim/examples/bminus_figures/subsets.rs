//! The contribution of each of the three techniques: all subsets, with both trees.

use treering_engine::{BfOptions, LogPacking, PageStoreKind, TreeKind};
use treering_sim::replay::{Acknowledge, ReplayError};

use crate::cell::{COW, Cell, log};
use crate::page::{Sheet, Table};
use crate::run::each;

const OPS: u64 = 150_000;

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut wanted = Vec::new();
    for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::PUBLISHED)] {
        for subset in 0..8u8 {
            let has = |bit: u8| subset & bit != 0;
            wanted.push(Cell {
                tree,
                store: if has(1) { PageStoreKind::Shadow } else { COW },
                mod_log: has(2).then(|| log(2048, 128)),
                packing: if has(4) {
                    LogPacking::Sparse
                } else {
                    LogPacking::Packed
                },
                data_bytes: crate::cell::DATA_BYTES / 5,
                data_over_cache: 20,
                warm_per_leaf: 60,
                ..Cell::bminus(8192, 128, 128)
            });
        }
    }
    let results = each(&wanted, |cell| {
        let mut warm = cell.warm()?;
        let minute = warm.measure(OPS, 4, Acknowledge::Deferred)?;
        Ok((minute, warm.measure(OPS, 4, Acknowledge::Commit)?))
    })?;
    let mut table = Table::new(&[
        "tree, shadowing, modification log, sparse log",
        "log",
        "pages",
        "extra",
        "WA, flushed per minute",
        "predicted",
        "log",
        "pages",
        "extra",
        "WA, flushed per commit",
        "predicted",
    ]);
    for (cell, (minute, commit)) in wanted.iter().zip(results) {
        let mark = |on: bool| if on { "yes" } else { "-" };
        let mut cells = vec![format!(
            "`{}`, {}, {}, {}",
            cell.tree.name(),
            mark(cell.store == PageStoreKind::Shadow),
            mark(cell.mod_log.is_some()),
            mark(cell.packing == LogPacking::Sparse)
        )];
        for measured in [minute, commit] {
            cells.extend(measured.stored().map(|wa| format!("{wa:.2}")));
            cells.push(format!("{:.2}", measured.predicted()[3]));
        }
        table.row(&cells);
    }
    sheet.table("subsets", table);
    Ok(())
}
