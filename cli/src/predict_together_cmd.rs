//! `treering predict-together`: predictions in one process, which share the trace's statistics and,
//! if they differ only in the drive, what is played of the store. A sweep starts it; nobody else
//! has to.

use treering_sim::replay;

use crate::args::{PredictArgs, TogetherArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::predict_cmd;
use crate::replay_together_cmd::{self, Member};

/// Predicts the list. A member that cannot be predicted has no report.
///
/// # Errors
/// If the list or a trace cannot be read, or a report cannot be written.
pub(crate) fn run(args: &TogetherArgs) -> Result<(), Failure> {
    let members = replay_together_cmd::members(&args.list)?;
    let config = |member: &Member| {
        let args = PredictArgs::of(&member.arguments).ok()?;
        predict_cmd::config(&args).ok()
    };
    let (members, configs): (Vec<&Member>, Vec<_>) = (members.iter())
        .filter_map(|member| Some((member, config(member)?)))
        .unzip();
    let (mut written, mut done) = (Ok(()), 0);
    replay::forecast_each(&configs, &mut |_| {}, &mut |at, report| {
        if written.is_ok() {
            written = members[at].write(&report);
            done += 1;
        }
    })?;
    written?;
    interrupt::check(|| format!("{done} configurations were predicted"))
}
