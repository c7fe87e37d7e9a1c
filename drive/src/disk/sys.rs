//! The system calls of this face that have no safe wrapper elsewhere: those of loop devices,
//! `FIEMAP`, and the flag of threads that serve a file system.
//!
//! Layouts are those of `linux/loop.h` and `linux/fiemap.h`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const NAME: usize = 64;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; NAME],
    crypt_name: [u8; NAME],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo {
    const EMPTY: LoopInfo = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; NAME],
        crypt_name: [0; NAME],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

fn check(result: libc::c_int) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The number of a loop device that is free at the moment.
pub(super) fn loop_free(control: &File) -> io::Result<u32> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) })
}

/// Puts a file below a loop device, with direct I/O; the last to close the device detaches it.
pub(super) fn loop_configure(
    device: &File,
    backing: &File,
    sector: u32,
    name: &str,
) -> io::Result<()> {
    let mut config = LoopConfig {
        fd: backing.as_raw_fd() as u32,
        block_size: sector,
        info: LoopInfo::EMPTY,
        reserved: [0; 8],
    };
    config.info.flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    let named = name.len().min(NAME - 1);
    config.info.file_name[..named].copy_from_slice(&name.as_bytes()[..named]);
    // SAFETY: the request reads one `loop_config`, which lives until the call returns.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })
        .map(drop)
}

/// Detaches a loop device, at once or when its last user closes it.
pub(super) fn loop_clear(device: &File) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _) }).map(drop)
}

/// The name that a loop device was configured with.
pub(super) fn loop_name(device: &File) -> io::Result<String> {
    let mut info = LoopInfo::EMPTY;
    // SAFETY: the request writes one `loop_info64`, which lives until the call returns; any bytes
    // are a valid one.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    let end = info.file_name.iter().position(|b| *b == 0);
    let name = &info.file_name[..end.unwrap_or(NAME)];
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Marks this thread, and those it starts, as serving a file system: when it needs memory, the
/// kernel must not wait for dirty pages of the very file system that waits for this thread
/// (`prctl(2)`, `PR_SET_IO_FLUSHER`). Without the privilege nothing happens.
pub(super) fn serve_io() {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: changes flags of the calling thread and touches no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, on, none, none, none) };
}

/// One extent of a file, as `FIEMAP` tells it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct FileExtent {
    /// First byte within the file.
    pub(super) logical: u64,
    /// First byte on the device, or in the address space of the file system.
    pub(super) physical: u64,
    /// Number of bytes.
    pub(super) len: u64,
    reserved64: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    pub(super) flags: u32,
    reserved: [u32; 3],
}

impl FileExtent {
    /// It is the last of the file.
    pub(super) const LAST: u32 = 1;
    /// Its place is not decided yet.
    pub(super) const UNKNOWN: u32 = 2;
    /// Its bytes are not as in the file (compressed, encrypted).
    pub(super) const ENCODED: u32 = 8;
    /// It is no whole number of blocks, because it lies among metadata.
    pub(super) const INLINE: u32 = 0x200;
}

const EXTENTS: usize = 128;

/// `struct fiemap` with room for some extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    len: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FileExtent; EXTENTS],
}

/// Extents of a file from the byte `start` on, up to a fixed number.
pub(super) fn fiemap(file: BorrowedFd<'_>, start: u64) -> io::Result<Vec<FileExtent>> {
    const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
    let mut map = Fiemap {
        start,
        len: u64::MAX - start,
        flags: 0,
        mapped: 0,
        count: EXTENTS as u32,
        reserved: 0,
        extents: [FileExtent::default(); EXTENTS],
    };
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the request reads the head of `map` and writes at most `count` extents behind it,
    // for which there is room; any bytes are valid extents.
    check(unsafe { libc::ioctl(fd, FS_IOC_FIEMAP as _, &raw mut map) })?;
    Ok(map.extents[..(map.mapped as usize).min(EXTENTS)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernel() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
        assert_eq!(size_of::<FileExtent>(), 56);
        assert_eq!(size_of::<Fiemap>(), 32 + 56 * EXTENTS);
    }
}
