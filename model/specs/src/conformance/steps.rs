//! Maps each event to its step of the mirror.

use std::collections::BTreeMap;

use treering_engine::events::Event;
use treering_engine::{Lsn, PageId};

use super::judge::{Accepted, Copied, Flush, Judge, Step};
use super::record::{Entry, Heard};
use crate::mirror::wide::wal_recovery::{Action, Call, Checkpoint, Phase};

/// Checks that the engine and the mirror agree on a value.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, engine: T, mirror: T) -> Accepted {
    if engine == mirror {
        return Ok(());
    }
    Err(format!(
        "{what} is {engine:?} in the engine and {mirror:?} in the mirror"
    ))
}

impl Judge {
    /// Takes the steps that an entry stands for.
    pub(super) fn accept(&mut self, entry: &Entry) -> Accepted {
        let client = || {
            entry
                .client
                .ok_or("the event belongs to no client".to_owned())
        };
        match &entry.heard {
            Heard::CallGet(key) => self.take(Action::CallGet(client()?, *key)),
            Heard::CallWrite { key, absent } => self.call_write(client()?, *key, *absent),
            Heard::Answered(version) => {
                let c = client()?;
                same("the value", Some(*version), self.state.got(c))?;
                self.take(Action::AnswerGet(c))
            }
            Heard::Refused => self.refused(client()?),
            Heard::Crashed(survey) => self.crashed(survey),
            Heard::Restarted(survey) => {
                self.restarting = Some(survey.clone());
                Ok(())
            }
            Heard::Engine(event) => self.engine(entry.client, *event),
            Heard::Log(_) | Heard::Tree(_) | Heard::Leaf(_) => {
                Err("the spec has no such event".into())
            }
        }
    }

    fn call_write(&mut self, client: u8, key: u8, absent: bool) -> Accepted {
        let (mirror, state) = (&self.mirror, &mut self.state);
        if !mirror.try_call_write(state, client, key, absent) {
            return Err(format!("CallWrite({client}, {key}) is not enabled"));
        }
        self.took(Step::CallWrite {
            client,
            key,
            absent,
        });
        Ok(())
    }

    fn refused(&mut self, c: u8) -> Accepted {
        if self.mirror.may(&self.state, Action::ReportFailure(c)) {
            return self.take(Action::ReportFailure(c));
        }
        let appended = matches!(self.state.call(c), Call::Write { lsn, .. } if lsn != 0);
        if appended && !self.state.poisoned() && !self.silent {
            return Err("nothing has failed that could lose the write".into());
        }
        self.stutter("an error where the spec gives no answer before the next crash")
    }

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match event {
            Event::LogAppended { lsn, page } => self.log_appended(client, lsn, page),
            Event::StructureAppended { .. } => {
                Err("the spec has no splits or merges, so the episode should have none".into())
            }
            Event::PageChanged { page, lsn } => self.page_changed(client, page, lsn),
            Event::LogFlushBegins { from, to } => self.log_flush_begins(client, from, to),
            Event::LogWritten { .. } => self.flush_begins(Flush::Log),
            Event::PagesWritten { .. } | Event::SuperblockWritten { .. } => {
                self.flush_begins(Flush::Checkpoint)
            }
            Event::LogFlushed { to } => {
                same(
                    "the end of the flush",
                    self.scale.position(to)?,
                    self.state.flushing(),
                )?;
                self.take(Action::CompleteFlush)?;
                self.flush_ends(Flush::Log)
            }
            Event::LogFlushFailed { .. } => self.take(Action::FailFlush),
            Event::PageCopied { page, lsn } => self.page_copied(page, lsn),
            Event::PageWriting { page, lsn } => self.page_writing(page, lsn),
            Event::PageWritten { page, .. } => {
                let key = self.key(page)?;
                self.land(key)
            }
            Event::PageLoaded { page, lsn } => self.page_loaded(page, lsn),
            Event::PageRead { page, lsn } => self.page_read(client, page, lsn),
            Event::Acknowledged { lsn } => self.acknowledged(client, lsn),
            Event::Failed if self.state.poisoned() || self.silent => {
                self.stutter("poisoned already")
            }
            Event::Failed => self.fail_silently(),
            Event::CheckpointFailed => self.checkpoint_failed(),
            Event::CheckpointBegins { .. }
            | Event::PagesFlushed { .. }
            | Event::SuperblockWriting { .. }
            | Event::SuperblockFlushed { .. }
            | Event::LogTruncated { .. } => self.checkpoint(event),
            Event::Shadow(_)
            | Event::Cow(_)
            | Event::Redo(_)
            | Event::Snapshot(_)
            | Event::Leaf(_) => self.stutter("the protocol of a part of the store"),
            Event::RecoveryBegins { .. }
            | Event::RecordRead { .. }
            | Event::PageRedone { .. }
            | Event::RedoEnds
            | Event::Opened => self.recovery(event),
        }
    }

    pub(super) fn key(&self, page: PageId) -> Result<u8, String> {
        self.keys
            .get(&page)
            .copied()
            .ok_or_else(|| format!("{page} holds none of the keys"))
    }

    fn log_appended(&mut self, client: Option<u8>, lsn: Lsn, page: PageId) -> Accepted {
        let c = client.ok_or("no client writes it")?;
        let key = self.key(page)?;
        if !matches!(self.state.call(c), Call::Write { key: asked, .. } if asked == key) {
            return Err(format!(
                "client c{} has no write of k{} outstanding",
                c + 1,
                key + 1
            ));
        }
        same(
            "the LSN",
            self.scale.position(lsn)?,
            self.mirror.log_end(&self.state) + 1,
        )?;
        self.take(Action::AppendLog(c))
    }

    fn page_changed(&mut self, client: Option<u8>, page: PageId, lsn: Lsn) -> Accepted {
        let c = client.ok_or("no client changes it")?;
        let (key, n) = (self.key(page)?, self.scale.position(lsn)?);
        if let Some(promised) = self.promised[usize::from(c)].take() {
            return same("the LSN promised", n, promised);
        }
        match self.state.call(c) {
            Call::Write {
                key: asked, lsn, ..
            } => {
                same("the key", key, asked)?;
                same("the LSN", n, u64::from(lsn))?;
            }
            other => {
                return Err(format!(
                    "client c{} has no write outstanding: {other:?}",
                    c + 1
                ));
            }
        }
        self.change_page(c)
    }

    fn change_page(&mut self, c: u8) -> Accepted {
        if let Call::Write { key, lsn, .. } = self.state.call(c)
            && let Some(copied) = &mut self.copied[usize::from(key)]
            && copied.changed == 0
        {
            copied.changed = lsn.into();
        }
        self.take(Action::ChangePage(c))
    }

    fn log_flush_begins(&mut self, client: Option<u8>, from: Lsn, to: Lsn) -> Accepted {
        same(
            "what was durable",
            self.scale.position(from)?,
            self.state.durable(),
        )?;
        same(
            "the end of the log",
            self.scale.position(to)?,
            self.mirror.log_end(&self.state),
        )?;
        let leader = self.leader(client)?;
        self.take(Action::FlushLog(leader))
    }

    fn flush_begins(&mut self, flush: Flush) -> Accepted {
        self.flushes[flush as usize] = Some(BTreeMap::new());
        self.stutter("the end of a write is no step")
    }

    /// Records that the mirror's flush has made the newest versions durable, which the engine's
    /// flush need not have done.
    fn flush_ends(&mut self, flush: Flush) -> Accepted {
        for (key, versions) in self.flushes[flush as usize].take().unwrap_or_default() {
            self.state.spare(key, &versions);
            self.took(Step::SparedByFlush { key });
        }
        Ok(())
    }

    /// The client that leads a flush. In the spec the leader is a client that waits. In the engine
    /// a write-back, a checkpoint or a pump may lead, on behalf of all clients that wait. Perhaps
    /// the only clients whose records are not durable have not changed their pages yet. Then one of
    /// them changes its page now. That cannot be observed, since the client holds the page's latch
    /// until then and the step has no other effect. The change is checked when it is reported.
    fn leader(&mut self, client: Option<u8>) -> Result<u8, String> {
        let mut waiting = self.state.waiting();
        let leader = match client {
            Some(c) if self.state.waiting().any(|w| w == c) => Some(c),
            _ => waiting.next(),
        };
        drop(waiting);
        if let Some(leader) = leader {
            return Ok(leader);
        }
        let durable = self.state.durable();
        let logged = self.state.logged().find(|(_, lsn)| durable < *lsn);
        let (c, lsn) = logged.ok_or("no client waits for a flush")?;
        self.change_page(c)?;
        self.promised[usize::from(c)] = Some(lsn);
        self.stutter("a flush that no client waits for: the writer changes its page first")?;
        Ok(c)
    }

    fn page_copied(&mut self, page: PageId, lsn: Lsn) -> Accepted {
        let key = self.key(page)?;
        same(
            "the page's LSN",
            self.scale.page_lsn(lsn)?,
            self.state.page_lsn(key),
        )?;
        if self.silent || self.state.poisoned() {
            // A page whose write failed counts as dirty again. It is copied, and its write is then
            // refused. `PageWriting` would find no copy.
            self.copied[usize::from(key)] = None;
            return self.stutter("a poisoned store copies a page and does not write it");
        }
        if self.state.dirtied(key) == 0 {
            return Err("the page is clean".into());
        }
        self.copied[usize::from(key)] = Some(Copied {
            image: self.state.page(key),
            changed: 0,
            writing: false,
        });
        self.stutter("WriteBack copies and writes in one step")
    }

    /// Checks whether the page may be written when its write begins. The mirror writes it when the
    /// write ends ([`Judge::land`]), since another thread's flush in between need not cover it.
    fn page_writing(&mut self, page: PageId, lsn: Lsn) -> Accepted {
        let key = self.key(page)?;
        if self.state.poisoned() || self.state.phase().is_down() {
            return Err(format!(
                "WriteBack({key}) is not enabled: nothing is written any more"
            ));
        }
        let durable = self.state.durable();
        let copied = self.copied[usize::from(key)].as_mut();
        let copied = copied.ok_or("no copy of the page was taken")?;
        same(
            "the image's LSN",
            self.scale.page_lsn(lsn)?,
            copied.image.lsn(),
        )?;
        if copied.image.lsn() > durable {
            return Err(format!(
                "WriteBack({key}) is not enabled: the log is durable up to {durable} only"
            ));
        }
        copied.writing = true;
        self.stutter("WriteBack is where the write ends")
    }

    /// All page writes that have begun may be on the device.
    pub(super) fn land_all(&mut self) -> Accepted {
        (0..self.copied.len() as u8).try_for_each(|key| match self.copied[usize::from(key)] {
            Some(copied) if copied.writing => self.land(key),
            _ => Ok(()),
        })
    }

    /// A page write has reached the device's cache.
    fn land(&mut self, key: u8) -> Accepted {
        let copied = self.copied[usize::from(key)].take();
        let copied = copied.filter(|copied| copied.writing);
        let copied = copied.ok_or("no write of the page has begun")?;
        for spared in self.flushes.iter_mut().flatten() {
            let versions = spared.entry(key);
            let versions = versions.or_insert_with(|| vec![self.state.newest_image(key)]);
            versions.push(copied.image);
        }
        let latched = self.state.logged().any(
            |(c, _)| matches!(self.state.call(c), Call::Write { key: other, .. } if other == key),
        );
        if copied.changed == 0 && !latched {
            return self.take(Action::WriteBack(key));
        }
        // A client is changing the page, or has changed it since it was copied: see the parent
        // module.
        self.state
            .write_back_copy(key, copied.image, copied.changed);
        self.took(Step::WriteBackCopy { key });
        Ok(())
    }

    fn page_loaded(&mut self, page: PageId, lsn: Lsn) -> Accepted {
        let key = self.key(page)?;
        let newest = self.state.page_versions(key).last();
        if self.state.phase() != Phase::Up {
            same(
                "the LSN on the device",
                Some(self.scale.page_lsn(lsn)?),
                newest,
            )?;
            return self.stutter("recovery reads a page when its first record is redone");
        }
        if !self.mirror.may(&self.state, Action::Reload(key)) {
            return self.take(Action::Reload(key));
        }
        same(
            "the LSN on the device",
            Some(self.scale.page_lsn(lsn)?),
            newest,
        )?;
        self.take(Action::Reload(key))
    }

    fn page_read(&mut self, client: Option<u8>, page: PageId, lsn: Lsn) -> Accepted {
        let key = self.key(page)?;
        let c = client.ok_or("no client reads it")?;
        if !matches!(self.state.call(c), Call::Get { key: asked, .. } if asked == key) {
            return Err(format!("client c{} does not get k{}", c + 1, key + 1));
        }
        same(
            "the page's LSN",
            self.scale.page_lsn(lsn)?,
            self.state.page_lsn(key),
        )?;
        self.take(Action::ReadPage(c))
    }

    fn acknowledged(&mut self, client: Option<u8>, lsn: Lsn) -> Accepted {
        let n = self.scale.position(lsn)?;
        if let Some(c) = client
            && let Call::Write { lsn: mine, .. } = self.state.call(c)
            && mine != 0
            && u64::from(mine) <= n
        {
            return self.take(Action::Acknowledge(c));
        }
        if n > self.state.durable() {
            return Err(format!(
                "{n} is reported durable, but only {} is",
                self.state.durable()
            ));
        }
        self.stutter("a pump hears that the log is durable")
    }

    /// Calls in progress may still append to the buffer in memory. So this is not the spec's
    /// `FailFlush`, although that is enabled while a checkpoint sweeps.
    fn fail_silently(&mut self) -> Accepted {
        self.land_all()?;
        self.silent = true;
        self.stutter("a flush or write failed that is neither the log's nor the checkpoint's")
    }

    fn checkpoint_failed(&mut self) -> Accepted {
        if self.state.poisoned() || self.silent {
            return self.stutter("poisoned already");
        }
        if self.mirror.may(&self.state, Action::FailFlush) && !self.empty_checkpoint {
            return self.take(Action::FailFlush);
        }
        self.fail_silently()
    }

    fn checkpoint(&mut self, event: Event) -> Accepted {
        if let Event::CheckpointBegins { begin } = event {
            return self.checkpoint_begins(begin);
        }
        if self.empty_checkpoint {
            return self.stutter("a checkpoint with nothing to record");
        }
        match event {
            Event::PagesFlushed { .. } => {
                self.take(Action::FlushPages)?;
                self.flush_ends(Flush::Checkpoint)
            }
            Event::SuperblockWriting { epoch, redo_start } => {
                let mirror = (self.state.epoch(), self.state.checkpoint().1);
                let engine = (self.scale.epoch(epoch), self.scale.position(redo_start)?);
                same("the superblock", engine, mirror)?;
                self.take(Action::WriteSuperblock)
            }
            Event::SuperblockFlushed { .. } => {
                self.take(Action::FlushSuperblock)?;
                self.flush_ends(Flush::Checkpoint)
            }
            Event::LogTruncated { redo_start } => {
                if self.state.phase() == Phase::Opening
                    && self.state.checkpoint().0 == Checkpoint::Recorded
                {
                    return self.stutter("FinishRecovery gives the log up");
                }
                if !self.mirror.may(&self.state, Action::TruncateLog) {
                    return self.take(Action::TruncateLog);
                }
                let redo = self.scale.position(redo_start)?;
                same("the oldest position", redo, self.state.checkpoint().1)?;
                self.take(Action::TruncateLog)
            }
            other => Err(format!("{other:?} is not an event of a checkpoint")),
        }
    }

    fn checkpoint_begins(&mut self, begin: Lsn) -> Accepted {
        let begin = self.scale.position(begin)?;
        if self.state.phase() == Phase::Opening {
            same("the checkpoint's begin", begin, self.state.checkpoint().1)?;
            return self.stutter("FinishRedo begins the checkpoint");
        }
        let end = self.mirror.log_end(&self.state);
        same("the checkpoint's begin", begin, end)?;
        self.empty_checkpoint =
            self.state.checkpoint().0 == Checkpoint::Idle && self.state.oldest() == end;
        if self.empty_checkpoint {
            return self.stutter("a checkpoint with nothing to record");
        }
        self.take(Action::BeginCheckpoint)
    }

    fn recovery(&mut self, event: Event) -> Accepted {
        match event {
            Event::RecoveryBegins {
                epoch,
                redo_start,
                log_start,
            } => {
                self.remember();
                self.restart()?;
                self.take(Action::LoadSuperblock)?;
                same("the epoch", self.scale.epoch(epoch), self.state.epoch())?;
                same(
                    "redo's beginning",
                    self.scale.position(redo_start)?,
                    self.state.redone(),
                )?;
                same(
                    "the log's beginning",
                    self.scale.position(log_start)?,
                    self.state.durable(),
                )
            }
            Event::RecordRead { lsn, page } => {
                let (key, n) = (self.key(page)?, self.scale.position(lsn)?);
                same("the record's LSN", n, self.state.redone() + 1)?;
                let before = self.state.page_lsn(key);
                self.take(Action::RedoRecord)?;
                if self.state.page_lsn(key) != before {
                    self.to_redo[usize::from(key)].push_back(n);
                }
                Ok(())
            }
            Event::PageRedone { page, lsn } => {
                let (key, n) = (self.key(page)?, self.scale.position(lsn)?);
                let wanted = self.to_redo[usize::from(key)].pop_front();
                same("the record to be redone", Some(n), wanted)?;
                self.stutter("RedoRecord reads and redoes in one step")
            }
            Event::RedoEnds => {
                if let Some(key) = self.to_redo.iter().position(|left| !left.is_empty()) {
                    let left = &self.to_redo[key];
                    return Err(format!("the page of k{} still lacks {left:?}", key + 1));
                }
                self.take(Action::FinishRedo)
            }
            Event::Opened => self.take(Action::FinishRecovery),
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }
}
