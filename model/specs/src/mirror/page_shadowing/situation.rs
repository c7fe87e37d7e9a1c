//! Describes the part of a state that a step depends on. An engine's store, which has more pages
//! than any model, has these situations in common with a model.

use super::reading::{LOG_SPOT, as_read};
use super::state::{Block, Blocks, Call, Is, SPOTS, Set, State, page_of, segment_of};
use super::{Action, PageShadowing};

impl PageShadowing {
    /// Describes what a step does to each page that it concerns, given the states before and after.
    /// The action determines the page, except for `RedoRecord`, whose page is the one that changes.
    #[must_use]
    pub fn situations(&self, before: &State, action: Action, after: &State) -> Vec<String> {
        let of = |p: usize| vec![self.page_situation(before, p)];
        match action {
            Action::CallGet(..)
            | Action::CallWrite(..)
            | Action::AnswerGet(_)
            | Action::Acknowledge(_)
            | Action::FinishRedo => vec![String::new()],
            Action::CommitLog(n) if n == before.log_len => vec![format!("all, {}", phase(before))],
            Action::CommitLog(_) => vec![format!("a part, {}", phase(before))],
            Action::ReadPage(c) | Action::ChangePage(c) => {
                let (Call::Get { key, .. } | Call::Write { key, .. }) = before.call[usize::from(c)]
                else {
                    return Vec::new();
                };
                let dirty = before.mem[page_of(key)].map_or(0, |page| page.dirty);
                let again = match (action, dirty >> segment_of(key) & 1) {
                    (Action::ChangePage(_), 1) => ", a segment that differs already",
                    _ => "",
                };
                vec![self.page_situation(before, page_of(key)) + again]
            }
            Action::WriteDelta(p) | Action::WriteWhole(p) | Action::Trim(p) | Action::Evict(p) => {
                of(usize::from(p))
            }
            Action::Load(p, n) => {
                let way = if n == 0 {
                    ""
                } else {
                    ", a trim reads as what was before"
                };
                vec![self.page_situation(before, usize::from(p)) + way]
            }
            Action::FlushDevice | Action::FailFlush | Action::Checkpoint => self
                .pages()
                .map(|p| self.page_situation(before, p))
                .collect(),
            Action::Crash(..) => {
                let pages = self.pages();
                pages.map(|p| self.crashed(before, p, after)).collect()
            }
            Action::Restart(..) => {
                let pages = self.pages();
                pages.map(|p| self.restarted(before, p, after)).collect()
            }
            Action::RedoRecord => {
                let changed = self.pages().find(|p| before.mem[*p] != after.mem[*p]);
                vec![changed.map_or("the page has it".into(), |p| self.page_situation(before, p))]
            }
        }
    }

    fn crashed(&self, before: &State, p: usize, after: &State) -> String {
        let newest = self.read_both(&newest(before, p)).image.lsn;
        let blocks = after.dev[p].map(|place| place.newest());
        let left = self.read_both(&as_read(&blocks)).image.lsn;
        let image = if left == newest {
            "the newest"
        } else {
            "an older one"
        };
        let torn = [0, 1].into_iter().any(|slot| {
            let some = members(self.spots_of(slot)).any(|i| blocks[i] != Block::TRIMMED);
            some && self.image_in(&as_read(&blocks), usize::from(slot)).lsn == 0
        });
        let torn = if torn { ", a slot torn" } else { "" };
        let page = self.page_situation(before, p);
        format!("{page}: {image} is left{torn}")
    }

    fn restarted(&self, before: &State, p: usize, after: &State) -> String {
        let named = if after.valid[p].is == Is::Unknown {
            "not named"
        } else {
            "named"
        };
        let failed = if before.poisoned {
            ", after a failed flush"
        } else {
            ""
        };
        format!(
            "{}: {named} by the log{failed}",
            self.page_situation(before, p)
        )
    }

    /// Describes a page: what is known of its slots, its blocks on the device, its image in memory.
    fn page_situation(&self, s: &State, p: usize) -> String {
        let known = s.valid[p];
        let slot = match known.is {
            Is::Unknown => self.valid_slot(&newest(s, p)),
            _ => known.slot,
        };
        let is: &str = known.is.into();
        let memory = match &s.mem[p] {
            None => "out".to_owned(),
            Some(page) => {
                let state = if page.is_dirty() { "dirty" } else { "clean" };
                let base = if page.base == 0 { ", no base" } else { "" };
                format!("{state}, {} differ{base}", page.dirty.count_ones())
            }
        };
        let logged = if known.logged { ", logged" } else { "" };
        format!(
            "{}, {memory}; {is}{logged}; its slot {}, the other {}, log block {}",
            phase(s),
            on_device(s, p, self.spots_of(slot)),
            on_device(s, p, self.spots_of(1 - slot)),
            on_device(s, p, LOG_SPOT),
        )
    }
}

fn newest(s: &State, p: usize) -> Blocks {
    as_read(&s.dev[p].map(|place| place.newest()))
}

fn phase(s: &State) -> &'static str {
    if s.phase.is_up() { "up" } else { "redo" }
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..SPOTS).filter(move |i| set >> i & 1 == 1)
}

/// Describes whether these blocks hold anything, and whether that is durable.
fn on_device(s: &State, p: usize, spots: Set) -> &'static str {
    let places = || members(spots).map(|i| &s.dev[p][i]);
    let unflushed = places().any(|place| place.is_unflushed());
    let trimmed = places().all(|place| place.newest() == Block::TRIMMED);
    let lost = s.lost[p] & spots != 0;
    match (trimmed, unflushed) {
        _ if lost => "forgotten by a flush",
        (true, false) => "trimmed",
        (true, true) => "trimmed in the cache",
        (false, false) => "there",
        (false, true) => "there in the cache",
    }
}
