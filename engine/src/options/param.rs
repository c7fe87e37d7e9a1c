//! Parameters as text: how [`crate::TreeSpec`] reads, prints and documents them.

use std::fmt::Display;
use std::str::FromStr;

/// One parameter of a tree or page store, such as `nbatch` of `ccl`.
///
/// Each set of options lists its parameters in a table beside it. A new parameter is one more line
/// there.
pub struct Param<T: 'static> {
    /// The name in a spec.
    pub name: &'static str,
    /// A description, for the table in the documentation.
    pub about: &'static str,
    /// Returns the value as text.
    pub get: fn(&T) -> String,
    /// Sets the value from text. The error says what was expected.
    pub set: fn(&mut T, &str) -> Result<(), String>,
}

/// Sets the parameter `name` of `part` from text.
///
/// # Errors
/// What was expected: one of the names, or a value that the parameter takes.
pub(crate) fn set<T>(
    params: &[Param<T>],
    part: &mut T,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let Some(param) = params.iter().find(|param| param.name == name) else {
        let names: Vec<_> = params.iter().map(|param| param.name).collect();
        return Err(match names.is_empty() {
            true => format!("{name}: expected no parameters"),
            false => format!("{name}: expected {}", names.join(", ")),
        });
    };
    (param.set)(part, value).map_err(|expected| format!("{name}={value}: {expected}"))
}

/// Returns the parameters in which `part` differs from `default`, as `name=value`.
pub(crate) fn differing<T>(params: &[Param<T>], part: &T, default: &T) -> Vec<String> {
    let differ = params
        .iter()
        .filter(|param| (param.get)(part) != (param.get)(default));
    differ
        .map(|param| format!("{}={}", param.name, (param.get)(part)))
        .collect()
}

/// Reads a whole number into `to`.
pub(crate) fn number<N: FromStr>(to: &mut N, text: &str) -> Result<(), String> {
    *to = text.parse().map_err(|_| "expected a whole number")?;
    Ok(())
}

/// Reads a percentage into `to`. The percent sign is optional.
pub(crate) fn percent(to: &mut u8, text: &str) -> Result<(), String> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    *to = digits
        .parse()
        .map_err(|_| "expected a percentage such as 20%")?;
    Ok(())
}

/// Reads a number of bytes, such as `2KiB`, into `to`.
pub(crate) fn size<N: TryFrom<u64>>(to: &mut N, text: &str) -> Result<(), String> {
    let expected = || "expected a size such as 128, 4KiB or 2MiB".to_string();
    let lower = text.to_ascii_lowercase();
    let units = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("b", 1),
    ];
    let unit = units.into_iter().find(|(unit, _)| lower.ends_with(unit));
    let (digits, factor) = match unit {
        Some((unit, factor)) => (&lower[..lower.len() - unit.len()], factor),
        None => (&lower[..], 1),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(factor))
        .and_then(|bytes| N::try_from(bytes).ok());
    *to = bytes.ok_or_else(expected)?;
    Ok(())
}

/// Prints a number of bytes in the form that [`size`] reads.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let fits = units
        .into_iter()
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    match fits {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// Prints a percentage in the form that [`percent`] reads.
pub(crate) fn show_percent(share: u8) -> String {
    format!("{share}%")
}

/// Reads one of several named values into `to`.
pub(crate) fn choice<V: Copy>(to: &mut V, text: &str, named: &[(&str, V)]) -> Result<(), String> {
    let found = named.iter().find(|(name, _)| *name == text);
    let Some((_, value)) = found else {
        let names: Vec<_> = named.iter().map(|(name, _)| *name).collect();
        return Err(format!("expected {}", names.join(" or ")));
    };
    *to = *value;
    Ok(())
}

/// Prints the name of one of several named values.
pub(crate) fn show_choice<V: PartialEq>(value: &V, named: &[(&'static str, V)]) -> String {
    let found = named.iter().find(|(_, named)| named == value);
    found.map_or_else(String::new, |(name, _)| (*name).to_string())
}

/// Prints a number in the form that [`number`] reads.
pub(crate) fn show(value: impl Display) -> String {
    value.to_string()
}
