//! Finding a store among the files that a power cut has left.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::engine::Trouble;
use crate::failure::Failure;

/// Folders within folders that are looked at.
const DEEPEST: usize = 4;
/// Bytes of a file's beginning in which a magic number is looked for.
const HEAD: u64 = 16 << 10;

/// How a store that is one file is told from others.
pub(super) struct FileKind {
    /// What it is, for messages.
    pub(super) what: &'static str,
    /// Whether a file's beginning is that of a store.
    pub(super) is: fn(&[u8]) -> bool,
    /// Ends of names that are never the store's.
    pub(super) beside: &'static [&'static str],
}

impl FileKind {
    /// The store's file; `None` if it is not there or empty.
    ///
    /// What the power cut has left of a store may lack its magic number. So if no file has it and
    /// only one is not empty, that is the store, and the tool says what is wrong with it.
    pub(super) fn find(
        &self,
        dir: &Path,
        named: Option<&Path>,
    ) -> Result<Option<PathBuf>, Trouble> {
        if let Some(named) = named {
            let file = dir.join(named);
            let there = std::fs::metadata(&file).is_ok_and(|data| data.is_file() && data.len() > 0);
            return Ok(there.then_some(file));
        }
        let mut files = Vec::new();
        walk(dir, DEEPEST, &mut |path, is_file| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if is_file && !self.beside.iter().any(|end| name.ends_with(end)) {
                files.push(path.to_path_buf());
            }
        })?;
        let heads: io::Result<Vec<Vec<u8>>> = files.iter().map(|file| head(file)).collect();
        let heads = heads.map_err(|e| Failure::file("the state", &e))?;
        let files: Vec<(PathBuf, Vec<u8>)> = files.into_iter().zip(heads).collect();
        let stores = files
            .iter()
            .filter(|(_, head)| (self.is)(head))
            .map(|(file, _)| file);
        let stores: Vec<&PathBuf> = stores.collect();
        let written = files
            .iter()
            .filter(|(_, head)| !head.is_empty())
            .map(|(file, _)| file);
        let written: Vec<&PathBuf> = written.collect();
        match (&stores[..], &written[..]) {
            ([store], _) | ([], [store]) => Ok(Some((*store).clone())),
            ([], _) => Ok(None),
            (stores, _) => Err(several(self.what, dir, stores)),
        }
    }
}

/// The folder that has a file of this name; `None` if there is none.
pub(super) fn folder_with(
    what: &str,
    name: &str,
    dir: &Path,
    named: Option<&Path>,
) -> Result<Option<PathBuf>, Trouble> {
    if let Some(named) = named {
        let folder = dir.join(named);
        return Ok(folder.join(name).exists().then_some(folder));
    }
    let mut found = Vec::new();
    walk(dir, DEEPEST, &mut |path, is_file| {
        if is_file && path.file_name().is_some_and(|found| found == name) {
            found.extend(path.parent().map(Path::to_path_buf));
        }
    })?;
    // A store may have folders of the same kind within it.
    found.sort_by_key(|folder| folder.components().count());
    match &found[..] {
        [] => Ok(None),
        [folder, inner @ ..] if inner.iter().all(|inner| inner.starts_with(folder)) => {
            Ok(Some(folder.clone()))
        }
        folders => Err(several(what, dir, &folders.iter().collect::<Vec<_>>())),
    }
}

fn several(what: &str, dir: &Path, found: &[&PathBuf]) -> Trouble {
    let names = found
        .iter()
        .map(|path| path.strip_prefix(dir).unwrap_or(path));
    let names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    let found = names.join(", ");
    Failure::usage(format!(
        "expected one {what}, or an acknowledgement `store PATH`; found {found}"
    ))
    .into()
}

/// Calls `each` for every file and folder below, sorted, and whether it is a file.
fn walk(dir: &Path, deepest: usize, each: &mut dyn FnMut(&Path, bool)) -> Result<(), Trouble> {
    let entries = std::fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|e| Failure::file("the state", &e))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let kind = std::fs::symlink_metadata(&path).map_err(|e| Failure::file("the state", &e))?;
        each(&path, kind.is_file());
        if kind.is_dir() && deepest > 1 {
            walk(&path, deepest - 1, each)?;
        }
    }
    Ok(())
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The little-endian number at a place.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: FileKind = FileKind {
        what: "test store",
        is: |head| head.starts_with(b"magic"),
        beside: &["-log"],
    };

    fn found(files: &[(&str, &str)], named: Option<&str>) -> String {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, content).expect("room");
        }
        match KIND.find(dir.path(), named.map(Path::new)) {
            Ok(None) => "none".into(),
            Ok(Some(path)) => {
                let path = path.strip_prefix(dir.path()).expect("within");
                path.display().to_string()
            }
            Err(Trouble::Failure(failure)) => failure.message,
            Err(Trouble::State(said)) => said,
        }
    }

    #[test]
    fn a_store_is_found_by_its_magic_or_by_being_alone() {
        assert_eq!(found(&[], None), "none");
        assert_eq!(found(&[("a", "x"), ("b/c", "magic")], None), "b/c");
        assert_eq!(
            found(&[("a", "torn"), ("a-log", "magic"), ("b", "")], None),
            "a"
        );
        assert_eq!(found(&[("a", "torn"), ("b", "torn")], None), "none");
        assert_eq!(found(&[("a", "torn"), ("b", "torn")], Some("a")), "a");
        assert_eq!(found(&[("a", "magic"), ("b", "")], Some("b")), "none");
        let two = found(&[("a", "magic"), ("b", "magic")], None);
        assert!(
            two.contains("expected one test store") && two.contains("a, b"),
            "{two}"
        );
    }
}
