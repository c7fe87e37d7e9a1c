//! Threads that stop where they are told to: at an event of the engine, in the middle of an
//! operation.
//!
//! An actor runs one job at a time, a call of the engine. The engine tells its observer, on that
//! thread, what it does; the observer stops the thread at the events that the job's stops name, and
//! lets the driver know. The events at which the driver stops are told where the thread holds
//! nothing that the others' next steps need, or only what the spec says it holds (a page's latch).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use treering_engine::events::{Event, Observer};
use treering_engine::{Lsn, Result, Store};

use super::device::StepDevice;

/// Where a thread can stop: at an event, or (`None`) before a flush of the device.
pub(super) type Point = Option<Event>;

/// Where a job stops.
pub(super) type Stops = fn(&Point) -> bool;

/// Nowhere.
pub(super) const NOWHERE: Stops = |_| false;

/// What a job has come to.
pub(super) enum Outcome {
    /// A put.
    Put(Result<Lsn>),
    /// A sync, or a checkpoint's step.
    Done(Result<()>),
    /// An opening.
    Opened(Result<Box<Store>>),
}

/// What an actor says.
pub(super) enum Said {
    /// It stands here.
    Stopped(Point),
    /// Its job is done.
    Finished(Outcome),
}

type Job = Box<dyn FnOnce() -> Outcome + Send>;

enum Order {
    Begin(Job, Stops),
    GoOn(Stops),
}

/// The thread's side.
struct Side {
    orders: Receiver<Order>,
    says: Sender<Said>,
    stops: Stops,
}

thread_local! {
    static SIDE: RefCell<Option<Side>> = const { RefCell::new(None) };
}

/// A thread under orders.
pub(super) struct Actor {
    orders: Sender<Order>,
    said: Receiver<Said>,
    busy: bool,
    stopped: bool,
}

impl Actor {
    /// A new thread; it ends when this is dropped.
    pub(super) fn new() -> Actor {
        let (orders, received) = channel();
        let (says, said) = channel();
        std::thread::spawn(move || {
            let side = Side {
                orders: received,
                says,
                stops: NOWHERE,
            };
            SIDE.set(Some(side));
            while let Some(job) = next_job() {
                let outcome = job();
                StepDevice::ignore_none();
                say(Said::Finished(outcome));
            }
        });
        Actor {
            orders,
            said,
            busy: false,
            stopped: false,
        }
    }

    /// Whether it has a job.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether it stands at an event.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Gives it a job.
    pub(super) fn begin(&mut self, stops: Stops, job: impl FnOnce() -> Outcome + Send + 'static) {
        assert!(!self.busy, "one job at a time");
        self.busy = true;
        let order = Order::Begin(Box::new(job), stops);
        self.orders
            .send(order)
            .expect("the thread waits for orders");
    }

    /// Lets it go on.
    pub(super) fn go_on(&mut self, stops: Stops) {
        assert!(self.stopped, "it stands");
        self.stopped = false;
        self.orders
            .send(Order::GoOn(stops))
            .expect("the thread waits for orders");
    }

    /// Waits until it stops or is done.
    pub(super) fn wait(&mut self) -> Said {
        let said = self.said.recv().expect("the thread lives");
        self.note(&said);
        said
    }

    /// Waits as long as this.
    pub(super) fn wait_for(&mut self, limit: Duration) -> Option<Said> {
        let said = self.said.recv_timeout(limit).ok();
        said.inspect(|said| self.note(said))
    }

    fn note(&mut self, said: &Said) {
        match said {
            Said::Stopped(_) => self.stopped = true,
            Said::Finished(_) => self.busy = false,
        }
    }
}

fn next_job() -> Option<Job> {
    SIDE.with_borrow_mut(|side| {
        let side = side.as_mut().expect("an actor's thread");
        match side.orders.recv().ok()? {
            Order::Begin(job, stops) => {
                side.stops = stops;
                Some(job)
            }
            Order::GoOn(_) => unreachable!("it does not stand"),
        }
    })
}

fn say(said: Said) {
    SIDE.with_borrow(|side| {
        let side = side.as_ref().expect("an actor's thread");
        // A driver that has gone does not listen.
        drop(side.says.send(said));
    });
}

/// Stops actors.
pub(super) struct Gate;

impl Observer for Gate {
    fn event(&self, event: Event) {
        // The journal's flush, between this and the page's own write: see `device`.
        if matches!(event, Event::PageWriting { .. }) {
            StepDevice::ignore_flush();
        }
        stop_at(Some(event));
    }
}

/// Stops the thread here if it is an actor's and its job says so.
pub(super) fn stop_at(point: Point) {
    SIDE.with_borrow_mut(|side| {
        let Some(side) = side.as_mut().filter(|side| (side.stops)(&point)) else {
            return;
        };
        if side.says.send(Said::Stopped(point)).is_err() {
            return;
        }
        match side.orders.recv() {
            Ok(Order::GoOn(stops)) => side.stops = stops,
            // The driver has gone: run to the end.
            _ => side.stops = NOWHERE,
        }
    });
}

/// An observer that ends an opening where recovery begins: what was done until then stays, nothing
/// more is.
pub(super) struct Cut(pub(super) Arc<StepDevice>);

impl Observer for Cut {
    fn event(&self, event: Event) {
        if matches!(event, Event::RecoveryBegins { .. }) {
            self.0.kill();
        }
    }
}
