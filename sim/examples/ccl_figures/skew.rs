//! Uniform and skewed updates, compared with a tree without buffers and a tree with one buffer for
//! all leaves.

use treering_engine::{GlobalOptions, PmTreeKind};
use treering_sim::replay::ReplayError;

use crate::cell::{Work, ccl, pm_of, replay, trace};
use crate::page::{Sheet, Table};
use crate::run::each;

const RECORDS: u64 = 2_000_000;

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trees = [
        PmTreeKind::PmTree,
        PmTreeKind::Global(GlobalOptions::default()),
        ccl(2),
    ];
    let mut table = Table::new(&["", "tree", "CLI", "over `pmtree`", "XBI", "over `pmtree`"]);
    for work in [Work::Uniform, Work::Zipf(0.9)] {
        let trace = trace(RECORDS, 2 * RECORDS, work)?;
        let reports = each(&trees, |tree| replay(&trace, *tree, |_| {}))?;
        let base = pm_of(&reports[0]).measured;
        for (tree, report) in trees.iter().zip(&reports) {
            let pm = pm_of(report).measured;
            table.row(&[
                work.name(),
                format!("`{}`", tree.name()),
                format!("{:.2}", pm.cli),
                format!("{:.2}", pm.cli / base.cli),
                format!("{:.2}", pm.xbi),
                format!("{:.2}", pm.xbi / base.xbi),
            ]);
        }
    }
    sheet.table("skew", table);
    Ok(())
}
