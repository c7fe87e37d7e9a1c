//! The report as one self-contained HTML page: charts in inline SVG, and tables below them.
//!
//! | module | contents |
//! |---|---|
//! | `page` | the frame: content policy, style, script |
//! | `chart`, `bars`, `lines` | drawing with plotters, and marks with tooltips |
//! | `pictures`, `mini_pages` | the charts of a replay |
//! | `tables`, `configuration` | tables; the configuration and the command that repeats the run |
//! | `layouts` | the page of `treering layout` |
//! | `predict` | the page of `treering predict` |
//! | `trace` | the page of `treering trace info` |
//!
//! The page loads no fonts, images or scripts, and its content policy forbids it. It follows the
//! reader's light or dark preference and fits a phone. Its script shows tooltips, hides components
//! and sorts tables; without the script, the same values are in titles and tables.

mod bars;
mod chart;
mod configuration;
mod layouts;
mod lines;
mod mini_pages;
mod page;
mod pictures;
mod predict;
mod tables;
mod trace;

use super::numbers::{bytes, duration, grouped, percent};
use super::preload::preloaded;
use super::row::{Row, legend};
use super::{Latency, MiniPagesReport, ReplayReport, WaterfallStep};

use pictures::{fill_bins, names, parts_of_point};

pub use bars::bar_picture;
pub use chart::Picture;
pub use layouts::{LayoutPage, LayoutRow, layouts_svg, leaf_kinds_svg};
pub use lines::{Curve, Lines, Scale};
pub use page::{escape, heading, page, sentences};
pub use pictures::write_amplification as wa_svg;
pub use predict::{predict_page, predict_svg};
pub use tables::{Cell, Table};
pub use trace::render as trace_page;

/// Renders the page. `command` is the command line that makes the same report, if there is one.
pub fn render(r: &ReplayReport, command: Option<&str>) -> String {
    let title = format!("{} on {} ({})", r.trace.name, r.tree, r.store.kind);
    let mut out = sentences(&subtitle(r));
    for warning in &r.warnings {
        out += &format!("<p class=\"warn\">{}</p>\n", escape(warning));
    }
    out += &section_amplification(r);
    out += &section_waterfall(r);
    out += &match (&r.pm, &r.direct) {
        (Some(pm), _) => heading("Persistent memory") + &named("Persistent memory", pm.rows()),
        // Without a tree there are no leaves.
        (None, Some(_)) => String::new(),
        (None, None) => section_leaves(r),
    };
    if let Some(m) = &r.cache.mini_pages {
        out += &section_mini_pages(m);
    }
    if let Some(latency) = &r.latency_ns {
        out += &heading("Latency");
        out += &pictures::latency(latency).figure("Latency");
        out += &table_latency(r);
    }
    out += &heading("Throughput, cache, space and store");
    out += &named("Throughput, cache, space and store", joined(r.state()));
    out += &heading("Lifetime");
    out += &match &r.lifetime {
        Some(life) => named("Lifetime", life.rows()),
        None => sentences(&["Unknown: the drive below a file is not known.".into()]),
    };
    out += &configuration::section(r, command);
    page(&title, &out)
}

fn subtitle(r: &ReplayReport) -> Vec<String> {
    let cache = match (&r.pm, &r.direct) {
        (_, Some(_)) => String::new(),
        (None, None) => format!("; cache {}", cached(r)),
        (Some(_), None) => format!("; buffer nodes {}", cached(r)),
    };
    let mut lines = vec![
        r.trace.source.clone(),
        format!(
            "{} operations measured after {} of warm-up; {} written by the user{cache}",
            grouped(r.trace.ops - r.trace.warmup_ops),
            grouped(r.trace.warmup_ops),
            bytes(r.user_bytes as f64)
        ),
    ];
    lines.extend(preloaded(&r.preload));
    if let Some(sentence) = r.mod_log() {
        lines.push(format!("Modification log: {sentence}"));
    }
    if let (Some(op), Some(alpha), Some(effective)) = (
        r.device.over_provisioning,
        r.device.alpha,
        r.device.effective_alpha,
    ) {
        let (kind, profile) = (&r.device.kind, &r.device.profile);
        let name = if kind == profile {
            kind.clone()
        } else {
            format!("{kind} {profile}")
        };
        lines.push(format!(
            "{name}: over-provisioning {:.1} % ({}), α {alpha:.3}, effective α {effective:.3}",
            op * 100.0,
            r.device.over_provisioning_definition
        ));
    }
    lines
}

/// Size and hit ratio of the cache.
fn cached(r: &ReplayReport) -> String {
    let size = bytes(r.cache.bytes as f64);
    format!("{size} hits {:.1} %", r.cache.hit_ratio * 100.0)
}

fn section_amplification(r: &ReplayReport) -> String {
    let (by_component, over_time) = (
        "Write amplification by component",
        "Write amplification over time",
    );
    let mut out = heading(by_component) + &pictures::amplification(r).figure(by_component);
    let over_user = "bytes over user bytes";
    let mut rows = r.amplification();
    out += &compared(over_user, &rows);
    let mini_pages = r.mini_pages();
    if !mini_pages.is_empty() {
        let title = "mini-pages (gets: shares; others: per operation)";
        out += &compared(title, &mini_pages);
    }
    rows.extend(mini_pages);
    out += &sentences(&Vec::from_iter(legend(&rows)));
    out += &sentences(&Vec::from_iter(r.wa.untried_note()));
    out += &heading(over_time);
    out += &pictures::over_time(r).figure(over_time);
    out + &table_over_time(r).folded()
}

/// Where the bytes go, if there is a limit.
fn section_waterfall(r: &ReplayReport) -> String {
    let Some(limit) = &r.wa.limit else {
        return String::new();
    };
    let title = "Where the bytes go";
    let steps = r.wa.waterfall.iter();
    let picture = bars::steps(bars::Steps {
        steps: steps.map(|s| (s.name, s.wa, s.what.as_str())).collect(),
        y: "bytes over user bytes",
    });
    let three = |n: f64| Cell::number(format!("{n:.3}"), n);
    let row = |step: &WaterfallStep| {
        vec![
            Cell::text(step.name),
            three(step.wa),
            three(step.sum),
            Cell::text(step.what.as_str()),
        ]
    };
    let table = Table {
        label: "From the limit to what was written",
        head: vec!["step", "bytes over user bytes", "sum", "what"],
        rows: r.wa.waterfall.iter().map(row).collect(),
    };
    let said = format!("Limit: {}.", limit.said());
    heading(title) + &sentences(&[said]) + &picture.figure(title) + &table.html()
}

fn table_over_time(r: &ReplayReport) -> Table<'static> {
    let names = names(r);
    let row = |point: &super::SeriesPoint| {
        let parts = parts_of_point(point);
        let numbers = parts.iter().take(names.len()).copied();
        let all = numbers.chain([parts.iter().sum()]);
        let mut row = vec![Cell::count(point.ops)];
        row.extend(all.map(|n| Cell::number(format!("{n:.3}"), n)));
        row
    };
    let head: &[&str] = match (&r.pm, &r.wa.csd) {
        (Some(_), _) => &["logs", "leaves", "the rest"],
        (None, Some(_)) => &["log", "page", "extra", "device gc"],
        (None, None) => &["host log", "host page", "host extra", "device gc"],
    };
    Table {
        label: "Write amplification since the previous point, as a table",
        head: [&["operations"], head, &["total"]].concat(),
        rows: r.series.iter().map(row).collect(),
    }
}

fn section_leaves(r: &ReplayReport) -> String {
    let title = "Fill of the leaves";
    let bins = fill_bins(r).map(|(bin, leaves)| vec![Cell::text(bin), Cell::count(leaves)]);
    let table = Table {
        label: "Leaves by used share of the page, as a table",
        head: vec!["used share", "leaves"],
        rows: bins.collect(),
    };
    heading(title) + &pictures::leaf_fill(r).figure(title) + &table.folded()
}

fn compared(title: &str, rows: &[Row]) -> String {
    let three = |n: f64| format!("{n:.3}");
    let row = |row: &Row| {
        let predicted = row.predicted().unwrap_or_default();
        let error = |error| percent(error) + row.mark();
        vec![
            Cell::text(row.name),
            Cell::number(three(row.measured), row.measured),
            Cell::optional(row.predicted.map(|p| p.value()), |_| predicted),
            Cell::optional(row.error, error),
        ]
    };
    let table = Table {
        label: title,
        head: vec![title, "measured", "predicted", "error"],
        rows: rows.iter().map(row).collect(),
    };
    table.html()
}

fn section_mini_pages(m: &MiniPagesReport) -> String {
    let mut out = String::new();
    let mut add = |title: &str, picture: chart::Picture<'_>| {
        out += &heading(title);
        out += &picture.figure(title);
    };
    if m.hits.total() + m.misses > 0 {
        add("What answered lookups", mini_pages::hits(m));
    }
    add("Sizes of mini-pages", mini_pages::sizes(m));
    if m.merges > 0 {
        add("Records per merge", mini_pages::merges(m));
    }
    out + &named("Mini-pages", m.rows())
}

/// Joins a row without a label to the one above it.
fn joined(rows: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let mut joined: Vec<(&'static str, String)> = Vec::new();
    for (label, said) in rows {
        match joined.last_mut() {
            Some((_, above)) if label.is_empty() => *above = format!("{above}; {said}"),
            _ => joined.push((label.trim_end_matches(':'), said)),
        }
    }
    joined
}

fn named(title: &str, rows: Vec<(&'static str, String)>) -> String {
    let rows = rows.into_iter();
    let rows = rows.map(|(name, value)| (name.trim().to_string(), value));
    Table::named(title, ["what", "found"], rows).html()
}

fn table_latency(r: &ReplayReport) -> String {
    let Some(latency) = &r.latency_ns else {
        return String::new();
    };
    let time = |ns: f64| Cell::number(duration(ns), ns);
    let kinds = latency.iter();
    let kinds = kinds
        .iter()
        .filter_map(|(name, l)| Some((name, l.as_ref()?)));
    let rows = kinds.map(|(name, l)| {
        let mut row = vec![Cell::text(*name), Cell::count(l.count)];
        row.extend(l.columns().map(|(_, ns)| time(ns)));
        row.push(time(l.queue_mean));
        row
    });
    let times = Latency::default().columns().map(|(name, _)| name);
    let table = Table {
        label: "Latency",
        head: [&["operation", "count"][..], &times, &["mean waiting"]].concat(),
        rows: rows.collect(),
    };
    let left_out = "Latency is device and queueing time, without CPU time and waits for latches.";
    table.html() + &sentences(&[left_out.into()])
}
