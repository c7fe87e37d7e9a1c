//! Explains why a read is impossible: the kind of violation, and the fewest operations that
//! contradict each other.
//!
//! An operation may be left out only if that explains nothing new, so that the rest is still the
//! engine's fault. A read can always be left out. A put can be, if no remaining read found it. A
//! delete can be, if no remaining read can have found *its* absence, because the read ended before
//! the delete began, or because a remaining put lies entirely between them. So if the rest
//! contradicts itself, the whole does. Pieces of halving size are left out as long as the rest
//! contradicts itself (Zeller's ddmin).

use rustc_hash::FxHashSet;

use super::register::{Access, Event, Stop, Walk, Watch};
use super::violation::{Kind, Violation};
use crate::history::{Action, History, KeyId, Version};

/// The most operations to process in the search for the fewest.
const EFFORT: usize = 20_000_000;

/// The violation of read number `culprit`, among all operations of `key`.
pub(super) fn explain(
    history: &History,
    key: KeyId,
    events: &[Event],
    culprit: usize,
) -> Violation {
    let read = events[culprit];
    // Operations invoked later are not needed to explain it: the search is just in time, so it does
    // not read the future.
    let relevant: Vec<Event> = events
        .iter()
        .filter(|event| event.invoke < read.end)
        .copied()
        .collect();
    let mut walk = Walk::default();
    let expected = expected(&mut walk, &relevant, &read);
    let few = fewest(&mut walk, &relevant, &read);
    let calls = few.iter().map(|event| event.call as usize).collect();
    Violation::of_key(
        history,
        kind(history, events, &read),
        history.key(key),
        (read.call as usize, read.version),
        expected,
        calls,
    )
}

/// The values that `read` could have found: those that the register may have held while the read
/// was pending, consistently with all operations that had returned by then.
fn expected(walk: &mut Walk, events: &[Event], read: &Event) -> Vec<Version> {
    let others: Vec<Event> = events
        .iter()
        .filter(|event| event.call != read.call)
        .copied()
        .collect();
    let mut watch = Watch {
        from: read.invoke,
        to: read.end,
        seen: Vec::new(),
    };
    // A later read may be wrong as well, but by then the interval is over.
    let _ = walk.run(&others, Some(&mut watch));
    let mut instead = events.to_vec();
    let at = events.iter().position(|event| event.call == read.call);
    watch.seen.retain(|version| {
        if let Some(at) = at {
            instead[at].version = *version;
        }
        match walk.judge(&instead) {
            Err(Stop::Unexplained(wrong)) => instead[wrong].end > read.end,
            Err(Stop::TooMany) | Ok(()) => true,
        }
    });
    watch.seen
}

fn is_write_of(event: &Event, version: Version) -> bool {
    event.access == Access::Write && event.version == version
}

fn kind(history: &History, events: &[Event], read: &Event) -> Kind {
    let scan = matches!(history.calls()[read.call as usize].action, Action::Scan(_));
    let seen = |version| {
        events.iter().any(|event| {
            event.access == Access::Read && event.version == version && event.call != read.call
        })
    };
    // The last write that had returned before the read began.
    let last = events
        .iter()
        .filter(|event| event.access == Access::Write && event.end < read.invoke)
        .max_by_key(|event| event.invoke);
    if read.version == Version::ABSENT {
        return match last {
            Some(put) if put.version != Version::ABSENT => match (scan, seen(put.version)) {
                (true, _) => Kind::ScanMisses,
                (false, false) => Kind::LostUpdate,
                (false, true) => Kind::Vanished,
            },
            _ => Kind::NoOrder,
        };
    }
    let mut writes = events
        .iter()
        .filter(|event| is_write_of(event, read.version))
        .peekable();
    if writes.peek().is_none() {
        return Kind::NeverWritten;
    }
    if writes.clone().all(|write| write.invoke > read.end) {
        return Kind::BeforeWritten;
    }
    let replaced = |by: &Event| writes.clone().all(|write| write.end < by.invoke);
    match last {
        Some(by) if !replaced(by) => Kind::NoOrder,
        Some(by) if by.version == Version::ABSENT => Kind::CameBack,
        Some(by) if !seen(by.version) => Kind::LostUpdate,
        Some(_) => Kind::StaleRead,
        None => Kind::NoOrder,
    }
}

/// The fewest of `events`, in their order, that no order explains. `read` is among them.
fn fewest(walk: &mut Walk, events: &[Event], read: &Event) -> Vec<Event> {
    let mut kept = events.to_vec();
    let mut effort = 0;
    loop {
        let before = kept.len();
        let mut piece = kept.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < kept.len() {
                effort += kept.len();
                if effort > EFFORT {
                    return kept;
                }
                let end = (at + piece).min(kept.len());
                let rest = without(&kept, at..end, read);
                if rest.len() < kept.len() && matches!(walk.judge(&rest), Err(Stop::Unexplained(_)))
                {
                    kept = rest;
                } else {
                    at = end;
                }
            }
            piece /= 2;
        }
        if kept.len() == before {
            return kept;
        }
    }
}

/// `events` without as many events in `range` as may be left out.
fn without(events: &[Event], range: std::ops::Range<usize>, read: &Event) -> Vec<Event> {
    let kept_read = |(at, event): &(usize, &Event)| {
        event.access == Access::Read && (!range.contains(at) || event.call == read.call)
    };
    let reads: Vec<&Event> = events
        .iter()
        .enumerate()
        .filter(kept_read)
        .map(|(_, event)| event)
        .collect();
    let found: FxHashSet<u64> = reads.iter().map(|event| event.version.0).collect();
    let may_go = |at: usize, event: &Event| {
        range.contains(&at)
            && match event.access {
                Access::Read => event.call != read.call,
                Access::Write => !found.contains(&event.version.0),
            }
    };
    let rest: Vec<Event> = events
        .iter()
        .enumerate()
        .filter(|(at, event)| !may_go(*at, event))
        .map(|(_, event)| *event)
        .collect();
    if !found.contains(&Version::ABSENT.0) {
        return rest;
    }
    let Some(range) = events.get(range).filter(|range| !range.is_empty()) else {
        return rest;
    };
    let (first, last) = (range[0].invoke, range[range.len() - 1].invoke);
    let unseen = Absences::of(&reads, &rest);
    rest.into_iter()
        .filter(|event| {
            let candidate =
                is_write_of(event, Version::ABSENT) && (first..=last).contains(&event.invoke);
            !(candidate && unseen.cannot_be_of(event))
        })
        .collect()
}

/// The reads that found nothing, and for each the latest beginning of a put that ended before it.
struct Absences {
    /// The ends of the reads, ascending.
    ends: Vec<u64>,
    /// The least of those beginnings, over this read and all that end later.
    puts: Vec<u64>,
}

impl Absences {
    fn of(reads: &[&Event], events: &[Event]) -> Absences {
        let mut puts: Vec<(u64, u64)> = events
            .iter()
            .filter(|event| event.access == Access::Write && event.version != Version::ABSENT)
            .map(|put| (put.end, put.invoke))
            .collect();
        puts.sort_unstable();
        let mut latest = 0;
        for (_, invoke) in &mut puts {
            latest = latest.max(*invoke);
            *invoke = latest;
        }
        let mut absences: Vec<(u64, u64)> = reads
            .iter()
            .filter(|event| event.version == Version::ABSENT)
            .map(|absent| {
                let before = puts.partition_point(|(end, _)| *end < absent.invoke);
                (absent.end, before.checked_sub(1).map_or(0, |at| puts[at].1))
            })
            .collect();
        absences.sort_unstable();
        let mut least = u64::MAX;
        for (_, put) in absences.iter_mut().rev() {
            least = least.min(*put);
            *put = least;
        }
        let (ends, puts) = absences.into_iter().unzip();
        Absences { ends, puts }
    }

    /// Whether none of the reads can have found what `delete` left, because each ended before it or
    /// a put lies entirely between.
    fn cannot_be_of(&self, delete: &Event) -> bool {
        let after = self.ends.partition_point(|end| *end < delete.invoke);
        self.puts.get(after).is_none_or(|put| delete.end < *put)
    }
}
