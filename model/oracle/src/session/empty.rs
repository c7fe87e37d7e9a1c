//! Empties and refills a store that has refused writes for lack of space. It must accept writes
//! again. If it does not, a refused write has kept space, or deletes have not released it.

use treering_engine::Error;

use super::{Session, version_of};
use crate::finding::{Check, Finding};
use crate::program::KeyNo;
use crate::reach::Area;
use crate::reference::Written;

/// The number of rounds of background work after which more rounds release nothing.
const ROUNDS: usize = 4;

impl Session<'_> {
    /// Deletes all keys, and writes some of them again. Does so if the store has refused something
    /// since it was opened, and occasionally otherwise.
    pub(super) fn empty_and_refill(&mut self, at: usize) -> Result<(), Finding> {
        let judged = self.refused || self.openings % 4 == 2;
        if !judged || !self.is_calm() || !self.engine.can_be_emptied() {
            return Ok(());
        }
        let full = std::mem::take(&mut self.refused);
        let what = ["store emptied", "full store emptied"][usize::from(full)];
        self.tally.reach.met(Area::Step, what, 1);
        let leaves = self.leaves();
        let keys = (0..self.program.keys.len() as u32).map(KeyNo);
        let mut left: Vec<KeyNo> = keys.collect();
        left.retain(|key| self.reference.get(*key).is_some());
        while !left.is_empty() {
            let before = left.len();
            for key in std::mem::take(&mut left) {
                if !self.try_write(at, key, None)? {
                    left.push(key);
                }
            }
            if left.len() == before {
                let expected = format!(
                    "a full store that accepts one of {before} deletes once all background work is done"
                );
                let found = self.why_refused(left[0]);
                return Err(self.finding(Check::Room, at, expected, found));
            }
        }
        self.judge_emptied(at, leaves)?;
        self.refill(at)
    }

    fn leaves(&self) -> u64 {
        let holds = self.engine.holds(&**self.store());
        let leaves = holds.iter().find(|(what, _)| *what == "leaves");
        leaves.map_or(0, |(_, leaves)| *leaves)
    }

    /// A store without keys needs hardly any leaves.
    fn judge_emptied(&mut self, at: usize, before: u64) -> Result<(), Finding> {
        let Some(most) = self.engine.leaves_of_nothing(before) else {
            return Ok(());
        };
        for _ in 0..ROUNDS {
            self.tidy(at)?;
        }
        let leaves = self.leaves();
        if leaves <= most {
            return Ok(());
        }
        let expected = format!("at most {most} of {before} leaves after all keys were deleted");
        Err(self.finding(Check::Room, at, expected, leaves.to_string()))
    }

    /// Refills the empty store: the promised capacity must fit again, or at least something.
    fn refill(&mut self, at: usize) -> Result<(), Finding> {
        let (mut room, mut taken) = (self.engine.room().unwrap_or(0) / 2, 0);
        let limits = self.engine.limits();
        let longest = limits.max_record / 4;
        for key in (0..self.program.keys.len() as u32).map(KeyNo) {
            let bytes = self.program.key(key).len();
            // Some keys are only ever looked up.
            if bytes > limits.max_key {
                continue;
            }
            let len = longest.saturating_sub(bytes) as u32;
            let takes = bytes as u64 + u64::from(len);
            if taken > 0 && takes > room {
                break;
            }
            if !self.try_write(at, key, Some((version_of(at), len)))? {
                let expected = format!("room for {takes} bytes where all but {taken} were deleted");
                let found = self.why_refused(key);
                return Err(self.finding(Check::Room, at, expected, found));
            }
            room = room.saturating_sub(takes);
            taken += takes;
        }
        Ok(())
    }

    /// Judges a store that claims to be full. It may only do so if the live data would exceed its
    /// promised capacity and all background work is done.
    pub(super) fn judge_refusal(
        &mut self,
        at: usize,
        key: KeyNo,
        written: Option<(u64, u32)>,
        error: &Error,
    ) -> Result<(), Finding> {
        let Some(room) = self.engine.room() else {
            return Ok(());
        };
        let to = written.map(|(version, len)| Written::new(version, len));
        let live = self.reference.live_bytes_with(self.program, key, to);
        // A delete may need space too, and doubtful writes may be live.
        if to.is_none() || self.reference.doubtful() > 0 || live > room || self.trying {
            return Ok(());
        }
        if self.try_write(at, key, written)? {
            return Ok(());
        }
        let expected = format!(
            "room for it: {live} bytes of keys and values would be live, and there is always room \
             for {room}"
        );
        Err(self.finding(Check::Room, at, expected, error.to_string()))
    }

    /// Whether the store accepts a write, if necessary after all background work that is due.
    pub(super) fn try_write(
        &mut self,
        at: usize,
        key: KeyNo,
        to: Option<(u64, u32)>,
    ) -> Result<bool, Finding> {
        self.trying = true;
        let taken = self.take_turns(at, key, to);
        self.trying = false;
        taken
    }

    fn take_turns(
        &mut self,
        at: usize,
        key: KeyNo,
        to: Option<(u64, u32)>,
    ) -> Result<bool, Finding> {
        for _ in 0..ROUNDS {
            let before = self.tally.full;
            self.write(at, key, to)?;
            if self.tally.full == before {
                return Ok(true);
            }
            self.tidy(at)?;
        }
        Ok(false)
    }

    /// The error that the store returns for a delete.
    fn why_refused(&self, key: KeyNo) -> String {
        match self.store().delete(self.program.key(key)) {
            Ok(_) => "none, but for a delete that came later".into(),
            Err(e) => e.to_string(),
        }
    }

    fn tidy(&mut self, at: usize) -> Result<(), Finding> {
        for _ in 0..1_000 {
            match self.store().pump_due() {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => return self.stalled(at, &e),
            }
        }
        match self.store().checkpoint() {
            Ok(_) => Ok(()),
            Err(e) => self.stalled(at, &e),
        }
    }

    /// Whether nothing fails or is scheduled to fail, and nothing is in doubt.
    fn is_calm(&self) -> bool {
        let troubled = self.armed || self.starved || self.recorded || self.is_troubled();
        !troubled && !self.has_failed && self.reference.doubtful() == 0
    }
}
