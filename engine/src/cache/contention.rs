//! Counts how many writes of a page had to wait for its latch (B-Trees Are Back §7.3).
//!
//! ```text
//!   sampled writes   . . w . . . . w . .  ->  period ends: 2 of 10 waited, at least one in 30:
//!                                    ^  ^     contended (and counting starts again)
//!                        earlier key +  +  this key: if they differ, a split between them helps
//! ```
//!
//! The counts belong to a page in a frame and are protected by the frame's latch. So they cost no
//! atomic operation, are not logged, and end when the page is evicted; a page for which writers
//! wait is not evicted.

use crate::mutation;
use crate::options::ContentionSplit;

/// The sampled writes of a page in the present period.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention {
    /// Invariant: less than the period, and `waited` is no more than this.
    sampled: u32,
    waited: u32,
    /// The key of the previous sampled write; may be empty, as the next sample replaces it.
    last: Vec<u8>,
}

/// Whether a sampled write had to wait for the latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latched {
    AtOnce,
    AfterWaiting,
}

impl Contention {
    /// Starts again, because the frame holds another page.
    pub(crate) fn clear(&mut self) {
        self.sampled = 0;
        self.waited = 0;
        self.last.clear();
    }

    /// Counts a sampled write of `key`. At the end of a contended period, returns the key of the
    /// previous sampled write if it differs: two writers of one key would meet on any page.
    pub(crate) fn sample(&mut self, key: &[u8], latched: Latched, period: u16) -> Option<Vec<u8>> {
        self.sampled += 1;
        self.waited += u32::from(latched == Latched::AfterWaiting);
        if self.sampled < u32::from(period) {
            self.last.clear();
            self.last.extend_from_slice(key);
            return None;
        }
        let contended = self.waited > 0
            && self
                .waited
                .saturating_mul(ContentionSplit::CONTENDED_ONE_IN)
                >= self.sampled;
        let last = std::mem::take(&mut self.last);
        self.sampled = 0;
        if !mutation::on("contention-never-forgotten") {
            self.waited = 0;
        }
        (contended && last != key).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Latched::{AfterWaiting, AtOnce};

    /// Samples `waits` writes that waited and then others, alternating between two keys. Returns
    /// the result of the period's last sample.
    fn period(contention: &mut Contention, period: u16, waits: u16) -> Option<Vec<u8>> {
        let mut said = None;
        for i in 0..period {
            assert_eq!(said, None, "only the last one is told");
            let latched = if i < waits { AfterWaiting } else { AtOnce };
            said = contention.sample(&[b'a' + (i % 2) as u8], latched, period);
        }
        said
    }

    #[test]
    fn a_page_is_contended_from_one_sampled_write_in_thirty_on() {
        for (writes, least) in [(60, 2), (61, 3), (90, 3), (30, 1), (29, 1), (2, 1)] {
            let mut contention = Contention::default();
            let earlier = vec![b'a' + (writes % 2) as u8];
            assert_eq!(period(&mut contention, writes, least - 1), None);
            assert_eq!(period(&mut contention, writes, least), Some(earlier));
        }
    }

    #[test]
    fn what_was_judged_is_forgotten() {
        let mut contention = Contention::default();
        assert!(period(&mut contention, 60, 60).is_some());
        assert_eq!(period(&mut contention, 60, 0), None);
    }

    #[test]
    fn writers_of_one_key_are_not_parted() {
        let mut contention = Contention::default();
        let all = (0..60).map(|_| contention.sample(b"a", AfterWaiting, 60));
        assert!(all.into_iter().all(|said| said.is_none()));
    }

    #[test]
    fn another_page_in_the_frame_begins_anew() {
        let mut contention = Contention::default();
        (0..29).for_each(|_| drop(contention.sample(b"a", AfterWaiting, 30)));
        contention.clear();
        assert_eq!(period(&mut contention, 30, 0), None);
    }
}
