//! The device in a report: what it is, how it compresses, and, for files, what the kernel counted.

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
    /// The definition of over-provisioning that is used; empty on files.
    pub over_provisioning_definition: String,
    /// `T / U − 1`.
    pub over_provisioning: Option<f64>,
    /// `α = T / U`.
    pub alpha: Option<f64>,
    /// `T / in use`, where `in use` is averaged over the measured part.
    pub effective_alpha: Option<f64>,
    /// Pages in an erase block.
    pub pages_per_block: Option<u32>,
    /// Garbage collection policy.
    pub gc: Option<String>,
    /// Whether garbage collection ran in the measured part.
    pub gc_reached: Option<bool>,
    /// How the drive compresses; `null` if it does not.
    pub compression: Option<CompressionReport>,
    /// Every value of the profile as the run used it, by its key in the profile; empty on files.
    pub profile_values: BTreeMap<String, serde_json::Value>,
}

/// Compression in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompressionReport {
    /// Codec: `zlib`, `zstd` or `lz4`.
    pub codec: String,
    /// Compression level.
    pub level: u32,
    /// Logical bytes divided by nominal flash bytes; thin provisioning if above 1.
    pub logical_over_physical: f64,
    /// Live bytes that the medium can hold when it is full.
    pub capacity_bytes: u64,
    /// Blocks of zeros written, which take no space.
    pub zero_blocks: u64,
    /// Blocks that the codec compressed.
    pub compressed_blocks: u64,
    /// Blocks whose compressed size was known from equal content before.
    pub remembered_blocks: u64,
    /// Bytes left unused at the ends of erase blocks.
    pub padding_bytes: u64,
}

/// What the operating system counted; files only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// Bytes that this process caused to be written while the store was measured; `null` if the
    /// kernel does not report it.
    pub write_bytes: Option<u64>,
    /// Bytes that the engine wrote in the same period.
    pub engine_bytes: u64,
    /// How the file was opened: direct or buffered, io_uring or not.
    pub how: String,
    /// Type of the file system; `null` if unknown.
    pub file_system: Option<String>,
    /// The block device below the file system; `null` if there is none or it is unknown.
    pub block_device: Option<String>,
    /// Bytes that all programs wrote to this block device in the same period; `null` if unknown.
    pub block_device_bytes: Option<u64>,
    /// Known causes of differences between these numbers. What they do not explain is
    /// `unexplained`.
    pub differences: Vec<WriteDifference>,
}

/// A cause by which two counts of written bytes differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteDifference {
    /// The counts that differ: `process - engine`, or `block device - process`.
    pub between: &'static str,
    /// The cause.
    pub name: String,
    /// The difference in bytes.
    pub bytes: i64,
}

/// A profile's values by key; values of its tables have keys such as `table.key`.
pub(crate) fn flat(profile: &impl Serialize) -> BTreeMap<String, serde_json::Value> {
    let mut found = BTreeMap::new();
    // A profile is plain data, so it always converts to JSON.
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
