//! Flags of `treering drive`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use treering_drive::face::{Face, FileSystem, PageCache};
use treering_drive::measure::Warmup;

use super::replay::{Before, EffortName, daily, gc, over_provisioning};
use crate::units;

/// Subcommands of `treering drive`.
#[derive(Debug, Subcommand)]
pub(crate) enum DriveCommand {
    /// Run a program on a simulated drive, and report what its writes do to it.
    Run(Box<DriveRunArgs>),
    /// Mount a simulated drive until it is unmounted or interrupted, then report.
    Mount(Box<DriveMountArgs>),
    /// Replay a recording on other drives: measured beside predicted.
    Replay(Box<DriveReplayArgs>),
    /// Report what is in a recording: bytes by cause, overwrites, flushes, compressibility.
    Info(DriveInfoArgs),
    /// Write a recording as blkparse or fio read it (`treering import drive` makes a trace of it).
    Export(DriveExportArgs),
}

/// Flags of `treering drive run`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering drive run -- sh -c 'dd if=/dev/urandom of=file bs=64k count=99'\n  \
    treering drive run --html app.html -- sqlite3 app.db 'CREATE TABLE t(x)'\n  \
    treering drive run --record app.rec --device ssd,csd --op 7%,28% -- ./my-benchmark\n  \
    treering drive run --fs ext4 --capacity 4GiB -- ./my-benchmark    # as root\n  \
    treering drive run --fail-fsync 1 -- sh -c 'echo 1 >db; sync db || sync db'\n\n\
    The program runs in the drive's directory, which is also $TREERING_DIR. A line that it writes to \
    the file named by $TREERING_ACKS is stamped with its place in the recording; a line \
    `user_bytes N` says how many bytes of its own it has written so far.\n\
    Nothing is measured while the program runs: the recording is replayed on the drives afterwards, \
    as `treering drive replay` does. Glossary: docs/GLOSSARY.md")]
pub(crate) struct DriveRunArgs {
    #[command(flatten)]
    pub(crate) mount: MountArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Flags of `treering drive mount`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering drive mount /mnt/drive --record day.rec &\n  \
    treering drive mount /mnt/drive --keep ~/drive --fs ext4 --capacity 20GiB    # as root\n\n\
    Unmount with `umount DIR` (`fusermount3 -u DIR` where you are not root), or stop with Ctrl-C: \
    the report follows.")]
pub(crate) struct DriveMountArgs {
    /// An empty directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) mount: MountArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
}

/// Flags of `treering drive replay`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering drive replay app.rec\n  \
    treering drive replay app.rec --device ssd,csd,my-drive.toml --op 7%,28% --html drives.html\n  \
    treering drive replay app.rec --precondition steady --capacity 64GiB --warmup 20%\n  \
    treering drive replay app.rec --from-mark loaded --user-bytes 2GiB --json - | jq .chain\n  \
    treering drive replay app.rec --cause hot='**/hot/*' --timing --gc cost-benefit\n\n\
    Every drive of the lists takes the same stream. Glossary: docs/GLOSSARY.md")]
pub(crate) struct DriveReplayArgs {
    /// The recording
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Logical capacity of the drives [default: fitted to the recording, see --fill]
    #[arg(long, value_name = "SIZE", value_parser = units::size, conflicts_with = "fill")]
    pub(crate) capacity: Option<u64>,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
}

/// Flags of `treering drive info`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering drive info app.rec\n  \
    treering drive info app.rec --html app.html\n  \
    treering drive info app.rec --cause hot='**/hot/*' --json - | jq .causes")]
pub(crate) struct DriveInfoArgs {
    /// The recording
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Cause of writes to files whose path matches the glob; comes before the known ones
    #[arg(long, value_name = "NAME=GLOB", value_parser = cause)]
    pub(crate) cause: Vec<(String, String)>,
    /// Write the report as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Flags of `treering drive export`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering drive export blkparse app.rec -o app.blkparse\n  \
    treering drive export fio app.rec -o app.iolog --file /dev/nvme9n1\n\n\
    fio then writes the same again: fio --name=again --read_iolog=app.iolog --direct=1")]
pub(crate) struct DriveExportArgs {
    /// The format
    #[arg(value_enum)]
    pub(crate) format: ExportFormat,
    /// The recording
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// With fio: the file or device that fio will write to
    #[arg(long, value_name = "FILE", default_value = "treering.fio")]
    pub(crate) file: String,
}

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The text of blkparse
    Blkparse,
    /// A log for `fio --read_iolog`, version 3, with times (fio 3.31 or newer)
    Fio,
    /// The same without times, version 2, for older fio
    Fio2,
}

/// Flags about what a program sees.
#[derive(Debug, Args)]
pub(crate) struct MountArgs {
    /// What the program sees: files (a file system of our own, no root needed), a real file system
    /// on a simulated disk (ext4, xfs or btrfs, as root), or none (only the file `disk`)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fs: FsName,
    /// Size of the drive for the program, and of the simulated drives [default: 8GiB for the
    /// program; the simulated drives are fitted to what it had on it, see --fill]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) capacity: Option<u64>,
    /// Record to this file, with the bytes of all writes [default: a temporary file, with bytes only
    /// if a drive compresses]
    #[arg(long, value_name = "LOG")]
    pub(crate) record: Option<PathBuf>,
    /// Keep the drive in this directory; a later run with it finds the files there
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Whether the kernel may hold written bytes back, as it does on other file systems
    #[arg(long, value_enum, default_value_t)]
    pub(crate) page_cache: PageCacheName,
    /// Let the N-th flush fail with EIO; what was written to its file since the last one never
    /// reaches the drive, as on Linux
    #[arg(long, value_name = "N", value_parser = units::ordinal)]
    pub(crate) fail_fsync: Option<u64>,
    /// Let the drive be full from the N-th write on that needs room, until something is removed
    #[arg(long, value_name = "N", value_parser = units::ordinal)]
    pub(crate) fail_space: Option<u64>,
    /// Let the N-th read that reaches the drive fail with EIO, and all of these blocks until they
    /// are written again
    #[arg(long, value_name = "N", value_parser = units::ordinal)]
    pub(crate) fail_read: Option<u64>,
    /// Threads that serve the program's requests
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::small_count)]
    pub(crate) threads: u32,
}

/// Flags about what is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Simulated drives: ssd, csd (compresses each block), another name that `treering devices`
    /// lists, or PROFILE.toml; or a list
    #[arg(
        long,
        value_name = "DRIVE",
        default_value = "ssd",
        value_delimiter = ','
    )]
    pub(crate) device: Vec<String>,
    /// Over-provisioning of the drives, T/U - 1; or a list [default: the profile's]
    #[arg(long = "op", value_name = "SHARE", value_parser = over_provisioning, value_delimiter = ',')]
    pub(crate) over_provisioning: Vec<f64>,
    /// Garbage collection policy: greedy, fifo, random, d-choices:D, cost-benefit,
    /// windowed-greedy:W; or a list [default: the profile's]
    #[arg(long, value_name = "POLICY", value_parser = gc, value_delimiter = ',')]
    pub(crate) gc: Vec<String>,
    /// Share of a fitted drive that the most data takes that was ever on it [default: 90%]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) fill: Option<f64>,
    /// State of the drives before the run [default: none]
    #[arg(long)]
    pub(crate) precondition: Option<Before>,
    /// Do not tell the drives what is no longer needed
    #[arg(long)]
    pub(crate) no_discard: bool,
    /// Cause of writes to files whose path matches the glob; comes before the known ones
    #[arg(long, value_name = "NAME=GLOB", value_parser = cause)]
    pub(crate) cause: Vec<(String, String)>,
    /// Share of the written bytes that is warm-up and not measured
    #[arg(long, value_name = "SHARE", value_parser = units::share, conflicts_with = "from_mark")]
    pub(crate) warmup: Option<f64>,
    /// Measure from this line of $TREERING_ACKS on
    #[arg(long, value_name = "LINE")]
    pub(crate) from_mark: Option<String>,
    /// Bytes that the program wrote for its user [default: its last line `user_bytes N`, or the
    /// bytes of its files]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) user_bytes: Option<u64>,
    /// Bytes that the user writes per day, for the lifetime [default: as in the
    /// recording if it is of an hour or more, else the drive's logical capacity]
    #[arg(long, value_name = "SIZE", value_parser = daily)]
    pub(crate) daily: Option<u64>,
    /// Do not predict
    #[arg(long)]
    pub(crate) no_predict: bool,
    /// How much of the drives' flash is played to predict
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub(crate) effort: EffortName,
    /// Model queues, channels and dies
    #[arg(long)]
    pub(crate) timing: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the report as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl MeasureArgs {
    /// What comes before the measured part.
    pub(crate) fn warmup(&self) -> Warmup {
        match (&self.from_mark, self.warmup) {
            (Some(line), _) => Warmup::Mark(line.clone()),
            (None, Some(share)) => Warmup::Share(share),
            (None, None) => Warmup::Nothing,
        }
    }
}

/// A face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FsName {
    #[default]
    Files,
    Ext4,
    Xfs,
    Btrfs,
    None,
}

impl FsName {
    pub(crate) fn face(self) -> Face {
        match self {
            FsName::Files => Face::Files,
            FsName::Ext4 => Face::Disk(FileSystem::Ext4),
            FsName::Xfs => Face::Disk(FileSystem::Xfs),
            FsName::Btrfs => Face::Disk(FileSystem::Btrfs),
            FsName::None => Face::Disk(FileSystem::None),
        }
    }
}

/// What the kernel's page cache may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageCacheName {
    #[default]
    WriteBack,
    WriteThrough,
}

impl PageCacheName {
    pub(crate) fn mode(self) -> PageCache {
        match self {
            PageCacheName::WriteBack => PageCache::WriteBack,
            PageCacheName::WriteThrough => PageCache::WriteThrough,
        }
    }
}

fn cause(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, glob)) if !name.is_empty() && !glob.is_empty() => {
            Ok((name.into(), glob.into()))
        }
        _ => Err("expected NAME=GLOB, such as hot='**/hot/*'".into()),
    }
}
