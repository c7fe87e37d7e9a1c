//! Counterexamples of specs as tests of the engine: the engine without the bug does not
//! follow them to a loss.

use std::path::Path;

use treering_specs::check::configs::{BoundedModel, discover};
use treering_specs::conformance::case::{Case, CaseError, Ending};
use treering_specs::conformance::retrace::{Stage, case};

fn models(spec: &str) -> Vec<BoundedModel> {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let all = discover(&specs, &[spec]).unwrap();
    let violated = |m: &BoundedModel| m.spec == spec && m.must_violate().is_some();
    all.into_iter().filter(violated).collect()
}

fn of(model: &BoundedModel) -> Result<Case, CaseError> {
    let text = std::fs::read_to_string(&model.config.path).unwrap();
    case(&model.spec, &model.name, &model.config, &text)
}

/// How the engine should end: at which action it stops following, or that nothing is lost although
/// it follows. These bugs are in how recovery reads, or need a ring of two blocks.
const ENDS: [(&str, Option<&str>); 21] = [
    // The contract allows what happens here.
    ("published_free-reads", None),
    ("published_no-epoch", Some("WriteSuperblock")),
    ("published_no-wal-rule", Some("WriteBack")),
    ("published_trusts-what-it-reads", Some("LoadSuperblock")),
    ("acks-before-flush", Some("Acknowledge")),
    ("acks-what-came-later", Some("CompleteFlush")),
    ("checkpoint-skips-flush", Some("FlushPages")),
    ("clean-without-write", Some("WriteBack")),
    ("dirtied-moves", Some("FlushPages")),
    ("evicts-dirty", Some("Reload")),
    ("keeps-epoch", Some("WriteSuperblock")),
    ("overruns-log", None),
    ("page-before-log", Some("WriteBack")),
    ("reads-past-hole", None),
    ("recovery-skips-flush", Some("FlushPages")),
    ("redo-starts-late", Some("WriteSuperblock")),
    ("replays-old-lap", None),
    ("retries-failed-flush", Some("CompleteFlush")),
    ("skips-quiesce", Some("FlushPages")),
    ("stops-before-last", None),
    ("stops-redo-early", Some("FinishRedo")),
];

#[test]
fn the_engine_does_not_follow_a_counterexample_or_loses_nothing() {
    for model in models("WalRecovery") {
        let case = match of(&model) {
            Ok(case) => case,
            Err(why) => {
                // Only TLC finds these.
                let property = model.must_violate().unwrap();
                assert!(property.ends_with("Prop"), "{}: {why}", model.name);
                continue;
            }
        };
        assert_eq!(
            case.property,
            model.must_violate().unwrap(),
            "{}",
            model.name
        );
        assert_eq!(Case::read(&case.text()).as_ref(), Ok(&case));
        let ending = Stage::new(&case).unwrap().run().unwrap();
        let wanted = ENDS.iter().find(|(name, _)| *name == model.name);
        let found = match &ending {
            Ending::Refused { step, .. } => Some(case.steps[step - 1].action.as_str()),
            Ending::Survived => None,
            other => panic!("{}: {other:?}", model.name),
        };
        if let Some((_, action)) = wanted {
            assert_eq!(found, *action, "{}: {ending:?}", model.name);
        }
    }
}

/// The engine's ring refuses each of these at the last step.
#[test]
fn the_ring_does_not_follow_a_counterexample() {
    let mut followed = 0;
    for model in models("CircularBuffer") {
        // The plain ring waits for the head here, which takes the driver's whole patience.
        if model.name == "head-out-of-order" {
            continue;
        }
        let case = match of(&model) {
            Ok(case) => case,
            Err(CaseError::None(_)) => continue,
            Err(why) => panic!("{}: {why}", model.name),
        };
        assert_eq!(Case::read(&case.text()).as_ref(), Ok(&case));
        let ending = Stage::new(&case).unwrap().run().unwrap();
        assert!(
            matches!(ending, Ending::Refused { .. }),
            "{}: {ending:?}",
            model.name
        );
        followed += 1;
    }
    assert_eq!(followed, 12);
}

#[test]
fn a_damaged_case_is_refused_with_the_step() {
    let models = models("WalRecovery");
    let model = models.iter().find(|m| m.name == "page-before-log").unwrap();
    let good = of(model).unwrap();
    let fails = |case: &Case| match Stage::new(case) {
        Ok(_) => panic!("it is accepted"),
        Err(why) => why.to_string(),
    };

    let mut other = good.clone();
    other.steps.swap(1, 2);
    assert_eq!(
        fails(&other),
        "step 2: the spec has no step ChangePage(c1) here"
    );
    let mut other = good.clone();
    other.spec = "MiniPage".into();
    assert!(fails(&other).starts_with("MiniPage: expected a spec"));
    let mut other = good.clone();
    other.config = other.config.replace("PerBlock = 1", "PerBlock = 9");
    assert!(fails(&other).contains("PerBlock"), "{}", fails(&other));

    let newer = good.text().replace("counterexample/1", "counterexample/2");
    assert!(Case::is_one(&newer));
    let why = Case::read(&newer).unwrap_err();
    assert!(why.contains("expected the schema treering.counterexample/1"));
}
