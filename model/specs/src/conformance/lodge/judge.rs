//! The judge: takes, for each recorded event, the steps of the mirror that correspond to it.

use std::collections::BTreeMap;

use treering_engine::device::{MemPm, PmImage};
use treering_engine::pm_events::lodge::{LodgeEvent, LodgeNode};
use treering_engine::pm_events::{Event, SlotWords};
use treering_engine::{PmOptions, PmTreeKind};

use super::episode::{CHUNKS, Episode};
use super::tla;
use super::words::{LEAF, Logs, header_of};
use crate::Mirror;
use crate::conformance::behaviour::{InTla as _, KEPT};
use crate::conformance::led::{Notes, Recorded, holds, told};
use crate::conformance::persistent::words::{Layout, Raw, Use, Words};
use crate::conformance::persistent::{self, Heard, episode};
use crate::conformance::refused::{Accepted, Tally, same};
use crate::conformance::situations::Situations;
use crate::mirror::wide::surrogate_buffer::look::Is;
use crate::mirror::wide::surrogate_buffer::unbounded::{InSlot, NOTHING, Sizes};
use crate::mirror::wide::surrogate_buffer::{Action, Pair, State, SurrogateBuffer};
use crate::value::state_text;

/// A value, a number.
pub(super) type N = u16;

/// More slots than any node has.
pub(super) const MANY_SLOTS: usize = 200;

/// An event that the mirror does not allow.
pub type Refusal = persistent::Refusal<Action>;

/// What the engine stores for the words of a step.
pub(super) type Raws = Vec<(Is, Raw)>;

/// Judges one recording.
#[derive(Clone)]
pub struct Judge {
    pub(super) mirror: SurrogateBuffer,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    pub(super) words: Words<Is>,
    pub(super) layout: Layout,
    pub(super) logs: Logs,
    pub(super) uses: Vec<Use>,
    /// The spec's numbers of leaves.
    pub(super) leaves: BTreeMap<u64, u8>,
    pub(super) clients: u8,
    /// Keys, and the greatest numbers of leaves of a flush and of pairs of a leaf.
    pub(super) sizes: (usize, usize, usize),
    /// Slots of a node in this life.
    pub(super) slots: usize,
    /// The spec's number of each value.
    values: BTreeMap<u64, N>,
    /// The log floor, and the one that it is being raised to.
    pub(super) floor: (u64, Option<u64>),
    /// Whether the process was killed, and recovery has not made durable what it reads.
    pub(super) killed: bool,
    /// For each leaf: the slots that are filled and not valid yet.
    pub(super) filled: BTreeMap<u8, u64>,
    /// Leaves that are merged, by their left neighbours.
    pub(super) merging: BTreeMap<u8, u8>,
    /// The values that an outstanding get may have read.
    pub(super) readable: BTreeMap<u8, Vec<N>>,
    pub(super) notes: Notes<SurrogateBuffer>,
}

impl Judge {
    /// A judge for a store that was just formatted, with this on its medium.
    ///
    /// # Panics
    /// If the mirror has no room for as many clients or keys.
    #[must_use]
    pub fn new(episode: &Episode, image: &PmImage) -> Judge {
        let layout = Layout::new(CHUNKS, LEAF);
        let logs = Logs::new(CHUNKS, episode.log_entries);
        let sizes = Sizes {
            slots: episode.slots.into(),
            t_node: episode.t_node.into(),
            t_split: episode.t_split.into(),
            spaces: logs.places.len(),
            log_size: logs.entries,
        };
        let mirror = SurrogateBuffer::unbounded(episode.clients.into(), episode.keys.into(), sizes);
        let mut judge = Judge {
            state: Box::new(mirror.first()),
            mirror,
            words: Words::new(),
            uses: layout.uses(image),
            leaves: BTreeMap::from([(layout.first_leaf(), 1)]),
            layout,
            logs,
            clients: episode.clients,
            sizes: (
                episode.keys.into(),
                episode.t_node.into(),
                episode.t_split.into(),
            ),
            slots: episode.slots.into(),
            values: BTreeMap::new(),
            floor: (0, None),
            killed: false,
            filled: BTreeMap::new(),
            merging: BTreeMap::new(),
            readable: BTreeMap::new(),
            notes: Notes::default(),
        };
        judge.floor.0 = judge.floor_on(image);
        for is in Is::all() {
            if let Some(raw) = judge.on(image, is) {
                judge.words.set(is, raw);
            }
        }
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
        variables.retain(|(name, _)| !["leaf", "log", "versions"].contains(name));
        let number = self.notes.tally.heard + 1;
        let told = told(number, &why, heard);
        let now = (&self.mirror, &self.state);
        let behaviour = match tla::is_assumed(self.sizes_of_spec()) {
            true => self
                .notes
                .finding(now, tla::constants(self.sizes_of_spec()), &told),
            false => Err("the spec assumes other sizes than this episode has".into()),
        };
        Box::new(Refusal {
            number,
            client: Some(client),
            heard: heard.clone(),
            why,
            state: state_text(&variables),
            enabled: self.mirror.steps(before),
            behaviour,
        })
    }

    fn judge(&mut self, c: u8, heard: &Heard) -> Accepted {
        match heard {
            Heard::Opens(options) => self.opens(options),
            Heard::Get(key) => {
                let before = self.state.clone();
                let free = self.mirror.calls_get(&mut self.state, c.into(), *key);
                self.readable.remove(&c);
                self.took(Action::CallGet(c, *key), (free, &before), &[])
            }
            Heard::Got(value) => self.answered(c, *value),
            Heard::Write(key, value) => {
                let before = self.state.clone();
                let n = match value {
                    Some(value) => {
                        let n = self.values.len() as N + 1;
                        self.values.insert(*value, n);
                        n
                    }
                    None => NOTHING,
                };
                let free = self.mirror.calls_write(&mut self.state, c.into(), *key, n);
                self.took(Action::CallWrite(c, *key), (free, &before), &[])
            }
            Heard::Done => self.take(Action::Acknowledge(c), &[]),
            Heard::Failed(why) => Err(format!("a call should not fail here: {why}")),
            Heard::Tree(event) => self.tree(c, event),
            Heard::Crashed(found) => self.crashed(&found.0),
            Heard::Killed(found) => self.was_killed(&found.0),
        }
    }

    fn opens(&mut self, options: &PmOptions) -> Accepted {
        match options.tree {
            PmTreeKind::Lodge(lodge) => self.slots = lodge.slots,
            other => return Err(format!("it is a {}", other.name())),
        }
        Ok(())
    }

    /// What volatile memory had is gone.
    pub(super) fn end(&mut self) {
        self.filled.clear();
        self.merging.clear();
        self.readable.clear();
    }

    fn tree(&mut self, c: u8, event: &Event) -> Accepted {
        match event {
            Event::Lodge(event) => self.lodge(c, event),
            Event::Takes { chunk, log, .. } => {
                self.takes(*chunk, *log);
                Ok(())
            }
            Event::Erases { chunk, place } => self.erases(*chunk, *place),
            Event::FloorRises { word } => self.floor_rises(*word),
            Event::FloorRaised => {
                self.floor = (self.floor.1.unwrap_or(self.floor.0), None);
                Ok(())
            }
            _ => Err("it is of another tree".into()),
        }
    }

    fn lodge(&mut self, c: u8, event: &LodgeEvent) -> Accepted {
        match event {
            LodgeEvent::OpensLog { log } => self.opens_log(c, *log as usize),
            LodgeEvent::Appends {
                log,
                place,
                words,
                number,
                delete,
            } => self.appends(c, (*log as usize, *place), (*words, *number, *delete)),
            LodgeEvent::Buffered { node } => {
                self.take(Action::BufferPair(c), &[])?;
                self.same_node(node)
            }
            LodgeEvent::Flushes { leaves } => self.flushes(leaves),
            LodgeEvent::ClearsSlots { leaf, header } => self.clears_slots(*leaf, *header),
            LodgeEvent::WritesPairs { leaf, slots } => self.writes_pairs(*leaf, slots),
            LodgeEvent::SetsBitmap { leaf, header } => self.sets_bitmap(*leaf, *header),
            LodgeEvent::Flushed { leaf, node } => {
                let (_, n) = self.node_of(*leaf)?;
                self.take(Action::FinishMerge(n as u8), &[])?;
                self.same_node(node)
            }
            LodgeEvent::PreparesLeaf { leaf, new, words } => self.prepares_leaf(*leaf, *new, words),
            LodgeEvent::LinksLeaf { leaf, new } => self.links_leaf(*leaf, *new),
            LodgeEvent::SwitchesSibling { leaf, header } => {
                let (l, n) = self.node_of(*leaf)?;
                let raws = [(Is::Header(l), [*header, 0])];
                self.take(Action::SwitchSibling(n as u8), &raws)?;
                self.same_header(l, *header)
            }
            LodgeEvent::Split { leaf, node, .. } => {
                let (_, n) = self.node_of(*leaf)?;
                self.take(Action::FinishSplit(n as u8), &[])?;
                self.same_node(node)
            }
            LodgeEvent::SplitsNode { parts } => self.splits_node(parts),
            LodgeEvent::MovesPairs {
                leaf,
                left,
                slots,
                next,
            } => self.moves_pairs((*leaf, *left), slots, *next),
            LodgeEvent::LinksPast { left, header } => self.links_past(*left, *header),
            LodgeEvent::LeavesMerged { leaf, node } => self.leaves_merged(*leaf, node),
            LodgeEvent::NodesMerged { node } => self.nodes_merged(node),
            LodgeEvent::Recovers { nodes } => self.recovers(nodes),
            LodgeEvent::Replays { number, node } => self.replays(*number, node),
            LodgeEvent::Recovered => self.take(Action::FinishReplay, &[]),
        }
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

    fn sizes_of_spec(&self) -> tla::Sizes {
        let (keys, t_node, t_split) = self.sizes;
        tla::Sizes {
            clients: self.clients.into(),
            keys,
            puts: self.values.len(),
            slots: self.slots,
            logs: (self.logs.places.len(), self.logs.entries),
            most: (t_node, t_split),
        }
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
                .claim(Err(why), || SurrogateBuffer::formula(&action));
        }
        let mirror = &self.mirror;
        let met = |before: &State| mirror.situations(before, action).into_iter().collect();
        match tla::is_exact(&action) {
            true => {
                self.notes.took(&action, (Some(before), &self.state), met);
            }
            false => self.notes.counted(&action, before, met),
        }
        self.follow(before, raws)
    }

    /// Follows a step with the engine's words.
    pub(super) fn follow(&mut self, before: &State, raws: &[(Is, Raw)]) -> Accepted {
        let raw = |is| raws.iter().find(|(of, _)| *of == is).map(|(_, raw)| *raw);
        self.words.follow((before, &self.state), raw)
    }

    /// The spec's number of a leaf.
    pub(super) fn leaf(&self, leaf: u64) -> Result<u8, String> {
        let known = self.leaves.get(&leaf).copied();
        known.ok_or_else(|| format!("leaf {leaf} is in no node"))
    }

    /// The spec's number of a leaf, and its node.
    pub(super) fn node_of(&self, leaf: u64) -> Result<(u8, usize), String> {
        let l = self.leaf(leaf)?;
        let n = self.state.node_with(l);
        n.map(|n| (l, n))
            .ok_or_else(|| format!("leaf {leaf} is in no node"))
    }

    /// The spec's number of a key.
    pub(super) fn key(&self, word: u64) -> Result<u8, String> {
        u8::try_from(word).map_err(|_| format!("no client uses the key {word:#x}"))
    }

    /// The spec's number of the key that a leaf begins with.
    pub(super) fn low(&self, low: &[u8]) -> Result<u8, String> {
        match low {
            [] => Ok(0),
            low => {
                let low: [u8; 8] = low.try_into().map_err(|_| "a low of eight bytes")?;
                self.key(u64::from_be_bytes(low))
            }
        }
    }

    /// The spec's number of a value.
    pub(super) fn value(&self, word: u64) -> Result<N, String> {
        let known = self.values.get(&word).copied();
        known.ok_or_else(|| format!("no client has written the value {word:#x}"))
    }

    /// The spec's value of a change.
    pub(super) fn change(&self, word: u64, delete: bool) -> Result<N, String> {
        if delete {
            Ok(NOTHING)
        } else {
            self.value(word)
        }
    }

    pub(super) fn pairs(&self, slots: &[SlotWords]) -> Result<Vec<InSlot>, String> {
        let pair = |(slot, [key, value]): &SlotWords| {
            Ok((*slot, Pair::of(self.key(*key)?, self.value(*value)?)))
        };
        slots.iter().map(pair).collect()
    }

    /// The mirror's header is the engine's.
    pub(super) fn same_header(&self, l: u8, header: u64) -> Accepted {
        let (bits, use_n, stamp) = self.state.leaf_seen(l).header_parts();
        let told = header_of(header);
        let is = same(
            "the header: bitmap, use_n, stamp",
            told,
            (bits, use_n, stamp.into()),
        );
        self.notes.claim(is, || {
            let (bits, use_n, stamp) = told;
            let places = (0..64)
                .filter(|i| bits >> i & 1 == 1)
                .map(|i| (i + 1).to_string());
            let places: Vec<String> = places.collect();
            let is = format!("use = {use_n} /\\ head.stamp = {stamp}");
            holds(&format!(
                "LET head == LeafNow({l})[Header] IN head.bits = {{{}}} /\\ head.{is}",
                places.join(", ")
            ))
        })
    }

    /// A node: its leaves, how many keys they have, and its buffer.
    pub(super) fn same_node(&self, node: &LodgeNode) -> Accepted {
        let first = node.leaves.first().ok_or("a node without leaves")?;
        let (_, n) = self.node_of(first.leaf)?;
        let of_mirror = &self.state.all_nodes()[n];
        let mut told = Vec::new();
        for leaf in &node.leaves {
            told.push((self.leaf(leaf.leaf)?, self.low(&leaf.low)?, leaf.keys));
        }
        let known = of_mirror.leaves().into_iter().map(|(l, low)| {
            let (bits, ..) = self.state.leaf_seen(l).header_parts();
            (l, low, bits.count_ones() as usize)
        });
        same("the leaves of the node", told, known.collect())?;
        let mut told = Vec::new();
        for pair in &node.pairs {
            let value = self.change(pair.value, pair.delete)?;
            let log = Some(pair.log as usize);
            told.push(((self.key(pair.key)?, value, pair.number as N), log));
        }
        let known = of_mirror.pairs().iter();
        let known = known.map(|pair| (pair.parts(), self.state.log_of(pair)));
        self.notes
            .claim(same("the buffer", &told, &known.collect()), || {
                let pairs = told.iter().map(|((key, value, number), _)| {
                    let value = tla::content(*value);
                    format!(
                        "\\E i \\in DOMAIN buffer : buffer[i].key = {key} /\\ \
                     buffer[i].value = {value} /\\ buffer[i].number = {number}"
                    )
                });
                let pairs = pairs.map(|pair| format!("({pair})"));
                let count = format!("Len(buffer) = {}", told.len());
                let all: Vec<String> = std::iter::once(count).chain(pairs).collect();
                holds(&format!(
                    "LET buffer == nodes[{}].buffer IN {}",
                    n + 1,
                    all.join(" /\\ ")
                ))
            })
    }

    /// The entry of a client's write is durable before its fence.
    pub(super) fn writes_back(&mut self, c: u8) -> Accepted {
        self.take(Action::WriteBackEntry(c), &[])
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
        self.check_medium(device)?;
        self.check_recovery()
    }

    fn refuse(&self, client: u8, heard: &Heard, why: String) -> Box<Refusal> {
        self.refuse_in(client, heard, (why, &self.state))
    }

    /// Recovery makes durable all that it reads, before it builds on that.
    fn may_fail_after_kill(&self, _device: &MemPm) -> bool {
        true
    }

    fn learn(&mut self, other: &Judge) {
        self.notes.learn(&other.notes);
    }

    fn tally(&self) -> &Tally {
        &self.notes.tally
    }

    fn recorded(&self) -> Option<Recorded> {
        self.notes
            .recording(&self.mirror, tla::constants(self.sizes_of_spec()))
    }

    fn note_situations(&mut self) {
        self.notes.begin(KEPT);
    }

    fn situations(&self) -> Situations {
        self.notes.situations()
    }
}
