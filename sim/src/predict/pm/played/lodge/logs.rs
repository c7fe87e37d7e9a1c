//! Models LodgeTree's version log: logs of L entries, each free when none of its entries is needed
//! (LodgeTree §III-D; `engine/src/pm/trees/lodge/log.rs`). The lowest free log comes first, so places
//! come back.

use std::collections::{BTreeMap, BTreeSet};

use super::super::env::Env;
use super::super::log::{AHEAD, ENTRY};

#[derive(Clone, Copy, Default)]
struct Log {
    /// Entries that are needed or still to be written.
    valid: u32,
    opened: u64,
}

/// All logs.
pub(super) struct Logs {
    /// L, and logs per chunk.
    pub(super) entries: u64,
    per_chunk: u32,
    logs: BTreeMap<u32, Log>,
    free: BTreeMap<u32, BTreeSet<u32>>,
    /// The log appended to, its entries so far, and whether it is known to be all zeros.
    open: Option<(u32, u64, bool)>,
    in_use: u64,
}

impl Logs {
    pub(super) fn new(entries: u64, env: &Env<'_>) -> Logs {
        let fit = env.space.chunk_bytes / ENTRY;
        let entries = entries.clamp(1, fit);
        Logs {
            entries,
            per_chunk: (fit / entries) as u32,
            logs: BTreeMap::new(),
            free: BTreeMap::new(),
            open: None,
            in_use: 0,
        }
    }

    /// Reserves room for an entry: its log and its offset.
    pub(super) fn reserve(&mut self, env: &mut Env<'_>) -> (u32, u64) {
        let (log, used, blank) = match self.open {
            Some(open) if open.1 < self.entries => open,
            _ => self.open_another(env),
        };
        self.open = Some((log, used + 1, blank));
        let start = env.space.offset(log / self.per_chunk);
        let at = u64::from(log % self.per_chunk) * self.entries + used;
        let offset = start + at * ENTRY;
        if !blank && used.is_multiple_of(AHEAD) {
            env.lines
                .load(offset, AHEAD.min(self.entries - used) * ENTRY);
        }
        (log, offset)
    }

    fn open_another(&mut self, env: &mut Env<'_>) -> (u32, u64, bool) {
        let mut blank = false;
        if self.free.values().all(BTreeSet::is_empty) {
            let (chunk, zeros) = env.space.allocate_version_log(&mut env.lines);
            blank = zeros;
            let first = chunk * self.per_chunk;
            self.free
                .insert(chunk, (first..first + self.per_chunk).collect());
        }
        let taken = self.free.values_mut().find_map(BTreeSet::pop_first);
        let log = taken.unwrap_or_default();
        let valid = self.entries as u32;
        let opened = env.clock;
        self.logs.insert(log, Log { valid, opened });
        self.in_use += 1;
        (log, 0, blank)
    }

    /// An entry of a log is no longer needed.
    pub(super) fn release(&mut self, log: u32, env: &mut Env<'_>) {
        let Some(state) = self.logs.get_mut(&log) else {
            return;
        };
        state.valid -= 1;
        if state.valid > 0 {
            return;
        }
        self.logs.remove(&log);
        self.in_use -= 1;
        let chunk = log / self.per_chunk;
        let logs = self.free.entry(chunk).or_default();
        logs.insert(log);
        if logs.len() == self.per_chunk as usize && self.free.len() > 1 {
            self.free.remove(&chunk);
            env.space.free_logs(&mut vec![chunk]);
        }
    }

    /// The time before which the older half of the logs in use were opened.
    pub(super) fn median_opened(&self) -> u64 {
        let mut opened: Vec<u64> = self.logs.values().map(|log| log.opened).collect();
        opened.sort_unstable();
        opened.get(opened.len() / 2).copied().unwrap_or(0)
    }

    /// Entries that the logs in use have room for.
    pub(super) fn room(&self) -> u64 {
        self.in_use * self.entries
    }
}
