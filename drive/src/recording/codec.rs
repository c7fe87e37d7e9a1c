//! Events as bytes.
//!
//! A chunk of events begins with the wall time and the next piece that differences are taken from,
//! so that it can be read without the chunks before it. `docs/RECORDING.md` has each event's
//! fields; they are written and read here in the same order.

use super::event::{Attributes, Event, Extent, FlushKind, NodeId, NodeKind, Write};
use super::varint::{Cursor, Malformed, put, put_bytes, put_delta};

/// Bytes of a piece of contents, and of a block of a drive.
pub const PIECE: usize = 4096;

/// A piece of contents: the part of a write that lies in one block of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub u64);

impl PieceId {
    /// Zeros, of whatever length.
    pub const ZEROS: PieceId = PieceId(0);
}

/// The number of pieces of a write.
#[inline]
#[must_use]
pub fn pieces_of(offset: u64, len: u32) -> usize {
    let begin = offset % PIECE as u64;
    (begin + u64::from(len)).div_ceil(PIECE as u64) as usize
}

/// An event with its place in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The number of the event, from 0.
    pub seq: u64,
    /// When it reached the drive, in nanoseconds since the recording began.
    pub wall_ns: u64,
    /// The event.
    pub event: Event,
    has_contents: bool,
    pieces: Vec<PieceId>,
}

impl Default for Recorded {
    fn default() -> Self {
        Recorded {
            seq: 0,
            wall_ns: 0,
            event: Event::Mark { line: Vec::new() },
            has_contents: false,
            pieces: Vec::new(),
        }
    }
}

impl Recorded {
    /// The pieces of a write in the order of its bytes: its bytes are cut at multiples of 4096 of
    /// the offset in its node. `None` if its bytes are not recorded, or the event is no write.
    #[inline]
    #[must_use]
    pub fn contents(&self) -> Option<&[PieceId]> {
        self.has_contents.then_some(&self.pieces[..])
    }
}

// The low five bits of an event's first byte. The high three are flags of that event.
const MAKE: u8 = 0;
const LINK: u8 = 1;
const UNLINK: u8 = 2;
const RENAME: u8 = 3;
const FREE: u8 = 4;
const WRITE: u8 = 5;
const RESIZE: u8 = 6;
const ALLOCATE: u8 = 7;
const PUNCH: u8 = 8;
const DISCARD: u8 = 9;
const ATTRIBUTES: u8 = 10;
const XATTR: u8 = 11;
const FLUSH: u8 = 12;
const MARK: u8 = 13;
const REGION: u8 = 14;
const MAP: u8 = 15;
const HINT: u8 = 16;
const FAILED_FLUSH: u8 = 17;

const KIND_BITS: u8 = 0x1F;
const FLAG_A: u8 = 0x20;
const FLAG_B: u8 = 0x40;
const FLAG_C: u8 = 0x80;

/// What differences are taken from.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    wall_ns: u64,
    node: u64,
    end: u64,
    lba: u64,
    next_piece: u64,
}

/// Collects the events of a chunk.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    out: Vec<u8>,
    count: u32,
    before: Before,
}

impl Encoder {
    /// The bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The number of events so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Forgets the events.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.count = 0;
    }

    fn begin(&mut self, wall_ns: u64, next_piece: u64, tag: u8) {
        if self.count == 0 {
            self.before = Before {
                wall_ns,
                next_piece,
                ..Before::default()
            };
            put(&mut self.out, wall_ns);
            put(&mut self.out, next_piece);
        }
        self.count += 1;
        self.out.push(tag);
        let wall_ns = wall_ns.max(self.before.wall_ns);
        put(&mut self.out, wall_ns - self.before.wall_ns);
        self.before.wall_ns = wall_ns;
    }

    fn node(&mut self, node: NodeId) {
        put_delta(&mut self.out, self.before.node, node.0);
        self.before.node = node.0;
    }

    fn extents(&mut self, extents: &[Extent]) {
        put(&mut self.out, extents.len() as u64);
        for extent in extents {
            put_delta(&mut self.out, self.before.lba, extent.lba);
            put(&mut self.out, extent.blocks);
            self.before.lba = extent.lba.wrapping_add(extent.blocks);
        }
    }

    /// Adds a write. `next_piece` is the first piece that no earlier event of the recording has.
    pub(super) fn write(
        &mut self,
        wall_ns: u64,
        write: &Write,
        pieces: Option<&[PieceId]>,
        next_piece: u64,
    ) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let tag = WRITE
            | flag(write.synced, FLAG_A)
            | flag(write.cached, FLAG_B)
            | flag(pieces.is_some(), FLAG_C);
        self.begin(wall_ns, next_piece, tag);
        self.node(write.node);
        put_delta(&mut self.out, self.before.end, write.offset);
        put(&mut self.out, u64::from(write.len));
        self.before.end = write.offset.wrapping_add(u64::from(write.len));
        self.extents(&write.extents);
        for piece in pieces.unwrap_or_default() {
            let code = match *piece {
                PieceId::ZEROS => 1,
                PieceId(new) if new >= self.before.next_piece => {
                    self.before.next_piece = new + 1;
                    0
                }
                PieceId(old) => self.before.next_piece - old + 1,
            };
            put(&mut self.out, code);
        }
    }

    /// Adds an event; a write's bytes are not recorded.
    pub(super) fn event(&mut self, wall_ns: u64, event: &Event, next_piece: u64) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let tag = match event {
            Event::Make { .. } => MAKE,
            Event::Link { .. } => LINK,
            Event::Unlink { .. } => UNLINK,
            Event::Rename {
                other, exchange, ..
            } => RENAME | flag(other.is_some(), FLAG_A) | flag(*exchange, FLAG_B),
            Event::Free { .. } => FREE,
            Event::Write(write) => return self.write(wall_ns, write, None, next_piece),
            Event::Resize { .. } => RESIZE,
            Event::Allocate { keep_size, .. } => ALLOCATE | flag(*keep_size, FLAG_A),
            Event::Punch { .. } => PUNCH,
            Event::Discard { .. } => DISCARD,
            Event::Attributes { .. } => ATTRIBUTES,
            Event::Xattr { value, .. } => XATTR | flag(value.is_some(), FLAG_A),
            Event::Flush { kind, .. } => FLUSH | (*kind as u8) << 5,
            Event::FailedFlush { kind, .. } => FAILED_FLUSH | (*kind as u8) << 5,
            Event::Mark { .. } => MARK,
            Event::Region { .. } => REGION,
            Event::Map { .. } => MAP,
            Event::Hint { .. } => HINT,
        };
        self.begin(wall_ns, next_piece, tag);
        self.fields(event);
    }

    fn fields(&mut self, event: &Event) {
        match event {
            Event::Make {
                node,
                kind,
                mode,
                uid,
                gid,
                device,
                target,
            } => {
                self.node(*node);
                self.out.push(*kind as u8);
                for number in [mode, uid, gid, device] {
                    put(&mut self.out, u64::from(*number));
                }
                put_bytes(&mut self.out, target);
            }
            Event::Link { parent, name, node } | Event::Unlink { parent, name, node } => {
                self.node(*parent);
                put_bytes(&mut self.out, name);
                self.node(*node);
            }
            Event::Rename {
                parent,
                name,
                to,
                to_name,
                node,
                other,
                ..
            } => {
                self.node(*parent);
                put_bytes(&mut self.out, name);
                self.node(*to);
                put_bytes(&mut self.out, to_name);
                self.node(*node);
                if let Some(other) = other {
                    self.node(*other);
                }
            }
            Event::Free { node } | Event::Flush { node, .. } | Event::FailedFlush { node, .. } => {
                self.node(*node);
            }
            Event::Write(_) => {}
            Event::Resize { node, size } => {
                self.node(*node);
                put(&mut self.out, *size);
            }
            Event::Allocate {
                node, offset, len, ..
            }
            | Event::Punch { node, offset, len } => {
                self.node(*node);
                put(&mut self.out, *offset);
                put(&mut self.out, *len);
            }
            Event::Discard { node, extents } => {
                self.node(*node);
                self.extents(extents);
            }
            Event::Attributes { node, change } => {
                self.node(*node);
                self.change(change);
            }
            Event::Xattr { node, name, value } => {
                self.node(*node);
                put_bytes(&mut self.out, name);
                if let Some(value) = value {
                    put_bytes(&mut self.out, value);
                }
            }
            Event::Mark { line } => put_bytes(&mut self.out, line),
            Event::Region { name, extents } => {
                put_bytes(&mut self.out, name.as_bytes());
                self.extents(extents);
            }
            Event::Map {
                path,
                inode,
                extents,
            } => {
                put_bytes(&mut self.out, path);
                put(&mut self.out, *inode);
                self.extents(extents);
            }
            Event::Hint { node, what } => {
                self.node(*node);
                put_bytes(&mut self.out, what.as_bytes());
            }
        }
    }

    fn change(&mut self, change: &Attributes) {
        let numbers = [change.mode, change.uid, change.gid];
        let mut there = u8::from(change.modified_ns.is_some()) << 3;
        for (bit, number) in numbers.iter().enumerate() {
            there |= u8::from(number.is_some()) << bit;
        }
        self.out.push(there);
        for number in numbers.into_iter().flatten() {
            put(&mut self.out, u64::from(number));
        }
        if let Some(time) = change.modified_ns {
            put_delta(&mut self.out, 0, time as u64);
        }
    }
}

/// Reads the events of a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoder {
    at: usize,
    before: Before,
}

impl Decoder {
    /// Begins to read a chunk's payload.
    pub(super) fn begin(payload: &[u8]) -> Result<Decoder, Malformed> {
        let mut cursor = Cursor::at(payload, 0);
        let before = Before {
            wall_ns: cursor.number()?,
            next_piece: cursor.number()?,
            ..Before::default()
        };
        let at = cursor.place();
        Ok(Decoder { at, before })
    }

    /// The first piece that no event before has.
    pub(super) fn first_piece(&self) -> u64 {
        self.before.next_piece
    }

    /// Where the next event begins.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Reads the next event.
    #[inline]
    pub(super) fn next(&mut self, payload: &[u8], into: &mut Recorded) -> Result<(), Malformed> {
        let mut cursor = Cursor::at(payload, self.at);
        let tag = cursor.byte()?;
        let before = &mut self.before;
        let wall_ns = before.wall_ns.checked_add(cursor.number()?);
        before.wall_ns = wall_ns.ok_or(Malformed("a time of at most 64 bits"))?;
        into.wall_ns = before.wall_ns;
        into.pieces.clear();
        into.has_contents = false;
        if tag & KIND_BITS == WRITE {
            read_write(&mut cursor, before, tag, into)?;
        } else {
            into.event = read_event(&mut cursor, before, tag)?;
        }
        self.at = cursor.place();
        Ok(())
    }
}

#[inline]
fn read_node(cursor: &mut Cursor<'_>, before: &mut Before) -> Result<NodeId, Malformed> {
    before.node = cursor.delta(before.node)?;
    Ok(NodeId(before.node))
}

#[inline]
fn read_extents(
    cursor: &mut Cursor<'_>,
    before: &mut Before,
    into: &mut Vec<Extent>,
) -> Result<(), Malformed> {
    into.clear();
    for _ in 0..cursor.count()? {
        let lba = cursor.delta(before.lba)?;
        let blocks = cursor.number()?;
        before.lba = lba.wrapping_add(blocks);
        into.push(Extent { lba, blocks });
    }
    Ok(())
}

#[inline]
fn read_write(
    cursor: &mut Cursor<'_>,
    before: &mut Before,
    tag: u8,
    into: &mut Recorded,
) -> Result<(), Malformed> {
    let mut extents = match &mut into.event {
        Event::Write(write) => std::mem::take(&mut write.extents),
        _ => Vec::new(),
    };
    let node = read_node(cursor, before)?;
    let offset = cursor.delta(before.end)?;
    let len = cursor.number32()?;
    before.end = offset.wrapping_add(u64::from(len));
    read_extents(cursor, before, &mut extents)?;
    if tag & FLAG_C != 0 {
        into.has_contents = true;
        let count = pieces_of(offset, len);
        if count > cursor.left() {
            return Err(Malformed("the pieces of a write"));
        }
        for _ in 0..count {
            into.pieces.push(match cursor.number()? {
                0 => {
                    let new = before.next_piece;
                    before.next_piece = new.wrapping_add(1);
                    PieceId(new)
                }
                1 => PieceId::ZEROS,
                back if back <= before.next_piece => PieceId(before.next_piece - (back - 1)),
                _ => return Err(Malformed("a piece that is recorded")),
            });
        }
    }
    into.event = Event::Write(Write {
        node,
        offset,
        len,
        extents,
        synced: tag & FLAG_A != 0,
        cached: tag & FLAG_B != 0,
    });
    Ok(())
}

fn extents(cursor: &mut Cursor<'_>, before: &mut Before) -> Result<Vec<Extent>, Malformed> {
    let mut extents = Vec::new();
    read_extents(cursor, before, &mut extents)?;
    Ok(extents)
}

fn read_event(cursor: &mut Cursor<'_>, before: &mut Before, tag: u8) -> Result<Event, Malformed> {
    let flag = |flag: u8| tag & flag != 0;
    let known_flags = match tag & KIND_BITS {
        RENAME | FLUSH | FAILED_FLUSH => FLAG_A | FLAG_B,
        ALLOCATE | XATTR => FLAG_A,
        _ => 0,
    };
    if tag & !KIND_BITS & !known_flags != 0 {
        return Err(Malformed("an event with flags that it has"));
    }
    Ok(match tag & KIND_BITS {
        MAKE => Event::Make {
            node: read_node(cursor, before)?,
            kind: read_kind(cursor)?,
            mode: cursor.number32()?,
            uid: cursor.number32()?,
            gid: cursor.number32()?,
            device: cursor.number32()?,
            target: cursor.bytes()?.to_vec(),
        },
        LINK => Event::Link {
            parent: read_node(cursor, before)?,
            name: cursor.bytes()?.to_vec(),
            node: read_node(cursor, before)?,
        },
        UNLINK => Event::Unlink {
            parent: read_node(cursor, before)?,
            name: cursor.bytes()?.to_vec(),
            node: read_node(cursor, before)?,
        },
        RENAME => Event::Rename {
            parent: read_node(cursor, before)?,
            name: cursor.bytes()?.to_vec(),
            to: read_node(cursor, before)?,
            to_name: cursor.bytes()?.to_vec(),
            node: read_node(cursor, before)?,
            other: match flag(FLAG_A) {
                true => Some(read_node(cursor, before)?),
                false => None,
            },
            exchange: flag(FLAG_B),
        },
        FREE => Event::Free {
            node: read_node(cursor, before)?,
        },
        RESIZE => Event::Resize {
            node: read_node(cursor, before)?,
            size: cursor.number()?,
        },
        ALLOCATE => Event::Allocate {
            node: read_node(cursor, before)?,
            offset: cursor.number()?,
            len: cursor.number()?,
            keep_size: flag(FLAG_A),
        },
        PUNCH => Event::Punch {
            node: read_node(cursor, before)?,
            offset: cursor.number()?,
            len: cursor.number()?,
        },
        DISCARD => Event::Discard {
            node: read_node(cursor, before)?,
            extents: extents(cursor, before)?,
        },
        ATTRIBUTES => Event::Attributes {
            node: read_node(cursor, before)?,
            change: read_change(cursor)?,
        },
        XATTR => Event::Xattr {
            node: read_node(cursor, before)?,
            name: cursor.bytes()?.to_vec(),
            value: match flag(FLAG_A) {
                true => Some(cursor.bytes()?.to_vec()),
                false => None,
            },
        },
        FLUSH => Event::Flush {
            node: read_node(cursor, before)?,
            kind: flush_kind(tag),
        },
        FAILED_FLUSH => Event::FailedFlush {
            node: read_node(cursor, before)?,
            kind: flush_kind(tag),
        },
        MARK => Event::Mark {
            line: cursor.bytes()?.to_vec(),
        },
        REGION => Event::Region {
            name: cursor.text()?.to_owned(),
            extents: extents(cursor, before)?,
        },
        MAP => Event::Map {
            path: cursor.bytes()?.to_vec(),
            inode: cursor.number()?,
            extents: extents(cursor, before)?,
        },
        HINT => Event::Hint {
            node: read_node(cursor, before)?,
            what: cursor.text()?.to_owned(),
        },
        _ => return Err(Malformed("an event of a kind that is known")),
    })
}

fn flush_kind(tag: u8) -> FlushKind {
    match tag >> 5 {
        0 => FlushKind::Data,
        1 => FlushKind::File,
        2 => FlushKind::Directory,
        _ => FlushKind::Drive,
    }
}

fn read_kind(cursor: &mut Cursor<'_>) -> Result<NodeKind, Malformed> {
    Ok(match cursor.byte()? {
        0 => NodeKind::File,
        1 => NodeKind::Directory,
        2 => NodeKind::Symlink,
        3 => NodeKind::Fifo,
        4 => NodeKind::Socket,
        5 => NodeKind::CharDevice,
        6 => NodeKind::BlockDevice,
        _ => return Err(Malformed("a kind of node from 0 to 6")),
    })
}

fn read_change(cursor: &mut Cursor<'_>) -> Result<Attributes, Malformed> {
    let there = cursor.byte()?;
    if there > 0xF {
        return Err(Malformed("attributes that are known"));
    }
    let mut number = |bit: u8| match there >> bit & 1 {
        1 => cursor.number32().map(Some),
        _ => Ok(None),
    };
    let (mode, uid, gid) = (number(0)?, number(1)?, number(2)?);
    let modified_ns = match there >> 3 {
        1 => Some(cursor.delta(0)? as i64),
        _ => None,
    };
    Ok(Attributes {
        mode,
        uid,
        gid,
        modified_ns,
    })
}
