//! What the log consists of on the device (`LogFormat.tla`).

/// Positions, LSNs, epochs, block indexes, counts.
pub(super) type N = u32;

/// A unit of a record. Parts count from 1; the default is `Empty`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
)]
pub struct Unit {
    pub(super) record: N,
    pub(super) len: N,
    pub(super) part: N,
}

/// The units of a record.
pub(super) fn units_of(record: N, len: N) -> impl Iterator<Item = Unit> {
    (1..=len).map(move |part| Unit { record, len, part })
}

/// A block, with its header. The default is `NoBlock`.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bitcode::Encode, bitcode::Decode,
)]
pub struct Block {
    pub(super) epoch: N,
    pub(super) index: N,
    pub(super) first: N,
    pub(super) unforced: N,
    pub(super) starts: bool,
    pub(super) closed: bool,
    pub(super) witness: bool,
    pub(super) end_mark: bool,
    pub(super) units: Vec<Unit>,
}

/// What is at a place: the first sector, which stands for the block that it was written with, and
/// the other sectors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Content {
    pub(super) head: Block,
    pub(super) rest: Vec<Unit>,
}

/// A record that was read, with its LSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Entry {
    pub(super) record: N,
    pub(super) lsn: N,
}

/// The superblock: the newest epoch, where redo begins, and in which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Super {
    pub(super) epoch: N,
    pub(super) redo: N,
    pub(super) redo_epoch: N,
}

/// A record that began in an earlier block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Carry {
    None,
    Dead,
    Begun(Vec<Unit>),
}

/// The state of reading.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) from: N,
    pub(super) epoch: N,
    pub(super) ended: bool,
    /// The first block of the flush that wrote the last block read.
    pub(super) flush: N,
    pub(super) carry: Carry,
    pub(super) end: N,
    pub(super) found: Vec<Entry>,
    pub(super) bad: bool,
    pub(super) stop: N,
}

/// `FirstIn`: where the first record begins, from 1.
pub(super) fn first_in(units: &[Unit]) -> N {
    let first = units.iter().position(|unit| unit.part == 1);
    first.map_or(0, |at| at as N + 1)
}

/// `RecordIn`: 0 if the units are not those of a record.
pub(super) fn record_in(units: &[Unit]) -> N {
    let record = units[0].record;
    let is_one = units_of(record, units.len() as N).eq(units.iter().copied());
    if is_one { record } else { 0 }
}

impl Walk {
    pub(super) fn find(&mut self, lsn: N, record: N) {
        self.found.push(Entry { record, lsn });
        self.end = lsn;
    }
}
