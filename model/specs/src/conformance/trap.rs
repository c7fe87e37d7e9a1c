//! Traps: the end of a life at one of the next events.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::events::{Cow, Event, Redo, Shadow, Snapshot};

/// What a trap has caught.
pub enum Caught {
    /// The power failed, and the device holds this.
    Power(Image),
    /// The process was killed, and the device lives on.
    Killed(Arc<CrashDevice>),
}

/// Ends a life at an event.
pub(super) struct Trap {
    /// The number of events until then.
    pub(super) left: u64,
    pub(super) device: Arc<CrashDevice>,
    /// Chooses what a power failure leaves. `None` if the process is killed.
    pub(super) seed: Option<u64>,
}

impl Trap {
    /// Counts an event. Returns whether it is the one.
    pub(super) fn springs(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return true,
        }
        false
    }
}

/// Whether an event reports that a page is about to be written.
pub(super) fn is_image(event: Event) -> bool {
    match event {
        Event::Shadow(step) => matches!(
            step,
            Shadow::WritesDelta { .. } | Shadow::WritesWhole { .. }
        ),
        Event::Cow(step) => matches!(step, Cow::WritesImage { .. }),
        _ => false,
    }
}

/// Whether an event reports what is about to be written or trimmed. Trims follow `TableWritten`.
pub(super) fn announces(event: Event) -> bool {
    match event {
        Event::LogFlushBegins { .. }
        | Event::PageWriting { .. }
        | Event::SuperblockWriting { .. } => true,
        Event::Shadow(Shadow::Trims { .. }) | Event::Cow(Cow::WritesTable | Cow::TableWritten) => {
            true
        }
        Event::Redo(step) => matches!(
            step,
            Redo::WritesBlock { .. }
                | Redo::WritesWitness { .. }
                | Redo::Rewrites { .. }
                | Redo::MarksEnd { .. }
                | Redo::RewritesSuperblock
        ),
        Event::Snapshot(step) => matches!(
            step,
            Snapshot::WritesChunk { .. } | Snapshot::WritesSuper { .. }
        ),
        other => is_image(other),
    }
}
