//! The invariants, by the names of the spec.

use super::constants::LeafBuffering;
use super::memory::{ABSENT, members, stamp_of};
use super::state::{At, Call, N, PENDING, Phase, Slot, State, WriteAt};

type Invariant = fn(&LeafBuffering, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 7] = [
    ("TypeInv", LeafBuffering::type_inv),
    ("KeptInv", LeafBuffering::kept_inv),
    ("LookupInv", LeafBuffering::lookup_inv),
    ("StampInv", LeafBuffering::stamp_inv),
    ("BitInv", LeafBuffering::bit_inv),
    ("ListInv", LeafBuffering::list_inv),
    ("NotGoneInv", LeafBuffering::not_gone_inv),
];

impl LeafBuffering {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents and counts.
    fn type_inv(&self, s: &State) -> bool {
        let content = |value: N| value <= self.values;
        let called = |call: &Call| match *call {
            Call::Idle => true,
            Call::Get { got, .. } => got == PENDING || content(got),
            Call::Write { value, .. } => content(value),
        };
        let (mut calls, mut buffers) = (s.call.iter(), s.buffer.iter());
        calls.all(called)
            && s.written.into_iter().all(content)
            && buffers.all(|b| {
                usize::from(b.count) <= self.batch && b.slots.iter().all(|slot| content(slot.value))
            })
    }

    /// Whether a write in progress puts `wanted` there.
    fn is_under_way(s: &State, wanted: u8, found: N) -> bool {
        s.call.iter().any(|call| {
            let Call::Write { key, value, at } = *call else {
                return false;
            };
            at == WriteAt::Begun && key == wanted && value == found
        })
    }

    pub(super) fn kept_inv(&self, s: &State) -> bool {
        let found = self.recovered(&s.medium());
        let mut keys = self.keys().zip(found.into_iter().zip(s.written));
        let failing = matches!(s.phase, Phase::Failing | Phase::Killed);
        keys.all(|(key, (found, written))| {
            found == written || failing && Self::is_under_way(s, key, found)
        })
    }

    /// For models without deletes.
    fn not_gone_inv(&self, s: &State) -> bool {
        let found = self.recovered(&s.medium());
        let mut both = s.written.into_iter().zip(found);
        both.all(|(written, found)| written == ABSENT || found != ABSENT)
    }

    fn lookup_inv(&self, s: &State) -> bool {
        if s.phase != Phase::Up {
            return true;
        }
        let m = s.visible();
        let mut keys = self.keys().zip(s.written);
        keys.all(|(key, written)| {
            s.is_latched(s.inner.route(key)) || self.lookup(s, &m, key) == written
        })
    }

    /// Whether a condition holds for every slot that is not in its leaf yet.
    fn all_waiting(s: &State, holds: impl Fn(u8, &Slot) -> bool) -> bool {
        let mut leaves = s.inner.all().iter().map(|child| child.leaf);
        s.phase != Phase::Up
            || leaves.all(|leaf| {
                let mut slots = s.buffer(leaf).waiting().iter();
                slots.all(|slot| holds(leaf, slot))
            })
    }

    fn stamp_inv(&self, s: &State) -> bool {
        let m = s.medium();
        Self::all_waiting(s, |leaf, slot| {
            let logged = self.last_logged(&m, &s.inner, slot.key);
            let mut stamps = s.pm[stamp_of(leaf)].all().iter();
            logged.is_some_and(|logged| stamps.all(|stamp| stamp.as_time() < logged))
        })
    }

    fn bit_inv(&self, s: &State) -> bool {
        let m = s.visible();
        Self::all_waiting(s, |leaf, slot| {
            let logged = self.last_logged(&m, &s.inner, slot.key);
            s.is_latched(leaf) || logged.is_some_and(|logged| logged.epoch % 2 == slot.bit)
        })
    }

    fn list_inv(&self, s: &State) -> bool {
        if s.phase != Phase::Up {
            return true;
        }
        let (m, all) = (s.medium(), s.inner.all());
        let placed = |leaf: u8| {
            let mut keys = members(self.keys_in(&m, leaf));
            s.is_latched(leaf) || keys.all(|key| s.inner.route(key as u8) == leaf)
        };
        let under_way = (s.job.iter()).any(|job| matches!(job.at, At::Link | At::Merged));
        all.is_sorted_by(|a, b| a.low < b.low)
            && all.iter().all(|child| placed(child.leaf))
            && (under_way || self.list(&m) == s.inner)
    }
}
