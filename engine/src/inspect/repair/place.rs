//! Determines which leaf has a key range, and which image recovery would have used for it. This
//! tells current images from stale ones.

use std::collections::{BTreeMap, HashMap};

use super::log::LogFound;
use super::scan::{Found, Image};
use crate::device::{AlignedBuf, Volume};
use crate::layout::{Layout, Slot, Superblock};
use crate::mutation;
use crate::node::{self, PageRef};
use crate::pages::{PageTable, lay_over};
use crate::snapshot::{self, Chain};
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId};

/// Whether an image is the last state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Current,
    /// Nothing proves that it is.
    Doubtful,
    /// It is not.
    Stale,
}

/// What lies at the place of a page.
enum AtPlace {
    /// This image, and nothing that may have been a newer one.
    Whole(Lba, Lsn),
    /// Nothing, or something that is not a whole image.
    Lost(String),
    /// The place is unknown.
    Unknown,
}

/// What is left of the index and of the pages' places.
pub(super) struct Places<'a> {
    volume: &'a Volume,
    layout: Option<Layout>,
    /// The leaf that begins at each fence. `None` if the snapshot is damaged.
    index: Option<BTreeMap<Vec<u8>, PageId>>,
    table: Option<PageTable>,
    /// The LSN of each page's newest image at the checkpoint.
    versions: HashMap<PageId, Lsn>,
    log: &'a LogFound,
    seen: HashMap<PageId, AtPlace>,
    pub(super) damage: Vec<String>,
}

impl<'a> Places<'a> {
    /// Reads the index snapshot and the page table as far as they are intact, and applies the log's
    /// changes to the index.
    pub(super) fn read(
        volume: &'a Volume,
        found: &Found,
        superblock: Option<&Superblock>,
        log: &'a LogFound,
    ) -> Places<'a> {
        let mut places = Places {
            volume,
            layout: superblock.map(|s| s.layout),
            index: None,
            table: None,
            versions: HashMap::new(),
            log,
            seen: HashMap::new(),
            damage: Vec::new(),
        };
        let Some(superblock) = superblock else {
            places.damage.push(
                "no superblock is intact: only the LSNs tell which images are the newest".into(),
            );
            return places;
        };
        places.read_index(superblock);
        if superblock.layout.store.table().is_some() {
            match PageTable::load(volume, &superblock.layout, superblock.names()) {
                Ok(table) => places.table = Some(table),
                Err(e) => places.damage.push(e.to_string()),
            }
        }
        places.note_lost_leaves(found);
        places
    }

    fn read_index(&mut self, superblock: &Superblock) {
        let layout = superblock.layout;
        let (head, content) = (superblock.snapshot_head, superblock.snapshot);
        let chain = Chain {
            volume: self.volume,
            layout: &layout,
            number: superblock.snapshot_number,
        };
        match snapshot::read(chain, head, content, layout.page_names()) {
            Ok((entries, _)) => {
                self.versions = entries.iter().map(|e| (e.page, e.version)).collect();
                let leaves = entries.into_iter().map(|e| (e.fence, e.page));
                let mut index: BTreeMap<Vec<u8>, PageId> = leaves.collect();
                for (fence, page) in &self.log.fences {
                    match page {
                        Some(page) => drop(index.insert(fence.clone(), *page)),
                        None => drop(index.remove(fence)),
                    }
                }
                self.index = Some(index);
            }
            Err(e) => self.damage.push(e.to_string()),
        }
    }

    /// Reports each leaf whose place holds no whole image, unless the log contains a newer state of
    /// it.
    fn note_lost_leaves(&mut self, found: &Found) {
        let Some(index) = &self.index else {
            return;
        };
        let newer: std::collections::HashSet<PageId> = (found.images.iter())
            .filter(|image| image.lsn > self.log.redo_start)
            .map(|image| image.page)
            .collect();
        let leaves: Vec<PageId> = index.values().copied().collect();
        for page in leaves {
            if let AtPlace::Lost(why) = self.at_place(page)
                && !newer.contains(&page)
                && !self.log.named.contains(&page)
            {
                self.damage.push(why);
            }
            let at_place = self.at_place(page);
            self.seen.insert(page, at_place);
        }
    }

    /// Returns the lower fences of the ranges whose leaf the index knows.
    pub(super) fn fences(&self) -> impl Iterator<Item = &[u8]> {
        self.index
            .iter()
            .flat_map(|index| index.keys().map(Vec::as_slice))
    }

    /// Decides whether `image`, the newest found for the range from `lower` on, is what the store
    /// held there when the log stood at its LSN.
    pub(super) fn judge(&self, image: &Image, lower: &[u8]) -> Verdict {
        if image.lsn > self.log.whole_from {
            return Verdict::Current;
        }
        let Some(index) = &self.index else {
            return Verdict::Doubtful;
        };
        let leaf =
            index.range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(lower)));
        let at_place = leaf.last().and_then(|(_, page)| self.seen.get(page));
        match at_place {
            Some(AtPlace::Lost(_)) if !mutation::on("repair-trusts-stale-leaf") => Verdict::Stale,
            Some(AtPlace::Whole(lba, lsn))
                if (*lba, *lsn) == (image.lba, image.lsn) && !self.log.has_holes =>
            {
                Verdict::Current
            }
            _ => Verdict::Doubtful,
        }
    }

    fn at_place(&self, page: PageId) -> AtPlace {
        let Some(layout) = &self.layout else {
            return AtPlace::Unknown;
        };
        let slot = match layout.store.table() {
            None => Some(Slot(page.0)),
            Some(_) => self.table.as_ref().and_then(|t| t.get(page)),
        };
        let Some(slot) = slot.filter(|slot| slot.0 < layout.slots) else {
            return AtPlace::Unknown;
        };
        let found = match layout.store.images_per_place() {
            1 => self.whole(layout, slot, layout.slot_lba(slot), page),
            _ => self.in_shadows(layout, slot, page),
        };
        let version = self.versions.get(&page).copied().unwrap_or_default();
        match found {
            Ok((lba, lsn)) if lsn < version => AtPlace::Lost(format!(
                "{page} at {lba} is damaged: expected an image of {version} or \
                 later, found one of {lsn}"
            )),
            Ok((lba, lsn)) => AtPlace::Whole(lba, lsn),
            Err(why) => AtPlace::Lost(why),
        }
    }

    /// Returns the newer of two whole images, or the only whole one. Whether it is the newest ever
    /// written is decided by the version.
    fn in_shadows(&self, layout: &Layout, slot: Slot, page: PageId) -> Result<(Lba, Lsn), String> {
        let [a, b] = [0, 1].map(|which| {
            let lba = layout.shadow_lba(slot, which);
            self.whole(layout, slot, lba, page)
        });
        match (a, b) {
            (Ok(a), Ok(b)) => Ok(if a.1 > b.1 { a } else { b }),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(why), Err(_)) => Err(why),
        }
    }

    /// Returns `lba` and the LSN of the image of `page` there, with its modification log applied if
    /// that is whole. Otherwise returns what is wrong with it.
    fn whole(
        &self,
        layout: &Layout,
        slot: Slot,
        lba: Lba,
        page: PageId,
    ) -> Result<(Lba, Lsn), String> {
        let damaged = |why: String| format!("{page} at {lba} is damaged: {why}");
        let mut image = AlignedBuf::zeroed(layout.page_size);
        let read = self.volume.read(lba, &mut image, IoClass::Page);
        read.map_err(|e| damaged(e.to_string()))?;
        let check = |image: &[u8]| {
            let checked = node::check_for(image, page, layout.id);
            let sound = checked.and_then(|()| node::check_structure(image));
            sound.map_err(|e| damaged(e.to_string()))
        };
        check(&image)?;
        if layout.mod_log {
            let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
            let at = layout.mod_log_lba(slot);
            let read = self.volume.read(at, &mut block, IoClass::Page);
            read.map_err(|e| damaged(e.to_string()))?;
            // A damaged log block may belong to any page.
            if lay_over(&block, &mut image, layout.id) == Ok(true) {
                check(&image)?;
            }
        }
        Ok((lba, PageRef::new(&image).lsn()))
    }
}
