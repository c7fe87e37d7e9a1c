//! What the oracle reports when an engine is wrong.

use std::fmt;

use serde::Serialize;

/// The check that found a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A get, or the whole content, differs from the reference map.
    Reference,
    /// A scan differs from the reference map.
    Scan,
    /// The content after a crash is not a permitted prefix of the writes.
    Crash,
    /// As `Crash`, after a second crash: during recovery, or after a recovery that succeeded.
    CrashInRecovery,
    /// Damage on the medium led to a wrong answer, or to an error that does not report damage.
    Damage,
    /// The engine lost or invented data after a failed read, write or flush.
    InjectedFailure,
    /// A store leaks space: it is full below its promised capacity, or reopening changes what it
    /// uses.
    Room,
    /// The engine's own structure check found damage.
    Structure,
    /// No order of the concurrent calls explains their answers.
    Linearizability,
    /// Transactions saw what the claimed isolation forbids.
    Isolation,
    /// The engine hangs.
    Progress,
    /// The mirror of the protocol's spec does not allow an event of the engine.
    Conformance,
    /// The engine returned an error although nothing had failed.
    Error,
    /// The engine panicked.
    Panic,
}

impl Check {
    /// All of them.
    pub const ALL: [Check; 14] = [
        Check::Reference,
        Check::Scan,
        Check::Crash,
        Check::CrashInRecovery,
        Check::Damage,
        Check::InjectedFailure,
        Check::Room,
        Check::Structure,
        Check::Linearizability,
        Check::Isolation,
        Check::Progress,
        Check::Conformance,
        Check::Error,
        Check::Panic,
    ];

    /// Its name in reports.
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
            Check::Isolation => "isolation",
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

/// A violation: what was done, what was expected, and what was found.
///
/// ```
/// use treering_oracle::{Check, Finding};
///
/// let finding = Finding {
///     check: Check::Reference,
///     operation: Some(3),
///     what: "get \"a\"".into(),
///     expected: "absent".into(),
///     found: "5 bytes".into(),
/// };
/// assert_eq!(
///     finding.to_string(),
///     "reference: operation 3: get \"a\": expected absent, found 5 bytes"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// The number of the operation, counted from 1, if a single operation shows it.
    pub operation: Option<usize>,
    /// What was done, in a few words.
    pub what: String,
    /// What a right engine would have returned.
    pub expected: String,
    /// What the engine returned.
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
