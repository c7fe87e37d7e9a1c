//! The medium: what a crash may leave of it at any time, what it has left, and what recovery makes
//! of that.

use std::collections::{BTreeMap, BTreeSet};

use treering_engine::device::{MemPm, PmImage};
use treering_engine::pm_events::lodge::LodgeNode;

use super::judge::{Judge, MANY_SLOTS};
use super::words::{header_of, offset};
use crate::conformance::led::holds;
use crate::conformance::persistent::words::{FLOOR, Layout, Raw, Use, word};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::surrogate_buffer::Action;
use crate::mirror::wide::surrogate_buffer::look::Is;

impl Judge {
    /// The leaf that has a number.
    fn leaf_of(&self, number: u8) -> Option<u64> {
        let leaf = self.leaves.iter().find(|(_, n)| **n == number);
        leaf.map(|(leaf, _)| *leaf)
    }

    fn halves(&self, is: Is) -> Option<[Option<u64>; 2]> {
        offset((&self.layout, &self.logs), is, |number| {
            self.leaf_of(number)
        })
    }

    /// A word on a medium.
    pub(super) fn on(&self, image: &PmImage, is: Is) -> Option<Raw> {
        let halves = self.halves(is)?;
        Some(halves.map(|half| half.map_or(0, |offset| word(image, offset))))
    }

    /// The log floor on a medium.
    pub(super) fn floor_on(&self, image: &PmImage) -> u64 {
        word(image, FLOOR) >> 16
    }

    /// The words that mean something: of leaves that can be found, and of chunks that are logs'.
    fn meant(&self, listed: &[u8]) -> Vec<Is> {
        let is_meant = |is: &Is| match is {
            Is::Header(l) | Is::Low(l) | Is::Next(l, _) | Is::Slot(l, _) => listed.contains(l),
            Is::Pair(log, _) | Is::Meta(log, _) => {
                self.uses.get(self.logs.chunk(*log)) == Some(&Use::Log)
            }
        };
        Is::all().filter(is_meant).collect()
    }

    /// Compares the medium with the mirror, see `Words::check_medium`.
    pub(super) fn check_medium(&self, device: &MemPm) -> Accepted {
        let meant = self.meant(&self.state.listed()).into_iter();
        let checked = self.words.check_medium(device, meant, |is| self.halves(is));
        checked.or_else(|(why, durable)| match durable {
            // In the spec, the word is durable.
            Some(is) => self.notes.claim(Err(why), || {
                let word = match is {
                    Is::Header(l) => format!("leaf[{l}][Header]"),
                    Is::Low(l) => format!("leaf[{l}][Low]"),
                    Is::Next(l, n) => format!("leaf[{l}][Sibling({n})]"),
                    Is::Slot(l, i) => format!("leaf[{l}][Slot({})]", i + 1),
                    Is::Pair(log, at) => format!("log[{}][{}].pair", log + 1, at + 1),
                    Is::Meta(log, at) => format!("log[{}][{}].meta", log + 1, at + 1),
                };
                holds(&format!("Len({word}) > 1"))
            }),
            None => Err(why),
        })
    }

    /// `RecoverableInv` for some of the outcomes of a crash: the oldest version of each word, the
    /// newest ones of leaves, and two mixtures. Of an entry in doubt the oldest.
    pub(super) fn check_recovery(&self) -> Accepted {
        let in_leaf = |is: Is| !matches!(is, Is::Pair(..) | Is::Meta(..));
        let newest = |is: Is| self.state.count(is) - 1;
        let mixtures: [&dyn Fn(Is) -> usize; 4] = [
            &|_| 0,
            &|is| if in_leaf(is) { newest(is) } else { 0 },
            &|is| {
                if in_leaf(is) {
                    is.address() % (newest(is) + 1)
                } else {
                    0
                }
            },
            &|is| {
                if in_leaf(is) {
                    (is.address() + 1) % (newest(is) + 1)
                } else {
                    0
                }
            },
        ];
        for version in mixtures {
            if !self.mirror.recovers_from(&self.state, version) {
                return Err("RecoverableInv does not hold after it".into());
            }
        }
        Ok(())
    }

    /// The leaves of a medium, in order of the chain.
    fn chain(&self, image: &PmImage) -> Result<Vec<u8>, String> {
        let mut at = self.layout.first_leaf();
        let mut chain = Vec::new();
        while at != 0 {
            if chain.len() > self.leaves.len() {
                return Err("the chain of leaves has no end".into());
            }
            chain.push(self.leaf(at)?);
            let offset = Layout::leaf(at);
            let (_, use_n, _) = header_of(word(image, offset));
            at = word(image, offset + 16 + 8 * u64::from(use_n));
        }
        Ok(chain)
    }

    /// What the directory and the log floor say.
    fn reads_uses(&mut self, image: &PmImage) -> Result<u64, String> {
        let floor = self.floor_on(image);
        if floor != self.floor.0 && Some(floor) != self.floor.1 {
            let (was, rises) = self.floor;
            return Err(format!(
                "the log floor is {floor}: it was {was}, rising to {rises:?}"
            ));
        }
        self.uses = self.layout.uses(image);
        Ok(floor)
    }

    /// What the directory and the log floor say is durable.
    fn settles_uses(&mut self, floor: u64) {
        self.floor = (floor, None);
        for chunk in 0..self.uses.len() {
            if self.uses[chunk] != Use::Log {
                self.forget_log(chunk);
            }
        }
    }

    /// The power has failed: each word becomes what is on the medium.
    pub(super) fn crashed(&mut self, image: &PmImage) -> Accepted {
        self.end();
        let floor = self.reads_uses(image)?;
        self.settles_uses(floor);
        for c in self.mirror.in_order(&self.state, self.clients) {
            let Some((log, at)) = self.mirror.entry_of(&self.state, c) else {
                continue;
            };
            let is_last = |is| self.on(image, is) == Some(self.words.last(is));
            let survives = is_last(Is::Pair(log, at)) && is_last(Is::Meta(log, at));
            if self.mirror.is_appended(&self.state, c) && survives {
                self.writes_back(c)?;
            }
        }
        let listed = self.chain(image)?;
        let mut versions = BTreeMap::new();
        let mut torn = BTreeSet::new();
        for is in self.meant(&listed) {
            let Some(found) = self.on(image, is) else {
                continue;
            };
            let version = self.words.version(is, found).ok_or_else(|| {
                format!(
                    "the crash has left {found:x?} in {is:?}, and in the mirror {:x?}",
                    self.words.of(is)
                )
            })?;
            if version.1 {
                torn.insert(is);
                self.notes.tally.took("(Torn)");
            }
            versions.insert(is, version.0);
        }
        for is in &torn {
            let Is::Pair(log, at) = *is else { continue };
            // No checksum fits a pair of which a half is of another.
            let (pairs, metas) = self.state.entry_versions(log, at);
            let meta = metas[versions[&Is::Meta(log, at)]].1;
            let other = pairs.iter().position(|pair| *pair != meta);
            versions.insert(*is, other.unwrap_or(0));
        }
        let before = self.state.clone();
        // The spec's recovery begins with one node of all leaves, however many there are.
        self.mirror.opens_with(MANY_SLOTS);
        let newest = |is: Is| before.count(is) - 1;
        self.mirror.crashes(&mut self.state, |is| {
            versions.get(&is).copied().unwrap_or(newest(is))
        });
        self.took(Action::Crash(0, 0), (true, &before), &[])?;
        self.killed = false;
        self.leaves.retain(|_, number| listed.contains(number));
        for is in Is::all() {
            let found = self.on(image, is).unwrap_or_default();
            self.words.settle(is, found);
        }
        for l in listed {
            let (bits, ..) = self.state.leaf_seen(l).header_parts();
            let in_use = |is: &&Is| matches!(is, Is::Slot(of, i) if *of == l && bits >> i & 1 == 1);
            if let Some(is) = torn.iter().find(in_use) {
                return Err(format!("{is:?} is torn and in use"));
            }
        }
        Ok(())
    }

    /// The process has ended, and this is what the caches hold. Stores that were announced and not
    /// made are not there. The mirror restarts when recovery has made durable what it reads, and
    /// until then a power cut is one of the life before.
    pub(super) fn was_killed(&mut self, image: &PmImage) -> Accepted {
        self.end();
        let floor = self.reads_uses(image)?;
        // Until recovery has made it durable, a power cut may leave the one before.
        self.floor.1 = (floor != self.floor.0).then_some(floor);
        let listed = self.state.listed();
        let entry_of = |c: u8| Some((self.mirror.entry_of(&self.state, c)?, c));
        let in_flight: BTreeMap<_, u8> = (0..self.clients).filter_map(entry_of).collect();
        for is in self.meant(&listed) {
            let Some(found) = self.on(image, is) else {
                continue;
            };
            // Of a word that may be anything, nothing was stored.
            let anything = self.words.of(is).last().is_none_or(Vec::is_empty);
            if self.words.last(is) == found || anything {
                continue;
            }
            let version = self.words.version(is, found);
            let (version, _) = version.ok_or_else(|| {
                format!(
                    "{is:?} has {found:x?}, and in the mirror {:x?}",
                    self.words.of(is)
                )
            })?;
            if self.mirror.goes_back(&mut self.state, is, version) {
                self.notes.tally.took("(NotStored)");
                // Two entries that delete a key may have the same pair, and have different numbers.
                if let Is::Meta(log, at) = is
                    && let Some(c) = in_flight.get(&(log, at))
                {
                    self.mirror.forgets_write(&mut self.state, *c);
                }
            }
            self.words.goes_back(is, version, found);
        }
        self.killed = true;
        Ok(())
    }

    /// Recovery has read leaves and logs, and made them durable; and it has built nodes.
    pub(super) fn recovers(&mut self, nodes: &[LodgeNode]) -> Accepted {
        if self.killed {
            self.settles_uses(self.floor.1.unwrap_or(self.floor.0));
            for c in self.mirror.in_order(&self.state, self.clients) {
                if self.mirror.is_appended(&self.state, c) {
                    self.writes_back(c)?;
                }
            }
            let before = self.state.clone();
            self.mirror.opens_with(MANY_SLOTS);
            self.mirror.restarts(&mut self.state);
            self.took(Action::Restart, (true, &before), &[])?;
            self.killed = false;
        }
        Is::all().for_each(|is| self.words.fenced(is));
        let mut told = Vec::new();
        for leaf in nodes.iter().flat_map(|node| &node.leaves) {
            told.push((self.leaf(leaf.leaf)?, self.low(&leaf.low)?));
        }
        let [all] = self.state.all_nodes() else {
            return Err("recovery has begun before".into());
        };
        let known = all.leaves();
        same("the leaves", &told, &known)?;
        self.leaves
            .retain(|_, l| known.iter().any(|(of, _)| of == l));
        for (n, node) in nodes[..nodes.len() - 1].iter().enumerate() {
            let count = node.leaves.len();
            if count == 0 {
                return Err("a node without leaves".into());
            }
            self.mirror.splits_node(&mut self.state, n, count);
            self.notes.tally.took("(NodesBuilt)");
        }
        self.mirror.opens_with(self.slots);
        nodes.iter().try_for_each(|node| self.same_node(node))?;
        self.passes_over()
    }

    /// Entries below the log floor are not replayed: later ones of their keys are, or their leaves
    /// have them.
    fn passes_over(&mut self) -> Accepted {
        for (at, number, key) in self.mirror.replayable(&self.state) {
            if u64::from(number) >= self.floor.0 {
                continue;
            }
            if !self.mirror.passes_over(&mut self.state, at) {
                return Err(format!(
                    "entry {number} of key {key} is below the log floor, and its leaf has it not"
                ));
            }
            self.notes.tally.took("(BelowFloor)");
        }
        Ok(())
    }

    pub(super) fn replays(&mut self, number: u64, node: &LodgeNode) -> Accepted {
        let all = self.mirror.replayable(&self.state);
        let entry = all.iter().find(|(_, of, _)| u64::from(*of) == number);
        let Some((at, ..)) = entry else {
            let why = format!("entry {number} is not to be replayed");
            return self.notes.claim(Err(why), || {
                holds(&format!("\\E at \\in ToReplay : NumberAt(at) = {number}"))
            });
        };
        let before = self.state.clone();
        let replayed = self.mirror.replays(&mut self.state, *at);
        let waits = self.notes.claim(replayed, || {
            let new = "\\E at \\in replayed' \\ replayed";
            format!("ReplayEntry /\\ {new} : NumberAt(at) = {number}")
        })?;
        if waits {
            self.notes.tally.took("(NoWait)");
        }
        let action = Action::ReplayEntry(at.0 as u8, at.1 as u8);
        self.took(action, (true, &before), &[])?;
        self.same_node(node)
    }
}
