//! How the run was configured: the command that repeats it, every option including defaults, the
//! trace, and the device's profile.

use serde_json::Value;

use super::page::{escape, heading, sentences};
use super::tables::Table;
use crate::report::numbers::{bytes, grouped};
use crate::report::{ReplayReport, durability};

/// Options that are sizes in bytes.
const BYTES: [&str; 9] = [
    "cache",
    "capacity",
    "checkpoint-every",
    "daily",
    "log-buffer",
    "log-size",
    "page",
    "segment",
    "threshold",
];

/// The section of the page.
pub(super) fn section(r: &ReplayReport, command: Option<&str>) -> String {
    let mut out = heading("How to reproduce this report");
    out += &match command {
        Some(command) => format!("<pre><code>{}</code></pre>\n", escape(command)),
        None => sentences(&[
            "Use the configuration below: this report was not made by a command line.".into(),
        ]),
    };
    out += &heading("Configuration");
    out += &Table::named("The trace", ["trace", "value"], trace(r)).html();
    out += &Table::named(
        "Options, including defaults",
        ["option", "value"],
        options(r),
    )
    .html();
    out += &Table::named("The device", ["device", "value"], device(r)).html();
    out
}

fn trace(r: &ReplayReport) -> Vec<(String, String)> {
    let t = &r.trace;
    let mut rows = vec![
        ("name", t.name.clone()),
        ("source", t.source.clone()),
        ("operations", grouped(t.ops)),
        ("warm-up operations", grouped(t.warmup_ops)),
        ("records", grouped(t.records)),
        ("records loaded before the trace", grouped(r.preload.keys)),
    ];
    rows.extend(t.blocks.map(|blocks| ("blocks", blocks.to_string())));
    rows.extend(
        (r.ops.iter().into_iter())
            .map(|(name, n)| (name, format!("{} measured", grouped(*n))))
            .filter(|(_, count)| !count.starts_with("0 ")),
    );
    rows.into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect()
}

fn options(r: &ReplayReport) -> Vec<(String, String)> {
    let mut rows = vec![
        ("tree".to_string(), r.tree.clone()),
        ("device".to_string(), r.device.profile.clone()),
    ];
    rows.extend(r.options.iter().map(|(name, value)| {
        let is_bytes = BYTES.contains(&name.as_str());
        let value = match r.durability() {
            Some(durability) if name == durability::OPTION => durability,
            _ => said(value, is_bytes),
        };
        (name.clone(), value)
    }));
    rows
}

fn device(r: &ReplayReport) -> Vec<(String, String)> {
    let d = &r.device;
    let mut rows = vec![
        ("kind".to_string(), d.kind.clone()),
        ("profile".to_string(), d.profile.clone()),
    ];
    let kept = d.profile_values.iter().filter(|(name, _)| *name != "kind");
    rows.extend(kept.map(|(name, value)| (name.clone(), said(value, name.ends_with("_bytes")))));
    rows
}

fn said(value: &Value, is_bytes: bool) -> String {
    match value {
        Value::Null => "–".into(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Number(n) => match n.as_u64() {
            Some(n) if is_bytes && n >= 1024 => {
                format!("{} bytes ({})", grouped(n), bytes(n as f64))
            }
            Some(n) if is_bytes => format!("{n} bytes"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_said_in_words_and_bytes_in_both_units() {
        assert_eq!(said(&json!(4096), true), "4,096 bytes (4.0 KiB)");
        assert_eq!(said(&json!(128), true), "128 bytes");
        assert_eq!(said(&json!(4096), false), "4096");
        assert_eq!(said(&json!(0.28), false), "0.28");
        assert_eq!(said(&json!(null), true), "–");
        assert_eq!(said(&json!(true), false), "yes");
        assert_eq!(said(&json!("adaptive"), false), "adaptive");
    }
}
