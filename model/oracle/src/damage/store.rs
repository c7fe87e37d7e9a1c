//! The store that is damaged, and its history.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tempfile::NamedTempFile;
use treering_engine::device::{
    Block, BlockDevice, CrashDevice, DeviceError, FileDevice, FileDiscards, FileIo, FileOptions,
    Image,
};
use treering_engine::{BLOCK_SIZE, Batch, Error, IoClass, Kv, Lba, Lsn, survey};

use super::state::State;
use crate::deadline::Deadline;
use crate::engine::size_in_batch;
use crate::finding::{Check, Finding};
use crate::random::Random;
use crate::{Disk, DiskKind, Engine, LongValues, Write};

/// The number of keys that a program uses.
const KEYS: u64 = 300;
/// Building the store gets at most this share of the time until a deadline.
pub(super) const BUILT: f64 = 0.4;
/// The number of earlier times at which the medium is kept.
pub(super) const PAST: usize = 8;

/// The value that the record with an LSN gave to a key. `None` for a delete.
pub(super) type Version = (Lsn, Option<Vec<u8>>);

/// A store on a medium, and what reads of it must return.
pub(super) struct Built {
    pub(super) state: State,
    /// The number of operations that made it.
    pub(super) operations: u64,
    /// Whether discards do nothing.
    pub(super) inert: bool,
    pub(super) image: Image,
    /// The medium at earlier times, oldest first.
    pub(super) past: Vec<Image>,
    /// A medium with another store of the same engine.
    pub(super) foreign: Image,
    /// Every key's versions. The last one is acknowledged.
    pub(super) keys: BTreeMap<Vec<u8>, Vec<Version>>,
    /// Blocks that do not consist of zeros.
    pub(super) in_use: Vec<Lba>,
    /// The log blocks that the last flush wrote, with the log position at which each begins.
    pub(super) last_flush: BTreeMap<u64, Lsn>,
}

impl Built {
    /// Blocks that differ from those at an earlier time.
    pub(super) fn changed_since(&self, past: usize) -> Vec<Lba> {
        changed(&self.past[past], &self.image)
    }
}

/// A device whose discards can be made to do nothing.
pub(super) struct Medium {
    under: Under,
    inert: bool,
}

enum Under {
    Memory(Box<CrashDevice>),
    /// A real file, which is removed when this is dropped.
    File(
        Box<FileDevice>,
        #[expect(dead_code, reason = "kept")] NamedTempFile,
    ),
}

impl Medium {
    pub(super) fn holding(image: Image, inert: bool) -> Arc<Medium> {
        let under = Under::Memory(Box::new(CrashDevice::from_image(image)));
        Arc::new(Medium { under, inert })
    }

    /// A device in a real file. Its discards punch holes or do nothing.
    pub(super) fn in_file(image: &Image, inert: bool) -> io::Result<Arc<Medium>> {
        let file = NamedTempFile::new()?;
        file.as_file().set_len(image.blocks() * BLOCK_SIZE as u64)?;
        let mut bytes = vec![0; BLOCK_SIZE];
        for lba in 0..image.blocks() {
            image.read(Lba(lba), &mut bytes);
            if bytes.iter().any(|byte| *byte != 0) {
                file.as_file()
                    .write_all_at(&bytes, lba * BLOCK_SIZE as u64)?;
            }
        }
        let options = FileOptions {
            io: FileIo::Buffered,
            discards: if inert {
                FileDiscards::Ignore
            } else {
                FileDiscards::Punch
            },
            ..FileOptions::default()
        };
        let device = FileDevice::open_with(file.path(), &options).map_err(io::Error::other)?;
        let under = Under::File(Box::new(device), file);
        Ok(Arc::new(Medium { under, inert }))
    }

    fn device(&self) -> &dyn BlockDevice {
        match &self.under {
            Under::Memory(device) => &**device,
            Under::File(device, _) => &**device,
        }
    }

    /// The newest version of every block.
    pub(super) fn image(&self) -> Result<Image, DeviceError> {
        match &self.under {
            Under::Memory(device) => Ok(device.crash(&mut |n| n - 1)),
            Under::File(device, _) => {
                let mut image = Image::zeroed(device.capacity_blocks());
                let mut bytes = vec![0; BLOCK_SIZE];
                for lba in (0..image.blocks()).map(Lba) {
                    device.read(lba, &mut bytes, IoClass::Extra)?;
                    let block = bytes.iter().any(|byte| *byte != 0);
                    image.set(lba, block.then(|| Block::new(&bytes)));
                }
                Ok(image)
            }
        }
    }

    pub(super) fn disk(self: &Arc<Self>) -> Disk {
        Disk::Blocks(Arc::clone(self) as Arc<dyn BlockDevice>)
    }
}

impl BlockDevice for Medium {
    fn capacity_blocks(&self) -> u64 {
        self.device().capacity_blocks()
    }
    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.device().read(lba, buf, class)
    }
    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.device().write(lba, bytes, class)
    }
    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        match &self.under {
            Under::Memory(_) if self.inert => Ok(()),
            _ => self.device().trim(lba, blocks),
        }
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.device().flush()
    }
}

/// An error before anything was damaged.
pub(super) fn failed(e: Error) -> Box<Finding> {
    Box::new(Finding {
        check: Check::Error,
        operation: None,
        what: "build a store".into(),
        expected: "no error".into(),
        found: e.to_string(),
    })
}

fn in_memory(e: DeviceError) -> Box<Finding> {
    failed(Error::from(e))
}

/// Key number `n`. Keys have all lengths, and some have long common prefixes.
pub(super) fn key(n: u64) -> Vec<u8> {
    let mut key = format!("{:05}", n * 7919 % 10_007).into_bytes();
    key.resize(5 + (n % 23) as usize, b'k');
    key
}

/// The medium with another store that was created on this device after only its beginning was
/// blanked.
fn another(
    engine: &dyn Engine,
    image: &Image,
    operations: usize,
    random: &mut Random,
) -> Result<Image, Box<Finding>> {
    let mut blanked = image.clone();
    for lba in [0, 1].map(Lba) {
        blanked.set(lba, None);
    }
    let medium = Medium::holding(blanked, true);
    let store = engine.open(&medium.disk()).map_err(failed)?;
    let mut program = Program::new(engine);
    (0..operations)
        .try_for_each(|_| program.step(&*store, random))
        .map_err(failed)?;
    store.checkpoint().map_err(failed)?;
    program.put(&*store, random).map_err(failed)?;
    store.sync(Lsn(u64::MAX)).map_err(failed)?;
    medium.image().map_err(in_memory)
}

/// Builds the store of a seed.
pub(super) fn build(
    engine: &dyn Engine,
    state: State,
    inert: bool,
    operations: usize,
    random: &mut Random,
    until: &Deadline,
) -> Result<Built, Box<Finding>> {
    let DiskKind::Blocks(blocks) = engine.disk() else {
        unreachable!("only engines on blocks are asked for");
    };
    let medium = Medium::holding(Image::zeroed(blocks), inert);
    let open = || engine.open(&medium.disk()).map_err(failed);
    let mut program = Program::new(engine);
    // One time in four everything is flushed only at the end, in one long flush if the engine's
    // buffer allows.
    let at_last = random.one_in(4);
    if at_last {
        program.all_at_once(engine);
    }
    let mut past = Vec::new();
    let mut store = open()?;
    let mut done = 0;
    for n in 0..operations {
        // At least one earlier time is needed.
        if n > 0 && until.is_over() {
            break;
        }
        program.step(&*store, random).map_err(failed)?;
        done += 1;
        if random.one_in(64) && !at_last {
            store.checkpoint().map_err(failed)?;
        }
        if random.one_in(400) && !at_last {
            store.checkpoint().map_err(failed)?;
            drop(store);
            store = open()?;
        }
        if n % (operations / PAST).max(1) == 0 {
            past.push(medium.image().map_err(in_memory)?);
        }
    }
    let mut last_flush = BTreeMap::new();
    match state {
        State::AtRest => {
            store.checkpoint().map_err(failed)?;
            drop(store);
            for _ in 0..random.below(3) {
                drop(open()?);
            }
        }
        State::Cut => {
            store.sync(Lsn(u64::MAX)).map_err(failed)?;
            let before = medium.image().map_err(in_memory)?;
            // A delete might change nothing, and so flush nothing.
            let is_batch = random.one_in(3) && program.write(&*store, random).map_err(failed)?;
            if !is_batch {
                program.put_something(&*store, random).map_err(failed)?;
            }
            store.sync(Lsn(u64::MAX)).map_err(failed)?;
            last_flush = flushed(&before, &medium.image().map_err(in_memory)?).map_err(failed)?;
        }
    }
    // After a power cut, the image is taken with the store still open, since dropping it might
    // write.
    let image = medium.image().map_err(in_memory)?;
    let in_use = changed(&Image::zeroed(blocks), &image);
    let foreign = another(engine, &image, done, random)?;
    Ok(Built {
        state,
        operations: done as u64,
        inert,
        image,
        past,
        foreign,
        keys: program.keys,
        in_use,
        last_flush,
    })
}

/// How to reproduce a store whose deadline came before all operations were done.
pub(super) fn fewer(done: u64, planned: usize) -> String {
    match done < planned as u64 {
        true => format!(", after {done} of {planned} operations"),
        false => String::new(),
    }
}

/// Blocks in which the two images differ.
fn changed(a: &Image, b: &Image) -> Vec<Lba> {
    let (mut of_a, mut of_b) = (vec![0; BLOCK_SIZE], vec![0; BLOCK_SIZE]);
    let blocks = (0..b.blocks()).map(Lba);
    let differ = blocks.filter(|lba| {
        a.read(*lba, &mut of_a);
        b.read(*lba, &mut of_b);
        of_a != of_b
    });
    differ.collect()
}

/// The log blocks that were written between the two images, with the positions at which they begin.
fn flushed(before: &Image, after: &Image) -> Result<BTreeMap<u64, Lsn>, Error> {
    let found = survey(Medium::holding(after.clone(), true))?;
    let begins = |lba: Lba| {
        let place = lba.0.checked_sub(found.log_start.0)?;
        let block = (*found.log.get(place as usize)?)?;
        Some((lba.0, Lsn(block.index * BLOCK_SIZE as u64)))
    };
    Ok(changed(before, after)
        .into_iter()
        .filter_map(begins)
        .collect())
}

/// The program that uses the store.
pub(super) struct Program {
    pub(super) keys: BTreeMap<Vec<u8>, Vec<Version>>,
    /// Twice the greatest length of most values.
    most: u64,
    syncs: bool,
    /// The lengths of values that are stored out of line, if there are any.
    long: Option<LongValues>,
    /// Whether the store may be full.
    may_be_full: bool,
    /// The size that a batch may have, if there are batches.
    batch_bytes: Option<u64>,
}

impl Program {
    pub(super) fn new(engine: &dyn Engine) -> Program {
        Program {
            keys: BTreeMap::new(),
            most: engine.limits().max_record.min(600) as u64,
            syncs: true,
            long: engine.long_values(),
            may_be_full: engine.may_refuse(&Write::Put),
            batch_bytes: engine.batch_bytes(),
        }
    }

    /// From now on records are large, and nothing is synced.
    fn all_at_once(&mut self, engine: &dyn Engine) {
        self.most = engine.limits().max_record.min(16 << 10) as u64;
        self.syncs = false;
    }

    pub(super) fn step(&mut self, store: &dyn Kv, random: &mut Random) -> Result<(), Error> {
        if self.batch_bytes.is_some() && random.one_in(24) {
            self.write(store, random)?;
        } else if random.percent(25) {
            let name = key(random.below(KEYS));
            let lsn = store.delete(&name)?;
            // A write that changed nothing is not a version.
            if let Some(versions) = self.keys.get_mut(&name)
                && versions.last().is_some_and(|(_, value)| value.is_some())
            {
                versions.push((lsn, None));
            }
        } else {
            self.put(store, random)?;
        }
        if random.one_in(16) && self.syncs {
            store.sync(Lsn(u64::MAX))?;
        }
        while random.one_in(2) && store.pump_due()? {}
        Ok(())
    }

    /// Writes a batch of a few changes. Returns `false` if there are no batches, or if the store is
    /// full.
    fn write(&mut self, store: &dyn Kv, random: &mut Random) -> Result<bool, Error> {
        let Some(most) = self.batch_bytes else {
            return Ok(false);
        };
        let (mut batch, mut bytes) = (Batch::new(), 0);
        for _ in 0..2 + random.below(4) {
            let name = key(random.below(KEYS));
            let is_there = (self.keys.get(&name).and_then(|versions| versions.last()))
                .is_some_and(|(_, value)| value.is_some());
            // Each change changes something.
            let value = (!is_there || random.below(3) > 0).then(|| self.value(random));
            let len = value.as_ref().map(|value| value.len() as u32);
            bytes += size_in_batch(name.len(), len, self.long);
            match value {
                _ if bytes > most || batch.change(&name).is_some() => break,
                Some(value) => batch.put(name, value),
                None => batch.delete(name),
            };
        }
        let lsn = match store.write(&batch) {
            Err(Error::Full { .. }) if self.may_be_full => return Ok(false),
            done => done?,
        };
        for (name, value) in batch.iter() {
            let versions = self.keys.entry(name.to_vec()).or_default();
            versions.push((lsn, value.map(<[u8]>::to_vec)));
        }
        Ok(!batch.is_empty())
    }

    fn put(&mut self, store: &dyn Kv, random: &mut Random) -> Result<(), Error> {
        let name = key(random.below(KEYS));
        let value = self.value(random);
        self.put_as(store, name, value)
    }

    /// Overwrites a key with fewer bytes, for which even a full store has space.
    fn put_something(&mut self, store: &dyn Kv, random: &mut Random) -> Result<(), Error> {
        let mut value = self.value(random);
        let there = self.keys.iter().find_map(|(name, versions)| {
            let (_, last) = versions.last()?;
            let len = last.as_ref()?.len();
            Some((name.clone(), len))
        });
        let Some((name, len)) = there.filter(|_| self.may_be_full) else {
            return self.put_as(store, key(random.below(KEYS)), value);
        };
        value.truncate(len);
        self.put_as(store, name, value)
    }

    fn value(&self, random: &mut Random) -> Vec<u8> {
        let mut value = random.word().to_le_bytes().to_vec();
        let len = match self.long {
            Some(LongValues { above, to, .. }) if random.one_in(16) => {
                above + 1 + random.below((to - above) as u64) as usize
            }
            _ => 8 + random.below(self.most / 2) as usize,
        };
        value.resize(len, 0xa5);
        value
    }

    fn put_as(&mut self, store: &dyn Kv, name: Vec<u8>, value: Vec<u8>) -> Result<(), Error> {
        let lsn = match store.put(&name, &value) {
            Err(Error::Full { .. }) if self.may_be_full => return Ok(()),
            done => done?,
        };
        let versions = self.keys.entry(name).or_default();
        versions.push((lsn, Some(value)));
        Ok(())
    }
}
