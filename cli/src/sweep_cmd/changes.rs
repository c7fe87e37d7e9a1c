//! How a study is changed without editing it.
//!
//! ```toml
//! [small]                       # `--small`: a version that takes seconds
//! scale = 0.1                   # records and operations of generated traces, `--scale`
//! set = { clients = 1 }         # as `--set clients=1`
//! only = { page = ["8KiB"] }    # as `--only page=8KiB`
//! ```
//!
//! `--set` gives a flag of `replay` other values, wherever the study has some: in a grid, or a
//! fixed one. Other names are settings of the generated traces. `--only` leaves out points that
//! have the parameter, but none of these values of it.

use super::generated;
use super::points::{self, Axis, Study, TRACE};
use super::study::Whole;
use crate::args::{Changes, Listed};
use crate::failure::Failure;

/// Changes a study as the command line says.
///
/// # Errors
/// If a name or value is wrong.
pub(super) fn apply(whole: &mut Whole, changes: &Changes) -> Result<(), Failure> {
    let mut lists = Vec::new();
    if changes.small {
        let small = whole.small.clone();
        if small == Changes::default() {
            return Err(Failure::usage(
                "--small: expected [small] in the study, found none",
            ));
        }
        whole.scale *= small.scale.unwrap_or(1.0);
        lists.push(small);
    }
    whole.scale *= changes.scale.unwrap_or(1.0);
    if changes.scale.is_some() && whole.generated.is_empty() {
        return Err(Failure::usage(
            "--scale: expected a study that generates traces",
        ));
    }
    lists.push(changes.clone());
    for changes in lists {
        for list in &changes.set {
            set(whole, list).map_err(|why| Failure::usage(format!("--set {why}")))?;
        }
        for list in &changes.only {
            only(whole, list).map_err(|why| Failure::usage(format!("--only {why}")))?;
        }
    }
    Ok(())
}

/// Sets a flag of the points, or else of the generated traces.
fn set(whole: &mut Whole, list: &Listed) -> Result<(), String> {
    let is_flag = points::flags().iter().any(|(name, _)| *name == list.flag);
    if !is_flag && generated::has(&list.flag) && !whole.generated.is_empty() {
        generated::set(&mut whole.generated, list)?;
        let checked = whole
            .generated
            .iter()
            .try_for_each(|g| g.params().map(drop));
        return checked.map_err(|e| e.message);
    }
    for value in &list.values {
        points::check(&list.flag, value)?;
    }
    whole
        .parts
        .iter_mut()
        .try_for_each(|part| set_flag(part, list))
}

/// Sets a flag of a part: where it has an axis for it, there, else for all points.
fn set_flag(part: &mut Study, list: &Listed) -> Result<(), String> {
    let has = |step: &Vec<points::Setting>| step.iter().any(|(flag, _)| *flag == list.flag);
    let axis = part.axes.iter().position(|axis| axis.steps.iter().any(has));
    if let Some(at) = axis {
        if part.axes[at].steps.iter().any(|step| step.len() > 1) {
            return Err(format!(
                "{}: expected a flag that is not walked together with others (zip)",
                list.flag
            ));
        }
        part.axes[at] = Axis::of(list);
        return Ok(());
    }
    if part.list.iter().any(has) {
        let why = "expected a flag that no point of a list has";
        return Err(format!("{}: {why}", list.flag));
    }
    part.fixed.retain(|(flag, _)| *flag != list.flag);
    match list.values.as_slice() {
        [only] => part.fixed.push((list.flag.clone(), only.clone())),
        _ => part.axes.push(Axis::of(list)),
    }
    Ok(())
}

/// Leaves out points that have another value of a parameter.
fn only(whole: &mut Whole, list: &Listed) -> Result<(), String> {
    let is_part = list.flag == "part";
    if is_part {
        whole.parts.retain(|part| list.values.contains(&part.name));
    } else {
        let is_flag = points::flags().iter().any(|(name, _)| *name == list.flag);
        if !is_flag && list.flag != TRACE {
            return Err(format!(
                "{}: expected part, trace or a flag of `treering replay`",
                list.flag
            ));
        }
        for part in &mut whole.parts {
            part.only.push(list.clone());
        }
    }
    match whole.parts.iter().all(|part| part.points().is_empty()) {
        true => Err(format!(
            "{}={}: leaves no point",
            list.flag,
            list.values.join(",")
        )),
        false => Ok(()),
    }
}
