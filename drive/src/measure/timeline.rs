//! What happened when: bytes by cause, and what each drive's garbage collection moved, in equal
//! stretches of the measured part.

/// Stretches of the timeline.
pub(crate) const STRETCHES: u64 = 100;

/// A stretch of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// Bytes that reached the drive, by cause.
    pub(crate) host_bytes: Vec<u64>,
    /// Bytes moved, by drive.
    pub(crate) gc_bytes: Vec<u64>,
}

/// The stretches of the measured part.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) begin_ns: u64,
    pub(crate) width_ns: u64,
    pub(crate) stretches: Vec<Stretch>,
}

impl Timeline {
    /// The time from `begin_ns` to `end_ns`.
    pub(super) fn new(begin_ns: u64, end_ns: u64) -> Timeline {
        Timeline {
            begin_ns,
            width_ns: (end_ns.saturating_sub(begin_ns) / STRETCHES + 1).max(1),
            stretches: vec![Stretch::default()],
        }
    }

    /// Goes to the stretch of a time. `gc` gives what each drive moved until then, and is asked only
    /// if a stretch has ended.
    #[inline]
    pub(super) fn reach(&mut self, wall_ns: u64, gc: impl FnOnce() -> Vec<u64>) {
        let at = wall_ns.saturating_sub(self.begin_ns) / self.width_ns;
        let at = at.min(STRETCHES - 1) as usize;
        if at + 1 > self.stretches.len() {
            self.end(gc());
            self.stretches.resize(at + 1, Stretch::default());
        }
    }

    /// What each drive moved in the current stretch.
    pub(super) fn end(&mut self, gc: Vec<u64>) {
        if let Some(last) = self.stretches.last_mut() {
            last.gc_bytes = gc;
        }
    }

    /// Bytes reached the drive.
    #[inline]
    pub(super) fn write(&mut self, cause: u8, bytes: u64) {
        if let Some(last) = self.stretches.last_mut() {
            let cause = usize::from(cause);
            if cause >= last.host_bytes.len() {
                last.host_bytes.resize(cause + 1, 0);
            }
            last.host_bytes[cause] += bytes;
        }
    }
}
