//! The CPU side: which lines leave the CPU for the DIMMs, and in what order.
//!
//! - **Stores** make lines of the cache dirty. A missing line is fetched first, because a store
//!   changes only part of it.
//! - **`clwb`** writes a dirty line back. Under eADR the cache is persistent, so `clwb` does
//!   nothing and only evictions write (CCL-BTree §5.4).
//! - **Non-temporal stores** collect in write-combining buffers until a line is complete, the
//!   buffers run out, or a fence or load comes.
//! - **Evictions** of dirty lines go to the device when the cache needs space; nobody waits for
//!   them.
//!
//! The result is a list of [`Step`]s, which are counted immediately or served in virtual time.

use treering_engine::device::LINE_SIZE;

use super::cache::CpuCache;
use super::dimms::lines;
use super::profile::PmProfile;

/// A request to the DIMMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A load reads a line.
    Read(u32),
    /// The preceding reads belong to one load, which waits for them.
    EndOfLoad,
    /// A store fetches a line; nobody waits.
    Fetch(u32),
    /// A line is written.
    Write { line: u32, how: How },
    /// All lines under way must arrive.
    Fence,
}

/// How a line leaves the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Written back.
    Clwb,
    /// Written back as soon as it has been fetched for a store.
    ClwbAfterFetch,
    /// Stored past the cache.
    NonTemporal,
    /// Evicted.
    Evicted,
}

/// Fetches that wait for their write-back.
const MOST_FETCHES: usize = 64;

/// The state of the CPU side.
pub(super) struct Cpu {
    cache: CpuCache,
    eadr: bool,
    clwb_keeps_line: bool,
    write_buffers: usize,
    /// Lines partly stored past the cache, with the bytes stored; oldest first.
    combining: Vec<(u32, u64)>,
    /// Lines that stores must fetch and that are not written back yet.
    fetching: Vec<u32>,
    pub(super) cache_evictions: u64,
    pub(super) fences: u64,
}

impl Cpu {
    pub(super) fn new(profile: &PmProfile) -> Cpu {
        Cpu {
            cache: CpuCache::new(profile.cpu.cache_bytes, profile.cpu.cache_ways),
            eadr: profile.eadr,
            clwb_keeps_line: profile.cpu.clwb_keeps_line,
            write_buffers: profile.cpu.write_buffers as usize,
            combining: Vec::new(),
            fetching: Vec::new(),
            cache_evictions: 0,
            fences: 0,
        }
    }

    pub(super) fn load(&mut self, offset: u64, len: usize, step: &mut impl FnMut(Step)) {
        let mut waits = false;
        for line in lines(offset, len) {
            if let Some(at) = self.combining.iter().position(|(at, _)| *at == line) {
                self.combining.remove(at);
                step(Step::Write {
                    line,
                    how: How::NonTemporal,
                });
            }
            if !self.touch(line, false, step) {
                waits = true;
                step(Step::Read(line));
            }
        }
        if waits {
            step(Step::EndOfLoad);
        }
    }

    pub(super) fn store(&mut self, offset: u64, len: usize, step: &mut impl FnMut(Step)) {
        for line in lines(offset, len) {
            if self.touch(line, true, step) {
                continue;
            }
            if self.eadr {
                step(Step::Fetch(line));
                continue;
            }
            if self.fetching.len() == MOST_FETCHES {
                step(Step::Fetch(self.fetching.remove(0)));
            }
            self.fetching.push(line);
        }
    }

    pub(super) fn clwb(&mut self, offset: u64, step: &mut impl FnMut(Step)) {
        let line = (offset / LINE_SIZE as u64) as u32;
        if !self.eadr && self.cache.clean(line, self.clwb_keeps_line) {
            let fetch = self.fetching.iter().position(|&at| at == line);
            let how = match fetch {
                Some(at) => {
                    self.fetching.remove(at);
                    How::ClwbAfterFetch
                }
                None => How::Clwb,
            };
            step(Step::Write { line, how });
        }
    }

    pub(super) fn ntstore(&mut self, offset: u64, len: usize, step: &mut impl FnMut(Step)) {
        let end = offset + len as u64;
        for line in lines(offset, len) {
            if self.cache.clean(line, false) {
                step(Step::Write {
                    line,
                    how: How::Clwb,
                });
            }
            let first = u64::from(line) * LINE_SIZE as u64;
            let bytes = mask(
                offset.saturating_sub(first),
                (end - first).min(LINE_SIZE as u64),
            );
            self.combine(line, bytes, step);
        }
    }

    pub(super) fn fence(&mut self, step: &mut impl FnMut(Step)) {
        self.fences += 1;
        for (line, _) in self.combining.drain(..) {
            step(Step::Write {
                line,
                how: How::NonTemporal,
            });
        }
        step(Step::Fence);
    }

    /// Ends an operation: lines that its stores need, and that were not written back, are fetched.
    pub(super) fn end(&mut self, step: &mut impl FnMut(Step)) {
        for line in self.fetching.drain(..) {
            step(Step::Fetch(line));
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes()
    }

    /// Whether the cache held the line.
    fn touch(&mut self, line: u32, store: bool, step: &mut impl FnMut(Step)) -> bool {
        let touched = self.cache.touch(line, store);
        if let Some(line) = touched.written_back {
            self.cache_evictions += 1;
            step(Step::Write {
                line,
                how: How::Evicted,
            });
        }
        touched.hit
    }

    fn combine(&mut self, line: u32, bytes: u64, step: &mut impl FnMut(Step)) {
        let known = self.combining.iter().position(|(at, _)| *at == line);
        let all = bytes | known.map_or(0, |at| self.combining[at].1);
        let leaves = match known {
            Some(at) if all == u64::MAX => Some(self.combining.remove(at).0),
            Some(at) => {
                self.combining[at].1 = all;
                None
            }
            None if all == u64::MAX => Some(line),
            None => {
                let full = self.combining.len() == self.write_buffers;
                self.combining.push((line, all));
                full.then(|| self.combining.remove(0).0)
            }
        };
        if let Some(line) = leaves {
            step(Step::Write {
                line,
                how: How::NonTemporal,
            });
        }
    }
}

/// A mask of bits `from` up to but excluding `to`, which is at most 64.
fn mask(from: u64, to: u64) -> u64 {
    let below = |n: u64| 1_u64.checked_shl(n as u32).map_or(u64::MAX, |bit| bit - 1);
    below(to) & !below(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pm::builtin;

    fn cpu(change: impl FnOnce(&mut PmProfile)) -> Cpu {
        let (_, mut profile) = builtin("pm").expect("built in");
        profile.cpu.cache_bytes = 2 * 64;
        profile.cpu.cache_ways = 2;
        profile.cpu.write_buffers = 2;
        profile.cpu.clwb_keeps_line = false;
        change(&mut profile);
        Cpu::new(&profile)
    }

    /// Steps as short strings: `r` and `f` read and fetch; `b`, `F`, `n` and `e` write (back, back
    /// after a fetch, past the cache, by eviction); `.` ends a load; `|` is a fence.
    #[derive(Default)]
    struct Told(String);

    impl Told {
        fn step(&mut self) -> impl FnMut(Step) + '_ {
            |step| {
                let (name, line) = match step {
                    Step::Read(line) => ("r", Some(line)),
                    Step::Fetch(line) => ("f", Some(line)),
                    Step::EndOfLoad => (".", None),
                    Step::Fence => ("|", None),
                    Step::Write { line, how } => {
                        let name = match how {
                            How::Clwb => "b",
                            How::ClwbAfterFetch => "F",
                            How::NonTemporal => "n",
                            How::Evicted => "e",
                        };
                        (name, Some(line))
                    }
                };
                self.0 += name;
                self.0 += &line.map_or(String::new(), |line| line.to_string());
                self.0 += " ";
            }
        }
    }

    fn told(story: impl FnOnce(&mut Told)) -> String {
        let mut told = Told::default();
        story(&mut told);
        told.0.trim_end().into()
    }

    #[test]
    fn a_line_is_fetched_written_back_once_and_fetched_again() {
        let mut cpu = cpu(|_| {});
        let found = told(|t| {
            cpu.store(0, 8, &mut t.step());
            cpu.store(8, 8, &mut t.step());
            cpu.clwb(0, &mut t.step());
            cpu.clwb(0, &mut t.step());
            cpu.fence(&mut t.step());
            cpu.load(0, 8, &mut t.step());
            cpu.store(0, 8, &mut t.step());
            cpu.clwb(63, &mut t.step());
            cpu.fence(&mut t.step());
        });
        assert_eq!(found, "F0 | r0 . b0 |", "a clean line is not written back");
        let mut keeps = self::cpu(|p| p.cpu.clwb_keeps_line = true);
        let found = told(|t| {
            keeps.store(0, 65, &mut t.step());
            keeps.clwb(0, &mut t.step());
            keeps.clwb(64, &mut t.step());
            keeps.load(0, 65, &mut t.step());
        });
        assert_eq!(found, "F0 F1");
    }

    #[test]
    fn what_does_not_fit_into_the_cache_is_evicted_and_eadr_knows_nothing_else() {
        let mut cpu = cpu(|p| p.eadr = true);
        let found = told(|t| {
            for line in [0, 1, 0, 2] {
                cpu.store(line * 64, 8, &mut t.step());
                cpu.clwb(line * 64, &mut t.step());
                cpu.fence(&mut t.step());
            }
        });
        assert_eq!(found, "f0 | f1 | | e1 f2 |");
        assert_eq!((cpu.cache_evictions, cpu.fences), (1, 4));
    }

    #[test]
    fn stores_past_the_cache_combine_until_a_line_is_full_or_room_is_wanted() {
        let mut cpu = cpu(|_| {});
        let found = told(|t| {
            for word in 0..8 {
                cpu.ntstore(word * 8, 8, &mut t.step());
            }
        });
        assert_eq!(found, "n0");
        let found = told(|t| {
            cpu.ntstore(60, 4 + 64 + 4, &mut t.step());
            cpu.ntstore(60, 8, &mut t.step());
            cpu.ntstore(192, 8, &mut t.step());
            cpu.load(128, 4, &mut t.step());
            cpu.fence(&mut t.step());
        });
        assert_eq!(found, "n1 n0 n2 r2 . n1 n3 |");
    }

    #[test]
    fn a_dirty_line_is_written_back_before_a_store_past_it() {
        let mut cpu = cpu(|_| {});
        let found = told(|t| {
            cpu.load(0, 8, &mut t.step());
            cpu.store(0, 8, &mut t.step());
            cpu.ntstore(0, 64, &mut t.step());
            cpu.fence(&mut t.step());
            cpu.store(64, 8, &mut t.step());
            cpu.end(&mut t.step());
        });
        assert_eq!(found, "r0 . b0 n0 | f1");
    }

    #[test]
    fn masks_cover_the_bytes_of_a_line() {
        assert_eq!(mask(0, 64), u64::MAX);
        assert_eq!(mask(0, 1) | mask(63, 64), 1 | 1 << 63);
        assert_eq!(mask(8, 16), 0xff00);
    }
}
