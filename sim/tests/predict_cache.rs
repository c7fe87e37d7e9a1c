//! The clock's renewal model compared with a direct simulation of the clock.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_sim::predict::cache::{self, CachePrediction, CacheShape, PageClass};

/// Results of a simulated clock; rates are per operation.
#[derive(Debug)]
struct Seen {
    hit_ratio: f64,
    evicted_dirty: f64,
    dirty_at_checkpoint: f64,
}

/// One frame.
#[derive(Clone, Copy, Default)]
struct Frame {
    page: Option<u32>,
    referenced: bool,
    dirty: bool,
}

/// The clock as the page cache runs it: a free list, a sweeping hand, batches.
struct Clock {
    frames: Vec<Frame>,
    place: Vec<Option<u32>>,
    free: Vec<u32>,
    hand: usize,
    batch: usize,
    written: u64,
}

impl Clock {
    fn new(frames: usize, pages: usize, batch: usize) -> Self {
        Clock {
            frames: vec![Frame::default(); frames],
            place: vec![None; pages],
            free: (0..frames as u32).rev().collect(),
            hand: 0,
            batch,
            written: 0,
        }
    }

    fn access(&mut self, page: u32, write: bool) -> bool {
        let hit = self.place[page as usize];
        let at = match hit {
            Some(at) => {
                self.frames[at as usize].referenced = true;
                at
            }
            None => {
                let at = self.free.pop().expect("write-back keeps frames free");
                self.frames[at as usize] = Frame {
                    page: Some(page),
                    ..Frame::default()
                };
                self.place[page as usize] = Some(at);
                at
            }
        };
        self.frames[at as usize].dirty |= write;
        if self.free.len() < self.batch {
            while self.free.len() < 2 * self.batch {
                self.write_back();
            }
        }
        hit.is_some()
    }

    fn write_back(&mut self) {
        let mut picked = Vec::new();
        while picked.len() < self.batch && self.free.len() + picked.len() < 2 * self.batch {
            let at = self.hand;
            self.hand = (at + 1) % self.frames.len();
            let frame = &mut self.frames[at];
            if std::mem::take(&mut frame.referenced) || frame.page.is_none() {
                continue;
            }
            if frame.dirty {
                picked.push(at);
            } else {
                self.evict(at);
            }
        }
        self.written += picked.len() as u64;
        for at in picked {
            self.evict(at);
        }
    }

    fn evict(&mut self, at: usize) {
        let page = self.frames[at].page.take().expect("a resident page");
        self.frames[at] = Frame::default();
        self.place[page as usize] = None;
        self.free.push(at as u32);
    }

    fn checkpoint(&mut self) -> u64 {
        let dirty = self.frames.iter_mut().filter(|f| f.dirty);
        dirty.map(|f| f.dirty = false).count() as u64
    }
}

/// Pages by popularity: cumulative shares, and each page's share of writes.
struct Pages {
    cumulative: Vec<f64>,
    write_share: Vec<f64>,
}

impl Pages {
    fn new(weights: &[f64], write_share: impl Fn(usize) -> f64) -> Self {
        let total: f64 = weights.iter().sum();
        let cumulative = weights
            .iter()
            .scan(0.0, |sum, w| {
                *sum += w / total;
                Some(*sum)
            })
            .collect();
        Pages {
            cumulative,
            write_share: (0..weights.len()).map(write_share).collect(),
        }
    }

    fn classes(&self) -> Vec<PageClass> {
        let before = std::iter::once(&0.0).chain(&self.cumulative);
        (self.cumulative.iter().zip(before).zip(&self.write_share))
            .map(|((to, from), &write_share)| PageClass {
                pages: 1.0,
                rate: to - from,
                own_rate: to - from,
                write_share,
            })
            .collect()
    }
}

fn simulate(pages: &Pages, shape: CacheShape, every: f64, ops: u64) -> Seen {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut clock = Clock::new(
        shape.frames as usize,
        pages.cumulative.len(),
        shape.batch as usize,
    );
    let warm = ops / 4;
    let (mut hits, mut written, mut swept, mut checkpoints) = (0u64, 0, 0, 0u64);
    let mut next = every;
    for op in 0..warm + ops {
        if op == warm {
            (hits, written, swept, checkpoints) = (0, clock.written, 0, 0);
        }
        let u: f64 = rng.random();
        let page = pages
            .cumulative
            .partition_point(|&c| c < u)
            .min(pages.cumulative.len() - 1);
        let write = rng.random::<f64>() < pages.write_share[page];
        hits += u64::from(clock.access(page as u32, write));
        if op as f64 >= next {
            swept += clock.checkpoint();
            checkpoints += 1;
            next += every;
        }
    }
    Seen {
        hit_ratio: hits as f64 / ops as f64,
        evicted_dirty: (clock.written - written) as f64 / ops as f64,
        dirty_at_checkpoint: swept as f64 / (checkpoints as f64).max(1.0),
    }
}

fn zipf(pages: usize, theta: f64) -> Vec<f64> {
    (1..=pages).map(|i| (i as f64).powf(-theta)).collect()
}

/// The difference relative to the simulated value, or to `floor` if that is larger.
fn off(predicted: f64, seen: f64, floor: f64) -> f64 {
    (predicted - seen).abs() / seen.max(floor)
}

fn compare(name: &str, pages: &Pages, shape: CacheShape, every: f64) -> Option<String> {
    let predicted: CachePrediction = cache::clock(&pages.classes(), shape, every);
    let seen = simulate(pages, shape, every, 1_500_000);
    let written = |evicted: f64, dirty: f64| {
        evicted
            + if every.is_finite() {
                dirty / every
            } else {
                0.0
            }
    };
    let total_predicted = written(predicted.evicted_dirty, predicted.dirty_at_checkpoint);
    let total_seen = written(seen.evicted_dirty, seen.dirty_at_checkpoint);
    let bad = off(1.0 - predicted.hit_ratio, 1.0 - seen.hit_ratio, 0.01) > 0.01
        || off(total_predicted, total_seen, 0.01) > 0.01
        || off(
            predicted.evicted_dirty,
            seen.evicted_dirty,
            0.05 * total_seen.max(0.05),
        ) > 0.015
        || (every.is_finite()
            && off(predicted.dirty_at_checkpoint, seen.dirty_at_checkpoint, 2.0)
                > 0.01 + 3.0 * (every / 1.5e6 / seen.dirty_at_checkpoint.max(1.0)).sqrt());
    let line = format!("{name}: predicted {predicted:?}, seen {seen:?}");
    println!("{}{line}", if bad { "BAD " } else { "" });
    bad.then_some(line)
}

#[test]
fn the_clock_model_is_within_1_percent_of_a_simulated_clock() {
    let count = 4000;
    let mut failures = Vec::new();
    for (skew, weights) in [
        ("uniform", zipf(count, 0.0)),
        ("zipf 0.9", zipf(count, 0.9)),
    ] {
        for (mix, share) in [("writes", 1.0), ("half", 0.5), ("tenth", 0.1)] {
            let pages = Pages::new(&weights, |_| share);
            for cache in [0.05, 0.2, 0.5] {
                let frames = (cache * count as f64) as u64;
                let shape = CacheShape::new(frames * 4096, 4096, 16);
                for every in [f64::INFINITY, 700.0, 3000.0, 20_000.0] {
                    let name = format!("{skew}, {mix}, cache {cache}, checkpoint {every}");
                    failures.extend(compare(&name, &pages, shape, every));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn read_only_and_write_only_pages_are_modelled_separately() {
    let weights = zipf(3000, 0.7);
    let pages = Pages::new(&weights, |i| if i % 3 == 0 { 1.0 } else { 0.0 });
    let shape = CacheShape::new(600 * 4096, 4096, 32);
    let bad = compare("mixed", &pages, shape, 5000.0);
    assert!(bad.is_none(), "{bad:?}");
}

#[test]
fn if_all_pages_fit_only_checkpoints_write() {
    let pages = Pages::new(&zipf(1000, 0.5), |_| 0.3);
    let shape = CacheShape::new(1200 * 4096, 4096, 32);
    let bad = compare("all fit", &pages, shape, 2000.0);
    assert!(bad.is_none(), "{bad:?}");
}
