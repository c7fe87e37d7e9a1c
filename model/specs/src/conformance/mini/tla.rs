//! The steps of [`MiniPage`] in TLA+.

use super::judge::Judge;
use super::scale::{LEAF_CAPACITY, Leaf, Row};
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::holds;
use crate::mirror::wide::mini_page::records::{ABSENT, Content, PENDING};
use crate::mirror::wide::mini_page::{Action, MiniPage};
use crate::{Mirror, Value};

impl Judge {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        let keys = usize::from(self.scale.len());
        vec![
            ("Clients", named('c', usize::from(self.nobody) + 1)),
            ("Keys", numbers(keys)),
            ("Values", named('v', usize::from(PENDING) - 1)),
            ("Absent", Value::model("Absent")),
            ("Pending", Value::model("Pending")),
            ("Pages", numbers(keys)),
            (
                "Sizes",
                Value::set(self.sizes.iter().copied().map(Value::int)),
            ),
            ("LeafCapacity", Value::int(LEAF_CAPACITY)),
            ("Bug", Value::str("none")),
        ]
    }
}

/// A value of the spec.
pub(super) fn content(of: Content) -> String {
    match of {
        ABSENT => "Absent".into(),
        PENDING => "Pending".into(),
        n => format!("v{n}"),
    }
}

/// What is claimed of the records of `mini`: that these are all. With `bits`, their reference bits
/// are, too.
pub(super) fn records(mini: &str, rows: &[Row], bits: bool) -> String {
    let mut parts = Vec::new();
    for (key, kind, value, hot) in rows {
        let record = format!("{mini}.rec[{key}]");
        let kind: &str = kind.into();
        parts.push(format!(
            "{record}.kind = \"{kind}\" /\\ {record}.value = {}",
            content(*value)
        ));
        if bits {
            parts.push(format!("{record}.hot = {}", Value::Bool(*hot)));
        }
    }
    let keys: Vec<String> = rows.iter().map(|row| row.0.to_string()).collect();
    parts.push(format!(
        "\\A k \\in Keys \\ {{{}}} : {mini}.rec[k].kind = \"none\"",
        keys.join(", ")
    ));
    holds(&parts.join(" /\\ "))
}

/// What is claimed of the leaf page of `p`, whose records are `image`: that it is this.
pub(super) fn leaf(p: u8, image: &str, is: &Leaf) -> String {
    let (low, high, records) = is;
    let values = records
        .iter()
        .map(|(key, value)| format!("image[{key}] = {}", content(*value)));
    let values: Vec<String> = values.collect();
    let fences = format!("low[{p}] = {low} /\\ high[{p}] = {high}");
    let count = format!("Count(image) = {}", records.len());
    let all = [vec![fences, count], values].concat();
    holds(&format!("LET image == {image} IN {}", all.join(" /\\ ")))
}

/// No record of a mini-page is dirty.
pub(super) fn clean(p: u8) -> String {
    holds(&format!(
        "\\A k \\in Keys : mini[{p}].rec[k].kind \\notin {{\"insert\", \"tombstone\"}}"
    ))
}

impl InTla for MiniPage {
    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::LockLeft(c, p) | Action::FindLeafFull(c, p) => {
                format!("{label}(c{}, {p})", c + 1)
            }
            Action::EvictMini(p) | Action::CopyToTail(p) => format!("{label}({p})"),
            Action::Call(c, _)
            | Action::Return(c)
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
            | Action::RemoveSeparator(c) => format!("{label}(c{})", c + 1),
        }
    }
}
