//! The reference map: what a store must hold, and what it may hold after a crash.
//!
//! ```text
//! durable ──(tail: writes since, in order)──▶ now
//! ```
//!
//! Reads must return `now`. A crash leaves `durable` and a prefix of the tail, as the spec
//! `DurableMap` says. A write that returned an error is *doubtful*: it may have happened or not,
//! for reads and for crashes. A batch is one write: all of its changes have happened, or none.
//!
//! Reading and writing cost O(1); judging a crash costs O(keys and tail).

use treering_engine::Lsn;

use super::program::{KeyNo, Program};
use super::value::{VERSION_BYTES, is_value_of, version};

/// A written value, as its write's version and its length. Two are equal if and only if their bytes
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    version: u64,
    len: u32,
}

/// The content of a key: a value, or nothing.
pub type Content = Option<Written>;

impl Written {
    /// The value of write `version`, `len` bytes long. A value shorter than a version keeps only
    /// the version's last bytes.
    #[must_use]
    pub fn new(version: u64, len: u32) -> Written {
        let kept = match len as usize {
            len if len < VERSION_BYTES => version & ((1 << (8 * len)) - 1),
            _ => version,
        };
        Written { version: kept, len }
    }

    /// Decodes the bytes that a store returned. `None` if no write wrote them.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Written> {
        let len = u32::try_from(bytes.len()).ok()?;
        let number = version(bytes).unwrap_or_else(|| {
            let byte = |sum, byte: &u8| sum << 8 | u64::from(*byte);
            bytes.iter().fold(0, byte)
        });
        is_value_of(number, bytes).then_some(Written {
            version: number,
            len,
        })
    }

    /// A text for reports.
    #[must_use]
    pub fn describe(content: Content) -> String {
        match content {
            None => "absent".into(),
            Some(Written { version, len }) => format!("version {version} ({len} bytes)"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Change {
    key: KeyNo,
    to: Content,
    doubtful: bool,
    /// The LSN that the write returned. `None` if it only deleted absent keys, and so has no place
    /// in the order of writes.
    lsn: Option<Lsn>,
    /// Whether the next change belongs to the same write.
    more: bool,
}

/// The changes of each write.
fn writes(tail: &[Change]) -> impl DoubleEndedIterator<Item = &[Change]> {
    tail.split_inclusive(|change| !change.more)
}

/// The reference map of one store.
///
/// ```
/// use treering_oracle::reference::{Reference, Written};
/// use treering_oracle::{KeyNo, Lsn, Program};
///
/// let keys = vec![b"a".to_vec(), b"b".to_vec()];
/// let mut reference = Reference::new(&Program { keys, ops: vec![], crashes: vec![] });
/// let (one, two) = (Some(Written::new(1, 8)), Some(Written::new(2, 8)));
/// reference.wrote(KeyNo(0), one, Lsn(1));
/// reference.wrote(KeyNo(1), two, Lsn(2));
/// assert!(reference.permits(&[one, None]), "a crash may lose the last write");
/// assert!(!reference.permits(&[None, two]), "but not a write before one that it keeps");
/// reference.acknowledge(); // a sync
/// assert!(!reference.permits(&[one, None]));
/// ```
#[derive(Clone, Debug)]
pub struct Reference {
    durable: Vec<Content>,
    now: Vec<Content>,
    tail: Vec<Change>,
    /// The number of doubtful writes in the tail.
    doubtful: usize,
    /// The LSN that the last write returned.
    last: Lsn,
}

/// The most doubtful writes at a time. Every subset of them is tried.
pub const MOST_DOUBTFUL: usize = 3;

impl Reference {
    /// An empty map for the keys of a program.
    #[must_use]
    pub fn new(program: &Program) -> Reference {
        let empty = vec![None; program.keys.len()];
        Reference {
            durable: empty.clone(),
            now: empty,
            tail: Vec::new(),
            doubtful: 0,
            last: Lsn(0),
        }
    }

    /// Records a write that returned `lsn`.
    pub fn wrote(&mut self, key: KeyNo, to: Content, lsn: Lsn) {
        self.wrote_together(&[(key, to)], lsn);
    }

    /// Records a batch that returned `lsn`. If several changes are to one key, the last one counts.
    ///
    /// ```
    /// use treering_oracle::reference::{Reference, Written};
    /// use treering_oracle::{KeyNo, Lsn, Program};
    ///
    /// let keys = vec![b"a".to_vec(), b"b".to_vec()];
    /// let mut reference = Reference::new(&Program { keys, ops: vec![], crashes: vec![] });
    /// let one = Some(Written::new(1, 8));
    /// reference.wrote_together(&[(KeyNo(0), one), (KeyNo(1), one)], Lsn(1));
    /// assert!(reference.permits(&[None, None]), "a crash may lose the batch");
    /// assert!(reference.permits(&[one, one]));
    /// assert!(!reference.permits(&[one, None]), "but not a part of it");
    /// ```
    pub fn wrote_together(&mut self, changes: &[(KeyNo, Content)], lsn: Lsn) {
        if changes.is_empty() {
            return;
        }
        let mut changed = false;
        for (key, to) in changes {
            let before = std::mem::replace(&mut self.now[key.0 as usize], *to);
            changed |= before.is_some() || to.is_some();
        }
        self.last = lsn;
        self.push(changes, false, changed.then_some(lsn));
    }

    /// Records a write that returned an error.
    pub fn may_have_written(&mut self, key: KeyNo, to: Content) {
        self.may_have_written_together(&[(key, to)]);
    }

    /// Records a batch that returned an error.
    pub fn may_have_written_together(&mut self, changes: &[(KeyNo, Content)]) {
        self.doubtful += usize::from(!changes.is_empty());
        self.push(changes, true, None);
    }

    fn push(&mut self, changes: &[(KeyNo, Content)], doubtful: bool, lsn: Option<Lsn>) {
        let left = (0..changes.len()).rev();
        self.tail
            .extend(changes.iter().zip(left).map(|((key, to), left)| Change {
                key: *key,
                to: *to,
                doubtful,
                lsn,
                more: left > 0,
            }));
    }

    /// The number of doubtful writes.
    #[must_use]
    pub fn doubtful(&self) -> usize {
        self.doubtful
    }

    /// Records a sync of the LSN that the last write returned. Every write with an LSN up to that
    /// is durable, as are the writes before them. If the last write only deleted absent keys, only
    /// the writes that made them absent are known to be durable.
    pub fn acknowledge_last(&mut self) {
        let Some(last) = writes(&self.tail).next_back() else {
            return;
        };
        if self.doubtful > 0 {
            return;
        }
        // If the last write changed something, it is the newest one, and the first one found.
        let of_last = |change: &Change| last.iter().any(|of_last| of_last.key == change.key);
        let vouched = |change: &Change| {
            let covered = change.lsn.is_some_and(|lsn| lsn <= self.last);
            covered || change.lsn.is_some() && of_last(change)
        };
        let vouched = |write: &&[Change]| write.iter().any(vouched);
        let after = writes(&self.tail).rev().take_while(|write| !vouched(write));
        let after: usize = after.map(<[Change]>::len).sum();
        self.settle_first(self.tail.len() - after);
    }

    /// Makes the first changes of the tail durable.
    fn settle_first(&mut self, changes: usize) {
        for change in self.tail.drain(..changes) {
            self.durable[change.key.0 as usize] = change.to;
        }
    }

    /// Records that all writes but the last `most` are durable, unless there are doubtful writes.
    pub fn acknowledge_all_but(&mut self, most: usize) {
        if self.doubtful > 0 {
            return;
        }
        let last = writes(&self.tail).rev().take(most);
        let last: usize = last.map(<[Change]>::len).sum();
        self.settle_first(self.tail.len() - last);
    }

    /// Records a sync: all writes so far are durable. A doubtful write stays doubtful, unless its
    /// key was written again.
    pub fn acknowledge(&mut self) {
        for change in self.tail.iter().filter(|change| !change.doubtful) {
            self.durable[change.key.0 as usize] = change.to;
        }
        if self.doubtful == 0 {
            self.tail.clear();
            return;
        }
        let tail = std::mem::take(&mut self.tail);
        let mut through = 0;
        for write in writes(&tail) {
            through += write.len();
            let later = &tail[through..];
            let before = self.tail.len();
            let stays = |change: &&Change| {
                let replaces = |c: &Change| c.key == change.key && !c.doubtful;
                change.doubtful && !later.iter().any(replaces)
            };
            self.tail.extend(write.iter().filter(stays));
            if let Some(last) = self.tail[before..].last_mut() {
                last.more = false;
            }
        }
        self.doubtful = writes(&self.tail).count();
    }

    /// The content of a key.
    #[must_use]
    pub fn get(&self, key: KeyNo) -> Content {
        self.now[key.0 as usize]
    }

    /// The bytes of all keys and values, if `key` held `to`.
    #[must_use]
    pub fn live_bytes_with(&self, program: &Program, key: KeyNo, to: Content) -> u64 {
        let held = (0u32..).map(KeyNo).zip(&self.now);
        let bytes = held.filter_map(|(other, content)| {
            let content = if other == key { to } else { *content };
            content.map(|Written { len, .. }| program.key(other).len() as u64 + u64::from(len))
        });
        bytes.sum()
    }

    /// Whether a read of `key` may return `found`.
    #[must_use]
    pub fn may_read(&self, key: KeyNo, found: Content) -> bool {
        if self.get(key) == found {
            return true;
        }
        let of_key = self.tail.iter().rev().filter(|change| change.key == key);
        self.doubtful > 0
            && of_key
                .take_while(|change| change.doubtful)
                .any(|change| change.to == found)
    }

    /// Whether reads of these keys may return these contents one after another, with nothing
    /// written in between. A doubtful batch must show all of its changes, or none.
    #[must_use]
    pub fn may_read_all(&self, found: &[(KeyNo, Content)]) -> bool {
        if !found.iter().all(|(key, found)| self.may_read(*key, *found)) {
            return false;
        }
        let coupled = self
            .tail
            .iter()
            .any(|change| change.doubtful && change.more);
        let shows = |chosen: u32| {
            let mut state = self.durable.clone();
            for change in self.taken(chosen) {
                state[change.key.0 as usize] = change.to;
            }
            found
                .iter()
                .all(|(key, found)| state[key.0 as usize] == *found)
        };
        !coupled || (0..1u32 << self.doubtful).any(shows)
    }

    /// Whether `found` is the content after all writes, as if none were lost.
    #[must_use]
    pub fn is_newest(&self, found: &[Content]) -> bool {
        self.now == found
    }

    /// Whether a crash may have left `found`.
    #[must_use]
    pub fn permits(&self, found: &[Content]) -> bool {
        (0..1u32 << self.doubtful).any(|chosen| self.is_after_a_prefix(found, self.taken(chosen)))
    }

    /// The changes of the tail without those doubtful writes whose bit in `chosen` is 0.
    fn taken(&self, chosen: u32) -> impl Iterator<Item = &Change> {
        let mut doubt = 0;
        self.tail.iter().filter(move |change| {
            let taken = !change.doubtful || chosen >> doubt & 1 == 1;
            doubt += u32::from(change.doubtful && !change.more);
            taken
        })
    }

    fn is_after_a_prefix<'t>(
        &self,
        found: &[Content],
        tail: impl Iterator<Item = &'t Change>,
    ) -> bool {
        let mut differ = (self.durable.iter().zip(found))
            .filter(|(a, b)| a != b)
            .count();
        if differ == 0 {
            return true;
        }
        // The content of keys that the tail has changed so far. A list, since there are few.
        let mut changed: Vec<(KeyNo, Content)> = Vec::new();
        for change in tail {
            let wanted = found[change.key.0 as usize];
            let before = match changed.iter_mut().find(|(key, _)| *key == change.key) {
                Some((_, content)) => std::mem::replace(content, change.to),
                None => {
                    changed.push((change.key, change.to));
                    self.durable[change.key.0 as usize]
                }
            };
            differ += usize::from(before == wanted && change.to != wanted);
            differ -= usize::from(before != wanted && change.to == wanted);
            if differ == 0 && !change.more {
                return true;
            }
        }
        false
    }

    /// A copy in which these keys were never written.
    #[must_use]
    pub fn without(&self, keys: &[KeyNo]) -> Reference {
        let mut rest = self.clone();
        for key in keys {
            rest.durable[key.0 as usize] = None;
            rest.now[key.0 as usize] = None;
        }
        let of_them = |change: &&mut Change| keys.contains(&change.key);
        (rest.tail.iter_mut().filter(of_them)).for_each(|change| change.to = None);
        rest
    }

    /// Records that the store was opened with the permitted content `found`, which is now durable.
    pub fn settle(&mut self, found: Vec<Content>) {
        self.now.clone_from(&found);
        self.durable = found;
        self.tail.clear();
        self.doubtful = 0;
    }

    /// Explains why `found` is not permitted: the expected and the found content of up to `most`
    /// keys in which it differs from the nearest permitted state.
    #[must_use]
    pub fn explain(&self, program: &Program, found: &[Content], most: usize) -> (String, String) {
        let mut state = self.durable.clone();
        let misses = |state: &[Content]| {
            let pairs = state.iter().zip(found).enumerate();
            let wrong = pairs.filter(|(_, (a, b))| a != b);
            wrong.map(|(i, _)| i).collect::<Vec<_>>()
        };
        let mut best = (misses(&state), state.clone(), 0);
        for (n, write) in writes(&self.tail).enumerate() {
            for change in write {
                state[change.key.0 as usize] = change.to;
            }
            let wrong = misses(&state);
            if wrong.len() < best.0.len() {
                best = (wrong, state.clone(), n + 1);
            }
        }
        let (wrong, nearest, after) = best;
        let list = |contents: &[Content]| {
            let keys = wrong.iter().take(most).map(|i| {
                let key = program.keys[*i].escape_ascii();
                format!("\"{key}\": {}", Written::describe(contents[*i]))
            });
            keys.collect::<Vec<_>>().join(", ")
        };
        let tail = writes(&self.tail).count();
        let batches = match self.tail.iter().any(|change| change.more) {
            true => ", each batch whole",
            false => "",
        };
        (
            format!(
                "a state after 0 to {tail} of the last {tail} writes{batches}; nearest, after \
                 {after}: {}",
                list(&nearest)
            ),
            list(found),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::value;
    use proptest::prelude::*;

    fn program(keys: usize) -> Program {
        Program {
            keys: (0..keys).map(|k| vec![k as u8]).collect(),
            ops: Vec::new(),
            crashes: Vec::new(),
        }
    }

    #[test]
    fn bytes_mean_what_was_written() {
        for len in [0u32, 1, 7, 8, 9, 500] {
            let bytes = value(0x0304_0506_0708, len as usize);
            let written = Written::new(0x0304_0506_0708, len);
            assert_eq!(Written::decode(&bytes), Some(written), "{len}");
        }
        let mut torn = value(5, 500);
        torn[499] ^= 1;
        assert_eq!(Written::decode(&torn), None);
    }

    proptest! {
        /// Compares with the definition: some prefix of the tail, and some subset of the doubtful
        /// writes.
        #[test]
        fn what_is_permitted_is_what_the_contract_says(
            writes in proptest::collection::vec((0u32..3, 0u32..3, 0..6u8, any::<bool>()), 0..8),
            found in proptest::collection::vec(0u64..12, 3),
        ) {
            let mut reference = Reference::new(&program(3));
            let mut allowed: Vec<Vec<Content>> = vec![vec![None; 3]];
            let mut doubtful = 0;
            // All states reachable so far, by the number of writes done and by the subset of
            // doubtful writes.
            let mut ends = vec![vec![None; 3]];
            for (n, (key, kind, fate, batch)) in writes.iter().enumerate() {
                let to = (*kind > 0).then(|| Written::new(n as u64 + 1, 8));
                let mut changes = vec![(KeyNo(*key), to)];
                // The batch also gives the next key the same content.
                changes.extend(batch.then_some((KeyNo((*key + 1) % 3), to)));
                let mut with = ends.clone();
                for (key, to) in &changes {
                    with.iter_mut().for_each(|state| state[key.0 as usize] = *to);
                }
                if *fate == 0 && doubtful < MOST_DOUBTFUL {
                    doubtful += 1;
                    reference.may_have_written_together(&changes);
                    allowed.extend(with.iter().cloned());
                    ends.extend(with);
                } else {
                    reference.wrote_together(&changes, Lsn(n as u64));
                    allowed.extend(with.iter().cloned());
                    ends = with;
                }
            }
            let found: Vec<Content> =
                found.iter().map(|v| (*v > 0).then(|| Written::new(*v, 8))).collect();
            prop_assert_eq!(reference.permits(&found), allowed.contains(&found));
            for state in &allowed {
                prop_assert!(reference.permits(state));
            }
        }
    }

    #[test]
    fn what_changed_nothing_vouches_for_what_it_saw_and_for_no_more() {
        let written = Some(Written::new(1, 8));
        let mut reference = Reference::new(&program(2));
        reference.wrote(KeyNo(0), written, Lsn(10));
        reference.wrote(KeyNo(0), None, Lsn(20));
        reference.wrote(KeyNo(1), written, Lsn(30));
        // Key 0 is absent already. The second delete may return the LSN of the first one, or an
        // older LSN.
        reference.wrote(KeyNo(0), None, Lsn(5));
        let mut synced = reference.clone();
        synced.acknowledge_last();
        assert!(reference.permits(&[written, None]) && !synced.permits(&[written, None]));
        assert!(synced.permits(&[None, None]) && synced.permits(&[None, written]));
        // The LSN may vouch for more writes.
        reference.last = Lsn(30);
        reference.acknowledge_last();
        assert!(!reference.permits(&[None, None]) && reference.permits(&[None, written]));
        reference.wrote(KeyNo(1), None, Lsn(40));
        reference.acknowledge_last();
        assert!(reference.permits(&[None, None]) && !reference.permits(&[None, written]));
    }

    #[test]
    fn a_batch_is_vouched_for_and_doubted_as_a_whole() {
        let [one, two, three] = [1, 2, 3].map(|version| Some(Written::new(version, 8)));
        let (a, b, c) = (KeyNo(0), KeyNo(1), KeyNo(2));
        let mut reference = Reference::new(&program(3));
        reference.wrote_together(&[(a, one), (b, one)], Lsn(10));
        reference.wrote_together(&[(b, two), (c, two)], Lsn(20));
        assert!(reference.permits(&[one, one, None]) && !reference.permits(&[one, two, None]));
        // All but the last write, not all but the last change.
        let mut flushed = reference.clone();
        flushed.acknowledge_all_but(1);
        assert!(flushed.permits(&[one, one, None]) && !flushed.permits(&[None; 3]));
        // A delete that changed nothing vouches for the batch that made its key absent.
        reference.wrote_together(&[(a, None), (b, three)], Lsn(30));
        reference.wrote(c, three, Lsn(40));
        reference.wrote(a, None, Lsn(5));
        reference.acknowledge_last();
        assert!(reference.permits(&[None, three, two]) && !reference.permits(&[one, two, two]));
        // A doubtful batch is there or not; readers see all of it or nothing.
        reference.acknowledge();
        reference.may_have_written_together(&[(a, one), (b, one)]);
        assert!(reference.may_read(a, one) && reference.may_read(b, three));
        assert!(reference.may_read_all(&[(a, one), (b, one)]));
        assert!(reference.may_read_all(&[(a, None), (b, three), (c, three)]));
        assert!(!reference.may_read_all(&[(a, one), (b, three)]));
        // What is written over one of its keys leaves the other in doubt.
        reference.wrote(b, two, Lsn(50));
        reference.acknowledge();
        assert_eq!(reference.doubtful(), 1);
        assert!(reference.permits(&[one, two, three]) && reference.permits(&[None, two, three]));
        assert!(!reference.permits(&[one, one, three]));
    }
}
