//! Importers: other people's traces as ours.
//!
//! A [`Format`] is a small plug-in, one file each, whose doc comment gives the column layout and its source. It sees one
//! line (or one binary record) at a time and hands what it means to `emit::Emit`; reading, decompression, bad
//! lines, cut tails, times and reports are the same for all (`run`).
//!
//! **Block traces.** A request becomes one operation for each 4 KiB block that it touches. The key is 8 bytes,
//! big-endian, so that neighbours on the device are neighbours in the tree:
//!
//! ```text
//!     | device: 16 bits | block number: 48 bits |        block number = byte offset / 4096
//! ```
//!
//! Devices (disks, ASUs, LUNs, volumes, files) are numbered from 0 in the order in which the trace first names them, so the
//! keys of a trace of one device are its plain block numbers. A put gets [`ImportOptions::value_size`] bytes: 120 unless told, which
//! with its key makes the 128-byte record of B⁻-tree §4.1. Discards (TRIM, UNMAP) are deletes.
//!
//! **Key-value traces.** Keys stay the strings that they are, and the value length is the trace's own. What writes a key
//! (set, add, replace, cas, append, prepend, incr, decr, merge, SET_LEASE) is a put, what looks one up is a get, a seek is
//! a scan of one record.
//!
//! **Times to live.** A put that carries one gives a delete of its key when it has passed, in the
//! trace's time and between the operations of that time: before those of the very time at which the
//! key expires. A later put replaces what was due (append, prepend, incr and decr leave it, as
//! memcached does), a delete cancels it. What is due after the last operation is not deleted. In a
//! trace without times nothing expires, and a warning says so.
//!
//! Operations without a counterpart (flushes, range deletes, …) are left out, counted and named in a warning. Times become
//! nanoseconds since the first operation; an operation stamped earlier than the first gets 0, and a warning says how
//! many did.

mod alibaba;
mod binary;
mod blkparse;
mod blktrace;
mod block_cache;
mod cachelib;
mod cloudphysics;
pub mod columns;
mod csv;
mod disksim;
mod emit;
mod expire;
mod fields;
mod fio;
mod lcs;
mod looks;
mod mqsim;
mod msr;
mod oracle;
#[cfg(feature = "parquet")]
mod parquet;
mod rocksdb;
mod run;
mod spc;
mod systor;
mod table;
mod tencent;
mod twitter;
mod vans;
mod vscsi;
mod words;
mod ycsb;

use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use crate::{Blocks, Header, Op, TraceError, Writer};
use emit::{Emit, Fault};

/// Bytes of a block: what a request is split into.
pub const BLOCK: u64 = 4096;

/// The longest request that is believed, in bytes. Block layers split requests far below this; a larger number is a
/// damaged line or a wrong unit, and would become millions of operations.
pub const MAX_REQUEST: u64 = 4 << 30;

/// A format of traces that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// MQSim ASCII: `arrival device start_sector sectors type`.
    Mqsim,
    /// DiskSim ASCII: `time device block count flags`.
    Disksim,
    /// MSR Cambridge CSV.
    Msr,
    /// SPC / UMass: `ASU,LBA,Size,Opcode,Timestamp`.
    Spc,
    /// CloudPhysics CSV as libCacheSim ships it: `version,time,op,size,lbn`.
    Cloudphysics,
    /// CloudPhysics vscsi, binary records of 32 (v1) or 40 bytes (v2).
    Vscsi,
    /// Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
    /// Tencent CBS: `Timestamp,Offset,Size,IOType,VolumeID`.
    Tencent,
    /// SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`.
    Systor,
    /// fio iolog, version 2 or 3.
    Fio,
    /// Text that blkparse printed.
    Blkparse,
    /// What blktrace records, binary.
    Blktrace,
    /// Any delimited text, described by [`ImportOptions::columns`]; grammar and examples: [`columns`].
    Csv,
    /// Parquet, its columns described as those of [`Format::Csv`] or named like the fields; in
    /// builds with the feature `parquet`.
    Parquet,
    /// Twitter cache-trace CSV.
    Twitter,
    /// CacheLib (cachebench) key-value CSV.
    Cachelib,
    /// RocksDB trace_analyzer, human-readable trace.
    Rocksdb,
    /// RocksDB block_cache_trace_analyzer, human-readable trace.
    BlockCache,
    /// YCSB basic binding log.
    Ycsb,
    /// VANS memory accesses.
    Vans,
    /// libCacheSim oracleGeneral, binary records of 24 bytes.
    OracleGeneral,
    /// libCacheSim lcs, a header and binary records, versions 1 to 8.
    Lcs,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 22] = [
        Format::Mqsim,
        Format::Disksim,
        Format::Msr,
        Format::Spc,
        Format::Cloudphysics,
        Format::Vscsi,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::Fio,
        Format::Blkparse,
        Format::Blktrace,
        Format::Csv,
        Format::Parquet,
        Format::Twitter,
        Format::Cachelib,
        Format::Rocksdb,
        Format::BlockCache,
        Format::Ycsb,
        Format::Vans,
        Format::OracleGeneral,
        Format::Lcs,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Mqsim => "mqsim",
            Format::Disksim => "disksim",
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Cloudphysics => "cloudphysics",
            Format::Vscsi => "vscsi",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor",
            Format::Fio => "fio",
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Twitter => "twitter",
            Format::Cachelib => "cachelib",
            Format::Rocksdb => "rocksdb",
            Format::BlockCache => "block-cache",
            Format::Ycsb => "ycsb",
            Format::Vans => "vans",
            Format::OracleGeneral => "oracle-general",
            Format::Lcs => "lcs",
        }
    }

    fn plugin(self, options: &ImportOptions) -> Result<Plugin, TraceError> {
        if options.columns.is_some() && !matches!(self, Format::Csv | Format::Parquet) {
            return Err(TraceError::BadParameter {
                name: "columns",
                why: format!(
                    "expected with the csv and parquet formats only, found with {}",
                    self.name()
                ),
            });
        }
        fn text(format: impl TextFormat + 'static) -> Plugin {
            Plugin::Text(Box::new(format))
        }
        Ok(match self {
            Format::Mqsim => text(mqsim::Mqsim),
            Format::Disksim => text(disksim::Disksim),
            Format::Msr => text(msr::Msr::default()),
            Format::Spc => text(spc::Spc),
            Format::Cloudphysics => text(cloudphysics::Cloudphysics::default()),
            Format::Vscsi => Plugin::Binary(Box::new(vscsi::Vscsi::default())),
            Format::Alibaba => text(alibaba::Alibaba::default()),
            Format::Tencent => text(tencent::Tencent::default()),
            Format::Systor => text(systor::Systor),
            Format::Fio => text(fio::Fio::default()),
            Format::Blkparse => text(blkparse::Blkparse::default()),
            Format::Blktrace => Plugin::Binary(Box::new(blktrace::Blktrace::default())),
            Format::Csv => text(csv::Csv::new(options.columns.as_deref())?),
            #[cfg(feature = "parquet")]
            Format::Parquet => Plugin::Parquet(options.columns.clone()),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => {
                return Err(TraceError::NotBuilt {
                    what: "import parquet",
                    feature: "parquet",
                });
            }
            Format::Twitter => text(twitter::Twitter),
            Format::Cachelib => text(cachelib::Cachelib::default()),
            Format::Rocksdb => text(rocksdb::Rocksdb::default()),
            Format::BlockCache => text(block_cache::BlockCache),
            Format::Ycsb => text(ycsb::Ycsb),
            Format::Vans => text(vans::Vans),
            Format::OracleGeneral => {
                Plugin::Binary(Box::new(oracle::OracleGeneral::new(options.oracle_op)))
            }
            Format::Lcs => Plugin::Binary(Box::new(lcs::Lcs::new(options.oracle_op))),
        })
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Format, TraceError> {
        Format::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| {
                let names = Format::ALL.map(Format::name).join(", ");
                TraceError::BadParameter {
                    name: "format",
                    why: format!("expected one of {names}, found {name}"),
                }
            })
    }
}

/// What a request of a trace without a write flag is taken for (`oracle-general`, `lcs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OracleOp {
    /// Every request is a get.
    Get,
    /// Every request is a put of the object's size.
    Put,
    /// What its record says: the 27-byte variant of `oracle-general`, `lcs` from version 2 on.
    Recorded,
}

impl FromStr for OracleOp {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<OracleOp, TraceError> {
        match name {
            "get" => Ok(OracleOp::Get),
            "put" => Ok(OracleOp::Put),
            "recorded" => Ok(OracleOp::Recorded),
            _ => Err(TraceError::BadParameter {
                name: "oracle-op",
                why: format!("expected get, put or recorded, found {name}"),
            }),
        }
    }
}

/// How to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Value length in bytes of a put of a block or memory trace, whose values are not records.
    pub value_size: u32,
    /// How many bad lines (or records) are skipped before the next one is an error.
    pub skip_bad: u64,
    /// Which column is what, for [`Format::Csv`] and [`Format::Parquet`]; its grammar and examples:
    /// [`columns`].
    pub columns: Option<String>,
    /// What a request of [`Format::OracleGeneral`] or [`Format::Lcs`] is; `None` is what the record
    /// says, or, where it says nothing, a get, with a warning.
    pub oracle_op: Option<OracleOp>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions {
            value_size: 120,
            skip_bad: 0,
            columns: None,
            oracle_op: None,
        }
    }
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Operations handed to the sink.
    pub ops: u64,
    /// Lines (or records) read, those without operations included.
    pub lines: u64,
    /// Deletes among them of keys whose time to live had passed.
    pub expired: u64,
    /// Distinct devices (disks, volumes, files) of a block trace.
    pub devices: u64,
    /// Of a block trace: what its blocks become.
    pub blocks: Option<Blocks>,
    /// Bad lines (or records) skipped.
    pub skipped_bad: u64,
    /// Operations of the input that have no counterpart and were left out.
    pub left_out: u64,
    /// One clear sentence each, for the user.
    pub warnings: Vec<String>,
}

/// Where operations go.
pub type Sink<'a> = dyn FnMut(&Op) -> Result<(), TraceError> + 'a;

/// Reads `input` (plain or compressed) as `format` and hands every operation to `sink`, in order.
///
/// # Errors
/// The file cannot be read, a line is bad (beyond [`ImportOptions::skip_bad`]), there is no operation in it at all, an option
/// does not fit; whatever `sink` returns.
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

/// What is told now and then how many bytes of the file have been read, of how many; it may end the import.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Like [`import`], with somebody to tell how far it is.
///
/// # Errors
/// Those of [`import`]; [`TraceError::Interrupted`] if `progress` ends it.
pub fn import_with_progress(
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

/// Imports `input` into the trace file `output`, named after the input. Nothing is at `output` unless all went well.
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
    let header = Header {
        schema: Header::SCHEMA.into(),
        name: name.into(),
        source: format!("imported from {format}: {file_name}"),
        ops: 0,
        warmup_ops: 0,
        records: None,
        zeros: 0.5,
        seed: None,
        addresses: false,
    };
    let mut writer = Writer::create(output, header)?;
    let mut sink = |op: &Op| writer.write(op);
    let report = import_with_progress(format, input, options, &mut sink, progress)?;
    writer.set_addresses(report.blocks.is_some());
    Ok((writer.finish()?, report))
}

enum Plugin {
    Text(Box<dyn TextFormat>),
    Binary(Box<dyn BinaryFormat>),
    /// With the specification of its columns, if there is one.
    #[cfg(feature = "parquet")]
    Parquet(Option<String>),
}

/// A format whose unit is a line.
trait TextFormat {
    /// Takes one line that is not blank. A [`Fault`] means that nothing of it was emitted.
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault>;

    /// Asked when the whole input held no operation: may reading it once more find some?
    fn read_again(&mut self) -> bool {
        false
    }
}

/// A format whose unit is a record: a part of fixed length, and in some formats a tail whose length
/// that part says. A header may stand before the first.
trait BinaryFormat {
    /// Bytes before the first record.
    fn header_len(&self) -> usize {
        0
    }

    /// Takes the header, all [`Self::header_len`] bytes of it.
    fn header(&mut self, _header: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    /// Length of every record's fixed part, found out from the first bytes behind the header.
    fn record_len(&mut self, start: &[u8]) -> Result<usize, Fault>;

    /// Length of the tail behind a record's fixed part, at most [`run::MAX_TAIL`].
    fn tail_len(&self, _record: &[u8]) -> usize {
        0
    }

    /// Takes one record, without its tail.
    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault>;

    /// What the user should know, whatever the records said, after so many of them.
    fn warning(&self, _records: u64) -> Option<String> {
        None
    }

    /// Asked when the whole input held no operation: may reading it once more find some?
    fn read_again(&mut self) -> bool {
        false
    }
}
