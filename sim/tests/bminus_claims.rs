//! Countable claims of the B⁻-tree paper (CLAIMS, rows BM) at small scale: 3 or 6 MB of records and
//! a cache of a tenth of them, on the compressing drive.
//! `examples/bminus_figures` runs the same at a larger scale and draws charts.

use treering_engine::{Durability, Kv, LogPacking, ModLog, Options, PageStoreKind, TablePersist};
use treering_sim::predict::{Prediction, Span, Workload as Analysis, predict};
use treering_sim::replay::{Acknowledge, Part, Rig};
use treering_traces::OpSource;
use treering_traces::generate::{GenParams, ValueSize, Workload, build};

/// Total size of the records. The cache is a tenth of it.
const DATA_BYTES: u64 = 6_000_000;
const FEW_BYTES: u64 = 3_000_000;
const OPS: u64 = 20_000;

const COW: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};

fn bminus(page_size: usize) -> Options {
    Options {
        page_size,
        log_bytes: 256 << 20,
        checkpoint_log_bytes: 128 << 20,
        durability: Durability::PER_MINUTE,
        ..Options::bminus()
    }
}

/// The paper's baseline.
fn baseline(page_size: usize) -> Options {
    Options {
        store: COW,
        mod_log: None,
        log_packing: LogPacking::Packed,
        ..bminus(page_size)
    }
}

/// A store in use: uniform random updates of records of `record` bytes.
struct Run {
    rig: Rig,
    options: Options,
    data: u64,
    record: u64,
    source: Box<dyn OpSource + Send>,
    before: u64,
}

fn source(data: u64, record: u64) -> Box<dyn OpSource + Send> {
    let params = GenParams {
        ops: Some(1 << 32),
        writes: Some(1.0),
        key_size: Some(8),
        value_size: Some(ValueSize::fixed(record as u32 - 8)),
        ..GenParams::new(Workload::Uniform, data / record)
    };
    build(&params).expect("parameters").1
}

impl Run {
    fn new(options: Options, data: u64, record: u64, warm_per_leaf: u64) -> Run {
        let (_, profile) = treering_sim::csd::builtin("csd").expect("built in");
        let records = data / record;
        let pages = records * (record + 10) * 2 / options.page_size as u64 + 256;
        let small = Options {
            cache_bytes: (data / 10).max(options.least_cache_bytes()),
            ..options.clone()
        };
        let large = Options {
            cache_bytes: (pages + 64) * options.page_size as u64,
            ..options
        };
        let mut rig = Rig::new(&profile, &large, pages, 0).expect("a store on a drive");
        let mut source = source(data, record);
        rig.run(&mut *source, records).expect("loads");
        rig.checkpoint().expect("checkpoints");
        let mut rig = rig.reopen(&small).expect("opens again");
        let leaves = rig.leaf_fill().expect("leaves").len() as u64;
        rig.run(&mut *source, leaves * warm_per_leaf)
            .expect("warms up");
        Run {
            rig,
            options: small,
            data,
            record,
            source,
            before: records + leaves * warm_per_leaf,
        }
    }

    fn measure(&mut self, clients: u32, acknowledge: Acknowledge) -> (Part, Prediction) {
        self.rig.set_clients(clients, acknowledge).expect("clients");
        let part = self.rig.run(&mut *self.source, OPS).expect("runs");
        let (device, pace) = self.rig.predicted_on();
        let span = Span {
            limit_ops: self.before + OPS,
            ..Span::after(self.before)
        };
        let workload =
            Analysis::analyze(&mut *source(self.data, self.record), span).expect("a workload");
        let predicted = predict(&workload, &self.options, &device, Some(&pace));
        (part, predicted)
    }

    fn beta(&self) -> f64 {
        let log = self
            .rig
            .store()
            .stats()
            .mod_log
            .expect("a modification log");
        log.delta_bytes as f64 / (log.pages * self.options.page_size as u64) as f64
    }
}

/// Compressed bytes per user byte: log, pages, extra, total.
fn stored(part: &Part) -> [f64; 4] {
    let [log, page, extra] = part
        .stored
        .map(|bytes| bytes as f64 / part.user_bytes as f64);
    [log, page, extra, log + page + extra]
}

fn near(what: &str, measured: f64, predicted: f64, within: f64) {
    let error = measured / predicted - 1.0;
    assert!(
        error.abs() <= within,
        "{what}: measured {measured:.3}, predicted {predicted:.3}, {:+.1} %",
        100.0 * error
    );
}

/// Compares every component that is 3 % of the total or more.
fn as_predicted(what: &str, part: &Part, predicted: &Prediction) {
    let measured = stored(part);
    let p = predicted.stored.expect("a compressing drive");
    let names = ["log", "pages", "extra", "total"];
    let pairs = measured.into_iter().zip([p.log, p.page, p.extra, p.total]);
    for (name, (m, p)) in names.into_iter().zip(pairs) {
        if m >= 0.03 * measured[3] {
            near(&format!("{what}, {name}"), m, p, 0.10);
        }
    }
}

#[test]
fn three_quarters_fewer_bytes_are_written_than_by_the_baseline_as_predicted() {
    for (page_size, record, least) in [(8192, 128, 0.75), (8192, 32, 0.75), (16_384, 32, 0.83)] {
        let (ours, ours_predicted) =
            Run::new(bminus(page_size), DATA_BYTES, record, 50).measure(1, Acknowledge::Deferred);
        let (theirs, theirs_predicted) =
            Run::new(baseline(page_size), DATA_BYTES, record, 5).measure(1, Acknowledge::Deferred);
        let less = 1.0 - stored(&ours)[3] / stored(&theirs)[3];
        assert!(
            less >= least,
            "{record} B, {page_size}: {:.1} % less",
            100.0 * less
        );
        as_predicted("bminus", &ours, &ours_predicted);
        as_predicted("baseline", &theirs, &theirs_predicted);
    }
}

#[test]
fn beta_matches_table_2() {
    for (page_size, segment, threshold, table) in [
        (8192, 128, 2048, 0.124),
        (8192, 128, 1024, 0.056),
        (8192, 256, 1024, 0.048),
        (16_384, 128, 2048, 0.060),
    ] {
        let rule = ModLog {
            threshold,
            segment,
            ..ModLog::default()
        };
        let options = Options {
            mod_log: Some(rule),
            ..bminus(page_size)
        };
        let mut run = Run::new(options, FEW_BYTES, 128, 120);
        let (_, predicted) = run.measure(1, Acknowledge::Deferred);
        let beta = run.beta();
        let story = format!("{page_size}, {segment}, {threshold}: {beta:.4}");
        assert!(
            (beta - table).abs() <= 0.0075,
            "{story}, the paper has {table}"
        );
        let predicted = predicted.mod_log.expect("a modification log").beta;
        assert!(
            (beta - predicted).abs() <= 0.005,
            "{story}, predicted {predicted:.4}"
        );
    }
}

/// BM-03: apart from checkpoints, only pages and the log are written.
#[test]
fn shadowing_writes_no_extra_blocks() {
    let (part, _) = Run::new(bminus(8192), FEW_BYTES, 128, 5).measure(1, Acknowledge::Deferred);
    assert_eq!(part.checkpoints(), 0);
    assert_eq!(part.after.written.extra, part.before.written.extra);
}

/// BM-23, BM-24: a record in the sparse log is compressed once. A record in the packed log is
/// compressed again with each later record in its block.
#[test]
fn sparse_log_writes_hardly_depend_on_the_number_of_clients() {
    let log_wa = |packing, clients| {
        let options = Options {
            log_packing: packing,
            ..bminus(8192)
        };
        let mut run = Run::new(options, FEW_BYTES, 32, 5);
        let (part, predicted) = run.measure(clients, Acknowledge::Commit);
        let log = stored(&part)[0];
        near("log", log, predicted.stored.expect("compressed").log, 0.10);
        log
    };
    let sparse = [1, 16].map(|clients| log_wa(LogPacking::Sparse, clients));
    let packed = [1, 16].map(|clients| log_wa(LogPacking::Packed, clients));
    assert!(packed[0] > 10.0 * sparse[0], "{packed:?}, {sparse:?}");
    let falls = |wa: [f64; 2]| wa[0] / wa[1];
    assert!(
        falls(packed) > 2.0 * falls(sparse),
        "{packed:?}, {sparse:?}"
    );
}
