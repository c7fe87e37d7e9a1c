//! Garbage collection in miniature, against that of the whole drive.

#[path = "support/streams.rs"]
mod streams;

use streams::{Request, STREAMS, Stream};
use treering_sim::predict::Before;
use treering_sim::predict::flash::{Flash, FlashShape};
use treering_sim::ssd::{Frontiers, Ftl, FtlConfig, GcPolicy};

const BLOCKS: u64 = 60_000;
const PAGES: u32 = 128;
const POLICIES: [&str; 6] = [
    "greedy",
    "fifo",
    "random",
    "d-choices:4",
    "windowed-greedy:50",
    "cost-benefit",
];
/// The aim for `k` = 4, as a share of the total.
const TOLERANCE: f64 = 0.03;

/// Pages programmed per host page on a full drive with this much over-provisioning: by the whole
/// drive, and as one block in `sample` predicts it; with the standard error of the latter.
fn amplifications(
    stream: Stream,
    (policy, frontiers): (&str, Frontiers),
    sample: u32,
    spare: (f64, f64),
) -> (f64, f64, f64) {
    let policy = GcPolicy::parse(policy).unwrap();
    let config = |over_provisioning| FtlConfig {
        reserve_blocks: 3,
        frontiers,
        ..FtlConfig::new(BLOCKS, PAGES, over_provisioning, policy)
    };
    let mut whole = Ftl::new(&config(spare.0)).unwrap();
    let modelled = FlashShape::of_pages(&config(spare.1));
    let mut small = Flash::sampled(&modelled, sample, 7, Before::InOrder).unwrap();
    (0..BLOCKS).for_each(|lba| whole.write(lba as u32));
    for seed in [3, 4] {
        whole.reset_counters();
        small.begin_measured();
        stream.play(BLOCKS, 4 * BLOCKS, seed, |request| match request {
            Request::Write(lba) => {
                whole.write(lba as u32);
                small.write(lba, 4096, 0);
            }
            Request::Trim(lba, blocks) => {
                for lba in lba..lba + blocks {
                    whole.trim(lba as u32);
                }
                small.trim(lba, blocks);
            }
        });
    }
    let found = small.forecast();
    assert_eq!(found.host_bytes, 4 * BLOCKS * 4096);
    (
        whole.counters().write_amplification().unwrap(),
        1.0 + found.gc_per_host,
        found.standard_error,
    )
}

#[test]
fn a_quarter_of_the_blocks_predicts_the_drive() {
    for policy in POLICIES {
        for stream in STREAMS {
            for frontiers in [Frontiers::Shared, Frontiers::Separate] {
                // With half of all writes to eight blocks, what greedy cleaning finds among host
                // blocks depends on their size more than under uniform writes.
                let tolerance = match (policy, stream, frontiers) {
                    ("greedy", Stream::VeryHot, Frontiers::Separate) => 3.0 * TOLERANCE,
                    _ => TOLERANCE,
                };
                let (whole, small, error) =
                    amplifications(stream, (policy, frontiers), 4, (0.28, 0.28));
                let off = small / whole - 1.0;
                assert!(
                    off.abs() < tolerance + 2.0 * error / whole,
                    "{policy}, {stream:?}, {frontiers:?}: {small}, not {whole}"
                );
            }
        }
    }
}

#[test]
fn a_model_of_another_drive_is_noticed() {
    for stream in [Stream::Uniform, Stream::HotCold] {
        let (whole, small, _) =
            amplifications(stream, ("greedy", Frontiers::Shared), 4, (0.28, 0.20));
        let off = small / whole - 1.0;
        assert!(
            off.abs() > TOLERANCE,
            "{stream:?}: {small} is as good as {whole}"
        );
    }
}
