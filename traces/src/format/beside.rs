//! An atomic file: it is written under a temporary name in the target's folder and renamed at the
//! end.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::TraceError;

/// A buffered temporary file next to its target. Dropping it before [`Beside::finish`] removes it.
#[derive(Debug)]
pub(crate) struct Beside {
    target: PathBuf,
    temporary: PathBuf,
    // `None` once finished or failed, when nothing is left to remove.
    file: Option<BufWriter<File>>,
}

impl Beside {
    pub(crate) fn create(target: &Path) -> Result<Beside, TraceError> {
        // Two writers in one process must not share a temporary file, even for the same target.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary =
            target.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|source| TraceError::Io {
                file: target.display().to_string(),
                source,
            })?;
        let file = Some(BufWriter::with_capacity(256 * 1024, file));
        Ok(Beside {
            target: target.into(),
            temporary,
            file,
        })
    }

    /// Returns the target's name, for errors.
    pub(crate) fn name(&self) -> String {
        self.target.display().to_string()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let file = self.file.as_mut().expect("open until finished");
        file.write_all(bytes).map_err(|source| self.io(source))
    }

    /// Overwrites the file's first bytes with `head` and renames it to the target.
    pub(crate) fn finish(&mut self, head: &[u8]) -> Result<(), TraceError> {
        let mut file = self.file.take().expect("finished once");
        let done = (|| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(head)?;
            file.flush()?;
            std::fs::rename(&self.temporary, &self.target)
        })();
        done.map_err(|source| {
            // Whatever makes the removal fail also explains `source`, which is the error reported.
            let _ = std::fs::remove_file(&self.temporary);
            self.io(source)
        })
    }

    fn io(&self, source: std::io::Error) -> TraceError {
        TraceError::Io {
            file: self.name(),
            source,
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // The buffered bytes of an abandoned file are discarded.
            drop(file.into_parts());
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
