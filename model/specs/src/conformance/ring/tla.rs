//! The steps of [`CircularBuffer`] in TLA+.

use super::episode::{Episode, SIZES};
use crate::Mirror;
use crate::Value;
use crate::conformance::behaviour::{Constants, InTla, named};
use crate::mirror::wide::circular_buffer::{Action, CircularBuffer};

/// The constants of the spec in an episode.
pub(super) fn constants(episode: &Episode, in_place: u8) -> Constants {
    let absent = || Value::model("Absent");
    let Value::Set(values) = named('v', CircularBuffer::VALUES) else {
        unreachable!("a set")
    };
    let contents = values.iter().cloned().chain([absent()]);
    vec![
        ("Clients", named('c', episode.clients.into())),
        ("Pages", named('p', episode.pages.into())),
        ("Contents", Value::set(contents)),
        ("Values", Value::Set(values)),
        ("Absent", absent()),
        ("Pending", Value::model("Pending")),
        ("None", Value::model("None")),
        ("Capacity", Value::int(episode.capacity)),
        ("InPlace", Value::int(in_place)),
        (
            "Sizes",
            Value::set(SIZES.iter().map(|size| Value::int(*size))),
        ),
        ("Bug", Value::str("none")),
    ]
}

impl InTla for CircularBuffer {
    const REPLACED: &'static str = "    Forgotten <- AfterALap\n";

    const OPERATORS: &'static str = r#"
(* Addresses begin again after each lap. *)
AfterALap(h) == IF h >= Capacity THEN Capacity ELSE 0
"#;

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::Close => label.into(),
            Action::Grow(c, size) | Action::Create(c, size) | Action::CopyToTail(c, size) => {
                format!("{label}(c{0}) /\\ work'[c{0}].size = {size}", c + 1)
            }
            Action::PopFreeList(c, at) => {
                format!("PopFreeList(c{0}) /\\ work'[c{0}].new = {at}", c + 1)
            }
            Action::Call(c, _)
            | Action::LockPage(c)
            | Action::Read(c)
            | Action::Write(c)
            | Action::Return(c)
            | Action::Reuse(c)
            | Action::PassOver(c)
            | Action::Allocate(c)
            | Action::Pad(c)
            | Action::Full(c)
            | Action::Copy(c)
            | Action::Publish(c)
            | Action::Deallocate(c)
            | Action::Claim(c)
            | Action::Retry(c)
            | Action::Skip(c)
            | Action::Unlist(c)
            | Action::FindPage(c)
            | Action::LockVictim(c)
            | Action::WriteLeaf(c)
            | Action::Unmap(c)
            | Action::Finish(c) => format!("{label}(c{})", c + 1),
        }
    }
}
