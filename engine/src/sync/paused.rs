//! Locks and atomics that let others go first, now and then: with the feature `pauses`.
//!
//! A race shows if one thread is held up in its window while others run through theirs. On few
//! processors a window of a few instructions is hardly ever met. Here every step that another
//! thread could see (a lock taken, an atomic read or written, persistent memory touched) is a place
//! where a thread may be held up. A seed decides which places, by their line in the source, and how
//! often; so each seed makes another few windows wide, and over the seeds each of them.
//!
//! Only threads that ask for it ([`pause_here`]) are ever held up; the others pay for a look at a
//! word that hardly ever changes. Without the feature there is nothing of this.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// One place in so many holds threads up.
const PLACES: u64 = 12;
/// Anywhere else a thread yields once in so many steps.
const YIELDS: u64 = 512;
/// How often a thread sleeps at the most for one [`pause_here`], as a place that is passed all the
/// time would use up all of it; and the longest sleep, in microseconds. With one seed in four the
/// sleeps are few and long, so that a whole checkpoint has its time within one.
fn sleeps(seed: u64) -> (u32, u64) {
    match (seed >> 9).is_multiple_of(4) {
        true => (40, 8_000),
        false => (400, 300),
    }
}

/// Threads that asked for it. Zero costs a load and a branch at every step.
static ASKED: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy)]
struct Turn {
    /// Which places; 0: none.
    seed: u64,
    random: u64,
    sleeps: u32,
}

thread_local! {
    static TURN: Cell<Turn> = const {
        Cell::new(Turn { seed: 0, random: 0, sleeps: 0 })
    };
}

/// Lets this thread be held up until this is dropped.
#[derive(Debug)]
pub struct Pausing(());

impl Drop for Pausing {
    fn drop(&mut self) {
        ASKED.fetch_sub(1, Relaxed);
        TURN.with(|turn| {
            turn.set(Turn {
                seed: 0,
                random: 0,
                sleeps: 0,
            });
        });
    }
}

/// Lets the calling thread be held up, at places that `seed` decides; `thread` tells it from others
/// with the same seed, which are held up at the same places, but not at the same times.
#[must_use]
pub fn pause_here(seed: u64, thread: u64) -> Pausing {
    ASKED.fetch_add(1, Relaxed);
    TURN.with(|turn| {
        turn.set(Turn {
            seed: seed | 1,
            random: mix(seed ^ mix(thread)),
            sleeps: 0,
        });
    });
    Pausing(())
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ (word >> 32)
}

/// A step that others could see comes next.
#[inline]
#[track_caller]
pub(crate) fn step() {
    if ASKED.load(Relaxed) != 0 {
        perhaps(Location::caller());
    }
}

#[cold]
fn perhaps(place: &Location<'_>) {
    TURN.with(|cell| {
        let mut turn = cell.get();
        if turn.seed == 0 {
            return;
        }
        turn.random = turn.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let random = mix(turn.random);
        // The file's length tells files apart well enough, and costs nothing.
        let name = u64::from(place.line()) << 32
            | u64::from(place.column()) << 16
            | place.file().len() as u64;
        let of_place = mix(turn.seed ^ mix(name));
        let chosen = of_place.is_multiple_of(PLACES);
        // From every second time to every 128th.
        let one_in = 2 << (of_place >> 32 & 7).min(6);
        let (most, longest) = sleeps(turn.seed);
        if chosen && turn.sleeps < most && random.is_multiple_of(one_in) {
            turn.sleeps += 1;
            cell.set(turn);
            std::thread::sleep(Duration::from_micros((random >> 32) % longest));
        } else {
            cell.set(turn);
            if random.is_multiple_of(YIELDS) {
                std::thread::yield_now();
            }
        }
    });
}

/// A mutex with a pause before each lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> parking_lot::MutexGuard<'_, T> {
        step();
        self.0.lock()
    }

    /// The lock, if it is free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, T>> {
        step();
        self.0.try_lock()
    }

    /// The value, no longer shared.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// The value through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A reader-writer lock with a pause before each lock.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    /// Waits for shared access.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> parking_lot::RwLockReadGuard<'_, T> {
        step();
        self.0.read()
    }

    /// Waits for exclusive access.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> parking_lot::RwLockWriteGuard<'_, T> {
        step();
        self.0.write()
    }

    /// Shared access, if no writer holds the lock.
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> Option<parking_lot::RwLockReadGuard<'_, T>> {
        step();
        self.0.try_read()
    }

    /// Exclusive access, if nobody holds the lock.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> Option<parking_lot::RwLockWriteGuard<'_, T>> {
        step();
        self.0.try_write()
    }

    /// The value, no longer shared.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Atomic types with a pause before each access, and fences.
pub mod atomic {
    pub use std::sync::atomic::{Ordering, fence};

    use super::step;

    macro_rules! common {
        ($name:ident, $value:ty) => {
            #[doc = concat!("`", stringify!($name), "` of std, with a pause before each access.")]
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub struct $name(std::sync::atomic::$name);

            impl $name {
                /// Holds `value`.
                pub const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                /// As std's.
                #[inline]
                #[track_caller]
                pub fn load(&self, order: Ordering) -> $value {
                    step();
                    self.0.load(order)
                }

                /// As std's.
                #[inline]
                #[track_caller]
                pub fn store(&self, value: $value, order: Ordering) {
                    step();
                    self.0.store(value, order);
                }

                /// As std's.
                #[inline]
                #[track_caller]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    step();
                    self.0.swap(value, order)
                }

                /// As std's.
                ///
                /// # Errors
                /// The value that was there instead of `from`.
                #[inline]
                #[track_caller]
                pub fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    step();
                    self.0.compare_exchange(from, to, success, failure)
                }

                /// The value through an exclusive borrow.
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }
            }
        };
    }

    macro_rules! whole {
        ($name:ident, $value:ty) => {
            common!($name, $value);
            whole!($name, $value: fetch_add fetch_sub fetch_or fetch_and fetch_max fetch_min);
        };
        ($name:ident, $value:ty: $($change:ident)*) => {
            impl $name {
                $(
                    /// As std's.
                    #[inline]
                    #[track_caller]
                    pub fn $change(&self, value: $value, order: Ordering) -> $value {
                        step();
                        self.0.$change(value, order)
                    }
                )*
            }
        };
    }

    common!(AtomicBool, bool);
    whole!(AtomicU32, u32);
    whole!(AtomicU64, u64);
    whole!(AtomicUsize, usize);
}
