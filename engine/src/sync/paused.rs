//! Locks and atomics that now and then let other threads go first. Built with the feature `pauses`.
//!
//! A race shows up only if one thread is delayed in its critical window while others run. With few
//! processors, a window of a few instructions is hardly ever hit. Here, a thread may be delayed
//! before every step that another thread could see: taking a lock, reading or writing an atomic,
//! touching persistent memory. A seed selects places, by their line in the source, and how often
//! each delays. So each seed widens a few windows, and over many seeds every window gets its turn.
//!
//! Only threads that ask for it ([`pause_here`]) are ever delayed; the others pay for reading one
//! word that hardly ever changes. Without the feature, nothing of this is compiled.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// One place in this many delays threads.
const PLACES: u64 = 12;
/// At any other place, a thread yields once in this many steps.
const YIELDS: u64 = 512;
/// The maximum number of sleeps for one [`pause_here`], so that a place on a hot path does not use
/// up all the time; and the longest sleep, in microseconds. With one seed in four, sleeps are few
/// and long, so that a whole checkpoint can happen during one.
fn sleeps(seed: u64) -> (u32, u64) {
    match (seed >> 9).is_multiple_of(4) {
        true => (40, 8_000),
        false => (400, 300),
    }
}

/// The number of threads that asked for pauses. Zero costs a load and a branch at every step.
static ASKED: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy)]
struct Turn {
    /// Selects the places; 0 means none.
    seed: u64,
    random: u64,
    sleeps: u32,
}

thread_local! {
    static TURN: Cell<Turn> = const {
        Cell::new(Turn { seed: 0, random: 0, sleeps: 0 })
    };
}

/// Allows this thread to be delayed until this is dropped.
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

/// Allows the calling thread to be delayed at the places that `seed` selects. `thread`
/// distinguishes threads with the same seed: they are delayed at the same places, but not at the
/// same times.
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

/// Called before a step that other threads could see.
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
        // The length of the file name distinguishes files well enough, and is free.
        let name = u64::from(place.line()) << 32
            | u64::from(place.column()) << 16
            | place.file().len() as u64;
        let of_place = mix(turn.seed ^ mix(name));
        let chosen = of_place.is_multiple_of(PLACES);
        // A chosen place delays every second to every 128th time.
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
    /// Makes a mutex around `value`.
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

    /// Takes the lock, if it is free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, T>> {
        step();
        self.0.try_lock()
    }

    /// Returns the value, which is no longer shared.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Returns the value through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A reader-writer lock with a pause before each lock.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// Makes a lock around `value`.
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

    /// Takes shared access, if no writer holds the lock.
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> Option<parking_lot::RwLockReadGuard<'_, T>> {
        step();
        self.0.try_read()
    }

    /// Takes exclusive access, if nobody holds the lock.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> Option<parking_lot::RwLockWriteGuard<'_, T>> {
        step();
        self.0.try_write()
    }

    /// Returns the value, which is no longer shared.
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
                /// Makes an atomic that holds `value`.
                pub const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                /// As the method of std.
                #[inline]
                #[track_caller]
                pub fn load(&self, order: Ordering) -> $value {
                    step();
                    self.0.load(order)
                }

                /// As the method of std.
                #[inline]
                #[track_caller]
                pub fn store(&self, value: $value, order: Ordering) {
                    step();
                    self.0.store(value, order);
                }

                /// As the method of std.
                #[inline]
                #[track_caller]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    step();
                    self.0.swap(value, order)
                }

                /// As the method of std.
                ///
                /// # Errors
                /// The present value, if it is not `from`.
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

                /// Returns the value through an exclusive borrow.
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
                    /// As the method of std.
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
