//! Predicted beside measured: what nodes buffer, how many changes a visit to a leaf brings, and the
//! resulting amplification.

use treering_engine::{LodgeOptions, PmTreeKind};
use treering_sim::replay::ReplayError;

use crate::errors::Errors;
use crate::page::{Sheet, Table, percent};
use crate::patterns::Pattern;
use crate::run::each;
use crate::{KEYS, lodge, replay};

const PATTERNS: [Pattern; 7] = [
    Pattern::Uniform,
    Pattern::Skewed,
    Pattern::Sequential,
    Pattern::Burst,
    Pattern::Updates,
    Pattern::HotUpdates,
    Pattern::FewUpdates,
];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut table = Table::new(&[
        "writes",
        "t_node",
        "free slots",
        "predicted",
        "records per leaf visit",
        "predicted",
        "XBI",
        "predicted",
        "all",
        "leaves",
        "logs",
        "CLI",
    ]);
    let mut errors = Errors::default();
    for pattern in PATTERNS {
        let trace = pattern.trace(KEYS)?;
        let sizes = [1, 2, 8];
        let reports = each(&sizes, |t_node| {
            let options = LodgeOptions {
                t_node: *t_node,
                ..lodge()
            };
            replay(&trace, PmTreeKind::Lodge(options), |_| {})
        })?;
        for (t_node, report) in sizes.iter().zip(&reports) {
            // `predict::tried` claims that this was tested; it is tested here.
            assert_eq!(report.wa.untried, [], "outside its own bounds");
            let pm = report.pm.as_ref().expect("it is pm");
            let own = pm.lodge.as_ref().expect("it is one");
            let nodes = own.predicted.expect("records fit leaves");
            let (predicted, error) = pm.predicted.zip(pm.error).expect("the same");
            let of = [error.xbi, error.xbi_leaf, error.xbi_log, error.cli];
            let mut cells = vec![
                pattern.name().into(),
                t_node.to_string(),
                percent(own.free_share),
                percent(nodes.free_share),
                format!("{:.2}", own.pairs_per_leaf),
                format!("{:.2}", nodes.pairs_per_leaf),
                format!("{:.2}", pm.measured.xbi),
                format!("{:.2}", predicted.xbi.value()),
            ];
            cells.extend(errors.note(of));
            table.row(&cells);
        }
    }
    sheet.table("prediction", table);
    errors.sum_up(sheet);
    Ok(())
}
