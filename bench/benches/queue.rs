//! The event queue in the hold model (pop the earliest event, push it again later), as closed-loop
//! clients use it, beside sorted insertion into a `Vec`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use treering_sim::clock::VirtualNanos;
use treering_sim::queue::EventQueue;

/// Service times from 1 to 2^17 ns, cheap and repeatable.
fn service_ns(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 47) + 1
}

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue/hold");
    group.throughput(Throughput::Elements(1));
    for clients in [2u64, 16, 256] {
        group.bench_with_input(
            BenchmarkId::new("heap", clients),
            &clients,
            |b, &clients| {
                let mut queue = EventQueue::with_capacity(clients as usize);
                let mut state = 1;
                for client in 0..clients {
                    queue.push(VirtualNanos(service_ns(&mut state)), client);
                }
                b.iter(|| {
                    if let Some((at, client)) = queue.pop() {
                        queue.push(at + service_ns(&mut state), black_box(client));
                    }
                });
            },
        );
        group.bench_with_input(
            BenchmarkId::new("sorted vec", clients),
            &clients,
            |b, &clients| {
                let mut state = 1;
                let mut events: Vec<(u64, u64)> =
                    (0..clients).map(|c| (service_ns(&mut state), c)).collect();
                events.sort_by(|a, b| b.cmp(a));
                b.iter(|| {
                    if let Some((at, client)) = events.pop() {
                        let event = (at + service_ns(&mut state), black_box(client));
                        let place = events.partition_point(|other| *other > event);
                        events.insert(place, event);
                    }
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
