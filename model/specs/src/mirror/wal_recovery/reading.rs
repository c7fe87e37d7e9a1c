//! How recovery reads the blocks that a crash has left: `LogBlocks.tla`, and the second half of
//! `WalState.tla`.

use super::room::{KEYS, N, PLACES};
use super::state::{ABSENT, Block, Call, Content, Image, Medium, PENDING, Phase};
use super::state::{Record, Records, State, Verdict};
use super::{Bug, Reads, WalRecovery};

pub(super) type Map = [Content; KEYS];

impl WalRecovery {
    pub(super) fn block_of(&self, position: N) -> N {
        position / self.per_block
    }

    pub(super) fn block_start(&self, position: N) -> N {
        position - position % self.per_block
    }

    pub(super) fn next_block_start(&self, position: N) -> N {
        self.block_start(position + self.per_block - 1)
    }

    pub(super) fn place(&self, index: N) -> usize {
        usize::from(index % self.ring_blocks)
    }

    fn continues(&self, block: Block, epoch: N, index: N) -> bool {
        block.epoch == epoch
            && (block.index == index || self.bug == Bug::ReplaysOldLap)
            && !block.records().is_empty()
    }

    /// `ReadLog`: the log from position `from` to its end.
    pub(super) fn read_log(&self, log: &[Block; PLACES], epoch: N, from: N) -> Records {
        let mut found = Records::default();
        let first = self.block_of(from);
        let mut skip = from % self.per_block;
        for index in first..first + self.ring_blocks {
            let block = log[self.place(index)];
            if !self.continues(block, epoch, index) {
                if self.bug == Bug::ReadsPastHole {
                    continue;
                }
                break;
            }
            let next = log[self.place(index + 1)];
            if self.bug == Bug::StopsBeforeLast && !self.continues(next, epoch, index + 1) {
                break;
            }
            for record in block.records() {
                if skip > 0 {
                    skip -= 1;
                } else {
                    found.push(*record);
                }
            }
            let full = block.records().len() == usize::from(self.per_block);
            if !full && self.bug != Bug::ReadsPastHole {
                break;
            }
        }
        found
    }

    /// `RedoOne`: redoes the record with LSN `n` on its page, unless the page is newer.
    pub(super) fn redo_one(&self, pages: &mut [Image; KEYS], record: Record, n: N) {
        let page = &mut pages[record.key()];
        if page.lsn < n || self.bug == Bug::PublishedRedoAlways {
            *page = Image {
                value: record.value(),
                lsn: n,
            };
        }
    }

    /// The records of the log that recovery finds (`LogFound`).
    pub(super) fn log_found(&self, medium: &Medium) -> Records {
        let superblock = medium.superblock;
        self.read_log(&medium.log, superblock.epoch, superblock.redo)
    }

    /// `Recovered`, and `LogFoundEnd`.
    pub(super) fn recovered(&self, medium: &Medium) -> (Map, N) {
        let found = self.log_found(medium);
        let redo = medium.superblock.redo;
        let mut pages = medium.pages;
        for (n, record) in (redo + 1..).zip(found.all()) {
            self.redo_one(&mut pages, *record, n);
        }
        (pages.map(|page| page.value), redo + found.len())
    }

    /// The start of the buffer's first block.
    pub(super) fn buffer_start(&self, s: &State) -> N {
        self.block_start(s.it.durable)
    }

    /// The end of the log (`End`).
    pub(super) fn end(&self, s: &State) -> N {
        self.buffer_start(s) + s.it.buffer_len
    }

    /// `Tail_`: the records that are not durable yet. The first one's LSN is `durable` + 1.
    pub(super) fn tail<'s>(&self, s: &'s State) -> &'s [Record] {
        let flushed = usize::from(s.it.durable - self.buffer_start(s));
        s.buffer().get(flushed..).unwrap_or(&[])
    }

    /// The base after the first `n` records of the tail.
    pub(super) fn base_after(&self, s: &State, n: N) -> Map {
        let mut map = s.base;
        for record in &self.tail(s)[..usize::from(n)] {
            map[record.key()] = record.value();
        }
        map
    }

    /// `Judge`: the new base and the verdict after a crash that leaves `medium`.
    pub(super) fn judge(&self, s: &State, medium: &Medium) -> (Map, Verdict) {
        let (map, end) = self.recovered(medium);
        let verdict = if s.it.phase != Phase::Up {
            if map == s.base {
                Verdict::Fine
            } else {
                Verdict::Changed
            }
        } else if !self.is_prefix(s, &map) {
            if end < s.it.durable {
                Verdict::Lost
            } else {
                Verdict::Mixed
            }
        } else if self.reads != Reads::Free && self.takes_back(s, end) {
            Verdict::Vanished
        } else {
            Verdict::Fine
        };
        (map, verdict)
    }

    /// `Prefixes`: whether the contract allows a crash to leave this map.
    fn is_prefix(&self, s: &State, map: &Map) -> bool {
        let mut prefix = s.base;
        *map == prefix
            || self.tail(s).iter().any(|record| {
                prefix[record.key()] = record.value();
                *map == prefix
            })
    }

    /// Whether some client has read a value that was written after `end`.
    fn takes_back(&self, s: &State, end: N) -> bool {
        let kept = usize::from(end.saturating_sub(s.it.durable));
        let cut_off = self.tail(s).get(kept..).unwrap_or(&[]);
        s.call.iter().any(|call| match call {
            Call::Get { got, .. } if *got != PENDING => cut_off.iter().any(|r| r.value() == *got),
            _ => false,
        })
    }

    /// `LiveLog`: all records from `oldest` on, first those on the device, then those in the
    /// buffer.
    pub(super) fn live_log(&self, s: &State) -> Records {
        let mut log = self.read_log(&s.newest().log, s.it.epoch, s.it.oldest);
        let end = s.it.oldest + log.len();
        if let Some(known) = end.checked_sub(self.buffer_start(s)) {
            let more = s.buffer().iter().skip(usize::from(known));
            more.for_each(|record| log.push(*record));
        }
        log
    }

    /// The value that the next write writes.
    pub(super) fn next_value(&self, s: &State) -> Content {
        let deletes = self.deletes.checked_shr(u32::from(s.it.asked));
        if deletes.unwrap_or(0) & 1 == 1 {
            ABSENT
        } else {
            s.it.asked + 1
        }
    }
}
