//! Any delimited text with one operation per line, described by a column specification. It covers
//! SYSTOR '17, Alibaba, Tencent, FIU and most traces without a format of their own.
//! [`columns`](crate::import::columns) has the grammar and a specification for each of these.
//!
//! The first line is a header if the specification names columns. It is also a header if no column
//! that should hold a number begins like one or, without such columns, if `op` holds no operation.
//! Quoted fields are not supported. Operations with an unknown name have no counterpart: they are
//! left out, counted and named.

use crate::TraceError;
use crate::import::columns::{FIELDS, Field, Place, Separator, Spec};
use crate::import::emit::{Emit, Fault};
use crate::import::fields::words_of;
use crate::import::plugin::TextFormat;
use crate::import::table::{Fields, Table};
use crate::import::words::Meaning;

#[derive(Debug)]
pub(super) struct Csv {
    table: Table,
    /// The field in each column, up to the last column that matters.
    roles: Vec<Option<Field>>,
    begun: bool,
}

impl Csv {
    pub(super) fn new(columns: Option<&str>) -> Result<Csv, TraceError> {
        let Some(columns) = columns else {
            return Err(TraceError::BadParameter {
                name: "columns",
                why: "expected for the csv format, such as \
                      time=1:s,op=3,offset=5:bytes,size=6:bytes; found none"
                    .into(),
            });
        };
        let spec = Spec::parse(columns)?;
        Ok(Csv {
            table: Table::new(spec),
            roles: Vec::new(),
            begun: false,
        })
    }

    /// Finds the columns. Returns `true` if `line` is a header.
    fn begin(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let columns: Vec<&[u8]> = match self.table.spec.separator {
            Separator::Byte(byte) => line.split(|&b| b == byte).map(<[u8]>::trim_ascii).collect(),
            Separator::WhiteSpace => words_of(line).collect(),
        };
        let mut by_name = false;
        // If the first line was bad and skipped, it has left roles behind.
        self.roles.clear();
        let all = [
            Field::Time,
            Field::Op,
            Field::Offset,
            Field::Size,
            Field::Device,
            Field::Key,
        ]
        .into_iter()
        .chain([Field::Value, Field::Scan, Field::Client, Field::Ttl]);
        for field in all {
            let index = match &self.table.spec.places[field as usize] {
                None => continue,
                Some(Place::Index(index)) => *index,
                Some(Place::Name(name)) => {
                    by_name = true;
                    columns
                        .iter()
                        .position(|column| *column == name.as_bytes())
                        .ok_or_else(|| {
                            Fault::bad(format!("a header line with a column {name}"), line)
                        })?
                }
            };
            if self.roles.len() <= index {
                self.roles.resize(index + 1, None);
            }
            if self.roles[index].replace(field).is_some() {
                return Err(Fault::bad("every column of the specification once", line));
            }
        }
        Ok(by_name || self.looks_like_header(&columns))
    }

    fn looks_like_header(&self, columns: &[&[u8]]) -> bool {
        let column_of = |field| {
            let index = self.roles.iter().position(|role| *role == Some(field))?;
            columns.get(index).copied()
        };
        let numbers: Vec<&[u8]> = [Field::Time, Field::Offset, Field::Size, Field::Value]
            .into_iter()
            .filter_map(column_of)
            .collect();
        if numbers.is_empty() {
            let op = column_of(Field::Op).unwrap_or_default();
            return self
                .table
                .meaning(op)
                .is_ok_and(|meaning| meaning == Meaning::NoCounterpart);
        }
        let like_number =
            |c: &[u8]| matches!(c.first(), Some(b'0'..=b'9' | b'.' | b'-' | b'+') | None);
        !numbers.into_iter().any(like_number)
    }

    /// Returns the fields of a line, indexed by field; empty where the specification has no column.
    fn fields<'l>(&self, line: &'l [u8]) -> Result<Fields<'l>, Fault> {
        let mut fields = [&[][..]; FIELDS];
        let mut columns = 0;
        let mut take = |column: &'l [u8]| {
            if let Some(field) = self.roles[columns] {
                fields[field as usize] = column;
            }
            columns += 1;
        };
        match self.table.spec.separator {
            Separator::Byte(byte) => line
                .split(|&b| b == byte)
                .take(self.roles.len())
                .for_each(|column| take(column.trim_ascii())),
            Separator::WhiteSpace => words_of(line).take(self.roles.len()).for_each(take),
        }
        if columns < self.roles.len() {
            return Err(Fault::bad(
                format!("at least {} columns", self.roles.len()),
                line,
            ));
        }
        Ok(fields)
    }
}

impl TextFormat for Csv {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        if !self.begun {
            let header = self.begin(line)?;
            self.begun = true;
            if header {
                return Ok(());
            }
        }
        let fields = self.fields(line)?;
        self.table.row(&fields, out)
    }
}
