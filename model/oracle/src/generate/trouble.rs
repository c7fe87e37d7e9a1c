//! What may go wrong in a program.

/// The faults of one random program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// None.
    None,
    /// Power cuts.
    Power,
    /// A medium without space. The store may refuse writes until it is opened again.
    Room,
    /// Failing reads. Nothing is lost, and the store stays usable.
    Reads,
    /// Power cuts, failing requests of all kinds, and a medium without space.
    All,
}

/// What programs may contain besides ordinary operations. Restrict it to test one check without the
/// help of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The store is closed and opened again.
    pub reopen: bool,
    /// The power is cut.
    pub power: bool,
    /// Requests fail.
    pub failures: bool,
}

impl Trouble {
    /// Everything.
    pub const ANY: Trouble = Trouble {
        reopen: true,
        power: true,
        failures: true,
    };
}
