//! Figures 9, 11 and 12: write amplification by record size, page size, clients and flush policy.

use treering_sim::replay::{Acknowledge, ReplayError};
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{COMPONENTS, Cell, Measured};
use crate::page::{Sheet, Table, percent};
use crate::run::each;

const RECORDS: [u64; 3] = [128, 32, 16];
const PAGES: [usize; 2] = [8192, 16_384];
const CLIENTS: [u32; 5] = [1, 2, 4, 8, 16];

/// Measured operations for each combination of clients and policy.
const OPS: u64 = 50_000;

/// The trees that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Baseline,
    Bminus(u32),
    /// The B⁻-tree with a packed log, for Figure 11.
    Packed,
}

impl Kind {
    const ALL: [Kind; 4] = [
        Kind::Baseline,
        Kind::Bminus(128),
        Kind::Bminus(256),
        Kind::Packed,
    ];

    fn name(self) -> String {
        match self {
            Kind::Baseline => "`cow`".into(),
            Kind::Bminus(segment) => format!("`bminus`, Ds {segment}"),
            Kind::Packed => "`bminus`, packed log".into(),
        }
    }

    fn cell(self, page_size: usize, record: u64) -> Cell {
        match self {
            Kind::Baseline => Cell::baseline(page_size, record),
            Kind::Bminus(segment) => Cell::bminus(page_size, record, segment),
            Kind::Packed => Cell {
                packing: treering_engine::LogPacking::Packed,
                ..Cell::bminus(page_size, record, 128)
            },
        }
    }
}

struct Store {
    kind: Kind,
    page_size: usize,
    record: u64,
    /// Results by policy, then by number of clients.
    by_minute: Vec<Measured>,
    by_commit: Vec<Measured>,
}

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut wanted = Vec::new();
    for record in RECORDS {
        for page_size in PAGES {
            // The packed log matters only if commits flush, and its effect does not depend on the
            // page size.
            let kinds = Kind::ALL.into_iter();
            wanted.extend(
                kinds
                    .filter(|kind| *kind != Kind::Packed || page_size == 8192)
                    .map(|kind| (kind, page_size, record)),
            );
        }
    }
    let stores = each(&wanted, |(kind, page_size, record)| {
        let mut warm = kind.cell(*page_size, *record).warm()?;
        let mut by = |acknowledge| -> Result<Vec<Measured>, ReplayError> {
            let clients = CLIENTS.into_iter();
            clients.map(|n| warm.measure(OPS, n, acknowledge)).collect()
        };
        let store = Store {
            kind: *kind,
            page_size: *page_size,
            record: *record,
            by_minute: by(Acknowledge::Deferred)?,
            by_commit: by(Acknowledge::Commit)?,
        };
        eprintln!("  {} B, {} KiB, {}", record, page_size >> 10, kind.name());
        Ok(store)
    })?;
    let find = |kind, page_size, record| {
        stores
            .iter()
            .find(|s| (s.kind, s.page_size, s.record) == (kind, page_size, record))
            .expect("measured")
    };
    totals(sheet, "per-minute", &stores, |s| &s.by_minute);
    totals(sheet, "per-commit", &stores, |s| &s.by_commit);
    log_only(sheet, &stores);
    ratios(sheet, &find);
    errors(sheet, &stores);
    Ok(())
}

/// WA after compression, by number of clients.
fn totals(sheet: &mut Sheet, name: &str, stores: &[Store], by: impl Fn(&Store) -> &[Measured]) {
    let mut head = vec!["record, page, tree".to_string()];
    head.extend(CLIENTS.map(|n| format!("{n} client{}", if n == 1 { "" } else { "s" })));
    head.extend(["log", "pages", "extra", "host bytes", "flash"].map(String::from));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for store in stores {
        let page = store.page_size >> 10;
        let mut cells = vec![format!(
            "{} B, {page} KiB, {}",
            store.record,
            store.kind.name()
        )];
        let measured = by(store);
        cells.extend(measured.iter().map(|m| format!("{:.1}", m.stored()[3])));
        let one = &measured[0];
        cells.extend(one.stored()[..3].iter().map(|wa| format!("{wa:.2}")));
        let (host, flash) = one.host_and_flash();
        cells.extend([format!("{host:.1}"), format!("{flash:.1}")]);
        table.row(&cells);
    }
    sheet.table(name, table);
}

/// Figure 11: WA of the log only.
fn log_only(sheet: &mut Sheet, stores: &[Store]) {
    let mut head = vec!["record, log".to_string()];
    head.extend(CLIENTS.map(|n| format!("{n}")));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    let mut curves = Vec::new();
    for (kind, log) in [(Kind::Packed, "packed"), (Kind::Bminus(128), "sparse")] {
        for record in RECORDS {
            let store = stores
                .iter()
                .find(|s| (s.kind, s.page_size, s.record) == (kind, 8192, record));
            let Some(store) = store else { continue };
            let wa: Vec<f64> = store.by_commit.iter().map(|m| m.stored()[0]).collect();
            let mut cells = vec![format!("{record} B, {log}")];
            cells.extend(wa.iter().map(|wa| format!("{wa:.2}")));
            table.row(&cells);
            curves.push(Curve {
                name: format!("{record} B, {log}"),
                points: CLIENTS.into_iter().map(f64::from).zip(wa).collect(),
            });
        }
    }
    sheet.table("log", table);
    sheet.picture(
        "bminus-log",
        &Lines {
            x: "clients",
            y: "WA of the log, after compression",
            scale: Scale::Log,
            y_scale: Scale::Log,
            curves,
        },
    );
}

/// Ratios that the paper states in numbers, with one client and a flush per minute.
fn ratios<'a>(sheet: &mut Sheet, find: &impl Fn(Kind, usize, u64) -> &'a Store) {
    let total = |kind, page, record| find(kind, page, record).by_minute[0].stored()[3];
    let less = |page, record| {
        1.0 - total(Kind::Bminus(128), page, record) / total(Kind::Baseline, page, record)
    };
    let mut table = Table::new(&["", "paper", "target", "measured"]);
    let mut row = |what: &str, paper: &str, target: &str, measured: String| {
        table.row(&[what.into(), paper.into(), target.into(), measured]);
    };
    row(
        "`bminus` below `cow`, 128 B, 8 KiB",
        "88 % (64, 8)",
        "≥ 75 %",
        percent(less(8192, 128)),
    );
    row(
        "32 B, 8 KiB",
        "90 % (268, 28)",
        "≥ 75 %",
        percent(less(8192, 32)),
    );
    row(
        "32 B, 16 KiB",
        "93 % (530, 36)",
        "≥ 83 %",
        percent(less(16_384, 32)),
    );
    row("16 B, 8 KiB", "", "", percent(less(8192, 16)));
    row("16 B, 16 KiB", "", "", percent(less(16_384, 16)));
    let ratio = |kind, page: (usize, usize), record| {
        total(kind, page.1, record) / total(kind, page.0, record)
    };
    for record in RECORDS {
        row(
            &format!("`cow`, 16 over 8 KiB, {record} B"),
            if record == 32 { "1.98 (530, 268)" } else { "" },
            "",
            format!("{:.2}", ratio(Kind::Baseline, (8192, 16_384), record)),
        );
    }
    for record in RECORDS {
        let pages = |page| find(Kind::Baseline, page, record).by_minute[0].stored()[1];
        row(
            &format!("the same, pages alone, {record} B"),
            "",
            "2.0 ± 4 %",
            format!("{:.2}", pages(16_384) / pages(8192)),
        );
    }
    for record in RECORDS {
        row(
            &format!("`bminus`, 16 over 8 KiB, {record} B"),
            if record == 32 { "1.29 (36, 28)" } else { "" },
            "1.29 ± 10 %",
            format!("{:.2}", ratio(Kind::Bminus(128), (8192, 16_384), record)),
        );
    }
    for page in PAGES {
        for record in RECORDS {
            let wider =
                total(Kind::Bminus(256), page, record) / total(Kind::Bminus(128), page, record);
            row(
                &format!("Ds 256 over 128, {} KiB, {record} B", page >> 10),
                "",
                if page == 8192 {
                    "1.27 ± 15 %"
                } else {
                    "1.47 ± 15 %"
                },
                format!("{wider:.2}"),
            );
        }
    }
    sheet.table("ratios", table);
}

/// Errors of the predictions, for all components of all points.
fn errors(sheet: &mut Sheet, stores: &[Store]) {
    let mut all: Vec<(usize, f64, String)> = Vec::new();
    for store in stores {
        let policies = [("minute", &store.by_minute), ("commit", &store.by_commit)];
        for (policy, measured) in policies {
            for (m, clients) in measured.iter().zip(CLIENTS) {
                let place = || {
                    let page = store.page_size >> 10;
                    let kind = store.kind.name();
                    format!(
                        "{} B, {page} KiB, {kind}, {clients} clients, per {policy}",
                        store.record
                    )
                };
                for (i, error) in m.errors().into_iter().enumerate() {
                    all.extend(error.map(|e| (i, e.abs(), place())));
                }
            }
        }
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut table = Table::new(&[
        "component",
        "points",
        "median error",
        "90 %",
        "largest",
        "where",
    ]);
    let mut row = |name: &str, some: &[&(usize, f64, String)]| {
        let Some(last) = some.last() else { return };
        let at = |share: f64| percent(some[((some.len() - 1) as f64 * share) as usize].1);
        table.row(&[
            name.into(),
            some.len().to_string(),
            at(0.5),
            at(0.9),
            percent(last.1),
            last.2.clone(),
        ]);
    };
    for (i, name) in COMPONENTS.into_iter().enumerate() {
        row(
            name,
            &all.iter().filter(|(at, ..)| *at == i).collect::<Vec<_>>(),
        );
    }
    row("all of these", &all.iter().collect::<Vec<_>>());
    sheet.table("errors", table);
}
