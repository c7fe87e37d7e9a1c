//! `treering verify`.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{VerifyReport, verify, verify_blocks};

use crate::args::VerifyArgs;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output::{self, Output};
use crate::store_file::{self, StoreFile};

/// `treering.verify/1`.
#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    store: String,
    /// `null` if the check of the store was not finished.
    sound: Option<bool>,
    leaves: u64,
    records: u64,
    user_bytes: u64,
    long_values: u64,
    page_size: usize,
    log_records: u64,
    pages_repaired: u64,
    /// Intact pages of a store that cannot be recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<u64>,
    damage: &'a [String],
}

/// Checks the store; damage is listed on stdout, and counted on stderr.
pub(crate) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.store])?;
    let name = args.store.display().to_string();
    let (to, store) = (json.clone(), name.clone());
    interrupt::at_end(move || {
        let nothing = VerifyReport::default();
        output::write_partial(to.as_ref(), &document(&store, &nothing, false));
        format!("{store} was not judged")
    });
    let StoreFile { device, cut } = store_file::open(&args.store)?;
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    let mut report = verify(Arc::clone(&device)).map_err(|e| failure::engine(&name, e))?;
    if !report.walked {
        verify_blocks(device, &mut report).map_err(|e| failure::engine(&name, e))?;
    }
    report.damage.splice(0..0, cut);
    interrupt::finished();
    if let Some(json) = &json {
        json.write(&output::json(&document(&name, &report, true))?)?;
    }
    if json != Some(Output::Stdout) {
        output::say(text(&name, &report).as_bytes())?;
    }
    match report.damage.len() {
        0 => Ok(()),
        1 => Err(Failure::found(format!("{name}: {}", report.damage[0]))),
        n => Err(Failure::found(format!(
            "{name}: {n} places are damaged; the first: {}",
            report.damage[0]
        ))),
    }
}

fn document<'a>(name: &str, report: &'a VerifyReport, complete: bool) -> Document<'a> {
    Document {
        schema: "treering.verify/1",
        complete,
        store: name.into(),
        sound: complete.then_some(report.damage.is_empty()),
        leaves: report.leaves,
        records: report.records,
        user_bytes: report.user_bytes,
        long_values: report.long_values,
        page_size: report.page_size,
        log_records: report.log_records,
        pages_repaired: report.pages_repaired,
        images: report.images,
        damage: &report.damage,
    }
}

fn text(name: &str, report: &VerifyReport) -> String {
    let mut text: String = report.damage.iter().map(|d| format!("{d}\n")).collect();
    let verdict = if report.damage.is_empty() {
        "sound"
    } else {
        "DAMAGED"
    };
    if let Some(images) = report.images {
        text += &format!(
            "{name}: {verdict}, and cannot be opened; {images} pages and {} log records are intact, \
             with {} records of {} bytes of keys and values: `treering repair` saves them\n",
            report.log_records, report.records, report.user_bytes
        );
        return text;
    }
    text += &format!(
        "{name}: {verdict}; {} leaves of {} bytes, {} records, {} bytes of keys and values\n",
        report.leaves, report.page_size, report.records, report.user_bytes
    );
    if report.log_records > 0 || report.pages_repaired > 0 {
        text += &format!(
            "the store was not closed: recovery would redo {} log records and repair {} pages\n",
            report.log_records, report.pages_repaired
        );
    }
    text
}
