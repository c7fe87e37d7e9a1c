//! How far a replay is.

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Finding out what was there before the trace: operations so far, of so many.
    Survey(u64, u64),
    /// Looking through the trace: operations so far, of so many.
    Analyse(u64, u64),
    /// Replaying: operations so far, of so many. Told first of none, when the device and the store
    /// are made.
    Replay(u64, u64),
}
