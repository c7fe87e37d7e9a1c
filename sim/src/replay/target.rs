//! The devices that a replay can run on. This is the only list of them: a new kind of simulated
//! drive is a variant here and an arm of each `match` in this file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use treering_engine::device::FileOptions;

use crate::csd::{self, CsdProfile};
use crate::drive::{DriveProfile, Precondition};
use crate::pm::{self, PmProfile};
use crate::ssd::{self, ProfileError, SsdProfile};

/// The device that the store runs on.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A simulated drive.
    Ssd {
        /// Its profile.
        profile: Box<SsdProfile>,
        /// Its name in the report.
        name: String,
        /// Logical capacity in bytes; `None` sizes the drive to the store (see
        /// [`fill`](super::ReplayConfig::fill)).
        capacity_bytes: Option<u64>,
        /// State before the run.
        precondition: Precondition,
    },
    /// A simulated drive with built-in compression.
    Csd {
        /// Its profile.
        profile: Box<CsdProfile>,
        /// Its name in the report.
        name: String,
        /// Logical capacity in bytes; `None` sizes the drive to the store (see
        /// [`fill`](super::ReplayConfig::fill)).
        capacity_bytes: Option<u64>,
        /// State before the run.
        precondition: Precondition,
    },
    /// Simulated persistent memory.
    Pm {
        /// Its profile.
        profile: Box<PmProfile>,
        /// Its name in the report.
        name: String,
        /// Size of the device in bytes; `None` sizes it to the store.
        capacity_bytes: Option<u64>,
    },
    /// A real file, created if necessary.
    File(PathBuf, FileOptions),
    /// A simulated drive from outside this crate, sized to the store.
    Own(OwnDrive),
}

/// A simulated drive from outside this crate, by its profile.
#[derive(Clone, Debug)]
pub struct OwnDrive {
    /// Its profile, which builds it.
    pub profile: Arc<dyn DriveProfile>,
    /// Its name in the report.
    pub name: String,
}

/// Profiles are compared by identity.
impl PartialEq for OwnDrive {
    fn eq(&self, other: &OwnDrive) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.profile, &other.profile)
    }
}

/// A target by the way in which it is run. There are three ways, whatever the profiles.
pub(super) enum Place<'a> {
    Drive(AskedDrive<'a>),
    Memory(&'a PmProfile, Option<u64>),
    File(&'a Path, FileOptions),
}

/// The requested simulated drive.
#[derive(Clone, Copy, Debug)]
pub struct AskedDrive<'a> {
    /// The profile, which builds the drive.
    pub profile: &'a dyn DriveProfile,
    /// Logical capacity in bytes; `None` sizes the drive to its data.
    pub capacity_bytes: Option<u64>,
    /// State before the run.
    pub precondition: Precondition,
}

impl Target {
    /// Names of the built-in simulated drives, the default first.
    pub fn drives() -> impl Iterator<Item = &'static str> {
        ssd::builtin_names().chain(csd::builtin_names())
    }

    /// Names of the built-in persistent memories.
    pub fn memories() -> impl Iterator<Item = &'static str> {
        pm::builtin_names()
    }

    /// The built-in device with this name, fresh and sized to the store.
    ///
    /// ```
    /// use treering_sim::replay::Target;
    ///
    /// let names: Vec<_> = Target::drives().chain(Target::memories()).collect();
    /// assert!(names.iter().all(|name| Target::builtin(name).is_some()));
    /// assert!(Target::builtin("floppy").is_none());
    /// ```
    #[must_use]
    pub fn builtin(name: &str) -> Option<Target> {
        let of_ssd = || Some(Target::ssd(ssd::builtin(name)?.1, name));
        let of_csd = || Some(Target::csd(csd::builtin(name)?.1, name));
        let of_pm = || Some(Target::pm(pm::builtin(name)?.1, name));
        of_ssd().or_else(of_csd).or_else(of_pm)
    }

    /// The device described by a TOML profile, fresh and sized to the store; `name` is the file's
    /// name.
    ///
    /// # Errors
    /// [`ProfileError`], which names the key and what was expected.
    pub fn from_toml(name: &str, toml: &str) -> Result<Target, ProfileError> {
        if CsdProfile::is_one(toml) {
            return Ok(Target::csd(CsdProfile::from_toml(name, toml)?, name));
        }
        if PmProfile::is_one(toml) {
            return Ok(Target::pm(PmProfile::from_toml(name, toml)?, name));
        }
        Ok(Target::ssd(SsdProfile::from_toml(name, toml)?, name))
    }

    /// A simulated drive, fresh and sized to the store.
    ///
    /// ```
    /// use treering_sim::replay::Target;
    /// use treering_sim::ssd::builtin;
    ///
    /// let (_, mut profile) = builtin("ssd").expect("a built-in profile");
    /// profile.over_provisioning = 0.28;
    /// let target = Target::ssd(profile, "ssd with more to spare");
    /// assert_eq!(target.name(), "ssd with more to spare");
    /// ```
    #[must_use]
    pub fn ssd(profile: SsdProfile, name: &str) -> Target {
        Target::Ssd {
            profile: Box::new(profile),
            name: name.into(),
            capacity_bytes: None,
            precondition: Precondition::None,
        }
    }

    /// A simulated compressing drive, fresh and sized to the store.
    #[must_use]
    pub fn csd(profile: CsdProfile, name: &str) -> Target {
        Target::Csd {
            profile: Box::new(profile),
            name: name.into(),
            capacity_bytes: None,
            precondition: Precondition::None,
        }
    }

    /// Simulated persistent memory, sized to the store.
    #[must_use]
    pub fn pm(profile: PmProfile, name: &str) -> Target {
        Target::Pm {
            profile: Box::new(profile),
            name: name.into(),
            capacity_bytes: None,
        }
    }

    /// Its name in the report: that of the profile, or the file's path.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Target::Ssd { name, .. }
            | Target::Csd { name, .. }
            | Target::Pm { name, .. }
            | Target::Own(OwnDrive { name, .. }) => name.clone(),
            Target::File(path, _) => path.display().to_string(),
        }
    }

    /// Its kind: `ssd`, `csd`, `pm`, `file` or `own`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Ssd { .. } => "ssd",
            Target::Csd { .. } => "csd",
            Target::Pm { .. } => "pm",
            Target::File(..) => "file",
            Target::Own(_) => "own",
        }
    }

    /// Mutable access to the flash of a simulated drive that has one.
    pub fn flash_mut(&mut self) -> Option<&mut SsdProfile> {
        match self {
            Target::Ssd { profile, .. } => Some(profile),
            Target::Csd { profile, .. } => Some(&mut profile.flash),
            Target::Pm { .. } | Target::File(..) | Target::Own(_) => None,
        }
    }

    /// Mutable access to the profile of persistent memory.
    pub fn memory_mut(&mut self) -> Option<&mut PmProfile> {
        match self {
            Target::Pm { profile, .. } => Some(profile),
            _ => None,
        }
    }

    /// Mutable access to the capacity of a simulated device.
    pub fn capacity_mut(&mut self) -> Option<&mut Option<u64>> {
        match self {
            Target::Ssd { capacity_bytes, .. }
            | Target::Csd { capacity_bytes, .. }
            | Target::Pm { capacity_bytes, .. } => Some(capacity_bytes),
            Target::File(..) | Target::Own(_) => None,
        }
    }

    /// Mutable access to the precondition of a simulated drive.
    pub fn precondition_mut(&mut self) -> Option<&mut Precondition> {
        match self {
            Target::Ssd { precondition, .. } | Target::Csd { precondition, .. } => {
                Some(precondition)
            }
            Target::Pm { .. } | Target::File(..) | Target::Own(_) => None,
        }
    }

    /// The requested simulated drive; `None` for a file and for persistent memory.
    #[must_use]
    pub fn drive(&self) -> Option<AskedDrive<'_>> {
        match self.place() {
            Place::Drive(asked) => Some(asked),
            Place::Memory(..) | Place::File(..) => None,
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        let drive = |profile, capacity_bytes: &Option<u64>, precondition: &Precondition| {
            Place::Drive(AskedDrive {
                profile,
                capacity_bytes: *capacity_bytes,
                precondition: *precondition,
            })
        };
        match self {
            Target::Ssd {
                profile,
                capacity_bytes,
                precondition,
                ..
            } => drive(&**profile, capacity_bytes, precondition),
            Target::Csd {
                profile,
                capacity_bytes,
                precondition,
                ..
            } => drive(&**profile, capacity_bytes, precondition),
            Target::Own(own) => drive(&*own.profile, &None, &Precondition::None),
            Target::Pm {
                profile,
                capacity_bytes,
                ..
            } => Place::Memory(profile, *capacity_bytes),
            Target::File(path, choices) => Place::File(path, *choices),
        }
    }
}
