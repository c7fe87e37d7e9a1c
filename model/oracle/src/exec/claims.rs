//! The handshake: what an adapter has, and what it claims.

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Limits, Promise};
use crate::value::VERSION_BYTES;

/// Name and version of the protocol.
pub const PROTOCOL: &str = "treering.exec/1";

/// When an adapter's writes are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// When a write has returned.
    Return,
    /// When a later `sync` has returned.
    Sync,
    /// When a later `close` has returned.
    Close,
}

impl Durable {
    /// The same as a promise to the oracle, which closes and opens instead of a sync if it must.
    #[must_use]
    pub fn promise(self) -> Promise {
        match self {
            Durable::Return => Promise::OnReturn,
            Durable::Sync | Durable::Close => Promise::OnSync,
        }
    }
}

/// What holds for single calls that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consistency {
    /// Each takes effect at an instant between its call and its return.
    Linearizable,
    /// Nothing is claimed, and overlapping calls are not judged.
    None,
}

/// What holds for transactions that overlap, from strong to weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Some order of the transactions explains their answers.
    Serializable,
    /// Each reads a snapshot, and of two that write one key at the same time only one commits.
    Snapshot,
    /// None reads what was never committed.
    ReadCommitted,
}

impl Isolation {
    /// Its name in the handshake.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::ReadCommitted => "read-committed",
        }
    }
}

/// A request that an adapter need not have, or a freedom that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Has {
    /// `scan-back`.
    ScanBack,
    /// `batch`.
    Batch,
    /// `sync`.
    Sync,
    /// `begin`, `commit` and `abort`.
    Transactions,
    /// `snapshot` and `abort`.
    Snapshot,
    /// It works on several requests at a time, and answers in any order.
    Concurrent,
    /// Several processes may have the store open at the same time.
    Processes,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Claims {
    protocol: String,
    /// The engine's name.
    pub name: String,
    /// When a write is durable.
    pub durable: Durable,
    /// What holds for single calls.
    #[serde(default = "linearizable")]
    pub consistency: Consistency,
    /// What holds for transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What else it has.
    #[serde(default)]
    pub has: Vec<Has>,
    /// Longest key in bytes.
    pub max_key: usize,
    /// Longest key and value together, in bytes.
    pub max_record: usize,
    /// Whether the empty key is accepted.
    #[serde(default)]
    pub empty_key: bool,
    /// Bytes that the drive has to write as a whole for the claims to hold: 512 or 4096.
    #[serde(default = "sector")]
    pub atomic: u64,
}

fn sector() -> u64 {
    512
}

fn linearizable() -> Consistency {
    Consistency::Linearizable
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+-".contains(c)
}

/// The shortest longest key for which programs can be made.
const LEAST_KEY: usize = 4;

impl Claims {
    /// Those of a process that has not introduced itself.
    pub(super) fn unknown() -> Claims {
        Claims {
            protocol: PROTOCOL.into(),
            name: String::new(),
            durable: Durable::Close,
            consistency: Consistency::None,
            isolation: None,
            has: Vec::new(),
            max_key: 0,
            max_record: 0,
            empty_key: false,
            atomic: sector(),
        }
    }

    /// What an engine of this process can claim: everything but transactions and snapshots. A
    /// letter of its name that a name may not have becomes `-`.
    #[must_use]
    pub fn of(engine: &dyn Engine) -> Claims {
        let name = engine.name();
        let dense = |c: char| if is_of_a_name(c) { c } else { '-' };
        let mut has = vec![Has::ScanBack, Has::Sync];
        if engine.batch_bytes().is_some() {
            has.push(Has::Batch);
        }
        let limits = engine.limits();
        Claims {
            protocol: PROTOCOL.into(),
            name: name.chars().map(dense).collect(),
            durable: match engine.promise() {
                Promise::OnReturn => Durable::Return,
                Promise::OnSync => Durable::Sync,
            },
            consistency: match engine.is_linearizable() {
                true => Consistency::Linearizable,
                false => Consistency::None,
            },
            isolation: None,
            has,
            max_key: limits.max_key,
            max_record: limits.max_record,
            empty_key: limits.empty_key,
            atomic: engine.atomic_bytes(),
        }
    }

    /// Reads the answer to `hello`.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn read(text: &str) -> Result<Claims, String> {
        let claims: Claims = serde_json::from_str(text)
            .map_err(|e| format!("claims as docs/EXEC.md lists them ({e})"))?;
        let dense = claims.name.chars().all(is_of_a_name) && !claims.name.is_empty();
        let wrong = if claims.protocol != PROTOCOL {
            format!("`protocol` \"{PROTOCOL}\"")
        } else if !dense {
            "a `name` of letters, digits and ._+-".into()
        } else if claims.durable == Durable::Sync && !claims.has(Has::Sync) {
            "\"sync\" in `has`, as writes are claimed to be durable on sync".into()
        } else if claims.has(Has::Transactions) != claims.isolation.is_some() {
            "`isolation` if and only if `has` lists \"transactions\"".into()
        } else if ![512, 4096].contains(&claims.atomic) {
            "an `atomic` of 512 or 4096".into()
        } else if claims.max_key < LEAST_KEY {
            format!("a `max_key` of at least {LEAST_KEY}")
        } else if claims.max_record < claims.max_key + 2 * VERSION_BYTES {
            format!(
                "a `max_record` of at least `max_key` + {}",
                2 * VERSION_BYTES
            )
        } else {
            return Ok(claims);
        };
        Err(wrong)
    }

    /// Whether it has this.
    #[must_use]
    pub fn has(&self, what: Has) -> bool {
        self.has.contains(&what)
    }

    /// The keys and values that it accepts.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            max_key: self.max_key,
            max_record: self.max_record,
            empty_key: self.empty_key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_contradicts_another_is_refused() {
        let hello = |with: &str| {
            let text = format!(
                "{{\"id\":1,\"protocol\":\"{PROTOCOL}\",\"name\":\"toy\",\"max_key\":100,\
                 \"max_record\":1000{with}}}"
            );
            Claims::read(&text)
        };
        let claims = hello(",\"durable\":\"return\"").unwrap();
        assert!(!claims.empty_key && !claims.has(Has::Batch));
        for (with, expected) in [
            ("", "durable"),
            (",\"durable\":\"sync\"", "\"sync\" in `has`"),
            (
                ",\"durable\":\"return\",\"has\":[\"transactions\"]",
                "`isolation`",
            ),
            (",\"durable\":\"return\",\"has\":[\"wings\"]", "wings"),
            (",\"durable\":\"return\",\"atomic\":8192", "`atomic`"),
        ] {
            let said = hello(with).unwrap_err();
            assert!(said.contains(expected), "{with}: {said}");
        }
    }
}
