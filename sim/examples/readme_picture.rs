//! Draws the README's picture, `docs/replay.svg`, from the sample that ships with the project. With
//! `--check` it only compares.
//!
//! ```sh
//! cargo run --release -p treering-sim --example readme_picture
//! ```

use std::path::Path;
use std::process::ExitCode;

use treering_engine::node::LayoutChoice;
use treering_sim::replay::{ReplayConfig, Target, run};
use treering_sim::report::html;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = Target::builtin("ssd").expect("built in");
    let mut config = ReplayConfig::new(root.join("traces/samples/zipf.trz"), target);
    // The default of the command.
    config.tree.pages_mut().layout = Some(LayoutChoice::ADAPTIVE);
    let report = match run(&config, &mut |_| {}) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let (picture, drawn) = (root.join("docs/replay.svg"), html::wa_svg(&report) + "\n");
    if !std::env::args().any(|arg| arg == "--check") {
        if let Err(error) = std::fs::write(&picture, drawn) {
            eprintln!("{}: {error}", picture.display());
            return ExitCode::FAILURE;
        }
    } else if !std::fs::read_to_string(&picture).is_ok_and(|kept| kept == drawn) {
        eprintln!(
            "docs/replay.svg: differs from a replay of the sample; run this example without \
             --check"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
