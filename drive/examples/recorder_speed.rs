//! Measures the recorder and the reader: `cargo run --release -p treering-drive --example
//! recorder_speed -- FILE [WRITES]`.
//!
//! Figures are CPU time, because wall time on a shared machine says little: of the thread that
//! hands over writes (what a face pays for) and of the whole process (with the recording thread).

use std::time::Instant;

use treering_drive::face::{Face, PageCache};
use treering_drive::recording::event::Write;
use treering_drive::recording::{
    Contents, Event, Extent, Header, NodeId, Reader, Recorded, Recorder, Sink,
};

const BLOCK: usize = 4096;

/// CPU time in seconds, of this thread or of the process.
fn cpu(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn thread() -> f64 {
    cpu(rustix::time::ClockId::ThreadCPUTime)
}

fn process() -> f64 {
    cpu(rustix::time::ClockId::ProcessCPUTime)
}

/// Fills a block: the first `random` bytes at random, the rest with text.
fn fill(block: &mut [u8], number: u64, random: usize) {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for word in block[..random].chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    for (at, byte) in block[random..].iter_mut().enumerate() {
        *byte = b"a row of a table, and the next; "[at % 32];
    }
}

fn record(path: &str, name: &str, writes: u64, contents: Contents, numbers: u64, random: usize) {
    let header = Header::new(Face::Files, 1 << 30, PageCache::WriteBack);
    let mut source = vec![0; BLOCK * 4096];
    let (mut handing, wall, all) = (0.0, Instant::now(), process());
    let mut making = 0.0;
    let recorder = Recorder::create(path, header, contents).expect("is created");
    for begin in (0..writes).step_by(4096) {
        let before = thread();
        for (n, block) in source.chunks_mut(BLOCK).enumerate() {
            fill(block, (begin + n as u64) % numbers, random);
        }
        let made = thread();
        for (n, block) in source.chunks(BLOCK).enumerate() {
            let lba = (begin + n as u64).wrapping_mul(7919) % (1 << 20);
            let write = Write {
                node: NodeId(2),
                offset: lba * 4096,
                len: BLOCK as u32,
                extents: vec![Extent { lba, blocks: 1 }],
                synced: false,
                cached: true,
            };
            recorder.write(write, block).expect("is taken");
        }
        making += made - before;
        handing += thread() - made;
    }
    let summary = recorder.finish().expect("is written");
    let (wall, all) = (wall.elapsed().as_secs_f64(), process() - all - making);
    let mb = writes as f64 * BLOCK as f64 / 1e6;
    let file = std::fs::metadata(path).expect("exists").len();
    println!(
        "{name:<22} {:>6.0} MB: hand over {:>5.0} ns, all {:>6.0} ns CPU a write \
         ({:>5.0} MB a CPU-s); wall {:>5.0} MB/s; {:.3} of the bytes, {} stored",
        mb,
        handing / writes as f64 * 1e9,
        all / writes as f64 * 1e9,
        mb / all,
        mb / wall,
        file as f64 / mb / 1e6,
        summary.stored_pieces
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("usage: recorder_speed FILE [WRITES]");
    let writes = args
        .next()
        .map_or(1 << 17, |n| n.parse().expect("a number"));
    let many = u64::MAX;
    record(&path, "random", writes, Contents::All, many, 4096);
    record(&path, "duplicates", writes, Contents::All, 1000, 2048);
    record(
        &path,
        "zero blocks, half text",
        writes,
        Contents::All,
        many,
        64,
    );
    record(&path, "no contents", writes, Contents::None, many, 2048);
    record(&path, "half random", writes, Contents::All, many, 2048);

    let mut reader = Reader::open(&path).expect("is readable");
    let (mut recorded, mut bytes, mut events) = (Recorded::default(), 0, 0_u64);
    let before = thread();
    for _ in 0..10 {
        reader.rewind();
        while reader.next(&mut recorded).expect("is readable") {
            if let Event::Write(write) = &recorded.event {
                bytes += u64::from(write.len);
            }
            events += 1;
        }
    }
    let took = thread() - before;
    println!(
        "read events: {:.1} ns an event, {:.1} M events a CPU-s ({bytes} bytes)",
        took / events as f64 * 1e9,
        events as f64 / took / 1e6
    );
    let mut pieces = reader.pieces().expect("is readable");
    let (before, mut contents) = (thread(), Vec::new());
    let mut read = 0;
    reader.rewind();
    while reader.next(&mut recorded).expect("is readable") {
        contents.clear();
        pieces.read(&recorded, &mut contents).expect("is readable");
        read += contents.len();
    }
    let took = thread() - before;
    println!("read contents: {:.0} MB a CPU-s", read as f64 / took / 1e6);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find(|line| line.starts_with("VmHWM"));
    println!(
        "{} (of these, 16 MiB are the example's own, and 16 MiB of read chunks)",
        most.unwrap_or("")
    );
}
