//! What the profiles of all devices have in common: TOML that is read, checked, and refused by the
//! name of the key.

use serde::de::DeserializeOwned;

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}")]
pub struct ProfileError {
    /// The file, or the name of a built-in profile.
    pub file: String,
    /// Which key, what was found, what is expected.
    pub why: String,
}

/// Parses TOML text and checks it; `file` names it in errors.
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

/// Whether a profile's text says that it is of this kind of device.
pub(crate) fn is_of_kind(text: &str, kind: &str) -> bool {
    text.parse::<toml::Table>()
        .is_ok_and(|table| table.get("kind").and_then(|kind| kind.as_str()) == Some(kind))
}

/// Refuses a kind other than the expected one.
pub(crate) fn expect_kind(found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("kind = {found:?}, expected \"{expected}\""))
}

/// Refuses the first number that is outside its range: key, number, least and most.
pub(crate) fn within(ranges: &[(&str, f64, f64, f64)]) -> Result<(), String> {
    for (key, found, least, most) in ranges {
        if !(least..=most).contains(&found) {
            return Err(format!("{key} = {found}, expected {least} to {most}"));
        }
    }
    Ok(())
}
