//! The actions of `MiniTree`: calls, the descent, leaf split and leaf merge. Each returns `None` if
//! the spec's action is not enabled.

use super::MiniPage;
use super::bug::Bug;
use super::records::{ABSENT, Mini, NOBODY, Page, Record, half, present};
use super::state::{Call, NO_PAGE, State, Step};
use super::steps::{guard, slot};

/// Calls and the descent.
impl MiniPage {
    pub(super) fn ask(s: &State, c: u8, call: Call) -> Option<State> {
        guard(s.client(c).step == Step::Idle)?;
        let mut next = *s;
        next.client_mut(c).call = call;
        next.go(c, Step::Descend);
        Some(next)
    }

    pub(super) fn answer_taken(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Answered)?;
        let mut next = *s;
        next.client_mut(c).call = Call::Idle;
        next.go(c, Step::Idle);
        Some(next)
    }

    pub(super) fn read_version(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Descend && s.inner_lock == NOBODY)?;
        let mut next = *s;
        next.go(c, Step::Version);
        Some(next)
    }

    pub(super) fn read_child(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Version)?;
        guard(self.bug != Bug::AsPublishedEarlyValidation || s.is_current(c))?;
        let mut next = *s;
        next.client_mut(c).at = s.child(s.client(c).call.target());
        next.go(c, Step::Child);
        Some(next)
    }

    pub(super) fn validates(&self, s: &State, c: u8) -> bool {
        s.is_current(c)
            || match self.bug {
                Bug::AsPublishedEarlyValidation => true,
                Bug::ScanTrustsNeighbour => {
                    matches!(s.client(c).call, Call::Scan { cursor: 2.., .. })
                }
                _ => false,
            }
    }

    pub(super) fn lock_page(&self, s: &State, c: u8) -> Option<State> {
        let client = s.client(c);
        guard(client.step == Step::Child && self.validates(s, c))?;
        let page = s.page(client.at);
        guard(page.writer == NOBODY)?;
        let mut next = *s;
        let step = match client.call {
            Call::Write { .. } => {
                guard(page.readers == 0)?;
                next.page_mut(client.at).writer = c;
                Step::Write
            }
            ref read => {
                next.page_mut(client.at).readers |= 1 << c;
                match read {
                    Call::Get { .. } => Step::Get,
                    _ => Step::Scan,
                }
            }
        };
        next.go(c, step);
        next.outdated &= !(1 << c);
        Some(next)
    }

    pub(super) fn restart(&self, s: &State, c: u8) -> Option<State> {
        let early = self.bug == Bug::AsPublishedEarlyValidation;
        match s.client(c).step {
            Step::Child => guard(!self.validates(s, c))?,
            Step::Version => guard(early && !s.is_current(c))?,
            _ => return None,
        }
        let mut next = *s;
        next.go(c, Step::Descend);
        next.client_mut(c).at = NO_PAGE;
        next.outdated &= !(1 << c);
        Some(next)
    }
}

/// Leaf page split.
impl MiniPage {
    /// Whether the client's page has to be split (`WantsSplit`).
    pub(super) fn wants_split(&self, s: &State, c: u8) -> bool {
        s.client(c).step == Step::Full
            || (self.is_at_its_largest(s, c) && !s.page_of(c).fits(self.capacity, self.bug))
    }

    pub(super) fn lock_inner(&self, s: &State, c: u8) -> Option<State> {
        guard(s.inner_lock == NOBODY && self.wants_split(s, c))?;
        let mut next = *s;
        next.inner_lock = c;
        next.go(c, Step::Split);
        Some(next)
    }

    /// `SplitKeys`: whether the split key leaves something on both sides.
    pub(super) fn separates(&self, s: &State, c: u8, split: u8) -> bool {
        let page = s.page_of(c);
        let target = match s.client(c).call {
            Call::Write { key, .. } => key,
            _ => 0,
        };
        let merged = page.merged(self.bug);
        let evenly = self.bug == Bug::AsPublishedOneSplit && present(&merged) > 1;
        let held = |key: u8| {
            if evenly {
                return merged[usize::from(key) - 1] != ABSENT;
            }
            page.in_leaf(key) != ABSENT || page.mini.record(key).is_some() || key == target
        };
        let within = page.low < split && split < page.high;
        within && (1..split).any(held) && (split..=super::KEYS as u8).any(held)
    }

    pub(super) fn allocate_right(&self, s: &State, c: u8, split: u8) -> Option<State> {
        guard(s.client(c).step == Step::Split && self.separates(s, c, split))?;
        let unused = |p: &u8| s.page(*p).high == 0 && s.page(*p).is_free();
        let q = self.all_pages().find(unused)?;
        let left = s.page_of(c);
        let (whole, records) = match self.bug {
            Bug::AsPublishedOneSplit => (left.merged(self.bug), [Record::NONE; super::KEYS]),
            Bug::SplitLosesRightRecords => (left.leaf, [Record::NONE; super::KEYS]),
            _ => (left.leaf, left.mini.rec),
        };
        let mut next = *s;
        if self.bug == Bug::SeparatorFirst {
            next.inner[usize::from(split) - 1] = q;
            next.inner_lock = NOBODY;
        } else {
            let page = next.page_mut(q);
            (page.low, page.high) = (split, left.high);
            page.leaf = half(&whole, split, true, ABSENT);
            page.mini = (self.sizes).shrunk(half(&records, split, true, Record::NONE));
        }
        next.page_mut(q).writer = c;
        next.client_mut(c).right = q;
        next.go(c, Step::Divided);
        Some(next)
    }

    pub(super) fn shorten_left(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Divided)?;
        let split = s.page(s.client(c).right).low;
        slot(split)?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        if self.bug == Bug::AsPublishedOneSplit {
            page.leaf = page.merged(self.bug);
            page.mini = Mini::NONE;
        } else if self.bug != Bug::SplitKeepsRightRecords {
            let records = half(&page.mini.rec, split, false, Record::NONE);
            page.mini = self.sizes.shrunk(records);
        }
        if self.bug != Bug::StaleHighFence {
            page.high = split;
        }
        page.leaf = half(&page.leaf, split, false, ABSENT);
        next.go(c, Step::Shortened);
        Some(next)
    }

    pub(super) fn insert_separator(&self, s: &State, c: u8) -> Option<State> {
        let client = *s.client(c);
        guard(client.step == Step::Shortened)?;
        let mut next = *s;
        next.inner[slot(s.page(client.right).low)?] = client.right;
        next.inner_lock = NOBODY;
        next.outdate();
        if client.call == Call::Idle {
            next.leave_both(c, Step::Idle);
        } else if self.bug == Bug::AsPublishedInsertAfterMerge {
            next.release(c, client.right);
            next.client_mut(c).right = NO_PAGE;
            next.go(c, Step::Write);
        } else {
            next.leave_both(c, Step::Descend);
        }
        Some(next)
    }
}

/// Leaf merge.
impl MiniPage {
    pub(super) fn is_keeper(&self, s: &State, c: u8) -> bool {
        s.client(c).step == Step::Idle && self.keepers >> c & 1 == 1
    }

    pub(super) fn join_fits(&self, s: &State, p: u8, q: u8) -> bool {
        s.page(p).count_together() + s.page(q).count_together() <= self.capacity
    }

    pub(super) fn lock_left(&self, s: &State, c: u8, p: u8) -> Option<State> {
        guard(self.is_keeper(s, c))?;
        let page = s.page(p);
        guard((1..=self.keys).contains(&page.high) && page.is_free())?;
        guard(self.join_fits(s, p, s.child(page.high)))?;
        let mut next = *s;
        next.page_mut(p).writer = c;
        next.client_mut(c).at = p;
        next.go(c, Step::Left);
        Some(next)
    }

    pub(super) fn lock_right(&self, s: &State, c: u8) -> Option<State> {
        let inner_first = self.bug == Bug::InnerBeforeRight;
        let (before, after) = match inner_first {
            true => (Step::InnerFirst, Step::Join),
            false => (Step::Left, Step::Both),
        };
        guard(s.client(c).step == before)?;
        let q = s.child(s.page_of(c).high);
        guard(s.page(q).is_free())?;
        guard(!inner_first || self.join_fits(s, s.client(c).at, q))?;
        let mut next = *s;
        next.page_mut(q).writer = c;
        next.client_mut(c).right = q;
        next.go(c, after);
        Some(next)
    }

    pub(super) fn lock_inner_to_join(&self, s: &State, c: u8) -> Option<State> {
        let client = *s.client(c);
        let after = match self.bug {
            Bug::InnerBeforeRight => {
                guard(client.step == Step::Left)?;
                Step::InnerFirst
            }
            _ => {
                guard(client.step == Step::Both && self.join_fits(s, client.at, client.right))?;
                Step::Join
            }
        };
        guard(s.inner_lock == NOBODY)?;
        let mut next = *s;
        next.inner_lock = c;
        next.go(c, after);
        Some(next)
    }

    pub(super) fn give_up_join(&self, s: &State, c: u8) -> Option<State> {
        let client = s.client(c);
        guard(client.step == Step::Both && !self.join_fits(s, client.at, client.right))?;
        let mut next = *s;
        next.leave_both(c, Step::Idle);
        Some(next)
    }

    pub(super) fn move_records(&self, s: &State, c: u8) -> Option<State> {
        let client = s.client(c);
        guard(client.step == Step::Join)?;
        let right = s.page(client.right);
        let moved = match self.bug {
            Bug::JoinDropsDirty => right.leaf,
            _ => right.merged(self.bug),
        };
        let mut next = *s;
        let page = next.page_mut(client.at);
        let from = slot(right.low)?;
        page.leaf = page.merged(self.bug);
        page.leaf[from..].copy_from_slice(&moved[from..]);
        page.mini = Mini::NONE;
        page.high = right.high;
        next.go(c, Step::Joined);
        Some(next)
    }

    pub(super) fn remove_separator(&self, s: &State, c: u8) -> Option<State> {
        let client = *s.client(c);
        guard(client.step == Step::Joined)?;
        let mut next = *s;
        if self.bug != Bug::JoinLeavesSeparator {
            next.inner[slot(s.page(client.right).low)?] = NO_PAGE;
        }
        next.inner_lock = NOBODY;
        if self.bug != Bug::JoinKeepsVersion {
            next.outdate();
        }
        *next.page_mut(client.right) = Page::UNUSED;
        next.leave_both(c, Step::Idle);
        Some(next)
    }
}
