//! The only module for synchronisation primitives: parking_lot and std in normal builds, loom under
//! `--cfg loom`, shuttle under `--cfg shuttle`.
//!
//! Every lock, condition variable and atomic of the engine comes from here. So the code that loom
//! and shuttle explore is the code that ships: loom explores every schedule of one part, shuttle
//! many schedules of the whole store. All variants have parking_lot's interface: guards without
//! poison, `Condvar::wait(&mut guard)`. Atomics from here cannot be built in a `const` or `static`
//! (loom's cannot). [`Arc`] and `OnceLock` are std's. Explorers need not see them, because no
//! initialiser of a `OnceLock` reaches a scheduling point.

mod gate;
mod turns;

pub use gate::{Closed, Gate, Pass};
pub use std::sync::Arc;
pub use turns::{Turn, Turns};

#[cfg(all(feature = "pauses", not(any(loom, shuttle))))]
mod paused;
#[cfg(all(feature = "pauses", not(any(loom, shuttle))))]
pub use paused::{Pausing, pause_here};

/// Does nothing: an explorer tries schedules by itself.
#[cfg(all(feature = "pauses", any(loom, shuttle)))]
pub fn pause_here(_seed: u64, _thread: u64) {}

#[cfg(not(any(loom, shuttle)))]
mod plain {
    pub use parking_lot::{Condvar, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    pub use std::thread::yield_now;

    #[cfg(feature = "pauses")]
    pub(crate) use super::paused::step;
    #[cfg(feature = "pauses")]
    pub use super::paused::{Mutex, RwLock, atomic};
    #[cfg(not(feature = "pauses"))]
    pub use parking_lot::{Mutex, RwLock};

    /// Called before a step that other threads could see; see the feature `pauses`.
    #[cfg(not(feature = "pauses"))]
    #[inline]
    pub(crate) fn step() {}

    /// Turns exclusive access into shared access, without a gap in which others could write. An
    /// explorer's lock cannot do that: there is such a gap, and callers must check again.
    #[inline]
    pub fn downgrade<'a, T>(
        _lock: &'a RwLock<T>,
        guard: RwLockWriteGuard<'a, T>,
    ) -> RwLockReadGuard<'a, T> {
        RwLockWriteGuard::downgrade(guard)
    }

    /// Atomic types and fences.
    #[cfg(not(feature = "pauses"))]
    pub mod atomic {
        pub use std::sync::atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
        };
    }

    /// Hints to the processor.
    pub mod hint {
        pub use std::hint::spin_loop;
    }
}

#[cfg(any(loom, shuttle))]
mod explored {
    #[cfg(loom)]
    use loom as explorer;
    #[cfg(shuttle)]
    use shuttle as explorer;

    use explorer::sync as l;
    use std::ops::{Deref, DerefMut};

    pub use explorer::thread::yield_now;

    /// Atomic types and fences.
    pub mod atomic {
        pub use super::explorer::sync::atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
        };
    }

    /// Called before a step that other threads could see. Explorers see these steps anyway.
    pub(crate) fn step() {}

    /// Hints to the processor. For an explorer, a spin is a yield.
    pub mod hint {
        pub use super::explorer::hint::spin_loop;
    }

    /// The explorer's mutex with parking_lot's interface.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(l::Mutex<T>);

    /// Access to the value of a [`Mutex`]. The option is empty only inside [`Condvar::wait`].
    #[derive(Debug)]
    pub struct MutexGuard<'a, T>(Option<l::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        /// Makes a mutex around `value`.
        pub fn new(value: T) -> Self {
            Self(l::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("a model that panics has ended")))
        }

        /// Takes the lock, if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
        }

        /// Returns the value, which is no longer shared.
        pub fn into_inner(self) -> T {
            self.0.into_inner().expect("a model that panics has ended")
        }

        /// Returns the value through an exclusive borrow.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("a model that panics has ended")
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.0
                .as_ref()
                .expect("a guard outside of wait holds the lock")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0
                .as_mut()
                .expect("a guard outside of wait holds the lock")
        }
    }

    /// The explorer's reader-writer lock with parking_lot's interface.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(l::RwLock<T>);

    pub use l::{RwLockReadGuard, RwLockWriteGuard};

    impl<T> RwLock<T> {
        /// Makes a lock around `value`.
        pub fn new(value: T) -> Self {
            Self(l::RwLock::new(value))
        }

        /// Waits for shared access.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("a model that panics has ended")
        }

        /// Waits for exclusive access.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("a model that panics has ended")
        }

        /// Takes shared access, if no writer holds the lock.
        pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        /// Takes exclusive access, if nobody holds the lock.
        pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }

        /// Returns the value, which is no longer shared.
        pub fn into_inner(self) -> T {
            self.0.into_inner().expect("a model that panics has ended")
        }
    }

    /// Turns exclusive access into shared access; others may have written in between.
    pub fn downgrade<'a, T>(
        lock: &'a RwLock<T>,
        guard: RwLockWriteGuard<'a, T>,
    ) -> RwLockReadGuard<'a, T> {
        drop(guard);
        lock.read()
    }

    /// The explorer's condition variable with parking_lot's interface.
    #[derive(Debug, Default)]
    pub struct Condvar(l::Condvar);

    impl Condvar {
        /// Makes a condition variable without waiters.
        pub fn new() -> Self {
            Self(l::Condvar::new())
        }

        /// Releases the lock, sleeps until notified, takes the lock again.
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard
                .0
                .take()
                .expect("a guard outside of wait holds the lock");
            guard.0 = Some(self.0.wait(held).expect("a model that panics has ended"));
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all waiters.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(any(loom, shuttle))]
pub use explored::*;
#[cfg(not(any(loom, shuttle)))]
pub use plain::*;

/// Waits for a condition that will soon hold: spins, twice as long each time, and then yields the
/// processor. An explorer yields at once.
#[derive(Debug, Default)]
pub struct Backoff {
    waited: u32,
}

impl Backoff {
    /// After spins of up to 2^6 hints, yield: the awaited thread may need this very processor.
    const SPINS: u32 = 7;

    /// Makes a backoff that has not waited yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits, a little longer than the last time.
    pub fn wait(&mut self) {
        if self.waited >= Self::SPINS || cfg!(any(loom, shuttle)) {
            return yield_now();
        }
        for _ in 0..1 << self.waited {
            hint::spin_loop();
        }
        self.waited += 1;
    }
}
