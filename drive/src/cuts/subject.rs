//! What is cut: a recording over what was there before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::content::{BLOCK, Source, Store};
use super::effect::Effect;
use super::model::Model;
use super::points::{After, Place, Points, Walk, find, words};
use super::state::{Builder, Fate, Fates, Units, settle};
use super::tree::Tree;
use super::window::Window;
use crate::error::DriveError;
use crate::face::Face;
use crate::recording::{Event, Header, Reader};

/// How states are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) model: Model,
    /// Bytes that are durable as a whole: 512 or 4096.
    pub(super) unit: u64,
    /// Whether writes of several units may be torn.
    pub(super) tears: bool,
    /// The most effects that are volatile at once.
    pub(super) limit: usize,
    /// Decides what is drawn.
    pub(super) seed: u64,
}

/// A recording that is cut.
pub(super) struct Subject {
    pub(super) path: PathBuf,
    pub(super) rules: Rules,
    pub(super) store: Arc<Store>,
    source: Source,
    base: Tree,
    /// Lines that were acknowledged before it, whatever the cut.
    acknowledged: Vec<u8>,
    pub(super) points: Points,
    /// Where the lines of `points` end in `acks`.
    ends: Vec<usize>,
    acks: Vec<u8>,
}

impl Subject {
    /// Opens a recording of a drive that was empty, or says itself what was on it.
    pub(super) fn open(
        path: &Path,
        rules: Rules,
        store: &Arc<Store>,
    ) -> Result<Subject, DriveError> {
        let reader = Reader::open(path)?;
        let base = empty(reader.header());
        Subject::over(path, rules, store, base, Vec::new())
    }

    /// Opens a recording of a drive that began as a tree.
    pub(super) fn over(
        path: &Path,
        rules: Rules,
        store: &Arc<Store>,
        base: Tree,
        acknowledged: Vec<u8>,
    ) -> Result<Subject, DriveError> {
        let mut reader = Reader::open(path)?;
        let source = store.add(reader.pieces()?);
        let mut subject = Subject {
            path: path.to_owned(),
            rules,
            store: Arc::clone(store),
            source,
            base,
            acks: acknowledged.clone(),
            acknowledged,
            points: Points::default(),
            ends: Vec::new(),
        };
        let points = find(&mut reader, subject.window())?;
        for line in &points.lines {
            subject.acks.extend_from_slice(line);
            subject.acks.push(b'\n');
            subject.ends.push(subject.acks.len());
        }
        subject.points = points;
        Ok(subject)
    }

    fn window(&self) -> Window<'_> {
        let Rules {
            model, unit, limit, ..
        } = self.rules;
        let from = (self.source, self.base.clone());
        Window::new(model, (unit, limit), &self.store, from)
    }

    /// Follows the recording with the given reader.
    pub(super) fn walk<'a>(&'a self, reader: &'a mut Reader) -> Walk<'a> {
        Walk::new(reader, self.window())
    }

    /// The names that were there before the recording, as events.
    pub(super) fn names(&self) -> Vec<Event> {
        let mut names = Vec::new();
        for (parent, _) in self.base.reachable() {
            for (name, node) in self.base.get(parent).iter().flat_map(|node| &node.entries) {
                names.push(Event::Link {
                    parent,
                    name: name.to_vec(),
                    node: *node,
                });
            }
        }
        names
    }

    /// A reader of the recording.
    pub(super) fn reader(&self) -> Result<Reader, DriveError> {
        Reader::open(&self.path)
    }

    /// The states at a window's place.
    pub(super) fn builder<'a>(&self, window: &'a Window<'_>) -> Builder<'a> {
        Builder::at(window, self.rules.model.size_follows_bytes())
    }

    /// The text of the first lines that were acknowledged.
    pub(super) fn acks(&self, lines: u64) -> &[u8] {
        match (lines as usize).checked_sub(1) {
            Some(last) => &self.acks[..self.ends[last]],
            None => &self.acknowledged,
        }
    }

    /// The text of the lines that were acknowledged before a place.
    pub(super) fn acks_before(&self, place: Place) -> &[u8] {
        self.acks(self.lines_before(place))
    }

    /// The number of lines that were acknowledged before a place.
    pub(super) fn lines_before(&self, place: Place) -> u64 {
        let points = &self.points.points;
        let at = points.partition_point(|point| point.place <= place);
        at.checked_sub(1).map_or(0, |at| points[at].acks)
    }

    /// Builds one state, with more flushes than were recorded.
    pub(super) fn build(&self, choice: &Choice, more: &[After]) -> Result<Tree, DriveError> {
        let mut reader = self.reader()?;
        let mut walk = self.walk(&mut reader);
        walk.insert(more);
        walk.go_to(choice.place)?;
        let builder = self.builder(&walk.window);
        let fates = choice.fates(builder.effects());
        builder.build(&fates)
    }

    /// Which of some events are alike: equal words.
    pub(super) fn words(&self, events: &[u64]) -> Result<Vec<u64>, DriveError> {
        let mut reader = self.reader()?;
        words(&mut self.walk(&mut reader), events)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Trees that refer to it are gone, or are never read again.
        self.store.remove(self.source);
    }
}

/// What is on a drive at the beginning of its recording.
fn empty(header: &Header) -> Tree {
    match header.face {
        Face::Files => Tree::files(),
        Face::Disk(_) => Tree::disk(header.capacity_blocks.saturating_mul(BLOCK)),
    }
}

/// A state in words that outlive the run: what is not there at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choice {
    /// Where the power is cut.
    pub(super) place: Place,
    /// Effects that are lost.
    pub(super) lost: Vec<Part>,
    /// Writes that are torn.
    pub(super) torn: Vec<Torn>,
}

/// A part of an event that is durable by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Part {
    /// The number of the event.
    pub(super) event: u64,
    /// 0, or 1 for the growth of a file by a write and for the end of a renamed file's old name.
    pub(super) part: u8,
}

/// A torn write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Torn {
    /// The number of the event.
    pub(super) event: u64,
    /// Units of the file that are there, each range without its end.
    pub(super) units: Units,
}

impl Part {
    /// The part that an effect is.
    pub(super) fn of(effect: &Effect) -> Part {
        Part {
            event: effect.event,
            part: effect.part,
        }
    }
}

impl Choice {
    /// A state in words.
    pub(super) fn of(place: Place, effects: &[&Effect], fates: &Fates) -> Choice {
        let mut choice = Choice {
            place,
            lost: Vec::new(),
            torn: Vec::new(),
        };
        for (effect, fate) in effects.iter().zip(fates) {
            match fate {
                Fate::Kept => {}
                Fate::Lost => choice.lost.push(Part::of(effect)),
                Fate::Torn(units) => choice.torn.push(Torn {
                    event: effect.event,
                    units: units.clone(),
                }),
            }
        }
        choice
    }

    /// The fates of the volatile effects. What is durable by now is left out.
    pub(super) fn fates(&self, effects: &[&Effect]) -> Fates {
        let mut torn: FxHashMap<u64, &Units> = FxHashMap::default();
        torn.extend(self.torn.iter().map(|torn| (torn.event, &torn.units)));
        let lost: rustc_hash::FxHashSet<Part> = self.lost.iter().copied().collect();
        let fate = |effect: &&Effect| match (lost.contains(&Part::of(effect)), effect.part) {
            (true, _) => Fate::Lost,
            (false, 0) => torn
                .get(&effect.event)
                .map_or(Fate::Kept, |units| Fate::Torn((*units).clone())),
            _ => Fate::Kept,
        };
        let mut fates: Fates = effects.iter().map(fate).collect();
        settle(effects, &mut fates);
        fates
    }
}
