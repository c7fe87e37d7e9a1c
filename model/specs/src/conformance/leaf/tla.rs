//! The steps of [`LeafBuffering`] in TLA+.

use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::mirror::wide::leaf_buffering::unbounded::{InSlot, NOTHING, RECOVERY};
use crate::mirror::wide::leaf_buffering::{Action, LeafBuffering};
use crate::{Mirror, Value};

/// The constants of the spec, for so many writers, keys, slots of a buffer node, and writes that
/// were asked for.
pub(super) fn constants(writers: usize, (keys, batch): (usize, usize), asked: usize) -> Constants {
    let (leaves, slots, chunks, entries) = LeafBuffering::MOST_PLACES;
    vec![
        ("Clients", named('c', writers)),
        ("Keys", numbers(keys)),
        ("Values", numbers(asked + 1)),
        ("Leaves", numbers(leaves)),
        ("Slots", numbers(slots)),
        ("Chunks", numbers(chunks)),
        ("Entries", numbers(entries)),
        ("Batch", Value::int(batch as u32)),
        ("Absent", Value::model("Absent")),
        ("Pending", Value::model("Pending")),
        ("Bug", Value::str("none")),
    ]
}

/// Whether the engine takes a step as the spec does. Otherwise it chooses what the spec does not:
/// slots, leaves, the key at which a leaf is split, the keys that are replayed together.
pub(super) fn is_exact(action: &Action) -> bool {
    !matches!(
        action,
        Action::StoreRecords(_)
            | Action::StoreHeader(_)
            | Action::StoreNewLeaf(_)
            | Action::StoreLink(_)
            | Action::MoveRecords(_)
            | Action::StoreMerged(_)
            | Action::LatchLeft(_)
            | Action::Replay
    )
}

/// A value of the spec.
pub(super) fn content(of: u16) -> String {
    match of {
        NOTHING => "Absent".into(),
        n => n.to_string(),
    }
}

fn writer(w: usize) -> String {
    match w {
        RECOVERY => "Recoverer".into(),
        w => format!("c{}", w + 1),
    }
}

/// The steps that store the header of a leaf.
pub(super) fn header_steps(w: usize) -> String {
    let w = writer(w);
    match w.as_str() {
        "Recoverer" => format!("StoreHeader({w}) \\/ StoreLink({w})"),
        _ => format!("StoreHeader({w}) \\/ StoreLink({w}) \\/ StoreMerged({w})"),
    }
}

/// What is claimed of records that are stored: that these are those of the batch.
pub(super) fn stored(w: usize, records: &[InSlot]) -> String {
    let name = writer(w);
    let mut keys: Vec<u8> = records.iter().map(|(_, kv)| kv.key).collect();
    keys.sort_unstable();
    let values = records
        .iter()
        .map(|(_, kv)| format!(" /\\ job[{name}].batch[{}] = {}", kv.key, content(kv.value)));
    let values: String = values.collect();
    let keys: Vec<String> = keys.iter().map(u8::to_string).collect();
    let kept = format!("Kept(job[{name}].leaf, job[{name}].batch)");
    format!(
        "StoreRecords({name}) /\\ {kept} = {{{}}}{values}",
        keys.join(", ")
    )
}

impl InTla for LeafBuffering {
    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallGet(c, k) | Action::CallWrite(c, k) => {
                format!("{label}(c{0}) /\\ call'[c{0}].key = {k}", c + 1)
            }
            Action::ReadKey(w)
            | Action::AnswerGet(w)
            | Action::Latch(w)
            | Action::Finish(w)
            | Action::AppendLog(w)
            | Action::FenceLog(w)
            | Action::StoreRecords(w)
            | Action::StoreHeader(w)
            | Action::FenceHeader(w)
            | Action::StoreNewLeaf(w)
            | Action::StoreLink(w)
            | Action::FenceLink(w)
            | Action::LatchLeft(w)
            | Action::MoveRecords(w)
            | Action::StoreMerged(w)
            | Action::FenceMerged(w) => format!("{label}({})", writer(w.into())),
            Action::ScanBuffer(l) => format!("ScanBuffer({l})"),
            _ => label.into(),
        }
    }
}
