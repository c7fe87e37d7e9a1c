//! The whole command as a user runs it: `treering replay` of 1 M YCSB-A operations after 100 k
//! inserts, 16+16 bytes, Zipf 0.9, cache 20 %. Includes process start, analysis and report.
//! `TREERING_BENCH_OPS` sets another number of operations (10 M for the published figure).

use std::path::PathBuf;
use std::process::Command;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Builds the command and returns its path.
fn treering() -> PathBuf {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "treering"])
        .current_dir(&workspace)
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the command does not build");
    workspace.join("target/release/treering")
}

fn replay(c: &mut Criterion) {
    let ops: u64 = std::env::var("TREERING_BENCH_OPS")
        .map_or(Ok(1_000_000), |n| n.parse())
        .expect("TREERING_BENCH_OPS: a number of operations");
    let (binary, folder) = (treering(), tempfile::tempdir().expect("a folder"));
    let run = |args: &[&str]| {
        let output = Command::new(&binary)
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("the command runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let (records, count) = ((ops / 10).to_string(), ops.to_string());
    run(&[
        "gen",
        "ycsb-a",
        "--records",
        &records,
        "--ops",
        &count,
        "--theta",
        "0.9",
        "--key-size",
        "16",
        "--value-size",
        "16",
        "-o",
        "a.trz",
    ]);
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(ops)).sample_size(10);
    for (name, flags) in [
        ("in-place", &["--store", "in-place"][..]),
        ("cow", &["--store", "cow"]),
        (
            "in-place, queued, 16 clients",
            &["--timing", "--clients", "16"],
        ),
    ] {
        let mut args = vec!["replay", "a.trz", "--cache", "20%"];
        args.extend(flags);
        group.bench_function(name, |b| b.iter(|| run(&args)));
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
