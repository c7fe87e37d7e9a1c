//! The whole prediction compared with runs of the store on a memory device. The runs are small
//! enough for every test run.

use std::sync::Arc;

use treering_engine::device::MemDevice;
use treering_engine::{
    ClassBytes, Durability, Kv, Options, PageStoreKind, Store, SystemClock, TablePersist,
    required_blocks,
};
use treering_sim::predict::{Before, Cleaning, DeviceParams, Prediction, Span, Workload, predict};
use treering_traces::generate::{self, GenParams, ValueSize};
use treering_traces::{Op, OpKind};

const EACH: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
const AT_CHECKPOINT: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

fn zipf(records: u64, ops: u64, writes: f64, theta: f64) -> GenParams {
    let mut params = GenParams::new(generate::Workload::Zipf, records);
    params.ops = Some(ops);
    params.writes = Some(writes);
    params.theta = Some(theta);
    params.key_size = Some(16);
    params.value_size = Some(ValueSize::fixed(16));
    params
}

fn options(store: PageStoreKind, cache_bytes: u64) -> Options {
    Options {
        store,
        cache_bytes,
        log_bytes: 4 << 20,
        checkpoint_log_bytes: 1 << 20,
        log_buffer_bytes: 64 << 10,
        durability: Durability::PER_MINUTE,
        ..Options::default()
    }
}

fn device(options: &Options, pages: u64) -> DeviceParams {
    let blocks = required_blocks(options, pages);
    DeviceParams {
        capacity_blocks: blocks,
        physical_pages: 1.1 * blocks as f64,
        pages_per_block: 256,
        before: Before::Nothing,
        before_block: 1.0,
        cleaning: Cleaning::Greedy,
        compression: None,
        flash: None,
    }
}

fn predicted(params: &GenParams, options: &Options, device: &DeviceParams) -> Prediction {
    let (header, mut source) = generate::build(params).expect("good parameters");
    let workload =
        Workload::analyze(&mut *source, Span::after(header.warmup_ops)).expect("a trace");
    predict(&workload, options, device, None)
}

/// Runs the trace. Returns the bytes written after warm-up by class, and the user bytes.
fn measured(params: &GenParams, options: &Options, device: &DeviceParams) -> (ClassBytes, f64) {
    let medium = Arc::new(MemDevice::new(device.capacity_blocks));
    let store = Store::open(medium, Arc::new(SystemClock::new()), options).expect("a fresh store");
    let (header, mut source) = generate::build(params).expect("good parameters");
    let (mut op, mut value) = (Op::default(), Vec::new());
    let (mut before, mut user) = (ClassBytes::default(), 0);
    let payload = [1; 4096];
    let mut at = 0;
    while source.next_op(&mut op).expect("a trace") {
        if at == header.warmup_ops {
            before = store.stats().written;
            user = 0;
        }
        at += 1;
        user += op.user_bytes();
        match op.kind {
            OpKind::Get => drop(store.get(&op.key, &mut value).expect("a read")),
            OpKind::Put => {
                store
                    .put(&op.key, &payload[..op.value_len as usize])
                    .expect("a write");
            }
            OpKind::Delete | OpKind::Scan => {
                unreachable!("these traces have neither deletes nor scans")
            }
        }
        while let Some(task) = store.due() {
            store.pump(task).expect("background work");
        }
    }
    (store.stats().written.since(&before), user as f64)
}

/// Compares every component that is 3 % of the total or more.
fn compare(name: &str, params: &GenParams, options: &Options, pages: u64, tolerance: f64) {
    let device = device(options, pages);
    let prediction = predicted(params, options, &device);
    let (written, user) = measured(params, options, &device);
    let total = written.total() as f64 / user;
    let host = prediction.host;
    for (class, bytes, expected) in [
        ("log", written.log, host.log),
        ("page", written.page, host.page),
        ("extra", written.extra, host.extra),
    ] {
        let found = bytes as f64 / user;
        let off = found / expected - 1.0;
        println!(
            "{name}, {class}: measured {found:.4}, predicted {expected:.4}, {:+.2} %",
            100.0 * off
        );
        assert!(
            found < 0.03 * total || off.abs() < tolerance,
            "{name}, {class}: measured {found}, predicted {expected}"
        );
    }
}

#[test]
fn host_writes_of_small_runs_are_predicted_within_three_per_cent() {
    for (theta, writes) in [(0.0, 1.0), (0.9, 0.5)] {
        let params = zipf(40_000, 150_000, writes, theta);
        for store in [PageStoreKind::InPlace, EACH, AT_CHECKPOINT] {
            for cache in [512 << 10, 1 << 20] {
                let options = options(store, cache);
                let name = format!("theta {theta}, writes {writes}, {store:?}, cache {cache}");
                compare(&name, &params, &options, 3000, 0.03);
            }
        }
    }
}

#[test]
fn if_the_cache_holds_all_pages_only_checkpoints_write() {
    let params = zipf(20_000, 200_000, 1.0, 0.9);
    compare(
        "all fit",
        &params,
        &options(PageStoreKind::InPlace, 8 << 20),
        3000,
        0.02,
    );
    compare(
        "all fit",
        &params,
        &options(AT_CHECKPOINT, 8 << 20),
        3000,
        0.02,
    );
}

#[test]
fn large_pages_are_predicted() {
    let params = zipf(40_000, 100_000, 0.5, 0.5);
    let options = Options {
        page_size: 16 << 10,
        ..options(EACH, 1 << 20)
    };
    compare("16 KiB", &params, &options, 1000, 0.03);
}

#[test]
fn page_table_writes_on_a_nearly_full_device_are_predicted() {
    let params = zipf(40_000, 150_000, 1.0, 0.0);
    let mut options = options(AT_CHECKPOINT, 512 << 10);
    options.checkpoint_log_bytes = 3 << 20;
    let roomy = device(&options, 3000);
    let tight = device(&options, 640);
    let extra = |d: &DeviceParams| predicted(&params, &options, d).host.extra;
    assert!(
        extra(&tight) > 1.5 * extra(&roomy),
        "{} and {}",
        extra(&tight),
        extra(&roomy)
    );
}

#[test]
fn inserts_during_measurement_are_predicted_within_ten_per_cent() {
    let mut params = GenParams::new(generate::Workload::Load, 60_000);
    params.key_size = Some(16);
    params.value_size = Some(ValueSize::fixed(16));
    compare(
        "load",
        &params,
        &options(PageStoreKind::InPlace, 512 << 10),
        3000,
        0.10,
    );
}

#[test]
fn a_sample_of_the_keys_predicts_what_all_of_them_do() {
    let params = zipf(150_000, 300_000, 0.5, 0.5);
    let options = options(PageStoreKind::InPlace, 2 << 20);
    let device = device(&options, 5000);
    let whole = predicted(&params, &options, &device);
    let (header, mut source) = generate::build(&params).expect("good parameters");
    let span = Span {
        memory_bytes: 3_000_000,
        ..Span::after(header.warmup_ops)
    };
    let workload = Workload::analyze(&mut *source, span).expect("a trace");
    assert!(workload.sample_shift >= 1);
    let sample = predict(&workload, &options, &device, None);
    let says = |p: &Prediction| {
        let warned = p
            .warnings
            .iter()
            .any(|w| w.contains("a sample of the keys, 1 in"));
        let json = serde_json::to_value(p).expect("numbers and text");
        (p.estimated, json["estimated"] == true, warned)
    };
    assert_eq!(says(&whole), (false, false, false));
    assert_eq!(says(&sample), (true, true, true));
    let off = sample.host.total / whole.host.total - 1.0;
    assert!(
        off.abs() < 0.02,
        "{} and {}",
        whole.host.total,
        sample.host.total
    );
}

#[test]
fn the_same_inputs_give_the_same_prediction() {
    let params = zipf(10_000, 30_000, 0.5, 0.9);
    let options = options(PageStoreKind::InPlace, 256 << 10);
    let device = device(&options, 2000);
    let once = predicted(&params, &options, &device);
    assert_eq!(once, predicted(&params, &options, &device));
}
