//! The changes of batches.

use super::lengths::Lengths;
use super::shape::Shape;
use super::steps::Step;
use crate::engine::size_in_batch;
use crate::program::{Change, KeyNo};
use crate::random::Random;

/// No batch is made larger than this, whatever the engine accepts.
const MOST_BYTES: u64 = 256 << 10;
/// No batch has more changes than this.
const MOST_CHANGES: u64 = 96;
/// The most long values in a batch: several would fill a small store.
const MOST_LONG: usize = 2;

/// What decides the batches of a program.
pub(super) struct Batches<'a> {
    pub(super) shape: &'a Shape,
    pub(super) lengths: Lengths<'a>,
    /// All keys of the program.
    pub(super) keys: &'a [Vec<u8>],
    /// Those that are written.
    pub(super) written: &'a [KeyNo],
    /// The size that a batch may always have.
    pub(super) most: u64,
}

impl Batches<'_> {
    /// The batch of a step: mostly two to six changes, now and then one, none, dozens, or more than
    /// the engine accepts. Of neighbouring keys, which share a leaf, or of any keys.
    pub(super) fn batch(&self, step: &Step, begins_with_put: bool) -> Vec<Change> {
        let mut random = Random::part(u64::from(step.a) << 16 | u64::from(step.b), 7);
        let (changes, most) = match random.below(32) {
            0 => (0, 0),
            1 | 2 => (1, self.most),
            3..6 => (8 + random.below(24), self.most),
            6..9 => {
                let most = self.most.min(MOST_BYTES / 3);
                (MOST_CHANGES, most + random.below(2 * most))
            }
            _ => (2 + random.below(5), self.most),
        };
        let is_large = changes == MOST_CHANGES;
        let neighbours = random.one_in(2) && !is_large;
        let (mut batch, mut bytes, mut long) = (Vec::new(), 0, 0);
        for n in 0..changes {
            let at = match (n, neighbours) {
                (0, _) => u64::from(step.a),
                (_, true) => u64::from(step.a) + n + random.below(2),
                (_, false) => random.word() >> 32,
            };
            let key = self.written[(at % self.written.len() as u64) as usize];
            let puts = match n {
                0 => begins_with_put,
                _ => is_large || random.below(3) > 0,
            };
            let len = puts.then(|| self.length(key, is_large, &mut long, &mut random));
            // A key that is never written.
            let key = match puts || !random.one_in(16) {
                true => key,
                false => KeyNo(random.below(self.keys.len() as u64) as u32),
            };
            bytes += size_in_batch(self.keys[key.0 as usize].len(), len, self.lengths.long);
            if bytes > most && !batch.is_empty() {
                break;
            }
            batch.push(Change { key, len });
        }
        batch
    }

    fn length(&self, key: KeyNo, is_large: bool, long: &mut usize, random: &mut Random) -> u32 {
        let bytes = self.keys[key.0 as usize].len();
        let room = self.lengths.limits.max_record - bytes;
        let room = match self.lengths.long {
            Some(long) => room.min(long.above),
            None => room,
        };
        if is_large {
            // A few values out of line, whose space a refused batch must give back.
            return match self.lengths.long {
                Some(of) if *long < MOST_LONG && random.one_in(8) => {
                    *long += 1;
                    (of.above + 1 + random.below((of.to - of.above) as u64) as usize) as u32
                }
                _ => room as u32,
            };
        }
        let len = self.shape.length(random.word() as u16, bytes, self.lengths);
        if len as usize > room {
            *long += 1;
            if *long > MOST_LONG {
                return room as u32;
            }
        }
        len
    }
}
