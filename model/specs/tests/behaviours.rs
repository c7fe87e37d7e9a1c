//! The steps that the judges take along a recording of the healthy engine are a behaviour of the
//! spec: TLC follows them to their end. The `*_events_mutations` tests have those that it rejects.

mod behaviour;

use std::collections::BTreeSet;

use behaviour::{judged, tlc};
use treering_specs::conformance::led::Recorded;
use treering_specs::conformance::module::Verdict;
use treering_specs::conformance::{cow, layout, mini, redo, ring, shadow, snapshot};

/// TLC must follow all of these. Returns the actions that they take.
fn followed(recorded: impl IntoIterator<Item = Recorded>) -> Option<BTreeSet<&'static str>> {
    let tlc = tlc()?;
    let mut actions = BTreeSet::new();
    for recorded in recorded {
        let Recorded {
            module,
            actions: taken,
            others,
        } = recorded;
        println!(
            "{}: {} steps, of which {others} are not the spec's; {} bytes",
            module.spec,
            module.events,
            module.tla.len()
        );
        assert!(module.events > 20 && others * 4 < module.events);
        let verdict = judged(&module, &tlc, &Verdict::Followed);
        if verdict != Verdict::Followed {
            let at = match verdict {
                Verdict::RefusedAt(at) => at,
                other => panic!("{other:?}"),
            };
            let step = module.tla.split_once(&format!("nth = {at} /\\")).unwrap().1;
            let end = step.find(&format!("nth = {} /\\", at + 1));
            panic!(
                "step {at} of {}: {:.6000}",
                module.spec,
                &step[..end.unwrap_or(step.len())]
            );
        }
        actions.extend(taken);
    }
    println!("{actions:?}");
    Some(actions)
}

#[test]
fn steps_of_the_redo_log_are_followed() {
    let episodes = [redo::Variant::Mixed, redo::Variant::Torn]
        .into_iter()
        .flat_map(|variant| {
            let setups = redo::setups(variant).unwrap();
            (0..2).map(move |seed| redo::episode::recorded(&setups[0], seed).unwrap().unwrap())
        });
    followed(episodes);
}

#[test]
fn steps_of_copy_on_write_are_followed() {
    let episodes = [cow::Variant::Each, cow::Variant::Checkpoints]
        .into_iter()
        .flat_map(|variant| {
            let setup = cow::Setup::new(variant).unwrap();
            (0..2).map(move |seed| cow::episode::recorded(&setup, seed).unwrap().unwrap())
        });
    followed(episodes);
}

#[test]
fn steps_of_page_shadowing_are_followed() {
    let episodes = shadow::Variant::ALL.into_iter().flat_map(|variant| {
        let setups = shadow::setups(variant).unwrap();
        (0..2).map(move |seed| {
            shadow::episode::recorded(&setups[0], seed)
                .unwrap()
                .unwrap()
        })
    });
    followed(episodes);
}

#[test]
fn steps_of_the_index_snapshot_are_followed() {
    let setup = snapshot::Setup::new().unwrap();
    let episodes = [(1, None), (2, None), (3, Some(10))];
    let episodes = episodes.map(|of| snapshot::episode::recorded(&setup, of).unwrap().unwrap());
    followed(episodes);
}

#[test]
fn steps_of_leaf_layouts_are_followed() {
    let setups = layout::setups().unwrap();
    let episodes = setups.iter().enumerate();
    let episodes =
        episodes.map(|(n, setup)| layout::episode::recorded(setup, n as u64).unwrap().unwrap());
    followed(episodes);
}

#[test]
fn steps_of_mini_pages_are_followed() {
    let episodes = [1, 2].map(|clients| {
        let episode = mini::Episode::new(clients, 7);
        mini::episode::recorded(&episode, 500).unwrap()
    });
    followed(episodes);
}

#[test]
fn steps_of_the_ring_are_followed() {
    let episodes = [1, 2].map(|clients| {
        let episode = ring::Episode::new(clients, 7);
        ring::episode::recorded(&episode, 500).unwrap()
    });
    followed(episodes);
}
