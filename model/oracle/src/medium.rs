//! The devices that crash, of whichever kind, behind one face: what recorder, explorer and sessions
//! ask of them.
//!
//! | | [`CrashDevice`] | [`MemPm`] |
//! |---|---|---|
//! | in doubt | blocks | words of eight bytes |
//! | until | a flush | a fence after a write-back |
//! | when the power is cut | requests fail | requests go on and leave nothing |

use std::sync::Arc;

use treering_engine::IoClass;
use treering_engine::device::{
    self, BlockDevice, CrashDevice, LINE_SIZE, MemPm, PmDevice, PmRequest,
};

use crate::engine::{Disk, DiskKind};
use crate::point::Point;
use crate::program::Keep;
use crate::reach::{Area, Reach};

/// A device that crashes.
#[derive(Clone)]
pub enum Medium {
    /// Blocks behind a volatile write cache.
    Blocks(Arc<CrashDevice>),
    /// Persistent memory behind a CPU cache.
    Pm(Arc<MemPm>),
}

/// What a [`Medium`] holds.
#[derive(Clone, Debug)]
pub enum Image {
    /// On blocks.
    Blocks(device::Image),
    /// In persistent memory.
    Pm(device::PmImage),
}

/// A request to a [`Medium`] that changed something or ordered changes.
#[derive(Clone, Debug)]
pub enum Request {
    /// To blocks.
    Block(device::Request),
    /// To persistent memory.
    Pm(device::PmRequest),
}

impl Request {
    /// The point of a power cut that interrupts this request.
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

/// What a crash may leave of a block or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// In how many ways; 0 is what is durable, the last what was written last.
    pub versions: usize,
    /// What is often lost or kept as one: the line of a word, a block by itself.
    pub unit: u64,
}

/// What a store is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It is opened, and recovers.
    Opening,
    /// It is used.
    InUse,
    /// It is let go of.
    Closing,
}

impl When {
    /// All of them.
    pub const ALL: [When; 3] = [When::Opening, When::InUse, When::Closing];

    /// As reports say it.
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
    /// Equal for equal bytes, and otherwise different but for one chance in 2^64.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        match self {
            Image::Blocks(image) => image.fingerprint(),
            Image::Pm(image) => image.fingerprint(),
        }
    }
}

impl Medium {
    /// An empty one of that kind; `None` for a folder, where nothing can be made to crash.
    #[must_use]
    pub fn new(kind: DiskKind) -> Option<Medium> {
        match kind {
            DiskKind::Blocks(blocks) => Some(Medium::Blocks(Arc::new(CrashDevice::new(blocks)))),
            DiskKind::Pm(bytes) => Some(Medium::Pm(Arc::new(MemPm::new(bytes)))),
            DiskKind::Folder => None,
        }
    }

    /// One that holds `image` durably.
    #[must_use]
    pub fn holding(image: Image) -> Medium {
        match image {
            Image::Blocks(image) => Medium::Blocks(Arc::new(CrashDevice::from_image(image))),
            Image::Pm(image) => Medium::Pm(Arc::new(MemPm::from_image(image))),
        }
    }

    /// As an engine is given it.
    #[must_use]
    pub fn disk(&self) -> Disk {
        match self {
            Medium::Blocks(device) => Disk::Blocks(Arc::clone(device) as Arc<dyn BlockDevice>),
            Medium::Pm(pm) => Disk::Pm(Arc::clone(pm) as Arc<dyn PmDevice>),
        }
    }

    /// From now on every request is recorded.
    pub fn record(&self) {
        match self {
            Medium::Blocks(device) => device.record(),
            Medium::Pm(pm) => pm.record(),
        }
    }

    /// What was recorded; the recording goes on, empty.
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

    /// Adds what became of requests since this was done last: `when` says what the store was at.
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

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        match self {
            Medium::Blocks(device) => device.requests(),
            Medium::Pm(pm) => pm.requests(),
        }
    }

    /// Does what another medium of the same kind and size did.
    pub fn apply(&self, request: &Request) {
        match (self, request) {
            (Medium::Blocks(device), Request::Block(request)) => device.apply(request),
            (Medium::Pm(pm), Request::Pm(request)) => pm.apply(request),
            _ => unreachable!("a recording is applied to the kind of medium it comes from"),
        }
    }

    /// All that a crash may leave in several ways, in order of address.
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

    /// What is left if the power fails now; `choose(n)` picks one of `n` versions for each that is
    /// in doubt, in order of address.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Image {
        match self {
            Medium::Blocks(device) => Image::Blocks(device.crash(choose)),
            Medium::Pm(pm) => Image::Pm(pm.crash(choose)),
        }
    }

    /// What is left if the power fails now, by what a program says of it.
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

    /// After `n` more requests the power goes.
    pub fn cut_power_in(&self, n: u64) {
        match self {
            Medium::Blocks(device) => device.cut_power_in(n),
            Medium::Pm(pm) => pm.cut_power_in(n),
        }
    }

    /// Whether the power has gone.
    #[must_use]
    pub fn power_is_cut(&self) -> bool {
        match self {
            Medium::Blocks(device) => device.power_is_cut(),
            Medium::Pm(pm) => pm.power_is_cut(),
        }
    }

    /// Whether the power has gone and no operation can fail of it: memory takes stores as ever.
    #[must_use]
    pub fn is_dark(&self) -> bool {
        matches!(self, Medium::Pm(pm) if pm.power_is_cut())
    }

    /// The device of blocks, whose writes and flushes can be made to fail.
    #[must_use]
    pub fn blocks(&self) -> Option<&CrashDevice> {
        match self {
            Medium::Blocks(device) => Some(device),
            Medium::Pm(_) => None,
        }
    }
}
