//! Seeded bugs of the ring, which walks over the graph of the mirror must reveal. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

use std::path::Path;
use std::time::Duration;

use treering_specs::conformance::ring::cover;
use treering_specs::mirror::circular_buffer::CircularBuffer;
use treering_specs::{Config, Mirror};

#[test]
fn walks_over_the_mirror_reveal_every_seeded_bug_of_the_ring() {
    /// The bug, and a part of the description of the difference.
    const BUGS: [(&str, &str); 4] = [
        ("ring-listed-block-passed", "PopFreeList"),
        ("ring-no-padding", "Allocate"),
        ("ring-head-out-of-order", "the head"),
        ("ring-evicted-before-unmapped", "nobody has evicted"),
    ];
    let specs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs"));
    let smoke = specs.join("circular_buffer/MCCircularBuffer_smoke.cfg");
    let config = Config::read(&smoke).expect("the smoke model");
    let mirror = CircularBuffer::from_config(&config).expect("a mirror");
    for (bug, why) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let cover = cover::run(&mirror, Duration::from_secs(120)).expect("a ring");
        treering_engine::choose_mutation(None);
        let Some(mismatch) = cover.mismatch else {
            panic!("{bug} was not found");
        };
        println!("{bug}: after {} steps: {}", cover.steps, mismatch.why);
        assert!(
            mismatch.why.contains(why),
            "{bug}: expected {why}; found {}",
            mismatch.why
        );
    }
}
