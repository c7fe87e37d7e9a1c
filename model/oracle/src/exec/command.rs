//! The command line of an adapter.

use std::time::Duration;

use super::error::ExecError;
use super::process::Process;

/// A program with arguments that speaks the protocol, and how long to wait for its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Variables of its environment, besides the oracle's own.
    pub variables: Vec<(String, String)>,
    /// If no answer comes for this long, the process is killed.
    pub timeout: Duration,
}

impl Command {
    /// Splits a line at blanks. Quotes and backslashes work as in a shell; nothing else does.
    ///
    /// ```
    /// use treering_oracle::exec::Command;
    ///
    /// let command = Command::parse(r#"python3 'my adapter.py' --fast "" a\ b"#).unwrap();
    /// assert_eq!(command.words, ["python3", "my adapter.py", "--fast", "", "a b"]);
    /// ```
    ///
    /// # Errors
    /// There is no word, or a quote is not closed.
    pub fn parse(line: &str) -> Result<Command, ExecError> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut quote = None;
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match (letter, quote) {
                (letter, Some(open)) if letter == open => quote = None,
                ('\\', None | Some('"')) => match letters.next() {
                    Some(next) => word.get_or_insert_default().push(next),
                    None => return Err(ExecError::Command("a backslash at the end".into())),
                },
                ('\'' | '"', None) => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (letter, None) if letter.is_whitespace() => words.extend(word.take()),
                (letter, _) => word.get_or_insert_default().push(letter),
            }
        }
        if let Some(open) = quote {
            return Err(ExecError::Command(format!("a {open} that is not closed")));
        }
        words.extend(word);
        if words.first().is_none_or(String::is_empty) {
            return Err(ExecError::Command("no program".into()));
        }
        Ok(Command {
            words,
            variables: Vec::new(),
            timeout: Duration::from_secs(10),
        })
    }

    /// The same command with another time limit.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Command {
        Command { timeout, ..self }
    }

    /// Starts the program and hears its claims.
    ///
    /// # Errors
    /// It cannot be started, or does not introduce itself as the protocol says.
    pub fn start(&self) -> Result<Process, ExecError> {
        Process::start(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_program_or_with_an_open_quote_is_refused() {
        for (line, expected) in [
            ("", "no program"),
            ("  ", "no program"),
            ("'' a", "no program"),
            ("a 'b", "not closed"),
            ("a \\", "backslash"),
        ] {
            let said = Command::parse(line).unwrap_err().to_string();
            assert!(said.contains(expected), "{line}: {said}");
        }
    }
}
