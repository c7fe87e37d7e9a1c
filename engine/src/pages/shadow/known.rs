//! What a shadowed store knows in memory about the slots of its pages.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::device::{Stamp, Volume};
use crate::mutation;
use crate::sparse::Sparse;
use crate::types::PageId;

pub(super) struct State {
    pub(super) known: Sparse<Known>,
    /// Pages written whole that are not alone yet, by when. Those in doubt are in `queue` with another stamp, which then means nothing.
    pub(super) written: HashMap<PageId, Stamp>,
    pub(super) queue: VecDeque<(Stamp, PageId)>,
    /// Pages whose other slot a crash has left something in.
    pub(super) leftovers: Vec<PageId>,
    /// What recovery has found in the log.
    pub(super) named: BTreeSet<PageId>,
}

/// How sure the newest image of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// Nobody has looked yet.
    Unknown,
    Written,
    Durable,
    /// Durable, and nothing else of the page is left on the device.
    Alone,
}

/// What is known of a page's slots: the paper's bitmap, and a little more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The valid slot.
    pub(super) slot: u8,
    pub(super) is: Is,
    /// The log block holds Δ over it.
    pub(super) logged: bool,
}

impl Known {
    /// Of a page without an image: the first one goes to slot 0.
    pub(super) const NOTHING: Known = Known {
        slot: 1,
        is: Is::Unknown,
        logged: false,
    };
}

impl Default for Known {
    fn default() -> Known {
        Known::NOTHING
    }
}

impl State {
    /// The state of a store that has not looked at any of its `slots` places yet.
    pub(super) fn new(slots: u64) -> State {
        State {
            known: Sparse::new(slots),
            written: HashMap::new(),
            queue: VecDeque::new(),
            leftovers: Vec::new(),
            named: BTreeSet::new(),
        }
    }

    pub(super) fn known(&self, page: PageId) -> Known {
        self.known.get(page.0).copied().unwrap_or_default()
    }

    /// What is known of a page that has a place.
    pub(super) fn known_mut(&mut self, page: PageId) -> &mut Known {
        self.known
            .make_mut(page.0)
            .expect("a page that has a place")
    }

    /// Pages that are not alone and need not wait any longer.
    pub(super) fn durable(&mut self, volume: &Volume) -> Vec<PageId> {
        let at_once = mutation::on("trims-at-once");
        let mut pages = Vec::new();
        while let Some((stamp, page)) = self.queue.front().copied() {
            if !volume.is_durable(stamp) && !at_once {
                break;
            }
            self.queue.pop_front();
            if self.written.get(&page) == Some(&stamp) {
                self.written.remove(&page);
                pages.push(page);
            }
        }
        for page in &pages {
            self.known_mut(*page).is = Is::Durable;
        }
        let leftovers = std::mem::take(&mut self.leftovers);
        let still = |page: &PageId| self.known(*page).is == Is::Durable;
        pages.extend(leftovers.into_iter().filter(still));
        pages
    }
}
