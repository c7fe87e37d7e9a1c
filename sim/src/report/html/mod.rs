//! The report as one self-contained HTML page: pictures in inline SVG, and the numbers under them.
//!
//! No script, no font, no image is fetched. The page follows the reader's light or dark preference; pictures are on white.

mod bars;
mod layouts;
mod lines;
mod mini_pages;
mod pictures;

use std::fmt::Write as _;

use super::text::{bytes, duration, grouped, percent};
use super::{MiniPagesReport, ReplayReport, Row};
use crate::predict::tried::Decides;

pub use layouts::{LayoutPage, LayoutRow, layouts_svg, leaf_kinds_svg};
pub use lines::{Curve, Lines, Scale};
pub use pictures::write_amplification as wa_svg;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6470;--paper:#fff;--line:#d8dde3}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#9aa4b0;--paper:#15181c;--line:#333a42}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}p.soft{color:var(--soft);margin:.2rem 0}\
figure{margin:1rem 0;padding:.5rem;background:#fff;border-radius:.5rem}svg{width:100%;height:auto;display:block}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line)}\
td:first-child,th:first-child{text-align:left}.warn{border-left:4px solid #d55e00;padding-left:.8rem}";

/// Renders the page.
pub fn render(r: &ReplayReport) -> String {
    let mut out = String::new();
    let title = format!("{} on {} ({})", r.trace.name, r.tree, r.store.kind);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{0}</title><style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n",
        escape(&title)
    );
    for text in subtitle(r) {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(&text));
    }
    for warning in &r.warnings {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(warning));
    }
    section(
        &mut out,
        "Write amplification by component",
        &pictures::write_amplification(r),
    );
    table_wa(r, &mut out);
    section(
        &mut out,
        "Write amplification over time",
        &pictures::over_time(r),
    );
    match &r.pm {
        None => section(&mut out, "How full the leaves are", &pictures::leaf_fill(r)),
        Some(pm) => table_named("persistent memory", pm.rows(), &mut out),
    }
    if let Some(m) = &r.cache.mini_pages {
        section_mini_pages(m, &mut out);
    }
    if r.latency_ns.is_some() {
        section(&mut out, "Latency", &pictures::latency(r));
        table_latency(r, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

fn subtitle(r: &ReplayReport) -> Vec<String> {
    let cache = match r.pm {
        None => "cache",
        Some(_) => "buffer nodes",
    };
    let mut lines = vec![
        r.trace.source.clone(),
        format!(
            "{} operations measured after {} of warm-up; {} written by the user; {cache} {} hits {:.1} %",
            grouped(r.trace.ops - r.trace.warmup_ops),
            grouped(r.trace.warmup_ops),
            bytes(r.user_bytes as f64),
            bytes(r.cache.bytes as f64),
            r.cache.hit_ratio * 100.0
        ),
    ];
    lines.extend(super::preloaded(&r.preload));
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

fn section(out: &mut String, title: &str, svg: &str) {
    let _ = writeln!(
        out,
        "<h2>{0}</h2><figure role=\"img\" aria-label=\"{0}\">{svg}</figure>",
        escape(title)
    );
}

/// `&`, `<`, `>` and quotes as entities.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn table_wa(r: &ReplayReport, out: &mut String) {
    let untried = r.wa.is_untried(Decides::All);
    match &r.pm {
        Some(pm) => table_compared("bytes over user bytes", pm.compared(untried), out),
        None => table_compared("bytes over user bytes", r.wa.rows(), out),
    }
    if !r.cache.compared.is_empty() {
        let rows = r.cache.compared.iter().map(|c| c.row(untried));
        table_compared("mini-pages (gets: shares; others: an operation)", rows, out);
    }
    if let Some(note) = r.wa.untried_note() {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(&note));
    }
}

fn table_compared(title: &str, rows: impl IntoIterator<Item = Row>, out: &mut String) {
    let _ = write!(
        out,
        "<table><tr><th>{title}</th><th>measured</th><th>predicted</th><th>error</th></tr>"
    );
    for row in rows {
        let predicted = row.predicted().unwrap_or_else(|| "–".into());
        let error = row.error.map_or("–".into(), percent);
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{:.3}</td><td>{predicted}</td><td>{error}</td></tr>",
            row.name, row.measured
        );
    }
    out.push_str("</table>\n");
}

fn section_mini_pages(m: &MiniPagesReport, out: &mut String) {
    if m.hits.total() + m.misses > 0 {
        section(out, "What answered lookups", &mini_pages::hits(m));
    }
    section(out, "How large the mini-pages are", &mini_pages::sizes(m));
    if m.merges > 0 {
        section(out, "Records merged at once", &mini_pages::merges(m));
    }
    table_named("mini-pages", m.rows(), out);
}

fn table_named(title: &str, rows: Vec<(&'static str, String)>, out: &mut String) {
    let _ = write!(out, "<table><tr><th>{title}</th><th></th></tr>");
    for (name, value) in rows {
        let _ = write!(out, "<tr><td>{name}</td><td>{}</td></tr>", escape(&value));
    }
    out.push_str("</table>\n");
}

fn table_latency(r: &ReplayReport, out: &mut String) {
    let Some(latency) = &r.latency_ns else { return };
    out.push_str("<table><tr><th>operation</th><th>count</th><th>mean</th><th>p50</th><th>p99</th><th>p99.9</th><th>max</th><th>waiting, mean</th></tr>");
    for (name, l) in latency.iter() {
        let Some(l) = l else { continue };
        let _ = write!(
            out,
            "<tr><td>{name}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            grouped(l.count),
            duration(l.mean),
            duration(l.p50 as f64),
            duration(l.p99 as f64),
            duration(l.p999 as f64),
            duration(l.max as f64),
            duration(l.queue_mean)
        );
    }
    out.push_str("</table>\n<p class=\"soft\">Latency is device and queueing time; CPU and waiting for latches are left out.</p>\n");
}
