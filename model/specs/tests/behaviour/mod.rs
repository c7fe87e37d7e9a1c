//! What TLC says of behaviours, if it is installed.

#![allow(dead_code, unreachable_pub)] // Each test uses a part of this module.

use std::path::{Path, PathBuf};

use treering_specs::check::tools;
use treering_specs::conformance::module::{Module, Verdict, check, write};

/// The folder of the specs.
pub fn specs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs")
}

/// TLC, if it is installed already.
pub fn tlc() -> Option<tools::Tlc> {
    let specs = specs();
    let here = specs.join("target/dependency").is_dir() || std::env::var_os("TLC_JAR").is_some();
    match here.then(|| tools::tlc(&specs, &mut |_| {})) {
        Some(Ok(tlc)) => Some(tlc),
        Some(Err(missing)) => {
            eprintln!("NOT RUN: {missing}");
            None
        }
        None => {
            eprintln!("NOT RUN: TLC is not installed");
            None
        }
    }
}

/// What TLC says of a behaviour. One that is not judged as wanted is left in the folder
/// `TREERING_KEEP`, if that is set.
pub fn judged(module: &Module, tlc: &tools::Tlc, wanted: &Verdict) -> Verdict {
    let verdict = check(module, tlc, &specs()).unwrap();
    if verdict != *wanted
        && let Some(folder) = std::env::var_os("TREERING_KEEP")
    {
        write(module, Path::new(&folder)).unwrap();
    }
    verdict
}

/// The claim of a behaviour whose last event is refused.
pub fn claim(module: &Module) -> &str {
    let claim = module.tla.split_once("Claim ==\n").unwrap().1;
    claim.split_once("\n\n").unwrap().0.trim()
}

/// TLC must find the refusal of a seeded bug where the judge does, or there is no behaviour for the
/// reason that is expected. Returns what is wrong.
pub fn wrong(
    bug: &str,
    behaviour: &Result<Module, String>,
    tlc: Option<&tools::Tlc>,
    none: &[&str],
) -> Option<String> {
    let module = match behaviour {
        Ok(module) => module,
        Err(why) if none.contains(&bug) => {
            println!("{bug}: no behaviour: {why}");
            return None;
        }
        Err(why) => return Some(format!("{bug}: no behaviour: {why}")),
    };
    println!(
        "{bug}: {} steps, then {:.300}",
        module.events,
        claim(module)
    );
    let tlc = tlc?;
    let wanted = Verdict::RefusedAt(module.events + 1);
    let verdict = judged(module, tlc, &wanted);
    (verdict != wanted).then(|| format!("{bug}: TLC says {verdict:?}: {:.300}", claim(module)))
}
