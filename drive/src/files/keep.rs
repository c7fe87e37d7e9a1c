//! A drive that is kept: what is in its directory, and how it comes back.
//!
//! ```text
//! DIR/image       the drive's bytes, a sparse file
//! DIR/journal     names, attributes and places; see the module `journal`
//! DIR/journal.new a compaction that was not finished; ignored
//! ```
//!
//! When a drive comes back, the journal is replayed and written anew. What a death may have left
//! half done is put right: nodes without a name are freed, and free blocks and the room behind the
//! end of files are made zeros again.
//!
//! A recording must say all that is on the drive. So that of a drive that comes back begins with
//! its nodes, names, attributes and bytes as if they were written just then, up to a flush of the
//! drive ([`FlushKind::Drive`] of the root) and the mark [`MOUNTED`]; what the program does comes
//! behind it.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use fuser::Errno;
use rustix::fs::{FlockOperation, flock};
use treering_engine::BLOCK_SIZE;

use super::journal::{self, Journal, Record};
use super::nodes::{Body, Node};
use super::state::{Answer, State};
use crate::error::DriveError;
use crate::image::Image;
use crate::recording::event::{Attributes, FlushKind, Write};
use crate::recording::{Event, Extent, MOUNTED, NodeId, NodeKind, Sink};

const BLOCK: u64 = BLOCK_SIZE as u64;

/// Holds the lock on a directory.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // To close the file is not enough: a process that this one has just forked has it, too, until
        // it runs its program.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens the drive that is kept in a directory, or makes it.
pub(super) fn open(
    dir: &Path,
    blocks: u64,
    sink: Arc<dyn Sink>,
) -> Result<(State, Lock), DriveError> {
    let in_dir = DriveError::system;
    fs::create_dir_all(dir).map_err(in_dir(dir.display().to_string()))?;
    let lock = File::open(dir).map_err(in_dir(dir.display().to_string()))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| DriveError::Parameter {
        name: "keep",
        why: format!(
            "expected a directory of its own, found {} in use",
            dir.display()
        ),
    })?;
    let lock = Lock(lock);
    let path = dir.join("journal");
    let records = journal::read(&path, blocks)?;
    let mut state = State::new(Image::open(&dir.join("image"), blocks)?, sink);
    let bad = |(place, expected, found)| DriveError::Bad {
        file: path.clone(),
        place,
        expected,
        found,
    };
    for record in records.into_iter().flatten() {
        apply(&mut state, record);
    }
    settle_places(&mut state).map_err(bad)?;
    settle_names(&mut state).map_err(bad)?;
    let image = dir.join("image").display().to_string();
    let failed =
        |errno: Errno| in_dir(image.clone())(std::io::Error::from_raw_os_error(errno.code()));
    clear_what_is_free(&state).map_err(failed)?;
    tell(&state).map_err(failed)?;
    let compacted = compact(&mut state, dir, blocks);
    compacted.map_err(in_dir(path.display().to_string()))?;
    Ok((state, lock))
}

/// Lets a record of the journal be so. What does not fit together is found afterwards.
fn apply(state: &mut State, record: Record) {
    match record {
        Record::Node(id, node) => {
            state.last_node = state.last_node.max(id.0);
            match state.nodes.get_mut(&id) {
                Some(known) => {
                    (known.mode, known.uid, known.gid) = (node.mode, node.uid, node.gid);
                    (known.links, known.size) = (node.links, node.size);
                    known.times = node.times;
                }
                None => {
                    state.nodes.insert(id, *node);
                }
            }
        }
        Record::Entry(parent, name, node) => state.set_entry(parent, &name, node),
        Record::Mapped(id, block, extent) => {
            if let Some(Node {
                body: Body::File(extents),
                ..
            }) = state.nodes.get_mut(&id)
            {
                extents.remove(block, extent.blocks);
                extents.insert(block, extent);
            }
        }
        Record::Hole(id, block, blocks) => {
            if let Some(Node {
                body: Body::File(extents),
                ..
            }) = state.nodes.get_mut(&id)
            {
                extents.remove(block, blocks);
            }
        }
        Record::Xattr(id, name, value) => state.set_xattr(id, &name, value.as_deref()),
        Record::Gone(id) => {
            state.nodes.remove(&id);
        }
    }
}

/// What is wrong with a journal: where, expected, found.
type Wrong = (String, String, String);

/// Frees nodes without names, and reserves the places of all others.
fn settle_places(state: &mut State) -> Result<(), Wrong> {
    state.nodes.retain(|_, node| node.links > 0);
    for (id, node) in &state.nodes {
        let Body::File(extents) = &node.body else {
            continue;
        };
        for piece in extents.iter() {
            let lba = piece.lba.unwrap_or(u64::MAX);
            if !state.space.reserve(Extent {
                lba,
                blocks: piece.blocks,
            }) {
                let expected = format!("{} blocks from {lba} on of its own", piece.blocks);
                let found = "blocks of another file, or behind the end of the drive";
                return Err((format!("file {}", id.0), expected, found.to_owned()));
            }
        }
    }
    Ok(())
}

/// Checks that names name nodes, and lets directories know where they are.
fn settle_names(state: &mut State) -> Result<(), Wrong> {
    let mut parents = Vec::new();
    for (id, node) in &state.nodes {
        let Body::Directory(directory) = &node.body else {
            continue;
        };
        for (name, child) in directory.entries() {
            match state.nodes.get(&child) {
                Some(child_node) if child_node.is_directory() => parents.push((child, *id)),
                Some(_) => {}
                None => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    let found = format!("node {}, which does not exist", child.0);
                    return Err((
                        format!("directory {}", id.0),
                        format!("a node {name}"),
                        found,
                    ));
                }
            }
        }
    }
    for (child, parent) in parents {
        if let Some(Node {
            body: Body::Directory(directory),
            ..
        }) = state.nodes.get_mut(&child)
        {
            directory.parent = parent;
        }
    }
    Ok(())
}

/// Makes zeros of the blocks that nobody has, and of what files have behind their ends.
fn clear_what_is_free(state: &State) -> Answer<()> {
    for run in state.space.free_runs() {
        state.image.discard(run).map_err(Errno::from)?;
    }
    for node in state.nodes.values() {
        let Body::File(extents) = &node.body else {
            continue;
        };
        let (end, whole) = (node.size, node.size.div_ceil(BLOCK));
        if end < whole * BLOCK
            && let Some(lba) = extents.pieces(whole - 1, 1)[0].lba
        {
            let at = lba * BLOCK + end % BLOCK;
            let zeros = vec![0; (whole * BLOCK - end) as usize];
            state.image.write(at, &zeros).map_err(Errno::from)?;
        }
        let behind = extents.end().saturating_sub(whole);
        for piece in extents.pieces(whole, behind) {
            if let Some(lba) = piece.lba {
                let extent = Extent {
                    lba,
                    blocks: piece.blocks,
                };
                state.image.discard(extent).map_err(Errno::from)?;
            }
        }
    }
    Ok(())
}

/// The nodes in the order in which they were made.
fn in_order(state: &State) -> Vec<(NodeId, &Node)> {
    let mut nodes: Vec<(NodeId, &Node)> = state.nodes.iter().map(|(id, n)| (*id, n)).collect();
    nodes.sort_unstable_by_key(|(id, _)| *id);
    nodes
}

/// Tells the recording all that is on the drive.
fn tell(state: &State) -> Answer<()> {
    let nodes = in_order(state);
    if nodes.len() == 1 && nodes[0].1.xattrs.is_empty() {
        return Ok(());
    }
    for (id, node) in &nodes {
        if *id == NodeId::ROOT {
            let change = Attributes {
                mode: Some(node.mode),
                uid: Some(node.uid),
                gid: Some(node.gid),
                modified_ns: None,
            };
            state.note(Event::Attributes { node: *id, change })?;
        } else {
            let target = match &node.body {
                Body::Symlink(target) => target.clone(),
                _ => Vec::new(),
            };
            state.note(Event::Make {
                node: *id,
                kind: node.kind(),
                mode: node.mode,
                uid: node.uid,
                gid: node.gid,
                device: node.device,
                target,
            })?;
        }
        for (name, value) in &node.xattrs {
            let (name, value) = (name.clone(), Some(value.clone()));
            state.note(Event::Xattr {
                node: *id,
                name,
                value,
            })?;
        }
    }
    for (parent, node) in &nodes {
        let Body::Directory(directory) = &node.body else {
            continue;
        };
        for (name, node) in directory.entries() {
            state.note(Event::Link {
                parent: *parent,
                name: name.to_vec(),
                node,
            })?;
        }
    }
    for (id, node) in &nodes {
        tell_bytes(state, *id, node)?;
        if node.kind() != NodeKind::Directory {
            let modified_ns = Some(node.times.modified.0);
            let change = Attributes {
                modified_ns,
                ..Attributes::default()
            };
            state.note(Event::Attributes { node: *id, change })?;
        }
    }
    state.note(Event::Flush {
        node: NodeId::ROOT,
        kind: FlushKind::Drive,
    })?;
    let line = MOUNTED.to_vec();
    state.note(Event::Mark { line })
}

fn tell_bytes(state: &State, id: NodeId, node: &Node) -> Answer<()> {
    const BLOCKS_AT_ONCE: u64 = 256;
    let Body::File(extents) = &node.body else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    for piece in extents.iter() {
        for at in (0..piece.blocks).step_by(BLOCKS_AT_ONCE as usize) {
            let blocks = BLOCKS_AT_ONCE.min(piece.blocks - at);
            let offset = (piece.block + at) * BLOCK;
            let len = (blocks * BLOCK).min(node.size.saturating_sub(offset));
            if len == 0 {
                let (len, keep_size) = (blocks * BLOCK, true);
                state.note(Event::Allocate {
                    node: id,
                    offset,
                    len,
                    keep_size,
                })?;
                continue;
            }
            let lba = piece.lba.ok_or(Errno::EIO)? + at;
            bytes.resize(len as usize, 0);
            state
                .image
                .read(lba * BLOCK, &mut bytes)
                .map_err(Errno::from)?;
            let extent = Extent {
                lba,
                blocks: len.div_ceil(BLOCK),
            };
            let (synced, cached) = (false, false);
            let len = len as u32;
            let write = Write {
                node: id,
                offset,
                len,
                extents: vec![extent],
                synced,
                cached,
            };
            state.note_write(write, &bytes)?;
        }
    }
    state.note(Event::Resize {
        node: id,
        size: node.size,
    })
}

/// Writes the journal anew.
fn compact(state: &mut State, dir: &Path, blocks: u64) -> std::io::Result<()> {
    let new = dir.join("journal.new");
    let mut journal = Journal::create(&new, blocks)?;
    for (id, node) in in_order(state) {
        journal.node(id, node);
        for (name, value) in &node.xattrs {
            journal.xattr(id, name, Some(value));
        }
        if let Body::File(extents) = &node.body {
            for piece in extents.iter() {
                let Some(lba) = piece.lba else { continue };
                journal.mapped(
                    id,
                    piece.block,
                    Extent {
                        lba,
                        blocks: piece.blocks,
                    },
                );
            }
        }
        journal.commit()?;
    }
    for (parent, node) in in_order(state) {
        if let Body::Directory(directory) = &node.body {
            for (name, node) in directory.entries() {
                journal.entry(parent, name, Some(node));
            }
            journal.commit()?;
        }
    }
    fs::rename(&new, dir.join("journal"))?;
    state.journal = Some(journal);
    Ok(())
}
