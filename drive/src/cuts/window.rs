//! What is durable at a place of the recording, and what is not.
//!
//! ```text
//! events ──▶ effects ──▶ volatile, in order ──flush──▶ base: a tree
//! ```
//!
//! A flush moves the effects that it makes durable from the volatile ones to the base. Whatever is
//! still volatile may be there after a cut, or not.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::content::{BLOCK, Source, Store};
use super::effect::{Effect, EffectId, Rename, What, is_directory};
use super::model::{Forces, Model};
use super::state::apply_whole;
use super::tree::{Name, Node, Payload, Tree};
use crate::error::DriveError;
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Event, NodeId, NodeKind, PieceId, Recorded};

/// The part of a write that is older bytes of its pages.
pub(super) const WITH_ITS_PAGE: u8 = 2;

/// Bytes cut at pages.
fn by_page(what: &What) -> Vec<(u64, What)> {
    let What::Bytes {
        node,
        offset,
        len,
        payload: Payload::Pieces(source, pieces),
    } = what
    else {
        return Vec::new();
    };
    let (first, end) = (offset / BLOCK, offset + len);
    let part = |(page, piece): (u64, &PieceId)| {
        let from = (page * BLOCK).max(*offset);
        let what = What::Bytes {
            node: *node,
            offset: from,
            len: ((page + 1) * BLOCK).min(end) - from,
            payload: Payload::Pieces(*source, [*piece].into()),
        };
        (page, what)
    };
    (first..).zip(pieces.iter()).map(part).collect()
}

/// The durable tree and the volatile effects at one place of a recording.
pub(super) struct Window<'a> {
    model: Model,
    /// Bytes that are durable or not as a whole: 512 or 4096.
    unit: u64,
    /// The most effects that stay volatile.
    limit: usize,
    store: &'a Store,
    source: Source,
    base: Tree,
    volatile: BTreeMap<EffectId, Effect>,
    next: EffectId,
    /// The last change of each entry, and of what a node has besides its bytes.
    entries: FxHashMap<(NodeId, Name), EffectId>,
    resizes: FxHashMap<NodeId, EffectId>,
    attributes: FxHashMap<NodeId, EffectId>,
    journal: Option<EffectId>,
    /// Sizes of files with all that was done.
    sizes: FxHashMap<NodeId, u64>,
    /// The last name that a node had.
    labels: FxHashMap<NodeId, Name>,
    /// What failed flushes kept from the drive, by page: it comes with the page, should that be
    /// written again.
    dropped: FxHashMap<(NodeId, u64), Vec<What>>,
    /// Nodes that nobody uses any more, until their end is durable.
    dying: Vec<NodeId>,
    /// Effects that became durable because there were too many.
    pub(super) expired: u64,
}

impl<'a> Window<'a> {
    /// A window at the beginning of a recording, over what was there before.
    pub(super) fn new(
        model: Model,
        (unit, limit): (u64, usize),
        store: &'a Store,
        (source, base): (Source, Tree),
    ) -> Window<'a> {
        let mut labels = FxHashMap::default();
        for (id, path) in base.reachable() {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            labels.insert(id, Name::from(name));
        }
        let sizes = base.reachable().into_iter();
        let sizes = sizes.filter_map(|(id, _)| Some((id, base.get(id)?.size)));
        Window {
            model,
            unit,
            limit,
            store,
            source,
            sizes: sizes.collect(),
            base,
            volatile: BTreeMap::new(),
            next: 0,
            entries: FxHashMap::default(),
            resizes: FxHashMap::default(),
            attributes: FxHashMap::default(),
            journal: None,
            labels,
            dropped: FxHashMap::default(),
            dying: Vec::new(),
            expired: 0,
        }
    }

    /// What is durable.
    pub(super) fn base(&self) -> &Tree {
        &self.base
    }

    /// What is not, in order.
    pub(super) fn volatile(&self) -> impl DoubleEndedIterator<Item = &Effect> {
        self.volatile.values()
    }

    /// The number of effects that are not durable.
    pub(super) fn count(&self) -> usize {
        self.volatile.len()
    }

    /// The last component of the last path of a node.
    pub(super) fn label(&self, id: NodeId) -> &[u8] {
        self.labels.get(&id).map_or(b"", |name| name)
    }

    /// Follows an event. Of a write that is durable when it returns, this is the part before that:
    /// [`Window::end_of_write`] follows.
    pub(super) fn begin(&mut self, recorded: &Recorded) -> Result<(), DriveError> {
        let seq = recorded.seq;
        match &recorded.event {
            Event::Make {
                node,
                kind,
                mode,
                uid,
                gid,
                device,
                target,
            } => {
                let mut made = Node::new(*kind, *mode);
                (made.uid, made.gid, made.device) = (*uid, *gid, *device);
                made.target.clone_from(target);
                self.base.insert(*node, made);
                self.sizes.insert(*node, 0);
            }
            Event::Link { parent, name, node } => {
                self.know(*node);
                let name = Name::from(&name[..]);
                self.labels.insert(*node, name.clone());
                self.entry(seq, 0, (*parent, name), Some(*node), None);
            }
            Event::Unlink { parent, name, node } => {
                self.entry(seq, 0, (*parent, Name::from(&name[..])), None, Some(*node));
            }
            Event::Rename {
                parent,
                name,
                to,
                to_name,
                node,
                other,
                exchange,
            } => self.rename(
                seq,
                Rename {
                    parent: *parent,
                    name: Name::from(&name[..]),
                    to: *to,
                    to_name: Name::from(&to_name[..]),
                    node: *node,
                    other: *other,
                    exchange: *exchange,
                },
            ),
            Event::Free { node } => self.dying.push(*node),
            Event::Write(write) => self.write(recorded, write),
            Event::Resize { node, size } => {
                let what = What::Resize {
                    node: *node,
                    size: *size,
                };
                let needs = self.resizes.get(node).copied().into_iter().collect();
                let id = self.add(seq, 0, what, needs);
                self.resizes.insert(*node, id);
                self.sizes.insert(*node, *size);
                let ends = |(of, page): &(NodeId, u64)| of == node && page * BLOCK >= *size;
                self.dropped.retain(|place, _| !ends(place));
            }
            Event::Allocate {
                node,
                offset,
                len,
                keep_size: false,
            } => self.grow(seq, *node, offset.saturating_add(*len), None),
            Event::Punch { node, offset, len } => {
                let size = self.sizes.get(node).copied().unwrap_or(0);
                let end = offset.saturating_add(*len).min(size);
                if end > *offset {
                    let what = What::Bytes {
                        node: *node,
                        offset: *offset,
                        len: end - offset,
                        payload: Payload::Zeros,
                    };
                    let needs = self.resizes.get(node).copied().into_iter().collect();
                    self.add(seq, 0, what, needs);
                }
            }
            Event::Attributes { node, change } => {
                let what = What::Attributes {
                    node: *node,
                    change: *change,
                };
                self.attribute(seq, *node, what);
            }
            Event::Xattr { node, name, value } => {
                let what = What::Xattr {
                    node: *node,
                    name: name.clone(),
                    value: value.clone(),
                };
                self.attribute(seq, *node, what);
            }
            _ => {}
        }
        self.expire()
    }

    /// Makes durable what an event makes durable.
    pub(super) fn end(&mut self, event: &Event) -> Result<(), DriveError> {
        match event {
            Event::Write(write) if write.synced => self.end_of_write(write),
            Event::Flush { node, kind } => self.flush(*node, *kind),
            Event::FailedFlush { node, .. } if self.model != Model::Disk => {
                self.drop_pages(*node);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes the last write durable, and older bytes that share units with it.
    fn end_of_write(&mut self, write: &Write) -> Result<(), DriveError> {
        let (from, to) = (write.offset, write.offset.saturating_add(write.len.into()));
        let unit = self.unit;
        if write.offset > u64::MAX / 2 {
            return Ok(());
        }
        let (from, to) = (from / unit * unit, to.div_ceil(unit) * unit);
        let of_bytes = self.volatile.values().filter(|effect| match &effect.what {
            What::Bytes {
                node, offset, len, ..
            } => *node == write.node && *offset < to && offset + len > from,
            _ => false,
        });
        let mut forced: FxHashSet<EffectId> = of_bytes.map(|effect| effect.id).collect();
        // The size that the bytes need to be read, if it is not durable yet.
        let end = write.offset.saturating_add(write.len.into());
        if self.base.get(write.node).is_none_or(|node| node.size < end) {
            let grows = self.volatile.values().find(|effect| match &effect.what {
                What::Grow { node, size, .. } | What::Resize { node, size } => {
                    *node == write.node && *size >= end
                }
                _ => false,
            });
            forced.extend(grows.map(|effect| effect.id));
        }
        self.force(forced)
    }

    fn flush(&mut self, node: NodeId, kind: FlushKind) -> Result<(), DriveError> {
        let forces = match kind {
            FlushKind::Drive => Forces::Everything,
            _ => self.model.forces(),
        };
        let directory = self.base.get(node).is_some_and(|n| is_directory(n.kind));
        let itself = |effect: &Effect| match directory {
            true => effect.is_entry_of(node) || effect.node() == Some(node),
            false => {
                let contents =
                    effect.is_of_contents() || matches!(effect.what, What::Resize { .. });
                effect.node() == Some(node) && (contents || kind != FlushKind::Data)
            }
        };
        let forced: FxHashSet<EffectId> = match forces {
            Forces::Everything => self.volatile.keys().copied().collect(),
            Forces::Itself => self.ids(itself),
            Forces::Names => self.ids(|effect| itself(effect) || effect.names(node)),
            Forces::Journal => {
                let about = |effect: &&Effect| effect.journaled && effect.touches(node);
                let last = self.volatile.values().rev().find(about);
                let last = last.map_or(0, |effect| effect.id + 1);
                self.ids(|effect| itself(effect) || (effect.journaled && effect.id < last))
            }
        };
        self.force(forced)?;
        self.bury()
    }

    /// Takes the bytes of a file that are not durable for clean: its dirty pages are dropped.
    fn drop_pages(&mut self, node: NodeId) {
        let is_dirty = |effect: &Effect| {
            effect.node() == Some(node)
                && matches!(
                    &effect.what,
                    What::Bytes {
                        payload: Payload::Pieces(..),
                        ..
                    }
                )
        };
        let mut dirty: Vec<EffectId> = self.ids(is_dirty).into_iter().collect();
        dirty.sort_unstable();
        for id in dirty {
            let Some(effect) = self.volatile.remove(&id) else {
                continue;
            };
            for (page, part) in by_page(&effect.what) {
                self.dropped.entry((node, page)).or_default().push(part);
            }
        }
    }

    /// Brings what was dropped of the pages that a write touches: a page is written whole.
    fn bring_pages(&mut self, seq: u64, write: &Write) {
        if self.dropped.is_empty() {
            return;
        }
        let end = write.offset + u64::from(write.len);
        for page in write.offset / BLOCK..end.div_ceil(BLOCK) {
            for what in self.dropped.remove(&(write.node, page)).unwrap_or_default() {
                let needs = self.resizes.get(&write.node).copied().into_iter().collect();
                self.add(seq, WITH_ITS_PAGE, what, needs);
            }
        }
    }

    fn ids(&self, wanted: impl Fn(&Effect) -> bool) -> FxHashSet<EffectId> {
        let effects = self.volatile.values().filter(|effect| wanted(effect));
        effects.map(|effect| effect.id).collect()
    }

    /// Makes effects durable, and those that they need.
    fn force(&mut self, mut forced: FxHashSet<EffectId>) -> Result<(), DriveError> {
        for effect in self.volatile.values().rev() {
            if forced.contains(&effect.id) {
                forced.extend(effect.needs.iter().copied());
            }
        }
        let mut forced: Vec<EffectId> = forced.into_iter().collect();
        forced.sort_unstable();
        for id in forced {
            if let Some(effect) = self.volatile.remove(&id) {
                apply_whole(&mut self.base, &effect, self.store)?;
            }
        }
        self.relink();
        Ok(())
    }

    /// Closes the gaps of the journal: what is left of it is still in order.
    fn relink(&mut self) {
        if !self.model.has_journal() {
            return;
        }
        self.journal = None;
        for effect in self.volatile.values_mut().filter(|effect| effect.journaled) {
            effect.journal = self.journal.replace(effect.id);
        }
    }

    /// Forgets nodes whose end is durable, and what was still to become of them.
    fn bury(&mut self) -> Result<(), DriveError> {
        if self.dying.is_empty() {
            return Ok(());
        }
        let mut named: FxHashSet<NodeId> = FxHashSet::default();
        for effect in self.volatile.values() {
            match &effect.what {
                What::Entry { node, before, .. } => named.extend(node.iter().chain(before)),
                What::Rename(r) => named.extend([r.node].iter().chain(&r.other)),
                _ => {}
            }
        }
        let base = &self.base;
        let is_gone =
            |id: &NodeId| !named.contains(id) && base.get(*id).is_none_or(|node| node.names == 0);
        let (gone, dying): (Vec<NodeId>, Vec<NodeId>) =
            self.dying.iter().partition(|id| is_gone(id));
        self.dying = dying;
        let gone: FxHashSet<NodeId> = gone.into_iter().collect();
        if gone.is_empty() {
            return Ok(());
        }
        let stays = |effect: &Effect| effect.node().is_none_or(|node| !gone.contains(&node));
        self.volatile.retain(|_, effect| stays(effect));
        self.relink();
        for id in gone {
            self.base.remove(id);
            self.sizes.remove(&id);
            self.resizes.remove(&id);
            self.attributes.remove(&id);
        }
        Ok(())
    }

    /// Lets the oldest effects be durable if there are too many.
    fn expire(&mut self) -> Result<(), DriveError> {
        if self.volatile.len() <= self.limit {
            return Ok(());
        }
        let surplus = self.volatile.len() - self.limit * 9 / 10;
        let oldest: FxHashSet<EffectId> = self.volatile.keys().copied().take(surplus).collect();
        self.expired += oldest.len() as u64;
        self.force(oldest)?;
        self.bury()
    }

    fn add(&mut self, event: u64, part: u8, what: What, needs: Vec<EffectId>) -> EffectId {
        let id = self.next;
        self.next += 1;
        let journaled = self.model.has_journal()
            && !matches!(what, What::Bytes { .. } | What::Grow { bytes: Some(_), .. });
        let journal = if journaled { self.journal } else { None };
        if journaled {
            self.journal = Some(id);
        }
        let effect = Effect {
            id,
            event,
            part,
            what,
            needs,
            journal,
            journaled,
        };
        self.volatile.insert(id, effect);
        id
    }

    /// Takes a node that nobody made for a file: a recording may begin in the middle.
    fn know(&mut self, node: NodeId) {
        if self.base.get(node).is_none() {
            self.base.insert(node, Node::new(NodeKind::File, 0o644));
        }
    }

    fn entry(
        &mut self,
        event: u64,
        part: u8,
        (parent, name): (NodeId, Name),
        node: Option<NodeId>,
        before: Option<NodeId>,
    ) -> EffectId {
        let key = (parent, name.clone());
        let mut needs: Vec<EffectId> = self.entries.get(&key).copied().into_iter().collect();
        if let (None, Some(before)) = (node, before) {
            needs.extend(self.emptying(before));
        }
        let what = What::Entry {
            parent,
            name,
            node,
            before,
        };
        let id = self.add(event, part, what, needs);
        self.entries.insert(key, id);
        id
    }

    /// The changes that emptied a directory which is about to be removed.
    fn emptying(&self, id: NodeId) -> Vec<EffectId> {
        match self.base.get(id) {
            Some(node) if is_directory(node.kind) => self
                .ids(|effect| effect.is_entry_of(id))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn rename(&mut self, event: u64, rename: Rename) {
        self.labels.insert(rename.node, rename.to_name.clone());
        let kind = |id| self.base.get(id).map(|node| node.kind);
        let splits = self.model.splits_renames()
            && !rename.exchange
            && kind(rename.node) != Some(NodeKind::Directory);
        if splits {
            let to = (rename.to, rename.to_name.clone());
            let new = self.entry(event, 0, to, Some(rename.node), rename.other);
            let from = (rename.parent, rename.name.clone());
            let old = self.entry(event, 1, from, None, Some(rename.node));
            if let Some(old) = self.volatile.get_mut(&old) {
                old.needs.push(new);
            }
            return;
        }
        let keys = [
            (rename.parent, rename.name.clone()),
            (rename.to, rename.to_name.clone()),
        ];
        let mut needs: Vec<EffectId> = Vec::new();
        needs.extend(keys.iter().filter_map(|key| self.entries.get(key)));
        if let (Some(other), false) = (rename.other, rename.exchange) {
            needs.extend(self.emptying(other));
            if self.model.replaces_with_bytes() {
                let bytes = self.volatile.values();
                let bytes = bytes.filter(|e| e.is_of_contents() && e.node() == Some(rename.node));
                needs.extend(bytes.map(|effect| effect.id));
            }
        }
        let id = self.add(event, 0, What::Rename(rename.into()), needs);
        for key in keys {
            self.entries.insert(key, id);
        }
    }

    fn attribute(&mut self, event: u64, node: NodeId, what: What) {
        let needs = self.attributes.get(&node).copied().into_iter().collect();
        let id = self.add(event, 0, what, needs);
        self.attributes.insert(node, id);
    }

    fn write(&mut self, recorded: &Recorded, write: &Write) {
        let payload = match recorded.contents() {
            Some(pieces) => Payload::Pieces(self.source, pieces.into()),
            None => Payload::Zeros,
        };
        // No file is that long; a recording that says so must not make sums overflow.
        if write.offset > u64::MAX / 2 {
            return;
        }
        self.bring_pages(recorded.seq, write);
        let len = u64::from(write.len);
        let what = What::Bytes {
            node: write.node,
            offset: write.offset,
            len,
            payload,
        };
        let needs = self.resizes.get(&write.node).copied().into_iter().collect();
        let bytes = self.add(recorded.seq, 0, what, needs);
        self.grow(recorded.seq, write.node, write.offset + len, Some(bytes));
    }

    fn grow(&mut self, event: u64, node: NodeId, size: u64, bytes: Option<EffectId>) {
        let before = self.sizes.entry(node).or_default();
        if size <= *before {
            return;
        }
        *before = size;
        let mut needs: Vec<EffectId> = self.resizes.get(&node).copied().into_iter().collect();
        if self.model.size_follows_bytes() {
            needs.extend(bytes);
        }
        let what = What::Grow { node, size, bytes };
        self.add(event, 1, what, needs);
    }

    /// Bytes of a block that are durable or not as a whole.
    pub(super) fn unit(&self) -> u64 {
        debug_assert!(self.unit <= BLOCK);
        self.unit
    }

    /// Where bytes are read.
    pub(super) fn store(&self) -> &'a Store {
        self.store
    }
}
