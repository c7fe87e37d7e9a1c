//! What contention split can be told.

use super::param::{Param, number, show};
use crate::error::{Error, Result};

/// Contention split (B-Trees Are Back §7.3): a leaf that writes wait for is split, though it is not full, so that what they write parts. At the end of each period a leaf
/// is judged: it is contended if at least one in [`ContentionSplit::CONTENDED_ONE_IN`] of the writes that were sampled had to wait for its latch.
///
/// The paper prints the share alone. How many writes are sampled it leaves open; where it comes from (Alhomssi and Leis, CIDR 2021) sampling is said to be a matter of
/// tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentionSplit {
    /// One write in so many is sampled, 1 to 65,535. Default: 16.
    pub sample_one_in: u16,
    /// Sampled writes of a leaf between two judgements, 2 to 65,535. Default: 60, of which two must have waited: one may be bad luck.
    pub period: u16,
}

impl ContentionSplit {
    /// A leaf is contended if at least one in so many of its sampled writes is (§7.3).
    pub const CONTENDED_ONE_IN: u32 = 30;

    /// Its parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<ContentionSplit>] = &[
        Param {
            name: "sample-one-in",
            about: "one write in so many is sampled",
            get: |split| show(split.sample_one_in),
            set: |split, text| number(&mut split.sample_one_in, text),
        },
        Param {
            name: "period",
            about: "sampled writes of a leaf between two judgements",
            get: |split| show(split.period),
            set: |split, text| number(&mut split.period, text),
        },
    ];

    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
        let counts = [
            ("sample-one-in", self.sample_one_in, 1),
            ("period", self.period, 2),
        ];
        match counts.into_iter().find(|(_, count, least)| count < least) {
            Some((name, count, least)) => Err(Error::BadOption {
                name,
                why: format!("{count}; expected {least} to 65,535"),
            }),
            None => Ok(()),
        }
    }
}

impl Default for ContentionSplit {
    fn default() -> Self {
        ContentionSplit {
            sample_one_in: 16,
            period: 60,
        }
    }
}
