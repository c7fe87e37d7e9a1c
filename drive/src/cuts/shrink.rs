//! From a state that fails to the smallest one that fails alike, and to the flush that was missing.
//!
//! Delta debugging (Zeller and Hildebrandt, 2002) makes two sets small, each for itself: of what is
//! *lost* while all else is there, and of what is *there* while all else is lost. The first says
//! what was not durable, the second what it was needed for.
//!
//! A missing flush is found by trying. `fsync` of the file or directory of what is lost is put
//! behind it, and behind whatever is alike in the recording; if the failure then goes away, it was
//! missing. Other failures that go away with it have the same cause.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::campaign::Failure;
use super::checker::{Mounting, Verdict};
use super::effect::{Effect, EffectId};
use super::points::{After, Place, Target};
use super::state::{Fate, Fates, complete, settle};
use super::subject::{Choice, Subject};
use super::tree::Tree;
use crate::error::DriveError;

/// Runs of the checker for one finding.
const RUNS: u32 = 300;
/// What they may take, in limits of the checker's time; each run of one that hangs takes a whole
/// one.
const TIME: u32 = 5;
/// Earlier points at which is tried whether anything has to be lost.
const EARLIER: usize = 16;
/// States that a missing flush is tried on.
const TRIED: usize = 12;
/// The last acknowledgements without which a state is tried, if it fails without any.
const LINES: usize = 24;

/// A failure made small.
#[derive(Clone, Debug)]
pub(super) struct Smallest {
    pub(super) choice: Choice,
    pub(super) verdict: Verdict,
    /// What is lost, of which each part is needed for the failure.
    pub(super) lost: Vec<Effect>,
    /// Of those, the ones that are torn.
    pub(super) torn: Vec<EffectId>,
    /// What is there, of which each part is needed for the failure if all else is lost.
    pub(super) there: Vec<Effect>,
    /// Flushes that were missing.
    pub(super) missing: Option<Missing>,
    /// The acknowledgement without which the checker could live with the state.
    pub(super) acknowledged: Option<String>,
}

/// Flushes with which a failure goes away.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    /// In the smallest failing state: behind which events, and what is flushed.
    pub(super) after: Vec<(u64, After)>,
    /// Which of the other failures go away, too, in their order; the last ones were not tried.
    pub(super) explains: Vec<bool>,
}

/// Makes failures of one kind small.
pub(super) struct Shrinker<'a> {
    pub(super) subject: &'a Subject,
    pub(super) mounting: &'a Mounting,
    /// What the failures print.
    pub(super) kind: String,
    runs: u32,
    /// Time that runs have taken.
    spent: Duration,
    known: FxHashMap<u64, bool>,
}

impl<'a> Shrinker<'a> {
    /// For failures of a kind.
    pub(super) fn new(subject: &'a Subject, mounting: &'a Mounting, kind: &str) -> Shrinker<'a> {
        Shrinker {
            subject,
            mounting,
            kind: kind.to_owned(),
            runs: 0,
            spent: Duration::ZERO,
            known: FxHashMap::default(),
        }
    }

    /// Whether a state fails alike.
    fn fails(&mut self, tree: &Tree, acks: &[u8]) -> Result<bool, DriveError> {
        let hash = tree.hash();
        if let Some(known) = self.known.get(&hash) {
            return Ok(*known);
        }
        if self.is_spent() {
            return Ok(false);
        }
        self.runs += 1;
        let began = Instant::now();
        let fails = self.mounting.check(tree, acks)?.kind() == self.kind;
        self.spent += began.elapsed();
        self.known.insert(hash, fails);
        Ok(fails)
    }

    /// Whether the checker may not run once more.
    fn is_spent(&self) -> bool {
        self.runs >= RUNS || self.spent >= TIME * self.mounting.limit()
    }

    /// Makes a failure small. `others` are failures of the same kind.
    pub(super) fn shrink(
        &mut self,
        choice: &Choice,
        verdict: &Verdict,
        others: &[Choice],
    ) -> Result<Smallest, DriveError> {
        let mut smallest = self.smallest(choice, verdict, others)?;
        // Alike is not the same: what this state prints is told.
        let tree = self.subject.build(&smallest.choice, &[])?;
        let acks = self.subject.acks_before(smallest.choice.place);
        let verdict = self.mounting.check(&tree, acks)?;
        if verdict.kind() == self.kind {
            smallest.verdict = verdict;
        }
        smallest.acknowledged = self.acknowledged(&smallest.choice)?;
        Ok(smallest)
    }

    fn smallest(
        &mut self,
        choice: &Choice,
        verdict: &Verdict,
        others: &[Choice],
    ) -> Result<Smallest, DriveError> {
        let smallest = self.shrink_there(choice, verdict, others)?;
        if smallest.lost.is_empty() {
            return Ok(smallest);
        }
        // The same files may have been left by a cut a little earlier, without any loss.
        let points = &self.subject.points.points;
        let at = points.partition_point(|point| point.place < choice.place);
        let acks = self.subject.lines_before(choice.place);
        let earlier = points[..at].iter().rev().take(EARLIER);
        for point in earlier.take_while(|point| point.acks == acks) {
            let whole = Choice {
                place: point.place,
                lost: Vec::new(),
                torn: Vec::new(),
            };
            let tree = self.subject.build(&whole, &[])?;
            if self.fails(&tree, self.subject.acks(acks))? {
                return self.shrink_there(&whole, verdict, others);
            }
        }
        Ok(smallest)
    }

    fn shrink_there(
        &mut self,
        choice: &Choice,
        verdict: &Verdict,
        others: &[Choice],
    ) -> Result<Smallest, DriveError> {
        let subject = self.subject;
        let mut reader = subject.reader()?;
        let mut walk = subject.walk(&mut reader);
        walk.go_to(choice.place)?;
        let builder = subject.builder(&walk.window);
        let effects = builder.effects();
        let acks = subject.acks_before(choice.place);
        let given = choice.fates(effects);
        let lost: Vec<usize> = (0..given.len())
            .filter(|at| given[*at] != Fate::Kept)
            .collect();
        let with = |lost: &[usize]| {
            let mut fates: Fates = vec![Fate::Kept; effects.len()];
            for at in lost {
                fates[*at] = given[*at].clone();
            }
            settle(effects, &mut fates);
            fates
        };
        let lost = minimise(lost, |lost| self.fails(&builder.build(&with(lost))?, acks))?;
        let fates = with(&lost);
        // What is lost only because something else is does not belong to the story.
        let torn = lost
            .iter()
            .filter(|at| matches!(fates[**at], Fate::Torn(_)));
        let torn: Vec<EffectId> = torn.map(|at| effects[*at].id).collect();
        let there: Vec<usize> = (0..fates.len())
            .filter(|at| fates[*at] == Fate::Kept)
            .collect();
        let only = |kept: &[usize]| {
            let mut only: Fates = vec![Fate::Lost; effects.len()];
            for at in kept {
                only[*at] = Fate::Kept;
            }
            for at in &lost {
                only[*at] = given[*at].clone();
            }
            complete(effects, &mut only);
            settle(effects, &mut only);
            only
        };
        let there = minimise(there, |kept| self.fails(&builder.build(&only(kept))?, acks))?;
        let named = |list: &[usize]| list.iter().map(|at| effects[*at].clone()).collect();
        let choice = Choice::of(choice.place, effects, &fates);
        let (lost, there): (Vec<Effect>, Vec<Effect>) = (named(&lost), named(&there));
        let missing = self.missing(&lost, &there, &choice, others)?;
        Ok(Smallest {
            choice,
            verdict: verdict.clone(),
            lost,
            torn,
            there,
            missing,
            acknowledged: None,
        })
    }

    /// The last acknowledgement without which the checker can live with a state: what it says is
    /// not so.
    fn acknowledged(&self, choice: &Choice) -> Result<Option<String>, DriveError> {
        let tree = self.subject.build(choice, &[])?;
        let lines: Vec<&[u8]> = self
            .subject
            .acks_before(choice.place)
            .split_inclusive(|b| *b == b'\n')
            .collect();
        let passes = |count: usize| -> Result<bool, DriveError> {
            Ok(self
                .mounting
                .check(&tree, &lines[..count].concat())?
                .is_good())
        };
        let said = |at: usize| Some(String::from_utf8_lossy(lines[at]).trim_end().to_owned());
        if lines.is_empty() {
            return Ok(None);
        }
        if passes(0)? {
            let (mut good, mut bad) = (0, lines.len());
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                match passes(middle)? {
                    true => good = middle,
                    false => bad = middle,
                }
            }
            return Ok(said(good));
        }
        // Without what was tried, what is there may be nobody's; so only the last lines are left out.
        for count in (1..lines.len()).rev().take(LINES) {
            if passes(count)? {
                return Ok(said(count));
            }
        }
        Ok(None)
    }

    /// Finds flushes that make the failures go away. There is time for one only if something
    /// that belongs to the failure happened behind it: what is there or lost, or an
    /// acknowledgement.
    fn missing(
        &mut self,
        lost: &[Effect],
        there: &[Effect],
        smallest: &Choice,
        others: &[Choice],
    ) -> Result<Option<Missing>, DriveError> {
        let events: Vec<u64> = lost.iter().map(|effect| effect.event).collect();
        let words = self.subject.words(&events)?;
        let acks = self.subject.lines_before(smallest.place);
        let in_time = |behind: u64| {
            let place = Place {
                event: behind,
                after: true,
            };
            let later = |effect: &Effect| effect.event > behind;
            there.iter().any(later)
                || lost.iter().any(later)
                || acks > self.subject.lines_before(place)
        };
        // The last of those that are alike and have time for a flush.
        let mut after: Vec<(u64, After)> = Vec::new();
        for (effect, word) in lost.iter().zip(words) {
            let rule = After {
                word,
                target: Target::of(effect),
                until: u64::MAX,
            };
            match after.iter_mut().find(|(_, known)| *known == rule) {
                _ if !in_time(effect.event) => {}
                Some((behind, _)) => *behind = (*behind).max(effect.event),
                None => after.push((effect.event, rule)),
            }
        }
        let mut tries: Vec<Vec<(u64, After)>> = after.iter().map(|one| vec![*one]).collect();
        if after.len() > 1 {
            tries.push(after);
        }
        let mut best: Option<Missing> = None;
        for after in tries {
            let rules: Vec<After> = after.iter().map(|(_, rule)| *rule).collect();
            // In the smallest state there is no time behind later ones.
            let bounded = after.iter().map(|(until, rule)| After {
                until: *until,
                ..*rule
            });
            if !self.helps(&bounded.collect::<Vec<_>>(), smallest)? {
                continue;
            }
            let mut explains = Vec::new();
            for other in others.iter().take(TRIED) {
                explains.push(self.helps(&rules, other)?);
            }
            let count = |missing: &Missing| missing.explains.iter().filter(|e| **e).count();
            let found = Missing { after, explains };
            if best.as_ref().is_none_or(|best| count(&found) > count(best)) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// Whether a state no longer fails with more flushes.
    fn helps(&mut self, rules: &[After], choice: &Choice) -> Result<bool, DriveError> {
        let tree = self.subject.build(choice, rules)?;
        let acks = self.subject.acks_before(choice.place);
        let unknown = self.is_spent() && !self.known.contains_key(&tree.hash());
        Ok(!self.fails(&tree, acks)? && !unknown)
    }
}

/// Delta debugging: the smallest part of a set, as far as it can be found by leaving out pieces,
/// for which `fails` holds. It holds for the set.
fn minimise(
    set: Vec<usize>,
    mut fails: impl FnMut(&[usize]) -> Result<bool, DriveError>,
) -> Result<Vec<usize>, DriveError> {
    let mut set = set;
    if set.is_empty() || fails(&[])? {
        return Ok(Vec::new());
    }
    let mut parts = 2;
    while set.len() > 1 {
        let size = set.len().div_ceil(parts);
        let mut smaller = None;
        for at in 0..set.len().div_ceil(size) {
            let piece = &set[at * size..set.len().min((at + 1) * size)];
            let rest: Vec<usize> = set.iter().copied().filter(|e| !piece.contains(e)).collect();
            if parts == 2 && fails(piece)? {
                smaller = Some((piece.to_vec(), 2));
                break;
            }
            if fails(&rest)? {
                smaller = Some((rest, (parts - 1).max(2)));
                break;
            }
        }
        match smaller {
            Some((set_now, parts_now)) => (set, parts) = (set_now, parts_now),
            None if size == 1 => break,
            None => parts = (parts * 2).min(set.len()),
        }
    }
    Ok(set)
}

/// The choices of failures, those with the fewest losses first.
pub(super) fn by_size(failures: &[Failure]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = failures.iter().map(|f| f.choice.clone()).collect();
    choices.sort_by_key(|choice| (choice.lost.len() + choice.torn.len(), choice.place));
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left() {
        let needed = [3, 17, 41];
        let mut runs = 0;
        let smallest = minimise((0..64).collect(), |set| {
            runs += 1;
            Ok(needed.iter().all(|n| set.contains(n)))
        });
        assert_eq!(smallest.expect("no errors"), needed);
        assert!(runs < 120, "{runs}");
        let nothing = minimise((0..9).collect(), |_| Ok(true));
        assert_eq!(nothing.expect("no errors"), Vec::<usize>::new());
    }
}
