//! `--tla FOLDER`: events that a mirror refuses, as TLA+ behaviours that TLC rejects.

use std::path::Path;

use treering_specs::conformance::module::Module;

use crate::failure::Failure;
use crate::output::{Output, check_target, say};

/// Refuses a folder that cannot be written to.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(format!(
            "--tla {}: expected a folder",
            folder.display()
        )));
    }
    check_target("--tla", &folder.join("Finding.tla"))
}

/// Writes a behaviour, or says why there is none.
pub(crate) fn say_module(behaviour: &Result<Module, String>, folder: &Path) -> Result<(), Failure> {
    let module = match behaviour {
        Ok(module) => module,
        Err(why) => return say(format!("--tla: no behaviour is written: {why}\n").as_bytes()),
    };
    let path = folder.join(format!("{}.tla", module.name));
    Output::File(path.clone()).write(module.tla.as_bytes())?;
    Output::File(path.with_extension("cfg")).write(module.cfg.as_bytes())?;
    say(format!(
        "{}: {} steps that {} allows, and the event that it does not; see its last lines for how \
         to run TLC\n",
        path.display(),
        module.events,
        module.spec
    )
    .as_bytes())
}
