//! Who keeps a mounted directory from being unmounted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most processes that are named.
const NAMED: usize = 5;

/// The processes with open files, mapped files or working directories on a device, in words; `None`
/// if there are none that can be seen.
pub(crate) fn users(device: u64) -> Option<String> {
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(what) = use_of(&process.path(), device) {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.insert(id, format!("{} (process {id}) {what}", command.trim()));
        }
    }
    let more = found.len().saturating_sub(NAMED);
    let mut words: Vec<String> = found.into_values().take(NAMED).collect();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// What a process has on a device.
fn use_of(process: &Path, device: u64) -> Option<String> {
    let there = |link: &Path| fs::metadata(link).is_ok_and(|found| found.dev() == device);
    let named = |link: &Path, what: &str| {
        let target = fs::read_link(link).unwrap_or_else(|_| PathBuf::from("a file"));
        format!("{what} {}", target.display())
    };
    for (link, what) in [
        ("cwd", "works in"),
        ("root", "has its root in"),
        ("exe", "runs"),
    ] {
        let link = process.join(link);
        if there(&link) {
            return Some(named(&link, what));
        }
    }
    for (links, what) in [("fd", "has open"), ("map_files", "has mapped")] {
        let links = fs::read_dir(process.join(links))
            .into_iter()
            .flatten()
            .flatten();
        if let Some(link) = links.map(|link| link.path()).find(|link| there(link)) {
            return Some(named(&link, what));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_open_file_names_its_process() {
        // A device of its own: the process's own entry in /proc.
        let open = File::open("/proc/self/status").expect("Linux");
        let device = open.metadata().expect("open").dev();
        let users = users(device).expect("at least this process");
        assert!(
            users.contains("has open") || users.contains("more"),
            "{users}"
        );
    }
}
