//! The loop of a replay in virtual time: closed-loop clients on any simulated device.
//!
//! ```text
//! backend.next_free() ──client, now──▶ source.next() ──op──▶ the engine does it, as one call
//!        ▲                                                    │ the device records requests
//!        └─────── backend.serve(): when is the client free? ◀─┘
//!                 (and the background work that is due)
//! ```
//!
//! The operations come from a [`Feed`]: the trace, or a run on another drive that was recorded.
//! The next operation of the trace goes to the client that is free first; client numbers in the
//! trace are ignored. An operation without I/O takes no time. Everything specific to a device is
//! behind [`Backend`].

use std::ops::ControlFlow;

use treering_engine::{ClassBytes, Kv, Lsn, Nanos, RingUse, Stats};
use treering_traces::{Op, OpKind};

use super::config::ReplayConfig;
use super::error::{Failure, ReplayError};
use super::look::Looked;
use super::measure::{Measures, Moment, Outcome};
use super::progress::Progress;
use super::source::{Next, Source};
use crate::values::Values;

/// A client that is free, and the time since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) client: u32,
    pub(super) at: Nanos,
}

/// A store whose work is counted.
pub(super) trait Counted {
    /// Counters since the store was opened.
    fn stats(&self) -> Stats;
}

impl<S: Kv> Counted for S {
    fn stats(&self) -> Stats {
        Kv::stats(self)
    }
}

/// What a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// An operation to do, with the bytes of keys and values that it writes.
    Op(OpKind, u64),
    /// An operation to skip.
    Skip,
    /// No operation is left.
    Over,
}

/// Where operations come from, and how they are done on a store.
pub(super) trait Feed<S> {
    /// The next operation.
    fn next(&mut self, store: &S) -> Result<Fed, Failure>;

    /// Number of operations taken, which is the number of the current one.
    fn number(&self) -> u64;

    /// Does the current operation; returns the LSN of a write.
    fn operate(&mut self, store: &S) -> Result<Option<Lsn>, Failure>;
}

/// The operations of a trace.
pub(super) struct OfTrace<'a> {
    source: Source<'a>,
    values: Values,
    op: Op,
    buffer: Vec<u8>,
}

impl<'a> OfTrace<'a> {
    pub(super) fn open(
        config: &'a ReplayConfig,
        looked: &'a Looked,
    ) -> Result<OfTrace<'a>, ReplayError> {
        Ok(OfTrace {
            source: Source::open(config, looked)?,
            values: Values::new(config.seed, looked.header.zeros),
            op: Op::default(),
            buffer: Vec::new(),
        })
    }
}

impl<S: Kv> Feed<S> for OfTrace<'_> {
    #[inline]
    fn next(&mut self, _: &S) -> Result<Fed, Failure> {
        Ok(match self.source.next(&mut self.op)? {
            Next::Op => Fed::Op(self.op.kind, self.op.user_bytes()),
            Next::Skip => Fed::Skip,
            Next::Over => Fed::Over,
        })
    }

    fn number(&self) -> u64 {
        self.source.number()
    }

    #[inline]
    fn operate(&mut self, store: &S) -> Result<Option<Lsn>, Failure> {
        let op = (&self.op, self.source.number());
        Ok(operate(store, op, &mut self.values, &mut self.buffer)?)
    }
}

/// A store on a simulated device, with closed-loop clients.
pub(super) trait Backend {
    /// The store.
    type Store: Counted;
    /// The device's counters.
    type Counters;

    fn store(&self) -> &Self::Store;

    /// The client that is free first; `None` when all have finished. A client that is returned and
    /// neither serves nor idles has finished.
    ///
    /// Latencies of operations that complete meanwhile are recorded.
    fn next_free(&mut self, measures: &mut Measures) -> Result<Option<Free>, Failure>;

    /// Sets the store's clock when an operation begins at `now`.
    fn begin(&self, now: Nanos);

    /// The client's operation has run on the store; `lsn` is that of its write, if it wrote. Serves
    /// the requests to the device, and does due background work.
    fn serve(
        &mut self,
        free: Free,
        done: (OpKind, Option<Lsn>),
        measures: &mut Measures,
    ) -> Result<(), Failure>;

    /// Skips the client's operation; the client is free again at once.
    fn idle(&mut self, free: Free) -> Result<(), Failure>;

    /// Leaves no change in the store's memory, from this time on. Returns when that is done; until
    /// then clients wait. A store that keeps none does nothing.
    fn drain(&mut self, at: Nanos) -> Result<Nanos, Failure> {
        Ok(at)
    }

    /// Ends the run when no operation is left. Returns when the last one was done.
    fn settle(&mut self) -> Nanos;

    fn counters(&self) -> Self::Counters;

    /// Bytes written so far, by class, as the device stores them; and by garbage collection.
    fn reached(&self) -> (ClassBytes, u64);

    /// What a ring of mini-pages holds; `None` without one.
    fn ring_use(&self) -> Option<RingUse> {
        None
    }

    /// Called when the warm-up is over.
    fn begin_measuring(&mut self);
}

/// Replays the trace.
pub(super) fn replay<B: Backend<Store: Kv>>(
    (config, looked): (&ReplayConfig, &Looked),
    backend: &mut B,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome<B::Counters>, Failure> {
    progress(Progress::Replay(0, looked.ops));
    let feed = OfTrace::open(config, looked)?;
    let mut run = Run::new((config, looked), backend, feed);
    let mut told = 0;
    while run.turn()? {
        let number = run.number();
        if number & 0x3fff == 0 && number != told {
            told = number;
            progress(Progress::Replay(number, looked.ops));
        }
    }
    run.end()
}

/// A run, turn by turn.
pub(super) struct Run<'a, B: Backend, F> {
    looked: &'a Looked,
    pub(super) backend: &'a mut B,
    feed: F,
    measures: Measures,
    drains: bool,
    /// When the warm-up was over.
    before: Option<Moment<B::Counters>>,
}

impl<'a, B: Backend, F: Feed<B::Store>> Run<'a, B, F> {
    pub(super) fn new(
        (config, looked): (&ReplayConfig, &'a Looked),
        backend: &'a mut B,
        feed: F,
    ) -> Run<'a, B, F> {
        Run {
            looked,
            backend,
            feed,
            measures: Measures::new(config.timing),
            drains: config.drain,
            before: None,
        }
    }

    /// Number of operations taken.
    pub(super) fn number(&self) -> u64 {
        self.feed.number()
    }

    /// Lets the client that is free first do its next operation; `false` if all have finished.
    #[inline]
    pub(super) fn turn(&mut self) -> Result<bool, Failure> {
        let Run {
            looked,
            backend,
            feed,
            measures,
            drains,
            before,
        } = self;
        let Some(mut free) = backend.next_free(measures)? else {
            return Ok(false);
        };
        let fed = feed.next(backend.store())?;
        if fed == Fed::Over {
            return Ok(true);
        }
        if feed.number() == looked.warmup_ops + 1 {
            if *drains {
                free.at = backend.drain(free.at)?;
            }
            *before = Some(begin_measuring(*backend, measures, free.at, looked));
        }
        let Fed::Op(kind, user_bytes) = fed else {
            measures.phase.skipped += 1;
            backend.idle(free)?;
            return Ok(true);
        };
        backend.begin(free.at);
        let lsn = feed.operate(backend.store())?;
        measures.phase.count(kind, user_bytes);
        backend.serve(free, (kind, lsn), measures)?;
        measures.sample(free.at, || backend.reached(), || backend.ring_use());
        Ok(true)
    }

    /// Ends the run.
    pub(super) fn end(mut self) -> Result<Outcome<B::Counters>, Failure> {
        let end = self.backend.settle();
        if self.drains && self.feed.number() == self.looked.ops {
            self.backend.drain(end)?;
        }
        // If the replay was stopped during the warm-up, nothing was measured.
        let before = self
            .before
            .unwrap_or_else(|| begin_measuring(self.backend, &mut self.measures, end, self.looked));
        Ok(Outcome {
            before,
            after: moment(self.backend, end),
            done_ops: self.feed.number(),
            measures: self.measures,
        })
    }
}

fn begin_measuring<B: Backend>(
    backend: &mut B,
    measures: &mut Measures,
    at: Nanos,
    looked: &Looked,
) -> Moment<B::Counters> {
    let before = moment(backend, at);
    measures.begin(at, looked.ops - looked.warmup_ops, backend.reached());
    backend.begin_measuring();
    before
}

fn moment<B: Backend>(backend: &B, at: Nanos) -> Moment<B::Counters> {
    Moment {
        at,
        stats: backend.store().stats(),
        device: backend.counters(),
    }
}

/// Does operation `number`; returns the LSN of a write.
#[inline]
pub(super) fn operate<S: Kv>(
    store: &S,
    (op, number): (&Op, u64),
    values: &mut Values,
    buffer: &mut Vec<u8>,
) -> treering_engine::Result<Option<Lsn>> {
    Ok(match op.kind {
        OpKind::Get => {
            store.get(&op.key, buffer)?;
            None
        }
        OpKind::Put => {
            let len = op.value_len as usize;
            let value = match op.zeros {
                None => values.make(number, len),
                Some(zeros) => values.make_with(number, len, f64::from(zeros) / 255.0),
            };
            Some(store.put(&op.key, value)?)
        }
        OpKind::Delete => Some(store.delete(&op.key)?),
        OpKind::Scan => {
            scan(store, op)?;
            None
        }
    })
}

/// Scans as many records as the trace says, and at least one.
pub(super) fn scan(store: &dyn Kv, op: &Op) -> treering_engine::Result<()> {
    let mut left = op.scan_len;
    store.scan(&op.key, &mut |_, _| {
        left = left.saturating_sub(1);
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })
}
