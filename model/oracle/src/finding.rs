//! What the oracle says when something is wrong.

use std::fmt;

use serde::Serialize;

/// Which check found it: the second column of `BUGS.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A get or the whole content differs from the reference map.
    Reference,
    /// A scan does.
    Scan,
    /// What a crash left is the state after no permitted prefix of the writes.
    Crash,
    /// As `Crash`, after a crash in recovery or after a recovery that had succeeded.
    CrashInRecovery,
    /// Damage on the medium was followed, or told of by an error that says something else.
    Damage,
    /// A failed write or flush was followed by what must not follow it.
    InjectedFailure,
    /// A store says that it is full while it holds less than it promises to take.
    Room,
    /// The engine's own check of a store's structure found damage.
    Structure,
    /// No order of the operations explains what they returned.
    Linearizability,
    /// Nothing moves any more.
    Progress,
    /// The protocol's mirror refuses an event.
    Conformance,
    /// The engine reported an error where nothing had failed.
    Error,
    /// The engine panicked.
    Panic,
}

impl Check {
    /// All of them.
    pub const ALL: [Check; 13] = [
        Check::Reference,
        Check::Scan,
        Check::Crash,
        Check::CrashInRecovery,
        Check::Damage,
        Check::InjectedFailure,
        Check::Room,
        Check::Structure,
        Check::Linearizability,
        Check::Progress,
        Check::Conformance,
        Check::Error,
        Check::Panic,
    ];

    /// As tables show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Check::Reference => "reference",
            Check::Scan => "scan",
            Check::Crash => "crash",
            Check::CrashInRecovery => "crash-in-recovery",
            Check::Damage => "damage",
            Check::InjectedFailure => "injected-failure",
            Check::Room => "room",
            Check::Structure => "structure",
            Check::Linearizability => "linearizability",
            Check::Progress => "progress",
            Check::Conformance => "conformance",
            Check::Error => "error",
            Check::Panic => "panic",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Who found it.
    pub check: Check,
    /// The number of the operation, counted from 1, if it was one.
    pub operation: Option<usize>,
    /// What was done, in a few words.
    pub what: String,
    /// What should have come.
    pub expected: String,
    /// What came.
    pub found: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.check)?;
        if let Some(n) = self.operation {
            write!(f, "operation {n}: ")?;
        }
        let (expected, found) = (&self.expected, &self.found);
        write!(f, "{}: expected {expected}, found {found}", self.what)
    }
}
