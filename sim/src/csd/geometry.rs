//! How much flash a compressing drive has.

use treering_engine::BLOCK_SIZE;

use super::ftl::{ExtentFtlConfig, FLASH_PAGE};
use super::profile::CsdProfile;
use crate::ssd::{GcPolicy, GeometryError};

/// Size of a foreign extent, with header: its share of the nominal flash.
pub(super) fn foreign_extent(profile: &CsdProfile) -> u16 {
    let payload = FLASH_PAGE as f64 / profile.logical_over_physical;
    profile.extent(payload.clamp(1.0, FLASH_PAGE as f64) as u16)
}

/// Flash that a logical block with foreign data takes, in units of 4 KiB.
pub(crate) fn foreign_share(profile: &CsdProfile) -> f64 {
    f64::from(foreign_extent(profile)) / FLASH_PAGE as f64
}

/// The geometry of the FTL: `T = P (1 + over-provisioning)` with `P = L / logical_over_physical`,
/// rounded up to whole erase blocks, and at least what `P` bytes of incompressible blocks need.
pub(super) fn geometry(
    profile: &CsdProfile,
    logical_blocks: u64,
    seed: u64,
) -> Result<ExtentFtlConfig, GeometryError> {
    let flash = &profile.flash;
    let policy = GcPolicy::named(&flash.gc)?;
    let max_extent = profile.max_extent();
    let nominal_blocks = logical_blocks as f64 / profile.logical_over_physical;
    let nominal = nominal_blocks * BLOCK_SIZE as f64;
    let erase_block = f64::from(flash.pages_per_block) * FLASH_PAGE as f64;
    let wanted = (nominal * (1.0 + flash.over_provisioning) / erase_block - 1e-9).ceil();
    let least = (nominal_blocks * f64::from(max_extent) / (erase_block - f64::from(max_extent)))
        .ceil()
        + 1.0;
    Ok(ExtentFtlConfig {
        logical_blocks,
        pages_per_block: flash.pages_per_block,
        // Values too large for `u32` saturate, and are refused there.
        log_blocks: wanted.max(least).max(3.0) as u32,
        reserve_blocks: flash.reserve_blocks,
        max_extent,
        must_fit: 1.0,
        policy,
        seed,
    })
}
