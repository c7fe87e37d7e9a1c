//! A Parquet file yields the same operations as the same table in CSV.

#![cfg(feature = "parquet")]

mod support;

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use support::{Imported, block, get, key, put, run_bytes, run_csv, same};
use treering_traces::Op;
use treering_traces::OpKind::{Delete, Get, Put};
use treering_traces::import::{Format, ImportOptions, import};

fn run_parquet(columns: Option<&str>, content: &[u8]) -> Imported {
    let options = ImportOptions {
        columns: columns.map(Into::into),
        ..ImportOptions::default()
    };
    run_bytes(Format::Parquet, content, &options)
}

/// The values of one optional column; `None` is a null.
enum Column<'a> {
    Int(Vec<Option<i32>>),
    Long(Vec<Option<i64>>),
    Double(Vec<Option<f64>>),
    Text(Vec<Option<&'a str>>),
}

/// Writes a file of `groups` identical row groups.
fn write(schema: &str, groups: usize, compression: Compression, columns: &[Column<'_>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    fn split<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        let levels = values.iter().map(|v| i16::from(v.is_some())).collect();
        (values.iter().copied().flatten().collect(), levels)
    }
    for _ in 0..groups {
        let mut group = file.next_row_group().unwrap();
        for column in columns {
            let mut out = group.next_column().unwrap().unwrap();
            match column {
                Column::Int(values) => {
                    let (values, levels) = split(values);
                    let typed = out.typed::<Int32Type>();
                    typed.write_batch(&values, Some(&levels), None).unwrap();
                }
                Column::Long(values) => {
                    let (values, levels) = split(values);
                    let typed = out.typed::<Int64Type>();
                    typed.write_batch(&values, Some(&levels), None).unwrap();
                }
                Column::Double(values) => {
                    let (values, levels) = split(values);
                    let typed = out.typed::<DoubleType>();
                    typed.write_batch(&values, Some(&levels), None).unwrap();
                }
                Column::Text(values) => {
                    let (values, levels) = split(values);
                    let values: Vec<_> = values.into_iter().map(Into::into).collect();
                    let typed = out.typed::<ByteArrayType>();
                    typed.write_batch(&values, Some(&levels), None).unwrap();
                }
            }
            out.close().unwrap();
        }
        group.close().unwrap();
    }
    file.close().unwrap();
    bytes
}

fn zstd() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

#[test]
fn columns_of_the_pyarrow_sample_are_found_by_name() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/blocks.parquet");
    let mut ops = Vec::new();
    let options = ImportOptions::default();
    let report = import(Format::Parquet, &sample, &options, &mut |op: &Op| {
        ops.push(op.clone());
        Ok(())
    })
    .unwrap();
    let expected = [
        block(Put, 0, 0, 0),
        block(Put, 0, 1, 0),
        block(Get, 1, 5, 1_000_000),
        block(Delete, 0, 1, 2_000_000),
    ];
    assert_eq!(ops, expected);
    assert_eq!((report.lines, report.devices), (3, 2));
}

#[test]
fn csv_column_specifications_give_the_same_operations_for_parquet() {
    let schema = "message trace { optional double t; optional binary what (UTF8); \
                  optional int64 id; optional int32 len; optional int32 ttl; }";
    let bytes = write(
        schema,
        1,
        Compression::SNAPPY,
        &[
            Column::Double(vec![Some(0.5), Some(1.0), Some(4.25)]),
            Column::Text(vec![Some("set"), Some("add"), Some("get")]),
            Column::Long(vec![Some(258), Some(7), Some(258)]),
            Column::Int(vec![Some(99), Some(5), None]),
            Column::Int(vec![Some(2), None, None]),
        ],
    );
    let spec = "time=t,op=what,key=id:int,value=len,ttl=ttl";
    let csv = "t,what,id,len,ttl\n0.5,set,258,99,2\n1,add,7,5,\n4.25,get,258,,\n";
    let (expected, _) = run_csv(spec, csv).unwrap();
    same(run_parquet(Some(spec), &bytes), &expected);
    assert_eq!(expected.len(), 4, "including the delete of the expired key");
    assert_eq!(expected[0].key, key(0, 258));
    // Columns by number, and keys as text. Without `:text`, the keys would again be numbers.
    let spec = "time=1:s,op=2,key=3:text,value=4";
    let (expected, _) = run_csv(spec, csv).unwrap();
    same(run_parquet(Some(spec), &bytes), &expected);
    assert_eq!(expected[0], put("258", 99, Some(0)));
    assert_eq!(expected[2], get("258", Some(3_750_000_000)));
}

#[test]
fn timestamp_types_set_the_unit_and_row_groups_are_read_in_order() {
    for (unit, ns) in [("MILLIS", 1_000_000), ("MICROS", 1000), ("NANOS", 1)] {
        let schema = format!(
            "message trace {{ optional int64 time (TIMESTAMP({unit}, true)); \
             optional int32 op; optional int64 offset; optional int32 size; }}"
        );
        let bytes = write(
            &schema,
            2,
            zstd(),
            &[
                Column::Long(vec![Some(1000), Some(1003)]),
                Column::Int(vec![Some(1), Some(0)]),
                Column::Long(vec![Some(4096), Some(0)]),
                Column::Int(vec![Some(4096), Some(1)]),
            ],
        );
        let group = [block(Put, 0, 1, 0), block(Get, 0, 0, 3 * ns)];
        let expected = [group.clone(), group].concat();
        let report = same(run_parquet(None, &bytes), &expected);
        assert_eq!(report.lines, 4);
        // The file may also be compressed as a whole.
        let packed = zstd::encode_all(&bytes[..], 1).unwrap();
        same(run_parquet(None, &packed), &expected);
    }
}

/// A small file of key-value operations.
fn small() -> Vec<u8> {
    let schema = "message trace { optional binary op (UTF8); optional binary key (UTF8); \
                  optional int32 value; }";
    let columns = [
        Column::Text(vec![Some("set"), Some("get"), Some("delete")]),
        Column::Text(vec![Some("a"), Some("b"), None]),
        Column::Int(vec![Some(9), None, Some(-1)]),
    ];
    write(schema, 2, zstd(), &columns)
}

#[test]
fn damaged_files_and_unknown_columns_are_refused() {
    let refused = |columns: Option<&str>, content: &[u8], expected: &str| {
        let found = run_parquet(columns, content).unwrap_err().to_string();
        let is_sentence = found.contains(expected) && !found.contains('\n');
        assert!(is_sentence, "{found}\n{expected}");
    };
    let good = small();
    for damaged in [
        &b""[..],
        b"PAR1",
        b"hello, world",
        &good[..good.len() - 9],
        &[7; 4000],
    ] {
        refused(
            None,
            damaged,
            "input, footer: expected a Parquet file, found ",
        );
    }
    refused(
        Some("op=op,key=id"),
        &good,
        "expected one column id for key, found 0 among op, key",
    );
    refused(
        Some("op=1,key=4"),
        &good,
        "expected one column 4 for key, found 0",
    );
    refused(Some("op=op"), &good, "either offset and size, or key");
    refused(Some("op=op,key=key,value=op"), &good, "every column once");
    refused(
        Some("op=value,key=key"),
        &good,
        "row 1: expected an operation's name, found `9`",
    );
    let bad_size = "op=op,key=key,scan=value";
    assert!(
        run_parquet(Some(bad_size), &good).is_ok(),
        "the scan length is read only on scans"
    );
    let lists = "message trace { optional binary op (UTF8); repeated int32 key; }";
    let ops = Column::Text(vec![Some("get")]);
    let schema = Arc::new(parse_message_type(lists).unwrap());
    assert_eq!(schema.get_fields().len(), 2);
    let empty = {
        let mut bytes = Vec::new();
        let file = SerializedFileWriter::new(&mut bytes, schema, Default::default()).unwrap();
        file.close().unwrap();
        bytes
    };
    refused(
        None,
        &empty,
        "expected a column of single values, found key of structs or lists",
    );
    let other = write(
        "message t { optional binary name (UTF8); }",
        1,
        zstd(),
        &[ops],
    );
    refused(
        None,
        &other,
        "expected columns named op and either offset and size, or key",
    );
    let options = ImportOptions::default();
    let found = run_bytes(Format::Spc, &good, &options)
        .unwrap_err()
        .to_string();
    assert!(found.contains("(the input reads as parquet)"), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn damaged_input_never_makes_the_parquet_importer_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        skip_bad in 0..3u64,
    ) {
        let mut bytes = small();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let options = ImportOptions { skip_bad, ..ImportOptions::default() };
        if let Err(error) = run_bytes(Format::Parquet, &bytes, &options) {
            let text = error.to_string();
            prop_assert!(text.contains("expected") && !text.contains('\n'), "{}", text);
        }
    }
}
