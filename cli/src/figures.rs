//! The main figures of a report, by their paths in its JSON. `treering sweep` makes them columns,
//! and `treering compare` shows them.

use serde_json::Value;

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A whole number.
    Count,
    /// A number.
    Real,
}

/// The figures in the order of columns. A `{a,b}` stands for several paths.
const FIGURES: [(&str, Kind); 25] = [
    ("device.{kind,profile}", Kind::Text),
    ("trace.{ops,warmup_ops,records}", Kind::Count),
    ("ops.{get,put,delete,scan}", Kind::Count),
    ("user_bytes", Kind::Count),
    ("wa.host.{log,page,extra,total}", Kind::Real),
    ("wa.host.page_causes.{leaf,overflow}", Kind::Real),
    ("wa.device.{gc,total,nand_over_host}", Kind::Real),
    ("wa.csd.{alpha,stored}.{log,page,extra,total}", Kind::Real),
    ("wa.csd.gc_only", Kind::Real),
    (
        "wa.predicted.{host.log,host.page,host.extra,host.total,device.gc,device.total}.{value,low,high}",
        Kind::Real,
    ),
    ("wa.error.{host,device}.total", Kind::Real),
    ("io_bytes.{log,page,extra,read,trimmed}", Kind::Count),
    (
        "latency_ns.{get,put,delete,scan}.{p50,p99,p999,max}",
        Kind::Count,
    ),
    ("time.elapsed_ns", Kind::Count),
    ("time.ops_per_second", Kind::Real),
    (
        "space.{logical_bytes,physical_bytes,leaves,records}",
        Kind::Count,
    ),
    ("space.{records_per_leaf,fill}", Kind::Real),
    ("store.{checkpoints,splits,merges}", Kind::Count),
    ("store.{beta,delta_bytes_mean,full_flush_share}", Kind::Real),
    ("cache.{bytes,data_set_bytes,evictions}", Kind::Count),
    ("cache.hit_ratio", Kind::Real),
    ("prediction.hit_ratio", Kind::Real),
    ("pm.{cli,xbi,xbi_leaf,xbi_log,buffer_hit_ratio}", Kind::Real),
    (
        "pm.predicted.{cli,xbi,xbi_leaf,xbi_log}.{value,low,high}",
        Kind::Real,
    ),
    ("lifetime.{mean_erases,years_until_pe_limit}", Kind::Real),
];

/// All figures, each with its path.
pub(crate) fn all() -> Vec<(String, Kind)> {
    FIGURES
        .into_iter()
        .flat_map(|(pattern, kind)| expanded(pattern).into_iter().map(move |path| (path, kind)))
        .collect()
}

/// The paths that a pattern stands for.
fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let (names, after) = rest.split_once('}').unwrap_or((rest, ""));
    let tails = expanded(after);
    names
        .split(',')
        .flat_map(|name| {
            tails
                .iter()
                .map(move |tail| format!("{before}{name}{tail}"))
        })
        .collect()
}

/// The value at a path such as `wa.device.total` or `series.0.gc`; `None` if there is nothing, or
/// `null`.
pub(crate) fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path
        .split('.')
        .try_fold(document, |value, name| match value {
            Value::Array(values) => values.get(name.parse::<usize>().ok()?),
            value => value.get(name),
        });
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_there_once_and_leads_to_its_value() {
        let mut paths: Vec<String> = all().into_iter().map(|(path, _)| path).collect();
        let count = paths.len();
        assert!(paths.contains(&"wa.predicted.device.total.low".to_owned()));
        assert!(paths.contains(&"latency_ns.put.p99".to_owned()));
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
        let document = serde_json::json!({"a": [{"b": 1}, {"b": null}]});
        assert_eq!(at(&document, "a.0.b"), Some(&Value::from(1)));
        assert_eq!(at(&document, "a.1.b"), None);
        assert_eq!(at(&document, "a.2.b"), None);
    }
}
