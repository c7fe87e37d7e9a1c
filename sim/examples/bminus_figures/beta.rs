//! Table 2: β for each page size, segment size and threshold.

use treering_engine::{LogPacking, ModLog, PageStoreKind, ResetRule, TreeKind};
use treering_sim::replay::{Acknowledge, ReplayError};

use crate::cell::{Cell, Load, log};
use crate::page::{Sheet, Table};
use crate::run::each;

/// The paper's table, for T of 4, 2 and 1 KiB.
const TABLE_2: [(usize, u32, [f64; 3]); 4] = [
    (8192, 128, [27.0, 12.4, 5.6]),
    (8192, 256, [26.3, 11.5, 4.8]),
    (16_384, 128, [12.7, 6.0, 2.8]),
    (16_384, 256, [12.3, 5.6, 2.3]),
];

/// Number of operations that are predicted, after which β is measured.
const OPS: u64 = 50_000;

struct Row {
    page_size: usize,
    rule: ModLog,
    paper: f64,
}

impl Row {
    fn cell(&self, load: Load, rule: ModLog, record: u64) -> Cell {
        Cell {
            tree: TreeKind::BTree,
            store: PageStoreKind::Shadow,
            mod_log: Some(rule),
            packing: LogPacking::Sparse,
            page_size: self.page_size,
            record,
            // About 1,000 leaves.
            data_bytes: 1000 * self.page_size as u64 * 9 / 10,
            data_over_cache: 100,
            load,
            warm_per_leaf: 250,
        }
    }
}

/// β of a store, measured and predicted.
fn beta(cell: &Cell) -> Result<(f64, f64), ReplayError> {
    let mut warm = cell.warm()?;
    let measured = warm.measure(OPS, 1, Acknowledge::Deferred)?;
    let predicted = measured
        .predicted
        .mod_log
        .map_or(0.0, |log| 100.0 * log.beta);
    Ok((warm.beta(), predicted))
}

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut rows = Vec::new();
    for (page_size, segment, cells) in TABLE_2 {
        for (threshold, paper) in [4096, 2048, 1024].into_iter().zip(cells) {
            let rule = log(threshold, segment);
            rows.push(Row {
                page_size,
                rule,
                paper,
            });
        }
    }
    let results = each(&rows, |row| {
        let literal = ModLog {
            reset: ResetRule::AboveThreshold,
            ..row.rule
        };
        Ok((
            beta(&row.cell(Load::Full, row.rule, 128))?,
            beta(&row.cell(Load::Full, row.rule, 32))?,
            beta(&row.cell(Load::Random, row.rule, 128))?,
            beta(&row.cell(Load::Full, literal, 128))?,
        ))
    })?;
    let mut table = Table::new(&[
        "page, Ds, T",
        "paper",
        "128 B, full leaves",
        "predicted",
        "32 B, full leaves",
        "predicted",
        "128 B, 69 % full",
        "predicted",
        "Δ of T still logged",
        "predicted",
    ]);
    let columns = [
        "128 B, full leaves",
        "32 B, full leaves",
        "128 B, 69 % full",
        "Δ of T still logged",
    ];
    let mut off = [(0.0f64, 0.0f64); 4];
    for (row, (full, narrow, random, literal)) in rows.iter().zip(results) {
        let mut cells = vec![
            format!(
                "{} KiB, {} B, {} KiB",
                row.page_size >> 10,
                row.rule.segment,
                row.rule.threshold >> 10
            ),
            format!("{:.1} %", row.paper),
        ];
        for ((measured, predicted), off) in
            [full, narrow, random, literal].into_iter().zip(&mut off)
        {
            off.0 = off.0.max((measured - row.paper).abs());
            off.1 = off.1.max((measured - predicted).abs());
            cells.push(format!("{measured:.2} %"));
            cells.push(format!("{predicted:.2} %"));
        }
        table.row(&cells);
    }
    sheet.table("beta", table);
    let mut summary = Table::new(&[
        "largest difference, in points",
        "from the paper",
        "from its prediction",
    ]);
    for (name, (paper, predicted)) in columns.into_iter().zip(off) {
        summary.row(&[
            name.into(),
            format!("{paper:.2}"),
            format!("{predicted:.2}"),
        ]);
    }
    sheet.table("beta-summary", summary);
    Ok(())
}
