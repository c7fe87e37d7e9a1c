//! What a store gives up later: blocks that wait for a flush of the device, and places that wait
//! for the log.
//!
//! ```text
//! page written whole ── flush of the device ── next batch of pages: the old image is trimmed
//! value replaced, page merged away ── log durable ── next write-back: the place is free
//! ```
//!
//! These are the rules of `engine/src/pages/shadow.rs`, `engine/src/pages/mod_log/behind.rs` and
//! `engine/src/pager`.

use std::collections::VecDeque;

use super::homes::Detached;

/// Marks a page whose image is durable, or that has none.
const DURABLE: u64 = u64::MAX;

/// Pages written whole whose images are not known to be durable.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// When each page was last written whole, in flushes of the device.
    written: Vec<u64>,
    queue: VecDeque<(u64, u32)>,
    flushes: u64,
}

impl Fresh {
    pub(super) fn new(pages: usize) -> Fresh {
        Fresh {
            written: vec![DURABLE; pages],
            ..Fresh::default()
        }
    }

    /// The device was flushed.
    pub(super) fn flushed(&mut self) {
        self.flushes += 1;
    }

    /// Whether a page was written whole since the pages were last settled.
    pub(super) fn has(&self, page: u32) -> bool {
        self.written[page as usize] != DURABLE
    }

    /// A page is written whole.
    pub(super) fn write(&mut self, page: u32) {
        self.written[page as usize] = self.flushes;
        self.queue.push_back((self.flushes, page));
    }

    /// Forgets a page that is freed.
    pub(super) fn forget(&mut self, page: u32) {
        self.written[page as usize] = DURABLE;
    }

    /// The pages whose images became durable since the last call.
    pub(super) fn settle(&mut self) -> Vec<u32> {
        let mut settled = Vec::new();
        while let Some((stamp, page)) = self.queue.front().copied() {
            if stamp == self.flushes {
                break;
            }
            self.queue.pop_front();
            // It may have been written again.
            if self.written[page as usize] == stamp {
                self.written[page as usize] = DURABLE;
                settled.push(page);
            }
        }
        settled
    }
}

/// Something of a store that nothing refers to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// A place of a long value.
    Place(u64),
    /// A page that was merged into its neighbour.
    Page(Detached),
}

/// What waits until the log says durably that nothing refers to it, with the end of the log then.
#[derive(Debug, Default)]
pub(super) struct Retired(Vec<(u64, Gone)>);

impl Retired {
    pub(super) fn push(&mut self, end: u64, gone: Gone) {
        self.0.push((end, gone));
    }

    /// Takes what is free.
    pub(super) fn take(&mut self, is_durable: impl Fn(u64) -> bool) -> Vec<Gone> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let free = self.0.extract_if(.., |(end, _)| is_durable(*end));
        free.map(|(_, gone)| gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_written_again_before_a_flush_settles_once_and_later() {
        let mut fresh = Fresh::new(2);
        fresh.write(0);
        fresh.write(1);
        assert!(fresh.settle().is_empty(), "nothing was flushed");
        fresh.flushed();
        fresh.write(1);
        assert_eq!(
            (fresh.settle(), fresh.has(0), fresh.has(1)),
            (vec![0], false, true)
        );
        fresh.flushed();
        assert_eq!(fresh.settle(), [1]);
    }

    #[test]
    fn what_is_retired_is_free_when_its_record_is_durable() {
        let mut retired = Retired::default();
        retired.push(10, Gone::Place(3));
        retired.push(30, Gone::Place(4));
        assert_eq!(retired.take(|end| end <= 20), [Gone::Place(3)]);
        assert_eq!(retired.take(|end| end <= 30), [Gone::Place(4)]);
    }
}
