//! Turns the flags of `treering replay` into a [`ReplayConfig`].

mod direct;
mod memory;
mod pages;

use treering_sim::replay::{ReplayConfig, Statistics, Stop, Tree, Unfit};

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::tree::Replayed;

/// The configuration: what to replay, on what, and how.
pub(crate) fn of(args: &ReplayArgs) -> Result<ReplayConfig, Failure> {
    let (target, tree) = match memory::tree(args)? {
        None if matches!(args.tree, Replayed::Direct) => (direct::target(args)?, Tree::Direct),
        None => (pages::target(args)?, Tree::Pages(pages::options(args)?)),
        Some(tree) => (memory::target(args)?, Tree::pm(tree)),
    };
    let mut config = ReplayConfig::new(args.trace.clone(), target);
    config.tree = tree;
    // Checkpoints are counted in log bytes. If neither size is given, both follow the data set.
    config.fit_log =
        args.log_size.is_none() && args.checkpoint_every.is_none() && args.log_buffer.is_none();
    config.cache = args.cache.unwrap_or(config.cache);
    if let Some(durability) = args.durability {
        config.acknowledge = durability.0;
    }
    config.clients = args.clients;
    config.warmup = args.warmup;
    config.drain = args.drain;
    config.limit = args.limit;
    config.preload = args.preload.clone();
    config.statistics = statistics(args);
    config.oversize = args.oversize();
    if let Some(fill) = args.fill {
        if fill <= 0.0 {
            return Err(Failure::usage("--fill: expected a share above 0"));
        }
        config.fill = fill;
    }
    config.timing = args.timing;
    config.predict = !args.no_predict;
    config.explain = args.explain_wa;
    config.method = args.method();
    config.daily_bytes = args.daily;
    config.seed = args.seed;
    config.stop = Stop::when(interrupt::flag());
    Ok(config)
}

fn statistics(args: &ReplayArgs) -> Statistics {
    Statistics {
        file: args.statistics.clone(),
        save: args.save_statistics,
    }
}

/// Says why a file with statistics is ignored.
pub(crate) fn warn_of_statistics(args: &ReplayArgs, why: Unfit) {
    let path = statistics(args).path(&args.trace);
    let what = match args.save_statistics {
        true => "replaced",
        false => "ignored",
    };
    output::warn(&format!("{}: {what}, because {why}", path.display()));
}
