//! Figures 13 and 14: costs and savings of the threshold.

use treering_sim::replay::{Acknowledge, ReplayError};
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{Cell, log};
use crate::page::{Sheet, Table};
use crate::run::each;

const OPS: u64 = 200_000;
const THRESHOLDS: [u32; 4] = [512, 1024, 2048, 4096];
const RECORDS: [u64; 3] = [128, 32, 16];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut wanted = Vec::new();
    for record in RECORDS {
        wanted.extend(THRESHOLDS.map(|threshold| (record, threshold)));
    }
    let results = each(&wanted, |(record, threshold)| {
        let cell = Cell {
            mod_log: Some(log(*threshold, 128)),
            // A quarter of the data suffices here.
            data_bytes: crate::cell::DATA_BYTES / 4,
            ..Cell::bminus(8192, *record, 128)
        };
        let mut warm = cell.warm()?;
        let measured = warm.measure(OPS, 4, Acknowledge::Deferred)?;
        Ok((measured.stored()[3], measured.predicted()[3], warm.beta()))
    })?;
    let mut table = Table::new(&["record, T", "WA after compression", "predicted", "β"]);
    let mut curves = Vec::new();
    for record in RECORDS {
        let mut points = Vec::new();
        for ((of, threshold), (wa, predicted, beta)) in wanted.iter().zip(&results) {
            if *of != record {
                continue;
            }
            table.row(&[
                format!("{record} B, {threshold} B"),
                format!("{wa:.2}"),
                format!("{predicted:.2}"),
                format!("{beta:.1} %"),
            ]);
            points.push((f64::from(*threshold), *wa));
        }
        let name = format!("{record} B");
        curves.push(Curve { name, points });
    }
    sheet.table("threshold", table);
    sheet.picture(
        "bminus-threshold",
        &Lines {
            x: "T in bytes",
            y: "WA after compression",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves,
        },
    );
    Ok(())
}
