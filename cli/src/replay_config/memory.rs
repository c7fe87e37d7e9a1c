//! Flags of trees in persistent memory, and of the memory.

use treering_engine::{CclOptions, Cleaning, LodgeOptions, Logging, NodeSplit, PmTreeKind};
use treering_sim::replay::Target;

use crate::args::{CleaningArg, LoggingArg, NodeSplitArg, ReplayArgs};
use crate::devices_cmd;
use crate::failure::Failure;

/// The tree, if it is in persistent memory.
pub(super) fn tree(args: &ReplayArgs) -> Result<Option<PmTreeKind>, Failure> {
    let Some(tree) = args.tree.pm() else {
        return match args.pm.given() {
            Some(flag) => Err(Failure::usage(format!(
                "{flag}: --tree {} does not run on persistent memory; expected --tree ccl, lodge \
                 or pmtree",
                args.tree
            ))),
            None => Ok(None),
        };
    };
    let tree = match tree {
        PmTreeKind::Ccl(defaults) => PmTreeKind::Ccl(ccl(args, defaults)?),
        PmTreeKind::Lodge(defaults) => PmTreeKind::Lodge(lodge(args, defaults)),
        other => other,
    };
    if !matches!(tree, PmTreeKind::Ccl(_))
        && let Some(flag) = args.pm.of_ccl()
    {
        return Err(Failure::usage(format!(
            "{flag}: only --tree ccl has buffer nodes and a choice of logging"
        )));
    }
    if !matches!(tree, PmTreeKind::Lodge(_))
        && let Some(flag) = args.pm.of_lodge()
    {
        return Err(Failure::usage(format!(
            "{flag}: only --tree lodge buffers in inner nodes"
        )));
    }
    if let Some(flag) = of_block_devices(args) {
        let why = match flag {
            "--durability" => "makes each write durable before it returns",
            _ => "has no such option",
        };
        return Err(Failure::usage(format!(
            "{flag}: --tree {} {why}; the flag applies to trees on block devices; expected {}",
            args.tree,
            own_flags(&tree)
        )));
    }
    Ok(Some(tree))
}

/// The persistent memory to run on.
pub(super) fn target(args: &ReplayArgs) -> Result<Target, Failure> {
    let device = args.device.as_deref().unwrap_or("pm");
    let mut target = devices_cmd::find(device)?;
    let Target::Pm {
        profile,
        capacity_bytes,
        ..
    } = &mut target
    else {
        return Err(Failure::usage(format!(
            "--device {device}: --tree {} runs on persistent memory; expected pm, or a \
             PROFILE.toml of that kind",
            args.tree
        )));
    };
    profile.dimms = args.pm.dimms.unwrap_or(profile.dimms);
    profile.eadr |= args.pm.eadr;
    *capacity_bytes = args.capacity;
    Ok(target)
}

fn ccl(args: &ReplayArgs, defaults: CclOptions) -> Result<CclOptions, Failure> {
    let batch = args.pm.nbatch.unwrap_or(defaults.batch as u64);
    Ok(CclOptions {
        batch: usize::try_from(batch)
            .map_err(|_| Failure::usage(format!("--nbatch {batch}: expected 1 to 6")))?,
        logging: match args.pm.logging {
            None => defaults.logging,
            Some(LoggingArg::Conservative) => Logging::WriteConservative,
            Some(LoggingArg::Naive) => Logging::EveryWrite,
        },
        cleaning: match args.pm.cleaning {
            None => defaults.cleaning,
            Some(CleaningArg::LocalityAware) => Cleaning::LocalityAware,
            Some(CleaningArg::Naive) => Cleaning::Naive,
        },
        ..defaults
    })
}

fn lodge(args: &ReplayArgs, defaults: LodgeOptions) -> LodgeOptions {
    // The engine knows the bounds and reports values that are too large.
    let number = |given: Option<u64>, default| {
        given.map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
    };
    LodgeOptions {
        slots: number(args.pm.slots, defaults.slots),
        t_node: number(args.pm.t_node, defaults.t_node),
        t_split: number(args.pm.t_split, defaults.t_split),
        node_split: match args.pm.node_split {
            None => defaults.node_split,
            Some(NodeSplitArg::HotnessAware) => NodeSplit::HotnessAware,
            Some(NodeSplitArg::Double) => NodeSplit::Double,
        },
        log_entries: args.pm.log_entries.unwrap_or(defaults.log_entries),
        ..defaults
    }
}

/// Flags that apply to a tree in persistent memory.
fn own_flags(tree: &PmTreeKind) -> &'static str {
    match tree {
        PmTreeKind::Ccl(_) => "--nbatch, --logging, --cleaning, --dimms or --eadr",
        PmTreeKind::Lodge(_) => {
            "--slots, --t-node, --t-split, --node-split, --log-entries, --dimms or --eadr"
        }
        _ => "--dimms or --eadr",
    }
}

/// The first given flag that does not apply to trees in persistent memory.
fn of_block_devices(args: &ReplayArgs) -> Option<&'static str> {
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
        ("--cache", args.cache.is_some()),
        ("--durability", args.durability.is_some()),
        ("--write-batch", args.write_batch.is_some()),
        ("--copy-on-access", args.copy_on_access.is_some()),
        ("--relog", args.relog.is_some()),
        ("--growth", args.growth.is_some()),
        ("--spare", args.spare.is_some()),
        ("--max-mini-page", args.max_mini_page.is_some()),
        ("--promote", args.promote.is_some()),
        ("--log-size", args.log_size.is_some()),
        ("--log-buffer", args.log_buffer.is_some()),
        ("--checkpoint-every", args.checkpoint_every.is_some()),
        ("--fill", args.fill.is_some()),
        ("--op", args.over_provisioning.is_some()),
        ("--gc", args.gc.is_some()),
        ("--precondition", args.precondition.is_some()),
        ("--buffered", args.buffered),
        ("--no-trim", args.no_trim),
        ("--strict", args.strict),
    ]
    .into_iter()
    .find_map(|(flag, given)| given.then_some(flag))
}
