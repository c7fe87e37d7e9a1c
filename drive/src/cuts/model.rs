//! What a file system promises across a power cut, as a named model.
//!
//! | model | names, attributes, `truncate` | size of a growing file | `fsync` of a file makes durable |
//! |---|---|---|---|
//! | `strict` | each by itself; a rename is the new name, then the end of the old one | by itself | its bytes, size, attributes; not its name |
//! | `ext4-ordered` | in order | after the bytes that it covers | also all names and attributes up to its own last |
//! | `ext4-writeback` | in order | by itself | likewise |
//! | `xfs` | in order | after the bytes that it covers | likewise |
//! | `btrfs` | in order, but for what was synced | after the bytes that it covers | also its names, out of order |
//! | `disk` | none: blocks | fixed | everything written before |
//!
//! Bytes that were not synced are there, absent or torn, each write by itself, in every model: an
//! overwrite is not ordered by any of these file systems (ext4 with `data=journal` would be).
//!
//! # Sources
//! POSIX.1-2024 `fsync` and `rename`, and the manual page fsync(2): "calling fsync() does not
//! necessarily ensure that the entry in the directory containing the file has also reached disk".
//! The kernel's `Documentation/filesystems/ext4` (`data=ordered`, `data=writeback`,
//! `auto_da_alloc`), its XFS delayed logging design, and the page "fsync" of the Btrfs manual for
//! log trees. ALICE (Pillai et al., OSDI 2014) calls such models abstract persistence models; its
//! section 3 names atomicity and order of the same operations.
//!
//! # What is not modelled
//! - `strict` keeps a renamed entry whole: the new name is never neither the old file nor the new.
//!   POSIX promises that to other processes, and every file system keeps it across a cut. A
//!   directory moves in one step, since a directory with two names is damage.
//! - Bytes that a file system leaves in a new block before it was written are zeros here. With
//!   `data=writeback` they may be of a deleted file.
//! - A rename over a file waits for the bytes of the new one on ext4 (`auto_da_alloc`); a `close`
//!   after truncation to zero does so, too, but a close is not recorded.
//! - Nothing becomes durable by age: Linux writes dirty pages after 30 s and ext4 commits every
//!   5 s, but neither is a promise.

use serde::{Deserialize, Serialize};

/// A named model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The least that POSIX promises.
    #[default]
    Strict,
    /// ext4 with `data=ordered`, its default.
    Ext4Ordered,
    /// ext4 with `data=writeback`.
    Ext4Writeback,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// Blocks below a real file system, which recovers by itself.
    Disk,
}

/// What a flush of a node makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forces {
    /// What was asked for.
    Itself,
    /// The journal as well, up to the last entry that is about the node.
    Journal,
    /// The names of the node as well.
    Names,
    /// Everything.
    Everything,
}

impl Model {
    /// All models of the face `files`.
    pub const FILES: [Model; 5] = [
        Model::Strict,
        Model::Ext4Ordered,
        Model::Ext4Writeback,
        Model::Xfs,
        Model::Btrfs,
    ];

    /// Its name, as `--model` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Model::Strict => "strict",
            Model::Ext4Ordered => "ext4-ordered",
            Model::Ext4Writeback => "ext4-writeback",
            Model::Xfs => "xfs",
            Model::Btrfs => "btrfs",
            Model::Disk => "disk",
        }
    }

    /// Whether names, attributes and `truncate` become durable in their order.
    pub(super) fn has_journal(self) -> bool {
        !matches!(self, Model::Strict | Model::Disk)
    }

    /// Whether a file grows only when the bytes that it grows by are there.
    pub(super) fn size_follows_bytes(self) -> bool {
        matches!(self, Model::Ext4Ordered | Model::Xfs | Model::Btrfs)
    }

    /// Whether a rename over a file waits for the bytes of the renamed one.
    pub(super) fn replaces_with_bytes(self) -> bool {
        self == Model::Ext4Ordered
    }

    /// Whether the two halves of a rename are durable one after the other.
    pub(super) fn splits_renames(self) -> bool {
        self == Model::Strict
    }

    /// What a flush of a node makes durable.
    pub(super) fn forces(self) -> Forces {
        match self {
            Model::Strict => Forces::Itself,
            Model::Ext4Ordered | Model::Ext4Writeback | Model::Xfs => Forces::Journal,
            Model::Btrfs => Forces::Names,
            Model::Disk => Forces::Everything,
        }
    }
}

impl std::str::FromStr for Model {
    type Err = String;

    fn from_str(name: &str) -> Result<Model, String> {
        let mut all = Model::FILES.into_iter();
        all.find(|model| model.name() == name).ok_or_else(|| {
            let names = Model::FILES.map(Model::name).join(", ");
            format!("expected one of {names}")
        })
    }
}
