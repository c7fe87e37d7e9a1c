//! A progress bar on stderr for long commands.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Commands that finish sooner show no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A progress bar that appears after a while, if stderr is a terminal.
pub(crate) struct Progress {
    began: Instant,
    terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts without a visible bar.
    pub(crate) fn new() -> Progress {
        Progress {
            began: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
            bar: None,
        }
    }

    /// Whether stderr is a terminal, so that there is a bar.
    pub(crate) fn is_shown(&self) -> bool {
        self.terminal
    }

    /// Shows that `done` of `total` are done; `doing` names the work.
    pub(crate) fn tell(&mut self, what: &'static str, done: u64, total: u64) {
        if !self.terminal || (self.bar.is_none() && self.began.elapsed() < PATIENCE) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            if let Ok(style) =
                ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3} % {eta:>5} left")
            {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        bar.set_message(what);
        bar.set_length(total.max(1));
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
