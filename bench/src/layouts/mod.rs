//! Page layouts beside each other, and the adaptive tree beside other ordered maps: in memory, one thread (B-Trees Are Back §4, §5.2, §6).
//!
//! ```text
//!   key set  ->  90 % of the records  ->  rounds of inserts  ->  rounds of lookups  ->  rounds of scans  ->  all records, in order
//!                into every subject       every subject takes its turn in each round                          looked at once
//! ```
//!
//! All subjects are in memory at the same time and do the same operations in turn, so that what disturbs the machine disturbs all of them; a ratio is the median
//! of the ratios of rounds. Every answer is checked: lookups and scans by the sum of what they find, and at the end record by record.

pub mod count;
pub mod keys;
#[cfg(feature = "maps")]
pub mod maps;
pub mod report;
pub mod run;
pub mod subject;
pub mod work;

/// Why there is no result, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);
