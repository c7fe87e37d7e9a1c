//! Reduces a failing program to a small one that still fails.

use super::program::{Op, Program};

/// Removes operations, by halves, quarters and finally single ones, and then shortens values, as
/// long as `fails` holds. The result fails, and without any one of its operations it does not.
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
    for at in 0..best.ops.len() {
        while let Op::Put(key, len) = best.ops[at] {
            let mut candidate = best.clone();
            candidate.ops[at] = Op::Put(key, if len > 16 { len / 2 } else { 8 });
            if len <= 8 || !fails(&candidate) {
                break;
            }
            best = candidate;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::program::KeyNo;
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
}
