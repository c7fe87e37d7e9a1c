//! `treering gen`, and the traces that studies generate.

use std::path::Path;

use treering_traces::format::Encoding;
use treering_traces::generate::{GenParams, Workload, build};
use treering_traces::{Header, Op, Writer};

use crate::args::GenArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Progress;

/// Generates the trace and writes it.
pub(crate) fn run(args: &GenArgs) -> Result<(), Failure> {
    let params = params(args)?;
    output::check_target("--output", &args.output)?;
    if output::makes_file(&args.output) {
        output::check_room(
            &format!("--output {}", args.output.display()),
            output::folder(&args.output),
            params.least_bytes(Encoding::of(&args.output)?),
        )?;
    }
    let header = write(&params, &args.output)?;
    let summary = format!(
        "{}: {}, {} operations, {} of them warm-up\n",
        args.output.display(),
        header.name,
        header.ops,
        header.warmup_ops
    );
    output::say(summary.as_bytes())
}

/// Writes the trace of these parameters, completely or not at all.
///
/// # Errors
/// If the file cannot be written, or a signal stops it.
pub(crate) fn write(params: &GenParams, path: &Path) -> Result<Header, Failure> {
    let (header, mut source) = build(params)?;
    let total = header.ops;
    let mut writer = Writer::create(path, header)?;
    let mut progress = Progress::new();
    let mut op = Op::default();
    while source.next_op(&mut op)? {
        writer.write(&op)?;
        if writer.ops() & 0xfff == 0 {
            let done = writer.ops();
            progress.tell("generating", done, total);
            let output = path.display();
            interrupt::check(|| {
                format!("{done} of {total} operations were generated; {output} was not written")
            })?;
        }
    }
    Ok(writer.finish()?)
}

/// The parameters of these flags, checked.
///
/// # Errors
/// If they do not fit together.
pub(crate) fn params(args: &GenArgs) -> Result<GenParams, Failure> {
    let params = unchecked(args)?;
    params.check()?;
    Ok(params)
}

fn unchecked(args: &GenArgs) -> Result<GenParams, Failure> {
    let workload: Workload = args.workload.parse()?;
    let defaults = GenParams::new(workload, args.records);
    let mut params = GenParams {
        ops: args.ops,
        writes: args.writes,
        deletes: args.deletes,
        scans: args.scans,
        max_scan: args.max_scan,
        theta: args.theta,
        hot_ops: args.hot_ops,
        hot_keys: args.hot_keys,
        shift_every: args.shift_every,
        order: match &args.order {
            Some(order) => order.parse()?,
            None => defaults.order,
        },
        key_size: args.key_size,
        density: args.density,
        value_size: args.value_size,
        zeros: args.zeros,
        seed: args.seed,
        no_load: args.no_load,
        clients: args.clients,
        ..defaults
    };
    mixgraph(args, &mut params)?;
    Ok(params)
}

/// Reads the distributions of `mixgraph`, and refuses them for other workloads.
fn mixgraph(args: &GenArgs, params: &mut GenParams) -> Result<(), Failure> {
    let (given, laws) = (&args.mixgraph, &mut params.mixgraph);
    let first_given = [
        ("--keyrange-dist", given.keyrange_dist.is_some()),
        ("--keyrange-num", given.keyrange_num.is_some()),
        ("--key-dist", given.key_dist.is_some()),
        ("--value-pareto", given.value_pareto.is_some()),
        ("--mix-max-value-size", given.mix_max_value_size.is_some()),
        ("--iter-pareto", given.iter_pareto.is_some()),
        ("--mix-max-scan-len", given.mix_max_scan_len.is_some()),
    ]
    .into_iter()
    .find(|(_, given)| *given);
    if let Some((flag, _)) = first_given
        && params.workload != Workload::Mixgraph
    {
        let name = params.workload.name();
        return Err(Failure::usage(format!(
            "{flag}: applies only to the workload mixgraph, found {name}"
        )));
    }
    if let Some(dist) = given.keyrange_dist {
        laws.keyrange_dist = dist;
    }
    if let Some(ranges) = given.keyrange_num {
        laws.keyrange_num = ranges;
    }
    if let Some([a, b]) = given.key_dist {
        (laws.key_dist_a, laws.key_dist_b) = (a, b);
    }
    if let Some(law) = &given.value_pareto {
        laws.value = pareto("--value-pareto", law)?;
    }
    if let Some(law) = &given.iter_pareto {
        laws.iter = pareto("--iter-pareto", law)?;
    }
    if let Some(most) = given.mix_max_value_size {
        laws.max_value_size = most;
    }
    if let Some(most) = given.mix_max_scan_len {
        laws.max_scan_len = most;
    }
    Ok(())
}

fn pareto(flag: &str, text: &str) -> Result<treering_traces::generate::Pareto, Failure> {
    text.parse().map_err(|e| {
        let why = Failure::from(e).message;
        Failure::usage(why.replace("--pareto", flag))
    })
}
