//! Speed of trace generation: the Zipf sampler beside that of `rand_distr` (rejection sampling with
//! the platform's floating-point library), and whole generators in operations per second.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand::SeedableRng;
use rand_distr::Distribution;
use treering_traces::Op;
use treering_traces::generate::{GenParams, Workload, Zipf, build};

const SAMPLES: u64 = 100_000;
const RECORDS: u64 = 10_000_000;

fn zipf(c: &mut Criterion) {
    let mut group = c.benchmark_group("zipf");
    group.throughput(Throughput::Elements(SAMPLES));
    for theta in [0.5, 0.99, 1.0, 1.5] {
        let ours = Zipf::new(RECORDS, theta);
        group.bench_function(format!("rejection-inversion/{theta}"), |b| {
            b.iter(|| ours.sum_of_samples(1, SAMPLES));
        });
        let theirs = rand_distr::Zipf::new(RECORDS as f64, theta).expect("a valid law");
        group.bench_function(format!("rand_distr/{theta}"), |b| {
            b.iter(|| {
                let mut random = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(1);
                (0..SAMPLES).fold(0.0, |sum, _| sum + theirs.sample(&mut random))
            });
        });
    }
    group.finish();
}

fn generators(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate");
    group.throughput(Throughput::Elements(SAMPLES));
    for (workload, name) in Workload::ALL {
        let mut params = GenParams::new(workload, RECORDS);
        if workload != Workload::Load {
            params.no_load = true;
            params.ops = Some(SAMPLES);
        }
        group.bench_function(name, |b| {
            b.iter_batched(
                || build(&params).expect("valid parameters").1,
                |mut source| {
                    let mut op = Op::default();
                    let mut bytes = 0;
                    for _ in 0..SAMPLES {
                        if !source.next_op(&mut op).expect("generators do not fail") {
                            break;
                        }
                        bytes += op.key.len();
                    }
                    bytes
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = zipf, generators
}
criterion_main!(benches);
