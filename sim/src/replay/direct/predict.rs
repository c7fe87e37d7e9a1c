//! Predicts the drive from the trace's own writes: they are played on miniatures of its flash, or
//! counted for the closed forms ([`super::independent`]).
//!
//! What the host writes is exact. How far a block compresses follows from its length and share of
//! zeros: for each pair, one block is made and compressed.

use rustc_hash::FxHashMap;
use treering_engine::BLOCK_SIZE;
use treering_traces::{Op, OpKind};

use super::independent::Popularity;
use super::places::{Places, blocks_of};
use crate::csd::Compressor;
use crate::predict::flash::FlashShape;
use crate::predict::{DeviceParams, Model};
use crate::replay::blocks::{BlockPrediction, BlockPredictor};
use crate::replay::config::ReplayConfig;
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::replay::source::{Next, Source};
use crate::values::Values;

/// What the host's writes go to.
enum Player {
    Flash(BlockPredictor),
    Popularity(Popularity),
}

impl Player {
    /// `None` if the drive has no flash that is known.
    fn new(
        config: &ReplayConfig,
        places: &Places,
        params: &DeviceParams,
    ) -> Result<Option<Player>, ReplayError> {
        if config.method.model == Model::Independent {
            let popularity = Popularity::new(places.records());
            return Ok(params.flash.map(|_| Player::Popularity(popularity)));
        }
        let flash = BlockPredictor::new(params, config.method, config.seed);
        Ok(flash.map_err(ReplayError::Drive)?.map(Player::Flash))
    }

    fn begin_measured(&mut self) {
        match self {
            Player::Flash(flash) => flash.begin_measured(),
            Player::Popularity(popularity) => popularity.begin_measured(),
        }
    }

    fn trim(&mut self, lba: u64, blocks: u64) {
        if let Player::Flash(flash) = self {
            flash.trim(lba, blocks);
        }
    }

    fn put(&mut self, (rank, lba): (usize, u64), payloads: &[u16], shape: &FlashShape) {
        match self {
            Player::Flash(flash) => flash.write(lba, payloads),
            Player::Popularity(popularity) => {
                popularity.put(rank, payloads.iter().map(|payload| shape.stored(*payload)));
            }
        }
    }
}

/// Predicts by the configured model; `None` if the drive has no flash that is known.
pub(super) fn predict(
    config: &ReplayConfig,
    looked: &Looked,
    places: &Places,
    params: &DeviceParams,
) -> Result<Option<BlockPrediction>, ReplayError> {
    let Some((shape, mut player)) = params.flash.zip(Player::new(config, places, params)?) else {
        return Ok(None);
    };
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
            player.begin_measured();
        }
        let found = places.rank(&op.key).filter(|_| next == Next::Op);
        let Some((rank, place)) = found.and_then(|rank| Some((rank, places.of(rank)?))) else {
            continue;
        };
        match op.kind {
            OpKind::Get | OpKind::Scan => {}
            OpKind::Delete => {
                taken.remove(&place.start);
                player.trim(place.start, place.end - place.start);
            }
            OpKind::Put => {
                let len = op.value_len as usize;
                let blocks = blocks_of(len);
                let payloads = sizes.of(len, op.zeros);
                player.put((rank, place.start), payloads, &shape);
                compressed_bytes += payloads.iter().map(|p| u64::from(*p)).sum::<u64>();
                host_bytes += blocks * BLOCK_SIZE as u64;
                // Only records of several blocks shrink by whole blocks.
                if place.end - place.start > 1 {
                    let before = taken.insert(place.start, blocks).unwrap_or(0);
                    player.trim(place.start + blocks, before.saturating_sub(blocks));
                }
            }
        }
    }
    Ok(Some(match &player {
        Player::Flash(flash) => flash.predict(),
        Player::Popularity(popularity) => {
            let blocks = |rank| places.of(rank).map_or(0, |place| place.end - place.start);
            let closed = popularity.predict(params, blocks);
            BlockPrediction {
                host_bytes,
                compressed_bytes,
                programmed_bytes: closed.host_bytes,
                gc_bytes: closed.gc_bytes,
                model: Model::Independent,
                played: None,
            }
        }
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
