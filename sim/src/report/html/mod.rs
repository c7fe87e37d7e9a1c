//! The report as one self-contained HTML page: four pictures in inline SVG, and the numbers under them.
//!
//! No script, no font, no image is fetched. Colours are those of Okabe and Ito, which stay apart for colour-blind readers; the page
//! follows the reader's light or dark preference.

mod chart;

use std::fmt::Write as _;

use super::text::{bytes, duration, grouped, percent};
use super::{HostWa, ReplayReport};
use chart::{Plot, Scale};

/// Colours of host log, page, extra and of the drive's garbage collection.
const COLOURS: [&str; 4] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"];
const PARTS: [&str; 4] = ["host log", "host page", "host extra", "device gc"];

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6470;--paper:#fff;--line:#d8dde3}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#9aa4b0;--paper:#15181c;--line:#333a42}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}p.soft{color:var(--soft);margin:.2rem 0}\
figure{margin:1rem 0}svg{width:100%;height:auto;display:block}\
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
    section(&mut out, "Write amplification by component", &wa_svg(r));
    table_wa(r, &mut out);
    section(&mut out, "Write amplification over time", &series_svg(r));
    section(&mut out, "How full the leaves are", &fill_svg(r));
    if r.latency_ns.is_some() {
        section(&mut out, "Latency", &latency_svg(r));
        table_latency(r, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

fn subtitle(r: &ReplayReport) -> Vec<String> {
    let mut lines = vec![
        r.trace.source.clone(),
        format!(
            "{} operations measured after {} of warm-up; {} written by the user; cache {} hits {:.1} %",
            grouped(r.trace.ops - r.trace.warmup_ops),
            grouped(r.trace.warmup_ops),
            bytes(r.user_bytes as f64),
            bytes(r.cache.bytes as f64),
            r.cache.hit_ratio * 100.0
        ),
    ];
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
    let _ = writeln!(out, "<h2>{}</h2><figure>{svg}</figure>", escape(title));
}

/// `&`, `<`, `>` and quotes as entities.
pub(crate) fn escape(text: &str) -> String {
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

fn parts(host: &HostWa<f64>, gc: f64) -> [f64; 4] {
    [host.log, host.page, host.extra, gc]
}

/// WA stacked by component, measured above predicted: a picture that also stands alone, on white and on dark.
pub fn wa_svg(r: &ReplayReport) -> String {
    let mut bars = vec![(
        "measured",
        parts(&r.wa.host, r.wa.device.as_ref().map_or(0.0, |d| d.gc)),
    )];
    if let Some(p) = &r.wa.predicted {
        bars.push((
            "predicted",
            parts(&p.host, p.device.as_ref().map_or(0.0, |d| d.gc)),
        ));
    }
    let most = bars
        .iter()
        .map(|(_, p)| p.iter().sum::<f64>())
        .fold(0.0, f64::max);
    let height = 90.0 + 54.0 * bars.len() as f64;
    let mut plot = Plot::new(
        860.0,
        height,
        [90.0, 40.0, 60.0, 46.0],
        Scale::linear(0.0, most),
        Scale::linear(0.0, 1.0),
    );
    plot.x_axis("bytes written over user bytes");
    for (i, (name, parts)) in bars.iter().enumerate() {
        let y = 44.0 + 54.0 * i as f64;
        plot.label(80.0, y + 23.0, "end", name);
        let mut from = 0.0;
        for (part, colour) in parts.iter().zip(COLOURS) {
            let (x0, x1) = (plot.x(from), plot.x(from + part));
            plot.rect(x0, y, x1 - x0, 34.0, colour);
            if x1 - x0 > 44.0 {
                plot.label_on((x0 + x1) / 2.0, y + 22.0, &short(*part));
            }
            from += part;
        }
        let end = plot.x(from);
        plot.label(end + 6.0, y + 22.0, "start", &short(from));
    }
    plot.legend(&PARTS, &COLOURS);
    plot.finish("Write amplification stacked by component, measured and predicted")
}

fn short(n: f64) -> String {
    if n >= 100.0 {
        format!("{n:.0}")
    } else if n >= 10.0 {
        format!("{n:.1}")
    } else {
        format!("{n:.2}")
    }
}

fn series_svg(r: &ReplayReport) -> String {
    let most = r
        .series
        .iter()
        .map(|p| p.host.total + p.gc)
        .fold(0.0, f64::max);
    let last = r.series.last().map_or(1.0, |p| p.ops as f64);
    let margins = [60.0, 40.0, 20.0, 46.0];
    let mut plot = Plot::new(
        860.0,
        320.0,
        margins,
        Scale::linear(0.0, last),
        Scale::linear(0.0, most),
    );
    plot.x_axis("measured operations");
    plot.y_axis("write amplification");
    let mut base: Vec<f64> = vec![0.0; r.series.len()];
    for (part, colour) in COLOURS.iter().enumerate() {
        let top: Vec<f64> = (r.series.iter().zip(&base))
            .map(|(p, b)| b + parts(&p.host, p.gc)[part])
            .collect();
        let xs: Vec<f64> = r.series.iter().map(|p| p.ops as f64).collect();
        plot.band(&xs, &base, &top, colour);
        base = top;
    }
    plot.legend(&PARTS, &COLOURS);
    plot.finish("Write amplification over the run, by component")
}

fn fill_svg(r: &ReplayReport) -> String {
    let most = r.page_fill.iter().copied().max().unwrap_or(0) as f64;
    let margins = [70.0, 16.0, 20.0, 46.0];
    let mut plot = Plot::new(
        860.0,
        260.0,
        margins,
        Scale::linear(0.0, 100.0),
        Scale::linear(0.0, most),
    );
    plot.x_axis("used share of the page, %");
    plot.y_axis("leaves");
    let width = 100.0 / r.page_fill.len().max(1) as f64;
    for (i, count) in r.page_fill.iter().enumerate() {
        let (x0, x1) = (plot.x(i as f64 * width), plot.x((i + 1) as f64 * width));
        let (top, bottom) = (plot.y(*count as f64), plot.y(0.0));
        plot.rect(x0 + 1.0, top, x1 - x0 - 2.0, bottom - top, COLOURS[0]);
    }
    plot.finish("Histogram of leaf fill")
}

fn latency_svg(r: &ReplayReport) -> String {
    let Some(latency) = &r.latency_ns else {
        return String::new();
    };
    let kinds: Vec<_> = latency
        .iter()
        .into_iter()
        .filter_map(|(name, l)| l.as_ref().map(|l| (name, l)))
        .collect();
    let all = || {
        kinds
            .iter()
            .flat_map(|(_, l)| l.cdf.iter().map(|(ns, _)| *ns as f64))
    };
    let least = all()
        .filter(|ns| *ns > 0.0)
        .fold(f64::INFINITY, f64::min)
        .clamp(1.0, 1e12);
    let most = all().fold(10.0 * least, f64::max);
    let margins = [60.0, 40.0, 20.0, 46.0];
    let mut plot = Plot::new(
        860.0,
        320.0,
        margins,
        Scale::log(least, most),
        Scale::linear(0.0, 1.0),
    );
    plot.x_axis_with("latency", &|ns| duration(ns));
    plot.y_axis("share of operations");
    let mut names = Vec::new();
    for ((name, l), colour) in kinds.iter().zip(COLOURS) {
        // Operations that needed no I/O sit on the left edge.
        let points: Vec<(f64, f64)> = l
            .cdf
            .iter()
            .map(|(ns, share)| ((*ns as f64).max(least), *share))
            .collect();
        plot.steps(&points, most, colour);
        names.push(*name);
    }
    plot.legend(&names, &COLOURS);
    plot.finish("Cumulative distribution of latency by kind of operation")
}

fn table_wa(r: &ReplayReport, out: &mut String) {
    out.push_str("<table><tr><th>bytes over user bytes</th><th>measured</th><th>predicted</th><th>error</th></tr>");
    for row in r.wa.rows() {
        let predicted = row.predicted.map_or("–".into(), |p| format!("{p:.3}"));
        let error = row.error.map_or("–".into(), percent);
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{:.3}</td><td>{predicted}</td><td>{error}</td></tr>",
            row.name, row.measured
        );
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
