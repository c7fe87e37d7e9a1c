//! A key is deleted once its time to live has passed, between the operations of the trace.

mod support;

use support::{get, put, run, run_csv, same};
use treering_traces::Op;
use treering_traces::OpKind::Delete;
use treering_traces::import::Format;

const SECOND: u64 = 1_000_000_000;

fn delete(key: &str, seconds: u64) -> Op {
    Op {
        kind: Delete,
        ..get(key, Some(seconds * SECOND))
    }
}

fn at(seconds: u64) -> Option<u64> {
    Some(seconds * SECOND)
}

fn twitter(lines: &[(u64, &str, &str, u64)]) -> String {
    let line =
        |(time, key, op, ttl): &(u64, &str, &str, u64)| format!("{time},{key},1,8,c,{op},{ttl}\n");
    lines.iter().map(line).collect()
}

#[test]
fn a_key_is_deleted_when_its_ttl_has_passed() {
    // `b` expires before `a`, although it was put later. `c` outlives the trace.
    let text = twitter(&[
        (0, "a", "set", 10),
        (1, "b", "set", 4),
        (2, "c", "set", 1000),
        (7, "d", "get", 0),
        (20, "d", "get", 0),
    ]);
    let expected = [
        put("a", 8, at(0)),
        put("b", 8, at(1)),
        put("c", 8, at(2)),
        delete("b", 5),
        get("d", at(7)),
        delete("a", 10),
        get("d", at(20)),
    ];
    let report = same(run(Format::Twitter, &text), &expected);
    assert_eq!(report.expired, 2);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

#[test]
fn a_key_is_deleted_before_operations_at_its_expiry_time() {
    let text = twitter(&[(0, "a", "set", 5), (4, "a", "get", 0), (5, "a", "get", 0)]);
    let expected = [
        put("a", 8, at(0)),
        get("a", at(4)),
        delete("a", 5),
        get("a", at(5)),
    ];
    same(run(Format::Twitter, &text), &expected);
}

#[test]
fn a_later_set_replaces_the_expiry_and_a_delete_cancels_it() {
    let text = twitter(&[
        (0, "renewed", "set", 5),
        (0, "forever", "set", 5),
        (0, "deleted", "add", 5),
        (1, "renewed", "cas", 8),
        (1, "forever", "set", 0),
        (1, "deleted", "delete", 0),
        (9, "x", "get", 0),
    ]);
    let expected = [
        put("renewed", 8, at(0)),
        put("forever", 8, at(0)),
        put("deleted", 8, at(0)),
        put("renewed", 8, at(1)),
        put("forever", 8, at(1)),
        delete("deleted", 1),
        delete("renewed", 9),
        get("x", at(9)),
    ];
    let report = same(run(Format::Twitter, &text), &expected);
    assert_eq!(
        report.expired, 1,
        "deletes in the trace are not counted as expiries"
    );
}

#[test]
fn appends_increments_and_gets_do_not_change_the_expiry() {
    let text = twitter(&[
        (0, "a", "set", 5),
        (1, "a", "append", 0),
        (2, "a", "incr", 100),
        (3, "a", "get", 1),
        (9, "x", "get", 0),
    ]);
    let expected = [
        put("a", 8, at(0)),
        put("a", 8, at(1)),
        put("a", 8, at(2)),
        get("a", at(3)),
        delete("a", 5),
        get("x", at(9)),
    ];
    same(run(Format::Twitter, &text), &expected);
}

#[test]
fn keys_with_equal_expiry_are_deleted_in_set_order_by_their_own_client() {
    let text = "0,z,1,8,c,set,3\n1,a,1,8,d,set,2\n1,m,1,8,c,set,2\n5,x,1,8,c,get,0\n";
    let by = |client, op: Op| Op { client, ..op };
    let expected = [
        put("z", 8, at(0)),
        by(1, put("a", 8, at(1))),
        put("m", 8, at(1)),
        delete("z", 3),
        by(1, delete("a", 3)),
        delete("m", 3),
        get("x", at(5)),
    ];
    same(run(Format::Twitter, text), &expected);
}

#[test]
fn csv_has_a_ttl_column() {
    let text = "t,op,key,len,ttl\n0,set,a,7,1500\n1,set,b,7,\n3,get,b,,\n";
    let expected = [
        put("a", 7, at(0)),
        put("b", 7, at(1)),
        Op {
            time_ns: Some(1_500_000_000),
            ..delete("a", 0)
        },
        get("b", at(3)),
    ];
    same(
        run_csv("time=1:s,op=2,key=3,value=4,ttl=5:ms", text),
        &expected,
    );
    let found = run_csv("op=1,offset=2,size=3,ttl=4", "")
        .unwrap_err()
        .to_string();
    assert!(found.contains("expected ttl with key"), "{found}");
    let found = run_csv("op=1,key=2,ttl=3:ticks", "")
        .unwrap_err()
        .to_string();
    assert!(found.contains("expected s, ms, us, ns for ttl"), "{found}");
    let found = run_csv("time=1,op=2,key=3,ttl=4", "0,set,a,soon\n")
        .unwrap_err()
        .to_string();
    assert!(found.contains("line 1: expected a time to live"), "{found}");
}

#[test]
fn a_trace_without_times_warns_that_keys_do_not_expire() {
    let text = "key,op,size,op_count,key_size,ttl\na,SET,5,1,9,60\nb,SET,5,1,9,0\na,GET,5,1,9,0\n";
    let expected = [put("a", 5, None), put("b", 5, None), get("a", None)];
    let report = same(run(Format::Cachelib, text), &expected);
    assert_eq!(
        report.warnings,
        ["1 puts have a time to live but no time to count it from: their keys do not expire"]
    );
}
