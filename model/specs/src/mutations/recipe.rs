//! A seeded bug and how it is looked for.

use serde::Serialize;
use treering_oracle::finding::Check;
use treering_oracle::generate::Trouble;

/// How a mutation is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Programs beside the reference map, with power cuts and failures in them.
    Differential,
    /// Every way in which a power cut could have ended a program.
    Crash,
    /// Threads on a slow device, their history judged. The one mode in which a seed does not decide
    /// all.
    Concurrent,
    /// What the engine says it does, replayed on the mirror of its protocol.
    Events,
    /// Harm to the medium that no crash does.
    Damage,
}

/// A seeded bug and what must catch it.
#[derive(Clone, Copy, Debug)]
pub struct Mutation {
    /// In `treering_engine::MUTATIONS`.
    pub name: &'static str,
    /// A row of the pool of real bugs that it is modelled on, or what it is like.
    pub bug: &'static str,
    /// The check that must catch it.
    pub check: Check,
    /// How it is looked for.
    pub mode: Mode,
    /// The engine it is seeded into.
    pub engine: &'static str,
    /// What its programs have in them: no more than the check needs, lest another one is faster.
    pub trouble: Trouble,
}

impl Mutation {
    /// The same with such trouble in its programs.
    pub(super) const fn with(self, trouble: Trouble) -> Mutation {
        Mutation { trouble, ..self }
    }
}

/// For what only a scan shows: opening looks at the whole content, too.
pub(super) const OPEN: Trouble = Trouble {
    reopen: false,
    power: false,
    failures: false,
};
/// For what a store shows while it is open, or when it is closed and opened again.
pub(super) const REOPENED: Trouble = Trouble {
    reopen: true,
    power: false,
    failures: false,
};
/// For what only a power cut shows.
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
