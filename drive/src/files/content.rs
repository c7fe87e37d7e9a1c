//! The bytes of files: reading, writing, resizing, reserving, punching, seeking.

use fuser::Errno;
use treering_engine::BLOCK_SIZE;

use super::extents::Piece;
use super::nodes::Time;
use super::state::{Answer, Caller, State};
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Event, Extent, NodeId};

const BLOCK: u64 = BLOCK_SIZE as u64;
/// A day: a read sets the time of the last one at most so often, unless the file changed since.
const ATIME_AGE_NS: i64 = 86_400_000_000_000;

/// How bytes are written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How {
    /// `O_SYNC`, `O_DSYNC`.
    pub(super) synced: bool,
    /// From the page cache.
    pub(super) cached: bool,
    /// Past the page cache, so that a short write is seen by the program.
    pub(super) direct: bool,
    /// The kernel wants suid and sgid gone.
    pub(super) kill_privileges: bool,
}

/// Where a seek goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whence {
    /// To the next byte that is there.
    Data,
    /// To the next byte that is not.
    Hole,
}

/// The blocks that a range of bytes touches: the first, and how many.
fn blocks_of(offset: u64, len: u64) -> (u64, u64) {
    let first = offset / BLOCK;
    (first, (offset + len).div_ceil(BLOCK) - first)
}

/// The part of a range of bytes that lies in a piece: where on the drive, and which bytes.
fn part_of(piece: Piece, offset: u64, len: usize) -> (Option<u64>, std::ops::Range<usize>) {
    let (start, end) = (piece.block * BLOCK, (piece.block + piece.blocks) * BLOCK);
    let from = start.max(offset);
    let to = end.min(offset + len as u64);
    let at = piece.lba.map(|lba| lba * BLOCK + (from - start));
    (at, (from - offset) as usize..(to - offset) as usize)
}

impl State {
    /// Reads up to `size` bytes; fewer at the end of the file. Whether the time of the last read
    /// should be set.
    pub(super) fn read(
        &self,
        id: NodeId,
        offset: u64,
        size: usize,
        bytes: &mut Vec<u8>,
    ) -> Answer<bool> {
        let extents = self.extents(id)?;
        let node = self.node(id)?;
        let size = node.size.saturating_sub(offset).min(size as u64) as usize;
        bytes.resize(size, 0);
        if size == 0 {
            return Ok(false);
        }
        if self.faults.fail_read(id, offset, size as u64) {
            return Err(Errno::EIO);
        }
        let (first, blocks) = blocks_of(offset, size as u64);
        for piece in extents.pieces(first, blocks) {
            let (at, range) = part_of(piece, offset, size);
            match at {
                Some(at) => self
                    .image
                    .read(at, &mut bytes[range])
                    .map_err(Errno::from)?,
                None => bytes[range].fill(0),
            }
        }
        let times = node.times;
        let old = Time::now().0 - times.accessed.0 > ATIME_AGE_NS;
        Ok(old || times.accessed <= times.modified || times.accessed <= times.changed)
    }

    /// A file was read just now.
    pub(super) fn touch_read(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.times.accessed = Time::now();
        }
    }

    /// Writes bytes; how many.
    pub(super) fn write(
        &mut self,
        id: NodeId,
        offset: u64,
        bytes: &[u8],
        how: How,
    ) -> Answer<usize> {
        let bytes = self.fitting(id, offset, bytes, how)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let end = offset.checked_add(bytes.len() as u64).ok_or(Errno::EFBIG)?;
        let (first, blocks) = blocks_of(offset, bytes.len() as u64);
        let pieces = self.fill(id, first, blocks)?;
        let extents = pieces.iter().filter_map(|piece| {
            piece.lba.map(|lba| Extent {
                lba,
                blocks: piece.blocks,
            })
        });
        let fails = how.synced && self.faults.fail_flush();
        let write = Write {
            node: id,
            offset,
            // The kernel writes at most a few MiB at once.
            len: bytes.len() as u32,
            extents: extents.collect(),
            synced: how.synced && !fails,
            cached: how.cached,
        };
        self.note_write(write, bytes)?;
        self.faults.written(id, offset, bytes.len() as u64);
        for piece in pieces {
            let (at, range) = part_of(piece, offset, bytes.len());
            let at = at.ok_or(Errno::EIO)?;
            self.image.write(at, &bytes[range]).map_err(Errno::from)?;
        }
        let journaled = self.journal.is_some();
        let node = self.node_mut(id)?;
        let (size, mode) = (node.size, node.mode);
        node.size = size.max(end);
        if !how.cached {
            // With a page cache the kernel keeps the times, and sets them later.
            node.touch();
        }
        if how.kill_privileges {
            node.kill_privileges();
        }
        // A time alone waits for a flush: else the journal would grow with each write in place.
        node.unsaved = journaled;
        if (node.size, node.mode) != (size, mode) {
            self.save(id);
        }
        self.settle()?;
        if fails {
            let (node, kind) = (id, FlushKind::Data);
            self.note(Event::FailedFlush { node, kind })?;
            return Err(Errno::EIO);
        }
        Ok(bytes.len())
    }

    /// The bytes that there is room for: all, or on a full drive, if the program can be told, those
    /// up to the first block without a place.
    fn fitting<'a>(&self, id: NodeId, offset: u64, bytes: &'a [u8], how: How) -> Answer<&'a [u8]> {
        let (first, blocks) = blocks_of(offset, bytes.len() as u64);
        if blocks <= self.room() {
            return Ok(bytes);
        }
        let mut free = self.room();
        for piece in self.extents(id)?.pieces(first, blocks) {
            if piece.lba.is_some() {
                continue;
            }
            if piece.blocks > free {
                let end = (piece.block + free) * BLOCK;
                let fits = end.saturating_sub(offset) as usize;
                let told = how.direct && !how.cached && fits > 0;
                return if told {
                    Ok(&bytes[..fits])
                } else {
                    Err(Errno::ENOSPC)
                };
            }
            free -= piece.blocks;
        }
        Ok(bytes)
    }

    /// Blocks that may still be taken.
    pub(super) fn room(&self) -> u64 {
        let free = self.space.free_blocks();
        match self.full_at {
            Some(full) => free.min(full.saturating_sub(self.space.used())),
            None => free,
        }
    }

    /// Maps what is a hole in a range of blocks; the range's pieces, all of them mapped.
    fn fill(&mut self, id: NodeId, first: u64, blocks: u64) -> Answer<Vec<Piece>> {
        let pieces = self.extents(id)?.pieces(first, blocks);
        let holes = || pieces.iter().filter(|piece| piece.lba.is_none());
        if holes().next().is_none() {
            return Ok(pieces);
        }
        if self.faults.fail_space() {
            self.full_at = Some(self.space.used());
        }
        if holes().map(|piece| piece.blocks).sum::<u64>() > self.room() {
            return Err(Errno::ENOSPC);
        }
        for hole in holes() {
            self.map(id, hole.block, hole.blocks)?;
        }
        Ok(self.extents(id)?.pieces(first, blocks))
    }

    /// Sets a file's size.
    pub(super) fn resize(&mut self, id: NodeId, size: u64, caller: Caller) -> Answer<()> {
        let old = self.node(id)?.size;
        let kept = size.div_ceil(BLOCK);
        let mapped_end = self.extents(id)?.end();
        self.note(Event::Resize { node: id, size })?;
        if mapped_end > kept {
            self.unmap(id, kept, mapped_end - kept);
        }
        let node = self.node_mut(id)?;
        node.size = size;
        node.touch();
        if !caller.keeps_privileges() {
            node.kill_privileges();
        }
        self.save(id);
        self.settle()?;
        if size < old {
            self.zero(id, size, kept * BLOCK - size)?;
        }
        Ok(())
    }

    /// Writes zeros where blocks are mapped, below the recording: what is recorded says it already.
    fn zero(&self, id: NodeId, offset: u64, len: u64) -> Answer<()> {
        let (first, blocks) = blocks_of(offset, len);
        for piece in self.extents(id)?.pieces(first, blocks) {
            // At most the block at either end of a range.
            let (at, range) = part_of(piece, offset, len as usize);
            if let Some(at) = at.filter(|_| !range.is_empty()) {
                self.image
                    .write(at, &vec![0; range.len()])
                    .map_err(Errno::from)?;
            }
        }
        Ok(())
    }

    /// Reserves room.
    pub(super) fn allocate(
        &mut self,
        id: NodeId,
        offset: u64,
        len: u64,
        keep_size: bool,
        caller: Caller,
    ) -> Answer<()> {
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        let (first, blocks) = blocks_of(offset, len);
        self.fill(id, first, blocks)?;
        self.note(Event::Allocate {
            node: id,
            offset,
            len,
            keep_size,
        })?;
        let node = self.node_mut(id)?;
        if !keep_size {
            node.size = node.size.max(end);
        }
        self.contents_changed(id, caller)
    }

    fn contents_changed(&mut self, id: NodeId, caller: Caller) -> Answer<()> {
        let node = self.node_mut(id)?;
        node.touch();
        if !caller.keeps_privileges() {
            node.kill_privileges();
        }
        self.save(id);
        self.settle()
    }

    /// Makes bytes zeros, and whole blocks a hole.
    pub(super) fn punch(
        &mut self,
        id: NodeId,
        offset: u64,
        len: u64,
        caller: Caller,
    ) -> Answer<()> {
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        self.extents(id)?;
        self.note(Event::Punch {
            node: id,
            offset,
            len,
        })?;
        let (from, to) = (offset.div_ceil(BLOCK), end / BLOCK);
        if from <= to {
            self.zero(id, offset, from * BLOCK - offset)?;
            self.zero(id, to * BLOCK, end - to * BLOCK)?;
            self.unmap(id, from, to - from);
        } else {
            self.zero(id, offset, len)?;
        }
        self.contents_changed(id, caller)
    }

    /// Makes bytes zeros and keeps room for them.
    pub(super) fn zero_range(
        &mut self,
        id: NodeId,
        offset: u64,
        len: u64,
        keep_size: bool,
        caller: Caller,
    ) -> Answer<()> {
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        // Punched blocks are free again, so only what was a hole before needs room.
        let (first, blocks) = blocks_of(offset, len);
        let holes = self.extents(id)?.pieces(first, blocks).into_iter();
        let needed: u64 = holes
            .filter(|piece| piece.lba.is_none())
            .map(|p| p.blocks)
            .sum();
        if needed > self.room() {
            return Err(Errno::ENOSPC);
        }
        self.punch(id, offset, end - offset, caller)?;
        self.allocate(id, offset, len, keep_size, caller)
    }

    /// The next data or hole at or behind `offset`.
    pub(super) fn seek(&self, id: NodeId, offset: u64, whence: Whence) -> Answer<u64> {
        let size = self.node(id)?.size;
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let extents = self.extents(id)?;
        let block = offset / BLOCK;
        let found = match whence {
            Whence::Data => extents.next_mapped(block).ok_or(Errno::ENXIO)? * BLOCK,
            Whence::Hole => (extents.next_hole(block) * BLOCK).min(size),
        };
        if found >= size && whence == Whence::Data {
            return Err(Errno::ENXIO);
        }
        Ok(found.max(offset))
    }

    /// Copies bytes from one file to another, or within one; how many.
    pub(super) fn copy(
        &mut self,
        from: (NodeId, u64),
        to: (NodeId, u64),
        len: u64,
        caller: Caller,
    ) -> Answer<u64> {
        const AT_ONCE: u64 = 1 << 20;
        let how = How {
            kill_privileges: !caller.keeps_privileges(),
            direct: true,
            ..How::default()
        };
        let (mut copied, mut bytes) = (0, Vec::new());
        while copied < len {
            let size = (len - copied).min(AT_ONCE) as usize;
            self.read(from.0, from.1 + copied, size, &mut bytes)?;
            if bytes.is_empty() {
                break;
            }
            match self.write(to.0, to.1 + copied, &bytes, how) {
                Ok(written) => copied += written as u64,
                Err(_) if copied > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }
}
