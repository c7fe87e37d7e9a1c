//! Compares the device's blocks with the spec's places, version by version.

use treering_engine::{LogBlock, StoreId, SuperblockFound, Survey};

use super::device::{Bytes, StepDevice};
use crate::conformance::scale::Scale;
use crate::mirror::wal_recovery::unbounded::BlockName;
use crate::mirror::wal_recovery::{Checkpoint, Phase, State};
use treering_engine::device::BlockDevice;
use treering_engine::node::PageRef;

/// Where the spec's places are on the device.
#[derive(Clone)]
pub(super) struct Atlas {
    store: StoreId,
    scale: Scale,
    log_start: usize,
    ring: usize,
    /// First block of each key's page, and the number of blocks in a page.
    pages: Vec<usize>,
    page_blocks: usize,
    /// Whether the superblock's epoch is compared. A seeded bug of the engine keeps the epoch of
    /// the log's blocks, and counts on in the superblock.
    epochs: bool,
}

impl Atlas {
    /// Takes the places from the survey of a store at rest. `pages` is in key order.
    pub(super) fn new(
        survey: &Survey,
        scale: Scale,
        pages: Vec<usize>,
        page_blocks: usize,
    ) -> Atlas {
        Atlas {
            store: survey.store,
            scale,
            log_start: survey.log_start.0 as usize,
            ring: survey.log.len(),
            pages,
            page_blocks,
            epochs: true,
        }
    }

    /// The same places, without a comparison of the superblock's epoch.
    #[cfg(feature = "mutations")]
    pub(super) fn without_epochs(mut self) -> Atlas {
        self.epochs = false;
        self
    }

    /// Whether the device's log ends where the spec's does. A walk needs no such check, because
    /// each block is compared when the spec writes it.
    pub(super) fn compare_end(&self, device: &StepDevice, s: &State) -> Result<(), String> {
        let blocks = (0..2).flat_map(|place| s.block_versions(place));
        let written = blocks.filter(|(epoch, ..)| *epoch != 0);
        let end = written.map(|(_, index, _)| index + 1).max().unwrap_or(0);
        for index in end..end + 2 {
            for block in device.versions(self.log_lba(index)) {
                let (epoch, at, _) = self.log_name(&block)?;
                if epoch != 0 && at == index {
                    return Err(format!(
                        "log block {index} is written on the device, and not in the spec"
                    ));
                }
            }
        }
        Ok(())
    }

    fn log_lba(&self, index: u64) -> usize {
        self.log_start + ((self.scale.first_block + index) % self.ring as u64) as usize
    }

    fn log_name(&self, block: &Bytes) -> Result<BlockName, String> {
        let name = LogBlock::read(block, self.store).map(|block| self.scale.block(&block));
        Ok(name.transpose()?.flatten().unwrap_or((0, 0, 0)))
    }

    fn superblock(&self, device: &StepDevice, lba: usize, newest: bool) -> Option<SuperblockFound> {
        let versions = device.versions(lba);
        let block = if newest {
            versions.last()
        } else {
            versions.first()
        }?;
        SuperblockFound::read(block, device.capacity_blocks())
    }

    fn super_name(&self, device: &StepDevice, newest: bool) -> Result<(u64, u64), String> {
        let both = (0..2).filter_map(|lba| self.superblock(device, lba, newest));
        let found = both.max().ok_or("no superblock")?;
        let epoch = self.scale.epoch(found.epoch);
        Ok((epoch, self.scale.position(found.redo_start)?))
    }

    /// The expected versions in the engine's log of the block that a place of the spec stands for,
    /// which is the block that was last written there.
    fn log_versions(&self, s: &State, place: usize) -> Option<(u64, Vec<BlockName>)> {
        let all: Vec<BlockName> = s.block_versions(place).collect();
        let (epoch, index, _) = *all.last()?;
        if epoch == 0 || index < self.oldest_block(s) {
            return None;
        }
        let mut mine: Vec<BlockName> = all.iter().copied().filter(|v| v.1 == index).collect();
        // The first version of the spec's place may be another block, which has a different place
        // in the engine's larger ring.
        if all[0].1 != index {
            mine.insert(0, (0, 0, 0));
        }
        Some((index, mine))
    }

    fn oldest_block(&self, s: &State) -> u64 {
        let oldest = match (s.phase(), s.checkpoint()) {
            (Phase::Cut | Phase::Killed, _) => {
                s.super_versions().last().map_or(0, |(_, redo)| redo)
            }
            (_, (Checkpoint::Recorded, begin)) => begin,
            _ => s.oldest(),
        };
        oldest / self.scale.per_block
    }

    /// Whether the device has the versions that the spec has, for every place.
    pub(super) fn compare(&self, device: &StepDevice, s: &State) -> Result<(), String> {
        for place in 0..2 {
            let Some((index, wanted)) = self.log_versions(s, place) else {
                continue;
            };
            let found = device.versions(self.log_lba(index));
            let found: Result<Vec<_>, _> = found.iter().map(|b| self.log_name(b)).collect();
            let found = live(found?, self.oldest_block(s));
            if found != live(wanted.clone(), self.oldest_block(s)) {
                return Err(format!(
                    "log block {index} is {found:?} on the device, and {wanted:?} in the spec"
                ));
            }
        }
        for (key, lba) in self.pages.iter().enumerate() {
            let found = device.versions(*lba);
            let lsns = found
                .iter()
                .map(|bytes| self.scale.page_lsn(PageRef::new(bytes).lsn()));
            let lsns = lsns.collect::<Result<Vec<_>, _>>()?;
            let wanted: Vec<u64> = s.page_versions(key as u8).collect();
            if lsns != wanted {
                let k = key + 1;
                return Err(format!(
                    "the page of k{k} is {lsns:?} on the device, and {wanted:?} in the spec"
                ));
            }
        }
        let wanted: Vec<_> = s.super_versions().collect();
        for (newest, wanted) in [(false, wanted.first()), (true, wanted.last())] {
            let mut found = self.super_name(device, newest)?;
            if let Some((epoch, _)) = wanted.filter(|_| !self.epochs) {
                found.0 = *epoch;
            }
            if Some(&found) != wanted {
                return Err(format!(
                    "the superblock is {found:?} on the device, and {wanted:?} in the spec"
                ));
            }
        }
        Ok(())
    }

    /// The device after a crash that leaves the versions in `to`.
    pub(super) fn crash(
        &self,
        device: &StepDevice,
        from: &State,
        to: &State,
    ) -> Result<StepDevice, String> {
        let mut chosen = Vec::new();
        for place in 0..2 {
            let Some((index, all)) = self.log_versions(from, place) else {
                continue;
            };
            let left = to
                .block_versions(place)
                .last()
                .ok_or("a place without a version")?;
            let at = if left.1 == index {
                all.iter().rposition(|version| *version == left)
            } else {
                Some(0)
            };
            let at = at.ok_or_else(|| format!("log block {index} has no version {left:?}"))?;
            chosen.push((self.log_lba(index), at));
        }
        for (key, lba) in self.pages.iter().enumerate() {
            let left = to.page_versions(key as u8).last();
            let at = from
                .page_versions(key as u8)
                .position(|version| Some(version) == left);
            let at = at.ok_or("a page without that version")?;
            chosen.extend((0..self.page_blocks).map(|i| (lba + i, at)));
        }
        let newest = to.super_versions().last() == from.super_versions().last();
        Ok(
            device.crash(|lba, n| match chosen.iter().find(|(one, _)| *one == lba) {
                Some((_, at)) => *at,
                None if lba < 2 && !newest => 0,
                None => n - 1,
            }),
        )
    }
}

/// Drops the versions that are not part of the log.
fn live(versions: Vec<BlockName>, oldest: u64) -> Vec<BlockName> {
    let dead = |v: BlockName| v.0 == 0 || v.1 < oldest;
    versions
        .into_iter()
        .map(|v| if dead(v) { (0, 0, 0) } else { v })
        .collect()
}
