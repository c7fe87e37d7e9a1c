//! The clients' threads of a walk. A thread does one deed at a time, and can be stopped in the
//! middle of a deed of the ring.
//!
//! A guard belongs to the thread that made it. So each client has its own thread, which keeps what
//! the client holds between two deeds. The ring's observer stops the thread at events at which it
//! holds only what the spec says it holds (pages' locks, never the ring's mutex). It passes all
//! other events on.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use treering_engine::PageId;
use treering_engine::events::Observer;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Event, Exclusive, Fresh, Ring, Shared};

use crate::mirror::circular_buffer::CircularBuffer;

const NONE: u8 = CircularBuffer::NONE;

/// Longer than any deed takes: a thread that reports nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ring, and the leaf pages below it.
pub(super) struct Stage {
    pub(super) ring: Ring,
    /// Records of the leaf pages. The pages' locks guard them.
    pub(super) leaves: Vec<AtomicU8>,
}

/// One uninterrupted piece of a client's work.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    Share(u8),
    Lock(u8),
    Read(u8),
    /// Checks whether the mini-page is near the head.
    Look,
    /// Checks whether the client has the page exclusively, and upgrades its lock if it must.
    Upgrade,
    /// Writes into the mini-page.
    Put(u8),
    /// Allocates a block with this many payload bytes.
    Allocate(usize),
    /// Copies the old record into the new block, or this one.
    Copy(u8),
    Publish,
    Leave,
    Evict,
}

/// A report of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    /// The ring reported this event meanwhile.
    Told(Event),
    /// The thread has stopped at this event.
    Stopped(Event),
    /// The deed is done. The result is a record, a truth value as 0 or 1, or nothing.
    Done(u8),
}

enum Order {
    Do(Deed),
    GoOn,
}

/// The thread's side.
struct Side {
    orders: Receiver<Order>,
    says: Sender<Said>,
    /// The driver has gone: no more orders are waited for.
    free: bool,
}

thread_local! {
    static SIDE: RefCell<Option<Side>> = const { RefCell::new(None) };
}

/// Stops actors, or passes on the ring's events on their threads.
pub(super) struct Gate;

impl Observer<Event> for Gate {
    fn event(&self, event: Event) {
        SIDE.with_borrow_mut(|side| {
            let Some(side) = side.as_mut().filter(|side| !side.free) else {
                return;
            };
            let stops = matches!(
                event,
                Event::Published { .. }
                    | Event::Pauses { .. }
                    | Event::VictimLocked { .. }
                    | Event::Merged { .. }
            );
            let said = if stops {
                Said::Stopped(event)
            } else {
                Said::Told(event)
            };
            let gone = side.says.send(said).is_err();
            side.free = gone || stops && side.orders.recv().is_err();
        });
    }
}

/// A client's thread. When dropped, it finishes its deed and releases what it holds.
pub(super) struct Actor {
    orders: Option<Sender<Order>>,
    said: Receiver<Said>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    pub(super) fn new(stage: Arc<Stage>) -> Actor {
        let (orders, received) = channel();
        let (says, said) = channel();
        let thread = std::thread::spawn(move || {
            let side = Side {
                orders: received,
                says,
                free: false,
            };
            SIDE.set(Some(side));
            serve(&stage);
        });
        Actor {
            orders: Some(orders),
            said,
            thread: Some(thread),
        }
    }

    fn order(&self, order: Order) -> Result<(), String> {
        let orders = self.orders.as_ref().ok_or("the thread has gone")?;
        (orders.send(order)).map_err(|_| "the thread has panicked".to_owned())
    }

    pub(super) fn begin(&self, deed: Deed) -> Result<(), String> {
        self.order(Order::Do(deed))
    }

    pub(super) fn go_on(&self) -> Result<(), String> {
        self.order(Order::GoOn)
    }

    pub(super) fn wait(&self) -> Result<Said, String> {
        let said = self.said.recv_timeout(PATIENCE);
        said.map_err(|_| "the thread is stuck, or has panicked".to_owned())
    }

    /// Lets the thread run to its end, without waiting for it.
    pub(super) fn let_go(&mut self) {
        self.orders = None;
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.let_go();
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, that has been reported already.
            drop(thread.join());
        }
    }
}

/// The guards that a client holds between two steps.
enum Hand<'a> {
    Empty,
    Shared(Shared<'a>),
    Alone(Exclusive<'a>),
    Fresh(Fresh<'a>),
}

fn serve(stage: &Stage) {
    let mut hand = Hand::Empty;
    loop {
        let order = SIDE.with_borrow(|side| side.as_ref()?.orders.recv().ok());
        let Some(Order::Do(deed)) = order else {
            return;
        };
        let (held, answer) = perform(stage, hand, deed);
        hand = held;
        SIDE.with_borrow(|side| {
            let side = side.as_ref().expect("an actor's thread");
            // Fails if the driver has gone: then nobody listens.
            let _ = side.says.send(Said::Done(answer));
        });
    }
}

fn leaf() -> LeafAddress {
    LeafAddress::new(0).expect("0 is an address")
}

fn perform<'a>(stage: &'a Stage, hand: Hand<'a>, deed: Deed) -> (Hand<'a>, u8) {
    let ring = &stage.ring;
    match (deed, hand) {
        (Deed::Share(page), Hand::Empty) => match ring.try_shared(PageId(page.into())) {
            Ok(Some(guard)) => (Hand::Shared(guard), 1),
            _ => (Hand::Empty, 0),
        },
        (Deed::Lock(page), Hand::Empty) => match ring.try_exclusive(PageId(page.into())) {
            Ok(Some(guard)) => (Hand::Alone(guard), 1),
            _ => (Hand::Empty, 0),
        },
        (Deed::Read(page), Hand::Shared(guard)) => {
            let cached = guard.bytes().map(|bytes| bytes[0]);
            let cached = cached.filter(|rec| *rec != NONE);
            let found = cached.unwrap_or_else(|| stage.leaves[usize::from(page)].load(Relaxed));
            (Hand::Shared(guard), found)
        }
        (Deed::Look, Hand::Shared(guard)) => {
            let near = guard.in_copy_on_access_region();
            (Hand::Shared(guard), near.into())
        }
        (Deed::Look, Hand::Alone(guard)) => {
            let near = guard.in_copy_on_access_region();
            (Hand::Alone(guard), near.into())
        }
        (Deed::Upgrade, Hand::Shared(guard)) => match guard.try_upgrade() {
            Ok(guard) => (Hand::Alone(guard), 1),
            Err(guard) => (Hand::Shared(guard), 0),
        },
        (Deed::Upgrade, Hand::Alone(guard)) => (Hand::Alone(guard), 1),
        (Deed::Put(value), Hand::Alone(mut guard)) => {
            let done = guard.bytes_mut().map(|bytes| {
                bytes[0] = value;
                bytes[1] = 1;
            });
            (Hand::Alone(guard), done.is_some().into())
        }
        (Deed::Allocate(len), Hand::Alone(guard)) => match guard.allocate(len) {
            Ok(fresh) => (Hand::Fresh(fresh), 1),
            Err(none) => match none.give_back() {
                AllocateError::Full(_) => (Hand::Empty, 0),
                AllocateError::TooLarge { .. } => (Hand::Empty, NONE),
            },
        },
        (Deed::Copy(rec), Hand::Fresh(mut fresh)) => {
            let (old, new) = fresh.both();
            let (rec, dirty) = old.map_or((rec, 0), |old| (old[0], old[1]));
            (new[0], new[1]) = (rec, dirty);
            (Hand::Fresh(fresh), 0)
        }
        (Deed::Publish, Hand::Fresh(fresh)) => (Hand::Alone(fresh.publish()), 0),
        (Deed::Leave, _) => (Hand::Empty, 0),
        (Deed::Evict, Hand::Empty) => {
            let merge = |page: PageId, bytes: &mut [u8]| {
                if bytes[1] != 0 {
                    stage.leaves[page.0 as usize].store(bytes[0], Relaxed);
                }
                Ok::<_, Infallible>(leaf())
            };
            // The events report the result.
            let Ok(_) = ring.evict(merge);
            (Hand::Empty, 0)
        }
        (_, hand) => (hand, NONE),
    }
}

pub(super) fn page_without_block() -> LeafAddress {
    leaf()
}
