//! Predicts the drive from the trace's own writes: they are played on miniatures of its flash.
//!
//! What the host writes is exact. How far a block compresses follows from its length and share of
//! zeros: for each pair, one block is made and compressed.

use rustc_hash::FxHashMap;
use treering_engine::{BLOCK_SIZE, IoClass};
use treering_traces::{Op, OpKind};

use super::places::{Places, blocks_of};
use crate::csd::Compressor;
use crate::predict::DeviceParams;
use crate::predict::flash::{Effort, Flash, Forecast};
use crate::replay::config::ReplayConfig;
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::replay::source::{Next, Source};
use crate::report::MiniatureReport;
use crate::values::Values;

/// A prediction, in bytes of the measured part.
pub(super) struct Predicted {
    /// Written by the host.
    pub(super) host_bytes: u64,
    /// The same after compression, without headers of extents.
    pub(super) compressed_bytes: u64,
    pub(super) flash: Forecast,
    pub(super) miniature: MiniatureReport,
}

/// Plays the trace on miniatures; `None` if the drive has no flash that they can play.
pub(super) fn predict(
    config: &ReplayConfig,
    looked: &Looked,
    places: &Places,
    params: &DeviceParams,
) -> Result<Option<Predicted>, ReplayError> {
    let Some(shape) = params.flash else {
        return Ok(None);
    };
    let played = Flash::new(&shape, Effort::Full, config.seed, params.before);
    let mut flash = played.map_err(|e| ReplayError::Drive(e.into()))?;
    let mut sizes = Sizes::new(params, looked.header.zeros);
    let mut source = Source::open(config, looked)?;
    let mut op = Op::default();
    let (mut host_bytes, mut compressed_bytes) = (0, 0);
    // Blocks that each record takes now, by the first.
    let mut taken: FxHashMap<u64, u64> = FxHashMap::default();
    loop {
        let next = source.next(&mut op)?;
        if next == Next::Over {
            break;
        }
        if source.number() == looked.warmup_ops + 1 {
            (host_bytes, compressed_bytes) = (0, 0);
            flash.begin_measured();
        }
        let Some(place) = places.of_key(&op.key).filter(|_| next == Next::Op) else {
            continue;
        };
        match op.kind {
            OpKind::Get | OpKind::Scan => {}
            OpKind::Delete => {
                taken.remove(&place.start);
                flash.trim(place.start, place.end - place.start);
            }
            OpKind::Put => {
                let len = op.value_len as usize;
                let blocks = blocks_of(len);
                let payloads = sizes.of(len, op.zeros);
                for (lba, payload) in (place.start..).zip(payloads.iter().copied()) {
                    flash.write(lba, payload, IoClass::Page as u8);
                    compressed_bytes += u64::from(payload);
                }
                host_bytes += blocks * BLOCK_SIZE as u64;
                // Only records of several blocks shrink by whole blocks.
                if place.end - place.start > 1 {
                    let before = taken.insert(place.start, blocks).unwrap_or(0);
                    flash.trim(place.start + blocks, before.saturating_sub(blocks));
                }
            }
        }
    }
    let forecast = flash.forecast();
    Ok(Some(Predicted {
        host_bytes,
        compressed_bytes,
        flash: forecast,
        miniature: MiniatureReport {
            sample: flash.sample(),
            miniatures: flash.replicas() as u32,
            gc_over_host: forecast.gc_per_host,
            standard_error: forecast.standard_error,
        },
    }))
}

/// Compressed sizes of the blocks of a value.
struct Sizes {
    compressor: Option<Compressor>,
    values: Values,
    known: FxHashMap<(usize, Option<u8>), Vec<u16>>,
    made: u64,
}

impl Sizes {
    fn new(params: &DeviceParams, zeros: f64) -> Sizes {
        let compression = params.compression;
        // Not the values of the run.
        let seed = compression.map_or(0, |how| how.seed) ^ 0x5eed;
        Sizes {
            compressor: compression.map(|how| Compressor::new(how.codec)),
            values: Values::new(seed, zeros),
            known: FxHashMap::default(),
            made: 0,
        }
    }

    /// Compressed sizes of a value's blocks; those of whole blocks on drives that do not compress.
    fn of(&mut self, len: usize, zeros: Option<u8>) -> &[u16] {
        let (values, made) = (&mut self.values, &mut self.made);
        let compressor = &mut self.compressor;
        self.known.entry((len, zeros)).or_insert_with(|| {
            let blocks = blocks_of(len) as usize;
            let Some(compressor) = compressor else {
                return vec![BLOCK_SIZE as u16; blocks];
            };
            *made += 1;
            let value = match zeros {
                None => values.make(*made, len),
                Some(zeros) => values.make_with(*made, len, f64::from(zeros) / 255.0),
            };
            let mut padded = value.to_vec();
            padded.resize(blocks * BLOCK_SIZE, 0);
            let (blocks, _) = padded.as_chunks::<BLOCK_SIZE>();
            let size = |block: &[u8; BLOCK_SIZE]| match block.iter().all(|&byte| byte == 0) {
                true => 0,
                false => compressor.size(block),
            };
            blocks.iter().map(size).collect()
        })
    }
}
