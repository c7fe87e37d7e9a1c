//! The inductive invariant (`IndSurrogateBuffer.tla`), and typed states to check it in.
//!
//! What is persistent for certain, the first version of each word, has all leaves in their order,
//! and each pair that is not only in the log. A pair that is beyond its leaf's stamp is in the log,
//! and in the buffer, or still to be replayed. Each step of a flush has a conjunct that says which
//! words it is changing, and what it makes of them.
//!
//! ```text
//! conjuncts.rs  the conjuncts on nodes, log and clients
//! flushes.rs    those on the words that a flush is changing
//! ways.rs       what a stage gives to its variables
//! scrambled.rs  words that only a conjunct forbids
//! ```

mod conjuncts;
mod flushes;
mod scrambled;
mod ways;

use super::Set;
use super::constants::SurrogateBuffer;
use super::state::{State, Version};
use super::words::{NO_LEAF, Word, place};
use crate::inductive::{Conjunct, GrowthStage, Inductive, Plan};
use ways::Way;

/// The kinds of stages, in their order.
const LIFE: u8 = 0;
const SHAPE: u8 = 1;
const VERSION: u8 = 2;
const CALL: u8 = 3;
const ENTRY: u8 = 4;
const REPLAYED: u8 = 5;
const HEADER: u8 = 6;
const SLOT: u8 = 7;
const BUFFER: u8 = 8;
const FLUSH: u8 = 9;
const END: u8 = 10;

type Mirror = SurrogateBuffer;

impl Inductive for SurrogateBuffer {
    type Way = Way;

    const CONJUNCTS: &'static [Conjunct<Self>] = &[
        Conjunct::whole("RowInv", &[SHAPE], Mirror::row_inv),
        Conjunct::whole("PhaseInv", &[CALL], Mirror::phase_inv),
        Conjunct::whole("CallInv", &[CALL], Mirror::call_inv),
        Conjunct::whole("EntryInv", &[], Mirror::entry_inv),
        Conjunct::whole("OrderInv", &[ENTRY], Mirror::order_inv),
        Conjunct::each("RangeInv", &[SLOT], Mirror::range_inv),
        Conjunct::each("PlacedInv", &[BUFFER], Mirror::placed_inv),
        Conjunct::each("BeyondInv", &[BUFFER], Mirror::beyond_inv),
        Conjunct::each("NeededInv", &[BUFFER], Mirror::needed_inv),
        Conjunct::each("NewestInv", &[BUFFER], Mirror::newest_inv),
        Conjunct::each("LockInv", &[FLUSH], Mirror::lock_inv),
        Conjunct::each("TodoInv", &[FLUSH], Mirror::todo_inv),
        Conjunct::each("CapacityInv", &[FLUSH], Mirror::capacity_inv),
        Conjunct::each("RestInv", &[], Mirror::rest_inv),
        Conjunct::each("ClearedInv", &[FLUSH], Mirror::cleared_inv),
        Conjunct::each("WrittenInv", &[FLUSH], Mirror::written_inv),
        Conjunct::each("MarkedInv", &[FLUSH], Mirror::marked_inv),
        Conjunct::each("PreparedInv", &[FLUSH], Mirror::prepared_inv),
        Conjunct::each("LinkedInv", &[FLUSH], Mirror::linked_inv),
        Conjunct::each("SwitchedInv", &[FLUSH], Mirror::switched_inv),
        Conjunct::whole("SpaceInv", &[], Mirror::space_inv),
        Conjunct::whole("VersionInv", &[], Mirror::version_inv),
        Conjunct::whole("CountInv", &[], Mirror::count_inv),
        Conjunct::whole("NumberInv", &[], Mirror::number_inv),
        Conjunct::whole("RecoverableInv", &[], Mirror::is_recoverable),
    ];

    /// Part `i` is node `i`, or leaf `i + 1`.
    fn parts(&self) -> usize {
        self.leaves
    }

    fn stages(&self) -> Vec<GrowthStage> {
        let one = GrowthStage::new;
        let mut all = vec![one(LIFE, 0, 0, 1), one(SHAPE, 0, 0, 1)];
        all.extend((0..self.spaces).map(|space| one(VERSION, 0, space, 1)));
        all.extend(self.clients().map(|c| one(CALL, 0, c.into(), 1)));
        let entries = 0..self.spaces * self.log_size;
        all.extend(entries.map(|entry| one(ENTRY, 0, entry, 1)));
        all.push(one(REPLAYED, 0, 0, 1));
        for l in 0..self.leaves {
            all.push(one(HEADER, l, 0, 1));
            all.extend((0..self.leaf_slots).map(|i| one(SLOT, l, i, 1)));
        }
        all.extend((0..self.leaves).map(|n| one(BUFFER, n, 0, 1)));
        all.extend((0..self.leaves).map(|n| one(FLUSH, n, 0, 2)));
        all.push(one(END, 0, 0, 1));
        all
    }

    fn blank(&self) -> State {
        let mut blank = self.initial();
        blank.versions = [Version::default(); super::SPACES];
        blank
    }

    fn ways(&self, s: &State, stage: GrowthStage, plan: &Plan) -> Vec<Way> {
        let n = stage.number;
        match stage.kind {
            LIFE => Way::lives(),
            SHAPE => self.shapes(plan),
            VERSION => self.typed_versions(s, n, plan),
            CALL => self.typed_calls(s, plan),
            ENTRY => self.typed_entries(s, (n / self.log_size, n % self.log_size), plan),
            REPLAYED => self.typed_replayed(s, plan),
            HEADER => self.headers(),
            SLOT => self.slots_of(s, stage.part, plan),
            BUFFER => self.buffers(s, stage.part, plan),
            FLUSH => self.flushes(s, stage.part, plan),
            _ => self.ends(s, plan),
        }
    }

    fn grow(&self, s: &mut State, stage: GrowthStage, way: &Way) {
        let (part, n) = (stage.part, stage.number);
        match way {
            Way::Life(phase) => s.phase = *phase,
            Way::Shape(nodes) => self.grow_shape(s, nodes),
            Way::Version(version) => s.versions[n] = *version,
            Way::Call(call) => s.call[n] = *call,
            Way::Entry(words) => s.log[n / self.log_size][n % self.log_size] = *words,
            Way::Replayed(replayed) => s.replayed = *replayed,
            Way::Header(header, spare) => {
                let next = next_of(s, part);
                let words = &mut s.leaf[part];
                words.header = Word::durably(*header);
                let used = usize::from(header.use_n);
                words.next[used] = Word::durably(next);
                words.next[1 - used] = Word::durably(*spare);
            }
            Way::Slot(pair, is_set) => {
                let words = &mut s.leaf[part];
                let mut header = words.header.newest();
                header.bits &= !(1 << n);
                header.bits |= Set::from(*is_set) << n;
                words.header = Word::durably(header);
                words.slots[n] = Word::durably(*pair);
            }
            Way::Buffer(buffer) => s.nodes[part].buffer = *buffer,
            Way::Flush(flush) => (s.nodes[part], s.leaf) = (flush.0, flush.1),
            Way::Nothing => {}
            Way::End(end) => {
                (s.clock, s.version, s.kept) = (end.clock, end.version, end.kept);
                for (version, valid) in s.versions.iter_mut().zip(end.valid) {
                    version.valid = valid;
                }
            }
        }
    }
}

/// The leaf after leaf `l + 1`, by the nodes.
fn next_of(s: &State, l: usize) -> u8 {
    let index = s.nodes.iter().flat_map(|node| node.index.iter());
    let mut after = index.skip_while(|fence| place(fence.leaf) != l).skip(1);
    after.next().map_or(NO_LEAF, |next| next.leaf)
}
