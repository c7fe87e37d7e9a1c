//! Traces: importing text, and writing and reading the two encodings. Throughput is in bytes of
//! text, or in operations.
//!
//! Compared with: `lines`, which only splits the same text into lines and bounds every importer
//! from below; and `jsonl` beside `trz`.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_traces::import::{Format, ImportOptions, import, import_file};
use treering_traces::input::{self, Lines};
use treering_traces::{Header, Op, OpKind, OpSource, Writer, open};

const LINES: u64 = 500_000;
const OPS: u64 = 1_000_000;

/// Text of a block trace, one request of one block per line, in Alibaba's or MQSim's layout.
fn text(format: Format) -> Vec<u8> {
    let mut rng = SmallRng::seed_from_u64(0);
    let mut text = Vec::new();
    for i in 0..LINES {
        let (block, write) = (rng.random_range(0..10_000_000u64), rng.random_bool(0.5));
        let line = match format {
            Format::Mqsim => format!("{} 0 {} 8 {}\n", i * 1000, block * 8, u8::from(!write)),
            _ => {
                let op = if write { 'W' } else { 'R' };
                format!(
                    "{},{op},{},4096,{}\n",
                    i % 8,
                    block * 4096,
                    1_577_808_000_000_000 + i
                )
            }
        };
        text.write_all(line.as_bytes()).expect("memory is writable");
    }
    text
}

fn options(format: Format) -> ImportOptions {
    let columns = "device=1,op=2,offset=3:bytes,size=4:bytes,time=5:us";
    let columns = (format == Format::Csv).then(|| columns.into());
    ImportOptions {
        columns,
        ..ImportOptions::default()
    }
}

fn imports(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = criterion.benchmark_group("traces/import");
    group.sample_size(10);
    for format in [Format::Csv, Format::Mqsim] {
        let path = folder.path().join(format.name());
        let text = text(format);
        fs::write(&path, &text).expect("room for the text");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(format!("{format}/lines"), |b| {
            b.iter(|| {
                let mut lines = Lines::new(input::open(&path).expect("it exists"), 0);
                while lines.next_line("text").expect("readable").is_some() {}
                lines.bytes_read()
            });
        });
        group.bench_function(format!("{format}/ops"), |b| {
            b.iter(|| {
                import(format, &path, &options(format), &mut |op| {
                    black_box(op);
                    Ok(())
                })
                .expect("good lines")
            });
        });
        let output = folder.path().join("out.trz");
        group.bench_function(format!("{format}/to-trz"), |b| {
            b.iter(|| {
                import_file(format, &path, &options(format), &output, &mut |_, _| {
                    ControlFlow::Continue(())
                })
                .expect("good lines")
            });
        });
    }
    group.finish();
}

/// Half puts of 120-byte values and half gets, on 8-byte keys or on 16-byte keys such as
/// `user000001234567`.
fn operations(key_len: usize) -> Vec<Op> {
    let mut rng = SmallRng::seed_from_u64(0);
    (0..OPS)
        .map(|i| {
            let kind = if rng.random_bool(0.5) {
                OpKind::Put
            } else {
                OpKind::Get
            };
            let number = rng.random_range(0..10_000_000u64);
            let key = match key_len {
                8 => number.to_be_bytes().to_vec(),
                _ => format!("user{number:012}").into_bytes(),
            };
            let value_len = if kind == OpKind::Put { 120 } else { 0 };
            Op {
                kind,
                key,
                value_len,
                time_ns: Some(i * 1000),
                ..Op::default()
            }
        })
        .collect()
}

fn write(path: &Path, ops: &[Op]) {
    let header = Header {
        schema: Header::SCHEMA.into(),
        name: "bench".into(),
        source: "bench".into(),
        ops: 0,
        warmup_ops: 0,
        records: None,
        zeros: 0.5,
        seed: Some(0),
        addresses: false,
    };
    let mut writer = Writer::create(path, header).expect("a writable folder");
    for op in ops {
        writer.write(op).expect("room on the disk");
    }
    writer.finish().expect("room on the disk");
}

fn formats(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = criterion.benchmark_group("traces/format");
    group.sample_size(10).throughput(Throughput::Elements(OPS));
    for key_len in [8, 16] {
        let ops = operations(key_len);
        for encoding in ["trz", "jsonl"] {
            let path = folder.path().join(format!("{key_len}.{encoding}"));
            group.bench_function(format!("{encoding}/write/{key_len}"), |b| {
                b.iter(|| write(&path, &ops));
            });
            write(&path, &ops);
            group.bench_function(format!("{encoding}/read/{key_len}"), |b| {
                b.iter_batched(
                    || (open(&path).expect("it exists"), Op::default()),
                    |(mut reader, mut op)| {
                        while reader.next_op(&mut op).expect("a whole trace") {
                            black_box(&op);
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, imports, formats);
criterion_main!(benches);
