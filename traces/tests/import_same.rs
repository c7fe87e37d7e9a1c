//! The same operations, written in every format that can express them, import identically.
//!
//! The `csv` import with exact columns is the reference. Before writing, anything that a format
//! cannot express is removed from the operations and from the reference:
//!
//! - the part of a time below the format's unit (`unit_ns`);
//! - discards, which many block traces do not record;
//! - devices other than the first, if a file holds the trace of one device;
//! - clients and times to live.
//!
//! Key-value formats fall into two groups. A numeric key (oracle-general, lcs, block-cache; 8 bytes
//! of hexadecimal in rocksdb) becomes 8 big-endian bytes, as `csv` encodes numeric keys, so that
//! numeric order is key order. A text key (twitter, cachelib, ycsb, `key=…:text` of `csv`) stays
//! text, because a cache's key `0017` is not `17`.

mod support;

use std::fmt::Write;

use proptest::prelude::*;
use support::binary::{CacheRequest, Event, blktrace, lcs, oracle};
use support::{run_bytes, run_csv};
use treering_traces::Op;
use treering_traces::OpKind::{self, Delete, Get, Put};
use treering_traces::import::{Format, ImportOptions, OracleOp};

const SECOND: u64 = 1_000_000_000;

/// A request of a block trace. Offset and length are in sectors of 512 bytes.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: OpKind,
    device: u32,
    sector: u64,
    sectors: u64,
    time_ns: u64,
}

/// How a block format writes requests, and what it can express.
struct Block {
    name: &'static str,
    format: Format,
    unit_ns: u64,
    discards: bool,
    devices: bool,
    write: fn(&[Request]) -> Vec<u8>,
}

/// Writes one line per request.
fn lines(requests: &[Request], line: impl Fn(&Request) -> String) -> Vec<u8> {
    requests
        .iter()
        .map(|r| line(r) + "\n")
        .collect::<String>()
        .into()
}

/// Returns the word that matches the request's kind: get, put or delete.
fn one_of<T>(kind: OpKind, [get, put, delete]: [T; 3]) -> T {
    match kind {
        Get => get,
        Put => put,
        _ => delete,
    }
}

fn vscsi(requests: &[Request], version: u8) -> Vec<u8> {
    let record = |r: &Request| {
        let cmd = one_of(r.kind, [0x28u16, 0x2a, 0x42]).to_le_bytes();
        let cmd = [cmd[0], cmd[1], 0, version];
        let (serial, groups) = ([1, 0, 0, 0], [1, 0, 0, 0]);
        let len = (r.sectors as u32 * 512).to_le_bytes();
        let head = match version {
            1 => [serial, len, groups, cmd].concat(),
            _ => [cmd, serial, len, groups].concat(),
        };
        let (lbn, time) = (r.sector.to_le_bytes(), (r.time_ns / 1000).to_le_bytes());
        let tail = if version == 1 { vec![] } else { vec![0; 8] };
        [head, lbn.to_vec(), time.to_vec(), tail].concat()
    };
    requests.iter().flat_map(record).collect()
}

fn fio_2(requests: &[Request]) -> Vec<u8> {
    let mut text = String::from("fio version 2 iolog\n");
    let mut now_us = 0;
    for r in requests {
        // A wait precedes its operation. Without the first wait, the operation would have no time.
        let wait = r.time_ns / 1000 - now_us;
        now_us += wait;
        let action = one_of(r.kind, ["read", "write", "trim"]);
        let (offset, length) = (r.sector * 512, r.sectors * 512);
        writeln!(
            text,
            "f{0} wait {wait} 0\nf{0} {action} {offset} {length}",
            r.device
        )
        .unwrap();
    }
    text.into()
}

fn fio_3(requests: &[Request]) -> Vec<u8> {
    let operations = lines(requests, |r| {
        let action = one_of(r.kind, ["read", "write", "trim"]);
        let (offset, length) = (r.sector * 512, r.sectors * 512);
        format!(
            "{} f{} {action} {offset} {length}",
            r.time_ns / 1000,
            r.device
        )
    });
    [b"fio version 3 iolog\n".to_vec(), operations].concat()
}

fn blktrace_of(requests: &[Request], is_big: bool) -> Vec<u8> {
    let event = |r: &Request| Event {
        time_ns: r.time_ns,
        sector: r.sector,
        bytes: r.sectors as u32 * 512,
        // Issued requests (category 1 << 6): a read, a write, or a write that discards.
        action: 7 | (1 << 6 | one_of(r.kind, [1, 1 << 1, 1 << 1 | 1 << 13])) << 16,
        device: (8, r.device),
        tail: b"",
    };
    requests
        .iter()
        .flat_map(|r| blktrace(event(r), 7, is_big))
        .collect()
}

/// The block formats, and what they can express.
fn block_formats() -> Vec<Block> {
    let of = |name, format, unit_ns, discards, devices, write| Block {
        name,
        format,
        unit_ns,
        discards,
        devices,
        write,
    };
    vec![
        of("mqsim", Format::Mqsim, 1, false, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["1", "0", ""]);
                format!(
                    "{} {} {} {} {kind}",
                    r.time_ns, r.device, r.sector, r.sectors
                )
            })
        }),
        // Milliseconds with a fraction.
        of("disksim", Format::Disksim, 1, false, true, |requests| {
            lines(requests, |r| {
                let (ms, fraction) = (r.time_ns / 1_000_000, r.time_ns % 1_000_000);
                let kind = one_of(r.kind, ["1", "0", ""]);
                format!(
                    "{ms}.{fraction:06} {} {} {} {kind}",
                    r.device, r.sector, r.sectors
                )
            })
        }),
        of("msr", Format::Msr, 100, false, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["Read", "Write", ""]);
                let ticks = 128_166_372_000_000_000 + r.time_ns / 100;
                let (offset, length) = (r.sector * 512, r.sectors * 512);
                format!("{ticks},h,{},{kind},{offset},{length},26", r.device)
            })
        }),
        of("spc", Format::Spc, 1000, false, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["r", "W", ""]);
                let (s, us) = (r.time_ns / SECOND, r.time_ns % SECOND / 1000);
                format!(
                    "{},{},{},{kind},{s}.{us:06}",
                    r.device,
                    r.sector,
                    r.sectors * 512
                )
            })
        }),
        of(
            "cloudphysics",
            Format::Cloudphysics,
            SECOND,
            true,
            false,
            |requests| {
                lines(requests, |r| {
                    let kind = one_of(r.kind, ["28", "2a", "42"]);
                    format!(
                        "1,{},{kind},{},{}",
                        r.time_ns / SECOND,
                        r.sectors * 512,
                        r.sector
                    )
                })
            },
        ),
        of("vscsi v1", Format::Vscsi, 1000, true, false, |r| {
            vscsi(r, 1)
        }),
        of("vscsi v2", Format::Vscsi, 1000, true, false, |r| {
            vscsi(r, 2)
        }),
        of("alibaba", Format::Alibaba, 1000, false, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["R", "W", ""]);
                let us = 1_577_808_000_000_000 + r.time_ns / 1000;
                format!(
                    "{},{kind},{},{},{us}",
                    r.device,
                    r.sector * 512,
                    r.sectors * 512
                )
            })
        }),
        of(
            "tencent",
            Format::Tencent,
            SECOND,
            false,
            true,
            |requests| {
                lines(requests, |r| {
                    let kind = one_of(r.kind, ["0", "1", ""]);
                    let s = 1_538_323_200 + r.time_ns / SECOND;
                    format!("{s},{},{},{kind},{}", r.sector, r.sectors, r.device)
                })
            },
        ),
        of("systor", Format::Systor, 1, false, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["R", "W", ""]);
                let (s, ns) = (1_456_135_200 + r.time_ns / SECOND, r.time_ns % SECOND);
                let (offset, length) = (r.sector * 512, r.sectors * 512);
                format!("{s}.{ns:09},0.1,{kind},{},{offset},{length}", r.device)
            })
        }),
        of("fio v2", Format::Fio, 1000, true, true, fio_2),
        of("fio v3", Format::Fio, 1000, true, true, fio_3),
        of("blkparse", Format::Blkparse, 1, true, true, |requests| {
            lines(requests, |r| {
                let kind = one_of(r.kind, ["R", "WS", "D"]);
                let (s, ns) = (r.time_ns / SECOND, r.time_ns % SECOND);
                let (device, sector, count) = (r.device, r.sector, r.sectors);
                format!("8,{device} 0 1 {s}.{ns:09} 7 D {kind} {sector} + {count} [p]")
            })
        }),
        of("blktrace", Format::Blktrace, 1, true, true, |r| {
            blktrace_of(r, false)
        }),
        of(
            "blktrace, big-endian",
            Format::Blktrace,
            1,
            true,
            true,
            |r| blktrace_of(r, true),
        ),
    ]
}

/// Imports the requests as `csv`.
fn block_reference(requests: &[Request]) -> Vec<Op> {
    let text = lines(requests, |r| {
        let kind = one_of(r.kind, ["read", "write", "discard"]);
        format!(
            "{},{kind},{},{},{}",
            r.time_ns, r.sector, r.sectors, r.device
        )
    });
    let spec = "time=1:ns,op=2,offset=3:sectors,size=4:sectors,device=5";
    run_csv(spec, std::str::from_utf8(&text).unwrap())
        .unwrap()
        .0
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let kind = prop::sample::select(vec![Get, Put, Delete]);
    let one = (kind, 0..3u32, 0..1u64 << 30, 1..200u64, 0..3 * SECOND);
    // Begin with an operation that every format can express.
    prop::collection::vec(one, 1..40).prop_map(|drawn| {
        let first = (Put, 0, 8, 8, 0);
        let mut time_ns = 0;
        std::iter::once(first)
            .chain(drawn)
            .map(|(kind, device, sector, sectors, step_ns)| {
                time_ns += step_ns;
                Request {
                    kind,
                    device,
                    sector,
                    sectors,
                    time_ns,
                }
            })
            .collect()
    })
}

/// An operation of a key-value trace.
#[derive(Clone, Copy, Debug)]
struct KeyOp {
    kind: OpKind,
    id: u64,
    size: u32,
    client: u32,
    ttl_s: u32,
    time_s: u32,
}

/// How a key-value format writes operations, and what it can express.
struct KeyValue {
    name: &'static str,
    format: Format,
    /// Whether keys are numbers, not text.
    numbers: bool,
    times: bool,
    clients: bool,
    ttls: bool,
    write: fn(&[KeyOp]) -> Vec<u8>,
}

fn key_lines(ops: &[KeyOp], line: impl Fn(&KeyOp) -> String) -> Vec<u8> {
    ops.iter()
        .map(|op| line(op) + "\n")
        .collect::<String>()
        .into()
}

fn cache_request(op: &KeyOp) -> CacheRequest {
    CacheRequest {
        time_s: 1000 + op.time_s,
        id: op.id,
        size: op.size,
        op: one_of(op.kind, [1, 3, 9]),
        tenant: op.client,
        ttl_s: if op.kind == Put { op.ttl_s } else { 0 },
    }
}

/// The key-value formats, and what they can express.
fn key_value_formats() -> Vec<KeyValue> {
    let of = |name, format, numbers, [times, clients, ttls]: [bool; 3], write| KeyValue {
        name,
        format,
        numbers,
        times,
        clients,
        ttls,
        write,
    };
    vec![
        of(
            "oracle-general",
            Format::OracleGeneral,
            true,
            [true, false, false],
            |ops| {
                ops.iter()
                    .flat_map(|op| oracle(cache_request(op)))
                    .collect()
            },
        ),
        of("lcs v2", Format::Lcs, true, [true, true, false], |ops| {
            lcs(2, &ops.iter().map(cache_request).collect::<Vec<_>>())
        }),
        of("lcs v3", Format::Lcs, true, [true, true, true], |ops| {
            lcs(3, &ops.iter().map(cache_request).collect::<Vec<_>>())
        }),
        of(
            "rocksdb",
            Format::Rocksdb,
            true,
            [true, false, false],
            |ops| {
                key_lines(ops, |op| {
                    let kind = one_of(op.kind, [0, 1, 2]);
                    format!(
                        "{:#018x} {kind} 0 {} {}000000",
                        op.id,
                        op.size,
                        1000 + op.time_s
                    )
                })
            },
        ),
        of(
            "twitter",
            Format::Twitter,
            false,
            [true, true, true],
            |ops| {
                key_lines(ops, |op| {
                    let kind = one_of(op.kind, ["get", "set", "delete"]);
                    let ttl = if op.kind == Put { op.ttl_s } else { 0 };
                    let (time, key, size, client) = (op.time_s, op.id, op.size, op.client);
                    format!("{time},{key},20,{size},{client},{kind},{ttl}")
                })
            },
        ),
        of(
            "cachelib, 2024",
            Format::Cachelib,
            false,
            [true, false, true],
            |ops| {
                key_lines(ops, |op| {
                    let kind = one_of(op.kind, ["GET", "SET", "DELETE"]);
                    let (time, key, size, ttl) = (op.time_s, op.id, op.size, op.ttl_s);
                    format!("{time},{key},20,{kind},1,{size},0,{ttl},7,8")
                })
            },
        ),
        // The traces of 2022 have no times, so nothing expires.
        of(
            "cachelib, 2022",
            Format::Cachelib,
            false,
            [false, false, false],
            |ops| {
                key_lines(ops, |op| {
                    let kind = one_of(op.kind, ["GET", "SET", "DELETE"]);
                    format!("{},{kind},{},1,20,{}", op.id, op.size, op.ttl_s)
                })
            },
        ),
    ]
}

/// Imports the operations as `csv`.
fn key_reference(ops: &[KeyOp], form: &KeyValue) -> Vec<Op> {
    let text = key_lines(ops, |op| {
        let kind = one_of(op.kind, ["get", "put", "delete"]);
        let (time, key, size, client, ttl) = (op.time_s, op.id, op.size, op.client, op.ttl_s);
        format!("{time},{kind},{key},{size},{client},{ttl}")
    });
    let mut spec = String::from("op=2,value=4");
    spec += if form.numbers {
        ",key=3"
    } else {
        ",key=3:text"
    };
    spec += if form.times { ",time=1:s" } else { "" };
    spec += if form.clients { ",client=5" } else { "" };
    spec += if form.ttls { ",ttl=6" } else { "" };
    run_csv(&spec, std::str::from_utf8(&text).unwrap())
        .unwrap()
        .0
}

fn key_ops() -> impl Strategy<Value = Vec<KeyOp>> {
    let kind = prop::sample::select(vec![Get, Put, Delete]);
    // Few distinct keys, so that later puts and deletes fall within times to live.
    let id = prop_oneof![0..6u64, any::<u64>()];
    let one = (kind, id, 0..5000u32, 0..4u32, 0..6u32, 0..4u32);
    prop::collection::vec(one, 1..60).prop_map(|drawn| {
        let mut time_s = 0;
        drawn
            .into_iter()
            .map(|(kind, id, size, client, ttl_s, step_s)| {
                time_s += step_s;
                KeyOp {
                    kind,
                    id,
                    size,
                    client,
                    ttl_s,
                    time_s,
                }
            })
            .collect()
    })
}

/// The same operations with their numeric keys written as text.
fn as_text(ops: Vec<Op>) -> Vec<Op> {
    let text = |key: Vec<u8>| {
        let number = u64::from_be_bytes(key.try_into().expect("a number's 8 bytes"));
        number.to_string().into_bytes()
    };
    ops.into_iter()
        .map(|op| Op {
            key: text(op.key),
            ..op
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_block_format_imports_the_same_requests_identically(requests in requests()) {
        for format in block_formats() {
            let carried: Vec<Request> = requests
                .iter()
                .filter(|r| format.discards || r.kind != Delete)
                .filter(|r| format.devices || r.device == 0)
                .map(|r| Request { time_ns: r.time_ns / format.unit_ns * format.unit_ns, ..*r })
                .collect();
            let bytes = (format.write)(&carried);
            let found = run_bytes(format.format, &bytes, &ImportOptions::default());
            let (ops, report) = found.unwrap();
            prop_assert_eq!(&ops, &block_reference(&carried), "{}", format.name);
            prop_assert!(report.warnings.is_empty(), "{}: {:?}", format.name, report.warnings);
        }
    }

    #[test]
    fn every_key_value_format_imports_the_same_operations_identically(ops in key_ops()) {
        let options = |format| ImportOptions {
            oracle_op: (format == Format::OracleGeneral).then_some(OracleOp::Recorded),
            ..ImportOptions::default()
        };
        for format in key_value_formats() {
            let bytes = (format.write)(&ops);
            let (found, _) = run_bytes(format.format, &bytes, &options(format.format)).unwrap();
            prop_assert_eq!(&found, &key_reference(&ops, &format), "{}", format.name);
            if format.numbers {
                // Written as text, the keys must also match the reference of the text formats.
                let text = KeyValue { numbers: false, ..format };
                prop_assert_eq!(as_text(found), key_reference(&ops, &text), "{}", text.name);
            }
        }
    }
}
