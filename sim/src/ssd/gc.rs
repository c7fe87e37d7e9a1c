//! Garbage collection policies: they choose the next victim among the sealed blocks.
//!
//! | policy | victim | cost per choice |
//! |---|---|---|
//! | greedy | fewest valid pages (Bux & Iliadis 2010) | O(1) amortised |
//! | FIFO | sealed longest ago (Robinson 1996; Menon 1995) | O(1) |
//! | d-choices | best of d random blocks, with replacement (Van Houdt, SIGMETRICS 2013) | O(d) |
//! | random | any block: d-choices with d = 1 | O(1) |
//! | cost-benefit | largest age·(1−u)/(1+u) (Rosenblum & Ousterhout 1992) | O(blocks) |
//! | windowed greedy | fewest valid pages among the w oldest (Hu et al., SYSTOR 2009) | O(w) |
//!
//! `Victims` keeps the valid count of every block, and of sealed blocks only what the policy needs.

use std::collections::VecDeque;

use crate::ssd::ftl::GeometryError;

const NIL: u32 = u32::MAX;

/// The victim selection policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcPolicy {
    /// Fewest valid pages.
    Greedy,
    /// Oldest.
    Fifo,
    /// Fewest valid pages among this many drawn at random, with replacement. 1 is random choice.
    DChoices(u32),
    /// Largest age·(1−u)/(1+u).
    CostBenefit,
    /// Fewest valid pages among this many of the oldest.
    WindowedGreedy(u32),
}

impl GcPolicy {
    /// Any block.
    pub const RANDOM: GcPolicy = GcPolicy::DChoices(1);

    /// Parses `greedy`, `fifo`, `random`, `d-choices:D`, `cost-benefit` or `windowed-greedy:W`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |s: &str| s.parse::<u32>().ok().filter(|&n| n >= 1);
        match text.split_once(':') {
            None => match text {
                "greedy" => Some(GcPolicy::Greedy),
                "fifo" => Some(GcPolicy::Fifo),
                "random" => Some(GcPolicy::RANDOM),
                "cost-benefit" => Some(GcPolicy::CostBenefit),
                _ => None,
            },
            Some(("d-choices", d)) => number(d).map(GcPolicy::DChoices),
            Some(("windowed-greedy", w)) => number(w).map(GcPolicy::WindowedGreedy),
            Some(_) => None,
        }
    }

    /// The policy that a profile names.
    pub(crate) fn named(text: &str) -> Result<Self, GeometryError> {
        GcPolicy::parse(text).ok_or_else(|| GeometryError {
            name: "GC policy",
            found: text.into(),
            expected: "a policy that GcPolicy::parse reads".into(),
        })
    }

    pub(crate) fn check(self) -> Result<(), GeometryError> {
        match self {
            GcPolicy::DChoices(0) | GcPolicy::WindowedGreedy(0) => Err(GeometryError {
                name: "GC policy",
                found: self.to_string(),
                expected: "at least one candidate".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for GcPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GcPolicy::Greedy => f.write_str("greedy"),
            GcPolicy::Fifo => f.write_str("fifo"),
            GcPolicy::DChoices(1) => f.write_str("random"),
            GcPolicy::DChoices(d) => write!(f, "d-choices:{d}"),
            GcPolicy::CostBenefit => f.write_str("cost-benefit"),
            GcPolicy::WindowedGreedy(w) => write!(f, "windowed-greedy:{w}"),
        }
    }
}

/// SplitMix64 (Steele, Lea & Flood 2014): one multiply-shift chain per number, the same on every
/// machine.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n` up to a bias of n/2⁶⁴.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// The sealed blocks, in the data structure that the policy needs.
#[derive(Debug)]
enum Sealed {
    /// Doubly linked lists by valid count; `least` is a lower bound of the smallest non-empty one.
    ByValid {
        lists: Vec<List>,
        links: Vec<Link>,
        least: u32,
        ties: Ties,
    },
    /// In sealing order.
    Queue { order: VecDeque<u32>, window: u32 },
    /// In no order.
    Bag {
        blocks: Vec<u32>,
        d: u32,
        rng: SplitMix,
    },
    /// In no order, with the sealing time (in seals) of every block.
    Aged {
        blocks: Vec<u32>,
        sealed_at: Vec<u64>,
        now: u64,
    },
}

/// Which of several blocks with the fewest valid pages greedy cleaning takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The one that lost a page last.
    Newest,
    /// The one that has kept its pages longest. Small erase blocks have ties all the time, and a
    /// block that is just being overwritten is then a bad choice.
    Oldest,
}

/// Both ends of a list of [`Sealed::ByValid`]; blocks are added at the head.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

/// Neighbours in a list of [`Sealed::ByValid`]; `prev == OPEN` marks a block in no list.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

const OPEN: u32 = u32::MAX - 1;

/// Valid counts of all blocks and the choice of victims.
#[derive(Debug)]
pub(crate) struct Victims {
    valid: Vec<u16>,
    sealed: Sealed,
}

impl Victims {
    pub(crate) fn new(policy: GcPolicy, blocks: u32, b: u32, seed: u64) -> Self {
        let n = blocks as usize;
        let sealed = match policy {
            GcPolicy::Greedy => Sealed::ByValid {
                lists: vec![
                    List {
                        head: NIL,
                        tail: NIL
                    };
                    b as usize + 1
                ],
                links: vec![
                    Link {
                        prev: OPEN,
                        next: NIL
                    };
                    n
                ],
                least: 0,
                ties: Ties::Newest,
            },
            GcPolicy::Fifo => Sealed::Queue {
                order: VecDeque::with_capacity(n),
                window: 1,
            },
            GcPolicy::WindowedGreedy(w) => Sealed::Queue {
                order: VecDeque::with_capacity(n),
                window: w,
            },
            GcPolicy::DChoices(d) => Sealed::Bag {
                blocks: Vec::with_capacity(n),
                d,
                rng: SplitMix(seed),
            },
            GcPolicy::CostBenefit => Sealed::Aged {
                blocks: Vec::with_capacity(n),
                sealed_at: vec![0; n],
                now: 0,
            },
        };
        Victims {
            valid: vec![0; n],
            sealed,
        }
    }

    /// Sets which of several equally good blocks greedy cleaning takes.
    pub(crate) fn set_ties(&mut self, how: Ties) {
        if let Sealed::ByValid { ties, .. } = &mut self.sealed {
            *ties = how;
        }
    }

    pub(crate) fn valid(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize])
    }

    /// Adds `pages` valid pages to an open block.
    #[inline(always)]
    pub(crate) fn add(&mut self, block: u32, pages: u16) {
        self.valid[block as usize] += pages;
    }

    /// A block was erased and holds nothing.
    pub(crate) fn clear(&mut self, block: u32) {
        self.valid[block as usize] = 0;
    }

    /// One page of `block` became invalid.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, block: u32) {
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        if let Sealed::ByValid {
            lists,
            links,
            least,
            ..
        } = &mut self.sealed
            && links[block as usize].prev != OPEN
        {
            let v = u32::from(*valid);
            unlink(lists, links, v + 1, block);
            push(lists, links, v, block);
            *least = (*least).min(v);
        }
    }

    /// `block` is full and can be chosen from now on.
    pub(crate) fn seal(&mut self, block: u32) {
        let v = self.valid(block);
        match &mut self.sealed {
            Sealed::ByValid {
                lists,
                links,
                least,
                ..
            } => {
                push(lists, links, v, block);
                *least = (*least).min(v);
            }
            Sealed::Queue { order, .. } => order.push_back(block),
            Sealed::Bag { blocks, .. } => blocks.push(block),
            Sealed::Aged {
                blocks,
                sealed_at,
                now,
            } => {
                *now += 1;
                sealed_at[block as usize] = *now;
                blocks.push(block);
            }
        }
    }

    /// Chooses a sealed block and removes it; its valid count stays until [`Victims::clear`].
    pub(crate) fn take(&mut self) -> u32 {
        let valid = &self.valid;
        match &mut self.sealed {
            Sealed::ByValid {
                lists,
                links,
                least,
                ties,
            } => {
                // invariant: some block is sealed whenever GC runs, so this ends at a head.
                while lists[*least as usize].head == NIL {
                    *least += 1;
                }
                let List { head, tail } = lists[*least as usize];
                let block = match ties {
                    Ties::Newest => head,
                    Ties::Oldest => tail,
                };
                unlink(lists, links, *least, block);
                links[block as usize].prev = OPEN;
                block
            }
            Sealed::Queue { order, window } => {
                let window = (*window as usize).min(order.len());
                let at = (0..window)
                    .min_by_key(|&i| valid[order[i] as usize])
                    .unwrap_or(0);
                order
                    .remove(at)
                    .expect("GC runs only when a block is sealed")
            }
            Sealed::Bag { blocks, d, rng } => {
                let mut draw = || rng.below(blocks.len() as u64) as usize;
                let mut best = draw();
                for _ in 1..*d {
                    let other = draw();
                    if valid[blocks[other] as usize] < valid[blocks[best] as usize] {
                        best = other;
                    }
                }
                blocks.swap_remove(best)
            }
            Sealed::Aged {
                blocks,
                sealed_at,
                now,
            } => {
                let b = f64::from(valid.iter().copied().max().unwrap_or(1).max(1));
                let score = |&block: &u32| {
                    let u = f64::from(valid[block as usize]) / b;
                    (*now - sealed_at[block as usize] + 1) as f64 * (1.0 - u) / (1.0 + u)
                };
                let at = (0..blocks.len())
                    .max_by(|&x, &y| score(&blocks[x]).total_cmp(&score(&blocks[y])))
                    .expect("GC runs only when a block is sealed");
                blocks.swap_remove(at)
            }
        }
    }

    /// Sealed blocks: O(blocks), for checks.
    pub(crate) fn sealed_blocks(&self) -> usize {
        match &self.sealed {
            Sealed::ByValid { links, .. } => links.iter().filter(|l| l.prev != OPEN).count(),
            Sealed::Queue { order, .. } => order.len(),
            Sealed::Bag { blocks, .. } | Sealed::Aged { blocks, .. } => blocks.len(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        2 * self.valid.capacity()
            + match &self.sealed {
                Sealed::ByValid { lists, links, .. } => 8 * (lists.capacity() + links.capacity()),
                Sealed::Queue { order, .. } => 4 * order.capacity(),
                Sealed::Bag { blocks, .. } => 4 * blocks.capacity(),
                Sealed::Aged {
                    blocks, sealed_at, ..
                } => 4 * blocks.capacity() + 8 * sealed_at.capacity(),
            }
    }
}

#[inline(always)]
fn unlink(lists: &mut [List], links: &mut [Link], list: u32, block: u32) {
    let Link { prev, next } = links[block as usize];
    let ends = &mut lists[list as usize];
    if prev == NIL {
        ends.head = next;
    } else {
        links[prev as usize].next = next;
    }
    if next == NIL {
        ends.tail = prev;
    } else {
        links[next as usize].prev = prev;
    }
}

#[inline(always)]
fn push(lists: &mut [List], links: &mut [Link], list: u32, block: u32) {
    let ends = &mut lists[list as usize];
    let next = std::mem::replace(&mut ends.head, block);
    links[block as usize] = Link { prev: NIL, next };
    if next == NIL {
        ends.tail = block;
    } else {
        links[next as usize].prev = block;
    }
}
