//! The XPBuffer and the allocator against small brute force.

use std::collections::VecDeque;

use super::lines::{Class, Lines};
use super::space::Space;
use crate::pm::{PmProfile, builtin};
use crate::ssd::gc::SplitMix;

fn profile(change: impl FnOnce(&mut PmProfile)) -> PmProfile {
    let (_, mut profile) = builtin("pm").expect("built in");
    change(&mut profile);
    profile
}

/// XPLines that a buffer of `slots` XPLines in order of arrival writes, a full one at once.
fn by_brute_force(slots: usize, lines: &[u32]) -> u64 {
    let mut buffer: VecDeque<(u32, u8)> = VecDeque::new();
    let mut written = 0;
    for line in lines {
        let xpline = line / 4;
        if !buffer.iter().any(|(there, _)| *there == xpline) {
            if buffer.len() == slots {
                let (_, dirty) = buffer.pop_front().expect("it is full");
                written += u64::from(dirty != 0);
            }
            buffer.push_back((xpline, 0));
        }
        for (there, dirty) in &mut buffer {
            if *there == xpline {
                *dirty |= 1 << (line % 4);
                if *dirty == 0xf {
                    *dirty = 0;
                    written += 1;
                }
            }
        }
    }
    written
}

#[test]
fn an_xpbuffer_writes_what_brute_force_does() {
    let mut random = SplitMix(3);
    for slots in [1, 4, 16] {
        let profile = profile(|p| {
            p.buffer.lines = slots;
            p.buffer.replacement = "fifo".into();
        });
        let lines: Vec<u32> = (0..5_000).map(|_| random.below(200) as u32).collect();
        let mut played = Lines::new(&profile, 1 << 20, (4096, 4096, 16), 1);
        lines
            .iter()
            .for_each(|line| played.write(u64::from(*line) * 64, 1));
        let written: u64 = played.written.xplines.iter().sum();
        assert_eq!(
            written,
            by_brute_force(slots as usize, &lines),
            "{slots} slots"
        );
    }
}

#[test]
fn lines_are_counted_by_what_their_chunk_is() {
    let mut lines = Lines::new(&profile(|_| {}), 1 << 20, (4096, 4096, 16), 1);
    lines.set_class(0, Class::Page);
    lines.set_class(1, Class::Log);
    lines.write(64, 8);
    lines.write(4096, 65);
    lines.write(8192, 129);
    assert_eq!(lines.written.lines, [3, 2, 1]);
}

#[test]
fn records_of_one_size_take_each_others_places_once_the_floor_is_raised() {
    let mut lines = Lines::new(&profile(|_| {}), 1 << 20, (4096, 4096, 64), 1);
    let mut space = Space::new(1 << 18, 4096, 256);
    let first = space.put_record(100, &mut lines);
    space.retire_record(first, 5, &mut lines);
    assert_eq!((space.record_bytes, space.retired_bytes), (112, 112));
    let second = space.put_record(100, &mut lines);
    space.floor_raised(5);
    assert_eq!(
        space.retired_bytes, 112,
        "an entry of that moment may name it"
    );
    space.floor_raised(6);
    assert_eq!((space.record_bytes, space.retired_bytes), (112, 0));
    space.free_record(second, &mut lines);
    // Longer than a chunk: two pieces.
    space.put_record(5_000, &mut lines);
    assert_eq!(
        space.record_bytes,
        4096 + (5_000u64 - 4_080 + 8).next_multiple_of(16)
    );
}
