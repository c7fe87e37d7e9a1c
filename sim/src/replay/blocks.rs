//! Writes of blocks, straight to a drive: measured beside predicted.
//!
//! What the host writes is known. Only what the drive does with it is predicted, by miniatures of
//! its flash ([`crate::predict::flash`]).

use treering_engine::{BLOCK_SIZE, ClassBytes, IoClass};

use super::measured::{DriveRun, csd_wa, device_wa, errors, host_wa};
use crate::drive::DriveError;
use crate::predict::flash::Flash;
use crate::predict::{Bars, DeviceParams, Method, Model};
use crate::report::{
    DeviceWa, HostReport, HostWa, MiniatureReport, PredictedValue, WaReport, WaSide, with_bars,
};

/// A prediction, in bytes of the measured part.
#[derive(Clone, Debug)]
pub struct BlockPrediction {
    /// Written by the host.
    pub host_bytes: u64,
    /// The same after compression, without headers of extents.
    pub compressed_bytes: u64,
    /// Programmed for the host.
    pub programmed_bytes: f64,
    /// Moved by garbage collection.
    pub gc_bytes: f64,
    pub(super) model: Model,
    pub(super) played: Option<Played>,
}

/// What only miniatures know.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) miniature: MiniatureReport,
    pub(super) gc_reached: bool,
    pub(super) bars: Bars,
}

impl BlockPrediction {
    /// The miniatures that the prediction comes from, if it comes from some.
    #[must_use]
    pub fn miniature(&self) -> Option<MiniatureReport> {
        self.played.as_ref().map(|played| played.miniature)
    }
}

/// Takes the writes of a run in their order, and predicts what a drive does with them.
#[derive(Debug)]
pub struct BlockPredictor {
    flash: Box<Flash>,
    compresses: bool,
    host_bytes: u64,
    compressed_bytes: u64,
}

impl BlockPredictor {
    /// A predictor for a drive with these parameters; `None` if its flash is not known.
    ///
    /// # Errors
    /// [`DriveError`] if there is no such flash.
    pub fn new(
        params: &DeviceParams,
        method: Method,
        seed: u64,
    ) -> Result<Option<BlockPredictor>, DriveError> {
        let Some(shape) = params.flash else {
            return Ok(None);
        };
        let flash = Flash::new(&shape, method.effort, seed, params.before)?;
        Ok(Some(BlockPredictor {
            flash: Box::new(flash),
            compresses: params.compression.is_some(),
            host_bytes: 0,
            compressed_bytes: 0,
        }))
    }

    /// The host writes consecutive blocks. `payloads` are their compressed sizes, 0 for a block of
    /// zeros; drives that do not compress ignore them.
    pub fn write(&mut self, lba: u64, payloads: &[u16]) {
        for (lba, &payload) in (lba..).zip(payloads) {
            self.flash.write(lba, payload, IoClass::Page as u8);
            self.compressed_bytes += u64::from(payload);
        }
        self.host_bytes += (payloads.len() * BLOCK_SIZE) as u64;
    }

    /// The host trims consecutive blocks.
    pub fn trim(&mut self, lba: u64, blocks: u64) {
        self.flash.trim(lba, blocks);
    }

    /// Begins the measured part: what was counted until now is forgotten.
    pub fn begin_measured(&mut self) {
        (self.host_bytes, self.compressed_bytes) = (0, 0);
        self.flash.begin_measured();
    }

    /// The prediction for the measured part so far.
    #[must_use]
    pub fn predict(&self) -> BlockPrediction {
        let flash = &self.flash;
        let forecast = flash.forecast();
        let miniature = MiniatureReport {
            sample: flash.sample(),
            miniatures: flash.replicas() as u32,
            gc_over_host: forecast.gc_per_host,
            standard_error: forecast.standard_error,
        };
        BlockPrediction {
            host_bytes: self.host_bytes,
            compressed_bytes: self.compressed_bytes,
            programmed_bytes: forecast.host_bytes as f64,
            gc_bytes: forecast.gc_bytes(),
            model: Model::Played,
            played: Some(Played {
                miniature,
                gc_reached: forecast.gc_reached,
                bars: Bars::of_drive(&forecast, self.compresses),
            }),
        }
    }
}

/// Write amplification of a drive without a tree, over `user_bytes`, after the host wrote these
/// bytes by class.
#[must_use]
pub fn block_wa(
    on: &DriveRun<'_>,
    (written, user_bytes): (&ClassBytes, u64),
    predicted: Option<&BlockPrediction>,
) -> WaReport {
    let csd = csd_wa(on, user_bytes);
    let measured = WaSide {
        host: host_wa(written, user_bytes),
        device: Some(device_wa(&on.before.flash, &on.after.flash, user_bytes)),
        csd: csd.map(|csd| csd.stored),
    };
    let predicted = predicted
        .filter(|_| user_bytes > 0)
        .map(|p| side(p, user_bytes, csd.is_some()));
    WaReport {
        host: HostReport {
            by_class: measured.host,
            page_causes: None,
        },
        device: measured.device,
        error: (predicted.as_ref()).map(|p| errors(&measured, &p.values())),
        predicted,
        csd,
        untried: Vec::new(),
        limit: None,
        waterfall: Vec::new(),
    }
}

/// The predicted side of write amplification.
pub(super) fn side(
    p: &BlockPrediction,
    user_bytes: u64,
    compresses: bool,
) -> WaSide<PredictedValue> {
    let over = |bytes: f64| bytes / user_bytes as f64;
    let of_blocks = |bytes: f64| HostWa {
        page: over(bytes),
        total: over(bytes),
        ..HostWa::default()
    };
    let (host, gc) = (p.programmed_bytes, p.gc_bytes);
    let values = WaSide {
        host: of_blocks(p.host_bytes as f64),
        device: Some(DeviceWa {
            total: over(host + gc),
            gc: over(gc),
            nand_over_host: (host + gc) / (p.host_bytes as f64).max(1.0),
        }),
        csd: compresses.then(|| of_blocks(p.compressed_bytes as f64)),
    };
    let bars = p.played.as_ref().map(|played| &played.bars);
    with_bars(&values, bars, p.model)
}
