//! Trace files of puts with 8-byte keys and values, and of gets.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use treering_sim::replay::ReplayError;
use treering_traces::{Header, Op, OpKind, TraceError, Writer};

/// A trace file, which is removed when this is dropped.
pub(crate) struct Trace {
    path: PathBuf,
    _folder: TempDir,
}

impl Trace {
    /// Writes puts and gets of these keys; the first `warmup` operations are warm-up.
    pub(crate) fn of(
        name: &str,
        (ops, warmup): (u64, u64),
        all: impl Iterator<Item = (OpKind, [u8; 8])>,
    ) -> Result<Trace, ReplayError> {
        let folder = TempDir::new().map_err(|source| TraceError::Io {
            file: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let path = folder.path().join("trace.trz");
        let header = Header {
            schema: Header::SCHEMA.into(),
            name: name.into(),
            source: "made for a figure".into(),
            ops,
            warmup_ops: warmup,
            records: None,
            zeros: 0.5,
            seed: None,
            addresses: false,
        };
        let mut writer = Writer::create(&path, header)?;
        for (kind, key) in all {
            writer.write(&Op {
                kind,
                key: key.to_vec(),
                value_len: if kind == OpKind::Put { 8 } else { 0 },
                ..Op::default()
            })?;
        }
        writer.finish()?;
        Ok(Trace {
            path,
            _folder: folder,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
