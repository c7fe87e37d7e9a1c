//! The faces `ext4`, `xfs`, `btrfs` and `none`: a disk, recorded below a real file system.
//!
//! ```text
//! program ─▶ ext4, XFS or Btrfs on DIR ─▶ /dev/loopN ─▶ a FUSE file ─▶ image, recording
//!            the kernel's own              direct I/O    mounted nowhere
//!
//! program ─▶ DIR/disk, a FUSE file ──────────────────────────────────▶ image, recording
//! ```
//!
//! The FUSE file system below a loop device has no place in the directory tree: it is made with
//! `fsopen` and `fsmount`, its only file is opened from there, and the loop device keeps it alive. So
//! there is one mount and one loop device to undo, and the device detaches itself when the mount is
//! gone. If this process is killed, its `Janitor` unmounts the directory; [`clean_up`] does the rest
//! for the case that both are killed.
//!
//! A program that still uses the directory then gets errors; while it runs, the loop device stays.
//! The same holds for a busy directory that was detached: what was written before is synced and
//! recorded, what is written later is refused.
//!
//! # What is recorded
//! Writes of `mkfs` first (unless a kept disk holds a file system), then the mark [`MOUNTED`], then
//! what the program does. [`Event::Region`] and [`Event::Map`] tell what lies where (see
//! [`crate::layout`]), [`FlushKind::Drive`] each flush. The block layer makes a FUA write a write and
//! a flush; a journal commit is therefore a write, a flush, a write, and a flush.
//!
//! # What is not modelled
//! - A real drive gets up to 32 or more requests at once and completes them in any order. Here they
//!   are ordered by their arrival at this process.
//! - `page_cache` is the business of the real file system; only `none` knows
//!   [`PageCache::WriteThrough`].
//!
//! [`FlushKind::Drive`]: crate::recording::event::FlushKind::Drive

pub(crate) mod busy;
mod device;
mod make;
mod sampler;
mod served;
mod sys;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use treering_engine::BLOCK_SIZE;

use self::busy::Attempt;
use self::device::Loop;
pub use self::make::OnlineDiscard;
use self::sampler::{Sampler, Samples};
use self::served::{Above, Disk, Served};
use crate::error::DriveError;
use crate::face::{FileSystem, MountOptions, Mounted, PageCache, Unmounted};
use crate::fuse::{no_fuse, users};
use crate::image::Image;
use crate::janitor::{Directory, Janitor};
use crate::layout::{Sniffer, holds};
use crate::recording::{Event, MOUNTED, Sink};

/// The disk's file in the directory of [`MountOptions::keep`].
pub const KEPT: &str = "disk.img";

/// The FUSE file system's name in tables of mounts.
const SOURCE: &str = "treering-disk";

/// How many disks this process has had, for their names.
static DISKS: AtomicU64 = AtomicU64::new(0);

/// The threads that serve a disk end this soon after its last user, or never.
const PATIENCE: Duration = Duration::from_secs(5);

/// A disk that is mounted, or being mounted. Dropped, it is unmounted.
pub struct DiskMount {
    dir: PathBuf,
    /// Device number of what is mounted on `dir`.
    mounted: Option<u64>,
    disk: Arc<Disk>,
    sampler: Option<Sampler>,
    device: Option<Loop>,
    served: Option<JoinHandle<io::Result<()>>>,
    session: Option<BackgroundSession>,
    janitor: Option<Janitor>,
    /// The lock on the kept file.
    _kept: Option<File>,
}

/// Mounts a disk with a file system, which tells it at once what it frees.
///
/// # Errors
/// As of [`mount_with`].
pub fn mount(
    options: &MountOptions,
    fs: FileSystem,
    sink: Arc<dyn Sink>,
) -> Result<DiskMount, DriveError> {
    mount_with(options, fs, OnlineDiscard::On, sink)
}

/// Mounts a disk with a file system.
///
/// # Errors
/// [`DriveError::Missing`] if the machine lacks something, [`DriveError::Parameter`] if an option
/// does not fit, [`DriveError::Bad`] if a kept disk holds something else, and
/// [`DriveError::System`]. Whatever was mounted until then is undone.
pub fn mount_with(
    options: &MountOptions,
    fs: FileSystem,
    discard: OnlineDiscard,
    sink: Arc<dyn Sink>,
) -> Result<DiskMount, DriveError> {
    // The program and the janitor have other working directories.
    let dir = options.dir.canonicalize();
    let dir = dir.map_err(DriveError::system(options.dir.display().to_string()))?;
    let options = &MountOptions {
        dir,
        ..options.clone()
    };
    check(options, fs)?;
    clean_up();
    let (image, kept) = image(options)?;
    let exists = match &kept {
        Some(_) => exists(&image, fs, options)?,
        None => false,
    };
    let mut mount = DiskMount::new(options, fs, image, sink);
    mount.janitor = Some(Janitor::watch(&options.dir, Directory::Keep)?);
    mount._kept = kept;
    match fs {
        FileSystem::None => mount.serve_in_directory(options)?,
        _ => mount.serve_file_system(options, fs, discard, exists)?,
    }
    options.faults.arm();
    Ok(mount)
}

/// Mounts the file system that an image holds, which the kernel recovers. Nobody unmounts it if
/// this process is killed, and no maps of files are taken.
///
/// # Errors
/// As of [`mount`]; [`DriveError::System`] also if the kernel does not take the file system.
pub(crate) fn mount_image(
    options: &MountOptions,
    fs: FileSystem,
    image: Image,
    sink: Arc<dyn Sink>,
) -> Result<DiskMount, DriveError> {
    check(options, fs)?;
    let mut mount = DiskMount::new(options, fs, image, sink);
    if fs == FileSystem::None {
        mount.serve_in_directory(options)?;
        return Ok(mount);
    }
    let device = Loop::over(&mount.serve_nowhere(options)?)?;
    let path = device.path().to_owned();
    mount.device = Some(device);
    make::mount_device(fs, &path, &mount.dir, OnlineDiscard::Off)?;
    mount.note_mounted()?;
    Ok(mount)
}

impl DiskMount {
    /// A disk that is not served yet.
    fn new(options: &MountOptions, fs: FileSystem, image: Image, sink: Arc<dyn Sink>) -> DiskMount {
        let sniffer = Sniffer::new(&image, fs);
        let faults = Arc::clone(&options.faults);
        DiskMount {
            dir: options.dir.clone(),
            mounted: None,
            disk: Arc::new(Disk::new(image, sniffer, (sink, faults))),
            sampler: None,
            device: None,
            served: None,
            session: None,
            janitor: None,
            _kept: None,
        }
    }

    fn serve_in_directory(&mut self, options: &MountOptions) -> Result<(), DriveError> {
        let above = match options.page_cache {
            PageCache::WriteBack => Above::PageCache,
            PageCache::WriteThrough => Above::Nothing,
        };
        let mut config = config(options);
        config.mount_options = vec![MountOption::FSName(SOURCE.into())];
        let disk = Arc::clone(&self.disk);
        let name = "disk".into();
        let session = Session::new(Served { disk, above, name }, &self.dir, &config);
        let session = session.map_err(|error| no_fuse(error, "mounting the disk"))?;
        let session = session.spawn();
        self.session = Some(session.map_err(DriveError::system("threads for the disk"))?);
        self.note_mounted()
    }

    fn serve_file_system(
        &mut self,
        options: &MountOptions,
        fs: FileSystem,
        discard: OnlineDiscard,
        exists: bool,
    ) -> Result<(), DriveError> {
        let backing = self.serve_nowhere(options)?;
        let device = Loop::over(&backing)?;
        let path = device.path().to_owned();
        self.device = Some(device);
        if !exists {
            make::mkfs(fs, &path)?;
        }
        make::mount_device(fs, &path, &self.dir, discard)?;
        self.note_mounted()?;
        let mut samples = Samples::new(Arc::clone(&self.disk), fs, &self.dir);
        samples.note_regions();
        let sampler = Sampler::start(samples);
        self.sampler = Some(sampler.map_err(DriveError::system("a thread for the maps of files"))?);
        Ok(())
    }

    /// Serves a FUSE file system that is mounted nowhere, and opens its file.
    fn serve_nowhere(&mut self, options: &MountOptions) -> Result<File, DriveError> {
        let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let fuse = fuse.map_err(|error| no_fuse(error, "/dev/fuse"))?;
        let number = fuse.as_raw_fd().to_string();
        let mount = || {
            let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_set_string(&context, "source", SOURCE)?;
            fsconfig_set_string(&context, "fd", number)?;
            fsconfig_set_string(&context, "rootmode", "40000")?;
            fsconfig_set_string(&context, "user_id", "0")?;
            fsconfig_set_string(&context, "group_id", "0")?;
            fsconfig_set_flag(&context, "allow_other")?;
            fsconfig_create(&context)?;
            fsmount(
                &context,
                FsMountFlags::FSMOUNT_CLOEXEC,
                MountAttrFlags::empty(),
            )
        };
        let mount = mount().map_err(io::Error::from);
        let mount = mount.map_err(|error| no_fuse(error, "mounting the disk"))?;
        // Programs take two loop devices for one if their files have the same name, as
        // `mkfs.btrfs` does, which then finds its device mounted.
        let number = DISKS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SOURCE}-{}-{number}", std::process::id());
        let served = Served {
            disk: Arc::clone(&self.disk),
            above: Above::Nothing,
            name: name.clone(),
        };
        let fuse = OwnedFd::from(fuse);
        let session = Session::from_fd(served, fuse, SessionACL::All, config(options));
        let session = session.map_err(DriveError::system("FUSE"))?;
        let thread = std::thread::Builder::new().name("drive-disk".into());
        let thread = thread.spawn(move || {
            sys::serve_io();
            session.run()
        });
        self.served = Some(thread.map_err(DriveError::system("threads for the disk"))?);
        let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let file = openat(&mount, name.as_str(), flags, Mode::empty()).map_err(io::Error::from);
        file.map(File::from)
            .map_err(DriveError::system("the disk's file"))
    }

    fn note_mounted(&mut self) -> Result<(), DriveError> {
        let what = self.dir.display().to_string();
        let stat = rustix::fs::stat(&self.dir).map_err(io::Error::from);
        self.mounted = Some(stat.map_err(DriveError::system(what))?.st_dev);
        let line = MOUNTED.to_vec();
        let noted = self.disk.sink.note(Event::Mark { line });
        noted.map_err(|error| DriveError::system("the recording")(io::Error::other(error)))
    }

    /// Undoes whatever was done, each step whether or not those before it worked.
    fn tear_down(&mut self) -> Result<Unmounted, DriveError> {
        let mut busy = None;
        let mut failed = None;
        let mut samples = self.sampler.take().and_then(Sampler::stop);
        if self.mounted.take().is_some() {
            self.sync();
            if let Some(samples) = &mut samples {
                samples.walk();
            }
            let gone = self
                .janitor
                .as_ref()
                .is_some_and(|j| j.sees_nothing(&self.dir));
            let attempt = match gone {
                true => Attempt::Gone,
                false => busy::unmount(&self.dir),
            };
            match attempt {
                Attempt::Gone => {}
                Attempt::Detached(by) => busy = Some(by),
                Attempt::Failed(error) => failed = Some(io::Error::from(error)),
            }
            // After an unmount nothing is only in the journal. What is busy has just been synced.
            if let Some(samples) = &mut samples {
                samples.note_regions();
            }
        }
        self.device = None;
        if let Some(served) = self.served.take()
            && !ended_in_time(&served, busy.is_some())
        {
            busy.get_or_insert_with(|| "something in another mount namespace".into());
        }
        if let Some(session) = self.session.take() {
            match failed.take() {
                // Not root: `fusermount3` may.
                Some(_) => failed = session.umount_and_join().err(),
                None if busy.is_none() => drop(session.umount_and_join()),
                // Dropped, it would unmount what is on the directory now.
                None => std::mem::forget(session),
            }
        }
        self.disk.closed.store(true, Ordering::Release);
        self.janitor = None;
        match failed {
            Some(error) => Err(DriveError::system(format!(
                "unmounting {}",
                self.dir.display()
            ))(error)),
            None => Ok(Unmounted { busy }),
        }
    }

    /// Lets everything reach the disk; best effort, since unmounting does so again.
    fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(dir) = rustix::fs::open(&self.dir, flags, Mode::empty()) {
            let _ = rustix::fs::syncfs(dir);
        }
    }
}

/// Whether the threads that serve a disk have ended. If it is in use, nobody waits for them.
fn ended_in_time(served: &JoinHandle<io::Result<()>>, busy: bool) -> bool {
    let deadline = Instant::now() + if busy { Duration::ZERO } else { PATIENCE };
    while !served.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    served.is_finished()
}

impl Mounted for DiskMount {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn is_mounted(&self) -> bool {
        let found = rustix::fs::stat(&self.dir).map(|stat| stat.st_dev);
        self.mounted.is_some_and(|device| found == Ok(device))
    }

    fn unmount(mut self: Box<Self>) -> Result<Unmounted, DriveError> {
        self.tear_down()
    }
}

impl Drop for DiskMount {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.tear_down();
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.n_threads = Some(options.threads);
    config.clone_fd = options.threads > 1;
    config.acl = users();
    config
}

fn check(options: &MountOptions, fs: FileSystem) -> Result<(), DriveError> {
    let parameter = |name, why: String| Err(DriveError::Parameter { name, why });
    if options.threads == 0 {
        return parameter("threads", "at least 1, found 0".into());
    }
    if options.capacity_blocks == 0 || options.capacity_blocks > 1 << 40 {
        let found = options.capacity_blocks;
        return parameter(
            "capacity",
            format!("1 to 2^40 blocks of 4 KiB, found {found}"),
        );
    }
    let entries = fs::read_dir(&options.dir);
    let entry = entries
        .map_err(DriveError::system(options.dir.display().to_string()))?
        .next();
    if let Some(entry) = entry {
        let found = entry
            .map(|e| e.file_name().display().to_string())
            .unwrap_or_default();
        let why = format!("{} must be empty, found {found}", options.dir.display());
        return parameter("dir", why);
    }
    if fs == FileSystem::None {
        return Ok(());
    }
    if options.page_cache == PageCache::WriteThrough {
        let why = format!("{} has the kernel's page cache above it", make::name(fs));
        return parameter("page_cache", why);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(DriveError::Missing {
            what: "the rights of root".into(),
            needed: format!(
                "{} is mounted from a loop device: use sudo, or the face `files`",
                make::name(fs)
            ),
        });
    }
    make::check_capacity(fs, options.capacity_blocks)?;
    make::check_mkfs(fs)
}

/// The image, and the lock on its file if it is kept.
fn image(options: &MountOptions) -> Result<(Image, Option<File>), DriveError> {
    let Some(dir) = &options.keep else {
        return Ok((Image::new(options.capacity_blocks)?, None));
    };
    let path = dir.join(KEPT);
    let what = || path.display().to_string();
    fs::create_dir_all(dir).map_err(DriveError::system(dir.display().to_string()))?;
    let mut how = OpenOptions::new();
    let file = how
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = file.map_err(DriveError::system(what()))?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    if locked.is_err() {
        let why = format!("{} is in use by another drive", path.display());
        return Err(DriveError::Parameter { name: "keep", why });
    }
    let found = file.metadata().map_err(DriveError::system(what()))?.len();
    let size = options.capacity_blocks * BLOCK_SIZE as u64;
    if found != 0 && found != size {
        let why = format!("{size} bytes, but {} has {found}", path.display());
        return Err(DriveError::Parameter {
            name: "capacity",
            why,
        });
    }
    Ok((Image::open(&path, options.capacity_blocks)?, Some(file)))
}

/// Whether a kept disk holds the file system already. One that holds something else is refused.
fn exists(image: &Image, fs: FileSystem, options: &MountOptions) -> Result<bool, DriveError> {
    let found = holds(image)?;
    if fs == FileSystem::None || found == Some(fs) {
        return Ok(true);
    }
    let mut head = vec![0; (image.blocks() * BLOCK_SIZE as u64).min(1 << 20) as usize];
    let what = "the first blocks of the disk";
    image.read(0, &mut head).map_err(DriveError::system(what))?;
    let found = match found {
        Some(found) => make::name(found),
        None if head.iter().all(|b| *b == 0) => return Ok(false),
        None => "bytes of no known file system",
    };
    Err(DriveError::Bad {
        file: options.keep.as_deref().unwrap_or(Path::new("")).join(KEPT),
        place: "the kept disk".into(),
        expected: format!("{} or nothing", make::name(fs)),
        found: found.into(),
    })
}

/// Undoes what drives have left behind whose process, and its janitor, were killed: detaches the
/// file systems on their loop devices, and the devices. Returns what was undone, in words.
/// Programs that still use such a file system get errors, as they do already.
pub fn clean_up() -> Vec<String> {
    let mut undone = Vec::new();
    // Looking at a device can take long while the kernel detaches it, and others may take it
    // meanwhile. So the mounts are read afterwards, and each is asked again what it is on.
    for device in device::left_behind() {
        let name = device.display().to_string();
        for dir in mounts_of(|source| source == name) {
            if busy::detach(Path::new(&dir), &name) {
                undone.push(format!("unmounted {dir}"));
            }
        }
        // It detaches itself when its mount has gone; then this fails.
        if device::detach(&device).is_ok() {
            undone.push(format!("detached {name}"));
        }
    }
    for dir in mounts_of(|source| source.starts_with("treering-")) {
        // The kernel may remember attributes, so `stat` would not ask who serves it.
        let dead = rustix::fs::statfs(dir.as_str()).err() == Some(rustix::io::Errno::NOTCONN);
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        if dead && rustix::mount::unmount(dir.as_str(), flags).is_ok() {
            undone.push(format!("unmounted {dir}"));
        }
    }
    undone
}

/// The directories on which something is mounted from a source that is `wanted`.
fn mounts_of(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = table.lines().map(|line| line.split(' '));
    let mounts = fields.filter_map(|mut fields| Some((fields.next()?, fields.next()?)));
    let of_source = mounts.filter(|(source, _)| wanted(source));
    of_source.map(|(_, dir)| unescape(dir)).collect()
}

/// A path as tables of mounts write it: spaces and the like are octal numbers.
fn unescape(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => plain.extend([char::from(code).to_string(), part[3..].to_owned()]),
            None => plain.extend(["\\", part].map(str::to_owned)),
        }
    }
    plain
}
