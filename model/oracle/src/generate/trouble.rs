//! What may go wrong in a program.

/// What may go wrong in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Nothing.
    None,
    /// The power.
    Power,
    /// The medium's room: what is lost by that is lost until the store is opened again.
    Room,
    /// Reads: nothing is lost by that, and the store goes on.
    Reads,
    /// The power, requests of all kinds, and the medium's room.
    All,
}

/// What a program may contain besides ordinary operations: for a run that is to show what one check
/// finds without the help of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The store is closed and opened again.
    pub reopen: bool,
    /// The power goes.
    pub power: bool,
    /// Writes and flushes fail.
    pub failures: bool,
}

impl Trouble {
    /// Whatever there is.
    pub const ANY: Trouble = Trouble {
        reopen: true,
        power: true,
        failures: true,
    };
}
