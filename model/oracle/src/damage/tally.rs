//! What a campaign of damage counts.

use super::harm::HarmKind;

/// What a campaign did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stores built.
    pub stores: u64,
    /// Operations that built them.
    pub operations: u64,
    /// Harms of each kind, in order of [`HarmKind::ALL`], and of how many somebody was told.
    pub harms: [(u64, u64); HarmKind::ALL.len()],
    /// Harms to stores in real files.
    pub in_files: u64,
    /// Harms to a log's last flush, which may be taken for a flush cut short.
    pub last_flush: u64,
    /// Of those, in how many a record was missing.
    pub cut_short: u64,
    /// Harms that the engine does not promise to notice.
    pub unguarded: u64,
    /// Of those, how many gave a wrong answer.
    pub unguarded_wrong: u64,
}

impl Tally {
    /// Both together.
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

    /// Harms in all.
    #[must_use]
    pub fn cases(&self) -> u64 {
        self.harms.iter().map(|(cases, _)| cases).sum()
    }

    /// Kinds of harm that were never done, or of which never anybody was told.
    #[must_use]
    pub fn never(&self) -> Vec<String> {
        let kinds = HarmKind::ALL.iter().zip(self.harms);
        // In persistent memory there is no other store: whoever makes one there wants a blank
        // medium.
        kinds
            .filter(|(kind, (_, told))| {
                *told == 0 && !(**kind == HarmKind::Foreign && self.unguarded > 0)
            })
            .map(|(kind, _)| format!("an error that tells of {kind}"))
            .collect()
    }
}
