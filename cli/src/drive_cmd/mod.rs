//! `treering drive`: a simulated drive below any program.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@run`] | `drive run` and `drive mount`: the drive, the program, then the report |
//! | [`log`] | `drive info` and `drive export` |
//! | [`measure`] | `drive replay`, which the others end with |

mod log;
mod measure;
mod run;

use crate::args::DriveCommand;
use crate::failure::Failure;

/// Runs a subcommand; `again` is the command line that repeats it.
pub(crate) fn run(command: &DriveCommand, again: &str) -> Result<(), Failure> {
    match command {
        DriveCommand::Run(args) => run::run(args, again),
        DriveCommand::Mount(args) => run::mount(args, again),
        DriveCommand::Replay(args) => measure::replay(args, again),
        DriveCommand::Info(args) => log::report(args),
        DriveCommand::Export(args) => log::export(args),
    }
}
