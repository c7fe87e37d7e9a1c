//! Profiles of persistent memory: TOML files with `kind = "pm"`, which give the source of every
//! number. Unknown keys are errors.

use serde::{Deserialize, Serialize};

use super::XPLINE_SIZE;
use super::buffer::{BufferConfig, FullLines, MAX_SLOTS, Replacement};
use crate::profiles::{ProfileError, expect_kind, is_of_kind, read, within};

/// Built-in profiles: name and TOML text.
const BUILTIN: [(&str, &str); 2] = [
    ("pm", include_str!("../../profiles/pm.toml")),
    ("pm-lru", include_str!("../../profiles/pm-lru.toml")),
];

/// The `kind` that marks the profile of a persistent memory.
const KIND: &str = "pm";

/// Names of the built-in profiles; the first is the default.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Parameters of a persistent memory and of the CPU in front of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PmProfile {
    /// `pm`.
    pub kind: String,
    /// One-line description for listings.
    pub description: String,
    /// Number of DIMMs.
    pub dimms: u32,
    /// Interleaving stripe in bytes.
    pub interleave_bytes: u32,
    /// Whether the CPU cache is persistent; then `clwb` does nothing.
    pub eadr: bool,
    /// Number of writes that a line of the medium endures, with perfect wear levelling; unknown if
    /// left out.
    pub write_limit: Option<u32>,
    /// The CPU.
    pub cpu: CpuProfile,
    /// The XPBuffer of a DIMM.
    pub buffer: BufferProfile,
    /// Latencies, bandwidths, queues.
    pub times: TimesProfile,
}

/// The CPU, as far as it affects the memory.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CpuProfile {
    /// Size of the cache before the persistent memory, in bytes.
    pub cache_bytes: u64,
    /// Its associativity.
    pub cache_ways: u32,
    /// Whether a line stays in the cache when it is written back.
    pub clwb_keeps_line: bool,
    /// Maximum number of lines that a client can have under way to the memory.
    pub write_buffers: u32,
    /// Maximum number of lines that a load can have under way from it.
    pub read_buffers: u32,
}

/// The buffers of a DIMM.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BufferProfile {
    /// XPLines of the write buffer.
    pub lines: u32,
    /// Replacement policy, in the format of [`Replacement::parse`].
    pub replacement: String,
    /// XPLines evicted at a time.
    pub evict_lines: u32,
    /// When full XPLines are written, in the format of [`FullLines::parse`].
    pub full_lines: String,
    /// XPLines of the read buffer; 0 is none.
    pub read_lines: u32,
}

/// Times. A GB is 10⁹ bytes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TimesProfile {
    /// Latency of a load from a buffer, ns.
    pub read_hit_ns: f64,
    /// Latency of a load from the medium, ns.
    pub read_miss_ns: f64,
    /// Latency from a non-temporal store to the write-pending queue, ns.
    pub ntstore_ns: f64,
    /// Latency from `clwb` to the write-pending queue, ns.
    pub clwb_ns: f64,
    /// Size of a DIMM's write-pending queue, bytes.
    pub wpq_bytes: u32,
    /// Size of a DIMM's queue before its XPBuffer, bytes.
    pub dimm_queue_bytes: u32,
    /// Read bandwidth of a DIMM's medium.
    pub media_read_gb_per_s: f64,
    /// Write bandwidth of a DIMM's medium.
    pub media_write_gb_per_s: f64,
    /// Bandwidth of a DIMM's bus.
    pub bus_gb_per_s: f64,
    /// Writes of an XPLine between two wear-levelling stalls; 0 for never.
    pub wear_stall_writes: u16,
    /// Duration of such a stall, µs.
    pub wear_stall_us: f64,
}

/// The built-in profile of this name: its TOML text and the parsed form.
pub fn builtin(name: &str) -> Option<(&'static str, PmProfile)> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some((text, PmProfile::from_toml(name, text).ok()?))
}

impl PmProfile {
    /// Whether a profile's text describes a persistent memory.
    pub(crate) fn is_one(text: &str) -> bool {
        is_of_kind(text, KIND)
    }

    /// Parses and checks TOML text; `file` names it in errors.
    ///
    /// # Errors
    /// [`ProfileError`], which names the key and what was expected.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ProfileError> {
        read(file, text, PmProfile::check)
    }

    /// Checks all values; the error names the key, what was found and what was expected.
    pub(crate) fn check(&self) -> Result<(), String> {
        expect_kind(&self.kind, KIND)?;
        let (cpu, buffer, times) = (&self.cpu, &self.buffer, &self.times);
        let ways = f64::from(cpu.cache_ways);
        let ranges = [
            ("dimms", f64::from(self.dimms), 1.0, 64.0),
            (
                "write_limit",
                f64::from(self.write_limit.unwrap_or(1)),
                1.0,
                4e9,
            ),
            ("cpu.cache_ways", ways, 1.0, 64.0),
            (
                "cpu.cache_bytes",
                cpu.cache_bytes as f64,
                64.0 * ways,
                f64::from(1 << 30),
            ),
            (
                "cpu.write_buffers",
                f64::from(cpu.write_buffers),
                1.0,
                1024.0,
            ),
            ("cpu.read_buffers", f64::from(cpu.read_buffers), 1.0, 1024.0),
            (
                "buffer.lines",
                f64::from(buffer.lines),
                1.0,
                f64::from(MAX_SLOTS),
            ),
            (
                "buffer.evict_lines",
                f64::from(buffer.evict_lines),
                1.0,
                f64::from(buffer.lines),
            ),
            (
                "buffer.read_lines",
                f64::from(buffer.read_lines),
                0.0,
                65536.0,
            ),
            ("times.read_hit_ns", times.read_hit_ns, 1.0, 1e6),
            (
                "times.read_miss_ns",
                times.read_miss_ns,
                times.read_hit_ns,
                1e6,
            ),
            ("times.ntstore_ns", times.ntstore_ns, 1.0, 1e6),
            ("times.clwb_ns", times.clwb_ns, 1.0, 1e6),
            ("times.wpq_bytes", f64::from(times.wpq_bytes), 64.0, 1e9),
            (
                "times.dimm_queue_bytes",
                f64::from(times.dimm_queue_bytes),
                0.0,
                1e9,
            ),
            (
                "times.media_read_gb_per_s",
                times.media_read_gb_per_s,
                0.001,
                1000.0,
            ),
            (
                "times.media_write_gb_per_s",
                times.media_write_gb_per_s,
                0.001,
                1000.0,
            ),
            ("times.bus_gb_per_s", times.bus_gb_per_s, 0.001, 1000.0),
            ("times.wear_stall_us", times.wear_stall_us, 0.0, 1e6),
        ];
        within(&ranges)?;
        let stripe = self.interleave_bytes;
        let size = XPLINE_SIZE as u32;
        if stripe == 0 || stripe > 1 << 30 || !stripe.is_multiple_of(size) {
            return Err(format!(
                "interleave_bytes = {stripe}, expected a multiple of {size}, at most 1073741824"
            ));
        }
        self.buffer_config(0).map(drop)
    }

    /// The buffer of one DIMM.
    pub(super) fn buffer_config(&self, seed: u64) -> Result<BufferConfig, String> {
        let buffer = &self.buffer;
        let replacement = Replacement::parse(&buffer.replacement).ok_or_else(|| {
            format!(
                "buffer.replacement = {:?}, expected lru, fifo or random",
                buffer.replacement
            )
        })?;
        let full_lines = FullLines::parse(&buffer.full_lines).ok_or_else(|| {
            format!(
                "buffer.full_lines = {:?}, expected at-once or on-eviction",
                buffer.full_lines
            )
        })?;
        Ok(BufferConfig {
            lines: buffer.lines,
            replacement,
            evict_lines: buffer.evict_lines,
            full_lines,
            read_lines: buffer.read_lines,
            seed,
        })
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
            assert!(PmProfile::is_one(text));
            assert!(!crate::csd::CsdProfile::is_one(text));
            // Every number gives its source.
            for line in text.lines().filter(|l| l.contains(" = ")) {
                let named = ["kind", "description"].iter().any(|k| line.starts_with(k));
                assert!(named || line.contains('#'), "{name}: {line}");
            }
        }
    }

    #[test]
    fn the_built_in_profiles_have_the_constants_of_the_papers() {
        for name in builtin_names() {
            let (_, profile) = builtin(name).unwrap();
            // CC-01: 16 KiB of XPLines; DEVICES §2.1: 4 KiB interleave, 512 B write-pending queue,
            // 4 KiB on the DIMM.
            assert_eq!(profile.buffer.lines as usize * XPLINE_SIZE, 16 << 10);
            assert_eq!(profile.interleave_bytes, 4096);
            assert_eq!(
                (profile.times.wpq_bytes, profile.times.dimm_queue_bytes),
                (512, 4096)
            );
        }
    }

    #[test]
    fn what_no_memory_has_is_refused_by_its_key() {
        let (good, _) = builtin("pm").unwrap();
        let bad = [
            ("kind = \"pm\"", "kind = \"ssd\"", "kind"),
            ("dimms = 1", "dimms = 0", "dimms"),
            ("dimms = 1", "dims = 1", "dims"),
            (
                "interleave_bytes = 4096",
                "interleave_bytes = 100",
                "interleave_bytes",
            ),
            ("eadr = false", "eadr = 0", "eadr"),
            (
                "cache_bytes = 33554432",
                "cache_bytes = 64",
                "cpu.cache_bytes",
            ),
            ("\nlines = 64", "\nlines = 0", "buffer.lines"),
            (
                "evict_lines = 1",
                "evict_lines = 65",
                "buffer.evict_lines = 65, expected 1 to 64",
            ),
            (
                "replacement = \"random\"",
                "replacement = \"clock\"",
                "buffer.replacement",
            ),
            (
                "full_lines = \"at-once\"",
                "full_lines = \"never\"",
                "buffer.full_lines",
            ),
            ("clwb_ns = 62.3", "clwb_ns = nan", "times.clwb_ns"),
            (
                "wear_stall_writes = 14200",
                "wear_stall_writes = 100000",
                "wear_stall_writes",
            ),
        ];
        assert_refused(PmProfile::from_toml, good, &bad);
    }
}
