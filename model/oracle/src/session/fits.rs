//! Checks whether an engine can run a program.

use crate::program::{KeyNo, Op, Program};
use crate::{DiskKind, Engine};

/// An operation that the engine cannot run: a key or record beyond its limits, or a crash of a disk
/// that cannot crash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation} ({line}): {why}")]
pub struct Unfit {
    /// The number of the operation, counted from 1.
    pub operation: usize,
    /// The operation, as its line.
    pub line: String,
    /// Why the engine cannot run it.
    pub why: String,
}

/// Checks whether an engine can run every operation of a program.
///
/// # Errors
/// The first operation that it cannot run.
pub fn fits(engine: &dyn Engine, program: &Program) -> Result<(), Unfit> {
    let limits = engine.limits();
    for (i, op) in program.ops.iter().enumerate() {
        let too_long = |key: KeyNo, len: u32| {
            let (key, len) = (program.key(key).len(), len as usize);
            if key > limits.max_key {
                Some(format!("the key is longer than {} bytes", limits.max_key))
            } else if key + len > limits.max_record
                && engine.long_values().is_none_or(|long| len > long.to)
            {
                Some(format!(
                    "key and value are longer than {} bytes",
                    limits.max_record
                ))
            } else if key == 0 && !limits.empty_key {
                Some("the engine takes no empty key".to_owned())
            } else {
                None
            }
        };
        let why = match op {
            Op::Put(key, len) => too_long(*key, *len),
            Op::Write(_) if engine.batch_bytes().is_none() => {
                Some("the engine has no batches".to_owned())
            }
            Op::Write(changes) => (changes.iter())
                .find_map(|change| change.len.and_then(|len| too_long(change.key, len))),
            Op::Crash(_) | Op::CutPower(_) if engine.can_be_killed() => None,
            op => beyond(op, engine.disk()).map(str::to_owned),
        };
        if let Some(why) = why {
            return Err(Unfit {
                operation: i + 1,
                line: program.line(op),
                why,
            });
        }
    }
    Ok(())
}

/// Why an operation is impossible on a kind of disk, if it is.
fn beyond(op: &Op, disk: DiskKind) -> Option<&'static str> {
    match (op, disk) {
        (
            Op::Crash(_) | Op::CutPower(_) | Op::Fail(..) | Op::Starve(_) | Op::Hint(_),
            DiskKind::Folder,
        ) => Some("the engine keeps its own files, which the oracle cannot crash or make fail"),
        (Op::Hint(_), DiskKind::Pm(_)) => {
            Some("the engine keeps its store in persistent memory, which knows no trims")
        }
        (Op::Fail(..) | Op::Starve(_), DiskKind::Pm(_)) => Some(
            "the engine keeps its store in persistent memory, where stores and fences cannot fail",
        ),
        _ => None,
    }
}
