//! Figure 12: caches of 256 MB to 4 GB, reads only.

use treering_engine::TreeKind;
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{CACHE, Cell, Mix, default_bf, per_op};
use crate::each;
use crate::page::{Sheet, Table, percent};

/// Cache sizes of the paper in GB; 2 GB correspond to [`CACHE`].
const SIZES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut cells = Vec::new();
    for tree in [TreeKind::BTree, default_bf()] {
        cells.extend(SIZES.map(|size| Cell {
            cache: CACHE * size / 2.0,
            ..Cell::new(tree, Mix::Reads)
        }));
    }
    let measured = each(&cells, Cell::measure)?;
    let rows: Vec<_> = measured.chunks(SIZES.len()).collect();
    let mut table = Table::new(&[
        "cache, of the data",
        "in the paper",
        "page reads: `btree`",
        "`bf`",
        "`btree` over `bf`",
        "hit ratio: `btree`",
        "`bf`",
    ]);
    for (i, size) in SIZES.iter().enumerate() {
        let [btree, bf] = [0, 1].map(|row: usize| &rows[row][i].part);
        table.row(&[
            percent(CACHE * size / 2.0),
            format!("{} MB", size * 1000.0),
            per_op(btree.page_reads()),
            per_op(bf.page_reads()),
            format!("{:.2}", btree.page_reads() / bf.page_reads()),
            percent(btree.hit_ratio()),
            percent(bf.hit_ratio()),
        ]);
    }
    sheet.table("cache-size", table);
    let curves = ["btree", "bf"].iter().zip(&rows).map(|(name, row)| Curve {
        name: (*name).into(),
        points: (SIZES.iter().zip(*row))
            .map(|(size, found)| (50.0 * CACHE * size, found.part.page_reads()))
            .collect(),
    });
    sheet.picture(
        "bf-cache-size",
        &Lines {
            x: "cache, % of the data",
            y: "pages read by a lookup",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        },
    );
    Ok(())
}
