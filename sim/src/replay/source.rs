//! The operations of a replay, numbered and made to fit the store: first the preload, then the
//! trace.

use treering_traces::{Op, OpSource};

use super::config::ReplayConfig;
use super::error::ReplayError;
use super::fit::{Takes, make_fit};
use super::look::Looked;
use super::preload::Input;

/// The source from which clients take operations.
pub(super) struct Source<'a> {
    config: &'a ReplayConfig,
    looked: &'a Looked,
    input: Input,
    trace: String,
    takes: Takes,
    /// Number of operations taken so far, which is the number of the current one.
    number: u64,
    /// The source pauses after this operation.
    until: u64,
}

/// What a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An operation to do.
    Op,
    /// An operation to skip: its record does not fit into the store.
    Skip,
    /// The source is at its end, or the replay was told to stop.
    Over,
}

impl<'a> Source<'a> {
    pub(super) fn open(
        config: &'a ReplayConfig,
        looked: &'a Looked,
    ) -> Result<Source<'a>, ReplayError> {
        Ok(Source {
            config,
            looked,
            input: Input::open(&config.trace, &looked.loads)?,
            trace: config.trace.display().to_string(),
            takes: config.tree.takes(&looked.header),
            number: 0,
            until: looked.ops,
        })
    }

    /// The next operation.
    #[inline]
    pub(super) fn next(&mut self, op: &mut Op) -> Result<Next, ReplayError> {
        let ended = self.number == self.until || self.config.stop.is_set();
        if ended || !self.input.next_op(op)? {
            return Ok(Next::Over);
        }
        self.number += 1;
        let numbers = (self.number, self.looked.loads.len());
        let oversize = self.config.oversize;
        Ok(
            match make_fit(op, numbers, self.takes, oversize, &self.trace)? {
                true => Next::Op,
                false => Next::Skip,
            },
        )
    }

    /// Number of operations taken, which is the number of the current one.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Makes the source end after this many operations, until it is set again.
    pub(super) fn end_after(&mut self, ops: u64) {
        self.until = ops;
    }
}
