//! The redo log: the blocks that a flush writes.
//!
//! ```text
//! blocks   [hdr|......][hdr|......][hdr|...    ]      tail block: partly filled
//!                                       ^ off          a flush of G bytes rewrites it from its beginning
//! ```
//!
//! Conventional logs write whole blocks: the tail block is written again by every flush while it
//! fills (B⁻-tree §3.3, Fig. 8). With `P` payload bytes a block and the tail offset `off` uniform
//! on `0..P` (true whenever group sizes vary by more than a little against `P`, and for equal
//! groups whose size shares no large factor with `P`), a flush of `G` bytes touches `ceil((off +
//! G)/P)` blocks, on average exactly
//!
//! ```text
//! E[blocks] = (G + P - 1) / P                                                              (1)
//! ```
//!
//! so `WA_log = 4096 (G + P - 1) / (P G)` times log bytes per user byte: 4096/P for large groups, a
//! block a flush for small ones (B⁻-tree §4.3, log flush per commit).
//!
//! In the sparse log (§3.3) every flush begins a new block: a block a flush for groups that fit
//! one, `G/P + 1/2` for larger ones, whose ends fall anywhere in their last block. Positions in the
//! log grow by whole blocks, so checkpoints come sooner.
//!
//! When a flush happens: the buffer is full; the interval is over; each commit (`PerCommit`); or
//! the WAL rule: a page on its way out was changed later than the log is durable. An evicted page
//! was last touched a rotation of the clock hand ago ([`super::cache`]), so after a flush that
//! covers everything it takes about one rotation until a page comes by that changed after it. Each
//! flush covers everything appended, so whatever comes first sets the pace.

use treering_engine::BLOCK_SIZE;

/// Header bytes of a log block.
pub(crate) const BLOCK_HEADER_BYTES: u64 = 24;
/// Bytes of a redo record whose fields, the page's name aside, take `fields` bytes: a varint of its
/// length, a byte for its kind. The length counts the page's name, two bytes for most of 16,384
/// pages.
pub(crate) fn record_bytes(fields: u64) -> u64 {
    varint_len(1 + 2 + fields) + 1 + fields
}

/// Mean length of a page's name among pages `0..pages`.
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

/// What can make the log flush; sizes in log bytes, the smallest wins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triggers {
    /// The buffer is full.
    pub buffer: f64,
    /// Log bytes appended within the flush interval.
    pub interval: f64,
    /// Log bytes appended until the WAL rule requires a flush.
    pub wal_rule: f64,
    /// Log bytes of one commit, if each is flushed.
    pub commit: f64,
}

impl Triggers {
    /// Bytes that a flush writes on average, if all goes evenly.
    #[must_use]
    pub fn group(&self) -> f64 {
        // The interval's flushes follow the clock, whatever other flushes there are, and delay
        // those: of the time between two of them, half a cycle of the others is lost.
        let others = self.wal_rule.min(self.commit);
        let group = if self.interval <= others {
            self.interval
        } else {
            1.0 / (1.0 / others + 0.5 / self.interval)
        };
        group.min(self.buffer)
    }
}

/// What is known of time: closed-loop clients on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Number of clients.
    pub clients: u32,
    /// Whether a client that has written waits for a log flush.
    pub commits: bool,
    /// Nanoseconds to read a page on a cache miss.
    pub read_ns: f64,
    /// Nanoseconds for a log flush.
    pub flush_ns: f64,
}

impl Pace {
    /// Mean number of commits that share a flush. After a write is acknowledged its client does
    /// `gap_ns` of reading, on average, before it begins the next, and with probability `at_once`
    /// none at all.
    ///
    /// While clients wait, flushes of `F` follow one another. A client released by one is in the
    /// next if it writes at once; else it waits for the one after the flush in which it comes: a
    /// cycle takes `1 + ceil(gap / F)` flushes, `N` clients share them, and for gaps that are
    /// exponential if there is one
    ///
    /// ```text
    /// group = N / (1 + E),   E = (1 - at_once) / (1 - e^(-F / z)),   z = gap / (1 - at_once)
    /// ```
    ///
    /// but at least 1: when nobody waits, the first client to come flushes for itself.
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
        // A single client, or one with unlimited time, flushes for itself.
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
