//! What a played tree does.

use super::env::{Change, Env};
use super::leaves::Leaves;

/// What a played tree does.
pub(super) trait Tree {
    /// Makes a change.
    fn change(&mut self, change: Change, env: &mut Env<'_>);
    /// Looks a key up.
    fn get(&mut self, rank: u32, env: &mut Env<'_>);
    /// Scans so many records.
    fn scan(&mut self, rank: u32, records: u32, env: &mut Env<'_>);
    /// Whether there is background work.
    fn due(&self, env: &Env<'_>) -> bool;
    /// Does a step of it.
    fn pump(&mut self, env: &mut Env<'_>);
    /// Whether background work stops all clients.
    fn stops_everybody(&self) -> bool {
        false
    }
    /// Changes that are only buffered.
    fn buffered(&self) -> u64;
    /// Inner nodes whose free slots are buffers: how many, and their slots in all.
    fn inner_nodes(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Reads leaf after leaf.
pub(super) fn scan(leaves: &Leaves, rank: u32, records: u32, env: &mut Env<'_>) {
    let mut leaf = leaves.find(rank);
    let mut left = records.max(1) as usize;
    loop {
        leaves.load(leaf, env);
        left = left.saturating_sub(leaves.records(leaf).max(1));
        match leaves.after(leaf) {
            Some(low) if left > 0 => leaf = leaves.find(low),
            _ => return,
        }
    }
}
