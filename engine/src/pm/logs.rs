//! Write-ahead logs (CCL-BTree §3.3, §3.4): entries of 24 bytes in chunks, one log per thread.
//!
//! ```text
//! entry: key 8 | value 8 | stamp 8 = time 48 | kind 2 | check 14
//!        one fence makes it durable before its write goes on
//! ```
//!
//! **Torn entries.** The three words of an entry may become durable in any order, over the old
//! contents of a recycled chunk. An entry is valid if its time is later than its chunk's beginning
//! and its check matches all three words. The time alone rules out stale stamps. The writer knows
//! what it overwrites, and takes a later time if a mix of old and new words would pass with the new
//! stamp. So for old entries the fourteen bits are exact and not probabilistic, and a chunk that
//! held leaves or records is zeroed before a log gets it ([`super::space`]).
//!
//! **Flip.** Cleaning begins by closing the chunks of all logs at one moment, which will become the
//! log floor: all earlier entries are in chunks that began before it (B-logs), and all later
//! entries in chunks that began after it (I-logs). The epoch bit of a buffered write is that of the
//! log when the entry is appended, read under the log's lock, so it cannot contradict the chunk.

use crate::error::Result;
use crate::mutation;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::types::IoClass;

use super::entries::{self, Ahead, ENTRY_BYTES, Words};
use super::events::Event;
use super::layout::{ChunkId, Geometry, TIME_BITS, Time, damaged, mix};
use super::leaf::Slot;
use super::medium::Medium;
use super::nodes::Change;
use super::space::{Room, Space};

const CHECK: u64 = (1 << 14) - 1;

/// The store's logical clock. Each reading returns a new moment.
pub(crate) struct LogicalClock(AtomicU64);

impl LogicalClock {
    /// Creates a clock that continues after `last`.
    pub(crate) fn after(last: Time) -> LogicalClock {
        LogicalClock(AtomicU64::new(last.0))
    }

    pub(crate) fn tick(&self) -> Time {
        Time(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the last moment handed out.
    pub(crate) fn last(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

fn kind(change: Change) -> u64 {
    u64::from(change.slot.indirect) | u64::from(change.delete) << 1
}

fn check(key: u64, value: u64, said: u64) -> u64 {
    mix([key, value, said]) & CHECK
}

/// Encodes an entry.
fn encode(change: Change, time: Time) -> Words {
    let Slot { key, value, .. } = change.slot;
    let said = time.0 << 16 | kind(change) << 14;
    [key, value, said | check(key, value, said)]
}

/// Decodes these words if they are a valid entry written after `begun`.
fn decode([key, value, stamp]: Words, begun: Time) -> Option<(Time, Change)> {
    let time = Time(stamp >> 16);
    let whole = stamp & CHECK == check(key, value, stamp & !CHECK);
    let change = Change {
        slot: Slot {
            key,
            value,
            indirect: stamp >> 14 & 1 == 1,
        },
        delete: stamp >> 15 & 1 == 1,
    };
    (whole && time > begun).then_some((time, change))
}

/// Returns whether no mix of `old` and `new` words, except `new` itself, would pass for an entry.
fn is_distinct(old: Words, new: Words, begun: Time) -> bool {
    let mixed = |key, value| {
        [key, value] == [new[0], new[1]] || decode([key, value, new[2]], begun).is_none()
    };
    mixed(old[0], old[1]) && mixed(old[0], new[1]) && mixed(new[0], old[1])
}

/// The chunk to which a log appends.
struct Open {
    start: u64,
    begun: Time,
    /// Entries so far, and capacity in entries.
    used: u64,
    room: u64,
    ahead: Ahead,
}

#[derive(Default)]
struct Log {
    epoch: u8,
    open: Option<Open>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// The epoch of the entry.
    pub(crate) epoch: u8,
}

/// All logs of a store.
pub(crate) struct Logs {
    medium: Arc<Medium>,
    space: Arc<Space>,
    clock: Arc<LogicalClock>,
    logs: Box<[Mutex<Log>]>,
    /// Entries in live chunks, and their maximum.
    live: AtomicU64,
    peak: AtomicU64,
    /// The part of `live` from before the last flip.
    flipped: AtomicU64,
    appended: AtomicU64,
}

impl Logs {
    /// Creates `count` logs in the first epoch. `live` counts the entries that recovery kept.
    pub(crate) fn new(
        medium: Arc<Medium>,
        space: Arc<Space>,
        clock: Arc<LogicalClock>,
        count: usize,
        live: u64,
    ) -> Logs {
        Logs {
            medium,
            space,
            clock,
            logs: (0..count).map(|_| Mutex::default()).collect(),
            live: AtomicU64::new(live),
            peak: AtomicU64::new(live),
            flipped: AtomicU64::new(0),
            appended: AtomicU64::new(0),
        }
    }

    /// Appends to the calling thread's log, or to another log if that one is full and no chunk is
    /// free. The entry is durable when this returns. Returns `None` if there is no room.
    pub(crate) fn append(&self, change: Change) -> Result<Option<Appended>> {
        self.append_in(change, Room::of(change.delete))
    }

    /// Appends an entry that cleaning copies, which may go to the last free chunk.
    pub(crate) fn append_copy(&self, change: Change) -> Result<Option<Appended>> {
        self.append_in(change, Room::Copies)
    }

    fn append_in(&self, change: Change, room: Room) -> Result<Option<Appended>> {
        let own = thread_number() % self.logs.len();
        if let Some(appended) = self.append_to(own, change, (room, true))? {
            return Ok(Some(appended));
        }
        for log in (0..self.logs.len()).filter(|log| *log != own) {
            if let Some(appended) = self.append_to(log, change, (room, false))? {
                return Ok(Some(appended));
            }
        }
        Ok(None)
    }

    /// Appends to a log for `room`. Takes another chunk if needed, if it may, and if there is room.
    fn append_to(
        &self,
        log: usize,
        change: Change,
        (room, may_take): (Room, bool),
    ) -> Result<Option<Appended>> {
        let mut log = self.logs[log].lock();
        let full = log.open.as_ref().is_none_or(|open| open.used == open.room);
        if full {
            if !may_take {
                return Ok(None);
            }
            let begun = self.clock.tick();
            let Some((chunk, blank)) = self.space.allocate_log(begun, room)? else {
                return Ok(None);
            };
            log.open = Some(self.open(chunk, begun, blank));
        }
        let epoch = log.epoch;
        let open = log.open.as_mut().expect("one was opened");
        self.write(open, change, (epoch, room == Room::Copies))?;
        self.appended.fetch_add(1, Ordering::Relaxed);
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(live, Ordering::Relaxed);
        Ok(Some(Appended { epoch }))
    }

    fn open(&self, chunk: ChunkId, begun: Time, blank: bool) -> Open {
        let geometry = self.space.geometry();
        Open {
            start: geometry.offset(chunk),
            begun,
            used: 0,
            room: geometry.chunk_bytes / ENTRY_BYTES,
            ahead: Ahead::new(blank),
        }
    }

    /// Writes the next entry of a chunk, for an epoch and as a copy or not.
    fn write(&self, open: &mut Open, change: Change, (epoch, copy): (u8, bool)) -> Result<()> {
        let geometry = self.space.geometry();
        let chunk = geometry.chunk_of(open.start).map_or(0, |chunk| chunk.0);
        let place = open.used;
        let offset = open.start + open.used * ENTRY_BYTES;
        let old = open
            .ahead
            .overwritten(&self.medium, open.start, open.used, open.room)?;
        if old[2] >> 16 > open.begun.0 {
            // A stamp left by an append that a crash cut off, later than anything recovery saw:
            // with new words beside it, it might pass.
            self.medium.tell(|| Event::Erases { chunk, place });
            self.medium.put_word(offset + 16, 0, IoClass::Log)?;
        }
        let new = loop {
            let time = self.clock.tick();
            if time.0 >> TIME_BITS != 0 {
                return Err(crate::Error::Poisoned {
                    why: "the logical clock has run out".into(),
                });
            }
            let new = encode(change, time);
            if is_distinct(old, new, open.begun) || mutation::on("ccl-torn-entry-believed") {
                break new;
            }
        };
        self.medium.tell(|| Event::Appends {
            chunk,
            place,
            words: new,
            delete: change.delete,
            epoch,
            copy,
        });
        entries::store(&self.medium, offset, new)?;
        if !mutation::on("ccl-log-not-fenced") {
            self.medium.fence();
        }
        open.used += 1;
        Ok(())
    }

    /// Closes the chunks of all logs at one moment. Returns that moment and the epoch that begins.
    pub(crate) fn flip(&self) -> (Time, u8) {
        let mut logs: Vec<_> = self.logs.iter().map(Mutex::lock).collect();
        let floor = self.clock.tick();
        let epoch = 1 - logs[0].epoch;
        for log in &mut logs {
            log.epoch = epoch;
            log.open = None;
        }
        self.medium.tell(|| Event::Flips { epoch });
        self.flipped.store(self.live(), Ordering::Relaxed);
        (floor, epoch)
    }

    /// Drops the entries from before the last flip from the counters. The log floor must already be
    /// raised.
    pub(crate) fn flipped_away(&self) {
        let flipped = self.flipped.swap(0, Ordering::Relaxed);
        self.live.fetch_sub(flipped, Ordering::Relaxed);
    }

    /// Returns the number of entries in live chunks.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Returns the maximum of that number so far.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns the number of entries appended since the store was opened, including copies by
    /// cleaning.
    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }
}

/// Returns the calling thread's number. Threads are numbered from 0 in the order of their first
/// appends.
pub(crate) fn thread_number() -> usize {
    use std::sync::atomic::AtomicUsize;
    // It only selects a log, so there is nothing for an explorer to explore.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// Reads a chunk's entries in order. A torn or stale entry ends them, and no valid entry may follow
/// it.
pub(crate) fn read_chunk(
    medium: &Medium,
    geometry: &Geometry,
    chunk: ChunkId,
    begun: Time,
    mut visit: impl FnMut(Time, Change),
) -> Result<u64> {
    let entries = entries::load_chunk(medium, geometry, chunk)?;
    let room = entries.len() as u64;
    let mut ended = None;
    let mut last = begun;
    for (at, (offset, words)) in (0..).zip(entries) {
        match (decode(words, last), ended) {
            (Some((time, change)), None) => {
                last = time;
                visit(time, change);
            }
            (Some(_), Some((_, end))) => {
                return Err(damaged(
                    "the log",
                    end,
                    "an entry, as there is one behind it".into(),
                    format!("none, and another at offset {offset}"),
                ));
            }
            (None, None) => ended = Some((at, offset)),
            (None, Some(_)) => {}
        }
    }
    Ok(ended.map_or(room, |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_24_bytes_and_a_chunk_of_4_mib_holds_174762() {
        // CC-06.
        assert_eq!(size_of::<Words>() as u64, ENTRY_BYTES);
        assert_eq!((4u64 << 20) / ENTRY_BYTES, 174_762);
    }

    #[test]
    fn entries_say_what_they_are_and_stale_ones_do_not_count() {
        for (indirect, delete) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut change = Change::put(u64::MAX, 3);
            change.slot.indirect = indirect;
            change.delete = delete;
            let words = encode(change, Time(77));
            assert_eq!(decode(words, Time(76)), Some((Time(77), change)));
            assert_eq!(decode(words, Time(77)), None, "stale");
            assert_eq!(decode([words[0], 4, words[2]], Time(0)), None, "torn");
        }
        assert_eq!(decode([0; 3], Time(0)), None, "zeros");
    }

    #[test]
    fn the_writer_takes_no_stamp_that_a_mix_of_old_and_new_words_would_fit() {
        let begun = Time(1_000);
        let (mut refused, mut taken) = (0, 0);
        for old in 0..40u64 {
            let old = encode(
                Change::put(old.wrapping_mul(0x1234_5678_9abc), old),
                Time(old),
            );
            for time in 1_001..3_000 {
                let new = encode(Change::put(7, time), Time(time));
                if !is_distinct(old, new, begun) {
                    refused += 1;
                    continue;
                }
                taken += 1;
                for mix in 1..7u32 {
                    let words = [0, 1, 2].map(|i| if mix >> i & 1 == 1 { new[i] } else { old[i] });
                    assert_eq!(decode(words, begun), None);
                }
            }
        }
        assert!(
            refused > 0,
            "fourteen bits do collide: {refused} of {taken}"
        );
    }
}
