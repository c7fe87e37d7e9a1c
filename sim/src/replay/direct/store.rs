//! The trace's own writes, straight to the drive.

use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;
use treering_engine::{BLOCK_SIZE, Error, IoClass, Kv, Lba, Lsn, Result, Stats, Visitor};

use super::places::{Places, blocks_of};
use crate::drive::SimDrive;

/// Records on a drive without a tree: a put writes the record's blocks, a delete trims them, and a
/// get reads them. There is no log, no cache and no index on the drive.
pub(super) struct Direct {
    drive: Arc<dyn SimDrive>,
    places: Arc<Places>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stats: Stats,
    /// A value in whole blocks.
    buffer: Vec<u8>,
    /// Blocks that each record takes now, by rank.
    taken: Vec<u32>,
}

impl Direct {
    pub(super) fn new(drive: Arc<dyn SimDrive>, places: Arc<Places>) -> Direct {
        Direct {
            drive,
            places,
            state: Mutex::default(),
        }
    }

    fn read(&self, state: &mut State, rank: usize) -> Result<bool> {
        let Some(place) = self.places.of(rank).filter(|place| !place.is_empty()) else {
            return Ok(false);
        };
        // What was never written is read as a drive that is in use would: a whole record.
        let taken = state.taken.get(rank).copied().unwrap_or(0);
        let blocks = match taken {
            0 => place.end - place.start,
            taken => u64::from(taken),
        };
        let bytes = blocks as usize * BLOCK_SIZE;
        state.buffer.resize(bytes.max(state.buffer.len()), 0);
        let buffer = &mut state.buffer[..bytes];
        self.drive
            .read(Lba(place.start), buffer, IoClass::Page)
            .map_err(Error::from)?;
        state.stats.read.page += bytes as u64;
        Ok(taken > 0)
    }
}

impl Kv for Direct {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let state = &mut *self.state.lock();
        match self.places.rank(key) {
            None => Ok(false),
            Some(rank) => self.read(state, rank),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let state = &mut *self.state.lock();
        let found = self.places.rank(key);
        let Some((rank, place)) = found.and_then(|rank| Some((rank, self.places.of(rank)?))) else {
            return Ok(Lsn(0));
        };
        let blocks = blocks_of(value.len());
        let bytes = blocks as usize * BLOCK_SIZE;
        state.buffer.clear();
        state.buffer.extend_from_slice(value);
        state.buffer.resize(bytes, 0);
        self.drive
            .write(Lba(place.start), &state.buffer, IoClass::Page)
            .map_err(Error::from)?;
        state.stats.written.page += bytes as u64;
        if state.taken.len() <= rank {
            state.taken.resize(rank + 1, 0);
        }
        let before = std::mem::replace(&mut state.taken[rank], blocks as u32);
        let rest = u64::from(before).saturating_sub(blocks);
        if rest > 0 {
            self.drive
                .trim(Lba(place.start + blocks), rest)
                .map_err(Error::from)?;
            state.stats.trimmed_bytes += rest * BLOCK_SIZE as u64;
        }
        Ok(Lsn(0))
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        let state = &mut *self.state.lock();
        let found = self.places.rank(key);
        let Some((rank, place)) = found.and_then(|rank| Some((rank, self.places.of(rank)?))) else {
            return Ok(Lsn(0));
        };
        let blocks = place.end - place.start;
        if blocks > 0 {
            self.drive
                .trim(Lba(place.start), blocks)
                .map_err(Error::from)?;
            state.stats.trimmed_bytes += blocks * BLOCK_SIZE as u64;
        }
        if let Some(taken) = state.taken.get_mut(rank) {
            *taken = 0;
        }
        Ok(Lsn(0))
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let state = &mut *self.state.lock();
        let Some(first) = self.places.rank(from) else {
            return Ok(());
        };
        let mut rank = first;
        while self.places.of(rank).is_some() {
            if self.read(state, rank)? && visit(&[], &[]) == ControlFlow::Break(()) {
                break;
            }
            rank += 1;
        }
        Ok(())
    }

    /// The drive has acknowledged every write.
    fn sync(&self, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Stats {
        self.state.lock().stats
    }
}
