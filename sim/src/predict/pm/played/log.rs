//! Models the log of all trees but LodgeTree: entries in chunks, and the flip that begins a
//! cleaning (CCL-BTree §3.3, §3.4). To the engine all virtual clients are one thread, so they share
//! a log.

use super::env::Env;

/// Bytes of a log entry (CCL-BTree §3.3).
pub(super) const ENTRY: u64 = 24;
/// Entries that are loaded together to see what is overwritten.
pub(super) const AHEAD: u64 = 10;

/// A chunk of a log.
#[derive(Clone, Copy)]
struct Open {
    start: u64,
    used: u64,
    /// Whether it is known to be all zeros.
    blank: bool,
}

/// The log.
#[derive(Default)]
pub(super) struct Log {
    open: Option<Open>,
    /// Chunks since the last flip, and before it.
    chunks: Vec<u32>,
    flipped_chunks: Vec<u32>,
    /// Entries in live chunks, and those of them from before the last flip.
    pub(super) live: u64,
    flipped: u64,
    pub(super) epoch: bool,
}

impl Log {
    /// Appends an entry; returns its epoch.
    pub(super) fn append(&mut self, env: &mut Env<'_>) -> bool {
        let room = env.space.chunk_bytes / ENTRY;
        let mut open = match self.open {
            Some(open) if open.used < room => open,
            _ => {
                env.tick();
                let (chunk, blank) = env.space.allocate_log(&mut env.lines);
                self.chunks.push(chunk);
                Open {
                    start: env.space.offset(chunk),
                    used: 0,
                    blank,
                }
            }
        };
        env.tick();
        let offset = open.start + open.used * ENTRY;
        if !open.blank && open.used.is_multiple_of(AHEAD) {
            env.lines.load(offset, AHEAD.min(room - open.used) * ENTRY);
        }
        env.lines.write(offset, ENTRY);
        env.lines.fence();
        open.used += 1;
        self.open = Some(open);
        env.counts.appended += 1;
        self.live += 1;
        self.epoch
    }

    /// Closes the chunk; returns the moment.
    pub(super) fn flip(&mut self, env: &mut Env<'_>) -> u64 {
        self.epoch = !self.epoch;
        self.open = None;
        self.flipped = self.live;
        self.flipped_chunks.append(&mut self.chunks);
        env.tick()
    }

    /// Gives up the entries from before the flip at `floor`.
    pub(super) fn give_up(&mut self, floor: u64, env: &mut Env<'_>) {
        env.space.set_floor(&mut env.lines);
        env.space.free_logs(&mut self.flipped_chunks);
        env.space.floor_raised(floor);
        self.live -= std::mem::take(&mut self.flipped);
        env.counts.cleanings += 1;
    }
}
