//! Mounts the face `files` by hand, until it is unmounted or standard input ends.
//!
//! `mount_files DIR CAPACITY_MIB [--keep KEPT] [--write-through] [--threads N] [--stay]`
//!
//! With `--stay` it does not look at standard input. When it ends it prints what was done.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use treering_drive::DriveError;
use treering_drive::face::{MountOptions, Mounted, PageCache};
use treering_drive::recording::Nowhere;

const USAGE: &str =
    "usage: mount_files DIR CAPACITY_MIB [--keep KEPT] [--write-through] [--threads N] [--stay]";

fn main() {
    let (options, stay) = parse().unwrap_or_else(|| {
        eprintln!("{USAGE}");
        std::process::exit(2);
    });
    if let Err(error) = serve(&options, stay) {
        eprintln!("mount_files: {error}");
        std::process::exit(1);
    }
}

fn parse() -> Option<(MountOptions, bool)> {
    let mut arguments = std::env::args().skip(1);
    let mut options = MountOptions {
        dir: PathBuf::from(arguments.next()?),
        capacity_blocks: arguments.next()?.parse::<u64>().ok()? * 256,
        keep: None,
        page_cache: PageCache::WriteBack,
        threads: 2,
        faults: Arc::default(),
    };
    let mut stay = false;
    while let Some(flag) = arguments.next() {
        match flag.as_str() {
            "--keep" => options.keep = Some(PathBuf::from(arguments.next()?)),
            "--write-through" => options.page_cache = PageCache::WriteThrough,
            "--threads" => options.threads = arguments.next()?.parse().ok()?,
            "--stay" => stay = true,
            _ => return None,
        }
    }
    Some((options, stay))
}

fn serve(options: &MountOptions, stay: bool) -> Result<(), DriveError> {
    let mount = treering_drive::files::mount(options, Arc::new(Nowhere))?;
    println!("mounted {}", mount.dir().display());
    if stay {
        while mount.is_mounted() {
            thread::sleep(Duration::from_millis(200));
        }
    } else {
        // Whatever comes, its end is the end.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    let stats = mount.stats();
    let unmounted = Box::new(mount).unmount()?;
    if let Some(users) = unmounted.busy {
        eprintln!("mount_files: still in use: {users}");
    }
    println!("{stats:?}");
    Ok(())
}
