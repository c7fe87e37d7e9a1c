//! The end of a process: finds which versions of the mirror's blocks a device holds after it.

use std::sync::Arc;

use treering_engine::Survey;

use super::judge::{Accepted, Judge, Step};
use crate::mirror::wide::wal_recovery::unbounded::Left;
use crate::mirror::wide::wal_recovery::{Action, Checkpoint, Phase, Verdict};

impl Judge {
    /// The power failed.
    pub(super) fn crashed(&mut self, survey: &Arc<Survey>) -> Accepted {
        self.remember();
        // The restarted process has not written anything new yet, so the crash came before the
        // restart.
        self.restarting = None;
        self.land_all()?;
        self.lose_power(survey)
    }

    fn lose_power(&mut self, survey: &Survey) -> Accepted {
        let left = self.left(survey)?;
        self.forget();
        if self.state.phase().is_down() {
            return self.stutter("a crash before recovery has begun leaves what the last one left");
        }
        if !self.mirror.try_crash(&mut self.state, &left) {
            return Err("Crash is not enabled".into());
        }
        self.took(Step::Crash(left));
        self.judge_verdict()
    }

    /// A process that was restarted has begun to recover.
    pub(super) fn restart(&mut self) -> Accepted {
        self.read = self.restarting.take();
        let Some(survey) = self.read.clone() else {
            return Ok(());
        };
        if self.state.phase().is_down() {
            return self.left(&survey).map(drop);
        }
        let left = self.left(&survey)?;
        if left != self.newest() {
            // A write has failed, so a read does not return the latest data: it is as if the power
            // had failed.
            return self.lose_power(&survey);
        }
        self.forget();
        self.take(Action::Restart)?;
        self.judge_verdict()
    }

    fn judge_verdict(&self) -> Accepted {
        match self.state.verdict() {
            Verdict::Fine => Ok(()),
            other => Err(format!(
                "the contract does not allow what is left: {other:?}"
            )),
        }
    }

    fn forget(&mut self) {
        self.copied.fill(None);
        self.flushes.fill(None);
        self.promised.fill(None);
        self.to_redo.iter_mut().for_each(|left| left.clear());
        (self.silent, self.empty_checkpoint) = (false, false);
    }

    /// The newest version of every block.
    fn newest(&self) -> Left {
        let s = &self.state;
        let places = 0..self.ring();
        let keys = 0..self.keys.len() as u8;
        Left {
            log: places.map(|p| s.block_versions(p).count() - 1).collect(),
            pages: keys.map(|k| s.page_versions(k).count() - 1).collect(),
            superblock: s.super_versions().count() - 1,
        }
    }

    fn ring(&self) -> usize {
        crate::mirror::wide::wal_recovery::WalRecovery::RING_BLOCKS
    }

    /// The versions that a device holds.
    fn left(&self, survey: &Survey) -> Result<Left, String> {
        Ok(Left {
            log: self.log_left(survey)?,
            pages: self.pages_left(survey)?,
            superblock: self.superblock_left(survey)?,
        })
    }

    fn superblock_left(&self, survey: &Survey) -> Result<usize, String> {
        let redo = self.scale.position(survey.redo_start)?;
        let found = (self.scale.epoch(survey.epoch), redo);
        let versions: Vec<_> = self.state.super_versions().collect();
        let at = versions.iter().rposition(|version| *version == found);
        at.ok_or_else(|| format!("the superblock is {found:?}, which is none of {versions:?}"))
    }

    fn pages_left(&self, survey: &Survey) -> Result<Vec<usize>, String> {
        let mut left = vec![0; self.keys.len()];
        for (page, key) in &self.keys {
            let lsn = survey.pages.get(page);
            let lsn = lsn.ok_or_else(|| format!("{page} is not on the device"))?;
            let lsn = self.scale.page_lsn(lsn.0)?;
            let versions: Vec<u64> = self.state.page_versions(*key).collect();
            let at = versions.iter().rposition(|version| *version == lsn);
            left[usize::from(*key)] = at.ok_or_else(|| {
                let k = key + 1;
                format!(
                    "the page of k{k} has LSN {lsn} on the device, which is none of {versions:?}"
                )
            })?;
        }
        Ok(left)
    }

    fn log_left(&self, survey: &Survey) -> Result<Vec<usize>, String> {
        let ring = self.ring();
        if survey.log.len() != ring {
            return Err(format!(
                "the log has {} blocks; expected {ring}",
                survey.log.len()
            ));
        }
        let mut left = vec![0; ring];
        for (place, block) in survey.log.iter().enumerate() {
            let found = match block {
                Some(block) => self.scale.block(block)?,
                None => None,
            };
            let place = self.scale.place(place, ring);
            let versions: Vec<_> = self.state.block_versions(place).collect();
            let at = match found {
                Some(found) => versions.iter().rposition(|version| *version == found),
                // Trimmed, or older than the recording: equivalent to any block that is not part of
                // the log.
                None => versions.iter().rposition(|version| self.is_dead(*version)),
            };
            left[place] = at.ok_or_else(|| {
                format!("log place {place} holds {found:?} (epoch, index, records), which is none of {versions:?}")
            })?;
        }
        Ok(left)
    }

    /// Whether a block is no longer part of the log, so that it may have been trimmed.
    pub(super) fn is_dead(&self, (epoch, index, _): (u64, u64, usize)) -> bool {
        epoch == 0 || index < self.oldest_kept() / self.scale.per_block
    }

    /// The position before which log blocks may have been trimmed.
    pub(super) fn oldest_kept(&self) -> u64 {
        let s = &self.state;
        match (s.phase(), s.checkpoint()) {
            (Phase::Cut | Phase::Killed, _) => {
                s.super_versions().last().map_or(0, |(_, redo)| redo)
            }
            (_, (Checkpoint::Recorded, begin)) => begin,
            _ => s.oldest(),
        }
    }
}
