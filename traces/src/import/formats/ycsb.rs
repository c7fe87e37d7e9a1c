//! The output of YCSB's basic binding (`basicdb.verbose`, on by default).
//!
//! ```text
//! OP     table     key                      [ field=value ... ]
//! INSERT usertable user6284781860667377211 [ field0=abc field1=def ]
//! READ   usertable user8517097267634966620 [ <all fields>]
//! SCAN   usertable user42 17 [ <all fields>]
//! DELETE usertable user42
//! ```
//!
//! There are no times. READ is a get, INSERT and UPDATE are puts, and SCAN reads the number of
//! records given after the key. The value's length is the sum of all field values. Values may
//! contain spaces and `=`. If the first field is named `fieldN`, as YCSB names them, only `
//! fieldN=` begins another field; otherwise every word with a `=` does. The table's name is not
//! part of the key. Other lines that YCSB prints (properties, status, results) are skipped.
//!
//! Source: YCSB, `core/src/main/java/site/ycsb/BasicDB.java`.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::size;
use crate::import::plugin::TextFormat;

#[derive(Debug)]
pub(super) struct Ycsb;

/// The beginnings of the other lines that YCSB prints.
const OTHERS: [&[u8]; 11] = [
    b"[",
    b"\"",
    b"*",
    b"#",
    b"YCSB",
    b"Command line",
    b"Loading",
    b"Starting",
    b"DBWrapper",
    b"java ",
    b"mvn ",
];

impl TextFormat for Ycsb {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`OP table key [ field=value ... ]`";
        let mut parts = line.splitn(4, |&b| b == b' ');
        let kind = match parts.next() {
            Some(b"READ") => OpKind::Get,
            Some(b"INSERT" | b"UPDATE") => OpKind::Put,
            Some(b"DELETE") => OpKind::Delete,
            Some(b"SCAN") => OpKind::Scan,
            _ if OTHERS.iter().any(|start| line.starts_with(start)) => return Ok(()),
            _ => return Err(Fault::bad(LAYOUT, line)),
        };
        let (Some(_table), Some(key)) = (parts.next(), parts.next()) else {
            return Err(Fault::bad(LAYOUT, line));
        };
        let rest = parts.next().unwrap_or_default();
        let (mut value_len, mut scan_len) = (0, 0);
        match kind {
            OpKind::Put => value_len = values_len(rest)?,
            OpKind::Scan => {
                let count = rest.split(|&b| b == b' ').next().unwrap_or_default();
                scan_len = size(count, "a number of records")?;
            }
            OpKind::Get | OpKind::Delete => {}
        }
        out.key_op(
            KeyOp {
                kind,
                key,
                value_len,
                scan_len,
                client: b"",
                time_ns: None,
                ttl: Ttl::Keep,
            },
            1,
        )
    }
}

/// Returns the bytes of all values in `[ field0=abc field1=def ]`.
fn values_len(fields: &[u8]) -> Result<u32, Fault> {
    let bad = || Fault::bad("`[ field=value ... ]` of under 4 GiB", fields);
    let inner = fields.trim_ascii().strip_prefix(b"[").ok_or_else(bad)?;
    let inner = inner.strip_suffix(b"]").ok_or_else(bad)?;
    let inner = inner.strip_prefix(b" ").unwrap_or(inner);
    // BasicDB prints a space after every field.
    let inner = inner.strip_suffix(b" ").unwrap_or(inner);
    if inner.is_empty() {
        return Ok(0);
    }
    let numbered = numbered_name(inner).is_some();
    let name_len = |word: &[u8]| match numbered {
        true => numbered_name(word),
        false => word.iter().position(|&b| b == b'=').filter(|&at| at > 0),
    };
    let mut len = 0;
    for (i, word) in inner.split(|&b| b == b' ').enumerate() {
        match name_len(word) {
            // A new field: the space before it separates.
            Some(name) => len += word.len() - name - 1,
            None if i == 0 => return Err(bad()),
            // The space belongs to the value.
            None => len += word.len() + 1,
        }
    }
    u32::try_from(len).map_err(|_| bad())
}

/// Returns the length of the name in `field12=…`.
fn numbered_name(word: &[u8]) -> Option<usize> {
    let digits = word.strip_prefix(b"field")?;
    let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    (count > 0 && digits.get(count) == Some(&b'=')).then_some(5 + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_contain_spaces_and_equals_signs() {
        let cases: [(&str, Option<u32>); 8] = [
            ("[ field0=abc field1=def ]", Some(6)),
            ("[ field0=a b=c field1= ]", Some(5)),
            ("[ field0=]x[ ]", Some(3)),
            ("[ name=ab city=c ]", Some(3)),
            ("[ ]", Some(0)),
            ("[ nothing ]", None),
            ("field0=abc", None),
            ("[ field0=abc", None),
        ];
        for (text, expected) in cases {
            assert_eq!(values_len(text.as_bytes()).ok(), expected, "{text}");
        }
    }
}
