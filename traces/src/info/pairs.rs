//! Read-modify-writes: puts whose key was read shortly before.
//!
//! A put counts if, among the [`NEAR`] operations before it, the last one on its key is a get, or a
//! scan that begins there. Popular keys meet such a read by chance. How often is seen by asking the
//! same of the [`NEAR`] operations that end [`APART`] operations earlier, where popularity is about
//! the same but no client still holds what it read:
//!
//! ```text
//! operations:  ... [ 16 ] ........ 4,096 ........ [ 16 ] put
//!                  by chance                      near
//! ```
//!
//! Each put is compared with 32 operations, in a ring of the last ones: exact, whatever the number of
//! keys.

use serde::Serialize;

use crate::{Op, OpKind};

/// A read counts as the first half of a read-modify-write up to this many operations before.
const NEAR: usize = 16;
/// How much earlier the operations are that show what chance does.
pub(super) const APART: usize = 4096;
/// The bit of a hash that is replaced by whether the operation was a read.
const READ: u64 = 1;

/// How often a put follows a get of its key, or a scan that begins there, without an access between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadModifyWrite {
    /// Share of the puts whose key the operation just before read.
    pub direct: f64,
    /// Share of the puts whose key was read at most `within` operations before.
    pub near: f64,
    /// Share of the puts that are in `near` and whose client is the one that read.
    pub same_client: f64,
    /// The share that `near` would have by chance: that of the puts whose key was read in as many
    /// operations that end `apart` operations earlier. `None` if no put has so many before it.
    pub by_chance: Option<f64>,
    /// The limit of `near`, in operations.
    pub within: u64,
    /// How many operations earlier the window of `by_chance` ends.
    pub apart: u64,
}

/// The state of the pass over a trace.
pub(super) struct Pairs {
    apart: usize,
    /// The hashes of the last keys, with [`READ`]; the length is a power of two.
    keys: Vec<u64>,
    clients: Vec<u32>,
    ops: usize,
    puts: u64,
    direct: u64,
    near: u64,
    same_client: u64,
    /// Puts with enough operations before them to judge chance.
    late_puts: u64,
    by_chance: u64,
}

impl Pairs {
    /// Creates the state. Chance is judged `apart` operations earlier.
    pub(super) fn new(apart: usize) -> Pairs {
        let places = (apart + NEAR).next_power_of_two();
        Pairs {
            apart,
            keys: vec![0; places],
            clients: vec![0; places],
            ops: 0,
            puts: 0,
            direct: 0,
            near: 0,
            same_client: 0,
            late_puts: 0,
            by_chance: 0,
        }
    }

    /// Takes the next operation and the hash of its key.
    #[inline]
    pub(super) fn add(&mut self, op: &Op, hash: u64) {
        if op.kind == OpKind::Put {
            self.put(op.client, hash);
        }
        let is_read = matches!(op.kind, OpKind::Get | OpKind::Scan);
        let place = self.place(self.ops);
        self.keys[place] = (hash & !READ) | u64::from(is_read);
        self.clients[place] = op.client;
        self.ops += 1;
    }

    fn put(&mut self, client: u32, hash: u64) {
        self.puts += 1;
        if let Some(at) = self.read_before(self.ops, hash) {
            self.near += 1;
            self.direct += u64::from(at + 1 == self.ops);
            self.same_client += u64::from(self.clients[self.place(at)] == client);
        }
        if self.ops >= self.apart + NEAR {
            self.late_puts += 1;
            let found = self.read_before(self.ops - self.apart, hash);
            self.by_chance += u64::from(found.is_some());
        }
    }

    /// Returns the last operation on the key among those shortly before `end`, if it is a read.
    fn read_before(&self, end: usize, hash: u64) -> Option<usize> {
        let mut window = (end.saturating_sub(NEAR)..end).rev();
        let found = window.find(|&at| self.keys[self.place(at)] | READ == hash | READ)?;
        (self.keys[self.place(found)] & READ > 0).then_some(found)
    }

    fn place(&self, op: usize) -> usize {
        op & (self.keys.len() - 1)
    }

    /// Ends the pass. Returns `None` if there was no put.
    pub(super) fn finish(&self) -> Option<ReadModifyWrite> {
        let share = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
        Some(ReadModifyWrite {
            direct: share(self.direct, self.puts)?,
            near: share(self.near, self.puts)?,
            same_client: share(self.same_client, self.puts)?,
            by_chance: share(self.by_chance, self.late_puts),
            within: NEAR as u64,
            apart: self.apart as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn found(ops: &[Op], apart: usize) -> Option<ReadModifyWrite> {
        let mut pairs = Pairs::new(apart);
        for op in ops {
            pairs.add(op, xxh3_64(&op.key));
        }
        pairs.finish()
    }

    /// Operations of three clients. A put repeats the key of a read of its client in some cases.
    fn ops(keys: u64, count: u64, repeats: bool) -> Vec<Op> {
        let draw = |i: u64, of: u64| xxh3_64(&[i, of].map(u64::to_le_bytes).concat());
        let mut ops: Vec<Op> = Vec::new();
        for i in 0..count {
            let kind = OpKind::ALL[(draw(i, 0) % 4) as usize];
            let mut key = vec![(draw(i, 1) % keys) as u8];
            let mut client = (draw(i, 2) % 3) as u32;
            let back = 1 + (draw(i, 3) % 20) as usize;
            if let Some(before) = ops.len().checked_sub(back).map(|at| &ops[at])
                && repeats
                && kind == OpKind::Put
            {
                key.clone_from(&before.key);
                client = before.client;
            }
            ops.push(Op {
                kind,
                key,
                client,
                ..Op::default()
            });
        }
        ops
    }

    /// The same from the whole list.
    fn expected(ops: &[Op], apart: usize) -> [f64; 4] {
        let [mut puts, mut direct, mut near, mut own] = [0.0; 4];
        let [mut late, mut chance] = [0.0; 2];
        let last_read = |put: &Op, window: &[Op]| {
            let last = window.iter().rposition(|op| op.key == put.key)?;
            let is_read = [OpKind::Get, OpKind::Scan].contains(&window[last].kind);
            is_read.then(|| (window.len() - last, window[last].client))
        };
        for (i, put) in ops
            .iter()
            .enumerate()
            .filter(|(_, op)| op.kind == OpKind::Put)
        {
            puts += 1.0;
            if let Some((back, client)) = last_read(put, &ops[i.saturating_sub(NEAR)..i]) {
                near += 1.0;
                direct += f64::from(u8::from(back == 1));
                own += f64::from(u8::from(client == put.client));
            }
            if let Some(end) = i.checked_sub(apart).filter(|&end| end >= NEAR) {
                late += 1.0;
                let found = last_read(put, &ops[end - NEAR..end]);
                chance += f64::from(u8::from(found.is_some()));
            }
        }
        [direct / puts, near / puts, own / puts, chance / late]
    }

    #[test]
    fn shares_are_those_of_the_list() {
        for (keys, apart, repeats) in [(40, 100, true), (9, 48, false), (200, 17, true)] {
            let ops = ops(keys, 3_000, repeats);
            let found = found(&ops, apart).expect("puts");
            let shares = [found.direct, found.near, found.same_client];
            let chance = found.by_chance.expect("late puts");
            let [direct, near, own, expected] = expected(&ops, apart);
            assert_eq!((shares, chance), ([direct, near, own], expected), "{keys}");
            assert!(own > 0.01 && near > own, "{found:?}");
        }
    }

    #[test]
    fn chance_is_all_there_is_where_keys_are_drawn() {
        let drawn = found(&ops(40, 200_000, false), APART).expect("puts");
        let chance = drawn.by_chance.expect("late puts");
        assert!(chance > 0.1, "{drawn:?}");
        // 50,000 puts: a standard error of 0.002.
        assert!((drawn.near - chance).abs() < 0.01, "{drawn:?}");
        let paired = found(&ops(200, 200_000, true), APART).expect("puts");
        let chance = paired.by_chance.expect("late puts");
        assert!(paired.near > 5.0 * chance, "{paired:?}");
    }

    #[test]
    fn short_traces_say_nothing_of_chance_and_reads_alone_nothing() {
        let few = found(&ops(9, 50, true), APART).expect("puts");
        assert_eq!(few.by_chance, None);
        assert_eq!(found(&[Op::default()], APART), None);
    }
}
