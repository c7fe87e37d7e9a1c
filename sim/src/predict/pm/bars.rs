//! Error bars of predictions for persistent memory.

/// The relative half-width of the 90 % interval of each predicted amplification: 0.1 is 10 % of the
/// predicted value on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PmBars {
    /// Of bytes that reach the XPBuffer.
    pub cli: f64,
    /// Of bytes that reach the medium.
    pub xbi: f64,
    /// Of the part of leaves and records.
    pub leaf: f64,
    /// Of the part of logs.
    pub log: f64,
    /// Of the rest.
    pub extra: f64,
}

/// What each client after the first adds: the lines of several clients overtake each other on their
/// way to an XPBuffer.
const CLIENT: f64 = 0.0015;
/// The greatest error that several clients were seen to cause.
const CLIENTS: f64 = 0.11;
/// The same if the device's queues are modelled, which predictions leave out. Even one client and
/// the cleaner wait for each other.
const QUEUE: f64 = 0.008;
const QUEUED_CLIENT: f64 = 0.02;
const QUEUED_CLIENTS: f64 = 0.35;

impl PmBars {
    /// The bars with so many clients, on a device whose queues are modelled or not. Fitted to 2, 4
    /// and 16 clients.
    #[must_use]
    pub(crate) fn with_clients(self, clients: u32, queued: bool) -> PmBars {
        let others = f64::from(clients.max(1) - 1);
        let more = match queued {
            false => (CLIENT * others).min(CLIENTS),
            true => (QUEUE + QUEUED_CLIENT * others).min(QUEUED_CLIENTS),
        };
        PmBars {
            cli: self.cli + more,
            xbi: self.xbi + more,
            leaf: self.leaf + more,
            log: self.log + more,
            extra: self.extra + more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_clients_and_queues_widen_every_bar() {
        let alone = PmBars {
            xbi: 0.01,
            ..PmBars::default()
        };
        assert_eq!(alone.with_clients(1, false), alone);
        let widths = [(1, true), (4, false), (4, true), (16, true), (500, true)];
        let widths = widths.map(|(n, queued)| alone.with_clients(n, queued).xbi);
        assert!(widths[1] < widths[0] && widths[0] < widths[2]);
        assert!((0.3..0.34).contains(&widths[3]), "{widths:?}");
        assert!((0.35..0.37).contains(&widths[4]), "{widths:?}");
    }
}
