//! Models the log of all trees but LodgeTree: entries in chunks, and the flip that begins a
//! cleaning (CCL-BTree §3.3, §3.4). To the engine all virtual clients are one thread, so they share
//! a log.

use super::ENTRY;
use super::env::Env;

/// The log.
#[derive(Default)]
pub(super) struct Log {
    /// Offset of the chunk appended to, and entries in it.
    open: Option<(u64, u64)>,
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
        let (start, used) = match self.open {
            Some((start, used)) if used < room => (start, used),
            _ => {
                env.tick();
                let chunk = env.space.allocate_log(&mut env.lines);
                self.chunks.push(chunk);
                (env.space.offset(chunk), 0)
            }
        };
        env.tick();
        env.lines.write(start + used * ENTRY, ENTRY);
        env.lines.fence();
        env.counts.appended += 1;
        self.open = Some((start, used + 1));
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
