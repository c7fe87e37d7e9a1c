//! Builds the command line that repeats a run.
//!
//! It uses clap's record of the arguments that were given, so new flags are included automatically.
//! Arguments with default values are left out, and so are outputs, which do not change the report.
//! `--seed` is always included, because it decides everything random.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Flags that say where a report goes.
const OUTPUTS: [&str; 3] = ["json", "html", "svg"];

/// `treering SUBCOMMAND …`, quoted for a shell. `command` is the subcommand from which `matches`
/// was parsed; `names` lead to it.
pub(crate) fn line(names: &[&str], command: &Command, matches: &ArgMatches) -> String {
    let mut words = vec!["treering".to_string()];
    words.extend(names.iter().map(|name| (*name).to_string()));
    let given = |arg: &&Arg| {
        let is_seed = arg.get_id() == "seed";
        is_seed || matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let (places, flags): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| !OUTPUTS.contains(&arg.get_id().as_str()))
        .filter(given)
        .partition(|arg| arg.is_positional());
    for place in places {
        for value in raw(place, matches) {
            let dashes = place.is_last_set() || value.as_bytes().starts_with(b"-");
            if dashes && !words.contains(&"--".to_string()) {
                words.push("--".into());
            }
            words.push(quoted(&value));
        }
    }
    // Flags come before `--`.
    let at = (words.iter().position(|word| word == "--")).unwrap_or(words.len());
    let flags: Vec<String> = flags
        .into_iter()
        .flat_map(|arg| flag(arg, matches))
        .collect();
    words.splice(at..at, flags);
    words.join(" ")
}

/// The values given for an argument, or its default.
fn raw(arg: &Arg, matches: &ArgMatches) -> Vec<OsString> {
    let values = matches.get_raw(arg.get_id().as_str());
    values.into_iter().flatten().map(OsStr::to_owned).collect()
}

/// A flag with its values; nothing if they are the defaults.
fn flag(arg: &Arg, matches: &ArgMatches) -> Vec<String> {
    let Some(name) = arg.get_long() else {
        return Vec::new();
    };
    if !arg.get_action().takes_values() {
        return vec![format!("--{name}")];
    }
    let mut values = raw(arg, matches);
    if arg.get_value_delimiter() == Some(',') {
        values = vec![values.join(OsStr::new(","))];
    }
    let defaults = arg.get_default_values();
    let is_default = values.iter().eq(defaults.iter().map(|v| v.as_os_str()));
    if is_default && name != "seed" {
        return Vec::new();
    }
    let word = |value: OsString| {
        // A value that begins with `-` would be taken for a flag.
        let joint = if value.as_bytes().starts_with(b"-") {
            "="
        } else {
            " "
        };
        format!("--{name}{joint}{}", quoted(&value))
    };
    values.into_iter().map(word).collect()
}

/// Quotes a word for a shell: unquoted if possible, otherwise in quotes, and with hexadecimal
/// escapes if it is not UTF-8.
fn quoted(word: &OsStr) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./:,=%+@".contains(b);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|b| plain(&b)) => text.into(),
        Some(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => {
            let byte = |b: &u8| match b {
                b'\'' | b'\\' => format!("\\{}", *b as char),
                b' '..=b'~' => (*b as char).to_string(),
                b => format!("\\x{b:02x}"),
            };
            let bytes: String = word.as_bytes().iter().map(byte).collect();
            format!("$'{bytes}'")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn again(args: &[&OsStr]) -> String {
        let words = [OsStr::new("treering"), OsStr::new("replay")];
        let command = Cli::command();
        let all = words.iter().chain(args);
        let matches = command.clone().try_get_matches_from(all).expect("parsed");
        let replay = command.find_subcommand("replay").expect("a subcommand");
        let inner = matches.subcommand_matches("replay").expect("it");
        line(&["replay"], replay, inner)
    }

    fn of(args: &[&str]) -> String {
        again(&args.iter().map(OsStr::new).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_and_outputs_are_left_out_and_the_seed_is_not() {
        assert_eq!(of(&["a.trz"]), "treering replay a.trz --seed 0");
        let given = ["a.trz", "--clients", "1", "--json", "-", "--html", "b.html"];
        assert_eq!(of(&given), "treering replay a.trz --seed 0");
        let given = ["--timing", "--cache=20%", "--nbatch=3", "--seed=7", "a.trz"];
        assert_eq!(
            of(&given),
            "treering replay a.trz --cache 20% --seed 7 --timing --nbatch 3"
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            of(&["it's $here"]),
            r"treering replay 'it'\''s $here' --seed 0"
        );
        assert_eq!(of(&["--", "-a.trz"]), "treering replay --seed 0 -- -a.trz");
        let bytes = OsStr::from_bytes(b"a\xff\n'.trz");
        assert_eq!(
            again(&[bytes]),
            r"treering replay $'a\xff\x0a\'.trz' --seed 0"
        );
    }
}
