//! The one module for synchronisation: parking_lot and std as shipped, loom under `--cfg loom`, shuttle under `--cfg shuttle`.
//!
//! Every lock, condition variable and atomic of the engine comes from here, so that the code which loom and shuttle explore is the
//! code which ships: loom every schedule of a part, shuttle many of the whole store. The common ground is parking_lot's shape: guards
//! without poison, `Condvar::wait(&mut guard)`. Atomics from here cannot be built in a `const` or `static` (loom's cannot). [`Arc`] and
//! `OnceLock` are std's: neither explorer need see them, as nothing that fills a `OnceLock` reaches a scheduling point.

mod turns;

pub use std::sync::Arc;
pub use turns::{Turn, Turns};

#[cfg(all(feature = "pauses", not(any(loom, shuttle))))]
mod paused;
#[cfg(all(feature = "pauses", not(any(loom, shuttle))))]
pub use paused::{Pausing, pause_here};

/// An explorer tries schedules by itself.
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

    /// A step that others could see comes next; see the feature `pauses`.
    #[cfg(not(feature = "pauses"))]
    #[inline]
    pub(crate) fn step() {}

    /// Shared access instead of exclusive, without a moment between in which others write. An
    /// explorer's lock cannot do that: there is such a moment, and whoever calls this looks again.
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

    /// A step that others could see comes next: explorers see them all.
    pub(crate) fn step() {}

    /// Hints to the processor; for an explorer a spin is a yield.
    pub mod hint {
        pub use super::explorer::hint::spin_loop;
    }

    /// The explorer's mutex with parking_lot's manners.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(l::Mutex<T>);

    /// Access to what a [`Mutex`] protects. The option is empty only inside [`Condvar::wait`].
    #[derive(Debug)]
    pub struct MutexGuard<'a, T>(Option<l::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        /// A mutex around `value`.
        pub fn new(value: T) -> Self {
            Self(l::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("a model that panics has ended")))
        }

        /// The lock, if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
        }

        /// The value, no longer shared.
        pub fn into_inner(self) -> T {
            self.0.into_inner().expect("a model that panics has ended")
        }

        /// The value through an exclusive borrow.
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

    /// The explorer's reader-writer lock with parking_lot's manners.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(l::RwLock<T>);

    pub use l::{RwLockReadGuard, RwLockWriteGuard};

    impl<T> RwLock<T> {
        /// A lock around `value`.
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

        /// Shared access, if no writer holds the lock.
        pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        /// Exclusive access, if nobody holds the lock.
        pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }

        /// The value, no longer shared.
        pub fn into_inner(self) -> T {
            self.0.into_inner().expect("a model that panics has ended")
        }
    }

    /// Shared access instead of exclusive; others may have written in between.
    pub fn downgrade<'a, T>(
        lock: &'a RwLock<T>,
        guard: RwLockWriteGuard<'a, T>,
    ) -> RwLockReadGuard<'a, T> {
        drop(guard);
        lock.read()
    }

    /// The explorer's condition variable with parking_lot's manners.
    #[derive(Debug, Default)]
    pub struct Condvar(l::Condvar);

    impl Condvar {
        /// A variable nobody waits for.
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

/// Waits for something that is near: spins, twice as long each time, then gives the processor away. An explorer yields at once.
#[derive(Debug, Default)]
pub struct Backoff {
    waited: u32,
}

impl Backoff {
    /// Spins of up to 2^6 hints; behind them whoever is waited for may need this very processor.
    const SPINS: u32 = 7;

    /// Nothing waited yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits a little longer than the last time.
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
