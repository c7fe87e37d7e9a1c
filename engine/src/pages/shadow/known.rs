//! The in-memory state of the slots of shadowed pages.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::device::{Stamp, Volume};
use crate::mutation;
use crate::sparse::Sparse;
use crate::types::PageId;

pub(super) struct State {
    pub(super) known: Sparse<Known>,
    /// Pages written whole that are not alone yet, with the time of the write. If a page's stamp in
    /// `queue` is another one, the queue's entry is void.
    pub(super) written: HashMap<PageId, Stamp>,
    pub(super) queue: VecDeque<(Stamp, PageId)>,
    /// Pages that a crash left something of in the other slot.
    pub(super) leftovers: Vec<PageId>,
    /// Pages that recovery found in the log.
    pub(super) named: BTreeSet<PageId>,
}

/// The durability of a page's newest image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// The page was not read yet.
    Unknown,
    Written,
    Durable,
    /// Durable, and nothing else of the page is left on the device.
    Alone,
}

/// The state of a page's slots: the paper's bitmap, and a little more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The valid slot.
    pub(super) slot: u8,
    pub(super) is: Is,
    /// Whether the log block holds Δ over the valid slot.
    pub(super) logged: bool,
}

impl Known {
    /// The state of a page without an image: the first one goes to slot 0.
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
    /// Creates the state of a store that has not read any of its `slots` places yet.
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

    /// Returns the state of a page that has a place.
    pub(super) fn known_mut(&mut self, page: PageId) -> &mut Known {
        self.known
            .make_mut(page.0)
            .expect("a page that has a place")
    }

    /// Returns the pages whose other slot and log block can be trimmed now.
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
