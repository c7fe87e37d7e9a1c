//! The counts of damage runs.

use super::harm::HarmKind;

/// What damage runs did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stores built.
    pub stores: u64,
    /// Operations that built them.
    pub operations: u64,
    /// Cases of each kind, in the order of [`HarmKind::ALL`], and how many of them an error
    /// reported.
    pub harms: [(u64, u64); HarmKind::ALL.len()],
    /// Cases on real files.
    pub in_files: u64,
    /// Cases that damaged a log's last flush, which may look like an interrupted flush.
    pub last_flush: u64,
    /// How many of those lost a record.
    pub cut_short: u64,
    /// Cases that the engine does not promise to detect.
    pub unguarded: u64,
    /// How many of those gave a wrong answer.
    pub unguarded_wrong: u64,
}

impl Tally {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Tally) {
        self.stores += other.stores;
        self.operations += other.operations;
        for (mine, theirs) in self.harms.iter_mut().zip(other.harms) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        self.in_files += other.in_files;
        self.last_flush += other.last_flush;
        self.cut_short += other.cut_short;
        self.unguarded += other.unguarded;
        self.unguarded_wrong += other.unguarded_wrong;
    }

    /// The number of cases.
    #[must_use]
    pub fn cases(&self) -> u64 {
        self.harms.iter().map(|(cases, _)| cases).sum()
    }

    /// Kinds of damage that never occurred, or that no error ever reported.
    #[must_use]
    pub fn never(&self) -> Vec<String> {
        let kinds = HarmKind::ALL.iter().zip(self.harms);
        // In persistent memory there is no other store: creating one there requires a blank medium.
        kinds
            .filter(|(kind, (_, told))| {
                *told == 0 && !(**kind == HarmKind::Foreign && self.unguarded > 0)
            })
            .map(|(kind, _)| format!("an error that reports {kind}"))
            .collect()
    }
}
