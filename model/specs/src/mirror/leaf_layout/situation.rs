//! Describes the part of a state that a step depends on. An engine's store, which has more leaves
//! and other lengths than any model, has these situations in common with a model.

use super::pages::Remedy;
use super::room::N;
use super::state::{ABSENT, Call, Content, Is, Leaf, PENDING, Phase, State, count};
use super::{Action, LeafLayout};

impl LeafLayout {
    /// Describes what a step depends on, given the states before and after. A step that concerns
    /// several pages has a situation for each.
    #[must_use]
    pub fn situations(&self, before: &State, action: Action, after: &State) -> Vec<String> {
        let s = before;
        vec![match action {
            Action::CallGet(..) | Action::Acknowledge(_) => String::new(),
            Action::CallWrite(c, _) => match after.call[usize::from(c)] {
                Call::Write { value: ABSENT, .. } => "delete".into(),
                _ => "put".into(),
            },
            Action::ChangeLeaf(c) => self.changes(s, c),
            Action::LayOut(c) => format!("{}, {}", self.refusal(s, c), options(s)),
            Action::Divide(c, layout) => {
                let right = <&str>::from(layout);
                format!(
                    "{}, {}, right {right}",
                    self.refusal(s, c),
                    self.split(s, c)
                )
            }
            Action::ReadLeaf(c) => self.reads(s, c),
            Action::AnswerGet(c) => match s.call[usize::from(c)] {
                Call::Get { got: ABSENT, .. } => "absent".into(),
                _ => "found".into(),
            },
            Action::Adapt(p, layout) => format!("{} to {}", name(s.page(p)), <&str>::from(layout)),
            Action::Prepare(p) | Action::Merge(p) => {
                let right = self.right_neighbour(s, p).map_or(p, |q| q);
                format!("{} and {}", filled(s.page(p)), filled(s.page(right)))
            }
            Action::CommitLog => kinds(s, s.durable, s.log_len),
            Action::WritePage(p) => {
                let phase = if s.is_up() { "up" } else { "redo" };
                let image = s.images(p).last().copied().unwrap_or_default();
                format!("{phase}, {} over {}", name(s.page(p)), name(&image))
            }
            Action::Checkpoint => kinds(s, s.redo_start, after.redo_start),
            Action::Crash(..) | Action::Restart(..) => self.end(s, after),
            Action::RedoRecord => return self.redoes(s, after),
            Action::FinishRedo => match after.phase == Phase::Damaged {
                true => "damaged".into(),
                false => options(s).into(),
            },
        }]
    }

    /// The key's number and value of a client's write.
    fn write(&self, s: &State, c: u8) -> Option<(usize, Content)> {
        match s.call[usize::from(c)] {
            Call::Write { key, value, .. } => Some((key.into(), value)),
            _ => None,
        }
    }

    fn changes(&self, s: &State, c: u8) -> String {
        let Some((k, value)) = self.write(s, c) else {
            return String::new();
        };
        let (_, _, leaf) = self.leaf_of(s, k as u8);
        let old = leaf.map[k];
        let what = match (old, value) {
            (ABSENT, ABSENT) => "deletes nothing",
            (_, ABSENT) => "deletes",
            (ABSENT, _) => "inserts",
            _ if self.length(old) == self.length(value) => "replaces",
            _ => "replaces another length",
        };
        format!("{what}, {}", name(leaf))
    }

    /// Why the leaf of a write refuses it.
    fn refusal(&self, s: &State, c: u8) -> String {
        let Some((k, _)) = self.write(s, c) else {
            return String::new();
        };
        let (_, key, leaf) = self.leaf_of(s, k as u8);
        let why = match () {
            () if leaf.layout.is_general() || self.sizes.is_semi() => "no room",
            () if !self.has_place(leaf, key) => "no place",
            () => "another length",
        };
        let old = if leaf.map[k] == ABSENT {
            ""
        } else {
            ", replaces"
        };
        format!("{}, {why}{old}", name(leaf))
    }

    /// Where the leaf of a write is split.
    fn split(&self, s: &State, c: u8) -> &'static str {
        let Some((k, value)) = self.write(s, c) else {
            return "";
        };
        let (_, key, leaf) = self.leaf_of(s, k as u8);
        match self.remedy(s.allows, leaf, key, value) {
            Remedy::Split(at, _) if count(&self.sides(&leaf.map, at).1) == 0 => "behind all",
            Remedy::Split(at, _) if at == self.middle(leaf) => "in the middle",
            Remedy::Split(..) => "elsewhere",
            Remedy::Relayout(_) => "",
        }
    }

    fn reads(&self, s: &State, c: u8) -> String {
        let Call::Get { key, got: PENDING } = s.call[usize::from(c)] else {
            return String::new();
        };
        let (_, _, leaf) = self.leaf_of(s, key);
        let there = match leaf.map[usize::from(key)] {
            ABSENT => "absent",
            _ => "found",
        };
        format!("{there}, {}", name(leaf))
    }

    /// How a life ends, and what is left.
    fn end(&self, s: &State, after: &State) -> String {
        let during = match s.phase {
            Phase::Damaged => "damaged",
            _ if s.is_up() => "up",
            _ => "redo",
        };
        let cut = s.first(s.log_len).find(|(n, _)| *n > after.log_len);
        let log = match cut {
            None => "the whole log".into(),
            Some((_, record)) => format!("without a {}", <&str>::from(record.is)),
        };
        let older = (1..=self.pages).any(|p| {
            let layout = s.layout_at(p, after.log_len);
            let is = after.page(p).layout;
            after.is_live(p) && is != layout
        });
        let older = if older {
            ", a page in an older layout"
        } else {
            ""
        };
        format!("{during}, {log}{older}")
    }

    /// What redo of a record makes of each page that it names.
    fn redoes(&self, s: &State, after: &State) -> Vec<String> {
        let n = after.redone;
        let record = s.log[n as usize - 1];
        let kind = <&str>::from(record.is);
        let of = |page: u8, side: &str| {
            let (was, is) = (s.page(page), after.page(page));
            let what = match (was.is_there(), is.is_there()) {
                (false, false) => "is not there".into(),
                (false, true) => format!("is built {}", name(is)),
                (true, false) => format!("ends {}", name(was)),
                (true, true) if is.lsn == n && was.lsn < n => format!("is changed {}", name(was)),
                (true, true) if was.lsn == n => format!("has it, {}", name(was)),
                (true, true) => format!("is newer, {}", name(was)),
            };
            let to = match record.is {
                Is::Relayout => format!(" to {}, {}", <&str>::from(record.layout), options(s)),
                _ => String::new(),
            };
            format!("{kind}{to}, {side} {what}")
        };
        let mut all = vec![of(record.page, "its page")];
        if record.right != 0 {
            all.push(of(record.right, "the right page"));
        }
        all
    }
}

fn name(leaf: &Leaf) -> &'static str {
    leaf.layout.into()
}

fn filled(leaf: &Leaf) -> String {
    let some = if count(&leaf.map) == 0 {
        "empty"
    } else {
        "some"
    };
    format!("{} {some}", name(leaf))
}

fn options(s: &State) -> &'static str {
    if s.allows {
        "may be dense"
    } else {
        "may not be dense"
    }
}

/// The kinds of the records behind `from`, up to `to`.
fn kinds(s: &State, from: N, to: N) -> String {
    let has = |is: Is| s.first(to).any(|(n, record)| n > from && record.is == is);
    let all = [Is::Put, Is::Relayout, Is::Split, Is::Merge];
    let found = all.into_iter().filter(|is| has(*is));
    found.map(<&str>::from).collect::<Vec<_>>().join(", ")
}
