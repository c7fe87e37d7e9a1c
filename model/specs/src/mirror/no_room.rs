//! Refuses a model that turns out, while it runs, to need more room than its mirror has.
//!
//! Most sizes follow from the constants, and [`super::Mirror::from_config`] checks them. How often
//! a block is written between two flushes does not. `stateright::Model::next_state` returns no
//! error, so the run is unwound, without a message, and [`within`] makes an error of that.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Config, ConfigError};

/// What there is not enough room for.
struct NoRoom {
    what: &'static str,
    most: usize,
}

/// The number of runs that [`within`] waits for. A run may have several threads.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Ends the run. Without [`within`], that is a panic with a message.
pub(crate) fn refuse(what: &'static str, most: usize) -> ! {
    if RUNS.load(Ordering::Relaxed) == 0 {
        panic!("the mirror has no room for more than {most} {what}");
    }
    resume_unwind(Box::new(NoRoom { what, most }))
}

/// Runs a mirror of this configuration.
///
/// # Errors
/// The model needs more room than the mirror has. Any other panic goes on.
pub(crate) fn within<T>(config: &Config, run: impl FnOnce() -> T) -> Result<T, ConfigError> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    // What a run that is unwound leaves half done is dropped with it.
    let ran = catch_unwind(AssertUnwindSafe(run));
    RUNS.fetch_sub(1, Ordering::Relaxed);
    ran.map_err(|panic| match panic.downcast::<NoRoom>() {
        Ok(none) => config.wrong(
            "the model",
            format!(
                "needs more than {} {}, for which the mirror has no room; \
                 expected smaller bounds, or --checker tlc",
                none.most, none.what
            ),
        ),
        Err(panic) => resume_unwind(panic),
    })
}
