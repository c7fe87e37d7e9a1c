//! The recording in windows of equal length, whose length is not known before its end.

use serde::Serialize;

/// The most windows. When there would be more, pairs are merged.
const MOST: usize = 128;

/// The length of the first windows, in nanoseconds.
const FIRST: u64 = 1_000_000;

/// A part of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Its end, in nanoseconds since the recording began.
    pub end_ns: u64,
    /// Bytes written, by cause, in the order of [`InfoReport::causes`](super::InfoReport::causes).
    pub bytes: Vec<u64>,
    /// Flushes.
    pub flushes: u64,
    /// Discarded blocks.
    pub discarded_blocks: u64,
}

/// Windows that grow.
pub(super) struct Timeline {
    length: u64,
    windows: Vec<Window>,
}

impl Timeline {
    pub(super) fn new() -> Self {
        Timeline {
            length: FIRST,
            windows: Vec::new(),
        }
    }

    /// The window of a time.
    pub(super) fn at(&mut self, wall_ns: u64) -> &mut Window {
        while wall_ns / self.length >= MOST as u64 {
            let pairs = self.windows.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                for other in &pair[1..] {
                    sum.add(other);
                }
                sum
            });
            self.windows = pairs.collect();
            self.length = self.length.saturating_mul(2);
        }
        let at = (wall_ns / self.length) as usize;
        if at >= self.windows.len() {
            self.windows.resize_with(at + 1, Window::default);
        }
        &mut self.windows[at]
    }

    /// The windows of a recording that ends at `end_ns`, with the bytes of the causes that are
    /// `kept`. The last window may be shorter.
    pub(super) fn finish(self, end_ns: u64, kept: &[usize]) -> Vec<Window> {
        let length = self.length;
        let windows = self.windows.into_iter().enumerate();
        let windows = windows.map(|(at, window)| Window {
            end_ns: (at as u64 + 1)
                .saturating_mul(length)
                .min(end_ns.max(at as u64 * length + 1)),
            bytes: (kept.iter().map(|cause| window.bytes.get(*cause)))
                .map(|bytes| bytes.copied().unwrap_or(0))
                .collect(),
            ..window
        });
        windows.collect()
    }
}

impl Window {
    /// Counts bytes of a cause.
    pub(super) fn write(&mut self, cause: u8, bytes: u64) {
        let cause = usize::from(cause);
        if cause >= self.bytes.len() {
            self.bytes.resize(cause + 1, 0);
        }
        self.bytes[cause] += bytes;
    }

    fn add(&mut self, other: &Window) {
        for (cause, bytes) in other.bytes.iter().enumerate() {
            self.write(cause as u8, *bytes);
        }
        self.flushes += other.flushes;
        self.discarded_blocks += other.discarded_blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_and_keep_their_sums() {
        let mut timeline = Timeline::new();
        for n in 0..1000 {
            timeline.at(n * FIRST).write((n % 3) as u8, 10);
            timeline.at(n * FIRST).flushes += 1;
        }
        let windows = timeline.finish(999 * FIRST + 7, &[0, 2]);
        assert_eq!(windows.len(), 125);
        let ends = (windows[123].end_ns, windows[124].end_ns);
        assert_eq!(ends, (992 * FIRST, 999 * FIRST + 7));
        assert!(windows.iter().all(|w| w.flushes == 8 && w.bytes.len() == 2));
        let sum = |cause: usize| windows.iter().map(|w| w.bytes[cause]).sum::<u64>();
        assert_eq!((sum(0), sum(1)), (3340, 3330));
    }
}
