//! Reduces a failing program to a small one that still fails.

use super::program::{Op, Program};

/// Removes operations, by halves, quarters and finally single ones, then single changes of batches,
/// and then shortens values, as long as `fails` holds. The result fails, and without any one of its
/// operations, or of the changes of its batches, it does not.
/// Calls `fails` O(n log n) to O(n²) times.
///
/// ```
/// use treering_oracle::shrink::minimise;
/// use treering_oracle::{Op, Program};
///
/// let text = r#"{"schema":"treering.program/1","engine":"any"}
/// put "a" 100
/// get "b"
/// checkpoint
/// get "a"
/// "#;
/// let program = Program::parse(text).unwrap().program;
/// // As if every program with a checkpoint failed.
/// let small = minimise(&program, |p| p.ops.contains(&Op::Checkpoint));
/// assert_eq!(small.ops, [Op::Checkpoint]);
/// ```
pub fn minimise(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    best.crashes.clear();
    let mut piece = best.ops.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut smaller) = (0, false);
        while at < best.ops.len() {
            let mut candidate = best.clone();
            candidate.ops.drain(at..(at + piece).min(best.ops.len()));
            if fails(&candidate) {
                best = candidate;
                smaller = true;
            } else {
                at += piece;
            }
        }
        if piece == 1 && !smaller {
            break;
        }
        piece = (piece / 2).max(1);
    }
    without_changes(&mut best, &mut fails);
    for at in 0..best.ops.len() {
        for change in 0..lengths(&mut best.ops[at]).count() {
            loop {
                let mut candidate = best.clone();
                let Some(len) = lengths(&mut candidate.ops[at]).nth(change) else {
                    break;
                };
                let before = *len;
                *len = if before > 16 { before / 2 } else { 8 };
                if before <= 8 || !fails(&candidate) {
                    break;
                }
                best = candidate;
            }
        }
    }
    best
}

/// Removes changes of batches, one by one, as long as `fails` holds.
pub(crate) fn without_changes(best: &mut Program, fails: &mut impl FnMut(&Program) -> bool) {
    let changes = |op: &Op| match op {
        Op::Write(changes) => changes.len(),
        _ => 0,
    };
    for at in 0..best.ops.len() {
        for change in (0..changes(&best.ops[at])).rev() {
            let mut candidate = best.clone();
            if let Op::Write(changes) = &mut candidate.ops[at] {
                changes.remove(change);
            }
            if fails(&candidate) {
                *best = candidate;
            }
        }
    }
}

/// The lengths of the values that an operation writes.
fn lengths(op: &mut Op) -> impl Iterator<Item = &mut u32> {
    let (put, batch) = match op {
        Op::Put(_, len) => (Some(len), None),
        Op::Write(changes) => (None, Some(changes)),
        _ => (None, None),
    };
    let batch = batch.into_iter().flatten();
    put.into_iter()
        .chain(batch.filter_map(|change| change.len.as_mut()))
}

#[cfg(test)]
mod tests {
    use super::super::program::{Change, KeyNo};
    use super::*;

    #[test]
    fn what_is_left_is_what_it_takes() {
        let ops = (0..100).map(|i| match i {
            40 => Op::Put(KeyNo(1), 900),
            77 => Op::Checkpoint,
            _ => Op::Put(KeyNo(0), 50),
        });
        let program = Program {
            keys: vec![b"a".to_vec(), b"b".to_vec()],
            ops: ops.collect(),
            crashes: Vec::new(),
        };
        let shown = |p: &Program| {
            let large = |op: &Op| matches!(op, Op::Put(KeyNo(1), len) if *len > 100);
            let put = p.ops.iter().position(large);
            let checkpoint = p.ops.iter().position(|op| *op == Op::Checkpoint);
            put.is_some() && put < checkpoint
        };
        let least = minimise(&program, shown);
        assert_eq!(least.ops, [Op::Put(KeyNo(1), 112), Op::Checkpoint]);
    }

    #[test]
    fn a_batch_keeps_only_the_changes_that_it_takes() {
        let change = |key, len| Change {
            key: KeyNo(key),
            len,
        };
        let batch = |n| (0..n).map(|key| change(key, Some(500))).collect();
        let program = Program {
            keys: (0..9).map(|key| vec![key]).collect(),
            ops: vec![Op::Write(batch(4)), Op::Write(batch(9)), Op::Sync],
            crashes: Vec::new(),
        };
        // As if the second of these changes were lost, unless its value is short.
        let shown = |p: &Program| {
            let lost = |op: &Op| match op {
                Op::Write(changes) => {
                    let of = |key| changes.iter().find(|change| change.key == KeyNo(key));
                    of(2).is_some() && of(7).is_some_and(|change| change.len > Some(200))
                }
                _ => false,
            };
            p.ops.iter().any(lost)
        };
        let least = minimise(&program, shown);
        let left = vec![change(2, Some(8)), change(7, Some(250))];
        assert_eq!(least.ops, [Op::Write(left)]);
    }
}
