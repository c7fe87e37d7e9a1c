//! A drive that begins as a given tree, for states after a power cut.

use std::sync::Arc;

use super::mount::{FilesMount, check, serve};
use super::nodes::{Body, Node};
use super::state::State;
use crate::error::DriveError;
use crate::face::MountOptions;
use crate::image::Image;
use crate::recording::{Extent, NodeId, NodeKind, Sink};

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) struct LaidNode {
    /// Its number.
    pub(crate) id: NodeId,
    /// What it is.
    pub(crate) kind: NodeKind,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Owner.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Device number of a device.
    pub(crate) device: u32,
    /// Target of a symbolic link.
    pub(crate) target: Vec<u8>,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Where the blocks of a file lie in the image, by first block of the file.
    pub(crate) extents: Vec<(u64, Extent)>,
    /// Entries of a directory.
    pub(crate) entries: Vec<(Vec<u8>, NodeId)>,
    /// Extended attributes.
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Mounts a tree whose bytes are in the image. Each node but the root has a name in it. Nobody
/// unmounts it if this process is killed.
///
/// # Errors
/// As of [`super::mount`]; [`DriveError::Parameter`] if the tree does not fit on the drive.
pub(crate) fn mount_laid(
    options: &MountOptions,
    tree: Vec<LaidNode>,
    image: Image,
    sink: Arc<dyn Sink>,
) -> Result<FilesMount, DriveError> {
    check(options)?;
    let mut state = State::new(image, sink);
    let mut links: Vec<(NodeId, NodeId)> = Vec::new();
    for laid in tree {
        let mut body = Body::empty(laid.kind, laid.target);
        match &mut body {
            Body::File(extents) => {
                for (block, extent) in laid.extents {
                    if !state.space.reserve(extent) {
                        let why = format!("a drive with block {}", extent.lba);
                        let name = "capacity";
                        return Err(DriveError::Parameter { name, why });
                    }
                    extents.insert(block, extent);
                }
            }
            Body::Directory(directory) => {
                for (name, child) in laid.entries {
                    directory.set(&name, child);
                    links.push((laid.id, child));
                }
            }
            _ => {}
        }
        let mut node = Node::new(body, laid.mode, laid.uid, laid.gid);
        (node.size, node.device) = (laid.size, laid.device);
        node.xattrs.extend(laid.xattrs);
        if node.is_directory() {
            // `.`, and `..` of the root.
            node.links = if laid.id == NodeId::ROOT { 2 } else { 1 };
        }
        state.last_node = state.last_node.max(laid.id.0);
        state.nodes.insert(laid.id, node);
    }
    for (parent, child) in links {
        let Some(node) = state.nodes.get_mut(&child) else {
            continue;
        };
        node.links += 1;
        if let Body::Directory(directory) = &mut node.body {
            directory.parent = parent;
            if let Some(parent) = state.nodes.get_mut(&parent) {
                parent.links += 1;
            }
        }
    }
    let dir = options.dir.canonicalize();
    let dir = dir.map_err(DriveError::system(options.dir.display().to_string()))?;
    serve(options, &dir, state, (None, None))
}
