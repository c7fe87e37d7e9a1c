//! Describes the part of a state that a step depends on. An engine's store, which has more pages
//! than any model, has these situations in common with a model.

use super::state::{InSlot, NO_SLOT, Phase, State, Step, Writing, bit, slot_bit};
use super::{Action, CopyOnWrite, Kind};

impl CopyOnWrite {
    /// Describes what a step depends on, given the states before and after. A step that concerns
    /// several pages has a situation for each.
    #[must_use]
    pub fn situations(&self, before: &State, action: Action, after: &State) -> Vec<String> {
        let how = if before.each { "each" } else { "checkpoints" };
        let at = |rest: String| vec![format!("{how}, {}{rest}", phase(before))];
        match action {
            Action::CallGet(..) | Action::CallWrite(..) | Action::AnswerGet(_) => at(String::new()),
            Action::Acknowledge(_) => at(String::new()),
            Action::FailCall(c) => at(format!(", {:?}", after.call[usize::from(c)])),
            Action::CommitLog(n) if n == before.log_len => at(", all".into()),
            Action::CommitLog(_) => at(", a part".into()),
            Action::ReadPage(c)
            | Action::BuildPage(c)
            | Action::ChangePage(c)
            | Action::DropPage(c) => {
                let (super::Call::Get { page, .. } | super::Call::Write { page, .. }) =
                    before.call[usize::from(c)]
                else {
                    return Vec::new();
                };
                at(self.page_situation(before, page.into()))
            }
            Action::WriteImage(p, slot) => {
                let new = if before.slot(slot).all()[0] == InSlot::Zeros {
                    "never used"
                } else {
                    "used before"
                };
                at(format!(
                    "{}, to a slot {new}{}",
                    self.page_situation(before, p.into()),
                    step(before)
                ))
            }
            Action::FreePage(p) => at(self.page_situation(before, p.into())),
            Action::NameImage => match before.writing {
                Writing::Image { page, .. } => {
                    at(self.page_situation(before, page.into()) + &step(before))
                }
                _ => Vec::new(),
            },
            Action::WriteTable => {
                let held = if self.held(before) == 0 {
                    "none"
                } else {
                    "some"
                };
                at(format!(", {held} held{}", step(before)))
            }
            Action::FinishTable => match before.writing {
                Writing::Table(left) => {
                    let left = if left == 0 { "none" } else { "some" };
                    at(format!(", {left} left{}", step(before)))
                }
                _ => Vec::new(),
            },
            Action::FlushDevice | Action::FailFlush => {
                at(format!("{}{}", unflushed(before), step(before)))
            }
            Action::BeginCheckpoint | Action::PersistTable | Action::WriteSuper => {
                at(String::new())
            }
            Action::WriteSnapshot(_) | Action::FinishCheckpoint => {
                at(format!(", place {}", before.newest.number % 2))
            }
            Action::Crash(..) | Action::Restart(_) => {
                let number = match after.newest.number.cmp(&before.newest.number) {
                    std::cmp::Ordering::Less => "an older superblock",
                    std::cmp::Ordering::Equal => "the superblock",
                    std::cmp::Ordering::Greater => "a newer superblock",
                };
                let failed = if before.poisoned {
                    ", after a failed flush"
                } else {
                    ""
                };
                let lost = self.pages().any(|p| after.table[p] != before.table[p]);
                let table = if lost { "another" } else { "the same" };
                let unflushed = unflushed(before);
                at(format!("{unflushed}{failed}: {number}, {table} table"))
            }
            Action::RedoRecord => self
                .pages()
                .filter(|p| before.page[*p] != after.page[*p])
                .flat_map(|p| at(self.page_situation(before, p)))
                .collect(),
            Action::FinishRedo => {
                let dead = self.pages().any(|p| after.table[p] != before.table[p]);
                at(if dead { ", pages are dead" } else { "" }.into())
            }
            Action::Open => at(String::new()),
        }
    }

    fn page_situation(&self, s: &State, p: usize) -> String {
        let exists = if s.index & bit(p) != 0 {
            ""
        } else {
            ", absent"
        };
        let retired = if s.retired[p] > 0 { ", retired" } else { "" };
        let dirty = if s.is_dirty(p) { ", dirty" } else { ", clean" };
        let place = match s.table[p] {
            NO_SLOT => "no image",
            slot if self.persisted(s) & slot_bit(slot) == 0 => "moved",
            _ => "in the table's slot",
        };
        let last = s.records().rev().find(|(_, r)| usize::from(r.page) == p);
        let built = last.is_some_and(|(_, r)| r.kind == Kind::Build && s.table[p] == NO_SLOT);
        let built = if built { ", new" } else { "" };
        format!("{exists}{retired}{dirty}, {place}{built}")
    }
}

fn phase(s: &State) -> &'static str {
    match s.phase {
        Phase::Up => "up",
        Phase::Cut | Phase::Killed => "redo",
        Phase::Clearing => "clearing",
    }
}

fn step(s: &State) -> String {
    match s.checkpoint.at {
        Step::None => String::new(),
        at => format!(", checkpoint {}", <&str>::from(at)),
    }
}

/// Describes what is written and not flushed.
fn unflushed(s: &State) -> String {
    let mut text = String::new();
    if s.slot_dev.iter().any(|place| place.is_unflushed()) {
        text += ", slots";
    }
    if s.table_dev.iter().any(|place| place.is_unflushed()) {
        text += ", table";
    }
    if s.super_dev.iter().any(|place| place.is_unflushed()) {
        text += ", superblock";
    }
    text
}
