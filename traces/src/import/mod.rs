//! Importers: they turn traces of other tools into Treering's own format.
//!
//! A [`Format`] is a small plug-in in a file of its own. The file's documentation describes the
//! columns and names the source. A plug-in sees one line (or one binary record) at a time and
//! passes its meaning to `emit::Emit`. The rest is the same for all formats (`run`): reading,
//! decompression, bad lines, truncated files, times and reports.
//!
//! ```text
//!   file ──► input: decompress ──► run: lines or records ──► formats/…: what a line means
//!                                                                   │
//!   sink ◄── emit: blocks and keys, devices, times, expiry ◄────────┘
//! ```
//!
//! **Block traces.** A request becomes one operation for each 4 KiB block that it touches. The key
//! has 8 bytes and is big-endian, so that neighbours on the device are neighbours in the tree:
//!
//! ```text
//!     | device: 16 bits | block number: 48 bits |        block number = byte offset / 4096
//! ```
//!
//! Devices (disks, ASUs, LUNs, volumes, files) are numbered from 0 in the order in which the trace
//! first names them. If the trace has one device, its keys are plain block numbers. A put gets a
//! value of [`ImportOptions::value_size`] bytes. The default is 120: with the key, that is the
//! 128-byte record of B⁻-tree §4.1. Discards (TRIM, UNMAP) are deletes.
//!
//! **Key-value traces.** Keys and value lengths are those of the trace. Operations that write a key
//! are puts: set, add, replace, cas, append, prepend, incr, decr, merge and SET_LEASE. Lookups are
//! gets. A seek is a scan of one record.
//!
//! **Times to live.** If a put has a time to live, its key is deleted when that time has passed in
//! the trace. The delete precedes the operations of the time at which the key expires. A later put
//! sets a new expiry, and a delete cancels it; append, prepend, incr and decr keep the old one, as
//! in memcached. Keys that expire after the last operation are not deleted. If the trace has no
//! times, nothing expires and a warning says so.
//!
//! Operations without a counterpart in a key-value store (flushes, range deletes, …) are left out,
//! counted, and named in a warning. Times become nanoseconds since the first operation. If an
//! operation is stamped earlier than the first one, its time becomes 0; a warning says how many
//! were.

mod binary;
pub mod columns;
mod emit;
mod expire;
mod fields;
mod formats;
mod looks;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod plugin;
mod run;
mod table;
mod words;

use std::ops::ControlFlow;
use std::path::Path;

pub use formats::Format;
pub use options::{ImportOptions, ImportReport, OracleOp, Progress, Sink};

use crate::{Header, Op, TraceError, Writer};

/// Reads `input`, plain or compressed, as `format` and hands every operation to `sink`, in order.
///
/// ```
/// use treering_traces::import::{Format, ImportOptions, import};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("twitter.csv");
/// // timestamp,key,key_size,value_size,client,op,TTL: the key expires after 10 s.
/// std::fs::write(&path, "0,a,1,50,7,set,10\n3,a,1,50,7,get,0\n12,b,1,9,7,set,0\n").unwrap();
///
/// let mut ops = Vec::new();
/// let report = import(Format::Twitter, &path, &ImportOptions::default(), &mut |op| {
///     ops.push((op.kind.name(), op.time_ns.unwrap_or(0) / 1_000_000_000));
///     Ok(())
/// })?;
/// assert_eq!(ops, [("put", 0), ("get", 3), ("delete", 10), ("put", 12)]);
/// assert_eq!((report.lines, report.expired), (3, 1));
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// The file cannot be read; more than [`ImportOptions::skip_bad`] lines are bad; the file holds no
/// operation; an option does not apply to the format. An error of `sink` is passed on.
pub fn import(
    format: Format,
    input: &Path,
    options: &ImportOptions,
    sink: &mut Sink<'_>,
) -> Result<ImportReport, TraceError> {
    import_with_progress(format, input, options, sink, &mut |_, _| {
        ControlFlow::Continue(())
    })
}

/// Like [`import`], and calls `progress` while it reads.
///
/// # Errors
/// Those of [`import`]; [`TraceError::Interrupted`] if `progress` ends it.
fn import_with_progress(
    format: Format,
    input: &Path,
    options: &ImportOptions,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<ImportReport, TraceError> {
    let mut ops = 0u64;
    let mut counted = |op: &Op| {
        ops += 1;
        sink(op)
    };
    let plugin = format.plugin(options)?;
    let mut imported = run::run(plugin, input, options, &mut counted, progress);
    if let Ok(report) = &mut imported {
        report.warnings.extend(looks::doubt(format, options, input));
    }
    imported.map_err(|error| looks::hinted(error, (format, options), input, ops))
}

/// Imports `input` into the trace file `output`, and names the trace after the input. A failed
/// import leaves nothing at `output`.
///
/// ```
/// use std::ops::ControlFlow;
/// use treering_traces::import::{Format, ImportOptions, import_file};
/// use treering_traces::open;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let (input, output) = (folder.path().join("drive.csv"), folder.path().join("drive.trz"));
/// // A write of two 4 KiB blocks, then a read of one; times in ms.
/// std::fs::write(&input, "time,op,offset,size\n0,write,8192,8192\n5,read,8192,4096\n").unwrap();
/// let options = ImportOptions {
///     columns: Some("time=time:ms,op=op,offset=offset:bytes,size=size:bytes".into()),
///     ..ImportOptions::default()
/// };
/// let progress = &mut |_, _| ControlFlow::Continue(());
/// let (header, report) = import_file(Format::Csv, &input, &options, &output, progress)?;
/// assert_eq!((header.ops, report.devices), (3, 1));
/// assert!(open(&output)?.header().addresses);
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// Those of [`import`] and of [`Writer`].
pub fn import_file(
    format: Format,
    input: &Path,
    options: &ImportOptions,
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<(Header, ImportReport), TraceError> {
    let file_name = input.file_name().unwrap_or_default().to_string_lossy();
    let name = file_name
        .split('.')
        .find(|part| !part.is_empty())
        .unwrap_or(format.name());
    let header = Header::named(name, format!("imported from {format}: {file_name}"));
    let mut writer = Writer::create(output, header)?;
    let mut sink = |op: &Op| writer.write(op);
    let report = import_with_progress(format, input, options, &mut sink, progress)?;
    writer.set_addresses(report.blocks.is_some());
    Ok((writer.finish()?, report))
}
