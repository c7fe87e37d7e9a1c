//! The initial state, and the verdict on what recovery reads (`RedoState.tla`).

use super::RedoLog;
use super::format::{Content, N, Super};
use super::state::{Call, Packing, Phase, State, Step, Verdict, count_up_to};

impl RedoLog {
    /// `Init`.
    pub(super) fn initial(&self, packing: Packing) -> State {
        let first = Super {
            epoch: 1,
            redo: 0,
            redo_epoch: 1,
        };
        State {
            call: vec![Call::Idle; self.clients.len()],
            asked: 0,
            packing,
            epoch: 1,
            starts_at: 0,
            buffer_at: 0,
            buffer: Vec::new(),
            end: 0,
            flying: (0, 0),
            durable: 0,
            oldest: 0,
            checkpoint: (Step::None, 0),
            poisoned: false,
            log_dev: vec![vec![self.zeros()]; self.ring as usize],
            super_dev: vec![first],
            lost_log: vec![false; self.ring as usize],
            lost_super: false,
            phase: Phase::Up,
            found: Vec::new(),
            history: Vec::new(),
            acked: 0,
            sure: 0,
            verdict: Verdict::Fine,
            crashes: 0,
            rotten: 0,
        }
    }

    /// `Next_`: the position of the next record.
    pub(super) fn next(&self, s: &State) -> N {
        s.buffer_at * self.units + s.buffer.len() as N
    }

    /// `Judge`: the verdict on what a crash or restart leaves.
    pub(super) fn judge(&self, s: &State, blocks: &[Content], of: Super) -> Verdict {
        let walk = self.read_log(blocks, of);
        let read = s.history_read(of, &walk);
        // If the medium has decayed, damage is reported rightly, and some of the last flush may be
        // missing.
        let kept = if s.rotten == 0 { s.durable } else { s.sure };
        if self.is_damaged(blocks, &walk) {
            match s.rotten {
                0 => Verdict::Damaged,
                _ => Verdict::Fine,
            }
        } else if !s.is_prefix(&read) {
            Verdict::Mixed
        } else if read.len() < count_up_to(&s.history, kept) {
            Verdict::Lost
        } else {
            Verdict::Fine
        }
    }
}
