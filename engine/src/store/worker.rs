//! The background thread of stores that are opened by path.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::core::Core;
use crate::sync::Arc;

/// A thread that pumps a store until the last handle is dropped.
pub(super) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start another thread.
    pub(super) fn start(core: Arc<Core>) -> std::io::Result<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let body = move || {
            // A device failure ends background work. The store then refuses writes with its cause.
            drop(core.pump_until(&told));
        };
        let thread = std::thread::Builder::new().name("treering".into());
        let thread = thread.spawn(body)?;
        Ok(Worker {
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Stops the thread and waits for it. The store stays usable, without background work.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let thread = match self.thread.lock() {
            Ok(mut thread) => thread.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if let Some(thread) = thread {
            // A panic has already been reported by the thread itself.
            drop(thread.join());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
