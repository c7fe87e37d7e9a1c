//! The actions of `MiniTree` and `MiniPage`, in their order. Each is `None` where the spec's is not enabled.

use super::records::{ABSENT, Mini, Page, Record, half, present};
use super::{Action, Bug, Call, MiniPage, NO_PAGE, NOBODY, State, Step};

impl State {
    fn go(&mut self, c: u8, step: Step) {
        self.client_mut(c).step = step;
    }

    /// `Released`.
    fn release(&mut self, c: u8, p: u8) {
        let page = self.page_mut(p);
        if page.writer == c {
            page.writer = NOBODY;
        }
        page.readers &= !(1 << c);
    }

    /// `Leave`.
    fn leave(&mut self, c: u8, step: Step) {
        self.release(c, self.client(c).at);
        self.client_mut(c).at = NO_PAGE;
        self.go(c, step);
    }

    /// Lets go of both pages of a split or join.
    fn leave_both(&mut self, c: u8, step: Step) {
        let client = *self.client(c);
        self.page_mut(client.at).writer = NOBODY;
        self.page_mut(client.right).writer = NOBODY;
        let client = self.client_mut(c);
        (client.at, client.right, client.step) = (NO_PAGE, NO_PAGE, step);
    }

    /// The inner node has changed: everybody `OnTheWay` has to begin again.
    fn outdate(&mut self) {
        for (c, client) in self.client.iter().enumerate() {
            self.outdated |= u8::from(matches!(client.step, Step::Version | Step::Child)) << c;
        }
    }

    fn is_current(&self, c: u8) -> bool {
        self.outdated >> c & 1 == 0 && self.inner_lock == NOBODY
    }
}

impl MiniPage {
    /// The state after an action.
    pub(super) fn step(&self, s: &State, action: Action) -> Option<State> {
        match action {
            Action::Call(c, call) => Self::ask(s, c, call),
            Action::Return(c) => Self::answer_taken(s, c),
            Action::ReadVersion(c) => Self::read_version(s, c),
            Action::ReadChild(c) => self.read_child(s, c),
            Action::LockPage(c) => self.lock_page(s, c),
            Action::Restart(c) => self.restart(s, c),
            Action::ReadMini(c) => self.read_mini(s, c),
            Action::ReadLeaf(c) => self.read_leaf(s, c),
            Action::Decline(c) => Self::decline(s, c),
            Action::Upgrade(c) => self.upgrade(s, c),
            Action::Promote(c) => Self::promote(s, c),
            Action::WriteRecord(c) => self.write_record(s, c),
            Action::Grow(c) => self.grow(s, c),
            Action::MergeToMirror(c) => self.merge_to_mirror(s, c),
            Action::EvictMirror(c) => self.evict_mirror(s, c),
            Action::ScanPage(c) => self.scan_page(s, c),
            Action::GrowToMirror(c) => self.grow_to_mirror(s, c),
            Action::LockInner(c) => self.lock_inner(s, c),
            Action::AllocateRight(c, split) => self.allocate_right(s, c, split),
            Action::ShortenLeft(c) => self.shorten_left(s, c),
            Action::InsertSeparator(c) => self.insert_separator(s, c),
            Action::LockLeft(c, p) => self.lock_left(s, c, p),
            Action::LockRight(c) => self.lock_right(s, c),
            Action::LockInnerToJoin(c) => self.lock_inner_to_join(s, c),
            Action::GiveUpJoin(c) => self.give_up_join(s, c),
            Action::MoveRecords(c) => self.move_records(s, c),
            Action::RemoveSeparator(c) => self.remove_separator(s, c),
            Action::FindLeafFull(c, p) => self.find_leaf_full(s, c, p),
            Action::EvictMini(p) => self.evict_mini(s, p),
            Action::CopyToTail(p) => self.copy_to_tail(s, p),
        }
    }
}

/// Where a key lies in an array. Only a bug that has been seen already asks for the key below the first.
fn slot(key: u8) -> Option<usize> {
    usize::from(key).checked_sub(1)
}

/// Nothing where a guard is false.
fn guard(enabled: bool) -> Option<()> {
    enabled.then_some(())
}

/// Calls and the descent.
impl MiniPage {
    fn ask(s: &State, c: u8, call: Call) -> Option<State> {
        guard(s.client(c).step == Step::Idle)?;
        let mut next = *s;
        next.client_mut(c).call = call;
        next.go(c, Step::Descend);
        Some(next)
    }

    fn answer_taken(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Answered)?;
        let mut next = *s;
        next.client_mut(c).call = Call::Idle;
        next.go(c, Step::Idle);
        Some(next)
    }

    fn read_version(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Descend && s.inner_lock == NOBODY)?;
        let mut next = *s;
        next.go(c, Step::Version);
        Some(next)
    }

    fn read_child(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Version)?;
        guard(self.bug != Bug::PublishedEarlyValidation || s.is_current(c))?;
        let mut next = *s;
        next.client_mut(c).at = s.child(s.client(c).call.target());
        next.go(c, Step::Child);
        Some(next)
    }

    fn validates(&self, s: &State, c: u8) -> bool {
        s.is_current(c)
            || match self.bug {
                Bug::PublishedEarlyValidation => true,
                Bug::ScanTrustsNeighbour => {
                    matches!(s.client(c).call, Call::Scan { cursor: 2.., .. })
                }
                _ => false,
            }
    }

    fn lock_page(&self, s: &State, c: u8) -> Option<State> {
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

    fn restart(&self, s: &State, c: u8) -> Option<State> {
        let early = self.bug == Bug::PublishedEarlyValidation;
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

/// Get.
impl MiniPage {
    fn mini_answers(&self, page: &Page, key: u8) -> bool {
        let through = self.bug == Bug::TombstoneReadThrough;
        let record = page.mini.record(key);
        page.mini.hits(key) && !(through && record == Record::written(ABSENT, record.hot()))
    }

    fn answer(s: &mut State, c: u8, key: u8, got: u8) {
        s.honest &= got == s.holds(key);
        s.client_mut(c).call = Call::Get { key, got };
    }

    fn read_mini(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Get)?;
        let (p, key) = (s.client(c).at, s.client(c).call.target());
        guard(self.mini_answers(s.page(p), key))?;
        let mut next = *s;
        Self::answer(&mut next, c, key, s.page(p).says(key));
        next.page_mut(p).mini.touch(key, key + 1);
        next.leave(c, Step::Answered);
        Some(next)
    }

    fn read_leaf(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Get)?;
        let (p, key) = (s.client(c).at, s.client(c).call.target());
        guard(!self.mini_answers(s.page(p), key))?;
        let mut next = *s;
        Self::answer(&mut next, c, key, s.page(p).in_leaf(key));
        next.go(c, Step::Loaded);
        if self.bug == Bug::PublishedLatePromotion {
            next.release(c, p);
        }
        Some(next)
    }

    fn decline(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Loaded)?;
        let mut next = *s;
        next.leave(c, Step::Answered);
        Some(next)
    }

    fn upgrade(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Loaded)?;
        let page = s.page_of(c);
        guard(page.mini.has_room() || self.sizes.next(&page.mini).is_some())?;
        let others = page.readers & !(1 << c);
        let alone = others == 0 || self.bug == Bug::UpgradeAmongReaders;
        guard(page.writer == NOBODY && alone)?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        (page.writer, page.readers) = (c, others);
        next.go(c, Step::Promote);
        Some(next)
    }

    fn promote(s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Promote)?;
        let Call::Get { key, got } = s.client(c).call else {
            return None;
        };
        let mini = &s.page_of(c).mini;
        guard(mini.has_room() || mini.hits(key))?;
        let mut next = *s;
        next.page_mut(s.client(c).at).mini.rec[usize::from(key) - 1] = Record::cached(got, false);
        next.leave(c, Step::Answered);
        Some(next)
    }
}

/// Put and delete.
impl MiniPage {
    /// Whether the key's record is missing, and there is no room for it.
    fn lacks_room(s: &State, c: u8) -> bool {
        let mini = &s.page_of(c).mini;
        !mini.record(s.client(c).call.target()).is_some() && !mini.has_room()
    }

    fn write_record(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Write && !Self::lacks_room(s, c))?;
        let Call::Write { key, value } = s.client(c).call else {
            return None;
        };
        let mut next = *s;
        let (page, i) = (next.page_mut(s.client(c).at), usize::from(key) - 1);
        if self.bug == Bug::MirrorBypassed && page.mini.mirror {
            page.leaf[i] = value;
        } else {
            page.mini.rec[i] = Record::written(value, page.mini.rec[i].is_some());
        }
        next.store[i] = value;
        next.leave(c, Step::Answered);
        Some(next)
    }

    fn grow(&self, s: &State, c: u8) -> Option<State> {
        guard(matches!(s.client(c).step, Step::Write | Step::Promote) && Self::lacks_room(s, c))?;
        let size = self.sizes.next(&s.page_of(c).mini)?;
        let mut next = *s;
        next.page_mut(s.client(c).at).mini.size = size;
        Some(next)
    }

    /// Whether the client wants to write, and the mini-page is full and of the largest size.
    fn is_at_its_largest(&self, s: &State, c: u8) -> bool {
        if s.client(c).step != Step::Write || !Self::lacks_room(s, c) {
            return false;
        }
        let mini = &s.page_of(c).mini;
        !mini.mirror && self.sizes.next(mini).is_none()
    }

    fn merge_to_mirror(&self, s: &State, c: u8) -> Option<State> {
        guard(self.is_at_its_largest(s, c))?;
        guard(s.page_of(c).fits(self.capacity, self.bug))?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        page.become_mirror(self.capacity, self.bug);
        Some(next)
    }

    fn evict_mirror(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Write && Self::lacks_room(s, c))?;
        guard(s.page_of(c).mini.mirror)?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        page.leaf = page.merged(self.bug);
        page.mini = Mini::NONE;
        if present(&page.leaf) == self.capacity {
            next.go(c, Step::Full);
        }
        Some(next)
    }
}

/// Scan.
impl MiniPage {
    fn scan_page(&self, s: &State, c: u8) -> Option<State> {
        let client = *s.client(c);
        let Call::Scan { cursor, mut rows } = client.call else {
            return None;
        };
        guard(client.step == Step::Scan)?;
        let mut next = *s;
        let page = s.page(client.at);
        let from = match self.bug {
            Bug::ScanFromLowFence => page.low,
            _ => cursor,
        };
        for key in from..page.high {
            let leaf_only = self.bug == Bug::ScanReadsLeaf && !page.mini.mirror;
            let value = match leaf_only {
                true => page.in_leaf(key),
                false => page.says(key),
            };
            next.honest &= value == s.holds(key);
            if value != ABSENT {
                rows.push(key, value)?;
            }
        }
        if from < page.high {
            next.page_mut(client.at).mini.touch(from, page.high);
        }
        let cursor = page.high;
        next.client_mut(c).call = Call::Scan { cursor, rows };
        next.leave(
            c,
            if cursor > self.keys {
                Step::Answered
            } else {
                Step::Descend
            },
        );
        Some(next)
    }

    fn grow_to_mirror(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Scan)?;
        let page = s.page_of(c);
        guard(page.readers == 1 << c && !page.mini.mirror)?;
        guard(page.fits(self.capacity, self.bug))?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        page.become_mirror(self.capacity, self.bug);
        Some(next)
    }
}

/// Leaf page split.
impl MiniPage {
    /// `WantsSplit`.
    pub(super) fn wants_split(&self, s: &State, c: u8) -> bool {
        s.client(c).step == Step::Full
            || (self.is_at_its_largest(s, c) && !s.page_of(c).fits(self.capacity, self.bug))
    }

    fn lock_inner(&self, s: &State, c: u8) -> Option<State> {
        guard(s.inner_lock == NOBODY && self.wants_split(s, c))?;
        let mut next = *s;
        next.inner_lock = c;
        next.go(c, Step::Split);
        Some(next)
    }

    /// `SplitKeys`: something is left on both sides.
    fn separates(&self, s: &State, c: u8, split: u8) -> bool {
        let page = s.page_of(c);
        let target = match s.client(c).call {
            Call::Write { key, .. } => key,
            _ => 0,
        };
        let merged = page.merged(self.bug);
        let evenly = self.bug == Bug::PublishedOneSplit && present(&merged) > 1;
        let held = |key: u8| {
            if evenly {
                return merged[usize::from(key) - 1] != ABSENT;
            }
            page.in_leaf(key) != ABSENT || page.mini.record(key).is_some() || key == target
        };
        let within = page.low < split && split < page.high;
        within && (1..split).any(held) && (split..=super::KEYS as u8).any(held)
    }

    fn allocate_right(&self, s: &State, c: u8, split: u8) -> Option<State> {
        guard(s.client(c).step == Step::Split && self.separates(s, c, split))?;
        let unused = |p: &u8| s.page(*p).high == 0 && s.page(*p).is_free();
        let q = self.all_pages().find(unused)?;
        let left = s.page_of(c);
        let (whole, records) = match self.bug {
            Bug::PublishedOneSplit => (left.merged(self.bug), [Record::NONE; super::KEYS]),
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

    fn shorten_left(&self, s: &State, c: u8) -> Option<State> {
        guard(s.client(c).step == Step::Divided)?;
        let split = s.page(s.client(c).right).low;
        slot(split)?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        if self.bug == Bug::PublishedOneSplit {
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

    fn insert_separator(&self, s: &State, c: u8) -> Option<State> {
        let client = *s.client(c);
        guard(client.step == Step::Shortened)?;
        let mut next = *s;
        next.inner[slot(s.page(client.right).low)?] = client.right;
        next.inner_lock = NOBODY;
        next.outdate();
        if client.call == Call::Idle {
            next.leave_both(c, Step::Idle);
        } else if self.bug == Bug::PublishedInsertAfterMerge {
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
    fn is_keeper(&self, s: &State, c: u8) -> bool {
        s.client(c).step == Step::Idle && self.keepers >> c & 1 == 1
    }

    fn join_fits(&self, s: &State, p: u8, q: u8) -> bool {
        s.page(p).count_together() + s.page(q).count_together() <= self.capacity
    }

    fn lock_left(&self, s: &State, c: u8, p: u8) -> Option<State> {
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

    fn lock_right(&self, s: &State, c: u8) -> Option<State> {
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

    fn lock_inner_to_join(&self, s: &State, c: u8) -> Option<State> {
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

    fn give_up_join(&self, s: &State, c: u8) -> Option<State> {
        let client = s.client(c);
        guard(client.step == Step::Both && !self.join_fits(s, client.at, client.right))?;
        let mut next = *s;
        next.leave_both(c, Step::Idle);
        Some(next)
    }

    fn move_records(&self, s: &State, c: u8) -> Option<State> {
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

    fn remove_separator(&self, s: &State, c: u8) -> Option<State> {
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

/// What the circular buffer asks for.
impl MiniPage {
    fn find_leaf_full(&self, s: &State, c: u8, p: u8) -> Option<State> {
        guard(self.is_keeper(s, c))?;
        let page = s.page(p);
        guard(page.is_free() && !page.fits(self.capacity, self.bug))?;
        let mut next = *s;
        next.page_mut(p).writer = c;
        next.client_mut(c).at = p;
        next.go(c, Step::Full);
        Some(next)
    }

    fn evict_mini(&self, s: &State, p: u8) -> Option<State> {
        let page = s.page(p);
        guard(page.mini.size > 0 && page.is_free() && page.fits(self.capacity, self.bug))?;
        let mut next = *s;
        let page = next.page_mut(p);
        page.leaf = page.merged(self.bug);
        page.mini = Mini::NONE;
        Some(next)
    }

    fn copy_to_tail(&self, s: &State, p: u8) -> Option<State> {
        let page = s.page(p);
        guard(page.mini.used() > 0 && page.is_free())?;
        guard(!page.must_merge(self.bug) || page.fits(self.capacity, self.bug))?;
        let mut next = *s;
        next.page_mut(p).cool(&self.sizes, self.bug);
        Some(next)
    }
}
