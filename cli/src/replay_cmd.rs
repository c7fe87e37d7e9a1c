//! `treering replay`: flags become a [`ReplayConfig`], its report one or more documents.

use std::path::Path;

use treering_engine::device::{FileDiscards, FileIo, FileOptions};
use treering_engine::node::LayoutChoice;
use treering_engine::{
    BfOptions, ContentionSplit, LogPacking, ModLog, Options, PageStoreKind, ResetRule,
    TablePersist, TreeKind,
};
use treering_sim::replay::{self, Precondition, ReplayConfig, Stop, Target};
use treering_sim::report::{ReplayReport, html, text};

use crate::args::{Before, ReplayArgs, Reset, Tables};
use crate::devices_cmd::{self, Device};
use crate::failure::Failure;
use crate::interrupt::{self, Ours};
use crate::output::{self, Output};
use crate::pm_replay;
use crate::progress::Progress;
use crate::replay_early::Early;

/// Where the report goes.
struct Outputs {
    json: Option<Output>,
    html: Option<Output>,
}

/// Replays and reports; `again` is the command line that does the same.
pub(crate) fn run(args: &ReplayArgs, again: &str) -> Result<(), Failure> {
    if let Some(config) = pm_replay::config(args)? {
        let outputs = outputs(args)?;
        let run = |progress: &mut dyn FnMut(_)| replay::run_pm(&config, progress);
        let report = watched(args, &outputs, run)?;
        return finish(&report, &outputs, again);
    }
    let config = config(args)?;
    let outputs = outputs(args)?;
    let ours = match &config.target {
        // It was not there before (`file_target`), so it is ours.
        Target::File(path, _) => Some((path, Ours::new(path))),
        Target::Ssd { .. } | Target::Csd { .. } => None,
    };
    let run = |progress: &mut dyn FnMut(_)| replay::run(&config, progress);
    let ran = watched(args, &outputs, run);
    if let Some((path, _ours)) = ours
        && !ran.as_ref().is_ok_and(|report| report.complete)
    {
        let _ = std::fs::remove_file(path);
    }
    let report = ran?;
    finish(&report, &outputs, again)?;
    if args.strict {
        check_reached(&report)?;
    }
    Ok(())
}

/// Reports, also on a replay that was told to stop.
fn finish(report: &ReplayReport, outputs: &Outputs, again: &str) -> Result<(), Failure> {
    if report.complete {
        return write(report, outputs, again);
    }
    interrupt::take_over();
    write(report, outputs, again)?;
    interrupt::check(|| format!("{} operations were replayed", report.trace.ops))
}

/// Runs with progress on stderr, and a report if it is told to stop before it replays.
fn watched<T>(
    args: &ReplayArgs,
    outputs: &Outputs,
    run: impl FnOnce(&mut dyn FnMut(replay::Progress)) -> T,
) -> T {
    let mut progress = Progress::new();
    let mut early = Early::begin(&args.trace, outputs.json.clone());
    run(&mut |at| {
        early.note(at);
        match at {
            replay::Progress::Survey(done, total) => {
                progress.tell("finding what was there before", done, total);
            }
            replay::Progress::Analyse(done, total) => progress.tell("looking through", done, total),
            replay::Progress::Replay(done, total) => progress.tell("replaying", done, total),
        }
    })
}

fn outputs(args: &ReplayArgs) -> Result<Outputs, Failure> {
    let open = |flag: &str, path: &Path| {
        output::check_not_input(flag, path, &args.trace)?;
        Output::new(flag, path)
    };
    let json = args
        .json
        .as_deref()
        .map(|path| open("--json", path))
        .transpose()?;
    let html = args
        .html
        .as_deref()
        .map(|path| open("--html", path))
        .transpose()?;
    if html == Some(Output::Stdout) {
        return Err(Failure::usage("--html -: expected a file"));
    }
    if json.is_some() && json == html {
        return Err(Failure::usage("--html: expected another file than --json"));
    }
    Ok(Outputs { json, html })
}

fn write(report: &ReplayReport, outputs: &Outputs, again: &str) -> Result<(), Failure> {
    if let Some(to) = &outputs.html {
        to.write(html::render(report, Some(again)).as_bytes())?;
    }
    if let Some(to) = &outputs.json {
        to.write(&output::json(report)?)?;
    }
    if outputs.json == Some(Output::Stdout) {
        report.warnings.iter().for_each(|w| output::warn(w));
        return Ok(());
    }
    output::say(text::render(report).as_bytes())?;
    output::say(crate::glossary::SEE.as_bytes())
}

/// `--strict`: a figure of something that never happened is no figure.
fn check_reached(report: &ReplayReport) -> Result<(), Failure> {
    if report.device.gc_reached == Some(false) {
        return Err(Failure::not_reached(
            "--strict: garbage collection was never reached; expected a longer trace or a smaller --capacity",
        ));
    }
    if let Some(mini_pages) = &report.cache.mini_pages
        && mini_pages.evictions == 0
    {
        return Err(Failure::not_reached(
            "--strict: no mini-page was ever evicted; expected a longer trace or a smaller --cache",
        ));
    }
    if report.cache.evictions == 0 {
        return Err(Failure::not_reached(
            "--strict: no page was ever evicted; expected a longer trace or a smaller --cache",
        ));
    }
    Ok(())
}

fn config(args: &ReplayArgs) -> Result<ReplayConfig, Failure> {
    let mut config = ReplayConfig::new(args.trace.clone(), target(args)?);
    config.engine = engine(args)?;
    // Checkpoints are counted in log bytes: with neither size given, both follow the data set.
    config.fit_log =
        args.log_size.is_none() && args.checkpoint_every.is_none() && args.log_buffer.is_none();
    config.cache = args.cache.unwrap_or(config.cache);
    if let Some(durability) = args.durability {
        config.acknowledge = durability.0;
    }
    config.clients = args.clients;
    config.warmup = args.warmup;
    config.limit = args.limit;
    config.preload = args.preload.clone();
    config.oversize = args.oversize();
    if let Some(fill) = args.fill {
        if fill <= 0.0 {
            return Err(Failure::usage("--fill: expected a share above 0"));
        }
        config.fill = fill;
    }
    config.timing = args.timing;
    config.predict = !args.no_predict;
    config.daily_bytes = args.daily;
    config.seed = args.seed;
    config.stop = Stop::when(interrupt::flag());
    Ok(config)
}

fn target(args: &ReplayArgs) -> Result<Target, Failure> {
    let device = devices_cmd::find(args.device.as_deref().unwrap_or("ssd"))?;
    if args.buffered && !matches!(device, Device::File(_)) {
        return Err(Failure::usage(
            "--buffered: simulated drives have no page cache; expected --device file:PATH",
        ));
    }
    if args.no_trim && !matches!(device, Device::File(_)) {
        return Err(Failure::usage(
            "--no-trim: simulated drives are told what is free; expected --device file:PATH",
        ));
    }
    let precondition = match args.precondition {
        None | Some(Before::None) => Precondition::None,
        Some(Before::Fill) => Precondition::Fill,
        Some(Before::Steady) => Precondition::Steady,
    };
    match device {
        Device::Ssd(mut profile, name) => {
            if let Some(share) = args.over_provisioning {
                profile.over_provisioning = share;
            }
            if let Some(policy) = &args.gc {
                profile.gc.clone_from(policy);
            }
            Ok(Target::Ssd {
                profile,
                name,
                capacity_bytes: args.capacity,
                precondition,
            })
        }
        Device::Csd(mut profile, name) => {
            if let Some(share) = args.over_provisioning {
                profile.flash.over_provisioning = share;
            }
            if let Some(policy) = &args.gc {
                profile.flash.gc.clone_from(policy);
            }
            Ok(Target::Csd {
                profile,
                name,
                capacity_bytes: args.capacity,
                precondition,
            })
        }
        Device::Pm(_, name) => Err(Failure::usage(format!(
            "--device {name}: --tree {} does not run on persistent memory; expected --tree ccl, lodge, pmtree or pmtree-global",
            args.tree
        ))),
        Device::File(path) => file_target(args, path),
    }
}

/// A file is made new, and has nothing of a simulated drive to set.
fn file_target(args: &ReplayArgs, path: std::path::PathBuf) -> Result<Target, Failure> {
    let of_drives = [
        ("--op", args.over_provisioning.is_some()),
        ("--gc", args.gc.is_some()),
        ("--capacity", args.capacity.is_some()),
        ("--precondition", args.precondition.is_some()),
        ("--timing", args.timing),
    ];
    if let Some((flag, _)) = of_drives.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag}: a file has none; it belongs to simulated drives"
        )));
    }
    if args.daily.is_some() {
        return Err(Failure::usage(
            "--daily: nothing is known of the wear below a file; it belongs to simulated devices",
        ));
    }
    output::check_target("--device", &path)?;
    if path.exists() {
        return Err(Failure::usage(format!(
            "--device file:{}: exists already; expected a path where a store can be made",
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

fn tree(args: &ReplayArgs) -> Result<TreeKind, Failure> {
    if args.tree == "bf" {
        let defaults = BfOptions::default();
        return Ok(TreeKind::Bf(BfOptions {
            copy_on_access_percent: args
                .copy_on_access
                .unwrap_or(defaults.copy_on_access_percent),
            promotion_percent: args.promote.unwrap_or(defaults.promotion_percent),
        }));
    }
    let of_bf = [
        ("--copy-on-access", args.copy_on_access),
        ("--promote", args.promote),
    ];
    match of_bf.into_iter().find(|(_, given)| given.is_some()) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: only --tree bf has mini-pages"
        ))),
        None => Ok(TreeKind::BTree),
    }
}

/// The modification log: what the tree has, or, with a threshold, what was asked for.
fn mod_log(args: &ReplayArgs, of_tree: Option<ModLog>) -> Result<Option<ModLog>, Failure> {
    if args.threshold == Some(0) || (args.threshold.is_none() && of_tree.is_none()) {
        let of_logs = [
            ("--segment", args.segment.is_some()),
            ("--reset", args.reset.is_some()),
        ];
        return match of_logs.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag}: there is no modification log; expected --threshold above 0 with it"
            ))),
            None => Ok(None),
        };
    }
    let base = of_tree.unwrap_or_default();
    let small = |flag: &str, size: Option<u64>, default: u32| match size.map(u32::try_from) {
        None => Ok(default),
        Some(Ok(size)) => Ok(size),
        Some(Err(_)) => Err(Failure::usage(format!(
            "{flag}: expected at most 4096 bytes, the log block's"
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

/// What depends on another option follows it, unless it was given.
fn engine(args: &ReplayArgs) -> Result<Options, Failure> {
    let defaults = match args.tree.as_str() {
        "bminus" => Options::bminus(),
        "btree" => Options {
            layout: Some(LayoutChoice::ADAPTIVE),
            ..Options::default()
        },
        _ => Options::default(),
    };
    let store = match (args.store.as_deref(), args.table) {
        (Some("cow"), Some(Tables::Checkpoint)) => PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        },
        (Some("cow"), _) => PageStoreKind::CopyOnWrite {
            table: TablePersist::EachFlush,
        },
        (_, Some(_)) => {
            return Err(Failure::usage("--table: only --store cow has a page table"));
        }
        (Some("in-place"), None) => PageStoreKind::InPlace,
        (Some("shadow"), None) => PageStoreKind::Shadow,
        (_, None) => defaults.store,
    };
    let log_packing = match args.log.as_deref() {
        Some("sparse") => LogPacking::Sparse,
        Some(_) => LogPacking::Packed,
        None => defaults.log_packing,
    };
    let tree = tree(args)?;
    let log_bytes = args.log_size.unwrap_or(defaults.log_bytes);
    let too_large =
        |flag: &str| Failure::usage(format!("{flag}: larger than this machine can address"));
    let page = args.page.unwrap_or(defaults.page_size as u64);
    Ok(Options {
        tree,
        store,
        mod_log: mod_log(args, defaults.mod_log)?,
        layout: args.layout.or(defaults.layout),
        contention_split: args.contention_split.then(ContentionSplit::default),
        log_packing,
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
