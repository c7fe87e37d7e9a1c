//! Designs and differences in words.

use serde_json::Value;

use super::objective::number;
use crate::sweep_cmd::Point;

/// A part of what the device writes: its name, and where reports have it.
pub(super) type Part = (&'static str, f64);

/// The flags of a design, in the order of `--help`, without those in `left_out`.
pub(super) fn design(point: &Point, left_out: &[&str]) -> String {
    let mut words = Vec::new();
    let first = [
        "device",
        "tree",
        "store",
        "table",
        "log",
        "page",
        "threshold",
    ];
    let rest = point.settings().map(|(flag, _)| flag);
    let rest = rest.filter(|flag| !first.contains(flag));
    for flag in first.into_iter().chain(rest) {
        match point.get(flag) {
            _ if left_out.contains(&flag) => {}
            Some("true") => words.push(format!("--{flag}")),
            Some("false") | None => {}
            Some(value) => words.push(format!("--{flag} {}", quoted(value))),
        }
    }
    words.join(" ")
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+-=_.,:/@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What the device writes, by part. Their sum is the total.
pub(super) fn parts(report: &Value) -> Vec<Part> {
    let of = |side: &str, all: &[(&'static str, &str)]| -> Vec<Part> {
        let value = |(name, path): &(&'static str, &str)| {
            Some((*name, number(report, &format!("{side}.{path}"))?))
        };
        all.iter().filter_map(value).collect()
    };
    const HOST: [(&str, &str); 3] = [("log", "log"), ("pages", "page"), ("extra", "extra")];
    if report["pm"].is_object() {
        let all = [
            ("leaves", "xbi_leaf"),
            ("logs", "xbi_log"),
            ("rest", "xbi_extra"),
        ];
        return of("pm", &all);
    }
    let mut parts = match report["wa"]["csd"].is_object() {
        true => of("wa.csd.stored", &HOST),
        false => of("wa.host", &HOST),
    };
    parts.extend(of("wa.device", &[("garbage collection", "gc")]));
    parts
}

/// Which part decides between two designs: the one with the largest difference in favour of the
/// better one.
pub(super) fn decides(better: &[Part], worse: &[Part]) -> Option<(Part, Part)> {
    let same = |part: &Part| worse.iter().find(|(name, _)| *name == part.0).copied();
    let pairs = better.iter().filter_map(|part| Some((*part, same(part)?)));
    let gain = |((_, a), (_, b)): &(Part, Part)| b - a;
    let best = pairs.max_by(|a, b| gain(a).total_cmp(&gain(b)));
    best.filter(|pair| gain(pair) > 0.0)
}

/// A value with three to four figures.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        0.0 => "0".into(),
        _ => format!("{value:.2e}"),
    }
}

/// A number of bytes, with its unit.
pub(super) fn size(bytes: f64) -> String {
    match bytes {
        b if b >= (1u64 << 30) as f64 => format!("{:.1} GiB", b / (1u64 << 30) as f64),
        b => format!("{:.1} MiB", b / (1u64 << 20) as f64),
    }
}

/// A share in per cent, with two figures.
pub(super) fn per_cent(share: f64) -> String {
    match 100.0 * share {
        p if p.abs() < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_design_is_the_flags_of_a_replay() {
        let point = Point::of("a.trz").with("tree", "bf").with("page", "8KiB");
        let point = point.with("timing", "true").with("no-predict", "false");
        assert_eq!(design(&point, &[]), "--tree bf --page 8KiB --timing");
        let spec = Point::of("a.trz").with("tree", "btree(page=8KiB)+cow");
        assert_eq!(design(&spec, &[]), "--tree 'btree(page=8KiB)+cow'");
    }

    #[test]
    fn what_decides_is_the_part_that_gains_most() {
        let better = json!({"wa": {"host": {"log": 1.0, "page": 2.0, "extra": 0.5},
            "device": {"gc": 1.0}}});
        let worse = json!({"wa": {"host": {"log": 1.0, "page": 1.0, "extra": 9.0},
            "device": {"gc": 2.0}}});
        let (a, b) = (parts(&better), parts(&worse));
        assert_eq!(decides(&a, &b), Some((("extra", 0.5), ("extra", 9.0))));
        assert_eq!(decides(&a, &a), None);
    }

    #[test]
    fn a_compressing_drive_writes_what_it_stores() {
        let report = json!({"wa": {"host": {"log": 2.0, "page": 8.0, "extra": 4.0},
            "csd": {"alpha": {"log": 0.5}, "stored": {"log": 1.0, "page": 3.0, "extra": 0.5}},
            "device": {"gc": 0.25, "total": 4.75}}});
        let stored = [("log", 1.0), ("pages", 3.0), ("extra", 0.5)];
        assert_eq!(parts(&report)[..3], stored);
        let sum: f64 = parts(&report).iter().map(|(_, value)| value).sum();
        assert_eq!(sum, 4.75);
    }
}
