//! Parquet files: columnar tables, one operation a row.
//!
//! Columns are described as for `csv` ([`columns`](super::columns)). Either a specification says
//! which column holds what, by name or number, or the columns are named like the fields (`time`,
//! `op`, `key`, `value`, …). Other columns are not read. Two things come from the file itself: a
//! time stored as a TIMESTAMP has the unit of that type, whatever the specification says; and a
//! null is an empty field. Booleans are 0 and 1. Columns inside structs, lists and maps cannot be
//! named.
//!
//! A row is converted to the text that a CSV file would hold, so that the same table gives the same
//! operations in either format. Row groups are read in order, a thousand rows at a time. A
//! compressed file (`.parquet.gz`) is first unpacked into a temporary file, because Parquet is read
//! from the end.
//!
//! Source: Apache Parquet, <https://parquet.apache.org/docs/file-format/>, "Logical Types". The
//! `parquet` crate does the reading.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use ::parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field as Value;
use ::parquet::record::reader::RowIter;
use ::parquet::schema::types::{Type, TypePtr};

use super::columns::{Field, Place, Spec};
use super::emit::{Emit, Fault};
use super::table::{Fields, Table};
use crate::TraceError;
use crate::input::{self, Compression};

/// An open Parquet file.
pub(super) struct Rows {
    table: Table,
    rows: RowIter<'static>,
    /// The field of each column that is read.
    roles: Vec<Field>,
    /// The text of a row, and the end of each column in it.
    text: Vec<u8>,
    ends: Vec<usize>,
    pub(super) total: u64,
}

impl Rows {
    /// Opens a file. Without a specification, the columns must be named like the fields.
    ///
    /// # Errors
    /// The file cannot be read, it is not a Parquet file, or the specification does not fit its
    /// columns.
    pub(super) fn open(path: &Path, columns: Option<&str>) -> Result<Rows, TraceError> {
        let name = path.display().to_string();
        let bad = |why: ParquetError| damaged(&name, "footer", &why);
        let file = seekable(path)?;
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(bad)?;
        let about = reader.metadata().file_metadata();
        let total = u64::try_from(about.num_rows()).unwrap_or(0);
        let schema = about.schema_descr().root_schema();
        let mut spec = match columns {
            Some(columns) => Spec::parse(columns)?,
            None => Spec::of_names(schema.get_fields().iter().map(|column| column.name()))?,
        };
        let mut chosen = Vec::new();
        for (index, column) in schema.get_fields().iter().enumerate() {
            let is_here = |place: &Place| match place {
                Place::Index(i) => *i == index,
                Place::Name(name) => name == column.name(),
            };
            for (field, _) in Field::ALL {
                if spec.places[field as usize].as_ref().is_some_and(is_here) {
                    chosen.push((field, Arc::clone(column)));
                }
            }
        }
        check(&spec, &chosen, schema)?;
        for (field, column) in &chosen {
            if let (Field::Time, Some(unit)) = (field, timestamp_unit(column)) {
                spec.time_unit = unit;
            }
        }
        let (roles, columns): (Vec<Field>, Vec<TypePtr>) = chosen.into_iter().unzip();
        let projection = Type::group_type_builder(schema.name())
            .with_fields(columns)
            .build()
            .map_err(bad)?;
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(Rows {
            table: Table::new(spec),
            rows: guarded(|| rows.project(Some(projection))).map_err(bad)?,
            roles,
            text: Vec::new(),
            ends: Vec::new(),
            total,
        })
    }

    /// Emits the next row. Returns `false` after the last.
    ///
    /// # Errors
    /// A row that has no valid meaning; later rows may still be read. [`Fault::Stop`] if the file
    /// is damaged.
    pub(super) fn next_row(&mut self, file: &str, out: &mut Emit<'_>) -> Result<bool, Fault> {
        let rows = &mut self.rows;
        let row = match guarded(|| rows.next().transpose()) {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(false),
            Err(why) => return Err(Fault::Stop(damaged(file, "rows", &why))),
        };
        self.text.clear();
        self.ends.clear();
        for (_, value) in row.get_column_iter() {
            append(value, &mut self.text)?;
            self.ends.push(self.text.len());
        }
        let mut fields = Fields::default();
        let mut start = 0;
        for (field, end) in self.roles.iter().zip(&self.ends) {
            fields[*field as usize] = &self.text[start..*end];
            start = *end;
        }
        self.table.row(&fields, out)?;
        Ok(true)
    }
}

/// Returns the file, or a temporary file with its unpacked content.
fn seekable(path: &Path) -> Result<File, TraceError> {
    let io = |source| TraceError::Io {
        file: path.display().to_string(),
        source,
    };
    let mut file = File::open(path).map_err(io)?;
    let mut start = Vec::new();
    (&mut file).take(6).read_to_end(&mut start).map_err(io)?;
    file.rewind().map_err(io)?;
    if Compression::of(&start) == Compression::None {
        return Ok(file);
    }
    let mut unpacked = tempfile::tempfile().map_err(io)?;
    let mut input = input::open(path)?;
    io::copy(&mut input, &mut unpacked).map_err(io)?;
    unpacked.rewind().map_err(io)?;
    Ok(unpacked)
}

/// Checks that every column of the specification exists once and holds single values.
fn check(spec: &Spec, chosen: &[(Field, TypePtr)], schema: &Type) -> Result<(), TraceError> {
    let bad = |why: String| TraceError::BadParameter {
        name: "columns",
        why,
    };
    for (field, name) in Field::ALL {
        let found = chosen.iter().filter(|(chosen, _)| *chosen == field).count();
        let place = match &spec.places[field as usize] {
            Some(Place::Name(column)) => column.clone(),
            Some(Place::Index(index)) => (index + 1).to_string(),
            None => continue,
        };
        if found != 1 {
            let names: Vec<&str> = schema.get_fields().iter().map(|c| c.name()).collect();
            return Err(bad(format!(
                "expected one column {place} for {name}, found {found} among {}",
                names.join(", ")
            )));
        }
    }
    for (_, column) in chosen {
        let about = column.get_basic_info();
        let is_repeated = about.has_repetition() && about.repetition() == Repetition::REPEATED;
        if !column.is_primitive() || is_repeated {
            return Err(bad(format!(
                "expected a column of single values, found {} of structs or lists",
                column.name()
            )));
        }
    }
    Ok(())
}

/// Returns the unit of a timestamp column, in ns.
fn timestamp_unit(column: &Type) -> Option<u64> {
    let about = column.get_basic_info();
    match (about.logical_type_ref(), about.converted_type()) {
        (Some(LogicalType::Timestamp(about_it)), _) => Some(match about_it.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1000,
            TimeUnit::NANOS => 1,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(1000),
        // The crate converts the 96-bit times of old writers to milliseconds.
        _ if column.get_physical_type() == Physical::INT96 => Some(1_000_000),
        _ => None,
    }
}

/// Appends the text that a CSV file would hold for the value.
fn append(value: &Value, text: &mut Vec<u8>) -> Result<(), Fault> {
    let written = match value {
        Value::Null => Ok(()),
        Value::Bool(value) => write!(text, "{}", u8::from(*value)),
        Value::Byte(value) => write!(text, "{value}"),
        Value::Short(value) => write!(text, "{value}"),
        Value::Int(value) | Value::Date(value) | Value::TimeMillis(value) => {
            write!(text, "{value}")
        }
        Value::Long(value)
        | Value::TimeMicros(value)
        | Value::TimestampMillis(value)
        | Value::TimestampMicros(value) => write!(text, "{value}"),
        Value::UByte(value) => write!(text, "{value}"),
        Value::UShort(value) => write!(text, "{value}"),
        Value::UInt(value) => write!(text, "{value}"),
        Value::ULong(value) => write!(text, "{value}"),
        Value::Float16(value) => write!(text, "{value}"),
        Value::Float(value) => write!(text, "{value}"),
        Value::Double(value) => write!(text, "{value}"),
        Value::Decimal(_) => write!(text, "{value}"),
        Value::Str(value) => text.write_all(value.as_bytes()),
        Value::Bytes(value) => text.write_all(value.data()),
        Value::Group(_) | Value::ListInternal(_) | Value::MapInternal(_) => {
            return Err(Fault::bad("a single value", value.to_string().as_bytes()));
        }
    };
    written.map_err(|why| Fault::bad("a value", why.to_string().as_bytes()))
}

thread_local! {
    /// Whether panics of this thread are caught and reported as errors.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read` and returns a panic of the crate as an error. Damaged files violate some of its
/// assertions (version 59: "column start and length should not be negative"). The panic's message
/// goes into the error, not to stderr.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !GUARDED.get() {
                before(about);
            }
        }));
    });
    GUARDED.set(true);
    // The state after a panic is not used again, because the panic ends the import.
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    read.unwrap_or_else(|panicked| {
        let text = match panicked.downcast_ref::<String>() {
            Some(text) => text.as_str(),
            None => panicked.downcast_ref().copied().unwrap_or("damage"),
        };
        Err(ParquetError::General(text.into()))
    })
}

fn damaged(file: &str, place: &str, why: &ParquetError) -> TraceError {
    let found = why.to_string().replace('\n', " ");
    TraceError::Bad {
        file: file.into(),
        place: place.into(),
        expected: "a Parquet file".into(),
        found,
    }
}
