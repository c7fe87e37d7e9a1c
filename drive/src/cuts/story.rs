//! A failing state told in the program's terms: files, offsets, calls, what was not followed by
//! `fsync`.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::content::BLOCK;
use super::effect::{Effect, What};
use super::model::Model;
use super::points::in_words;
use super::shrink::Smallest;
use super::subject::{Part, Subject};
use super::tree::Payload;
use super::window::WITH_ITS_PAGE;
use crate::error::DriveError;
use crate::layout::{Owner, Owners};
use crate::recording::event::FlushKind;
use crate::recording::{Event, Names, NodeId, Recorded};

/// Lines of a story.
const LINES: usize = 40;

/// What a line of a story is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Became {
    /// It is there after the cut.
    There,
    /// It is not.
    Lost,
    /// A part of it is there.
    Torn,
    /// A flush, an acknowledgement, the cut.
    Happened,
}

/// A line of a story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The number of the event.
    pub event: u64,
    /// When it happened, in milliseconds since the recording began.
    pub wall_ms: f64,
    /// What happened.
    pub what: String,
    /// What became of it.
    pub became: Became,
}

/// What a failing state is called, and how it came about.
#[derive(Clone, Debug)]
pub(super) struct Story {
    /// What is lost and what is there, without numbers.
    pub(super) cause: String,
    /// The part of it that tells causes apart: what is lost.
    pub(super) key: String,
    pub(super) lines: Vec<Line>,
    /// The flush that was missing, in words.
    pub(super) missing: Option<String>,
}

/// Tells a failing state.
pub(super) fn tell(subject: &Subject, smallest: &Smallest) -> Result<Story, DriveError> {
    let owners = match subject.rules.model {
        Model::Disk => Some(owners(subject)?),
        _ => None,
    };
    let mut names = Names::new();
    subject.names().iter().for_each(|event| names.apply(event));
    let place = smallest.choice.place;
    let mut fates: FxHashMap<Part, Became> = FxHashMap::default();
    for effect in &smallest.there {
        fates.insert(Part::of(effect), Became::There);
    }
    for effect in &smallest.lost {
        let torn = smallest.torn.contains(&effect.id);
        let became = if torn { Became::Torn } else { Became::Lost };
        fates.insert(Part::of(effect), became);
    }
    let mut effects: Vec<&Effect> = smallest.lost.iter().chain(&smallest.there).collect();
    effects.sort_by_key(|effect| effect.id);
    effects.dedup_by_key(|effect| effect.id);
    let mut first = effects.first().map_or(place.event, |effect| effect.event);
    let mut reader = subject.reader()?;
    let (mut recorded, mut lines) = (Recorded::default(), Vec::new());
    let mut phrases: Vec<(Became, String)> = Vec::new();
    let mut missing_flushes: Vec<String> = Vec::new();
    let mut dropped = Dropped::default();
    while reader.next(&mut recorded)? && recorded.seq <= place.event {
        let at_cut = recorded.seq == place.event;
        let line = |what: String, became| Line {
            event: recorded.seq,
            wall_ms: recorded.wall_ns as f64 / 1e6,
            what,
            became,
        };
        let of_event = effects.iter().filter(|effect| effect.event == recorded.seq);
        for effect in of_event {
            let whose = owners.as_ref().and_then(|owners| whose(effect, owners));
            let words = words(effect, &names, whose.as_deref());
            let Some(became) = fates.get(&Part::of(effect)) else {
                continue;
            };
            phrases.push((*became, phrase(effect, &names, whose.as_deref())));
            lines.push(line(words, *became));
        }
        if subject.rules.model != Model::Disk
            && let Some((mut lost, phrase)) = dropped.follow(&recorded, &names, at_cut)
        {
            first = lost.first().map_or(first, |line| line.event.min(first));
            lines.append(&mut lost);
            phrases.push((Became::Lost, phrase));
        }
        if recorded.seq >= first || at_cut || matches!(recorded.event, Event::FailedFlush { .. }) {
            let happened = happened(&recorded.event, &names);
            if let Some(what) = happened {
                let cut = at_cut && !place.after;
                let what = if cut {
                    format!("power cut before the end of {what}")
                } else {
                    what
                };
                lines.push(line(what, Became::Happened));
            }
            if at_cut && (place.after || !matches!(recorded.event, Event::Flush { .. })) {
                lines.push(line("power cut".into(), Became::Happened));
            }
        }
        names.apply(&recorded.event);
        let missing = smallest.missing.iter().flat_map(|missing| &missing.after);
        for (_, after) in missing.filter(|(behind, _)| *behind == recorded.seq) {
            let words = after.target.flushes(&recorded.event).into_iter();
            let words: Vec<String> = words.filter_map(|flush| happened(&flush, &names)).collect();
            let behind = lines.iter().find(|line| line.event == recorded.seq);
            let behind = behind.map_or(String::new(), |line| format!(" after: {}", line.what));
            missing_flushes.push(format!("{}{behind}", words.join(" and ")));
        }
    }
    lines.sort_by_key(|line| line.event);
    if lines.len() > LINES {
        let cut = lines.len() - LINES;
        let gap = Line {
            what: format!("… {cut} more …"),
            became: Became::Happened,
            ..lines[LINES / 2].clone()
        };
        lines.splice(LINES / 2..LINES / 2 + cut, [gap]);
    }
    let (key, there) = cause(&phrases);
    Ok(Story {
        cause: match there {
            Some(there) => format!("{key}; there: {there}"),
            None => key.clone(),
        },
        key,
        lines,
        missing: Some(missing_flushes.join("; ")).filter(|words| !words.is_empty()),
    })
}

/// The most writes that are told of those which a failed flush drops.
const DROPPED: usize = 10;

/// Writes since the last flush of their file, which a failed flush drops.
#[derive(Default)]
struct Dropped(FxHashMap<NodeId, Vec<Line>>);

impl Dropped {
    /// Follows an event. If it is a flush that fails, before the cut, returns the writes that it
    /// drops, and what they are in a phrase.
    fn follow(
        &mut self,
        recorded: &Recorded,
        names: &Names,
        at_cut: bool,
    ) -> Option<(Vec<Line>, String)> {
        match &recorded.event {
            Event::Write(write) if !write.synced => {
                let lines = self.0.entry(write.node).or_default();
                if lines.len() < DROPPED {
                    let file = path(names, write.node);
                    lines.push(Line {
                        event: recorded.seq,
                        wall_ms: recorded.wall_ns as f64 / 1e6,
                        what: format!("write {} bytes at {} of {file}", write.len, write.offset),
                        became: Became::Lost,
                    });
                }
                None
            }
            Event::Flush { node, .. } => {
                self.0.remove(node);
                None
            }
            Event::FailedFlush { node, .. } if !at_cut => {
                let lines = self.0.remove(node)?;
                let file = in_words(&path(names, *node));
                Some((lines, format!("bytes of {file} whose fsync failed")))
            }
            _ => None,
        }
    }
}

/// The cause in two phrases: what is lost, and what is there that needs it.
fn cause(phrases: &[(Became, String)]) -> (String, Option<String>) {
    let of = |wanted: Became| {
        let mut found: Vec<&str> = Vec::new();
        for (became, phrase) in phrases {
            if *became == wanted && !found.contains(&phrase.as_str()) {
                found.push(phrase);
            }
        }
        let more = found.len().saturating_sub(4);
        found.truncate(4);
        let mut text = found.join(", ");
        if more > 0 {
            let _ = write!(text, " and {more} more");
        }
        text
    };
    let parts = [("lost", of(Became::Lost)), ("torn", of(Became::Torn))];
    let parts = parts.iter().filter(|(_, text)| !text.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    let there = Some(of(Became::There)).filter(|text| !text.is_empty());
    match parts.is_empty() {
        true => (
            "nothing that reached the drive has to be lost".into(),
            there,
        ),
        false => (parts.join("; "), there),
    }
}

/// Whose the blocks of a disk were, over the whole recording.
fn owners(subject: &Subject) -> Result<Owners, DriveError> {
    let (mut owners, mut recorded) = (Owners::default(), Recorded::default());
    let mut reader = subject.reader()?;
    while reader.next(&mut recorded)? {
        owners.note(recorded.seq, &recorded.event);
    }
    Ok(owners)
}

/// Whose blocks an effect changes: a file, or what a file system keeps for itself.
fn whose(effect: &Effect, owners: &Owners) -> Option<String> {
    let What::Bytes { offset, .. } = effect.what else {
        return None;
    };
    Some(match owners.at(effect.event, offset / BLOCK) {
        Some(Owner::Region(name)) => name.clone(),
        Some(Owner::File(path)) => String::from_utf8_lossy(path).into_owned(),
        None => "a block of nobody".into(),
    })
}

fn path(names: &Names, node: NodeId) -> String {
    match names.path(node) {
        Some(path) if path.is_empty() => "/".into(),
        Some(path) => String::from_utf8_lossy(&path).into_owned(),
        None => format!("file {}", node.0),
    }
}

fn entry(names: &Names, parent: NodeId, name: &[u8]) -> String {
    let parent = path(names, parent);
    let name = String::from_utf8_lossy(name);
    match parent.as_str() {
        "/" => name.into_owned(),
        _ => format!("{parent}/{name}"),
    }
}

/// What an effect is, with its numbers.
fn words(effect: &Effect, names: &Names, whose: Option<&str>) -> String {
    match &effect.what {
        What::Bytes {
            node,
            offset,
            len,
            payload,
        } => {
            let bytes = match payload {
                Payload::Pieces(..) if effect.part == WITH_ITS_PAGE => "with its page, write",
                Payload::Pieces(..) => "write",
                Payload::Zeros => "zeros",
            };
            let of = match whose {
                Some(whose) => format!("the disk: {whose}"),
                None => path(names, *node),
            };
            format!("{bytes} {len} bytes at {offset} of {of}")
        }
        What::Grow { node, size, .. } => format!("{} grows to {size} bytes", path(names, *node)),
        What::Resize { node, size } => format!("truncate {} to {size} bytes", path(names, *node)),
        What::Entry {
            parent,
            name,
            node: Some(node),
            before,
        } => {
            let new = entry(names, *parent, name);
            match (names.path(*node), before) {
                (Some(old), _) if !old.is_empty() => {
                    format!("{} gets the name {new}", String::from_utf8_lossy(&old))
                }
                (_, Some(_)) => format!("{new} is replaced"),
                _ => format!("create {new}"),
            }
        }
        What::Entry { parent, name, .. } => match effect.part {
            0 => format!("remove {}", entry(names, *parent, name)),
            _ => format!("the old name {} ends", entry(names, *parent, name)),
        },
        What::Rename(r) => {
            let (from, to) = (
                entry(names, r.parent, &r.name),
                entry(names, r.to, &r.to_name),
            );
            format!("rename {from} to {to}")
        }
        What::Attributes { node, .. } => format!("attributes of {}", path(names, *node)),
        What::Xattr { node, name, .. } => {
            let name = String::from_utf8_lossy(name);
            format!("attribute {name} of {}", path(names, *node))
        }
    }
}

/// What an effect is, without numbers.
fn phrase(effect: &Effect, names: &Names, whose: Option<&str>) -> String {
    if let Some(whose) = whose {
        return in_words(whose);
    }
    let file = |node| {
        let path = path(names, node);
        in_words(&path)
    };
    match &effect.what {
        What::Bytes { node, .. } => format!("bytes of {}", file(*node)),
        What::Grow { node, .. } => format!("size of {}", file(*node)),
        What::Resize { node, .. } => format!("truncation of {}", file(*node)),
        What::Attributes { node, .. } | What::Xattr { node, .. } => {
            format!("attributes of {}", file(*node))
        }
        What::Entry { .. } | What::Rename(_) => {
            let words = words(effect, names, None);
            in_words(&words)
        }
    }
}

/// What else belongs to a story: flushes and acknowledgements.
fn happened(event: &Event, names: &Names) -> Option<String> {
    match event {
        Event::Flush { node, kind } => Some(match kind {
            FlushKind::Data => format!("fdatasync({})", path(names, *node)),
            FlushKind::File => format!("fsync({})", path(names, *node)),
            FlushKind::Directory => format!("fsync of directory {}", path(names, *node)),
            FlushKind::Drive => "a flush of the drive".into(),
        }),
        Event::FailedFlush { node, kind } => {
            let (node, kind) = (*node, *kind);
            let flush = happened(&Event::Flush { node, kind }, names)?;
            Some(format!("{flush} fails"))
        }
        Event::Mark { line } => {
            let line = String::from_utf8_lossy(line);
            let short: String = line.chars().take(100).collect();
            Some(format!("acknowledged: {short}"))
        }
        Event::Write(write) if write.synced => Some(format!(
            "a synchronous write of {}",
            path(names, write.node)
        )),
        _ => None,
    }
}
