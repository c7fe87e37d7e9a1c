//! Mounts a disk with a real file system, to try by hand, and says what reached it.
//!
//! ```text
//! mount_disk DIR ext4|xfs|btrfs|none MIB [COMMAND…]
//! ```
//!
//! Runs the command in DIR, or waits for the end of standard input; then unmounts.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use treering_drive::face::{FileSystem, MountOptions, Mounted, PageCache};
use treering_drive::recording::event::Write;
use treering_drive::recording::{Event, Sink, Stopped};
use treering_drive::{acks, disk, program};

/// Counts events.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    fn add(&self, name: &'static str, count: u64) {
        *self.0.lock().entry(name).or_default() += count;
    }
}

impl Sink for Counts {
    fn note(&self, event: Event) -> Result<(), Stopped> {
        match event {
            Event::Flush { .. } => self.add("flushes", 1),
            Event::Map { .. } => self.add("maps of files", 1),
            Event::Discard { extents, .. } => {
                self.add("discards", 1);
                self.add("blocks discarded", extents.iter().map(|e| e.blocks).sum());
            }
            Event::Region { name, extents } => {
                self.add("regions", 1);
                if extents.iter().map(|e| e.blocks).sum::<u64>() > 64 {
                    eprintln!("{name}: {} extents", extents.len());
                }
            }
            Event::Mark { line } => eprintln!("mark: {}", String::from_utf8_lossy(&line)),
            _ => self.add("others", 1),
        }
        Ok(())
    }

    fn write(&self, write: Write, _: &[u8]) -> Result<(), Stopped> {
        self.add("writes", 1);
        self.add("bytes written", write.len.into());
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [dir, fs, mib, command @ ..] = arguments.as_slice() else {
        return Err("mount_disk DIR ext4|xfs|btrfs|none MIB [COMMAND…]".into());
    };
    let fs = match fs.to_string_lossy().as_ref() {
        "ext4" => FileSystem::Ext4,
        "xfs" => FileSystem::Xfs,
        "btrfs" => FileSystem::Btrfs,
        "none" => FileSystem::None,
        other => return Err(format!("{other}: ext4, xfs, btrfs or none").into()),
    };
    let mib: u64 = mib.to_string_lossy().parse()?;
    let options = MountOptions {
        dir: PathBuf::from(dir),
        capacity_blocks: mib * 256,
        keep: std::env::var_os("KEEP").map(PathBuf::from),
        page_cache: PageCache::WriteBack,
        threads: 1,
        faults: Arc::default(),
    };
    let counts = Arc::new(Counts::default());
    let sink: Arc<dyn Sink> = match std::env::var_os("NOWHERE") {
        Some(_) => Arc::new(treering_drive::recording::Nowhere),
        None => counts.clone(),
    };
    let mounted = disk::mount(&options, fs, Arc::clone(&sink))?;
    if command.is_empty() {
        eprintln!("mounted on {}; end with Ctrl-D", mounted.dir().display());
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    } else {
        let acks = acks::mount(sink)?;
        let path = Some(acks.path());
        let ended = program::run(command, mounted.dir(), path, &[], &|| None)?;
        eprintln!("{ended:?}, user bytes: {:?}", acks.user_bytes());
    }
    let unmounted = Box::new(mounted).unmount()?;
    eprintln!("{unmounted:?}");
    for (name, count) in counts.0.lock().iter() {
        println!("{count:>12} {name}");
    }
    Ok(())
}
