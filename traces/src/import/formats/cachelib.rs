//! CacheLib (cachebench) key-value traces.
//!
//! ```text
//! key,op,size,op_count,key_size[,ttl]                                                 2022, 2023
//! 1668757755,SET,82,1,40,3600
//!
//! op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase                  2024
//! 604038471,82131353f9ddc8c6,48,GET,1,87,1,0,366387042,3003229276
//! ```
//!
//! A header line names the columns. Their order, and which further columns there are, depends on
//! the year of publication. `key`, `op` and `size` (bytes of the value) are required. Three columns
//! are optional: `op_time` in seconds; `op_count`, how often the operation is repeated, 1 by
//! default; and `ttl` in seconds, after which a put's key expires, where 0 or blank means never.
//! Without a header line the order is the one of the two whose `op` column holds an operation in
//! the first line. The traces of 2022 and 2023 have no times, so their keys never expire. Keys are
//! hashes and are used unchanged; `key_size` (of the original key) is ignored.
//!
//! Source: CacheLib, `cachelib/cachebench/workload/KVReplayGenerator.h` (the order of 2022), its
//! documentation, "Cachebench FB HW evaluation", and its sample traces.

use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::{number, size, time};
use crate::import::plugin::TextFormat;
use crate::import::words::{Meaning, keeps_expiry, word};

/// The most repetitions of one operation in one second. A larger number is a damaged line.
const MAX_COUNT: u64 = 1_000_000;

/// Where the columns are, counted from 0.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: Option<usize>,
    key: usize,
    op: usize,
    count: Option<usize>,
    size: usize,
    ttl: Option<usize>,
}

/// The columns of 2022 and 2023.
const FIRST: Columns = Columns {
    time: None,
    key: 0,
    op: 1,
    count: Some(3),
    size: 2,
    ttl: Some(5),
};

/// The columns of 2024.
const SECOND: Columns = Columns {
    time: Some(0),
    key: 1,
    op: 3,
    count: Some(4),
    size: 5,
    ttl: Some(7),
};

#[derive(Debug, Default)]
pub(super) struct Cachelib {
    columns: Option<Columns>,
}

impl Cachelib {
    /// Finds the columns in a header line. Returns `None` if the line is not a header.
    fn header(line: &[u8]) -> Result<Option<Columns>, Fault> {
        let find = |name: &[u8]| {
            line.split(|&b| b == b',')
                .position(|c| c.trim_ascii() == name)
        };
        match (find(b"key"), find(b"op"), find(b"size")) {
            (Some(key), Some(op), Some(size)) => Ok(Some(Columns {
                time: find(b"op_time"),
                key,
                op,
                count: find(b"op_count"),
                size,
                ttl: find(b"ttl"),
            })),
            (None, None, _) => Ok(None),
            _ => Err(Fault::bad(
                "a header line with at least key, op and size",
                line,
            )),
        }
    }
}

impl Cachelib {
    /// Finds the columns from the first line's content. CacheLib's operations have names of several
    /// letters; a single letter belongs to another format.
    fn without_header(line: &[u8]) -> Columns {
        let op = line.split(|&b| b == b',').nth(FIRST.op).unwrap_or_default();
        match word(op.trim_ascii()) {
            Some(Meaning::Op(_)) if op.len() > 1 => FIRST,
            _ => SECOND,
        }
    }
}

impl TextFormat for Cachelib {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                if let Some(columns) = Self::header(line)? {
                    self.columns = Some(columns);
                    return Ok(());
                }
                *self.columns.insert(Self::without_header(line))
            }
        };
        let (mut at, mut key, mut op, mut count, mut value) = (None, None, None, None, None);
        let mut ttl = &b""[..];
        for (i, column) in line.split(|&b| b == b',').enumerate() {
            let column = column.trim_ascii();
            match i {
                _ if i == columns.key => key = Some(column),
                _ if i == columns.op => op = Some(column),
                _ if i == columns.size => value = Some(column),
                _ if Some(i) == columns.time => at = Some(column),
                _ if Some(i) == columns.count => count = Some(column),
                _ if Some(i) == columns.ttl => ttl = column,
                _ => {}
            }
        }
        let (Some(key), Some(op), Some(value)) = (key, op, value) else {
            return Err(Fault::bad("columns key, op and size", line));
        };
        let times = match count {
            None => 1,
            Some(count) => match number(count, "an operation count")? {
                times @ 1..=MAX_COUNT => times,
                _ => return Err(Fault::bad(format!("a count from 1 to {MAX_COUNT}"), count)),
            },
        };
        let value_len = size(value, "a size in bytes")?;
        let time_ns = at
            .map(|at| time(at, 1_000_000_000, "a time in seconds"))
            .transpose()?;
        let ttl = match ttl {
            b"" => Ttl::Never,
            _ => Ttl::seconds(number(ttl, "a TTL in seconds")?),
        };
        match word(op) {
            None => Err(Fault::bad(
                "an operation (GET, GET_LEASE, SET, DELETE, …)",
                op,
            )),
            Some(Meaning::NoCounterpart) => {
                out.leave_out(op);
                Ok(())
            }
            Some(Meaning::Op(kind)) => out.key_op(
                KeyOp {
                    kind,
                    key,
                    value_len,
                    scan_len: 1,
                    client: b"",
                    time_ns,
                    ttl: if keeps_expiry(op) { Ttl::Keep } else { ttl },
                },
                times,
            ),
        }
    }
}
