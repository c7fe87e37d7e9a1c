//! The words of the medium as the engine stores them, beside those of the mirror.
//!
//! The mirror has the versions of a word that a crash may leave. For each of them this notes what
//! the engine stores for it: one word, or two for a key and its value. A version may stand for
//! several: of two timestamps between which nothing was logged, the spec has one.

use std::fmt::Debug;
use std::marker::PhantomData;

use treering_engine::device::{MemPm, PmImage};

use crate::conformance::refused::Accepted;

/// What a word of a mirror is for.
pub(in crate::conformance) trait Spot: Copy + Debug + 'static {
    /// A state of the mirror.
    type State;

    /// A number of the word, from 0.
    fn address(self) -> usize;
    /// All words, by address.
    fn all() -> impl Iterator<Item = Self>;
    /// The number of versions of the word.
    fn count(self, state: &Self::State) -> usize;
    /// Whether the word has the same versions in both.
    fn is_same(self, one: &Self::State, other: &Self::State) -> bool;
}

/// What the engine stores for a word of the spec. The second half is zero if there is only one.
pub(in crate::conformance) type Raw = [u64; 2];

/// Bytes of a chunk.
pub(in crate::conformance) const CHUNK: u64 = 1024;
/// Bytes of a block, which leaves are named by.
const BLOCK: u64 = 256;
/// The log floor.
pub(in crate::conformance) const FLOOR: u64 = 64;
const DIRECTORY: u64 = 256;
/// Bytes of an entry of a log.
pub(in crate::conformance) const ENTRY: u64 = 24;

/// What a chunk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conformance) enum Use {
    Blank,
    Leaves,
    Log,
}

/// Reads a word of an image.
pub(in crate::conformance) fn word(image: &PmImage, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    image.read(offset, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// The division of the medium.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Layout {
    pub(in crate::conformance) chunks: u8,
    start: u64,
}

impl Layout {
    /// The division into as many chunks, for leaves of so many bytes.
    pub(in crate::conformance) const fn new(chunks: u8, leaf: u64) -> Layout {
        let start = (DIRECTORY + 8 * chunks as u64).next_multiple_of(leaf);
        Layout { chunks, start }
    }

    /// The bytes of a medium with this division.
    pub(in crate::conformance) const fn bytes(&self) -> u64 {
        let chunks = self.chunks as u64;
        (self.start + 8 * chunks + chunks * CHUNK).next_multiple_of(64)
    }

    /// The leaf that is always there.
    pub(in crate::conformance) fn first_leaf(&self) -> u64 {
        self.start / BLOCK
    }

    /// Where a leaf begins.
    pub(in crate::conformance) fn leaf(leaf: u64) -> u64 {
        leaf * BLOCK
    }

    /// Where a chunk begins.
    pub(in crate::conformance) fn chunk(&self, chunk: u64) -> u64 {
        self.start + chunk * CHUNK
    }

    /// Where the directory has a chunk.
    pub(in crate::conformance) fn directory(chunk: u64) -> u64 {
        DIRECTORY + 8 * chunk
    }

    /// The chunks' uses according to the directory.
    pub(in crate::conformance) fn uses(&self, image: &PmImage) -> Vec<Use> {
        let of = |chunk: u8| match word(image, Self::directory(chunk.into())) >> 61 {
            2 => Use::Leaves,
            3 => Use::Log,
            _ => Use::Blank,
        };
        (0..self.chunks).map(of).collect()
    }
}

/// The words that the engine has stored for each version of each word of the mirror.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Words<I> {
    /// By address, then by version; the last of a version is what was stored last. A version
    /// without any may be anything.
    all: Vec<Vec<Vec<Raw>>>,
    spots: PhantomData<I>,
}

impl<I: Spot> Words<I> {
    /// All words durable, and zero.
    pub(in crate::conformance) fn new() -> Words<I> {
        let zero = || vec![vec![Raw::default()]];
        Words {
            all: I::all().map(|_| zero()).collect(),
            spots: PhantomData,
        }
    }

    /// The word is this, and durable.
    pub(in crate::conformance) fn settle(&mut self, is: I, raw: Raw) {
        self.all[is.address()] = vec![vec![raw]];
    }

    /// The word may be anything, in all of its versions.
    pub(in crate::conformance) fn forget(&mut self, is: I) {
        self.all[is.address()].iter_mut().for_each(Vec::clear);
    }

    /// Lets two words change places.
    pub(in crate::conformance) fn swap(&mut self, one: I, other: I) {
        self.all.swap(one.address(), other.address());
    }

    /// All that the engine may have for a word, by version.
    pub(in crate::conformance) fn of(&self, is: I) -> &[Vec<Raw>] {
        &self.all[is.address()]
    }

    /// What was stored last for a word.
    pub(in crate::conformance) fn last(&self, is: I) -> Raw {
        let last = self.all[is.address()].last().and_then(|raws| raws.last());
        last.copied().unwrap_or_default()
    }

    /// Sets what a word is, in all of its versions.
    pub(in crate::conformance) fn set(&mut self, is: I, raw: Raw) {
        for raws in &mut self.all[is.address()] {
            *raws = vec![raw];
        }
    }

    /// The word has become this one, which is the same in the mirror.
    pub(in crate::conformance) fn also(&mut self, is: I, raw: Raw) {
        if let Some(raws) = self.all[is.address()].last_mut()
            && raws.last() != Some(&raw)
        {
            raws.push(raw);
        }
    }

    /// The word was fenced.
    pub(in crate::conformance) fn fenced(&mut self, is: I) {
        if let [raws] = &mut self.all[is.address()][..] {
            raws.drain(..raws.len().saturating_sub(1));
        }
    }

    /// Only versions up to this one were stored, and the last word is this one.
    pub(in crate::conformance) fn goes_back(&mut self, is: I, version: usize, raw: Raw) {
        let all = &mut self.all[is.address()];
        all.truncate(version + 1);
        if all.last().is_some_and(Vec::is_empty) {
            // What the word is now, it may not be after a crash.
            return;
        }
        if let Some(raws) = all.last_mut() {
            let known = raws.iter().position(|known| *known == raw);
            raws.truncate(known.map_or(raws.len(), |at| at + 1));
        }
        self.also(is, raw);
    }

    /// The word may still be what it was before it was written back.
    pub(in crate::conformance) fn keeps(&mut self, is: I, raws: Vec<Vec<Raw>>) {
        self.all[is.address()] = vec![raws.concat()];
    }

    /// Follows a step of the mirror. `raw` tells what the engine stores.
    pub(in crate::conformance) fn follow(
        &mut self,
        (before, after): (&I::State, &I::State),
        raw: impl Fn(I) -> Option<Raw>,
    ) -> Accepted {
        for (is, all) in I::all().zip(&mut self.all) {
            if is.is_same(before, after) {
                continue;
            }
            let (was, now) = (is.count(before), is.count(after));
            let pushed = now > was || now == 2;
            if now <= was {
                let newest = all.pop().and_then(|mut raws| raws.pop());
                *all = vec![newest.into_iter().collect()];
            }
            if pushed {
                let raw = raw(is).ok_or_else(|| format!("{is:?} is not stored"))?;
                all.push(vec![raw]);
            }
        }
        Ok(())
    }

    /// The version that a crash has left, and whether it is torn: the halves are of two versions.
    pub(in crate::conformance) fn version(&self, is: I, found: Raw) -> Option<(usize, bool)> {
        let versions = self.of(is);
        let has = |raws: &Vec<Raw>| raws.contains(&found);
        let anything = |raws: &Vec<Raw>| raws.is_empty();
        let known = versions.iter().rposition(has);
        if let Some(at) = known.or_else(|| versions.iter().rposition(anything)) {
            return Some((at, false));
        }
        let may_be = (0..2).all(|half| self.allows(is, half, found[half]));
        may_be.then_some((0, true))
    }

    /// Compares a medium with the mirror: of each of these words, all that a crash may leave now must
    /// be what the mirror may leave. `halves` tells where a word is.
    ///
    /// # Errors
    /// The first word that is not. Also tells whether the mirror has one version of it only.
    pub(in crate::conformance) fn check_medium(
        &self,
        device: &MemPm,
        meant: impl Iterator<Item = I>,
        halves: impl Fn(I) -> Option<[Option<u64>; 2]>,
    ) -> Result<(), (String, Option<I>)> {
        let most = device.outcomes().into_iter().max().unwrap_or(1);
        let images: Vec<PmImage> = (0..most).map(|n| device.crash(&mut |_| n)).collect();
        for is in meant {
            let known = halves(is).into_iter().flatten().enumerate();
            for (half, offset) in known.filter_map(|(half, at)| Some((half, at?))) {
                let mut left = images.iter().map(|image| word(image, offset));
                if let Some(found) = left.find(|found| !self.allows(is, half, *found)) {
                    let why = format!(
                        "a crash may leave {found:#x} in {is:?}, and in the mirror {:x?}",
                        self.of(is)
                    );
                    let alone = self.of(is).len() == 1;
                    return Err((why, alone.then_some(is)));
                }
            }
        }
        Ok(())
    }

    /// Whether a crash may leave this in one half of a word.
    pub(in crate::conformance) fn allows(&self, is: I, half: usize, found: u64) -> bool {
        let may_be = |raws: &Vec<Raw>| raws.is_empty() || raws.iter().any(|raw| raw[half] == found);
        self.of(is).iter().any(may_be)
    }
}
