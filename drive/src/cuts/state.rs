//! One state that a power cut may leave: which of the volatile effects are there.

use rustc_hash::{FxHashMap, FxHashSet};

use super::content::Store;
use super::effect::{Effect, EffectId, What};
use super::tree::Tree;
use super::window::Window;
use crate::error::DriveError;
use crate::recording::NodeId;

/// Units of a write that are there, as ranges in order: `1..3` is its second and third unit.
pub(super) type Units = Vec<(u64, u64)>;

/// What became of an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is there.
    #[default]
    Kept,
    /// It is not.
    Lost,
    /// Of its bytes, these units are there.
    Torn(Units),
}

/// What became of the volatile effects, in their order.
pub(super) type Fates = Vec<Fate>;

/// The first and the last unit, exclusive, that bytes lie in.
pub(super) fn units_of(offset: u64, len: u64, unit: u64) -> (u64, u64) {
    (offset / unit, (offset + len).div_ceil(unit))
}

/// Makes a choice legal: what needs a lost effect, or comes behind one in the journal, is lost.
/// What is torn satisfies only the growth by its bytes, which then ends where they end.
pub(super) fn settle(effects: &[&Effect], fates: &mut Fates) {
    let mut bad: FxHashMap<EffectId, bool> = FxHashMap::default();
    for (effect, fate) in effects.iter().zip(fates.iter_mut()) {
        let own = match effect.what {
            What::Grow { bytes, .. } => bytes,
            _ => None,
        };
        let misses = |need: &EffectId| match bad.get(need) {
            None => false,
            Some(lost) => *lost || own != Some(*need),
        };
        if *fate != Fate::Lost
            && (effect.needs.iter().any(misses) || effect.journal.as_ref().is_some_and(misses))
        {
            *fate = Fate::Lost;
        }
        match fate {
            Fate::Kept => {}
            Fate::Lost => drop(bad.insert(effect.id, true)),
            Fate::Torn(_) => drop(bad.insert(effect.id, false)),
        }
    }
}

/// Makes a choice legal the other way: what a kept effect needs is kept.
pub(super) fn complete(effects: &[&Effect], fates: &mut Fates) {
    let mut needed: FxHashSet<EffectId> = FxHashSet::default();
    for (effect, fate) in effects.iter().zip(fates.iter_mut()).rev() {
        if needed.contains(&effect.id) {
            *fate = Fate::Kept;
        }
        if *fate != Fate::Lost {
            needed.extend(effect.needs.iter().chain(&effect.journal));
        }
    }
}

/// Lets a whole effect be so.
pub(super) fn apply_whole(
    tree: &mut Tree,
    effect: &Effect,
    store: &Store,
) -> Result<(), DriveError> {
    match &effect.what {
        What::Bytes {
            node,
            offset,
            len,
            payload,
        } => tree.write(*node, *offset, payload, (*offset, offset + len), store),
        What::Grow { node, size, .. } => {
            if let Some(node) = tree.get_mut(*node) {
                node.size = node.size.max(*size);
            }
            Ok(())
        }
        What::Resize { node, size } => match tree.get_mut(*node) {
            Some(node) => node.resize(*size, store),
            None => Ok(()),
        },
        What::Entry {
            parent, name, node, ..
        } => {
            tree.set_entry(*parent, name, *node);
            Ok(())
        }
        What::Rename(r) => {
            let back = if r.exchange { r.other } else { None };
            tree.set_entry(r.parent, &r.name, back);
            tree.set_entry(r.to, &r.to_name, Some(r.node));
            Ok(())
        }
        What::Attributes { node, change } => {
            if let Some(node) = tree.get_mut(*node) {
                node.change(change);
            }
            Ok(())
        }
        What::Xattr { node, name, value } => {
            if let Some(node) = tree.get_mut(*node) {
                match value {
                    Some(value) => drop(node.xattrs.insert(name.clone(), value.clone())),
                    None => drop(node.xattrs.remove(name)),
                }
            }
            Ok(())
        }
    }
}

/// Builds states at one place of a recording.
pub(super) struct Builder<'a> {
    base: &'a Tree,
    effects: Vec<&'a Effect>,
    unit: u64,
    /// Whether files grow only over bytes that are there.
    ordered: bool,
    store: &'a Store,
}

impl<'a> Builder<'a> {
    /// Builds at the window's place.
    pub(super) fn at(window: &'a Window<'_>, ordered: bool) -> Builder<'a> {
        Builder {
            base: window.base(),
            effects: window.volatile().collect(),
            unit: window.unit(),
            ordered,
            store: window.store(),
        }
    }

    /// The volatile effects.
    pub(super) fn effects(&self) -> &[&'a Effect] {
        &self.effects
    }

    /// Bytes of a unit.
    pub(super) fn unit(&self) -> u64 {
        self.unit
    }

    /// The tree that is left if the volatile effects have these fates, which are legal.
    pub(super) fn build(&self, fates: &Fates) -> Result<Tree, DriveError> {
        let mut tree = self.base.clone();
        // Writes so far, and whether some are not there as a whole: a later write of the same unit
        // brings their bytes.
        let mut earlier: FxHashMap<NodeId, (bool, Vec<&Effect>)> = FxHashMap::default();
        let mut ends: FxHashMap<NodeId, u64> = FxHashMap::default();
        for (at, (effect, fate)) in self.effects.iter().zip(fates).enumerate() {
            match (&effect.what, fate) {
                (
                    What::Bytes {
                        node, offset, len, ..
                    },
                    fate,
                ) => {
                    if *fate != Fate::Lost {
                        self.bring(&mut tree, earlier.get(node), effect, fate)?;
                        let end = ends.entry(*node).or_default();
                        *end = (*end).max(offset + len);
                    }
                    let (missing, all) = earlier.entry(*node).or_default();
                    *missing |= *fate != Fate::Kept;
                    all.push(effect);
                }
                (_, Fate::Lost) => {}
                (What::Grow { node, size, .. }, _) if self.ordered => {
                    let size = self.grown(at, *size, fates);
                    if let Some(node) = tree.get_mut(*node) {
                        node.size = node.size.max(size);
                    }
                }
                _ => apply_whole(&mut tree, effect, self.store)?,
            }
        }
        for (node, end) in ends {
            if let Some(node) = tree.get_mut(node)
                && node.size < end
            {
                node.trim(node.size, self.store)?;
            }
        }
        Ok(tree)
    }

    /// How far a file grows by bytes of which the first are there.
    fn grown(&self, at: usize, size: u64, fates: &Fates) -> u64 {
        let What::Grow {
            bytes: Some(id), ..
        } = self.effects[at].what
        else {
            return size;
        };
        let Some(bytes) = self.effects[..at]
            .iter()
            .rposition(|effect| effect.id == id)
        else {
            return size;
        };
        let Fate::Torn(units) = &fates[bytes] else {
            return size;
        };
        let What::Bytes { offset, len, .. } = self.effects[bytes].what else {
            return size;
        };
        let (first, _) = units_of(offset, len, self.unit);
        match units.first() {
            Some((from, to)) if *from == first => size.min(to * self.unit),
            _ => 0,
        }
    }

    /// Brings bytes, or some units of them.
    fn bring(
        &self,
        tree: &mut Tree,
        earlier: Option<&(bool, Vec<&Effect>)>,
        effect: &Effect,
        fate: &Fate,
    ) -> Result<(), DriveError> {
        let What::Bytes { offset, len, .. } = &effect.what else {
            return Ok(());
        };
        let (from, to) = (*offset, offset + len);
        let (first, last) = units_of(*offset, *len, self.unit);
        let whole = vec![(first, last)];
        let ranges = match fate {
            Fate::Torn(units) => units,
            _ => &whole,
        };
        for (begin, end) in ranges {
            let (begin, end) = (begin * self.unit, end * self.unit);
            if let Some((true, earlier)) = earlier {
                // Only where the write covers a part of a unit does anything older show.
                let edges = [(begin, from), (to, end)];
                let edges = edges
                    .iter()
                    .filter(|(a, b)| a < b && *a < end && *b > begin);
                for (a, b) in edges.map(|(a, b)| (a / self.unit, b.div_ceil(self.unit))) {
                    for older in earlier {
                        self.bring_part(tree, older, (a * self.unit, b * self.unit))?;
                    }
                }
            }
            self.bring_part(tree, effect, (begin, end))?;
        }
        Ok(())
    }

    /// Brings those bytes that lie in a range.
    fn bring_part(
        &self,
        tree: &mut Tree,
        effect: &Effect,
        (begin, end): (u64, u64),
    ) -> Result<(), DriveError> {
        let What::Bytes {
            node,
            offset,
            len,
            payload,
        } = &effect.what
        else {
            return Ok(());
        };
        let part = (begin.max(*offset), end.min(offset + len));
        if part.0 < part.1 {
            tree.write(*node, *offset, payload, part, self.store)?;
        }
        Ok(())
    }
}
