//! The place of a store under test.

use crate::medium::Medium;
use crate::{Disk, DiskKind};

/// A new place for a store, and its medium or folder.
pub(crate) struct Place {
    pub(crate) disk: Disk,
    medium: Option<Medium>,
    // invariant: outlives `disk`, which refers to the folder.
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    pub(crate) fn new(kind: DiskKind) -> std::io::Result<Place> {
        if let Some(medium) = Medium::new(kind) {
            return Ok(Place::on(medium));
        }
        let folder = tempfile::tempdir()?;
        Ok(Place {
            disk: Disk::Folder(folder.path().to_owned()),
            medium: None,
            _folder: Some(folder),
        })
    }

    pub(crate) fn on(medium: Medium) -> Place {
        Place {
            disk: medium.disk(),
            medium: Some(medium),
            _folder: None,
        }
    }

    pub(crate) fn medium(&self) -> Option<&Medium> {
        self.medium.as_ref()
    }

    /// See [`Medium::is_dark`].
    pub(super) fn is_dark(&self) -> bool {
        self.medium.as_ref().is_some_and(Medium::is_dark)
    }
}
