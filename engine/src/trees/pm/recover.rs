//! Recovery (CCL-BTree §3.3): the leaves from the first one on give the index, the logs what the leaves lack.
//!
//! ```text
//! directory, floor ─▶ chain of leaves ─▶ index ─▶ live log chunks: newest entry of each key ─▶ those later than their leaf's timestamp into the leaves ─▶ floor
//! ```
//!
//! - Entries of all logs are gathered first: one log at a time, an older entry could overwrite a newer one of another thread's.
//! - Replay leaves timestamps as they are, and gives a leaf that it splits off the timestamp of the old one. So a crash leaves what the next recovery replays
//!   again, until the floor kills all logs by one store.
//! - A leaf that replay cannot split, as the device is full, gets its entries back into its buffer, where they were; then the log lives on.
//! - Timestamps are never reset (the paper does): the logical clock goes on above the largest time seen.
//! - After a kill with the power on, what is read here may not be durable; so all reachable lines are written back before anybody is served.
//!
//! The work is one read of each leaf and of each live log chunk; both are shared out among so many threads as the options say.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::mutation;
use crate::pm::layout::{self, Geometry, LeafId, TIME_BITS, Time, damaged, set_floor};
use crate::pm::leaf::{HEADER_BYTES, LEAF_BYTES, LeafImage, SLOTS, Slot, fingerprint};
use crate::pm::logs::{ENTRY_BYTES, LogicalClock, read_chunk};
use crate::pm::medium::Medium;
use crate::pm::nodes::{Change, Nodes};
use crate::pm::records::{Bytes, Records};
use crate::pm::space::Space;
use crate::sync::Arc;
use crate::types::IoClass;

use super::leaves::{Leaves, Stamps};

/// What opening a store in persistent memory had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmRecoveryReport {
    /// Leaves found.
    pub leaves: u64,
    /// Leaves whose fingerprints a crash had torn off.
    pub fingerprints_repaired: u64,
    /// Log chunks read, and entries in them.
    pub log_chunks: u64,
    /// Entries in them.
    pub log_entries: u64,
    /// Keys whose newest entry went to their leaves.
    pub replayed: u64,
    /// Keys whose newest entry went back to a buffer, as there was no room to split a leaf; then the log lives on.
    pub restored: u64,
    /// Log entries that a crash had torn, of logs that do not end at one.
    pub torn_entries: u64,
    /// Entries of a log that lives on.
    pub(crate) log_kept: u64,
}

/// What is read of a leaf.
struct LeafFacts {
    leaf: LeafId,
    timestamp: Time,
    /// The smallest and the largest key; the first leaf may have none.
    keys: Option<(Bytes, Bytes)>,
    /// The image with other fingerprints, if they were wrong.
    repaired: Option<LeafImage>,
}

/// Brings a store to the state of its leaves and logs; `logged` says whether the tree to be has a log, `stamped` whether its leaves have timestamps.
pub(crate) fn recover(
    medium: &Arc<Medium>,
    geometry: Geometry,
    batch: usize,
    stamped: bool,
    logged: bool,
    threads: usize,
) -> Result<(Leaves, PmRecoveryReport)> {
    let mut report = PmRecoveryReport::default();
    let floor = layout::load_floor(medium)?;
    let uses = geometry.load_uses(medium)?;
    let space = Arc::new(Space::new(Arc::clone(medium), geometry, uses));
    let records = Records::new(Arc::clone(medium), Arc::clone(&space));
    let chain = walk(medium, &space)?;
    report.leaves = chain.len() as u64;
    let reachable: BTreeSet<LeafId> = chain.iter().copied().collect();
    space.recovered_leaves(&reachable, floor);

    let facts = share_out(&chain, threads, |leaf| read_leaf(medium, &records, leaf))?;
    let mut last = floor;
    let mut entries: Vec<(Vec<u8>, crate::PageId)> = Vec::with_capacity(facts.len());
    let mut largest: Option<&Bytes> = None;
    for fact in &facts {
        last = last.max(fact.timestamp);
        let fence = match (&fact.keys, entries.is_empty()) {
            (_, true) => Vec::new(),
            (Some((smallest, _)), false) if largest.is_none_or(|largest| largest < smallest) => {
                smallest.to_vec()
            }
            (keys, false) => {
                let smallest = keys.as_ref().map(|(smallest, _)| smallest.to_vec());
                return Err(damaged(
                    "a leaf",
                    fact.leaf.offset(),
                    format!("keys above {:02x?}", largest.map(|key| key.to_vec())),
                    format!("{smallest:02x?} as the smallest"),
                ));
            }
        };
        entries.push((fence, Leaves::page(fact.leaf)));
        largest = fact.keys.as_ref().map(|(_, key)| key).or(largest);
        if let Some(repaired) = &fact.repaired {
            report.fingerprints_repaired += 1;
            medium.store(fact.leaf.offset(), &repaired.0[..HEADER_BYTES])?;
        }
        let offset = fact.leaf.offset();
        medium.write_back(offset..offset + LEAF_BYTES as u64, IoClass::Page)?;
    }
    layout::rewrite(medium, &geometry)?;
    medium.fence();
    let index = Index::from_sorted(entries).expect("the fences ascend from the empty one");

    let logs = space.log_chunks();
    let logs: Vec<_> = logs
        .into_iter()
        .filter(|(_, begun)| *begun >= floor)
        .collect();
    report.log_chunks = logs.len() as u64;
    let found = read_logs(medium, &geometry, &records, &logs, threads)?;
    report.log_entries = found.entries;
    last = logs
        .iter()
        .map(|(_, begun)| *begun)
        .fold(last.max(found.last), Time::max);

    let clock = Arc::new(LogicalClock::after(last));
    let floor = clock.tick();
    let mut leaves = Leaves {
        nodes: Nodes::new(geometry, batch, floor),
        medium: Arc::clone(medium),
        space,
        records,
        index,
        clock,
        counters: Default::default(),
        // What replay replaces the log still names.
        logged: true,
        stamped,
    };
    let (replayed, without_room) = replay(&leaves, found.newest)?;
    report.replayed = replayed;
    if without_room.is_empty() {
        set_floor(medium, floor)?;
        leaves.space.floor_raised(floor);
        mark_records(&leaves, &[], &[])?;
    } else {
        let mut restored = Vec::new();
        for (leaf, entries) in without_room {
            restored.extend(restore(&leaves, leaf, entries)?);
        }
        report.restored = restored.len() as u64;
        report.log_kept = found.entries;
        mark_records(&leaves, &restored, &found.indirect)?;
    }
    leaves.logged = logged;
    Ok((leaves, report))
}

/// The leaves from the first one on, by their header words.
fn walk(medium: &Medium, space: &Space) -> Result<Vec<LeafId>> {
    let geometry = space.geometry();
    let mut chain = Vec::new();
    let most = u64::from(geometry.chunks) * geometry.leaves_in_chunk();
    let mut at = Some(geometry.first_leaf());
    while let Some(leaf) = at {
        let mut image = LeafImage::empty();
        medium.load(leaf.offset(), &mut image.0[..8], IoClass::Page)?;
        let header = image.header();
        let next = header.next();
        let outside = next.filter(|next| !space.holds_leaves(*next));
        let empty = header.bitmap() == 0 && !chain.is_empty();
        if header.is_damaged() || outside.is_some() || empty || chain.len() as u64 == most {
            return Err(damaged(
                "a leaf's header word",
                leaf.offset(),
                "slots in use, and another leaf or none as the next".into(),
                format!("{:#018x}, leaf {} of at most {most}", header.0, chain.len()),
            ));
        }
        chain.push(leaf);
        at = next;
    }
    Ok(chain)
}

fn read_leaf(medium: &Medium, records: &Records, leaf: LeafId) -> Result<LeafFacts> {
    let mut bytes = [0; LEAF_BYTES];
    medium.load(leaf.offset(), &mut bytes, IoClass::Page)?;
    let mut image = LeafImage(bytes);
    let mut keys = Vec::with_capacity(SLOTS);
    let mut wrong = false;
    for at in image.used() {
        let slot = image.slot(at);
        let key = records.key(slot)?;
        let wanted = fingerprint(&key);
        if image.fingerprint(at) != wanted {
            image.set_fingerprint(at, wanted);
            wrong = true;
        }
        keys.push(key);
    }
    keys.sort_unstable();
    let twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
    let timestamp = image.timestamp();
    if twice || timestamp.0 >> TIME_BITS != 0 {
        return Err(damaged(
            "a leaf",
            leaf.offset(),
            format!("different keys, and a timestamp of {TIME_BITS} bits"),
            format!("a key twice: {twice}, timestamp {:#x}", timestamp.0),
        ));
    }
    let (smallest, largest) = (keys.first().cloned(), keys.last().cloned());
    Ok(LeafFacts {
        leaf,
        timestamp,
        keys: smallest.zip(largest),
        repaired: (wrong && !mutation::on("ccl-fingerprints-believed")).then_some(image),
    })
}

/// What live log chunks hold.
struct Found {
    entries: u64,
    /// The latest time in them.
    last: Time,
    /// The newest entry of each key.
    newest: BTreeMap<Bytes, (Time, Change)>,
    /// Slots that name records, of whatever age.
    indirect: Vec<Slot>,
}

fn read_logs(
    medium: &Medium,
    geometry: &Geometry,
    records: &Records,
    logs: &[(layout::ChunkId, Time)],
    threads: usize,
) -> Result<Found> {
    let chunks = share_out(logs, threads, |(chunk, begun)| {
        let mut entries = Vec::new();
        let read = |time, change| entries.push((time, change));
        let end = read_chunk(medium, geometry, chunk, begun, read)?;
        if end < geometry.chunk_bytes / ENTRY_BYTES {
            // The entry that a kill has cut off, if there is one: what is overwritten next must be durable.
            let at = geometry.offset(chunk) + end * ENTRY_BYTES;
            medium.write_back(at..at + ENTRY_BYTES, IoClass::Log)?;
        }
        Ok(entries)
    })?;
    let mut found = Found {
        entries: 0,
        last: Time(0),
        newest: BTreeMap::new(),
        indirect: Vec::new(),
    };
    for (time, change) in chunks.into_iter().flatten() {
        found.entries += 1;
        found.last = found.last.max(time);
        if change.slot.indirect {
            found.indirect.push(change.slot);
        }
        let key = records.key(change.slot)?;
        match found.newest.get_mut(&key) {
            Some(known) if known.0 > time && !mutation::on("ccl-replay-unordered") => {}
            Some(known) => *known = (time, change),
            None => drop(found.newest.insert(key, (time, change))),
        }
    }
    Ok(found)
}

/// Entries of a leaf's keys.
type OfLeaf = (LeafId, Vec<(Time, Change)>);

/// Puts into the leaves what they lack of these entries; says of how many keys, and of which leaves this cannot be done, since it would split them and there is
/// no leaf left. Those are as they were, or have some of their entries.
fn replay(leaves: &Leaves, newest: BTreeMap<Bytes, (Time, Change)>) -> Result<(u64, Vec<OfLeaf>)> {
    let find = |key: &[u8]| LeafId(leaves.index.find(key).0);
    let mut replayed = 0;
    let mut without_room: Vec<OfLeaf> = Vec::new();
    let mut entries = newest.into_iter().peekable();
    while let Some((key, _)) = entries.peek() {
        let leaf = find(key);
        let timestamp = leaves.load(leaf)?.timestamp();
        let mut of_leaf = Vec::new();
        while let Some((key, entry)) = entries.next_if(|(key, _)| find(key) == leaf) {
            if entry.0 > timestamp || mutation::on("ccl-replay-ignores-timestamp") {
                of_leaf.push((key, entry));
            }
        }
        match replay_leaf(leaves, timestamp, &of_leaf) {
            Ok(()) => replayed += of_leaf.len() as u64,
            Err(Error::PmFull { .. }) => {
                // It may have been split before that.
                for (key, entry) in of_leaf {
                    let leaf = find(&key);
                    match without_room.last_mut() {
                        Some((last, entries)) if *last == leaf => entries.push(entry),
                        _ => without_room.push((leaf, vec![entry])),
                    }
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok((replayed, without_room))
}

/// The same for a leaf's entries, ascending by their keys.
fn replay_leaf(
    leaves: &Leaves,
    timestamp: Time,
    mut entries: &[(Bytes, (Time, Change))],
) -> Result<()> {
    let stamps = Stamps {
        late: timestamp,
        new: Some(timestamp),
    };
    while let Some((key, _)) = entries.first() {
        let page = leaves.index.find(key);
        let more = |(key, _): &(Bytes, _)| leaves.index.find(key) == page;
        let batch = entries.iter().take(SLOTS / 2);
        let batch: Vec<Change> = batch
            .take_while(|entry| more(entry))
            .map(|(_, (_, change))| *change)
            .collect();
        leaves.write(LeafId(page.0), &batch, stamps)?;
        entries = &entries[batch.len()..];
    }
    Ok(())
}

/// Puts what a full leaf lacks back into its buffer node; the log goes on. What it lacks was in the buffer when the store stopped, so there is room, unless
/// N_batch is less now. Older entries are in the leaf.
fn restore(leaves: &Leaves, leaf: LeafId, mut entries: Vec<(Time, Change)>) -> Result<Vec<Slot>> {
    entries.sort_unstable_by_key(|(time, _)| *time);
    let image = leaves.load(leaf)?;
    let slots = image.used().map(|at| image.slot(at));
    let slots: Vec<Slot> = slots.filter(|slot| !slot.is_absent()).collect();
    let lacks = |change: &Change| -> Result<bool> {
        if !change.delete {
            return Ok(!slots.contains(&change.slot));
        }
        let key = leaves.records.key(change.slot)?;
        for slot in &slots {
            if leaves.records.is_key(*slot, &key)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut first = entries.len();
    for (at, (_, change)) in entries.iter().enumerate().rev() {
        if lacks(change)? {
            first = at;
        }
    }
    let lacking = entries.split_off(first);
    if lacking.len() > leaves.nodes.batch() {
        return Err(Error::PmFull {
            what: "what the log has",
            bytes: leaves.space.geometry().device_bytes,
        });
    }
    let mut held = leaves.nodes.node(leaf).lock();
    if let Some((time, _)) = lacking.first() {
        // From here on entries of before are covered.
        held.set_flushed_at(Time(time.0 - 1));
    }
    for (at, (_, change)) in lacking.iter().enumerate() {
        held.set(at, *change, 0);
    }
    held.fields.set_unflushed(lacking.len());
    held.fields.set_filled(lacking.len());
    let buffered = &leaves.counters.buffered;
    buffered.fetch_add(lacking.len() as u64, std::sync::atomic::Ordering::Relaxed);
    Ok(lacking.into_iter().map(|(_, change)| change.slot).collect())
}

/// Records that no leaf names, and none of these slots, are free; those that only entries of a log name which lives on are as good as retired now.
fn mark_records(leaves: &Leaves, restored: &[Slot], logged: &[Slot]) -> Result<()> {
    let mut ranges = BTreeMap::new();
    let add = |ranges: &mut BTreeMap<u64, u64>, slot: Slot| -> Result<()> {
        for offset in slot.records() {
            let range = leaves.records.range(offset)?;
            ranges.insert(range.start, range.end);
        }
        Ok(())
    };
    let mut at = Some(leaves.space.geometry().first_leaf());
    while let Some(leaf) = at {
        let image = leaves.load(leaf)?;
        for slot in image.used().map(|at| image.slot(at)) {
            add(&mut ranges, slot)?;
        }
        at = image.header().next();
    }
    for slot in restored {
        add(&mut ranges, *slot)?;
    }
    let in_use: BTreeSet<u64> = ranges.keys().copied().collect();
    for slot in logged {
        add(&mut ranges, *slot)?;
    }
    let ranges: Vec<_> = ranges.into_iter().map(|(start, end)| start..end).collect();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
        return Err(damaged(
            "a record",
            pair[1].start,
            "bytes of its own".into(),
            format!("bytes of the record at offset {}", pair[0].start),
        ));
    }
    for range in &ranges {
        leaves.records.rewrite(range.clone())?;
    }
    leaves.medium.fence();
    leaves.space.recovered_records(&ranges);
    for range in ranges.iter().filter(|range| !in_use.contains(&range.start)) {
        leaves
            .records
            .retire_range(range.clone(), leaves.clock.tick());
    }
    Ok(())
}

/// What `work` makes of each item, in order; in so many threads. The caller waits for all of them: it is the opening of a store, and the threads end with it.
pub(crate) fn share_out<I: Copy + Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let all = |items: &[I]| {
        items
            .iter()
            .map(|item| work(*item))
            .collect::<Result<Vec<T>>>()
    };
    if threads <= 1 || items.len() < threads {
        return all(items);
    }
    let share = items.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let all = &all;
        let shares: Vec<_> = items
            .chunks(share)
            .map(|items| scope.spawn(move || all(items)))
            .collect();
        let mut done = Vec::with_capacity(items.len());
        for share in shares {
            done.extend(
                share
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            );
        }
        Ok(done)
    })
}
