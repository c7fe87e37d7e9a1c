//! Claims that allow one store per device object within a process.
//!
//! Two stores on one device object would overwrite each other's pages, because each has its own map
//! of free space. A file lock protects against other processes and other device objects; a claim
//! protects one object that is passed to two stores. Read-only use may be shared.

use std::collections::HashMap;
// A plain lock of the standard library: it only guards who opens what, which no explorer needs to
// see, and an explorer's lock cannot be put in a static.
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::Arc;

/// The claims in force, by the address of the device object.
static CLAIMS: LazyLock<Mutex<HashMap<usize, Use>>> = LazyLock::new(Mutex::default);

/// The current use of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Alone,
    /// By this many users that write nothing.
    Shared(usize),
}

/// Whether a claim allows other users at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    /// Exclusive: the store writes.
    Alone,
    /// Shared: the store only reads.
    Shared,
}

/// A claim on a device. Dropping it releases the device.
#[derive(Debug)]
pub(crate) struct Claim(usize);

impl Claim {
    /// Claims `device`, which must live at least as long as the claim, because its address
    /// identifies it.
    ///
    /// # Errors
    /// [`Error::InUse`] if another store has claimed it.
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
