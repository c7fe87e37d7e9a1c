//! The judge: takes, for each recorded event, the steps of the mirror that correspond to it.

use treering_engine::PageId;
use treering_engine::ring::Event;

use crate::Mirror;
use crate::conformance::behaviour::{Constants, InTla as _, KEPT};
use crate::conformance::led::{Notes, Recorded, holds, told};
use crate::conformance::refused::{self, Accepted, Tally, same};
use crate::mirror::wide::circular_buffer::{
    Action, Block, Call, CircularBuffer, Life, Phase, State,
};
use crate::value::state_text;

/// An event of the ring that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// What a client intends to do with a mini-page that is not near the head. Sizes are in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Change it in place.
    InPlace,
    /// Grow it to this size.
    Grow(u8),
}

/// A recorded event of a client, or of the engine on its behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The client calls a get of a page.
    Get(u8),
    /// The client calls a write of a page.
    Write(u8, u8),
    /// The client has the page's lock.
    Locked,
    /// What the client will do with the existing mini-page if that is not near the head.
    Means(Intent),
    /// The client has read this.
    Read(u8),
    /// The client has the page exclusively, and wants a block of this many units.
    Wants(u8),
    /// The client has written into the mini-page that it has just published.
    Wrote,
    /// The client merges a victim with this record, which may be dirty.
    Merges(u8, bool),
    /// The client unlocks the page and returns.
    Returned,
    /// An event of the ring.
    Ring(Event),
}

/// Judges one recording.
pub struct Judge {
    mirror: CircularBuffer,
    state: State,
    /// The number of bytes in a unit.
    unit: u64,
    intents: Vec<Intent>,
    notes: Notes<CircularBuffer>,
    constants: Constants,
}

impl Judge {
    /// A judge for an empty ring.
    #[must_use]
    pub fn new(clients: usize, mirror: CircularBuffer, unit: u64, constants: Constants) -> Self {
        let mut notes = Notes::default();
        notes.keep(KEPT);
        Self {
            state: mirror.first(),
            mirror,
            unit,
            intents: vec![Intent::InPlace; clients],
            notes,
            constants,
        }
    }

    /// The counts of accepted events and steps.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.notes.tally
    }

    /// Notes so many of the last steps from now on.
    pub(super) fn note_steps(&mut self, steps: usize) {
        self.notes.keep(steps);
    }

    /// The noted steps as a behaviour.
    pub(super) fn recorded(&self) -> Option<Recorded> {
        self.notes.recording(&self.mirror, self.constants.clone())
    }

    /// Takes the steps of one event.
    ///
    /// # Errors
    /// If the mirror has no such steps, or an invariant does not hold after them.
    pub(crate) fn hear(&mut self, client: u8, heard: Heard) -> Result<(), Box<Refusal>> {
        let before = self.state;
        self.notes.hears();
        let judged =
            self.judge(client, heard)
                .and_then(|()| match self.mirror.broken(&self.state) {
                    None => Ok(()),
                    Some(name) => self
                        .notes
                        .claim(Err(format!("{name} does not hold after it")), || {
                            holds(name)
                        }),
                });
        let number = self.notes.tally.heard + 1;
        judged.map_err(|why| {
            let told = told(number, &why, &heard);
            let now = Box::new(self.state);
            let now = (&self.mirror, &now);
            let behaviour = self.notes.finding(now, self.constants.clone(), &told);
            Box::new(Refusal {
                number,
                client: Some(client),
                heard,
                why,
                state: state_text(&self.mirror.variables(&before)),
                enabled: self.mirror.enabled(&before, client),
                behaviour,
            })
        })?;
        self.notes.tally.heard = number;
        Ok(())
    }

    fn take(&mut self, client: u8, action: Action) -> Accepted {
        let next = self.mirror.after(&self.state, client, action);
        let next = next.ok_or_else(|| format!("{action:?} is not enabled"));
        let next = self
            .notes
            .claim(next, || CircularBuffer::formula(&action))?;
        let before = std::mem::replace(&mut self.state, next);
        self.notes.took(
            &action,
            (Some(&Box::new(before)), &Box::new(self.state)),
            |_| Vec::new(),
        );
        Ok(())
    }

    /// Checks that the engine and the mirror agree on a number, which is `part` in the spec.
    fn agrees(&self, what: &str, part: &str, engine: u8, mirror: u8) -> Accepted {
        self.notes.claim(same(what, engine, mirror), || {
            // An offset of none is none of the spec's.
            holds(&format!("{part} = {engine}"))
        })
    }

    fn judge(&mut self, c: u8, heard: Heard) -> Accepted {
        match heard {
            Heard::Get(key) => self.take(
                c,
                Action::Call(
                    c,
                    Call::Get {
                        key,
                        got: CircularBuffer::PENDING,
                    },
                ),
            ),
            Heard::Means(intent) => {
                self.intents[usize::from(c)] = intent;
                Ok(())
            }
            Heard::Write(key, value) => {
                let done = false;
                self.take(c, Action::Call(c, Call::Write { key, value, done }))
            }
            Heard::Locked => self.take(c, Action::LockPage(c)),
            Heard::Read(value) => {
                self.take(c, Action::Read(c))?;
                match self.mirror.thread(&self.state, c).call {
                    Call::Get { got, .. } => same("what is read", value, got),
                    _ => Err("the client has no get outstanding".into()),
                }
            }
            Heard::Wants(size) => {
                let old = self.mirror.thread(&self.state, c).work.old;
                self.take(
                    c,
                    if old == CircularBuffer::NONE {
                        Action::Create(c, size)
                    } else {
                        Action::CopyToTail(c, size)
                    },
                )
            }
            Heard::Wrote => self.take(c, Action::Write(c)),
            Heard::Merges(rec, dirty) => {
                let block = self.block(self.mirror.thread(&self.state, c).work.victim);
                same("the victim", (rec, dirty), (block.rec, block.dirty))
            }
            Heard::Returned => self.returned(c),
            Heard::Ring(event) => self.ring(c, event),
        }
    }

    fn returned(&mut self, c: u8) -> Accepted {
        if self
            .mirror
            .after(&self.state, c, Action::Return(c))
            .is_none()
            && let Some(next) = self.mirror.late_return(&self.state, c)
        {
            self.state = next;
            self.notes.tally.took("(LateReturn)");
            return Ok(());
        }
        self.take(c, Action::Return(c))
    }

    fn units(&self, bytes: u64) -> Result<u8, String> {
        let whole = bytes.is_multiple_of(self.unit);
        let units = (bytes / self.unit).try_into().ok();
        let units = units.filter(|_| whole);
        units.ok_or_else(|| format!("{bytes} bytes are no units"))
    }

    fn page(&self, c: u8, page: PageId) -> Accepted {
        let asked = self.mirror.asked(&self.state, c);
        same("the page", Some(page.0), asked.map(u64::from))
    }

    fn block(&self, offset: u8) -> Block {
        self.mirror.block_at(&self.state, offset)
    }

    fn ring(&mut self, c: u8, event: Event) -> Accepted {
        let work = self.mirror.thread(&self.state, c).work;
        match event {
            Event::Pauses { .. } => Ok(()),
            Event::Looked {
                page,
                at,
                near_head,
            } => {
                self.page(c, page)?;
                let at = self.units(at)?;
                self.agrees("the mini-page", &of(c, "old"), at, work.old)?;
                same(
                    "near the head",
                    near_head,
                    self.mirror.near_head(&self.state, at),
                )?;
                self.looked(c, near_head)
            }
            Event::Reused { page, at, bytes } => {
                self.page(c, page)?;
                self.agrees("the size", &of(c, "size"), self.units(bytes)?, work.size)?;
                self.take(c, Action::PopFreeList(c, self.units(at)?))?;
                self.take(c, Action::Reuse(c))
            }
            Event::PassedOver { page, at } => {
                self.page(c, page)?;
                self.take(c, Action::PopFreeList(c, self.units(at)?))?;
                self.take(c, Action::PassOver(c))
            }
            Event::Padded { at, bytes, .. } => {
                let (at, bytes) = (self.units(at)?, self.units(bytes)?);
                self.take(c, Action::Pad(c))?;
                self.agrees(
                    "the padding",
                    &format!("block[{at}].size"),
                    bytes,
                    self.block(at).size,
                )
            }
            Event::Allocated { page, at, bytes } => {
                self.page(c, page)?;
                self.agrees("the size", &of(c, "size"), self.units(bytes)?, work.size)?;
                self.take(c, Action::Allocate(c))?;
                let new = self.mirror.thread(&self.state, c).work.new;
                self.agrees("the block", &of(c, "new"), self.units(at)?, new)
            }
            Event::Full { page, bytes } => {
                self.page(c, page)?;
                self.agrees("the size", &of(c, "size"), self.units(bytes)?, work.size)?;
                self.take(c, Action::Full(c))
            }
            Event::Published { page, at } => {
                self.page(c, page)?;
                self.agrees("the block", &of(c, "new"), self.units(at)?, work.new)?;
                self.take(c, Action::Copy(c))?;
                self.take(c, Action::Publish(c))
            }
            Event::Freed { at, listed, .. } => {
                let at = self.units(at)?;
                self.agrees("the block", &of(c, "old"), at, work.old)?;
                self.take(c, Action::Deallocate(c))?;
                same("listed", listed, self.block(at).life == Life::Listed)
            }
            Event::Abandoned { .. } | Event::Discarded { .. } | Event::ClaimReturned { .. } => {
                Err("the spec has no such event, so the episode should have none".into())
            }
            _ => self.eviction(c, event),
        }
    }

    /// The place of a mini-page decides what its writer does. A reader reports that itself.
    fn looked(&mut self, c: u8, near_head: bool) -> Accepted {
        let thread = self.mirror.thread(&self.state, c);
        if !matches!(thread.call, Call::Write { .. }) {
            return Ok(());
        }
        let size = self.block(thread.work.old).size;
        let action = match self.intents[usize::from(c)] {
            _ if near_head => Action::CopyToTail(c, size),
            Intent::InPlace => Action::Write(c),
            Intent::Grow(size) => Action::Grow(c, size),
        };
        self.take(c, action)
    }

    fn eviction(&mut self, c: u8, event: Event) -> Accepted {
        let work = self.mirror.thread(&self.state, c).work;
        match event {
            Event::Claimed { at, bytes, again } => {
                same("claimed before", again, false)?;
                self.take(c, Action::Claim(c))?;
                let victim = self.mirror.thread(&self.state, c).work.victim;
                self.agrees("the victim", &of(c, "victim"), self.units(at)?, victim)?;
                same("its size", self.units(bytes)?, self.block(victim).size)
            }
            Event::Retried => self.take(c, Action::Retry(c)),
            Event::Skipped { at } => {
                self.agrees("the victim", &of(c, "victim"), self.units(at)?, work.victim)?;
                self.take(c, Action::Skip(c))
            }
            Event::Unlisted { at } => {
                self.agrees("the victim", &of(c, "victim"), self.units(at)?, work.victim)?;
                self.take(c, Action::Unlist(c))
            }
            Event::VictimLocked { page, at } => {
                self.agrees("the victim", &of(c, "victim"), self.units(at)?, work.victim)?;
                self.take(c, Action::FindPage(c))?;
                let found = self.mirror.thread(&self.state, c).work.page;
                same("its page", page.0, found.into())?;
                self.take(c, Action::LockVictim(c))?;
                let phase = self.mirror.thread(&self.state, c).phase;
                same("the victim's phase", phase, Phase::Merge)
            }
            Event::VictimMoved { .. } => {
                self.notes.tally.took("(VictimMoved)");
                Ok(())
            }
            Event::Merged { page, .. } => {
                same("the page", page.0, work.page.into())?;
                if self.block(work.victim).dirty {
                    return self.take(c, Action::WriteLeaf(c));
                }
                Ok(())
            }
            Event::Unmapped { page, .. } => {
                same("the page", page.0, work.page.into())?;
                self.take(c, Action::Unmap(c))
            }
            Event::Passed { at } => {
                let at = self.units(at)?;
                let who = self.mirror.finisher(&self.state, at);
                let who = who.ok_or_else(|| "nobody has evicted the block".to_owned());
                let who = self.notes.claim(who, || {
                    format!("\\E c \\in Clients : work[c].victim = {at} /\\ Finish(c)")
                })?;
                self.take(who, Action::Finish(who))
            }
            other => Err(format!("{other:?} is not an event of an eviction")),
        }
    }
}

/// A part of what a client's thread holds.
fn of(c: u8, part: &str) -> String {
    format!("work[c{}].{part}", c + 1)
}
