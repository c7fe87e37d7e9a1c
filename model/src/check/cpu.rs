//! Processor time, of this process and of the checkers that it started.

use std::time::Duration;

/// Processor time of this process so far, where the system tells (Linux: to a clock tick of 10 ms).
pub fn own() -> Option<Duration> {
    // Fields 14 and 15 of proc(5).
    ticks(11..13)
}

/// Processor time of the children waited for so far.
pub fn children() -> Option<Duration> {
    ticks(13..15)
}

/// What passed between two readings.
pub fn since(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

/// The sum of some of the fields behind the command's name in `/proc/self/stat`.
fn ticks(fields: std::ops::Range<usize>) -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let behind = text.rsplit_once(')')?.1;
    let values: Vec<&str> = behind.split_whitespace().collect();
    let sum: u64 = values
        .get(fields)?
        .iter()
        .map_while(|v| v.parse::<u64>().ok())
        .sum();
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(sum * 1000 / hertz))
}
