//! One store a device: who has a device object open in this process.
//!
//! A second store on one device object would write over the first one's pages with its own idea of
//! what is free. A file has a lock against other processes and other objects; this is the same for
//! one object that two stores are given. Looking without writing may be shared.

use std::collections::HashMap;
// A plain lock: it guards no more than who opens what, which no explorer need see, and a static
// cannot be made of an explorer's.
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::Arc;

/// What claims there are, by the address of the device object.
static CLAIMS: LazyLock<Mutex<HashMap<usize, Use>>> = LazyLock::new(Mutex::default);

/// How a device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Alone,
    /// By so many that write nothing.
    Shared(usize),
}

/// Whether others may look at the device meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    /// The store writes.
    Alone,
    /// It only reads.
    Shared,
}

/// A device that is in use; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(usize);

impl Claim {
    /// Claims `device`, which must live at least as long as the claim: its address is what tells it
    /// from others.
    ///
    /// # Errors
    /// [`Error::InUse`] if another store has it.
    pub(crate) fn take<D: ?Sized>(device: &Arc<D>, claims: Claims) -> Result<Claim> {
        let at = Arc::as_ptr(device).cast::<()>().addr();
        let mut all = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match (all.get(&at), claims) {
            (None, Claims::Alone) => Use::Alone,
            (None, Claims::Shared) => Use::Shared(1),
            (Some(Use::Shared(n)), Claims::Shared) => Use::Shared(n + 1),
            _ if mutation::on("claim-not-taken") => Use::Alone,
            _ => return Err(Error::InUse),
        };
        all.insert(at, next);
        Ok(Claim(at))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut all = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&self.0) {
            Some(Use::Shared(n)) if *n > 1 => *n -= 1,
            _ => {
                all.remove(&self.0);
            }
        }
    }
}
