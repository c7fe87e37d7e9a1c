//! The redo log: how many blocks a flush writes, and when flushes happen.
//!
//! ```text
//! blocks   [hdr|......][hdr|......][hdr|...    ]   tail block: partly filled
//!                                       ^ off       a flush of G bytes rewrites it from its start
//! ```
//!
//! Conventional logs write whole blocks, so while the tail block fills, every flush writes it again
//! (B⁻-tree §3.3, Fig. 8). Let a block have `P` payload bytes and the tail offset `off` be uniform
//! on `0..P`. (It is if group sizes vary noticeably against `P`, or are equal and share no large
//! factor with `P`.) Then a flush of `G` bytes touches `ceil((off + G)/P)` blocks, on average
//! exactly
//!
//! ```text
//! E[blocks] = (G + P - 1) / P                                                              (1)
//! ```
//!
//! so `WA_log = 4096 (G + P - 1) / (P G)` times the log bytes per user byte. Large groups cost
//! 4096/P, small ones a block per flush (B⁻-tree §4.3, log flush per commit).
//!
//! In the sparse log (§3.3) every flush begins a new block. It writes one block for a group that
//! fits in one, and `G/P + 1/2` for larger groups, which end anywhere in their last block.
//! Positions in the log grow by whole blocks, so checkpoints come sooner.
//!
//! A flush happens when the buffer is full, when the interval is over, at each commit
//! (`PerCommit`), or because of the WAL rule: a page to be written back was changed after the last
//! durable log record. An evicted page was last touched one rotation of the clock hand ago
//! ([`super::cache`]). So after a flush it takes about one rotation until a page is evicted that
//! changed later. Each flush covers everything appended so far, so the trigger that comes first
//! sets the pace.

use treering_engine::BLOCK_SIZE;

/// Header bytes of a log block.
pub(crate) const BLOCK_HEADER_BYTES: u64 = 24;
/// Size of a redo record whose fields take `fields` bytes without the page's name. It adds the
/// varint of the length and a byte for the kind. The length is computed for a page name of two
/// bytes, the size for most of 16,384 pages.
pub(crate) fn record_bytes(fields: u64) -> u64 {
    varint_len(1 + 2 + fields) + 1 + fields
}

/// Mean length of a page's name, over pages `0..pages`.
pub(crate) fn page_name_bytes(pages: f64) -> f64 {
    let mut longer = 0.0;
    let mut limit = 128.0;
    while limit < pages {
        longer += (pages - limit) / pages;
        limit *= 128.0;
    }
    1.0 + longer
}

/// Payload bytes of a log block.
pub(crate) const PAYLOAD_BYTES: f64 = BLOCK_SIZE as f64 - BLOCK_HEADER_BYTES as f64;

/// Length of `n` as a LEB128 varint.
pub(crate) fn varint_len(n: u64) -> u64 {
    u64::from((70 - (n | 1).leading_zeros()) / 7)
}

/// Expected device blocks that a flush of `group` log bytes writes: equation (1) of the module.
#[must_use]
pub fn blocks_per_flush(group: f64) -> f64 {
    if group <= 0.0 {
        0.0
    } else {
        (group + PAYLOAD_BYTES - 1.0) / PAYLOAD_BYTES
    }
}

/// Expected device blocks that a flush of `group` log bytes writes in the sparse log.
#[must_use]
pub fn sparse_blocks_per_flush(group: f64) -> f64 {
    if group <= 0.0 {
        0.0
    } else {
        (group / PAYLOAD_BYTES + 0.5).max(1.0)
    }
}

/// What can make the log flush, each in log bytes; the smallest triggers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triggers {
    /// Size of the log buffer.
    pub buffer: f64,
    /// Log bytes appended within the flush interval.
    pub interval: f64,
    /// Log bytes appended until the WAL rule requires a flush.
    pub wal_rule: f64,
    /// Log bytes of one commit, if each is flushed.
    pub commit: f64,
}

impl Triggers {
    /// Mean number of bytes in a flush, if log bytes arrive evenly.
    #[must_use]
    pub fn group(&self) -> f64 {
        // Flushes by interval follow the wall clock and delay the other flushes. On average half a
        // cycle of the others is lost between two of them.
        let others = self.wal_rule.min(self.commit);
        let group = if self.interval <= others {
            self.interval
        } else {
            1.0 / (1.0 / others + 0.5 / self.interval)
        };
        group.min(self.buffer)
    }
}

/// The timing of closed-loop clients on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Number of clients.
    pub clients: u32,
    /// Whether a client waits for a log flush after each write.
    pub commits: bool,
    /// Nanoseconds to read a page on a cache miss.
    pub read_ns: f64,
    /// Nanoseconds that a log flush takes.
    pub flush_ns: f64,
}

impl Pace {
    /// Mean number of commits that share a flush. After a write is acknowledged its client reads
    /// for `gap_ns` on average before it begins the next. With probability `at_once` it does not
    /// read at all.
    ///
    /// While clients wait, flushes of duration `F` follow one another. A client that a flush
    /// releases joins the next flush if it writes at once. Otherwise it joins the first one that
    /// begins after its write. So a cycle takes `1 + ceil(gap / F)` flushes, which `N` clients
    /// share. For gaps that are exponential if not zero,
    ///
    /// ```text
    /// group = N / (1 + E),   E = (1 - at_once) / (1 - e^(-F / z)),   z = gap / (1 - at_once)
    /// ```
    ///
    /// but at least 1: when no client waits, the first one to write flushes for itself.
    #[must_use]
    pub fn commits_per_flush(&self, gap_ns: f64, at_once: f64) -> f64 {
        let reading = (1.0 - at_once).max(0.0);
        let turns = if reading == 0.0 || gap_ns <= 0.0 {
            reading
        } else {
            reading / -(-self.flush_ns * reading / gap_ns).exp_m1()
        };
        (f64::from(self.clients) / (1.0 + turns)).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_lengths_change_at_powers_of_128() {
        let cases = [
            (0, 1),
            (1, 1),
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (u64::MAX, 10),
        ];
        for (n, len) in cases {
            assert_eq!(varint_len(n), len, "{n}");
        }
    }

    #[test]
    fn commits_gather_while_a_flush_is_in_flight() {
        let pace = |clients| Pace {
            clients,
            commits: true,
            read_ns: 0.0,
            flush_ns: 200.0,
        };
        // A single client, or one with very long gaps, flushes for itself.
        assert_eq!(pace(1).commits_per_flush(0.0, 0.5), 1.0);
        assert_eq!(pace(8).commits_per_flush(1e9, 0.0), 1.0);
        // A client that writes again at once is in every flush; others are in every second one.
        assert_eq!(pace(32).commits_per_flush(0.0, 1.0), 32.0);
        assert_eq!(pace(32).commits_per_flush(1.0, 0.0), 16.0);
        assert!(pace(32).commits_per_flush(1000.0, 0.0) < 8.0);
    }

    #[test]
    fn expected_blocks_are_the_mean_over_all_tail_offsets() {
        let payload = PAYLOAD_BYTES as u64;
        for group in [1, 40, 4000, payload, payload + 1, 100_000] {
            let sum: u64 = (0..payload)
                .map(|off| (off + group).div_ceil(payload))
                .sum();
            let mean = sum as f64 / payload as f64;
            let formula = blocks_per_flush(group as f64);
            assert!(
                (mean - formula).abs() < 1e-9,
                "{group} bytes: {mean} and {formula}"
            );
        }
    }
}
