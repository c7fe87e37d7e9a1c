//! Recovery (CCL-BTree §3.3): rebuilds the index from the chain of leaves, and replays from the
//! logs what the leaves lack.
//!
//! ```text
//! directory, floor ─▶ chain of leaves ─▶ index ─▶ live log chunks: newest entry of each key
//! ─▶ entries later than their leaf's timestamp into the leaves ─▶ floor
//! ```
//!
//! - Entries of all logs are collected first. If logs were replayed one after another, an older
//!   entry could overwrite a newer one of another thread's log.
//! - Replay leaves timestamps unchanged, and gives a leaf that it splits off the timestamp of the
//!   old one. So after a crash the next recovery replays the same entries again, until raising the
//!   floor kills all logs with one store.
//! - A change that the leaf already has is not written again, because that would take a free slot
//!   and, in a full leaf, a split.
//! - If replay cannot split a leaf because the device is full, the leaf's entries go back into its
//!   buffer, where they were. A global buffer gets back everything that it had. The log then stays
//!   alive. Entries that no buffer has room for are replayed first: they were about to be written
//!   when the power failed, and space had been found for them.
//! - Timestamps are never reset, unlike in the paper: the logical clock continues above the largest
//!   time seen.
//! - After a kill with the power on, what is read here may not be durable. So all reachable lines
//!   are written back before any request is served.
//!
//! Recovery reads each leaf and each live log chunk once. The options set the number of threads
//! that share this work.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::mutation;
use crate::options::{PmBuffer, PmOptions};
use crate::pm::bytes::Bytes;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::events::Event;
use crate::pm::layout::{self, Geometry, LeafId, TIME_BITS, Time, damaged, set_floor};
use crate::pm::leaf::{HEADER_BYTES, LEAF_BYTES, LeafImage, SLOTS, Slot, fingerprint};
use crate::pm::logs::{LogicalClock, read_chunk};
use crate::pm::medium::Medium;
use crate::pm::nodes::{Change, Nodes};
use crate::pm::records::Records;
use crate::pm::space::{Room, Space};
use crate::sync::Arc;
use crate::types::IoClass;

use super::write::IfFull;
use super::{Leaves, Stamps};
use crate::pm::leaf::SPARSE;

/// Changes, by key.
pub(crate) type Changes = BTreeMap<Bytes, Change>;

/// What opening a store in persistent memory had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmRecoveryReport {
    /// Leaves found.
    pub leaves: u64,
    /// Leaves whose fingerprints a crash had left out of date.
    pub fingerprints_repaired: u64,
    /// Log chunks read.
    pub log_chunks: u64,
    /// Log entries in them.
    pub log_entries: u64,
    /// Keys whose newest log entry was written to their leaves.
    pub replayed: u64,
    /// Keys whose newest log entry went back to a buffer because there was no room to split a leaf.
    /// The log then stays alive.
    pub restored: u64,
    /// Log entries that a crash had torn, in logs that do not end at the first torn entry.
    pub torn_entries: u64,
    /// Entries of a log that stays alive.
    pub(crate) log_kept: u64,
}

/// What recovery notes of a leaf.
struct LeafFacts {
    leaf: LeafId,
    timestamp: Time,
    /// The smallest and the largest key. The first leaf may have none.
    keys: Option<(Bytes, Bytes)>,
    /// Slots in use.
    used: usize,
    /// The image with corrected fingerprints, if they were wrong.
    repaired: Option<LeafImage>,
}

/// A store recovered from its leaves and logs.
pub(crate) struct Recovered {
    pub(crate) leaves: Leaves,
    /// Changes from the log that neither leaves nor their buffers have room for: those of a global
    /// buffer.
    pub(crate) above: Changes,
    pub(crate) report: PmRecoveryReport,
}

/// Recovers a store from its leaves and logs, for the tree in `options`.
pub(crate) fn recover(
    medium: &Arc<Medium>,
    geometry: Geometry,
    options: &PmOptions,
) -> Result<Recovered> {
    let (tree, threads) = (options.tree.facts(), options.recovery_threads);
    let mut report = PmRecoveryReport::default();
    let old_floor = layout::load_floor(medium)?;
    let uses = geometry.load_uses(medium)?;
    let space = Arc::new(Space::new(Arc::clone(medium), geometry, uses));
    let records = Records::new(Arc::clone(medium), Arc::clone(&space));
    let chain = walk(medium, &space)?;
    report.leaves = chain.len() as u64;
    let reachable: BTreeSet<LeafId> = chain.iter().copied().collect();
    space.recovered_leaves(&reachable, old_floor);

    let facts = share_out(&chain, threads, |leaf| read_leaf(medium, &records, leaf))?;
    let mut last = old_floor;
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
    medium.tell(|| Event::Recovers {
        leaves: (facts.iter())
            .map(|fact| {
                let smallest = fact.keys.as_ref().map(|(smallest, _)| smallest.to_vec());
                (fact.leaf.0, smallest)
            })
            .collect(),
    });
    let index = Index::from_sorted(entries, options.index_entries)
        .expect("the fences ascend from the empty one");

    let logs = space.log_chunks();
    let logs: Vec<_> = logs
        .into_iter()
        .filter(|(_, begun)| *begun >= old_floor)
        .collect();
    report.log_chunks = logs.len() as u64;
    let mut found = read_logs(medium, &geometry, &records, &logs, threads)?;
    report.log_entries = found.entries;
    last = logs
        .iter()
        .map(|(_, begun)| *begun)
        .fold(last.max(found.last), Time::max);

    let clock = Arc::new(LogicalClock::after(last));
    let floor = clock.tick();
    let mut leaves = Leaves {
        nodes: Nodes::new(geometry, tree.batch(), floor),
        medium: Arc::clone(medium),
        space,
        records,
        index,
        clock,
        counters: Default::default(),
        // The log still refers to records that replay replaces.
        logged: true,
        stamped: matches!(tree.buffer, PmBuffer::PerLeaf(_)),
        sweep: Default::default(),
        sparse: Default::default(),
    };
    for fact in facts.iter().skip(1).filter(|fact| fact.used < SPARSE) {
        debug_assert!(fact.leaf != geometry.first_leaf());
        leaves.note_sparse();
    }
    let mut above = Changes::new();
    // A leaf stamped later may have changes that no log has. A global buffer, however, merges
    // leaves without stamping them, and its log overrides the leaves.
    let unlogged = facts.iter().any(|fact| fact.timestamp >= old_floor);
    let above_leaves = tree.buffer == PmBuffer::Shared && !unlogged;
    leaves.space.serve(tree.is_logged());
    let (replayed, without_room) = replay(&leaves, &mut found, above_leaves)?;
    report.replayed = replayed;
    if without_room.is_empty() {
        set_floor(medium, floor)?;
        leaves.space.floor_raised(floor);
        mark_records(&leaves, &[], &[])?;
    } else {
        let mut restored = Vec::new();
        for group in without_room {
            if above_leaves {
                let lacking = group.lacking.into_iter();
                above.extend(lacking.map(|(key, (_, change))| (key, change)));
            } else {
                restored.extend(restore(&leaves, group)?);
            }
        }
        restored.extend(above.values().map(|change| change.slot));
        report.restored = restored.len() as u64;
        report.log_kept = found.entries;
        mark_records(&leaves, &restored, &found.indirect)?;
    }
    leaves.logged = tree.is_logged();
    Ok(Recovered {
        leaves,
        above,
        report,
    })
}

/// Returns all leaves in order, following their header words from the first one.
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
        used: keys.len(),
        repaired: (wrong && !mutation::on("ccl-fingerprints-believed")).then_some(image),
    })
}

/// The contents of the live log chunks.
struct Found {
    entries: u64,
    /// The latest time in them.
    last: Time,
    /// The newest entry of each key.
    newest: BTreeMap<Bytes, (Time, Change)>,
    /// Slots that refer to records, of any age.
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
            // The entry that a kill has cut off, if there is one. What is overwritten next must be
            // durable.
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

/// The log's changes to one leaf's keys that are later than the leaf's timestamp, ascending.
struct OfLeaf {
    leaf: LeafId,
    entries: Vec<(Bytes, (Time, Change))>,
    /// The changes that the leaf lacks. The others are from its last flush, which its timestamp
    /// does not cover yet.
    lacking: Vec<(Bytes, (Time, Change))>,
}

impl OfLeaf {
    fn new(leaves: &Leaves, leaf: LeafId, entries: Vec<(Bytes, (Time, Change))>) -> Result<OfLeaf> {
        let image = leaves.load(leaf)?;
        let slots = image.used().map(|at| image.slot(at));
        let slots: Vec<Slot> = slots.filter(|slot| !slot.is_absent()).collect();
        let mut lacking = Vec::new();
        for entry in &entries {
            let (key, (_, change)) = entry;
            if lacks(leaves, &slots, key, *change)? {
                lacking.push(entry.clone());
            }
        }
        Ok(OfLeaf {
            leaf,
            entries,
            lacking,
        })
    }
}

/// Returns whether a leaf with these slots lacks a change.
fn lacks(leaves: &Leaves, slots: &[Slot], key: &[u8], change: Change) -> Result<bool> {
    if !change.delete {
        return Ok(!slots.contains(&change.slot));
    }
    for slot in slots {
        if leaves.records.is_key(*slot, key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Groups by leaf what the leaves may lack. Leaves that lack more than a buffer holds come first:
/// they include any write that was cut off after its log entry. Space had been found for such a
/// write, so there is space now unless another leaf, which could have waited, takes it first.
fn by_leaf(leaves: &Leaves, newest: BTreeMap<Bytes, (Time, Change)>) -> Result<Vec<OfLeaf>> {
    let find = |key: &[u8]| LeafId(leaves.index.find(key).0);
    let mut groups = Vec::new();
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
        if !of_leaf.is_empty() {
            groups.push(OfLeaf::new(leaves, leaf, of_leaf)?);
        }
    }
    groups.sort_by_key(|group| group.lacking.len() <= leaves.nodes.batch());
    Ok(groups)
}

/// Writes to the leaves what they lack. Returns the number of keys, and the leaves for which this
/// is impossible because they would have to be split and no leaf is free. Those are unchanged, or
/// have some of their entries.
///
/// Entries that fit in a buffer, their leaf's or one above the leaves (`above_leaves`), are
/// replayed like puts: they leave the space that deletes need, because nothing else could make room
/// in a full store. All other entries may use all space.
fn replay(leaves: &Leaves, found: &mut Found, above_leaves: bool) -> Result<(u64, Vec<OfLeaf>)> {
    let mut replayed = 0;
    let mut without_room: Vec<OfLeaf> = Vec::new();
    let mut records_known = false;
    for group in by_leaf(leaves, std::mem::take(&mut found.newest))? {
        let can_wait = above_leaves || group.lacking.len() <= leaves.nodes.batch();
        let room = if can_wait { Room::Put } else { Room::Copies };
        let mut done = replay_leaf(leaves, &group, room);
        if matches!(done, Err(Error::PmFull { .. })) && !records_known {
            // No record is free until it is known which are in use.
            mark_records(leaves, &[], &found.indirect)?;
            records_known = true;
            done = replay_leaf(leaves, &group, room);
        }
        match done {
            Ok(()) => {
                replayed += group.lacking.len() as u64;
                if group.lacking.iter().any(|(_, (_, change))| change.delete) {
                    leaves.note_sparse();
                }
            }
            Err(Error::PmFull { .. }) => {
                // The leaf may have been split earlier in this replay.
                let mut entries = group.entries.into_iter().peekable();
                while let Some((key, _)) = entries.peek() {
                    let page = leaves.index.find(key);
                    let mut of_leaf = Vec::new();
                    while let Some(entry) =
                        entries.next_if(|(key, _)| leaves.index.find(key) == page)
                    {
                        of_leaf.push(entry);
                    }
                    without_room.push(OfLeaf::new(leaves, LeafId(page.0), of_leaf)?);
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok((replayed, without_room))
}

/// Replays the entries of one leaf.
fn replay_leaf(leaves: &Leaves, group: &OfLeaf, room: Room) -> Result<()> {
    let timestamp = leaves.load(group.leaf)?.timestamp();
    let stamps = Stamps {
        late: timestamp,
        new: timestamp,
    };
    let mut entries = &group.lacking[..];
    while let Some((key, _)) = entries.first() {
        let page = leaves.index.find(key);
        let more = |(key, _): &(Bytes, _)| leaves.index.find(key) == page;
        let batch = entries.iter().take(SLOTS / 2);
        let batch: Vec<Change> = batch
            .take_while(|entry| more(entry))
            .map(|(_, (_, change))| *change)
            .collect();
        let leaf = page.0;
        leaves.medium.tell(|| Event::Replays {
            leaf,
            keys: batch.iter().map(|change| change.slot.key).collect(),
        });
        let written = leaves.write(LeafId(leaf), &batch, IfFull::Split(room), stamps)?;
        leaves.medium.tell(|| Event::Replayed { leaf });
        if let Some(fence) = written.split_at {
            // Either the leaf lacks nothing, or what it lacks goes into its buffer with a time of
            // its own. If the log stays alive, a later write to the leaf must cover the log.
            let right = LeafId(leaves.index.find(&fence).0);
            let mut held = leaves.nodes.node(right).lock();
            held.set_flushed_at(leaves.nodes.born());
        }
        entries = &entries[batch.len()..];
    }
    Ok(())
}

/// Puts what a full leaf lacks back into its buffer node; the log stays alive. What the leaf lacks
/// was in the buffer when the store stopped, so it fits, unless N_batch is smaller now. Entries
/// that the leaf already has are not put into the buffer, because a record referred to from both
/// would be freed twice.
fn restore(leaves: &Leaves, group: OfLeaf) -> Result<Vec<Slot>> {
    let entries = group.lacking.into_iter().map(|(_, entry)| entry);
    let mut buffered: Vec<(Time, Change)> = entries.collect();
    buffered.sort_unstable_by_key(|(time, _)| *time);
    let Some(&(first, _)) = buffered.first() else {
        return Ok(Vec::new());
    };
    if buffered.len() > leaves.nodes.batch() {
        return Err(leaves.space.full("what the log has"));
    }
    let mut held = leaves.nodes.node(group.leaf).lock();
    // From here on, earlier entries are covered.
    held.set_flushed_at(Time(first.0 - 1));
    for (at, (_, change)) in buffered.iter().enumerate() {
        held.set(at, *change, 0);
    }
    held.fields.set_unflushed(buffered.len());
    held.fields.set_filled(buffered.len());
    let counter = &leaves.counters.buffered;
    counter.fetch_add(buffered.len() as u64, std::sync::atomic::Ordering::Relaxed);
    Ok(buffered
        .into_iter()
        .map(|(_, change)| change.slot)
        .collect())
}

/// Frees the records to which no leaf and none of these slots refers. Records to which only entries
/// of a live log refer are retired now.
fn mark_records(leaves: &Leaves, restored: &[Slot], logged: &[Slot]) -> Result<()> {
    let mut used = Vec::new();
    let mut at = Some(leaves.space.geometry().first_leaf());
    while let Some(leaf) = at {
        let image = leaves.load(leaf)?;
        let slots = image.used().map(|at| image.slot(at));
        used.extend(slots.filter(|slot| slot.indirect));
        at = image.header().next();
    }
    used.extend_from_slice(restored);
    leaves.records.recovered(&used, logged, &leaves.clock)
}

/// Applies `work` to each item in several threads, and returns the results in order. The caller
/// waits for all of them. The threads end with this call, which is part of opening a store.
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
