//! Parsing of device profiles, shared by all kinds of devices: TOML is parsed and checked, and
//! errors name the key.

use serde::de::DeserializeOwned;

/// An invalid profile.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}")]
pub struct ProfileError {
    /// The file, or the name of a built-in profile.
    pub file: String,
    /// The key, what was found, and what was expected.
    pub why: String,
}

/// Parses and checks TOML text; `file` names it in errors.
pub(crate) fn read<T: DeserializeOwned>(
    file: &str,
    text: &str,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<T, ProfileError> {
    let fail = |why: String| ProfileError {
        file: file.into(),
        why,
    };
    let profile = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
    check(&profile).map_err(fail)?;
    Ok(profile)
}

/// Whether a profile's text describes this kind of device.
pub(crate) fn is_of_kind(text: &str, kind: &str) -> bool {
    text.parse::<toml::Table>()
        .is_ok_and(|table| table.get("kind").and_then(|kind| kind.as_str()) == Some(kind))
}

/// Fails if the kind is not the expected one.
pub(crate) fn expect_kind(found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("kind = {found:?}, expected \"{expected}\""))
}

/// Checks that a profile is refused after each of these changes: what is replaced, by what, and the
/// key that the error must name.
#[cfg(test)]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    read: impl Fn(&str, &str) -> Result<T, ProfileError>,
    good: &str,
    changes: &[(&str, &str, &str)],
) {
    for (from, to, key) in changes {
        assert!(good.contains(from), "{from}");
        let told = read("x.toml", &good.replacen(from, to, 1)).unwrap_err();
        let told = told.to_string();
        assert!(told.starts_with("x.toml: ") && told.contains(key), "{told}");
    }
}

/// Fails at the first number out of range; given are key, number, minimum and maximum.
pub(crate) fn within(ranges: &[(&str, f64, f64, f64)]) -> Result<(), String> {
    for (key, found, least, most) in ranges {
        if !(least..=most).contains(&found) {
            return Err(format!("{key} = {found}, expected {least} to {most}"));
        }
    }
    Ok(())
}
