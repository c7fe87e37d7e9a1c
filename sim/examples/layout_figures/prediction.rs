//! Bytes per record, predicted from all keys and from samples, compared with the bytes that pages
//! take.

use treering_engine::node::LayoutChoice;
use treering_sim::layouts::keys::{self, Order};

use crate::cell::{LAYOUTS, SEED, Set, bytes, measure, sample};
use crate::page::{Sheet, Table, percent};

/// Shares of the keys, and the number of samples of each size.
const SHARES: [(f64, u64); 3] = [(0.01, 5), (0.1, 5), (1.0, 1)];

/// Records are divided by this, because each set is built and predicted several times.
const FRACTION: u32 = 10;

pub(crate) fn table(records: u32, strings: Option<&Set>, sheet: &mut Sheet) {
    let records = records / FRACTION;
    let mut table = Table::new(&[
        "keys",
        "records",
        "from 1 %, off on average",
        "at most",
        "from 10 %, off on average",
        "at most",
        "from all, at most",
        "worst in",
    ]);
    for order in [Order::Random, Order::Sorted] {
        let name = |name: &str| match order {
            Order::Random => format!("{name}, random"),
            Order::Sorted => format!("{name}, sorted"),
        };
        let dense = keys::dense(records, 1.0, order, SEED);
        line(&name("dense"), &bytes(&dense), &mut table);
        let half = keys::dense(records, 0.5, order, SEED);
        line(&name("density 50 %"), &bytes(&half), &mut table);
        let quarter = keys::dense(records, 0.25, order, SEED);
        line(&name("density 25 %"), &bytes(&quarter), &mut table);
        line(
            &name("sparse"),
            &bytes(&keys::sparse(records, order, SEED)),
            &mut table,
        );
        if let Some(urls) = strings {
            for (set, keys) in [("URLs", urls.keys.clone()), ("titles", urls.titles().keys)] {
                let mut keys = keys;
                if order == Order::Sorted {
                    keys.sort_unstable();
                }
                line(&name(set), &keys, &mut table);
            }
        }
    }
    sheet.table("prediction", table);
}

fn line<K: AsRef<[u8]>>(name: &str, keys: &[K], table: &mut Table) {
    let measured = LAYOUTS.map(|choice| measure(choice, keys).bytes_per_record());
    let mut cells = vec![name.to_string(), keys.len().to_string()];
    let mut worst = (0.0, LayoutChoice::ADAPTIVE);
    for (share, samples) in SHARES {
        let mut off = Vec::new();
        for seed in 0..samples {
            let sample = sample(keys, share, seed);
            for (choice, measured) in LAYOUTS.iter().zip(measured) {
                let error = (sample.forecast(*choice).bytes_per_record() / measured - 1.0).abs();
                if share == 1.0 && error >= worst.0 {
                    worst = (error, *choice);
                }
                off.push(error);
            }
        }
        let most = off.iter().copied().fold(0.0, f64::max);
        if share < 1.0 {
            cells.push(percent(off.iter().sum::<f64>() / off.len() as f64));
        }
        cells.push(percent(most));
    }
    cells.push(format!("`{}`", worst.1.name()));
    table.row(&cells);
}
