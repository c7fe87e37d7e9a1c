//! The real ring follows the labelled edges of the `CircularBuffer` smoke model.

use std::path::Path;
use std::time::Duration;

use treering_specs::conformance::cover::Cover;
use treering_specs::conformance::ring::cover;
use treering_specs::mirror::circular_buffer::CircularBuffer;
use treering_specs::{Config, Mirror};

fn walks(limit: Duration) -> Cover {
    let specs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs"));
    let smoke = specs.join("circular_buffer/MCCircularBuffer_smoke.cfg");
    let config = Config::read(&smoke).expect("the smoke model");
    let mirror = CircularBuffer::from_config(&config).expect("a mirror");
    let cover = cover::run(&mirror, limit).expect("a ring");
    if let Some(mismatch) = &cover.mismatch {
        panic!("{mismatch}");
    }
    cover
}

#[test]
fn the_ring_follows_walks_over_the_mirror() {
    let cover = walks(Duration::from_secs(5));
    assert_eq!((cover.states, cover.edges), (72_535, 146_556));
    assert!(cover.taken_in_all() > 3_000, "{}", cover.taken_in_all());
}

#[test]
#[ignore = "slow: takes minutes; in release: cargo test --release -p treering-specs --test ring_cover -- --ignored --nocapture"]
fn the_ring_takes_every_possible_edge() {
    let cover = walks(Duration::from_secs(900));
    println!("{cover:#?}\n{} edges taken", cover.taken_in_all());
    assert_eq!(cover.left.values().sum::<usize>(), 0);
    assert!(cover.never_taken().is_empty(), "{:?}", cover.never_taken());
}
