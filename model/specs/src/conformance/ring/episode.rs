//! An episode: clients that read and write a few pages of a tiny ring, and the recording of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use treering_engine::PageId;
use treering_engine::events::Observer;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Event, Eviction, Exclusive, Fresh, Ring, RingOptions};
use treering_engine::sync::{MutexGuard, yield_now};

use super::judge::{Heard, Intent, Judge, Refusal};
use super::tla;
use crate::conformance::led::Recorded;
use crate::conformance::recorder::{Entries, Recorder, work_for};
use crate::conformance::refused::Tally;
use crate::mirror::wide::circular_buffer::CircularBuffer;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

const NONE: u8 = CircularBuffer::NONE;
const ABSENT: u8 = CircularBuffer::ABSENT;
const UNIT: usize = 512;
/// Sizes of the blocks in each size class, in units.
pub(super) const SIZES: [u8; 3] = [1, 3, 4];
const CALLS: u32 = 120;

/// Everything that an episode depends on, except for the order of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The number of threads.
    pub clients: u8,
    /// The number of pages.
    pub pages: u8,
    /// The number of units of the ring.
    pub capacity: u8,
    /// The copy-on-access region's share of the ring, in percent.
    pub percent: u8,
    /// The seed of all choices.
    pub seed: u64,
}

impl Episode {
    /// Derives an episode from a seed.
    #[must_use]
    pub fn new(clients: u8, seed: u64) -> Self {
        let mut rng = Random::new(seed);
        Self {
            clients,
            pages: 2 + rng.below(7) as u8,
            capacity: [8, 16][rng.below(2) as usize],
            percent: [0, 25, 50][rng.below(3) as usize],
            seed: rng.word(),
        }
    }
}

impl Observer<Event> for Recorder<Heard> {
    fn event(&self, event: Event) {
        self.hear(Heard::Ring(event));
    }
}

struct Tree {
    ring: Ring,
    recorder: Arc<Recorder<Heard>>,
    /// Records of the leaf pages. The pages' locks guard them.
    leaves: Vec<AtomicU8>,
}

fn leaf() -> LeafAddress {
    LeafAddress::new(0).expect("0 is an address")
}

fn payload(units: u8) -> usize {
    usize::from(units) * UNIT - 8
}

fn units(bytes: &[u8]) -> u8 {
    ((bytes.len() + 8) / UNIT) as u8
}

/// The result of a get.
enum Got {
    Answered,
    Again,
}

impl Tree {
    fn new(episode: &Episode) -> Self {
        let recorder = Arc::new(Recorder::new(episode.seed));
        let options = RingOptions {
            capacity: usize::from(episode.capacity) * UNIT,
            copy_on_access_percent: episode.percent,
            sizes: SIZES.map(payload).to_vec(),
            pages: episode.pages.into(),
            marks: false,
        };
        let ring = Ring::observed(&options, Some(recorder.clone())).expect("a ring");
        let page = |_| {
            ring.create_page(leaf()).expect("an id");
            AtomicU8::new(ABSENT)
        };
        let leaves = (0..episode.pages).map(page).collect();
        Self {
            ring,
            recorder,
            leaves,
        }
    }

    fn hear(&self, heard: Heard) {
        self.recorder.hear(heard);
    }

    /// Tries until `lock` succeeds. No other thread is recorded during a try, so the lock and its
    /// entry are one step.
    fn locked<T>(&self, lock: impl Fn() -> Option<T>) -> T {
        loop {
            let mut entries = self.recorder.lock();
            if let Some(locked) = lock() {
                entries.push(Heard::Locked);
                return locked;
            }
            drop(entries);
            yield_now();
        }
    }

    fn returns<T>(&self, mut entries: MutexGuard<'_, Entries<Heard>>, guard: T) {
        entries.push(Heard::Returned);
        drop(guard);
    }

    fn get(&self, key: u8, rng: &mut Random) {
        self.hear(Heard::Get(key));
        let mut answered = false;
        while let Got::Again = self.try_get(key, rng, answered) {
            answered = true;
            self.evict();
        }
    }

    fn try_get(&self, key: u8, rng: &mut Random, answered: bool) -> Got {
        let page = PageId(key.into());
        let guard = self.locked(|| self.ring.try_shared(page).expect("a page"));
        let on_leaf = || self.leaves[usize::from(key)].load(Relaxed);
        let size = guard.bytes().map(units);
        if !answered {
            let cached = guard.bytes().map(|bytes| bytes[0]);
            let cached = cached.filter(|rec| *rec != NONE);
            self.hear(Heard::Read(cached.unwrap_or_else(on_leaf)));
        }
        let moves = match size {
            Some(_) => guard.in_copy_on_access_region(),
            None => rng.one_in(3),
        };
        let mut entries = self.recorder.lock();
        if !moves {
            self.returns(entries, guard);
            return Got::Answered;
        }
        let alone = match guard.try_upgrade() {
            Ok(alone) => alone,
            Err(shared) => {
                self.returns(entries, shared);
                return Got::Answered;
            }
        };
        let size = size.unwrap_or(SIZES[rng.below(2) as usize]);
        entries.push(Heard::Wants(size));
        drop(entries);
        let Some(fresh) = self.allocate(alone, size) else {
            return Got::Again;
        };
        let guard = copy(fresh, (on_leaf(), false));
        self.returns(self.recorder.lock(), guard);
        Got::Answered
    }

    fn write(&self, key: u8, value: u8, rng: &mut Random) {
        self.hear(Heard::Write(key, value));
        while let Got::Again = self.try_write(key, value, rng) {
            self.evict();
        }
    }

    fn try_write(&self, key: u8, value: u8, rng: &mut Random) -> Got {
        let page = PageId(key.into());
        let mut guard = self.locked(|| self.ring.try_exclusive(page).expect("a page"));
        let size = match guard.bytes().map(units) {
            None => {
                let size = SIZES[rng.below(3) as usize];
                self.hear(Heard::Wants(size));
                size
            }
            Some(old) => {
                let larger = SIZES.into_iter().find(|size| *size > old);
                let intent = match larger.filter(|_| rng.one_in(3)) {
                    Some(size) => Intent::Grow(size),
                    None => Intent::InPlace,
                };
                self.hear(Heard::Means(intent));
                match (guard.in_copy_on_access_region(), intent) {
                    (true, _) => old,
                    (false, Intent::Grow(size)) => size,
                    (false, Intent::InPlace) => {
                        put(&mut guard, value);
                        self.returns(self.recorder.lock(), guard);
                        return Got::Answered;
                    }
                }
            }
        };
        let Some(fresh) = self.allocate(guard, size) else {
            return Got::Again;
        };
        let mut guard = copy(fresh, (NONE, false));
        put(&mut guard, value);
        self.hear(Heard::Wrote);
        self.returns(self.recorder.lock(), guard);
        Got::Answered
    }

    /// Allocates a block. `None` if the ring is full, and then the page is unlocked.
    fn allocate<'a>(&self, guard: Exclusive<'a>, size: u8) -> Option<Fresh<'a>> {
        match guard.allocate(payload(size)) {
            Ok(fresh) => Some(fresh),
            Err(refused) => match refused.give_back() {
                AllocateError::Full(_) => None,
                other => panic!("{other}"),
            },
        }
    }

    fn evict(&self) {
        let merge = |page: PageId, bytes: &mut [u8]| {
            let (rec, dirty) = (bytes[0], bytes[1] != 0);
            self.hear(Heard::Merges(rec, dirty));
            if dirty {
                self.leaves[page.0 as usize].store(rec, Relaxed);
            }
            Ok::<_, Infallible>(leaf())
        };
        while let Ok(Eviction::ByOthers) = self.ring.evict(merge) {}
    }

    fn run(&self, client: u8, episode: &Episode, until: &Deadline) {
        work_for(client);
        let mut rng = Random::new(episode.seed ^ u64::from(client) << 32);
        for n in 0..CALLS {
            if until.is_over() {
                break;
            }
            let key = rng.below(episode.pages.into()) as u8;
            if rng.one_in(2) {
                self.get(key, &mut rng);
            } else {
                // A value tells who wrote it, and when.
                let value = (n % 60) as u8 * 4 + client % 4;
                self.write(key, value, &mut rng);
            }
        }
    }
}

/// Publishes a block with the old record, or with the given one.
fn copy<'a>(mut fresh: Fresh<'a>, (rec, dirty): (u8, bool)) -> Exclusive<'a> {
    let (old, new) = fresh.both();
    let (rec, dirty) = old.map_or((rec, u8::from(dirty)), |old| (old[0], old[1]));
    new.fill(rec);
    new[1] = dirty;
    fresh.publish()
}

/// Writes in place.
fn put(guard: &mut Exclusive<'_>, value: u8) {
    let bytes = guard.bytes_mut().expect("a mini-page");
    bytes.fill(value);
    bytes[1] = 1;
}

/// Runs an episode and judges it.
///
/// # Panics
/// If the ring panicked and nothing that it reported before was refused.
#[must_use]
pub fn run_episode(episode: &Episode) -> (Tally, Option<Box<Refusal>>) {
    run_until(episode, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up. Later events are neither produced nor
/// judged.
pub(super) fn run_until(episode: &Episode, until: &Deadline) -> (Tally, Option<Box<Refusal>>) {
    let (judge, refusal) = judged(episode, until, None);
    (judge.tally().clone(), refusal)
}

/// The last steps of an episode as a behaviour of the spec.
///
/// # Panics
/// As [`run_episode`].
#[must_use]
pub fn recorded(episode: &Episode, steps: usize) -> Option<Recorded> {
    judged(episode, &Deadline::never(), Some(steps))
        .0
        .recorded()
}

fn judged(
    episode: &Episode,
    until: &Deadline,
    steps: Option<usize>,
) -> (Judge, Option<Box<Refusal>>) {
    let tree = Tree::new(episode);
    let panicked = std::thread::scope(|scope| {
        let run = |client| {
            let tree = &tree;
            scope.spawn(move || tree.run(client, episode, until))
        };
        let threads: Vec<_> = (0..episode.clients).map(run).collect();
        let ends = threads.into_iter().map(|thread| thread.join().err());
        ends.fold(None, |first, end| first.or(end))
    });
    let near = u32::from(episode.capacity) * u32::from(episode.percent) / 100;
    let in_place = episode.capacity - near as u8;
    let mirror = CircularBuffer::unbounded(
        episode.clients.into(),
        episode.pages.into(),
        episode.capacity,
        in_place,
        SIZES.to_vec(),
    );
    let constants = tla::constants(episode, in_place);
    let mut judge = Judge::new(episode.clients.into(), mirror, UNIT as u64, constants);
    if let Some(steps) = steps {
        judge.note_steps(steps);
    }
    let entries = tree.recorder.take();
    let refusal = (entries.into_iter())
        .take_while(|_| !until.is_over())
        .find_map(|(client, heard)| judge.hear(client, heard).err());
    if let (None, Some(panicked)) = (&refusal, panicked) {
        std::panic::resume_unwind(panicked);
    }
    (judge, refusal)
}
