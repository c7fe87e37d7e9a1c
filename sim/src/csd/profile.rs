//! Profiles of compressing drives: TOML files with `kind = "csd"`, and a section `[flash]` that
//! describes the flash like a drive of its own.

use serde::{Deserialize, Serialize};
use treering_engine::BLOCK_SIZE;

use super::codec::Codec;
use crate::profiles::{ProfileError, expect_kind, is_of_kind, read, within};
use crate::ssd::SsdProfile;

/// Built-in profiles: name and TOML text.
const BUILTIN: [(&str, &str); 2] = [
    ("csd", include_str!("../../profiles/csd.toml")),
    ("csd-thin", include_str!("../../profiles/csd-thin.toml")),
];

/// The `kind` that marks the profile of a compressing drive.
const KIND: &str = "csd";

/// Names of the built-in profiles.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Parameters of a compressing drive.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CsdProfile {
    /// `csd`.
    pub kind: String,
    /// One-line description for listings.
    pub description: String,
    /// `zlib`, `zstd` or `lz4`.
    pub codec: String,
    /// The codec's level.
    pub level: u32,
    /// Latency of compressing one block, µs.
    pub compress_us: f64,
    /// Latency of decompressing one block, µs.
    pub decompress_us: f64,
    /// Throughput of the codec in each direction, 10⁶ bytes per second.
    pub codec_mb_per_s: f64,
    /// Logical bytes L divided by nominal flash bytes P; thin provisioning if above 1.
    pub logical_over_physical: f64,
    /// Header bytes of each extent.
    pub extent_header_bytes: u32,
    /// Extents are rounded up to a multiple of this.
    pub extent_granularity_bytes: u32,
    /// Capacity of the power-safe write buffer, in flash pages.
    pub buffer_pages: u32,
    /// The flash. Its over-provisioning is T/P − 1.
    pub flash: SsdProfile,
}

/// The built-in profile of this name: its TOML text and the parsed form.
pub fn builtin(name: &str) -> Option<(&'static str, CsdProfile)> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some((text, CsdProfile::from_toml(name, text).ok()?))
}

impl CsdProfile {
    /// Whether a profile's text describes a compressing drive.
    pub(crate) fn is_one(text: &str) -> bool {
        is_of_kind(text, KIND)
    }

    /// Parses and checks TOML text; `file` names it in errors.
    ///
    /// # Errors
    /// [`ProfileError`], which names the key and what was expected.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ProfileError> {
        read(file, text, CsdProfile::check)
    }

    fn check(&self) -> Result<(), String> {
        let p = self;
        expect_kind(&p.kind, KIND)?;
        let ranges = [
            ("compress_us", p.compress_us, 0.0, 1e6),
            ("decompress_us", p.decompress_us, 0.0, 1e6),
            ("codec_mb_per_s", p.codec_mb_per_s, 0.001, 1e6),
            (
                "logical_over_physical",
                p.logical_over_physical,
                0.1,
                1000.0,
            ),
            (
                "extent_header_bytes",
                f64::from(p.extent_header_bytes),
                0.0,
                64.0,
            ),
            (
                "extent_granularity_bytes",
                f64::from(p.extent_granularity_bytes),
                1.0,
                4096.0,
            ),
            ("buffer_pages", f64::from(p.buffer_pages), 1.0, 1e6),
        ];
        within(&ranges)?;
        Codec::parse(&p.codec, p.level)?;
        p.flash.check().map_err(|why| format!("flash.{why}"))?;
        if p.flash.pages_per_block < 4 {
            let found = p.flash.pages_per_block;
            return Err(format!(
                "flash.pages_per_block = {found}, expected 4 to 32768: an extent must leave room in its erase block"
            ));
        }
        Ok(())
    }

    /// Flash bytes of an extent with `payload` bytes.
    pub(super) fn extent(&self, payload: u16) -> u16 {
        let bytes = u32::from(payload) + self.extent_header_bytes;
        // At most 4,096 + 64, rounded up to at most 4,096: below 2^16.
        bytes.next_multiple_of(self.extent_granularity_bytes) as u16
    }

    /// Flash bytes of the largest extent.
    pub(super) fn max_extent(&self) -> u32 {
        u32::from(self.extent(BLOCK_SIZE as u16))
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
            assert!(CsdProfile::is_one(text));
        }
        let (ssd, _) = crate::ssd::builtin("ssd").unwrap();
        assert!(!CsdProfile::is_one(ssd));
    }

    #[test]
    fn what_no_drive_has_is_refused_by_its_key() {
        let (good, _) = builtin("csd").unwrap();
        let bad = [
            ("kind = \"csd\"", "kind = \"ssd\"", "kind"),
            ("codec = \"zlib\"", "codec = \"gzip\"", "codec"),
            ("level = 1", "level = 10", "level"),
            ("level = 1", "lvl = 1", "lvl"),
            ("compress_us = 5", "compress_us = -1", "compress_us"),
            (
                "logical_over_physical = 1.0",
                "logical_over_physical = nan",
                "logical_over_physical",
            ),
            ("buffer_pages = 256", "buffer_pages = 0", "buffer_pages"),
            ("channels = 8", "channels = 0", "flash.channels"),
            (
                "pages_per_block = 256",
                "pages_per_block = 2",
                "pages_per_block",
            ),
        ];
        assert_refused(CsdProfile::from_toml, good, &bad);
    }
}
