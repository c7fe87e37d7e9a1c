//! The text of what carries correlation: windows, runs, intervals, lives.

use std::fmt::Write as _;

use super::render::{count, line, size_row};
use super::{RunStats, Together, TraceInfo, Window};

/// Adds lines about the order of operations to the first block of the text.
pub(super) fn order(out: &mut String, info: &TraceInfo) {
    let runs = [("reads", &info.runs.reads), ("writes", &info.runs.writes)];
    let runs = runs.iter().filter_map(|(name, runs)| {
        let RunStats { length, ascending } = runs.as_ref()?;
        let ascending = ascending.map_or(String::new(), |share| {
            format!(" ({:.0} % of steps ascend)", share * 100.0)
        });
        Some(format!("{name} {:.2}{ascending}", length.mean))
    });
    let runs: Vec<String> = runs.collect();
    if !runs.is_empty() {
        line!(
            out,
            "  runs           mean length in keys: {}",
            runs.join(", ")
        );
    }
    if let Some(found) = &info.reuse_times.read_modify_write {
        let chance = found.by_chance.map_or("unknown".into(), percent);
        line!(
            out,
            "  read, then put {} of the puts directly after a read of their key, {} within {} \
             operations",
            percent(found.direct),
            percent(found.near),
            found.within
        );
        line!(
            out,
            "                 {} within {} and by the same client; by chance within {}: {chance}",
            percent(found.same_client),
            found.within,
            found.within
        );
    }
    if let Some(found) = &info.written_together {
        let share = |pairs: Option<Together>| match pairs {
            Some(Together { share, error, .. }) => {
                format!("{:.1} % (± {:.1} %)", share * 100.0, error * 100.0)
            }
            None => "unknown".into(),
        };
        line!(
            out,
            "  overwritten    together (within {} operations): {} of neighbours in write order, \
             {} of writes far apart",
            found.within_ops,
            share(found.neighbours),
            share(found.apart)
        );
    }
    let about = if info.estimated { "≈" } else { "" };
    if info.measured.delete > 0 {
        let lives = &info.lives;
        line!(
            out,
            "  records        {about}{} made, {about}{} of them again after a delete; deletes: \
             {about}{} of these, {about}{} of older records, {about}{} of none",
            count(lives.made),
            count(lives.made_again),
            count(lives.deleted),
            count(lives.deleted_older),
            count(lives.deleted_again)
        );
    }
    windows(out, &info.windows, about);
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The least and the most of a number over the windows.
fn range<T>(values: impl Iterator<Item = T> + Clone, text: impl Fn(T) -> String) -> String
where
    T: PartialOrd + Copy,
{
    let least = values.clone().reduce(|a, b| if b < a { b } else { a });
    let most = values.reduce(|a, b| if b > a { b } else { a });
    match (least, most) {
        (Some(least), Some(most)) => {
            let (least, most) = (text(least), text(most));
            match least == most {
                true => least,
                false => format!("{least} to {most}"),
            }
        }
        _ => "none".into(),
    }
}

fn windows(out: &mut String, windows: &[Window], about: &str) {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return;
    };
    let new = |window: &Window| window.new_keys as f64 / window.distinct_keys.max(1) as f64;
    line!(
        out,
        "  windows        {} of {} operations: {about}{} keys, of which new {about}{}",
        windows.len(),
        count(first.end_op),
        range(windows.iter().map(|window| window.distinct_keys), count),
        range(windows.iter().map(new), percent)
    );
    let before = windows.iter().filter_map(|window| window.in_window_before);
    if let Some(of_first) = last.in_first_window {
        line!(
            out,
            "  drift          {about}{} of a window's keys are in the window before; \
             {about}{} of the last one's are in the first",
            range(before, percent),
            percent(of_first)
        );
    }
}

/// Adds a table of the intervals between operations on the same key.
pub(super) fn intervals(out: &mut String, info: &TraceInfo) {
    let times = &info.reuse_times;
    let rows = [
        ("read again", &times.reads),
        ("access, write", &times.writes),
        ("write, write", &times.overwrites),
        ("put to delete", &info.lives.life_ops),
    ];
    if rows.iter().all(|(_, row)| row.is_none()) {
        return;
    }
    let about = match times.estimated {
        true => format!(
            "; estimated from {:.2} % of the keys, counts ± {:.2} %",
            times.sampled * 100.0,
            times.error * 100.0
        ),
        false => String::new(),
    };
    line!(
        out,
        "\noperations from one access of a key to the next{about}"
    );
    for (name, row) in rows {
        size_row(out, name, row);
    }
}
