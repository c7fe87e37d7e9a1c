//! Programs that run in a directory other than ours.

use std::ffi::OsString;

/// The command with the program as a path that also leads there from another directory.
pub(crate) fn found_from_here(command: &[OsString]) -> Vec<OsString> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut() {
        let is_path = program.as_encoded_bytes().contains(&b'/');
        if let (true, Ok(absolute)) = (is_path, std::path::absolute(&program)) {
            *program = absolute.into();
        }
    }
    command
}
