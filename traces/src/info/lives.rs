//! Lives of records: how many are made and deleted, and how long they live.
//!
//! A put of a key that has no record makes one. That is known of a key if the trace showed it
//! without a record before: if the put is the first operation on it, or follows a delete. The lives
//! of records that may be older than the measured operations are not measured. Neither are those
//! of records that live on at the end, so mean and percentiles are of the deleted ones.
//!
//! The table of keys (`count`) has the time of the put, so counts are exact up to 3.6 M keys, and
//! estimates from a sample beyond, with the error of [`super::ReuseTimes::error`]. Lives are exact
//! below 4,096 operations and within 1 % above (`sizes`).

use serde::Serialize;

use super::clock::{Clock, Time};
use super::count::{Before, Record};
use super::sizes::{SizeStats, Sizes};
use crate::OpKind;

/// How records come and go.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lives {
    /// Whether the numbers are estimates from a sample of the keys.
    pub estimated: bool,
    /// Puts that make a record, among them those of `made_again`.
    pub made: u64,
    /// Puts that make a record again after a delete.
    pub made_again: u64,
    /// Deletes of records that a measured put made.
    pub deleted: u64,
    /// Deletes of keys whose record, if there is one, may be older than the measured operations.
    pub deleted_older: u64,
    /// Deletes of keys that are deleted already.
    pub deleted_again: u64,
    /// Operations from the put that makes a record to its delete.
    pub life_ops: Option<SizeStats>,
}

/// The state of the pass over a trace.
pub(super) struct Deaths {
    clock: Clock,
    made: u64,
    made_again: u64,
    deleted: u64,
    deleted_older: u64,
    deleted_again: u64,
    lives: Sizes,
}

impl Deaths {
    /// Creates the state.
    pub(super) fn new(clock: Clock) -> Deaths {
        Deaths {
            clock,
            made: 0,
            made_again: 0,
            deleted: 0,
            deleted_older: 0,
            deleted_again: 0,
            lives: Sizes::of_intervals(),
        }
    }

    /// Takes an operation and what was known of its key.
    #[inline]
    pub(super) fn add(&mut self, kind: OpKind, now: Time, before: &Before) {
        let weight = before.stands_for;
        match (kind, before.record) {
            (OpKind::Put, Record::Deleted) => {
                self.made += weight;
                self.made_again += weight;
            }
            (OpKind::Put, _) if !before.is_known => self.made += weight,
            (OpKind::Delete, Record::Older) => self.deleted_older += weight,
            (OpKind::Delete, Record::Deleted) => self.deleted_again += weight,
            (OpKind::Delete, Record::Since(time)) => {
                self.deleted += weight;
                self.lives.add_many(self.clock.between(time, now), weight);
            }
            (OpKind::Put | OpKind::Get | OpKind::Scan, _) => {}
        }
    }

    /// Ends the pass.
    pub(super) fn finish(&self, estimated: bool) -> Lives {
        Lives {
            estimated,
            made: self.made,
            made_again: self.made_again,
            deleted: self.deleted,
            deleted_older: self.deleted_older,
            deleted_again: self.deleted_again,
            life_ops: self.lives.stats(),
        }
    }
}
