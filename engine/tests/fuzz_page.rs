//! Runs the fuzz targets on many seeds: a short and reproducible version of a fuzzing campaign.
//! `TREERING_FUZZ_CASES` is the number of cases, `TREERING_FUZZ_SEED` the first seed.

mod fuzz;
mod support;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::node::PageLayout;

use fuzz::page::{self, Verdict};
use fuzz::store;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")),
        Err(_) => default,
    }
}

/// Runs a target on the requested number of inputs. A panic names its seed.
fn many<T>(
    cases: u64,
    target: impl Fn(&[u8]) -> T + std::panic::RefUnwindSafe,
    mut seen: impl FnMut(T),
) {
    let first = number("TREERING_FUZZ_SEED", 0);
    for seed in first..first + cases {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut data = vec![0; rng.random_range(20..600)];
        rng.fill(&mut data[..]);
        let run = std::panic::catch_unwind(|| target(&data));
        seen(run.unwrap_or_else(|_| panic!("seed {seed}")));
    }
}

#[test]
fn pages_from_disk_never_panic_and_accepted_ones_behave_like_maps() {
    let cases = number("TREERING_FUZZ_CASES", 6_000);
    let mut seen = std::collections::BTreeMap::new();
    many(cases, page::run, |(layout, verdict)| {
        *seen.entry((layout.name(), verdict as u8)).or_insert(0) += 1;
    });
    for layout in PageLayout::ALL {
        for verdict in [Verdict::Refused, Verdict::Unsound, Verdict::Sound] {
            let count = seen.get(&(layout.name(), verdict as u8)).copied();
            // Some cases use features of their own layout.
            let share = count.unwrap_or(0) * PageLayout::ALL.len() as u64 * 100 / cases;
            assert!(
                share >= 4 || cases < 1000,
                "{layout:?}, {verdict:?}: {seen:?}"
            );
        }
    }
}

#[test]
fn a_store_with_damaged_leaves_returns_results_or_typed_errors() {
    let cases = number("TREERING_FUZZ_CASES", 6_000) / 20;
    let (mut failed, mut answered) = (0, 0);
    many(cases, store::run, |failures| {
        failed += u64::from(failures > 0);
        answered += u64::from(failures == 0);
    });
    assert!(failed * 20 >= cases && answered > 0, "{failed}, {answered}");
}

/// Short, empty and uniform inputs, which a fuzzer tries first.
#[test]
fn every_input_is_a_valid_case() {
    for len in 0..300 {
        for byte in [0, 1, 0x7f, 0xff] {
            page::run(&vec![byte; len]);
        }
    }
}
