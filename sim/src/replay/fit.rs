//! Size limits of a store, and the handling of records that exceed them.

use treering_engine::MAX_VALUE_BYTES;
use treering_traces::{Op, OpKind};

use super::error::ReplayError;

/// Handling of records that do not fit into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// The replay ends with an error.
    Reject,
    /// The value is cut to the maximum length; a key that is too long is an error.
    Clamp,
    /// The operation is skipped and counted.
    Skip,
}

/// Makes an operation fit the store (see [`fit`]); returns `false` if it must be skipped.
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
            op.value_len = match takes.record_bytes {
                None => value_len,
                Some(bytes) => (bytes as u32).saturating_sub(op.key.len() as u32),
            };
            true
        }
        Fit::Skip => false,
    })
}

/// What to do with a record that does not fit.
enum Fit {
    /// Put it with a value of this length.
    Yes(u32),
    Skip,
}

/// Size limits of a store.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    /// Maximum key length.
    pub(super) max_key: usize,
    /// Page size, which limits keys; `None` if there are no pages, so that every key fits.
    pub(super) page_size: Option<usize>,
    /// Length of every record, key and value, whatever the trace says; `None` for that of the
    /// trace.
    pub(super) record_bytes: Option<usize>,
}

impl Takes {
    /// Limits of a store of pages.
    pub(super) fn of_pages(limits: &treering_engine::node::Limits) -> Takes {
        Takes {
            max_key: limits.max_key,
            page_size: Some(limits.page_size),
            record_bytes: None,
        }
    }

    /// Limits of a store without pages, which takes any key of a trace.
    pub(super) const WITHOUT_PAGES: Takes = Takes {
        max_key: u16::MAX as usize,
        page_size: None,
        record_bytes: None,
    };

    /// The error for a record that does not fit.
    fn refusal(self, key: usize, value: usize) -> String {
        match self.page_size {
            Some(page_size) => format!(
                "a key of {key} bytes with a value of {value} bytes does not fit into a store with pages of \
                                {page_size} bytes, which takes keys of up to {} and values of up to \
                                {MAX_VALUE_BYTES} bytes; use a larger --page for the key, or --oversize clamp \
                                or skip",
                self.max_key
            ),
            None => format!(
                "a value of {value} bytes is longer than the maximum of {MAX_VALUE_BYTES} bytes; \
                                use --oversize clamp or skip"
            ),
        }
    }
}

/// Checks one put against the limits of a store: of keys, by the page size, and of values. `number`
/// counts all operations, of which the first `loaded` come before the trace. Preloaded records that
/// do not fit are clamped or skipped without an error: if they matter, the trace itself will fail
/// later.
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
