//! Processor time of this process and of the checkers that it starts.

use std::time::Duration;

/// The processor time that this process has used so far. `None` if the system does not report it.
/// The resolution on Linux is 10 ms.
#[must_use]
pub fn own() -> Option<Duration> {
    ticks("/proc/self/stat")
}

/// The processor time of another process, which may have exited but must not have been waited for.
pub(super) fn of(pid: i32) -> Option<Duration> {
    ticks(&format!("/proc/{pid}/stat"))
}

/// The time between two readings.
#[must_use]
pub fn since(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

/// User and system time: fields 14 and 15 of proc(5).
fn ticks(stat: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(stat).ok()?;
    // The command's name, field 2, may contain anything but ends with the last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis((user + system) * 1000 / hertz))
}
