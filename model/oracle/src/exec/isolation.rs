//! Checks of what transactions saw, against the isolation that an adapter claims.
//!
//! The driver makes one request after another, though many transactions are open. So the order of
//! all begins, reads, writes and commits is known, and the checks are exact:
//!
//! - *read committed*: a read returns the version that was committed last, or the transaction's own.
//! - *snapshot*: a read returns the version that was committed last when the transaction began, or
//!   its own; of two transactions that were open at the same time and wrote the same key, only one
//!   has committed (Berenson et al., 1995).
//! - *serializable*: the graph of who read or replaced whose version, and of who ended before whom
//!   began, has no cycle (Adya, 1999). Each transaction reads a key before it writes it, so the order
//!   of versions is known.

use std::collections::{BTreeMap, HashMap};

use super::claims::Isolation;

/// A version of a key: the number of the write, or 0 if the key is absent.
pub type Version = u64;

/// What a transaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It began.
    Begin,
    /// It read this version of a key.
    Read(u32, Version),
    /// It wrote this version of a key.
    Write(u32, Version),
    /// It committed.
    Commit,
    /// It was given up, by either side.
    Abort,
}

/// One request of a transaction, in the order of all requests. Transaction 0 stands for single
/// calls, which read what is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The transaction.
    pub tx: u64,
    /// What it did.
    pub act: Act,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name in the literature.
    pub name: &'static str,
    /// The event that shows it, as an index.
    pub event: usize,
    /// What the claim asks for.
    pub expected: String,
    /// What happened.
    pub found: String,
}

#[derive(Default)]
struct Open {
    began: usize,
    /// Its reads of others' versions.
    reads: Vec<(u32, Version)>,
    writes: BTreeMap<u32, Version>,
}

#[derive(Default)]
struct Judge {
    open: HashMap<u64, Open>,
    /// For each key the committed versions, each with the event of its commit.
    committed: HashMap<u32, Vec<(usize, Version)>>,
    /// The writer of each version that is not committed (yet).
    pending: HashMap<Version, u64>,
    /// Committed transactions, for the graph.
    done: Vec<Done>,
}

struct Done {
    tx: u64,
    began: usize,
    ended: usize,
    reads: Vec<(u32, Version)>,
    writes: BTreeMap<u32, Version>,
}

fn named(version: Version) -> String {
    match version {
        0 => "absent".into(),
        version => format!("version {version}"),
    }
}

impl Judge {
    /// The version of a key that was committed last before an event.
    fn at(&self, key: u32, event: usize) -> Version {
        let versions = self.committed.get(&key).into_iter().flatten();
        versions
            .take_while(|(at, _)| *at < event)
            .last()
            .map_or(0, |(_, version)| *version)
    }

    fn read(
        &self,
        level: Isolation,
        event: usize,
        tx: u64,
        key: u32,
        found: Version,
    ) -> Option<Anomaly> {
        let open = self.open.get(&tx);
        let own = open.and_then(|open| open.writes.get(&key).copied());
        let latest = self.at(key, event);
        let snapshot = open.map_or(latest, |open| self.at(key, open.began));
        let right = match (own, level) {
            (Some(own), _) => found == own,
            (None, Isolation::Snapshot) => found == snapshot,
            (None, Isolation::ReadCommitted) => found == latest,
            // Any committed version, unless the graph has a cycle.
            (None, Isolation::Serializable) if tx > 0 => {
                found == 0
                    || self
                        .committed
                        .get(&key)
                        .is_some_and(|all| all.iter().any(|(_, version)| *version == found))
            }
            (None, Isolation::Serializable) => found == latest,
        };
        if right {
            return None;
        }
        let (name, expected) = match (own, self.pending.get(&found)) {
            (Some(own), _) => ("own write not read", format!("{}, its own", named(own))),
            (None, Some(_)) => ("dirty read", "no version that is not committed".into()),
            (None, None) if level == Isolation::Snapshot && tx > 0 => (
                "no snapshot",
                format!(
                    "{}, which was committed last when it began",
                    named(snapshot)
                ),
            ),
            (None, None) => (
                "stale read",
                format!("{}, which was committed last", named(latest)),
            ),
        };
        let from = match self.pending.get(&found) {
            Some(writer) => format!(" of transaction {writer}"),
            None => String::new(),
        };
        let found = format!("{}{from}", named(found));
        Some(Anomaly {
            name,
            event,
            expected,
            found,
        })
    }

    fn commit(&mut self, level: Isolation, event: usize, tx: u64) -> Option<Anomaly> {
        let open = self.open.remove(&tx)?;
        let mut lost = None;
        for (key, version) in &open.writes {
            let versions = self.committed.entry(*key).or_default();
            let later = versions.last().filter(|(at, _)| *at > open.began).copied();
            if let (Some((_, other)), Isolation::Snapshot) = (later, level) {
                lost.get_or_insert_with(|| Anomaly {
                    name: "lost update",
                    event,
                    expected: format!(
                        "a conflict, as {} of key {key} was committed after it had begun",
                        named(other)
                    ),
                    found: "a commit".into(),
                });
            }
            versions.push((event, *version));
            self.pending.remove(version);
        }
        let Open {
            began,
            reads,
            writes,
        } = open;
        self.done.push(Done {
            tx,
            began,
            ended: event,
            reads,
            writes,
        });
        lost
    }

    /// Two transactions that replaced the same version, or a cycle.
    fn cycle(&self) -> Option<Anomaly> {
        let done = &self.done;
        let mut writers: HashMap<(u32, Version), usize> = HashMap::new();
        // Who replaced a version; each writer has read what it replaced.
        let mut replaced: HashMap<(u32, Version), usize> = HashMap::new();
        for (n, of) in done.iter().enumerate() {
            for (key, version) in &of.writes {
                writers.insert((*key, *version), n);
                let Some((_, before)) = of.reads.iter().find(|(read, _)| read == key) else {
                    continue;
                };
                if let Some(other) = replaced.insert((*key, *before), n) {
                    return Some(Anomaly {
                        name: "lost update",
                        event: of.ended,
                        expected: format!(
                            "a conflict, as transaction {} has replaced {} of key {key}",
                            done[other].tx,
                            named(*before)
                        ),
                        found: "a commit that replaces the same version".into(),
                    });
                }
            }
        }
        let mut edges: Vec<Vec<(usize, &'static str)>> = vec![Vec::new(); done.len()];
        for (n, of) in done.iter().enumerate() {
            for read in &of.reads {
                if let Some(writer) = writers.get(read).filter(|writer| **writer != n) {
                    edges[*writer].push((n, "was read by"));
                }
                if let Some(next) = replaced.get(read).filter(|next| **next != n) {
                    edges[n].push((*next, "read what was replaced by"));
                }
            }
            // Those that began after it had ended; `done` is in the order of ends.
            let later = done.iter().enumerate().skip(n + 1);
            let later = later.filter(|(_, other)| other.began > of.ended);
            edges[n].extend(later.map(|(other, _)| (other, "ended before the begin of")));
        }
        let path = shortest_cycle(&edges)?;
        let mut said = String::new();
        for (n, how) in &path {
            said += &format!("transaction {} {how} ", done[*n].tx);
        }
        let last = path.iter().map(|(n, _)| done[*n].ended).max()?;
        said += &format!("transaction {}", done[path[0].0].tx);
        Some(Anomaly {
            name: "no serial order",
            event: last,
            expected: "an order of the transactions that explains their reads".into(),
            found: said,
        })
    }
}

/// The shortest cycle of a graph, as nodes with the edge that leaves each.
fn shortest_cycle(edges: &[Vec<(usize, &'static str)>]) -> Option<Vec<(usize, &'static str)>> {
    let mut best: Option<Vec<(usize, &'static str)>> = None;
    for start in 0..edges.len() {
        // Breadth first, back to the start.
        let mut from: HashMap<usize, (usize, &'static str)> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        'search: while let Some(node) = queue.pop_front() {
            for (next, how) in &edges[node] {
                if *next == start {
                    let mut path = vec![(node, *how)];
                    while let (node, true) =
                        (path[path.len() - 1].0, path[path.len() - 1].0 != start)
                    {
                        path.push(from[&node]);
                    }
                    path.reverse();
                    if best.as_ref().is_none_or(|best| path.len() < best.len()) {
                        best = Some(path);
                    }
                    break 'search;
                }
                if !from.contains_key(next) {
                    from.insert(*next, (node, how));
                    queue.push_back(*next);
                }
            }
        }
        if best.as_ref().is_some_and(|best| best.len() == 2) {
            break;
        }
    }
    best
}

/// Judges all requests of a run, in their order.
///
/// ```
/// use treering_oracle::exec::Isolation;
/// use treering_oracle::exec::isolation::{Act, Event, check};
///
/// // Both read key 0, both write it, both commit.
/// let events = [
///     (1, Act::Begin), (2, Act::Begin), (1, Act::Read(0, 0)), (2, Act::Read(0, 0)),
///     (1, Act::Write(0, 7)), (2, Act::Write(0, 8)), (1, Act::Commit), (2, Act::Commit),
/// ];
/// let events = events.map(|(tx, act)| Event { tx, act });
/// assert_eq!(check(Isolation::Snapshot, &events).unwrap_err().name, "lost update");
/// assert_eq!(check(Isolation::Serializable, &events).unwrap_err().name, "lost update");
/// assert!(check(Isolation::ReadCommitted, &events).is_ok());
/// ```
///
/// # Errors
/// The first anomaly.
pub fn check(level: Isolation, events: &[Event]) -> Result<(), Anomaly> {
    let mut judge = Judge::default();
    for (at, Event { tx, act }) in events.iter().enumerate() {
        let wrong = match *act {
            Act::Begin => {
                let began = at;
                judge.open.insert(
                    *tx,
                    Open {
                        began,
                        ..Open::default()
                    },
                );
                None
            }
            Act::Read(key, version) => {
                let wrong = judge.read(level, at, *tx, key, version);
                if let Some(open) = judge.open.get_mut(tx)
                    && !open.writes.contains_key(&key)
                {
                    open.reads.push((key, version));
                }
                wrong
            }
            Act::Write(key, version) => {
                judge.pending.insert(version, *tx);
                if let Some(open) = judge.open.get_mut(tx) {
                    open.writes.insert(key, version);
                }
                None
            }
            Act::Commit => judge.commit(level, at, *tx),
            // Its versions stay pending for ever.
            Act::Abort => judge.open.remove(tx).and(None),
        };
        if let Some(anomaly) = wrong {
            return Err(anomaly);
        }
    }
    match level {
        Isolation::Serializable => judge.cycle().map_or(Ok(()), Err),
        Isolation::Snapshot | Isolation::ReadCommitted => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &[(u64, Act)]) -> Vec<Event> {
        text.iter()
            .map(|(tx, act)| Event { tx: *tx, act: *act })
            .collect()
    }

    fn named(level: Isolation, text: &[(u64, Act)]) -> Option<&'static str> {
        check(level, &events(text))
            .err()
            .map(|anomaly| anomaly.name)
    }

    use Act::{Abort, Begin, Commit, Read, Write};

    #[test]
    fn write_skew_is_a_snapshot_and_not_serializable() {
        let skew = [
            (1, Begin),
            (2, Begin),
            (1, Read(0, 0)),
            (1, Read(1, 0)),
            (2, Read(0, 0)),
            (2, Read(1, 0)),
            (1, Write(0, 7)),
            (2, Write(1, 8)),
            (1, Commit),
            (2, Commit),
        ];
        assert_eq!(named(Isolation::Snapshot, &skew), None);
        assert_eq!(
            named(Isolation::Serializable, &skew),
            Some("no serial order")
        );
        let said = check(Isolation::Serializable, &events(&skew))
            .unwrap_err()
            .found;
        assert!(
            said.contains("transaction 1 read what was replaced by transaction 2"),
            "{said}"
        );
    }

    #[test]
    fn what_was_never_committed_must_not_be_read_at_any_level() {
        let dirty = [
            (1, Begin),
            (1, Read(0, 0)),
            (1, Write(0, 7)),
            (2, Begin),
            (2, Read(0, 7)),
            (1, Abort),
        ];
        for level in [
            Isolation::ReadCommitted,
            Isolation::Snapshot,
            Isolation::Serializable,
        ] {
            assert_eq!(named(level, &dirty), Some("dirty read"), "{level:?}");
        }
    }

    #[test]
    fn a_read_that_moves_with_the_commits_is_no_snapshot() {
        let moving = [
            (1, Begin),
            (2, Begin),
            (2, Read(0, 0)),
            (2, Write(0, 7)),
            (2, Commit),
            (1, Read(0, 7)),
        ];
        assert_eq!(named(Isolation::Snapshot, &moving), Some("no snapshot"));
        assert_eq!(named(Isolation::ReadCommitted, &moving), None);
        let own = [
            (1, Begin),
            (1, Read(0, 0)),
            (1, Write(0, 7)),
            (1, Read(0, 0)),
        ];
        assert_eq!(
            named(Isolation::ReadCommitted, &own),
            Some("own write not read")
        );
    }
}
