//! The table as Parquet: one row group, texts as UTF-8, counts as 64-bit integers, other figures as
//! doubles; every column may be null. The bytes depend on the table only.

use super::table::Table;
use crate::failure::Failure;

/// The table as a Parquet file; `None` if this build has no Parquet.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: &Table) -> Result<Option<Vec<u8>>, Failure> {
    Ok(None)
}

#[cfg(feature = "parquet")]
pub(super) use written::parquet;

#[cfg(feature = "parquet")]
mod written {
    use std::sync::Arc;

    use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
    use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use ::parquet::errors::ParquetError;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
    use ::parquet::schema::types::Type;
    use serde_json::Value;

    use super::{Failure, Table};
    use crate::figures::Kind;

    /// The table as a Parquet file.
    ///
    /// # Errors
    /// If the crate cannot write it.
    pub(in crate::sweep_cmd) fn parquet(table: &Table) -> Result<Option<Vec<u8>>, Failure> {
        let written = write(table);
        let failure = |e| Failure::cannot_run(format!("results.parquet: {e}"));
        written.map(Some).map_err(failure)
    }

    fn write(table: &Table) -> Result<Vec<u8>, ParquetError> {
        let fields: Result<Vec<_>, ParquetError> = (table.columns.iter())
            .map(|(name, kind)| field(name, *kind).map(Arc::new))
            .collect();
        let schema = Type::group_type_builder("sweep")
            .with_fields(fields?)
            .build()?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("treering version ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::SNAPPY)
            .build();
        let mut bytes = Vec::new();
        let mut file =
            SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (at, (_, kind)) in table.columns.iter().enumerate() {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            fill(&mut column, *kind, table.rows.iter().map(|row| &row[at]))?;
            column.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(bytes)
    }

    fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Count => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }

    fn fill<'a>(
        column: &mut SerializedColumnWriter<'_>,
        kind: Kind,
        cells: impl Iterator<Item = &'a Value>,
    ) -> Result<(), ParquetError> {
        match kind {
            Kind::Text => {
                let text = |value: &Value| {
                    value
                        .as_str()
                        .map(|text| ByteArray::from(text.as_bytes().to_vec()))
                };
                let (levels, values) = split(cells, text);
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&values, Some(&levels), None)
            }
            Kind::Count => {
                let (levels, values) = split(cells, Value::as_i64);
                column
                    .typed::<Int64Type>()
                    .write_batch(&values, Some(&levels), None)
            }
            Kind::Real => {
                let (levels, values) = split(cells, Value::as_f64);
                column
                    .typed::<DoubleType>()
                    .write_batch(&values, Some(&levels), None)
            }
        }
        .map(drop)
    }

    /// The definition level of each cell, 1 if it has a value, and the values.
    fn split<'a, T>(
        cells: impl Iterator<Item = &'a Value>,
        value: impl Fn(&Value) -> Option<T>,
    ) -> (Vec<i16>, Vec<T>) {
        let cells: Vec<Option<T>> = cells.map(value).collect();
        let levels = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        (levels, cells.into_iter().flatten().collect())
    }
}
