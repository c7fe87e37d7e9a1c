//! The accesses that a sample of the pages meets: what each further prediction plays.
//!
//! ```text
//! all       g g p g p N g p g S p g            N makes a record, S makes pages split
//! thinned   g [3 ops, 1 put] N g [3 ops, 1 put] S p [1 op]
//! ```
//!
//! Which page a key is in does not depend on caches and drives. So the accesses are thinned once
//! for each size of the sample, by a bit per key: whether its page is played. A split changes the
//! bits of the keys that move. Operations on other pages only move the end of the log, and
//! neighbours among them become one entry. Puts that make records there name the page. Operations that
//! split pages or delete stay.

use std::io;
use std::sync::Arc;

use treering_traces::OpKind;

use super::leaves::Leaves;
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::{Accesses, Added, Event, Rest, Step, Workload};

/// Whether a page is one of those that are played: one in `sample`, a power of two. A sample
/// contains all smaller ones.
#[inline]
pub(super) fn is_sampled(page: u32, sample: u64) -> bool {
    // Fibonacci hashing; its upper bits are the good ones.
    let hash = u64::from(page).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    hash & (sample - 1) == 0
}

/// The accesses to one page in `sample`, which the level keeps.
///
/// # Errors
/// The list of accesses is in a file that cannot be read or written.
pub(super) fn kept(
    workload: &Workload,
    level: &LeafLevel,
    sample: u64,
) -> io::Result<Arc<Accesses>> {
    let mut kept = level.thinned.lock();
    if let Some((_, accesses)) = kept.iter().find(|(of, _)| *of == sample) {
        return Ok(Arc::clone(accesses));
    }
    // A larger sample has all that a smaller one needs.
    let larger = kept.iter().filter(|(of, _)| *of < sample);
    let larger = larger.max_by_key(|(of, _)| *of);
    let from = larger.map_or(&workload.accesses, |(_, accesses)| &**accesses);
    let thinned = Arc::new(thin(workload, level, (from, sample))?);
    kept.push((sample, Arc::clone(&thinned)));
    Ok(thinned)
}

fn thin(
    workload: &Workload,
    level: &LeafLevel,
    (from, sample): (&Accesses, u64),
) -> io::Result<Accesses> {
    let mut thinner = Thinner::new(workload, level, sample);
    let warmup = workload.warmup.all_ops();
    let mut measuring = false;
    let end = from.each_event(|time, event| {
        if time >= warmup && !measuring {
            // No entry has operations of both parts.
            measuring = true;
            thinner.end_rest();
        }
        match event {
            Event::Step(step) => thinner.step(step),
            Event::Rest(rest) => thinner.rest(time, rest),
            Event::Add(added) => thinner.add(time, added),
        }
    })?;
    thinner.end_rest();
    thinner.thinned.pass(end - thinner.end);
    match thinner.thinned.lost() {
        Some(kind) => Err(kind.into()),
        None => Ok(thinner.thinned),
    }
}

/// A set of numbers below a limit.
struct Bits(Vec<u64>);

impl Bits {
    fn new(limit: usize) -> Bits {
        Bits(vec![0; limit.div_ceil(64)])
    }

    #[inline]
    fn has(&self, n: u32) -> bool {
        self.0[n as usize / 64] >> (n % 64) & 1 == 1
    }

    #[inline]
    fn set(&mut self, n: u32, to: bool) {
        let word = &mut self.0[n as usize / 64];
        *word = *word & !(1 << (n % 64)) | u64::from(to) << (n % 64);
    }
}

struct Thinner<'a> {
    level: &'a LeafLevel,
    sample: u64,
    leaves: Leaves<'a>,
    /// Keys whose page is played.
    played: Bits,
    /// Keys that have a record.
    live: Bits,
    thinned: Accesses,
    rest: Rest,
    /// Number of the operation behind the last one in the list, and behind the rest.
    end: u64,
    rest_end: u64,
}

impl<'a> Thinner<'a> {
    fn new(workload: &Workload, level: &'a LeafLevel, sample: u64) -> Thinner<'a> {
        let keys = workload.keys.len();
        let mut played = Bits::new(keys);
        if is_sampled(0, sample) {
            played.0.fill(u64::MAX);
        }
        Thinner {
            level,
            sample,
            leaves: Leaves::new(level, workload.tick),
            played,
            live: Bits::new(keys),
            thinned: Accesses::default(),
            rest: Rest::default(),
            end: 0,
            rest_end: 0,
        }
    }

    #[inline]
    fn step(&mut self, step: Step) {
        let is_played = self.played.has(step.key);
        match step.kind {
            OpKind::Get if !is_played => self.elsewhere(step.time, 0, 0),
            OpKind::Get => self.keep(step),
            OpKind::Put => {
                let is_quiet = self.live.has(step.key) && !self.leaves.is_due(step.time);
                match is_quiet {
                    true if !is_played => self.elsewhere(step.time, 1, 0),
                    true => self.keep(step),
                    false => self.change(step),
                }
            }
            OpKind::Delete => {
                self.live.set(step.key, false);
                self.keep(step);
            }
            OpKind::Scan => {
                let pages = self.leaves.scanned(step);
                let further = pages.len() as u64 - 1;
                let is_played = pages.iter().any(|page| is_sampled(*page, self.sample));
                match is_played || further > u64::from(Rest::MOST) {
                    true => self.keep(step),
                    false => self.elsewhere(step.time, 0, further as u32),
                }
            }
        }
    }

    /// A put that makes a record or comes with splits.
    fn change(&mut self, step: Step) {
        let is_split = self.leaves.is_due(step.time);
        while self.leaves.is_due(step.time) {
            self.split();
        }
        let page = self.leaves.page(step.key);
        let is_new = !self.live.has(step.key);
        if is_new && !is_split && !is_sampled(page, self.sample) {
            let key = step.key;
            return self.add(step.time, Added { key, page });
        }
        if is_new {
            self.live.set(step.key, true);
            self.leaves.add(page);
        }
        self.keep(step);
    }

    /// A put that makes a record on a page that is not played.
    fn add(&mut self, time: u64, added: Added) {
        self.end_rest();
        self.live.set(added.key, true);
        self.leaves.add(added.page);
        self.thinned.push_added(time - self.end, added);
        self.end = time + 1;
    }

    fn split(&mut self) {
        let Some(parted) = self.leaves.split() else {
            return;
        };
        let is_played = is_sampled(parted.right, self.sample);
        if is_played != is_sampled(parted.left, self.sample) {
            for key in &self.level.order[self.leaves.ranks(parted.right)] {
                self.played.set(*key, is_played);
            }
        }
    }

    fn keep(&mut self, step: Step) {
        self.end_rest();
        let passed = step.time - self.end;
        self.thinned.push(passed, step.kind, step.key, step.len);
        self.end = step.time + 1;
    }

    /// An operation on a page that is not played.
    #[inline]
    fn elsewhere(&mut self, time: u64, puts: u32, further: u32) {
        let rest = Rest {
            ops: 1,
            puts,
            further,
        };
        self.rest(time, rest);
    }

    #[inline]
    fn rest(&mut self, time: u64, rest: Rest) {
        let sum = self.rest.further + rest.further;
        if self.rest.ops + rest.ops > Rest::MOST || sum > Rest::MOST || time != self.rest_end {
            self.end_rest();
        }
        if self.rest.ops == 0 {
            // Operations on keys outside their own sample.
            self.thinned.pass(time - self.end);
            self.end = time;
        }
        self.rest.ops += rest.ops;
        self.rest.puts += rest.puts;
        self.rest.further += rest.further;
        self.rest_end = time + u64::from(rest.ops);
    }

    fn end_rest(&mut self) {
        if self.rest.ops > 0 {
            let rest = std::mem::take(&mut self.rest);
            self.thinned.push_rest(rest);
            self.end = self.rest_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use treering_engine::node::{LayoutChoice, PageLayout};
    use treering_traces::generate::{GenParams, Workload as Kind, build};

    use super::*;
    use crate::predict::workload::Span;

    fn events(accesses: &Accesses) -> Vec<(u64, Event)> {
        let mut events = Vec::new();
        let end = accesses.each_event(|time, event| events.push((time, event)));
        assert_eq!(end.expect("in memory"), 50_000);
        events
    }

    #[test]
    fn a_sample_has_all_accesses_to_its_pages_and_counts_the_others() {
        for kind in [Kind::Zipf, Kind::YcsbD, Kind::YcsbE, Kind::Latest] {
            let mut params = GenParams::new(kind, 10_000);
            params.ops = Some(40_000);
            params.deletes = Some(0.05).filter(|_| kind == Kind::Zipf);
            let (header, mut source) = build(&params).expect("good parameters");
            let span = Span::after(header.warmup_ops);
            let workload = Workload::analyze(&mut *source, span).expect("a trace");
            let choice = LayoutChoice::of(PageLayout::Prefix);
            let level = LeafLevel::grow(&workload, 4096, choice);

            let all = thin(&workload, &level, (&workload.accesses, 4)).expect("in memory");
            // A sample of a sample is as one of all.
            let half = thin(&workload, &level, (&workload.accesses, 2)).expect("in memory");
            let again = thin(&workload, &level, (&half, 4)).expect("in memory");
            assert_eq!(events(&all), events(&again), "{kind:?}");

            let (mut ops, mut puts, mut next) = (0, 0, 0);
            for (time, event) in events(&all) {
                assert_eq!(time, next, "{kind:?}");
                let (more, more_puts) = match event {
                    Event::Step(step) => (1, u64::from(step.kind == OpKind::Put)),
                    Event::Rest(rest) => (u64::from(rest.ops), u64::from(rest.puts)),
                    Event::Add(_) => (1, 1),
                };
                next = time + more;
                (ops, puts) = (ops + more, puts + more_puts);
            }
            let parts = [&workload.warmup, &workload.measured];
            let put: u64 = parts.iter().map(|t| t.of(OpKind::Put)).sum();
            assert_eq!((ops, puts), (50_000, put), "{kind:?}");
        }
    }
}
