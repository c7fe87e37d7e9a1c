//! A store of one leaf, at rest, and how its log corresponds to the spec.
//!
//! ```text
//! engine   | 24 | unit 0 | unit 1 | .. | unit 7 | 24 | unit 8 ..    509 bytes a unit
//! spec     position 0        1                8                     in units
//!
//! unit     | 16 bytes | record, length, part | zeros                what is written in it
//! ```
//!
//! The payload of a block has 4072 bytes, so eight units of 509. Every record is a put of a value
//! that makes it a whole number of units long. Each unit says which part of which record it is.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, CrashDevice, Image};
use treering_engine::wal::{BLOCK_HEADER, BLOCK_PAYLOAD};
use treering_engine::{
    BLOCK_SIZE, Durability, IoClass, Kv, Lba, LogHeader, LogPacking, Lsn, MIN_CACHE_PAGES, Options,
    Result, Store, StoreId, SystemClock, required_blocks, survey,
};

use crate::Value;
use crate::conformance::at_rest::contents;
use crate::conformance::record::Recorder;
use crate::conformance::tears::Tears;
use crate::mirror::redo_log::unbounded::Header;
use crate::mirror::redo_log::{Super, Unit};

/// The logs that episodes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Each opening chooses a form. The device writes blocks whole.
    Mixed,
    /// Always sparse. The device may tear a log block between two units.
    Torn,
}

impl Variant {
    /// Both variants.
    pub const ALL: [Variant; 2] = [Variant::Mixed, Variant::Torn];
}

/// Units in a block.
pub const UNITS: u32 = 8;
const UNIT: usize = BLOCK_PAYLOAD / UNITS as usize;
/// Where a unit says what it is.
const TAG: usize = 16;
/// Bytes of a record before the value: length (two bytes), kind, page, length of the key, key.
const HEAD: usize = 5 + KEY_BYTES;
const KEY_BYTES: usize = 3;
/// Keys of the only leaf. It has room for that many of the longest values, so it is never split.
pub(super) const KEYS: u64 = 3;

const _: () = assert!(UNIT * UNITS as usize == BLOCK_PAYLOAD && HEAD <= TAG);

/// A block of the log's region, in the engine's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlock {
    /// Its header.
    pub header: LogHeader,
    /// The record, length and part of each unit.
    pub units: Vec<(u32, u32, u32)>,
}

/// The content of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The epoch, redo start and redo epoch of the newest superblock.
    pub superblock: (u32, Lsn, u32),
    /// The blocks of the log's region, in order of address.
    pub log: Vec<FoundBlock>,
}

/// A store on a device, at rest, and the engine's positions of the spec's zeros.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The variant.
    pub variant: Variant,
    options: Options,
    disk: Image,
    store: StoreId,
    log_start: Lba,
    ring: u32,
    first_block: u64,
    first_epoch: u32,
}

fn key(n: u64) -> Vec<u8> {
    format!("k{n:02}").into_bytes()
}

fn options(page_size: usize) -> Options {
    // The smallest log that a store with such pages may have.
    let log_bytes = 24 * page_size as u64;
    Options {
        page_size,
        cache_bytes: MIN_CACHE_PAGES * page_size as u64,
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 3,
        log_buffer_bytes: log_bytes / 8,
        ..Options::default()
    }
}

impl Setup {
    /// Builds the leaf, and zeroes the log, which is empty. The next opening begins the spec's
    /// first epoch.
    ///
    /// # Errors
    /// The engine's own. None is expected.
    pub fn new(variant: Variant, page_size: usize) -> Result<Setup> {
        let options = options(page_size);
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 2)));
        let clock = Arc::new(SystemClock::new());
        let open = || Store::open(device.clone(), clock.clone(), &options);
        let store = open()?;
        for n in 0..KEYS {
            store.put(&key(n), &value(0, 1))?;
        }
        store.close()?;
        open()?.abandon();
        let found = survey(device.clone())?;
        let ring = found.log.len() as u32;
        for place in 0..u64::from(ring) {
            let zeros = [0; BLOCK_SIZE];
            device.write(Lba(found.log_start.0 + place), &zeros, IoClass::Log)?;
        }
        device.flush()?;
        Ok(Setup {
            variant,
            disk: Image::from(contents(&device)?),
            options,
            store: found.store,
            log_start: found.log_start,
            ring,
            first_block: found.redo_start.0 / BLOCK_SIZE as u64,
            first_epoch: found.epoch + 1,
        })
    }

    /// A device that holds the store durably.
    pub(super) fn device(&self) -> Arc<CrashDevice> {
        Arc::new(CrashDevice::from_image(self.disk.clone()))
    }

    /// A recorder for this store.
    pub(super) fn recorder(&self) -> Recorder {
        let recorder = Recorder::of_log();
        if self.variant == Variant::Torn {
            let cuts = 1..UNITS as usize;
            recorder.tear(Tears {
                blocks: self.log_start.0..self.log_start.0 + u64::from(self.ring),
                cuts: cuts.map(|unit| BLOCK_HEADER + unit * UNIT).collect(),
            });
        }
        recorder
    }

    /// Opens the store on `device`, recorded by `recorder`.
    ///
    /// # Errors
    /// The engine's own.
    pub(super) fn open(
        &self,
        device: &Arc<CrashDevice>,
        packing: LogPacking,
        recorder: &Arc<Recorder>,
    ) -> Result<Store> {
        let options = Options {
            log_packing: packing,
            ..self.options.clone()
        };
        let clock = Arc::new(SystemClock::new());
        Store::open_observed(device.clone(), clock, &options, Some(recorder.clone()))
    }

    /// Opens the store for the first time, which begins the spec's first epoch, and zeroes the end mark
    /// that this leaves: the spec begins without one.
    pub(super) fn begin(
        &self,
        device: &Arc<CrashDevice>,
        packing: LogPacking,
        recorder: &Arc<Recorder>,
    ) -> Result<Store> {
        let store = self.open(device, packing, recorder)?;
        let mark = Lba(self.log_start.0 + self.place(0) as u64);
        device.write(mark, &[0; BLOCK_SIZE], IoClass::Log)?;
        device.flush()?;
        Ok(store)
    }

    /// The form of the log that the number stands for.
    pub(super) fn packing(&self, choice: u64) -> LogPacking {
        match (self.variant, choice % 2) {
            (Variant::Mixed, 0) => LogPacking::Packed,
            _ => LogPacking::Sparse,
        }
    }

    /// The bytes of a key.
    pub(super) fn key(n: u64) -> Vec<u8> {
        key(n)
    }

    /// The length of the longest record, in units: a fourth of a page.
    pub(super) fn longest(&self) -> u32 {
        (self.options.page_size / 4 / UNIT) as u32
    }

    /// A value whose record is `record`, of `len` units.
    pub(super) fn value(record: u32, len: u32) -> Vec<u8> {
        value(record, len)
    }

    /// Blocks in the log.
    pub(super) fn ring(&self) -> u32 {
        self.ring
    }

    /// Reads the log of a device.
    ///
    /// # Errors
    /// The device fails, or its superblock is damaged.
    pub(super) fn look(&self, device: &Arc<CrashDevice>) -> Result<Found> {
        let survey = survey(device.clone())?;
        let mut block = vec![0; BLOCK_SIZE];
        let mut log = Vec::with_capacity(self.ring as usize);
        for place in 0..u64::from(self.ring) {
            device.read(Lba(self.log_start.0 + place), &mut block, IoClass::Extra)?;
            let units = (0..UNITS as usize).map(|i| tag_in(&block[BLOCK_HEADER + i * UNIT..]));
            log.push(FoundBlock {
                header: LogHeader::read(&block, self.store),
                units: units.collect(),
            });
        }
        Ok(Found {
            superblock: (survey.epoch, survey.redo_start, survey.redo_epoch),
            log,
        })
    }

    // From the engine's terms to the spec's.

    /// A position.
    ///
    /// # Errors
    /// If it lies inside a unit, or before the recording.
    pub(super) fn position(&self, lsn: Lsn) -> std::result::Result<u32, String> {
        let (block, offset) = (lsn.0 / BLOCK_SIZE as u64, lsn.0 as usize % BLOCK_SIZE);
        let units = offset.saturating_sub(BLOCK_HEADER);
        if !units.is_multiple_of(UNIT) {
            return Err(format!("{lsn} lies inside a unit of {UNIT} bytes"));
        }
        Ok(self.index(block)? * UNITS + (units / UNIT) as u32)
    }

    /// The index of a block.
    ///
    /// # Errors
    /// If it lies before the recording.
    pub(super) fn index(&self, index: u64) -> std::result::Result<u32, String> {
        let index = index.checked_sub(self.first_block);
        let index = index.ok_or("it lies before the recording")?;
        Ok(index as u32)
    }

    /// An epoch. 0 if it is older than the recording.
    pub(super) fn epoch(&self, epoch: u32) -> u32 {
        (epoch + 1).saturating_sub(self.first_epoch)
    }

    /// The header of a block.
    ///
    /// # Errors
    /// If it names a position inside a unit, or before the recording.
    pub(super) fn header(&self, of: &LogHeader) -> std::result::Result<Header, String> {
        if of.epoch == 0 {
            return Ok(Header::default());
        }
        let unit_at = |offset: u16| {
            let units = usize::from(offset).saturating_sub(BLOCK_HEADER);
            match units.is_multiple_of(UNIT) {
                true => Ok((units / UNIT) as u32),
                false => Err(format!(
                    "offset {offset} of block {} is inside a unit",
                    of.index
                )),
            }
        };
        Ok(Header {
            epoch: self.epoch(of.epoch),
            index: self.index(of.index)?,
            first: match of.first {
                0 => 0,
                first => unit_at(first)? + 1,
            },
            unforced: of.unforced.into(),
            starts: of.starts,
            closed: of.closed,
            witness: of.witness,
            end_mark: of.end_mark,
            // These are one byte long, so that their headers are valid.
            units: match of.witness || of.end_mark {
                true => 0,
                false => unit_at(of.used)?,
            },
        })
    }

    /// A superblock.
    ///
    /// # Errors
    /// If redo begins inside a unit, or before the recording.
    pub(super) fn superblock(
        &self,
        (epoch, redo, redo_epoch): (u32, Lsn, u32),
    ) -> std::result::Result<Super, String> {
        let redo = self.position(redo)?;
        Ok(Super::new(self.epoch(epoch), redo, self.epoch(redo_epoch)))
    }

    /// The place in the engine's ring of the spec's place.
    pub(super) fn place(&self, place: usize) -> usize {
        ((self.first_block + place as u64) % u64::from(self.ring)) as usize
    }
}

/// What a block's header is, of `head` in TLA+.
pub(super) fn header_in_tla(of: &Header) -> String {
    let parts = [
        ("epoch", Value::int(of.epoch)),
        ("index", Value::int(of.index)),
        ("first", Value::int(of.first)),
        ("unforced", Value::int(of.unforced)),
        ("starts", of.starts.into()),
        ("closed", of.closed.into()),
        ("witness", of.witness.into()),
        ("endMark", of.end_mark.into()),
    ];
    let parts = parts.map(|(name, value)| format!("head.{name} = {value}"));
    format!("{} /\\ Len(head.units) = {}", parts.join(" /\\ "), of.units)
}

/// The unit of the spec with these numbers.
pub(super) fn unit((record, len, part): (u32, u32, u32)) -> Unit {
    Unit::new(record, len, part)
}

fn value(record: u32, len: u32) -> Vec<u8> {
    let mut bytes = vec![0; len as usize * UNIT - HEAD];
    for part in 1..=len {
        let at = (part as usize - 1) * UNIT + TAG - HEAD;
        for (i, number) in [record, len, part].into_iter().enumerate() {
            bytes[at + 4 * i..][..4].copy_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

fn tag_in(unit: &[u8]) -> (u32, u32, u32) {
    let number = |at: usize| {
        let bytes = unit[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    };
    (number(TAG), number(TAG + 4), number(TAG + 8))
}
