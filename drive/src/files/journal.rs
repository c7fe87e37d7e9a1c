//! The journal of a drive that is kept: what happened to names and places, so that a killed drive
//! loses nothing.
//!
//! ```text
//! header   "TRFILES1"  blocks of the drive u64  crc32 u32
//! frame    length u32  crc32 of the payload u32  crc32 of these eight bytes u32   payload
//! payload  records; each is a kind u8 and its fields
//! ```
//!
//! | kind | record | fields |
//! |---|---|---|
//! | 1 | a node and its attributes | node, type u8, mode to links, size, times, target |
//! | 2 | a name names a node | directory, name, node |
//! | 3 | a name is gone | directory, name |
//! | 4 | blocks of a file are mapped | node, block, blocks, lba |
//! | 5 | blocks of a file are a hole | node, block, blocks |
//! | 6 | an extended attribute is set | node, name, value |
//! | 7 | an extended attribute is gone | node, name |
//! | 8 | a node is gone | node |
//!
//! Integers are little-endian, `u64` where nothing else is said (mode, uid, gid, device, links:
//! `u32`); strings of bytes have their length before them as `u32`.
//!
//! A frame is one operation, written with one `write` before the program has its answer: what the
//! kernel has taken survives the death of the process. A record says how something is, not what
//! was done, so a journal can be read from any compaction on. It is compacted when the drive is
//! mounted: what there is, in a new file, which then takes the old one's name.
//!
//! One thing waits: the time at which a file was written in place is in the journal when the file
//! is flushed or closed.
//!
//! A frame that ends with the file before its length is torn: it is cut off. Anything else that
//! does not fit is damage, and the drive is not mounted. The death of the machine is not provided
//! for: neither the image nor the journal is synced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::nodes::{Body, Node, Time, Times};
use crate::error::DriveError;
use crate::recording::{Extent, NodeId, NodeKind};

const MAGIC: &[u8; 8] = b"TRFILES1";
const HEADER: usize = 20;
const FRAME: usize = 12;

/// What one record says.
#[derive(Debug)]
pub(super) enum Record {
    /// A node, without entries, extents and extended attributes; its target if it is a link.
    Node(NodeId, Box<Node>),
    /// An entry of a directory.
    Entry(NodeId, Vec<u8>, Option<NodeId>),
    /// Blocks of a file, from `block` on, are on the drive.
    Mapped(NodeId, u64, Extent),
    /// Blocks of a file are a hole.
    Hole(NodeId, u64, u64),
    /// An extended attribute.
    Xattr(NodeId, Vec<u8>, Option<Vec<u8>>),
    /// A node is gone.
    Gone(NodeId),
}

/// The journal of a mounted drive. Records are collected, and written by [`Journal::commit`].
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    frame: Vec<u8>,
}

impl Journal {
    /// Begins a journal in a new file.
    pub(super) fn create(path: &Path, blocks: u64) -> io::Result<Journal> {
        let mut file = File::create(path)?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&blocks.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        file.write_all(&header)?;
        Ok(Journal {
            file,
            frame: vec![0; FRAME],
        })
    }

    /// A node and its attributes.
    pub(super) fn node(&mut self, id: NodeId, node: &Node) {
        self.frame.push(1);
        self.id(id);
        self.frame.push(kind_to_byte(node.kind()));
        for field in [node.mode, node.uid, node.gid, node.device, node.links] {
            self.frame.extend_from_slice(&field.to_le_bytes());
        }
        self.frame.extend_from_slice(&node.size.to_le_bytes());
        let Times {
            accessed,
            modified,
            changed,
        } = node.times;
        for Time(nanos) in [accessed, modified, changed] {
            self.frame.extend_from_slice(&nanos.to_le_bytes());
        }
        match &node.body {
            Body::Symlink(target) => self.bytes(target),
            _ => self.bytes(b""),
        }
    }

    /// An entry of a directory, or its end.
    pub(super) fn entry(&mut self, parent: NodeId, name: &[u8], node: Option<NodeId>) {
        self.frame.push(if node.is_some() { 2 } else { 3 });
        self.id(parent);
        self.bytes(name);
        if let Some(node) = node {
            self.id(node);
        }
    }

    /// Blocks of a file are on the drive.
    pub(super) fn mapped(&mut self, node: NodeId, block: u64, extent: Extent) {
        self.frame.push(4);
        self.id(node);
        for field in [block, extent.blocks, extent.lba] {
            self.frame.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// Blocks of a file are a hole.
    pub(super) fn hole(&mut self, node: NodeId, block: u64, blocks: u64) {
        self.frame.push(5);
        self.id(node);
        for field in [block, blocks] {
            self.frame.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// An extended attribute, or its end.
    pub(super) fn xattr(&mut self, node: NodeId, name: &[u8], value: Option<&[u8]>) {
        self.frame.push(if value.is_some() { 6 } else { 7 });
        self.id(node);
        self.bytes(name);
        if let Some(value) = value {
            self.bytes(value);
        }
    }

    /// A node is gone.
    pub(super) fn gone(&mut self, node: NodeId) {
        self.frame.push(8);
        self.id(node);
    }

    /// Writes what was collected as one frame.
    pub(super) fn commit(&mut self) -> io::Result<()> {
        if self.frame.len() == FRAME {
            return Ok(());
        }
        // An operation has far less than 4 GiB of records.
        let length = (self.frame.len() - FRAME) as u32;
        let sum = crc32fast::hash(&self.frame[FRAME..]);
        self.frame[..4].copy_from_slice(&length.to_le_bytes());
        self.frame[4..8].copy_from_slice(&sum.to_le_bytes());
        let check = crc32fast::hash(&self.frame[..8]);
        self.frame[8..FRAME].copy_from_slice(&check.to_le_bytes());
        let written = self.file.write_all(&self.frame);
        self.frame.truncate(FRAME);
        written
    }

    fn id(&mut self, id: NodeId) {
        self.frame.extend_from_slice(&id.0.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.frame
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.frame.extend_from_slice(bytes);
    }
}

/// Reads the journal of a drive. `None` if there is none; a torn tail is left out.
pub(super) fn read(path: &Path, blocks: u64) -> Result<Option<Vec<Record>>, DriveError> {
    let mut bytes = Vec::new();
    match OpenOptions::new().read(true).open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    }
    .map_err(DriveError::system(path.display().to_string()))?;
    let bad = |place: String, expected: &str, found: String| DriveError::Bad {
        file: PathBuf::from(path),
        place,
        expected: expected.to_owned(),
        found,
    };
    let mut input = Input(&bytes);
    let header = input.take(HEADER).filter(|header| {
        &header[..8] == MAGIC && crc32fast::hash(&header[..16]) == Input(&header[16..]).or_zero()
    });
    let Some(header) = header else {
        let found = format!("{} bytes that are something else", bytes.len());
        return Err(bad(
            "its first 20 bytes".into(),
            "the header of a journal",
            found,
        ));
    };
    let kept = Input(&header[8..]).u64().unwrap_or_default();
    if kept != blocks {
        let found = format!("{kept}; mount it with the capacity it was made with");
        return Err(bad(
            "its header".into(),
            &format!("a drive of {blocks} blocks"),
            found,
        ));
    }
    let mut records = Vec::new();
    loop {
        let place = format!("byte {}", bytes.len() - input.0.len());
        let Some(head) = input.take(FRAME) else {
            return Ok(Some(records));
        };
        if crc32fast::hash(&head[..8]) != Input(&head[8..]).or_zero() {
            return Err(bad(place, "the head of a frame", "another checksum".into()));
        }
        let mut fields = Input(head);
        let (length, sum) = (fields.or_zero(), fields.or_zero());
        let Some(payload) = input.take(length as usize) else {
            return Ok(Some(records));
        };
        if crc32fast::hash(payload) != sum {
            return Err(bad(place, "a frame", "another checksum".into()));
        }
        let mut payload = Input(payload);
        while !payload.0.is_empty() {
            let record = payload.record();
            let damage = || bad(place.clone(), "records", "an unknown kind of record".into());
            records.push(record.ok_or_else(damage)?);
        }
    }
}

/// Bytes that are being decoded.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn or_zero(&mut self) -> u32 {
        self.u32().unwrap_or_default()
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<NodeId> {
        self.u64().map(NodeId)
    }

    fn time(&mut self) -> Option<Time> {
        self.u64().map(|nanos| Time(nanos.cast_signed()))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.u32()?;
        self.take(length as usize).map(<[u8]>::to_vec)
    }

    fn record(&mut self) -> Option<Record> {
        Some(match self.byte()? {
            1 => self.node()?,
            2 => Record::Entry(self.id()?, self.bytes()?, Some(self.id()?)),
            3 => Record::Entry(self.id()?, self.bytes()?, None),
            4 => {
                let (node, block) = (self.id()?, self.u64()?);
                let (blocks, lba) = (self.u64()?, self.u64()?);
                Record::Mapped(node, block, Extent { lba, blocks })
            }
            5 => Record::Hole(self.id()?, self.u64()?, self.u64()?),
            6 => Record::Xattr(self.id()?, self.bytes()?, Some(self.bytes()?)),
            7 => Record::Xattr(self.id()?, self.bytes()?, None),
            8 => Record::Gone(self.id()?),
            _ => return None,
        })
    }

    fn node(&mut self) -> Option<Record> {
        let id = self.id()?;
        let kind = byte_to_kind(self.byte()?)?;
        let (mode, uid, gid) = (self.u32()?, self.u32()?, self.u32()?);
        let (device, links, size) = (self.u32()?, self.u32()?, self.u64()?);
        let (accessed, modified, changed) = (self.time()?, self.time()?, self.time()?);
        let target = self.bytes()?;
        let mut node = Node::new(Body::empty(kind, target), mode, uid, gid);
        (node.device, node.links, node.size) = (device, links, size);
        node.times = Times {
            accessed,
            modified,
            changed,
        };
        Some(Record::Node(id, Box::new(node)))
    }
}

fn kind_to_byte(kind: NodeKind) -> u8 {
    match kind {
        NodeKind::File => 0,
        NodeKind::Directory => 1,
        NodeKind::Symlink => 2,
        NodeKind::Fifo => 3,
        NodeKind::Socket => 4,
        NodeKind::CharDevice => 5,
        NodeKind::BlockDevice => 6,
    }
}

fn byte_to_kind(byte: u8) -> Option<NodeKind> {
    Some(match byte {
        0 => NodeKind::File,
        1 => NodeKind::Directory,
        2 => NodeKind::Symlink,
        3 => NodeKind::Fifo,
        4 => NodeKind::Socket,
        5 => NodeKind::CharDevice,
        6 => NodeKind::BlockDevice,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_two_frames(path: &Path) -> Vec<u8> {
        let mut journal = Journal::create(path, 100).expect("a file");
        journal.entry(NodeId(1), b"name", Some(NodeId(2)));
        journal.mapped(NodeId(2), 3, Extent { lba: 4, blocks: 5 });
        journal.commit().expect("room");
        journal.xattr(NodeId(2), b"user.x", Some(b"value"));
        journal.commit().expect("room");
        std::fs::read(path).expect("the file")
    }

    #[test]
    fn a_torn_tail_is_cut_wherever_it_is_torn() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("journal");
        let bytes = write_two_frames(&path);
        let mut counts = Vec::new();
        for length in HEADER..=bytes.len() {
            std::fs::write(&path, &bytes[..length]).expect("room");
            let records = read(&path, 100).expect("only torn").expect("a journal");
            counts.push(records.len());
        }
        assert_eq!((counts[0], counts.last()), (0, Some(&3)));
        assert!(
            counts.iter().all(|count| [0, 2, 3].contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_flipped_bit_is_damage_and_not_a_shorter_journal() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("journal");
        let bytes = write_two_frames(&path);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, &damaged).expect("room");
            let error = read(&path, 100).expect_err("damaged");
            assert!(
                matches!(error, DriveError::Bad { .. }),
                "byte {at}: {error}"
            );
        }
    }

    #[test]
    fn another_capacity_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("journal");
        write_two_frames(&path);
        let error = read(&path, 101).expect_err("another capacity").to_string();
        assert!(
            error.contains("a drive of 101 blocks") && error.contains("found 100"),
            "{error}"
        );
    }
}
