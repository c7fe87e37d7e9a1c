//! Simulated media that lose power, block devices and persistent memory, behind one interface.
//!
//! | | [`CrashDevice`] | [`MemPm`] |
//! |---|---|---|
//! | in doubt | blocks | words of eight bytes |
//! | becomes durable by | a flush | a fence after a write-back |
//! | after a power cut | requests fail | requests succeed without effect |

use std::sync::Arc;

use treering_engine::IoClass;
use treering_engine::device::{
    self, BlockDevice, CrashDevice, LINE_SIZE, MemPm, PmDevice, PmRequest,
};

use crate::engine::{Disk, DiskKind};
use crate::point::Point;
use crate::program::Keep;
use crate::reach::{Area, Reach};

/// A medium that loses power.
#[derive(Clone)]
pub enum Medium {
    /// Blocks behind a volatile write cache.
    Blocks(Arc<CrashDevice>),
    /// Persistent memory behind a CPU cache.
    Pm(Arc<MemPm>),
}

/// The durable content of a [`Medium`].
#[derive(Clone, Debug)]
pub enum Image {
    /// Of a block device.
    Blocks(device::Image),
    /// Of persistent memory.
    Pm(device::PmImage),
}

/// A request to a [`Medium`] that changes data, or orders changes.
#[derive(Clone, Debug)]
pub enum Request {
    /// To a block device.
    Block(device::Request),
    /// To persistent memory.
    Pm(device::PmRequest),
}

impl Request {
    /// The crash point of a power cut that interrupts this request.
    pub(crate) fn point(&self) -> Point {
        match self {
            Request::Block(device::Request::Write { class, .. }) => match class {
                IoClass::Log => Point::Log,
                IoClass::Page => Point::Page,
                IoClass::Extra => Point::Extra,
            },
            Request::Block(device::Request::Trim { .. }) => Point::Trim,
            Request::Block(device::Request::Flush { .. }) => Point::Flush,
            Request::Pm(PmRequest::Store { .. }) => Point::Store,
            Request::Pm(PmRequest::WriteBack { .. }) => Point::WriteBack,
            Request::Pm(PmRequest::NtStore { .. }) => Point::NtStore,
            Request::Pm(PmRequest::Fence) => Point::Fence,
        }
    }
}

/// A block or word in doubt: a crash may leave any of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// The number of versions. Version 0 is durable, the last one is the newest.
    pub versions: usize,
    /// What is often lost or kept together: the cache line of a word; a block by itself.
    pub unit: u64,
}

/// The phase in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The store is being opened, and recovers.
    Opening,
    /// The store is in use.
    InUse,
    /// The store is being dropped.
    Closing,
}

impl When {
    /// All of them.
    pub const ALL: [When; 3] = [When::Opening, When::InUse, When::Closing];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            When::Opening => "in opening",
            When::InUse => "in use",
            When::Closing => "in closing",
        }
    }
}

impl Image {
    /// A 64-bit hash of the content.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        match self {
            Image::Blocks(image) => image.fingerprint(),
            Image::Pm(image) => image.fingerprint(),
        }
    }
}

impl Medium {
    /// An empty medium for a kind of disk. `None` for a folder, which cannot be crashed.
    #[must_use]
    pub fn new(kind: DiskKind) -> Option<Medium> {
        match kind {
            DiskKind::Blocks(blocks) => Some(Medium::Blocks(Arc::new(CrashDevice::new(blocks)))),
            DiskKind::Pm(bytes) => Some(Medium::Pm(Arc::new(MemPm::new(bytes)))),
            DiskKind::Folder => None,
        }
    }

    /// A medium with durable content `image`.
    #[must_use]
    pub fn holding(image: Image) -> Medium {
        match image {
            Image::Blocks(image) => Medium::Blocks(Arc::new(CrashDevice::from_image(image))),
            Image::Pm(image) => Medium::Pm(Arc::new(MemPm::from_image(image))),
        }
    }

    /// The disk to open an engine on.
    #[must_use]
    pub fn disk(&self) -> Disk {
        match self {
            Medium::Blocks(device) => Disk::Blocks(Arc::clone(device) as Arc<dyn BlockDevice>),
            Medium::Pm(pm) => Disk::Pm(Arc::clone(pm) as Arc<dyn PmDevice>),
        }
    }

    /// Records every request from now on.
    pub fn record(&self) {
        match self {
            Medium::Blocks(device) => device.record(),
            Medium::Pm(pm) => pm.record(),
        }
    }

    /// Takes the requests recorded so far. Recording continues.
    #[must_use]
    pub fn take_recording(&self) -> Vec<Request> {
        match self {
            Medium::Blocks(device) => {
                let requests = device.take_recording().into_iter();
                requests.map(Request::Block).collect()
            }
            Medium::Pm(pm) => pm.take_recording().into_iter().map(Request::Pm).collect(),
        }
    }

    /// Adds the counts of requests since the last call to `reach`. `when` is the phase of the
    /// store.
    pub fn note(&self, when: When, reach: &mut Reach) {
        let when = when.name();
        match self {
            Medium::Blocks(device) => {
                for (kind, served) in device.take_served() {
                    let kind = kind.name();
                    reach.met(Area::Request, format!("{kind} {when}"), served.done);
                    reach.met(Area::Fault, format!("{kind} fails {when}"), served.failed);
                    let full = format!("{kind} without room {when}");
                    reach.met(Area::Fault, full, served.without_room);
                }
            }
            Medium::Pm(pm) => {
                let kinds = [Point::Store, Point::NtStore, Point::WriteBack, Point::Fence];
                for (kind, n) in kinds.into_iter().zip(pm.take_served()) {
                    reach.met(Area::Request, format!("{} {when}", kind.name()), n);
                }
            }
        }
    }

    /// The number of requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        match self {
            Medium::Blocks(device) => device.requests(),
            Medium::Pm(pm) => pm.requests(),
        }
    }

    /// Applies a request that another medium of the same kind and size recorded.
    pub fn apply(&self, request: &Request) {
        match (self, request) {
            (Medium::Blocks(device), Request::Block(request)) => device.apply(request),
            (Medium::Pm(pm), Request::Pm(request)) => pm.apply(request),
            _ => unreachable!("a recording is applied to the kind of medium it comes from"),
        }
    }

    /// All blocks or words in doubt, in order of address.
    #[must_use]
    pub fn in_doubt(&self) -> Vec<InDoubt> {
        match self {
            Medium::Blocks(device) => {
                let blocks = (0..).zip(device.outcomes());
                let blocks = blocks.map(|(unit, versions)| InDoubt { versions, unit });
                blocks.collect()
            }
            Medium::Pm(pm) => {
                let words = pm.in_doubt().into_iter();
                let words = words.map(|(offset, versions)| InDoubt {
                    versions,
                    unit: offset / LINE_SIZE as u64,
                });
                words.collect()
            }
        }
    }

    /// The content after a power cut now. `choose(n)` picks one of `n` versions for each block or
    /// word in doubt, in order of address.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Image {
        match self {
            Medium::Blocks(device) => Image::Blocks(device.crash(choose)),
            Medium::Pm(pm) => Image::Pm(pm.crash(choose)),
        }
    }

    /// The content after a power cut now, with versions as a program says.
    #[must_use]
    pub fn crash_keeping(&self, keep: Keep) -> Image {
        match (keep, self) {
            (Keep::Oldest, _) => self.crash(&mut |_| 0),
            (Keep::Newest, _) => self.crash(&mut |n| n - 1),
            (Keep::Seeded(seed), Medium::Blocks(device)) => {
                Image::Blocks(device.crash_seeded(seed))
            }
            (Keep::Seeded(seed), Medium::Pm(pm)) => Image::Pm(pm.crash_seeded(seed)),
        }
    }

    /// Cuts the power after `n` more requests.
    pub fn cut_power_in(&self, n: u64) {
        match self {
            Medium::Blocks(device) => device.cut_power_in(n),
            Medium::Pm(pm) => pm.cut_power_in(n),
        }
    }

    /// Whether the power has been cut.
    #[must_use]
    pub fn power_is_cut(&self) -> bool {
        match self {
            Medium::Blocks(device) => device.power_is_cut(),
            Medium::Pm(pm) => pm.power_is_cut(),
        }
    }

    /// Whether the power has been cut without any request failing: persistent memory still accepts
    /// stores.
    #[must_use]
    pub fn is_dark(&self) -> bool {
        matches!(self, Medium::Pm(pm) if pm.power_is_cut())
    }

    /// The block device, if it is one, to make requests fail.
    #[must_use]
    pub fn blocks(&self) -> Option<&CrashDevice> {
        match self {
            Medium::Blocks(device) => Some(device),
            Medium::Pm(_) => None,
        }
    }
}
