//! What a store takes, and what becomes of records that it does not.

use treering_engine::MAX_VALUE_BYTES;
use treering_traces::{Op, OpKind};

use super::error::ReplayError;

/// What happens to records that no store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// The replay ends with an error.
    Reject,
    /// The value is cut to the longest that a store takes; a key that is too long is an error.
    Clamp,
    /// The operation is left out and counted.
    Skip,
}

/// Makes an operation one that the store takes ([`fit`]); returns `false` if it is to be left out.
#[inline]
pub(super) fn make_fit(
    op: &mut Op,
    numbers: (u64, u64),
    takes: Takes,
    oversize: Oversize,
    trace: &str,
) -> Result<bool, ReplayError> {
    if op.kind != OpKind::Put {
        return Ok(true);
    }
    Ok(match fit(op, numbers, takes, oversize, trace)? {
        Fit::Yes(value_len) => {
            op.value_len = value_len;
            true
        }
        Fit::Skip => false,
    })
}

/// What to do with a record that no store takes.
enum Fit {
    /// Do it, with a value of this length.
    Yes(u32),
    Skip,
}

/// What a store takes.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    /// Bytes of the longest key.
    pub(super) max_key: usize,
    /// Bytes of a page, which decide about keys; `None`: it has no pages, and takes every key.
    pub(super) page_size: Option<usize>,
}

impl Takes {
    /// A store of pages.
    pub(super) fn of_pages(limits: &treering_engine::node::Limits) -> Takes {
        Takes {
            max_key: limits.max_key,
            page_size: Some(limits.page_size),
        }
    }

    /// One in persistent memory, whose chunks are longer than any key of a trace.
    pub(super) const OF_MEMORY: Takes = Takes {
        max_key: u16::MAX as usize,
        page_size: None,
    };

    /// What is said of a record that it does not take.
    fn refusal(self, key: usize, value: usize) -> String {
        match self.page_size {
            Some(page_size) => format!(
                "a key of {key} bytes with a value of {value} is over what a store with pages of \
                 {page_size} bytes takes: a key of {}, a value of {MAX_VALUE_BYTES}; expected a \
                 larger --page for the key, or --oversize clamp or skip",
                self.max_key
            ),
            None => format!(
                "a value of {value} bytes is longer than the {MAX_VALUE_BYTES} that a store takes; \
                 expected --oversize clamp or skip"
            ),
        }
    }
}

/// Holds one put against the limits of a store: of keys, by the page, and of values. It is number
/// `number` of all, of which `loaded` come before the trace: what of these no store takes is made
/// to fit, or left out, as the trace itself will say so if it matters.
fn fit(
    op: &Op,
    (number, loaded): (u64, u64),
    takes: Takes,
    oversize: Oversize,
    trace: &str,
) -> Result<Fit, ReplayError> {
    let value_len = op.value_len as usize;
    let key_fits = op.key.len() <= takes.max_key;
    if key_fits && value_len <= MAX_VALUE_BYTES {
        return Ok(Fit::Yes(op.value_len));
    }
    let reject = || ReplayError::Operation {
        trace: trace.into(),
        op: number.saturating_sub(loaded),
        why: takes.refusal(op.key.len(), value_len),
    };
    if number <= loaded {
        return Ok(match key_fits {
            true => Fit::Yes(MAX_VALUE_BYTES as u32),
            false => Fit::Skip,
        });
    }
    match oversize {
        Oversize::Reject => Err(reject()),
        Oversize::Skip => Ok(Fit::Skip),
        Oversize::Clamp if !key_fits => Err(reject()),
        Oversize::Clamp => Ok(Fit::Yes(MAX_VALUE_BYTES as u32)),
    }
}
