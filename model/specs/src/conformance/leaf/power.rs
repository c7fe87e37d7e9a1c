//! The medium: what a crash may leave of it at any time, what it has left, and what recovery makes
//! of that.

use std::collections::{BTreeMap, BTreeSet};

use treering_engine::device::{MemPm, PmImage};

use super::judge::{Judge, chunk_number, slots_of_leaf};
use super::words::offset;
use crate::conformance::led::holds;
use crate::conformance::persistent::words::{Layout, Raw, Use, word};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::leaf_buffering::look::Is;
use crate::mirror::wide::leaf_buffering::{Action, Phase};

impl Judge {
    /// The leaf that has a number.
    fn leaf_of(&self, number: u8) -> Option<u64> {
        let leaf = self.leaves.iter().find(|(_, n)| **n == number);
        leaf.map(|(leaf, _)| *leaf)
    }

    /// A word on a medium.
    pub(super) fn on(&self, image: &PmImage, is: Is) -> Option<Raw> {
        let halves = offset(&self.layout, is, |number| self.leaf_of(number))?;
        Some(halves.map(|half| half.map_or(0, |offset| word(image, offset))))
    }

    /// Whether a word means something: its leaf is in the list, or its chunk is a log's.
    fn is_meant(&self, is: Is, listed: &BTreeSet<u8>) -> bool {
        match is {
            Is::First => true,
            Is::Chunk(chunk) => chunk <= self.layout.chunks,
            Is::Header(l) | Is::Stamp(l) | Is::Slot(l, _) => listed.contains(&l),
            Is::Kv(chunk, _) | Is::Time(chunk, _) => {
                self.uses.get(usize::from(chunk) - 1) == Some(&Use::Log)
            }
        }
    }

    /// Compares the medium with the mirror, see `Words::check_medium`.
    pub(super) fn check_medium(&self, device: &MemPm) -> Accepted {
        let children = self.state.inner().children();
        let listed: BTreeSet<u8> = children.into_iter().map(|(leaf, _)| leaf).collect();
        let meant = Is::all().filter(|is| self.is_meant(*is, &listed));
        let halves = |is| offset(&self.layout, is, |number| self.leaf_of(number));
        let checked = self.words.check_medium(device, meant, halves);
        checked.or_else(|(why, durable)| match durable {
            // In the spec, the word is durable. Its addresses begin with 1.
            Some(is) => self.notes.claim(Err(why), || {
                holds(&format!("Len(pm[{}]) > 1", is.address() + 1))
            }),
            None => Err(why),
        })
    }

    /// The leaves of a medium, in order of the list.
    fn list(&self, image: &PmImage) -> Result<Vec<u64>, String> {
        let mut leaves = vec![self.layout.first_leaf()];
        loop {
            let last = leaves.last().copied().unwrap_or_default();
            match word(image, Layout::leaf(last)) >> (2 * slots_of_leaf()) {
                0 => return Ok(leaves),
                _ if leaves.len() > self.leaves.len() => {
                    return Err("the list of leaves has no end".into());
                }
                next => {
                    self.leaf(next)?;
                    leaves.push(next);
                }
            }
        }
    }

    /// The power has failed: each word settles to what is on the medium.
    pub(super) fn crashed(&mut self, image: &PmImage) -> Accepted {
        self.end();
        if self.state.phase() != Phase::Failing {
            self.take(Action::Crash, &[])?;
        }
        self.uses = self.layout.uses(image);
        let listed = self.list(image)?;
        let listed: Result<BTreeSet<u8>, String> =
            listed.into_iter().map(|leaf| self.leaf(leaf)).collect();
        let listed = listed?;
        let mut torn = BTreeSet::new();
        for is in Is::all() {
            let meant = self.is_meant(is, &listed);
            let found = self.on(image, is);
            let version = found.and_then(|found| self.words.version(is, found));
            if meant && version.is_none() {
                return Err(format!(
                    "the crash has left {found:x?} in {is:?}, and in the mirror {:x?}",
                    self.words.of(is)
                ));
            }
            let (version, is_torn) = version.unwrap_or((0, false));
            if is_torn {
                torn.insert(is);
                self.notes.tally.took("(Torn)");
            }
            if self.state.next_dirty() == Some(is.address()) {
                self.take(Action::Settle(version as u8), &[])?;
            }
            if let Some(found) = found {
                self.words.set(is, found);
            }
        }
        for leaf in &listed {
            for (slot, _) in self.mirror.leaf_records(&self.state, *leaf) {
                if torn.contains(&Is::Slot(*leaf, slot)) {
                    return Err(format!("slot {slot} of leaf {leaf} is torn and in use"));
                }
            }
        }
        self.leaves.retain(|_, number| listed.contains(number));
        Ok(())
    }

    /// The process has ended, and this is what the caches hold. Stores that were announced and not
    /// made are not there. Neither is the timestamp of a leaf's last flush, which the engine stores
    /// with the next one.
    pub(super) fn killed(&mut self, image: &PmImage) -> Accepted {
        self.end();
        if matches!(self.state.phase(), Phase::Failing | Phase::Killed) {
            // Recovery had not begun.
            return Ok(());
        }
        let children = self.state.inner().children();
        let listed: BTreeSet<u8> = children.into_iter().map(|(leaf, _)| leaf).collect();
        for is in Is::all() {
            let Some(found) = self.on(image, is) else {
                continue;
            };
            if self.words.last(is) == found || !self.is_meant(is, &listed) {
                continue;
            }
            let version = self.words.version(is, found);
            let (version, _) = version.ok_or_else(|| {
                format!(
                    "{is:?} has {found:x?}, and in the mirror {:x?}",
                    self.words.of(is)
                )
            })?;
            if self
                .mirror
                .goes_back(&mut self.state, (is.address(), version))
            {
                let what = if matches!(is, Is::Stamp(_)) {
                    "(StampLags)"
                } else {
                    "(NotStored)"
                };
                self.notes.tally.took(what);
            }
            self.words.goes_back(is, version, found);
        }
        self.take(Action::Kill, &[])
    }

    /// Recovery has read the leaves. After a kill it has made them durable. What it reads of the
    /// logs need not be: it replays it.
    pub(super) fn recovers(&mut self, leaves: &[(u64, Option<Vec<u8>>)]) -> Accepted {
        let mut logged = BTreeMap::new();
        while self.state.phase() == Phase::Killed {
            let Some(dirty) = self.state.next_dirty() else {
                break;
            };
            let is = Is::all().nth(dirty).ok_or("there is no such word")?;
            if matches!(is, Is::Kv(..) | Is::Time(..)) {
                logged.insert(is, self.words.of(is).to_vec());
            }
            self.take(Action::WriteBack, &[])?;
        }
        for (is, raws) in logged {
            self.words.keeps(is, raws);
        }
        self.take(Action::Restart, &[])?;
        let told = leaves.iter().map(|(leaf, smallest)| {
            let low = match smallest {
                Some(key) if self.leaf(*leaf)? != 1 => *key.last().ok_or("a key of no bytes")?,
                _ => 0,
            };
            Ok::<_, String>((self.leaf(*leaf)?, low))
        });
        let told = told.collect::<Result<Vec<_>, String>>()?;
        same("the leaves", told, self.state.inner().children())?;
        let listed: BTreeSet<u8> = self.state.inner().children().iter().map(|c| c.0).collect();
        self.leaves.retain(|_, number| listed.contains(number));
        Ok(())
    }

    /// Whether a word of a log is in doubt on a medium.
    pub(super) fn doubts_log(&self, device: &MemPm) -> bool {
        let in_doubt: BTreeSet<u64> = device.in_doubt().into_iter().map(|(at, _)| at).collect();
        let logs = (0..u32::from(self.layout.chunks)).map(chunk_number);
        logs.flat_map(|chunk| {
            Is::all().filter(move |is| matches!(is, Is::Kv(c, _) | Is::Time(c, _) if *c == chunk))
        })
        .filter_map(|is| offset(&self.layout, is, |_| None))
        .any(|halves| {
            halves
                .into_iter()
                .flatten()
                .any(|at| in_doubt.contains(&at))
        })
    }
}
