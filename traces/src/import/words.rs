//! Names of operations in other tools, and their meaning here.

use super::emit::Fault;
use crate::OpKind;

/// The meaning of an operation of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One of our operations. A scan without a length reads one record (a seek).
    Op(OpKind),
    /// A real operation that a key-value store does not have.
    NoCounterpart,
}

/// Returns the meaning of an operation's name. Case, `_` and `-` are ignored. Returns `None` if it
/// is not the name of an operation.
#[inline]
pub(super) fn word(name: &[u8]) -> Option<Meaning> {
    // The most common words take a path without a copy.
    match name {
        b"r" | b"R" | b"Read" | b"read" | b"get" | b"GET" => return Some(Meaning::Op(OpKind::Get)),
        b"w" | b"W" | b"Write" | b"write" | b"set" | b"SET" => {
            return Some(Meaning::Op(OpKind::Put));
        }
        _ => {}
    }
    let mut plain = [0; 24];
    let mut len = 0;
    for &byte in name.iter().filter(|b| !matches!(b, b'_' | b'-')) {
        if !byte.is_ascii_alphabetic() {
            return None;
        }
        *plain.get_mut(len)? = byte.to_ascii_lowercase();
        len += 1;
    }
    let kind = match &plain[..len] {
        b"" => return None,
        b"read" | b"rd" | b"get" | b"gets" | b"getlease" | b"multiget" | b"lookup" => OpKind::Get,
        b"write" | b"wr" | b"put" | b"set" | b"add" | b"insert" | b"update" | b"replace"
        | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" | b"merge" | b"setlease"
        | b"putentity" => OpKind::Put,
        b"d" | b"del" | b"delete" | b"remove" | b"singledelete" | b"discard" | b"trim"
        | b"unmap" => OpKind::Delete,
        b"scan" | b"seek" | b"seekforprev" | b"iterate" => OpKind::Scan,
        _ => return Some(Meaning::NoCounterpart),
    };
    Some(Meaning::Op(kind))
}

/// Whether the named operation changes a value and keeps its expiry. In memcached
/// (`doc/protocol.txt`), append and prepend ignore an expiry; incr and decr have none.
pub(super) fn keeps_expiry(name: &[u8]) -> bool {
    [&b"append"[..], b"prepend", b"incr", b"decr"]
        .iter()
        .any(|kept| name.eq_ignore_ascii_case(kept))
}

/// Returns the meaning of a SCSI operation code (SBC-4 table 33, the codes that move or unmap
/// blocks).
pub(super) fn scsi(code: u64) -> Meaning {
    match code {
        // READ (6), (10), (16), (12)
        0x08 | 0x28 | 0x88 | 0xa8 => Meaning::Op(OpKind::Get),
        // WRITE (6), (10), (16), (12); WRITE AND VERIFY (10), (16), (12); WRITE SAME (10),
        // (16); COMPARE AND WRITE
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae | 0x41 | 0x93 | 0x89 => {
            Meaning::Op(OpKind::Put)
        }
        // UNMAP
        0x42 => Meaning::Op(OpKind::Delete),
        _ => Meaning::NoCounterpart,
    }
}

/// Parses a flag of 0 or 1, of which `write` means a write.
pub(super) fn flag(field: &[u8], write: u8) -> Result<OpKind, Fault> {
    match field {
        [byte @ (b'0' | b'1')] if byte - b'0' == write => Ok(OpKind::Put),
        b"0" | b"1" => Ok(OpKind::Get),
        _ => Err(Fault::bad(
            format!("{write} for a write or {} for a read", 1 - write),
            field,
        )),
    }
}
