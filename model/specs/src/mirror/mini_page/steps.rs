//! The actions of `MiniPage` (those of `MiniTree` are in `tree`), and helpers that all of them use.
//! Each returns `None` if the spec's action is not enabled.

use super::bug::Bug;
use super::records::{ABSENT, Mini, NOBODY, Page, Record, present};
use super::room::Set;
use super::state::{Call, NO_PAGE, State, Step};
use super::{Action, MiniPage};

impl State {
    pub(super) fn go(&mut self, c: u8, step: Step) {
        self.client_mut(c).step = step;
    }

    /// Releases the client's lock on a page (`Released`).
    pub(super) fn release(&mut self, c: u8, p: u8) {
        let page = self.page_mut(p);
        if page.writer == c {
            page.writer = NOBODY;
        }
        page.readers &= !(1 << c);
    }

    /// Releases the client's page and continues at another step (`Leave`).
    pub(super) fn leave(&mut self, c: u8, step: Step) {
        self.release(c, self.client(c).at);
        self.client_mut(c).at = NO_PAGE;
        self.go(c, step);
    }

    /// Releases both pages of a split or join.
    pub(super) fn leave_both(&mut self, c: u8, step: Step) {
        let client = *self.client(c);
        self.page_mut(client.at).writer = NOBODY;
        self.page_mut(client.right).writer = NOBODY;
        let client = self.client_mut(c);
        (client.at, client.right, client.step) = (NO_PAGE, NO_PAGE, step);
    }

    /// The inner node has changed: every client that is `OnTheWay` must start again.
    pub(super) fn outdate(&mut self) {
        for (c, client) in self.client.iter().enumerate() {
            self.outdated |= Set::from(matches!(client.step, Step::Version | Step::Child)) << c;
        }
    }

    pub(super) fn is_current(&self, c: u8) -> bool {
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

/// The index of a key in an array. Only with a seeded bug, which has been caught by then, is the
/// key below the first asked for.
pub(super) fn slot(key: u8) -> Option<usize> {
    usize::from(key).checked_sub(1)
}

/// `None` if the guard is false.
pub(super) fn guard(enabled: bool) -> Option<()> {
    enabled.then_some(())
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
        if self.bug == Bug::AsPublishedLatePromotion {
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
    /// Whether the key has no record and the mini-page has no room for one.
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

    /// Whether the client wants to write and the mini-page is full at the largest size.
    pub(super) fn is_at_its_largest(&self, s: &State, c: u8) -> bool {
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
        let alone = page.readers == 1 << c || self.bug == Bug::ScanWritesAmongReaders;
        guard(alone && !page.mini.mirror)?;
        guard(page.fits(self.capacity, self.bug))?;
        let mut next = *s;
        let page = next.page_mut(s.client(c).at);
        page.become_mirror(self.capacity, self.bug);
        Some(next)
    }
}

/// A request of the circular buffer.
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
