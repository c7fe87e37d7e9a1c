//! Where events go: the interface between the faces and a recording.

use std::sync::Arc;

use parking_lot::Mutex;

use super::event::{Event, Write};

/// The recording cannot go on, for example because its disk is full. A face answers the program
/// with `EIO`, so that nothing is acknowledged that is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording has stopped")]
pub struct Stopped;

/// Takes events in their order. Called with the face's own lock held: it must be quick.
pub trait Sink: Send + Sync {
    /// Takes an event other than a write.
    ///
    /// # Errors
    /// [`Stopped`].
    fn note(&self, event: Event) -> Result<(), Stopped>;

    /// Takes a write and its bytes: `bytes.len()` is `write.len`.
    ///
    /// # Errors
    /// [`Stopped`].
    fn write(&self, write: Write, bytes: &[u8]) -> Result<(), Stopped>;
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn note(&self, event: Event) -> Result<(), Stopped> {
        (**self).note(event)
    }

    fn write(&self, write: Write, bytes: &[u8]) -> Result<(), Stopped> {
        (**self).write(write, bytes)
    }
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn note(&self, _: Event) -> Result<(), Stopped> {
        Ok(())
    }

    fn write(&self, _: Write, _: &[u8]) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Keeps events and their bytes, for tests.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Vec<(Event, Vec<u8>)>>);

impl InMemory {
    /// Takes what was recorded so far.
    #[must_use]
    pub fn take(&self) -> Vec<(Event, Vec<u8>)> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Sink for InMemory {
    fn note(&self, event: Event) -> Result<(), Stopped> {
        self.0.lock().push((event, Vec::new()));
        Ok(())
    }

    fn write(&self, write: Write, bytes: &[u8]) -> Result<(), Stopped> {
        self.0.lock().push((Event::Write(write), bytes.to_vec()));
        Ok(())
    }
}
