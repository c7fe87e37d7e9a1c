//! Figure 10: popularity from uniform to Zipf 1.0.

use treering_engine::TreeKind;
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{Cell, Mix, default_bf, per_op};
use crate::each;
use crate::page::{Sheet, Table, percent};

const THETAS: [f64; 6] = [0.0, 0.5, 0.7, 0.8, 0.9, 1.0];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut cells = Vec::new();
    for mix in [Mix::Half, Mix::Reads] {
        for tree in [TreeKind::BTree, default_bf()] {
            cells.extend(THETAS.map(|theta| Cell {
                theta,
                ..Cell::new(tree, mix)
            }));
        }
    }
    let measured = each(&cells, Cell::measure)?;
    let rows: Vec<_> = measured.chunks(THETAS.len()).collect();
    let mut table = Table::new(&[
        "Zipf exponent",
        "page I/Os, half updates: `btree`",
        "`bf`",
        "`btree` over `bf`",
        "hit ratio, reads only: `btree`",
        "`bf`",
        "points more",
    ]);
    for (i, theta) in THETAS.iter().enumerate() {
        let ios = [0, 1].map(|row: usize| rows[row][i].part.page_ios());
        let hits = [2, 3].map(|row: usize| rows[row][i].part.hit_ratio());
        table.row(&[
            match *theta {
                0.0 => "0 (uniform)".into(),
                theta => theta.to_string(),
            },
            per_op(ios[0]),
            per_op(ios[1]),
            format!("{:.2}", ios[0] / ios[1]),
            percent(hits[0]),
            percent(hits[1]),
            format!("{:+.1}", 100.0 * (hits[1] - hits[0])),
        ]);
    }
    sheet.table("skew", table);
    let curves = ["btree", "bf"].iter().zip(&rows).map(|(name, row)| Curve {
        name: (*name).into(),
        points: (THETAS.iter().zip(*row))
            .map(|(theta, found)| (*theta, found.part.page_ios()))
            .collect(),
    });
    sheet.picture(
        "bf-skew",
        &Lines {
            x: "Zipf exponent",
            y: "page I/Os an operation",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        },
    );
    Ok(())
}
