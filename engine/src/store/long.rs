//! Long values in the operations of a store: [`crate::overflow`] says how they are kept.

use std::ops::ControlFlow;

use super::core::Core;
use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::overflow::Pointer;
use crate::types::Lsn;

impl Core {
    /// Writes the value to places of its own, then sets the key to a pointer.
    pub(super) fn put_long(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let leaves = self.tree.leaves();
        let pointer = self.change(&mut || leaves.try_write_value(key, value))?;
        let stored = pointer.encode();
        let put = self.change(&mut || self.tree.try_put(key, &stored));
        match put {
            // Refused before anything was appended. What fails otherwise may have been: then the
            // next opening knows whether the places are free.
            Err(e @ (Error::Full { .. } | Error::LogFull { .. } | Error::NoSpace { .. })) => {
                leaves.pager.give_value_up(&pointer)?;
                Err(e)
            }
            put => put,
        }
    }

    /// Follows a pointer that was just found under `key`, and that is in `value`.
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
            // Replaced since, perhaps, and its places written again. A pointer that is still there
            // never was.
            if !self.tree.get(key, value)? {
                return Ok(false);
            }
            match Pointer::of(value) {
                None => return Ok(true),
                Some(same) if same == pointer => return Err(e),
                Some(other) => pointer = other,
            }
        }
    }

    /// Has `scan` visit what the tree has, pointers followed: one by one, as the visitor comes to
    /// them.
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
                // Deleted since.
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
