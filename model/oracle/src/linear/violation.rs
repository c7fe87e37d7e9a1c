//! A violation of linearizability, and its report.

use std::fmt;

use crate::history::{Action, Call, History, KeyId, Outcome, Version, show_key};

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A read found bytes that no write wrote to this key.
    NeverWritten,
    /// A read found a value before its write began.
    BeforeWritten,
    /// A read found a value though another one had replaced it before the read began.
    StaleRead,
    /// A write has returned, and no later read sees its value.
    LostUpdate,
    /// A read found a value though a delete had removed it before the read began.
    CameBack,
    /// A get found no value although there was one.
    Vanished,
    /// A scan skipped a key that was there all the time.
    ScanMisses,
    /// Each read alone could be right; together they contradict each other.
    NoOrder,
    /// A scan returned a key twice.
    ScanRepeats,
    /// A scan returned rows out of order.
    ScanUnsorted,
    /// A scan returned a key before its beginning.
    ScanOutOfBounds,
    /// A scan went on after its visitor had stopped it.
    ScanWentOn,
    /// Reads saw one change of a batch, and later not yet another one.
    BatchInPart,
}

impl Kind {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::NeverWritten => "never-written",
            Kind::BeforeWritten => "before-written",
            Kind::StaleRead => "stale-read",
            Kind::LostUpdate => "lost-update",
            Kind::CameBack => "deleted-value-came-back",
            Kind::Vanished => "vanished",
            Kind::ScanMisses => "scan-misses-key",
            Kind::NoOrder => "no-order",
            Kind::ScanRepeats => "scan-repeats-key",
            Kind::ScanUnsorted => "scan-unsorted",
            Kind::ScanOutOfBounds => "scan-out-of-bounds",
            Kind::ScanWentOn => "scan-went-on",
            Kind::BatchInPart => "batch-in-part",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Kind::NeverWritten => "a read found bytes that no write wrote to this key",
            Kind::BeforeWritten => "a read found a value before its write began",
            Kind::StaleRead => "a read found a value that another one had replaced before",
            Kind::LostUpdate => "a write returned, and no later read sees its value",
            Kind::CameBack => "a read found a value that had been deleted before",
            Kind::Vanished => "a get found no value although there was one",
            Kind::ScanMisses => "a scan skipped a key that was there all the time",
            Kind::NoOrder => "no order of these operations explains all of their answers",
            Kind::ScanRepeats => "a scan returned a key twice",
            Kind::ScanUnsorted => "a scan returned rows out of order",
            Kind::ScanOutOfBounds => "a scan returned a key before its beginning",
            Kind::ScanWentOn => "a scan went on after its visitor had stopped it",
            Kind::BatchInPart => "reads saw one change of a batch, and later not yet another one",
        }
    }
}

/// A violation, with the fewest operations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind.
    pub kind: Kind,
    /// The key.
    pub key: Vec<u8>,
    /// What the call found.
    pub found: Version,
    /// What it could have found. Empty if the form of a scan is wrong, or a batch was seen in part.
    pub expected: Vec<Version>,
    /// The index of the call that nothing explains.
    pub culprit: usize,
    /// The indexes of the calls that contradict each other, by time, including the culprit.
    pub calls: Vec<usize>,
    /// The number of other keys with violations.
    pub other_keys: usize,
    lines: Vec<String>,
}

impl Violation {
    pub(super) fn of_key(
        history: &History,
        kind: Kind,
        key: &[u8],
        (culprit, found): (usize, Version),
        expected: Vec<Version>,
        calls: Vec<usize>,
    ) -> Violation {
        let lines = calls
            .iter()
            .map(|number| line(history, *number, key, *number == culprit))
            .collect();
        Violation {
            kind,
            key: key.to_vec(),
            found,
            expected,
            culprit,
            calls,
            other_keys: 0,
            lines,
        }
    }

    /// The violation that nothing explains read `culprit`, of a batch that other reads have seen.
    /// Each call comes with the key that matters of it.
    pub(super) fn of_batch(
        history: &History,
        (culprit, key): (usize, KeyId),
        found: Version,
        calls: &[(usize, KeyId)],
    ) -> Violation {
        let show = |(number, key): &(usize, KeyId)| {
            line(history, *number, history.key(*key), *number == culprit)
        };
        Violation {
            kind: Kind::BatchInPart,
            key: history.key(key).to_vec(),
            found,
            expected: Vec::new(),
            culprit,
            calls: calls.iter().map(|(number, _)| *number).collect(),
            other_keys: 0,
            lines: calls.iter().map(show).collect(),
        }
    }

    /// The violation of `kind` at row `row` of the scan that is call `culprit`.
    pub(super) fn of_scan(history: &History, culprit: usize, kind: Kind, row: usize) -> Violation {
        let call = &history.calls()[culprit];
        let Action::Scan(scan) = call.action else {
            unreachable!("the caller found a scan there");
        };
        let rows = history.rows_of(&history.scans()[scan as usize]);
        let mut lines = vec![format!("> {}{}", place(call), history.describe(call))];
        for (number, delivered) in rows.iter().enumerate().take(row + 1).skip(row.max(2) - 2) {
            let mark = if number == row { '>' } else { ' ' };
            lines.push(format!(
                "{mark}   row {}: {} {}",
                number + 1,
                show_key(history.key(delivered.key)),
                delivered.version
            ));
        }
        Violation {
            kind,
            key: history.key(rows[row].key).to_vec(),
            found: rows[row].version,
            expected: Vec::new(),
            culprit,
            calls: vec![culprit],
            other_keys: 0,
            lines,
        }
    }
}

fn place(call: &Call) -> String {
    let end = match call.outcome {
        Outcome::Pending => "…".to_string(),
        Outcome::Returned | Outcome::Failed => call.end.to_string(),
    };
    format!("client {}, {} to {end}: ", call.client, call.invoke)
}

/// A line for a call as the operation on `key` that it is or stands for.
fn line(history: &History, number: usize, key: &[u8], culprit: bool) -> String {
    let call = &history.calls()[number];
    let mark = if culprit { '>' } else { ' ' };
    let mut line = format!("{mark} {}{}", place(call), history.describe(call));
    if let Action::Scan(scan) = call.action {
        let rows = history.rows_of(&history.scans()[scan as usize]);
        let row = rows.iter().find(|row| history.key(row.key) == key);
        let found = row.map_or(Version::ABSENT, |row| row.version);
        line += &format!(", found {} {found}", show_key(key));
    }
    line
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.kind.name(), self.kind.sentence())?;
        writeln!(f, "key {}", show_key(&self.key))?;
        if !self.expected.is_empty() {
            let expected: Vec<String> = self.expected.iter().map(Version::to_string).collect();
            writeln!(f, "expected {}", expected.join(" or "))?;
        }
        writeln!(f, "found {}", self.found)?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        if self.other_keys > 0 {
            writeln!(f, "({} other keys have violations, too)", self.other_keys)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
