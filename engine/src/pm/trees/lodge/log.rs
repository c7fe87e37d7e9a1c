//! The partitioned version log (LodgeTree §III-D, Figure 10), repaired (`specs/FINDINGS.md`,
//! SurrogateBuffer 1 to 4).
//!
//! ```text
//! chunk:  log | log | log | ...        a log is L entries; its place is its version
//! entry:  key 8 | value 8 | number 36, kind 2, check 26
//! count:  L when a log is opened, one less whenever an entry is needed no more;
//!         with 0 its room is free, and nothing is written to say so
//! ```
//!
//! - **An entry identifies itself** by its number, and by a check over all three words. No length,
//!   version or header is in persistent memory, so none has to be trusted.
//! - The words of an entry become durable in any order, over those of an older entry. The writer
//!   knows what it overwrites: if a mix of old and new words would pass for an entry, it takes
//!   another number, or empties the old entry first. So the 26 bits are exact here, not
//!   probabilistic.
//! - **Room first, number later.** [`VersionLogs::reserve`] finds room before the node is locked,
//!   because a thread that waited for room with a node locked would keep that node from being
//!   flushed. The number is drawn under the lock ([`VersionLogs::write`]), so entries of one key
//!   are numbered in the order of their effects.
//! - A chunk in which all logs are free is given back, except the last one. Leaves, which are given
//!   back one by one, could otherwise keep that chunk for a long time.
//!
//! Invariants: `LogInv`, every buffered pair is durable in the log that it names; `CountInv`, a
//! log's count is the number of its entries that are buffered or still to be written.
//!
//! Here a version is the place of its log, and counts nothing: since an entry is compared with its
//! leaf's stamp, versions only name logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::entries::{self, Ahead, ENTRY_BYTES, Words};
use crate::pm::events::{Event, lodge::LodgeEvent};
use crate::pm::layout::{ChunkId, Geometry, Time, mix};
use crate::pm::leaf::Slot;
use crate::pm::logs::{LogicalClock, thread_number};
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::space::{Room, Space};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Mutex};
use crate::types::IoClass;

use super::leaf::NUMBER_BITS;

const CHECK_BITS: u32 = 64 - NUMBER_BITS - 2;
const CHECK: u64 = (1 << CHECK_BITS) - 1;

fn encode(change: Change, number: Time) -> Words {
    let Slot {
        key,
        value,
        indirect,
    } = change.slot;
    let kind = u64::from(indirect) | u64::from(change.delete) << 1;
    let said = number.0 << (CHECK_BITS + 2) | kind << CHECK_BITS;
    [key, value, said | mix([key, value, said]) & CHECK]
}

/// Decodes these words if they are a valid entry.
pub(crate) fn decode([key, value, meta]: Words) -> Option<(Time, Change)> {
    let number = Time(meta >> (CHECK_BITS + 2));
    let whole = meta & CHECK == mix([key, value, meta & !CHECK]) & CHECK;
    let change = Change {
        slot: Slot {
            key,
            value,
            indirect: meta >> CHECK_BITS & 1 == 1,
        },
        delete: meta >> (CHECK_BITS + 1) & 1 == 1,
    };
    let believed = whole || mutation::on("lodge-torn-entry-believed");
    (believed && number.0 != 0).then_some((number, change))
}

/// The mixes of `new` over `old` that a crash may leave and that pass for an entry other than these
/// two: none, one with the new metadata word, or one with the old.
#[derive(PartialEq, Eq, Debug)]
enum Mix {
    None,
    New,
    Old,
}

fn mixes(old: Words, new: Words) -> Mix {
    let mut found = Mix::None;
    for some in 1..7u32 {
        let words = [0, 1, 2].map(|at| {
            if some >> at & 1 == 1 {
                new[at]
            } else {
                old[at]
            }
        });
        if words == old || words == new || decode(words).is_none() {
            continue;
        }
        if words[2] == old[2] {
            return Mix::Old;
        }
        found = Mix::New;
    }
    found
}

/// Reserved room for one entry.
pub(crate) struct Reserved {
    /// The log in which the entry will be.
    pub(crate) log: u32,
    /// The entry's place in the log.
    place: u64,
    offset: u64,
    old: Words,
}

/// The log to which a partition appends.
struct Open {
    log: u32,
    start: u64,
    used: u64,
    ahead: Ahead,
}

/// The state of a log.
#[derive(Default)]
struct Log {
    /// Entries that are needed, or still to be written.
    valid: AtomicU32,
    /// The time when it was opened.
    opened: AtomicU64,
}

/// The logs of all partitions, described in the module's introduction.
pub(crate) struct VersionLogs {
    medium: Arc<Medium>,
    space: Arc<Space>,
    clock: Arc<LogicalClock>,
    /// L, and the number of logs per chunk.
    entries: u64,
    per_chunk: u32,
    partitions: Box<[Mutex<Option<Open>>]>,
    logs: Box<[OnceLock<Box<[Log]>>]>,
    /// Free logs, by chunk, of all chunks used for logs.
    free: Mutex<BTreeMap<u32, BTreeSet<u32>>>,
    /// Whether it is not known yet which logs are free.
    recovering: AtomicBool,
    in_use: AtomicU64,
    peak: AtomicU64,
    opened: AtomicU64,
    appended: AtomicU64,
}

impl VersionLogs {
    /// Creates logs of `entries` entries, in `partitions` partitions. Existing chunks of logs count
    /// as full of unneeded entries until [`VersionLogs::recovered`].
    pub(crate) fn new(
        medium: Arc<Medium>,
        space: Arc<Space>,
        clock: Arc<LogicalClock>,
        partitions: usize,
        entries: u32,
    ) -> VersionLogs {
        let geometry = *space.geometry();
        let fit = geometry.chunk_bytes / ENTRY_BYTES;
        let entries = u64::from(entries).min(fit);
        VersionLogs {
            medium,
            space,
            clock,
            entries,
            per_chunk: (fit / entries) as u32,
            partitions: (0..partitions).map(|_| Mutex::default()).collect(),
            logs: (0..geometry.chunks).map(|_| OnceLock::new()).collect(),
            free: Mutex::default(),
            recovering: AtomicBool::new(true),
            in_use: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            appended: AtomicU64::new(0),
        }
    }

    fn log(&self, log: u32) -> &Log {
        let chunk = &self.logs[(log / self.per_chunk) as usize];
        let logs = chunk.get_or_init(|| (0..self.per_chunk).map(|_| Log::default()).collect());
        &logs[(log % self.per_chunk) as usize]
    }

    /// Reserves room for one entry in the calling thread's partition. Returns `None` if there is
    /// none; then the pairs that pin logs have to be flushed. The caller must not hold the lock of
    /// a node.
    pub(crate) fn reserve(&self, room: Room) -> Result<Option<Reserved>> {
        let mut partition = self.partitions[thread_number() % self.partitions.len()].lock();
        if partition
            .as_ref()
            .is_none_or(|open| open.used == self.entries)
        {
            *partition = self.open(room)?;
        }
        let Some(open) = partition.as_mut() else {
            return Ok(None);
        };
        let offset = open.start + open.used * ENTRY_BYTES;
        let old = open
            .ahead
            .overwritten(&self.medium, open.start, open.used, self.entries)?;
        let place = open.used;
        open.used += 1;
        Ok(Some(Reserved {
            log: open.log,
            place,
            offset,
            old,
        }))
    }

    /// Opens another log for a partition.
    fn open(&self, room: Room) -> Result<Option<Open>> {
        let mut free = self.free.lock();
        let mut blank = false;
        if free.values().all(BTreeSet::is_empty) {
            let Some((chunk, zeros)) = self.space.allocate_version_log(room)? else {
                return Ok(None);
            };
            blank = zeros;
            let first = chunk.0 * self.per_chunk;
            // Empty sets stay, so that the chunks are counted.
            free.insert(chunk.0, (first..first + self.per_chunk).collect());
        }
        let taken = free.values_mut().find_map(BTreeSet::pop_first);
        let log = taken.expect("a chunk has a log");
        drop(free);
        // CountInv: an open log is not free.
        self.log(log).valid.store(self.entries as u32, Relaxed);
        self.log(log).opened.store(self.clock.last().0, Relaxed);
        let in_use = self.in_use.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(in_use, Relaxed);
        self.opened.fetch_add(1, Relaxed);
        self.medium
            .tell(|| Event::Lodge(LodgeEvent::OpensLog { log }));
        let geometry = self.space.geometry();
        let start = geometry.offset(ChunkId(log / self.per_chunk));
        Ok(Some(Open {
            log,
            start: start + u64::from(log % self.per_chunk) * self.entries * ENTRY_BYTES,
            used: 0,
            ahead: Ahead::new(blank),
        }))
    }

    /// Logs a change whose node is locked, and returns its number. Durable when this returns.
    pub(crate) fn write(&self, reserved: &Reserved, change: Change) -> Result<Time> {
        let offset = reserved.offset;
        let mut old = reserved.old;
        let (number, new) = loop {
            let number = self.clock.tick();
            if number.0 >> NUMBER_BITS != 0 {
                return Err(Error::Poisoned {
                    why: "the numbers of log entries have run out".into(),
                });
            }
            let new = encode(change, number);
            match mixes(old, new) {
                _ if mutation::on("lodge-torn-entry-believed") => break (number, new),
                Mix::None => break (number, new),
                Mix::New => {}
                Mix::Old => {
                    self.medium.tell(|| Event::Erases {
                        chunk: reserved.log / self.per_chunk,
                        place: u64::from(reserved.log % self.per_chunk) * self.entries
                            + reserved.place,
                    });
                    self.medium.put_word(offset + 16, 0, IoClass::Log)?;
                    old[2] = 0;
                }
            }
        };
        self.medium.tell(|| {
            Event::Lodge(LodgeEvent::Appends {
                log: reserved.log,
                place: reserved.place,
                words: new,
                number: number.0,
                delete: change.delete,
            })
        });
        entries::store(&self.medium, offset, new)?;
        if !mutation::on("lodge-log-not-fenced") {
            self.medium.fence();
        }
        self.appended.fetch_add(1, Relaxed);
        Ok(number)
    }

    /// Releases an entry of a log that is no longer needed, or will never be written.
    pub(crate) fn release(&self, log: u32) {
        let before = self
            .log(log)
            .valid
            .fetch_sub(1, crate::sync::atomic::Ordering::AcqRel);
        debug_assert!(before > 0, "CountInv");
        let last = if mutation::on("lodge-live-log-reused") {
            2
        } else {
            1
        };
        if before == last && !self.recovering.load(Relaxed) {
            self.free(log);
        }
    }

    fn free(&self, log: u32) {
        let mut free = self.free.lock();
        self.in_use.fetch_sub(1, Relaxed);
        let chunk = log / self.per_chunk;
        let logs = free.entry(chunk).or_default();
        logs.insert(log);
        if logs.len() == self.per_chunk as usize && free.len() > 1 {
            free.remove(&chunk);
            self.space.free_version_log(ChunkId(chunk));
        }
    }

    /// Returns the log of the entry at a place in a chunk. Entries behind the last log, left by
    /// longer logs, count as the last log's.
    pub(crate) fn log_of(&self, chunk: ChunkId, entry: u64) -> u32 {
        let nth = (entry / self.entries).min(u64::from(self.per_chunk) - 1);
        chunk.0 * self.per_chunk + nth as u32
    }

    /// Counts an entry of this log that recovery needs.
    pub(crate) fn need(&self, log: u32) {
        self.log(log).valid.fetch_add(1, Relaxed);
    }

    /// Ends the recovery of these chunks: logs without needed entries are free.
    pub(crate) fn recovered(&self, chunks: &[ChunkId]) {
        self.recovering.store(false, Relaxed);
        let mut free = self.free.lock();
        let last = chunks.last();
        for chunk in chunks {
            let first = chunk.0 * self.per_chunk;
            let unneeded = |log: &u32| self.log(*log).valid.load(Relaxed) == 0;
            let logs: BTreeSet<u32> = (first..first + self.per_chunk).filter(unneeded).collect();
            let used = self.per_chunk as usize - logs.len();
            self.in_use.fetch_add(used as u64, Relaxed);
            let is_last = last == Some(chunk) && free.is_empty();
            if used == 0 && !is_last {
                self.space.free_version_log(*chunk);
            } else {
                free.insert(chunk.0, logs);
            }
        }
        self.peak.store(self.in_use.load(Relaxed), Relaxed);
    }

    /// Returns the time before which the older half of the logs in use were opened, or 0 if that
    /// was before the store was opened.
    pub(crate) fn median_opened(&self) -> Time {
        let made = self.logs.iter().filter_map(OnceLock::get).flatten();
        let used = made.filter(|log| log.valid.load(Relaxed) > 0);
        let mut opened: Vec<u64> = used.map(|log| log.opened.load(Relaxed)).collect();
        opened.sort_unstable();
        Time(opened.get(opened.len() / 2).copied().unwrap_or(0))
    }

    /// Returns the capacity in entries of the logs in use, now and at its maximum.
    pub(crate) fn room(&self) -> (u64, u64) {
        let entries = |logs: &AtomicU64| logs.load(Relaxed) * self.entries;
        (entries(&self.in_use), entries(&self.peak))
    }

    /// Returns the capacity in entries of the logs that partitions have open.
    pub(crate) fn partition_room(&self) -> u64 {
        self.partitions.len() as u64 * self.entries
    }

    /// Returns the number of entries appended, and of logs opened, since the store was opened.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.appended.load(Relaxed), self.opened.load(Relaxed))
    }
}

/// The entries that recovery finds in a chunk.
pub(crate) struct FoundEntries {
    /// The place, number and change of each valid entry.
    pub(crate) entries: Vec<(u64, Time, Change)>,
    /// The number of torn entries, which were emptied.
    pub(crate) torn: u64,
}

/// Reads a chunk, empties torn entries, and starts the write-back of the whole chunk, because what
/// is read after a kill need not be durable.
pub(crate) fn read_chunk(
    medium: &Medium,
    geometry: &Geometry,
    chunk: ChunkId,
) -> Result<FoundEntries> {
    let mut found = FoundEntries {
        entries: Vec::new(),
        torn: 0,
    };
    let entries = entries::load_chunk(medium, geometry, chunk)?;
    for (at, (offset, words)) in (0..).zip(entries) {
        match decode(words) {
            Some((number, change)) => found.entries.push((at, number, change)),
            None if words[2] != 0 => {
                found.torn += 1;
                medium.tell(|| Event::Erases {
                    chunk: chunk.0,
                    place: at,
                });
                medium.store_word(offset + 16, 0)?;
            }
            None => {}
        }
        if words != [0; 3] {
            medium.write_back(offset..offset + ENTRY_BYTES, IoClass::Log)?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_they_are() {
        assert_eq!(size_of::<Words>() as u64, ENTRY_BYTES);
        for (indirect, delete) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut change = Change::put(u64::MAX, 3);
            change.slot.indirect = indirect;
            change.delete = delete;
            let most = Time((1 << NUMBER_BITS) - 1);
            let words = encode(change, most);
            assert_eq!(decode(words), Some((most, change)));
            assert_eq!(decode([words[0], 4, words[2]]), None, "torn");
        }
        assert_eq!(decode([0; 3]), None, "zeros");
        assert_eq!(
            decode(encode(Change::put(1, 1), Time(0))),
            None,
            "no number"
        );
    }

    #[test]
    fn a_mix_of_old_and_new_words_is_seen_before_it_is_written() {
        let old = encode(Change::put(1, 2), Time(3));
        assert_eq!(mixes(old, encode(Change::put(4, 5), Time(6))), Mix::None);
        assert_eq!(mixes([0; 3], encode(Change::put(4, 5), Time(6))), Mix::None);
        // The same pair, logged again where it was torn, becomes whole with its old number.
        let torn = [9, old[1], old[2]];
        assert_eq!(mixes(torn, encode(Change::put(1, 2), Time(7))), Mix::Old);
        // A check that matches by chance.
        let new = encode(Change::put(4, 5), Time(6));
        let chance = (0..1u64 << 34).find(|key| decode([*key, 5, new[2]]).is_some() && *key != 4);
        assert_eq!(mixes([chance.unwrap(), 5, 0], new), Mix::New);
    }
}
