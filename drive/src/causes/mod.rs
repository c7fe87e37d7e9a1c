//! What each write is for: its *cause*, by the file's path, contents or place.
//!
//! ```text
//! first pass ──▶ Knowledge: levels of sorted tables, files and regions of a real file system
//!                   │
//! second pass ──▶ Classifier: names as they are now ──▶ cause of each write, flush and discard
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`rules`] | globs of paths |
//! | [`sniff`] | what the first bytes of a file tell |
//! | [`manifest`] | the level of a sorted table |
//!
//! On the face `files` a cause is exact: a write belongs to a file, and the file has a path when it
//! is written. A file that is renamed later keeps the cause that it had. On a real file system the
//! cause is that of the block: see [`Owners`] for what it cannot know.

pub mod manifest;
pub mod rules;
pub mod sniff;

use rustc_hash::{FxHashMap, FxHashSet};

use self::manifest::Levels;
use self::rules::{DIRECTORY, OTHER, Rules, TABLES};
use crate::error::DriveError;
use crate::face::Face;
use crate::layout::{Owner, Owners};
use crate::recording::names::Names;
use crate::recording::{Event, NodeId, NodeKind, Pieces, Reader, Recorded};

/// Number of a cause, in the order in which causes were met; [`Causes`] names them.
pub type CauseId = u8;

/// The cause of blocks of a real file system of which nothing tells whose they are.
pub const UNKNOWN: &str = "unknown";

/// The beginning of the names of manifests.
const MANIFEST: &[u8] = b"MANIFEST-";
/// A manifest beyond this size is not read further.
const MOST_MANIFEST_BYTES: u64 = 256 << 20;

/// The names of causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    names: Vec<String>,
}

impl Causes {
    /// The number of a cause. There are at most 255, and all others are one.
    fn id(&mut self, name: &str) -> CauseId {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return at as CauseId;
        }
        match self.names.len() {
            0..255 => self.names.push(name.into()),
            255 => self.names.push(OTHER.into()),
            _ => {}
        }
        (self.names.len() - 1) as CauseId
    }

    /// The names, by number.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// What only the whole recording tells of its causes.
#[derive(Debug)]
pub struct Knowledge {
    rules: Rules,
    /// By folder.
    levels: FxHashMap<Vec<u8>, Levels>,
    /// On a real file system.
    owners: Option<Owners>,
}

/// Collects [`Knowledge`] in a pass over a recording.
pub struct Survey {
    face: Face,
    names: Names,
    owners: Owners,
    pieces: Option<Pieces>,
    /// Manifests: their folders and bytes.
    manifests: FxHashMap<NodeId, (Vec<u8>, Vec<u8>)>,
    bytes: Vec<u8>,
}

impl Survey {
    /// Begins with the first event of a recording.
    ///
    /// # Errors
    /// Those of reading its contents.
    pub fn new(reader: &Reader) -> Result<Survey, DriveError> {
        Ok(Survey {
            face: reader.header().face,
            names: Names::new(),
            owners: Owners::default(),
            pieces: Some(reader.pieces()?).filter(|pieces| pieces.count() > 0),
            manifests: FxHashMap::default(),
            bytes: Vec::new(),
        })
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// Those of reading contents.
    pub fn note(&mut self, recorded: &Recorded) -> Result<(), DriveError> {
        if self.face != Face::Files {
            self.owners.note(recorded.seq, &recorded.event);
            return Ok(());
        }
        self.names.apply(&recorded.event);
        match &recorded.event {
            Event::Write(write) => self.manifest(write.node, write.offset, recorded),
            _ => Ok(()),
        }
    }

    /// Keeps the bytes of a write to a manifest.
    fn manifest(
        &mut self,
        node: NodeId,
        offset: u64,
        recorded: &Recorded,
    ) -> Result<(), DriveError> {
        let Some(pieces) = &mut self.pieces else {
            return Ok(());
        };
        let is_one = self
            .names
            .name(node)
            .is_some_and(|n| n.starts_with(MANIFEST));
        if !is_one || offset > MOST_MANIFEST_BYTES {
            return Ok(());
        }
        self.bytes.clear();
        if pieces.read(recorded, &mut self.bytes)? {
            let folder = folder(&self.names.path(node).unwrap_or_default()).to_vec();
            let (_, manifest) = self.manifests.entry(node).or_insert((folder, Vec::new()));
            let at = offset as usize;
            manifest.resize(manifest.len().max(at + self.bytes.len()), 0);
            manifest[at..at + self.bytes.len()].copy_from_slice(&self.bytes);
        }
        Ok(())
    }

    /// What the pass told, to be used with these rules.
    #[must_use]
    pub fn finish(self, rules: Rules) -> Knowledge {
        let mut levels: FxHashMap<Vec<u8>, Levels> = FxHashMap::default();
        for (folder, manifest) in self.manifests.into_values() {
            manifest::read(&manifest, levels.entry(folder).or_default());
        }
        Knowledge {
            rules,
            levels,
            owners: (self.face != Face::Files).then_some(self.owners),
        }
    }
}

/// The path up to its last slash.
fn folder(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/');
    &path[..end.unwrap_or(0)]
}

impl Knowledge {
    /// Begins a pass in which every event has its cause.
    #[must_use]
    pub fn classifier(&self) -> Classifier<'_> {
        Classifier {
            knowledge: self,
            causes: Causes::default(),
            names: Names::new(),
            hints: FxHashMap::default(),
            known: FxHashMap::default(),
            owners: Vec::new(),
            regions: FxHashSet::default(),
        }
    }

    /// The cause of a path, without what contents tell.
    fn of_path(&self, path: &[u8]) -> String {
        let cause = self.rules.of(&String::from_utf8_lossy(path));
        let level = (cause == TABLES).then(|| self.level(path)).flatten();
        level.map_or_else(|| cause.to_string(), |level| format!("L{level}"))
    }

    /// The level of a sorted table.
    fn level(&self, path: &[u8]) -> Option<u8> {
        let levels = self.levels.get(folder(path))?;
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let digits = name.split(|byte| *byte == b'.').next()?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        levels.get(&number).copied()
    }
}

/// Tells the cause of each event of a recording, in its order.
pub struct Classifier<'a> {
    knowledge: &'a Knowledge,
    causes: Causes,
    names: Names,
    /// Causes that the contents of files told.
    hints: FxHashMap<NodeId, &'static str>,
    /// The cause of each node, as long as names have not changed since.
    known: FxHashMap<NodeId, (u64, CauseId)>,
    /// The cause of each owner of blocks, by its number.
    owners: Vec<Option<CauseId>>,
    /// Causes of the file system itself.
    regions: FxHashSet<CauseId>,
}

impl Classifier<'_> {
    /// Follows an event; then [`Classifier::of`] and [`Classifier::of_block`] tell its cause.
    pub fn apply(&mut self, event: &Event) {
        if self.knowledge.owners.is_some() {
            return;
        }
        self.names.apply(event);
        if let Event::Hint { node, what } = event {
            let hint = sniff::HINTS.iter().find(|(name, _)| name == what);
            if let Some((_, cause)) = hint {
                self.hints.insert(*node, cause);
                self.known.remove(node);
            }
        }
    }

    /// The cause of whatever happens to a node now.
    pub fn of(&mut self, node: NodeId) -> CauseId {
        let changes = self.names.changes();
        match self.known.get(&node) {
            Some((at, cause)) if *at == changes => return *cause,
            _ => {}
        }
        let name = self.name_of(node);
        let cause = self.causes.id(&name);
        self.known.insert(node, (changes, cause));
        cause
    }

    fn name_of(&self, node: NodeId) -> String {
        if self.knowledge.owners.is_some() {
            return "drive".into();
        }
        if self.names.kind(node) == Some(NodeKind::Directory) {
            return DIRECTORY.into();
        }
        let Some(path) = self.names.path(node) else {
            return OTHER.into();
        };
        let cause = self.knowledge.of_path(&path);
        // PostgreSQL's names do not tell tables from indexes, and any name may be a database.
        match self.hints.get(&node) {
            Some(hint) if cause == OTHER || cause == "heap" || cause == "database" => {
                (*hint).to_string()
            }
            _ => cause,
        }
    }

    /// The cause of the block `lba` of a write or discard of `node` that was recorded as `seq`.
    pub fn of_block(&mut self, node: NodeId, seq: u64, lba: u64) -> CauseId {
        let Some(owners) = &self.knowledge.owners else {
            return self.of(node);
        };
        let number = owners.number_at(seq, lba);
        let Some((number, owner)) = number.and_then(|n| Some((n as usize, owners.owner(n)?)))
        else {
            return self.causes.id(UNKNOWN);
        };
        if self.owners.len() <= number {
            self.owners.resize(number + 1, None);
        }
        if let Some(cause) = self.owners[number] {
            return cause;
        }
        let (name, is_region) = match owner {
            Owner::Region(name) => (name.clone(), true),
            Owner::File(path) => (self.knowledge.of_path(path), false),
        };
        let cause = self.causes.id(&name);
        if is_region {
            self.regions.insert(cause);
        }
        self.owners[number] = Some(cause);
        cause
    }

    /// A number for the file that a block of a real file system belongs to, if it belongs to one;
    /// [`Classifier::path_of_file`] has its path.
    #[must_use]
    pub fn file_of(&self, seq: u64, lba: u64) -> Option<u64> {
        let owners = self.knowledge.owners.as_ref()?;
        let number = owners.number_at(seq, lba)?;
        matches!(owners.owner(number), Some(Owner::File(_))).then(|| u64::from(number))
    }

    /// The path of a file: of the node with this number, or of the number that
    /// [`Classifier::file_of`] gave.
    #[must_use]
    pub fn path_of_file(&self, file: u64) -> Option<Vec<u8>> {
        match &self.knowledge.owners {
            None => self.names.path(NodeId(file)),
            Some(owners) => match owners.owner(u32::try_from(file).ok()?)? {
                Owner::File(path) => Some(path.clone()),
                Owner::Region(_) => None,
            },
        }
    }

    /// Whether a cause is of the file system itself: its journal, its tables.
    #[must_use]
    pub fn is_of_file_system(&self, cause: CauseId) -> bool {
        self.regions.contains(&cause)
    }

    /// Whether all blocks of a write have the same cause, because it is a write of one file.
    #[must_use]
    pub fn is_by_file(&self) -> bool {
        self.knowledge.owners.is_none()
    }

    /// The names of the causes so far.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// The names of files as they are now.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }
}

#[cfg(test)]
mod tests;
