//! The variables of `RedoState.tla`, and what follows from them.

use super::format::{Content, Entry, N, Super, Unit, Walk};

/// The versions of a place, oldest first. The first is durable, and a read returns the last.
pub(super) type Place = Vec<Content>;

/// The two forms of the log.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[strum(serialize_all = "lowercase")]
pub enum Packing {
    /// A flush goes on in the last block of the one before, and writes it again.
    Packed,
    /// Each flush begins with a new block.
    Sparse,
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// No call is outstanding. The last one was refused, and has had no effect.
    Refused,
    /// No call is outstanding. Nobody knows whether the last one's record will survive.
    Unknown,
    /// An append.
    Append {
        /// The record.
        record: N,
        /// Its length in units.
        len: N,
        /// Its LSN, once it has one.
        lsn: N,
    },
}

impl Call {
    /// Whether the client waits for an answer.
    pub(super) fn waits(self) -> bool {
        matches!(self, Call::Append { .. })
    }

    /// The LSN for which the client waits.
    pub(super) fn awaited(self) -> Option<N> {
        match self {
            Call::Append { lsn, .. } if lsn > 0 => Some(lsn),
            _ => None,
        }
    }
}

/// A checkpoint's step.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Step {
    /// There is no checkpoint.
    None,
    /// Redo will begin where the log ended then.
    Begun,
    /// The superblock is written.
    Recorded,
}

/// The phase of the store.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// A witness is written.
    Closing,
    /// The power failed.
    Cut,
    /// The process ended, and the device lived on.
    Killed,
    /// Recovery has read the log.
    Read,
    /// What it has read is durable.
    Durable,
    /// The end of the log is marked.
    Marked,
    /// The mark is durable.
    Settled,
    /// The new epoch is written to the superblock.
    Recorded,
    /// Recovery has refused to open.
    Damaged,
}

/// What was wrong with what was read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// Nothing.
    Fine,
    /// A durable record is missing.
    Lost,
    /// It is not a prefix of the records.
    Mixed,
    /// Recovery reads other records than the crash has left.
    Changed,
    /// Damage was not noticed.
    Silent,
    /// Damage was reported where there is none.
    Damaged,
}

/// All variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: Vec<Call>,
    pub(super) asked: N,
    pub(super) packing: Packing,
    pub(super) epoch: N,
    pub(super) starts_at: N,
    pub(super) buffer_at: N,
    pub(super) buffer: Vec<Unit>,
    pub(super) end: N,
    /// The first block and the end of the flush in flight. The default is `OnGround`.
    pub(super) flying: (N, N),
    pub(super) durable: N,
    pub(super) oldest: N,
    pub(super) checkpoint: (Step, N),
    pub(super) poisoned: bool,
    pub(super) log_dev: Vec<Place>,
    pub(super) super_dev: Vec<Super>,
    /// For each place of the log, whether a failed flush forgot it.
    pub(super) lost_log: Vec<bool>,
    pub(super) lost_super: bool,
    pub(super) phase: Phase,
    pub(super) found: Vec<Entry>,
    pub(super) history: Vec<Entry>,
    pub(super) acked: N,
    pub(super) sure: N,
    pub(super) verdict: Verdict,
    pub(super) crashes: N,
    pub(super) rotten: N,
}

/// `CountUpTo`.
pub(super) fn count_up_to(entries: &[Entry], lsn: N) -> usize {
    entries.iter().filter(|entry| entry.lsn <= lsn).count()
}

impl State {
    /// Whether clients are served.
    pub(super) fn serves(&self) -> bool {
        self.phase == Phase::Up && !self.poisoned
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.phase, Phase::Cut | Phase::Killed | Phase::Damaged)
    }

    pub(super) fn recovers(&self) -> bool {
        use Phase::{Durable, Marked, Read, Recorded, Settled};
        matches!(self.phase, Read | Durable | Marked | Settled | Recorded)
    }

    pub(super) fn newest_super(&self) -> Super {
        self.super_dev[self.super_dev.len() - 1]
    }

    /// `NewestOf(logDev)`.
    pub(super) fn newest(&self) -> Vec<Content> {
        let newest = self
            .log_dev
            .iter()
            .map(|place| place[place.len() - 1].clone());
        newest.collect()
    }

    pub(super) fn something_written(&self) -> bool {
        self.super_dev.len() > 1 || self.log_dev.iter().any(|place| place.len() > 1)
    }

    /// `DeviceFlush`.
    pub(super) fn device_flush(&mut self) {
        for (place, lost) in self.log_dev.iter_mut().zip(&self.lost_log) {
            if !lost {
                place.drain(..place.len() - 1);
            }
        }
        if !self.lost_super {
            self.super_dev = vec![self.newest_super()];
        }
    }

    /// Writes a block. Writing what is there already is no new version.
    pub(super) fn put(&mut self, place: usize, content: Content) {
        self.lost_log[place] = false;
        if self.log_dev[place].last() != Some(&content) {
            self.log_dev[place].push(content);
        }
    }

    pub(super) fn write_super(&mut self, of: Super) {
        self.super_dev.push(of);
        self.lost_super = false;
    }

    /// `HistoryRead`: the history after a recovery that reads this.
    pub(super) fn history_read(&self, of: Super, walk: &Walk) -> Vec<Entry> {
        let given_up = count_up_to(&self.history, of.redo);
        [&self.history[..given_up], &walk.found].concat()
    }

    /// Whether these are the first records of the history.
    pub(super) fn is_prefix(&self, read: &[Entry]) -> bool {
        self.history.starts_with(read)
    }

    /// `JudgeRead`.
    pub(super) fn judge_read(&self, walk: &Walk) -> Verdict {
        let read = self.history_read(self.newest_super(), walk);
        let most = if self.rotten == 0 {
            self.durable
        } else {
            self.sure
        };
        let enough = read.len() >= count_up_to(&self.history, most);
        let less = self.phase == Phase::Killed || self.rotten > 0;
        if read == self.history || less && enough && self.is_prefix(&read) {
            return Verdict::Fine;
        }
        match self.rotten {
            0 => Verdict::Changed,
            _ => Verdict::Silent,
        }
    }
}
