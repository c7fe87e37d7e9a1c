//! Options of contention split.

use super::param::{Param, number, show};
use crate::error::{Error, Result};

/// Splits a leaf that is not full if many writes wait for its latch, so that they go to different
/// leaves afterwards (B-Trees Are Back §7.3).
///
/// A sample of the writes to each leaf is counted. At the end of each period, the leaf is contended
/// if at least one in [`ContentionSplit::CONTENDED_ONE_IN`] of its sampled writes had to wait.
///
/// The paper gives only this share. It does not say how many writes are sampled. Its source
/// (Alhomssi and Leis, CIDR 2021) calls sampling a matter of tuning.
///
/// ```
/// use treering_engine::ContentionSplit;
/// use treering_engine::prelude::*;
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// let store = Store::open_path(folder.path().join("my.store"), |options| {
///     let split = ContentionSplit { sample_one_in: 4, ..ContentionSplit::default() };
///     options.contention_split = Some(split);
/// })?;
/// assert_eq!(store.options().contention_split.map(|split| split.period), Some(60));
/// # Ok::<(), treering_engine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentionSplit {
    /// One write in this many is sampled, 1 to 65,535. Default: 16.
    pub sample_one_in: u16,
    /// Number of sampled writes after which a leaf is judged, 2 to 65,535. Default: 60. At that
    /// value two writes must have waited, since a single one may be bad luck.
    pub period: u16,
}

impl ContentionSplit {
    /// A leaf is contended if at least one in this many of its sampled writes had to wait (§7.3).
    pub const CONTENDED_ONE_IN: u32 = 30;

    /// The parameters in a [`crate::TreeSpec`].
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

    /// Returns an error that names the first option that cannot work.
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
