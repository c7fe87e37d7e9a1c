//! A tree as a mounted drive, or as a directory that stays.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use super::content::{BLOCK, Cell, Store};
use super::tree::{Node, Tree};
use crate::disk::mount_image;
use crate::error::DriveError;
use crate::face::{Face, MountOptions, Mounted};
use crate::files::{LaidNode, mount_laid};
use crate::image::{Block, Image, Under};
use crate::recording::{Extent, NodeId, NodeKind, Sink};

/// Consecutive blocks of a file, on consecutive blocks of the drive.
struct Run {
    lba: u64,
    blocks: u64,
    node: Arc<Node>,
    first: u64,
}

/// The blocks of a tree's files, one run after the other from block 0 on.
struct Runs {
    runs: Vec<Run>,
    store: Arc<Store>,
}

impl Under for Runs {
    fn read(&self, lba: u64, into: &mut Block) -> io::Result<()> {
        let at = self.runs.partition_point(|run| run.lba + run.blocks <= lba);
        let cell = match self.runs.get(at) {
            Some(run) if run.lba <= lba => run.node.blocks.get(run.first + lba - run.lba),
            _ => &Cell::Zeros,
        };
        self.store.read(cell, into).map_err(io::Error::other)
    }
}

/// Mounts a tree, as the face that was recorded showed it.
pub(super) fn mount(
    tree: &Tree,
    face: Face,
    store: &Arc<Store>,
    options: &MountOptions,
    sink: Arc<dyn Sink>,
) -> Result<Box<dyn Mounted>, DriveError> {
    let store = Arc::clone(store);
    Ok(match face {
        Face::Files => {
            let (nodes, runs) = lay(tree);
            let image = Image::over(Arc::new(Runs { runs, store }), options.capacity_blocks);
            Box::new(mount_laid(options, nodes, image, sink)?)
        }
        Face::Disk(fs) => {
            let disk = tree.get(NodeId::ROOT).cloned();
            let run = disk.map(|node| Run {
                lba: 0,
                blocks: options.capacity_blocks,
                node,
                first: 0,
            });
            let runs = run.into_iter().collect();
            let image = Image::over(Arc::new(Runs { runs, store }), options.capacity_blocks);
            Box::new(mount_image(options, fs, image, sink)?)
        }
    })
}

/// Gives the blocks of all files their places.
fn lay(tree: &Tree) -> (Vec<LaidNode>, Vec<Run>) {
    let (mut nodes, mut runs, mut lba) = (Vec::new(), Vec::new(), 0);
    let reachable = tree.reachable();
    let known: rustc_hash::FxHashSet<NodeId> = reachable.iter().map(|(id, _)| *id).collect();
    for (id, _) in reachable {
        let Some(node) = tree.get(id) else {
            continue;
        };
        let mut extents: Vec<(u64, Extent)> = Vec::new();
        for block in node.blocks.written() {
            match extents.last_mut() {
                Some((first, run)) if *first + run.blocks == block => run.blocks += 1,
                _ => extents.push((block, Extent { lba, blocks: 1 })),
            }
            lba += 1;
        }
        for (first, extent) in &extents {
            runs.push(Run {
                lba: extent.lba,
                blocks: extent.blocks,
                node: Arc::clone(node),
                first: *first,
            });
        }
        let entries = node
            .entries
            .iter()
            .filter(|(_, child)| known.contains(child));
        nodes.push(LaidNode {
            id,
            kind: node.kind,
            mode: node.mode,
            uid: node.uid,
            gid: node.gid,
            device: node.device,
            target: node.target.clone(),
            size: node.size,
            extents,
            entries: entries
                .map(|(name, child)| (name.to_vec(), *child))
                .collect(),
            xattrs: node
                .xattrs
                .iter()
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect(),
        });
    }
    (nodes, runs)
}

/// Copies a tree into a directory, for looking at it. Of a disk there is one file, `disk`.
/// Owners and devices are left out.
pub(super) fn copy(tree: &Tree, store: &Store, dir: &Path) -> Result<(), DriveError> {
    fs::create_dir_all(dir).map_err(DriveError::system(dir.display().to_string()))?;
    let mut copied: rustc_hash::FxHashMap<NodeId, std::path::PathBuf> = Default::default();
    for (id, path) in tree.reachable() {
        let Some(node) = tree.get(id) else {
            continue;
        };
        let mut to = dir.join(std::ffi::OsStr::from_bytes(&path));
        if id == NodeId::ROOT && node.kind == NodeKind::File {
            to = dir.join("disk");
        }
        copy_node(node, store, &to)?;
        copied.insert(id, to);
    }
    // Second names of files.
    for (id, path) in &copied {
        for (name, child) in tree.get(*id).iter().flat_map(|node| &node.entries) {
            let link = path.join(std::ffi::OsStr::from_bytes(name));
            if let Some(first) = copied.get(child)
                && !link.exists()
                && fs::symlink_metadata(&link).is_err()
            {
                let linked = fs::hard_link(first, &link);
                linked.map_err(DriveError::system(link.display().to_string()))?;
            }
        }
    }
    Ok(())
}

fn copy_node(node: &Node, store: &Store, to: &Path) -> Result<(), DriveError> {
    let failed = || DriveError::system(to.display().to_string());
    match node.kind {
        NodeKind::Directory => fs::create_dir_all(to).map_err(failed())?,
        NodeKind::Symlink => {
            let target = std::ffi::OsStr::from_bytes(&node.target);
            symlink(target, to).map_err(failed())?;
        }
        NodeKind::File => {
            let file = File::create(to).map_err(failed())?;
            file.set_len(node.size).map_err(failed())?;
            let mut bytes = [0; BLOCK as usize];
            for block in node.blocks.written() {
                store.read(node.blocks.get(block), &mut bytes)?;
                let len = node.size.saturating_sub(block * BLOCK).min(BLOCK) as usize;
                let written = file.write_all_at(&bytes[..len], block * BLOCK);
                written.map_err(failed())?;
            }
            let mode = fs::Permissions::from_mode(node.mode & 0o777 | 0o600);
            fs::set_permissions(to, mode).map_err(failed())?;
        }
        _ => {}
    }
    Ok(())
}
