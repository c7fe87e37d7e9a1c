//! One key: is there an order of its operations, each at an instant within its interval, in which
//! every read finds what was written last?
//!
//! Just-in-time linearization (Lowe, "Testing for linearizability", 2017): walk through invocations
//! and returns in the order of time and keep every *configuration* the register may be in:
//!
//! ```text
//! value: what it holds | done: which of the operations on their way have taken effect | spent: …
//! ```
//!
//! An operation takes effect no later than at its return, and there only if it has not before:
//! then, and only then, others on their way may take effect before it, in any order. No
//! configuration left: no order explains what was found. Three observations keep the sets small,
//! and lose nothing:
//!
//! - a read changes nothing, so it takes effect as soon as the value is the one that it found;
//! - a put that never returned and that no read found may as well never take effect;
//! - deletes that never returned are all alike, so it is enough to know how many took effect
//!   (`spent`); fewer is better.
//!
//! With k writes on their way at the same time there are at most (k + 1) · 2^k configurations; each
//! event costs at most k times as many steps. k is at most the number of clients, plus the puts
//! that never returned and were found: an operation that overlaps no other on its key costs one
//! step, so a history takes time linear in its length. What has more than [`MAX_PENDING`]
//! operations on their way or [`MAX_CONFIGURATIONS`] is not judged, and said so.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::history::Version;

/// Most operations on their way at the same time, on one key.
pub const MAX_PENDING: usize = 128;

/// Most configurations held at the same time.
pub const MAX_CONFIGURATIONS: usize = 1 << 18;

/// What an operation does to the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// An operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) invoke: u64,
    /// `u64::MAX`: it may take effect at any later time, or never.
    pub(super) end: u64,
    pub(super) version: Version,
    /// Place of its call in the history.
    pub(super) call: u32,
    pub(super) access: Access,
}

impl Event {
    fn returned(&self) -> bool {
        self.end != u64::MAX
    }
}

/// Why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing explains the read that is the event of this number.
    Unexplained(usize),
    /// Too much at the same time.
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Configuration {
    value: Version,
    done: u128,
    spent: u32,
}

/// An operation on its way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    end: u64,
    event: usize,
    bit: u128,
    version: Version,
    access: Access,
}

/// What the register may have held in a stretch of time.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) seen: Vec<Version>,
}

/// The walk; made once, used for key after key.
#[derive(Debug, Default)]
pub(super) struct Walk {
    configurations: Vec<Configuration>,
    next: Vec<Configuration>,
    /// On their way, and they did return: in the order of their returns, last first.
    live: Vec<Pending>,
    /// Puts on their way for ever.
    forever: Vec<Pending>,
    /// Deletes invoked so far that never returned.
    deletes: u32,
    used: u128,
    found: FxHashSet<u64>,
    least: FxHashMap<(u64, u128), u32>,
    stack: Vec<Configuration>,
}

impl Walk {
    /// Whether the operations of a key, in the order of their invocations, have an order that
    /// explains them.
    pub(super) fn judge(&mut self, events: &[Event]) -> Result<(), Stop> {
        self.run(events, None)
    }

    /// As [`Walk::judge`], noting all that the register may have held between two ticks.
    pub(super) fn run(
        &mut self,
        events: &[Event],
        mut watch: Option<&mut Watch>,
    ) -> Result<(), Stop> {
        self.start(events);
        for (number, event) in events.iter().enumerate() {
            self.returns_before(event.invoke, &mut watch)?;
            self.before(event.invoke, &mut watch)?;
            if !event.returned() && !self.invoke_forever(number, event)? {
                continue;
            }
            if event.returned() {
                let alone = self.live.is_empty()
                    && self.forever.is_empty()
                    && self.deletes == 0
                    && watch.is_none()
                    && events
                        .get(number + 1)
                        .is_none_or(|next| event.end < next.invoke);
                if alone {
                    self.at_once(number, event)?;
                } else {
                    let pending = self.slot(number, event)?;
                    let at = self.live.partition_point(|other| other.end > event.end);
                    self.live.insert(at, pending);
                    self.read_early(pending);
                }
            }
            self.after(event.invoke, &mut watch)?;
        }
        self.returns_before(u64::MAX, &mut watch)?;
        self.before(u64::MAX, &mut watch)
    }

    fn start(&mut self, events: &[Event]) {
        self.configurations.clear();
        self.configurations.push(Configuration {
            value: Version::ABSENT,
            done: 0,
            spent: 0,
        });
        self.live.clear();
        self.forever.clear();
        (self.deletes, self.used) = (0, 0);
        self.found.clear();
        let lost = |event: &Event| event.access == Access::Write && !event.returned();
        if events.iter().any(lost) {
            let reads = events.iter().filter(|event| event.access == Access::Read);
            self.found.extend(reads.map(|event| event.version.0));
        }
    }

    /// An operation that overlaps no other.
    fn at_once(&mut self, number: usize, event: &Event) -> Result<(), Stop> {
        match event.access {
            Access::Write => {
                self.configurations.truncate(1);
                self.configurations[0].value = event.version;
            }
            Access::Read => {
                self.configurations.retain(|now| now.value == event.version);
                if self.configurations.is_empty() {
                    return Err(Stop::Unexplained(number));
                }
            }
        }
        Ok(())
    }

    /// An operation that never returned begins; says whether it matters.
    fn invoke_forever(&mut self, number: usize, event: &Event) -> Result<bool, Stop> {
        match (event.access, event.version) {
            (Access::Read, _) => return Ok(false),
            (Access::Write, Version::ABSENT) => self.deletes += 1,
            (Access::Write, version) if self.found.contains(&version.0) => {
                let pending = self.slot(number, event)?;
                self.forever.push(pending);
            }
            (Access::Write, _) => return Ok(false),
        }
        Ok(true)
    }

    fn slot(&mut self, number: usize, event: &Event) -> Result<Pending, Stop> {
        let slot = self.used.trailing_ones();
        if slot as usize >= MAX_PENDING {
            return Err(Stop::TooMany);
        }
        self.used |= 1 << slot;
        Ok(Pending {
            end: event.end,
            event: number,
            bit: 1 << slot,
            version: event.version,
            access: event.access,
        })
    }

    /// A read takes effect as soon as it can.
    fn read_early(&mut self, pending: Pending) {
        if pending.access == Access::Read {
            for now in &mut self.configurations {
                if now.value == pending.version {
                    now.done |= pending.bit;
                }
            }
        }
    }

    /// Whatever returned before tick `now`, in the order of the returns.
    fn returns_before(&mut self, now: u64, watch: &mut Option<&mut Watch>) -> Result<(), Stop> {
        while let Some(first) = self.live.last().copied()
            && first.end < now
        {
            self.before(first.end, watch)?;
            self.complete(first)?;
            self.live.pop();
            self.used &= !first.bit;
            self.after(first.end, watch)?;
        }
        Ok(())
    }

    /// `pending` returns: keeps the configurations in which it has taken effect, or can right now.
    fn complete(&mut self, pending: Pending) -> Result<(), Stop> {
        if self
            .configurations
            .iter()
            .all(|now| now.done & pending.bit != 0)
        {
            // The bit will be another operation's.
            for now in &mut self.configurations {
                now.done &= !pending.bit;
            }
            return Ok(());
        }
        self.explore(Some(pending.bit))?;
        std::mem::swap(&mut self.configurations, &mut self.next);
        if self.configurations.is_empty() {
            return Err(Stop::Unexplained(pending.event));
        }
        Ok(())
    }

    /// Lets writes on their way take effect in every order. With a `goal`: until that operation
    /// has, and `next` is those configurations, without its bit. Without one: `next` is all that
    /// can be reached.
    fn explore(&mut self, goal: Option<u128>) -> Result<(), Stop> {
        self.next.clear();
        self.least.clear();
        self.stack.clear();
        for place in 0..self.configurations.len() {
            self.reach(self.configurations[place]);
        }
        while let Some(now) = self.stack.pop() {
            if self.least[&(now.value.0, now.done)] < now.spent {
                continue;
            }
            match goal {
                Some(bit) if now.done & bit != 0 => {
                    let done = now.done & !bit;
                    self.next.push(Configuration { done, ..now });
                    continue;
                }
                Some(_) => {}
                None => self.next.push(now),
            }
            if self.least.len() > MAX_CONFIGURATIONS {
                return Err(Stop::TooMany);
            }
            for place in 0..self.live.len() + self.forever.len() {
                let pending = match self.live.get(place) {
                    Some(pending) => *pending,
                    None => self.forever[place - self.live.len()],
                };
                if pending.access == Access::Write && now.done & pending.bit == 0 {
                    let done = now.done | pending.bit;
                    self.write(Configuration { done, ..now }, pending.version);
                }
            }
            if now.spent < self.deletes && now.value != Version::ABSENT {
                let spent = now.spent + 1;
                self.write(Configuration { spent, ..now }, Version::ABSENT);
            }
        }
        Ok(())
    }

    /// `value` is written, and who waits for it reads it.
    fn write(&mut self, mut now: Configuration, value: Version) {
        now.value = value;
        for pending in &self.live {
            if pending.access == Access::Read && pending.version == value {
                now.done |= pending.bit;
            }
        }
        self.reach(now);
    }

    /// A configuration that can be reached; new, or with fewer deletes spent than before.
    fn reach(&mut self, now: Configuration) {
        let least = self
            .least
            .entry((now.value.0, now.done))
            .or_insert(u32::MAX);
        if now.spent < *least {
            *least = now.spent;
            self.stack.push(now);
        }
    }

    /// Something happens at tick `now`: what holds until then is noted at the beginning of the
    /// stretch.
    fn before(&mut self, now: u64, watch: &mut Option<&mut Watch>) -> Result<(), Stop> {
        match watch {
            Some(watch) if watch.seen.is_empty() && now >= watch.from => self.note(watch),
            _ => Ok(()),
        }
    }

    /// Something happened at tick `now`: what holds from then on is noted within the stretch.
    fn after(&mut self, now: u64, watch: &mut Option<&mut Watch>) -> Result<(), Stop> {
        match watch {
            Some(watch) if (watch.from..=watch.to).contains(&now) => self.note(watch),
            _ => Ok(()),
        }
    }

    fn note(&mut self, watch: &mut Watch) -> Result<(), Stop> {
        self.explore(None)?;
        watch.seen.extend(self.next.iter().map(|now| now.value));
        watch.seen.sort_unstable();
        watch.seen.dedup();
        Ok(())
    }
}
