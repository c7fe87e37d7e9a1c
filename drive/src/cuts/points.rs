//! The places of a recording where the power is cut.
//!
//! Between two flushes nothing becomes durable, so whatever a cut there can leave, a cut just
//! before the second flush can leave, too: the subsets of its volatile effects include those of
//! earlier cuts. What tells earlier cuts apart are acknowledgements. So the power is cut
//!
//! - just before a flush, or before a synchronous write returns;
//! - just after a line of `$TREERING_ACKS`;
//! - at the end.
//!
//! Points are *alike* if the same sequence of operations led to them from the point before: kinds
//! of operations and of files, repetitions as one, numbers in names left out. The first of each
//! kind is explored before the others (representative testing, as Pathfinder does).

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};

use super::effect::{Effect, What};
use super::window::Window;
use crate::error::DriveError;
use crate::recording::event::FlushKind;
use crate::recording::{Event, MOUNTED, Reader, Recorded};

/// A place where the power is cut: before event `event` is complete, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// The number of the event.
    pub(super) event: u64,
    /// Whether what the event makes durable is durable.
    pub(super) after: bool,
}

/// What is known of a place where the power is cut.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) place: Place,
    /// Lines of `$TREERING_ACKS` before it.
    pub(super) acks: u64,
    /// Volatile effects.
    pub(super) effects: usize,
    /// The number of points like it before it.
    pub(super) rank: u32,
    /// The kind of point.
    pub(super) kind: u32,
    /// Whether a flush has failed shortly before.
    pub(super) failing: bool,
}

/// Points behind a failed flush that are explored before all others.
const FAILING: usize = 4;

/// All points of a recording.
#[derive(Debug, Default)]
pub(super) struct Points {
    pub(super) points: Vec<Point>,
    /// The first point that is explored.
    pub(super) first: usize,
    /// Points from the last failed flush up to this number are behind it.
    failing_until: usize,
    /// Kinds of points.
    pub(super) kinds: u32,
    /// Lines of `$TREERING_ACKS`, in order.
    pub(super) lines: Vec<Vec<u8>>,
    /// Whether all bytes were recorded.
    pub(super) complete: bool,
    /// Effects that became durable because there were too many.
    pub(super) expired: u64,
}

impl Points {
    /// Begins with the first line of `$TREERING_ACKS` that begins so. Returns whether there is one.
    pub(super) fn begin_at(&mut self, text: &[u8]) -> bool {
        let Some(line) = self.lines.iter().position(|line| line.starts_with(text)) else {
            return false;
        };
        self.first = (self.points).partition_point(|point| point.acks <= line as u64);
        let mut kinds: FxHashMap<u32, u32> = FxHashMap::default();
        for point in &mut self.points[self.first..] {
            let count = kinds.entry(point.kind).or_default();
            point.rank = *count;
            *count += 1;
        }
        self.kinds = kinds.len() as u32;
        true
    }
}

/// A flush that is put behind every event that is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct After {
    /// The event without its numbers.
    pub(super) word: u64,
    pub(super) target: Target,
    /// The last event that it is put behind.
    pub(super) until: u64,
}

/// What is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The file that the event changes.
    File,
    /// The directories whose entries it changes.
    Directories,
}

impl Target {
    /// What makes an effect durable whatever the model.
    pub(super) fn of(effect: &Effect) -> Target {
        match effect.what {
            What::Entry { .. } | What::Rename(_) => Target::Directories,
            _ => Target::File,
        }
    }

    /// The flushes behind an event.
    pub(super) fn flushes(self, event: &Event) -> Vec<Event> {
        let (nodes, kind) = match (self, event) {
            (Target::Directories, Event::Link { parent, .. } | Event::Unlink { parent, .. }) => {
                (vec![*parent], FlushKind::Directory)
            }
            (Target::Directories, Event::Rename { parent, to, .. }) if parent == to => {
                (vec![*to], FlushKind::Directory)
            }
            (Target::Directories, Event::Rename { parent, to, .. }) => {
                (vec![*to, *parent], FlushKind::Directory)
            }
            (Target::File, Event::Write(write)) => (vec![write.node], FlushKind::File),
            (
                Target::File,
                Event::Resize { node, .. }
                | Event::Allocate { node, .. }
                | Event::Punch { node, .. }
                | Event::Attributes { node, .. }
                | Event::Xattr { node, .. },
            ) => (vec![*node], FlushKind::File),
            _ => (Vec::new(), FlushKind::File),
        };
        nodes
            .into_iter()
            .map(|node| Event::Flush { node, kind })
            .collect()
    }
}

/// The words of some events: equal for events that are alike, 0 for what is no operation.
pub(super) fn words(walk: &mut Walk<'_>, events: &[u64]) -> Result<Vec<u64>, DriveError> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_unstable_by_key(|at| events[*at]);
    let mut words = vec![0; events.len()];
    for at in order {
        let place = Place {
            event: events[at],
            after: false,
        };
        if walk.go_to(place)? {
            words[at] = word(&walk.recorded.event, &walk.window).unwrap_or(0);
        }
    }
    Ok(words)
}

/// Follows a recording and stops at places.
pub(super) struct Walk<'a> {
    reader: &'a mut Reader,
    recorded: Recorded,
    pub(super) window: Window<'a>,
    /// Flushes that are put behind events.
    more: &'a [After],
    /// The number of the event that was read last.
    at: Option<u64>,
    /// Whether it has begun and has not ended.
    open: bool,
}

impl<'a> Walk<'a> {
    /// Begins at the first event.
    pub(super) fn new(reader: &'a mut Reader, window: Window<'a>) -> Walk<'a> {
        reader.rewind();
        Walk {
            reader,
            recorded: Recorded::default(),
            window,
            more: &[],
            at: None,
            open: false,
        }
    }

    /// Puts flushes behind events.
    pub(super) fn insert(&mut self, more: &'a [After]) {
        self.more = more;
    }

    /// Completes the event that has begun, then begins the next one. Returns `false` at the end.
    fn step(&mut self) -> Result<bool, DriveError> {
        self.close()?;
        if !self.reader.next(&mut self.recorded)? {
            return Ok(false);
        }
        self.at = Some(self.recorded.seq);
        self.window.begin(&self.recorded)?;
        self.open = true;
        Ok(true)
    }

    fn close(&mut self) -> Result<(), DriveError> {
        if std::mem::take(&mut self.open) {
            self.window.end(&self.recorded.event)?;
            if self.more.is_empty() {
                return Ok(());
            }
            let word = word(&self.recorded.event, &self.window);
            let seq = self.recorded.seq;
            let more = self.more.iter();
            for after in more.filter(|after| Some(after.word) == word && seq <= after.until) {
                for flush in after.target.flushes(&self.recorded.event) {
                    self.window.end(&flush)?;
                }
            }
        }
        Ok(())
    }

    /// Goes forward to a place. Returns `false` if the recording ends before.
    pub(super) fn go_to(&mut self, place: Place) -> Result<bool, DriveError> {
        while self.at.is_none_or(|at| at < place.event) {
            if !self.step()? {
                return Ok(false);
            }
        }
        if place.after {
            self.close()?;
        }
        Ok(true)
    }
}

/// Finds all points of a recording, from the first event behind the mark of its mount.
pub(super) fn find(reader: &mut Reader, window: Window<'_>) -> Result<Points, DriveError> {
    let mut found = Points {
        complete: true,
        ..Points::default()
    };
    let mut kinds: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    let mut words: Vec<u64> = Vec::new();
    let mut begins = 0;
    let mut walk = Walk::new(reader, window);
    while walk.step()? {
        let event = &walk.recorded.event;
        let seq = walk.recorded.seq;
        if let Event::Write(_) = event {
            found.complete &= walk.recorded.contents().is_some();
        }
        if let Some(word) = word(event, &walk.window)
            && words.last() != Some(&word)
        {
            words.push(word);
        }
        let after = match event {
            Event::Flush { .. } | Event::FailedFlush { .. } => false,
            Event::Write(write) if write.synced => false,
            Event::Mark { line } if line == MOUNTED => {
                found = Points {
                    complete: found.complete,
                    ..Points::default()
                };
                kinds.clear();
                words.clear();
                begins = seq;
                continue;
            }
            Event::Mark { line } => {
                found.lines.push(line.clone());
                true
            }
            _ => continue,
        };
        let fails = matches!(event, Event::FailedFlush { .. });
        let place = Place { event: seq, after };
        let effects = walk.window.count();
        note(&mut found, &mut kinds, &mut words, place, effects);
        if fails {
            found.failing_until = found.points.len() + FAILING;
        }
    }
    let last = walk.recorded.seq;
    if last > begins {
        let place = Place {
            event: last,
            after: true,
        };
        let effects = walk.window.count();
        note(&mut found, &mut kinds, &mut words, place, effects);
    }
    found.kinds = kinds.len() as u32;
    found.expired = walk.window.expired;
    Ok(found)
}

fn note(
    found: &mut Points,
    kinds: &mut FxHashMap<u64, (u32, u32)>,
    words: &mut Vec<u64>,
    place: Place,
    effects: usize,
) {
    if found.points.last().is_some_and(|last| last.place == place) {
        return;
    }
    let mut hasher = FxHasher::default();
    words.drain(..).for_each(|word| hasher.write_u64(word));
    let number = kinds.len() as u32;
    let (kind, count) = kinds.entry(hasher.finish()).or_insert((number, 0));
    found.points.push(Point {
        place,
        acks: found.lines.len() as u64,
        effects,
        rank: *count,
        kind: *kind,
        failing: found.points.len() < found.failing_until,
    });
    *count += 1;
}

/// An operation without its numbers; `None` for what is not an operation.
fn word(event: &Event, window: &Window<'_>) -> Option<u64> {
    let (letter, node) = match event {
        Event::Write(write) => (if write.synced { b'W' } else { b'w' }, Some(write.node)),
        Event::Link { node, .. } => (b'l', Some(*node)),
        Event::Unlink { node, .. } => (b'u', Some(*node)),
        Event::Rename { node, .. } => (b'r', Some(*node)),
        Event::Resize { node, .. } => (b't', Some(*node)),
        Event::Allocate { node, .. } => (b'f', Some(*node)),
        Event::Punch { node, .. } => (b'p', Some(*node)),
        Event::Flush { node, .. } => (b's', Some(*node)),
        Event::FailedFlush { node, .. } => (b'e', Some(*node)),
        Event::Attributes { node, .. } | Event::Xattr { node, .. } => (b'a', Some(*node)),
        Event::Mark { .. } => (b'm', None),
        _ => return None,
    };
    let mut hasher = FxHasher::default();
    hasher.write_u8(letter);
    if let Some(node) = node {
        hasher.write(&without_numbers(window.label(node)));
    }
    Some(hasher.finish())
}

/// A name without its digits: `000012.log` and `000013.log` are alike.
pub(super) fn without_numbers(name: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(name.len());
    for byte in name {
        let byte = if byte.is_ascii_digit() { b'#' } else { *byte };
        if byte != b'#' || short.last() != Some(&b'#') {
            short.push(byte);
        }
    }
    short
}

/// A text without its digits.
pub(super) fn in_words(text: &str) -> String {
    String::from_utf8_lossy(&without_numbers(text.as_bytes())).into_owned()
}
