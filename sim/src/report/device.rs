//! The device in a report: what it is, how it compresses, and what the kernel counted on a file.

use std::collections::BTreeMap;

use serde::Serialize;

/// The device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// `ssd`, `csd`, `pm` or `file`.
    pub kind: String,
    /// Name of the profile, or the file's path as the user gave it.
    pub profile: String,
    /// Addressable 4 KiB blocks.
    pub logical_blocks: u64,
    /// Which over-provisioning is meant, in words; empty on files.
    pub over_provisioning_definition: String,
    /// `T / U − 1`.
    pub over_provisioning: Option<f64>,
    /// `α = T / U`.
    pub alpha: Option<f64>,
    /// `T / in use`, in use averaged over the measured part.
    pub effective_alpha: Option<f64>,
    /// Pages of an erase block.
    pub pages_per_block: Option<u32>,
    /// Garbage collection policy.
    pub gc: Option<String>,
    /// Whether garbage collection ran in the measured part.
    pub gc_reached: Option<bool>,
    /// How the drive compresses; `null` if it does not.
    pub compression: Option<CompressionReport>,
    /// Every number of the profile as the run used it, by its key in the profile; empty on files.
    pub profile_values: BTreeMap<String, serde_json::Value>,
}

/// Compression in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompressionReport {
    /// `zlib`, `zstd` or `lz4`.
    pub codec: String,
    /// Its level.
    pub level: u32,
    /// Logical bytes over nominal flash bytes; above 1 is thin provisioning.
    pub logical_over_physical: f64,
    /// Bytes that may be live before the medium is full.
    pub capacity_bytes: u64,
    /// Blocks of zeros written: they take no room.
    pub zero_blocks: u64,
    /// Blocks that went through the codec.
    pub compressed_blocks: u64,
    /// Blocks whose size was known from the same content before.
    pub remembered_blocks: u64,
    /// Bytes left empty at the ends of erase blocks.
    pub padding_bytes: u64,
}

/// What the operating system counted, on files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// Bytes this process caused to be written while the store was measured; `null` if the kernel
    /// does not say.
    pub write_bytes: Option<u64>,
    /// The engine's bytes in the same span.
    pub engine_bytes: u64,
    /// How the file was opened: direct or buffered, io_uring or not.
    pub how: String,
    /// Type of the file system; `null` if unknown.
    pub file_system: Option<String>,
    /// The block device below it; `null` if it has none that is known.
    pub block_device: Option<String>,
    /// Bytes that this block device was given in the same span, by any program; `null` if unknown.
    pub block_device_bytes: Option<u64>,
    /// What lies between these numbers, as far as it has a cause that is known; the rest is
    /// `unexplained`.
    pub differences: Vec<WriteDifference>,
}

/// One cause for which two counts of written bytes differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteDifference {
    /// Which counts: `process - engine`, or `block device - process`.
    pub between: &'static str,
    /// The cause.
    pub name: String,
    /// The difference in bytes.
    pub bytes: i64,
}

/// A profile's values by their keys; those of its tables as `table.key`.
pub(crate) fn flat(profile: &impl Serialize) -> BTreeMap<String, serde_json::Value> {
    let mut found = BTreeMap::new();
    // A profile is plain data, which always has a JSON form.
    if let Ok(serde_json::Value::Object(values)) = serde_json::to_value(profile) {
        for (key, value) in values {
            match value {
                serde_json::Value::Object(table) => found.extend(
                    (table.into_iter()).map(|(inner, value)| (format!("{key}.{inner}"), value)),
                ),
                value => drop(found.insert(key, value)),
            }
        }
    }
    found
}
