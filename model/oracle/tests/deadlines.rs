//! A program that is told to stop must stop, report that, and have done part of each thing. The
//! clocks here count calls.

use treering_oracle::campaign::{self, Plan};
use treering_oracle::concurrent;
use treering_oracle::crash::{self, Effort, Phase};
use treering_oracle::deadline::Deadline;
use treering_oracle::engines::{BTree, Geometry, PmTree};
use treering_oracle::generate::{self, Trouble};
use treering_oracle::session::execute_until;
use treering_oracle::{Engine, damage, execute};

use std::time::Duration;

fn engines() -> [Box<dyn Engine>; 2] {
    let blocks = BTree::named("btree:cow", Geometry::Tiny).expect("one of ours");
    let memory = PmTree::named("ccl", Geometry::Tiny).expect("one of ours");
    [Box::new(blocks), Box::new(memory)]
}

#[test]
fn a_program_stops_between_two_operations() {
    for engine in engines() {
        let program = generate::program(&*engine, 1, 200, Trouble::ANY);
        let all = execute(&*engine, &program).unwrap();
        let until = Deadline::after_questions(50);
        let some = execute_until(&*engine, &program, &until).unwrap();
        assert_eq!((some.operations, until.has_struck()), (50, true));
        let until = Deadline::after_questions(1_000);
        let whole = execute_until(&*engine, &program, &until).unwrap();
        assert_eq!((&whole, until.has_struck()), (&all, false));
    }
}

#[test]
fn short_budgets_still_crash_a_program_and_its_recovery() {
    for engine in engines() {
        let program = generate::on_a_built_store(&*engine, 1, 200, Trouble::ANY);
        let effort = Effort::on(engine.disk());
        let all = crash::explore(&*engine, &program, effort, 1).unwrap();
        let until = Deadline::after_questions(100);
        let some = crash::explore_until(&*engine, &program, effort, 1, &until).unwrap();
        assert!(until.has_struck());
        // 40 operations, the states of 70 crashes, and then second crashes until the time is up.
        assert!(some.tally.operations <= 40, "{some:?}");
        assert!((40..=170).contains(&some.judged), "{some:?}");
        let again = |(phase, _): &&(Phase, _)| *phase == Phase::Recovery;
        assert!(some.points.keys().any(|point| again(&point)), "{some:?}");
        assert!(
            some.judged < all.judged,
            "{} of {}",
            some.judged,
            all.judged
        );
        let until = Deadline::never();
        let whole = crash::explore_until(&*engine, &program, effort, 1, &until).unwrap();
        assert_eq!(whole, all);
    }
}

#[test]
fn short_budgets_damage_a_smaller_store_fewer_times() {
    for engine in engines() {
        let until = Deadline::after_questions(20);
        let some = damage::run_until(&*engine, 3, 1_500, &until).unwrap();
        assert!(until.has_struck());
        assert_eq!(
            some.operations, 9,
            "the first, and one for each of 8 questions"
        );
        assert!((1..=20).contains(&some.cases()), "{some:?}");
    }
}

#[test]
fn a_campaign_reports_how_many_programs_it_interrupted() {
    for engine in engines() {
        let plan = |at_most| Plan {
            runs: 3,
            at_most,
            ..Plan::default()
        };
        let stopped = plan(Some(Duration::ZERO));
        let outcome = campaign::differential(&*engine, &stopped, &|_| {});
        assert_eq!((outcome.runs, outcome.interrupted), (3, 3));
        assert_eq!(outcome.done.operations, 0);
        let outcome = campaign::crashes(&*engine, &stopped, Effort::default(), &|_| {});
        assert_eq!((outcome.runs, outcome.interrupted), (3, 3));
        let outcome = campaign::differential(&*engine, &plan(None), &|_| {});
        assert_eq!((outcome.runs, outcome.interrupted), (3, 0));
    }
}

#[test]
fn clients_stop_at_the_deadline_and_their_calls_are_judged() {
    for engine in engines() {
        let plan = |at_most| concurrent::Plan {
            calls: 2_000,
            histories: 2,
            at_most,
            ..concurrent::Plan::default()
        };
        let report = concurrent::run(&*engine, &plan(Some(Duration::ZERO))).unwrap();
        assert!(report.wrong.is_none(), "{:?}", report.wrong);
        assert_eq!((report.histories, report.interrupted), (2, 2));
        let report = concurrent::run(&*engine, &plan(None)).unwrap();
        assert_eq!((report.histories, report.interrupted), (2, 0));
    }
}
