//! What an event claims about the spec, in TLA+: the step that it stands for, with the outcome that
//! the engine reports. Of a refused event, TLC must find that the spec does not allow it.
//!
//! ```text
//! PageWriting { page, lsn }   WriteBack(k1) /\ Newest(pageDev'[k1]).lsn = 3
//! LogFlushed { to }           CompleteFlush /\ durable' = 7
//! Acknowledged { lsn }        Acknowledge(c2), or 7 <= durable /\ UNCHANGED vars
//! Crashed { what is left }    CrashLeaving(..) /\ verdict' = "fine"
//! ```

use treering_engine::events::Event;
use treering_engine::{PageId, Survey};

use super::judge::{Judge, Step};
use super::record::{Entry, Heard};
use super::tla::outcome;
use crate::mirror::wide::wal_recovery::{Action, Call, Checkpoint, Phase, Verdict, WalRecovery};

type Claimed = Result<String, String>;

/// Nothing happens, and this holds.
fn holds(what: &str) -> String {
    format!("{what} /\\ UNCHANGED vars")
}

fn key(k: u8) -> String {
    format!("k{}", k + 1)
}

impl Judge {
    /// What the event claims that was refused. The judge is in the state in which it refused it;
    /// `done` are the steps that it had taken for the event.
    pub(super) fn claim(&self, entry: &Entry, done: &[Step]) -> Claimed {
        if let Some(invariant) = crate::Mirror::broken(&self.mirror, &self.state)
            && self.state.verdict() == Verdict::Fine
        {
            return Ok(holds(invariant));
        }
        let client = || match entry.client {
            Some(c) => Ok(format!("c{}", c + 1)),
            None => Err("the event belongs to no client".to_owned()),
        };
        match &entry.heard {
            Heard::CallGet(k) => {
                let (c, k) = (client()?, key(*k));
                Ok(format!("CallGet({c}) /\\ call'[{c}].key = {k}"))
            }
            Heard::CallWrite { key: k, absent } => {
                let (c, k) = (client()?, key(*k));
                let value = if *absent { "= Absent" } else { "# Absent" };
                Ok(format!(
                    "CallWrite({c}) /\\ call'[{c}].key = {k} /\\ call'[{c}].value {value}"
                ))
            }
            Heard::Answered(version) => {
                let (c, got) = (client()?, super::tla::content(*version));
                Ok(format!("AnswerGet({c}) /\\ call[{c}].got = {got}"))
            }
            Heard::Refused => Ok(format!("ReportFailure({})", client()?)),
            Heard::Crashed(survey) => self.left_claim(Some(survey), done),
            Heard::Restarted(_) => Err("the end of a process is no step of the spec".into()),
            Heard::Engine(event) => self.engine_claim(entry, *event, done),
            Heard::Log(_) | Heard::Tree(_) | Heard::Leaf(_) => {
                Err("the spec has no such event".into())
            }
        }
    }

    fn engine_claim(&self, entry: &Entry, event: Event, done: &[Step]) -> Claimed {
        let c = || match entry.client {
            Some(c) => Ok(format!("c{}", c + 1)),
            None => Err("no client does it".to_owned()),
        };
        let k = |page: PageId| self.key(page).map(key);
        let n = |lsn| self.scale.position(lsn);
        let opening = self.state.phase() == Phase::Opening;
        Ok(match event {
            Event::LogAppended { lsn, page } => {
                let (c, k, n) = (c()?, k(page)?, n(lsn)?);
                format!("AppendLog({c}) /\\ call'[{c}].key = {k} /\\ call'[{c}].lsn = {n}")
            }
            Event::PageChanged { page, lsn } => {
                let (c, k, n) = (c()?, k(page)?, n(lsn)?);
                format!("ChangePage({c}) /\\ call[{c}].key = {k} /\\ call[{c}].lsn = {n}")
            }
            Event::LogFlushBegins { from, to } => {
                let (from, to) = (n(from)?, n(to)?);
                format!(
                    "(\\E c \\in Clients : FlushLog(c)) /\\ durable = {from} /\\ flushing' = {to}"
                )
            }
            Event::LogFlushed { to } => format!("CompleteFlush /\\ durable' = {}", n(to)?),
            Event::LogFlushFailed { .. } | Event::CheckpointFailed => "FailFlush".into(),
            Event::PageCopied { page, lsn } => {
                let (k, n) = (k(page)?, self.scale.page_lsn(lsn)?);
                holds(&format!("dirtied[{k}] # 0 /\\ page[{k}].lsn = {n}"))
            }
            Event::PageWriting { page, lsn } => {
                let (k, n) = (k(page)?, self.scale.page_lsn(lsn)?);
                format!("WriteBack({k}) /\\ Newest(pageDev'[{k}]).lsn = {n}")
            }
            Event::PageWritten { page, .. } => format!("WriteBack({})", k(page)?),
            Event::PageLoaded { page, lsn } => {
                let (k, n) = (k(page)?, self.scale.page_lsn(lsn)?);
                match self.state.phase() {
                    Phase::Up => format!("Reload({k}) /\\ page'[{k}].lsn = {n}"),
                    _ => holds(&format!("Newest(pageDev[{k}]).lsn = {n}")),
                }
            }
            Event::PageRead { page, lsn } => {
                let (c, k, n) = (c()?, k(page)?, self.scale.page_lsn(lsn)?);
                format!("ReadPage({c}) /\\ call[{c}].key = {k} /\\ page[{k}].lsn = {n}")
            }
            Event::Acknowledged { lsn } => {
                let n = n(lsn)?;
                match entry.client.map(|c| (c, self.state.call(c))) {
                    Some((c, Call::Write { lsn, .. })) if lsn != 0 && u64::from(lsn) <= n => {
                        format!("Acknowledge(c{})", c + 1)
                    }
                    _ => holds(&format!("{n} <= durable")),
                }
            }
            Event::CheckpointBegins { begin } if opening => {
                holds(&format!("checkpoint.begin = {}", n(begin)?))
            }
            Event::CheckpointBegins { begin } => {
                format!("BeginCheckpoint /\\ checkpoint'.begin = {}", n(begin)?)
            }
            Event::PagesFlushed { .. } => "FlushPages".into(),
            Event::SuperblockWriting { epoch, redo_start } => {
                let (epoch, redo) = (self.scale.epoch(epoch), n(redo_start)?);
                format!(
                    "WriteSuperblock /\\ Newest(superDev') = [epoch |-> {epoch}, redo |-> {redo}]"
                )
            }
            Event::SuperblockFlushed { .. } => "FlushSuperblock".into(),
            Event::LogTruncated { redo_start } => {
                let does = match opening && self.state.checkpoint().0 == Checkpoint::Recorded {
                    true => "FinishRecovery",
                    false => "TruncateLog",
                };
                format!("{does} /\\ oldest' = {}", n(redo_start)?)
            }
            Event::RecoveryBegins {
                epoch,
                redo_start,
                log_start,
            } => {
                let restarts =
                    |step: &Step| matches!(step, Step::Crash(_) | Step::Take(Action::Restart));
                let loads = |step: &Step| matches!(step, Step::Take(Action::LoadSuperblock));
                let broken = self.state.verdict() != Verdict::Fine;
                if !done.iter().any(loads)
                    && (broken || !done.iter().any(restarts) && self.read.is_some())
                {
                    return self.left_claim(self.read.as_deref(), done);
                }
                let (epoch, redo, start) = (self.scale.epoch(epoch), n(redo_start)?, n(log_start)?);
                format!(
                    "LoadSuperblock /\\ epoch' = {epoch} /\\ redone' = {redo} /\\ durable' = {start}"
                )
            }
            Event::RecordRead { lsn, page } => {
                let (k, n) = (k(page)?, n(lsn)?);
                format!(
                    "RedoRecord /\\ redone' = {n} /\\ ToRedo[redone - Super.redo + 1].key = {k}"
                )
            }
            // A record is redone if the page does not have it.
            Event::PageRedone { page, lsn } => {
                let (k, n) = (k(page)?, n(lsn)?);
                holds(&format!("Newest(pageDev[{k}]).lsn < {n}"))
            }
            Event::RedoEnds => match self.to_redo.iter().any(|left| !left.is_empty()) {
                true => {
                    return Err(
                        "recovery left a record out that the spec redoes as it reads it".into(),
                    );
                }
                false => "FinishRedo".into(),
            },
            Event::Opened => "FinishRecovery".into(),
            Event::StructureAppended { .. } => {
                return Err("the spec has no splits or merges".into());
            }
            Event::LogWritten { .. }
            | Event::PagesWritten { .. }
            | Event::SuperblockWritten { .. }
            | Event::Failed
            | Event::Shadow(_)
            | Event::Cow(_)
            | Event::Redo(_)
            | Event::Snapshot(_)
            | Event::Leaf(_) => return Err("the spec has no such event".into()),
        })
    }

    /// The claim that a crash may leave what was found, or that a process may read it.
    fn left_claim(&self, survey: Option<&Survey>, done: &[Step]) -> Claimed {
        match done.last() {
            Some(Step::Crash(left)) => {
                let left = outcome(left);
                return Ok(format!(
                    "LET e == [do |-> \"Crash\"{left}]\n    IN CrashLeaving(e.log, e.pages, e.sb) /\\ verdict' = \"fine\""
                ));
            }
            Some(Step::Take(Action::Restart)) => {
                return Ok("Restart /\\ verdict' = \"fine\"".into());
            }
            _ => {}
        }
        let survey = survey.ok_or("nothing is known of the device")?;
        self.unknown_block(survey)?
            .map(|what| holds(&what))
            .ok_or_else(|| "each block is as the spec allows, but not all of them together".into())
    }

    /// The claim about the first block that has none of the spec's versions.
    fn unknown_block(&self, survey: &Survey) -> Result<Option<String>, String> {
        let ring = WalRecovery::RING_BLOCKS;
        for (place, block) in survey.log.iter().enumerate().take(ring) {
            let found = match block {
                Some(block) => self.scale.block(block)?,
                None => None,
            };
            let place = self.scale.place(place, ring);
            let mut versions = self.state.block_versions(place);
            let block = format!("\\E block \\in Survivors(logDev[{place}]) :");
            match found {
                Some((epoch, index, records)) => {
                    if !versions.any(|version| version == (epoch, index, records)) {
                        return Ok(Some(format!(
                            "({block} block.epoch = {epoch} /\\ block.index = {index} /\\ \
                             Len(block.records) = {records})"
                        )));
                    }
                }
                None => {
                    if !versions.any(|version| self.is_dead(version)) {
                        let oldest = self.oldest_kept() / self.scale.per_block;
                        return Ok(Some(format!(
                            "({block} block.epoch = 0 \\/ block.index < {oldest})"
                        )));
                    }
                }
            }
        }
        for (page, k) in &self.keys {
            let Some(lsn) = survey.pages.get(page) else {
                return Err(format!("{page} is not on the device"));
            };
            let lsn = self.scale.page_lsn(lsn.0)?;
            if !self.state.page_versions(*k).any(|version| version == lsn) {
                let k = key(*k);
                return Ok(Some(format!(
                    "(\\E image \\in Survivors(pageDev[{k}]) : image.lsn = {lsn})"
                )));
            }
        }
        let found = (
            self.scale.epoch(survey.epoch),
            self.scale.position(survey.redo_start)?,
        );
        if self.state.super_versions().any(|version| version == found) {
            return Ok(None);
        }
        let (epoch, redo) = found;
        Ok(Some(format!(
            "[epoch |-> {epoch}, redo |-> {redo}] \\in Survivors(superDev)"
        )))
    }
}
