//! The loop of a replay in virtual time: closed-loop clients on any simulated device.
//!
//! ```text
//! backend.next_free() ──client, now──▶ source.next() ──op──▶ the engine does it, as one call
//!        ▲                                                    │ the device records requests
//!        └─────── backend.serve(): when is the client free? ◀─┘
//!                 (and the background work that is due)
//! ```
//!
//! The next operation of the trace goes to the client that is free first; client numbers in the
//! trace are ignored. An operation without I/O takes no time. Everything specific to a device is
//! behind [`Backend`].

use std::ops::ControlFlow;

use treering_engine::{ClassBytes, Kv, Lsn, Nanos};
use treering_traces::{Op, OpKind};

use super::config::ReplayConfig;
use super::error::Failure;
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

/// A store on a simulated device, with closed-loop clients.
pub(super) trait Backend {
    /// The store.
    type Store: Kv;
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

    /// Ends the run when no operation is left. Returns when the last one was done.
    fn settle(&mut self) -> Nanos;

    fn counters(&self) -> Self::Counters;

    /// Bytes written so far, by class, as the device stores them; and by garbage collection.
    fn reached(&self) -> (ClassBytes, u64);

    /// Called when the warm-up is over.
    fn begin_measuring(&mut self);
}

/// Replays the trace.
pub(super) fn replay<B: Backend>(
    (config, looked): (&ReplayConfig, &Looked),
    backend: &mut B,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome<B::Counters>, Failure> {
    progress(Progress::Replay(0, looked.ops));
    let mut source = Source::open(config, looked)?;
    let mut values = Values::new(config.seed, looked.header.zeros);
    let mut measures = Measures::new(config.timing);
    let mut before = None;
    let (mut op, mut buffer) = (Op::default(), Vec::new());
    while let Some(free) = backend.next_free(&mut measures)? {
        let next = source.next(&mut op)?;
        if next == Next::Over {
            continue;
        }
        let number = source.number();
        if number == looked.warmup_ops + 1 {
            before = Some(begin_measuring(backend, &mut measures, free.at, looked));
        }
        if number & 0x3fff == 0 {
            progress(Progress::Replay(number, looked.ops));
        }
        if next == Next::Skip {
            measures.phase.skipped += 1;
            backend.idle(free)?;
            continue;
        }
        backend.begin(free.at);
        let lsn = operate(backend.store(), (&op, number), &mut values, &mut buffer)?;
        measures.phase.count(op.kind, op.user_bytes());
        backend.serve(free, (op.kind, lsn), &mut measures)?;
        measures.sample(free.at, || backend.reached());
    }
    let end = backend.settle();
    // If the replay was stopped during the warm-up, nothing was measured.
    let before = before.unwrap_or_else(|| begin_measuring(backend, &mut measures, end, looked));
    Ok(Outcome {
        before,
        after: moment(backend, end),
        done_ops: source.number(),
        measures,
    })
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
