//! Predicted beside measured amplification by leaves and log, for each size of buffer node and each
//! workload.

use treering_sim::replay::ReplayError;

use crate::cell::{Work, ccl, pm_of, replay, trace};
use crate::errors::Errors;
use crate::page::{Sheet, Table};
use crate::run::each;

const RECORDS: u64 = 1_000_000;

const WORKS: [Work; 4] = [
    Work::Inserts,
    Work::GrowingZipf(0.9),
    Work::Uniform,
    Work::Zipf(0.9),
];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut table = Table::new(&["", "N_batch", "XBI", "predicted", "all", "leaves", "log"]);
    let mut errors = Errors::default();
    for work in WORKS {
        let trace = trace(RECORDS, 2 * RECORDS, work)?;
        let batches: Vec<usize> = (1..=5).collect();
        let reports = each(&batches, |batch| replay(&trace, ccl(*batch), |_| {}))?;
        for (batch, report) in batches.iter().zip(&reports) {
            // `predict::tried` claims that this was tested; it is tested here.
            assert_eq!(report.wa.untried, [], "outside its own bounds");
            let pm = pm_of(report);
            let (predicted, error) = pm.predicted.zip(pm.error).expect("records fit leaves");
            let of = [error.xbi, error.xbi_leaf, error.xbi_log];
            let [all, leaves, log] = errors.note(of);
            table.row(&[
                work.name(),
                batch.to_string(),
                format!("{:.2}", pm.measured.xbi),
                format!("{:.2}", predicted.xbi.value()),
                all,
                leaves,
                log,
            ]);
        }
    }
    sheet.table("prediction", table);
    errors.sum_up(sheet);
    Ok(())
}
