//! Drive profiles: TOML files that give the source of every number. Unknown keys are errors.

use serde::{Deserialize, Serialize};

use crate::profiles::{read, within};
use crate::ssd::gc::GcPolicy;

pub use crate::profiles::ProfileError;

/// Built-in profiles: name and TOML text.
const BUILTIN: [(&str, &str); 3] = [
    ("ssd", include_str!("../../profiles/ssd.toml")),
    ("mqsim", include_str!("../../profiles/mqsim.toml")),
    ("femu", include_str!("../../profiles/femu.toml")),
];

/// Names of the built-in profiles; the first is the default.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Parameters of a drive. The mapping unit and the flash page are one 4 KiB block.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SsdProfile {
    /// One-line description for listings.
    pub description: String,
    /// Pages per garbage collection unit, b.
    pub pages_per_block: u32,
    /// User-relative over-provisioning, T/U − 1.
    pub over_provisioning: f64,
    /// Blocks outside T: frontier and free blocks.
    pub reserve_blocks: u32,
    /// Garbage collection policy, in the format of [`GcPolicy::parse`].
    pub gc: String,
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// tR, µs.
    pub read_us: f64,
    /// tProg, µs.
    pub program_us: f64,
    /// tErase, µs.
    pub erase_us: f64,
    /// Channel transfer rate, 10⁶ bytes per second.
    pub channel_mb_per_s: f64,
    /// Program/erase cycles that a block endures; unknown if left out.
    pub pe_limit: Option<u32>,
}

/// The built-in profile of this name: its TOML text and the parsed form.
pub fn builtin(name: &str) -> Option<(&'static str, SsdProfile)> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some((text, SsdProfile::from_toml(name, text).ok()?))
}

impl SsdProfile {
    /// Parses and checks TOML text; `file` names it in errors.
    ///
    /// # Errors
    /// [`ProfileError`], which names the key and what was expected.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ProfileError> {
        read(file, text, SsdProfile::check)
    }

    /// Checks all values; the error names the key.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranges = [
            (
                "pages_per_block",
                f64::from(self.pages_per_block),
                1.0,
                32768.0,
            ),
            ("over_provisioning", self.over_provisioning, 0.001, 100.0),
            (
                "reserve_blocks",
                f64::from(self.reserve_blocks),
                1.0,
                65536.0,
            ),
            ("channels", f64::from(self.channels), 1.0, 1024.0),
            (
                "dies_per_channel",
                f64::from(self.dies_per_channel),
                1.0,
                1024.0,
            ),
            ("read_us", self.read_us, 0.001, 1e6),
            ("program_us", self.program_us, 0.001, 1e6),
            ("erase_us", self.erase_us, 0.001, 1e7),
            ("channel_mb_per_s", self.channel_mb_per_s, 0.001, 1e6),
            ("pe_limit", f64::from(self.pe_limit.unwrap_or(1)), 1.0, 1e9),
        ];
        within(&ranges)?;
        if GcPolicy::parse(&self.gc).is_none() {
            return Err(format!(
                "gc = {:?}, expected greedy, fifo, random, d-choices:D, cost-benefit or windowed-greedy:W",
                self.gc
            ));
        }
        Ok(())
    }

    /// Number of dies.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::assert_refused;

    #[test]
    fn every_built_in_profile_is_read_under_its_name() {
        for name in builtin_names() {
            let (text, profile) = builtin(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!profile.description.is_empty());
            // Every number has its source beside it or in the lines above.
            assert!(
                text.lines().filter(|l| l.contains('#')).count() >= 8,
                "{name}"
            );
        }
        assert!(builtin("csd").is_none());
    }

    #[test]
    fn what_no_drive_has_is_refused_by_its_key() {
        let (good, _) = builtin("ssd").unwrap();
        let bad = [
            ("channels = 8", "channels = 0", "channels"),
            ("channels = 8", "channels = -1", "channels"),
            ("channels = 8", "chanels = 8", "chanels"),
            (
                "over_provisioning = 0.28",
                "over_provisioning = 0",
                "over_provisioning",
            ),
            (
                "over_provisioning = 0.28",
                "over_provisioning = nan",
                "over_provisioning",
            ),
            ("program_us = 200", "program_us = \"200us\"", "program_us"),
            ("gc = \"greedy\"", "gc = \"gready\"", "gc"),
        ];
        assert_refused(SsdProfile::from_toml, good, &bad);
    }
}
