//! Reports: tables of rates, their ratios, and the targets, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::count::Cost;
use super::run::{Plan, Row, Table, median};
use super::subject::What;
use super::work::Kind;

/// The schema of the JSON document.
pub const SCHEMA: &str = "treering.bench.layouts/1";

/// The pairs of layouts that are compared. By the paper's figures, they differ in one optimisation.
const PAIRS: [(&str, &str, &str); 10] = [
    ("prefix", "baseline", "Figure 8"),
    ("slotted", "prefix", "Figure 8"),
    ("hints", "slotted", "Figure 8"),
    ("hints", "prefix", ""),
    ("fingerprint", "hints", "Figure 10"),
    ("semi-dense", "hints", "Figure 11"),
    ("fully-dense", "hints", "Figure 11"),
    ("adaptive", "fingerprint", "Figure 16"),
    ("adaptive", "fully-dense", "Figure 16"),
    ("adaptive", "baseline", "Figure 1"),
];

/// A target.
struct Target {
    /// A part of the names of the key sets that it applies to. An empty list means all sets.
    sets: &'static [&'static str],
    over: &'static str,
    under: Under,
    kinds: &'static [Kind],
    holds: Holds,
}

/// The rate by which a figure is divided.
enum Under {
    Row(&'static str),
    /// The faster of fingerprints and fully dense leaves (Figure 16).
    BetterFixed,
    BestTrie,
}

enum Holds {
    AtLeast(f64),
    Below(f64),
}

const NUMBERS: &[&str] = &["dense", "sparse"];

const TARGETS: [Target; 8] = [
    Target {
        sets: NUMBERS,
        over: "hints",
        under: Under::Row("prefix"),
        kinds: &[Kind::Lookups],
        holds: Holds::AtLeast(1.3),
    },
    Target {
        sets: &["url"],
        over: "fingerprint",
        under: Under::Row("hints"),
        kinds: &[Kind::Lookups],
        holds: Holds::AtLeast(1.1),
    },
    Target {
        sets: &["url"],
        over: "fingerprint",
        under: Under::Row("hints"),
        kinds: &[Kind::Scans],
        holds: Holds::Below(1.0),
    },
    Target {
        sets: &["dense"],
        over: "fully-dense",
        under: Under::Row("hints"),
        kinds: &[Kind::Lookups],
        holds: Holds::AtLeast(1.5),
    },
    Target {
        sets: &["dense"],
        over: "fully-dense",
        under: Under::Row("hints"),
        kinds: &[Kind::Inserts],
        holds: Holds::AtLeast(2.0),
    },
    Target {
        sets: &["dense"],
        over: "adaptive",
        under: Under::Row("baseline"),
        kinds: &[Kind::Lookups],
        holds: Holds::AtLeast(2.5),
    },
    Target {
        sets: &[],
        over: "adaptive",
        under: Under::BetterFixed,
        kinds: &Kind::ALL,
        holds: Holds::AtLeast(0.95),
    },
    Target {
        sets: &[],
        over: "adaptive",
        under: Under::BestTrie,
        kinds: &[Kind::Scans],
        holds: Holds::AtLeast(1.8),
    },
];

impl Under {
    /// Returns the row and its name.
    fn of<'a>(&self, table: &'a Table, kind: Kind) -> Option<&'a Row> {
        let faster = |a: &&Row, b: &&Row| {
            let speed = |row: &&Row| median(row.figures(kind));
            speed(a).total_cmp(&speed(b))
        };
        match self {
            Under::Row(name) => table.row(name),
            Under::BetterFixed => {
                let both = ["fingerprint", "fully-dense"].map(|name| table.row(name));
                both[0].and(both[1])?;
                both.into_iter().flatten().max_by(faster)
            }
            Under::BestTrie => {
                let sound = |row: &&Row| row.what == What::Trie && row.void.is_none();
                table.rows.iter().filter(sound).max_by(faster)
            }
        }
    }
}

/// A target on a key set, and its result.
#[derive(Debug)]
pub struct Aim {
    /// The subject whose rate is divided.
    pub over: &'static str,
    /// The subject whose rate is the divisor.
    pub under: &'static str,
    /// The kind of operation.
    pub kind: Kind,
    /// The target in words, such as "at least 1.3".
    pub wanted: String,
    /// The median of the ratios of rounds.
    pub measured: f64,
    /// Whether the target is met.
    pub met: bool,
}

/// Returns the results of all targets that apply to this table.
#[must_use]
pub fn aims(table: &Table) -> Vec<Aim> {
    let mut aims = Vec::new();
    for target in &TARGETS {
        if !target.sets.is_empty() && !target.sets.iter().any(|set| table.set.contains(set)) {
            continue;
        }
        for &kind in target.kinds {
            let rows = table.row(target.over).zip(target.under.of(table, kind));
            let Some((over, under)) = rows else {
                continue;
            };
            let measured = over.ratio(under, kind);
            let (wanted, met) = match target.holds {
                Holds::AtLeast(least) => (format!("at least {least}"), measured >= least),
                Holds::Below(most) => (format!("below {most}"), measured < most),
            };
            aims.push(Aim {
                over: over.name,
                under: under.name,
                kind,
                wanted,
                measured,
                met,
            });
        }
    }
    aims
}

/// Returns (largest − smallest) / median.
fn spread(figures: &[f64]) -> f64 {
    let most = figures.iter().copied().fold(f64::MIN, f64::max);
    let least = figures.iter().copied().fold(f64::MAX, f64::min);
    (most - least) / median(figures)
}

/// Formats a table as text.
#[must_use]
pub fn text(table: &Table) -> String {
    let mut text = format!(
        "\n{}: {} records, keys of {:.1} bytes on average, values of 8\n{:<12}",
        table.set,
        table.records,
        table.key_bytes as f64 / table.records as f64,
        "",
    );
    for kind in Kind::ALL {
        let _ = write!(text, " {:>9} {:>6} {:>6}", kind.name(), "spread", "/hints");
    }
    let _ = writeln!(text, " {:>9}", "B/record");
    let hints = table.row("hints");
    for row in &table.rows {
        let _ = write!(text, "{:<12}", row.name);
        if let Some(why) = &row.void {
            let _ = writeln!(text, " void: {why}");
            continue;
        }
        for kind in Kind::ALL {
            let figures = row.figures(kind);
            let ratio = hints.map_or("-".into(), |hints| format!("{:.2}", row.ratio(hints, kind)));
            let _ = write!(
                text,
                " {:>7.3} M {:>5.0}% {ratio:>6}",
                median(figures) / 1e6,
                100.0 * spread(figures)
            );
        }
        let bytes = row.allocated as f64 / table.records as f64;
        let _ = writeln!(text, " {bytes:>9.2}");
    }
    let mut pairs = String::new();
    for (over, under, figure) in PAIRS {
        if let Some((over, under)) = table.row(over).zip(table.row(under)) {
            let what = format!("{} / {}", over.name, under.name);
            let _ = write!(pairs, "{what:<26}");
            for kind in Kind::ALL {
                let _ = write!(pairs, " {:>8.2}", over.ratio(under, kind));
            }
            let _ = writeln!(pairs, "  {figure}");
        }
    }
    if !pairs.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<26} {:>8} {:>8} {:>8}",
            "ratio", "inserts", "lookups", "scans"
        );
        text.push_str(&pairs);
    }
    for aim in aims(table) {
        let _ = writeln!(
            text,
            "{:<7} {}: {} / {} {}, found {:.2}",
            if aim.met { "met" } else { "missed" },
            aim.kind.name(),
            aim.over,
            aim.under,
            aim.wanted,
            aim.measured,
        );
    }
    text
}

/// Returns all tables as a JSON document.
#[must_use]
pub fn document(plan: Plan, megabytes: usize, tables: &[Table]) -> Value {
    let rows = |table: &Table| -> Vec<Value> {
        let row = |row: &Row| {
            let figures = |kind: Kind| {
                let figures = row.figures(kind);
                json!({
                    "operations_per_second": median(figures),
                    "spread": spread(figures),
                    "rounds": figures,
                })
            };
            json!({
                "name": row.name,
                "kind": match row.what {
                    What::Pages(_) => "pages",
                    What::Trie => "trie",
                    What::Map => "map",
                },
                "inserts": figures(Kind::Inserts),
                "lookups": figures(Kind::Lookups),
                "scans": figures(Kind::Scans),
                "allocated_bytes": row.allocated,
                "void": row.void,
            })
        };
        table.rows.iter().map(row).collect()
    };
    let aims = |table: &Table| -> Vec<Value> {
        let aim = |aim: Aim| {
            json!({
                "operations": aim.kind.name(),
                "over": aim.over,
                "under": aim.under,
                "wanted": aim.wanted,
                "measured": aim.measured,
                "met": aim.met,
            })
        };
        super::report::aims(table).into_iter().map(aim).collect()
    };
    let sets: Vec<Value> = tables
        .iter()
        .map(|table| {
            json!({
                "name": table.set,
                "records": table.records,
                "key_bytes": table.key_bytes,
                "value_bytes": super::keys::VALUE_BYTES,
                "subjects": rows(table),
                "targets": aims(table),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "megabytes": megabytes,
        "operations": plan.operations,
        "rounds": plan.rounds,
        "zipf": plan.zipf,
        "seed": plan.seed,
        "sets": sets,
    })
}

/// Formats the counts per operation as text, next to those of hints.
#[must_use]
pub fn costs(set: &str, kind: Kind, costs: &[(&str, Cost)]) -> String {
    let mut text = format!(
        "\n{set}, {}: per operation\n{:<12} {:>12} {:>7} {:>9} {:>9} {:>12} {:>12}\n",
        kind.name(),
        "",
        "instructions",
        "/hints",
        "D1 misses",
        "LL misses",
        "branches",
        "mispredicted",
    );
    let hints = costs.iter().find(|(name, _)| *name == "hints");
    for (name, cost) in costs {
        let ratio = hints.map_or("-".into(), |(_, hints)| {
            format!("{:.2}", cost.instructions / hints.instructions)
        });
        let _ = writeln!(
            text,
            "{name:<12} {:>12.1} {ratio:>7} {:>9.2} {:>9.2} {:>12.1} {:>12.2}",
            cost.instructions, cost.d1_misses, cost.ll_misses, cost.branches, cost.mispredicted,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, what: What, speed: f64) -> Row {
        Row {
            name,
            what,
            rounds: std::array::from_fn(|_| vec![speed, 2.0 * speed, 3.0 * speed]),
            allocated: 1000,
            void: None,
        }
    }

    fn table() -> Table {
        let pages = |name| {
            let choice = treering_engine::node::LayoutChoice::named(name);
            What::Pages(choice.expect("there is such a layout"))
        };
        Table {
            set: "dense".into(),
            records: 100,
            key_bytes: 400,
            rows: vec![
                row("prefix", pages("prefix"), 1.0),
                row("hints", pages("hints"), 1.2),
                row("fingerprint", pages("fingerprint"), 1.0),
                row("fully-dense", pages("fully-dense"), 3.0),
                row("adaptive", pages("adaptive"), 2.9),
                row("blart", What::Trie, 1.0),
            ],
        }
    }

    #[test]
    fn targets_are_met_or_missed_by_the_ratio_of_rounds() {
        let aims = aims(&table());
        let of = |over: &str, kind| aims.iter().find(|aim| aim.over == over && aim.kind == kind);
        let hints = of("hints", Kind::Lookups).expect("there is one");
        assert!(!hints.met && (hints.measured - 1.2).abs() < 1e-9);
        assert!(of("fully-dense", Kind::Inserts).is_some_and(|aim| aim.met));
        let adaptive = of("adaptive", Kind::Lookups).expect("there is one");
        assert!(adaptive.met && adaptive.under == "fully-dense");
        assert!(aims.iter().any(|aim| aim.under == "blart" && aim.met));
    }

    #[test]
    fn a_void_row_has_its_reason_and_no_part_in_a_target() {
        let mut table = table();
        table.rows[3].void = Some("expected 2 records, found 1".into());
        assert!(text(&table).contains("void: expected 2 records, found 1"));
        assert!(aims(&table).iter().all(|aim| aim.over != "fully-dense"));
        assert!(aims(&table).iter().all(|aim| aim.under != "fingerprint"));
    }
}
