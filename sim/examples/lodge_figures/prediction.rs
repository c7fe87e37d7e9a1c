//! Predicted beside measured: what nodes buffer, what visits to leaves take along, and what that amplifies.

use treering_engine::{LodgeOptions, PmTreeKind};
use treering_sim::replay::ReplayError;

use crate::page::{Sheet, Table, percent};
use crate::patterns::{Pattern, Trace};
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
        "records a leaf visit",
        "predicted",
        "XBI",
        "predicted",
        "all",
        "leaves",
        "logs",
        "CLI",
    ]);
    let mut errors = Vec::new();
    for pattern in PATTERNS {
        let trace = Trace::new(pattern, KEYS)?;
        let sizes = [1, 2, 8];
        let reports = each(&sizes, |t_node| {
            let options = LodgeOptions {
                t_node: *t_node,
                ..lodge()
            };
            replay(&trace, PmTreeKind::Lodge(options), |_| {})
        })?;
        for (t_node, report) in sizes.iter().zip(&reports) {
            let pm = report.pm.as_ref().expect("it is pm");
            let own = pm.lodge.as_ref().expect("it is one");
            let nodes = own.predicted.expect("records fit leaves");
            let (predicted, error) = pm.predicted.zip(pm.error).expect("the same");
            let of = [error.xbi, error.xbi_leaf, error.xbi_log, error.cli];
            errors.extend(of.into_iter().flatten().map(f64::abs));
            let mut cells = vec![
                pattern.name().into(),
                t_node.to_string(),
                percent(own.free_share),
                percent(nodes.free_share),
                format!("{:.2}", own.pairs_per_leaf),
                format!("{:.2}", nodes.pairs_per_leaf),
                format!("{:.2}", pm.measured.xbi),
                format!("{:.2}", predicted.xbi),
            ];
            let said = |error: Option<f64>| match error {
                Some(error) => format!("{:+.1} %", 100.0 * error),
                None => "–".into(),
            };
            cells.extend(of.map(said));
            table.row(&cells);
        }
    }
    sheet.table("prediction", table);
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
    let mut summary = Table::new(&["figures", "median error", "90 % within", "largest"]);
    summary.row(&[
        errors.len().to_string(),
        percent(at(0.5)),
        percent(at(0.9)),
        percent(at(1.0)),
    ]);
    sheet.table("prediction-errors", summary);
    Ok(())
}
