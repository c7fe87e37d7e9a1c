//! When a replay acknowledged its writes, and which clock it used.

use super::ReplayReport;
use super::numbers::duration;

/// The option's name in reports and on the command line.
pub(super) const OPTION: &str = "durability";

impl ReplayReport {
    /// A short description of when writes were acknowledged. An interval is given with its clock,
    /// which is never that of the trace. `None` if the tree had no choice.
    pub(super) fn durability(&self) -> Option<String> {
        let policy = self.options.get(OPTION)?.as_str()?;
        let every = policy
            .strip_prefix("interval:")
            .and_then(|every| every.strip_suffix("ns"))
            .and_then(|every| every.parse::<u64>().ok());
        Some(match every {
            None => policy.to_string(),
            Some(every) => {
                let every = duration(every as f64);
                let clock = match self.kernel {
                    Some(_) => "real time",
                    None => "the device's virtual time",
                };
                format!("interval of {every} in {clock}, not in the trace's times")
            }
        })
    }
}
