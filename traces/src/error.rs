//! The crate's error type. Every variant names the file or parameter, and what was expected.

/// An error in a trace or in a parameter.
///
/// ```
/// use treering_traces::open;
///
/// let error = open("no-such.trz").unwrap_err();
/// assert!(error.to_string().starts_with("no-such.trz: "));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be opened, read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file's name as the user gave it.
        file: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The caller ended the work early.
    #[error("{file}: interrupted after {ops} operations")]
    Interrupted {
        /// The file that was read.
        file: String,
        /// Operations so far.
        ops: u64,
    },
    /// The file's content does not match the format.
    #[error("{file}, {place}: expected {expected}, found {found}")]
    Bad {
        /// The file's name as the user gave it.
        file: String,
        /// `line 7` or `record 12 at byte 288`.
        place: String,
        /// What the format asks for there.
        expected: String,
        /// What was found there, shortened.
        found: String,
    },
    /// The crate was built without a part that is needed.
    #[error(
        "{what}: expected a build with the feature {feature} \
         (cargo build --release -p treering --features {feature}), found one without it"
    )]
    NotBuilt {
        /// What was asked for.
        what: &'static str,
        /// The cargo feature that adds it.
        feature: &'static str,
    },
    /// A generator or importer parameter has an invalid value.
    #[error("{name}: {why}")]
    BadParameter {
        /// The parameter's name on the command line.
        name: &'static str,
        /// What was found and what is expected.
        why: String,
    },
}

impl TraceError {
    pub(crate) fn parameter(name: &'static str, why: impl Into<String>) -> TraceError {
        let why = why.into();
        TraceError::BadParameter { name, why }
    }
}

/// Formats what was found for an error message: printable, and short whatever the input.
pub(crate) fn shorten(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    const MOST_HEXADECIMAL: usize = 24;
    let start = &bytes[..bytes.len().min(MOST)];
    // A character cut off by the limit does not make the rest binary.
    let is_text = match std::str::from_utf8(start) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none(),
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
    if !is_text || start.iter().any(is_control) {
        let shown = &bytes[..bytes.len().min(MOST_HEXADECIMAL)];
        let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if shown.len() < bytes.len() { "…" } else { "" };
        return format!("the bytes {digits}{more}");
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]);
    let shown: String = text
        .trim_end()
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    if bytes.is_empty() {
        "nothing".into()
    } else if bytes.len() > MOST {
        format!("`{shown}…`")
    } else {
        format!("`{shown}`")
    }
}
