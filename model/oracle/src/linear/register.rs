//! Checks one key: is there an order of its operations, each at an instant within its interval, in
//! which every read finds the last written value?
//!
//! This is just-in-time linearization (Lowe, "Testing for linearizability", 2017). It walks through
//! invocations and returns in time order and keeps every *configuration* that the register may be
//! in:
//!
//! ```text
//! value: what it holds | done: which of the pending operations have taken effect | spent: …
//! ```
//!
//! An operation takes effect at its return at the latest. Only if it has not taken effect before
//! does it do so there, and only then may other pending operations take effect before it, in any
//! order. If no configuration is left, no order explains the answers. Three observations keep the
//! sets small without losing anything:
//!
//! - A read changes nothing, so it takes effect as soon as the value is the one that it found.
//! - A put that never returned and that no read found may be assumed never to take effect.
//! - Deletes that never returned are all alike, so it is enough to count how many took effect
//!   (`spent`). Fewer is better.
//!
//! With k writes pending at the same time there are at most (k + 1) · 2^k configurations, and each
//! event costs at most k times as many steps. k is at most the number of clients, plus the puts
//! that never returned and were found. An operation that overlaps no other on its key costs one
//! step, so a history takes time linear in its length. A key with more than [`MAX_PENDING`] pending
//! operations or [`MAX_CONFIGURATIONS`] configurations is not judged, and is reported as unjudged.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::history::Version;

/// The most operations on one key that may be pending at the same time.
pub const MAX_PENDING: usize = 128;

/// The most configurations at the same time.
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
    /// `u64::MAX` if it may take effect at any later time, or never.
    pub(super) end: u64,
    pub(super) version: Version,
    /// The index of its call in the history.
    pub(super) call: u32,
    pub(super) access: Access,
}

impl Event {
    fn returned(&self) -> bool {
        self.end != u64::MAX
    }
}

/// The reason why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// No order explains the read with this index among the events.
    Unexplained(usize),
    /// Too many operations or configurations at the same time.
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Configuration {
    value: Version,
    done: u128,
    spent: u32,
}

/// A pending operation.
#[derive(Clone, Copy, Debug)]
struct Pending {
    end: u64,
    event: usize,
    bit: u128,
    version: Version,
    access: Access,
}

/// The values that the register may have held in an interval of time.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) seen: Vec<Version>,
}

/// The state of the walk. Created once, and used for one key after another.
#[derive(Debug, Default)]
pub(super) struct Walk {
    configurations: Vec<Configuration>,
    next: Vec<Configuration>,
    /// Pending operations that do return, in the order of their returns, last first.
    live: Vec<Pending>,
    /// Puts that never return.
    forever: Vec<Pending>,
    /// The number of deletes invoked so far that never return.
    deletes: u32,
    used: u128,
    found: FxHashSet<u64>,
    least: FxHashMap<(u64, u128), u32>,
    stack: Vec<Configuration>,
}

impl Walk {
    /// Checks that some order explains the operations of a key, which are given in the order of
    /// their invocations.
    pub(super) fn judge(&mut self, events: &[Event]) -> Result<(), Stop> {
        self.run(events, None)
    }

    /// As [`Walk::judge`], and notes all values that the register may have held between two ticks.
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

    /// Begins an operation that never returns. Returns whether it matters.
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

    /// Lets a read take effect as soon as possible.
    fn read_early(&mut self, pending: Pending) {
        if pending.access == Access::Read {
            for now in &mut self.configurations {
                if now.value == pending.version {
                    now.done |= pending.bit;
                }
            }
        }
    }

    /// Completes the operations that returned before tick `now`, in the order of their returns.
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

    /// `pending` returns: keeps the configurations in which it has taken effect, or can do so right
    /// now.
    fn complete(&mut self, pending: Pending) -> Result<(), Stop> {
        if self
            .configurations
            .iter()
            .all(|now| now.done & pending.bit != 0)
        {
            // The bit will be reused for another operation.
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

    /// Lets pending writes take effect in every order. With a `goal`, stops at configurations in
    /// which that operation has taken effect, and `next` is those configurations without its bit.
    /// Without a goal, `next` is every reachable configuration.
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

    /// Writes `value`, and lets the reads that wait for it take effect.
    fn write(&mut self, mut now: Configuration, value: Version) {
        now.value = value;
        for pending in &self.live {
            if pending.access == Access::Read && pending.version == value {
                now.done |= pending.bit;
            }
        }
        self.reach(now);
    }

    /// Adds a reachable configuration, if it is new or has fewer deletes spent than before.
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

    /// Something happens at tick `now`. If the interval begins before that, notes the current
    /// values at its beginning.
    fn before(&mut self, now: u64, watch: &mut Option<&mut Watch>) -> Result<(), Stop> {
        match watch {
            Some(watch) if watch.seen.is_empty() && now >= watch.from => self.note(watch),
            _ => Ok(()),
        }
    }

    /// Something happened at tick `now`. Notes the current values if that is within the interval.
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
