//! The first pass over a recording: what must be known before a drive is built.

use super::settings::{Progress, Settings, Warmup};
use super::slots::Slots;
use crate::causes::rules::Rules;
use crate::causes::{Knowledge, Survey};
use crate::error::DriveError;
use crate::recording::{Event, Extent, Header, MOUNTED, Reader, Recorded, Summary, Truncated};

/// When the measured part begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin {
    /// With this event.
    Event(u64),
    /// When the host has written so many blocks.
    Blocks(u64),
}

/// What the first pass found.
pub(crate) struct Looked {
    pub(crate) header: Header,
    pub(crate) summary: Option<Summary>,
    pub(crate) truncated: Option<Truncated>,
    pub(super) knowledge: Knowledge,
    pub(super) begin: Begin,
    /// Events, and the time of the last.
    pub(crate) events: u64,
    pub(crate) wall_ns: u64,
    /// Blocks that held data at once, at most.
    pub(crate) most_blocks: u64,
    /// Whether a write has no bytes in the recording.
    pub(crate) lacks_contents: bool,
}

/// Reads the recording once.
pub(super) fn look(
    settings: &Settings,
    reader: &mut Reader,
    progress: Progress<'_>,
) -> Result<Looked, DriveError> {
    let rules = Rules::new(&settings.causes)?;
    let mut survey = Survey::new(reader)?;
    let mut slots = Slots::default();
    let mut recorded = Recorded::default();
    let (mut events, mut blocks, mut lacks_contents) = (0, 0, false);
    let (mut marked, mut mounted) = (None, 0);
    while reader.next(&mut recorded)? {
        events = recorded.seq + 1;
        if recorded.seq & 0xffff == 0 {
            progress("reading", 0, 0);
        }
        survey.note(&recorded)?;
        match &recorded.event {
            Event::Write(write) => {
                lacks_contents |= recorded.contents().is_none();
                check(&write.extents, reader.header(), settings, recorded.seq)?;
                for extent in &write.extents {
                    blocks += extent.blocks;
                    (extent.lba..extent.lba + extent.blocks).for_each(|lba| {
                        slots.write(lba);
                    });
                }
            }
            Event::Discard { extents, .. } => {
                check(extents, reader.header(), settings, recorded.seq)?;
                if !settings.discards {
                    continue;
                }
                for extent in extents {
                    (extent.lba..extent.lba + extent.blocks).for_each(|lba| {
                        slots.discard(lba);
                    });
                }
            }
            Event::Mark { line } => {
                if line == MOUNTED {
                    mounted = events;
                }
                if matches!(&settings.warmup, Warmup::Mark(text) if text.as_bytes() == line) {
                    marked.get_or_insert(events);
                }
            }
            _ => {}
        }
    }
    let begin = match &settings.warmup {
        Warmup::Nothing => Begin::Event(mounted),
        Warmup::Share(share) => Begin::Blocks((blocks as f64 * share).round() as u64),
        Warmup::Mark(text) => Begin::Event(marked.ok_or_else(|| DriveError::Parameter {
            name: "from-mark",
            why: format!("expected a line of the recording, found none that is {text:?}"),
        })?),
    };
    Ok(Looked {
        header: reader.header().clone(),
        summary: reader.summary(),
        truncated: reader.truncated(),
        knowledge: survey.finish(rules),
        begin,
        events,
        wall_ns: recorded.wall_ns,
        most_blocks: slots.most(),
        lacks_contents,
    })
}

/// Refuses blocks that the recorded drive did not have.
fn check(
    extents: &[Extent],
    header: &Header,
    settings: &Settings,
    seq: u64,
) -> Result<(), DriveError> {
    let capacity = header.capacity_blocks;
    let fits = |e: &Extent| {
        e.lba
            .checked_add(e.blocks)
            .is_some_and(|end| end <= capacity)
    };
    match extents.iter().find(|extent| !fits(extent)) {
        None => Ok(()),
        Some(extent) => Err(DriveError::Bad {
            file: settings.log.clone(),
            place: format!("event {seq}"),
            expected: format!("blocks below {capacity}"),
            found: format!("{} blocks from {}", extent.blocks, extent.lba),
        }),
    }
}
