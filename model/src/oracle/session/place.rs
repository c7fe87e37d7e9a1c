//! Where a store under judgement lies.

use crate::oracle::medium::Medium;
use crate::oracle::{Disk, DiskKind};

/// A new place for a store, and what holds it.
pub(in crate::oracle) struct Place {
    pub(in crate::oracle) disk: Disk,
    medium: Option<Medium>,
    // invariant: outlives `disk`, whose folder it is.
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    pub(in crate::oracle) fn new(kind: DiskKind) -> std::io::Result<Place> {
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

    pub(in crate::oracle) fn on(medium: Medium) -> Place {
        Place {
            disk: medium.disk(),
            medium: Some(medium),
            _folder: None,
        }
    }

    pub(in crate::oracle) fn medium(&self) -> Option<&Medium> {
        self.medium.as_ref()
    }

    /// See [`Medium::is_dark`].
    pub(super) fn is_dark(&self) -> bool {
        self.medium.as_ref().is_some_and(Medium::is_dark)
    }
}
