//! Flags of trees of pages, and of drives and files.

use std::path::PathBuf;

use treering_engine::device::{FileDiscards, FileIo, FileOptions};
use treering_engine::{
    BfOptions, ModLog, Options, PageStoreKind, Policy, ResetRule, TablePersist, TreeKind,
};
use treering_sim::replay::Target;

use crate::args::{PolicyArg, ReplayArgs, Reset, Tables};
use crate::devices_cmd::{self, Adjusted};
use crate::failure::Failure;
use crate::output;

/// The drive or file that a tree of pages runs on.
pub(super) fn target(args: &ReplayArgs) -> Result<Target, Failure> {
    let mut target = devices_cmd::find(args.device.as_deref().unwrap_or("ssd"))?;
    let is_file = matches!(target, Target::File(..));
    if args.buffered && !is_file {
        return Err(Failure::usage(
            "--buffered: simulated drives have no page cache; expected --device file:PATH",
        ));
    }
    if args.no_trim && !is_file {
        return Err(Failure::usage(
            "--no-trim: simulated drives are always trimmed; expected --device file:PATH",
        ));
    }
    match target {
        Target::File(path, _) => return file_target(args, path),
        Target::Pm { name, .. } => {
            return Err(Failure::usage(format!(
                "--device {name}: --tree {} does not run on persistent memory; expected --tree \
                 ccl, lodge, pmtree or pmtree-global",
                args.tree
            )));
        }
        _ => {}
    }
    let adjusted = Adjusted {
        over_provisioning: args.over_provisioning,
        gc: args.gc.as_deref(),
        capacity: args.capacity,
        precondition: args.precondition,
    };
    adjusted.apply(&mut target);
    Ok(target)
}

/// A new file as the target. Flags of simulated drives do not apply to it.
fn file_target(args: &ReplayArgs, path: PathBuf) -> Result<Target, Failure> {
    let of_drives = [
        ("--op", args.over_provisioning.is_some()),
        ("--gc", args.gc.is_some()),
        ("--capacity", args.capacity.is_some()),
        ("--precondition", args.precondition.is_some()),
        ("--timing", args.timing),
    ];
    if let Some((flag, _)) = of_drives.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag}: applies only to simulated drives, not to file:PATH"
        )));
    }
    if args.daily.is_some() {
        return Err(Failure::usage(
            "--daily: applies only to simulated devices, because the wear below a file is unknown",
        ));
    }
    output::check_target("--device", &path)?;
    if path.exists() {
        return Err(Failure::usage(format!(
            "--device file:{}: exists already; expected the path of a new file",
            path.display()
        )));
    }
    let io = if args.buffered {
        FileIo::Buffered
    } else {
        FileIo::Direct
    };
    let discards = if args.no_trim {
        FileDiscards::Ignore
    } else {
        FileDiscards::Punch
    };
    let choices = FileOptions {
        io,
        discards,
        ..FileOptions::default()
    };
    Ok(Target::File(path, choices))
}

/// The tree of the spec, modified by the flags of mini-pages.
fn tree(args: &ReplayArgs, tree: TreeKind) -> Result<TreeKind, Failure> {
    if let TreeKind::Bf(named) = tree {
        let bf = args.policy.map_or(named, |policy| {
            BfOptions::of(match policy {
                PolicyArg::Frugal => Policy::Frugal,
                PolicyArg::Published => Policy::Published,
            })
        });
        return Ok(TreeKind::Bf(BfOptions {
            copy_on_access_percent: args.copy_on_access.unwrap_or(bf.copy_on_access_percent),
            promote: args.promote.unwrap_or(bf.promote),
            relog_percent: args.relog.unwrap_or(bf.relog_percent),
            growth_percent: args.growth.unwrap_or(bf.growth_percent),
            spare_percent: args.spare.unwrap_or(bf.spare_percent),
            max_mini_page_percent: args.max_mini_page.unwrap_or(bf.max_mini_page_percent),
        }));
    }
    let of_bf = [
        ("--copy-on-access", args.copy_on_access.is_some()),
        ("--promote", args.promote.is_some()),
        ("--relog", args.relog.is_some()),
        ("--growth", args.growth.is_some()),
        ("--spare", args.spare.is_some()),
        ("--max-mini-page", args.max_mini_page.is_some()),
    ];
    match of_bf.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: only --tree bf has mini-pages"
        ))),
        None => Ok(tree),
    }
}

/// The modification log: as the flags say if there is a threshold, otherwise the tree's.
fn mod_log(args: &ReplayArgs, of_tree: Option<ModLog>) -> Result<Option<ModLog>, Failure> {
    if args.threshold == Some(0) || (args.threshold.is_none() && of_tree.is_none()) {
        let of_logs = [
            ("--segment", args.segment.is_some()),
            ("--reset", args.reset.is_some()),
        ];
        return match of_logs.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag}: there is no modification log; expected a --threshold above 0, too"
            ))),
            None => Ok(None),
        };
    }
    let base = of_tree.unwrap_or_default();
    let small = |flag: &str, size: Option<u64>, default: u32| match size.map(u32::try_from) {
        None => Ok(default),
        Some(Ok(size)) => Ok(size),
        Some(Err(_)) => Err(Failure::usage(format!(
            "{flag}: expected at most 4096 bytes, the size of a log block"
        ))),
    };
    Ok(Some(ModLog {
        threshold: small("--threshold", args.threshold, base.threshold)?,
        segment: small("--segment", args.segment, base.segment)?,
        reset: match args.reset {
            Some(Reset::AtThreshold) => ResetRule::AtThreshold,
            Some(Reset::AboveThreshold) => ResetRule::AboveThreshold,
            None => base.reset,
        },
    }))
}

/// The options of the tree: those of the spec, overridden by flags. An option that depends on
/// another one follows it unless it was given.
pub(super) fn options(args: &ReplayArgs) -> Result<Options, Failure> {
    let defaults = args.tree.options().unwrap_or_default();
    let mut store = args.store.unwrap_or(defaults.store);
    if let Some(when) = args.table {
        let PageStoreKind::CopyOnWrite { table } = &mut store else {
            return Err(Failure::usage("--table: only --store cow has a page table"));
        };
        *table = match when {
            Tables::EachFlush => TablePersist::EachFlush,
            Tables::Checkpoint => TablePersist::Checkpoint,
        };
    }
    let log_bytes = args.log_size.unwrap_or(defaults.log_bytes);
    let too_large =
        |flag: &str| Failure::usage(format!("{flag}: larger than this machine can address"));
    let page = args.page.unwrap_or(defaults.page_size as u64);
    Ok(Options {
        tree: tree(args, defaults.tree)?,
        store,
        mod_log: mod_log(args, defaults.mod_log)?,
        layout: args.layout.or(defaults.layout),
        contention_split: match args.contention_split {
            true => Some(defaults.contention_split.unwrap_or_default()),
            false => defaults.contention_split,
        },
        log_packing: args.log.unwrap_or(defaults.log_packing),
        page_size: usize::try_from(page).map_err(|_| too_large("--page"))?,
        log_bytes,
        checkpoint_log_bytes: args.checkpoint_every.unwrap_or(log_bytes / 2),
        log_buffer_bytes: args
            .log_buffer
            .unwrap_or(defaults.log_buffer_bytes.min(log_bytes / 4)),
        write_batch_pages: match args.write_batch {
            Some(pages) => usize::try_from(pages).map_err(|_| too_large("--write-batch"))?,
            None => defaults.write_batch_pages,
        },
        ..defaults
    })
}
