//! Bytes that the operating system wrote while the engine wrote to a file, and why they differ.
//!
//! ```text
//! engine ──▶ process (/proc/self/io) ──▶ block device (/sys/dev/block/M:m/stat)
//!            page cache: delays writes    journal and metadata: additional writes
//! ```
//!
//! With O_DIRECT, the process writes exactly what the engine counts. With the page cache, the
//! kernel charges a process for the pages that it dirties: a page dirtied again before write-back
//! counts once, and a folio larger than a write counts as a whole
//! (`Documentation/filesystems/proc.rst`, *write_bytes*). The file system writes its journal and
//! metadata in its own threads, which only the block device's count includes, as it does other
//! programs' writes. The thread of ext4's journal (`jbd2/…`) has counters of its own, which root
//! can read. The rest is reported as `unexplained`.

use std::fs;
use std::path::Path;

use treering_engine::Error;
use treering_engine::device::{Access, BlockDevice, FileDevice};

use crate::report::{KernelReport, WriteDifference};

/// Counters of the kernel at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Bytes charged to this process; `None` if the kernel does not report them.
    process: Option<u64>,
    /// Bytes written to the block device below the file, by any program.
    device: Option<u64>,
    /// Bytes that the file system's journal thread wrote.
    journal: Option<u64>,
}

/// The location of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// `major:minor` of the file system's device.
    number: String,
    /// Type of the file system, as in `ext4`.
    file_system: Option<String>,
    /// Name of the block device below it, as in `sda1`.
    device: Option<String>,
    /// Whether the file bypasses the page cache.
    direct: bool,
    how: String,
}

impl Place {
    /// Finds the location of `file`, which is at `path`.
    pub(super) fn of(path: &Path, file: &FileDevice) -> Place {
        let number = device_number(path).unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let link = fs::read_link(format!("/sys/dev/block/{number}")).ok();
        let name = link.as_deref().and_then(Path::file_name);
        Place {
            file_system: file_system(&mounts, &number),
            device: name.map(|name| name.to_string_lossy().into_owned()),
            number,
            direct: file.notice().is_none(),
            how: how(file),
        }
    }

    /// Reads the counters. The file is synced first, so that pending writes are counted in the
    /// right period.
    ///
    /// # Errors
    /// An error of the device, if the sync fails.
    pub(super) fn counters(&self, file: &FileDevice) -> Result<Counters, Error> {
        file.flush()?;
        let stat = fs::read_to_string(format!("/sys/dev/block/{}/stat", self.number));
        Ok(Counters {
            process: write_bytes("self"),
            device: stat
                .ok()
                .and_then(|stat| sectors_written(&stat))
                .map(|n| n * 512),
            journal: self
                .device
                .as_deref()
                .and_then(journal_thread)
                .and_then(|id| write_bytes(&id)),
        })
    }

    /// What the kernel counted between two moments, compared with the engine's count.
    pub(super) fn report(&self, before: Counters, after: Counters, engine: u64) -> KernelReport {
        let since = |of: fn(&Counters) -> Option<u64>| {
            let (before, after) = (of(&before)?, of(&after)?);
            Some(after.saturating_sub(before))
        };
        let [process, device, journal] = [
            since(|c| c.process),
            since(|c| c.device),
            since(|c| c.journal),
        ];
        KernelReport {
            write_bytes: process,
            engine_bytes: engine,
            how: self.how.clone(),
            file_system: self.file_system.clone(),
            block_device: self.device.clone(),
            block_device_bytes: device,
            differences: self.differences(engine, process, device, journal),
        }
    }

    /// Differences between engine and process, and between process and block device.
    fn differences(
        &self,
        engine: u64,
        process: Option<u64>,
        device: Option<u64>,
        journal: Option<u64>,
    ) -> Vec<WriteDifference> {
        let mut list = Vec::new();
        let mut add = |between, name: &str, bytes: i64| {
            if bytes != 0 {
                let name = name.to_string();
                list.push(WriteDifference {
                    between,
                    name,
                    bytes,
                });
            }
        };
        let signed = |from: u64, to: u64| to as i64 - from as i64;
        if let Some(process) = process {
            let name = match (self.file_system.as_deref(), self.direct) {
                (Some("tmpfs" | "ramfs"), _) => "a file system in memory writes to no drive",
                (_, false) => {
                    "page cache: pages dirtied again before write-back count once, large folios \
                     whole"
                }
                (_, true) => "unexplained",
            };
            add("process - engine", name, signed(engine, process));
        }
        if let Some((process, device)) = process.zip(device) {
            let all = signed(process, device);
            let journal = journal.map_or(0, |bytes| bytes as i64);
            let between = "block device - process";
            add(between, "journal of the file system", journal);
            let name = match self.direct {
                true => "unexplained (metadata, other programs)",
                false => "unexplained (write-back of the page cache, metadata, other programs)",
            };
            add(between, name, all - journal);
        }
        list
    }
}

/// Describes how the file is opened.
fn how(file: &FileDevice) -> String {
    let cache = match file.notice() {
        None => "O_DIRECT".to_string(),
        Some(notice) => format!("buffered ({notice})"),
    };
    let queue = match file.access() {
        Access::File { io_uring: true, .. } => "io_uring",
        Access::File { .. } | Access::Memory => "pwrite",
    };
    format!("{cache}, {queue}")
}

/// `major:minor` of the device that holds a file.
fn device_number(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(path).ok()?.dev();
    // As glibc's gnu_dev_major and gnu_dev_minor take it apart.
    let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
    let minor = device & 0xff | device >> 12 & !0xff;
    Some(format!("{major}:{minor}"))
}

/// Type of the file system with this number: the word after the dash in its line (proc(5),
/// *mountinfo*).
fn file_system(mounts: &str, number: &str) -> Option<String> {
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(number))?;
    let (_, behind) = line.split_once(" - ")?;
    behind.split(' ').next().map(String::from)
}

/// The seventh number: sectors of 512 bytes written (`Documentation/block/stat.rst`).
fn sectors_written(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().nth(6)?.parse().ok()
}

/// Id of the process that writes the file system's journal on this device.
fn journal_thread(device: &str) -> Option<String> {
    let wanted = format!("jbd2/{device}-");
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let mut processes = processes.filter_map(|entry| entry.file_name().into_string().ok());
    processes.find(|id| {
        let name = fs::read_to_string(format!("/proc/{id}/comm"));
        name.is_ok_and(|name| name.starts_with(&wanted))
    })
}

/// Bytes that a process has caused to be written to storage; `None` if the kernel does not say.
fn write_bytes(process: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file_system: &str, direct: bool) -> Place {
        Place {
            file_system: Some(file_system.into()),
            device: Some("sda1".into()),
            direct,
            ..Place::default()
        }
    }

    fn counters(process: u64, device: u64, journal: u64) -> Counters {
        Counters {
            process: Some(process),
            device: Some(device),
            journal: Some(journal),
        }
    }

    #[test]
    fn differences_add_up_and_what_has_no_name_is_unexplained() {
        let after = counters(5000, 9000, 1500);
        let report = place("ext4", true).report(
            Counters {
                journal: Some(300),
                ..counters(0, 0, 0)
            },
            after,
            5000,
        );
        let named: Vec<(&str, i64)> = report
            .differences
            .iter()
            .map(|d| (d.name.as_str(), d.bytes))
            .collect();
        assert_eq!(
            named,
            [
                ("journal of the file system", 1200),
                ("unexplained (metadata, other programs)", 2800),
            ]
        );
        let report = place("xfs", true).report(counters(0, 0, 0), counters(5100, 5100, 0), 5000);
        assert_eq!(report.differences.len(), 1);
        assert_eq!(
            (
                report.differences[0].name.as_str(),
                report.differences[0].bytes
            ),
            ("unexplained", 100)
        );
    }

    #[test]
    fn the_page_cache_and_memory_are_named() {
        let buffered =
            place("ext4", false).report(counters(0, 0, 0), counters(4000, 4000, 0), 5000);
        assert_eq!(buffered.differences[0].bytes, -1000);
        assert!(buffered.differences[0].name.starts_with("page cache"));
        let memory = place("tmpfs", true);
        let report = memory.report(
            Counters::default(),
            Counters {
                process: Some(0),
                ..Counters::default()
            },
            5000,
        );
        assert!(
            report.differences.is_empty(),
            "nothing is known before: {report:?}"
        );
        let zero = Counters {
            process: Some(0),
            ..Counters::default()
        };
        let report = memory.report(zero, zero, 5000);
        assert!(report.differences[0].name.contains("in memory"));
    }

    #[test]
    fn the_kernel_is_read_as_it_writes() {
        let mounts = "29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
                      30 29 0:25 / /dev/shm rw shared:2 - tmpfs tmpfs rw\n";
        assert_eq!(file_system(mounts, "254:1").as_deref(), Some("ext4"));
        assert_eq!(file_system(mounts, "0:25").as_deref(), Some("tmpfs"));
        assert_eq!(file_system(mounts, "8:1"), None);
        assert_eq!(
            sectors_written(
                " 4245732    67749 153454626  6024727 10282504   748940 342168584  2416112 0"
            ),
            Some(342_168_584)
        );
        assert_eq!(sectors_written("1 2 3"), None);
    }
}
