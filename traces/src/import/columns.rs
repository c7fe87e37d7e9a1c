//! The column specification of `csv` and `parquet`: which column holds what, and in which unit.
//!
//! ```text
//! spec   = item { "," item }
//! item   = field "=" column [ ":" unit ]
//!        | "sep" "=" ( comma | tab | space | semicolon | pipe )
//!                                      comma by default; space is any white space
//! column = a number from 1 on | the column's name in the header line
//!
//! field    unit (the first is the default)
//! time     s | ms | us | ns | ticks (100 ns)
//! op       words | w1 (1 write, 0 read) | r1 (1 read, 0 write) | scsi (code in hexadecimal)
//! offset   bytes | sectors (512) | kib | blocks (4096)   \  a block request, split into
//! size     bytes | sectors (512) | kib | blocks (4096)   /  blocks of 4 KiB
//! device   any text                                      distinguishes devices
//! key      auto | text | hex (bytes) | int               a key-value operation
//! value    bytes                                         value length of a put
//! scan     records                                       length of a scan; 1 without a column
//! client   any text
//! ttl      s | ms | us | ns                              life of a put's key; 0 or blank: forever
//! ```
//!
//! An `int` key is a number, stored as 8 bytes, big-endian. The identifiers of `oracle-general`,
//! `lcs` and `rocksdb` are stored in the same way. With `auto`, a key is an `int` if it is digits
//! without leading zeros and below 2^64, and text otherwise. So equal identifiers give equal keys
//! in every format.
//!
//! `op` is required, and either `key` or both `offset` and `size`. Without `value`, puts have the
//! value size that the options give. With `words`, 0 and 1 mean the same as with `w1`.
//!
//! | trace | `--columns` |
//! |---|---|
//! | SNIA SYSTOR'17 | `time=1:s,op=3,device=4,offset=5:bytes,size=6:bytes` |
//! | Alibaba 2020 | `device=1,op=2,offset=3:bytes,size=4:bytes,time=5:us` |
//! | Tencent CBS | `time=1:s,offset=2:sectors,size=3:sectors,op=4:w1,device=5` |
//! | CloudPhysics CSV | `time=2:s,op=3:scsi,size=4:bytes,offset=5:sectors` |
//! | FIU (SNIA) | `sep=space,time=1:ns,offset=4:sectors,size=5:sectors,op=6` |
//! | FEMU replayer | `time=1:ms,device=2,offset=3:bytes,size=4:bytes,op=5:r1` |
//! | Twitter (by hand) | `time=1:s,key=2,value=4,client=5,op=6,ttl=7` |
//!
//! A `parquet` file uses the same grammar. It needs no `sep`.
//!
//! With a header line, columns can be named:
//! `time=Timestamp:s,op=IOType,device=LUN,offset=Offset,size=Size`.

use crate::TraceError;

/// What a column can hold. The discriminants index arrays of [`FIELDS`] places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Field {
    Time,
    Op,
    Offset,
    Size,
    Device,
    Key,
    Value,
    Scan,
    Client,
    Ttl,
}

pub(super) const FIELDS: usize = 10;

impl Field {
    pub(super) const ALL: [(Field, &'static str); FIELDS] = [
        (Field::Time, "time"),
        (Field::Op, "op"),
        (Field::Offset, "offset"),
        (Field::Size, "size"),
        (Field::Device, "device"),
        (Field::Key, "key"),
        (Field::Value, "value"),
        (Field::Scan, "scan"),
        (Field::Client, "client"),
        (Field::Ttl, "ttl"),
    ];
}

/// How operations are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OpCode {
    #[default]
    Words,
    WriteIsOne,
    ReadIsOne,
    Scsi,
}

/// How keys are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KeyCode {
    /// Numbers as 8 bytes, everything else as text.
    #[default]
    Auto,
    Text,
    Hex,
    Int,
}

/// The separator between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Byte(u8),
    WhiteSpace,
}

/// Where a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// By its number, counted from 0.
    Index(usize),
    /// By its name in the header line.
    Name(String),
}

/// A complete and consistent specification.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) separator: Separator,
    pub(super) places: [Option<Place>; FIELDS],
    /// Nanoseconds.
    pub(super) time_unit: u64,
    /// Nanoseconds.
    pub(super) ttl_unit: u64,
    /// Bytes.
    pub(super) offset_unit: u64,
    /// Bytes.
    pub(super) size_unit: u64,
    pub(super) op_code: OpCode,
    pub(super) key_code: KeyCode,
}

/// The largest column number. A larger one is a typing error.
const MAX_COLUMN: usize = 4096;

fn bad(why: impl Into<String>) -> TraceError {
    TraceError::BadParameter {
        name: "columns",
        why: why.into(),
    }
}

impl Spec {
    pub(super) fn parse(text: &str) -> Result<Spec, TraceError> {
        let mut spec = Spec {
            separator: Separator::Byte(b','),
            places: [const { None }; FIELDS],
            time_unit: 1_000_000_000,
            ttl_unit: 1_000_000_000,
            offset_unit: 1,
            size_unit: 1,
            op_code: OpCode::default(),
            key_code: KeyCode::default(),
        };
        for item in text.split(',').map(str::trim) {
            let Some((name, rest)) = item.split_once('=') else {
                return Err(bad(format!("expected FIELD=COLUMN[:UNIT], found `{item}`")));
            };
            if name == "sep" {
                spec.separator = separator(rest)?;
            } else {
                spec.field(name, rest)?;
            }
        }
        spec.check()?;
        Ok(spec)
    }

    /// Returns the specification of a table whose columns are named like the fields.
    #[cfg(feature = "parquet")]
    pub(super) fn of_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<Spec, TraceError> {
        let is_field = |name: &&str| Field::ALL.iter().any(|(_, field)| field == name);
        let items: Vec<String> = names
            .filter(is_field)
            .map(|name| format!("{name}={name}"))
            .collect();
        match items.is_empty() {
            true => Err(bad(
                "expected columns named op and either offset and size, or key; found none",
            )),
            false => Spec::parse(&items.join(",")),
        }
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.places[field as usize].is_some()
    }

    fn field(&mut self, name: &str, rest: &str) -> Result<(), TraceError> {
        let found = Field::ALL.into_iter().find(|(_, known)| *known == name);
        let Some((field, _)) = found else {
            let names = Field::ALL.map(|(_, name)| name).join(", ");
            return Err(bad(format!(
                "expected one of {names} or sep, found `{name}`"
            )));
        };
        let (column, unit) = match rest.rsplit_once(':') {
            Some((column, unit)) => (column, Some(unit)),
            None => (rest, None),
        };
        let place = match column.parse::<usize>() {
            Ok(number @ 1..=MAX_COLUMN) => Place::Index(number - 1),
            Ok(number) => {
                return Err(bad(format!(
                    "expected a column from 1 to {MAX_COLUMN} for {name}, found {number}"
                )));
            }
            Err(_) if column.is_empty() => {
                return Err(bad(format!("expected a column for {name}, found nothing")));
            }
            Err(_) => Place::Name(column.into()),
        };
        if self.has(field) {
            return Err(bad(format!("expected {name} once, found it twice")));
        }
        if self.places.contains(&Some(place.clone())) {
            return Err(bad(format!(
                "expected every column once, found {column} twice"
            )));
        }
        self.places[field as usize] = Some(place);
        match unit {
            Some(unit) => self.unit(field, name, unit),
            None => Ok(()),
        }
    }

    fn unit(&mut self, field: Field, name: &str, unit: &str) -> Result<(), TraceError> {
        fn one_of<T: Copy>(name: &str, unit: &str, known: &[(&str, T)]) -> Result<T, TraceError> {
            known
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, value)| *value)
                .ok_or_else(|| {
                    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                    let names = if names.is_empty() {
                        "no unit".into()
                    } else {
                        names.join(", ")
                    };
                    bad(format!("expected {names} for {name}, found `{unit}`"))
                })
        }
        const LENGTHS: [(&str, u64); 4] = [
            ("bytes", 1),
            ("sectors", 512),
            ("kib", 1024),
            ("blocks", 4096),
        ];
        const TIMES: [(&str, u64); 5] = [
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1000),
            ("ns", 1),
            ("ticks", 100),
        ];
        match field {
            Field::Time => self.time_unit = one_of(name, unit, &TIMES)?,
            Field::Ttl => self.ttl_unit = one_of(name, unit, &TIMES[..4])?,
            Field::Offset => self.offset_unit = one_of(name, unit, &LENGTHS)?,
            Field::Size => self.size_unit = one_of(name, unit, &LENGTHS)?,
            Field::Op => {
                let codes = [
                    ("words", OpCode::Words),
                    ("w1", OpCode::WriteIsOne),
                    ("r1", OpCode::ReadIsOne),
                    ("scsi", OpCode::Scsi),
                ];
                self.op_code = one_of(name, unit, &codes)?;
            }
            Field::Key => {
                let codes = [
                    ("auto", KeyCode::Auto),
                    ("text", KeyCode::Text),
                    ("hex", KeyCode::Hex),
                    ("int", KeyCode::Int),
                ];
                self.key_code = one_of(name, unit, &codes)?;
            }
            Field::Value => one_of(name, unit, &[("bytes", ())])?,
            Field::Scan => one_of(name, unit, &[("records", ())])?,
            Field::Device | Field::Client => one_of::<()>(name, unit, &[])?,
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TraceError> {
        if !self.has(Field::Op) {
            return Err(bad("expected a column for op, found none"));
        }
        let block = (self.has(Field::Offset), self.has(Field::Size));
        match (block, self.has(Field::Key)) {
            ((true, true), false) | ((false, false), true) => {}
            _ => return Err(bad("expected either offset and size, or key")),
        }
        let stray = Field::ALL.into_iter().find(|&(field, _)| {
            let of_keys = matches!(
                field,
                Field::Value | Field::Scan | Field::Client | Field::Ttl
            );
            self.has(field)
                && if self.has(Field::Key) {
                    field == Field::Device
                } else {
                    of_keys
                }
        });
        match stray {
            Some((_, name)) if self.has(Field::Key) => Err(bad(format!(
                "expected {name} with offset and size, found it with key"
            ))),
            Some((_, name)) => Err(bad(format!(
                "expected {name} with key, found it with offset and size"
            ))),
            None => Ok(()),
        }
    }
}

fn separator(name: &str) -> Result<Separator, TraceError> {
    Ok(match name {
        "comma" => Separator::Byte(b','),
        "tab" => Separator::Byte(b'\t'),
        "semicolon" => Separator::Byte(b';'),
        "pipe" => Separator::Byte(b'|'),
        "space" => Separator::WhiteSpace,
        _ => {
            return Err(bad(format!(
                "expected comma, tab, space, semicolon or pipe for sep, found `{name}`"
            )));
        }
    })
}
