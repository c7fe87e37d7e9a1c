//! What a mirror makes of episodes.

use std::fmt::Debug;

use treering_oracle::Finding;
use treering_specs::conformance::module::Module;
use treering_specs::conformance::refused::{Refusal, Report, Tally};

/// What the mirror makes of episodes.
pub(super) struct Judged {
    pub(super) part: &'static str,
    pub(super) tally: Tally,
    /// The actions that should be taken.
    pub(super) actions: Vec<&'static str>,
    pub(super) episodes: u64,
    pub(super) interrupted: u64,
    pub(super) finding: Option<Finding>,
    /// The refused event as a TLA+ behaviour; or why there is none.
    pub(super) behaviour: Option<Result<Module, String>>,
}

impl Judged {
    /// Takes the report on a part of a store; `what` names the episode that is refused.
    pub(super) fn new<E, H: Debug, A: Debug>(
        part: &'static str,
        actions: Vec<&'static str>,
        report: Report<E, Refusal<H, A>>,
        what: impl Fn(E) -> String,
    ) -> Judged {
        let refusal = report.refusal;
        let behaviour = refusal
            .as_ref()
            .map(|(_, refusal)| refusal.behaviour.clone());
        Judged {
            part,
            tally: report.tally,
            actions,
            episodes: report.episodes,
            interrupted: report.interrupted,
            behaviour,
            finding: refusal.map(|(episode, refusal)| refusal.in_words(&what(episode))),
        }
    }
}
