//! An episode: clients that get, put, delete and scan a few keys of a tiny Bf-tree, and the
//! recording of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::device::MemDevice;
use treering_engine::events::Observer;
use treering_engine::mini::events::Event;
use treering_engine::{
    BfOptions, Durability, Kv, LogPacking, MIN_CACHE_PAGES, ModLog, Options, PageStoreKind,
    Progress, Promote, Store, SystemClock, TablePersist, Task, TreeKind, required_blocks,
};

use super::judge::{Heard, Judge, Refusal};
use super::scale::Scale;
use crate::conformance::led::Recorded;
use crate::conformance::recorder::{Recorder, work_for};
use crate::conformance::refused::Tally;
use crate::mirror::wide::mini_page::records::{ABSENT, Content};
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

const PAGE: usize = 4096;
/// The number of calls of all clients together.
const CALLS: u32 = 600;
/// The number of calls between two changes of mood.
const DAY: u32 = 50;

/// Everything that an episode depends on, except for the order of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The number of threads.
    pub clients: u8,
    /// The number of keys.
    pub keys: u8,
    /// The number of pages that the ring has room for.
    pub ring: u8,
    /// The copy-on-access region's share of the ring, in percent.
    pub copy_on_access: u8,
    /// The share of leaf reads that are promoted, in percent.
    pub promotion: u8,
    /// The store of the leaves.
    pub store: PageStoreKind,
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
            keys: 12 + rng.below(13) as u8,
            // Two pages have room for four mini-pages of the largest size. From four pages on there
            // is room for mirrors of full leaves.
            ring: [2, 2, 4, 6][rng.below(4) as usize],
            copy_on_access: [10, 50, 90][rng.below(3) as usize],
            promotion: [20, 50, 100][rng.below(3) as usize],
            store: if rng.one_in(3) {
                PageStoreKind::CopyOnWrite {
                    table: TablePersist::EachFlush,
                }
            } else {
                PageStoreKind::InPlace
            },
            seed: rng.word(),
        }
    }

    /// The largest mini-page, in per cent of a page. A ring of two pages has none above half a
    /// page.
    fn max_mini_page(&self) -> u8 {
        match self.ring {
            4.. => [50, 100][(self.seed / 9 % 2) as usize],
            _ => 50,
        }
    }

    fn options(&self) -> Options {
        let log_bytes = 32 * PAGE as u64;
        // Over shadowed pages: with all features of the B⁻-tree.
        let shadows = self.store == PageStoreKind::Shadow;
        Options {
            tree: TreeKind::Bf(BfOptions {
                copy_on_access_percent: self.copy_on_access,
                promote: Promote::Percent(self.promotion),
                relog_percent: [0, 25, 50][(self.seed % 3) as usize],
                // The mirror grows a mini-page by records, as the engine does if sizes double.
                growth_percent: 100,
                spare_percent: [0, 50, 75][(self.seed / 3 % 3) as usize],
                max_mini_page_percent: self.max_mini_page(),
            }),
            store: self.store,
            page_size: PAGE,
            cache_bytes: (MIN_CACHE_PAGES + u64::from(self.ring)) * PAGE as u64,
            durability: Durability::Deferred,
            mod_log: shadows.then(ModLog::default),
            log_packing: if shadows {
                LogPacking::Sparse
            } else {
                LogPacking::Packed
            },
            log_bytes,
            checkpoint_log_bytes: log_bytes / 4,
            log_buffer_bytes: log_bytes / 16,
            write_batch_pages: 3,
            ..Options::default()
        }
    }
}

impl Observer<Event> for Recorder<Heard> {
    fn event(&self, event: Event) {
        self.hear(Heard::Tree(Box::new(event)));
    }
}

/// The kind of calls that a client prefers for a while.
enum Mood {
    Fills,
    Reads,
    Empties,
}

struct Tree {
    store: Store,
    recorder: Arc<Recorder<Heard>>,
    scale: Scale,
}

impl Tree {
    fn new(episode: &Episode) -> treering_engine::Result<Self> {
        let recorder = Arc::new(Recorder::new(episode.seed));
        let options = episode.options();
        let device = Arc::new(MemDevice::new(required_blocks(&options, 64)));
        let mut store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
        // The end of a store is not a step of the spec.
        store.abandon_on_drop();
        store.observe_mini_pages(recorder.clone());
        Ok(Self {
            store,
            recorder,
            scale: Scale::new(episode.keys),
        })
    }

    fn get(&self, key: u8) -> treering_engine::Result<()> {
        self.recorder.hear(Heard::Get(key));
        let mut value = Vec::new();
        let found = self.store.get(self.scale.bytes(key), &mut value)?;
        let value = if found { content(&value) } else { ABSENT };
        self.recorder.hear(Heard::Got(value));
        Ok(())
    }

    fn write(&self, key: u8, value: Content) -> treering_engine::Result<()> {
        self.recorder.hear(Heard::Write(key, value));
        let bytes = self.scale.bytes(key);
        if value == ABSENT {
            self.store.delete(bytes)?;
        } else {
            self.store.put(bytes, &Scale::value(value))?;
        }
        self.recorder.hear(Heard::Done);
        Ok(())
    }

    fn scan(&self) -> treering_engine::Result<()> {
        self.recorder.hear(Heard::Scan);
        let mut rows = Vec::new();
        self.store.scan(b"", &mut |key, value| {
            rows.push((self.scale.key(key).unwrap_or(0), content(value)));
            ControlFlow::Continue(())
        })?;
        self.recorder.hear(Heard::Rows(rows));
        Ok(())
    }

    /// A scan of all keys below this one.
    fn scan_back(&self, key: u8) -> treering_engine::Result<()> {
        self.recorder.hear(Heard::ScanBack(key));
        let mut rows = Vec::new();
        let before = (key <= self.scale.len()).then(|| self.scale.bytes(key));
        self.store.scan_back(before, &mut |key, value| {
            rows.push((self.scale.key(key).unwrap_or(0), content(value)));
            ControlFlow::Continue(())
        })?;
        self.recorder.hear(Heard::Rows(rows));
        Ok(())
    }

    fn run(&self, client: u8, episode: &Episode, until: &Deadline) {
        work_for(client);
        if let Err(e) = self.try_run(client, episode, until) {
            self.recorder.hear(Heard::Failed(e.to_string()));
        }
    }

    fn try_run(
        &self,
        client: u8,
        episode: &Episode,
        until: &Deadline,
    ) -> treering_engine::Result<()> {
        let mut rng = Random::new(episode.seed ^ u64::from(client) << 32);
        // The same mood for all clients, since the tree would otherwise neither fill up nor become
        // empty.
        let moods = (episode.seed % 3) as u32;
        for n in 0..CALLS / u32::from(episode.clients) {
            if until.is_over() {
                break;
            }
            let mood = match (n / DAY + moods) % 3 {
                0 => Mood::Fills,
                1 => Mood::Reads,
                _ => Mood::Empties,
            };
            let (writes, deletes) = match mood {
                Mood::Fills => (80, 5),
                Mood::Reads => (20, 30),
                Mood::Empties => (80, 95),
            };
            // Half of the calls concern few keys.
            let keys = if rng.one_in(2) { 4 } else { episode.keys };
            let key = 1 + rng.below(keys.into()) as u8;
            if rng.percent(writes) {
                // A value tells who wrote it, and when.
                let value = 1 + (n % 31) as u8 * 8 + client % 8;
                self.write(key, if rng.percent(deletes) { ABSENT } else { value })?;
            } else if rng.one_in(16) {
                self.scan()?;
            } else if rng.one_in(16) {
                self.scan_back(2 + rng.below(episode.keys.into()) as u8)?;
            } else {
                self.get(key)?;
            }
            if rng.one_in(60) {
                match episode.seed & 8 {
                    0 => drop(self.store.checkpoint()?),
                    // As in the background: only these log dirty records again.
                    _ => while self.store.pump(Task::Checkpoint)? == Progress::More {},
                }
            }
        }
        Ok(())
    }
}

/// The number of a value. A value that no client has written becomes `Pending`, which no get may
/// return.
fn content(value: &[u8]) -> Content {
    Scale::content(value).unwrap_or(crate::mirror::wide::mini_page::records::PENDING)
}

/// Runs an episode and judges it.
///
/// # Panics
/// If the tree panicked and nothing that it reported before was refused.
#[must_use]
pub fn run_episode(episode: &Episode) -> (Tally, Option<Box<Refusal>>) {
    run_until(episode, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up. Later events are neither produced nor
/// judged.
pub(super) fn run_until(episode: &Episode, until: &Deadline) -> (Tally, Option<Box<Refusal>>) {
    let judge = Judge::new(episode.clients, episode.keys, episode.max_mini_page());
    let (judge, refusal) = judged(episode, judge, until);
    (judge.tally().clone(), refusal)
}

/// Runs an episode with the situations of all steps noted, and returns its judge.
pub(super) fn record(episode: &Episode) -> (Judge, Option<Box<Refusal>>) {
    let mut judge = Judge::new(episode.clients, episode.keys, episode.max_mini_page());
    judge.note_situations();
    judged(episode, judge, &Deadline::never())
}

/// The last steps of an episode as a behaviour of the spec.
///
/// # Panics
/// As [`run_episode`].
#[must_use]
pub fn recorded(episode: &Episode, steps: usize) -> Option<Recorded> {
    let mut judge = Judge::new(episode.clients, episode.keys, episode.max_mini_page());
    judge.note_steps(steps);
    judged(episode, judge, &Deadline::never()).0.recorded()
}

fn judged(episode: &Episode, mut judge: Judge, until: &Deadline) -> (Judge, Option<Box<Refusal>>) {
    let tree = Tree::new(episode).expect("a store in memory");
    let panicked = std::thread::scope(|scope| {
        let run = |client| {
            let tree = &tree;
            scope.spawn(move || tree.run(client, episode, until))
        };
        let threads: Vec<_> = (0..episode.clients).map(run).collect();
        let ends = threads.into_iter().map(|thread| thread.join().err());
        ends.fold(None, |first, end| first.or(end))
    });
    if panicked.is_none() {
        work_for(0);
        if let Err(e) = tree.scan() {
            tree.recorder.hear(Heard::Failed(e.to_string()));
        }
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
