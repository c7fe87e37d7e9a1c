//! How fast recordings are replayed: CPU time of a million recorded 4 KiB writes.
//!
//! ```text
//! cargo run --release -p treering-drive --example replay_speed
//! ```
//!
//! Writes go to random blocks of a file of 200,000 blocks, one in ten of them to a log that is
//! written in order.

use std::time::Instant;

use treering_drive::face::{Face, PageCache};
use treering_drive::measure::Settings;
use treering_drive::recording::event::Write;
use treering_drive::recording::{
    Contents, Event, Extent, Header, NodeId, NodeKind, Recorder, Sink,
};
use treering_drive::report::DriveReport;
use treering_sim::replay::Target;

const WRITES: u64 = 2_000_000;
const BLOCKS: u64 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("run.log");
    let header = Header::new(Face::Files, 2 * BLOCKS, PageCache::WriteBack);
    let recorder = Recorder::create(&log, header, Contents::None)?;
    for (node, name) in [(2, "000001.sst"), (3, "000002.log")] {
        let node = NodeId(node);
        recorder.note(Event::Make {
            node,
            kind: NodeKind::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            device: 0,
            target: Vec::new(),
        })?;
        recorder.note(Event::Link {
            parent: NodeId::ROOT,
            name: name.into(),
            node,
        })?;
    }
    let bytes = [1; 4096];
    let mut random = 1_u64;
    for i in 0..WRITES {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (node, at, base) = match i % 10 {
            0 => (3, i / 10 % 20_000, BLOCKS),
            _ => (2, (random >> 33) % BLOCKS, 0),
        };
        let write = Write {
            node: NodeId(node),
            offset: at * 4096,
            len: 4096,
            extents: vec![Extent {
                lba: base + at,
                blocks: 1,
            }],
            synced: false,
            cached: true,
        };
        recorder.write(write, &bytes)?;
    }
    recorder.finish()?;
    for (name, predict) in [("measured alone", false), ("and predicted", true)] {
        let target = Target::builtin("ssd").ok_or("a built-in drive")?;
        let mut settings = Settings::new(&log, target);
        if !predict {
            settings.predict = None;
        }
        let begin = Instant::now();
        let report = DriveReport::measure(&settings, &mut |_, _, _| {})?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{name}: {:.2} M writes/s, flash over host {:.3}",
            WRITES as f64 / seconds / 1e6,
            report.wa.device.map_or(0.0, |wa| wa.nand_over_host)
        );
    }
    Ok(())
}
