//! In which order the states of a point are tried: first those that find bugs.
//!
//! | shape | what is there |
//! |---|---|
//! | none, all | nothing that was not synced; all of it |
//! | of one file, all but one file's | the changes of one file or directory |
//! | names only, bytes only | a rename without its data, and the reverse |
//! | all but one, one only | by effect, the newest first |
//! | prefix | what happened before an effect |
//! | torn | a prefix or all, with one write torn: its first unit, all but it, a half, a hole |
//! | every subset | where there are at most [`SMALL`] effects |
//! | drawn | each effect, or each file, kept by a coin; some writes torn |

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::content::mix;
use super::effect::{Effect, What};
use super::state::{Builder, Fate, Fates, Units, complete, settle, units_of};
use crate::recording::NodeId;

/// Points with at most as many effects have every subset tried.
pub(super) const SMALL: usize = 8;
/// At most so many effects are taken one by one.
const SINGLY: usize = 64;
/// At most so many files are taken one by one.
const FILES: usize = 12;
/// At most so many writes are torn one by one.
const TORN: usize = 6;

/// A shape, before it is made legal.
#[derive(Clone, Debug)]
enum Shape {
    None,
    All,
    Only(NodeId),
    AllBut(NodeId),
    Names,
    Bytes,
    Without(usize),
    One(usize),
    Prefix(usize),
    Torn { at: usize, how: Tear, rest: bool },
    Subset(u32),
}

#[derive(Clone, Copy, Debug)]
enum Tear {
    First,
    AllButFirst,
    AllButLast,
    Half,
    Hole,
}

impl Tear {
    const ALL: [Tear; 5] = [
        Tear::First,
        Tear::Hole,
        Tear::AllButFirst,
        Tear::Half,
        Tear::AllButLast,
    ];

    /// The units that are left of `first..last`; `None` if that is no tear.
    fn of(self, first: u64, last: u64) -> Option<Units> {
        let count = last - first;
        if count < 2 {
            return None;
        }
        let middle = first + count / 2;
        Some(match self {
            Tear::First => vec![(first, first + 1)],
            Tear::AllButFirst => vec![(first + 1, last)],
            Tear::AllButLast if count > 2 => vec![(first, last - 1)],
            Tear::Half if count > 3 => vec![(first, middle)],
            Tear::Hole if count > 2 => vec![(first, middle), (middle + 1, last)],
            _ => return None,
        })
    }
}

/// The states of a point, in the order in which they are tried.
pub(super) struct Shapes<'a> {
    effects: &'a [&'a Effect],
    unit: u64,
    listed: Vec<Shape>,
    seed: u64,
    tears: bool,
}

impl<'a> Shapes<'a> {
    /// Lists the shapes of a point. `seed` decides what is drawn.
    pub(super) fn new(builder: &'a Builder<'a>, tears: bool, seed: u64) -> Shapes<'a> {
        let effects = builder.effects();
        let mut shapes = Shapes {
            effects,
            unit: builder.unit(),
            listed: Vec::new(),
            seed,
            tears,
        };
        shapes.list();
        shapes
    }

    /// The number of shapes that are not drawn.
    pub(super) fn listed(&self) -> usize {
        self.listed.len()
    }

    fn list(&mut self) {
        let count = self.effects.len();
        self.listed.push(Shape::None);
        if count == 0 {
            return;
        }
        self.listed.push(Shape::All);
        self.listed.extend([Shape::Names, Shape::Bytes]);
        let newest: Vec<usize> = (0..count).rev().take(SINGLY).collect();
        let mut files: Vec<NodeId> = Vec::new();
        for effect in self.effects.iter().rev() {
            let owner = owner(effect);
            if !files.contains(&owner) && files.len() < FILES {
                files.push(owner);
            }
        }
        let mut classes: Vec<Vec<Shape>> = Vec::new();
        if files.len() > 1 {
            classes.push(files.iter().map(|f| Shape::AllBut(*f)).collect());
            classes.push(files.iter().map(|f| Shape::Only(*f)).collect());
        }
        classes.push(newest.iter().map(|at| Shape::Without(*at)).collect());
        classes.push(newest.iter().map(|at| Shape::One(*at)).collect());
        classes.push(newest.iter().map(|at| Shape::Prefix(*at)).collect());
        if self.tears {
            classes.extend(self.tears());
        }
        // One of each class in turn, so that a small budget sees all.
        let longest = classes.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..longest {
            let turn = classes.iter().filter_map(|class| class.get(at));
            self.listed.extend(turn.cloned());
        }
        if count <= SMALL {
            self.listed.extend((0..1 << count).map(Shape::Subset));
        }
    }

    fn tears(&self) -> [Vec<Shape>; 2] {
        let newest = (0..self.effects.len()).rev();
        let torn: Vec<usize> = newest
            .filter(|at| matches!(self.units(*at), Some((first, last)) if last - first > 1))
            .take(TORN)
            .collect();
        let with = |rest: bool| {
            let all = Tear::ALL.iter().flat_map(|how| {
                let (how, torn) = (*how, &torn);
                torn.iter()
                    .map(move |at| Shape::Torn { at: *at, how, rest })
            });
            all.collect()
        };
        [with(false), with(true)]
    }

    fn units(&self, at: usize) -> Option<(u64, u64)> {
        match self.effects[at].what {
            What::Bytes { offset, len, .. } => Some(units_of(offset, len, self.unit)),
            _ => None,
        }
    }

    /// The fates of the effects in the state with this number. Different numbers may give the
    /// same state.
    pub(super) fn fates(&self, number: usize) -> Fates {
        let Some(shape) = self.listed.get(number) else {
            return self.drawn(number);
        };
        let lose = |lost: &dyn Fn(usize, &Effect) -> bool| {
            let fate = |(at, effect): (usize, &&Effect)| match lost(at, effect) {
                true => Fate::Lost,
                false => Fate::Kept,
            };
            let mut fates: Fates = self.effects.iter().enumerate().map(fate).collect();
            settle(self.effects, &mut fates);
            fates
        };
        let keep = |kept: &dyn Fn(usize, &Effect) -> bool| {
            let fate = |(at, effect): (usize, &&Effect)| match kept(at, effect) {
                true => Fate::Kept,
                false => Fate::Lost,
            };
            let mut fates: Fates = self.effects.iter().enumerate().map(fate).collect();
            complete(self.effects, &mut fates);
            fates
        };
        match shape {
            Shape::None => lose(&|_, _| true),
            Shape::All => lose(&|_, _| false),
            Shape::AllBut(file) => lose(&|_, effect| owner(effect) == *file),
            Shape::Only(file) => keep(&|_, effect| owner(effect) == *file),
            Shape::Names => lose(&|_, effect| matches!(effect.what, What::Bytes { .. })),
            Shape::Bytes => lose(&|_, effect| !effect.is_of_contents()),
            Shape::Without(one) => lose(&|at, _| at == *one),
            Shape::One(one) => keep(&|at, _| at == *one || self.grows_by(at, *one)),
            Shape::Prefix(one) => lose(&|at, _| at >= *one),
            Shape::Subset(bits) => lose(&|at, _| bits >> at & 1 == 0),
            Shape::Torn { at, how, rest } => {
                let lost = |other: usize| !rest && other > *at && !self.grows_by(other, *at);
                let mut fates: Fates = (0..self.effects.len())
                    .map(|other| if lost(other) { Fate::Lost } else { Fate::Kept })
                    .collect();
                if let Some((first, last)) = self.units(*at)
                    && let Some(units) = how.of(first, last)
                {
                    fates[*at] = Fate::Torn(units);
                }
                settle(self.effects, &mut fates);
                fates
            }
        }
    }

    /// Whether an effect is the growth by the bytes of another.
    fn grows_by(&self, at: usize, bytes: usize) -> bool {
        let id = self.effects[bytes].id;
        matches!(self.effects[at].what, What::Grow { bytes: Some(by), .. } if by == id)
    }

    fn drawn(&self, number: usize) -> Fates {
        let mut rng = SmallRng::seed_from_u64(mix(self.seed ^ mix(number as u64)));
        let loss = [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98][rng.random_range(0..7)];
        // Half of the draws cut off the newest effects first.
        let count = self.effects.len();
        let end = match rng.random_bool(0.5) {
            true => count,
            false => rng.random_range(0..=count),
        };
        let by_file = rng.random_bool(0.3);
        let salt: u64 = rng.random();
        let torn = if self.tears { 0.15 } else { 0.0 };
        let mut fates: Fates = Vec::with_capacity(count);
        for (at, effect) in self.effects.iter().enumerate() {
            let lost = match by_file {
                true => (mix(owner(effect).0 ^ salt) >> 11) as f64 / (1u64 << 53) as f64 <= loss,
                false => rng.random_bool(loss),
            };
            let fate = match self.units(at) {
                _ if lost || at >= end => Fate::Lost,
                Some((first, last)) if last - first > 1 && rng.random_bool(torn) => {
                    Fate::Torn(drawn_units(&mut rng, first, last))
                }
                _ => Fate::Kept,
            };
            fates.push(fate);
        }
        settle(self.effects, &mut fates);
        fates
    }
}

fn drawn_units(rng: &mut SmallRng, first: u64, last: u64) -> Units {
    let (a, b) = (rng.random_range(first..last), rng.random_range(first..last));
    let (a, b) = (a.min(b), a.max(b) + 1);
    match rng.random_bool(0.5) {
        true => vec![(a, b)],
        false if a == first && b == last => vec![(first, last - 1)],
        false => {
            let parts = [(first, a), (b, last)];
            parts.into_iter().filter(|(a, b)| a < b).collect()
        }
    }
}

/// The file or directory that an effect changes.
fn owner(effect: &Effect) -> NodeId {
    match &effect.what {
        What::Entry { parent, .. } => *parent,
        What::Rename(rename) => rename.to,
        _ => effect.node().unwrap_or(NodeId::ROOT),
    }
}
