//! How a command fails: one line on stderr and an exit status.
//!
//! | status | meaning |
//! |---|---|
//! | 1 | a violation, a counterexample or damage was found |
//! | 2 | bad input or usage |
//! | 3 | could not run |
//! | 4 | finished, but never reached what it was meant to exercise |
//! | 130, 143 | stopped by SIGINT or SIGTERM |

use std::io::ErrorKind;

use treering_drive::DriveError;
use treering_engine::Error as EngineError;
use treering_engine::device::DeviceError;
use treering_oracle::exec::ExecError;
use treering_sim::replay::ReplayError;
use treering_sim::ssd::ProfileError;
use treering_traces::TraceError;

use crate::interrupt::Signal;

/// The failure of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Exit status: 1 to 4, 130 or 143.
    pub(crate) status: u8,
    /// The message, without the prefix `treering: `.
    pub(crate) message: String,
}

impl Failure {
    fn new(status: u8, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: one_line(&message.into()),
        }
    }

    /// Damage or a violation was found.
    pub(crate) fn found(message: impl Into<String>) -> Failure {
        Failure::new(1, message)
    }

    /// The user's input or flags are wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(2, message)
    }

    /// Something outside the program is missing or failed.
    pub(crate) fn cannot_run(message: impl Into<String>) -> Failure {
        Failure::new(3, message)
    }

    /// The run never reached what it was meant to exercise.
    pub(crate) fn not_reached(message: impl Into<String>) -> Failure {
        Failure::new(4, message)
    }

    /// A signal stopped the command; `done` says how far it came.
    pub(crate) fn interrupted(signal: Signal, done: &str) -> Failure {
        let name = signal.name();
        Failure::new(signal.status(), format!("stopped by {name}: {done}"))
    }

    /// A file could not be opened, read or written.
    pub(crate) fn file(name: &str, why: &std::io::Error) -> Failure {
        let message = format!("{name}: {why}");
        if is_users(why.kind()) {
            Failure::usage(message)
        } else {
            Failure::cannot_run(message)
        }
    }
}

/// Whether naming another file could help, so that the error is the user's.
fn is_users(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::InvalidFilename
            | ErrorKind::UnexpectedEof
    )
}

/// Joins several lines into one, without drawings that point at a column (`3 | x = 1`, `  | ^`).
pub(crate) fn one_line(text: &str) -> String {
    let is_drawing = |line: &str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .starts_with('|')
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_drawing(line))
        .collect();
    lines.join(": ").replace("::", ":")
}

/// A parameter's name, as written on the command line.
fn flag(name: &str) -> String {
    match name {
        "format" => "FORMAT".into(),
        "workload" => "WORKLOAD".into(),
        "op" | "key" | "name" | "warmup_ops" => name.into(),
        _ => format!("--{name}"),
    }
}

/// What is wrong with an adapter, other than its engine's answers.
impl From<&ExecError> for Failure {
    fn from(error: &ExecError) -> Failure {
        match error {
            ExecError::Start { .. } => Failure::cannot_run(error.to_string()),
            other => Failure::usage(other.to_string()),
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        match error {
            TraceError::Io { file, source } => Failure::file(&file, &source),
            TraceError::BadParameter { name, why } => {
                Failure::usage(format!("{}: {why}", flag(name)))
            }
            missing @ TraceError::NotBuilt { .. } => Failure::cannot_run(missing.to_string()),
            bad @ TraceError::Bad { .. } => Failure::usage(bad.to_string()),
            stopped @ TraceError::Interrupted { .. } => Failure::cannot_run(stopped.to_string()),
        }
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Failure {
        match error {
            DriveError::System { what, source } => Failure::file(&what, &source),
            DriveError::Parameter { name, why } => Failure::usage(format!("{}: {why}", flag(name))),
            bad @ DriveError::Bad { .. } => Failure::usage(bad.to_string()),
            missing @ DriveError::Missing { .. } => Failure::cannot_run(missing.to_string()),
            DriveError::Trace(error) => error.into(),
        }
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Failure {
        Failure::usage(error.to_string())
    }
}

/// The failure for an engine's error on `device`.
pub(crate) fn engine(device: &str, error: EngineError) -> Failure {
    match error {
        EngineError::BadOption { name, why } => Failure::usage(format!("{}: {why}", flag(name))),
        EngineError::Device(e @ DeviceError::Open { .. }) => Failure::usage(e.to_string()),
        e @ (EngineError::Mismatch { .. }
        | EngineError::NotAStore { .. }
        | EngineError::KeyTooLong { .. }
        | EngineError::ValueTooLong { .. }
        | EngineError::RecordTooLarge { .. }) => Failure::usage(format!("{device}: {e}")),
        e => Failure::cannot_run(format!("{device}: {e}")),
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        match error {
            ReplayError::Trace(e) => e.into(),
            ReplayError::Engine { device, source } => engine(&device, source),
            e @ (ReplayError::Operation { .. }
            | ReplayError::Setting { .. }
            | ReplayError::Empty { .. }) => Failure::usage(e.to_string()),
            ReplayError::Drive(e) => Failure::usage(format!("--device: {e}")),
            e => Failure::cannot_run(e.to_string()),
        }
    }
}

/// The first paragraph of clap's error message, without usage and tips.
pub(crate) fn clap(error: &clap::Error) -> Failure {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage("expected a subcommand, found none; `treering --help` lists them");
    }
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    let sentence = paragraph.join(" ");
    Failure::usage(sentence.trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_build_lacks_is_no_bad_input_and_names_the_feature_to_build_with() {
        let missing = TraceError::NotBuilt {
            what: "import parquet",
            feature: "parquet",
        };
        let failure = Failure::from(missing);
        assert_eq!(failure.status, 3);
        assert_eq!(
            failure.message,
            "import parquet: expected a build with the feature parquet \
             (cargo build --release -p treering --features parquet), found one without it"
        );
    }

    #[test]
    fn a_drawing_is_left_out_of_the_one_line() {
        let toml =
            "TOML parse error at line 3, column 1\n  |\n3 | x = 1\n  | ^\nunknown field `x`\n";
        assert_eq!(
            one_line(toml),
            "TOML parse error at line 3, column 1: unknown field `x`"
        );
    }
}
