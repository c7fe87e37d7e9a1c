//! The real ring along the labelled edges of the `CircularBuffer` smoke model.

use std::path::Path;
use std::time::Duration;

use treering_model::mirror::circular_buffer::CircularBuffer;
use treering_model::oracle::events::ring::cover;
use treering_model::{Config, Mirror};

#[test]
fn the_ring_takes_the_steps_of_the_mirror() {
    let specs = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../specs/circular_buffer/MCCircularBuffer_smoke.cfg"
    ));
    let config = Config::read(specs).expect("the smoke model");
    let mirror = CircularBuffer::from_config(&config).expect("a mirror");
    let cover = cover::run(&mirror, Duration::from_secs(5)).expect("a ring");
    println!("{cover:#?}");
    assert_eq!(cover.mismatch, None);
}
