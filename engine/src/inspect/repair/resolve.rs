//! Combines, for each key range, the newest known contents with later log entries of single keys.
//! The module [`super`] explains why that is correct.
//!
//! ```text
//!            a         c      f           k        p
//! images     |--- 10 ---------|---- 12 ---|        winners  [a,c) 10    [c,k) 31
//!                                              |--- 22 --->  [k,p) none  [p,-) 22
//! parts                |------- 31 -------|
//! ```
//!
//! Fences divide the keys into intervals within which no image or part begins or ends. A sweep
//! keeps the sources that cover the current interval, the newest first. Adjacent intervals with the
//! same winner and verdict are joined, so that each image is usually read only once.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::log::{LogFound, Part};
use super::place::{Places, Verdict};
use super::report::{KeyRange, SalvageReport, SalvageStep, SalvageVisitor};
use super::scan::{Found, Image};
use crate::device::Volume;
use crate::error::Result;
use crate::node::{PageRef, records};
use crate::overflow::{self, Pointer};
use crate::types::{Lsn, StoreId};

/// A source of records for a range.
#[derive(Clone, Copy)]
enum Source<'a> {
    Image(&'a Image),
    Part(&'a Part),
}

impl<'a> Source<'a> {
    fn lsn(&self) -> Lsn {
        match self {
            Source::Image(image) => image.lsn,
            Source::Part(part) => part.lsn,
        }
    }

    fn lower(&self) -> &'a [u8] {
        match self {
            Source::Image(image) => &image.lower,
            Source::Part(part) => &part.lower,
        }
    }

    fn upper(&self) -> Option<&'a [u8]> {
        match self {
            Source::Image(image) => image.upper.as_deref(),
            Source::Part(part) => part.upper.as_deref(),
        }
    }
}

/// Adjacent intervals with the same winner and the same verdict.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Run<'a> {
    from: &'a [u8],
    to: Option<&'a [u8]>,
    winner: Option<usize>,
    verdict: Verdict,
}

/// The receiver of the records, and the report.
struct Giver<'a> {
    volume: &'a Volume,
    store: StoreId,
    log: &'a LogFound,
    sources: &'a [Source<'a>],
    report: &'a mut SalvageReport,
    progress: &'a mut dyn FnMut(SalvageStep),
    visit: &'a mut SalvageVisitor<'a>,
}

/// Returns all records in key order, and reports the ranges that are missing or doubtful.
pub(super) fn resolve(
    volume: &Volume,
    found: &Found,
    log: &LogFound,
    places: &Places<'_>,
    report: &mut SalvageReport,
    progress: &mut dyn FnMut(SalvageStep),
    visit: &mut SalvageVisitor<'_>,
) -> Result<()> {
    let images = found.images.iter().map(Source::Image);
    let sources: Vec<Source<'_>> = images.chain(log.parts.iter().map(Source::Part)).collect();
    let mut giver = Giver {
        volume,
        store: found.store,
        log,
        sources: &sources,
        report,
        progress,
        visit,
    };
    let mut run: Option<Run<'_>> = None;
    each_interval(&sources, places, |from, to, winner| {
        let verdict = match winner.map(|at| sources[at]) {
            Some(Source::Image(image)) => places.judge(image, from),
            Some(Source::Part(part)) if part.lsn > log.whole_from => Verdict::Current,
            Some(Source::Part(_)) => Verdict::Doubtful,
            None => Verdict::Stale,
        };
        if let Some(run) = &mut run
            && (run.winner, run.verdict) == (winner, verdict)
        {
            run.to = to;
            return Ok(());
        }
        let next = Run {
            from,
            to,
            winner,
            verdict,
        };
        match run.replace(next) {
            Some(done) => giver.give(&done),
            None => Ok(()),
        }
    })?;
    run.map_or(Ok(()), |last| giver.give(&last))
}

/// Calls `each` with every interval in ascending order, and the newest source that covers it.
fn each_interval<'a>(
    sources: &[Source<'a>],
    places: &'a Places<'_>,
    mut each: impl FnMut(&'a [u8], Option<&'a [u8]>, Option<usize>) -> Result<()>,
) -> Result<()> {
    let mut cuts: BTreeSet<&[u8]> = BTreeSet::from([&b""[..]]);
    let mut begins: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut ends: HashMap<&[u8], Vec<usize>> = HashMap::new();
    cuts.extend(places.fences());
    for (at, source) in sources.iter().enumerate() {
        cuts.insert(source.lower());
        begins.entry(source.lower()).or_default().push(at);
        if let Some(upper) = source.upper() {
            cuts.insert(upper);
            ends.entry(upper).or_default().push(at);
        }
    }
    let mut open: BTreeSet<(Lsn, usize)> = BTreeSet::new();
    let mut cuts = cuts.into_iter().peekable();
    while let Some(from) = cuts.next() {
        for &at in ends.get(from).into_iter().flatten() {
            open.remove(&(sources[at].lsn(), at));
        }
        for &at in begins.get(from).into_iter().flatten() {
            open.insert((sources[at].lsn(), at));
        }
        let winner = open.last().map(|(_, at)| *at);
        each(from, cuts.peek().copied(), winner)?;
    }
    Ok(())
}

impl Giver<'_> {
    fn give(&mut self, run: &Run<'_>) -> Result<()> {
        let range = KeyRange {
            from: run.from.to_vec(),
            to: run.to.map(<[u8]>::to_vec),
        };
        let mut rows = Vec::new();
        let mut known_at = Lsn(0);
        let mut verdict = run.verdict;
        if verdict != Verdict::Stale
            && let Some(source) = run.winner.map(|at| self.sources[at])
        {
            known_at = source.lsn();
            match self.rows(source, &range) {
                Some(found) => rows = found,
                // The image was readable during the scan, but is not any more.
                None => verdict = Verdict::Stale,
            }
        }
        let known_at = if verdict == Verdict::Stale {
            Lsn(0)
        } else {
            known_at
        };
        match verdict {
            Verdict::Current => {}
            Verdict::Doubtful => note(&mut self.report.doubtful, &range),
            Verdict::Stale => note(&mut self.report.missing, &range),
        }
        self.give_rows(rows, &range, known_at)?;
        (self.progress)(SalvageStep::Given(self.report.records));
        Ok(())
    }

    /// Returns the records of a source that lie in a range, or `None` if it cannot be read.
    fn rows(&self, source: Source<'_>, range: &KeyRange) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let within = |key: &Vec<u8>| range.contains(key);
        match source {
            Source::Image(image) => {
                let bytes = image.load(self.volume, self.store)?;
                let page = PageRef::new(&bytes);
                let rows = page
                    .iter()
                    .map(|(suffix, value)| ([page.prefix(), &suffix].concat(), value.to_vec()));
                Some(rows.filter(|(key, _)| within(key)).collect())
            }
            Source::Part(part) => {
                let list = records::decode(&part.records).ok()?;
                let rows = list.map(|(key, value)| (key, value.to_vec()));
                Some(rows.filter(|(key, _)| within(key)).collect())
            }
        }
    }

    /// Returns `rows`, which were current when the log stood at `known_at`, updated with later log
    /// entries.
    fn give_rows(
        &mut self,
        rows: Vec<(Vec<u8>, Vec<u8>)>,
        range: &KeyRange,
        known_at: Lsn,
    ) -> Result<()> {
        let from = Bound::Included(range.from.as_slice());
        let to = match &range.to {
            Some(to) => Bound::Excluded(to.as_slice()),
            None => Bound::Unbounded,
        };
        let points = self.log.points.range::<[u8], _>((from, to));
        let mut points = points.filter(|(_, point)| point.lsn > known_at).peekable();
        for (key, value) in rows {
            while let Some((earlier, point)) = points.next_if(|(at, _)| **at < key) {
                if let Some(value) = &point.value {
                    self.give_one(earlier, value)?;
                }
            }
            match points.next_if(|(at, _)| **at == key) {
                None => self.give_one(&key, &value)?,
                Some((_, point)) => {
                    if let Some(value) = &point.value {
                        self.give_one(&key, value)?;
                    }
                }
            }
        }
        for (key, point) in points {
            if let Some(value) = &point.value {
                self.give_one(key, value)?;
            }
        }
        Ok(())
    }

    fn give_one(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(pointer) = Pointer::of(value) else {
            return self.give_value(key, value);
        };
        let mut long = Vec::new();
        match overflow::read(self.volume, self.store, key, &pointer, &mut long) {
            Ok(()) => self.give_value(key, &long),
            Err(e) => {
                self.report.damage.push(e.to_string());
                let behind = [key, &[0]].concat();
                let alone = KeyRange {
                    from: key.to_vec(),
                    to: Some(behind),
                };
                note_alone(&mut self.report.missing, alone);
                Ok(())
            }
        }
    }

    fn give_value(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.report.records += 1;
        self.report.user_bytes += (key.len() + value.len()) as u64;
        (self.visit)(key, value)
    }
}

/// Adds a range of a single key, unless the last range contains the key.
fn note_alone(ranges: &mut Vec<KeyRange>, key: KeyRange) {
    if ranges.last().is_none_or(|last| !last.contains(&key.from)) {
        note(ranges, &key);
    }
}

/// Adds a range after the last one, or joins it to that.
fn note(ranges: &mut Vec<KeyRange>, range: &KeyRange) {
    match ranges.last_mut() {
        Some(last) if last.to.as_ref() == Some(&range.from) => last.to.clone_from(&range.to),
        _ => ranges.push(range.clone()),
    }
}
