//! How many writes of a page had to wait for its latch (B-Trees Are Back §7.3).
//!
//! ```text
//!   sampled writes   . . w . . . . w . .  ->  judged: 2 of 10 waited, at least one in 30: contended     (and all begins anew)
//!                                    ^  ^
//!                        earlier key +  +  this key: if they differ, a split between them parts what is written
//! ```
//!
//! The counts belong to a page in a frame and are under the frame's latch: they cost no atomic operation, are not logged, and end when the page leaves the frame. A page that
//! writers wait for does not leave.

use crate::mutation;
use crate::options::ContentionSplit;

/// What of a page's writes was sampled since it was last judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention {
    /// invariant: less than the period, at most that many have waited.
    sampled: u32,
    waited: u32,
    /// Key of the sampled write before; none if empty, for the next one will tell.
    last: Vec<u8>,
}

/// Whether a sampled write had to wait for the latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latched {
    AtOnce,
    AfterWaiting,
}

impl Contention {
    /// The frame holds another page.
    pub(crate) fn clear(&mut self) {
        self.sampled = 0;
        self.waited = 0;
        self.last.clear();
    }

    /// Counts a sampled write of `key`. At the end of a contended period it returns the key of the sampled write before, if that is another one: two writers of one key
    /// would meet on any page.
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

    /// Samples `waits` writes that waited and then others, of two keys in turns; what the last of a period says.
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
