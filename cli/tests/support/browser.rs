//! A headless Chromium, if the machine has one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How a reader views a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Width in pixels.
    pub(crate) width: u32,
    /// Whether the reader prefers dark colours.
    pub(crate) dark: bool,
}

/// Finds the browser. Without one, prints a notice on stderr that the test harness does not
/// capture.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let names = NAMES.join(", ");
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no page is tested, because none of {names} is in PATH (apt install chromium)"
        );
    }
    found
}

/// Opens `page`, takes a screenshot, and returns the page after its scripts have run.
pub(crate) fn open(browser: &Path, page: &Path, view: View, picture: &Path) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let scheme = u8::from(!view.dark);
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args(["--no-first-run", "--disable-background-networking"])
        .arg("--virtual-time-budget=5000")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},6000", view.width))
        .arg(format!("--screenshot={}", picture.display()))
        .arg("--dump-dom")
        .arg(page)
        .output()
        .expect("the browser starts");
    assert!(
        output.status.success() && picture.is_file(),
        "{}: {}",
        browser.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
