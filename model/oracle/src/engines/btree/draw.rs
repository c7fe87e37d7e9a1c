//! Options drawn by a seed: for a program, and for each opening of a store.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::node::LayoutChoice;
use treering_engine::{
    BfOptions, Error, LogPacking, Options, PageStoreKind, Promote, ResetRule, Result, Store,
    SystemClock, TreeKind,
};

use super::parts::SMALL_MOD_LOG;
use super::{BTree, Geometry};
use crate::engine::Engine;
use crate::engines::shared::{DRAWN_OPENINGS, DRAWS, entries_again};
use crate::random::Random;

impl BTree {
    /// The options for opening number `opening` of a store.
    pub(super) fn options_again(&self, opening: u64) -> Options {
        let mut options = self.options.clone();
        let mut random = Random::part(self.draw * DRAWN_OPENINGS + opening, 0);
        if opening + self.draw == 0 || random.one_in(4) {
            return options;
        }
        options.index_entries = entries_again(options.index_entries, &mut random);
        options.first_lsn = match self.draw % 4 {
            0 => 0,
            // A little below a power of two, so that some programs pass it.
            _ => (1 << (24 + random.below(38))) - (random.below(8) << 14),
        };
        let log = options.log_bytes;
        options.cache_bytes += random.below(9) * options.page_size as u64;
        options.checkpoint_log_bytes = log / (2 + random.below(6));
        options.log_buffer_bytes = log / (4 << random.below(4));
        // At most the batch of the first opening: there may be no store yet, and its journal must
        // fit.
        options.write_batch_pages = 1 + random.below(options.write_batch_pages as u64) as usize;
        if random.one_in(2) {
            let layouts: Vec<LayoutChoice> = LayoutChoice::all().collect();
            let pick = random.below(layouts.len() as u64) as usize;
            options.layout = layouts.get(pick).copied();
        }
        if random.one_in(3) {
            options.log_packing = match options.log_packing {
                LogPacking::Packed => LogPacking::Sparse,
                LogPacking::Sparse => LogPacking::Packed,
            };
        }
        if let (Some(mod_log), true) = (&mut options.mod_log, random.one_in(2)) {
            mod_log.segment = 64 << random.below(4);
            mod_log.threshold = mod_log.segment.max(512 << random.below(4));
            mod_log.reset = match random.below(3) {
                0 => ResetRule::AboveThreshold,
                _ => ResetRule::AtThreshold,
            };
        }
        if random.one_in(6) {
            // The same pages under another tree, in the same cache, of which the ring gets more or
            // less.
            options.contention_split = None;
            options.tree = match options.tree {
                TreeKind::BTree => TreeKind::Bf(BfOptions::default()),
                TreeKind::Bf(_) => TreeKind::BTree,
            };
            options.cache_bytes = options.cache_bytes.max(options.least_cache_bytes());
        }
        if let (TreeKind::Bf(bf), true) = (&mut options.tree, random.one_in(2)) {
            let drawn = random.below(5) as usize;
            bf.copy_on_access_percent = [0, 1, 10, 50, 100][drawn];
            bf.growth_percent = [25, 100, 50, 10, 100][drawn];
            bf.promote = match random.below(5) {
                4 => Promote::Adaptive,
                n => Promote::Percent([0, 1, 30, 100][n as usize]),
            };
            bf.relog_percent = [0, 10, 50][random.below(3) as usize];
            bf.spare_percent = [0, 50, 75, 90][random.below(4) as usize];
            bf.max_mini_page_percent = [50, 75, 100][random.below(3) as usize];
        }
        options
    }

    /// Opens the store with an option that does not fit it. `Ok` if the engine refuses the option.
    pub(super) fn open_wrongly(&self, device: &Arc<dyn BlockDevice>, opening: u64) -> Result<()> {
        let mut options = self.options.clone();
        options.create = false;
        match opening % 24 {
            0 => {
                options.page_size = if options.page_size == 4_096 {
                    8_192
                } else {
                    4_096
                };
                options.cache_bytes = 64 << 20;
                options.log_bytes = 64 << 20;
            }
            8 => {
                options.store = match options.store {
                    PageStoreKind::InPlace => PageStoreKind::Shadow,
                    _ => PageStoreKind::InPlace,
                };
            }
            16 if options.mod_log.is_none() => options.mod_log = Some(SMALL_MOD_LOG),
            _ => return Ok(()),
        }
        match Store::open(Arc::clone(device), Arc::new(SystemClock::new()), &options) {
            Err(Error::Mismatch { .. }) | Err(Error::Device(_)) => Ok(()),
            // The opening with the right options will show whether there is a store at all.
            Err(Error::NotAStore { .. } | Error::Damaged { .. }) => Ok(()),
            Err(other) => Err(other),
            Ok(store) => {
                store.abandon_on_drop();
                Err(Error::BadOption {
                    name: "page, store or mod-log",
                    why: "other than the store's; expected them to be refused".into(),
                })
            }
        }
    }

    pub(super) fn drawn(&self, seed: u64, grown: bool) -> Option<Box<dyn Engine>> {
        let mut random = Random::part(seed, 1);
        let mut variations = Vec::new();
        match random.below(8) {
            0..2 => variations.push("per-commit"),
            2..4 => variations.push("grouped"),
            _ => {}
        }
        if random.one_in(4) {
            variations.push("closes");
        }
        if grown {
            let huge = random.one_in(6) && self.options.page_size == 4_096;
            variations.push(if huge { "huge" } else { "large" });
            // A log with room for hundreds of new pages between two checkpoints.
            if random.one_in(3) {
                variations.push("long-flush");
            }
        } else {
            if random.one_in(8) {
                variations.push("cramped");
            }
            if random.one_in(8) && self.options.page_size < 16_384 {
                variations.push(["16k", "32k", "64k"][random.below(3) as usize]);
            }
            if random.one_in(24) {
                variations.push("long-flush");
            }
        }
        if random.one_in(5) {
            variations.push("file");
        }
        if random.one_in(4) {
            variations.push("wide");
        }
        let draw = format!("options={}", 1 + random.below(DRAWS));
        if random.one_in(2) {
            variations.push(&draw);
        }
        if variations.is_empty() || self.geometry != Geometry::Tiny {
            return None;
        }
        let varied = (variations.into_iter()).try_fold(self.clone(), BTree::varied)?;
        Some(Box::new(varied))
    }
}
