//! Compares page layouts with each other, and the adaptive tree with other ordered maps: in memory,
//! with one thread (B-Trees Are Back §4, §5.2, §6).
//!
//! ```text
//!   key set ─► 90 % of the records ─► rounds of inserts ─► of lookups ─► of scans ─► check of
//!              into every subject     every subject takes its turn in each round   all records
//! ```
//!
//! All subjects are in memory at the same time and do the same operations in turn, so that a
//! disturbance of the machine affects all of them. A ratio is the median of the ratios of rounds.
//! Every answer is checked: lookups and scans by the sum of the values found, and at the end record
//! by record.

pub mod count;
pub mod keys;
#[cfg(feature = "maps")]
pub mod maps;
pub mod report;
pub mod run;
pub mod subject;
pub mod subjects;
pub mod work;

/// Why there is no result, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);
