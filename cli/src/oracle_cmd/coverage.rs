//! `--coverage`: a page that shows how often the runs met each thing that they should meet: one
//! column per engine, one row per thing. What was never met is highlighted and listed at the top.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use treering_oracle::reach::Area;
use treering_sim::report::html::escape;

use super::report::Report;
use super::runs::Mode;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6470;--paper:#fff;--line:#d8dde3;--heat:46,125,160}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#9aa4b0;--paper:#15181c;--line:#333a42;--heat:80,160,200}}\
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;padding:0 1.5rem;max-width:110rem}\
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}\
p.soft{color:var(--soft);margin:.2rem 0}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}\
td,th{padding:.15rem .45rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
th{vertical-align:bottom;font-weight:600}thead th+th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.4rem .15rem}\
td:first-child,th:first-child{text-align:left}td.never{background:#d55e00;color:#fff;font-weight:600}\
ul{margin:.3rem 0;padding-left:1.2rem}li{margin:.1rem 0}";

/// Formats a number with at most three digits and a suffix for the power of a thousand.
fn short(n: u64) -> String {
    let mut scaled = n as f64;
    for unit in ["", "k", "M", "G"] {
        if scaled < 999.5 {
            return match unit.is_empty() || scaled >= 9.95 {
                true => format!("{scaled:.0}{unit}"),
                false => format!("{scaled:.1}{unit}"),
            };
        }
        scaled /= 1000.0;
    }
    format!("{scaled:.0}T")
}

/// Counts by thing and engine, for one mode and area.
#[derive(Default)]
struct Table {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Table {
    fn render(&self, engines: &[String], page: &mut String) {
        page.push_str("<div class=\"wide\"><table><thead><tr><th></th>");
        for engine in engines {
            let _ = write!(page, "<th>{}</th>", escape(engine));
        }
        page.push_str("</tr></thead><tbody>\n");
        for (what, counts) in &self.counts {
            let _ = write!(page, "<tr><td>{}</td>", escape(what));
            for engine in engines {
                match counts.get(engine) {
                    None => page.push_str("<td></td>"),
                    Some(0) => page.push_str("<td class=\"never\">never</td>"),
                    Some(n) => {
                        // The shade follows the number of digits: a few hits are hardly better than
                        // none, and a million is no better than a thousand.
                        let heat = ((*n as f64).log10() / 8.0).clamp(0.03, 0.6);
                        let _ = write!(
                            page,
                            "<td style=\"background:rgba(var(--heat),{heat:.2})\" title=\"{n}\">{}</td>",
                            short(*n)
                        );
                    }
                }
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</tbody></table></div>\n");
    }
}

/// Renders the page. The same report always gives the same bytes.
pub(super) fn page(report: &Report) -> String {
    let mut tables: BTreeMap<(usize, Area), Table> = BTreeMap::new();
    let mut engines: BTreeMap<(usize, Area), BTreeSet<String>> = BTreeMap::new();
    let mut never: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let (mut wanted, mut met) = (0u64, 0u64);
    for row in &report.rows {
        let mode = Mode::ALL.iter().position(|mode| *mode == row.mode);
        let mode = mode.unwrap_or(Mode::ALL.len());
        let mut told = BTreeSet::new();
        for (area, what, n) in row.reach().iter() {
            wanted += 1;
            met += u64::from(n > 0);
            let table = tables.entry((mode, area)).or_default();
            let counts = table.counts.entry(what.to_owned()).or_default();
            *counts.entry(row.engine.clone()).or_default() += n;
            let columns = engines.entry((mode, area)).or_default();
            columns.insert(row.engine.clone());
            if n == 0 {
                told.insert(what.to_owned());
            }
        }
        told.extend(row.never_reached());
        for what in told {
            never
                .entry((mode, what))
                .or_default()
                .push(row.engine.clone());
        }
    }
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>Coverage of the oracle</title>\
         <style>{STYLE}</style></head><body>\n<h1>Coverage of the oracle</h1>\n"
    );
    let programs: u64 = report.rows.iter().map(|row| row.runs).sum();
    let operations: u64 = report.rows.iter().map(|row| row.tally.operations).sum();
    let _ = writeln!(
        page,
        "<p class=\"soft\">{programs} programs, {operations} operations. Of {wanted} things to meet \
         (counted by mode and engine), {met} were met.</p>"
    );
    page.push_str("<h2>Never met</h2>\n");
    if never.is_empty() {
        page.push_str("<p>Nothing is missing: everything was met.</p>\n");
    } else {
        page.push_str("<ul>\n");
        for ((mode, what), engines) in &never {
            let mode = Mode::ALL.get(*mode).map_or("", |mode| mode.name());
            let _ = writeln!(
                page,
                "<li><b>{mode}</b>: {} <span class=\"soft\">({})</span></li>",
                escape(what),
                escape(&engines.join(", "))
            );
        }
        page.push_str("</ul>\n");
    }
    let mut last = None;
    for ((mode, area), table) in &tables {
        if last != Some(*mode) {
            let name = Mode::ALL.get(*mode).map_or("", |mode| mode.name());
            let _ = writeln!(page, "<h2>Mode: {name}</h2>");
            last = Some(*mode);
        }
        let _ = writeln!(page, "<h3>{}</h3>", area.title());
        let columns: Vec<String> = engines[&(*mode, *area)].iter().cloned().collect();
        table.render(&columns, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle_cmd::report::Row;

    #[test]
    fn what_was_never_met_is_named_and_stands_out() {
        let mut row = Row::new("mine<1>".into(), Mode::Crash);
        row.actions.want(Area::Fault, "read fails in use");
        row.actions.met(Area::Step, "leaf split", 12_345);
        let page = page(&Report {
            rows: vec![row],
            budget: None,
        });
        assert!(page.contains("<b>crash</b>: read fails in use"), "{page}");
        assert!(page.contains("<td class=\"never\">never</td>"), "{page}");
        assert!(page.contains("title=\"12345\">12k</td>") && page.contains("mine&lt;1&gt;"));
        assert_eq!(short(999), "999");
        assert_eq!(
            (short(1_500), short(2_000_000)),
            ("1.5k".into(), "2.0M".into())
        );
    }
}
