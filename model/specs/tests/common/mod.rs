//! What tests of episodes have in common.

use std::fmt::Debug;
use std::path::Path;

use treering_engine::Result;
use treering_specs::conformance::situations::Cover;
use treering_specs::{Config, Mirror};

/// Runs episodes for the smoke model in `config`, below `specs/`. No situation may occur for which
/// `why_not` has a reason, and of the others more than `least` per cent must.
pub(crate) fn check_situations<M: Mirror, E: Debug, R: Debug>(
    config: &str,
    run: impl FnOnce(&M) -> Result<Cover<E, R>>,
    why_not: fn(&str, &str) -> Option<&'static str>,
    least: usize,
) {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let smoke = Config::read(&specs.join(config)).unwrap();
    let cover = run(&M::from_config(&smoke).unwrap()).unwrap();
    assert!(cover.refusal.is_none(), "{:?}", cover.refusal);
    let wrong = cover.wrong(why_not);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let (met, may) = (cover.met(), cover.possible(why_not));
    println!("{met} of {may} situations, in {} events", cover.events);
    assert!(met * 100 > may * least, "{met} of {may}");
}
