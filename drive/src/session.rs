//! A drive from its mount to the end of its recording.
//!
//! ```text
//! begin ──▶ recorder ◀── hints from first bytes ◀── face, mounted      $TREERING_DIR
//!              ▲                                     lines of acks     $TREERING_ACKS
//!              │
//! end ─────────┴── unmount, so that what the kernel held back comes; then the last chunk
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::acks::{self, Acks};
use crate::causes::sniff::Sniffer;
use crate::error::DriveError;
use crate::face::{Face, MountOptions, Mounted};
use crate::recording::{Contents, Header, Recorder, Sink, Summary};
use crate::{disk, files};

/// What to mount, and where to record it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the program sees.
    pub face: Face,
    /// How it is mounted.
    pub mount: MountOptions,
    /// The recording; a file that is there is replaced.
    pub log: PathBuf,
    /// Which bytes are recorded.
    pub contents: Contents,
    /// The program that will run; empty if it is only mounted.
    pub command: Vec<String>,
}

/// A drive that is mounted and recorded. If it is dropped, it is unmounted and its recording ends.
pub struct Session {
    mounted: Option<Box<dyn Mounted>>,
    acks: Option<Acks>,
    recorder: Arc<Recorder>,
}

/// How a session went.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What was recorded.
    pub summary: Summary,
    /// What still used the drive, in words for a warning.
    pub busy: Option<String>,
}

impl Session {
    /// Mounts a drive and begins its recording.
    ///
    /// # Errors
    /// [`DriveError`] if it cannot be mounted or recorded; nothing is left mounted then.
    pub fn begin(plan: &Plan) -> Result<Session, DriveError> {
        let mount = &plan.mount;
        let mut header = Header::new(plan.face, mount.capacity_blocks, mount.page_cache);
        header.command.clone_from(&plan.command);
        let recorder = Arc::new(Recorder::create(&plan.log, header, plan.contents)?);
        let sink: Arc<dyn Sink> = Arc::new(Sniffer::new(Arc::clone(&recorder)));
        let mounted: Box<dyn Mounted> = match plan.face {
            Face::Files => Box::new(files::mount(mount, Arc::clone(&sink))?),
            Face::Disk(fs) => Box::new(disk::mount(mount, fs, Arc::clone(&sink))?),
        };
        let mut session = Session {
            mounted: Some(mounted),
            acks: None,
            recorder,
        };
        session.acks = Some(acks::mount(sink)?);
        Ok(session)
    }

    /// The directory that a program works in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.mounted
            .as_ref()
            .map_or(Path::new(""), |mounted| mounted.dir())
    }

    /// The file for acknowledgements.
    #[must_use]
    pub fn acks(&self) -> Option<&Path> {
        self.acks.as_ref().map(Acks::path)
    }

    /// Whether the drive is still mounted; somebody else may have unmounted it.
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        self.mounted
            .as_ref()
            .is_some_and(|mounted| mounted.is_mounted())
    }

    /// Unmounts, and ends the recording when all that was written has reached it.
    ///
    /// # Errors
    /// [`DriveError`] if the recording could not be written to its end.
    pub fn end(mut self) -> Result<Ended, DriveError> {
        drop(self.acks.take());
        let unmounted = self.mounted.take().map(|mounted| mounted.unmount());
        let summary = self.recorder.finish()?;
        let unmounted = unmounted.transpose()?;
        Ok(Ended {
            summary,
            busy: unmounted.and_then(|unmounted| unmounted.busy),
        })
    }
}
