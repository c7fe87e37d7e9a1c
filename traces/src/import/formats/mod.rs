//! The formats: one file each, and this list of them.
//!
//! To add a format, write its file and name it here: as a module, as a variant of [`Format`], in
//! [`Format::ALL`], in [`Format::name`] and in `Format::plugin`.

mod alibaba;
mod blkparse;
mod blktrace;
mod block_cache;
mod cachelib;
mod cloudphysics;
mod csv;
mod disksim;
mod fio;
mod lcs;
mod mqsim;
mod msr;
mod oracle;
mod rocksdb;
mod spc;
mod systor;
mod tencent;
mod twitter;
mod vans;
mod vscsi;
mod ycsb;

use std::str::FromStr;

use super::options::ImportOptions;
use super::plugin::{Plugin, TextFormat};
use crate::TraceError;

/// A trace format that can be imported.
///
/// ```
/// use treering_traces::import::Format;
///
/// assert_eq!("twitter".parse::<Format>()?, Format::Twitter);
/// assert_eq!(Format::Lcs.to_string(), "lcs");
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
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
    /// CloudPhysics vscsi: binary records of 32 (v1) or 40 bytes (v2).
    Vscsi,
    /// Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
    /// Tencent CBS: `Timestamp,Offset,Size,IOType,VolumeID`.
    Tencent,
    /// SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`.
    Systor,
    /// fio iolog, version 2 or 3.
    Fio,
    /// The text output of blkparse.
    Blkparse,
    /// The binary files that blktrace records.
    Blktrace,
    /// Any delimited text, described by [`ImportOptions::columns`]. [`columns`](super::columns)
    /// has the grammar and examples.
    Csv,
    /// Parquet. Its columns are described like those of [`Format::Csv`], or are named like the
    /// fields. Needs a build with the feature `parquet`.
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
    /// libCacheSim oracleGeneral: binary records of 24 or 27 bytes.
    OracleGeneral,
    /// libCacheSim lcs, versions 1 to 8: a header, then binary records.
    Lcs,
}

impl Format {
    /// All formats, in the order in which help and documentation list them.
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

    /// The format whose magic number `start` begins with, if any.
    pub(super) fn by_magic(start: &[u8]) -> Option<Format> {
        if start.starts_with(b"PAR1") {
            Some(Format::Parquet)
        } else if start == lcs::MAGIC.to_le_bytes() {
            Some(Format::Lcs)
        } else if blktrace::begins(start) {
            Some(Format::Blktrace)
        } else {
            None
        }
    }

    /// Makes the reader of this format. Fails if an option does not apply to it.
    pub(super) fn plugin(self, options: &ImportOptions) -> Result<Plugin, TraceError> {
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
