//! The operations of a replay, numbered and made to fit: what is loaded first, then the trace.

use treering_traces::{Op, OpSource};

use super::config::ReplayConfig;
use super::error::ReplayError;
use super::fit::{Takes, make_fit};
use super::look::Looked;
use super::preload::Input;

/// Where clients take their operations from.
pub(super) struct Source<'a> {
    config: &'a ReplayConfig,
    looked: &'a Looked,
    input: Input,
    trace: String,
    takes: Takes,
    /// Operations taken so far: the number of the one at hand.
    number: u64,
    /// No operation after this one, for now.
    until: u64,
}

/// What a client got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An operation to do.
    Op,
    /// One to leave out: no store takes its record.
    Skip,
    /// None: the source is at its end, or the replay was told to stop.
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
            takes: config.tree.takes(),
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

    /// How many were taken: the number of the operation at hand.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Is over after so many, until told otherwise.
    pub(super) fn end_after(&mut self, ops: u64) {
        self.until = ops;
    }
}
