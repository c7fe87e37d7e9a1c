//! A damaged image gives an error or some regions; never a panic, never an endless walk.

mod disk;

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_drive::face::FileSystem;
use treering_drive::image::Image;
use treering_drive::layout::{Addresses, Sniffer, holds, regions};

const MIB: u64 = 320;

/// An image with a file system and some files, made without mounting it.
fn image(dir: &Path, fs: FileSystem) -> Option<Image> {
    let make = match fs {
        FileSystem::Ext4 => "mkfs.ext4 -q -F -b 4096 -d files disk",
        FileSystem::Xfs => "mkfs.xfs -q -s size=4096 disk",
        _ => "mkfs.btrfs -q --rootdir files disk",
    };
    if !disk::has(make.split(' ').next().unwrap_or("")) {
        return None;
    }
    let script = format!(
        "export PATH=$PATH:/usr/sbin:/sbin; mkdir -p files; for i in $(seq 300); do mkdir -p \
         files/$((i % 9)); seq $((i * 40)) > files/$((i % 9))/$i; done; truncate -s {MIB}M disk; \
         {make}"
    );
    disk::shell(dir, &script);
    Some(Image::open(&dir.join("disk"), MIB << 8).expect("an image"))
}

/// Reads everything there is to read of an image.
fn read(image: &Image, fs: FileSystem, block: u64) -> bool {
    let began = Instant::now();
    let found = regions(image, fs);
    let _ = holds(image);
    if let Ok(addresses) = Addresses::read(image, fs) {
        for at in [0, 30 << 20, u64::MAX - 4096] {
            let _ = addresses.blocks(at, 1 << 20);
        }
    }
    let mut bytes = vec![0; 4096];
    image.read(block * 4096, &mut bytes).expect("on the disk");
    let mut sniffer = Sniffer::new(image, fs);
    let _ = sniffer.look(block * 4096, &bytes);
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(20),
        "{fs:?}: block {block}: {took:?}"
    );
    for extent in found.iter().flatten().flat_map(|(_, extents)| extents) {
        assert!(
            extent.lba + extent.blocks <= MIB << 8,
            "{fs:?}: {extent:?} is beyond the end"
        );
    }
    found.is_ok()
}

#[test]
fn damage_is_an_error_and_not_the_end() {
    for fs in disk::ALL {
        let dir = tempfile::tempdir().expect("dir");
        let Some(image) = image(dir.path(), fs) else {
            continue;
        };
        assert_eq!(holds(&image).expect("readable"), Some(fs));
        let healthy = regions(&image, fs).unwrap_or_else(|error| panic!("{fs:?}: {error}"));
        let mut blocks: Vec<u64> = vec![0, 1, 16];
        for (_, extents) in &healthy {
            for extent in extents {
                let end = extent.lba + extent.blocks.min(12);
                blocks.extend(extent.lba..end);
            }
        }
        let mut random = StdRng::seed_from_u64(25);
        let mut refused = 0;
        for _ in 0..400 {
            let block = blocks[random.random_range(0..blocks.len())];
            let mut bytes = vec![0; 4096];
            image.read(block * 4096, &mut bytes).expect("on the disk");
            let good = bytes.clone();
            let most = if random.random() { 200 } else { 4096 };
            for _ in 0..random.random_range(1..12) {
                let at = random.random_range(0..most);
                bytes[at] = if random.random() {
                    0xFF
                } else {
                    random.random()
                };
            }
            image.write(block * 4096, &bytes).expect("room");
            refused += u32::from(!read(&image, fs, block));
            image.write(block * 4096, &good).expect("room");
        }
        eprintln!("{fs:?}: {refused} of 400 damaged images refused");
        assert!(refused > 0, "{fs:?}: damage is seen");
        assert_eq!(regions(&image, fs).expect("healthy again"), healthy);
    }
}

#[test]
fn an_image_of_something_else_is_refused() {
    let image = Image::new(MIB << 8).expect("room");
    assert_eq!(holds(&image).expect("readable"), None);
    for fs in disk::ALL {
        let error = regions(&image, fs).expect_err("no file system").to_string();
        assert!(error.starts_with("disk: the superblock of "), "{error}");
    }
    let tiny = Image::new(1).expect("room");
    assert_eq!(holds(&tiny).expect("readable"), None);
    for fs in disk::ALL {
        assert!(regions(&tiny, fs).is_err());
        let _ = Sniffer::new(&tiny, fs);
    }
}
