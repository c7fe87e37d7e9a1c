//! The inductive invariant (`IndLeafBuffering.tla`), and typed states to check it in.
//!
//! However the words settle after a crash, there is a list of leaves, and recovery finds in them
//! and in the logs what took effect. That is one conjunct. The others are what a step needs so that it
//! stays true: an entry that a leaf lacks is beyond the leaf's stamp, no time is later than now,
//! each log ends in a chunk of its own, and each step of a flush, a split or a merge knows what it
//! has stored, and what of it is durable.
//!
//! A state with nothing under way is grown word by word: leaves, stamps, chunks, entries, torn or
//! of any epoch, then buffer nodes, and cleaning. The protocol without a bug takes it some steps
//! further, so that writes, splits, merges, cleaning, crashes and recovery are under way. Then one
//! word or variable gets another value, if the invariant allows it.
//!
//! ```text
//! memory.rs      the conjuncts on persistent memory, and every way in which it may settle
//! jobs.rs        those on buffer nodes, cleaning, and each step of a writer
//! ways.rs        what a stage gives to its variables
//! scrambled.rs   states that differ in one word or variable
//! ```

mod jobs;
mod memory;
mod scrambled;
mod ways;

use super::constants::LeafBuffering;
use super::memory::{Place, chunk_of, header_of, kv_of, one, slot_of, stamp_of, time_of};
use super::state::{Phase, State};
use super::word::Word;
use crate::inductive::{Conjunct, GrowthStage, Inductive, Plan};
use ways::Way;

/// The kinds of stages, in their order.
const LIFE: u8 = 0;
const SHAPE: u8 = 1;
const SLOT: u8 = 2;
const STAMP: u8 = 3;
const CHUNK: u8 = 4;
const ENTRY: u8 = 5;
const MAP: u8 = 6;
const END: u8 = 7;
const BUFFER: u8 = 8;
const TODO: u8 = 9;
const STEP: u8 = 10;
const SCRAMBLE: u8 = 11;

/// The number of steps that a state is taken further.
const STEPS: usize = 14;

type Mirror = LeafBuffering;

impl Inductive for LeafBuffering {
    type Way = Way;

    const CONJUNCTS: &'static [Conjunct<Self>] = &[
        Conjunct::whole("PhaseInv", &[SCRAMBLE], Mirror::phase_inv),
        Conjunct::whole("EpochInv", &[LIFE, SCRAMBLE], Mirror::epoch_inv),
        Conjunct::whole("RowInv", &[MAP, SCRAMBLE], Mirror::row_inv),
        Conjunct::whole("TimeInv", &[MAP, SCRAMBLE], Mirror::time_inv),
        Conjunct::whole("ChunkInv", &[MAP, SCRAMBLE], Mirror::chunk_inv),
        Conjunct::whole("EndInv", &[END, SCRAMBLE], Mirror::end_inv),
        Conjunct::whole("JobInv", &[SCRAMBLE], Mirror::job_inv),
        Conjunct::whole("LoggedInv", &[SCRAMBLE], Mirror::logged_inv),
        Conjunct::whole("RestInv", &[SCRAMBLE], Mirror::rest_inv),
        Conjunct::whole("LatchedInv", &[SCRAMBLE], Mirror::latched_inv),
        Conjunct::whole("BatchInv", &[SCRAMBLE], Mirror::batch_inv),
        Conjunct::whole("RecordsInv", &[SCRAMBLE], Mirror::records_inv),
        Conjunct::whole("HeaderInv", &[SCRAMBLE], Mirror::header_inv),
        Conjunct::whole("NewInv", &[SCRAMBLE], Mirror::new_inv),
        Conjunct::whole("LinkInv", &[SCRAMBLE], Mirror::link_inv),
        Conjunct::whole("MergeInv", &[SCRAMBLE], Mirror::merge_inv),
        Conjunct::whole("MovedInv", &[SCRAMBLE], Mirror::moved_inv),
        Conjunct::whole("MergedInv", &[SCRAMBLE], Mirror::merged_inv),
        Conjunct::each("FlushedInv", &[BUFFER], Mirror::flushed_inv),
        Conjunct::each("SlotInv", &[BUFFER], Mirror::slot_inv),
        Conjunct::each("CacheInv", &[BUFFER], Mirror::cache_inv),
        Conjunct::whole("TodoInv", &[TODO, SCRAMBLE], Mirror::todo_inv),
        Conjunct::whole("KeptInv", &[SCRAMBLE], Mirror::kept_inv),
        Conjunct::whole("SettledInv", &[MAP, SCRAMBLE], Mirror::settled_inv),
    ];

    /// Part `i` is leaf `i + 1`.
    fn parts(&self) -> usize {
        self.leaves
    }

    fn stages(&self) -> Vec<GrowthStage> {
        let one = |kind, part, number| GrowthStage::new(kind, part, number, 1);
        let mut all = vec![one(LIFE, 0, 0), one(SHAPE, 0, 0)];
        for leaf in 0..self.leaves {
            all.extend((0..self.slots).map(|slot| one(SLOT, leaf, slot)));
            all.push(one(STAMP, leaf, 0));
        }
        for chunk in 0..self.chunks {
            all.push(one(CHUNK, 0, chunk));
            let places = 0..self.entries;
            all.extend(places.map(|i| one(ENTRY, chunk, i)));
        }
        all.push(one(MAP, 0, 0));
        all.extend(self.loggers().map(|logger| one(END, 0, logger)));
        all.extend((0..self.leaves).map(|leaf| one(BUFFER, leaf, 0)));
        all.push(one(TODO, 0, 0));
        all.extend((0..STEPS).map(|step| one(STEP, 0, step)));
        all.push(GrowthStage::new(SCRAMBLE, 0, 0, 2));
        all
    }

    fn blank(&self) -> State {
        State::initial()
    }

    fn ways(&self, s: &State, stage: GrowthStage, plan: &Plan) -> Vec<Way> {
        let (part, n) = (stage.part as u8 + 1, stage.number);
        match stage.kind {
            LIFE => self.lives(),
            SHAPE => self.shapes(),
            SLOT => self.slots_of(s, part, n),
            STAMP => self.typed_stamps(s, plan),
            CHUNK => (0..=ways::newest(s)).map(Way::Chunk).collect(),
            ENTRY => self.entries_of(s, part),
            MAP => vec![Way::Map(self.recovered(&s.medium()))],
            END => self.ends(s),
            BUFFER => self.buffers(s, part),
            TODO => self.todos(s),
            STEP => self.steps_further(s, n),
            _ => self.scrambled(s, plan),
        }
    }

    fn grow(&self, s: &mut State, stage: GrowthStage, way: &Way) {
        let (part, n) = (stage.part as u8 + 1, stage.number);
        let durably = Place::durably;
        match way {
            Way::Life(life) => *s = **life,
            Way::Shape(inner) => {
                s.inner = *inner;
                for leaf in 1..=self.leaves as u8 {
                    let mut after = inner.all().iter().skip_while(|child| child.leaf != leaf);
                    let next = after.nth(1).map_or(0, |child| child.leaf);
                    s.pm[header_of(leaf)] = durably(Word::header(0, next));
                }
            }
            Way::Slot(kv, is_live) => {
                let header = s.pm[header_of(part)].newest();
                let others = header.live() & !one(n);
                let live = if *is_live { others | one(n) } else { others };
                s.pm[header_of(part)] = durably(Word::header(live, header.next()));
                s.pm[slot_of(part, n)] = durably(Word::kv(*kv));
            }
            Way::Stamp(times) => {
                let words = times.iter().map(|time| Word::time(*time));
                s.pm[stamp_of(part)] = ways::place(words);
            }
            Way::Chunk(epoch) => s.pm[chunk_of(n as u8 + 1)] = durably(Word::number(*epoch)),
            Way::Entry(kv, time, of) => {
                s.pm[kv_of(part, n)] = durably(Word::kv(*kv));
                s.pm[time_of(part, n)] = durably(Word::stamped(*time, *of));
            }
            Way::Map(map) => s.written = *map,
            Way::End(end) => s.log[n] = *end,
            Way::Buffer(buffer) => *s.buffer_mut(part) = *buffer,
            Way::Todo(todo) => {
                s.cleaning.todo = *todo;
                if matches!(s.phase, Phase::Failing | Phase::Killed) {
                    s.inner = super::memory::Inner::default();
                }
            }
            Way::State(state) => *s = **state,
        }
    }
}
