//! Describes the part of a state that a step depends on. An engine's log, which has more blocks
//! than any model, has these situations in common with a model.

use super::format::{Carry, Content, N, Super};
use super::state::{Call, Packing, Phase, State, Step};
use super::{Action, RedoLog};

impl RedoLog {
    /// Describes a step, given the state before it.
    #[must_use]
    pub fn situation(&self, s: &State, action: Action, after: &State) -> String {
        let form: &str = s.packing.into();
        let flight = if s.flying == (0, 0) {
            ""
        } else {
            ", a flush in flight"
        };
        match action {
            Action::CallAppend(c, len) => {
                let call = match s.call[c] {
                    Call::Refused => "after a refused one",
                    Call::Unknown => "after one without an answer",
                    _ => "after an answer",
                };
                format!("{}, {call}", self.length(len))
            }
            Action::AppendRecord(c) | Action::RefuseAppend(c) => {
                format!("{form}, {}{flight}", self.record(s, c))
            }
            Action::Acknowledge(_) | Action::Leave(_) => {
                let failed = if s.poisoned {
                    ", a flush has failed"
                } else {
                    ""
                };
                format!("{form}{flight}{failed}")
            }
            Action::FailCall(c) => {
                let at = match s.call[c].awaited() {
                    Some(_) => "in the buffer",
                    None => "not appended",
                };
                format!("{form}, {at}{flight}")
            }
            Action::WriteLog => format!("{form}, {}", self.flush(s)),
            Action::CompleteFlush | Action::FailFlush | Action::FailWrite(_) => {
                let phase: &str = s.phase.into();
                format!("{phase}, {form}{flight}{}", written(s))
            }
            Action::BeginCheckpoint => format!("{form}{flight}, {}", unwritten(s)),
            Action::WriteSuper | Action::FinishCheckpoint => {
                format!("{form}{flight}, {}{}", unwritten(s), written(s))
            }
            Action::WriteWitness => {
                let place = &s.log_dev[self.place(self.witness_at(s))];
                format!("{form}, over {}", under(&place[place.len() - 1]))
            }
            Action::Close => format!("{form}{}", written(s)),
            Action::Crash(_) | Action::Restart => {
                let phase: &str = s.phase.into();
                let failed = if s.poisoned {
                    ", a flush has failed"
                } else {
                    ""
                };
                let step = match s.checkpoint.0 {
                    Step::None => "",
                    Step::Begun => ", a checkpoint begun",
                    Step::Recorded => ", a checkpoint recorded",
                };
                let less = match after.super_dev.last() == s.super_dev.last() {
                    true => "",
                    false => ", an older superblock",
                };
                let left = self.log_left(&after.newest(), after.newest_super());
                format!("{phase}, {form}{flight}{failed}{step}{less}: {left}")
            }
            Action::Rot(p) => format!("of {}", under(&s.log_dev[p][0])),
            Action::OpenLog(next) => {
                let phase: &str = s.phase.into();
                let next: &str = next.into();
                let opens = match after.phase {
                    Phase::Damaged => "refused",
                    _ => next,
                };
                let left = self.log_left(&s.newest(), s.newest_super());
                format!("{phase}, {form}, then {opens}{}: {left}", written(s))
            }
            Action::RecordEpoch(moves) => {
                let redo = if moves { "from there on" } else { "as before" };
                format!("redo {redo}{}", written(s))
            }
            Action::FlushAgain | Action::MarkEnd | Action::FlushMark | Action::Open => {
                format!("{form}{}", written(s))
            }
        }
    }

    fn length(&self, len: N) -> &'static str {
        match len.cmp(&self.units) {
            std::cmp::Ordering::Less => "less than a block",
            std::cmp::Ordering::Equal => "a block",
            std::cmp::Ordering::Greater => "more than a block",
        }
    }

    fn record(&self, s: &State, c: usize) -> String {
        let Call::Append { len, .. } = s.call[c] else {
            return String::new();
        };
        let at = self.next(s) % self.units;
        let from = if at == 0 {
            "a new block"
        } else {
            "a begun block"
        };
        let to = match (at + len).cmp(&self.units) {
            std::cmp::Ordering::Less => "inside it",
            std::cmp::Ordering::Equal => "to its end",
            std::cmp::Ordering::Greater => "beyond its end",
        };
        let empty = if s.buffer.is_empty() {
            ", the first"
        } else {
            ""
        };
        format!("in {from}, {to}{empty}")
    }

    /// What a flush is about to write.
    fn flush(&self, s: &State) -> String {
        let blocks = (s.buffer.len() as N).div_ceil(self.units);
        let many = if blocks == 1 {
            "one block"
        } else {
            "several blocks"
        };
        let again = match s.durable > s.buffer_at * self.units {
            true => "its first once more",
            false => "the first time",
        };
        let starts = match s.buffer_at == s.starts_at {
            true => ", the epoch's first",
            false => "",
        };
        let place = &s.log_dev[self.place(s.buffer_at + blocks - 1)];
        let lap = under(&place[place.len() - 1]);
        format!("{many}, {again}{starts}, the last over {lap}")
    }

    /// Where the log ends that recovery reads, and why.
    fn log_left(&self, blocks: &[Content], of: Super) -> String {
        let walk = self.read_log(blocks, of);
        let records = match walk.found.len() {
            0 => "no record",
            _ => "records",
        };
        let carry = match walk.carry {
            Carry::None => "",
            Carry::Dead => ", behind a dead one",
            Carry::Begun(_) => ", and one cut short",
        };
        let end = &blocks[self.place(walk.stop)];
        let head = &end.head;
        let why = if walk.stop == self.block_of(walk.from) + self.ring {
            "a whole lap"
        } else if !self.is_whole(end) {
            "a torn block"
        } else if head.epoch == 0 {
            "zeros"
        } else if head.index < walk.stop {
            "an earlier lap"
        } else if head.witness && head.epoch == walk.epoch {
            "a witness"
        } else if head.end_mark && head.epoch >= walk.epoch {
            "an end mark"
        } else if head.epoch < walk.epoch {
            "an older epoch"
        } else if head.epoch > walk.epoch {
            "an epoch without its first block"
        } else {
            "a lost version before"
        };
        format!("{records}{carry}, up to {why}")
    }
}

/// The kind of a block that is replaced.
fn under(content: &Content) -> &'static str {
    match &content.head {
        head if head.epoch == 0 => "zeros",
        head if head.witness => "a witness",
        head if head.end_mark => "an end mark",
        head if head.closed => "a closed block",
        _ => "an open block",
    }
}

fn unwritten(s: &State) -> &'static str {
    match (s.durable < s.end, s.packing) {
        (false, _) => "all durable",
        (true, Packing::Packed | Packing::Sparse) => "records not durable",
    }
}

/// What is not durable on the device.
fn written(s: &State) -> String {
    let log = s.log_dev.iter().any(|place| place.len() > 1);
    let lost = s.lost_super || s.lost_log.iter().any(|lost| *lost);
    let mut what = String::new();
    let parts = [
        (log, ", log blocks not durable"),
        (s.super_dev.len() > 1, ", a superblock not durable"),
        (lost, ", some of it forgotten"),
    ];
    parts
        .iter()
        .filter(|(is, _)| *is)
        .for_each(|(_, part)| what.push_str(part));
    what
}
