//! The judge: takes, for each recorded event, the steps of the mirror that correspond to it.

use std::collections::BTreeMap;

use treering_engine::device::{MemPm, PmImage};
use treering_engine::pm_events::{Event, NodeImage, NodeSlot, SlotWords};

use super::tla;
use super::words::LEAF;
use crate::conformance::behaviour::{Constants, InTla as _, KEPT};
use crate::conformance::led::{Notes, Recorded, holds, told};
use crate::conformance::persistent::words::{Layout, Raw, Use, Words};
use crate::conformance::persistent::{self, Heard, episode};
use crate::conformance::refused::{Accepted, Tally, same};
use crate::conformance::situations::Situations;
use crate::mirror::wide::leaf_buffering::look::Is;
use crate::mirror::wide::leaf_buffering::unbounded::{NOTHING, RECOVERY};
use crate::mirror::wide::leaf_buffering::{Action, Call, Kv, LeafBuffering, Phase, State};
use crate::value::state_text;
use crate::{Mirror, Value};

/// A value, an epoch.
pub(super) type N = u16;

/// In an indirect slot, the word of a value that does not exist.
const ABSENT: u64 = u64::MAX;

/// An event that the mirror does not allow.
pub type Refusal = persistent::Refusal<Action>;

/// What the engine stores for the words of a step.
pub(super) type Raws = Vec<(Is, Raw)>;

/// Judges one recording.
#[derive(Clone)]
pub struct Judge {
    pub(super) mirror: LeafBuffering,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    pub(super) words: Words<Is>,
    pub(super) layout: Layout,
    pub(super) uses: Vec<Use>,
    /// The spec's numbers of leaves.
    pub(super) leaves: BTreeMap<u64, u8>,
    pub(super) clients: u8,
    /// Keys, and slots of a buffer node.
    pub(super) sizes: (usize, usize),
    /// Whether the tree has no log, so that timestamps mean nothing.
    pub(super) unstamped: bool,
    /// The spec's number of each value.
    values: BTreeMap<u64, N>,
    /// The time at which the store was opened, and the epoch that it began with.
    pub(super) born: (u64, N),
    /// For each writer: the slots that it has filled, and what the old leaf of a split loses.
    pub(super) filled: BTreeMap<usize, (u64, u64)>,
    /// For each writer: the words of the leaf that it splits off.
    pub(super) new: BTreeMap<usize, Vec<u64>>,
    /// The chunk and place of a copy that is not durable yet.
    pub(super) copied: Option<(u8, usize)>,
    /// The values that an outstanding get may have read.
    readable: BTreeMap<u8, Vec<N>>,
    pub(super) notes: Notes<LeafBuffering>,
}

impl Judge {
    /// A judge for a store that was just opened for the first time, with this on its medium.
    ///
    /// # Panics
    /// If the mirror has no room for as many clients or keys.
    #[must_use]
    pub fn new(clients: u8, keys: u8, batch: usize, chunks: u8, image: &PmImage) -> Judge {
        let layout = Layout::new(chunks, LEAF);
        // A real client and the pump each have two workers that merge and flush for them.
        let workers = usize::from(clients) + 2 * (usize::from(clients) + 1);
        let mut judge = Judge {
            mirror: LeafBuffering::unbounded(workers, keys.into(), batch),
            state: Box::new(LeafBuffering::first()),
            words: Words::new(),
            uses: layout.uses(image),
            leaves: BTreeMap::from([(layout.first_leaf(), 1)]),
            layout,
            clients,
            sizes: (keys.into(), batch),
            unstamped: batch == 0,
            values: BTreeMap::new(),
            born: (0, 1),
            filled: BTreeMap::new(),
            new: BTreeMap::new(),
            copied: None,
            readable: BTreeMap::new(),
            notes: Notes::default(),
        };
        for is in Is::all() {
            if let Some(raw) = judge.on(image, is) {
                judge.words.set(is, raw);
            }
        }
        judge.born.0 = judge.words.last(Is::First)[0] >> 16;
        judge
    }

    /// Why an event is refused.
    fn refuse_in(
        &self,
        client: u8,
        heard: &Heard,
        (why, before): (String, &State),
    ) -> Box<Refusal> {
        let mut variables = self.mirror.variables(before);
        // Hundreds of words.
        variables.retain(|(name, _)| *name != "pm");
        let calls = |action: &Action| matches!(action, Action::CallGet(..) | Action::CallWrite(..));
        let mut enabled = self.mirror.steps(before);
        enabled.retain(|action| !calls(action));
        let number = self.notes.tally.heard + 1;
        let told = told(number, &why, heard);
        let now = (&self.mirror, &self.state);
        let behaviour = self.notes.finding(now, self.constants_of_spec(), &told);
        Box::new(Refusal {
            number,
            client: Some(client),
            heard: heard.clone(),
            why,
            state: state_text(&variables),
            enabled,
            behaviour,
        })
    }

    fn judge(&mut self, c: u8, heard: &Heard) -> Accepted {
        match heard {
            Heard::Opens(_) => Ok(()),
            Heard::Get(key) => {
                let before = self.state.clone();
                let free = self.mirror.calls_get(&mut self.state, c.into(), *key);
                self.readable.remove(&c);
                self.took(Action::CallGet(c, *key), (free, &before), &[])
            }
            Heard::Got(value) => self.answered(c, *value),
            Heard::Write(key, value) => {
                let before = self.state.clone();
                let delete = value.is_none();
                let called = self
                    .mirror
                    .calls_write(&mut self.state, c.into(), *key, delete);
                let n = called.ok_or("the client has a call outstanding")?;
                self.values.extend(value.map(|value| (value, n)));
                self.took(Action::CallWrite(c, *key), (true, &before), &[])
            }
            Heard::Done => match self.state.call_of(c.into()) {
                Call::Idle => Ok(()),
                call => Err(format!("it is acknowledged, but is {call:?}")),
            },
            Heard::Failed(why) => Err(format!("a call should not fail here: {why}")),
            Heard::Tree(event) => self.tree(c, event),
            Heard::Crashed(found) => self.crashed(&found.0),
            Heard::Killed(found) => self.killed(&found.0),
        }
    }

    /// What volatile memory had is gone.
    pub(super) fn end(&mut self) {
        self.filled.clear();
        self.copied = None;
        self.new.clear();
        self.readable.clear();
    }

    fn tree(&mut self, c: u8, event: &Event) -> Accepted {
        match event {
            Event::Takes { chunk, word, log } => self.takes(*chunk, *word, *log),
            Event::Erases { chunk, place } => {
                let is = Is::Time(chunk_number(*chunk), *place as usize);
                self.words.also(is, [0, 0]);
                self.notes.tally.took("(Erased)");
                Ok(())
            }
            Event::Appends {
                chunk,
                place,
                words,
                delete,
                epoch,
                copy,
            } => {
                same("the epoch bit", *epoch, self.bit())?;
                let end = (chunk_number(*chunk), *place as usize);
                self.appends((c, *copy), end, (*words, *delete))
            }
            Event::Buffered { leaf, node } => {
                self.take(Action::FenceLog(c), &[])?;
                self.same_node(*leaf, node)?;
                self.take(Action::Finish(c), &[])
            }
            Event::Flushes { leaf, trigger } => self.flushes(c, *leaf, *trigger),
            Event::StoresRecords { leaf, slots } => self.stores_records(*leaf, slots),
            Event::StoresHeader {
                leaf,
                header,
                stamp,
            } => self.stores_header(*leaf, *header, *stamp),
            Event::Flushed { leaf, now, node } => self.flushed(*leaf, *now, node),
            Event::StoresNewLeaf {
                leaf,
                new,
                fence,
                words,
                slots,
            } => self.stores_new_leaf((*leaf, *new), fence, (words, slots)),
            Event::Linked { leaf, new, node } => self.linked(*leaf, *new, node),
            Event::LatchesLeft { leaf, left } => self.latches_left(c, *leaf, *left),
            Event::LetsGo { .. } => {
                let w = self.worker(c, 0);
                self.mirror.lets_go(&mut self.state, w);
                self.notes.tally.took("(LetsGo)");
                Ok(())
            }
            Event::MovesRecords {
                left, slots, stamp, ..
            } => self.moves_records(*left, slots, *stamp),
            Event::Merged { leaf, left, node } => self.merged(*leaf, *left, node),
            Event::Flips { epoch } => {
                let before = self.state.clone();
                let free = self.mirror.flips_epoch(&mut self.state);
                self.took(Action::FlipEpoch, (free, &before), &[])?;
                same("the epoch bit", *epoch, self.bit())
            }
            Event::Visited { leaf, node } => {
                let Some(l) = self.leaves.get(leaf).copied() else {
                    // It was merged away since cleaning looked for leaves.
                    return same("what is unflushed", &node.unflushed, &Vec::new());
                };
                if self.state.is_to_scan(l) {
                    self.take(Action::ScanBuffer(l), &[])?;
                }
                self.fence_copies()?;
                self.same_node(*leaf, node)
            }
            Event::FloorRises { word } => self.floor_rises(*word),
            Event::FloorRaised => self.floor_raised(),
            Event::Recovers { leaves } => self.recovers(leaves),
            Event::Replays { leaf, keys } => self.replays(*leaf, keys),
            Event::Replayed { .. } => self.take(Action::FenceHeader(RECOVERY as u8), &[]),
            Event::Lodge(_) => Err("it is of another tree".into()),
        }
    }

    /// The epoch bit that the engine should have.
    pub(super) fn bit(&self) -> u8 {
        (self.state.global_epoch().wrapping_sub(self.born.1) % 2) as u8
    }

    fn floor_rises(&mut self, word: u64) -> Accepted {
        let raws = [(Is::First, [word, 0])];
        if self.state.phase() != Phase::Up {
            return self.take(Action::DropLogs, &raws);
        }
        let before = self.state.clone();
        // All copies were fenced when they were made.
        self.mirror.copies_are_durable(&mut self.state);
        let free = self.mirror.try_take(&mut self.state, Action::Reclaim);
        self.took(Action::Reclaim, (free, &before), &raws)
    }

    fn floor_raised(&mut self) -> Accepted {
        let opens = self.state.phase() != Phase::Up;
        self.take(
            if opens {
                Action::Open
            } else {
                Action::FreeLogs
            },
            &[],
        )?;
        self.words.fenced(Is::First);
        if opens {
            self.born = (
                self.words.last(Is::First)[0] >> 16,
                self.state.global_epoch(),
            );
        }
        Ok(())
    }

    /// A client has its answer: the value that the key has now, or had since the call.
    fn answered(&mut self, c: u8, value: Option<u64>) -> Accepted {
        let value = match value {
            Some(raw) => self.value(raw)?,
            None => NOTHING,
        };
        let now = self.mirror.would_read(&self.state, c.into());
        let readable = self.readable.remove(&c).unwrap_or_default();
        if now == Some(value) {
            self.take(Action::ReadKey(c), &[])?;
        } else if readable.contains(&value) {
            self.mirror.has_read(&mut self.state, c.into(), value);
            self.notes.tally.took("(HasRead)");
        } else {
            let why = format!(
                "the answer {value}: the key has {now:?} now, and had {readable:?} since the call"
            );
            return self.notes.claim(Err(why), || {
                let value = tla::content(value);
                format!("ReadKey(c{0}) /\\ call'[c{0}].got = {value}", c + 1)
            });
        }
        self.take(Action::AnswerGet(c), &[])
    }

    fn note_readable(&mut self) {
        for c in 0..self.clients {
            if let Some(value) = self.mirror.would_read(&self.state, c.into()) {
                let known = self.readable.entry(c).or_default();
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
    }

    fn constants_of_spec(&self) -> Constants {
        let variables = self.mirror.variables(&self.state);
        let asked = variables.into_iter().find_map(|(name, n)| match n {
            Value::Int(n) if name == "asked" => usize::try_from(n).ok(),
            _ => None,
        });
        // The workers of a client and of the pump are writers of the spec, too: see `worker`.
        let writers = self.worker(self.clients, 2);
        tla::constants(writers, self.sizes, asked.unwrap_or_default())
    }

    /// Takes a step.
    pub(super) fn take(&mut self, action: Action, raws: &[(Is, Raw)]) -> Accepted {
        let before = self.state.clone();
        let free = self.mirror.try_take(&mut self.state, action);
        self.took(action, (free, &before), raws)
    }

    /// Notes a step that was taken, and what the engine stores in it.
    #[allow(clippy::borrowed_box)] // States are large, and are kept in boxes.
    pub(super) fn took(
        &mut self,
        action: Action,
        (free, before): (bool, &Box<State>),
        raws: &[(Is, Raw)],
    ) -> Accepted {
        if !free {
            self.state.clone_from(before);
            let why = format!("{action:?} is not enabled");
            return self
                .notes
                .claim(Err(why), || LeafBuffering::formula(&action));
        }
        let mirror = &self.mirror;
        let met = |before: &State| mirror.situations(before, action).into_iter().collect();
        match tla::is_exact(&action) {
            true => {
                self.notes.took(&action, (Some(before), &self.state), met);
            }
            false => self.notes.counted(&action, before, met),
        }
        let raw = |is| raws.iter().find(|(of, _)| *of == is).map(|(_, raw)| *raw);
        self.words.follow((before, &self.state), raw)
    }

    /// The worker of a thread, which merges and flushes for it.
    pub(super) fn worker(&self, c: u8, n: usize) -> usize {
        usize::from(self.clients) + 2 * usize::from(c.min(self.clients)) + n
    }

    /// The spec's number of a leaf.
    pub(super) fn leaf(&self, leaf: u64) -> Result<u8, String> {
        let known = self.leaves.get(&leaf).copied();
        known.ok_or_else(|| format!("leaf {leaf} is not in the list"))
    }

    /// The spec's number of a key.
    pub(super) fn key(&self, word: u64) -> Result<u8, String> {
        u8::try_from(word).map_err(|_| format!("no client uses the key {word:#x}"))
    }

    /// The spec's number of a value.
    pub(super) fn value(&self, word: u64) -> Result<N, String> {
        let known = self.values.get(&word).copied();
        known.ok_or_else(|| format!("no client has written the value {word:#x}"))
    }

    pub(super) fn records(&self, slots: &[SlotWords]) -> Result<Vec<(usize, Kv)>, String> {
        let record = |(slot, [key, value]): &SlotWords| {
            let key = self.key(*key)?;
            let value = if *value == ABSENT {
                NOTHING
            } else {
                self.value(*value)?
            };
            Ok((*slot, Kv { key, value }))
        };
        slots.iter().map(record).collect()
    }

    pub(super) fn writer(&self, leaf: u8) -> Result<usize, String> {
        let writer = self.state.writer_of(leaf);
        writer.ok_or_else(|| format!("nobody writes to leaf {leaf}"))
    }

    /// The buffer node: what is unflushed is the same; what is cached equals the leaf's.
    pub(super) fn same_node(&mut self, leaf: u64, node: &NodeImage) -> Accepted {
        let l = self.leaf(leaf)?;
        let told = |slot: &NodeSlot| {
            let value = if slot.delete {
                NOTHING
            } else {
                self.value(slot.value)?
            };
            Ok::<_, String>((self.key(slot.key)?, value, slot.epoch))
        };
        let unflushed = node
            .unflushed
            .iter()
            .map(told)
            .collect::<Result<Vec<_>, _>>()?;
        let cached = node
            .cached
            .iter()
            .map(told)
            .collect::<Result<Vec<_>, _>>()?;
        let [waiting, _] = self.state.node(l);
        let base = self.born.1;
        let bit = |bit: N| ((bit + base) % 2) as u8;
        let waiting: Vec<_> = waiting
            .into_iter()
            .map(|(k, v, b)| (k, v, bit(b)))
            .collect();
        let is = same("what is unflushed", &unflushed, &waiting);
        self.notes.claim(is, || {
            let slots = unflushed.iter().enumerate().map(|(i, (k, v, b))| {
                let (v, b) = (tla::content(*v), bit((*b).into()));
                format!(
                    "slots[{}] = [key |-> {k}, value |-> {v}, bit |-> {b}]",
                    i + 1
                )
            });
            let count = format!("buffer[{l}].count = {}", unflushed.len());
            let all: Vec<String> = std::iter::once(count).chain(slots).collect();
            holds(&format!(
                "LET slots == buffer[{l}].slots IN {}",
                all.join(" /\\ ")
            ))
        })?;
        let cached: Vec<_> = cached.into_iter().map(|(k, v, _)| (k, v)).collect();
        if !self.mirror.caches(&mut self.state, l, &cached) {
            let why = format!("the cached {cached:?} are not what leaf {l} has");
            return self.notes.claim(Err(why), || {
                let all = cached.iter().map(|(k, v)| {
                    let v = tla::content(*v);
                    let leaf = format!("InLeaf(Visible, {l}, {k}) = {v}");
                    format!("{leaf} /\\ {k} \\notin DOMAIN UnflushedKvs(buffer[{l}])")
                });
                let all: Vec<String> = all.collect();
                holds(&all.join(" /\\ "))
            });
        }
        Ok(())
    }
}

impl episode::Judge for Judge {
    type Action = Action;

    fn hear(&mut self, client: u8, heard: &Heard) -> Result<(), Box<Refusal>> {
        let before = self.state.clone();
        self.notes.hears();
        let judged =
            self.judge(client, heard)
                .and_then(|()| match self.mirror.broken(&self.state) {
                    None => Ok(()),
                    Some(name) => self
                        .notes
                        .claim(Err(format!("{name} does not hold after it")), || {
                            holds(name)
                        }),
                });
        if let Err(why) = judged {
            return Err(self.refuse_in(client, heard, (why, &before)));
        }
        self.note_readable();
        self.notes.tally.heard += 1;
        Ok(())
    }

    fn check(&self, device: &MemPm) -> Accepted {
        self.notes.claims_nothing();
        self.check_medium(device)
    }

    fn refuse(&self, client: u8, heard: &Heard, why: String) -> Box<Refusal> {
        self.refuse_in(client, heard, (why, &self.state))
    }

    fn may_fail_after_kill(&self, device: &MemPm) -> bool {
        !self.doubts_log(device)
    }

    fn learn(&mut self, other: &Judge) {
        self.notes.learn(&other.notes);
    }

    fn tally(&self) -> &Tally {
        &self.notes.tally
    }

    fn recorded(&self) -> Option<Recorded> {
        self.notes.recording(&self.mirror, self.constants_of_spec())
    }

    fn note_situations(&mut self) {
        self.notes.begin(KEPT);
    }

    fn situations(&self) -> Situations {
        self.notes.situations()
    }
}

/// Slots of a leaf.
pub(super) const fn slots_of_leaf() -> usize {
    14
}

/// The spec's number of a chunk.
pub(super) fn chunk_number(chunk: u32) -> u8 {
    chunk as u8 + 1
}

/// The words of a leaf.
pub(super) fn of_leaf(leaf: u8) -> impl Iterator<Item = Is> {
    let slots = (0..slots_of_leaf()).map(move |slot| Is::Slot(leaf, slot));
    [Is::Header(leaf), Is::Stamp(leaf)].into_iter().chain(slots)
}
