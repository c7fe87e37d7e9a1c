//! `CircularBuffer.tla` and `MappingTable.tla`: what a thread does. Each step returns `None` if the
//! action is not enabled.

use super::state::{Block, Call, Life, NONE, PENDING, Phase, State, Thread, Word, Work};
use super::{Action, Bug, CircularBuffer};

fn thread(s: &mut State, c: u8) -> &mut Thread {
    &mut s.thread[usize::from(c)]
}

fn can_lock(word: &Word, bug: Bug) -> bool {
    word.writer == NONE && (word.readers == 0 || bug == Bug::WriterIgnoresReaders)
}

fn unlock(word: &mut Word, c: u8) {
    if word.writer == c {
        word.writer = NONE;
    }
    word.readers &= !(1 << c);
}

fn can_upgrade(word: &Word, c: u8) -> bool {
    word.readers == 1 << c
}

impl CircularBuffer {
    /// Whether the thread's mini-page is in the copy-on-access region (`OnSecondChance`).
    fn on_second_chance(&self, s: &State, t: &Thread) -> bool {
        t.work.old != NONE && self.in_second_chance(s, t.work.old)
    }

    /// Lists the steps that the thread might take. Not all of them are enabled.
    pub(super) fn candidates(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let t = &s.thread[usize::from(c)];
        match t.phase {
            Phase::Idle if s.open => {
                actions.extend(
                    self.requests[usize::from(c)]
                        .iter()
                        .map(|r| Action::Call(c, *r)),
                );
            }
            Phase::Idle => {}
            Phase::Start => actions.push(Action::LockPage(c)),
            Phase::Look => self.look(s, c, actions),
            Phase::Allocate => self.allocations(s, c, actions),
            Phase::Popped => actions.extend([Action::Reuse(c), Action::PassOver(c)]),
            Phase::Copy => actions.push(Action::Copy(c)),
            Phase::Publish => actions.push(Action::Publish(c)),
            Phase::Free => actions.push(Action::Deallocate(c)),
            Phase::Insert => actions.push(Action::Write(c)),
            Phase::Done => actions.push(Action::Return(c)),
            Phase::Full => actions.extend([Action::Claim(c), Action::Retry(c)]),
            Phase::Victim => match s.at(t.work.victim).life {
                Life::Ready => actions.push(Action::FindPage(c)),
                _ => actions.extend([Action::Skip(c), Action::Unlist(c)]),
            },
            Phase::Lock => actions.push(Action::LockVictim(c)),
            Phase::Merge => actions.extend([Action::WriteLeaf(c), Action::Unmap(c)]),
            Phase::Unmap => actions.push(Action::Unmap(c)),
            Phase::Finish => actions.push(Action::Finish(c)),
        }
    }

    fn look(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let t = &s.thread[usize::from(c)];
        if let Call::Get { got: PENDING, .. } = t.call {
            return actions.push(Action::Read(c));
        }
        let sizes = || self.sizes.iter().copied();
        if t.work.old == NONE {
            actions.extend(sizes().map(|size| Action::Create(c, size)));
        } else if self.on_second_chance(s, t) {
            let fits = sizes().filter(|size| *size <= s.at(t.work.old).size);
            actions.extend(fits.map(|size| Action::CopyToTail(c, size)));
        } else if !t.reads() {
            let larger = sizes().filter(|size| *size > s.at(t.work.old).size);
            actions.extend(larger.map(|size| Action::Grow(c, size)));
            actions.push(Action::Write(c));
        }
        if t.reads() {
            actions.push(Action::Return(c));
        }
    }

    fn allocations(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let size = s.thread[usize::from(c)].work.size;
        match self.listed(s, size) {
            0 if self.no_room(s, size) => actions.push(Action::Full(c)),
            0 => actions.extend([Action::Allocate(c), Action::Pad(c)]),
            list => {
                let offsets = (0..self.capacity).filter(|offset| list >> offset & 1 == 1);
                actions.extend(offsets.map(|offset| Action::PopFreeList(c, offset)));
            }
        }
    }

    /// The state after a step.
    pub(super) fn step(&self, before: &State, action: Action) -> Option<State> {
        let mut next = *before;
        let s = &mut next;
        match action {
            Action::Close => s.open = false,
            Action::Call(c, call) => {
                let t = thread(s, c);
                (t.call, t.phase) = (call, Phase::Start);
            }
            Action::LockPage(c) => self.lock_page(s, c)?,
            Action::Read(c) => read(s, c),
            Action::Write(c) => self.write(s, c)?,
            Action::Return(c) => self.give_answer(s, c)?,
            Action::Create(c, size) | Action::Grow(c, size) | Action::CopyToTail(c, size) => {
                want(s, c, size)?;
            }
            Action::PopFreeList(c, offset) => {
                let size = thread(s, c).work.size;
                self.take_from_list(s, size, offset)?;
                let t = thread(s, c);
                (t.work.new, t.phase) = (offset, Phase::Popped);
            }
            Action::Reuse(c) => {
                let (key, new) = (thread(s, c).key() as u8, thread(s, c).work.new);
                self.reuse_block(s, key, new)?;
                thread(s, c).phase = Phase::Copy;
            }
            Action::PassOver(c) => {
                let new = thread(s, c).work.new;
                self.leave_to_evictor(s, new)?;
                let t = thread(s, c);
                (t.work.new, t.phase) = (NONE, Phase::Allocate);
            }
            Action::Allocate(c) => {
                let (key, size) = (thread(s, c).key() as u8, thread(s, c).work.size);
                let new = self.offset_of(s.tail);
                self.allocate_at_tail(s, key, size)?;
                let t = thread(s, c);
                (t.work.new, t.phase) = (new, Phase::Copy);
            }
            Action::Pad(c) => {
                let size = thread(s, c).work.size;
                self.pad_at_tail(s, size)?;
            }
            Action::Full(c) => self.full(s, c),
            Action::Copy(c) => self.copy(s, c),
            Action::Publish(c) => publish(s, c),
            Action::Deallocate(c) => {
                let old = thread(s, c).work.old;
                self.free_block(s, old)?;
                let t = thread(s, c);
                t.work.old = NONE;
                t.phase = if self.bug == Bug::FreedBeforePublished {
                    Phase::Publish
                } else {
                    after_moving(t)
                };
            }
            _ => self.evict(s, action)?,
        }
        Some(next)
    }

    /// Takes a step of an eviction (`Evict`).
    fn evict(&self, s: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Claim(c) => {
                let victim = self.offset_of(s.claimed);
                self.claim_block(s)?;
                let t = thread(s, c);
                (t.work.victim, t.phase) = (victim, Phase::Victim);
            }
            Action::Retry(c) => {
                if s.head != s.tail || self.bug == Bug::LostWakeUp {
                    return None;
                }
                thread(s, c).phase = self.after_eviction();
            }
            Action::Skip(c) => {
                let victim = thread(s, c).work.victim;
                self.skip_block(s, victim)?;
                thread(s, c).phase = Phase::Finish;
            }
            Action::Unlist(c) => {
                let victim = thread(s, c).work.victim;
                self.unlist_block(s, victim)?;
                thread(s, c).phase = Phase::Finish;
            }
            Action::FindPage(c) => {
                let victim = thread(s, c).work.victim;
                let page = s.at(victim).page;
                let t = thread(s, c);
                (t.work.page, t.phase) = (page, Phase::Lock);
            }
            Action::LockVictim(c) => self.lock_victim(s, c)?,
            Action::WriteLeaf(c) => self.write_leaf(s, c)?,
            Action::Unmap(c) => self.unmap(s, c)?,
            Action::Finish(c) => {
                let victim = thread(s, c).work.victim;
                self.advance_head(s, victim)?;
                let phase = self.after_eviction();
                let t = thread(s, c);
                (t.work.victim, t.phase) = (NONE, phase);
            }
            _ => return None,
        }
        Some(())
    }

    fn after_eviction(&self) -> Phase {
        if self.bug == Bug::AsPublishedEvictUnderLock {
            Phase::Allocate
        } else {
            Phase::Start
        }
    }

    fn lock_page(&self, s: &mut State, c: u8) -> Option<()> {
        let (key, reads) = (thread(s, c).key(), thread(s, c).reads());
        let word = &mut s.word[key];
        if !reads {
            if !can_lock(word, self.bug) {
                return None;
            }
            word.writer = c;
        } else if self.bug != Bug::ReaderWithoutLock {
            if word.writer != NONE {
                return None;
            }
            word.readers |= 1 << c;
        }
        let at = word.at;
        let t = thread(s, c);
        (t.work.old, t.phase) = (at, Phase::Look);
        Some(())
    }

    fn write(&self, s: &mut State, c: u8) -> Option<()> {
        let t = s.thread[usize::from(c)];
        let Call::Write { key, value, .. } = t.call else {
            return None;
        };
        let in_place = t.work.old != NONE && !self.on_second_chance(s, &t);
        if t.phase == Phase::Look && !in_place {
            return None;
        }
        let block = s.at_mut(s.word[t.key()].at);
        (block.rec, block.dirty) = (value, true);
        s.written[t.key()] = value;
        let done = true;
        let t = thread(s, c);
        (t.call, t.phase) = (Call::Write { key, value, done }, Phase::Done);
        Some(())
    }

    fn give_answer(&self, s: &mut State, c: u8) -> Option<()> {
        let t = s.thread[usize::from(c)];
        let word = &mut s.word[t.key()];
        let must_copy = can_upgrade(word, c) || self.bug == Bug::UpgradeWaits;
        unlock(word, c);
        if t.phase == Phase::Look && must_copy && self.on_second_chance(s, &t) {
            return None;
        }
        *thread(s, c) = Thread::IDLE;
        Some(())
    }

    fn full(&self, s: &mut State, c: u8) {
        let key = thread(s, c).key();
        if self.bug != Bug::AsPublishedEvictUnderLock {
            unlock(&mut s.word[key], c);
            thread(s, c).work = Work::NONE;
        }
        thread(s, c).phase = if self.bug == Bug::NoEviction {
            Phase::Start
        } else {
            Phase::Full
        };
    }

    fn copy(&self, s: &mut State, c: u8) {
        let t = s.thread[usize::from(c)];
        let (rec, dirty) = match t.call {
            _ if t.work.old != NONE => {
                let old = s.at(t.work.old);
                (old.rec, old.dirty && self.bug != Bug::DirtyBitNotCopied)
            }
            Call::Get { got, .. } if self.bug == Bug::StalePromotion => (got, false),
            Call::Get { key, .. } => (s.disk[usize::from(key)], false),
            _ => (NONE, false),
        };
        let new = s.at_mut(t.work.new);
        (new.rec, new.dirty) = (rec, dirty);
        let frees = self.bug == Bug::FreedBeforePublished && t.work.old != NONE;
        thread(s, c).phase = if frees { Phase::Free } else { Phase::Publish };
    }

    fn lock_victim(&self, s: &mut State, c: u8) -> Option<()> {
        let Work { victim, page, .. } = thread(s, c).work;
        let word = &mut s.word[usize::from(page)];
        if !can_lock(word, self.bug) {
            return None;
        }
        if word.at == victim || self.bug == Bug::VictimUnchecked {
            word.writer = c;
            thread(s, c).phase = Phase::Merge;
        } else {
            let t = thread(s, c);
            (t.work.page, t.phase) = (NONE, Phase::Victim);
        }
        Some(())
    }

    fn write_leaf(&self, s: &mut State, c: u8) -> Option<()> {
        let Work { victim, page, .. } = thread(s, c).work;
        let block = *s.at(victim);
        if !block.dirty || self.bug == Bug::DirtySkipped {
            return None;
        }
        s.disk[usize::from(page)] = block.rec;
        if matches!(
            self.bug,
            Bug::UnlockedWhileWriting | Bug::ChangedWhileWritten
        ) {
            unlock(&mut s.word[usize::from(page)], c);
        }
        thread(s, c).phase = Phase::Unmap;
        Some(())
    }

    fn unmap(&self, s: &mut State, c: u8) -> Option<()> {
        let t = s.thread[usize::from(c)];
        let Work { victim, page, .. } = t.work;
        let Block { dirty, size, .. } = *s.at(victim);
        let word = &mut s.word[usize::from(page)];
        let enabled = match (t.phase, self.bug) {
            (Phase::Merge, bug) => !dirty || bug == Bug::DirtySkipped,
            (_, Bug::ChangedWhileWritten) => can_lock(word, self.bug) && word.at == victim,
            _ => true,
        };
        *word = Word::free(if self.bug == Bug::EvictedBeforeUnmapped {
            word.at
        } else {
            NONE
        });
        *s.at_mut(victim) = Block::dead(Life::Evicted, size);
        let t = thread(s, c);
        (t.work.page, t.phase) = (NONE, Phase::Finish);
        enabled.then_some(())
    }
}

fn after_moving(t: &Thread) -> Phase {
    if t.reads() {
        Phase::Done
    } else {
        Phase::Insert
    }
}

fn read(s: &mut State, c: u8) {
    let t = s.thread[usize::from(c)];
    if let Call::Get { key, .. } = t.call {
        let cached = (t.work.old != NONE).then(|| s.at(t.work.old).rec);
        let got = (cached.filter(|rec| *rec != NONE)).unwrap_or(s.disk[usize::from(key)]);
        thread(s, c).call = Call::Get { key, got };
    }
}

/// `Want`, the common part of `Create`, `Grow` and `CopyToTail`.
fn want(s: &mut State, c: u8, size: u8) -> Option<()> {
    let key = thread(s, c).key();
    let word = &mut s.word[key];
    if word.writer != c && !can_upgrade(word, c) {
        return None;
    }
    (word.writer, word.readers) = (c, 0);
    let t = thread(s, c);
    (t.work.size, t.phase) = (size, Phase::Allocate);
    Some(())
}

fn publish(s: &mut State, c: u8) {
    let t = s.thread[usize::from(c)];
    s.at_mut(t.work.new).life = Life::Ready;
    s.word[t.key()].at = t.work.new;
    let t = thread(s, c);
    (t.work.new, t.work.size) = (NONE, 0);
    t.phase = if t.work.old == NONE {
        after_moving(t)
    } else {
        Phase::Free
    };
}
