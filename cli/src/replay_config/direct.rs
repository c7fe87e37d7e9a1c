//! Flags of `--tree none`: a simulated drive alone.

use treering_sim::replay::Target;

use super::pages;
use crate::args::ReplayArgs;
use crate::devices_cmd;
use crate::failure::Failure;

/// The drive that the trace's own writes go to.
pub(super) fn target(args: &ReplayArgs) -> Result<Target, Failure> {
    let device = args.device.as_deref().unwrap_or("ssd");
    if let target @ (Target::File(..) | Target::Pm { .. }) = devices_cmd::find(device)? {
        let what = match target {
            Target::File(..) => "a file",
            _ => "persistent memory",
        };
        return Err(Failure::usage(format!(
            "--device {device}: --tree none writes the blocks of a simulated drive, not {what}; \
             expected ssd, csd or a PROFILE.toml of that kind"
        )));
    }
    if let Some(flag) = of_trees(args) {
        return Err(Failure::usage(format!(
            "{flag}: --tree none has no tree, cache or log; expected a --tree, or flags of the \
             drive such as --op, --gc, --fill, --capacity or --precondition"
        )));
    }
    pages::target(args)
}

/// The first given flag that applies to trees only.
fn of_trees(args: &ReplayArgs) -> Option<&'static str> {
    [
        ("--store", args.store.is_some()),
        ("--table", args.table.is_some()),
        ("--log", args.log.is_some()),
        ("--threshold", args.threshold.is_some()),
        ("--segment", args.segment.is_some()),
        ("--reset", args.reset.is_some()),
        ("--layout", args.layout.is_some()),
        ("--contention-split", args.contention_split),
        ("--page", args.page.is_some()),
        ("--copy-on-access", args.copy_on_access.is_some()),
        ("--policy", args.policy.is_some()),
        ("--relog", args.relog.is_some()),
        ("--growth", args.growth.is_some()),
        ("--spare", args.spare.is_some()),
        ("--max-mini-page", args.max_mini_page.is_some()),
        ("--promote", args.promote.is_some()),
        ("--cache", args.cache.is_some()),
        ("--durability", args.durability.is_some()),
        ("--log-size", args.log_size.is_some()),
        ("--log-buffer", args.log_buffer.is_some()),
        ("--checkpoint-every", args.checkpoint_every.is_some()),
        ("--write-batch", args.write_batch.is_some()),
    ]
    .into_iter()
    .find_map(|(flag, given)| given.then_some(flag))
}
