//! Prints how far a drive's garbage collection in miniature is from that of the whole drive, by
//! stream of writes and victim selection policy.
//!
//! `cargo run --release -p treering-sim --example flash_miniature`

#[path = "../tests/support/streams.rs"]
mod streams;

use streams::{Request, STREAMS};
use treering_sim::predict::Before;
use treering_sim::predict::flash::{Flash, FlashShape};
use treering_sim::ssd::{Frontiers, Ftl, FtlConfig, GcPolicy, GeometryError};

const BLOCKS: u64 = 100_000;
const PAGES: u32 = 256;

fn main() -> Result<(), GeometryError> {
    let policies = [
        "greedy",
        "fifo",
        "random",
        "d-choices:4",
        "windowed-greedy:50",
        "cost-benefit",
    ];
    println!(
        "gc pages per host page: whole drive, and miniatures of 1/k (total in %, standard error in %)"
    );
    for over_provisioning in [0.07, 0.28] {
        for frontiers in [Frontiers::Shared, Frontiers::Separate] {
            for name in policies {
                let policy = GcPolicy::parse(name).unwrap_or(GcPolicy::Greedy);
                println!("\n{name}, {frontiers:?}, over-provisioning {over_provisioning}");
                for stream in STREAMS {
                    let mut config = FtlConfig::new(BLOCKS, PAGES, over_provisioning, policy);
                    config.frontiers = frontiers;
                    config.reserve_blocks = 3;
                    let mut whole = Ftl::new(&config)?;
                    let shape = FlashShape::of_pages(&whole.config());
                    let mut small = [4, 8]
                        .map(|k| Flash::sampled(&shape, k, 7, Before::InOrder))
                        .into_iter()
                        .collect::<Result<Vec<_>, _>>()?;
                    (0..BLOCKS).for_each(|lba| whole.write(lba as u32));
                    for measured in [false, true] {
                        if measured {
                            whole.reset_counters();
                            small.iter_mut().for_each(Flash::begin_measured);
                        }
                        stream.play(BLOCKS, 4 * BLOCKS, 3 + u64::from(measured), |request| {
                            match request {
                                Request::Write(lba) => {
                                    whole.write(lba as u32);
                                    small.iter_mut().for_each(|flash| flash.write(lba, 4096, 0));
                                }
                                Request::Trim(lba, blocks) => {
                                    for lba in lba..lba + blocks {
                                        whole.trim(lba as u32);
                                    }
                                    small.iter_mut().for_each(|flash| flash.trim(lba, blocks));
                                }
                            }
                        });
                    }
                    let counters = whole.counters();
                    let found = counters.gc_writes as f64 / counters.host_writes as f64;
                    print!("  {:14} {found:6.3}", format!("{stream:?}"));
                    for flash in &small {
                        let forecast = flash.forecast();
                        let off = (1.0 + forecast.gc_per_host) / (1.0 + found) - 1.0;
                        print!(
                            "   1/{:<2} {:6.3} {:+5.1} ±{:4.1}",
                            flash.sample(),
                            forecast.gc_per_host,
                            100.0 * off,
                            100.0 * forecast.standard_error / (1.0 + found)
                        );
                    }
                    println!();
                }
            }
        }
    }
    Ok(())
}
