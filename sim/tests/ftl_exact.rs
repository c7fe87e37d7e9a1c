//! The FTL compared with the closed forms of [`treering_sim::predict::ftl`], which are exact for
//! many blocks: errors are below 1 %.
//!
//! This grid is a part of the full one, which takes 15 s in a release build. To print the full one:
//! `cargo test --release -p treering-sim --test ftl_exact -- --ignored --nocapture`

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_sim::predict::ftl as exact;
use treering_sim::ssd::{Frontiers, Ftl, FtlConfig, GcPolicy};

const TOLERANCE: f64 = 0.01;

/// A drive of about `blocks` erase blocks whose physical size is `alpha` times its logical size, to
/// within one page.
fn drive(blocks: u32, b: u32, over_provisioning: f64, policy: GcPolicy) -> Ftl {
    let pages = f64::from(blocks) * f64::from(b);
    let logical = (pages / (1.0 + over_provisioning)).round() as u64;
    let mut config = FtlConfig::new(logical, b, over_provisioning, policy);
    config.log_blocks = blocks;
    config.seed = 7;
    Ftl::new(&config).unwrap()
}

/// Fills the drive, writes `turns` times its size to warm up, then measures as many writes. `next`
/// chooses the pages.
fn measured(ftl: &mut Ftl, turns: u64, mut next: impl FnMut(&mut StdRng) -> u32) -> f64 {
    let pages = ftl.logical_pages();
    let mut rng = StdRng::seed_from_u64(1);
    (0..pages).for_each(|page| ftl.write(page as u32));
    (0..turns * pages).for_each(|_| ftl.write(next(&mut rng)));
    ftl.reset_counters();
    (0..turns * pages).for_each(|_| ftl.write(next(&mut rng)));
    ftl.check().unwrap();
    ftl.counters().write_amplification().unwrap()
}

fn uniform(ftl: &mut Ftl, turns: u64) -> f64 {
    let pages = ftl.logical_pages() as u32;
    measured(ftl, turns, |rng| rng.random_range(0..pages))
}

fn form(policy: GcPolicy, alpha: f64, b: u32) -> f64 {
    match policy {
        GcPolicy::Greedy => exact::greedy(alpha, b),
        GcPolicy::Fifo => exact::fifo(alpha),
        GcPolicy::DChoices(1) => exact::random(alpha),
        GcPolicy::DChoices(d) => exact::d_choices(alpha, b, d),
        other => panic!("{other} has no closed form"),
    }
}

const POLICIES: [GcPolicy; 4] = [
    GcPolicy::Greedy,
    GcPolicy::Fifo,
    GcPolicy::RANDOM,
    GcPolicy::DChoices(3),
];

/// Measures one cell of the grid and prints it. Returns a description of any error.
fn cell(
    policy: GcPolicy,
    over_provisioning: f64,
    b: u32,
    blocks: u32,
    turns: u64,
) -> Option<String> {
    let mut ftl = drive(blocks, b, over_provisioning, policy);
    let found = uniform(&mut ftl, turns);
    let expected = form(policy, ftl.alpha(), b);
    let error = found / expected - 1.0;
    let line = format!(
        "{:<12} over-provisioning {:>4.1} % b {b:>3}: measured {found:>7.4}, exact {expected:>7.4}, error {:>6.2} %",
        policy.to_string(),
        100.0 * over_provisioning,
        100.0 * error
    );
    println!("{line}");
    (error.abs() > TOLERANCE).then_some(line)
}

#[test]
fn uniform_writes_match_the_closed_forms() {
    let wrong: Vec<_> = [(0.10, 32), (0.28, 64), (0.50, 32)]
        .into_iter()
        .flat_map(|(op, b)| POLICIES.map(|policy| (policy, op, b)))
        .filter_map(|(policy, op, b)| cell(policy, op, b, 2000, 10))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "slow: 15 s in a release build, minutes in a debug build; CI runs it"]
fn uniform_writes_match_the_closed_forms_on_the_full_grid() {
    let mut wrong = Vec::new();
    for policy in POLICIES {
        for op in [0.07, 0.10, 0.125, 0.20, 0.28, 0.50] {
            for b in [32, 64, 256] {
                wrong.extend(cell(policy, op, b, 2000, 10));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn hot_and_cold_writes_match_their_equation() {
    for (pages, writes) in [(0.2, 0.8), (0.1, 0.9), (0.5, 0.8)] {
        for op in [0.10, 0.28] {
            let mut ftl = drive(2000, 32, op, GcPolicy::Fifo);
            let all = ftl.logical_pages() as u32;
            let hot = (f64::from(all) * pages) as u32;
            let found = measured(&mut ftl, 5, |rng| {
                if rng.random_bool(writes) {
                    rng.random_range(0..hot)
                } else {
                    rng.random_range(hot..all)
                }
            });
            let classes = [(pages, writes), (1.0 - pages, 1.0 - writes)];
            let expected = exact::fifo_mixed(ftl.alpha(), &classes);
            assert!(
                (found / expected - 1.0).abs() < TOLERANCE,
                "{writes} of writes to {pages} of pages, {op}: {found}, expected {expected}"
            );
        }
    }
}

fn every_policy() -> [GcPolicy; 6] {
    [
        GcPolicy::Greedy,
        GcPolicy::Fifo,
        GcPolicy::RANDOM,
        GcPolicy::DChoices(3),
        GcPolicy::CostBenefit,
        GcPolicy::WindowedGreedy(8),
    ]
}

#[test]
fn sequential_overwrites_move_nothing() {
    // Random choices (d = 1, 3) may pick a block that has no invalid pages.
    for policy in every_policy() {
        if matches!(policy, GcPolicy::DChoices(_)) {
            continue;
        }
        let mut ftl = drive(200, 64, 0.1, policy);
        for _ in 0..5 {
            for page in 0..ftl.logical_pages() {
                ftl.write(page as u32);
            }
        }
        assert!(ftl.gc_reached());
        assert_eq!(ftl.counters().write_amplification(), Some(1.0), "{policy}");
        ftl.check().unwrap();
    }
}

#[test]
fn nothing_is_moved_after_all_pages_are_trimmed() {
    for policy in every_policy() {
        let mut ftl = drive(200, 64, 0.1, policy);
        uniform(&mut ftl, 2);
        for page in 0..ftl.logical_pages() {
            assert!(ftl.trim(page as u32));
            assert!(!ftl.trim(page as u32), "trimmed twice");
        }
        assert_eq!(ftl.in_use(), 0);
        ftl.check().unwrap();
        ftl.reset_counters();
        for page in 0..ftl.logical_pages() {
            ftl.write(page as u32);
        }
        if !matches!(policy, GcPolicy::DChoices(_)) {
            assert_eq!(ftl.counters().gc_writes, 0, "{policy}");
        }
        ftl.check().unwrap();
    }
}

#[test]
fn a_drive_that_is_only_read_programs_nothing() {
    let mut ftl = drive(200, 64, 0.1, GcPolicy::Greedy);
    uniform(&mut ftl, 1);
    ftl.reset_counters();
    for page in 0..ftl.logical_pages() {
        assert!(ftl.lookup(page as u32).is_some());
    }
    assert_eq!(ftl.counters().write_amplification(), None);
    assert_eq!(ftl.counters().erases, 0);
}

#[test]
fn the_map_stays_correct_under_random_writes_and_trims() {
    for (i, policy) in every_policy().into_iter().enumerate() {
        for frontiers in [Frontiers::Shared, Frontiers::Separate] {
            let mut config = FtlConfig::new(2000, 16, 0.15, policy);
            config.reserve_blocks = 4;
            config.frontiers = frontiers;
            let mut ftl = Ftl::new(&config).unwrap();
            let mut mapped = vec![false; 2000];
            let mut rng = StdRng::seed_from_u64(i as u64);
            for step in 0..40_000 {
                let page = rng.random_range(0..2000_u32);
                if rng.random_bool(0.2) {
                    assert_eq!(ftl.trim(page), mapped[page as usize]);
                    mapped[page as usize] = false;
                } else {
                    ftl.write_with(page, (page % 3) as u8, &mut ());
                    mapped[page as usize] = true;
                }
                if step % 500 == 0 {
                    ftl.check()
                        .unwrap_or_else(|e| panic!("{policy}, step {step}: {e}"));
                }
            }
            for page in 0..2000 {
                assert_eq!(ftl.lookup(page).is_some(), mapped[page as usize]);
            }
            let by_class: u64 = ftl.counters().gc_by_class.iter().sum();
            assert_eq!(by_class, ftl.counters().gc_writes);
        }
    }
}

/// TRIM turns logical pages into spare ones. The mean number of pages in use decides (Frankie,
/// Hughes, Kurkoski 2012).
#[test]
fn trimmed_pages_act_as_over_provisioning() {
    let mut ftl = drive(2000, 32, 0.10, GcPolicy::Greedy);
    let all = ftl.logical_pages() as u32;
    let kept = (f64::from(all) * 0.8) as u32;
    for page in 0..all {
        ftl.write(page);
    }
    for page in kept..all {
        ftl.trim(page);
    }
    let mut rng = StdRng::seed_from_u64(3);
    let turns = 5 * u64::from(kept);
    (0..turns).for_each(|_| ftl.write(rng.random_range(0..kept)));
    ftl.reset_counters();
    (0..turns).for_each(|_| ftl.write(rng.random_range(0..kept)));
    let found = ftl.counters().write_amplification().unwrap();
    let expected = exact::greedy(ftl.log_pages() as f64 / ftl.in_use() as f64, 32);
    assert!(
        (found / expected - 1.0).abs() < TOLERANCE,
        "{found}, expected {expected}"
    );
}

#[test]
fn tables_take_at_most_16_bytes_per_mapped_page() {
    for policy in every_policy() {
        for b in [32, 256] {
            let ftl = drive(2000, b, 0.07, policy);
            let each = ftl.memory_bytes() as f64 / ftl.logical_pages() as f64;
            assert!(
                each <= 16.0,
                "{policy}, {b} pages per block: {each} bytes per page"
            );
        }
    }
}

#[test]
fn invalid_geometries_are_refused() {
    let good = FtlConfig::new(1000, 16, 0.1, GcPolicy::Greedy);
    let bad = [
        FtlConfig {
            logical_pages: 0,
            ..good.clone()
        },
        FtlConfig {
            logical_pages: 1 << 30,
            ..good.clone()
        },
        FtlConfig {
            pages_per_block: 0,
            ..good.clone()
        },
        FtlConfig {
            pages_per_block: 1 << 16,
            ..good.clone()
        },
        FtlConfig {
            log_blocks: 63,
            ..good.clone()
        },
        FtlConfig {
            reserve_blocks: 0,
            ..good.clone()
        },
        FtlConfig {
            frontiers: Frontiers::Separate,
            reserve_blocks: 2,
            ..good.clone()
        },
        FtlConfig {
            policy: GcPolicy::DChoices(0),
            ..good.clone()
        },
    ];
    for config in bad {
        let error = Ftl::new(&config).unwrap_err().to_string();
        assert!(error.contains("expected"), "{error}");
    }
    assert!(Ftl::new(&good).is_ok());
}
