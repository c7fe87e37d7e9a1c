//! Chooses the valid image of a page from its two slots and its log block.

use crate::device::{AlignedBuf, Volume};
use crate::error::Result;
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{self, PageDamage, PageRef};
use crate::pages::mod_log::Block;
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId};

fn bad_log(found: &str) -> PageDamage {
    PageDamage::Broken {
        what: "modification log".into(),
        expected: "zeros or a log block as it was written".into(),
        found: found.into(),
    }
}

/// The contents of both slots and the log block of a page, read together.
pub(super) struct Reading<'a> {
    pub(super) layout: &'a Layout,
    pub(super) bytes: &'a [u8],
}

/// The valid image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) slot: u8,
    /// LSN of the page, including Δ.
    pub(super) lsn: Lsn,
    /// |Δ|, if the log block is over this image.
    pub(super) delta: Option<u32>,
    /// Whether anything else is left of the page.
    pub(super) leftover: bool,
}

impl Reading<'_> {
    pub(super) fn image(&self, slot: u8) -> &[u8] {
        let at = self.image_at(slot);
        &self.bytes[at..at + self.layout.page_size]
    }

    pub(super) fn image_at(&self, slot: u8) -> usize {
        let behind = self.layout.page_size + self.log_bytes();
        usize::from(slot) * behind
    }

    pub(super) fn log_bytes(&self) -> usize {
        BLOCK_SIZE * usize::from(self.layout.mod_log)
    }

    pub(super) fn block(&self) -> &[u8] {
        &self.bytes[self.layout.page_size..self.layout.page_size + self.log_bytes()]
    }

    /// Returns the newest image of `page`, taking the log block into account (`ValidSlot`).
    pub(super) fn choose(&self, page: PageId) -> std::result::Result<Choice, PageDamage> {
        let block = if self.layout.mod_log {
            // A block that is not whole may be left over from a former owner. The page's version
            // tells whether Δ is missing.
            Block::read(self.block(), page, self.layout.page_size, self.layout.id)
                .unwrap_or(Block::Foreign)
        } else {
            Block::Empty
        };
        let mut damage = PageDamage::Zeroed;
        let mut newest: Option<Choice> = None;
        for slot in 0..2 {
            let image = self.image(slot);
            match node::check_for(image, page, self.layout.id) {
                Err(PageDamage::Zeroed) => continue,
                Err(_) if mutation::on("believes-torn-slot") => {}
                Err(torn) => {
                    damage = torn;
                    continue;
                }
                Ok(()) => {}
            }
            let delta = block.over(image);
            let choice = Choice {
                slot,
                lsn: delta.map_or(PageRef::new(image).lsn(), |d| d.lsn()),
                delta: delta.map(|d| d.len()),
                leftover: false,
            };
            let order = |c: &Choice| (c.lsn, c.delta.is_some());
            let first_wins = mutation::on("takes-first-slot") && newest.is_some();
            if !first_wins && newest.is_none_or(|n| order(&n) < order(&choice)) {
                newest = Some(choice);
            }
        }
        let Some(mut choice) = newest else {
            return Err(damage);
        };
        if let Block::Delta(delta) = block
            && choice.delta.is_none()
            && delta.base_lsn() > PageRef::new(self.image(choice.slot)).lsn()
        {
            return Err(bad_log("differences from a newer image, which is gone"));
        }
        let is_zero = |bytes: &[u8]| bytes.iter().all(|b| *b == 0);
        choice.leftover = !is_zero(self.image(1 - choice.slot))
            || (choice.delta.is_none() && !is_zero(self.block()));
        Ok(choice)
    }
}

/// Returns the LSN and place of the newest image of `page` on a device, without a store.
pub(crate) fn look(volume: &Volume, layout: &Layout, page: PageId) -> Result<Option<(Lsn, Lba)>> {
    let mut both = AlignedBuf::zeroed(layout.blocks_per_slot() as usize * BLOCK_SIZE);
    let place = Slot(page.0);
    volume.read(layout.slot_lba(place), &mut both, IoClass::Page)?;
    let reading = Reading {
        layout,
        bytes: &both,
    };
    let choice = reading.choose(page).ok();
    Ok(choice.map(|c| (c.lsn, layout.shadow_lba(place, c.slot))))
}
