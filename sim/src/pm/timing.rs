//! Completion times of persistent memory: lines under way, queues before the DIMMs, and a medium
//! that is slower than both.
//!
//! ```text
//!  client   ──▶ at most `write_buffers` lines under way;
//!               each takes ntstore or clwb latency, then waits at its DIMM
//!  DIMM     waiting lines ──any of them──▶ queue (iMC and DIMM: `queue_lines`), persistent
//!               ──▶ XPBuffer ──▶ medium
//!  fence    waits until all lines of the client are in queues
//!  load     all lines at once, at most `read_buffers`;
//!               buffered: hit latency; else medium, then miss latency
//!  medium   one write at a time, and at the same time one read at a time
//! ```
//!
//! **Any of them.** The next of the lines that wait at a DIMM is drawn at random, because cores,
//! mesh and memory controller keep no order among lines without a fence in between. This alone
//! explains why many writers lose bandwidth: the more lines of other clients wait, the further
//! apart the four lines of an XPLine arrive, the more XPLines are evicted in between, and each one
//! evicted early is written twice (DEVICES §2.3: bandwidth and effective write ratio go together).
//!
//! **Reads beside writes.** Random 64-byte writes, each a read-modify-write, write as many XPLines
//! per second as sequential ones (DEVICES §2.2: 0.55 × 4 against 2.22 GB/s). So the read of a merge
//! takes no write time of the medium.
//!
//! Events are served in the order of their times, line by line, so clients that [`Timing::submit`]
//! operations interleave realistically. Not modelled: CPU time, and loads that overtake waiting
//! stores.

use std::collections::VecDeque;

use treering_engine::Nanos;

use super::cpu::{How, Step};
use super::dimms::{Dimms, Effect, Place};
use super::profile::PmProfile;
use crate::clock::VirtualNanos;
use crate::queue::EventQueue;
use crate::ssd::Served;
use crate::ssd::gc::SplitMix;

/// Times in nanoseconds, and degrees of parallelism.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    read_hit: u64,
    read_miss: u64,
    ntstore: u64,
    clwb: u64,
    media_read: u64,
    media_write: u64,
    /// Time of a line on a DIMM's bus.
    line: u64,
    stall: u64,
    queue_lines: usize,
    write_buffers: u64,
    read_buffers: usize,
}

impl Times {
    pub(super) fn new(profile: &PmProfile) -> Times {
        let times = &profile.times;
        let ns = |bytes: f64, gb_per_s: f64| (bytes / gb_per_s).round().max(1.0) as u64;
        Times {
            read_hit: times.read_hit_ns.round() as u64,
            read_miss: times.read_miss_ns.round() as u64,
            ntstore: times.ntstore_ns.round() as u64,
            clwb: times.clwb_ns.round() as u64,
            media_read: ns(256.0, times.media_read_gb_per_s),
            media_write: ns(256.0, times.media_write_gb_per_s),
            line: ns(64.0, times.bus_gb_per_s),
            stall: (times.wear_stall_us * 1000.0).round() as u64,
            queue_lines: ((times.wpq_bytes + times.dimm_queue_bytes) / 64) as usize,
            write_buffers: u64::from(profile.cpu.write_buffers),
            read_buffers: profile.cpu.read_buffers as usize,
        }
    }

    fn read(&self, hit: bool) -> u64 {
        if hit { self.read_hit } else { self.read_miss }
    }

    fn write(&self, how: How) -> u64 {
        match how {
            How::NonTemporal => self.ntstore,
            How::Clwb | How::ClwbAfterFetch | How::Evicted => self.clwb,
        }
    }
}

/// Duration of an operation on an idle device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    ns: u64,
    /// Reads of the current load, and the longest of them.
    reads: u64,
    read_ns: u64,
    /// Lines since the last fence, and the longest of them.
    writes: u64,
    write_ns: u64,
}

impl Alone {
    pub(super) fn read(&mut self, times: &Times, hit: bool) {
        self.reads += 1;
        self.read_ns = self.read_ns.max(times.read(hit));
    }

    pub(super) fn end_load(&mut self, times: &Times) {
        self.ns += self.reads.div_ceil(times.read_buffers as u64) * self.read_ns;
        (self.reads, self.read_ns) = (0, 0);
    }

    /// `fetched` says whether a buffer had the line, if it had to be fetched first.
    pub(super) fn write(&mut self, times: &Times, how: How, fetched: Option<bool>) {
        if how != How::Evicted {
            self.writes += 1;
            let fetch = fetched.map_or(0, |hit| times.read(hit));
            self.write_ns = self.write_ns.max(fetch + times.write(how));
        }
    }

    pub(super) fn fence(&mut self, times: &Times) {
        self.ns += self.writes.div_ceil(times.write_buffers) * self.write_ns;
        (self.writes, self.write_ns) = (0, 0);
    }

    /// Nanoseconds since the last call; lines without a fence after them are still under way.
    pub(super) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.ns)
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client begins its operation or continues it.
    Goes(u32),
    /// A line is at its DIMM; the client that it belongs to, or none.
    Arrives { client: u32, place: Place },
    /// The first line of a DIMM's queue is in the buffer.
    Drained(u32),
}

/// Stands for lines that no client waits for.
const NOBODY: u32 = u32::MAX;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Nothing: it is idle, or an event will continue it.
    No,
    /// One of its lines to be accepted.
    Buffer,
    /// All of its lines to be accepted.
    Fence,
}

struct Client {
    steps: Vec<Step>,
    next: usize,
    began: u64,
    /// Lines under way.
    outstanding: u64,
    waits: Waits,
    /// When the reads of the current load are done.
    reads: Vec<u64>,
    alone: Alone,
}

impl Client {
    /// When a read buffer is free, if none is now.
    fn buffer_free(&mut self, buffers: usize, now: u64) -> Option<u64> {
        if self.reads.len() < buffers {
            return None;
        }
        self.reads.retain(|done| *done > now);
        if self.reads.len() < buffers {
            return None;
        }
        self.reads.iter().min().copied()
    }
}

impl Default for Client {
    fn default() -> Client {
        Client {
            steps: Vec::new(),
            next: 0,
            began: 0,
            outstanding: 0,
            waits: Waits::No,
            reads: Vec::new(),
            alone: Alone::default(),
        }
    }
}

/// A DIMM's queues, and the times when its parts are free.
#[derive(Default)]
struct Lane {
    waiting: Vec<(u32, Place)>,
    /// Lines that are persistent but not in the buffer yet.
    queue: VecDeque<Place>,
    draining: bool,
    bus_free: u64,
    writes_free: u64,
    reads_free: u64,
    /// XPLines that were read recently, and when; a request for another line of one waits for the
    /// same read.
    reading: VecDeque<(u32, u64)>,
}

/// Maximum number of reads under way in a DIMM.
const READING: usize = 64;

/// The queues, and everything under way.
pub(super) struct Timing {
    times: Times,
    lanes: Vec<Lane>,
    clients: Vec<Client>,
    events: EventQueue<Event>,
    finished: VecDeque<(u32, Served)>,
    rng: SplitMix,
}

impl Timing {
    pub(super) fn new(times: Times, dimms: usize, seed: u64) -> Timing {
        Timing {
            times,
            lanes: (0..dimms).map(|_| Lane::default()).collect(),
            clients: Vec::new(),
            events: EventQueue::default(),
            finished: VecDeque::new(),
            rng: SplitMix(seed),
        }
    }

    /// Starts an operation of a client, and takes its steps.
    pub(super) fn submit(&mut self, client: u32, steps: &mut Vec<Step>, at: u64) {
        let index = client as usize;
        if self.clients.len() <= index {
            self.clients.resize_with(index + 1, Client::default);
        }
        let state = &mut self.clients[index];
        assert!(state.next == state.steps.len(), "one operation a client");
        state.steps.clear();
        std::mem::swap(&mut state.steps, steps);
        (state.next, state.began) = (0, at);
        self.events.push(VirtualNanos(at), Event::Goes(client));
    }

    /// The next operation that completes, of any client; `None` if none is under way.
    pub(super) fn next_done(&mut self, dimms: &mut Dimms) -> Option<(u32, Served)> {
        loop {
            if let Some(done) = self.finished.pop_front() {
                return Some(done);
            }
            self.event(dimms)?;
        }
    }

    /// Serves one client's operation to its end. Operations of others that complete meanwhile are
    /// kept until they are asked for.
    pub(super) fn finish(&mut self, client: u32, dimms: &mut Dimms) -> Option<Served> {
        loop {
            if let Some(at) = self.finished.iter().position(|(who, _)| *who == client) {
                return self.finished.remove(at).map(|(_, served)| served);
            }
            self.event(dimms)?;
        }
    }

    /// Serves all events.
    pub(super) fn settle(&mut self, dimms: &mut Dimms) {
        while self.event(dimms).is_some() {}
    }

    fn event(&mut self, dimms: &mut Dimms) -> Option<()> {
        let (at, event) = self.events.pop()?;
        match event {
            Event::Goes(client) => self.go(client, at.0, dimms),
            Event::Arrives { client, place } => {
                let lane = &mut self.lanes[place.dimm as usize];
                lane.waiting.push((client, place));
                self.admit(place.dimm, at.0, dimms);
            }
            Event::Drained(dimm) => {
                self.lanes[dimm as usize].draining = false;
                self.drain(dimm, at.0, dimms);
                self.admit(dimm, at.0, dimms);
            }
        }
        Some(())
    }

    /// Continues a client's operation until it has to wait.
    fn go(&mut self, client: u32, now: u64, dimms: &mut Dimms) {
        loop {
            let state = &mut self.clients[client as usize];
            state.waits = Waits::No;
            // A client that is served later, though its time is earlier, may free space for a line
            // before the line came.
            let now = now.max(state.began);
            let Some(&step) = state.steps.get(state.next) else {
                let service_ns = state.alone.take().min(now - state.began);
                let served = Served {
                    done: Nanos(now),
                    service_ns,
                    queue_ns: now - state.began - service_ns,
                };
                self.finished.push_back((client, served));
                return;
            };
            match step {
                Step::Read(line) => {
                    if let Some(at) = state.buffer_free(self.times.read_buffers, now) {
                        self.events.push(VirtualNanos(at), Event::Goes(client));
                        return;
                    }
                    state.next += 1;
                    let (done, hit) = self.fetch(dimms.place(line), now, dimms);
                    let state = &mut self.clients[client as usize];
                    state.reads.push(done);
                    state.alone.read(&self.times, hit);
                }
                Step::EndOfLoad => {
                    let ends = state.reads.drain(..).max().unwrap_or(now);
                    state.next += 1;
                    state.alone.end_load(&self.times);
                    if ends > now {
                        self.events.push(VirtualNanos(ends), Event::Goes(client));
                        return;
                    }
                }
                Step::Fetch(line) => {
                    state.next += 1;
                    self.fetch(dimms.place(line), now, dimms);
                }
                Step::Write { line, how } => {
                    if how != How::Evicted && state.outstanding == self.times.write_buffers {
                        state.waits = Waits::Buffer;
                        return;
                    }
                    self.send(client, (line, how), now, dimms);
                }
                Step::Fence => {
                    if state.outstanding > 0 {
                        state.waits = Waits::Fence;
                        return;
                    }
                    state.next += 1;
                    state.alone.fence(&self.times);
                }
            }
        }
    }

    /// Sends a line to its DIMM.
    fn send(&mut self, client: u32, (line, how): (u32, How), now: u64, dimms: &mut Dimms) {
        let place = dimms.place(line);
        let fetched = (how == How::ClwbAfterFetch).then(|| self.fetch(place, now, dimms));
        let leaves = fetched.map_or(now, |(at, _)| at);
        let state = &mut self.clients[client as usize];
        state.next += 1;
        state
            .alone
            .write(&self.times, how, fetched.map(|(_, hit)| hit));
        let client = if how == How::Evicted {
            NOBODY
        } else {
            state.outstanding += 1;
            client
        };
        let arrives = VirtualNanos(leaves + self.times.write(how));
        self.events.push(arrives, Event::Arrives { client, place });
    }

    /// Reads a line; returns when it arrives, and whether a buffer had it.
    fn fetch(&mut self, place: Place, at: u64, dimms: &mut Dimms) -> (u64, bool) {
        let times = self.times;
        let lane = &mut self.lanes[place.dimm as usize];
        let Effect { hit, .. } = dimms.read(place);
        let xpline = place.line / super::XPLINE_LINES;
        let ready = if hit {
            let read = lane.reading.iter().rev().find(|(x, _)| *x == xpline);
            read.map_or(at, |(_, ready)| at.max(*ready))
        } else {
            let begins = at.max(lane.reads_free);
            lane.reads_free = begins + times.media_read;
            let ready = begins + (times.read_miss - times.read_hit);
            if lane.reading.len() == READING {
                lane.reading.pop_front();
            }
            lane.reading.push_back((xpline, ready));
            ready
        };
        (ready + times.read_hit, hit)
    }

    /// Moves waiting lines into a DIMM's queue while there is space.
    fn admit(&mut self, dimm: u32, now: u64, dimms: &mut Dimms) {
        loop {
            let lane = &mut self.lanes[dimm as usize];
            if lane.waiting.is_empty() || lane.queue.len() == self.times.queue_lines {
                return;
            }
            let any = match lane.waiting.len() as u64 {
                1 => 0,
                n => self.rng.below(n) as usize,
            };
            let (client, place) = lane.waiting.swap_remove(any);
            lane.queue.push_back(place);
            self.drain(dimm, now, dimms);
            self.accepted(client, now, dimms);
        }
    }

    /// A line of this client has become persistent.
    fn accepted(&mut self, client: u32, now: u64, dimms: &mut Dimms) {
        if client == NOBODY {
            return;
        }
        let state = &mut self.clients[client as usize];
        state.outstanding -= 1;
        let goes = match state.waits {
            Waits::No => false,
            Waits::Buffer => true,
            Waits::Fence => state.outstanding == 0,
        };
        if goes {
            self.go(client, now, dimms);
        }
    }

    /// Moves the first line of a DIMM's queue into its buffer, unless another is being moved.
    fn drain(&mut self, dimm: u32, now: u64, dimms: &mut Dimms) {
        let times = self.times;
        let lane = &mut self.lanes[dimm as usize];
        if lane.draining {
            return;
        }
        let Some(place) = lane.queue.pop_front() else {
            return;
        };
        let effect = dimms.write(place);
        let mut done = now.max(lane.bus_free) + times.line;
        lane.bus_free = done;
        if effect.reads > 0 {
            let begins = done.max(lane.reads_free);
            lane.reads_free = begins + u64::from(effect.reads) * times.media_read;
        }
        if effect.writes > 0 {
            // The medium takes one write at a time; the buffer waits until this one is accepted.
            done = done.max(lane.writes_free);
            lane.writes_free = done
                + u64::from(effect.writes) * times.media_write
                + u64::from(effect.stalls) * times.stall;
        }
        lane.draining = true;
        self.events.push(VirtualNanos(done), Event::Drained(dimm));
    }
}
