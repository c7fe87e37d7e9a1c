//! Describes the part of a state that a step depends on. An engine's store, which is larger than
//! any model's, has these situations in common with a model.

use std::collections::BTreeSet;

use super::Action;
use super::constants::SurrogateBuffer;
use super::flush::{from, keys_of};
use super::look::Is;
use super::state::{At, Buffered, Call, State};
use super::words::{ABSENT, Content, members};
use crate::mirror::Phase;

impl SurrogateBuffer {
    /// Describes what a step concerns: who takes it, the state of buffer and leaf, and the pairs
    /// that are flushed. An end concerns words of several kinds.
    #[must_use]
    pub fn situations(&self, s: &State, action: Action) -> Vec<String> {
        match action {
            Action::Crash(..) | Action::Restart => self.endings(s),
            _ => vec![self.situation(s, action)],
        }
    }

    fn situation(&self, s: &State, action: Action) -> String {
        match action {
            Action::CallGet(..) | Action::AnswerGet(_) | Action::Acknowledge(_) => String::new(),
            Action::CallWrite(..) | Action::OpenLog(..) => String::new(),
            Action::Crash(..) | Action::Restart => String::new(),
            Action::ReadKey(c) => self.reading(s, c.into()),
            Action::AppendEntry(c) | Action::WriteBackEntry(c) | Action::BufferPair(c) => {
                match s.call[usize::from(c)] {
                    Call::Write { key, value, .. } => change(s, key, value),
                    _ => String::new(),
                }
            }
            Action::ReplayEntry(space, i) => {
                let pair = s.entry_at((space.into(), i.into())).pair;
                change(s, pair.key, pair.value)
            }
            Action::FinishReplay => match s.phase {
                Phase::Killed => "the process had ended".to_owned(),
                _ => "the power had failed".to_owned(),
            },
            Action::StartFlush(n) => self.starting(s, n.into()),
            Action::ClearSlots(n)
            | Action::WritePairs(n)
            | Action::SetBitmap(n)
            | Action::FinishMerge(n) => self.merging(s, n.into()),
            Action::PrepareLeaf(n)
            | Action::LinkLeaf(n)
            | Action::SwitchSibling(n)
            | Action::FinishSplit(n) => self.splitting(s, n.into()),
            Action::SplitNode(n) => {
                let pairs = s.nodes[usize::from(n)].buffer.len();
                let pairs = if pairs > 0 { "pairs" } else { "nothing" };
                format!("{pairs} in the buffer")
            }
        }
    }

    fn reading(&self, s: &State, c: usize) -> String {
        let Call::Get { key, .. } = s.call[c] else {
            return String::new();
        };
        let node = &s.nodes[s.node_of(key)];
        let in_leaf = s.leaf_now(node.leaf_of(key)).keys() >> key & 1 == 1;
        match (node.in_buffer(key), in_leaf) {
            (Some(pair), _) => format!("{} in the buffer", op(pair.value)),
            (None, true) => "in the leaf".to_owned(),
            (None, false) => "nowhere".to_owned(),
        }
    }

    fn starting(&self, s: &State, n: usize) -> String {
        let node = &s.nodes[n];
        let full = if self.is_full(node) {
            "a full buffer"
        } else {
            "a buffer with room"
        };
        let todo = self.targets(s, node);
        let to = match todo.first() {
            Some(l) if self.splits(s, node, *l) => "a leaf that splits",
            _ if todo.len() > 1 => "several leaves",
            _ => "a leaf",
        };
        format!("{full}, to {to}{}", when(s))
    }

    fn merging(&self, s: &State, n: usize) -> String {
        let node = &s.nodes[n];
        let Some(l) = node.todo.first() else {
            return String::new();
        };
        let group = self.group_of(node, *l);
        let replaces = keys_of(&group) & s.leaf_now(*l).keys() != 0;
        let replaces = if replaces {
            "keys in the leaf"
        } else {
            "new keys"
        };
        // Once the header is stored, the leaf has the keys.
        let replaces = match node.at {
            At::Marked => String::new(),
            _ => format!(" of {replaces}"),
        };
        format!("{}{replaces}{}", changes(&group), when(s))
    }

    fn splitting(&self, s: &State, n: usize) -> String {
        let node = &s.nodes[n];
        let Some(l) = node.todo.first() else {
            return String::new();
        };
        let low = match node.at {
            At::Idle => {
                let keys = self.keys_after(s, node, *l);
                let half = keys.count_ones() as usize / 2;
                members(keys).nth(half).unwrap_or(0) as u8
            }
            _ => s.leaf_now(node.fresh).low,
        };
        let keys = keys_of(&self.group_of(node, *l));
        let upper = from(low);
        let to = match (keys & !upper != 0, keys & upper != 0) {
            (true, true) => "pairs for both leaves",
            (true, false) => "pairs for the old leaf",
            _ => "pairs for the new leaf",
        };
        format!("{to}{}", when(s))
    }

    /// What an end finds: the kinds of words in doubt, each alone, since each survives or not by
    /// itself. The rest of the state is forgotten.
    fn endings(&self, s: &State) -> Vec<String> {
        let of = |kind: &str| format!("{kind} in doubt{}", when(s));
        let listed = s.listed();
        let kind = |is: Is| match is {
            Is::Header(l) | Is::Low(l) | Is::Next(l, _) | Is::Slot(l, _)
                if !listed.contains(&l) =>
            {
                "a word of a leaf that nothing points to"
            }
            Is::Header(_) => "a header",
            Is::Low(_) => "a low",
            Is::Next(..) => "a sibling pointer",
            Is::Slot(..) => "a slot",
            Is::Pair(..) => "an entry's pair",
            Is::Meta(..) => "an entry's number",
        };
        let dirty = Is::all().filter(|is| s.count(*is) > 1);
        let kinds: BTreeSet<&str> = dirty.map(kind).collect();
        if kinds.is_empty() {
            return vec![of("nothing")];
        }
        kinds.into_iter().map(of).collect()
    }
}

/// A change of a key, and whether one is buffered.
fn change(s: &State, key: u8, value: Content) -> String {
    let again = s.nodes[s.node_of(key)].in_buffer(key).is_some();
    let again = if again { "a buffered key" } else { "a key" };
    format!("{} of {again}", op(value))
}

fn op(value: Content) -> &'static str {
    if value == ABSENT { "a delete" } else { "a put" }
}

fn changes(group: &[Buffered]) -> &'static str {
    let deletes = group.iter().filter(|pair| pair.value == ABSENT).count();
    match deletes {
        0 => "puts",
        n if n == group.len() => "deletes",
        _ => "puts and deletes",
    }
}

fn when(s: &State) -> &'static str {
    if s.phase.is_up() { "" } else { ", in recovery" }
}
