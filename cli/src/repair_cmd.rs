//! `treering repair`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::BlockDevice;
use treering_engine::{
    Error, KeyRange, SalvageHints, SalvageReport, SalvageStep, salvage, salvage_options,
};

use crate::args::RepairArgs;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::new_store::{self, NewStore};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::rows::Bytes;
use crate::store_file::{self, StoreFile};

/// `treering.repair/1`.
#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// Whether the command finished.
    complete: bool,
    store: String,
    new_store: String,
    /// Whether nothing is missing or doubtful.
    whole: bool,
    records: u64,
    user_bytes: u64,
    images: u64,
    log_records: u64,
    missing: Vec<Range<'a>>,
    doubtful: Vec<Range<'a>>,
    damage: &'a [String],
}

/// A key range that includes `from` and excludes `to`; `None` means unbounded.
#[derive(serde::Serialize)]
struct Range<'a> {
    from: Bytes<'a>,
    to: Option<Bytes<'a>>,
}

/// Saves what is intact and reports what is not.
pub(crate) fn run(args: &RepairArgs) -> Result<(), Failure> {
    output::check_not_input("--output", &args.output, &args.store)?;
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.store])?;
    let name = args.store.display().to_string();
    let new_name = args.output.display().to_string();
    let so_far = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let (to, told) = (json.clone(), Arc::clone(&so_far));
    let (old, new) = (name.clone(), new_name.clone());
    interrupt::at_end(move || {
        let report = SalvageReport {
            records: told.0.load(Ordering::Relaxed),
            user_bytes: told.1.load(Ordering::Relaxed),
            ..SalvageReport::default()
        };
        output::write_partial(to.as_ref(), &document(&old, &new, &report, false));
        format!(
            "{} records of {old} were found; {new} was not written",
            report.records
        )
    });
    let report = save(args, &name, &so_far)?;
    if let Some(json) = &json {
        json.write(&output::json(&document(&name, &new_name, &report, true))?)?;
    }
    if json != Some(Output::Stdout) {
        output::say(text(&new_name, &report).as_bytes())?;
    }
    if report.is_complete() {
        return Ok(());
    }
    Err(Failure::found(format!(
        "{name}: {} key ranges are missing and {} are doubtful",
        report.missing.len(),
        report.doubtful.len()
    )))
}

fn save(
    args: &RepairArgs,
    name: &str,
    so_far: &(AtomicU64, AtomicU64),
) -> Result<SalvageReport, Failure> {
    let StoreFile { device, cut } = store_file::open(&args.store)?;
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    let page = args.new.page.map(usize::try_from).transpose();
    let hints = SalvageHints {
        page_size: page.map_err(|_| Failure::usage("--page: larger than can be addressed"))?,
    };
    let found = salvage_options(&device, hints).map_err(|e| failure::engine(name, e))?;
    let options = new_store::changed(found, &args.new)?;
    let mut new = NewStore::begin("--output", &args.output, options, 0)?;
    let mut progress = Progress::new();
    let mut tell = |step| {
        if let SalvageStep::Scanned(done, total) = step {
            progress.tell("reading", done, total);
        }
    };
    let new_name = args.output.display().to_string();
    let mut failed = None;
    let report = salvage(device, hints, &mut tell, &mut |key, value| {
        so_far.0.fetch_add(1, Ordering::Relaxed);
        let bytes = (key.len() + value.len()) as u64;
        so_far.1.fetch_add(bytes, Ordering::Relaxed);
        new.put(key, value)
            .inspect_err(|e| failed = Some(e.to_string()))
    });
    match (report, failed) {
        (Ok(report), _) if report.images + report.log_records == 0 => Err(Failure::usage(format!(
            "{name}: expected a store, even a damaged one; found no page and no log record"
        ))),
        (Ok(mut report), _) => {
            report.damage.splice(0..0, cut);
            interrupt::finished();
            new.finish()?;
            Ok(report)
        }
        (Err(e @ Error::BadOption { .. }), _) => Err(failure::engine(&new_name, e)),
        (Err(_), Some(why)) => Err(Failure::cannot_run(format!("{new_name}: {why}"))),
        (Err(e), None) => Err(failure::engine(name, e)),
    }
}

fn ranges(ranges: &[KeyRange]) -> Vec<Range<'_>> {
    ranges
        .iter()
        .map(|range| Range {
            from: Bytes::new(&range.from),
            to: range.to.as_deref().map(Bytes::new),
        })
        .collect()
}

fn document<'a>(
    name: &str,
    new_name: &str,
    report: &'a SalvageReport,
    complete: bool,
) -> Document<'a> {
    Document {
        schema: "treering.repair/1",
        complete,
        store: name.into(),
        new_store: new_name.into(),
        whole: complete && report.is_complete(),
        records: report.records,
        user_bytes: report.user_bytes,
        images: report.images,
        log_records: report.log_records,
        missing: ranges(&report.missing),
        doubtful: ranges(&report.doubtful),
        damage: &report.damage,
    }
}

fn text(new_name: &str, report: &SalvageReport) -> String {
    let mut text: String = report.damage.iter().map(|d| format!("{d}\n")).collect();
    for (kind, list) in [("missing", &report.missing), ("doubtful", &report.doubtful)] {
        for Range { from, to } in ranges(list) {
            let to = to.map_or_else(|| "the last".into(), |to| format!("before {to}"));
            text += &format!("{kind}: keys from {from} to {to}\n");
        }
    }
    text += &format!(
        "{new_name}: {} records, {} bytes of keys and values saved; {} page images and {} log \
         records found\n",
        report.records, report.user_bytes, report.images, report.log_records
    );
    text
}
