//! A store on the compressing drive: loaded with all data in memory, reopened with the small cache,
//! warmed up, and measured in parts.

use treering_engine::{
    Durability, Kv, LogPacking, ModLog, Options, PageStoreKind, ResetRule, TablePersist, TreeKind,
};
use treering_sim::predict::{self, Prediction, Span, Workload};
use treering_sim::replay::{Acknowledge, Part, ReplayError, Rig};
use treering_traces::generate::{GenParams, ValueSize, Workload as Law, build};
use treering_traces::{Op, OpKind, OpSource, TraceError};

/// Seed of everything random.
const SEED: u64 = 0;

/// Bytes of the data set: a 1,000th of the paper's 150 GB.
pub(crate) const DATA_BYTES: u64 = 150_000_000;

/// Bytes of a key (B⁻-tree §4.2).
const KEY_BYTES: u64 = 8;

/// The order in which records are loaded, which determines how full leaves are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Random order (B⁻-tree §4.1): leaves are 69 % full.
    Random,
    /// An order that leaves leaves nearly full.
    Full,
}

/// The parameters of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) tree: TreeKind,
    pub(crate) store: PageStoreKind,
    pub(crate) mod_log: Option<ModLog>,
    pub(crate) packing: LogPacking,
    pub(crate) page_size: usize,
    /// Bytes of key and value.
    pub(crate) record: u64,
    pub(crate) data_bytes: u64,
    /// Bytes of data per byte of cache (150 in the paper).
    pub(crate) data_over_cache: u64,
    pub(crate) load: Load,
    /// Write-backs per page before anything is measured. All log blocks are empty at first; the
    /// warm-up makes their fill levels diverge.
    pub(crate) warm_per_leaf: u64,
}

/// The baseline of the paper: "conventional page shadowing, where we persist the page table after
/// each page flush" (§4).
pub(crate) const COW: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};

/// The modification log with this threshold T and segment size Ds.
pub(crate) fn log(threshold: u32, segment: u32) -> ModLog {
    ModLog {
        threshold,
        segment,
        reset: ResetRule::AtThreshold,
    }
}

impl Cell {
    /// The B⁻-tree with segments of `segment` bytes.
    pub(crate) fn bminus(page_size: usize, record: u64, segment: u32) -> Cell {
        Cell {
            tree: TreeKind::BTree,
            store: PageStoreKind::Shadow,
            mod_log: Some(log(2048, segment)),
            packing: LogPacking::Sparse,
            page_size,
            record,
            data_bytes: DATA_BYTES,
            data_over_cache: 150,
            load: Load::Random,
            warm_per_leaf: 45,
        }
    }

    /// The paper's baseline.
    pub(crate) fn baseline(page_size: usize, record: u64) -> Cell {
        Cell {
            store: COW,
            mod_log: None,
            packing: LogPacking::Packed,
            // There is no log block to fill.
            warm_per_leaf: 5,
            ..Cell::bminus(page_size, record, 128)
        }
    }

    fn records(&self) -> u64 {
        self.data_bytes / self.record
    }

    fn options(&self, cache_bytes: u64) -> Options {
        let log_bytes = 256 << 20;
        Options {
            tree: self.tree,
            store: self.store,
            mod_log: self.mod_log,
            log_packing: self.packing,
            page_size: self.page_size,
            cache_bytes,
            durability: Durability::PER_MINUTE,
            log_bytes,
            checkpoint_log_bytes: log_bytes / 2,
            ..Options::default()
        }
    }

    fn small(&self) -> Options {
        let options = self.options(0);
        let cache = (self.data_bytes / self.data_over_cache).max(options.least_cache_bytes());
        self.options(cache)
    }

    /// All records, then endless updates of them.
    fn source(&self) -> Result<Box<dyn OpSource + Send>, ReplayError> {
        match self.load {
            Load::Random => {
                let params = GenParams {
                    ops: Some(1 << 40),
                    writes: Some(1.0),
                    key_size: Some(KEY_BYTES as u32),
                    value_size: Some(ValueSize::fixed((self.record - KEY_BYTES) as u32)),
                    seed: SEED,
                    ..GenParams::new(Law::Uniform, self.records())
                };
                Ok(build(&params)?.1)
            }
            Load::Full => Ok(Box::new(Full::new(self.records(), self.record))),
        }
    }

    /// Loads the store and warms it up.
    pub(crate) fn warm(&self) -> Result<Warm, ReplayError> {
        let (_, profile) = treering_sim::csd::builtin("csd").expect("a built-in profile");
        // Twice the maximum number of leaves, when each is half empty.
        let slot = self.tree.layouts().general().slot_bytes() as u64;
        let pages = self.records() * (self.record + slot) * 2 / self.page_size as u64 + 256;
        let in_memory = self.options((pages + 64) * self.page_size as u64);
        let mut rig = Rig::new(&profile, &in_memory, pages, SEED)?;
        let mut source = self.source()?;
        rig.run(&mut *source, self.records())?;
        rig.checkpoint()?;
        let mut rig = rig.reopen(&self.small())?;
        let leaves = rig.leaf_fill()?.len() as u64;
        let warm = leaves * self.warm_per_leaf;
        rig.run(&mut *source, warm)?;
        Ok(Warm {
            cell: *self,
            rig,
            source,
            before: self.records() + warm,
            workload: None,
        })
    }
}

/// A store in its steady state.
pub(crate) struct Warm {
    cell: Cell,
    rig: Rig,
    source: Box<dyn OpSource + Send>,
    /// Number of operations so far.
    before: u64,
    workload: Option<Workload>,
}

/// The components that are compared.
pub(crate) const COMPONENTS: [&str; 5] = ["log", "pages", "extra", "all", "flash"];

/// The measured and the predicted results.
pub(crate) struct Measured {
    pub(crate) part: Part,
    pub(crate) predicted: Prediction,
}

impl Warm {
    /// Measures and predicts `ops` operations of this many clients.
    pub(crate) fn measure(
        &mut self,
        ops: u64,
        clients: u32,
        acknowledge: Acknowledge,
    ) -> Result<Measured, ReplayError> {
        self.rig.set_clients(clients, acknowledge)?;
        let part = self.rig.run(&mut *self.source, ops)?;
        let (device, pace) = self.rig.predicted_on();
        // From here on all updates are alike. So the workload of the first measured part represents
        // all later ones, except for the number of earlier updates.
        if self.workload.is_none() {
            let span = Span {
                limit_ops: self.before + ops,
                ..Span::after(self.before)
            };
            let workload = Workload::analyze(&mut *self.cell.source()?, span)?;
            self.workload = Some(workload);
        }
        let workload = self.workload.as_mut().expect("just analysed");
        workload.rewrites_before = (self.before - self.cell.records()) as f64;
        self.before += ops;
        let options = self.cell.small();
        let predicted = predict::predict(workload, &options, &device, Some(&pace));
        // `predict::tried` claims that this was tested; it is tested here.
        assert_eq!(predicted.untried, [], "outside its own bounds");
        Ok(Measured { part, predicted })
    }

    /// β, in per cent.
    pub(crate) fn beta(&self) -> f64 {
        let log = self.rig.store().stats().mod_log.unwrap_or_default();
        let per_page = log.delta_bytes as f64 / log.pages.max(1) as f64;
        100.0 * per_page / self.cell.page_size as f64
    }
}

impl Measured {
    fn over_user(&self, bytes: u64) -> f64 {
        bytes as f64 / self.part.user_bytes as f64
    }

    /// Compressed bytes divided by user bytes: log, page, extra, total.
    pub(crate) fn stored(&self) -> [f64; 4] {
        let [log, page, extra] = self.part.stored.map(|bytes| self.over_user(bytes));
        [log, page, extra, log + page + extra]
    }

    /// The predicted [`Measured::stored`].
    pub(crate) fn predicted(&self) -> [f64; 4] {
        let stored = self.predicted.stored.expect("a compressing drive");
        [stored.log, stored.page, stored.extra, stored.total]
    }

    /// Bytes written by the host, and bytes written to flash, each divided by user bytes.
    pub(crate) fn host_and_flash(&self) -> (f64, f64) {
        let written = self.part.after.written.since(&self.part.before.written);
        (
            self.over_user(written.total()),
            self.over_user(self.part.flash),
        )
    }

    /// Measured divided by predicted, minus one, in the order of [`COMPONENTS`]. `None` for
    /// components below 3 % of the total.
    pub(crate) fn errors(&self) -> [Option<f64>; 5] {
        let (measured, predicted) = (self.stored(), self.predicted());
        let (_, flash) = self.host_and_flash();
        let [log, page, extra, total] = measured;
        let measured = [log, page, extra, total, flash];
        let [log, page, extra, all] = predicted;
        let predicted = [log, page, extra, all, self.predicted.device.total];
        let error = |i: usize| measured[i] / predicted[i] - 1.0;
        std::array::from_fn(|i| (measured[i] >= 0.03 * total).then(|| error(i)))
    }
}

/// Loads even keys in order, which makes leaves half full; then odd keys in between, until leaves
/// are nearly full; then updates.
struct Full {
    records: u64,
    value_len: u32,
    next: u64,
    dice: u64,
}

/// Number of odd keys loaded out of 16. Leaves are then 97 % full.
const ODD_OF_16: u64 = 15;

impl Full {
    fn new(records: u64, record: u64) -> Full {
        Full {
            records,
            value_len: (record - KEY_BYTES) as u32,
            next: 0,
            dice: SEED | 1,
        }
    }

    /// Key of record `n`.
    fn key(&self, n: u64) -> u64 {
        let even = self.records * 16 / (16 + ODD_OF_16);
        if n < even {
            return 2 * n;
        }
        let odd = n - even;
        2 * (odd / ODD_OF_16 * 16 + odd % ODD_OF_16) + 1
    }
}

impl OpSource for Full {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let n = if self.next < self.records {
            self.next
        } else {
            // The xorshift generator.
            self.dice ^= self.dice << 13;
            self.dice ^= self.dice >> 7;
            self.dice ^= self.dice << 17;
            self.dice % self.records
        };
        self.next += 1;
        *op = Op {
            kind: OpKind::Put,
            value_len: self.value_len,
            ..Op::default()
        };
        op.key.extend_from_slice(&self.key(n).to_be_bytes());
        Ok(true)
    }
}
