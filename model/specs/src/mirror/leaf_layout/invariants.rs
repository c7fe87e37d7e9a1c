//! The invariants, by the names of the spec.

use super::LeafLayout;
use super::pages::Remedy;
use super::room::N;
use super::state::{ABSENT, CUT, Call, Content, Is, Layout, Leaf, PENDING, Phase, State};

type Invariant = fn(&LeafLayout, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 18] = [
    ("TypeInv", LeafLayout::type_inv),
    ("AckInv", ack_inv),
    ("WalRuleInv", LeafLayout::wal_rule_inv),
    ("LayoutInv", LeafLayout::layout_inv),
    ("FitInv", LeafLayout::fit_inv),
    ("MemoryInv", LeafLayout::memory_inv),
    ("RedoStartInv", LeafLayout::redo_start_inv),
    ("RecoverInv", LeafLayout::recover_inv),
    ("RepeatedInv", LeafLayout::repeated_inv),
    ("DamagedInv", damaged_inv),
    ("RemedyInv", LeafLayout::remedy_inv),
    ("ThrashInv", LeafLayout::thrash_inv),
    ("ReachBack", reach_back),
    ("ReachFew", LeafLayout::reach_few),
    ("ReachDenseSplit", reach_dense_split),
    ("ReachDenseMiddle", reach_dense_middle),
    ("ReachPartition", LeafLayout::reach_partition),
    ("ReachOtherOptions", reach_other_options),
];

fn ack_inv(_: &LeafLayout, s: &State) -> bool {
    let waits = |n: N| {
        let mut calls = s.call.iter();
        calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
    };
    let mut records = s.first(s.log_len);
    records.all(|(n, record)| n <= s.durable || record.is != Is::Put || waits(n))
}

fn damaged_inv(_: &LeafLayout, s: &State) -> bool {
    s.phase != Phase::Damaged
}

impl LeafLayout {
    fn all_pages(&self) -> impl Iterator<Item = u8> + Clone + use<> {
        1..=self.pages
    }

    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents and the order of LSNs.
    fn type_inv(&self, s: &State) -> bool {
        let content = |value: Content| value <= self.values;
        let stored = |leaf: &Leaf| leaf.map.iter().all(|v| content(*v) || *v == CUT);
        let called = |call: &Call| match *call {
            Call::Idle => true,
            Call::Get { got, .. } => content(got) || got == PENDING,
            Call::Write { value, .. } => content(value),
        };
        s.redo_start <= s.durable
            && s.durable <= s.log_len
            && s.call.iter().all(called)
            && s.leaf.iter().all(stored)
    }

    fn wal_rule_inv(&self, s: &State) -> bool {
        let mut images = self.all_pages().flat_map(|p| s.images(p));
        images.all(|image| image.lsn <= s.durable)
    }

    fn layout_inv(&self, s: &State) -> bool {
        self.all_pages().all(|p| {
            let mut images = s.images(p).iter().chain([s.page(p)]);
            images.all(|image| !image.is_there() || image.layout == s.layout_at(p, image.lsn))
        })
    }

    fn fit_inv(&self, s: &State) -> bool {
        let in_place = |leaf: &Leaf| {
            let mut records = self.keys.iter().zip(leaf.map.iter().copied());
            records.all(|(key, value)| {
                let fits = || self.length(value) == leaf.len && self.has_place(leaf, *key);
                value == ABSENT || fits()
            })
        };
        s.leaf.iter().all(|leaf| match leaf.layout {
            Layout::General | Layout::Other => {
                self.fits_general(leaf.layout, &leaf.map, leaf.fences())
            }
            Layout::Dense if self.sizes.is_semi() => {
                self.has_room_in_semi(&leaf.map, leaf.fences())
            }
            Layout::Dense => in_place(leaf),
            Layout::None | Layout::Lost => true,
        })
    }

    /// Whether a page has what the log's first `n` records say of a key, which it must cover.
    fn has_at(&self, s: &State, page: &Leaf, (k, key): (usize, N), n: N) -> bool {
        page.covers(key) && page.map[k] == s.value_at(key, n)
    }

    fn memory_inv(&self, s: &State) -> bool {
        let mut keys = self.keys.iter().copied().enumerate();
        !s.is_up()
            || keys.all(|(k, key)| {
                let page = s.page(s.owner(key, s.log_len));
                self.has_at(s, page, (k, key), s.log_len)
            })
    }

    fn redo_start_inv(&self, s: &State) -> bool {
        self.all_pages().all(|p| {
            let mut images = s.images(p).iter();
            let has_all = images.all(|image| {
                let mut before = s.first(s.redo_start);
                before.all(|(n, record)| n <= image.lsn || !record.names(p))
            });
            has_all || s.has_ended(p)
        })
    }

    /// `RedoneFrom`, from the redo start up to record `n`.
    fn redone_up_to(&self, s: &State, p: u8, image: &Leaf, n: N) -> Leaf {
        (s.redo_start + 1..=n).fold(*image, |page, n| self.redone(s, p, &page, n))
    }

    fn recover_inv(&self, s: &State) -> bool {
        (s.durable..=s.log_len).all(|n| {
            let owners: Vec<u8> = self.keys.iter().map(|key| s.owner(*key, n)).collect();
            self.all_pages().all(|p| {
                let keys = self.keys.iter().copied().enumerate();
                let mut mine = keys.filter(|(k, _)| owners[*k] == p).peekable();
                if mine.peek().is_none() {
                    return true;
                }
                s.images(p).iter().all(|image| {
                    let page = self.redone_up_to(s, p, image, n);
                    mine.clone().all(|key| self.has_at(s, &page, key, n))
                })
            })
        })
    }

    fn repeated_inv(&self, s: &State) -> bool {
        (s.durable..=s.log_len).all(|n| {
            self.all_pages().all(|p| {
                let layout = s.layout_at(p, n);
                let mut images = s.images(p).iter();
                layout == Layout::None
                    || images.all(|image| self.redone_up_to(s, p, image, n).layout == layout)
            })
        })
    }

    /// Whether `holds` of all pages, keys and values of each length that a page refuses
    /// (`Refusals`).
    fn of_refusals(&self, s: &State, holds: impl Fn(&Leaf, N, Content) -> bool) -> bool {
        let values = || (1..=self.values).map(|value| (value, self.length(value)));
        let first = |len: N| values().find(|(_, other)| *other == len);
        let samples = values().filter(|(value, len)| first(*len) == Some((*value, *len)));
        let samples: Vec<Content> = samples.map(|(value, _)| value).collect();
        !s.is_up()
            || self.all_pages().all(|p| {
                let leaf = s.page(p);
                let mut keys = self.keys.iter().filter(|key| leaf.covers(**key));
                keys.all(|key| {
                    let mut refused = samples.iter().filter(|v| !self.takes(leaf, *key, **v));
                    refused.all(|value| holds(leaf, *key, *value))
                })
            })
    }

    fn remedy_inv(&self, s: &State) -> bool {
        self.of_refusals(s, |leaf, key, value| {
            match self.remedy(s.allows, leaf, key, value) {
                Remedy::Relayout(layout) => self.fits(layout, &leaf.map, leaf.fences()),
                Remedy::Split(at, layout) => {
                    let (below, from) = self.sides(&leaf.map, at);
                    let fences = (leaf.lower, at);
                    let left = || match leaf.layout {
                        Layout::Dense if self.sizes.is_semi() => {
                            self.has_room_in_semi(&below, fences)
                        }
                        Layout::Dense => true,
                        layout => self.fits_general(layout, &below, fences),
                    };
                    leaf.lower < at
                        && at < leaf.upper
                        && self.fits(layout, &from, (at, leaf.upper))
                        && left()
                }
            }
        })
    }

    fn thrash_inv(&self, s: &State) -> bool {
        self.of_refusals(s, |leaf, key, value| {
            let Remedy::Relayout(layout) = self.remedy(s.allows, leaf, key, value) else {
                return true;
            };
            let after = self.relaid(leaf, layout);
            let next = self.remedy(s.allows, &after, key, value);
            self.takes(&after, key, value) || matches!(next, Remedy::Split(..))
        })
    }

    fn reach_few(&self, s: &State) -> bool {
        let converts = |call: &Call| {
            let Call::Write { key, value, lsn: 0 } = *call else {
                return false;
            };
            let key = self.keys[usize::from(key)];
            let leaf = s.page(s.owner(key, s.log_len));
            let relaid = || {
                let remedy = self.remedy(s.allows, leaf, key, value);
                matches!(remedy, Remedy::Relayout(_))
            };
            let dense = leaf.layout == Layout::Dense && !self.takes(leaf, key, value);
            dense && !self.has_place(leaf, key) && relaid()
        };
        !s.is_up() || !s.call.iter().any(converts)
    }

    fn reach_partition(&self, s: &State) -> bool {
        splits(s).all(|(n, record)| {
            let k = self.keys.iter().position(|key| *key == record.key);
            let moves = k.is_some_and(|k| record.map[k] != ABSENT);
            !s.layout_at(record.page, n).is_general() || moves
        })
    }
}

fn splits(s: &State) -> impl Iterator<Item = (N, &super::Record)> {
    s.first(s.log_len)
        .filter(|(_, record)| record.is == Is::Split)
}

fn relayouts(s: &State, layout: Layout) -> impl Iterator<Item = N> {
    let to = move |r: &super::Record| r.is == Is::Relayout && r.layout == layout;
    let all = s.first(s.log_len);
    all.filter(move |(_, record)| to(record)).map(|(n, _)| n)
}

fn reach_back(_: &LeafLayout, s: &State) -> bool {
    relayouts(s, Layout::General).next().is_none()
}

fn reach_dense_split(_: &LeafLayout, s: &State) -> bool {
    splits(s).all(|(n, record)| {
        let empty = record.layout == Layout::General && super::state::count(&record.map) == 0;
        !empty || s.layout_at(record.page, n) != Layout::Dense
    })
}

fn reach_dense_middle(_: &LeafLayout, s: &State) -> bool {
    splits(s).all(|(_, record)| record.layout != Layout::Dense)
}

fn reach_other_options(_: &LeafLayout, s: &State) -> bool {
    let redone = |n: N| s.redo_start < n && n <= s.redone;
    s.is_up() || s.allows || !relayouts(s, Layout::Dense).any(redone)
}
