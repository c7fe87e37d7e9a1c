//! Redistributes three leaves of a node into two, as [`crate::pm::leaves::share`] does: by a split
//! into the leaf that puts leave to deletes, and two merges, all under the node's lock.

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::leaves::share::keys_to_the_left;
use crate::pm::space::Room;

use super::Lodge;
use super::leaf::SLOTS;
use super::node::Body;

impl Lodge {
    /// Redistributes every leaf of a node that fits into its two neighbours.
    pub(super) fn share_leaves(&self, body: &mut Body) -> Result<()> {
        if mutation::on("pm-full-without-sharing") {
            return Ok(());
        }
        let mut at = 0;
        while at + 2 < body.leaves() {
            match self.share_next(body, at) {
                Ok(true) => at += 2,
                Ok(false) => at += 1,
                // The buffered pairs have no room, or no leaf is free for this.
                Err(Error::PmFull { .. }) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Redistributes the leaf behind the one at `at` among its two neighbours, if they fit in two
    /// leaves. Returns whether it did.
    fn share_next(&self, body: &mut Body, at: usize) -> Result<bool> {
        let visits = [
            self.visit(body, at)?,
            self.visit(body, at + 1)?,
            self.visit(body, at + 2)?,
        ];
        let keys = [0, 1, 2].map(|nth: usize| visits[nth].keys_after());
        let Some(lower) = keys_to_the_left(keys, self.options.t_split) else {
            return Ok(false);
        };
        if keys.iter().any(|keys| *keys > SLOTS) {
            return Ok(false);
        }
        for visit in visits {
            self.merge_buffered(body, visit)?;
        }
        let middle = self.visit(body, at + 1)?;
        self.split_at(body, middle, Some(lower), Room::Delete)?;
        self.link_past(body, at)?;
        self.link_past(body, at + 1)?;
        Ok(true)
    }
}
