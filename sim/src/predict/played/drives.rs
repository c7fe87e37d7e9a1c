//! The drives below a played store. Drives that show the store the same share one played run: each
//! has its own miniature flash, and all of them are told the same blocks.
//!
//! ```text
//!                                  ┌─▶ miniature of drive 1
//! accesses ─▶ frames ─▶ page store ┼─▶ miniature of drive 2
//!      played once per group       └─▶ …      played for each
//! ```
//!
//! A store sees how its blocks compress, and how long reads and flushes take if it has to do with
//! time at all. A larger drive has more places and a longer page table, so places lie behind by as
//! many blocks: each drive is told its own. The number of places matters only if they are ever
//! lacking; a run in which they were is played again for each number of places. So what is predicted
//! for a drive does not depend on the others.

use std::collections::BTreeMap;

use treering_engine::{BLOCK_SIZE, Durability, IoClass, Options};

use super::blocks;
use super::layout::Regions;
use crate::predict::content::Compression;
use crate::predict::device::DeviceParams;
use crate::predict::flash::{Effort, Flash, FlashShape, Forecast};
use crate::predict::log::Pace;

/// Drives of one group, at most: their miniatures are in memory together.
const MOST: usize = 64;

/// A drive, with the pace of the clients on it.
pub(in crate::predict) type Drive<'a> = (&'a DeviceParams, Option<&'a Pace>);

/// What a store sees of its drive.
#[derive(Debug, PartialEq)]
struct Seen {
    regions: Regions,
    compression: Option<Compression>,
    pace: Option<Pace>,
}

impl Seen {
    fn of((device, pace): Drive<'_>, options: &Options, scale: u64) -> Seen {
        let regions = Regions::new(options, device.capacity_blocks, scale);
        let has_intervals = matches!(options.durability, Durability::Grouped(_));
        Seen {
            // How many places there are may not matter, and where they begin does not.
            regions: Regions {
                pages: 0,
                places: 0,
                ..regions
            },
            compression: device.compression,
            // Without commits and intervals, nothing happens because of the time.
            pace: pace.filter(|pace| pace.commits || has_intervals).copied(),
        }
    }
}

/// Groups of drives that show the store the same, by their places in the list; the smallest of each
/// group is its first.
pub(super) fn groups(drives: &[Drive<'_>], options: &Options, scale: u64) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Seen, Vec<usize>)> = Vec::new();
    for (at, drive) in drives.iter().enumerate() {
        let seen = Seen::of(*drive, options, scale);
        let known = (groups.iter_mut()).find(|(of, group)| *of == seen && group.len() < MOST);
        match known {
            Some((_, group)) => group.push(at),
            None => groups.push((seen, vec![at])),
        }
    }
    let by_capacity = |(_, mut group): (Seen, Vec<usize>)| {
        group.sort_by_key(|at| drives[*at].0.capacity_blocks);
        group
    };
    groups.into_iter().map(by_capacity).collect()
}

/// Parts of a group, each of the drives that have as many places at the same place.
pub(super) fn by_places(
    group: &[usize],
    drives: &[Drive<'_>],
    options: &Options,
    scale: u64,
) -> Vec<Vec<usize>> {
    let mut parts: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for at in group {
        let regions = Regions::new(options, drives[*at].0.capacity_blocks, scale);
        let key = (regions.places, regions.pages);
        parts.entry(key).or_default().push(*at);
    }
    parts.into_values().collect()
}

/// The flash of each drive of a group; `None` for a drive whose flash cannot be played.
pub(super) struct Below {
    flashes: Vec<Option<Flash>>,
    /// Where the places of the first drive begin, and how far behind those of each begin.
    places_at: u64,
    behind: Vec<u64>,
    /// Pages of an erase block of each drive that is sampled with its store, even if all of it is
    /// played: these are smaller.
    scaled_pages: Vec<Option<u32>>,
}

impl Below {
    /// Drives of which `1/scale` is played, the smallest first, for a store with these options.
    pub(super) fn new(
        drives: &[Drive<'_>],
        options: &Options,
        (scale, effort): (u64, Effort),
    ) -> Below {
        let shape = |device: &DeviceParams| device.flash.map(|flash| flash.scaled(scale));
        let flash = |(device, _): &Drive<'_>| miniature(&shape(device)?, device, effort);
        let pages = |(device, _): &Drive<'_>| {
            shape(device)
                .filter(|_| scale > 1)
                .map(|flash| flash.pages_per_block)
        };
        let starts = drives.iter().map(|(device, _)| {
            let regions = Regions::new(options, device.capacity_blocks, scale);
            regions.pages
        });
        let first = starts.clone().next().unwrap_or(0);
        Below {
            flashes: drives.iter().map(flash).collect(),
            places_at: first,
            behind: starts.map(|start| start.saturating_sub(first)).collect(),
            scaled_pages: drives.iter().map(pages).collect(),
        }
    }

    /// What each drive is predicted to do.
    pub(super) fn forecasts(self) -> Vec<Option<Forecast>> {
        let forecast = |(flash, scaled): (Option<Flash>, Option<u32>)| {
            let forecast = flash?.forecast();
            Some(Forecast {
                sampled_pages: forecast.sampled_pages.or(scaled),
                ..forecast
            })
        };
        let flashes = self.flashes.into_iter().zip(self.scaled_pages);
        flashes.map(forecast).collect()
    }

    /// The flash of each drive, and what it calls this block of the first one.
    fn each(&mut self, lba: u64) -> impl Iterator<Item = (&mut Flash, u64)> {
        let is_place = lba >= self.places_at;
        let all = self.flashes.iter_mut().zip(&self.behind);
        all.filter_map(move |(flash, behind)| {
            let lba = if is_place { lba + behind } else { lba };
            flash.as_mut().map(|flash| (flash, lba))
        })
    }
}

impl blocks::Flash for Below {
    fn write(&mut self, lba: u64, class: IoClass, stored: u32) {
        for (flash, lba) in self.each(lba) {
            flash.write(lba, stored.min(BLOCK_SIZE as u32) as u16, class as u8);
        }
    }

    fn trim(&mut self, lba: u64, blocks: u64) {
        (self.each(lba)).for_each(|(flash, lba)| flash.trim(lba, blocks));
    }

    fn begin_measured(&mut self) {
        (self.flashes.iter_mut().flatten()).for_each(Flash::begin_measured);
    }
}

/// Seed of the samples.
const SEED: u64 = 1;

/// Flash pages up to which the predicted stream goes through all of the drive: samples of so few
/// blocks, of which some are written again and again, say little.
const SMALL_DRIVE: u64 = 1 << 16;

fn miniature(shape: &FlashShape, device: &DeviceParams, effort: Effort) -> Option<Flash> {
    let flash = match shape.log_pages() <= SMALL_DRIVE {
        true => Flash::sampled(shape, 1, SEED, device.before),
        false => Flash::new(shape, effort, SEED, device.before),
    };
    flash.ok()
}
