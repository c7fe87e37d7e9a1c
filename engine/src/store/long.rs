//! Reads and writes of long values, which are stored outside the leaves. See [`crate::overflow`]
//! for how they are kept.

use std::ops::ControlFlow;

use super::core::Core;
use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::overflow::Pointer;
use crate::types::Lsn;

impl Core {
    /// Writes the value to its own places, then sets the key to a pointer to them.
    pub(super) fn put_long(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let leaves = self.tree.leaves();
        let pointer = self.change(&mut || leaves.try_write_value(key, value))?;
        let stored = pointer.encode();
        let put = self.change(&mut || self.tree.try_put(key, &stored));
        match put {
            // These errors mean that nothing was appended, so the places are free. After any other
            // error a record may have been appended. Then the next opening finds out whether the
            // places are free.
            Err(e @ (Error::Full { .. } | Error::LogFull { .. } | Error::NoSpace { .. })) => {
                leaves.pager.give_value_up(&pointer)?;
                Err(e)
            }
            put => put,
        }
    }

    /// Reads the long value of `key`. `value` holds the encoded `pointer` that was just found, and
    /// receives the value. Returns `false` if the key has been deleted meanwhile.
    pub(super) fn get_long(
        &self,
        key: &[u8],
        pointer: Pointer,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let pager = &*self.tree.leaves().pager;
        let mut pointer = pointer;
        loop {
            value.clear();
            let Err(e) = pager.read_value(key, &pointer, value) else {
                return Ok(true);
            };
            if !matches!(e, Error::Damaged { .. }) {
                return Err(e);
            }
            // The value may have been replaced and its places reused. If the pointer is still the
            // same, it was not replaced, and the damage is real.
            if !self.get_stored(key, value)? {
                return Ok(false);
            }
            match Pointer::of(value) {
                None => return Ok(true),
                Some(same) if same == pointer => return Err(e),
                Some(other) => pointer = other,
            }
        }
    }

    /// Runs `scan` with a visitor that follows pointers, so that `visit` gets the long values. Each
    /// is read when the scan reaches it.
    pub(super) fn following(
        &self,
        visit: &mut Visitor<'_>,
        scan: impl FnOnce(&mut Visitor<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut failed = None;
        let mut value = Vec::new();
        scan(&mut |key, stored| {
            let Some(pointer) = Pointer::of(stored) else {
                return visit(key, stored);
            };
            match self.get_long(key, pointer, &mut value) {
                Ok(true) => visit(key, &value),
                // The key was deleted meanwhile.
                Ok(false) => ControlFlow::Continue(()),
                Err(e) => {
                    failed = Some(e);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}
