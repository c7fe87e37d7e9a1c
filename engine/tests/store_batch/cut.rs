//! Stores whose power fails in the middle of a batch, and again while recovery completes it.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, CrashDevice, Image, Request};
use treering_engine::{
    Batch, Durability, IoClass, Kv, Options, SalvageHints, required_blocks, salvage,
};

use super::support::{all, contents, tiny};
use super::{Map, apply, fill, key, open, value};

/// Cuts the power in the middle of a batch, at the first request that leaves the batch to recovery
/// and at the last such request. Returns both devices, and the contents with the batch.
fn cut_in_mid_batch(options: &Options) -> ([Arc<CrashDevice>; 2], Map) {
    let (mut first, mut last) = (None, None);
    for at in 0.. {
        let device = Arc::new(CrashDevice::new(required_blocks(options, 600)));
        let store = open(&device, options);
        let mut map = Map::new();
        for n in 0..400 {
            store.put(&key(2 * n), &value(n, 100)).expect("puts");
            map.insert(key(2 * n), value(n, 100));
        }
        store.checkpoint().expect("checkpoints");
        let mut batch = Batch::new();
        fill(&mut batch, (0..250).map(|n| (4 * n + 1, n, 100)));
        batch.put(key(5), value(5, 9_000)).delete(key(6));
        apply(&mut map, &batch);
        device.cut_power_in(at);
        let written = store.write(&batch);
        store.abandon();
        let image = device.crash_seeded(at);
        let copy = Arc::new(CrashDevice::from_image(image.clone()));
        if open(&copy, options).recovery().batches_completed > 0 {
            first.get_or_insert_with(|| image.clone());
            last = Some(image);
        }
        if written.is_ok() {
            let images = [first, last].map(|image| image.expect("some cut leaves it pending"));
            return (
                images.map(|image| Arc::new(CrashDevice::from_image(image))),
                map,
            );
        }
    }
    unreachable!("the batch must succeed eventually");
}

#[test]
fn every_reader_of_a_store_cut_in_mid_batch_sees_the_whole_batch() {
    for (tree, pages) in all() {
        let options = Options {
            log_buffer_bytes: 8192,
            durability: Durability::PerCommit,
            ..tiny(tree, pages)
        };
        let ([device, _], map) = cut_in_mid_batch(&options);
        let before = device.writes();
        let read_only = Options {
            read_only: true,
            ..options.clone()
        };
        assert_eq!(
            contents(&open(&device, &read_only)),
            map,
            "{tree:?} on {pages:?}"
        );
        assert_eq!(device.writes(), before, "opening read-only must not write");

        let mut salvaged = Map::new();
        let handle: Arc<dyn BlockDevice> = device.clone();
        let report = salvage(
            handle,
            SalvageHints::default(),
            &mut |_| {},
            &mut |key, value| {
                salvaged.insert(key.to_vec(), value.to_vec());
                Ok(())
            },
        )
        .expect("salvages");
        assert_eq!(report.damage, Vec::<String>::new(), "{tree:?} on {pages:?}");
        assert_eq!(salvaged, map, "{tree:?} on {pages:?}");

        let store = open(&device, &options);
        assert_eq!(store.recovery().batches_completed, 1);
        assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
        store.put(&key(1), b"later").expect("puts");
        store.close().expect("closes");
        let store = open(&device, &options);
        assert_eq!(store.recovery().batches_completed, 0);
        assert_eq!(
            store.get_owned(&key(1)).expect("reads").as_deref(),
            Some(&b"later"[..])
        );
    }
}

/// How an opening ends while it logs an intent.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// After the second and last write of the intent.
    Whole,
    /// One block before the end of this write, counted from 0.
    Short(usize),
    /// After the first write, of which the first block is lost.
    WithoutFirst,
}

/// A store that was cut in mid-batch is opened again and again, and each opening ends while it logs
/// the intent once more. This neither fills the log nor makes it look damaged.
#[test]
fn openings_that_are_cut_again_and_again_do_not_harm_the_log() {
    let ways: [&[Cut]; 4] = [
        &[Cut::Whole],
        &[Cut::Short(0)],
        &[Cut::Short(1)],
        &[Cut::Short(1), Cut::WithoutFirst],
    ];
    for (tree, pages) in all() {
        let options = Options {
            log_buffer_bytes: 8192,
            durability: Durability::PerCommit,
            ..tiny(tree, pages)
        };
        let (devices, map) = cut_in_mid_batch(&options);
        for (device, way) in devices.iter().flat_map(|d| ways.map(|way| (d, way))) {
            let mut image = device.crash_seeded(0);
            for cut in way.iter().cycle().take(24) {
                image = match open_and_cut(&image, *cut, &options) {
                    Some(image) => image,
                    None => break,
                };
            }
            let store = open(&Arc::new(CrashDevice::from_image(image)), &options);
            assert_eq!(contents(&store), map, "{tree:?} on {pages:?}, {way:?}");
        }
    }
}

/// Returns what an opening leaves that is cut. `None` if it does not log an intent in that way.
fn open_and_cut(image: &Image, cut: Cut, options: &Options) -> Option<Image> {
    let device = Arc::new(CrashDevice::from_image(image.clone()));
    device.record();
    open(&device, options).abandon();
    let mut requests = device.take_recording();
    // Nothing else in a recovery writes several blocks of the log at once.
    let is_intent = |request: &Request| matches!(request, Request::Write { blocks, class: IoClass::Log, .. } if blocks.len() > 2);
    let mut writes = (0..requests.len()).filter(|i| is_intent(&requests[*i]));
    let last = match cut {
        Cut::Whole => writes.nth(1)?,
        Cut::Short(number) => writes.nth(number)?,
        Cut::WithoutFirst => writes.next()?,
    };
    requests.truncate(last + 1);
    if let Some(Request::Write { lba, blocks, .. }) = requests.last_mut() {
        match cut {
            Cut::Whole => {}
            Cut::Short(_) => drop(blocks.pop()),
            Cut::WithoutFirst => {
                blocks.remove(0);
                lba.0 += 1;
            }
        }
    }
    let device = CrashDevice::from_image(image.clone());
    requests.iter().for_each(|request| device.apply(request));
    Some(device.crash(&mut |outcomes| outcomes - 1))
}
