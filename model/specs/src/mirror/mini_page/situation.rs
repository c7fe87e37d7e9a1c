//! Describes the part of a state that a step depends on. An engine's tree, which is larger than any
//! model's, has these situations in common with a model.

use std::fmt::Write as _;

use super::records::{ABSENT, Kind, NOBODY, Page};
use super::state::{Call, NO_PAGE, State};
use super::{Action, MiniPage};

impl MiniPage {
    /// Describes a step: the actor and its call; the page's mini-page, the key's record there and
    /// in the leaf, the room, and who else has the page.
    #[must_use]
    pub fn situation(&self, s: &State, action: Action) -> String {
        let mut text = String::new();
        let c = match action {
            Action::EvictMini(p)
            | Action::CopyToTail(p)
            | Action::LockLeft(_, p)
            | Action::FindLeafFull(_, p) => {
                let page = s.page(p);
                mini(&mut text, page);
                dirty(&mut text, page);
                return text;
            }
            Action::Call(_, call) => {
                text.push_str(name(&call));
                if s.client.iter().any(|client| client.at != NO_PAGE) {
                    text.push_str(", others are under way");
                }
                return text;
            }
            Action::Return(c)
            | Action::ReadVersion(c)
            | Action::ReadChild(c)
            | Action::LockPage(c)
            | Action::Restart(c)
            | Action::ReadMini(c)
            | Action::ReadLeaf(c)
            | Action::Decline(c)
            | Action::Upgrade(c)
            | Action::Promote(c)
            | Action::WriteRecord(c)
            | Action::Grow(c)
            | Action::MergeToMirror(c)
            | Action::EvictMirror(c)
            | Action::ScanPage(c)
            | Action::GrowToMirror(c)
            | Action::LockInner(c)
            | Action::AllocateRight(c, _)
            | Action::ShortenLeft(c)
            | Action::InsertSeparator(c)
            | Action::LockRight(c)
            | Action::LockInnerToJoin(c)
            | Action::GiveUpJoin(c)
            | Action::MoveRecords(c)
            | Action::RemoveSeparator(c) => c,
        };
        let client = s.client(c);
        text.push_str(name(&client.call));
        if client.at != NO_PAGE {
            let page = s.page(client.at);
            mini(&mut text, page);
            match client.call {
                Call::Get { key, .. } | Call::Write { key, .. } => record(&mut text, page, key),
                Call::Scan { .. } | Call::Idle => dirty(&mut text, page),
            }
            if page.readers & !(1 << c) != 0 {
                text.push_str(", others read");
            }
            if page.writer != NOBODY && page.writer != c {
                text.push_str(", another one writes");
            }
        }
        if client.right != NO_PAGE {
            text.push_str("; on the right:");
            mini(&mut text, s.page(client.right));
            dirty(&mut text, s.page(client.right));
        }
        text
    }
}

fn name(call: &Call) -> &'static str {
    match call {
        Call::Idle => "nothing",
        Call::Get { .. } => "get",
        Call::Write { value: ABSENT, .. } => "delete",
        Call::Write { .. } => "put",
        Call::Scan { .. } => "scan",
    }
}

fn mini(text: &mut String, page: &Page) {
    text.push_str(match (page.mini.size, page.mini.mirror) {
        (0, _) => " no mini-page",
        (_, true) => " a mirror",
        (_, false) if page.mini.has_room() => " a mini-page with room",
        (_, false) => " a mini-page that is full",
    });
}

fn dirty(text: &mut String, page: &Page) {
    let mut records = page.mini.rec.iter();
    let (any, hot) = records.by_ref().fold((false, false), |(any, hot), r| {
        (any | r.is_dirty(), hot | (r.is_some() && r.hot()))
    });
    text.push_str(if any { ", dirty" } else { ", clean" });
    if hot {
        text.push_str(", used");
    }
}

fn record(text: &mut String, page: &Page, key: u8) {
    let record = page.mini.record(key);
    if record.is_some() {
        let kind = match record.kind() {
            Kind::Insert => "an insert",
            Kind::Cache => "a cache",
            Kind::Tombstone => "a tombstone",
            Kind::Phantom => "a phantom",
            Kind::None => "no",
        };
        // Writing to a string does not fail.
        let _ = write!(text, ", {kind} record");
        if record.hot() {
            text.push_str(", used");
        }
    }
    if page.covers(key) && page.in_leaf(key) != ABSENT {
        text.push_str(", in the leaf");
    }
}
