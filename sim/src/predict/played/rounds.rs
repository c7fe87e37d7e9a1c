//! Rounds of checkpoints: how near a checkpoint is to the ends of the measured part.
//!
//! A checkpoint begins when the log has grown by a certain size, and writes many pages at once. If
//! one begins just before an end of the measured part, a real run may have it just behind, and
//! the other way round:
//!
//! ```text
//! log   ──C────────────C────────────C──┆──────────C────────────C┆
//!                                 measured part begins    it ends: is the last C in it?
//! ```

/// The state of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rounds {
    /// Position of the log at the start.
    start: u64,
    /// By how much the log grows from one checkpoint to the next.
    length: u64,
    /// For both ends of the measured part: how much was logged before, and since the last
    /// checkpoint.
    ends: [(u64, u64); 2],
    /// Page writes and position of the log when the last checkpoint began.
    begun: (u64, u64),
    /// Checkpoints before the measured part and in it.
    before: Sum,
    measured: Sum,
}

/// What checkpoints have written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    checkpoints: u64,
    pages: u64,
    /// Bytes of log, mostly records of mini-pages that were logged again.
    log: u64,
}

impl Rounds {
    pub(super) fn new(start: u64, length: u64) -> Rounds {
        Rounds {
            start,
            length,
            ..Rounds::default()
        }
    }

    fn at(&self, position: u64, last: u64) -> (u64, u64) {
        (position - self.start, position - last)
    }

    /// The measured part begins. The last checkpoint began at `last`.
    pub(super) fn begin_measuring(&mut self, position: u64, last: u64) {
        self.ends[0] = self.at(position, last);
        self.before = std::mem::take(&mut self.measured);
    }

    /// The rounds of a run that ends here.
    pub(super) fn until(mut self, position: u64, last: u64) -> Rounds {
        self.ends[1] = self.at(position, last);
        self
    }

    /// A checkpoint begins; so many pages were written until now, and so much is logged.
    pub(super) fn begin(&mut self, writes: u64, position: u64) {
        self.begun = (writes, position);
    }

    /// It ends.
    pub(super) fn end(&mut self, writes: u64, position: u64) {
        self.measured.checkpoints += 1;
        self.measured.pages += writes - self.begun.0;
        self.measured.log += position - self.begun.1;
    }

    /// Page writes, and bytes of log, of the checkpoints of which it is not sure whether they are
    /// in the measured part, if what is logged is known but for this share.
    pub(super) fn unsure(&self, share: f64) -> (f64, f64) {
        let sum = match self.measured.checkpoints {
            0 => self.before,
            _ => self.measured,
        };
        let is_near = |(logged, since): &&(u64, u64)| {
            let near = share * *logged as f64;
            // The store itself begins with a round.
            let after = (*since as f64) < near && since < logged;
            let before = self.length as f64 - (*since as f64) < near;
            after || before
        };
        let checkpoints = self.ends.iter().filter(is_near).count() as f64;
        let part = checkpoints / (sum.checkpoints as f64).max(1.0);
        (part * sum.pages as f64, part * sum.log as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_checkpoint_near_an_end_of_the_measured_part_is_unsure() {
        let rounds = |measured_from: u64| {
            let mut rounds = Rounds::new(5, 100);
            rounds.begin(0, 5);
            rounds.end(40, 25);
            rounds.begin_measuring(measured_from, 105);
            rounds
        };
        let ends_at = |position| rounds(155).until(position, 405).unsure(0.01);
        assert_eq!(ends_at(450), (0.0, 0.0), "in the middle of a round");
        assert_eq!(ends_at(503), (40.0, 20.0), "another one is due");
        assert_eq!(ends_at(407), (40.0, 20.0), "one has just begun");
        let both = rounds(204).until(503, 405);
        assert_eq!(both.unsure(0.01), (80.0, 40.0), "so it is at both ends");
    }
}
