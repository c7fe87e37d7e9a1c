//! Serves one of the engines of this build as an adapter of docs/EXEC.md, so that it is judged as a
//! program of its own: killed, and cut off by power cuts.
//!
//! `treering oracle --exec 'treering-adapters-exec redb' --fs files`

use std::process::ExitCode;

use treering_adapters::in_folders;
use treering_oracle::exec::serve::serve_stdio;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let engines = in_folders();
    let Some(engine) = engines.iter().find(|engine| engine.name() == name) else {
        let names: Vec<String> = engines.iter().map(|engine| engine.name()).collect();
        eprintln!(
            "treering-adapters-exec {name}: expected one of {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    };
    match serve_stdio(&**engine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("treering-adapters-exec {name}: {why}");
            ExitCode::from(2)
        }
    }
}
