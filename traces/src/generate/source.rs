//! The generator: a load, then a mix of operations on chosen records.

use super::choose::{Chooser, Places};
use super::keys::Keys;
use super::mix::{Action, Mix};
use super::params::{GenParams, Workload};
use super::pareto::Pareto;
use super::random::{Random, derive, scale};
use crate::{Op, OpKind, OpSource, TraceError};

/// The distribution of scan lengths.
#[derive(Clone, Debug)]
enum ScanLen {
    Uniform { max: u32 },
    Pareto { law: Pareto, max: u32 },
}

impl ScanLen {
    fn new(params: &GenParams) -> Self {
        match (params.max_scan, params.workload) {
            (None, Workload::Mixgraph) => ScanLen::Pareto {
                law: params.mixgraph.iter,
                max: params.mixgraph.max_scan_len,
            },
            (max, _) => ScanLen::Uniform {
                max: max.unwrap_or(100),
            },
        }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        match self {
            ScanLen::Uniform { max } => 1 + scale(random.word(), u64::from(*max)) as u32,
            // db_bench wraps around at the maximum. A scan of no records still seeks one.
            ScanLen::Pareto { law, max } => {
                ((law.quantile(random.unit()) % u64::from(*max)) as u32).max(1)
            }
        }
    }
}

/// A generated trace.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    random: Random,
    keys: Keys,
    places: Places,
    chooser: Chooser,
    mix: Mix,
    scan_len: ScanLen,
    /// The number of existing records. During the load, the id of the next one.
    present: u64,
    /// The oldest record that a log still has.
    first: u64,
    is_log: bool,
    /// Records still to be loaded.
    to_load: u64,
    /// The put that completes a read-modify-write.
    pending: Option<u64>,
    client: u32,
    clients: u32,
}

impl Generator {
    /// `params` must have passed [`GenParams::check`].
    pub(crate) fn new(params: &GenParams) -> Self {
        let mix = Mix::new(params);
        let positions = params.records + mix.inserts();
        let loaded = if params.no_load { params.records } else { 0 };
        Generator {
            random: Random::new(derive(params.seed, 0)),
            keys: Keys::new(params, positions),
            places: Places::new(params, positions),
            chooser: Chooser::new(params, positions),
            mix,
            scan_len: ScanLen::new(params),
            present: loaded,
            first: 0,
            is_log: params.workload == Workload::Log,
            to_load: params.records - loaded,
            pending: None,
            client: params.clients - 1,
            clients: params.clients,
        }
    }

    /// Passes the turn to the next client. A turn is a transaction, so that a read-modify-write
    /// stays with one client.
    #[inline]
    fn turn(&mut self) {
        self.client += 1;
        if self.client == self.clients {
            self.client = 0;
        }
    }

    /// Returns the position of a record of the log: the oldest one, which is removed, or any. An
    /// empty log gives the record that was removed last, or the first one.
    fn of_log(&mut self, removes: bool) -> u64 {
        let id = match self.present - self.first {
            0 => self.first.saturating_sub(1),
            _ if removes => self.first,
            left => self.first + self.random.below(left),
        };
        if removes {
            self.first = self.present.min(self.first + 1);
        }
        self.places.position(id)
    }

    #[inline]
    fn insert(&mut self) -> u64 {
        let position = self.places.position(self.present);
        self.present += 1;
        position
    }
}

impl OpSource for Generator {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        op.time_ns = None;
        op.zeros = None;
        op.scan_len = 0;
        op.value_len = 0;
        let (kind, position) = if self.to_load > 0 {
            self.to_load -= 1;
            self.turn();
            (OpKind::Put, self.insert())
        } else if let Some(position) = self.pending.take() {
            (OpKind::Put, position)
        } else {
            let Some(action) = self.mix.draw(&mut self.random) else {
                return Ok(false);
            };
            self.turn();
            if action == Action::Insert {
                let position = self.insert();
                (OpKind::Put, position)
            } else {
                let position = if self.is_log {
                    self.of_log(action == Action::Delete)
                } else {
                    self.chooser.choose(self.present, &self.places)
                };
                let kind = match action {
                    Action::Get => OpKind::Get,
                    Action::Update | Action::Insert => OpKind::Put,
                    Action::Delete => OpKind::Delete,
                    Action::Scan => {
                        op.scan_len = self.scan_len.draw(&mut self.random);
                        OpKind::Scan
                    }
                    Action::ReadModifyWrite => {
                        self.pending = Some(position);
                        OpKind::Get
                    }
                };
                (kind, position)
            }
        };
        if kind == OpKind::Put {
            op.value_len = self.keys.value_len(position);
        }
        op.kind = kind;
        op.client = self.client;
        self.keys.fill(position, &mut op.key);
        Ok(true)
    }
}
