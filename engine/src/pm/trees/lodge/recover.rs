//! Recovery of a LodgeTree (LodgeTree §IV-E in half a sentence; `specs/surrogate_buffer`, Restart
//! to FinishReplay).
//!
//! ```text
//! chain of leaves by use_n ─▶ (low, leaf) of each ─▶ entries of all chunks of logs
//! ─▶ torn ones emptied, all written back, fence
//! ─▶ entries beyond their leaf's stamp ─▶ nodes, with room for those
//! ─▶ ascending by number into the buffers
//! ```
//!
//! - It does not matter which log an entry is in, and whether that log was free: a stale entry is
//!   not beyond its leaf's stamp, or is overridden by a later entry.
//! - A leaf's range begins at its `low`, not at its smallest key. The spare sibling pointer is not
//!   followed, and leaves that are not reachable are free.
//! - After a kill with the power on, what is read need not be durable. So all lines that recovery
//!   relies on are written back before anything is built on them.
//! - The clock continues behind the numbers of all entries, all stamps, and the log floor. A torn
//!   entry is emptied before anything is logged; otherwise the same pair, logged again, could
//!   complete it with its old number.
//! - The entries of a node are replayed in the order of their numbers. If a buffer must be flushed
//!   on the way, its leaves' stamps then correctly say what has been replayed. Threads share out
//!   nodes, never logs.
//!
//! Nodes are built anew, and packed so that index part and buffer of each fit: the pairs of a leaf
//! did fit in a node with it before. So nothing has to be flushed, and a full store opens, unless
//! nodes have fewer slots than when the log was written.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::index::IndexOf;
use crate::mutation;
use crate::options::{LodgeOptions, PmOptions};
use crate::pm::bytes::Bytes;
use crate::pm::events::lodge::LodgeEvent;
use crate::pm::layout::{self, ChunkId, Geometry, LeafId, Time, damaged};
use crate::pm::leaf::Slot;
use crate::pm::leaves::recover::{PmRecoveryReport, share_out};
use crate::pm::logs::LogicalClock;
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::records::Records;
use crate::pm::space::Space;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::types::{IoClass, PageId};

use super::Lodge;
use super::leaf::{BYTES, HEADER_BYTES, Image, members};
use super::log::{VersionLogs, read_chunk};
use super::node::{Nodes, Pair, Sought};

/// What recovery notes of a leaf.
struct LeafFacts {
    leaf: LeafId,
    stamp: Time,
    low: Vec<u8>,
    keys: usize,
    /// The smallest and the largest key.
    bounds: Option<(Bytes, Bytes)>,
    /// Slots that refer to records.
    indirect: Vec<Slot>,
}

/// An entry that its leaf does not have.
#[derive(Clone, Copy)]
struct Entry {
    number: Time,
    change: Change,
    log: u32,
}

/// Recovers a store from its leaves and logs.
pub(crate) fn recover(
    medium: &Arc<Medium>,
    geometry: Geometry,
    options: LodgeOptions,
    opening: &PmOptions,
) -> Result<(Lodge, PmRecoveryReport)> {
    let threads = opening.recovery_threads;
    let mut report = PmRecoveryReport::default();
    let floor = layout::load_floor(medium)?;
    let uses = geometry.load_uses(medium)?;
    let space = Arc::new(Space::new(Arc::clone(medium), geometry, uses));
    let records = Records::new(Arc::clone(medium), Arc::clone(&space));
    let chain = walk(medium, &space)?;
    report.leaves = chain.len() as u64;
    let reachable: BTreeSet<LeafId> = chain.iter().copied().collect();
    // Chunks of logs stay with the logs until these say otherwise.
    space.recovered_leaves(&reachable, Time(0));
    let first = geometry.first_leaf();
    let facts = share_out(&chain, threads, |leaf| {
        read_leaf(medium, &records, first, leaf)
    })?;
    check_ranges(&facts)?;
    for fact in &facts {
        let offset = fact.leaf.offset();
        if !mutation::on("lodge-trusts-what-it-reads") {
            medium.write_back(offset..offset + BYTES as u64, IoClass::Page)?;
        }
    }
    layout::rewrite(medium, &geometry)?;

    let chunks: Vec<ChunkId> = space
        .log_chunks()
        .into_iter()
        .map(|(chunk, _)| chunk)
        .collect();
    report.log_chunks = chunks.len() as u64;
    let found = share_out(&chunks, threads, |chunk| {
        read_chunk(medium, &geometry, chunk)
    })?;
    medium.fence();

    let numbers = found.iter().flat_map(|found| &found.entries);
    let logged = numbers.map(|(_, number, _)| *number).max();
    let stamped = facts.iter().map(|fact| fact.stamp).max();
    let stamped = stamped.filter(|_| !mutation::on("lodge-restarts-numbers"));
    let last = [logged, stamped, Some(floor)];
    let clock = Arc::new(LogicalClock::after(
        last.into_iter().flatten().fold(Time(0), Time::max),
    ));

    let logs = VersionLogs::new(
        Arc::clone(medium),
        Arc::clone(&space),
        Arc::clone(&clock),
        options.logs,
        options.log_entries,
    );
    let lows: Vec<&[u8]> = facts.iter().map(|fact| fact.low.as_slice()).collect();
    let mut stale = Vec::new();
    let mut to_replay: Vec<Vec<Entry>> = facts.iter().map(|_| Vec::new()).collect();
    for (chunk, found) in chunks.iter().zip(found) {
        report.log_entries += found.entries.len() as u64;
        report.torn_entries += found.torn;
        for (at, number, change) in found.entries {
            if number < floor {
                continue;
            }
            let slot = change.slot;
            if slot.indirect {
                stale.push(slot);
            }
            let key = records.key(slot)?;
            let leaf = lows.partition_point(|low| **low <= *key).max(1) - 1;
            if number > facts[leaf].stamp || mutation::on("lodge-replays-flushed") {
                to_replay[leaf].push(Entry {
                    number,
                    change,
                    log: logs.log_of(*chunk, at),
                });
            }
        }
    }
    let sparse = facts.iter().filter(|fact| 2 * fact.keys < options.t_split);
    let sparse = if mutation::on("pm-sparse-forgotten-at-open") {
        0
    } else {
        sparse.count() as u64
    };
    let (nodes, index) = make_nodes(&records, &options, opening, &facts, &to_replay)?;
    let lodge = Lodge {
        medium: Arc::clone(medium),
        space,
        records,
        clock,
        options,
        index,
        nodes,
        logs,
        floor: AtomicU64::new(floor.0),
        cleaning: Default::default(),
        stuck_until: Default::default(),
        in_vain: Default::default(),
        sweep: Default::default(),
        sparse: AtomicU64::new(sparse),
        counters: Default::default(),
    };
    lodge.tell(|| {
        let node = |number| lodge.nodes.node(number).read().image();
        LodgeEvent::Recovers {
            nodes: (0..lodge.nodes.count()).map(node).collect(),
        }
    });
    report.replayed = lodge.replay(&facts, to_replay, threads)?;
    lodge.logs.recovered(&chunks);
    let mut used = if lodge.counters.flushes.load(Relaxed) == 0 {
        facts.into_iter().flat_map(|fact| fact.indirect).collect()
    } else {
        lodge.leaf_slots()?
    };
    lodge.buffered_slots(&mut used);
    lodge.records.recovered(&used, &stale, &lodge.clock)?;
    lodge.space.serve(false);
    lodge.tell(|| LodgeEvent::Recovered);
    Ok((lodge, report))
}

/// Returns all leaves in order, from the first one.
fn walk(medium: &Medium, space: &Space) -> Result<Vec<LeafId>> {
    let geometry = space.geometry();
    let most = u64::from(geometry.chunks) * geometry.leaves_in_chunk();
    let mut chain = Vec::new();
    let mut at = Some(geometry.first_leaf());
    while let Some(leaf) = at {
        let mut image = Image::empty();
        medium.load(leaf.offset(), &mut image.0[..HEADER_BYTES], IoClass::Page)?;
        let next = image.next();
        let outside = next.filter(|next| !space.holds_leaves(*next));
        if image.is_damaged() || outside.is_some() || chain.len() as u64 == most {
            return Err(damaged(
                "a leaf's header",
                leaf.offset(),
                "another leaf or none as the next".into(),
                format!(
                    "{next:?}, {:#x} as kinds, leaf {} of at most {most}",
                    image.kinds(),
                    chain.len()
                ),
            ));
        }
        chain.push(leaf);
        at = next;
    }
    Ok(chain)
}

fn read_leaf(medium: &Medium, records: &Records, first: LeafId, leaf: LeafId) -> Result<LeafFacts> {
    let mut image = Image::empty();
    medium.load(leaf.offset(), &mut image.0, IoClass::Page)?;
    let mut indirect = Vec::new();
    let low = if leaf == first {
        Bytes::from(b"".as_slice())
    } else {
        records.key(image.low())?
    };
    if image.low().indirect {
        indirect.push(image.low());
    }
    let slots = members(image.header().bits()).map(|at| image.slot(at));
    let mut keys = Vec::new();
    for slot in slots {
        keys.push(records.key(slot)?);
        if slot.indirect {
            indirect.push(slot);
        }
    }
    keys.sort_unstable();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(damaged(
            "a leaf",
            leaf.offset(),
            "different keys".into(),
            format!("{:02x?} twice", &*pair[0]),
        ));
    }
    Ok(LeafFacts {
        leaf,
        stamp: image.header().stamp(),
        low: low.to_vec(),
        keys: keys.len(),
        bounds: keys.first().cloned().zip(keys.last().cloned()),
        indirect,
    })
}

/// Checks LeafInv: ranges ascend, and leaves hold only keys of their range.
fn check_ranges(facts: &[LeafFacts]) -> Result<()> {
    for (at, fact) in facts.iter().enumerate() {
        let next = facts.get(at + 1).map(|next| &next.low);
        let ascends = next.is_none_or(|next| fact.low < *next);
        let inside = fact.bounds.as_ref().is_none_or(|(least, most)| {
            **least >= *fact.low && next.is_none_or(|next| **most < **next)
        });
        if !ascends || !inside {
            let bounds = fact
                .bounds
                .as_ref()
                .map(|(least, most)| (least.to_vec(), most.to_vec()));
            return Err(damaged(
                "a leaf",
                fact.leaf.offset(),
                format!("keys from {:02x?} on and below {next:02x?}", fact.low),
                format!("{bounds:02x?}"),
            ));
        }
    }
    Ok(())
}

/// Builds nodes over the leaves in order, each with room for the entries to be replayed.
fn make_nodes(
    records: &Records,
    options: &LodgeOptions,
    opening: &PmOptions,
    facts: &[LeafFacts],
    to_replay: &[Vec<Entry>],
) -> Result<(Nodes, IndexOf<{ super::FANOUT }>)> {
    let nodes = Nodes::new(options.slots);
    // About as full as inserts would leave them.
    let most = (options.slots * 2 / 3).max(2);
    let mut firsts: Vec<(Vec<u8>, PageId)> = Vec::new();
    let (mut number, mut room) = (0, 0);
    for (fact, entries) in facts.iter().zip(to_replay) {
        let mut keys = BTreeSet::new();
        for entry in entries {
            keys.insert(records.key(entry.change.slot)?);
        }
        let body = nodes.node(number).read();
        let fits = body.leaves() < most && room > keys.len();
        drop(body);
        if firsts.is_empty() || !fits {
            number = nodes.allocate();
            firsts.push((fact.low.clone(), PageId(number)));
            // One slot is kept for a separator.
            room = options.slots - 1;
        }
        room = room.saturating_sub(1 + keys.len());
        let mut body = nodes.node(number).write();
        body.push_leaf(&fact.low, fact.leaf, fact.keys);
    }
    let index = IndexOf::from_sorted(firsts, opening.index_entries)
        .expect("lows ascend from the empty one");
    Ok((nodes, index))
}

impl Lodge {
    /// Puts entries back into buffers, those of a node in the order of their numbers. Returns how
    /// many there are.
    fn replay(
        &self,
        facts: &[LeafFacts],
        to_replay: Vec<Vec<Entry>>,
        threads: usize,
    ) -> Result<u64> {
        let mut of_nodes: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
        for (fact, entries) in facts.iter().zip(to_replay) {
            if !entries.is_empty() {
                let node = self.index.find(&fact.low).0;
                of_nodes.entry(node).or_default().extend(entries);
            }
        }
        let groups: Vec<Vec<Entry>> = of_nodes.into_values().collect();
        let order: Vec<usize> = (0..groups.len()).collect();
        let replayed = share_out(&order, threads, |at| {
            let mut entries = groups[at].clone();
            entries.sort_unstable_by_key(|entry| entry.number);
            if mutation::on("lodge-replays-log-by-log") {
                entries.sort_by_key(|entry| entry.log);
            }
            for entry in &entries {
                self.replay_entry(*entry)?;
            }
            Ok(entries.len() as u64)
        })?;
        Ok(replayed.into_iter().sum())
    }

    fn replay_entry(&self, entry: Entry) -> Result<()> {
        let Entry {
            number,
            change,
            log,
        } = entry;
        let key = self.records.key(change.slot)?;
        let sought = Sought::from(&*key);
        let pair = Pair {
            change,
            number,
            log,
        };
        self.logs.need(log);
        loop {
            let mut body = self.write(&key);
            if let Some(at) = body.find(&self.records, sought)? {
                let old = body.pair(at);
                body.replace(at, pair);
                self.tell_replay(number, &body);
                self.logs.release(old.log);
                return Ok(());
            }
            if !body.is_full() {
                let leaf = body.leaf_of(sought);
                body.push(pair, leaf);
                self.tell_replay(number, &body);
                self.counters.buffered.fetch_add(1, Relaxed);
                return Ok(());
            }
            if body.buffered() > 0 {
                self.flush(&mut body, |_| true)?;
            }
            if body.must_split() {
                self.split_node(body);
            }
        }
    }

    /// Returns the slots of leaves that refer to records, including lows.
    fn leaf_slots(&self) -> Result<Vec<Slot>> {
        let first = self.space.geometry().first_leaf();
        let mut slots = Vec::new();
        for leaf in walk(&self.medium, &self.space)? {
            slots.extend(read_leaf(&self.medium, &self.records, first, leaf)?.indirect);
        }
        Ok(slots)
    }

    fn buffered_slots(&self, indirect: &mut Vec<Slot>) {
        for number in 0..self.nodes.count() {
            let body = self.nodes.node(number).read();
            let slots = body.pairs().map(|at| body.pair(at).change.slot);
            indirect.extend(slots.filter(|slot| slot.indirect));
        }
    }
}
