//! Figure 6, bottom: disk I/Os per operation by workload, and the causes of those of updates.

use treering_engine::TreeKind;
use treering_sim::replay::ReplayError;

use crate::cell::{Cell, Log, Mix, default_bf, per_op};
use crate::each;
use crate::page::{Sheet, Table, percent};

const ROWS: [(&str, Mix, Log); 5] = [
    ("update", Mix::Updates, Log::Endless),
    ("update, with checkpoints", Mix::Updates, Log::Fitted),
    ("half reads, half updates", Mix::Half, Log::Endless),
    ("point lookup", Mix::Reads, Log::Endless),
    ("scan of 32 records", Mix::Scans, Log::Endless),
];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let cells: Vec<Cell> = ROWS
        .iter()
        .flat_map(|(_, mix, log)| {
            [TreeKind::BTree, default_bf()].map(|tree| Cell {
                log: *log,
                ..Cell::new(tree, *mix)
            })
        })
        .collect();
    let measured = each(&cells, Cell::measure)?;
    let mut table = Table::new(&[
        "workload",
        "`btree` reads",
        "writes",
        "page I/Os",
        "`bf` reads",
        "writes",
        "page I/Os",
        "`btree` over `bf`",
    ]);
    let mut causes = Table::new(&[
        "workload",
        "merges: eviction",
        "copy on access",
        "room",
        "checkpoint",
        "records per merge",
        "leaves looked at by writes",
    ]);
    for ((name, mix, _), pair) in ROWS.iter().zip(measured.chunks(2)) {
        let [btree, bf] = [&pair[0].part, &pair[1].part];
        table.row(&[
            (*name).into(),
            per_op(btree.page_reads()),
            per_op(btree.page_writes()),
            per_op(btree.page_ios()),
            per_op(bf.page_reads()),
            per_op(bf.page_writes()),
            per_op(bf.page_ios()),
            format!("{:.2}", btree.page_ios() / bf.page_ios()),
        ]);
        if *mix == Mix::Updates {
            let found = bf.bf().unwrap_or_default();
            let rate = |n: u64| per_op(n as f64 / bf.ops as f64);
            let merges = &found.merges;
            causes.row(&[
                (*name).into(),
                rate(merges.eviction),
                rate(merges.copy_on_access),
                rate(merges.room),
                rate(merges.checkpoint),
                format!(
                    "{:.1}",
                    found.merged_records as f64 / merges.total().max(1) as f64
                ),
                rate(found.leaf_reads),
            ]);
        }
    }
    sheet.table("overall", table);
    sheet.table("overall-causes", causes);
    let reads = ROWS.iter().position(|row| row.1 == Mix::Reads);
    let pair = &measured[2 * reads.expect("a row of reads")..][..2];
    let mut hits = Table::new(&["tree", "hit ratio, reads only", "records per leaf"]);
    for (name, found) in ["`btree`", "`bf`"].iter().zip(pair) {
        hits.row(&[
            (*name).into(),
            percent(found.part.hit_ratio()),
            format!("{:.1}", found.records_per_leaf),
        ]);
    }
    sheet.table("overall-hits", hits);
    Ok(())
}
