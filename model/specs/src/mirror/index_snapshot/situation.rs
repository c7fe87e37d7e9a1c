//! Describes the part of a state that a step depends on. An engine's store, which has more leaves
//! than any model, has these situations in common with a model.

use super::state::{Call, InSlot, Kind, Leaf, NO_SLOT, Phase, Stage, State, Step, at, bit, find};
use super::state::{has, in_index, size};
use super::{Action, IndexSnapshot};

impl IndexSnapshot {
    /// Describes what a step depends on, given the states before and after. A step that concerns
    /// several pages has a situation for each.
    #[must_use]
    pub fn situations(&self, before: &State, action: Action, after: &State) -> Vec<String> {
        let s = before;
        let lost = if after.losses > s.losses {
            ", lost"
        } else {
            ""
        };
        match action {
            Action::CallGet(..) | Action::Acknowledge(_) => vec![String::new()],
            Action::CallScan(_, back) => vec![way(back).into()],
            Action::CallWrite(_, _, delete) => vec![if delete { "delete" } else { "put" }.into()],
            Action::Descend(c) | Action::DescendAgain(c) | Action::Answer(c) => {
                vec![operation(&s.call[usize::from(c)]).into()]
            }
            Action::ReadLeaf(c) => vec![self.leaf_situation(s, s.call[usize::from(c)].page())],
            Action::CopyLeaf(c, to) | Action::CopyBack(c, to) => vec![self.copies(s, c, to)],
            Action::ChangeLeaf(c) => vec![format!(
                "{}{}",
                self.leaf_situation(s, s.call[usize::from(c)].page()),
                step(s)
            )],
            Action::CommitLog(n) if n == s.log_len => vec![format!("all{}", change(s))],
            Action::CommitLog(_) => vec![format!("a part{}", change(s))],
            Action::AppendSplit(p, fence, _) => {
                let leaf = s.leaf(p);
                let moved = (fence..leaf.upper).any(|k| leaf.map[at(k)] != 0);
                let moved = if moved {
                    "records move"
                } else {
                    "nothing moves"
                };
                vec![format!("{moved}{}", step(s))]
            }
            Action::AppendMerge(p) => {
                let right = find(&s.index, s.leaf(p).upper);
                let some = |page: u8| {
                    if size(&s.leaf(page).map) == 0 {
                        "empty"
                    } else {
                        "some"
                    }
                };
                vec![format!("{} and {}{}", some(p), some(right), step(s))]
            }
            Action::ChangeLeaves | Action::UpdateIndex => {
                vec![format!("{}{}", kind(s), step(s))]
            }
            Action::WritePage(p, _) => {
                let phase = if s.phase == Phase::Up { "up" } else { "redo" };
                vec![format!("{phase}{}{}{lost}", image(s, p), step(s))]
            }
            Action::FreePage(_) => vec![step(s)],
            Action::BeginCheckpoint => {
                let grown = if s.log_len > s.oldest {
                    "records"
                } else {
                    "none"
                };
                vec![format!("{grown}{}", change(s))]
            }
            Action::BeginSnapshot(_) => vec![change(s)],
            Action::ReadFence => {
                let page = after.checkpoint.page;
                vec![format!("{}{}", image(s, page), involved(s, page))]
            }
            Action::AddEntry | Action::AddChunk(..) => {
                let page = s.checkpoint.page;
                vec![format!("{}{}{lost}", image(s, page), involved(s, page))]
            }
            Action::EndSnapshot(_) => vec![format!("{}{lost}", change(s))],
            Action::WriteSuper | Action::FinishCheckpoint => {
                let fresh = s.checkpoint.sum.all().any(|entry| entry.version == 0);
                let fresh = if fresh {
                    ", names a page without image"
                } else {
                    ""
                };
                vec![format!("{}{fresh}", change(s))]
            }
            Action::Crash(..) => vec![self.end(s, after)],
            Action::Restart(_) => vec![self.end(s, after)],
            Action::RedoRecord => self.redoes(s, after),
            Action::FinishRedo => {
                let live = in_index(&s.index);
                let dead = self.slots().any(|p| !has(live, p) && !s.leaf(p).is_gone());
                vec![if dead { "pages are dead" } else { "all live" }.into()]
            }
            Action::FindDamage => vec![match s.is_readable() {
                true => "of a page".into(),
                false => "of a chunk".into(),
            }],
        }
    }

    fn leaf_situation(&self, s: &State, p: u8) -> String {
        let leaf = s.leaf(p);
        let first = if leaf.lower == 1 { "first" } else { "later" };
        let last = if leaf.upper == self.top() {
            ", last"
        } else {
            ""
        };
        format!("{first}{last}")
    }

    fn copies(&self, s: &State, c: u8, to: u8) -> String {
        let page = s.call[usize::from(c)].page();
        let Leaf { lower, upper, .. } = *s.leaf(page);
        let whole = if to == lower || to == upper {
            "to its end"
        } else {
            "a part"
        };
        format!("{}, {whole}", self.leaf_situation(s, page))
    }

    /// How a life ends, and what is left: a split, a merge or a checkpoint under way is forgotten.
    fn end(&self, s: &State, after: &State) -> String {
        let during = match s.phase {
            Phase::Up => "up",
            Phase::Cut | Phase::Killed => "redo",
            Phase::Damaged => "damaged",
        };
        let superblock = match s.checkpoint.at {
            Step::Recorded if after.newest.number > s.newest.number => ", the new superblock",
            Step::Recorded => ", not the new superblock",
            _ => "",
        };
        let cut = s.records().find(|(n, _)| *n > after.log_len);
        let log = match cut.map(|(_, record)| record.is) {
            None => ", the whole log".into(),
            Some(kind) => format!(", without a {}", <&str>::from(kind)),
        };
        let chain = if after.is_readable() { "" } else { ", damaged" };
        format!("{during}{superblock}{log}{chain}")
    }

    /// What redo of a record makes of each page that it names.
    fn redoes(&self, s: &State, after: &State) -> Vec<String> {
        let n = after.redone;
        let record = *s.record(n);
        let kind = <&str>::from(record.is);
        let of = |page: u8, side: &str| {
            let (was, is) = (s.leaf(page), after.leaf(page));
            let what = match (was.is_gone(), is.is_gone()) {
                (true, true) if has(s.chain, page) => "under a chunk",
                (true, true) => "is not there",
                (true, false) => "is built",
                (false, true) => "ends",
                (false, false) if is.lsn == n && was.lsn < n => "is changed",
                (false, false) if was.lsn == n => "has it",
                (false, false) => "is newer",
            };
            format!("{kind}, {side} {what}")
        };
        let mut all = vec![of(record.page, "its page")];
        if record.right != NO_SLOT {
            all.push(of(record.right, "the right page"));
        }
        all
    }
}

fn way(back: bool) -> &'static str {
    if back { "down" } else { "up" }
}

fn operation(call: &Call) -> &'static str {
    match *call {
        Call::Idle => "none",
        Call::Get { .. } => "get",
        Call::Write { .. } => "write",
        Call::Scan { back, .. } => way(back),
    }
}

fn kind(s: &State) -> &'static str {
    match s.change.at {
        Stage::None => "none",
        Stage::Logged | Stage::Changed => <&str>::from(s.record(s.change.lsn).is),
    }
}

/// The split or merge under way.
fn change(s: &State) -> String {
    match s.change.at {
        Stage::None => String::new(),
        stage => format!(", {} {}", kind(s), <&str>::from(stage)),
    }
}

/// The split or merge under way, and whether it is the page's.
fn involved(s: &State, page: u8) -> String {
    let own = [s.change.page, s.change.right].contains(&page) && page != NO_SLOT;
    match s.change.at {
        Stage::None => String::new(),
        _ if own => format!("{}, of this page", change(s)),
        _ => change(s),
    }
}

/// The checkpoint's step.
fn step(s: &State) -> String {
    match s.checkpoint.at {
        Step::None => String::new(),
        at => format!(", checkpoint {}", <&str>::from(at)),
    }
}

/// What is known of a page's image.
fn image(s: &State, p: u8) -> String {
    let record = s.records().rev().find(|(_, record)| record.names(p));
    let built = record.is_some_and(|(_, record)| record.is == Kind::Split && record.right == p);
    let gone = if s.leaf(p).is_gone() { ", gone" } else { "" };
    let retired = if s.retired_pages() & bit(p) != 0 {
        ", retired"
    } else {
        ""
    };
    let dirty = if s.is_dirty(p) { ", dirty" } else { "" };
    let image = match s.place(p).newest() {
        InSlot::Image(_) if s.version[at(p)] == 0 && built => ", no image known",
        InSlot::Image(_) => ", image",
        InSlot::Chunk { .. } => ", chunk in its slot",
        InSlot::Zeros => ", no image",
    };
    format!("{image}{gone}{retired}{dirty}")
}
