//! Threads that the driver can stop in the middle of an operation, at an event of the engine.
//!
//! An actor runs one job at a time, which is a call of the engine. The engine reports its events to
//! its observer on that thread. The observer stops the thread at the events that the job asks for,
//! and notifies the driver. The driver only uses events at which the thread holds nothing that the
//! other threads' next steps need, or only what the spec says it holds (a page's latch).

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

/// Stops nowhere.
pub(super) const NOWHERE: Stops = |_| false;

/// The result of a job.
pub(super) enum Outcome {
    /// The result of a put.
    Put(Result<Lsn>),
    /// The result of a sync, or of a checkpoint's step.
    Done(Result<()>),
    /// The result of opening a store.
    Opened(Result<Box<Store>>),
}

/// A report of an actor.
pub(super) enum Said {
    /// The actor has stopped at this point.
    Stopped(Point),
    /// Its job has finished.
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

/// A thread that runs jobs for the driver.
pub(super) struct Actor {
    orders: Sender<Order>,
    said: Receiver<Said>,
    busy: bool,
    stopped: bool,
}

impl Actor {
    /// Starts a thread, which ends when the actor is dropped.
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

    /// Whether it has stopped at an event.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Starts a job.
    pub(super) fn begin(&mut self, stops: Stops, job: impl FnOnce() -> Outcome + Send + 'static) {
        assert!(!self.busy, "one job at a time");
        self.busy = true;
        let order = Order::Begin(Box::new(job), stops);
        self.orders
            .send(order)
            .expect("the thread waits for orders");
    }

    /// Lets the job continue to its next stop.
    pub(super) fn go_on(&mut self, stops: Stops) {
        assert!(self.stopped, "it stands");
        self.stopped = false;
        self.orders
            .send(Order::GoOn(stops))
            .expect("the thread waits for orders");
    }

    /// Waits until the job stops or finishes.
    pub(super) fn wait(&mut self) -> Said {
        let said = self.said.recv().expect("the thread lives");
        self.note(&said);
        said
    }

    /// Waits until the job stops or finishes, or until the time is up.
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
            Order::GoOn(_) => unreachable!("the actor is not stopped"),
        }
    })
}

fn say(said: Said) {
    SIDE.with_borrow(|side| {
        let side = side.as_ref().expect("an actor's thread");
        // Fails if the driver has gone: then nobody listens.
        drop(side.says.send(said));
    });
}

/// Stops actors.
pub(super) struct Gate;

impl Observer for Gate {
    fn event(&self, event: Event) {
        // The journal's flush, which comes between this and the page's own write: see `device`.
        if matches!(event, Event::PageWriting { .. }) {
            StepDevice::ignore_flush();
        }
        stop_at(Some(event));
    }
}

/// Stops the calling thread here if it is an actor's and its job asks for that.
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

/// An observer that cuts an opening off where recovery begins: what was written until then remains,
/// and nothing more is written.
pub(super) struct Cut(pub(super) Arc<StepDevice>);

impl Observer for Cut {
    fn event(&self, event: Event) {
        if matches!(event, Event::RecoveryBegins { .. }) {
            self.0.kill();
        }
    }
}
