//! `treering explore`: shows a mirror in the browser, or a counterexample as a story.
//!
//! | module | contents |
//! |---|---|
//! | [`names`] | from a finding's or model's name to the model |
//! | [`page`] | the page of a story |
//! | [`serve`] | serves the page |

mod names;
mod page;
mod serve;

use std::path::Path;

use treering_specs::check::configs::{BoundedModel, discover};
use treering_specs::check::frontier::MEMORY;
use treering_specs::check::lanes::Story;
use treering_specs::check::mirrors::{self, SPECS};
use treering_specs::check::run::{self, Extras};
use treering_specs::check::sources::Sources;
use treering_specs::check::suite::SuiteError;
use treering_specs::check::tools;

use crate::args::ExploreArgs;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::specs::specs_folder;

/// Runs the command, which serves until the process ends.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let html = Output::if_given("--html", args.html.as_deref(), &[])?;
    let specs = specs_folder(args.folder.as_deref())?;
    let models = discover(&specs, &SPECS).map_err(SuiteError::from)?;
    let is_spec = SPECS.contains(&args.spec.as_str());
    if is_spec && args.only.is_none() {
        return match html {
            Some(_) => Err(Failure::usage(
                "--html: expected a story: a finding, or a spec with --only MODEL",
            )),
            None => explore(args, &models),
        };
    }
    let chosen = names::find(&specs, &models, &args.spec, args.only.as_deref())?;
    let story = tell(&specs, chosen.model)?;
    let text = page::html(&story, chosen.model, chosen.section.as_deref());
    let (spec, name) = (&story.spec, &story.model);
    match (html, args.html.as_deref()) {
        (Some(Output::Stdout), _) => say(text.as_bytes()),
        (Some(file), path) => {
            file.write(text.as_bytes())?;
            let path = path.unwrap_or(Path::new("")).display();
            let steps = story.steps.len();
            say(format!("{path}: {spec} {name}, {steps} states\n").as_bytes())
        }
        (None, _) => {
            let address = args.address;
            let listener = serve::listen(address)?;
            say(format!("http://{address}: {spec} {name}, until interrupted\n").as_bytes())?;
            serve::serve(&listener, &text);
            Ok(())
        }
    }
}

/// Finds the counterexample of a model: with the mirror, or with TLC if only TLC can.
fn tell(specs: &Path, model: &BoundedModel) -> Result<Story, Failure> {
    let mirrored = mirrors::is_mirrored(&model.spec);
    let outcome = if model.is_temporal() || !mirrored {
        let tlc = tools::tlc(specs, &mut |_| {}).map_err(SuiteError::from)?;
        run::tlc(&tlc, specs, model, &Extras::default())
            .map_err(|e| Failure::cannot_run(format!("TLC: {e}")))?
    } else {
        run::mirror(model, None, MEMORY)
            .map_err(SuiteError::from)?
            .0
    };
    if outcome.steps.is_empty() {
        return Err(Failure::not_reached(format!(
            "{} {}: no property is violated, so there is no counterexample to show",
            model.spec, model.name
        )));
    }
    let sources = Sources::read(specs, &model.module);
    let acted = if mirrored {
        let mirror = mirrors::open(&model.spec, &model.config).map_err(SuiteError::from)?;
        mirror.acted(&outcome.steps)
    } else {
        vec![None; outcome.steps.len()]
    };
    Ok(Story::new(&outcome, &model.config, &sources, &acted))
}

/// Serves Stateright Explorer for a mirror.
fn explore(args: &ExploreArgs, models: &[BoundedModel]) -> Result<(), Failure> {
    let mut of_spec = models.iter().filter(|m| m.spec == args.spec);
    let Some(model) = of_spec.clone().find(|m| m.name == args.model) else {
        let names: Vec<&str> = of_spec.by_ref().map(|m| &*m.name).collect();
        let known = names.join(", ");
        return Err(Failure::usage(format!(
            "--model {}: expected one of {known}",
            args.model
        )));
    };
    // Stateright's Explorer panics if it cannot listen on the address.
    drop(serve::listen(args.address)?);
    let mirror = mirrors::open(&args.spec, &model.config).map_err(SuiteError::from)?;
    say(format!(
        "http://{}: {} {}, until interrupted\n",
        args.address, args.spec, args.model
    )
    .as_bytes())?;
    mirror.serve(args.address);
    Ok(())
}
