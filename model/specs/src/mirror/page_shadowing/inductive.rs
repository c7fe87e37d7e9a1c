//! The inductive invariant (`IndPageShadowing.tla`), and typed states to check it in.
//!
//! Each page has an *anchor*: the slot that no crash changes, because its image is durable. While
//! the last image is only written, that is the other slot. Everything else follows from what the
//! anchor and the log block have together, whichever versions a crash leaves of the rest.

use super::invariants::ack_inv;
use super::reading::{as_read, last_change, left, left_count, page_at};
use super::state::{ABSENT, Block, Call, Image, Is, Known, LOG_BLOCK, N, PENDING, Page, Place};
use super::state::{SPOTS, State, Values, key, spot};
use super::{PageShadowing, Record, SEGMENTS, Set};
use crate::inductive::{Conjunct, GrowthStage, Inductive, Plan};
use crate::mirror::Phase;

/// The kinds of stages, in their order.
const LIFE: u8 = 0;
const RECORD: u8 = 1;
const POSITIONS: u8 = 2;
const KNOWN: u8 = 3;
const BLOCK: u8 = 4;
const LAST_OF_SLOT: u8 = 5;
const DELTA: u8 = 6;
const LOST: u8 = 7;
const MEMORY: u8 = 8;
const CALL: u8 = 9;

/// The versions of a block as readers see them.
fn versions(s: &State, p: usize, i: usize) -> impl Iterator<Item = Block> + '_ {
    s.dev[p][i].all().iter().map(|block| block.as_read())
}

impl PageShadowing {
    fn newest(s: &State, p: usize) -> [Block; SPOTS] {
        as_read(&s.dev[p].map(|place| place.newest()))
    }

    /// The slot whose image reading yields now (`Shown`).
    fn shown(&self, s: &State, p: usize) -> usize {
        let known = s.valid[p];
        usize::from(match known.is {
            Is::Unknown => self.valid_slot(&Self::newest(s, p)),
            _ => known.slot,
        })
    }

    /// The slot that no crash changes (`Anchor`).
    fn anchor(&self, s: &State, p: usize) -> usize {
        let shown = self.shown(s, p);
        if s.valid[p].is == Is::Written {
            1 - shown
        } else {
            shown
        }
    }

    fn image_of(&self, s: &State, p: usize, slot: usize) -> Image {
        self.image_in(&Self::newest(s, p), slot)
    }

    /// The LSN that reading a slot yields, with this log block.
    fn lsn_with(image: &Image, log: Block) -> N {
        if fits(image, log) {
            log.lsn()
        } else {
            image.lsn
        }
    }

    fn truth_inv(&self, s: &State, p: usize) -> bool {
        let first = [0, 1]
            .into_iter()
            .flat_map(|slot| versions(s, p, spot(slot, 0)));
        let mut log = versions(s, p, LOG_BLOCK);
        first.into_iter().all(|block| is_true_first(s, p, block))
            && log.all(|block| is_true_delta(s, p, block))
    }

    fn firsts_inv(&self, s: &State, p: usize) -> bool {
        let same = |lsn: N| lsn != 0 && versions(s, p, spot(1, 0)).any(|other| other.lsn() == lsn);
        !versions(s, p, spot(0, 0)).any(|block| same(block.lsn()))
    }

    /// The anchor has an image, unless the page was never written.
    fn whole_inv(&self, s: &State, p: usize) -> bool {
        let anchor = self.anchor(s, p);
        let never = anchor == 1 && Self::newest(s, p)[spot(1, 0)].lsn() == 0;
        never || self.image_of(s, p, anchor).lsn != 0
    }

    fn single_inv(&self, s: &State, p: usize) -> bool {
        let anchor = self.anchor(s, p);
        (0..self.segments).all(|i| {
            let all = s.dev[p][spot(anchor, i)].all();
            all.iter().all(|block| *block == all[0])
        })
    }

    fn anchor_inv(&self, s: &State, p: usize) -> bool {
        let image = self.image_of(s, p, self.anchor(s, p));
        let done = last_change(s, p, s.redo_start);
        versions(s, p, LOG_BLOCK).all(|log| Self::lsn_with(&image, log) >= done)
    }

    /// What the log block may hold: changes of the anchor's image, the newest last, or older ones.
    fn delta_inv(&self, s: &State, p: usize) -> bool {
        let image = self.image_of(s, p, self.anchor(s, p));
        let newest = s.dev[p][LOG_BLOCK].newest().as_read();
        versions(s, p, LOG_BLOCK).all(|log| match fits(&image, log) {
            true => fits(&image, newest) && log.lsn() <= newest.lsn(),
            false => log.lsn() == 0 || log.lsn() < image.lsn,
        })
    }

    fn written_inv(&self, s: &State, p: usize) -> bool {
        if s.valid[p].is != Is::Written {
            return true;
        }
        let slot = s.valid[p].slot;
        let image = self.image_of(s, p, usize::from(slot));
        let before = self.image_of(s, p, usize::from(1 - slot));
        let spots = |set: Set| (0..SPOTS).filter(move |i| set >> i & 1 == 1);
        image.lsn > before.lsn
            && versions(s, p, LOG_BLOCK).all(|log| log.lsn() < image.lsn)
            && spots(self.spots_of(slot)).all(|i| s.dev[p][i].newest() != Block::TRIMMED)
    }

    fn logged_inv(&self, s: &State, p: usize) -> bool {
        let image = self.image_of(s, p, self.shown(s, p));
        let logged = fits(&image, s.dev[p][LOG_BLOCK].newest().as_read());
        s.valid[p].is == Is::Unknown || s.valid[p].logged == logged
    }

    fn unknown_inv(&self, s: &State, p: usize) -> bool {
        if s.valid[p].is != Is::Unknown {
            return true;
        }
        let places = &s.dev[p];
        let slot = self.shown(s, p) as u8;
        let durable = |i: usize| !places[i].is_unflushed() || s.lost[p] >> i & 1 == 1;
        (0..SPOTS).all(durable)
            && (0..left_count(places)).all(|n| self.valid_slot(&as_read(&left(places, n))) == slot)
    }

    /// A slot is trimmed as a whole.
    fn trim_inv(&self, s: &State, p: usize) -> bool {
        let place = |slot: usize, i: usize| &s.dev[p][spot(slot, i)];
        let trimmed = |slot: usize, i: usize| place(slot, i).newest() == Block::TRIMMED;
        let half = |slot: usize| {
            let segments = 0..self.segments;
            let mut now = segments.filter(|i| trimmed(slot, *i) && place(slot, *i).is_unflushed());
            now.next().is_some() && !(0..self.segments).all(|i| trimmed(slot, i))
        };
        !half(0) && !half(1)
    }

    fn slot_inv(&self, s: &State, p: usize) -> bool {
        s.valid[p].is == Is::Unknown || self.valid_slot(&Self::newest(s, p)) == s.valid[p].slot
    }

    fn lost_inv(&self, s: &State, p: usize) -> bool {
        let Known { slot, is, .. } = s.valid[p];
        let written = is == Is::Written && !s.poisoned;
        let durable = |i: usize| !s.dev[p][i].is_unflushed();
        (0..SPOTS).all(|i| s.lost[p] >> i & 1 == 0 || !durable(i))
            && (!written || s.lost[p] & self.spots_of(slot) == 0)
    }

    /// What a flush does not make durable cannot take back what reading yields.
    fn stable_inv(&self, s: &State, p: usize) -> bool {
        if s.poisoned || s.lost[p] >> LOG_BLOCK & 1 == 0 {
            return true;
        }
        let image = self.image_of(s, p, self.shown(s, p));
        let now = Self::lsn_with(&image, s.dev[p][LOG_BLOCK].newest().as_read());
        versions(s, p, LOG_BLOCK).all(|log| Self::lsn_with(&image, log) == now)
    }

    fn page_inv(&self, s: &State, p: usize) -> bool {
        let Some(page) = &s.mem[p] else { return true };
        let slot = self.shown(s, p);
        let base = self.image_of(s, p, slot);
        let stored = Self::lsn_with(&base, s.dev[p][LOG_BLOCK].newest().as_read());
        let clear = |i: &usize| page.dirty >> i & 1 == 0;
        let mut same = (0..self.segments).filter(clear);
        let image = &page.image;
        s.valid[p].is != Is::Unknown
            && (image.lsn == 0 || changed(s, p, image.lsn))
            && image.values == page_at(s, p, image.lsn)
            && image.lsn >= known_changes(s, p)
            && page.stored <= image.lsn
            && page.base == base.lsn
            && page.stored == stored
            && same.all(|i| base.values[i] == image.values[i])
    }

    fn evicted_inv(&self, s: &State, p: usize) -> bool {
        let image = self.image_of(s, p, self.shown(s, p));
        let lsn = Self::lsn_with(&image, s.dev[p][LOG_BLOCK].newest().as_read());
        s.mem[p].is_some() || lsn >= known_changes(s, p)
    }
}

/// `Fits`, of the protocol without a bug.
fn fits(image: &Image, log: Block) -> bool {
    image.lsn != 0 && log.base() == image.lsn
}

/// Whether record `n` changes page `p`.
fn changed(s: &State, p: usize, n: N) -> bool {
    n != 0 && last_change(s, p, n) == n
}

/// The changes that a page has, in memory or on the device.
fn known_changes(s: &State, p: usize) -> N {
    let upto = if s.phase.is_up() { s.log_len } else { s.redone };
    last_change(s, p, upto)
}

fn is_true_first(s: &State, p: usize, block: Block) -> bool {
    let values = std::array::from_fn(|i| block.value(i));
    let lsn = block.lsn();
    (lsn == 0 || lsn <= s.durable && changed(s, p, lsn)) && values == page_at(s, p, lsn)
}

fn is_true_delta(s: &State, p: usize, block: Block) -> bool {
    let (base, lsn) = (block.base(), block.lsn());
    if block == Block::default() {
        return true;
    }
    if base >= lsn || lsn > s.durable || !changed(s, p, base) || !changed(s, p, lsn) {
        return false;
    }
    let (before, after) = (page_at(s, p, base), page_at(s, p, lsn));
    (0..SEGMENTS).all(|i| match block.dirty() >> i & 1 == 1 {
        true => block.value(i) == after[i],
        false => before[i] == after[i],
    })
}

fn positions_inv(_: &PageShadowing, s: &State) -> bool {
    let ordered = s.redo_start <= s.durable && s.durable <= s.log_len;
    let redo = match s.phase {
        Phase::Up => s.redone == 0,
        _ => s.redo_start <= s.redone && s.redone <= s.log_len && s.durable == s.log_len,
    };
    ordered && redo
}

/// A client waits for its own record, and none does in recovery.
fn call_inv(_: &PageShadowing, s: &State) -> bool {
    let own = |call: &Call| match *call {
        Call::Write { key, value, lsn } if lsn > 0 => {
            lsn <= s.log_len && s.log[usize::from(lsn) - 1] == Record { key, value }
        }
        _ => true,
    };
    let idle = |call: &Call| *call == Call::Idle;
    s.call.iter().all(own) && (s.phase.is_up() || s.call.iter().all(idle))
}

impl Inductive for PageShadowing {
    type Way = Way;

    const CONJUNCTS: &'static [Conjunct<Self>] = &[
        Conjunct::whole("PositionsInv", &[POSITIONS], positions_inv),
        Conjunct::each("TruthInv", &[BLOCK, LAST_OF_SLOT, DELTA], Self::truth_inv),
        Conjunct::each("FirstsInv", &[BLOCK, LAST_OF_SLOT], Self::firsts_inv),
        Conjunct::each("WholeInv", &[LAST_OF_SLOT, DELTA], Self::whole_inv),
        Conjunct::each("SingleInv", &[DELTA], Self::single_inv),
        Conjunct::each("AnchorInv", &[DELTA], Self::anchor_inv),
        Conjunct::each("DeltaInv", &[DELTA], Self::delta_inv),
        Conjunct::each("SlotInv", &[DELTA], Self::slot_inv),
        Conjunct::each("TrimInv", &[DELTA], Self::trim_inv),
        Conjunct::each("WrittenInv", &[DELTA], Self::written_inv),
        Conjunct::each("LoggedInv", &[DELTA], Self::logged_inv),
        Conjunct::each("LostInv", &[LOST], Self::lost_inv),
        Conjunct::each("UnknownInv", &[LOST], Self::unknown_inv),
        Conjunct::each("StableInv", &[LOST], Self::stable_inv),
        Conjunct::each("PageInv", &[MEMORY], Self::page_inv),
        Conjunct::each("EvictedInv", &[MEMORY], Self::evicted_inv),
        Conjunct::whole("CallInv", &[CALL], call_inv),
        Conjunct::whole("AckInv", &[], ack_inv),
    ];

    fn parts(&self) -> usize {
        self.pages.len()
    }

    fn stages(&self) -> Vec<GrowthStage> {
        let one = GrowthStage::new;
        let mut all = vec![one(LIFE, 0, 0, 1)];
        all.extend((0..usize::from(self.values)).map(|n| one(RECORD, 0, n, 1)));
        all.push(one(POSITIONS, 0, 0, 1));
        for p in self.pages() {
            all.push(one(KNOWN, p, 0, 1));
            all.extend(
                self.places_of()
                    .map(|spot| one(self.kind_of(spot), p, spot, 1)),
            );
            all.push(one(LOST, p, 0, 2));
            all.push(one(MEMORY, p, 0, 4));
        }
        all.extend((0..self.clients.len()).map(|c| one(CALL, 0, c, 3)));
        all
    }

    fn blank(&self) -> State {
        State::initial()
    }

    fn ways(&self, s: &State, stage: GrowthStage, plan: &Plan) -> Vec<Way> {
        let p = stage.part;
        let lsns: Vec<N> = (0..=s.log_len).collect();
        match stage.kind {
            LIFE => product(&[Phase::Up, Phase::Cut, Phase::Killed], &[false, true])
                .into_iter()
                .map(|(phase, poisoned)| Way::Life(phase, poisoned))
                .collect(),
            RECORD => {
                // The log has no gap.
                let more = usize::from(s.log_len) == stage.number;
                let values: Vec<N> = (0..=self.values).collect();
                let records = product(&self.keys(), &values).into_iter();
                let records = records.map(|(key, value)| Way::Record(Record { key, value }));
                [Way::End]
                    .into_iter()
                    .chain(records.filter(|_| more))
                    .collect()
            }
            POSITIONS => product(&lsns, &product(&lsns, &lsns))
                .into_iter()
                .map(|(durable, (redo, redone))| Way::Positions(durable, redo, redone))
                .collect(),
            KNOWN => {
                let is = [Is::Unknown, Is::Written, Is::Durable, Is::Alone];
                let all = product(&[0, 1], &product(&is, &[false, true])).into_iter();
                all.map(|(slot, (is, logged))| Way::Known(Known { slot, is, logged }))
                    .collect()
            }
            BLOCK | LAST_OF_SLOT | DELTA => {
                let blocks = self.blocks(s, p, stage.number, plan);
                places(&blocks, plan.versions)
                    .into_iter()
                    .map(Way::Place)
                    .collect()
            }
            LOST => {
                // LostInv forbids others.
                let any = plan.is_without("LostInv");
                let may = |i: &usize| any || s.dev[p][*i].is_unflushed();
                let all = self.places_of().filter(may).fold(0, |set, i| set | 1 << i);
                let lost = (0..=all).filter(|lost: &Set| lost & !all == 0);
                lost.map(Way::Lost).collect()
            }
            MEMORY => {
                let pages = self.in_memory(s, p, plan).into_iter().map(Some);
                [None].into_iter().chain(pages).map(Way::Memory).collect()
            }
            _ => self.typed_calls(s).into_iter().map(Way::Call).collect(),
        }
    }

    fn grow(&self, s: &mut State, stage: GrowthStage, way: &Way) {
        let (p, n) = (stage.part, stage.number);
        match *way {
            Way::Life(phase, poisoned) => (s.phase, s.poisoned) = (phase, poisoned),
            Way::End if usize::from(s.log_len) > n => s.cut_log(n as N),
            Way::End => {}
            Way::Record(record) => {
                s.log[n] = record;
                s.log_len = n as N + 1;
            }
            Way::Positions(durable, redo_start, redone) => {
                (s.durable, s.redo_start, s.redone) = (durable, redo_start, redone);
            }
            Way::Known(known) => s.valid[p] = known,
            Way::Place(place) => s.dev[p][n] = place,
            Way::Lost(lost) => s.lost[p] = lost,
            Way::Memory(page) => s.mem[p] = page,
            Way::Call(call) => s.call[n] = call,
        }
    }
}

/// What a stage gives to its variables.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant)] // Few live at once, and a box would cost each of them more.
pub enum Way {
    /// Whether the store is up, and whether a flush has failed.
    Life(Phase, bool),
    /// The log ends.
    End,
    /// The next record of the log.
    Record(Record),
    /// The ends of what is durable, of what needs no redo, and of what is redone.
    Positions(N, N, N),
    /// What is known of the page's slots.
    Known(Known),
    /// The versions of a block.
    Place(Place),
    /// The blocks that a failed flush forgot.
    Lost(Set),
    /// The page in memory.
    Memory(Option<Page>),
    /// A client's call.
    Call(Call),
}

fn product<A: Copy, B: Copy>(some: &[A], others: &[B]) -> Vec<(A, B)> {
    let pairs = some.iter().flat_map(|a| others.iter().map(|b| (*a, *b)));
    pairs.collect()
}

/// All places with up to `most` versions.
fn places(blocks: &[Block], most: usize) -> Vec<Place> {
    let mut last: Vec<Place> = blocks.iter().map(|block| Place::durably(*block)).collect();
    let mut all = last.clone();
    for _ in 1..most {
        last = product(&last, blocks)
            .into_iter()
            .map(|(mut place, block)| {
                place.push(block);
                place
            })
            .collect();
        all.extend(&last);
    }
    all
}

impl PageShadowing {
    fn places_of(&self) -> impl Iterator<Item = usize> + use<> {
        let segments = self.segments;
        let slots = [0, 1].into_iter();
        let slots = slots.flat_map(move |slot| (0..segments).map(move |i| spot(slot, i)));
        slots.chain([LOG_BLOCK])
    }

    fn kind_of(&self, at: usize) -> u8 {
        match at {
            LOG_BLOCK => DELTA,
            _ if at % SEGMENTS + 1 == self.segments => LAST_OF_SLOT,
            _ => BLOCK,
        }
    }

    fn keys(&self) -> Vec<u8> {
        let keys = self
            .pages()
            .flat_map(|p| (0..self.segments).map(move |i| key(p, i)));
        keys.collect()
    }

    fn all_values(&self) -> Vec<Values> {
        (0..self.segments).fold(vec![[ABSENT; SEGMENTS]], |all, i| {
            let contents = 0..=self.values;
            let with = |values: Values| {
                contents.clone().map(move |content| {
                    let mut values = values;
                    values[i] = content;
                    values
                })
            };
            all.into_iter().flat_map(with).collect()
        })
    }

    /// The blocks that a spot may have: those that tell the truth, or all.
    fn blocks(&self, s: &State, p: usize, at: usize, plan: &Plan) -> Vec<Block> {
        let lsns: Vec<N> = (0..=s.log_len).collect();
        let mut all = vec![Block::TRIMMED];
        let any = plan.is_without("TruthInv");
        if at == LOG_BLOCK {
            let sets: Vec<Set> = (0..1 << self.segments).collect();
            let named = product(&lsns, &product(&lsns, &sets)).into_iter();
            for (base, (lsn, dirty)) in named.filter(|(base, (lsn, _))| any || base <= lsn) {
                let values = if any {
                    self.all_values()
                } else {
                    vec![page_at(s, p, lsn)]
                };
                all.extend(
                    values
                        .iter()
                        .map(|values| Block::delta(lsn, base, dirty, values)),
                );
            }
            all.retain(|block| any || is_true_delta(s, p, block.as_read()));
        } else if at == spot(0, 0) || at == spot(1, 0) {
            for lsn in lsns {
                let values = if any {
                    self.all_values()
                } else {
                    vec![page_at(s, p, lsn)]
                };
                all.extend(
                    values
                        .into_iter()
                        .map(|values| Block::first(&Image { lsn, values })),
                );
            }
            all.retain(|block| any || is_true_first(s, p, block.as_read()));
        } else {
            all.extend((0..=self.values).map(Block::segment));
        }
        all
    }

    /// Pages in memory: those with the segments of some LSN, or all.
    fn in_memory(&self, s: &State, p: usize, plan: &Plan) -> Vec<Page> {
        let lsns: Vec<N> = (0..=s.log_len).collect();
        let sets: Vec<Set> = (0..1 << self.segments).collect();
        let any = plan.is_without("PageInv");
        let mut all = Vec::new();
        for (lsn, dirty) in product(&lsns, &sets) {
            let values = if any {
                self.all_values()
            } else {
                vec![page_at(s, p, lsn)]
            };
            for (values, (base, stored)) in product(&values, &product(&lsns, &lsns)) {
                let image = Image { lsn, values };
                all.push(Page {
                    image,
                    dirty,
                    base,
                    stored,
                });
            }
        }
        all
    }

    fn typed_calls(&self, s: &State) -> Vec<Call> {
        let contents: Vec<N> = (0..=self.values).collect();
        let mut all = vec![Call::Idle, Call::Refused];
        for key in self.keys() {
            all.push(Call::Get { key, got: PENDING });
            all.extend(contents.iter().map(|got| Call::Get { key, got: *got }));
            for (value, lsn) in product(&contents, &(0..=s.log_len).collect::<Vec<N>>()) {
                all.push(Call::Write { key, value, lsn });
            }
        }
        all
    }
}
