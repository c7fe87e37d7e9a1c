//! §5.2: the savings of each technique.

use treering_engine::{CclOptions, Logging, PmTreeKind};
use treering_sim::replay::ReplayError;

use crate::cell::{Work, ccl, less, pm_of, replay, trace};
use crate::page::{Sheet, Table, percent};
use crate::run::each;

const RECORDS: u64 = 5_000_000;

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trace = trace(RECORDS, RECORDS, Work::Inserts)?;
    let every_write = PmTreeKind::Ccl(CclOptions {
        logging: Logging::EveryWrite,
        ..CclOptions::default()
    });
    let trees = [
        ("*Base* (`pmtree`)", PmTreeKind::PmTree),
        ("*+BNode* (`ccl --logging every-write`)", every_write),
        ("*+WLog* (`ccl`)", ccl(2)),
    ];
    let reports = each(&trees, |(_, tree)| replay(&trace, *tree, |_| {}))?;
    let mut table = Table::new(&["", "CLI", "XBI", "leaves", "log"]);
    for ((name, _), report) in trees.iter().zip(&reports) {
        let pm = pm_of(report).measured;
        let [cli, xbi, leaf, log] =
            [pm.cli, pm.xbi, pm.xbi_leaf, pm.xbi_log].map(|x| format!("{x:.2}"));
        table.row(&[(*name).into(), cli, xbi, leaf, log]);
    }
    sheet.table("techniques", table);
    let [base, naive, all] = [0, 1, 2].map(|i| pm_of(&reports[i]).measured);
    let rows = [
        (
            "leaves, by buffer nodes",
            less(all.xbi_leaf, base.xbi_leaf),
            0.639,
            "±1 point",
        ),
        (
            "all, by buffer nodes that log every write",
            less(naive.xbi, base.xbi),
            0.369,
            "33 to 44",
        ),
        (
            "the log, by not logging trigger writes",
            less(all.xbi_log, naive.xbi_log),
            0.265,
            "20 to 34",
        ),
        ("all, by both", less(all.xbi, base.xbi), 0.441, "±3 points"),
    ];
    let mut table = Table::new(&["XBI saved", "measured", "§5.2", "target"]);
    for (what, found, paper, band) in rows {
        table.row(&[what.into(), percent(found), percent(paper), band.into()]);
    }
    sheet.table("savings", table);
    Ok(())
}
