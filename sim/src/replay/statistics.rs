//! The statistics of a trace, saved in a file beside it, so that later predictions skip the passes
//! over the trace.
//!
//! ```text
//! 0        8          16         24          32        40       48         56
//! | magic  | trace:   | trace:   | options:  | unit of | whole  | checksum | zstd: facts, loaded
//! | + 1    |   length |   xxh3   |   xxh3    |  pages  |        |  xxh3    | records, workload …
//! ```
//!
//! A file fits a trace with the same length and hash, and options on which statistics depend:
//! limit, warm-up, preloaded records, records that do not fit, and kind of tree. As for a pass,
//! statistics for smaller pages suit larger ones if every record fits and no key is left out. The
//! checksum covers what is before it and behind it. A file that does not fit is as if it were not
//! there, and a warning says so. New files are written beside their target and renamed.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;
use treering_traces::{Header, TraceError};
use xxhash_rust::xxh3::Xxh3;

use super::config::ReplayConfig;
use super::error::{ReplayError, setting};
use super::look::Looked;
use super::preload::{Loads, Preload};
use super::progress::{Progress, Unfit};
use crate::codec::{Decoder, Encoder, malformed};
use crate::predict::Workload;

/// The last byte is the version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"TRstats\x01");
const HEAD: usize = 56;
/// Where the checksum is.
const CHECKSUM: usize = 48;

/// As fast as the pass needs it; higher levels hardly shrink keys and their order.
const LEVEL: i32 = 1;

/// The file for a trace's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The file. `None` for the trace's name with `.stats` behind it, which may be missing.
    pub file: Option<PathBuf>,
    /// Whether to save the statistics there, unless they are.
    pub save: bool,
}

impl Statistics {
    /// The file for the statistics of this trace.
    #[must_use]
    pub fn path(&self, trace: &Path) -> PathBuf {
        let beside = || {
            let mut name = trace.as_os_str().to_owned();
            name.push(".stats");
            name.into()
        };
        self.file.clone().unwrap_or_else(beside)
    }
}

/// What a file must agree with.
struct Key {
    trace: (u64, u64),
    options: u64,
    unit: u64,
}

/// Length and hash of a file.
fn hash_of(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let (mut len, mut bytes) = (0, vec![0; 256 * 1024]);
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok((len, hash.digest())),
            n => {
                hash.update(&bytes[..n]);
                len += n as u64;
            }
        }
    }
}

impl Key {
    /// The key of a configuration; `shares` are the operations of the trace, and those of them that
    /// are warm-up.
    fn of(config: &ReplayConfig, header: &Header, shares: (u64, u64)) -> io::Result<Key> {
        let preload = &config.preload;
        let source = match preload {
            Preload::File(path) => Some(hash_of(path)?),
            _ => None,
        };
        // The order of the loaded records.
        let seed = Loads::may_exist(preload, header).then_some(config.seed);
        let text = format!(
            "{shares:?} {preload:?} {source:?} {seed:?} {:?} {:?} {:?}",
            config.oversize,
            std::mem::discriminant(&config.tree),
            config.tree.takes(header).record_bytes,
        );
        Ok(Key {
            trace: hash_of(&config.trace)?,
            options: xxhash_rust::xxh3::xxh3_64(text.as_bytes()),
            unit: config.tree.unit_bytes() as u64,
        })
    }

    /// Checks the head of a file.
    fn check(&self, head: &[u64]) -> Result<(), Unfit> {
        let [magic, len, hash, options, unit, whole, ..] = *head else {
            return Err(Unfit::Damaged);
        };
        match () {
            () if magic != MAGIC => Err(Unfit::OtherVersion),
            () if (len, hash) != self.trace => Err(Unfit::OtherTrace),
            () if options != self.options => Err(Unfit::OtherOptions),
            () if unit == self.unit || (unit < self.unit && whole == 1) => Ok(()),
            () => Err(Unfit::OtherOptions),
        }
    }
}

/// Where statistics are looked for, and saved.
pub(super) struct Saved {
    path: PathBuf,
    key: Key,
    /// The new file, if one is wanted.
    new: Option<NamedTempFile>,
}

impl Saved {
    /// Reads the statistics of a trace, if a file has them. If not, the result says where to save
    /// them, if anywhere.
    pub(super) fn find(
        config: &ReplayConfig,
        header: &Header,
        shares: (u64, u64),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Option<Looked>, Option<Saved>), ReplayError> {
        let asked = &config.statistics;
        let path = asked.path(&config.trace);
        if !asked.save && !path.exists() {
            return match &asked.file {
                None => Ok((None, None)),
                Some(file) => {
                    let why = format!(
                        "{}: there is no such file; expected one that --save-statistics wrote",
                        file.display()
                    );
                    Err(setting("statistics", why))
                }
            };
        }
        let key = Key::of(config, header, shares).map_err(|source| TraceError::Io {
            file: config.trace.display().to_string(),
            source,
        })?;
        match read(&path, &key) {
            Ok(None) => {}
            Ok(Some(mut looked)) => {
                looked.header = header.clone();
                looked.workload.zeros = header.zeros;
                return Ok((Some(looked), None));
            }
            Err(unfit) => progress(Progress::Ignored(unfit)),
        }
        let mut saved = Saved {
            path,
            key,
            new: None,
        };
        if asked.save {
            saved.new = Some(saved.create()?);
        }
        Ok((None, Some(saved)))
    }

    /// Creates the file before the pass, which takes longer.
    fn create(&self) -> Result<NamedTempFile, ReplayError> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut named = tempfile::Builder::new();
        named.prefix(".stats-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            named.permissions(std::fs::Permissions::from_mode(0o666));
        }
        (named.tempfile_in(folder)).map_err(|e| refused(&self.path, &e))
    }

    /// Saves the results of a pass, if asked.
    pub(super) fn save(self, looked: &Looked) -> Result<(), ReplayError> {
        let Some(mut new) = self.new else {
            return Ok(());
        };
        (write(new.as_file_mut(), &self.key, looked))
            .and_then(|()| new.persist(&self.path).map_err(|e| e.error))
            .map_err(|e| refused(&self.path, &e))?;
        Ok(())
    }
}

fn refused(path: &Path, error: &io::Error) -> ReplayError {
    // Without the name of the temporary file.
    let kind = error.kind();
    let path = path.display();
    let why = format!("{path}: {kind}; expected a folder in which files can be written");
    setting("save-statistics", why)
}

/// Reads a file; `None` if there is none.
fn read(path: &Path, key: &Key) -> Result<Option<Looked>, Unfit> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) => return Err(Unfit::Unreadable),
    };
    let mut head = [0; HEAD];
    (file.read_exact(&mut head)).map_err(|_| Unfit::Damaged)?;
    let numbers = head.as_chunks::<8>().0.iter();
    let numbers: Vec<u64> = numbers.map(|n| u64::from_le_bytes(*n)).collect();
    key.check(&numbers)?;
    let body = |mut file: File| -> io::Result<Option<Looked>> {
        if checksum(&head, &mut file)? != numbers[CHECKSUM / 8] {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(HEAD as u64))?;
        let mut body = zstd::Decoder::new(BufReader::with_capacity(1 << 16, file))?;
        load(&mut body).map(Some)
    };
    body(file).ok().flatten().map(Some).ok_or(Unfit::Damaged)
}

/// The checksum of a file's head and of what follows.
fn checksum(head: &[u8], body: &mut File) -> io::Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(&head[..CHECKSUM]);
    let mut bytes = vec![0; 256 * 1024];
    loop {
        match body.read(&mut bytes)? {
            0 => return Ok(hash.digest()),
            n => hash.update(&bytes[..n]),
        }
    }
}

fn write(file: &mut File, key: &Key, looked: &Looked) -> io::Result<()> {
    let is_whole = looked.all_fit && !looked.workload.is_estimated();
    let (len, hash) = key.trace;
    let numbers = [MAGIC, len, hash, key.options, key.unit, is_whole.into(), 0];
    let mut head: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    file.write_all(&head)?;
    let mut body = zstd::Encoder::new(BufWriter::new(&mut *file), LEVEL)?;
    {
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut body);
        save(looked, &mut buffered)?;
        buffered.flush()?;
    }
    body.finish()?.flush()?;
    file.seek(SeekFrom::Start(HEAD as u64))?;
    let sum = checksum(&head, file)?;
    head[CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&head)
}

fn save(looked: &Looked, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Encoder(to);
    out.number(looked.ops)?;
    out.number(looked.warmup_ops)?;
    out.number(looked.all_fit.into())?;
    out.number(looked.skipped)?;
    out.maybe(looked.measured_span_ns)?;
    looked.loads.save(&mut out)?;
    looked.workload.save(to)
}

fn load(from: &mut dyn Read) -> io::Result<Looked> {
    let mut input = Decoder(from);
    let looked = (
        input.number()?,
        input.number()?,
        input.flag()?,
        input.number()?,
        input.maybe()?,
    );
    let loads = Arc::new(Loads::load(&mut input)?);
    let workload = Workload::load(from)?;
    if from.read(&mut [0])? != 0 {
        return Err(malformed("bytes are left over"));
    }
    let (ops, warmup_ops, all_fit, skipped, measured_span_ns) = looked;
    Ok(Looked {
        ops,
        warmup_ops,
        header: Header::named("", ""),
        workload,
        all_fit,
        skipped,
        measured_span_ns,
        loads,
    })
}
