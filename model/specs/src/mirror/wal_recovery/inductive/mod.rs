//! The inductive invariant (`IndWalRecovery.tla`), and typed states to check it in.
//!
//! ```text
//! conjuncts.rs  the conjuncts
//! ways.rs       what a stage gives to its variables
//! ```

mod conjuncts;
mod ways;

use super::WalRecovery;
use super::room::{N, PLACES};
use super::state::State;
use crate::inductive::{Conjunct, GrowthStage, Inductive, Plan};
use ways::Way;

/// The kinds of stages, in their order.
const LIFE: u8 = 0;
const POSITIONS: u8 = 1;
const RECORDS: u8 = 2;
const BLOCKS: u8 = 3;
const LAST_BLOCK: u8 = 4;
const SUPER: u8 = 5;
const DEVICE: u8 = 6;
const BASE: u8 = 7;
const MEMORY: u8 = 8;
const CALL: u8 = 9;
const LOST: u8 = 10;

type Mirror = WalRecovery;

impl Inductive for WalRecovery {
    type Way = Way;

    const CONJUNCTS: &'static [Conjunct<Self>] = &[
        Conjunct::whole("TypeInv", &[], Mirror::type_inv),
        Conjunct::whole("VerdictInv", &[], Mirror::verdict_inv),
        Conjunct::whole("LostInv", &[LOST], Mirror::lost_inv),
        Conjunct::whole("ImagesInv", &[], Mirror::images_inv),
        Conjunct::whole("RedoStartInv", &[], Mirror::redo_start_inv),
        Conjunct::whole("LogKeptInv", &[SUPER], Mirror::log_kept_inv),
        Conjunct::whole("DirtiedInv", &[], Mirror::dirtied_inv),
        Conjunct::whole("CleanInv", &[MEMORY], Mirror::clean_inv),
        Conjunct::whole("RoomInv", &[POSITIONS], Mirror::room_inv),
        Conjunct::whole("BufferInv", &[LAST_BLOCK], Mirror::buffer_inv),
        Conjunct::whole("TruthInv", &[LAST_BLOCK], Mirror::truth_inv),
        Conjunct::whole("DurableInv", &[LAST_BLOCK], Mirror::durable_inv),
        Conjunct::whole("FlightInv", &[LAST_BLOCK], Mirror::flight_inv),
        Conjunct::whole("WalRuleInv", &[], Mirror::wal_rule_inv),
        Conjunct::whole("SuperInv", &[SUPER], Mirror::super_inv),
        Conjunct::whole("BaseInv", &[], Mirror::base_inv),
        Conjunct::whole("CallInv", &[CALL], Mirror::call_inv),
        Conjunct::whole("LatchInv", &[], Mirror::latch_inv),
        Conjunct::whole("AckInv", &[], Mirror::ack_inv),
        Conjunct::whole("MemoryInv", &[], Mirror::memory_inv),
        Conjunct::whole("MemoryCompleteInv", &[], Mirror::memory_complete_inv),
        Conjunct::whole("CheckpointInv", &[], Mirror::checkpoint_inv),
        Conjunct::whole("RestingInv", &[CALL], Mirror::resting_inv),
        Conjunct::whole("DownInv", &[], Mirror::down_inv),
        Conjunct::whole("RedoInv", &[], Mirror::redo_inv),
        Conjunct::whole("OpeningInv", &[], Mirror::opening_inv),
        Conjunct::whole("FindsAllInv", &[BASE], Mirror::finds_all_inv),
    ];

    /// The parts are the keys.
    fn parts(&self) -> usize {
        self.keys.len()
    }

    fn stages(&self) -> Vec<GrowthStage> {
        let one = GrowthStage::new;
        let mut all = vec![
            one(LIFE, 0, 0, 1),
            one(POSITIONS, 0, 0, 1),
            one(RECORDS, 0, 0, 1),
        ];
        for place in 0..PLACES {
            let kind = if place + 1 == PLACES {
                LAST_BLOCK
            } else {
                BLOCKS
            };
            all.push(one(kind, 0, place, 1));
        }
        all.push(one(SUPER, 0, 0, 2));
        all.extend((0..self.keys.len()).map(|k| one(DEVICE, k, 0, 1)));
        all.push(one(BASE, 0, 0, 1));
        all.extend((0..self.clients.len()).map(|c| one(CALL, 0, c, 1)));
        all.extend((0..self.keys.len()).map(|k| one(MEMORY, k, 0, 2)));
        all.push(one(LOST, 0, 0, 1));
        all
    }

    fn blank(&self) -> State {
        State::initial()
    }

    fn ways(&self, s: &State, stage: GrowthStage, plan: &Plan) -> Vec<Way> {
        match stage.kind {
            LIFE => self.lives(plan),
            POSITIONS => self.positions(s, plan),
            RECORDS => self.buffers(s),
            BLOCKS | LAST_BLOCK => self.blocks_at(s, stage.number, plan),
            SUPER => self.supers(s, plan),
            DEVICE => self.device_images(s, stage.part, plan),
            BASE => self.bases(s, plan),
            MEMORY => self.memories(s, stage.part, plan),
            CALL => self.typed_calls(s, stage.number, plan),
            _ => self.losses(s, plan),
        }
    }

    fn grow(&self, s: &mut State, stage: GrowthStage, way: &Way) {
        match *way {
            Way::Scalars(scalars) => s.it = scalars,
            Way::Buffer(records, len) => (s.buffer, s.it.buffer_len) = (records, len),
            Way::Block(place) => s.log_dev[stage.number] = place,
            Way::Super(scalars, place) => (s.it, s.super_dev) = (scalars, place),
            Way::Images(place) => s.page_dev[stage.part] = place,
            Way::Base(base) => s.base = base,
            Way::Memory(page, dirtied) => {
                (s.page[stage.part], s.dirtied[stage.part]) = (page, dirtied);
            }
            Way::Call(call) => s.call[stage.number] = call,
        }
    }
}

/// The greatest position that typed states have.
const fn last_position(per_block: N) -> N {
    3 * per_block
}
