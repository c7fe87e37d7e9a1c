//! Seeded bugs of the engine, and the event at which the judge must refuse each. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

use std::path::Path;
use std::sync::Mutex;

use treering_specs::check::tools;
use treering_specs::conformance::tla::{self, Verdict};
use treering_specs::conformance::{Budget, Cast, Variant, finding, run_on, setups};

/// A bug is switched on for the whole process, so the tests take turns.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_seeded_bug_is_refused_for_the_right_reason() {
    /// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 8] = [
        ("page-before-log", &[("PageWriting", "WriteBack")]),
        (
            "truncate-before-superblock",
            &[("LogTruncated", "TruncateLog")],
        ),
        // A client or write-back trusts the failed flush.
        (
            "log-acks-before-flush",
            &[
                ("Acknowledged", "Acknowledge"),
                ("Acknowledged", "reported durable"),
                ("PageWriting", "WriteBack"),
            ],
        ),
        (
            "log-retries-failed-flush",
            &[
                ("LogAppended", "AppendLog"),
                ("LogFlushBegins", "FlushLog"),
                ("Acknowledged", "Acknowledge"),
            ],
        ),
        // The page is read again, or must be durable at the end of the checkpoint.
        (
            "clean-without-write",
            &[("PageLoaded", "Reload"), ("PagesFlushed", "FlushPages")],
        ),
        (
            "redo-ignores-page-lsn",
            &[("PageRedone", "the record to be redone")],
        ),
        (
            "log-keeps-epoch",
            &[("Crashed", "log place"), ("RecoveryBegins", "log place")],
        ),
        ("checkpoint-skips-pages", &[("PagesFlushed", "FlushPages")]),
    ];
    let _alone = ALONE.lock().unwrap();
    // The tree is created without the bug, because some bugs would prevent that.
    let setups: Vec<_> = Variant::ALL.map(|v| setups(v).unwrap()).into();
    for (bug, expected) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let mut found = None;
        for stores in &setups {
            let report = run_on(stores, Cast::OneThread, 1, Budget::Episodes(200)).unwrap();
            found = found.or(report
                .refusal
                .map(|(_, refusal)| (report.episodes, refusal)));
        }
        treering_engine::choose_mutation(None);
        let (episodes, refusal) = found.unwrap_or_else(|| panic!("{bug} is accepted"));
        let (kind, why) = (refusal.entry.heard.kind(), &refusal.why);
        println!("{bug}: after {episodes} episodes at {kind}: {why}");
        assert!(
            expected.iter().any(|(k, w)| *k == kind && why.contains(w)),
            "{bug}: expected one of {expected:?}, found {kind}: {why}"
        );
    }
}

#[test]
fn a_checker_follows_a_finding_up_to_the_refused_event() {
    /// The bug, and what the refused event claims.
    const CLAIMS: [(&str, &str); 8] = [
        ("page-before-log", "WriteBack("),
        ("truncate-before-superblock", "TruncateLog"),
        ("log-acks-before-flush", ""),
        ("log-retries-failed-flush", ""),
        ("clean-without-write", ""),
        ("redo-ignores-page-lsn", "Newest(pageDev["),
        ("log-keeps-epoch", "\\E block \\in Survivors(logDev["),
        ("checkpoint-skips-pages", "FlushPages"),
    ];
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    // Neither is fetched for this test.
    let tla_mc = specs.join("target/tla-mc-0.2.2/bin/tla-mc").is_file()
        || std::env::var_os("TLA_MC").is_some();
    let tla_mc = tla_mc.then(|| tools::tla_mc(&specs, &mut |_| {}).unwrap());
    let tlc = specs.join("target/dependency").is_dir() || std::env::var_os("TLC_JAR").is_some();
    let tlc = tlc.then(|| tools::tlc(&specs, &mut |_| {}).unwrap());
    let _alone = ALONE.lock().unwrap();
    let stores = setups(Variant::InPlace).unwrap();
    for (bug, claimed) in CLAIMS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run_on(&stores, Cast::OneThread, 1, Budget::Episodes(200)).unwrap();
        let (seed, _) = report
            .refusal
            .unwrap_or_else(|| panic!("{bug} is accepted"));
        let module = finding::behaviour(&stores[report.setup], seed).unwrap();
        treering_engine::choose_mutation(None);
        let module = module.unwrap_or_else(|why| panic!("{bug}: {why}"));
        let claim = module.tla.split_once("Claim ==\n").unwrap().1;
        let claim = claim.split_once("\n\n").unwrap().0.trim();
        println!("{bug}: {} events, then {claim}", module.events);
        assert!(claim.contains(claimed), "{bug}: {claim}");
        let wanted = Verdict::RefusedAt(module.events + 1);
        if let Some(program) = &tla_mc {
            let verdict = tla::check_with_tla_mc(&module, program, &specs).unwrap();
            assert_eq!(verdict, wanted, "{bug}, tla-mc: {}", module.tla);
        }
        // TLC starts slowly.
        if let Some(tlc) = tlc.as_ref().filter(|_| bug == "page-before-log") {
            let verdict = tla::check(&module, tlc, &specs).unwrap();
            assert_eq!(verdict, wanted, "{bug}, TLC: {}", module.tla);
        }
        // Without the event that is refused, it is accepted.
        if let Some(program) = tla_mc.as_ref().filter(|_| bug == "page-before-log") {
            let allowed = tla::Module {
                tla: module.tla.replace(claim, "UNCHANGED vars"),
                ..module
            };
            let verdict = tla::check_with_tla_mc(&allowed, program, &specs).unwrap();
            assert_eq!(verdict, Verdict::Followed, "no deadlock is expected");
        }
    }
}
