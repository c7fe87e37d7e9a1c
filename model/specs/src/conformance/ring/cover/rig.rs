//! The engine beside the mirror: does one step of the mirror, and reports which steps it has done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use stateright::Model;
use treering_engine::PageId;
use treering_engine::ring::{BlockState, Event, Pause, Ring, RingError, RingOptions};

use super::actor::{Actor, Deed, Gate, Said, Stage, page_without_block};
use crate::mirror::circular_buffer::{Action, Block, Call, CircularBuffer, Life, Phase, State};

const NONE: u8 = CircularBuffer::NONE;
const UNIT: u64 = 4096;

/// A result, or how the engine differs from the mirror.
pub(super) type Step<T = ()> = Result<T, String>;

/// The ring with its clients' threads, and the mirror's state.
pub(super) struct Rig<'a> {
    mirror: &'a CircularBuffer,
    stage: Arc<Stage>,
    actors: Vec<Actor>,
    /// Whether each client sleeps in the ring until the head has passed its block.
    asleep: Vec<bool>,
    pub(super) state: State,
    /// With this seeded bug, a block that the ring says it takes off its list stays there.
    pub(super) passes_listed: bool,
    /// What the engine has done since the last step that it was asked for.
    done: Vec<Action>,
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, engine: T, mirror: T) -> Step {
    if engine == mirror {
        return Ok(());
    }
    Err(format!(
        "{what}: the engine says {engine:?}, the mirror {mirror:?}"
    ))
}

fn units(bytes: u64) -> u8 {
    (bytes / UNIT) as u8
}

impl<'a> Rig<'a> {
    /// An empty ring.
    pub(super) fn new(mirror: &'a CircularBuffer) -> Result<Rig<'a>, RingError> {
        let shape = mirror.shape();
        let options = RingOptions {
            capacity: usize::from(shape.capacity) * UNIT as usize,
            copy_on_access_percent: 100
                - (100 * u16::from(shape.in_place)).div_ceil(shape.capacity.into()) as u8,
            sizes: shape.sizes.iter().map(|size| payload(*size)).collect(),
            pages: shape.pages as u64,
            marks: false,
        };
        let ring = Ring::observed(&options, Some(Arc::new(Gate)))?;
        for _ in 0..shape.pages {
            ring.create_page(page_without_block()).expect("an id");
        }
        let state = mirror.first();
        let leaves = (0..shape.pages).map(|p| AtomicU8::new(state.disk[p]));
        let stage = Arc::new(Stage {
            leaves: leaves.collect(),
            ring,
        });
        Ok(Rig {
            mirror,
            actors: (0..shape.clients)
                .map(|_| Actor::new(stage.clone()))
                .collect(),
            asleep: vec![false; shape.clients],
            stage,
            state,
            passes_listed: false,
            done: Vec::new(),
        })
    }

    /// Whether the engine can be led to take this action now.
    pub(super) fn can(&self, action: Action) -> bool {
        match action {
            // A client that has gone to sleep meanwhile wakes when the head has passed.
            Action::Finish(c) => !self.asleep[usize::from(c)],
            _ => true,
        }
    }

    /// Takes a step. Returns the steps that the engine has actually taken.
    pub(super) fn take(&mut self, action: Action) -> (Vec<Action>, Step) {
        let step = self.perform(action).and_then(|()| self.compare());
        (std::mem::take(&mut self.done), step)
    }

    fn note(&mut self, c: u8, action: Action) -> Step {
        let next = match action {
            Action::Close => self.mirror.next_state(&self.state, action),
            _ => self.mirror.after(&self.state, c, action),
        };
        self.state =
            next.ok_or_else(|| format!("the engine does {action:?}, which is not enabled"))?;
        self.done.push(action);
        Ok(())
    }

    fn perform(&mut self, action: Action) -> Step {
        match action {
            Action::Close => self.note(0, action),
            Action::Call(c, _) => self.note(c, action),
            Action::LockPage(c) => self.lock(c),
            Action::Read(c) => {
                let page = self.asked(c)?;
                let found = self.run(c, Deed::Read(page))?;
                self.note(c, action)?;
                match self.mirror.thread(&self.state, c).call {
                    Call::Get { got, .. } => same("what is read", found, got),
                    _ => Err("the client has no get outstanding".into()),
                }
            }
            Action::Write(c) => {
                if self.phase(c) == Phase::Look {
                    self.looks(c, false)?;
                }
                let Call::Write { value, .. } = self.mirror.thread(&self.state, c).call else {
                    return Err("the client has no write outstanding".into());
                };
                same(
                    "whether there is a mini-page",
                    self.run(c, Deed::Put(value))?,
                    1,
                )?;
                self.note(c, action)
            }
            Action::Return(c) => self.returns(c),
            Action::Create(c, _) => self.wants(c, action),
            Action::Grow(c, _) => {
                self.looks(c, false)?;
                self.wants(c, action)
            }
            Action::CopyToTail(c, _) => {
                self.looks(c, true)?;
                self.wants(c, action)
            }
            Action::PopFreeList(c, _) | Action::Allocate(c) | Action::Pad(c) | Action::Full(c) => {
                let size = self.mirror.thread(&self.state, c).work.size;
                self.run(c, Deed::Allocate(payload(size))).map(drop)
            }
            Action::Copy(c) => {
                let rec = match self.mirror.thread(&self.state, c).call {
                    Call::Get { key, .. } => self.stage.leaves[usize::from(key)].load(Relaxed),
                    _ => NONE,
                };
                self.run(c, Deed::Copy(rec))?;
                self.note(c, action)
            }
            Action::Publish(c) => {
                self.actor(c).begin(Deed::Publish)?;
                self.follow(c).map(drop)
            }
            Action::Claim(c) | Action::Retry(c) => {
                self.actor(c).begin(Deed::Evict)?;
                self.follow(c).map(drop)
            }
            Action::Deallocate(c)
            | Action::Skip(c)
            | Action::Unlist(c)
            | Action::FindPage(c)
            | Action::LockVictim(c)
            | Action::WriteLeaf(c)
            | Action::Unmap(c)
            | Action::Finish(c) => {
                self.actor(c).go_on()?;
                self.follow(c).map(drop)
            }
            Action::Reuse(_) | Action::PassOver(_) => Err(
                "no client stops between taking a pointer off a list and taking its block".into(),
            ),
        }
    }

    fn actor(&self, c: u8) -> &Actor {
        &self.actors[usize::from(c)]
    }

    fn phase(&self, c: u8) -> Phase {
        self.mirror.thread(&self.state, c).phase
    }

    fn asked(&self, c: u8) -> Step<u8> {
        let asked = self.mirror.asked(&self.state, c);
        asked.ok_or_else(|| "the client has no call outstanding".into())
    }

    /// Runs a deed to its end, or to the first stop.
    fn run(&mut self, c: u8, deed: Deed) -> Step<u8> {
        self.actor(c).begin(deed)?;
        self.follow(c)
    }

    /// Follows a client's thread until it stops, and returns the result of its deed if that is
    /// done.
    fn follow(&mut self, c: u8) -> Step<u8> {
        loop {
            match self.actor(c).wait()? {
                Said::Done(answer) => {
                    self.wakes(c)?;
                    return Ok(answer);
                }
                Said::Told(event) => {
                    self.hears(c, event)?;
                    let marked = matches!(event, Event::Skipped { .. } | Event::Unlisted { .. });
                    if marked
                        && self
                            .mirror
                            .after(&self.state, c, Action::Finish(c))
                            .is_none()
                    {
                        self.asleep[usize::from(c)] = true;
                        return Ok(0);
                    }
                }
                Said::Stopped(event) => {
                    if self.stands(c, event)? {
                        return Ok(0);
                    }
                    self.actor(c).go_on()?;
                }
            }
        }
    }

    /// The clients whose blocks the head has passed wake up.
    fn wakes(&mut self, c: u8) -> Step {
        for other in (0..self.asleep.len() as u8).filter(|other| *other != c) {
            if self.asleep[usize::from(other)] && self.phase(other) != Phase::Finish {
                self.asleep[usize::from(other)] = false;
                while !matches!(self.actor(other).wait()?, Said::Done(_)) {}
            }
        }
        Ok(())
    }

    /// Handles an event that the ring reports meanwhile.
    fn hears(&mut self, c: u8, event: Event) -> Step {
        let work = self.mirror.thread(&self.state, c).work;
        match event {
            Event::Looked { at, near_head, .. } => {
                same("the mini-page", units(at), work.old)?;
                let near = self.mirror.near_head(&self.state, work.old);
                same("near the head", near_head, near)
            }
            Event::Reused { at, bytes, .. } => {
                same("the size", units(bytes), work.size)?;
                self.note(c, Action::PopFreeList(c, units(at)))?;
                self.note(c, Action::Reuse(c))
            }
            Event::PassedOver { at, .. } => {
                self.note(c, Action::PopFreeList(c, units(at)))?;
                self.note(c, Action::PassOver(c))
            }
            Event::Padded { .. } => self.note(c, Action::Pad(c)),
            Event::Allocated { at, bytes, .. } => {
                same("the size", units(bytes), work.size)?;
                self.note(c, Action::Allocate(c))?;
                let new = self.mirror.thread(&self.state, c).work.new;
                same("the block", units(at), new)
            }
            Event::Full { .. } => self.note(c, Action::Full(c)),
            Event::Freed { at, listed, .. } => {
                same("the block", units(at), work.old)?;
                self.note(c, Action::Deallocate(c))?;
                same("listed", listed, self.block(units(at)).life == Life::Listed)
            }
            Event::Claimed { at, again, .. } => {
                same("claimed before", again, false)?;
                self.note(c, Action::Claim(c))?;
                let victim = self.mirror.thread(&self.state, c).work.victim;
                same("the victim", units(at), victim)
            }
            Event::Retried => self.note(c, Action::Retry(c)),
            Event::Skipped { .. } => self.note(c, Action::Skip(c)),
            Event::Unlisted { .. } if self.passes_listed => self.note(c, Action::Skip(c)),
            Event::Unlisted { .. } => self.note(c, Action::Unlist(c)),
            Event::VictimMoved { .. } => {
                self.note(c, Action::LockVictim(c))?;
                same("the thread", self.phase(c), Phase::Victim)
            }
            Event::Unmapped { .. } => self.note(c, Action::Unmap(c)),
            Event::Passed { at } => {
                let who = self.mirror.finisher(&self.state, units(at));
                let who = who.ok_or("the head passes a block that nobody has evicted")?;
                self.note(who, Action::Finish(who))
            }
            other => Err(format!("the spec has no {other:?}")),
        }
    }

    /// Handles a stop of a thread. Returns whether it is a state of the mirror.
    fn stands(&mut self, c: u8, event: Event) -> Step<bool> {
        let work = self.mirror.thread(&self.state, c).work;
        match event {
            Event::Published { at, .. } => {
                same("the block", units(at), work.new)?;
                self.note(c, Action::Publish(c))?;
                Ok(self.phase(c) == Phase::Free)
            }
            Event::VictimLocked { .. } => {
                self.note(c, Action::LockVictim(c))?;
                same("the thread", self.phase(c), Phase::Merge)?;
                Ok(true)
            }
            Event::Merged { .. } => {
                if !self.block(work.victim).dirty {
                    // Nothing was written: the thread is where it was.
                    return Ok(false);
                }
                self.note(c, Action::WriteLeaf(c))?;
                Ok(true)
            }
            Event::Pauses { at, before } => {
                same("the victim", units(at), work.victim)?;
                match before {
                    // The thread is where it was, unless it comes from the step before.
                    Pause::Look => Ok(self.done.last().is_some()),
                    Pause::Lock => {
                        self.note(c, Action::FindPage(c))?;
                        Ok(true)
                    }
                    Pause::Pass => {
                        same("the thread", self.phase(c), Phase::Finish)?;
                        Ok(true)
                    }
                }
            }
            other => Err(format!("no client should stop at {other:?}")),
        }
    }

    fn block(&self, offset: u8) -> Block {
        self.mirror.block_at(&self.state, offset)
    }

    fn lock(&mut self, c: u8) -> Step {
        let page = self.asked(c)?;
        let reads = matches!(self.mirror.thread(&self.state, c).call, Call::Get { .. });
        let deed = if reads {
            Deed::Share(page)
        } else {
            Deed::Lock(page)
        };
        same("whether the page can be locked", self.run(c, deed)?, 1)?;
        self.note(c, Action::LockPage(c))
    }

    fn looks(&mut self, c: u8, near: bool) -> Step {
        same("near the head", self.run(c, Deed::Look)?, near.into())
    }

    /// The client has the page exclusively, and wants a block.
    fn wants(&mut self, c: u8, action: Action) -> Step {
        same(
            "whether it has the page alone",
            self.run(c, Deed::Upgrade)?,
            1,
        )?;
        self.note(c, action)
    }

    fn returns(&mut self, c: u8) -> Step {
        let thread = *self.mirror.thread(&self.state, c);
        if thread.phase == Phase::Look && thread.work.old != NONE {
            let near = self.mirror.near_head(&self.state, thread.work.old);
            self.looks(c, near)?;
            if near {
                let alone = self.run(c, Deed::Upgrade)?;
                same("whether it has the page alone", alone, 0)?;
            }
        }
        self.run(c, Deed::Leave)?;
        self.note(c, Action::Return(c))
    }

    /// Compares everything about the ring that can be observed from outside with the mirror.
    fn compare(&self) -> Step {
        let s = &self.state;
        let seen = self.stage.ring.look().map_err(|e| e.to_string())?;
        let capacity = self.mirror.shape().capacity;
        // The engine's addresses grow without bound.
        let head = units(seen.head % (u64::from(capacity) * UNIT));
        same("the head", head, s.head % capacity)?;
        same(
            "what is claimed",
            units(seen.claimed - seen.head),
            s.claimed - s.head,
        )?;
        same("the tail", units(seen.tail - seen.head), s.tail - s.head)?;
        let expected = s.block.iter().filter(|b| b.life != Life::None).count();
        same("the number of blocks", seen.blocks.len(), expected)?;
        for found in &seen.blocks {
            let at = units(found.at);
            let block = self.block(at);
            let what = format!("the block at {at}");
            same(&what, units(found.bytes), block.size)?;
            let life = match found.state {
                BlockState::Allocated => Life::Allocated,
                BlockState::Listed => Life::Listed,
                BlockState::Tombstone => Life::Tombstone,
                // The block is marked under the ring's mutex, which its evictor does not have yet.
                BlockState::Ready if self.is_unmarked(at) => Life::Evicted,
                BlockState::Ready => Life::Ready,
                BlockState::Evicted => Life::Evicted,
            };
            same(&what, life, block.life)?;
            if matches!(life, Life::Allocated | Life::Ready) {
                same(&what, found.page, PageId(block.page.into()))?;
            }
        }
        for page in 0..self.stage.leaves.len() {
            self.compare_page(page)?;
        }
        Ok(())
    }

    fn is_unmarked(&self, at: u8) -> bool {
        let threads = self.state.thread.iter().zip(&self.asleep);
        threads
            .into_iter()
            .any(|(t, asleep)| t.phase == Phase::Finish && t.work.victim == at && !asleep)
    }

    /// Compares the lock, the mini-page and the leaf of a page.
    fn compare_page(&self, page: usize) -> Step {
        let word = &self.state.word[page];
        let id = PageId(page as u64);
        let leaf = self.stage.leaves[page].load(Relaxed);
        same("the leaf", leaf, self.state.disk[page])?;
        let ring = &self.stage.ring;
        let alone = ring.try_exclusive(id).map_err(|e| e.to_string())?;
        let free = word.writer == NONE && word.readers == 0;
        same("whether the page is free", alone.is_some(), free)?;
        drop(alone);
        let shared = ring.try_shared(id).map_err(|e| e.to_string())?;
        same(
            "whether the page can be read",
            shared.is_some(),
            word.writer == NONE,
        )?;
        let Some(shared) = shared else {
            return Ok(());
        };
        let mini = shared.bytes().map(|bytes| (bytes[0], bytes[1] != 0));
        let block = (word.at != NONE).then(|| self.block(word.at));
        same("the mini-page", mini, block.map(|b| (b.rec, b.dirty)))
    }
}

impl Drop for Rig<'_> {
    fn drop(&mut self) {
        // All threads at once, since one may wait for what another holds.
        self.actors.iter_mut().for_each(Actor::let_go);
    }
}

fn payload(units: u8) -> usize {
    usize::from(units) * UNIT as usize - 8
}
