//! The thread that does a store's background work, for stores that are opened by path.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::core::Core;
use crate::sync::Arc;

/// A thread that pumps a store until its last handle is gone.
pub(super) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub(super) fn start(core: Arc<Core>) -> std::io::Result<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let body = move || {
            // A device failure ends background work; the store then refuses writes and says why.
            drop(core.pump_until(&told));
        };
        let thread = std::thread::Builder::new().name("treering".into());
        let thread = thread.spawn(body)?;
        Ok(Worker {
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends the thread and waits for it. The store can be used further, without background work.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let thread = match self.thread.lock() {
            Ok(mut thread) => thread.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if let Some(thread) = thread {
            // If it panicked, that was reported where it happened.
            drop(thread.join());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
