//! The judge's rules for pages: mini-pages are merged, moved and dropped, and leaves are split and
//! joined.

use treering_engine::PageId;
use treering_engine::mini::events::{Cause, LeafImage, MiniImage};

use super::judge::{Judge, without_bits};
use super::scale::{self, LEAF_CAPACITY};
use super::tla;
use crate::conformance::led::holds;
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::mini_page::records::{Kind, Page};
use crate::mirror::wide::mini_page::{Action, Bug, Call};

impl Judge {
    /// The engine has merged the dirty records into the leaf. Which step of the spec this is
    /// depends on what becomes of the mini-page. The page is locked until that is known.
    pub(super) fn merges(
        &mut self,
        page: PageId,
        cause: Cause,
        mini: &MiniImage,
        leaf: Option<&LeafImage>,
    ) -> Accepted {
        self.settle(page)?;
        let p = self.number(page)?;
        let dirty = is_dirty(self.page(p));
        let is = same("a dirty record", leaf.is_some(), dirty);
        self.notes.claim(is, || match leaf {
            Some(_) => {
                let dirty = r#"{"insert", "tombstone"}"#;
                holds(&format!(
                    "\\E k \\in Keys : mini[{p}].rec[k].kind \\in {dirty}"
                ))
            }
            None => tla::clean(p),
        })?;
        let mut cleaned = *self.page(p);
        cleaned.leaf = cleaned.merged(Bug::None);
        cleaned.mini.rec = cleaned.mini.rec.map(|record| record.cleaned());
        if let Some(leaf) = leaf {
            let told = self.scale.told_leaf(leaf)?;
            let is = same("the leaf", &told, &scale::leaf(&cleaned));
            self.notes.claim(is, || {
                tla::leaf(p, &format!("Merged(mini[{p}], leaf[{p}])"), &told)
            })?;
        }
        let told = self.scale.told(Some(mini))?.into_iter().map(without_bits);
        let mirror = scale::rows(&cleaned).into_iter().map(without_bits);
        same(
            "the mini-page",
            told.collect::<Vec<_>>(),
            mirror.collect::<Vec<_>>(),
        )?;
        if !cleaned.is_free() {
            let why = "another client has the page".into();
            return self.notes.claim(Err(why), || holds(&format!("Free({p})")));
        }
        match cause {
            Cause::Eviction => self.take(Action::EvictMini(p)),
            Cause::Checkpoint => self.merge_in_place(p),
            Cause::CopyOnAccess | Cause::Room | Cause::LeafMerge => {
                self.merged.insert(p);
                Ok(())
            }
        }
    }

    /// A merged mini-page stayed as it was, but clean: no other event of it came before the page
    /// was unlocked.
    pub(super) fn settle(&mut self, page: PageId) -> Accepted {
        match self.pages.get(&page).copied() {
            Some(p) if self.merged.remove(&p) => self.merge_in_place(p),
            _ => Ok(()),
        }
    }

    /// The spec has no merge that keeps everything. So the mini-page is evicted, and the additional
    /// client reads all of its records again.
    fn merge_in_place(&mut self, p: u8) -> Accepted {
        if !is_dirty(self.page(p)) {
            return Ok(());
        }
        if self.page(p).mini.mirror {
            self.state = self.mirror.merged_mirror(&self.state, p);
            self.notes.tally.took("(MergedMirror)");
            return Ok(());
        }
        let records = scale::rows(self.page(p));
        self.detour(Action::EvictMini(p))?;
        for (key, _, _, used) in records {
            self.reads_again(key, used)?;
        }
        self.notes.tally.took("(MergeInPlace)");
        Ok(())
    }

    /// Brings an evicted record back into the mini-page, with its reference bit set or not.
    fn reads_again(&mut self, key: u8, used: bool) -> Accepted {
        self.read_for_nobody(key)?;
        if used {
            self.read_for_nobody(key)?;
        }
        Ok(())
    }

    /// A get of the additional client. Its record is in the mini-page afterwards, or used if it was
    /// there.
    pub(super) fn read_for_nobody(&mut self, key: u8) -> Accepted {
        let c = self.nobody;
        self.detour(Action::Call(c, Call::get(key)))?;
        self.detour(Action::ReadVersion(c))?;
        self.detour(Action::ReadChild(c))?;
        let p = self.mirror.client(&self.state, c).at();
        self.detour(Action::LockPage(c))?;
        if self.page(p).mini.hits(key) {
            self.detour(Action::ReadMini(c))?;
        } else {
            self.detour(Action::ReadLeaf(c))?;
            self.detour(Action::Upgrade(c))?;
            while !self.page(p).mini.has_room() {
                self.detour(Action::Grow(c))?;
            }
            self.detour(Action::Promote(c))?;
        }
        self.detour(Action::Return(c))
    }

    pub(super) fn keeps(&mut self, page: PageId, mini: Option<&MiniImage>) -> Accepted {
        let p = self.number(page)?;
        let merged = self.merged.remove(&p);
        let as_a_whole = self.page(p).mini.mirror && mini.is_some_and(|mini| mini.whole);
        if !merged && !as_a_whole && self.spares(p, mini)? {
            self.notes.tally.took("(Spared)");
        }
        let must = self.page(p).must_merge(Bug::None);
        if must && !merged && !as_a_whole {
            let why = "a cold record that is dropped is dirty".into();
            return self
                .notes
                .claim(Err(why), || holds(&format!("~MustMerge(mini[{p}])")));
        }
        if merged && !must {
            // Room was needed, and all dirty records are hot.
            self.merge_in_place(p)?;
        }
        if as_a_whole {
            // The mirror was used as a whole.
            if merged && must {
                self.merge_in_place(p)?;
            }
            self.state = self.mirror.with_bits(&self.state, p, |_| true);
            self.notes.tally.took("(MirrorKept)");
        }
        if self.page(p).mini.used() > 0 {
            self.take(Action::CopyToTail(p))?;
        }
        self.same_mini(page, mini, |row| row)
    }

    /// In the engine, changes may go to the tail unmerged though nobody has used them since the last
    /// time. In the spec they are read first. Returns whether some are.
    fn spares(&mut self, p: u8, mini: Option<&MiniImage>) -> Result<bool, String> {
        let told = self.scale.told(mini)?;
        let is_dirty = |kind| matches!(kind, Kind::Insert | Kind::Tombstone);
        let is_told = |key| {
            told.iter()
                .any(|(k, kind, ..)| *k == key && is_dirty(*kind))
        };
        let cold: Vec<u8> = (scale::rows(self.page(p)).into_iter())
            .filter(|(key, kind, _, used)| is_dirty(*kind) && !used && is_told(*key))
            .map(|(key, ..)| key)
            .collect();
        for key in &cold {
            self.read_for_nobody(*key)?;
        }
        Ok(!cold.is_empty())
    }

    /// The spec merges a mini-page that becomes a mirror, and the engine may merge it later. A
    /// scan, a get or a writer makes the mirror.
    pub(super) fn mirrors(&mut self, page: PageId, mini: Option<&MiniImage>) -> Accepted {
        let p = self.number(page)?;
        if self.merged.remove(&p) {
            self.state = self.mirror.merged_mirror(&self.state, p);
        }
        self.notes.tally.took("(Mirrored)");
        self.becomes_mirror(page, mini)?;
        self.same_mini(page, mini, |row| row)
    }

    /// Takes over the engine's reference bits of a mirror, which belong to slots.
    pub(super) fn adopt_bits(&mut self, page: PageId, mini: Option<&MiniImage>) -> Accepted {
        let p = self.number(page)?;
        if mini.is_some_and(|mini| mini.whole) {
            let used = self.scale.told(mini)?;
            let is_used = |key| used.iter().any(|(k, _, _, used)| *k == key && *used);
            self.state = self.mirror.with_bits(&self.state, p, is_used);
        }
        Ok(())
    }

    pub(super) fn drops(&mut self, page: PageId) -> Accepted {
        let p = self.number(page)?;
        if !self.merged.remove(&p) && is_dirty(self.page(p)) {
            let why = "a dirty record is dropped".into();
            return self.notes.claim(Err(why), || tla::clean(p));
        }
        self.take(Action::EvictMini(p))
    }

    /// A leaf is full, and has no record of the key that is to be written. Its mini-page is clean,
    /// and the event tells what remains of it.
    ///
    /// In the spec a leaf is split when a merge finds it full. So the additional client first reads
    /// records of the leaf until the mini-page is full. The writer makes that a mirror
    /// (`MergeToMirror`), finds it full too, and evicts it (`EvictMirror`): the leaf is full. Then
    /// the records that remain in the mini-pages are read again.
    pub(super) fn splits(
        &mut self,
        c: u8,
        [page, right]: [PageId; 2],
        minis: &[Option<MiniImage>; 2],
        leaves: Option<&[LeafImage; 2]>,
    ) -> Accepted {
        self.settle(page)?;
        let p = self.number(page)?;
        if is_dirty(self.page(p)) {
            let why = "a dirty record is not in the leaf that is split".into();
            return self.notes.claim(Err(why), || tla::clean(p));
        }
        if self.page(p).mini.size > 0 {
            self.take(Action::EvictMini(p))?;
        }
        let (_, _, records) = scale::leaf(self.page(p));
        if records.len() < usize::from(LEAF_CAPACITY) {
            let why = format!("the leaf has room: it holds {}", records.len());
            return self.notes.claim(Err(why), || {
                holds(&format!("Count(leaf[{p}]) = LeafCapacity"))
            });
        }
        let most = self.sizes[self.sizes.len() - 1].into();
        for (key, _) in records.into_iter().take(most) {
            self.read_for_nobody(key)?;
        }
        self.arrives(c, page)?;
        self.detour(Action::MergeToMirror(c))?;
        self.detour(Action::EvictMirror(c))?;
        self.take(Action::LockInner(c))?;
        let [left_told, right_told] = leaves.ok_or("the leaves could not be read")?;
        let separator = self.scale.fence(&right_told.lower);
        self.take(Action::AllocateRight(c, separator))?;
        let q = self.mirror.client(&self.state, c).right();
        if let Some(known) = self.pages.insert(right, q) {
            return Err(format!("{right} is in use: the mirror's page {known}"));
        }
        self.take(Action::ShortenLeft(c))?;
        self.take(Action::InsertSeparator(c))?;
        self.same_leaf(page, Some(left_told))?;
        self.same_leaf(right, Some(right_told))?;
        for (id, mini) in [page, right].into_iter().zip(minis) {
            if mini.as_ref().is_some_and(|mini| mini.whole) {
                self.becomes_mirror(id, mini.as_ref())?;
            } else {
                for (key, _, _, used) in self.scale.told(mini.as_ref())? {
                    self.reads_again(key, used)?;
                }
            }
            self.same_mini(id, mini.as_ref(), |row| row)?;
        }
        Ok(())
    }

    /// The mini-page holds every record of the leaf, and may also note keys that neither has.
    fn becomes_mirror(&mut self, page: PageId, mini: Option<&MiniImage>) -> Accepted {
        let p = self.number(page)?;
        let told = self.scale.told(mini)?;
        let is_phantom =
            |key| (told.iter()).any(|(k, kind, _, _)| *k == key && *kind == Kind::Phantom);
        self.state = self.mirror.mirrored(&self.state, p, is_phantom);
        self.adopt_bits(page, mini)
    }

    /// Two leaves are joined. The client that deleted has its answer by then, so the additional
    /// client joins them.
    pub(super) fn joins(
        &mut self,
        page: PageId,
        right: PageId,
        leaf: Option<&LeafImage>,
    ) -> Accepted {
        let c = self.nobody;
        for id in [page, right] {
            let p = self.number(id)?;
            if !self.merged.remove(&p) && is_dirty(self.page(p)) {
                let why = format!("a dirty record of {id} is forgotten");
                return self.notes.claim(Err(why), || tla::clean(p));
            }
        }
        let (p, q) = (self.number(page)?, self.number(right)?);
        self.take(Action::LockLeft(c, p))?;
        self.take(Action::LockRight(c))?;
        let neighbour = self.mirror.client(&self.state, c).right();
        same("the neighbour", q, neighbour)?;
        self.take(Action::LockInnerToJoin(c))?;
        self.take(Action::MoveRecords(c))?;
        self.take(Action::RemoveSeparator(c))?;
        self.pages.remove(&right);
        self.same_leaf(page, leaf)
    }
}

fn is_dirty(page: &Page) -> bool {
    page.mini.rec.iter().any(|record| record.is_dirty())
}
