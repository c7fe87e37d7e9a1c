//! A seeded bug and how it is looked for.

use serde::Serialize;
use treering_oracle::finding::Check;
use treering_oracle::generate::Trouble;

/// The mode that looks for a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Programs beside the reference map, with power cuts and failures.
    Differential,
    /// States that a power cut can leave.
    Crash,
    /// Threads on a slow device, and a check of their history. The only mode that does not depend
    /// on the seed alone.
    Concurrent,
    /// The engine's protocol events, replayed on the mirror.
    Events,
    /// Damage to the medium that no crash causes.
    Damage,
}

/// A seeded bug, and the recipe for catching it.
#[derive(Clone, Copy, Debug)]
pub struct Mutation {
    /// Its name in `treering_engine::MUTATIONS`.
    pub name: &'static str,
    /// The real bug that it is modelled on, or a description.
    pub bug: &'static str,
    /// The check that must catch it.
    pub check: Check,
    /// The mode that looks for it.
    pub mode: Mode,
    /// The engine that has it.
    pub engine: &'static str,
    /// What may go wrong in its programs: no more than the check needs, or another check may be
    /// faster.
    pub trouble: Trouble,
}

impl Mutation {
    /// The same recipe with this trouble in its programs.
    pub(super) const fn with(self, trouble: Trouble) -> Mutation {
        Mutation { trouble, ..self }
    }
}

/// For bugs that only a scan shows. Opening a store also reads the whole content.
pub(super) const OPEN: Trouble = Trouble {
    reopen: false,
    power: false,
    failures: false,
};
/// For bugs that show while a store is open, or after reopening it.
pub(super) const REOPENED: Trouble = Trouble {
    reopen: true,
    power: false,
    failures: false,
};
/// For bugs that only a power cut shows.
pub(super) const CUT: Trouble = Trouble {
    reopen: false,
    power: true,
    failures: false,
};

pub(super) const fn mutation(
    name: &'static str,
    bug: &'static str,
    check: Check,
    mode: Mode,
    engine: &'static str,
) -> Mutation {
    Mutation {
        name,
        bug,
        check,
        mode,
        engine,
        trouble: match check {
            Check::Scan | Check::Room => OPEN,
            Check::Reference | Check::Structure => REOPENED,
            Check::Crash | Check::CrashInRecovery | Check::Damage => CUT,
            _ => Trouble::ANY,
        },
    }
}

pub(super) const IN_PLACE: &str = "btree:in-place";
pub(super) const IN_PLACE_CRAMPED: &str = "btree:in-place/cramped";
pub(super) const LONG_FLUSH: &str = "btree:in-place/64k/long-flush";
pub(super) const COW_IN_FILE: &str = "btree:cow/file";
pub(super) const LARGE_PAGES_IN_FILE: &str = "btree:cow/16k/file";
pub(super) const LARGE_PAGES: &str = "btree:in-place-16k";
pub(super) const COW: &str = "btree:cow";
pub(super) const BF: &str = "bf:in-place";
pub(super) const BF_COW: &str = "bf:cow";
pub(super) const SHADOW: &str = "btree:shadow";
pub(super) const SHADOW_LARGE: &str = "btree:shadow-16k";
pub(super) const BMINUS: &str = "bminus-small";
pub(super) const IN_PLACE_LOGGED: &str = "btree:in-place-logged";
pub(super) const COW_LOGGED: &str = "btree:cow-logged";
pub(super) const PMTREE: &str = "pmtree";
pub(super) const CCL: &str = "ccl";
pub(super) const CCL_1: &str = "ccl:1";
pub(super) const CCL_6: &str = "ccl:6";
