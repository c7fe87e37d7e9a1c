//! What a stage gives to its variables, in the order in which one depends on the other.

use super::super::WalRecovery;
use super::super::room::{BUFFER, KEYS, N, PER_BLOCK, Set};
use super::super::state::{At, Block, Call, Checkpoint, Content, Image, Lost, Medium, PENDING};
use super::super::state::{Phase, Record, Scalars, State, Superblock, Verdict, Versions};
use super::last_position;
use crate::inductive::Plan;

/// What a stage gives to its variables.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant)] // Few live at once, and a box would cost each of them more.
pub enum Way {
    /// Phase, positions, checkpoint, what a failed flush forgot.
    Scalars(Scalars),
    /// The records of the buffer.
    Buffer([Record; BUFFER], N),
    /// The versions of a log block.
    Block(Versions<Block>),
    /// The versions of the superblock, and what depends on them.
    Super(Scalars, Versions<Superblock>),
    /// The versions of a page on the device.
    Images(Versions<Image>),
    /// The map that is certain.
    Base([Content; KEYS]),
    /// A page in memory, and its first change that the device lacks.
    Memory(Image, N),
    /// A client's call.
    Call(Call),
}

/// All sequences of `len` of these items.
fn tuples<T: Copy>(items: &[T], len: usize) -> Vec<Vec<T>> {
    (0..len).fold(vec![Vec::new()], |all, _| {
        let with = |before: &Vec<T>| {
            let before = before.clone();
            items
                .iter()
                .map(move |item| [&before[..], &[*item]].concat())
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    })
}

/// Places with one or two versions, or those that end with one of `last`.
fn places<T: Copy + Default>(first: &[T], last: &[T]) -> Vec<Versions<T>> {
    let mut all: Vec<Versions<T>> = first.iter().map(|one| Versions::durably(*one)).collect();
    for one in first {
        for other in last {
            let mut place = Versions::durably(*one);
            place.push(*other);
            all.push(place);
        }
    }
    all
}

impl WalRecovery {
    fn typed_records(&self) -> Vec<Record> {
        let of_key = |key: u8| (0..=self.values).map(move |value| Record::new(key, value));
        self.keys().flat_map(of_key).collect()
    }

    /// All blocks with up to that many records.
    fn typed_blocks(&self, epoch: N, index: N) -> Vec<Block> {
        let records = self.typed_records();
        let lens = 1..=usize::from(self.per_block);
        let all = lens.flat_map(|len| tuples(&records, len));
        all.map(|records| block(epoch, index, &records)).collect()
    }

    pub(super) fn lives(&self, plan: &Plan) -> Vec<Way> {
        let blank = State::initial().it;
        let phases = [
            Phase::Up,
            Phase::Cut,
            Phase::Killed,
            Phase::Redo,
            Phase::Opening,
        ];
        let mut all = Vec::new();
        for phase in phases {
            for poisoned in [false, true] {
                let may = matches!(phase, Phase::Up | Phase::Opening);
                if poisoned && !may && !plan.is_without("RedoInv") && !plan.is_without("DownInv") {
                    continue;
                }
                // More samples of phases in which more can happen.
                let times = match phase {
                    Phase::Up | Phase::Opening => 6,
                    Phase::Redo => 3,
                    Phase::Cut | Phase::Killed => 1,
                };
                let way = Way::Scalars(Scalars {
                    phase,
                    poisoned,
                    ..blank
                });
                all.extend(std::iter::repeat_n(way, times));
            }
        }
        if plan.is_without("VerdictInv") {
            let verdicts = [Verdict::Lost, Verdict::Mixed, Verdict::Changed];
            all.extend(verdicts.map(|verdict| Way::Scalars(Scalars { verdict, ..blank })));
        }
        all
    }

    /// While up: where the log begins, is durable, is being flushed, and ends. Otherwise nothing:
    /// it follows from blocks and superblock.
    pub(super) fn positions(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let mut all = Vec::new();
        let it = s.it;
        let last = last_position(self.per_block);
        for epoch in 1..=2 {
            if it.phase != Phase::Up {
                // The superblock that is durable.
                all.extend((0..=last).map(|oldest| {
                    Way::Scalars(Scalars {
                        epoch,
                        oldest,
                        ..it
                    })
                }));
                continue;
            }
            for oldest in 0..=last {
                let limit = (self.block_of(oldest) + self.ring_blocks) * self.per_block;
                let more = N::from(plan.is_without("RoomInv"));
                for durable in oldest..=limit {
                    for flushing in durable..=limit {
                        for end in flushing..=limit + more {
                            let len = end - self.block_start(durable);
                            let waits = usize::from(end - durable) <= self.clients.len();
                            let waits = waits || it.poisoned || plan.is_without("AckInv");
                            let fits = usize::from(len) <= BUFFER;
                            if !fits || !waits || it.poisoned && durable < flushing {
                                continue;
                            }
                            let buffer_len = len;
                            let scalars = Scalars {
                                epoch,
                                oldest,
                                durable,
                                flushing,
                                buffer_len,
                                ..it
                            };
                            all.push(Way::Scalars(scalars));
                        }
                    }
                }
            }
        }
        all
    }

    pub(super) fn buffers(&self, s: &State) -> Vec<Way> {
        let len = s.it.buffer_len;
        let way = |records: Vec<Record>| {
            let mut buffer = [Record::default(); BUFFER];
            buffer[..records.len()].copy_from_slice(&records);
            Way::Buffer(buffer, len)
        };
        tuples(&self.typed_records(), usize::from(len))
            .into_iter()
            .map(way)
            .collect()
    }

    /// Blocks of the log, and those that laps and lives before have left.
    pub(super) fn blocks_at(&self, s: &State, place: usize, plan: &Plan) -> Vec<Way> {
        let up = s.it.phase == Phase::Up;
        let first = self.block_of(s.it.oldest);
        let index = (first..first + self.ring_blocks).find(|i| self.place(*i) == place);
        let index = index.unwrap_or(first);
        let epoch = s.it.epoch;
        let mut old = vec![Block::default()];
        old.extend(self.typed_blocks(epoch - 1, index));
        if let Some(before) = index.checked_sub(self.ring_blocks) {
            old.extend(self.typed_blocks(epoch, before));
        }
        let mut own = self.typed_blocks(epoch, index);
        if plan.is_without("RestingInv") && !up {
            return places(&own, &own[..2])
                .into_iter()
                .map(Way::Block)
                .collect();
        }
        if !up {
            let all = old
                .into_iter()
                .chain(own.iter().copied().cycle().take(2 * own.len()));
            return all
                .map(|block| Way::Block(Versions::durably(block)))
                .collect();
        }
        let any = ["TruthInv", "BufferInv", "DurableInv", "FlightInv"];
        let any = any.iter().any(|name| plan.is_without(name));
        let buffered = self.block_of(self.buffer_start(s));
        if !any && index >= buffered {
            let skip = usize::from((index - buffered) * self.per_block);
            let records = s
                .buffer()
                .iter()
                .skip(skip)
                .take(usize::from(self.per_block));
            let records: Vec<Record> = records.copied().collect();
            own.retain(|block| records.starts_with(block.records()));
        } else if !any && index < buffered {
            // It is full and durable.
            own.retain(|block| block.records().len() == usize::from(self.per_block));
            return own
                .into_iter()
                .map(|block| Way::Block(Versions::durably(block)))
                .collect();
        }
        let all = places(&own, &own).into_iter().chain(places(&old, &own));
        all.map(Way::Block).collect()
    }

    /// The superblock, and the checkpoint. In recovery, also the positions that follow.
    pub(super) fn supers(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let it = s.it;
        let steps = [
            Checkpoint::Idle,
            Checkpoint::Sweep,
            Checkpoint::Forced,
            Checkpoint::Written,
            Checkpoint::Recorded,
        ];
        let mut all = Vec::new();
        if it.phase == Phase::Up {
            let known = |redo| Superblock {
                epoch: it.epoch,
                redo,
            };
            let any = plan.is_without("SuperInv");
            let redo = if any {
                0..=it.durable + 1
            } else {
                it.oldest..=it.durable
            };
            let mut known: Vec<Superblock> = redo.map(known).collect();
            if any {
                known.push(Superblock {
                    epoch: it.epoch - 1,
                    redo: it.oldest,
                });
            }
            for place in places(&known, &known) {
                for checkpoint in steps {
                    for begin in 0..=self.end(s) {
                        let it = Scalars {
                            checkpoint,
                            begin,
                            ..it
                        };
                        if !plan.is_without("CheckpointInv") && !agrees(&it, &place) {
                            continue;
                        }
                        // Few of these states have clean pages, which a checkpoint waits for.
                        let times = if checkpoint == Checkpoint::Sweep {
                            3
                        } else {
                            1
                        };
                        all.extend(std::iter::repeat_n(Way::Super(it, place), times));
                    }
                }
            }
            return all;
        }
        // `oldest` and `epoch` are those of the superblock so far.
        let old = Superblock {
            epoch: it.epoch,
            redo: it.oldest,
        };
        let medium = Medium {
            superblock: old,
            ..s.newest()
        };
        let end = old.redo + self.log_found(&medium).len();
        let durable = self.next_block_start(end);
        let it = Scalars {
            durable,
            flushing: durable,
            epoch: old.epoch + 1,
            ..it
        };
        let one = Versions::durably(old);
        match it.phase {
            Phase::Redo => {
                let redo = |redone| Way::Super(Scalars { redone, ..it }, one);
                all.extend((old.redo..=end).map(redo));
            }
            Phase::Opening => {
                let new = Superblock {
                    epoch: it.epoch,
                    redo: durable,
                };
                let mut both = one;
                both.push(new);
                for checkpoint in steps {
                    let recorded = Versions::durably(new);
                    let typed: &[Versions<Superblock>] = match checkpoint {
                        _ if plan.is_without("OpeningInv") => &[one, both, recorded],
                        Checkpoint::Idle => &[],
                        Checkpoint::Sweep | Checkpoint::Forced => &[one],
                        Checkpoint::Written => &[both, recorded],
                        Checkpoint::Recorded => &[recorded],
                    };
                    for &place in typed {
                        let it = Scalars {
                            checkpoint,
                            begin: durable,
                            oldest: old.redo,
                            ..it
                        };
                        all.push(Way::Super(it, place));
                    }
                }
            }
            _ => {
                let it = Scalars {
                    durable: 0,
                    flushing: 0,
                    epoch: 0,
                    oldest: 0,
                    ..it
                };
                all.push(Way::Super(it, one));
            }
        }
        all
    }

    /// Images that are valid, or all.
    fn typed_images(&self, s: &State, k: usize, any: bool) -> Vec<Image> {
        let history = self.history(s);
        let most = if s.it.phase == Phase::Up {
            self.end(s)
        } else {
            history.end()
        };
        let image = |lsn: N| (0..=self.values).map(move |value| Image { value, lsn });
        let all = (0..=most + N::from(any)).flat_map(image);
        all.filter(|image| any || history.valid(k, *image))
            .collect()
    }

    pub(super) fn device_images(&self, s: &State, k: usize, plan: &Plan) -> Vec<Way> {
        let any = ["ImagesInv", "RedoInv", "DownInv", "OpeningInv"];
        let any = any.iter().any(|name| plan.is_without(name));
        let mut all = self.typed_images(s, k, any);
        let history = self.history(s);
        let up = s.it.phase == Phase::Up;
        let forced = !matches!(s.it.checkpoint, Checkpoint::Idle | Checkpoint::Sweep);
        let sure = |name: &str| !plan.is_without(name);
        let redo = s
            .super_dev
            .all()
            .iter()
            .map(|superblock| superblock.redo)
            .max();
        all.retain(|image| {
            let complete = |n: N| history.complete(k, *image, n);
            let early = !up || !sure("WalRuleInv") || image.lsn <= s.it.durable;
            let redone = !up || !sure("RedoStartInv") || redo.is_none_or(complete);
            let swept = !up || !forced || !sure("CheckpointInv") || complete(s.it.begin);
            let opens = up || !forced || !sure("OpeningInv") || complete(history.end());
            early && redone && swept && opens
        });
        if s.it.phase.is_down() && sure("DownInv") {
            let one = |image: &Image| Way::Images(Versions::durably(*image));
            return all.iter().map(one).collect();
        }
        let end = if up { s.it.durable } else { history.end() };
        let differ = |place: &Versions<Image>| {
            let done = place
                .all()
                .iter()
                .filter(|image| history.complete(k, **image, end));
            let done: Vec<Content> = done.map(|image| image.value).collect();
            done.windows(2).any(|two| two[0] != two[1])
        };
        let base = sure("BaseInv") && sure("FindsAllInv");
        let all = places(&all, &all)
            .into_iter()
            .filter(|place| !base || !differ(place));
        // More of those that a checkpoint has to flush.
        let times = |place: &Versions<Image>| {
            let first = place.all()[0];
            let sweeps = s.it.checkpoint == Checkpoint::Sweep;
            if sweeps && !history.complete(k, first, s.it.begin) {
                16
            } else {
                1
            }
        };
        let all = all.flat_map(|place| std::iter::repeat_n(place, times(&place)));
        all.map(Way::Images).collect()
    }

    /// What the log says, or an image that has all changes, or anything.
    pub(super) fn bases(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let medium = Medium {
            superblock: s.super_dev.all()[0],
            ..s.newest()
        };
        let found = self.recovered(&medium).0;
        let any = plan.is_without("BaseInv") || plan.is_without("FindsAllInv");
        if s.it.phase != Phase::Up && !any {
            return vec![Way::Base(found)];
        }
        let (history, durable) = (self.history(s), s.it.durable);
        let values = |k: usize| -> Vec<Content> {
            let images = s.page_dev[k].all().iter();
            let done = images
                .copied()
                .find(|image| history.complete(k, *image, durable));
            match history.last(k, durable).or(done.map(|image| image.value)) {
                Some(value) if !any => vec![value],
                _ => (0..=self.values).collect(),
            }
        };
        let mut all = vec![found];
        for k in 0..self.keys.len() {
            let with = |base: &[Content; KEYS]| {
                let base = *base;
                let one = move |value| {
                    let mut base = base;
                    base[k] = value;
                    base
                };
                values(k).into_iter().map(one).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all.into_iter().map(Way::Base).collect()
    }

    pub(super) fn memories(&self, s: &State, k: usize, plan: &Plan) -> Vec<Way> {
        if s.it.phase.is_down() && !plan.is_without("DownInv") {
            return vec![Way::Memory(Image::default(), 0)];
        }
        let any = ["MemoryCompleteInv", "RedoInv", "OpeningInv"];
        let any = any.iter().any(|name| plan.is_without(name));
        let history = self.history(s);
        let (up, sure) = (s.it.phase == Phase::Up, |name: &str| !plan.is_without(name));
        let most = if up { self.end(s) } else { s.it.durable };
        let forced = !matches!(s.it.checkpoint, Checkpoint::Idle | Checkpoint::Sweep);
        let newest = s.page_dev[k].newest();
        let current = up.then(|| self.base_after(s, self.tail(s).len() as N)[k]);
        let shown = |page: &Image| current.is_none_or(|value| value == page.value);
        let mut all = Vec::new();
        for page in self.typed_images(s, k, any) {
            let all_but = match s.it.phase {
                Phase::Redo => s.it.redone,
                Phase::Opening => history.end(),
                _ => self.end(s),
            };
            let complete = s.latched(k) || history.complete(k, page, all_but);
            let done = !up && history.complete(k, page, history.end());
            let recovered = !done || page.value == s.base[k];
            let shows = recovered && (s.latched(k) || shown(&page)) || !sure("MemoryInv");
            let right = complete && shows;
            if !any && !right {
                continue;
            }
            for dirtied in 0..=most + N::from(!sure("DirtiedInv")) {
                let clean = dirtied > 0 || page == newest || !sure("CleanInv");
                let missing = dirtied == 0 || history.complete(k, newest, dirtied - 1);
                let opens = up || dirtied == 0 || !forced || any;
                if clean && opens && (missing || !sure("DirtiedInv")) {
                    // A checkpoint can go on only without dirty pages.
                    let times = if dirtied == 0 {
                        usize::from(most) + 1
                    } else {
                        1
                    };
                    all.extend(std::iter::repeat_n(Way::Memory(page, dirtied), times));
                }
            }
        }
        all
    }

    pub(super) fn typed_calls(&self, s: &State, c: usize, plan: &Plan) -> Vec<Way> {
        if s.it.phase != Phase::Up && !plan.is_without("RestingInv") {
            return vec![Way::Call(Call::Idle)];
        }
        let mut all = vec![Call::Idle, Call::Refused, Call::Unknown];
        for key in self.keys() {
            let got = (0..=self.values).chain([PENDING]);
            all.extend(got.map(|got| Call::Get { key, got }));
            for value in 0..=self.values {
                all.push(Call::Write {
                    key,
                    value,
                    at: At::Called,
                    lsn: 0,
                });
                for at in [At::Logged, At::Waiting, At::Asleep] {
                    for lsn in 0..=self.end(s) + 1 {
                        all.push(Call::Write {
                            key,
                            value,
                            at,
                            lsn,
                        });
                    }
                }
            }
        }
        // Whose records others can no longer wait for.
        let lsn = |call: &Call| match *call {
            Call::Write { lsn, .. } => lsn,
            _ => 0,
        };
        let waits = |n: &N| !s.call[..c].iter().any(|call| lsn(call) == *n);
        let alone: Vec<N> = (s.it.durable + 1..=self.end(s)).filter(waits).collect();
        if alone.len() >= self.clients.len() - c && !s.it.poisoned && !plan.is_without("AckInv") {
            all.retain(|call| alone.is_empty() || alone.contains(&lsn(call)));
        }
        all.into_iter().map(Way::Call).collect()
    }

    pub(super) fn losses(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let it = s.it;
        let mut all = vec![Way::Scalars(it)];
        if !it.poisoned && !plan.is_without("LostInv") {
            return all;
        }
        let most = |len: usize| (1 << len) - 1;
        let logs: Set = most(s.log_dev.len());
        let pages: Set = most(self.keys.len());
        for log in 0..=logs {
            for pages in 0..=pages {
                for superblock in [false, true] {
                    let lost = Lost {
                        log,
                        pages,
                        superblock,
                    };
                    all.push(Way::Scalars(Scalars { lost, ..it }));
                }
            }
        }
        all
    }
}

/// `CheckpointInv`, of the superblock.
fn agrees(it: &Scalars, place: &Versions<Superblock>) -> bool {
    let new = Superblock {
        epoch: it.epoch,
        redo: it.begin,
    };
    let begun = it.oldest <= it.begin;
    let forced = begun && it.begin <= it.durable;
    match it.checkpoint {
        Checkpoint::Idle => true,
        Checkpoint::Sweep => begun,
        Checkpoint::Forced => forced,
        Checkpoint::Written => forced && place.newest() == new,
        Checkpoint::Recorded => forced && *place.all() == [new],
    }
}

fn block(epoch: N, index: N, all: &[Record]) -> Block {
    let mut records = [Record::default(); PER_BLOCK];
    records[..all.len()].copy_from_slice(all);
    Block {
        epoch,
        index,
        records,
    }
}
